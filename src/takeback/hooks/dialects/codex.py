"""Codex: Claude Code's words, with differences.

Recorded from 0.166.0: a command that fails tells its end like any other; one that yields tells no
end at all, and neither does Esc, after which the command goes on; `Stop` comes while it runs.
"""

from takeback.hooks import calls
from takeback.hooks.calls import Answer, Call, text
from takeback.hooks.dialects import claude_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.model.jsontext import Json

    Payload = Mapping[str, object]

AGENT = "codex"

KINDS = {name: claude_code.KINDS[name] for name in (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop",
    "SubagentStop", "SessionEnd",
)}  # fmt: skip
_EVENTS = (*KINDS, "PreCompact", "PostCompact", "SubagentStart")
_TAKES_CONTEXT = ("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse")
_ROLLOUT = "/rollout-"


def claims(payload: "Payload") -> bool:
    """It sends a `turn_id`; what has none still tells where the rollout is."""
    if text(payload, "hook_event_name") not in _EVENTS or "prompt_id" in payload:
        return False
    return "turn_id" in payload or _ROLLOUT in text(payload, "transcript_path")


def read(payload: "Payload") -> Call:
    """One event."""
    kind = KINDS.get(text(payload, "hook_event_name"), calls.OTHER)
    call = claude_code.common(AGENT, payload, kind)
    call.turn = text(payload, "turn_id")
    return call


def answer(call: Call, answer: Answer) -> "dict[str, Json]":
    """As Claude Code."""
    told = claude_code.answer(call, answer)
    if call.name not in _TAKES_CONTEXT:
        told.pop("hookSpecificOutput", None)
    return told
