"""Kimi Code: events named as Claude Code names them, with fields of its own.

Proven with 2.1.0: no id of a prompt, no path of a conversation. A sub-agent's calls look like those
of the agent itself, and it reports a `Stop` of its own before it ends. The end of a tool is
reported while the agent goes on. Its settings may name no event that it does not know.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import BLOCK, DENY, PROMPT, fields, text
from takeback.agents.dialects.claude_format import ClaudeFormat
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, HookEvent, Payload, Trial
    from takeback.model.text.json_text import Json

KINDS = {
    "SessionStart": kinds.SESSION_STARTS,
    "UserPromptSubmit": kinds.PROMPT,
    "PreToolUse": kinds.BEFORE_TOOL,
    "PermissionRequest": kinds.ASKS,
    "PostToolUse": kinds.AFTER_TOOL,
    "PostToolUseFailure": kinds.AFTER_TOOL,
    "Notification": kinds.GOES_ON,
    "Stop": kinds.STOPS,
    "StopFailure": kinds.FAILS,
    "Interrupt": kinds.INTERRUPTS,
    "SessionEnd": kinds.SESSION_ENDS,
}
_READERS = (
    "Read", "Glob", "Grep", "FetchURL", "AskUserQuestion", "TodoList", "TaskList", "TaskOutput",
    "CronList", "GetGoal", "EnterPlanMode", "ExitPlanMode",
)  # fmt: skip
_MAIN = "main"
_TASK, _EXIT_CODE = "task_id: ", "Command failed with exit code: "


class KimiCode(ClaudeFormat):
    """It says what it is."""

    name = "kimi-code"
    title = "Kimi Code"
    kinds = KINDS
    tools = {"AgentSwarm": words.AGENT, **dict.fromkeys(_READERS, words.READ)}  # noqa: RUF012
    told_at = (PROMPT,)
    form = BLOCK
    folder = ".kimi-code"
    project_folder = None
    file = "config.toml"
    program = "kimi"
    variable = "KIMI_CODE_HOME"
    matcher = f"^(?!(?:{'|'.join(_READERS)})$)"
    proven = "2.1.0"
    seen = ("prompts", "edits", "shell", "sub-agents, as the agent itself", "background")
    not_seen = ("Esc (its event was not tried)", "going back inside it")
    subagents_stop_alike = True

    def claims(self, payload: "Payload") -> bool:
        """It says so in each event."""
        return payload.get("client_type") == "kimi_code_cli"

    def read(self, payload: "Payload") -> "HookEvent":
        """One event; its prompts are lists of parts."""
        event = super().read(payload)
        event.call = text(payload, "tool_call_id")
        if event.subagent == _MAIN:
            event.subagent = ""
        if event.kind == kinds.PROMPT:
            event.prompt = _joined(payload.get("prompt"))
            if payload.get("is_steer") is True:
                event.kind = kinds.GOES_ON  # typed while the agent works: the turn goes on
        elif event.kind == kinds.GOES_ON:
            event.task = text(payload, "source_id")
            if text(payload, "source_kind") != "background_task":
                event.kind = kinds.OTHER
        elif event.kind == kinds.AFTER_TOOL:
            _read_end(event, payload)
        return event

    def can_deny(self, event: "HookEvent") -> bool:
        """Before something happens: a prompt, a tool."""
        return event.name in ("UserPromptSubmit", "PreToolUse")

    def can_ask(self, event: "HookEvent") -> bool:
        """It has no such answer."""
        del event
        return False

    def answer(self, event: "HookEvent", answer: "Answer") -> "dict[str, Json]":
        """A verdict, or words with a prompt; it shows the model any other answer as it stands."""
        said = answer.to_agent or answer.to_user
        if self.understood(event, answer.verdict) == DENY:
            why = said or answer.reason or "Takeback"
            own: dict[str, Json] = {"permissionDecision": DENY, "permissionDecisionReason": why}
            return {"hookSpecificOutput": own}
        return {"message": said} if said and event.kind == PROMPT else {}

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """As recorded."""
        said = super().trial(kind, trial)
        for name in ("transcript_path", "permission_mode", "tool_response", "tool_use_id"):
            said.pop(name, None)
        own: dict[str, object] = {"client_type": "kimi_code_cli"}
        if kind == kinds.PROMPT:
            own["prompt"] = [{"type": "text", "text": trial.prompt}]
        elif kind in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL):
            own["tool_call_id"] = "trial"
        return {**said, **own}


def _joined(prompt: object) -> str:
    """The texts of a prompt, without its pictures."""
    if not isinstance(prompt, list):
        return ""
    return "\n".join(
        filter(None, (text(part, "text") for part in prompt if isinstance(part, dict)))
    )


def _read_end(event: "HookEvent", payload: "Payload") -> None:
    """What a tool said, and whether it goes on in the background."""
    event.failed = event.name == "PostToolUseFailure"
    event.output = text(payload, "tool_output") or text(fields(payload, "error"), "message")
    event.background = event.given.get("run_in_background") is True and not event.failed
    if event.background:
        event.task = (event.output.partition(_TASK)[2].split() or [""])[0]
    if event.tool_kind == words.SHELL and not event.background:
        code = event.output.rpartition(_EXIT_CODE)[2].rstrip(".\n")
        known = int(code) if code.isascii() and code.isdigit() and len(code) < 4 else None
        event.exit_code = known if event.failed else 0


AGENT = KimiCode()
