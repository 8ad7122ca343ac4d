"""Cursor: its own hooks, and those in Claude Code's settings and plugins, which it runs, too.

By its documentation and the fields that others parse, not proven with the real client: ids of a
conversation and of each generation, events in its own spelling or in Claude Code's.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import DENY, ENTRIES, text
from takeback.agents.dialects.claude_format import KINDS, ClaudeFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, HookEvent, Payload, Trial
    from takeback.model.text.json_text import Json

_HOOKED = {
    "sessionStart": kinds.SESSION_STARTS,
    "beforeSubmitPrompt": kinds.PROMPT,
    "preToolUse": kinds.BEFORE_TOOL,
    "postToolUse": kinds.AFTER_TOOL,
    "postToolUseFailure": kinds.AFTER_TOOL,
    "subagentStop": kinds.SUBAGENT_STOPS,
    "stop": kinds.STOPS,
    "sessionEnd": kinds.SESSION_ENDS,
}


class Cursor(ClaudeFormat):
    """Known by the version that it sends."""

    name = "cursor"
    title = "Cursor"
    seen = ("prompts", "edits", "shell")
    not_seen = ("going back inside it", "Esc")
    kinds = _HOOKED
    told_at = ()
    form = ENTRIES
    folder = ".cursor"
    file = "hooks.json"
    program = "cursor"
    marks = ("CURSOR_AGENT",)
    is_editor = True
    preface = {"version": 1}  # noqa: RUF012 -- never changed

    def claims(self, payload: "Payload") -> bool:
        """No other agent sends its version, or the id of a generation."""
        return "cursor_version" in payload or "generation_id" in payload

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        if event.kind == kinds.OTHER and not event.subagent:
            event.kind = KINDS.get(event.name, kinds.OTHER)
        event.session = text(payload, "conversation_id", "session_id")
        event.turn = text(payload, "generation_id")
        roots = payload.get("workspace_roots")
        if not event.cwd and isinstance(roots, list) and roots and isinstance(roots[0], str):
            event.cwd = roots[0]
        event.output = text(payload, "tool_output", "tool_response")
        event.failed = event.name.lower() == "posttoolusefailure"
        return event

    def can_deny(self, event: "HookEvent") -> bool:
        """A prompt, a tool; in either spelling, since both may report the same one."""
        return event.name in ("beforeSubmitPrompt", "UserPromptSubmit", "preToolUse", "PreToolUse")

    def can_ask(self, event: "HookEvent") -> bool:
        """Nobody tried."""
        del event
        return False

    def answer(self, event: "HookEvent", answer: "Answer") -> "dict[str, Json]":
        """A verdict in its own spelling, and in Claude Code's to a hook of that."""
        if self.understood(event, answer.verdict) != DENY:
            return {}
        why = answer.to_user or answer.to_agent or answer.reason or "Takeback"
        claudes = super().answer(event, answer) if event.name in KINDS else {}
        if event.kind == kinds.PROMPT:
            return {**claudes, "continue": False, "user_message": why}
        told = answer.to_agent or why
        return {**claudes, "permission": "deny", "user_message": why, "agent_message": told}

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """By the documented fields."""
        told = super().trial(kind, trial)
        own = {"conversation_id": "trial", "generation_id": "trial", "cursor_version": "0"}
        return {**told, **own, "workspace_roots": [trial.folder]}


AGENT = Cursor()
