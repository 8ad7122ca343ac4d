"""What random histories found, each as the smallest story that shows it."""

import pytest

import takeback
from cases import Work


def test_what_a_turn_put_back_itself_is_no_conflict(work: Work) -> None:
    """A turn changed a file and changed it back: what you did to it later is nobody's business."""
    work.write(a_txt="1\n", b_txt="1\n")
    with work.turn() as turn:
        work.write(a_txt="2\n", b_txt="2\n")
        turn.checkpoint()
        work.write(a_txt="1\n")
    work.write(a_txt="mine\n")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("mine\n", "1\n")


def test_after_a_redo_of_some_paths_the_others_can_follow(work: Work) -> None:
    """Redo of one file leaves the rest to be redone, and all of it to be undone again."""
    work.write(a_txt="1\n", b_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", b_txt="2\n")
    work.undo()
    work.redo("a.txt")
    assert (work.text("a.txt"), work.text("b.txt")) == ("2\n", "1\n")
    work.redo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("2\n", "2\n")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "1\n")


def test_an_undo_that_has_nothing_to_do_is_an_undo(work: Work) -> None:
    """A running turn put back itself what it did: it is undone once, and then there is no more."""
    work.write(a_txt="1\n")
    with work.turn() as turn:
        for text in ("2\n", "1\n"):
            work.write(a_txt=text)
            turn.checkpoint()
        assert work.undo().plan.changes == ()
        with pytest.raises(takeback.NothingToTakeBackError):
            work.undo()


def test_a_redo_that_has_nothing_to_do_is_a_redo(work: Work) -> None:
    """You did by hand what a redo would do, while the turn goes on: after it none is left."""
    with work.turn() as turn:
        work.write(a_txt="1\n")
    work.undo()
    work.write(a_txt="1\n")
    assert work.session.resume() is not None
    work.write(b_txt="more\n")
    assert work.redo().plan.changes == ()
    with pytest.raises(takeback.NothingToTakeBackError):
        work.redo()
    turn.end()


def test_an_edit_under_a_name_that_another_session_gave(work: Work) -> None:
    """One agent renames a file, another renames it again, the first edits it: both go back."""
    text = "".join(f"line {number}\n" for number in range(20))
    work.write(first_txt=text, other_txt="1\n")
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    turns = [session.turn("work", whole=False) for session in (one, two)]

    def step(turn: takeback.Turn, old: str, new: str, text: str) -> None:
        with turn.step("edit", {}, kind="edit", paths=[old, new]):
            (work.tree / old).rename(work.tree / new)
            (work.tree / new).write_text(text)

    step(turns[0], "first.txt", "second.txt", text)
    step(turns[1], "second.txt", "third.txt", text)
    with turns[0].step("edit", {}, kind="edit", paths=["third.txt"]):
        (work.tree / "third.txt").write_text("new\n" + text)
    for turn in turns:
        turn.end()
    work.project.undo(turns[1].id)
    assert work.text("second.txt") == "new\n" + text
    work.project.undo(turns[0].id)
    assert work.text("first.txt") == text
    assert work.has_none("second.txt", "third.txt")


def _edit(work: Work, turn: takeback.Turn, names: list[str], texts: dict[str, str | None]) -> None:
    """A step of an edit tool: what files become, None for one that goes."""
    with turn.step("edit", {}, kind="edit", paths=names):
        for name, text in texts.items():
            if text is None:
                (work.tree / name).unlink()
            else:
                (work.tree / name).write_text(text)


TEXT = "".join(f"line {number}\n" for number in range(20))


def test_what_was_put_back_under_another_name_is_no_change(work: Work) -> None:
    """A turn edits a file, another session renames it, the turn takes its edit back: no change."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    first, second = (session.turn("work", whole=False) for session in (one, two))
    _edit(work, first, ["old.txt"], {"old.txt": "new\n" + TEXT})
    _edit(work, second, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": "new\n" + TEXT})
    _edit(work, first, ["new.txt"], {"new.txt": TEXT})
    for turn in (first, second):
        turn.end()
    work.project.undo(first.id)
    assert work.text("new.txt") == TEXT


def test_an_edit_of_a_file_that_came_back_under_its_old_name(work: Work) -> None:
    """Undo of a rename and a later deletion brings the old name back; the edit is found there."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    session = work.project.session("one")
    steps: list[dict[str, str | None]] = [
        {"old.txt": None, "new.txt": TEXT},
        {"new.txt": "new\n" + TEXT},
        {"new.txt": None},
    ]
    turns = []
    for texts in steps:
        turn = session.turn("work", whole=False)
        _edit(work, turn, list(texts), texts)
        turn.end()
        turns.append(turn.id)
    work.project.undo([turns[0], turns[2]])
    assert work.text("old.txt") == "new\n" + TEXT
    work.project.undo(turns[1])
    assert work.text("old.txt") == TEXT


def test_edits_of_a_file_whose_two_renames_were_taken_back(work: Work) -> None:
    """Another session renames a file twice and edits it; without that, each edit is found."""
    work.write(first_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    mine = one.turn("mine", whole=False)
    _edit(work, mine, ["first.txt"], {"first.txt": TEXT + "a\n"})
    undone = []
    middle = TEXT.replace("line 9\n", "line 9\ntheirs\n")
    for old, new, text in (("first.txt", "second.txt", middle), ("second.txt", "third.txt", "")):
        text = (text or middle) + "a\n"
        turn = two.turn("theirs", whole=False)
        _edit(work, turn, [old, new], {old: None, new: text})
        turn.end()
        undone.append(turn.id)
    _edit(work, mine, ["third.txt"], {"third.txt": "b\n" + middle + "a\n"})
    mine.end()
    for turn_id in reversed(undone):
        work.project.undo(turn_id)
    assert work.text("first.txt") == "b\n" + TEXT + "a\n"
    work.project.undo(mine.id)
    assert work.text("first.txt") == TEXT


def test_turns_put_back_together_of_which_one_is_undone_and_redone(work: Work) -> None:
    """After that, what both did is told turn by turn: the file gets its old name back."""
    work.write(old_txt=TEXT, other_txt="1\n")
    work.project.checkpoint()
    session = work.project.session("one")
    first = session.turn("rename", whole=False)
    _edit(work, first, ["old.txt"], {"old.txt": "new\n" + TEXT})
    _edit(work, first, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": "new\n" + TEXT})
    first.end()
    second = session.turn("write", whole=False)
    _edit(work, second, ["other.txt"], {"other.txt": "2\n"})
    second.end()
    work.project.undo(whole_session=session.id)
    work.project.redo()
    work.project.undo(first.id)
    work.project.redo()
    work.project.undo(whole_session=session.id)
    assert (work.text("old.txt"), work.text("other.txt")) == (TEXT, "1\n")
    assert work.has_none("new.txt")


def _turn(
    work: Work, session: takeback.Session, names: list[str], texts: dict[str, str | None]
) -> takeback.Turn:
    """A turn of one edit."""
    turn = session.turn("work", whole=False)
    _edit(work, turn, names, texts)
    turn.end()
    return turn


def test_a_rename_and_an_edit_under_a_name_that_went(work: Work) -> None:
    """You rename the file once more: undo takes the edit, and later, both names go back."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    edited = "new\n" + TEXT
    first = one.turn("work", whole=False)
    _edit(work, first, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": TEXT})
    _edit(work, first, ["new.txt"], {"new.txt": edited})
    first.end()
    second = _turn(work, two, ["new.txt", "last.txt"], {"new.txt": None, "last.txt": edited})
    work.project.undo(first.id)
    assert work.text("last.txt") == TEXT
    work.project.redo()
    assert work.text("last.txt") == edited
    work.project.undo([first.id, second.id])
    assert work.text("old.txt") == TEXT
    assert work.has_none("new.txt", "last.txt")


def test_two_renames_of_a_file_that_was_renamed_once_more(work: Work) -> None:
    """A turn renames a file twice, you once more: it stays under your name, toggle by toggle."""
    work.write(old_txt=TEXT, other_txt="1\n")
    work.project.checkpoint()
    turn = work.project.session("one").turn("work", whole=False)
    _edit(work, turn, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": TEXT})
    _edit(work, turn, ["new.txt", "newer.txt"], {"new.txt": None, "newer.txt": TEXT})
    _edit(work, turn, ["other.txt"], {"other.txt": "2\n"})
    turn.end()
    work.move("newer.txt", "mine.txt")
    for _ in range(3):
        work.project.undo(turn.id)
        assert (work.text("mine.txt"), work.text("other.txt")) == (TEXT, "1\n")
        assert work.has_none("old.txt", "new.txt", "newer.txt")
        work.project.redo()


def test_an_edit_that_was_taken_back_under_an_older_name_stays_taken_back(work: Work) -> None:
    """Of two turns undone together, one alone is put back: the other's edit is no part of it."""
    work.write(old_txt=TEXT, other_txt="1\n")
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    renaming = _turn(work, two, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": TEXT})
    _turn(work, one, ["new.txt"], {"new.txt": TEXT + "first\n"})
    work.project.undo(renaming.id)
    text = "second\n" + TEXT + "first\n"
    second = _turn(work, one, ["old.txt"], {"old.txt": text})
    work.project.undo(whole_session=one.id)
    assert work.text("old.txt") == TEXT
    work.project.redo(second.id)
    assert work.text("old.txt") == "second\n" + TEXT


def test_an_edit_that_was_put_back_under_a_new_name_comes_back_there_again(work: Work) -> None:
    """Another session renamed the file; the edit is undone, put back, and undone with others."""
    work.write(old_txt=TEXT, other_txt="1\n")
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    edited = "new\n" + TEXT
    first = _turn(work, one, ["old.txt"], {"old.txt": edited})
    other = _turn(work, one, ["other.txt"], {"other.txt": "2\n"})
    _turn(work, two, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": edited})
    work.project.undo(first.id)
    work.project.redo(first.id)
    work.project.undo([first.id, other.id])
    assert (work.text("new.txt"), work.text("other.txt")) == (TEXT, "1\n")
    work.project.redo(first.id)
    assert (work.text("new.txt"), work.text("other.txt")) == (edited, "1\n")


def test_what_was_left_of_turns_together_is_left_of_each(work: Work) -> None:
    """Two turns are put back together, and undone but for a conflict: it is asked again."""
    work.write(a_txt="1\n2\n3\n", b_txt="1\n")
    with work.turn() as turn:
        work.write(a_txt="1\nX\n3\n")
    with work.turn():
        work.write(b_txt="2\n")
    work.project.undo(whole_session=work.session.id)
    work.project.redo()
    work.write(a_txt="1\nmine\n3\n")
    work.project.undo(whole_session=work.session.id, decide="skip-conflicts")
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\nmine\n3\n", "1\n")
    with pytest.raises(takeback.ConflictError):
        work.project.undo(turn.id)
    work.project.undo(turn.id, decide="take-back")
    assert work.text("a.txt") == "1\n2\n3\n"


def test_what_is_not_there_any_more_is_not_left(work: Work) -> None:
    """You wrote one line of two turns anew, and took back the other: only the first is left."""
    work.write(a_txt=TEXT)
    turns = []
    for number in (3, 15):
        with work.turn() as turn:
            work.put("a.txt", work.text("a.txt").replace(f"line {number}\n", f"new {number}\n"))
        turns.append(turn.id)
    mine = TEXT.replace("line 3\n", "mine\n")
    work.write(a_txt=mine)
    work.project.undo(turns, decide="skip-conflicts")
    assert work.text("a.txt") == mine
    assert [turn.id for turn in work.project.log().turns] == [turns[0]]


def test_what_a_running_turn_lost_by_undo_is_no_conflict(work: Work) -> None:
    """A running turn is undone and goes on elsewhere; you may write what it had written."""
    work.write(a_txt="1\n", b_txt="1\n")
    with work.turn() as turn:
        work.write(a_txt="2\n")
        work.undo()
        other = work.project.session("other").turn("other")
        work.write(a_txt="theirs\n")
        other.end()
        work.write(b_txt="2\n")
    work.undo(turn=turn.id)
    assert (work.text("a.txt"), work.text("b.txt")) == ("theirs\n", "1\n")


def test_a_rename_with_an_edit_and_a_later_rename_are_undone_together(work: Work) -> None:
    """Others renamed the file once more: undo and redo of the first, then undo of both."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    edited = "new\n" + TEXT
    first = _turn(work, one, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": edited})
    second = _turn(work, two, ["new.txt", "last.txt"], {"new.txt": None, "last.txt": edited})
    work.project.undo(first.id)
    assert work.text("last.txt") == TEXT
    work.project.redo()
    assert work.text("last.txt") == edited
    work.project.undo([first.id, second.id])
    assert work.text("old.txt") == TEXT
    assert work.has_none("new.txt", "last.txt")


def test_a_rename_with_an_edit_and_an_edit_of_others_in_between(work: Work) -> None:
    """The turn edits the file once more: all its edits go, and theirs come under the old name."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    edited = "new\n" + TEXT
    theirs = edited.replace("line 9\n", "theirs\n")
    first = one.turn("work", whole=False)
    _edit(work, first, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": edited})
    _turn(work, two, ["new.txt"], {"new.txt": theirs})
    _edit(work, first, ["new.txt"], {"new.txt": theirs + "newer\n"})
    first.end()
    work.project.undo(first.id)
    assert work.text("old.txt") == TEXT.replace("line 9\n", "theirs\n")
    assert work.has_none("new.txt")


def _renamed_and_edited(work: Work) -> tuple[takeback.Turn, takeback.Turn]:
    """A turn renames a file and edits it, another edits it; the first is undone and redone."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    first = work.session.turn("work", whole=False)
    _edit(work, first, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": TEXT})
    _edit(work, first, ["new.txt"], {"new.txt": TEXT + "first\n"})
    first.end()
    second = _turn(work, work.session, ["new.txt"], {"new.txt": "second\n" + TEXT + "first\n"})
    work.project.undo(first.id)
    assert work.text("old.txt") == "second\n" + TEXT
    work.project.redo()
    assert work.text("new.txt") == "second\n" + TEXT + "first\n"
    return first, second


def test_an_edit_from_before_a_rename_was_put_back(work: Work) -> None:
    """The file had the name already when it was edited; undo of both takes the edit, too."""
    first, second = _renamed_and_edited(work)
    work.project.undo([first.id, second.id])
    assert work.text("old.txt") == TEXT
    assert work.has_none("new.txt")


def test_an_edit_after_a_rename_that_was_put_back_goes_with_it(work: Work) -> None:
    """You edit the file after that: undo of both turns brings your edit to the old name."""
    first, second = _renamed_and_edited(work)
    work.write(new_txt=work.text("new.txt").replace("line 9\n", "mine\n"))
    work.project.undo([first.id, second.id])
    assert work.text("old.txt") == TEXT.replace("line 9\n", "mine\n")
    assert work.has_none("new.txt")


def test_a_file_that_was_renamed_twice_and_deleted_comes_back_with_edits_of_others(
    work: Work,
) -> None:
    """Others edited it between both renames: it comes back once, under its oldest name."""
    work.write(old_txt=TEXT)
    work.project.checkpoint()
    one, two = (work.project.session(name) for name in ("one", "two"))
    turn, edited = one.turn("work", whole=False), TEXT + "theirs\n"
    _edit(work, turn, ["old.txt", "new.txt"], {"old.txt": None, "new.txt": TEXT})
    _turn(work, two, ["new.txt"], {"new.txt": edited})
    _edit(work, turn, ["new.txt", "last.txt"], {"new.txt": None, "last.txt": edited})
    _edit(work, turn, ["last.txt"], {"last.txt": None})
    turn.end()
    work.project.undo(turn.id)
    assert work.text("old.txt") == edited
    assert work.has_none("new.txt", "last.txt")
