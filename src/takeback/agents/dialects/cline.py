"""Cline: programs in a folder, one for each event.

Proven with 3.0.65: all calls have ids and say how long they took. The event at each prompt has no
text and does not wait for its hook, so it may come after the first tool: the first tool begins the
turn, and the prompt is in the messages of the session by then. Esc ends the session.
"""

import os

from takeback.agents import agent as kinds
from takeback.agents.agent import (
    AFTER_TOOL,
    BEFORE_TOOL,
    DENY,
    FILES,
    Agent,
    HookEvent,
    fields,
    text,
)
from takeback.agents.transcripts import MOST
from takeback.model import words
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json

_HOOKED = {
    "TaskStart": kinds.SESSION_STARTS,
    "PreToolUse": kinds.BEFORE_TOOL,
    "PostToolUse": kinds.AFTER_TOOL,
    "TaskComplete": kinds.STOPS,
    "TaskError": kinds.FAILS,
    "SessionShutdown": kinds.SESSION_ENDS,
}
_NAMES = {
    "agent_start": "TaskStart",
    "tool_call": "PreToolUse",
    "tool_result": "PostToolUse",
    "agent_end": "TaskComplete",
    "agent_error": "TaskError",
    "session_shutdown": "SessionShutdown",
}
"""What it calls the events in its payloads, and the programs that it runs for them."""
_EXITED = "exited with code "
_TYPED = "<user_input"
_MESSAGES, _SESSION = ".messages.json", ".json"


class Cline(Agent):
    """Known by three fields that all its events have."""

    name = "cline"
    title = "Cline"
    kinds = _HOOKED
    told_at = (BEFORE_TOOL, AFTER_TOOL)
    form = FILES
    folder = ".cline"
    program = "cline"
    marks = ("CLINE_ACTIVE",)
    executable = True
    hides_prompts = True
    loses_reason = True
    proven = "3.0.65"
    seen = ("prompts", "edits", "shell", "sub-agents", "Esc")
    not_seen = ("a prompt without tools", "going back inside it")

    def claims(self, payload: "Payload") -> bool:
        """Whether all three are there."""
        return all(name in payload for name in ("hookName", "taskId", "workspaceRoots"))

    def read(self, payload: "Payload") -> HookEvent:
        """One event; its sub-agents name who asked them."""
        name = _NAMES.get(text(payload, "hookName"), "")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(fields(payload, "sessionContext"), "rootSessionId")
        event.session = event.session or text(payload, "taskId")
        event.stamp = text(payload, "timestamp")
        roots = payload.get("workspaceRoots")
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            event.cwd = roots[0]
        call = fields(payload, "tool_call") or fields(payload, "tool_result")
        event.call = text(call, "id")
        event.tool = text(call, "name")
        event.given = fields(call, "input")
        if event.kind == kinds.AFTER_TOOL:
            _read_end(event, call)
        if text(payload, "parent_agent_id"):
            event.subagent = text(payload, "agent_id")
            if event.kind not in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL):
                event.kind = kinds.OTHER
        return event

    def read_files(self, event: HookEvent, user_home: str) -> None:
        """Where the messages of the session are."""
        if event.session.isprintable() and "/" not in event.session:
            folder = f"{user_home}/{self.folder}/data/sessions/{event.session}"
            event.transcript = f"{folder}/{event.session}{_MESSAGES}"

    def newest_prompt(self, transcript: str) -> "tuple[str, str]":
        """The last message that somebody typed.

        The first one is in the session before it is in the messages, where it gets an id.
        """
        first = _words_of(text(_read(transcript.replace(_MESSAGES, _SESSION)), "prompt"))
        typed = list(_typed(_read(transcript).get("messages")))
        if not typed or (len(typed) == 1 and typed[0][1] == first):
            return ("first" if first else "", first)
        return typed[-1]

    def can_deny(self, event: HookEvent) -> bool:
        """Before a tool; that ends all of its work, and the model does not hear why."""
        return event.kind == BEFORE_TOOL

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """It adds text to what the model reads, around tools only."""
        if self.understood(event, answer.verdict) == DENY:
            why = answer.to_user or answer.to_agent or answer.reason or "Takeback"
            return {"cancel": True, "errorMessage": why}
        if answer.to_agent and event.can_be_told():
            return {"cancel": False, "contextModification": answer.to_agent}
        return {}

    # -- settings --------------------------------------------------------------------------

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """A program for each event. It runs all of a name, whatever the name ends with."""
        said = "#!/bin/sh\n# Written by Takeback.\n"
        lines = self.lines(command, reporting, events)
        return {f"hooks/{event}.bash": f"{said}{line}\n" for event, line in lines.items()}

    def trial(self, kind: str, trial: "Trial") -> "Payload | None":
        """As recorded."""
        event = self.event_of(kind)
        if not event:
            return None
        call: dict[str, object] = {"id": "t", "name": "run_commands"}
        call["input"] = {"commands": [trial.command]}
        more: dict[str, dict[str, object]] = {
            kinds.BEFORE_TOOL: {"tool_call": call},
            kinds.AFTER_TOOL: {"tool_result": {**call, "output": []}},
        }
        return {
            "taskId": "trial",
            "hookName": next(own for own, name in _NAMES.items() if name == event),
            "timestamp": f"2000-01-01T00:00:0{list(self.kinds).index(event)}.000Z",
            "workspaceRoots": [trial.folder],
            "parent_agent_id": None,
            **more.get(kind, {}),
        }


def _read_end(event: HookEvent, call: "Payload") -> None:
    """How long a call took, and what its commands said."""
    took = call.get("durationMs")
    event.took = took if isinstance(took, int) and took >= 0 else -1
    output = call.get("output")
    ends = [
        one for one in (output if isinstance(output, list) else [output]) if isinstance(one, dict)
    ]
    event.output = "\n".join(
        filter(None, (text(one, "result") or text(one, "error") for one in ends))
    )
    event.failed = event.tool_kind == words.EDIT and any(
        one.get("success") is False for one in ends
    )
    if event.tool_kind == words.SHELL and ends:
        codes = [text(one, "error").rpartition(_EXITED)[2] for one in ends]
        wrong = [int(code) for code in codes if code.isascii() and code.isdigit()]
        event.exit_code = wrong[0] if wrong else 0


def _typed(messages: object) -> "Iterator[tuple[str, str]]":
    """What somebody typed: its id and words."""
    for message in messages if isinstance(messages, list) else []:
        parts = message.get("content") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            said = text(part, "text") if isinstance(part, dict) else ""
            if said.startswith(_TYPED):
                yield text(message, "id"), _words_of(said)


def _words_of(typed: str) -> str:
    """What somebody typed, without what stands around it."""
    if not typed.startswith(_TYPED):
        return typed
    return typed.partition(">")[2].rpartition("</user_input>")[0]


def _read(path: str) -> "dict[str, object]":
    """The messages of a session; nothing if they cannot be read."""
    try:
        if os.path.getsize(path) > MOST:
            return {}
        with open(path, "rb") as file:
            said = json_text.loads(file.read().decode("utf-8", "replace").strip())
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


AGENT = Cline()
