"""What the ledger reads at a safe point depends on what changed, not on its size."""

import time
from pathlib import Path

import pytest

import takeback
from takeback.project import Project

HOUR = 3600 * 1_000_000_000


def _plan(project: Project, ask: str, *values: object) -> str:
    found = project.workspace.ledger._reader.rows("EXPLAIN QUERY PLAN " + ask, values)  # type: ignore[arg-type]
    return "; ".join(str(row[3]) for row in found)


def test_forgotten_sessions_of_hooks_are_buried(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hook sessions that were killed and silent for a day leave nothing open, some at each look."""
    real = time.time_ns
    with takeback.open(tree, home=home) as project:
        for number in range(9):
            left = project.session("claude", id=str(number), held=False)
            left.turn("killed", whole=False).step("Bash", {"command": "make"})
        monkeypatch.setattr(time, "time_ns", lambda: real() + 25 * HOUR)
        session = project.session("claude", id="new", held=False)
        session.turn("one").end()
        session.turn("two").end()
        left_open = "SELECT count(*) FROM {} WHERE closed IS NULL"
        for table in ("turns", "steps"):
            assert project.workspace.ledger._reader.rows(left_open.format(table)) == [(0,)]
        # One of them comes back, as if nothing had been.
        again = project.session("claude", id="7", held=False)
        again.turn("again").end()
        assert project.upkeep.examine()[0] == ()


def test_the_end_of_a_turn_costs_what_it_changed(tree: Path, home: Path) -> None:
    """Files changed twice, with a big change of others between, are not each compared with it."""
    with takeback.open(tree, home=home) as project:
        turn = project.session("x").turn("big", whole=False)
        for text in ("one", "two"):
            with turn.step("Bash"):
                for number in range(1000):
                    (tree / f"twice-{number}").write_text(text)
            if text == "one":
                for number in range(4000):
                    (tree / f"between-{number}").touch()
                project.checkpoint()
        worked = 0

        def count() -> int:
            nonlocal worked
            worked += 1
            return 0

        project.workspace.ledger._db.set_progress_handler(count, 1000)
        turn.end()
        assert len(turn.recorded().changes) == 1000
        assert worked < 2000, "each file was compared with everything that others changed"


def test_no_question_of_a_safe_point_walks_a_table(tree: Path, home: Path) -> None:
    """What a safe point asks is found by an index, however long the history is."""
    with takeback.open(tree, home=home) as project:
        asked: list[str] = []
        project.workspace.ledger._db.set_trace_callback(asked.append)
        session = project.session("x", id="own", held=False)
        turn = session.turn("one")
        with turn.step("Bash"):
            (tree / "a").write_text("x")
        turn.end()
        session.end()
        project.workspace.ledger._db.set_trace_callback(None)
        plans = {q: _plan(project, q) for q in asked if q.startswith(("SELECT", "UPDATE"))}
        assert project.workspace.ledger.sessions.find("x", "own") is not None
        for question, plan in plans.items():
            newest = question.endswith(("LIMIT 1", "LIMIT 1 OFFSET 0"))
            for step in plan.split("; "):
                # Of what is asked for itself, all of it is looked at; packs are merged when many,
                # and there is one origin.
                is_own = "sessions_held" in step or step.startswith(
                    ("SCAN json_each", "SCAN packs", "SCAN origin")
                )
                is_walk = step.startswith("SCAN") and not is_own
                assert newest or not is_walk, f"{question}: {step}"
                assert "turns_of_session (session=?)" not in step, f"{question}: {step}"
