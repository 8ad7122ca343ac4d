"""VS Code's agent, which runs the hooks in Claude Code's settings.

By its documentation, not recorded: Claude Code's payloads, with the time of each event and without
the id of a prompt.
"""

from takeback.agents.agent import text
from takeback.agents.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload


class VSCode(ClaudeFormat):
    """Registered behind all others that send the time of an event."""

    name = "vs-code"
    title = "VS Code"
    seen = ("prompts", "edits", "shell", "sub-agents")
    not_seen = ("going back inside it", "Esc")
    kinds = KINDS

    def claims(self, payload: "Payload") -> bool:
        """Claude Code sends the id of a prompt and no time."""
        if "prompt_id" in payload or "turn_id" in payload:
            return False
        return text(payload, "hook_event_name") in KINDS and bool(text(payload, "timestamp"))

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        event.stamp = text(payload, "timestamp")
        event.output = text(payload, "tool_response", "error")
        event.failed = event.name == "PostToolUseFailure"
        return event


AGENT = VSCode()
