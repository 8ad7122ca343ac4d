"""Whose a change is follows from the order of events: not from a clock, nor from a lost event."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from agents import MAIN, Agent, Codex
from takeback.cli import app
from talks import Claude

HOUR = 3600 * 1_000_000_000


@pytest.fixture(autouse=True)
def _project(tree: Path, home: Path) -> None:
    """A small project."""
    assert home.is_dir()
    (tree / "a.txt").write_text("a\n")
    (tree / "b.txt").write_text("b\n")


@pytest.fixture(params=[Agent, Codex], ids=["claude-code", "codex"])
def agent(request: pytest.FixtureRequest, tree: Path) -> Agent:
    """An agent in it."""
    made: Agent = request.param(tree)
    return made


class Clock:
    """The clock on the wall. That of the file system is not set: its stamps are the true time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._true = time.time_ns

    def set(self, hours: float) -> None:
        """Let it be so many hours ahead."""
        true, ahead = self._true, int(hours * HOUR)
        self._patch.setattr(time, "time_ns", lambda: true() + ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that somebody sets."""
    return Clock(monkeypatch)


def undo(tree: Path, *words: str) -> int:
    """The command itself; its exit code."""
    return app.main(["-C", str(tree), "undo", *words])


def look(tree: Path) -> None:
    """Somebody makes a checkpoint."""
    assert app.main(["-C", str(tree), "checkpoint"]) == 0


def texts(tree: Path) -> dict[str, str]:
    """What is there now."""
    return {path.stem: path.read_text() for path in tree.glob("*.txt")}


# -- clocks ------------------------------------------------------------------------------------


def test_a_clock_set_back_while_a_command_runs(agent: Agent, clock: Clock, tree: Path) -> None:
    """The command is open all the time, whatever its start says: the change is its own."""
    clock.set(3)
    agent.prompt("go")
    call = agent.begin("Bash", {"command": "make"})
    clock.set(0)
    look(tree)
    (tree / "a.txt").write_text("agent\n")
    call.over()
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


def test_a_clock_set_back_beside_another_session(clock: Clock, tree: Path) -> None:
    """Another session that looks in between does not become the author, nor do you."""
    clock.set(3)
    first, second = Agent(tree, "S1"), Agent(tree, "S2")
    first.prompt("go")
    call = first.begin("Bash", {"command": "make"})
    clock.set(0)
    second.prompt("look")
    second.stop()
    (tree / "a.txt").write_text("agent\n")
    call.over()
    first.stop()
    with takeback.open(tree) as project:
        (turn,) = [turn for turn in project.log(all=True).turns if turn.label == "go"]
        assert [change.raw_path for change in turn.changes] == [b"a.txt"]


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_set_while_a_dialog_waits(hours: int, clock: Clock, tree: Path) -> None:
    """When the command began cannot be reckoned then: nothing goes unasked, nothing is hidden."""
    agent = Agent(tree)
    clock.set(-hours)
    agent.prompt("go")
    given = {"command": "make"}
    call = agent.begin("Bash", given)
    agent.tell("PermissionRequest", tool_name="Bash", tool_input=given)
    (tree / "a.txt").write_text("mine\n")
    clock.set(0)
    (tree / "b.txt").write_text("agent\n")
    call.over(duration_ms=100)
    agent.stop()
    assert undo(tree) == 3
    assert texts(tree) == {"a": "mine\n", "b": "agent\n"}
    assert undo(tree, "--yes", "--", str(tree / "b.txt")) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_an_escape_after_the_clock_was_set_back(clock: Clock, tree: Path, tmp_path: Path) -> None:
    """The conversation says which prompt was interrupted; when that was does not matter."""
    agent = Claude(tree, tmp_path / "talks")
    clock.set(0)
    agent.asks("go")
    agent.begin("Bash", {"command": "make"})
    (tree / "a.txt").write_text("agent\n")
    agent.talk.interrupt(agent.prompt_id, tool=True)  # of years ago, by its clock
    look(tree)
    with takeback.open(tree) as project:
        (turn,) = project.log(all=True).turns
        assert turn.status == "interrupted"


def test_an_escape_of_a_clock_that_was_ahead(clock: Clock, tree: Path, tmp_path: Path) -> None:
    """An earlier prompt was interrupted, in the future: the one that runs now goes on."""
    agent = Claude(tree, tmp_path / "talks")
    clock.set(0)
    agent.asks("go")
    block = {"type": "text", "text": "[Request interrupted by user]"}
    agent.talk.add(
        "user",
        promptId=agent.prompt_id,
        message={"role": "user", "content": [block]},
        timestamp="2100-01-01T00:00:00.000Z",
    )
    agent.prompt("go on")
    look(tree)
    with takeback.open(tree) as project:
        assert [turn.status for turn in project.log(all=True).turns] == ["running", "interrupted"]


def test_an_escape_after_a_background_task_was_done(tree: Path, tmp_path: Path) -> None:
    """The turn goes on under the id of a prompt that no human wrote; an Esc ends it as well."""
    agent = Claude(tree, tmp_path / "talks")
    agent.asks("go")
    agent.talk.says("started")
    agent.stop()
    agent.asks("<task-notification><task-id>t</task-id></task-notification>")
    agent.begin("Bash", {"command": "make"})
    agent.talk.interrupt(agent.prompt_id, tool=True)
    look(tree)
    with takeback.open(tree) as project:
        (turn,) = project.log(all=True).turns
        assert turn.status == "interrupted"


# -- lost events -------------------------------------------------------------------------------


def lost(agent: Agent, tool: str, given: dict[str, str]) -> dict[str, object]:
    """A call whose first event found the lock busy: all that is known comes with its end."""
    agent.prompt("go")
    return {"tool_name": tool, "tool_input": given, "tool_use_id": "T9", "tool_response": ""}


def test_a_shell_whose_start_was_lost(tree: Path) -> None:
    """Claude Code tells for how long it ran: what is younger is its own, older is yours."""
    agent = Agent(tree)
    call = lost(agent, "Bash", {"command": "make"})
    (tree / "a.txt").write_text("mine\n")
    time.sleep(0.3)
    (tree / "b.txt").write_text("agent\n")
    agent.tell("PostToolUse", **call, duration_ms=100)
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_a_shell_whose_start_was_lost_and_never_told(agent: Agent, tree: Path) -> None:
    """Nobody knows when it began: its change is not yours without a word, undo asks."""
    call = lost(agent, "Bash", {"command": "make"})
    (tree / "b.txt").write_text("agent\n")
    agent.tell("PostToolUse", **call)
    agent.stop()
    assert undo(tree) == 3
    assert undo(tree, "--yes") == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


def test_an_edit_whose_start_was_lost(tree: Path) -> None:
    """It owns what it names, and nothing else."""
    agent = Agent(tree)
    call = lost(agent, "Write", {"file_path": str(tree / "b.txt"), "content": "agent\n"})
    (tree / "a.txt").write_text("mine\n")
    (tree / "b.txt").write_text("agent\n")
    agent.tell("PostToolUse", **call, duration_ms=100)
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_an_end_that_comes_twice_counts_once(agent: Agent, tree: Path) -> None:
    """Hosts may deliver an event twice: the second one opens nothing."""
    call = lost(agent, "Bash", {"command": "make"})
    (tree / "b.txt").write_text("agent\n")
    agent.tell("PostToolUse", **call, duration_ms=100)
    (tree / "a.txt").write_text("mine\n")
    agent.tell("PostToolUse", **call, duration_ms=100)
    agent.stop()
    undo(tree, "--yes")
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_a_background_command_whose_start_was_lost(tree: Path) -> None:
    """It goes on behind its end, as any other."""
    agent = Agent(tree)
    call = lost(agent, "Bash", {"command": "serve"})
    agent.tell("PostToolUse", **{**call, "tool_response": {"backgroundTaskId": "B1"}})
    (tree / "b.txt").write_text("agent\n")
    told = "<task-notification><task-id>B1</task-id></task-notification>"
    agent.tell("UserPromptSubmit", prompt=told)
    agent.stop()
    assert undo(tree, "--yes") == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


def test_an_agent_of_which_nobody_heard_before(agent: Agent, tree: Path) -> None:
    """Hooks that are installed in the middle of a turn hear an end only: no turn comes of it."""
    shell = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "T9"}
    agent.tell("PostToolUse", **shell, tool_response="")
    with takeback.open(tree) as project:
        assert project.log(all=True).turns == ()


def test_a_reading_tool_whose_start_was_lost(agent: Agent, tree: Path) -> None:
    """It changes nothing: what changed meanwhile is yours."""
    call = lost(agent, "Read", {"file_path": str(tree / "a.txt")})
    (tree / "b.txt").write_text("mine\n")
    agent.tell("PostToolUse", **call, duration_ms=100)
    agent.stop()
    undo(tree, "--yes")
    assert texts(tree) == {"a": "a\n", "b": "mine\n"}


def test_what_you_do_after_a_command_was_killed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody told when it ended: `undo` names what may be yours, and asks."""
    words = [sys.executable, "-I", str(MAIN), "run", "--", "sh", "-c"]
    script = "echo agent > a.txt; echo ready; exec sleep 60"
    with subprocess.Popen(
        [*words, script], cwd=tree, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        os.killpg(running.pid, signal.SIGKILL)
    (tree / "mine.txt").write_text("mine\n")
    assert undo(tree) == 3
    told = capsys.readouterr()
    assert "`mine.txt`" in told.out + told.err
    assert (tree / "mine.txt").read_text() == "mine\n"
    assert undo(tree, "--yes") == 0
    assert not (tree / "mine.txt").exists()
