"""Cursor, which runs the hooks in Claude Code's settings and plugins.

By the fields that others parse, not recorded: ids of a conversation and of each generation, events
in its own spelling or in Claude Code's.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import text
from takeback.agents.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, HookEvent, Payload
    from takeback.model.text.json_text import Json

_OWN = {
    "beforeSubmitPrompt": kinds.PROMPT,
    **{name[0].lower() + name[1:]: kind for name, kind in KINDS.items()},
}


class Cursor(ClaudeFormat):
    """Known by the version that it sends."""

    name = "cursor"
    title = "Cursor"
    seen = ("prompts", "edits", "shell")
    not_seen = ("going back inside it", "Esc")
    kinds = {**KINDS, **_OWN}  # noqa: RUF012 -- never changed
    told_at = ()

    def claims(self, payload: "Payload") -> bool:
        """No other agent sends its version, or the id of a generation."""
        return "cursor_version" in payload or "generation_id" in payload

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        event.session = text(payload, "conversation_id", "session_id")
        event.turn = text(payload, "generation_id")
        roots = payload.get("workspace_roots")
        if not event.cwd and isinstance(roots, list) and roots and isinstance(roots[0], str):
            event.cwd = roots[0]
        event.output = text(payload, "tool_output", "tool_response")
        event.failed = event.name.lower() == "posttoolusefailure"
        return event

    def can_deny(self, event: "HookEvent") -> bool:
        """Nobody tried what it makes of an answer."""
        del event
        return False

    def answer(self, event: "HookEvent", answer: "Answer") -> "dict[str, Json]":
        """Nothing, for the same reason."""
        del event, answer
        return {}


AGENT = Cursor()
