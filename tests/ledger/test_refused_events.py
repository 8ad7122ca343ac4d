"""Events that make no sense, or come from an outdated program, are refused."""

from pathlib import Path

import pytest

import takeback
from takeback.ledger import schema


def test_events_that_make_no_sense_are_told(tree: Path, home: Path) -> None:
    """`doctor` and `verify` name an event that was changed, and a rebuild changes nothing."""
    with takeback.open(tree, home=home) as project:
        with project.session("x") as session, session.turn("one"):
            (tree / "a").write_text("x")
        project.workspace.ledger._db.execute(
            "UPDATE events SET payload = '[]' WHERE kind = 'TurnEnded'"
        )
        before = project.workspace.ledger._reader.rows("SELECT * FROM deltas")
        problems, _ = project.upkeep.examine()
        assert any(problem.code == "event-changed" for problem in problems)
        assert problems[0] in project.verify().problems
        with pytest.raises(takeback.DamagedStoreError):
            project.rebuild()
        assert project.workspace.ledger._reader.rows("SELECT * FROM deltas") == before


def test_a_program_that_became_old_while_it_ran_writes_no_more(tree: Path, home: Path) -> None:
    """When a newer program changes the format of an open store, nothing of the old is appended."""
    with takeback.open(tree, home=home) as project:
        session = project.session("x", held=False)
        events = project.workspace.ledger.last_event()
        project.workspace.ledger._db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        with pytest.raises(takeback.TakebackError, match="newer Takeback"):
            session.turn("one")
        (tree / "a").write_text("x")
        with pytest.raises(takeback.TakebackError, match="newer Takeback"):
            project.checkpoint()
        assert project.workspace.ledger.last_event() == events


@pytest.mark.parametrize("when", [float("nan"), float("inf"), -1e30, -1, 1e30, 10**400, "soon"])
def test_what_is_no_time_is_refused(tree: Path, home: Path, when: float) -> None:
    """A time that cannot be is an error of ours, and the turn can be ended after it."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        turn = session.turn("one")
        step = turn.step("Bash")
        for end in (step.end, turn.end):
            with pytest.raises(takeback.UsageError, match="is not a time"):
                end(ended_at=when)
        with pytest.raises(takeback.UsageError, match="is not a time"):
            session.turn("two", interrupted_at=when)
        turn.end()
        assert turn.recorded().status == "done"
