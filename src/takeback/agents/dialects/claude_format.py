"""Hooks with the payloads and answers of Claude Code, which several agents have copied."""

from takeback.agents import agent as kinds
from takeback.agents.agent import ASK, DENY, Agent, HookEvent, fields, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, Trial
    from takeback.model.text.json_text import Json

    Payload = kinds.Payload

KINDS = {
    "SessionStart": kinds.SESSION_STARTS,
    "UserPromptSubmit": kinds.PROMPT,
    "PreToolUse": kinds.BEFORE_TOOL,
    "PermissionRequest": kinds.ASKS,
    "PostToolUse": kinds.AFTER_TOOL,
    "PostToolUseFailure": kinds.AFTER_TOOL,
    "PostToolBatch": kinds.BATCH_OVER,
    "Stop": kinds.STOPS,
    "StopFailure": kinds.FAILS,
    "SubagentStop": kinds.SUBAGENT_STOPS,
    "SessionEnd": kinds.SESSION_ENDS,
}
_TAKES_CONTEXT = ("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse")
_BLOCKS = ("UserPromptSubmit", "Stop", "SubagentStop")
_NOTIFICATION = "<task-notification>"
_NO_HUMAN = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")


class ClaudeFormat(Agent):
    """An agent that has copied them."""

    def read(self, payload: "Payload") -> HookEvent:
        """What the payloads of all of them have in common."""
        name = text(payload, "hook_event_name")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(payload, "session_id")
        event.cwd = text(payload, "cwd")
        event.transcript = text(payload, "transcript_path")
        event.prompt = text(payload, "prompt")
        event.source = text(payload, "source", "reason")
        event.model = text(payload, "model")
        event.permission_mode = text(payload, "permission_mode")
        event.tool = text(payload, "tool_name")
        event.given = fields(payload, "tool_input")
        event.call = text(payload, "tool_use_id")
        event.subagent = text(payload, "agent_id")
        if event.subagent and event.kind in (kinds.PROMPT, kinds.STOPS, kinds.FAILS):
            event.kind = kinds.OTHER  # no human asked for it, and the turn goes on
        return event

    def can_deny(self, event: HookEvent) -> bool:
        """Before something happens: a prompt, a tool, a stop."""
        return event.name in (*_BLOCKS, "PreToolUse", "PermissionRequest")

    def can_ask(self, event: HookEvent) -> bool:
        """In the agent's permission dialog."""
        return event.name in ("PreToolUse", "PermissionRequest")

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """Context for the model where the event takes some, a verdict, and a line for the user.

        To allow is to say nothing: an explicit `allow` would skip the user's own permission rules.
        What is held is asked: `defer` stops the tool in print mode only.
        """
        out: dict[str, Json] = {"systemMessage": answer.to_user} if answer.to_user else {}
        own: dict[str, Json] = {}
        if answer.verdict == DENY and event.kind == kinds.PROMPT and not answer.to_agent:
            out = {}  # the user reads the reason
        # Neither a denial without a reason nor an empty one is accepted.
        why = answer.to_agent or answer.to_user or answer.reason or "Takeback"
        verdict = self.understood(event, answer.verdict)
        if verdict in (ASK, DENY) and event.name == "PreToolUse":
            own = {"permissionDecision": verdict, "permissionDecisionReason": why}
        elif verdict == DENY and event.name == "PermissionRequest":
            own = {"decision": {"behavior": "deny", "message": why}}
        elif verdict == DENY:
            out |= {"decision": "block", "reason": why}
        elif answer.to_agent and event.name in _TAKES_CONTEXT:
            own = {"additionalContext": answer.to_agent}
        return {**out, "hookSpecificOutput": {"hookEventName": event.name, **own}} if own else out

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """The payload of an event, without the ids that differ."""
        tool = {"tool_name": "Bash", "tool_input": {"command": trial.command}, "tool_use_id": "t"}
        more: dict[str, dict[str, object]] = {
            kinds.SESSION_STARTS: {"source": "startup"},
            kinds.PROMPT: {"prompt": trial.prompt},
            kinds.BEFORE_TOOL: {**tool},
            kinds.AFTER_TOOL: {**tool, "tool_response": ""},
            kinds.STOPS: {"stop_hook_active": False},
            kinds.SESSION_ENDS: {"reason": "other"},
        }
        return {
            "session_id": "trial",
            "transcript_path": f"{trial.home}/trial.jsonl",
            "cwd": trial.folder,
            "hook_event_name": self.event_of(kind),
            "permission_mode": "default",
            **more[kind],
        }


def read_prompt(event: HookEvent, payload: "Payload") -> None:
    """Whether a human wrote a prompt; if not, what it reports to be done."""
    is_notification = event.prompt.lstrip().startswith(_NOTIFICATION)
    if is_notification or text(payload, "source") in _NO_HUMAN:
        event.kind = kinds.GOES_ON
        event.task = _between(event.prompt, "<task-id>", "</task-id>")
        event.call = _between(event.prompt, "<tool-use-id>", "</tool-use-id>")


def _between(prompt: str, before: str, after: str) -> str:
    rest = prompt.partition(before)[2]
    return rest.partition(after)[0].strip() if after in rest else ""
