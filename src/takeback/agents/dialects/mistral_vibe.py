"""Mistral Vibe: three events with names and answers of its own.

Proven with 3.0.2: no event reports a prompt, so the first tool begins the turn, and the prompt is
in the journal of the session, which is a folder. A command that fails reports its end like any
other; a call that was denied reports none. It shows the user any answer that it does not know.
"""

import os

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import AFTER_TOOL, BLOCK, DENY, Agent, HookEvent, fields, text
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json

KINDS = {
    "pre_tool": kinds.BEFORE_TOOL,
    "post_tool": kinds.AFTER_TOOL,
    "post_agent": kinds.STOPS,
}
_READERS = ("read_file", "grep", "skill", "todo", "wait", "search_tool_functions")
_BEGINS = b'"method":"turn/start"'
_MOST_FILES = 4
_LONGEST = 1 << 40


class MistralVibe(Agent):
    """Known by the names of its events."""

    name = "mistral-vibe"
    title = "Mistral Vibe"
    kinds = KINDS
    tools = dict.fromkeys(_READERS, words.READ)
    told_at = (AFTER_TOOL,)
    form = BLOCK
    folder = ".vibe"
    file = "hooks.toml"
    program = "vibe"
    variable = "VIBE_HOME"
    event_key = "type"
    proven = "3.0.2"
    seen = ("edits", "shell", "prompts, by its conversation")
    not_seen = ("prompts that use no tool", "Esc", "going back inside it")
    hides_prompts = True

    def claims(self, payload: "Payload") -> bool:
        """No other agent names its events like this."""
        return text(payload, "hook_event_name") in KINDS and "session_id" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event; a sub-agent is a session of its own, which names the one it works for."""
        name = text(payload, "hook_event_name")
        event = HookEvent(self, name, KINDS.get(name, kinds.OTHER))
        event.session = text(payload, "session_id")
        event.cwd = text(payload, "cwd")
        event.transcript = text(payload, "transcript_path")
        event.tool = text(payload, "tool_name").rpartition(".")[2]
        event.given = fields(payload, "tool_input")
        event.call = text(payload, "tool_call_id")
        parent = text(payload, "parent_session_id")
        if parent:
            event.session, event.subagent = parent, event.session
            event.kind = kinds.OTHER if event.kind == kinds.STOPS else event.kind
        if event.kind == AFTER_TOOL:
            event.failed = text(payload, "tool_status") in ("failure", "cancelled")
            event.output = text(payload, "tool_error") or text(payload, "tool_output_text")
            code = fields(payload, "tool_output").get("returncode")
            event.exit_code = code if isinstance(code, int) and abs(code) < _LONGEST else None
        return event

    def newest_prompt(self, transcript: str) -> "tuple[str, str]":
        """The last turn that was begun, as the newest files of the journal have it."""
        folder = os.path.join(transcript, "journal")
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".jsonl"))
        except (OSError, ValueError):
            return "", ""
        for name in reversed(names[-_MOST_FILES:]):
            for raw in transcripts.backwards(os.path.join(folder, name)):
                line = transcripts.read(raw) if _BEGINS in raw else None
                found = _begun(line) if line is not None else ("", "")
                if found[0]:
                    return found
        return "", ""

    def can_deny(self, event: HookEvent) -> bool:
        """Before a tool."""
        return event.name == "pre_tool"

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """A verdict, a note behind a tool, and a line for the user."""
        out: dict[str, Json] = {"system_message": answer.to_user} if answer.to_user else {}
        if self.understood(event, answer.verdict) == DENY:
            why = answer.to_agent or answer.to_user or answer.reason or "Takeback"
            return {**out, "decision": "deny", "reason": why}
        if answer.to_agent and event.kind == AFTER_TOOL:
            out["hook_specific_output"] = {"additional_context": answer.to_agent}
        return out

    # -- settings --------------------------------------------------------------------------

    def groups(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, dict[str, Any]]":
        """As all have them; each hook has a name, which no other one may have."""
        made = super().groups(command, reporting, events)
        return {event: {"name": f"takeback-{event}", **group} for event, group in made.items()}

    def trial(self, kind: str, trial: "Trial") -> "Payload":
        """As recorded."""
        tool: dict[str, object] = {
            "tool_name": "file_system.bash",
            "tool_call_id": "trial",
            "tool_input": {"command": trial.command},
        }
        ended = {"tool_status": "success", "tool_output_text": "", "tool_error": None}
        return {
            "session_id": "trial",
            "transcript_path": f"{trial.home}/trial",
            "cwd": trial.folder,
            "parent_session_id": None,
            "hook_event_name": self.event_of(kind),
            **(tool if kind != kinds.STOPS else {}),
            **(ended if kind == AFTER_TOOL else {}),
        }


def _begun(line: "transcripts.Line") -> "tuple[str, str]":
    """The id and the words of a turn that a line of the journal begins."""
    payload = transcripts.inner(line, "payload")
    if text(payload, "method") != "turn/start":
        return "", ""
    parts = transcripts.inner(payload, "params").get("message")
    each = (
        (text(part, "text") for part in parts if isinstance(part, dict))
        if isinstance(parts, list)
        else ()
    )
    return text(payload, "client_command_id"), "\n".join(filter(None, each))


AGENT = MistralVibe()
