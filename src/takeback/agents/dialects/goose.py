"""Goose: hooks of a plugin, which observe and are not listened to.

Proven with 1.34.0 (`goose run`): no ids of prompts and calls, no results of tools; nothing that a
hook says reaches the model or the user, and none can refuse. No event ends a turn: the end of the
session does, or the next prompt. A sub-agent is a session of its own that reports no start.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import FILES, Agent, HookEvent, fields, text
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json

KINDS = {
    "SessionStart": kinds.SESSION_STARTS,
    "UserPromptSubmit": kinds.PROMPT,
    "PreToolUse": kinds.BEFORE_TOOL,
    "PostToolUse": kinds.AFTER_TOOL,
    "PostToolUseFailure": kinds.AFTER_TOOL,
    "Stop": kinds.STOPS,
    "SessionEnd": kinds.SESSION_ENDS,
}
_READERS = ("tree", "analyze", "load", "load_skill", "todo__todo_write")


class Goose(Agent):
    """Known by two fields that all its events have."""

    name = "goose"
    title = "Goose"
    kinds = KINDS
    tools = {"delegate": words.AGENT, **dict.fromkeys(_READERS, words.READ)}  # noqa: RUF012
    told_at = ()
    form = FILES
    folder = ".agents/plugins"
    program = "goose"
    marks = ("GOOSE_TERMINAL",)
    proven = "1.34.0"
    seen = ("prompts", "edits", "shell", "sub-agents")
    not_seen = ("ends of turns before that of the session", "Esc", "going back inside it")
    call_limit = 30
    subagents_start_silently = True
    hides_stops = True

    def claims(self, payload: "Payload") -> bool:
        """No other agent has both."""
        return "event" in payload and "matcher_context" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event; some do not say where, which is where the hook runs then."""
        name = text(payload, "event")
        event = HookEvent(self, name, KINDS.get(name, kinds.OTHER))
        event.session = text(payload, "session_id")
        event.cwd = text(payload, "working_dir")
        event.prompt = text(payload, "message")
        event.tool = text(payload, "tool_name")
        event.given = fields(payload, "tool_input")
        event.failed = name == "PostToolUseFailure"
        return event

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """Nothing: nobody listens."""
        del event, answer
        return {}

    # -- settings --------------------------------------------------------------------------

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """A plugin: what it is, and its hooks."""
        import json

        about = {
            "name": "takeback",
            "version": "1.0.0",
            "description": "Records what each prompt changes; written by takeback install.",
        }
        hooks = {
            event: [{"hooks": [{"type": "command", "command": line}]}]
            for event, line in self.lines(command, reporting, events).items()
        }
        said = {"takeback/hooks/hooks.json": {"hooks": hooks}, "takeback/plugin.json": about}
        return {name: json.dumps(text, indent=2) + "\n" for name, text in said.items()}

    def trial(self, kind: str, trial: "Trial") -> "Payload":
        """As recorded."""
        tool: dict[str, object] = {
            "tool_name": "shell",
            "tool_input": {"command": trial.command},
            "working_dir": trial.folder,
        }
        more: dict[str, dict[str, object]] = {
            kinds.PROMPT: {"matcher_context": trial.prompt, "message": trial.prompt},
            kinds.BEFORE_TOOL: {"matcher_context": "shell", **tool},
            kinds.AFTER_TOOL: {"matcher_context": "shell", **tool},
        }
        own: dict[str, object] = {"event": self.event_of(kind), "session_id": "trial"}
        return {**own, "matcher_context": None, **more.get(kind, {})}


AGENT = Goose()
