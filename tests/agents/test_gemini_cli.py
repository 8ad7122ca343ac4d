"""Gemini CLI: what its settings get, and what it is answered."""

import json

import pytest

from takeback.agents import gemini_cli
from takeback.agents.agent import ALLOW, ASK, DENY, Answer, HookEvent

AGENT = gemini_cli.AGENT


def event(name: str, **more: object) -> HookEvent:
    """One of its events."""
    said = {"hook_event_name": name, "timestamp": "2026-11-15T18:19:30Z", "session_id": "s"}
    return AGENT.read({**said, **more})


def test_time_limits_are_in_milliseconds() -> None:
    """Each event has one hook, the prompt one that reports if Takeback is gone."""
    made = AGENT.groups("usual", "reporting")
    hooks = {name: group["hooks"][0] for name, group in made.items()}
    assert set(hooks) == set(gemini_cli.KINDS)
    assert all(hook["timeout"] >= 10_000 for hook in hooks.values())
    told = {name for name, hook in hooks.items() if hook["command"] == "reporting"}
    assert told == {"BeforeAgent"}


@pytest.mark.parametrize(
    ("settings", "is_off"),
    [
        ({"hooksConfig": {"enabled": False}}, True),
        ({"hooksConfig": {"enabled": True}}, False),
        ({"hooksConfig": []}, False),
        ({}, False),
        ([], False),
    ],
)
def test_hooks_that_are_switched_off_are_reported(settings: object, *, is_off: bool) -> None:
    """Whatever the settings hold."""
    assert bool(AGENT.settings_problems(json.dumps(settings))) == is_off


def test_verdicts_and_notes_as_it_reads_them() -> None:
    """A tool or a prompt is denied with a reason; it cannot ask; to allow is to say nothing."""
    denied = {"decision": "deny", "reason": "no"}
    for verdict in (DENY, ASK):
        for name in ("BeforeTool", "BeforeAgent"):
            assert AGENT.answer(event(name), Answer(verdict, to_agent="no")) == denied
        assert AGENT.answer(event("AfterAgent"), Answer(verdict, to_agent="no")) == {}
    assert AGENT.answer(event("BeforeTool"), Answer(ALLOW)) == {}
    said = AGENT.answer(event("AfterTool"), Answer(to_agent="read again", to_user="hello"))
    assert said == {
        "systemMessage": "hello",
        "hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "read again"},
    }


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("go", "go"),
        ("<hook_context>a</hook_context>\n\ngo", "go"),
        ("<hook_context>a</hook_context><hook_context>b</hook_context> go", "go"),
        ("<hook_context> is a tag", "<hook_context> is a tag"),
        ("what is <hook_context>a</hook_context>?", "what is <hook_context>a</hook_context>?"),
    ],
)
def test_a_prompt_is_what_the_user_typed(sent: str, typed: str) -> None:
    """What hooks put before it is not part of it."""
    assert event("BeforeAgent", prompt=sent).prompt == typed
