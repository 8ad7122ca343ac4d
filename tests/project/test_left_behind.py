"""Sessions that nobody ends: they are given up after a day, and what they left costs nothing."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import takeback
from takeback.ledger.log.events import NewEvent
from takeback.project import Project

if TYPE_CHECKING:
    from takeback.model.text.json_text import Json

DAY = 24 * 3600


def leave_behind(project: Project, count: int, age: float) -> None:
    """Sessions of hooks that began a turn and a step and were never heard of again."""
    at = time.time_ns() - int(age * 1e9)
    newest = project.checkpoint()
    facts = []
    for number in range(count):
        name = f"{number:06}".translate(str.maketrans("0123456789", "klmnopqrst"))
        session, turn, step = f"kkkkkk{name}", f"llllll{name}", f"mmmmmm{name}"
        said = {"session": session, "agent": "hook", "own_id": name, "title": "", "holder": ""}
        facts.append(NewEvent("SessionStarted", said, at))
        begun: dict[str, Json] = {"turn": turn, "session": session, "checkpoint": newest.id}
        facts.append(NewEvent("TurnStarted", {**begun, "label": "x", "looked": at}, at))
        tool: dict[str, Json] = {"step": step, "turn": turn, "tool": "Bash", "kind": "shell"}
        facts.append(NewEvent("StepStarted", tool, at))
    project.workspace.ledger.record(*facts)


def open_steps(project: Project) -> int:
    """How many windows are open."""
    return int(
        project.workspace.ledger._reader.rows("SELECT count(*) FROM steps WHERE closed IS NULL")[0][
            0
        ]
    )


def test_silent_sessions_are_given_up(tree: Path, home: Path) -> None:
    """What was left open more than a day ago is closed, a few at each look, and can go on."""
    with takeback.open(tree, home=home) as project:
        leave_behind(project, 50, 2 * DAY)
        assert open_steps(project) == 50
        for number in range(10):
            (tree / "file").write_text(f"{number}")
            project.checkpoint()
        assert open_steps(project) == 0
        assert project.upkeep.examine()[0] == ()
        again = project.session("hook", id="kkkkkk", held=False)
        assert again.id == "kkkkkkkkkkkk"
        with again.turn("and on it goes") as turn:
            pass
        assert turn.recorded().status == "done"


def test_a_session_that_was_silent_for_hours_is_not_given_up(tree: Path, home: Path) -> None:
    """An agent may wait for its user all day long."""
    with takeback.open(tree, home=home) as project:
        leave_behind(project, 1, DAY / 2)
        (tree / "file").write_text("x")
        project.checkpoint()
        assert open_steps(project) == 1


@pytest.mark.parametrize("query", ["sessions", "windows"])
def test_thousands_left_behind_cost_nothing(tree: Path, home: Path, query: str) -> None:
    """Looking for what somebody left walks no table, however many sessions there were."""
    statements = {
        "sessions": "SELECT number FROM sessions WHERE ended IS NULL AND seen < 1 AND holder = ''"
        " ORDER BY seen LIMIT 20",
        "windows": "SELECT id FROM steps WHERE closed IS NULL",
    }
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        plan = project.workspace.ledger._reader.rows("EXPLAIN QUERY PLAN " + statements[query])
    assert all("SCAN" not in row[3] for row in plan), plan
