"""Cursor, VS Code and Windsurf by their documented fields: nobody proved them with the client."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.agents.agent import DENY, Answer
from takeback.agents.dialects import cursor, vs_code, windsurf
from takeback.agents.registry import agent_of

Events = list[dict[str, Any]]


def of_cursor(tree: Path) -> Events:
    """A prompt, a command and a stop, in its own spelling."""
    own = {
        "conversation_id": "c1",
        "generation_id": "g1",
        "cursor_version": "3.0.0",
        "workspace_roots": [str(tree)],
    }
    call = {"tool_name": "Shell", "tool_input": {"command": "rm a.txt"}, "tool_use_id": "t1"}
    return [
        {**own, "hook_event_name": "beforeSubmitPrompt", "prompt": "do it", "attachments": []},
        {**own, **call, "hook_event_name": "preToolUse"},
        {**own, **call, "hook_event_name": "postToolUse", "tool_output": "{}", "duration": 5},
        {**own, "hook_event_name": "stop", "status": "completed", "loop_count": 0},
    ]


def of_vs_code(tree: Path) -> Events:
    """The same, in the spelling of its page about hooks."""
    call = {"tool_name": "runInTerminal", "tool_input": {"command": "rm a.txt"}}
    call["tool_use_id"] = "t1"
    parts: Events = [
        {"hookEventName": "UserPromptSubmit", "prompt": "do it"},
        {"hookEventName": "PreToolUse", **call},
        {"hookEventName": "PostToolUse", **call, "tool_response": "ok"},
        {"hookEventName": "Stop", "stop_hook_active": False},
    ]
    common = {"sessionId": "s1", "cwd": str(tree), "transcript_path": "/agent/transcript.json"}
    times = [f"2026-02-09T10:30:0{number}.000Z" for number in range(len(parts))]
    return [{**common, **part, "timestamp": at} for part, at in zip(parts, times, strict=True)]


def of_windsurf(tree: Path) -> Events:
    """The same; what an action is about is in one field."""
    about = {"command_line": "rm a.txt", "cwd": str(tree)}
    parts: Events = [
        {"agent_action_name": "pre_user_prompt", "tool_info": {"user_prompt": "do it"}},
        {"agent_action_name": "pre_run_command", "tool_info": about},
        {"agent_action_name": "post_run_command", "tool_info": about},
        {"agent_action_name": "post_cascade_response", "tool_info": {"response": "Done."}},
    ]
    common = {"trajectory_id": "t1", "execution_id": "e1", "model_name": "m", "cwd": str(tree)}
    times = [f"2026-02-09T10:30:0{number}.000Z" for number in range(len(parts))]
    return [{**common, **part, "timestamp": at} for part, at in zip(parts, times, strict=True)]


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
