"""VS Code's agent, which runs the hooks in Claude Code's settings and in Copilot CLI's.

It reads `~/.claude/settings.json`, `.claude/settings*.json`, `~/.copilot/hooks`, `.github/hooks`,
so it has no settings of its own. By its documentation, not proven with the real client: Claude
Code's payloads, with the time of each event and without the id of a prompt; two fields are spelled
in two ways.
"""

from takeback.agents.agent import text
from takeback.agents.dialects.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload


class VSCode(ClaudeFormat):
    """Registered behind all others that send the time of an event."""

    name = "vs-code"
    title = "VS Code"
    hooks_of = "claude-code"
    seen = ("prompts", "edits", "shell", "sub-agents")
    not_seen = ("going back inside it", "Esc")
    kinds = KINDS

    def claims(self, payload: "Payload") -> bool:
        """Claude Code sends the id of a prompt and no time."""
        if "prompt_id" in payload or "turn_id" in payload:
            return False
        name = text(payload, "hook_event_name", "hookEventName")
        return name in KINDS and bool(text(payload, "timestamp"))

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        spelled = {
            "hook_event_name": text(payload, "hook_event_name", "hookEventName"),
            "session_id": text(payload, "session_id", "sessionId"),
        }
        event = super().read({**payload, **spelled})
        event.stamp = text(payload, "timestamp")
        event.output = text(payload, "tool_response", "error")
        event.failed = event.name == "PostToolUseFailure"
        return event


AGENT = VSCode()
