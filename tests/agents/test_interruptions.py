"""Esc inside an agent tells nobody; its conversation has it, and what follows is the user's."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import takeback
from agents import Agent, Codex
from takeback.cli import app


class Conversation:
    """The file in which an agent keeps what was said."""

    def __init__(self, agent: Agent, path: Path) -> None:
        self.agent = agent
        self.path = path
        self.path.touch()

    def _say(self, **line: object) -> None:
        now = datetime.now(tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self.path.open("a") as file:
            file.write(json.dumps({**line, "timestamp": now}) + "\n")

    def prompt(self, text: str) -> None:
        """A human asks for something; the hook comes first, then it is written down."""
        self.agent.prompt(text, transcript_path=str(self.path))
        id = self.agent.prompt_id
        if isinstance(self.agent, Codex):
            self._say(type="event_msg", payload={"type": "task_started", "turn_id": id})
        else:
            message = {"role": "user", "content": text}
            self._say(type="user", uuid=f"u-{id}", promptId=id, message=message)

    def escape(self) -> None:
        """The human presses Esc, some time after the shell wrote, and some time before the rest."""
        wait_a_little()
        id = self.agent.prompt_id
        if isinstance(self.agent, Codex):
            self._say(type="event_msg", payload={"type": "turn_aborted", "turn_id": id})
        else:
            said = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
            message = {"role": "user", "content": said}
            self._say(type="user", uuid=f"i-{id}", promptId=id, message=message)
        wait_a_little()


def wait_a_little() -> None:
    """Conversations tell times in milliseconds, and files in ticks of up to ten of them."""
    now = time.time_ns()
    while time.time_ns() < now + 12_000_000:
        pass


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[takeback.Project]:
    """A small project."""
    assert home.is_dir()
    (tree / "a").write_text("a\n")
    with takeback.open(tree) as opened:
        yield opened


@pytest.fixture(params=[Agent, Codex], ids=["claude-code", "codex"])
def talk(
    request: pytest.FixtureRequest, project: takeback.Project, tree: Path, tmp_path: Path
) -> Conversation:
    """An agent in it, and its conversation."""
    assert project.id
    return Conversation(request.param(tree), tmp_path / "rollout-1.jsonl")


def interrupt_a_shell(talk: Conversation, tree: Path) -> None:
    """A shell that made a file is interrupted, and the user goes on by hand."""
    talk.prompt("go")
    talk.agent.begin("Bash", {"command": "make"})
    (tree / "b").write_text("by the shell\n")
    talk.escape()
    (tree / "a").write_text("by hand\n")


def a_command_looks(talk: Conversation, tree: Path) -> None:
    """The user asks for the log."""
    del talk
    assert app.main(["-C", str(tree), "log"]) == 0


def the_session_ends(talk: Conversation, tree: Path) -> None:
    """The user leaves the agent."""
    del tree
    talk.agent.tell("SessionEnd", reason="prompt_input_exit")


def another_agent_works(talk: Conversation, tree: Path) -> None:
    """Another agent in the same project looks at it."""
    del talk
    Agent(tree, "S2").prompt("something else")


def a_prompt_follows(talk: Conversation, tree: Path) -> None:
    """The user goes on with the conversation."""
    del tree
    talk.prompt("go on")


@pytest.mark.parametrize(
    "then", [a_command_looks, the_session_ends, another_agent_works, a_prompt_follows]
)
def test_what_is_done_by_hand_after_escape_stays(
    then: Callable[[Conversation, Path], None],
    talk: Conversation,
    project: takeback.Project,
    tree: Path,
) -> None:
    """Whoever comes next, the turn ended at the Esc, and only what it did is taken back."""
    interrupt_a_shell(talk, tree)
    then(talk, tree)
    turn = project.log(all=True).turns[-1]
    assert (turn.label, turn.status) == ("go", "interrupted")
    assert {change.raw_path for change in turn.changes} == {b"b"}
    project.undo(turn, yes=True)
    assert (tree / "a").read_text() == "by hand\n"
    assert not (tree / "b").exists()


def test_undo_right_after_escape(talk: Conversation, tree: Path) -> None:
    """The command itself finds out first."""
    interrupt_a_shell(talk, tree)
    assert app.main(["-C", str(tree), "undo"]) == 0
    assert (tree / "a").read_text() == "by hand\n"
    assert not (tree / "b").exists()


def test_an_earlier_escape_does_not_end_a_turn_that_runs(
    talk: Conversation, project: takeback.Project, tree: Path
) -> None:
    """A prompt is heard before it is written down; the conversation still ends with the Esc."""
    interrupt_a_shell(talk, tree)
    talk.agent.prompt("go on", transcript_path=str(talk.path))
    a_command_looks(talk, tree)
    assert [turn.status for turn in project.log(all=True).turns] == ["running", "interrupted"]


def test_a_turn_that_runs_goes_on(
    talk: Conversation, project: takeback.Project, tree: Path
) -> None:
    """Nobody pressed Esc: looking at the log ends nothing."""
    talk.prompt("go")
    call = talk.agent.begin("Bash", {"command": "make"})
    a_command_looks(talk, tree)
    (tree / "b").write_text("by the shell\n")
    call.over()
    talk.agent.stop()
    (turn,) = project.log().turns
    assert (turn.status, {change.raw_path for change in turn.changes}) == ("done", {b"b"})
