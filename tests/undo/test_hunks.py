"""Decisions by hunk, and a turn of which something is left: partly undone, and live."""

import pytest

import takeback
from cases import Work
from takeback.model.plan import Plan

LINES = 40
AGENT, MINE = 10, 30
"""Where only the agent and where only you changed a line; both changed line 20."""
KEEP, BACK, SKIP, MARKERS = "keep-mine", "take-back", "skip-conflicts", "markers"


def text(**lines: str) -> str:
    """A file with some lines of their own: `_3="x"`."""
    found = [f"line {number}" for number in range(LINES)]
    for name, line in lines.items():
        found[int(name[1:])] = line
    return "".join(f"{line}\n" for line in found)


NOW = text(_10="agent", _15="mine too", _20="mine", _30="mine")


@pytest.fixture
def contested(work: Work) -> Work:
    """The agent changed lines 10 and 20 and another file; you changed 15, 20 and 30 since."""
    work.put("code.py", text())
    work.put("other", "before\n")
    with work.turn("edit"):
        work.put("code.py", text(_10="agent", _20="agent"))
        work.put("other", "after\n")
    work.put("code.py", NOW)
    return work


def undone(work: Work) -> bool:
    """Whether nothing is left that a bare undo takes back."""
    try:
        work.project.plan_undo()
    except takeback.TakebackError:
        return True
    return False


@pytest.mark.parametrize(("decision", "line"), [(KEEP, "mine"), (SKIP, "mine"), (BACK, "line 20")])
def test_only_the_hunk_is_decided(contested: Work, decision: str, line: str) -> None:
    """The agent's other line goes back and your other lines stay, whatever is decided."""
    contested.project.undo(decide=decision)
    assert contested.text("code.py") == text(_15="mine too", _20=line, _30="mine")
    assert contested.text("other") == "before\n"
    contested.redo()
    assert contested.text("code.py") == NOW
    assert contested.text("other") == "after\n"


@pytest.mark.parametrize("decision", [KEEP, SKIP, BACK, MARKERS])
def test_the_command_that_a_redo_names_reverses_it(contested: Work, decision: str) -> None:
    """After a redo, undo asks again; so it is not what takes the redo back."""
    contested.project.undo(decide=decision)
    was = contested.text("code.py")
    verb, ref = str(contested.redo().undo).removeprefix("takeback ").split()
    assert verb == "rollback"
    contested.project.rollback(ref, yes=True)
    assert (contested.text("code.py"), contested.text("other")) == (was, "before\n")


def test_what_is_kept_of_one_path_is_settled(contested: Work) -> None:
    """Also if nothing of that path goes: the next undo does not ask about it."""
    contested.put("code.py", text(_10="mine", _20="mine"))
    assert contested.project.undo(paths=["code.py"], decide=KEEP).plan.changes == ()
    assert contested.project.undo().undo == "takeback redo"
    assert contested.text("other") == "before\n"
    for _ in range(2):
        contested.redo()
    with pytest.raises(takeback.ConflictError):
        contested.project.undo()


def test_markers_stand_around_the_hunk_only(contested: Work) -> None:
    """The rest of the file is merged."""
    contested.project.undo(decide=MARKERS)
    found = contested.text("code.py").splitlines()
    assert found[20:27] == [
        "<<<<<<< as it is now", "mine", "||||||| as the turn left it", "agent",
        "=======", "line 20", ">>>>>>> before the turn",
    ]  # fmt: skip
    assert found[10] == "line 10"
    assert found[15] == "mine too"


def test_a_plan_has_the_hunks_of_its_conflicts(contested: Work) -> None:
    """With their lines in all three states, and where they begin now."""
    (conflict,) = contested.project.plan_undo().conflicts
    (hunk,) = conflict.hunks
    assert (hunk.line, hunk.base, hunk.ours, hunk.theirs) == (
        21, (b"agent\n",), (b"mine\n",), (b"line 20\n",),
    )  # fmt: skip


def three_hunks(work: Work) -> Plan:
    """A file in which you changed two of three lines that the agent had changed."""
    work.put("code.py", text())
    with work.turn("edit"):
        work.put("code.py", text(_10="agent", _20="agent", _30="agent"))
    work.put("code.py", text(_10="agent", _20="mine", _30="mine"))
    return work.project.plan_undo()


def test_each_hunk_is_decided_by_itself(work: Work) -> None:
    """By its path and index; the plan can be applied by another process."""
    plan = three_hunks(work)
    first, second = plan.conflicts[0].hunks
    decide = {(b"code.py", first.index): KEEP, (b"code.py", second.index): BACK}
    plan = work.project.plan_undo(decide=decide)
    assert not plan.conflicts
    work.project.apply(plan.id)
    assert work.text("code.py") == text(_20="mine")


def test_a_hunk_decides_before_its_path(work: Work) -> None:
    """What is decided for a hunk counts more than what is decided for the file."""
    plan = three_hunks(work)
    decide = {b"code.py": BACK, (b"code.py", plan.conflicts[0].hunks[0].index): KEEP}
    work.project.undo(decide=decide)
    assert work.text("code.py") == text(_20="mine")


def test_a_hunk_without_a_conflict_can_be_left(work: Work) -> None:
    """It is named as any other; the turn stays live for the rest."""
    work.put("code.py", text())
    with work.turn("edit"):
        work.put("code.py", text(_10="agent", _20="agent"))
    work.project.undo(decide={(b"code.py", 0): SKIP})
    assert work.text("code.py") == text(_10="agent")
    work.undo()
    assert work.text("code.py") == text()


@pytest.mark.parametrize("index", [-1, 3])
def test_a_hunk_that_is_not_there(work: Work, index: int) -> None:
    """It is an error, and nothing is changed."""
    three_hunks(work)
    with pytest.raises(takeback.UsageError, match=f"has no hunk {index}"):
        work.project.undo(decide={b"code.py": KEEP, (b"code.py", index): KEEP})


# -- partly undone -----------------------------------------------------------------------------


def test_what_was_kept_is_settled(contested: Work) -> None:
    """The turn is undone, and nothing of it is asked again."""
    contested.project.undo(decide=KEEP)
    assert undone(contested)


def test_what_was_skipped_is_left(contested: Work) -> None:
    """The turn stays live; undo takes the rest, and redo puts back only what that took."""
    contested.project.undo(decide=SKIP)
    after_first = contested.text("code.py")
    (conflict,) = contested.project.plan_undo().conflicts
    assert [hunk.ours for hunk in conflict.hunks] == [(b"mine\n",)]
    contested.project.undo(decide=BACK)
    assert contested.text("code.py") == text(_15="mine too", _30="mine")
    assert undone(contested)
    contested.redo()
    assert contested.text("code.py") == after_first
    assert contested.text("other") == "before\n"
    contested.redo()
    assert contested.text("code.py") == NOW
    assert contested.text("other") == "after\n"


def test_what_was_taken_is_not_asked_again(contested: Work) -> None:
    """A line that went back is yours again: an edit of it does not conflict with the turn."""
    contested.project.undo(decide=SKIP)
    contested.put("code.py", contested.text("code.py").replace("line 10\n", "mine now\n"))
    contested.project.undo(decide=BACK)
    assert contested.text("code.py") == text(_10="mine now", _15="mine too", _30="mine")


def test_the_rest_is_taken_when_nothing_is_in_the_way(contested: Work) -> None:
    """You put the agent's line back by hand: then it goes without a question."""
    contested.project.undo(decide=SKIP)
    contested.put("code.py", contested.text("code.py").replace("mine\n", "agent\n", 1))
    contested.undo()
    assert contested.text("code.py") == text(_15="mine too", _30="mine")
    assert undone(contested)


def test_an_explicit_decision_wins_over_an_older_one(contested: Work) -> None:
    """What was kept goes back after all, if somebody says so; redo brings it back."""
    (turn,) = [turn.id for turn in contested.project.log().turns]
    contested.project.undo(decide=KEEP)
    kept = contested.text("code.py")
    with pytest.raises(takeback.TakebackError, match="undone already"):
        contested.project.undo(turn)
    contested.project.undo(turn, decide=BACK)
    assert contested.text("code.py") == text(_15="mine too", _30="mine")
    contested.redo()
    assert contested.text("code.py") == kept
    assert undone(contested)


def test_what_was_kept_can_be_decided_anew_after_later_undos(work: Work) -> None:
    """One line was kept, another left; an undo of the rest and its redo do not change that."""
    work.put("a.txt", text())
    with work.turn("edit"):
        work.put("a.txt", text(_5="agent", _15="agent"))
    work.put("a.txt", text(_5="mine", _15="agent"))
    work.project.undo(decide={(b"a.txt", 0): KEEP, (b"a.txt", 1): SKIP})
    work.undo()
    assert work.text("a.txt") == text(_5="mine")
    work.redo()
    assert work.text("a.txt") == text(_5="mine", _15="agent")
    work.project.undo(decide=BACK)
    assert work.text("a.txt") == text()


def test_a_redo_asks_again_what_was_kept(contested: Work) -> None:
    """Undo and redo together change nothing, the decision neither."""
    contested.project.undo(decide=KEEP)
    contested.redo()
    assert len(contested.project.plan_undo().conflicts) == 1
    contested.project.undo(decide=BACK)
    assert contested.text("code.py") == text(_15="mine too", _30="mine")


def test_a_redo_asks_again_what_was_taken_over_yours(contested: Work) -> None:
    """Your line came back with redo: it does not go without a question."""
    contested.project.undo(decide=BACK)
    contested.redo()
    assert contested.text("code.py") == NOW
    assert len(contested.project.plan_undo().conflicts) == 1


def test_a_redo_leaves_a_hunk(work: Work) -> None:
    """Where you edited since the undo, what is skipped can be put back later."""
    work.put("code.py", text())
    with work.turn("edit"):
        work.put("code.py", text(_10="agent", _20="agent"))
    work.undo()
    work.put("code.py", text(_20="mine"))
    work.project.redo(decide=SKIP)
    assert work.text("code.py") == text(_10="agent", _20="mine")
    work.project.redo(decide=BACK)
    assert work.text("code.py") == text(_10="agent", _20="agent")
    work.undo()
    assert work.text("code.py") == text(_20="mine")


def test_of_several_turns_each_is_left_by_itself(work: Work) -> None:
    """The turn of which nothing is left is undone; the other one is live."""
    work.put("code.py", text())
    with work.turn("first") as first:
        work.put("code.py", text(_10="first"))
    with work.turn("second") as second:
        work.put("code.py", text(_10="first", _20="second"))
    work.put("code.py", text(_10="mine", _20="second"))
    work.project.undo([first, second], decide=SKIP)
    assert work.text("code.py") == text(_10="mine")
    (conflict,) = work.project.plan_undo().conflicts
    assert work.project.plan_undo().turns == (first.id,)
    assert [hunk.ours for hunk in conflict.hunks] == [(b"mine\n",)]
    work.project.redo()
    assert work.text("code.py") == text(_10="mine", _20="second")
    assert work.project.plan_undo().turns == (second.id,)


def test_binary_files_are_decided_as_a_whole(work: Work) -> None:
    """Who takes back gets all of the old bytes."""
    work.put("image", b"\0old")
    with work.turn("edit"):
        work.put("image", b"\0agent")
    work.put("image", b"\0mine")
    assert not work.project.plan_undo().conflicts[0].hunks
    work.project.undo(decide=SKIP)
    assert (work.tree / "image").read_bytes() == b"\0mine"
    work.project.undo(decide=BACK)
    assert (work.tree / "image").read_bytes() == b"\0old"


def test_a_new_process_knows_what_is_left(contested: Work) -> None:
    """It is in the log, and the tables can be made anew from it."""
    contested.project.undo(decide=SKIP)
    contested.close()
    assert not contested.project.verify().problems
    contested.project.undo(decide=BACK)
    assert contested.text("code.py") == text(_15="mine too", _30="mine")


def test_markers_are_announced_until_they_are_gone(contested: Work) -> None:
    """Each later plan that touches the file says that both versions are still in it."""
    contested.project.undo(decide=MARKERS)
    assert contested.project.plan_redo().marked == ("code.py",)
    with contested.turn("more"):
        contested.put("code.py", contested.text("code.py").replace("line 1\n", "again\n"))
    assert contested.project.undo().plan.marked == ("code.py",)
    assert contested.project.now().raw_marked == (b"code.py",)
    contested.put("code.py", text(_20="both"))
    assert contested.project.plan_redo(decide=SKIP).marked == ()
    assert contested.project.now().raw_marked == ()


def test_what_was_kept_is_not_asked_again_beside_what_is_left(work: Work) -> None:
    """Also if the file did not change at all: one hunk was kept, the other one left for later."""
    work.put("code.py", text())
    with work.turn("edit"):
        work.put("code.py", text(_10="agent", _20="agent"))
    work.put("code.py", text(_10="mine", _20="agent"))
    work.project.undo(decide={(b"code.py", 0): KEEP, (b"code.py", 1): SKIP})
    assert work.text("code.py") == text(_10="mine", _20="agent")
    work.undo()
    assert work.text("code.py") == text(_10="mine")
    assert undone(work)
