"""Undo and redo in one of several sessions mean that session's turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[takeback.Project]:
    """A project with a first checkpoint."""
    with takeback.open(tree, home=home) as opened:
        opened.checkpoint()
        yield opened


def test_a_session_takes_back_its_own_newest_turn(project: takeback.Project, tree: Path) -> None:
    """Undo of a session passes over what another session did since, and redo puts it back."""
    with project.session("one") as one, project.session("two") as two:
        with one.turn("a"):
            (tree / "a").write_text("a")
        with two.turn("b"):
            (tree / "b").write_text("b")
        assert one.undo().plan.title == "a"
        assert not (tree / "a").exists()
        assert (tree / "b").exists()
        with two.turn("c"):
            (tree / "c").write_text("c")
        with pytest.raises(takeback.DecisionNeededError):
            project.redo()
        assert one.redo().plan.title == "a"
        assert (tree / "a").read_text() == "a"
        assert two.undo().plan.title == "c"
        with pytest.raises(takeback.NothingToTakeBackError):
            one.redo()


def test_a_session_without_changes_is_a_no_op_that_says_so(
    project: takeback.Project, tree: Path
) -> None:
    """A session that changed nothing has nothing to undo, whatever others did."""
    with project.session("one") as one, project.session("two") as two:
        with two.turn("b"):
            (tree / "b").write_text("b")
        one.turn("nothing").end()
        with pytest.raises(takeback.NothingToTakeBackError, match="nothing to undo in the session"):
            one.undo()
    assert (tree / "b").exists()


def test_a_prompt_is_in_the_log_once(project: takeback.Project, tree: Path) -> None:
    """Restores name the turn, not its prompt: whoever forgets that has one place to look at."""
    prompt = "Rename the treasure map"
    with project.session("one") as session:
        with session.turn(prompt) as turn:
            (tree / "a").write_text("a")
        project.undo()
        project.redo()
        project.rollback(f"{turn.id}-")
        assert project.undo().plan.title == f'before "{prompt}"'
    told = [
        event.kind for event in project.workspace.ledger.events() if prompt in str(event.payload)
    ]
    assert told == ["TurnStarted"]
    assert [each.title for each in project.log(all=True).restores] == [
        f'before "{prompt}"',
        f'before "{prompt}"',
        prompt,
        prompt,
    ]
