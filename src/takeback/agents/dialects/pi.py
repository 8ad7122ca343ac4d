"""pi: an extension of ours (`pi.ts`) pipes its events, as an extension gets them.

Recorded from 0.87.1. What it calls a turn is one request to the model; one prompt lasts from
`input` to `agent_end`. It has no sub-agents and no permission dialogs.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import AFTER_TOOL, FILES, PROMPT, HookEvent, fields, text
from takeback.agents.dialects.opencode import Plugin, plugin_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.agents.agent import Payload, Trial

KINDS = {
    "session_start": kinds.SESSION_STARTS,
    "input": kinds.PROMPT,
    "tool_call": kinds.BEFORE_TOOL,
    "tool_result": kinds.AFTER_TOOL,
    "agent_end": kinds.STOPS,
    "session_shutdown": kinds.SESSION_ENDS,
}
_ENDS = {"aborted": kinds.INTERRUPTS, "error": kinds.FAILS}


class Pi(Plugin):
    """Known by what an extension is given: an event, and where it is."""

    name = "pi"
    title = "pi"
    kinds = KINDS
    told_at = (PROMPT, AFTER_TOOL)
    form = FILES
    folder = ".pi/agent"
    project_folder = ".pi"
    program = "pi"
    variable = "PI_CODING_AGENT_DIR"
    proven = "0.87.1"
    seen = ("prompts", "edits", "shell", "Esc", "`/tree`")
    not_seen = ("your own commands (`!`)", "prompts that wait while it works", "`/fork`")

    def claims(self, payload: "Payload") -> bool:
        """An event with its context."""
        return isinstance(payload.get("event"), dict) and "ctx" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event."""
        said, where = fields(payload, "event"), fields(payload, "ctx")
        name = text(said, "type")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(where, "sessionId")
        event.transcript = text(where, "sessionFile")
        event.cwd = text(where, "cwd")
        event.turn = text(payload, "turn")
        event.rewound = text(payload, "rewound")
        event.model = text(payload, "model")
        event.prompt = text(said, "text")
        event.source = text(said, "reason")
        event.tool = text(said, "toolName")
        event.call = text(said, "toolCallId")
        event.given = fields(said, "input")
        if event.kind == PROMPT and said.get("streamingBehavior"):
            event.kind = kinds.OTHER  # it steers the prompt that the agent works on
        elif event.kind == AFTER_TOOL:
            took = payload.get("took")
            event.took = took if isinstance(took, int) and took >= 0 else -1
            event.failed = said.get("isError") is True
            event.output = _joined(said.get("content"))
        elif event.kind == kinds.STOPS:
            event.kind = _ENDS.get(_end(said), kinds.STOPS)
        return event

    # -- settings --------------------------------------------------------------------------

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The extension."""
        del events
        return {"extensions/takeback.ts": plugin_text("pi.ts", command, reporting)}

    def trial(self, kind: str, trial: "Trial") -> "Payload":
        """As the extension pipes it."""
        tool = {"toolName": "bash", "toolCallId": "t", "input": {"command": trial.command}}
        more: dict[str, dict[str, object]] = {
            kinds.PROMPT: {"text": trial.prompt, "source": "interactive"},
            kinds.BEFORE_TOOL: {**tool},
            kinds.AFTER_TOOL: {**tool, "content": [], "isError": False},
        }
        ctx = {"cwd": trial.folder, "sessionId": "trial", "sessionFile": f"{trial.home}/trial"}
        return {"event": {"type": self.event_of(kind), **more.get(kind, {})}, "ctx": ctx}


def _joined(content: object) -> str:
    parts = content if isinstance(content, list) else []
    each = (text(part, "text") for part in parts if isinstance(part, dict))
    return "\n".join(filter(None, each))


def _end(said: "Payload") -> str:
    """Why the agent stopped, by its last message."""
    messages = said.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return text(last, "stopReason") if isinstance(last, dict) else ""


AGENT = Pi()
