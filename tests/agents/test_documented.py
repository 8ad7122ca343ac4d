"""Cursor, VS Code and Windsurf by their documented fields: nobody proved them with the client."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from documented import of_cursor, of_vs_code, of_windsurf
from takeback.agents.agent import DENY, Answer
from takeback.agents.dialects import cursor, vs_code, windsurf
from takeback.agents.registry import agent_of


@pytest.mark.parametrize("events", [of_cursor, of_vs_code, of_windsurf])
def test_a_turn_is_recorded_and_taken_back(events: Any, tree: Path, home: Path) -> None:  # noqa: ANN401
    """Under its own name, once, although each event comes twice."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as project:
        prompt, before, after, stop = events(tree)
        for payload in (prompt, before):
            heard(payload)
            heard(payload)
        (tree / "a.txt").unlink()
        for payload in (after, stop):
            heard(payload)
            heard(payload)
        (turn,) = [project.turn(turn.id) for turn in project.log().turns]
        assert turn.agent == agent_of(prompt).name == events.__name__[3:].replace("_", "-")
        assert (turn.label, turn.status) == ("do it", "done")
        assert [step.status for step in turn.steps] == ["done"]
        project.undo()
    assert (tree / "a.txt").read_text() == "one\n"


def test_cursor_is_refused_in_its_own_spelling(tmp_path: Path) -> None:
    """A prompt and a tool; where it runs Claude's hooks nobody tried what it makes of an answer."""
    prompt, before, *_ = map(cursor.AGENT.read, of_cursor(tmp_path))
    denied = Answer(verdict=DENY, to_agent="read it again", to_user="paused")
    assert cursor.AGENT.answer(prompt, denied) == {"continue": False, "user_message": "paused"}
    assert cursor.AGENT.answer(before, denied)["permission"] == "deny"
    assert cursor.AGENT.answer(before, denied)["agent_message"] == "read it again"
    claudes = {"hook_event_name": "PreToolUse", "cursor_version": "3", "tool_use_id": "t"}
    assert cursor.AGENT.answer(cursor.AGENT.read(claudes), denied) == {}


def test_entries_have_no_inner_list() -> None:
    """As each of them documents its settings; VS Code reads those of others."""
    entries = cursor.AGENT.groups("us", "us")
    assert json.dumps(entries["preToolUse"]).startswith('{"command": "us"')
    assert "hooks" not in entries["preToolUse"]
    assert windsurf.AGENT.groups("us", "us")["pre_user_prompt"] == {
        "command": "us",
        "show_output": False,
    }
    assert not vs_code.AGENT.folder
