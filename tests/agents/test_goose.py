"""Goose: turns that no event ends, sub-agents that no event begins, and its plugin."""

import json
from pathlib import Path

import pytest

from recorded import Played, client
from takeback.agents.agent import DENY, Answer
from takeback.agents.dialects.goose import AGENT

GOOSE = "goose-1.34.0"


@pytest.fixture(autouse=True)
def _hooks_run_in_the_project(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most events do not say where they are from."""
    monkeypatch.chdir(tree)


@client(GOOSE)
def test_the_end_of_the_session_ends_the_turn(played: Played) -> None:
    """By edit tool and shell; what the user does afterwards stays."""
    played.tell("SessionStart")
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.write")
    (played.tree / "new.txt").write_text("new\n")
    played.tell("PostToolUse.write")
    played.tell("PreToolUse.shell")
    (played.tree / "byb.txt").write_text("b\n")
    played.tell("PostToolUse.shell")
    played.tell("SessionEnd")
    (played.tree / "a.txt").write_text("by hand\n")
    (turn,) = played.turns()
    assert (turn.agent, turn.status, turn.label[:2]) == ("goose", "done", "go")
    assert [step.status for step in turn.steps] == ["done", "done"]
    played.project.undo()
    assert sorted(path.name for path in played.tree.iterdir()) == ["a.txt"]


@client(GOOSE)
def test_a_subagent_is_a_session_that_did_not_start(played: Played) -> None:
    """Its prompt is no human's, and what it does belongs to the turn that asked for it."""
    played.tell("SessionStart")
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.delegate")
    played.tell("UserPromptSubmit.of-subagent")
    played.tell("PreToolUse.shell.of-subagent")
    (played.tree / "bysub.txt").write_text("s\n")
    played.tell("PostToolUse.shell.of-subagent")
    played.tell("SessionEnd", session_id="20261116_3")
    played.tell("PostToolUse.delegate")
    (turn,) = played.turns()
    assert (turn.status, turn.label[:2]) == ("running", "go")
    assert [(step.tool, step.status) for step in turn.steps] == [
        ("delegate", "done"),
        ("shell", "done"),
    ]
    assert [change.path for change in turn.changes] == ["bysub.txt"]


@client(GOOSE)
def test_two_sessions_at_once_are_two(played: Played) -> None:
    """One that reported its start is no sub-agent, whoever runs one."""
    played.tell("SessionStart")
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.delegate")
    played.tell("SessionStart", session_id="other")
    played.tell("UserPromptSubmit", session_id="other", message="something else")
    assert sorted(turn.label[:9] for turn in played.turns()) == ["go [[scri", "something"]


def test_nothing_is_answered() -> None:
    """Nobody listens."""
    event = AGENT.read({"event": "PreToolUse", "matcher_context": "shell", "session_id": "s"})
    assert AGENT.answer(event, Answer(DENY, to_agent="no", to_user="no")) == {}
    assert not event.can_be_told()


def test_its_plugin_names_each_event_once() -> None:
    """Two files, in the shape of Open Plugins."""
    made = {name: json.loads(text) for name, text in AGENT.files("usual", "reporting").items()}
    assert made["takeback/plugin.json"]["name"] == "takeback"
    hooks = made["takeback/hooks/hooks.json"]["hooks"]
    lines = {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}
    assert set(lines) == set(AGENT.kinds)
    assert lines["UserPromptSubmit"] == "reporting"
