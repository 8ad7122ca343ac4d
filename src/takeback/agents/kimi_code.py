"""Kimi Code: events named as Claude Code names them, with fields of its own.

Recorded from 2.1.0: no id of a prompt, no path of a conversation. A sub-agent's calls look like
those of the agent itself, and it reports a `Stop` of its own before it ends.
"""

from takeback.agents.agent import PROMPT, fields, text
from takeback.agents.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, HookEvent, Payload
    from takeback.model.text.json_text import Json


class KimiCode(ClaudeFormat):
    """It says what it is."""

    name = "kimi-code"
    title = "Kimi Code"
    seen = ("prompts", "edits", "shell", "sub-agents, as the agent itself")
    not_seen = ("going back inside it", "Esc")
    kinds = KINDS
    told_at = (PROMPT,)
    subagents_stop_alike = True

    def claims(self, payload: "Payload") -> bool:
        """It says so in each event."""
        return payload.get("client_type") == "kimi_code_cli"

    def read(self, payload: "Payload") -> "HookEvent":
        """One event; its prompts are lists of parts."""
        event = super().read(payload)
        event.call = text(payload, "tool_call_id")
        event.failed = event.name == "PostToolUseFailure"
        event.output = text(payload, "tool_output") or text(fields(payload, "error"), "message")
        parts = payload.get("prompt")
        if isinstance(parts, list):
            each = (text(part, "text") for part in parts if isinstance(part, dict))
            event.prompt = "\n".join(filter(None, each))
        return event

    def can_deny(self, event: "HookEvent") -> bool:
        """Only by an exit code, and ours is always 0."""
        del event
        return False

    def answer(self, event: "HookEvent", answer: "Answer") -> "dict[str, Json]":
        """With a prompt only; it shows the model any other answer as it stands."""
        said = answer.to_agent or answer.to_user
        return {"message": said} if said and event.kind == PROMPT else {}


AGENT = KimiCode()
