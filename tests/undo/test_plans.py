"""What a plan covers, and what its second request answers."""

from pathlib import Path

import pytest

import takeback
from cases import Work, paths_of
from takeback.errors import TakebackError, UsageError


def test_redo_and_rollback_tell_how_a_change_is_known(work: Work) -> None:
    """What a shell did is marked when it is put back or rolled back, too; what you did is not."""
    work.write(named="0", shell="0", both="0", yours="0")
    first = work.checkpoint()
    with work.turn() as turn:
        with turn.step("Write", {"file_path": str(work.tree / "named")}):
            work.write(named="1")
        with turn.step("Bash", {"command": "make"}):
            work.write(shell="1", both="1")
        with turn.step("Write", {"file_path": str(work.tree / "both")}):
            work.write(both="2")
    work.write(yours="1")
    rolled = {c.path: c.how for c in work.project.plan_rollback(first).changes}
    assert rolled == {"named": "named", "shell": "shell", "both": "shell", "yours": ""}
    undone = {c.path: c.how for c in work.undo().plan.changes}
    assert undone == {"named": "named", "shell": "shell", "both": "named"}
    assert {c.path: c.how for c in work.project.plan_redo().changes} == undone


def test_a_redo_of_some_paths_leaves_the_others_to_the_next(work: Work) -> None:
    """After `redo -- a` a bare redo puts back the rest, and a bare undo takes `a` back again."""
    work.write(a="0", b="0")
    with work.turn():
        work.write(a="1", b="1")
    work.undo()
    work.redo("a")
    work.undo()
    assert (work.text("a"), work.text("b")) == ("0", "0")
    work.redo()
    last = work.redo()
    assert (work.text("a"), work.text("b")) == ("1", "1")
    assert last.undo == f"takeback rollback {last.before[:8]}", "an undo would take more"


def test_a_retry_tells_how_to_reverse_what_was_done(work: Work) -> None:
    """A call that is made again after its answer was lost gets all of that answer."""
    work.write(a="0")
    with work.turn():
        work.write(a="1")
    first = work.project.undo(request="once")
    again = work.project.undo(request="once")
    assert (again.id, again.undo) == (first.id, first.undo)
    assert first.undo


def test_a_retry_of_nothing_does_nothing(work: Work) -> None:
    """A rollback that had nothing to do has still nothing to do when it is asked for again."""
    work.write(a="0")
    first = work.checkpoint()
    told: list[takeback.Report] = []
    work.project.on_restore(told.append)
    assert not work.project.rollback(first, request="once").id
    work.write(a="mine")
    assert not work.project.rollback(first, request="once").id
    assert work.text("a") == "mine"
    for _ in range(2):
        work.project.rollback(first, request="twice")
    assert len(told) == 1, "nobody is told a second time of what was done once"


def test_a_request_is_for_one_verb(work: Work) -> None:
    """An undo with the id of a rollback is refused, and not answered with its report."""
    work.write(a="0")
    first = work.checkpoint()
    with work.turn():
        work.write(a="1")
    work.project.rollback(first, request="mine")
    with pytest.raises(UsageError, match="was already used"):
        work.project.undo(request="mine")
    assert work.text("a") == "0"


def test_what_a_step_in_the_background_did_is_taken_back(work: Work) -> None:
    """A turn that ended while a step of it still writes is the newest that changed something."""
    work.write(a="0")
    with work.turn("before"):
        work.write(a="1")
    first = work.checkpoint()
    turn = work.session.turn("serve", whole=False)
    turn.step("Bash", {"command": "serve &"}, kind="shell").detach()
    turn.end()
    work.write(log="written by the server")
    plan = work.project.plan_undo()
    assert (plan.turn, plan.passed_over, paths_of(plan)) == (turn.id, 0, {"log": "delete"})
    assert work.project.plan_rollback(first).covers == (turn.id,)


def test_a_plan_of_another_project_is_refused(work: Work, tmp_path: Path) -> None:
    """A plan is for one project, also if another one has just the same files."""
    (tmp_path / "twin").mkdir()
    twin = Work(tmp_path / "twin", work.home)
    plans = []
    for each in (work, twin):
        each.write(a="0")
        first = each.checkpoint()
        each.write(a="1")
        plans.append(each.project.plan_rollback(first))
    assert plans[0].base == plans[1].base
    with pytest.raises(TakebackError, match="in this project"):
        work.project.apply(plans[1])
    assert work.text("a") == "1"
    twin.close()
