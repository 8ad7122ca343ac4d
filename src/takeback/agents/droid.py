"""Droid of Factory: Claude Code's hooks and payloads, without ids of prompts and calls.

Recorded from 0.225.2 (`droid exec`): no event reports a prompt; a command that fails, or is
refused, reports its beginning and nothing else.
"""

from takeback.agents.agent import AFTER_TOOL, text
from takeback.agents.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload


class Droid(ClaudeFormat):
    """Known by the folder of its conversations."""

    name = "droid"
    title = "Droid"
    seen = ("edits", "shell")
    not_seen = (
        "prompts in `droid exec`",
        "the end of a command that fails",
        "going back inside it",
    )
    kinds = KINDS
    told_at = (AFTER_TOOL,)
    loses_reason = True

    def claims(self, payload: "Payload") -> bool:
        """All its events name the conversation."""
        return "/.factory/" in text(payload, "transcript_path")

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        event.output = text(payload, "tool_response", "error")
        event.failed = event.name == "PostToolUseFailure"
        return event


AGENT = Droid()
