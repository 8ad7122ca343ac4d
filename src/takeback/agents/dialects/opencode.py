"""OpenCode: a plugin of ours (`opencode.js`) pipes its events, as a plugin gets them.

Recorded from 1.18.33. A sub-agent is a session of its own, with a parent; the plugin names the
session of the user, to whose turn all of it belongs. A call that fails or is refused has no
`after`, but its part of the message says so. `session.idle` ends a turn, also after Esc.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import (
    AFTER_TOOL,
    DENY,
    FILES,
    GOES_ON,
    PROMPT,
    Agent,
    HookEvent,
    fields,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json

KINDS = {
    "chat.message": kinds.PROMPT,
    "tool.execute.before": kinds.BEFORE_TOOL,
    "event:permission.asked": kinds.ASKS,
    "tool.execute.after": kinds.AFTER_TOOL,
    "event:message.part.updated": kinds.BATCH_OVER,
    "event:session.idle": kinds.STOPS,
    "dispose": kinds.SESSION_ENDS,
}
_REFUSED = ("The user rejected permission", "The user has specified a rule which prevents")
_TASK = '<task id="'


class Plugin(Agent):
    """An agent that a plugin of ours speaks for, and what that plugin reads."""

    def can_deny(self, event: HookEvent) -> bool:
        """Before a tool; the model reads why."""
        return event.kind == kinds.BEFORE_TOOL

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """For the plugin: a note for the model, why a call is denied, a line for the user."""
        out: dict[str, Json] = {"systemMessage": answer.to_user} if answer.to_user else {}
        if self.understood(event, answer.verdict) == DENY:
            out["deny"] = answer.to_agent or answer.to_user or answer.reason or "Takeback"
        elif answer.to_agent and event.kind in self.told_at:
            out["note"] = answer.to_agent
        return out


class OpenCode(Plugin):
    """Known by the mark of the plugin, or by what a plugin is given."""

    name = "opencode"
    title = "OpenCode"
    kinds = KINDS
    told_at = (PROMPT, GOES_ON, AFTER_TOOL)
    form = FILES
    folder = ".config/opencode"
    project_folder = ".opencode"
    program = "opencode"
    marks = ("OPENCODE",)
    variable = "OPENCODE_CONFIG_DIR"
    proven = "1.18.33"
    seen = ("prompts", "edits", "shell", "sub-agents", "permission dialogs", "Esc", "`/undo`")
    not_seen: "tuple[str, ...]" = ("your own commands (`!`)", "when a turn ended that was killed")

    def claims(self, payload: "Payload") -> bool:
        """It says so, or it is an event as a plugin gets it."""
        known = payload.get("agent")
        return known == self.name or (known is None and "input" in payload and "output" in payload)

    def read(self, payload: "Payload") -> HookEvent:
        """One event."""
        given, out = fields(payload, "input"), fields(payload, "output")
        name = text(payload, "hook") or _shape(given, out)
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(payload, "session") or text(given, "sessionID")
        event.subagent = text(payload, "subagent")
        event.cwd = text(payload, "cwd")
        event.turn = text(payload, "turn")
        event.rewound = text(payload, "rewound")
        event.tool = text(given, "tool")
        event.call = text(given, "callID") or text(fields(given, "tool"), "callID")
        event.given = fields(out, "args") or fields(given, "args")
        if event.kind == PROMPT:
            _read_prompt(event, out)
        elif event.kind == AFTER_TOOL:
            _read_result(event, payload, out)
        elif event.kind == kinds.BATCH_OVER:
            _read_failure(event, fields(given, "part"))
        elif event.kind == kinds.STOPS and payload.get("aborted") is True:
            event.kind = kinds.INTERRUPTS
        if event.subagent and event.kind in (kinds.STOPS, kinds.INTERRUPTS):
            event.kind = kinds.SUBAGENT_STOPS
        elif event.subagent and event.kind in (PROMPT, GOES_ON, kinds.SESSION_ENDS):
            event.kind = kinds.OTHER
        return event

    # -- settings --------------------------------------------------------------------------

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The plugin."""
        del events
        return {"plugin/takeback.js": plugin_text("opencode.js", command, reporting)}

    def trial(self, kind: str, trial: "Trial") -> "Payload | None":
        """As the plugin pipes it; it reports no start of a session."""
        if not self.event_of(kind):
            return None
        call: dict[str, object] = {"tool": "bash", "sessionID": "trial", "callID": "t"}
        args = {"args": {"command": trial.command}}
        part = {"type": "text", "text": trial.prompt}
        said: dict[str, tuple[dict[str, object], object]] = {
            kinds.PROMPT: ({}, {"message": {"id": "p"}, "parts": [part]}),
            kinds.BEFORE_TOOL: (call, args),
            kinds.AFTER_TOOL: ({**call, **args}, {"output": "", "metadata": {"exit": 0}}),
        }
        given, out = said.get(kind, ({}, None))
        return {
            "agent": self.name,
            "hook": self.event_of(kind),
            "session": "trial",
            "cwd": trial.folder,
            "input": {"sessionID": "trial", **given},
            "output": out,
        }


def plugin_text(name: str, command: str, reporting: str) -> str:
    """A plugin that lies beside this file, with the command lines that it runs."""
    import json
    import os

    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        plugin = file.read()
    for mark, line in (("@command@", command), ("@reporting@", reporting)):
        plugin = plugin.replace(f'"{mark}"', json.dumps(line))
    return plugin


def _shape(given: "Payload", out: "Payload") -> str:
    """The name of an event that came without one."""
    if "parts" in out:
        return "chat.message"
    if "callID" in given and "tool" in given:
        return "tool.execute.after" if "args" in given else "tool.execute.before"
    return ""


def _read_prompt(event: HookEvent, out: "Payload") -> None:
    """A prompt; one of which the user wrote nothing reports the end of a task."""
    message = fields(out, "message")
    event.turn = text(message, "id")
    event.model = text(fields(message, "model"), "modelID")
    parts = out.get("parts")
    each = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    typed = [text(part, "text") for part in each if part.get("synthetic") is not True]
    event.prompt = "\n".join(filter(None, typed))
    added = [text(part, "text") for part in each if part.get("synthetic") is True]
    if added and not typed:
        event.kind = GOES_ON
        event.task = added[0].partition(_TASK)[2].partition('"')[0]


def _read_result(event: HookEvent, payload: "Payload", out: "Payload") -> None:
    about = fields(out, "metadata")
    code, took = about.get("exit"), payload.get("took")
    event.output = text(out, "output")
    event.exit_code = code if isinstance(code, int) else None
    event.took = took if isinstance(took, int) and took >= 0 else -1
    event.background = about.get("background") is True
    event.task = text(about, "sessionId") if event.background else ""


def _read_failure(event: HookEvent, part: "Payload") -> None:
    """A call that did not end well: it failed, or the user refused it."""
    call, why = text(part, "callID"), text(fields(part, "state"), "error")
    event.calls = (call,) if call else ()
    event.refused = event.calls if why.startswith(_REFUSED) else ()


AGENT = OpenCode()
