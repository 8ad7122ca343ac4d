"""Copilot CLI: its own hooks, and those in Claude Code's settings of a project, which it loads.

Recorded from 1.0.102: an event is spelled as its settings spell it, `preToolUse` with its own
fields, `PreToolUse` with Claude Code's; some events have its own fields in either case, and those
of its own spelling are not named at all. No event has the id of a prompt or a call. A sub-agent is
a session of its own, which names the one it works for.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import ASK, DENY, Agent, HookEvent, fields, text
from takeback.agents.claude_format import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, Payload
    from takeback.model.text.json_text import Json

_TOOLS = {"Write": "create", "Edit": "edit", "Bash": "bash", "Agent": "task", "Read": "view"}
"""Its own names of tools that it spells as Claude Code does, so that both mean the same call."""
_SIGNS = (
    ("initialPrompt", "SessionStart"),
    ("transformedPrompt", "UserPromptTransformed"),
    ("prompt", "UserPromptSubmit"),
    ("toolResult", "PostToolUse"),
    ("toolArgs", "PreToolUse"),
    ("agentName", "SubagentStart"),
    ("stopReason", "Stop"),
    ("reason", "SessionEnd"),
    ("source", "SessionStart"),
)
"""Fields by which an event that has no name is known, the most telling first."""


class Copilot(Agent):
    """It counts an event that two of its settings report, once in each spelling, as one."""

    name = "copilot"
    title = "Copilot CLI"
    seen = ("prompts", "edits", "shell", "sub-agents")
    not_seen = ("permission dialogs", "going back inside it", "which of two equal calls ended")
    kinds = KINDS

    def claims(self, payload: "Payload") -> bool:
        """Its own fields; or Claude Code's with a time, and no conversation of another agent."""
        if "sessionId" in payload and isinstance(payload.get("timestamp"), int | float):
            return True
        if text(payload, "hook_event_name") not in KINDS or not text(payload, "timestamp"):
            return False
        path = text(payload, "transcript_path")
        ids = ("prompt_id", "tool_use_id", "turn_id", "client_type")
        return "/.copilot/" in path or not (path or any(name in payload for name in ids))

    def read(self, payload: "Payload") -> HookEvent:
        """One event in either spelling."""
        name = text(payload, "hook_event_name") or _name_of(payload)
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(payload, "session_id", "sessionId")
        event.stamp = _moment(payload.get("timestamp"))
        event.cwd = text(payload, "cwd")
        event.transcript = text(payload, "transcript_path", "transcriptPath")
        event.prompt = text(payload, "prompt")
        event.source = text(payload, "source", "reason")
        tool = text(payload, "tool_name", "toolName")
        event.tool = _TOOLS.get(tool, tool)
        event.given = fields(payload, "tool_input") or fields(payload, "toolArgs")
        result = fields(payload, "tool_result") or fields(payload, "toolResult")
        error = text(payload, "error")
        event.output = error or text(result, "text_result_for_llm", "textResultForLlm")
        event.failed = name == "PostToolUseFailure"
        _read_subagent(event, payload)
        return event

    def can_deny(self, event: HookEvent) -> bool:
        """Before a tool."""
        return event.name == "PreToolUse"

    def can_ask(self, event: HookEvent) -> bool:
        """In its own dialog."""
        return event.name == "PreToolUse"

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """It reads a verdict where the settings' spelling has it, and a note outside of it."""
        verdict = self.understood(event, answer.verdict)
        if verdict in (ASK, DENY):
            why = answer.to_agent or answer.to_user or answer.reason or "Takeback"
            own: dict[str, Json] = {
                "permissionDecision": verdict,
                "permissionDecisionReason": why,
            }
            return {**own, "hookSpecificOutput": {"hookEventName": event.name, **own}}
        out: dict[str, Json] = {"systemMessage": answer.to_user} if answer.to_user else {}
        return {**out, "additionalContext": answer.to_agent} if answer.to_agent else out


def _name_of(payload: "Payload") -> str:
    """What an event that has no name reports, spelled as Claude Code does."""
    if "toolArgs" in payload and "error" in payload:
        return "PostToolUseFailure"
    if "stopReason" in payload and "agentName" in payload:
        return "SubagentStop"
    if "hookName" in payload:
        return "OwnPermissionRequest"  # reported for every tool, with a dialog or without
    return next((name for sign, name in _SIGNS if sign in payload), "")


def _read_subagent(event: HookEvent, payload: "Payload") -> None:
    """What a sub-agent does belongs to the session it works for; its prompt is no human's."""
    parent = text(payload, "parent_agent_id", "parentAgentId")
    if not parent:
        return
    event.session = parent
    event.subagent = text(payload, "agent_id", "agentId")
    if event.kind in (kinds.PROMPT, kinds.STOPS, kinds.SESSION_STARTS, kinds.SESSION_ENDS):
        event.kind = kinds.OTHER


def _moment(time: object) -> str:
    """A time in milliseconds, from either spelling; empty if it is none."""
    if isinstance(time, int | float) and 0 < time < 1 << 53:
        return str(int(time))
    from takeback.agents import transcripts

    seconds = transcripts.seconds({"timestamp": time}) if isinstance(time, str) else None
    return str(round(seconds * 1000)) if seconds else ""


AGENT = Copilot()
