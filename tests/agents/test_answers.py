"""Each agent gets each verdict as its own documentation has it, at each event that takes one."""

from typing import Any

import pytest

from takeback.agents.agent import ALLOW, ASK, DENY, HOLD, Agent, Answer
from takeback.agents.dialects import claude_code, codex, unknown

CLAUDE, CODEX, UNKNOWN = claude_code.AGENT, codex.AGENT, unknown.AGENT
VERDICTS = (ALLOW, ASK, DENY, HOLD)
LATER = "SessionStart PostToolUse PostToolUseFailure PostToolBatch StopFailure SessionEnd".split()


def answered(agent: Agent, event: str, verdict: str, **words: str) -> dict[str, Any]:
    """What an agent reads."""
    answer = Answer(verdict, "risky", **words)
    return dict(agent.answer(agent.read({"hook_event_name": event}), answer))


def decided(decision: str, why: str) -> dict[str, Any]:
    """A decision before a tool."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": why,
        }
    }


@pytest.mark.parametrize(
    ("agent", "verdict", "decision"),
    [
        (CLAUDE, ASK, "ask"),
        (CLAUDE, DENY, "deny"),
        (CLAUDE, HOLD, "ask"),
        # Codex takes `ask` for an error of the hook, and runs the tool.
        (CODEX, ASK, "deny"),
        (CODEX, DENY, "deny"),
        (CODEX, HOLD, "deny"),
    ],
)
def test_before_a_tool(agent: Agent, verdict: str, decision: str) -> None:
    """The decision has a reason, which is for the agent if there are words for it."""
    assert answered(agent, "PreToolUse", verdict, to_agent="Not here.") == decided(
        decision, "Not here."
    )
    assert answered(agent, "PreToolUse", verdict, to_user="Stopped.") == {
        **decided(decision, "Stopped."),
        "systemMessage": "Stopped.",
    }
    assert answered(agent, "PreToolUse", verdict) == decided(decision, "risky")


@pytest.mark.parametrize("agent", [CLAUDE, CODEX])
def test_in_a_permission_dialog(agent: Agent) -> None:
    """A denial answers the dialog; whatever the user shall decide stays in it."""
    assert answered(agent, "PermissionRequest", DENY, to_agent="Not here.") == {
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": {"behavior": "deny", "message": "Not here."},
        }
    }
    for verdict in (ALLOW, ASK, HOLD):
        assert answered(agent, "PermissionRequest", verdict) == {}


@pytest.mark.parametrize("agent", [CLAUDE, CODEX])
@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "SubagentStop"])
@pytest.mark.parametrize("verdict", [ASK, DENY, HOLD])
def test_prompts_and_stops_are_blocked(agent: Agent, event: str, verdict: str) -> None:
    """There is no dialog, so what should be asked is denied."""
    assert answered(agent, event, verdict, to_agent="Not yet.", to_user="Held.") == {
        "decision": "block",
        "reason": "Not yet.",
        "systemMessage": "Held.",
    }


@pytest.mark.parametrize("event", LATER)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_has_happened_cannot_be_denied(event: str, verdict: str) -> None:
    """Then the words are all that is left, and the agent says so before."""
    read = CLAUDE.read({"hook_event_name": event})
    assert not CLAUDE.can_deny(read)
    assert not CLAUDE.can_ask(read)
    assert answered(CLAUDE, event, verdict, to_user="Look.") == {"systemMessage": "Look."}


@pytest.mark.parametrize("agent", [CLAUDE, CODEX])
def test_to_allow_is_to_say_nothing(agent: Agent) -> None:
    """An explicit `allow` would skip the user's own rules; context is added without one."""
    for event in agent.kinds:
        assert answered(agent, event, ALLOW) == {}
    told = answered(agent, "PreToolUse", ALLOW, to_agent="Read it again.")
    assert told == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "additionalContext": "Read it again.",
        }
    }


@pytest.mark.parametrize("verdict", VERDICTS)
def test_an_unknown_agent_gets_no_answer(verdict: str) -> None:
    """Nobody knows what it would make of one."""
    assert answered(UNKNOWN, "PreToolUse", verdict, to_agent="x", to_user="y") == {}
