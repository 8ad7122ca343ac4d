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


def test_cursor_is_refused_in_either_spelling(tmp_path: Path) -> None:
    """A prompt and a tool; where it runs Claude's hooks, it takes their denial, too."""
    prompt, before, *_ = map(cursor.AGENT.read, of_cursor(tmp_path))
    denied = Answer(verdict=DENY, to_agent="read it again", to_user="paused")
    assert cursor.AGENT.answer(prompt, denied) == {"continue": False, "user_message": "paused"}
    own = {"permission": "deny", "user_message": "paused", "agent_message": "read it again"}
    assert cursor.AGENT.answer(before, denied) == own
    claudes = {"hook_event_name": "PreToolUse", "cursor_version": "3", "tool_use_id": "t"}
    answer = cursor.AGENT.answer(cursor.AGENT.read(claudes), denied)
    assert answer.pop("hookSpecificOutput")["permissionDecision"] == "deny"  # type: ignore[index, call-overload]
    assert answer == {**own, "systemMessage": "paused"}


@pytest.mark.parametrize("is_own_first", [True, False], ids=["own first", "claudes first"])
def test_two_settings_of_cursor_refuse_together(is_own_first: bool, tree: Path, home: Path) -> None:
    """Its own and Claude's report a call after an undo, and `tb undo`: neither lets it through."""
    assert home.is_dir()
    spelled = {
        "beforeSubmitPrompt": "UserPromptSubmit",
        "preToolUse": "PreToolUse",
        "postToolUse": "PostToolUse",
        "stop": "Stop",
    }

    def tell(payload: dict[str, Any], **more: str) -> list[dict[str, Any]]:
        own = {**payload, **more}
        claudes = {**own, "hook_event_name": spelled[own["hook_event_name"]], "session_id": "c1"}
        return [heard(each) for each in ((own, claudes) if is_own_first else (claudes, own))]

    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as project:
        prompt, before, after, stop = of_cursor(tree)
        tell(prompt)
        tell(before)
        (tree / "a.txt").unlink()
        tell(after)
        project.undo(yes=True)
        assert all(each["permission"] == "deny" for each in tell(before, tool_use_id="t2"))
        assert tell(before, tool_use_id="t3") == [{}, {}]
        (tree / "a.txt").unlink()
        tell(after, tool_use_id="t3")
        tell(stop)
        dropped = tell(prompt, prompt="tb undo", generation_id="g2")
        assert all(each["continue"] is False for each in dropped)
        assert all(each["user_message"].startswith('Took back "do it"') for each in dropped)
        assert (tree / "a.txt").read_text() == "one\n"
        (turn,) = (project.turn(turn.id) for turn in project.log(all=True).turns)
        assert [step.status for step in turn.steps] == ["done", "done"]


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
