"""Droid of Factory: Claude Code's hooks and payloads, without ids of prompts and calls.

Proven with 0.225.2 (`droid exec`): no event reports a prompt, so the first tool begins the turn,
and the prompt is in the conversation. A command that fails, or is refused, reports its beginning
and nothing else.
"""

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import AFTER_TOOL, SESSION_STARTS, text
from takeback.agents.dialects.claude_format import ClaudeFormat
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload, Trial
    from takeback.agents.transcripts import Line

KINDS = {
    "SessionStart": kinds.SESSION_STARTS,
    "PreToolUse": kinds.BEFORE_TOOL,
    "PostToolUse": kinds.AFTER_TOOL,
    "Stop": kinds.STOPS,
    "SessionEnd": kinds.SESSION_ENDS,
}
_READERS = ("Read", "LS", "Glob", "Grep", "TaskOutput", "ToolSearch", "WebSearch", "FetchUrl")
_REMINDER = "<system-reminder>"


class Droid(ClaudeFormat):
    """Known by the folder of its conversations."""

    name = "droid"
    title = "Droid"
    kinds = KINDS
    tools = dict.fromkeys(_READERS, words.READ)
    told_at = (SESSION_STARTS, AFTER_TOOL)
    folder = ".factory"
    file = "settings.json"
    program = "droid"
    started_in = "FACTORY_PROJECT_DIR"
    matcher = f"^(?!(?:{'|'.join(_READERS)})$).*"
    proven = "0.225.2"
    seen = ("edits", "shell", "prompts, by its conversation")
    not_seen = (
        "prompts that use no tool",
        "the end of a command that fails",
        "going back inside it",
    )
    hides_prompts = True

    def claims(self, payload: "Payload") -> bool:
        """All its events name the conversation."""
        return "/.factory/" in text(payload, "transcript_path")

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        event.output = text(payload, "tool_response", "error")
        if event.kind == AFTER_TOOL and event.tool_kind == words.SHELL:
            event.background = event.given.get("fireAndForget") is True
            event.exit_code = None if event.background else 0  # of another one no end is reported
        return event

    def can_deny(self, event: "HookEvent") -> bool:
        """Before a tool."""
        return event.name == "PreToolUse"

    def can_ask(self, event: "HookEvent") -> bool:
        """With `--skip-permissions-unsafe` it runs what it shall ask about."""
        del event
        return False

    def newest_prompt(self, transcript: str) -> "tuple[str, str]":
        """The last message with words of the user; its id is also that of the turn there."""
        for raw in transcripts.backwards(transcript):
            line = transcripts.read(raw) if b'"role":"user"' in raw else None
            prompt = _typed(line) if line is not None else ""
            if line is not None and prompt:
                return text(line, "id"), prompt
        return "", ""

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """As recorded."""
        said = super().trial(kind, trial)
        said.pop("tool_use_id", None)
        return {**said, "transcript_path": f"{trial.home}/.factory/sessions/trial.jsonl"}


def _typed(line: "Line") -> str:
    """What a user typed; empty in results, lines of hooks and reminders for the model."""
    message = transcripts.inner(line, "message")
    content = message.get("content")
    if "hookEventName" in message or not isinstance(content, list):
        return ""
    texts = (text(part, "text") for part in content if isinstance(part, dict))
    return "\n".join(said for said in texts if said and not said.startswith(_REMINDER))


AGENT = Droid()
