"""Gemini CLI: its own names of events, with the time of each and without ids of prompts and calls.

Proven with 0.61.0: a command that fails or is interrupted reports its end like any other, the
latter a second or two later; a turn that is interrupted reports none. Calls made at once overlap.
Going back reports nothing, and is in the conversation. A sub-agent works within its call. What
hooks added to a prompt at the start of a session stands before the user's own words.
"""

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import (
    ABOVE,
    AFTER_TOOL,
    BEGINNING,
    DENY,
    PASSED,
    PROMPT,
    UNKNOWN_FORMAT,
    Agent,
    CannotTrimError,
    Conversations,
    HookEvent,
    fields,
    text,
)
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from takeback.agents.agent import Answer, Payload, Trial, TrimmedConversation
    from takeback.agents.transcripts import Line
    from takeback.model.text.json_text import Json

KINDS = {
    "SessionStart": kinds.SESSION_STARTS,
    "BeforeAgent": kinds.PROMPT,
    "BeforeTool": kinds.BEFORE_TOOL,
    "AfterTool": kinds.AFTER_TOOL,
    "AfterAgent": kinds.STOPS,
    "SessionEnd": kinds.SESSION_ENDS,
}
_SHARED = ("SessionStart", "SessionEnd", "Notification")
"""Events that other agents name alike."""
_EVENTS = (*KINDS, "BeforeModel", "AfterModel", "BeforeToolSelection", "PreCompress")
_ADDED, _ADDED_END = "<hook_context>", "</hook_context>"
_READS = ("update_topic", "read_background_output", "list_background_processes", "enter_plan_mode",
          "activate_skill", "complete_task")  # fmt: skip
_TOOLS = {"invoke_agent": words.AGENT, **dict.fromkeys(_READS, words.READ)}
_ESCAPED = "Request cancelled."
_CANCELLED = "Command cancelled by user."
_TAKES_CONTEXT = ("BeforeAgent", "AfterTool")


class GeminiConversations(Conversations):
    """One file each, to which records are added: messages, and that some were taken back.

    Hooks know no ids of prompts. So a prompt is called by its number in the file and its words: the
    event of a prompt comes before its record, which gets the next number.
    """

    trims = False  # Gemini CLI 0.61.0 deletes the original when a copy of it goes on

    def next_prompt(self, path: str, prompt: str) -> str:
        """What a prompt is called whose record is still to come.

        Empty if the file is not there or too large: without a name, prompts are told apart by time.
        """
        import os

        try:
            size = os.stat(path).st_size
        except (OSError, ValueError):
            return ""
        if size > transcripts.MOST:
            return ""
        return _name(1 + sum(map(_is_prompt, transcripts.backwards(path))), prompt)

    def interrupted_at(self, path: str, prompt: str) -> "float | None":
        """When the newest turn was interrupted."""
        del prompt
        for raw in transcripts.backwards(path):
            line = transcripts.read(raw) or {}
            if line.get("type") == "info" and line.get("content") == _ESCAPED:
                return transcripts.seconds(line)
            if _is_prompt(raw):
                return None
        return None

    def interrupted_prompt(self, path: str) -> str:
        """No record of an interruption says which prompt it is about."""
        del path
        return ""

    def was_at_work(self, path: str, prompt: str) -> bool:
        """A tool that ran has reported its end, also after Esc."""
        del path, prompt
        return False

    def before(self, path: str, prompt: str) -> "Iterator[tuple[str, str]]":
        """Those that were taken back stand beside the line; a summary may stand for the oldest."""
        try:
            records = _Records(transcripts.forwards(path), prompt)
        except OSError:
            return
        for name in reversed(records.passed):
            yield PASSED, name
        for name in reversed(list(records.line.values())):
            if name:
                yield ABOVE, name
        if not records.summarized:
            yield BEGINNING, ""

    def trim(self, path: str, prompt: str) -> "TrimmedConversation":
        """Never; see `trims`."""
        del path, prompt
        raise CannotTrimError(UNKNOWN_FORMAT)


class _Records:
    """What the records of a file before one prompt say: who is on the line, and who was left."""

    def __init__(self, lines: "Iterable[bytes]", prompt: str) -> None:
        self.line: dict[str, str] = {}
        """The messages on the line by their ids, each with the name of its prompt if it is one."""
        self.passed: list[str] = []
        self._names: dict[str, str] = {}
        number = 0
        for raw in lines:
            record = transcripts.read(raw) or {}
            name = ""
            if _is_prompt(raw, record):
                number += 1
                name = _name(number, _typed(_words(record)))
            if name and name == prompt:
                return
            self._add(record, name)

    @property
    def summarized(self) -> bool:
        """Whether prompts are gone that nobody took back."""
        return bool(set(self._names.values()) - {*self.line.values(), *self.passed})

    def _add(self, record: "Line", name: str) -> None:
        gone_to, changed = record.get("$rewindTo"), transcripts.inner(record, "$set")
        if isinstance(gone_to, str):
            ids = list(self.line)
            left = ids[ids.index(gone_to) :] if gone_to in self.line else ids
            self.passed += [was for id in left if (was := self.line.pop(id))]
        elif isinstance(changed.get("messages"), list):
            # A process that continues a conversation writes an empty one first, and then all of it.
            ids = [
                transcripts.text(one, "id") for one in changed["messages"] if isinstance(one, dict)
            ]
            self.line = {id: self._names.get(id, "") for id in ids}
        elif transcripts.text(record, "id"):
            id = transcripts.text(record, "id")
            if name:
                self._names[id] = name
            self.line[id] = self._names.get(id, "")


def _name(number: int, prompt: str) -> str:
    from zlib import crc32

    return f"{number}-{crc32(prompt.encode('utf-8', 'surrogatepass')):08x}"


def _is_prompt(raw: bytes, record: "Line | None" = None) -> bool:
    """Whether a record is what somebody asked for, and not what a tool returned."""
    if b'"user"' not in raw:
        return False
    known = record or transcripts.read(raw) or {}
    if known.get("type") != "user" or not transcripts.text(known, "id"):
        return False
    content = known.get("content")
    parts = content if isinstance(content, list) else []
    return not any(isinstance(part, dict) and "functionResponse" in part for part in parts)


def _words(record: "Line") -> str:
    """What a record of the user says."""
    content = record.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str) and not _is_added(text))


def _is_added(said: str) -> bool:
    """Whether hooks said all of it."""
    return said.startswith(_ADDED) and said.endswith(_ADDED_END)


_CONVERSATIONS = GeminiConversations()


class GeminiCli(Agent):
    """Known by the names of its events and by the folder of its conversations."""

    name = "gemini-cli"
    title = "Gemini CLI"
    proven = "0.61.0"
    seen = ("prompts", "edits", "shell", "sub-agents", "Esc", "`/rewind`")
    not_seen = ("`/restore`", "which of two equal calls ended")
    kinds = KINDS
    tools = _TOOLS
    told_at = (PROMPT, AFTER_TOOL)
    conversations = _CONVERSATIONS
    folder = ".gemini"
    file = "settings.json"
    program = "gemini"
    marks = ("GEMINI_CLI",)
    # No `started_in`: it writes the folder into the command line itself, quoted within our quotes.
    reports_background_ends = False

    def claims(self, payload: "Payload") -> bool:
        """Names that only it uses; for the others, where the conversation is."""
        name = text(payload, "hook_event_name")
        if name in _SHARED:
            return "/.gemini/" in text(payload, "transcript_path")
        return name in _EVENTS and "timestamp" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event."""
        name = text(payload, "hook_event_name")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(payload, "session_id")
        event.stamp = text(payload, "timestamp")
        event.cwd = text(payload, "cwd")
        event.transcript = text(payload, "transcript_path")
        event.prompt = _typed(text(payload, "prompt"))
        event.source = text(payload, "source", "reason")
        event.tool = text(payload, "tool_name")
        event.given = fields(payload, "tool_input")
        if event.kind == PROMPT:
            event.turn = _CONVERSATIONS.next_prompt(event.transcript, event.prompt)
        response = fields(payload, "tool_response")
        event.output = text(response, "llmContent")
        event.failed = bool(response.get("error"))
        event.cancelled = response.get("returnDisplay") == _CANCELLED
        event.background = event.kind == AFTER_TOOL and event.given.get("is_background") is True
        return event

    def can_deny(self, event: HookEvent) -> bool:
        """Before something happens: a prompt, a tool."""
        return event.name in ("BeforeAgent", "BeforeTool")

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """Context for the model where the event takes some, a verdict, and a line for the user."""
        out: dict[str, Json] = {"systemMessage": answer.to_user} if answer.to_user else {}
        if self.understood(event, answer.verdict) == DENY:
            why = answer.to_agent or answer.to_user or answer.reason or "Takeback"
            # Of a prompt that is dropped, the user reads the reason.
            out = {} if event.kind == PROMPT and not answer.to_agent else out
            return {**out, "decision": "deny", "reason": why}
        if answer.to_agent and event.name in _TAKES_CONTEXT:
            own: dict[str, Json] = {"hookEventName": event.name}
            out["hookSpecificOutput"] = {**own, "additionalContext": answer.to_agent}
        return out

    # -- settings --------------------------------------------------------------------------

    def groups(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, dict[str, Any]]":
        """As all have them, with time limits in milliseconds."""
        made = super().groups(command, reporting, events)
        for group in made.values():
            group["hooks"][0]["timeout"] *= 1000
        return made

    def settings_problems(self, settings: str) -> "list[str]":
        """Hooks may be switched off."""
        import json

        try:
            known = json.loads(settings.removeprefix("\ufeff") or "{}")
        except (ValueError, RecursionError):
            return []
        config = known.get("hooksConfig") if isinstance(known, dict) else None
        if not isinstance(config, dict) or config.get("enabled") is not False:
            return []
        return ["`hooksConfig.enabled` is false in these settings, so Gemini CLI runs no hooks"]

    def trial(self, kind: str, trial: "Trial") -> "Payload":
        """As recorded."""
        tool = {"tool_name": "run_shell_command", "tool_input": {"command": trial.command}}
        more: dict[str, dict[str, object]] = {
            kinds.SESSION_STARTS: {"source": "startup"},
            kinds.PROMPT: {"prompt": trial.prompt},
            kinds.BEFORE_TOOL: {**tool},
            kinds.AFTER_TOOL: {**tool, "tool_response": {"llmContent": ""}},
            kinds.STOPS: {"prompt": trial.prompt, "stop_hook_active": False},
            kinds.SESSION_ENDS: {"reason": "exit"},
        }
        return {
            "session_id": "trial",
            "transcript_path": f"{trial.home}/.gemini/trial.jsonl",
            "cwd": trial.folder,
            "hook_event_name": self.event_of(kind),
            "timestamp": "2000-01-01T00:00:00.000Z",
            **more[kind],
        }


def _typed(prompt: str) -> str:
    """A prompt without what hooks put before it."""
    while prompt.startswith(_ADDED) and _ADDED_END in prompt:
        prompt = prompt.partition(_ADDED_END)[2].lstrip()
    return prompt


AGENT = GeminiCli()
