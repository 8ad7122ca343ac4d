"""What goes wrong elsewhere when an agent, another agent and a person work in one tree."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import oracle
import takeback
from cases import Work, paths_of
from spoken import of_remark, spoken
from takeback.session import Session, Turn

LINES = tuple(f"line {number}" for number in range(1, 13))


def text(**changed: str) -> str:
    """Twelve lines; `_3="mine"` changes the third."""
    lines = list(LINES)
    for name, line in changed.items():
        lines[int(name[1:]) - 1] = line
    return "".join(f"{line}\n" for line in lines)


def set_line(work: Work, name: str, number: int, line: str) -> None:
    """Change one line of a file, as an editor does."""
    lines = work.text(name).splitlines()
    lines[number - 1] = line
    work.put(name, "".join(f"{each}\n" for each in lines))


def said(remarks: "tuple[takeback.Remark, ...]") -> dict[str, str]:
    """Remarks by their path."""
    return {os.fsdecode(remark.path): of_remark(remark) for remark in remarks}


def kept_text(work: Work, report: takeback.Report, name: str) -> str:
    """What a file held before a restore, as the store has it."""
    folder = work.tree.parent / f"before-{report.id}"
    work.project.extract(report.before, folder)
    return (folder / name).read_text()


@contextmanager
def editing(turn: Turn, *names: str) -> Iterator[None]:
    """An edit tool runs that names its files."""
    with turn.step("Edit", {}, kind="edit", paths=names):
        yield


@pytest.fixture
def other(work: Work) -> Session:
    """Another agent in the same tree."""
    return work.project.session("other")


# -- you, in the middle of it ------------------------------------------------------------------


def test_a_save_during_a_shell_step_is_marked_and_in_the_store(work: Work) -> None:
    """Nobody can tell your save from the shell's: it is marked *by shell*, and never lost."""
    work.put("notes.txt", text())
    with work.turn() as turn, turn.step("Bash", {"command": "make"}):
        work.put("made.o", "by the shell\n")
        set_line(work, "notes.txt", 9, "mine")
    (change,) = [c for c in work.project.plan_undo().changes if c.raw_path == b"notes.txt"]
    assert change.how == "shell"
    report = work.undo()
    assert work.text("notes.txt") == text()
    assert kept_text(work, report, "notes.txt") == text(_9="mine")
    work.redo()
    assert work.text("notes.txt") == text(_9="mine")


def test_a_save_during_an_edit_tool_is_yours(work: Work) -> None:
    """Only what an edit tool names is its own, whatever else changes meanwhile."""
    work.put("notes.txt", text())
    work.put("code.py", text())
    with work.turn() as turn, editing(turn, "code.py"):
        set_line(work, "code.py", 3, "the agent's")
        set_line(work, "notes.txt", 9, "mine")
    work.undo()
    assert work.text("code.py") == text()
    assert work.text("notes.txt") == text(_9="mine")


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_hand_edits_after_an_interrupt_stay(work: Work, status: str) -> None:
    """Esc ends what is the agent's: what you do then stays, in its files too."""
    work.put("code.py", text())
    turn = work.session.turn("do it", whole=False)
    turn.step("Bash", {"command": "make"})  # which never comes back
    set_line(work, "code.py", 3, "the agent's")
    work.put("made.py", "the agent's\n")
    turn.end(status)
    set_line(work, "code.py", 9, "mine")
    work.put("mine.txt", "mine\n")
    report = work.undo()
    assert work.text("code.py") == text(_9="mine")
    assert work.text("mine.txt") == "mine\n"
    assert work.has_none("made.py")
    assert paths_of(report.plan) == {"code.py": "merge", "made.py": "delete"}
    work.redo()
    assert work.text("code.py") == text(_3="the agent's", _9="mine")


def test_hand_edits_after_an_interrupt_stay_also_below_the_next_turn(work: Work) -> None:
    """The turn that was interrupted can be taken back from below what you and the next one did."""
    work.put("code.py", text())
    first = work.session.turn("first")
    set_line(work, "code.py", 2, "the first turn's")
    first.end("interrupted")
    set_line(work, "code.py", 6, "mine")
    with work.turn("second"):
        set_line(work, "code.py", 10, "the second turn's")
    work.undo(turn=first)
    assert work.text("code.py") == text(_6="mine", _10="the second turn's")
    work.undo()
    assert work.text("code.py") == text(_6="mine")


def test_a_turn_that_came_back_to_what_you_edited(work: Work) -> None:
    """Of a file that the turn made, you edited and the turn edited again, your state stays."""
    with work.turn() as turn:
        with editing(turn, "made.py"):
            work.put("made.py", text())
        set_line(work, "made.py", 9, "mine")
        with editing(turn, "made.py"):
            set_line(work, "made.py", 3, "the agent's")
    now = work.picture()
    report = work.undo()
    assert work.text("made.py") == text(_9="mine")
    assert "made.py" in said(report.plan.kept)
    work.redo()
    assert work.picture() == now


def test_a_turn_that_made_again_what_you_deleted(work: Work) -> None:
    """Of a file that the turn edited, you deleted and the turn made again, nothing is left."""
    work.put("code.py", text())
    with work.turn() as turn:
        with editing(turn, "code.py"):
            set_line(work, "code.py", 3, "the agent's")
        work.remove("code.py")
        with editing(turn, "code.py"):
            work.put("code.py", "made again\n")
    now = work.picture()
    report = work.undo()
    assert work.has_none("code.py")
    assert "code.py" in said(report.plan.kept)
    work.redo()
    assert work.picture() == now


# -- two sessions ------------------------------------------------------------------------------


@pytest.mark.parametrize("ended", [True, False])
def test_two_overlapping_sessions_on_one_file(work: Work, other: Session, ended: bool) -> None:
    """Each undo takes its own lines, whether the other one still works or not."""
    work.put("code.py", text())
    mine, theirs = work.session.turn("mine", whole=False), other.turn("theirs", whole=False)
    for turn, number, line in (
        (mine, 2, "one's"),
        (theirs, 5, "other's"),
        (mine, 8, "one's again"),
        (theirs, 11, "other's again"),
    ):
        with editing(turn, "code.py"):
            set_line(work, "code.py", number, line)
    mine.end()
    if ended:
        theirs.end()
    report = work.project.undo(mine.id)
    assert work.text("code.py") == text(_5="other's", _11="other's again")
    assert not report.plan.conflicts
    if not ended:
        theirs.end()
    work.project.undo(theirs.id)
    assert work.text("code.py") == text()
    work.project.redo(mine.id)
    assert work.text("code.py") == text(_2="one's", _8="one's again")
    work.project.redo(theirs.id)
    assert work.text("code.py") == text(
        _2="one's", _5="other's", _8="one's again", _11="other's again"
    )


def test_undo_while_another_session_works(work: Work, other: Session) -> None:
    """What the other one did so far stays, and the undo does not become its doing."""
    work.put("code.py", text())
    with work.turn("mine") as mine, editing(mine, "code.py"):
        set_line(work, "code.py", 3, "one's")
    theirs = other.turn("theirs", whole=False)
    step = theirs.step("Bash", {"command": "make"})
    set_line(work, "code.py", 9, "other's")
    work.put("other.o", "other's\n")
    work.project.undo(mine.id)
    assert work.text("code.py") == text(_9="other's")
    assert work.text("other.o") == "other's\n"
    set_line(work, "code.py", 12, "other's again")
    step.end()
    theirs.end()
    assert {os.fsdecode(change.path) for change in theirs.recorded().changes} == {
        "code.py",
        "other.o",
    }
    work.project.undo(theirs.id)
    assert work.text("code.py") == text()
    assert work.has_none("other.o")


def test_a_whole_session_goes_and_the_other_one_stays(work: Work, other: Session) -> None:
    """All turns of one session are taken back at once, and put back at once."""
    work.put("code.py", text())
    for number, (session, line) in enumerate(
        [(work.session, "one's"), (other, "other's"), (work.session, "one's"), (other, "other's")]
    ):
        with session.turn(f"turn {number}"):
            set_line(work, "code.py", 3 * number + 1, line)
            work.put(f"made-{number}", line)
    before = work.picture()
    report = work.project.undo(whole_session=work.session.id)
    assert work.text("code.py") == text(_4="other's", _10="other's")
    assert work.has_none("made-0", "made-2")
    assert work.has("made-1", "made-3")
    assert report.plan.changes
    work.project.redo()
    assert work.picture() == before


def test_a_session_that_changed_nothing_says_so(work: Work, other: Session) -> None:
    """To take back a session without changes changes nothing, and it is told."""
    with work.turn():
        work.put("a", "a\n")
    other.turn("looked around").end()
    before = work.picture()
    report = work.project.undo(whole_session=other.id)
    assert not report.id
    assert not report.plan.changes
    assert report.plan.title == f"the session `{other.id}`"
    with pytest.raises(takeback.NothingToTakeBackError, match="nothing to undo in the session"):
        other.undo()
    assert work.picture() == before
    assert work.project.undo().plan.title == "do it"


# -- shared paths ------------------------------------------------------------------------------


def played_at_once(work: Work, other: Session) -> tuple[Turn, Turn]:
    """Two shells run at once; nobody can tell which of them wrote `both` and `made`."""
    work.put("both", "before\n")
    mine, theirs = work.session.turn("mine", whole=False), other.turn("theirs", whole=False)
    steps = [turn.step("Bash", {"command": "make"}) for turn in (mine, theirs)]
    work.put("both", "after\n")
    work.put("made", "by one of them\n")
    for step in steps:
        step.end()
    with editing(mine, "own"):
        work.put("own", "mine\n")
    mine.end()
    theirs.end()
    return mine, theirs


def test_shared_paths_stay_and_are_listed(work: Work, other: Session) -> None:
    """What may be the other session's stays, a new file too, and the plan lists it."""
    mine, _ = played_at_once(work, other)
    report = work.project.undo(mine.id)
    assert said(report.plan.shared).keys() == {"both", "made"}
    assert work.text("both") == "after\n"
    assert work.text("made") == "by one of them\n"
    assert work.has_none("own")


def test_shared_paths_go_along_if_one_says_so(work: Work, other: Session) -> None:
    """With `shared` they are taken back, too, and redo brings them back."""
    mine, _ = played_at_once(work, other)
    before = work.picture()
    report = work.project.undo(mine.id, shared=True)
    assert work.text("both") == "before\n"
    assert work.has_none("own", "made")
    assert paths_of(report.plan).keys() == {"both", "made", "own"}
    work.project.redo()
    assert work.picture() == before


# -- turns that build on each other ------------------------------------------------------------


def test_what_builds_on_a_turn_is_named(work: Work, other: Session) -> None:
    """A later turn that changed what this one made, or conflicts with it, is a dependent."""
    work.put("code.py", text())
    work.put("other.py", text())
    with work.turn("first") as first:
        work.put("made.py", text())
        set_line(work, "code.py", 3, "first")
    with other.turn("second") as second:
        set_line(work, "made.py", 3, "second")
    with work.turn("third") as third:
        set_line(work, "code.py", 3, "third")
    with work.turn("fourth"):
        set_line(work, "other.py", 3, "fourth")
        set_line(work, "code.py", 9, "fourth")
    plan = work.project.plan_undo(first.id)
    assert set(dependents(plan)) == {second.id, third.id}
    work.project.undo([first.id, *dependents(plan)])
    assert work.text("code.py") == text(_9="fourth")
    assert work.text("other.py") == text(_3="fourth")
    assert work.has_none("made.py")


def dependents(plan: takeback.Plan) -> list[str]:
    """The ids of the turns that build on what would be taken back."""
    return [dependent.id for dependent in plan.dependents]


def test_what_does_not_build_on_a_turn_is_not_named(work: Work) -> None:
    """A later edit elsewhere in the same file needs nothing of this turn."""
    work.put("code.py", text())
    with work.turn("first") as first:
        set_line(work, "code.py", 3, "first")
    with work.turn("second"):
        set_line(work, "code.py", 9, "second")
    assert not work.project.plan_undo(first.id).dependents


# -- once more -----------------------------------------------------------------------------------


def added_and_deleted(work: Work) -> tuple[Turn, Turn]:
    """One turn adds a line and makes a file, the next one deletes both and adds a last line."""
    work.put("code.py", text())
    with work.session.turn("adds") as adds:
        work.put("code.py", text(_3="line 3\nadded"))
        work.put("made", "made\n")
    with work.session.turn("deletes") as deletes:
        work.put("code.py", text(_12="line 12\nlast"))
        work.remove("made")
    return adds, deletes


@pytest.mark.parametrize("together", [False, True])
def test_a_redo_that_had_nothing_to_do_has_nothing_to_take_back(work: Work, together: bool) -> None:
    """What a turn did counts once it was put back as it was put back, not as it was once done."""
    adds, deletes = added_and_deleted(work)
    if together:
        work.project.undo([adds.id, deletes.id])
    else:
        work.project.undo(deletes.id)
        work.project.undo(adds.id)
    assert work.text("code.py") == text()
    for _ in range(2):
        work.project.redo(deletes.id)
        assert work.text("code.py") == text(_12="line 12\nlast")
        work.project.undo(deletes.id)
        assert work.text("code.py") == text(), "not the line of the other turn again"
        assert work.has_none("made")


def test_a_path_that_was_taken_back_before_its_turn_went_on_is_known(work: Work) -> None:
    """A turn that goes on after its undo changed that path, too; there is nothing to do at it."""
    turn = work.session.turn("goes on later")
    work.put("before.txt", "1\n")
    turn.end()
    work.project.undo(turn.id)
    resumed = work.session.resume()
    assert resumed is not None
    work.put("after.txt", "2\n")
    resumed.end()
    assert work.project.undo(turn.id, paths=[b"before.txt"]).plan.changes == ()
    assert work.text("after.txt") == "2\n"
    with pytest.raises(takeback.UnknownReferenceError, match="changed nothing at"):
        work.project.undo(turn.id, paths=[b"other.txt"])
    work.project.undo(turn.id)
    assert work.has_none("after.txt")


def test_what_others_had_deleted_goes_with_both(work: Work, other: Session) -> None:
    """A line that somebody had deleted was not there to be undone; it does not come back later."""
    work.put("code.py", text())
    theirs = work.session.turn("deletes", whole=False)
    with other.turn("adds") as adds, editing(adds, "code.py"):
        work.put("code.py", text(_1="first", _9="line 9\nadded"))
    with editing(theirs, "code.py"):
        work.put("code.py", text(_1="first"))
    work.project.undo(adds.id)
    assert work.text("code.py") == text()
    work.project.redo(adds.id)
    assert work.text("code.py") == text(_1="first")
    theirs.end()
    work.project.undo([adds.id, theirs.id])
    assert work.text("code.py") == text()


def test_one_of_several_comes_back_as_it_went(work: Work) -> None:
    """What you had deleted of a turn is not put back with it, also if it went with others."""
    work.put("code.py", text())
    with work.session.turn("renames") as renames:
        work.put("code.py", text(_3="line 3\nadded", _8="changed"))
        work.project.checkpoint()
        work.move("code.py", "moved.py")
    work.put("moved.py", text(_8="changed"))
    with work.session.turn("makes") as makes:
        work.put("made", "made\n")
    work.project.undo([renames.id, makes.id])
    assert work.text("code.py") == text()
    work.project.redo(renames.id)
    assert work.text("moved.py") == text(_8="changed")
    assert work.has_none("made", "code.py")


def test_what_others_did_to_a_renamed_file_stays_through_it_all(work: Work, other: Session) -> None:
    """Undo, redo and undo of a rename carry the edits of others along each time."""
    work.put("code.py", text())
    with work.session.turn("renames") as renames:
        work.put("code.py", text(_2="agent's"))
        work.project.checkpoint()
        work.move("code.py", "moved.py")
    with other.turn("edits") as edits, editing(edits, "moved.py"):
        work.put("moved.py", text(_2="agent's", _9="other's"))
    for _ in range(2):
        work.project.undo(renames.id)
        assert work.text("code.py") == text(_9="other's")
        work.project.redo(renames.id)
        assert work.text("moved.py") == text(_2="agent's", _9="other's")


def test_an_undo_that_found_nothing_leaves_all_of_it(work: Work) -> None:
    """A file that a later turn deleted could not be undone; with that turn it goes back whole."""
    work.put("code.py", text())
    with work.session.turn("edits") as edits:
        work.put("code.py", text(_1="agent's"))
    with work.session.turn("deletes") as deletes:
        work.remove("code.py")
        work.put("other", "other\n")
    work.project.undo(edits.id)
    work.project.redo(edits.id)
    work.project.undo([edits.id, deletes.id])
    assert work.text("code.py") == text()


def test_one_of_several_comes_back_under_the_name_that_others_gave(work: Work) -> None:
    """Of turns that went together one comes back alone, also where somebody renamed the file."""
    work.put("code.py", text())
    with work.session.turn("first") as first:
        work.put("code.py", text(_2="first"))
    with work.session.turn("second") as second:
        work.put("code.py", text(_2="first", _9="second"))
    work.move("code.py", "moved.py")
    work.project.undo([first.id, second.id])
    assert work.text("moved.py") == text()
    work.project.redo(first.id)
    assert work.text("moved.py") == text(_2="first")
    work.project.redo(second.id)
    assert work.text("moved.py") == text(_2="first", _9="second")


def test_a_rename_that_could_not_be_undone_goes_with_the_deletion(work: Work) -> None:
    """What was renamed and then deleted by others comes back under its old name with both."""
    work.put("code.py", text())
    with work.session.turn("renames") as renames:
        work.move("code.py", "moved.py")
    with work.session.turn("deletes") as deletes:
        work.remove("moved.py")
        work.put("other", "other\n")
    work.project.undo(renames.id)
    work.project.redo(renames.id)
    work.project.undo([renames.id, deletes.id])
    assert work.text("code.py") == text()
    assert work.has_none("moved.py")


def test_what_an_undo_left_alone_is_taken_back_later(work: Work) -> None:
    """What was skipped, and so never put back, still is what the turn itself did."""
    work.put("code.py", text())
    with work.turn() as turn:
        work.put("code.py", text(_3="agent's"))
        work.put("made", "made\n")
    work.put("code.py", text(_3="mine"))
    work.project.undo(turn.id, decide="skip-conflicts")
    assert work.has_none("made")
    work.project.redo(turn.id)
    work.put("code.py", text(_3="agent's"))
    work.project.undo(turn.id)
    assert work.text("code.py") == text()
    assert work.has_none("made")


def test_what_was_put_back_path_by_path_is_taken_back_whole(work: Work) -> None:
    """All redos of one undo together are what is taken back."""
    with work.turn() as turn:
        work.put("one", "1\n")
        work.put("two", "2\n")
    work.project.undo(turn.id)
    work.project.redo(turn.id, paths=["one"])
    work.project.redo(turn.id)
    assert work.has("one", "two")
    work.project.undo(turn.id)
    assert work.has_none("one", "two")
    work.project.redo(turn.id)
    assert work.has("one", "two")


def test_one_of_two_that_were_put_back_together(work: Work) -> None:
    """Of turns that came back together, one can go again alone."""
    adds, deletes = added_and_deleted(work)
    work.project.undo([adds.id, deletes.id])
    work.project.redo()
    work.project.undo(deletes.id)
    assert work.text("code.py") == text(_3="line 3\nadded")
    assert work.has("made")
    work.project.undo(adds.id)
    assert work.text("code.py") == text()
    assert work.has_none("made")


# -- folders that grow past a limit ------------------------------------------------------------

GROWING = {"node_modules": "", "cache": "cache/\n"}


def fill(work: Work, folder: str, numbers: range, whose: str) -> None:
    """Put files into a folder."""
    for number in numbers:
        work.put(f"{folder}/{number}", f"{number} {whose}\n")


@pytest.mark.parametrize("folder", GROWING)
def test_a_folder_that_the_turn_made_grew_past_the_limit(work: Work, folder: str) -> None:
    """Of 199 entries that the turn made and two of yours, yours stay."""
    work.repository(_gitignore=GROWING[folder] or "nothing\n")
    with work.turn():
        fill(work, folder, range(199), "the turn's")
    fill(work, folder, range(199, 201), "yours")
    work.undo()
    assert sorted(os.listdir(work.tree / folder)) == ["199", "200"]
    work.redo()
    assert len(os.listdir(work.tree / folder)) == 201


@pytest.mark.parametrize("folder", GROWING)
def test_a_folder_that_was_there_grew_past_the_limit(work: Work, folder: str) -> None:
    """The turn's edit in it goes back, and all that came since stays as it is."""
    work.repository(_gitignore=GROWING[folder] or "nothing\n")
    fill(work, folder, range(199), "yours")
    with work.turn():
        work.put(f"{folder}/7", "the turn's\n")
        work.remove(f"{folder}/8")
    fill(work, folder, range(199, 202), "later")
    now = work.picture()
    report = work.undo()
    assert work.text(f"{folder}/7") == "7 yours\n"
    assert work.text(f"{folder}/8") == "8 yours\n"
    changed = {b"%s/%d" % (os.fsencode(folder), number) for number in (7, 8)}
    assert not oracle.differences(now, work.picture(), changed)
    assert len(report.plan.changes) == 2
    work.redo()
    assert work.picture() == now


@pytest.mark.parametrize("folder", GROWING)
def test_a_folder_that_was_made_anew_is_too_big_now(work: Work, folder: str) -> None:
    """Of what is not covered any more nothing is touched, and it is said."""
    work.repository(_gitignore=GROWING[folder] or "nothing\n")
    work.put("a", "before\n")
    with work.turn():
        work.put("a", "after\n")
        fill(work, folder, range(199), "the turn's")
    work.remove(folder)
    work.checkpoint()
    fill(work, folder, range(201), "yours")
    now = work.picture()
    plan = work.project.plan_undo()
    told = {*said(plan.conflicts), *said(plan.skipped), *said(plan.kept)}
    assert any(path.split("/")[0] == folder for path in told)
    work.project.undo(decide="skip-conflicts")
    assert work.text("a") == "before\n"
    assert not oracle.differences(now, work.picture(), [b"a"])


# -- the user's git ----------------------------------------------------------------------------


def committed(work: Work) -> None:
    """A repository with a file that is edited from several sides."""
    work.repository(code_py=text())


def test_another_branch_is_a_doubt(work: Work) -> None:
    """On another branch nothing is done and it is said which; with consent it is merged there."""
    committed(work)
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
    work.git("checkout", "-q", "-b", "side")
    set_line(work, "code.py", 9, "mine")
    work.git("commit", "-qam", "mine")
    before, git = work.picture(), work.dot_git()
    expected = '"tidy up" ended on the branch `main`, and the branch `side` is checked out now'
    with pytest.raises(takeback.DecisionNeededError) as refusal:
        work.undo()
    assert spoken(refusal.value.reasons) == (expected,)
    assert refusal.value.exit_code == 3
    assert work.picture() == before
    assert spoken(work.project.plan_undo().doubts) == (expected,)
    work.project.undo(yes=True)
    assert work.text("code.py") == text(_9="mine")
    assert work.dot_git() == git


def test_a_branch_without_the_turns_change(work: Work) -> None:
    """Where another branch has the old file already, undo leaves it and says so."""
    committed(work)
    work.git("branch", "side")
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
        work.git("commit", "-qam", "the agent's")
    work.git("checkout", "-q", "side")
    report = work.project.undo(yes=True)
    assert work.text("code.py") == text()
    assert said(report.plan.kept)["code.py"] == "already as it was"
    (stays,) = spoken(report.plan.stays)
    made = work.git("rev-parse", "main")[:10]
    assert stays == f"1 commit stays ({made}) on the branch `main`"


def test_a_commit_by_the_agent(work: Work) -> None:
    """The commit stays, and the report says with which command git would take it back."""
    committed(work)
    start = work.git("rev-parse", "HEAD")[:10]
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
        work.git("commit", "-qam", "the agent's")
    made = work.git("rev-parse", "HEAD")[:10]
    set_line(work, "code.py", 9, "mine")
    git = work.dot_git()
    report = work.undo()
    assert work.text("code.py") == text(_9="mine")
    command = f"git read-tree -im HEAD {start} && git reset --soft {start}"
    assert spoken(report.plan.stays) == (f"1 commit stays ({made}): `{command}` takes it back",)
    assert work.dot_git() == git


def test_a_commit_by_the_agent_and_one_of_yours(work: Work) -> None:
    """With your commit on top, to commit what was restored takes it back."""
    committed(work)
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
        work.git("commit", "-qam", "the agent's")
    made = work.git("rev-parse", "HEAD")[:10]
    set_line(work, "code.py", 9, "mine")
    work.git("commit", "-qam", "mine")
    top = work.git("rev-parse", "HEAD")[:10]
    report = work.undo()
    assert work.text("code.py") == text(_9="mine")
    how = "commit the restored files to take it back there, too"
    assert spoken(report.plan.stays) == (
        f"1 commit stays ({made}), below later commits: {how}",
        f"1 commit since then stays ({top})",
    )
    work.git("commit", "-qam", "without it")
    assert work.git("show", "HEAD:code.py") == text(_9="mine")


def rebase(work: Work) -> None:
    """Put the branch onto another one, which has a commit that it did not know."""
    work.git("checkout", "-q", "-b", "upstream", "start")
    set_line(work, "code.py", 9, "upstream's")
    work.git("commit", "-qam", "upstream's")
    work.git("checkout", "-q", "main")
    work.git("rebase", "-q", "upstream")


def test_a_rebase_after_the_turn(work: Work) -> None:
    """What came with the rebase stays; on the same branch nobody is asked."""
    committed(work)
    work.git("tag", "start")
    set_line(work, "code.py", 12, "mine")
    work.git("commit", "-qam", "mine")
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
    work.git("stash", "-q")
    rebase(work)
    work.git("stash", "pop", "-q")
    top = work.git("rev-parse", "HEAD")[:10]
    git = work.dot_git()
    report = work.undo()
    assert work.text("code.py") == text(_9="upstream's", _12="mine")
    assert spoken(report.plan.stays) == (f"some commits since then stay (up to {top})",)
    assert work.dot_git() == git


def test_a_rebase_of_the_agents_commit(work: Work) -> None:
    """The files go back although the commit has another name by now."""
    committed(work)
    work.git("tag", "start")
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
        work.git("commit", "-qam", "the agent's")
    rebase(work)
    git = work.dot_git()
    report = work.undo()
    assert work.text("code.py") == text(_9="upstream's")
    assert report.plan.stays
    assert work.dot_git() == git


def test_in_the_middle_of_a_rebase_one_is_asked(work: Work) -> None:
    """While a rebase has stopped, no branch is checked out: that is a doubt."""
    committed(work)
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
    work.git("checkout", "-q", "--detach")
    with pytest.raises(takeback.DecisionNeededError) as refusal:
        work.undo()
    expected = '"tidy up" ended on the branch `main`, and no branch is checked out now'
    assert spoken(refusal.value.reasons) == (expected,)


def test_a_stash_after_the_turn(work: Work) -> None:
    """What you stashed away is gone already: that is said, and the stash is yours."""
    committed(work)
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
        work.put("made.py", "the agent's\n")
    work.git("stash", "-q")
    git = work.dot_git()
    report = work.undo()
    assert work.text("code.py") == text()
    assert work.has_none("made.py")
    assert said(report.plan.kept)["code.py"] == "already as it was"
    assert work.dot_git() == git
    work.git("stash", "pop", "-q")
    assert work.text("code.py") == text(_3="the agent's")


def test_a_stash_of_your_own_edits_too(work: Work) -> None:
    """A stash that is taken out again after the undo brings your edits back."""
    committed(work)
    with work.turn("tidy up"):
        set_line(work, "code.py", 3, "the agent's")
    set_line(work, "code.py", 9, "mine")
    work.git("stash", "-q")
    work.undo()
    assert work.text("code.py") == text()
    work.git("stash", "pop", "-q")
    assert work.text("code.py") == text(_3="the agent's", _9="mine")


# -- long histories ----------------------------------------------------------------------------

FILES = 10


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_middle_of_many_turns(work: Work, count: int) -> None:
    """A turn in the middle of many goes and comes back, and all others stay as they are."""
    apart = 3
    lines = [f"line {number}\n" for number in range(apart * count // FILES)]
    texts = [list(lines) for _ in range(FILES)]
    for name in range(FILES):
        work.put(f"f{name}", "".join(lines))
    turns = []
    for number in range(count):
        name, place = number % FILES, number // FILES * apart
        with work.turn(f"turn {number}") as turn:
            texts[name][place] = f"by turn {number}\n"
            work.put(f"f{name}", "".join(texts[name]))
        turns.append(turn.id)
    before = work.picture()
    chosen = count // 2
    report = work.project.undo(turns[chosen])
    name, place = chosen % FILES, chosen // FILES * apart
    texts[name][place] = lines[place]
    assert work.text(f"f{name}") == "".join(texts[name])
    assert not oracle.differences(before, work.picture(), [b"f%d" % name])
    assert paths_of(report.plan) == {f"f{name}": "merge"}
    work.project.redo()
    assert work.picture() == before


def test_what_others_wrote_comes_back_with_a_deletion(work: Work, other: Session) -> None:
    """A turn made a file and deleted it; in between another session renamed it and wrote in it."""
    made, theirs = work.tree / "made.py", work.tree / "theirs.py"
    with work.turn("makes and deletes") as turn:
        with turn.step("Write", paths=[made]):
            work.put("made.py", text())
        with other.turn("goes on") as another, another.step("Edit", paths=[made, theirs]):
            work.move("made.py", "theirs.py")
            set_line(work, "theirs.py", 3, "theirs")
        with turn.step("Write", paths=[theirs]):
            work.remove("theirs.py")
    work.project.undo(turn.id)
    assert work.text("theirs.py") == text(_3="theirs")
