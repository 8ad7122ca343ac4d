"""What an agent is to Takeback: an `Agent`, the `HookEvent`s it sends, the `Answer`s it gets.

A payload comes from outside. Whatever it holds, reading it gives a `HookEvent`: a field that is
missing, or of another type than it should be, is empty.
"""

from takeback.model import tools, words
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from takeback.model.text.json_text import Json

    Payload = Mapping[str, object]
    Version = tuple[int, int, int]

# -- events ----------------------------------------------------------------------------------

SESSION_STARTS = "session starts"
PROMPT = "prompt"
GOES_ON = "goes on"
"""A prompt that no human wrote: a background task is done, and the agent is notified."""
BEFORE_TOOL = "before tool"
ASKS = "asks"
"""A dialog asks the user whether a tool may run. No event reports the answer."""
AFTER_TOOL = "after tool"
BATCH_OVER = "batch over"
"""All calls that the model made at once have returned, including those that were refused."""
STOPS = "stops"
FAILS = "fails"
INTERRUPTS = "interrupts"
"""The user interrupted the turn; most agents report nothing then."""
SUBAGENT_STOPS = "subagent stops"
SESSION_ENDS = "session ends"
OTHER = "other"
"""An event that is not recorded."""

_OF_TOOLS = (BEFORE_TOOL, ASKS, AFTER_TOOL)
_WRITTEN_AT = (PROMPT, BEFORE_TOOL, STOPS, FAILS)
"""A prompt is often written after it was reported: a later event of its turn finds it."""

_COMPACTED = "compact"
_ON_ITS_WAY = 50_000_000
"""Nanoseconds from the end of a tool to the start of the hook; the start of a shell takes more."""


class HookEvent:
    """One event of an agent.

    `delivery` is our own id of it, by which it counts once. `turn` is the agent's id of the prompt
    that all this is for, `call` that of the tool call. With `background`, what the tool started
    goes on; `task` is what the agent calls it. `took` is for how long the tool ran, in
    milliseconds, -1 if unknown; `received` is when the event came, in nanoseconds. `calls` are the
    ids of a batch, `refused` those that the user refused. With `cancelled`, the user interrupted
    the tool, and its turn. `folder` is where the agent was started, `cwd` where it is now. `stamp`
    is the agent's own time of the event, if it has no better id of it. `output` is what the tool
    said, as text; `exit_code` is None if unknown. `rewound` is the first prompt that is gone, if
    the user went back before this one. `sender` is the process of the hook, 0 if unknown.
    """

    __slots__ = (
        "agent",
        "background",
        "call",
        "calls",
        "cancelled",
        "cwd",
        "delivery",
        "exit_code",
        "failed",
        "folder",
        "given",
        "kind",
        "model",
        "name",
        "output",
        "permission_mode",
        "prompt",
        "received",
        "refused",
        "rewound",
        "sender",
        "session",
        "source",
        "stamp",
        "subagent",
        "task",
        "took",
        "tool",
        "transcript",
        "turn",
    )

    def __init__(self, agent: "Agent", name: str, kind: str = OTHER) -> None:
        self.agent = agent
        self.name = name
        self.kind = kind
        self.delivery = ""
        self.session = ""
        self.turn = ""
        self.call = ""
        self.calls: tuple[str, ...] = ()
        self.refused: tuple[str, ...] = ()
        self.cwd = ""
        self.folder = ""
        self.transcript = ""
        self.prompt = ""
        self.rewound = ""
        self.source = ""
        self.stamp = ""
        self.model = ""
        self.permission_mode = ""
        self.tool = ""
        self.given: Mapping[str, object] = {}
        self.output = ""
        self.exit_code: int | None = None
        self.failed = False
        self.background = False
        self.cancelled = False
        self.task = ""
        self.subagent = ""
        self.took = -1
        self.received = 0
        self.sender = 0

    @property
    def tool_kind(self) -> str:
        """What the tool may change."""
        return self.agent.tools.get(self.tool) or tools.kind_of(self.tool)

    def began(self) -> "int | None":
        """When the tool began; None if unknown.

        An edit tool that did not fail has just written what it names: that needs no clock.
        """
        if self.took < 0:
            return None
        if self.tool_kind == words.EDIT and not self.failed:
            return 0
        return self.received - self.took * 1_000_000 - _ON_ITS_WAY

    def interrupted_at(self) -> "float | None":
        """When the turn before a prompt was interrupted, in seconds; None if it was not."""
        files = self.agent.conversations
        if files is None or not self.transcript:
            return None
        return files.interrupted_at(self.transcript, self.turn)

    def agent_version(self) -> str:
        """The version that the conversation says the agent has; empty if unknown."""
        mark = self.agent.version_mark
        if not mark or not self.transcript:
            return ""
        from takeback.agents import transcripts

        return transcripts.text_behind(self.transcript, mark)

    def process(self) -> str:
        """The process of the agent, by place, number and start; empty if nobody can tell."""
        from takeback.disk import machine

        return machine.caller(self.sender) if self.sender else ""

    def can_be_refused(self) -> bool:
        """Whether the agent does not make the call that the event announces, if we say so."""
        return self.kind == BEFORE_TOOL and self.agent.can_deny(self)

    def was_at_work(self) -> bool:
        """Whether a tool is known to have run when the turn before a prompt was interrupted."""
        files = self.agent.conversations
        return files is not None and files.was_at_work(self.transcript, self.turn)

    def can_be_told(self) -> bool:
        """Whether the agent reads the answer now."""
        return self.kind in self.agent.told_at and not self.failed and not self.subagent

    def can_tell_user(self) -> bool:
        """Whether the agent shows its user what we say to an event that goes on."""
        return bool(self.agent.answer(self, Answer(to_user="…")))

    def has_worked(self) -> bool:
        """Whether something is done that may have changed files."""
        if self.kind == AFTER_TOOL:
            return self.tool_kind != words.READ
        return self.kind in (SUBAGENT_STOPS, STOPS, FAILS)

    def can_go_on(self) -> bool:
        """Whether the agent, which is about to stop, reads why it should not."""
        return self.kind == STOPS and self.agent.goes_on_when_told and not self.subagent

    def begins_work(self) -> bool:
        """Whether no earlier event of the prompt has an answer that the agent reads."""
        return self.kind in (PROMPT, SESSION_STARTS) or PROMPT not in self.agent.told_at

    def compacts(self) -> bool:
        """Whether the agent has just replaced its conversation by a summary."""
        return self.kind == SESSION_STARTS and self.source.startswith(_COMPACTED)

    def tells_of_prompts(self) -> bool:
        """Whether its prompt may be in the conversation by now; not every event of a turn does."""
        if self.rewound:
            return self.kind == PROMPT
        if self.kind not in _WRITTEN_AT or self.subagent or not (self.transcript and self.turn):
            return False
        return self.kind != BEFORE_TOOL or self.tool_kind != words.READ


def text(payload: "Payload", *names: str) -> str:
    """The first of some fields that is a text."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str):
            return value
    return ""


def fields(payload: "Payload", name: str) -> "Payload":
    """A field that holds fields."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def number_after(mark: str, output: str) -> "int | None":
    """The number that follows a mark in the first line of an output; None if none does."""
    line = output[:64].partition("\n")[0]
    number = line.removeprefix(mark)
    return int(number) if number != line and number.isascii() and number.isdigit() else None


# -- answers ---------------------------------------------------------------------------------

ALLOW, ASK, DENY, HOLD = "allow", "ask", "deny", "hold"
"""What an answer says about the event: no objection; the user decides; no; not before somebody
decided elsewhere."""


class Answer(Value):
    """A verdict on an event, its reason as a code, and words for the agent and for its user."""

    verdict: str = ALLOW
    reason: str = ""
    to_agent: str = ""
    to_user: str = ""


# -- conversations ---------------------------------------------------------------------------

ABOVE, PASSED, BEGINNING, ELSEWHERE = "above", "passed", "beginning", "elsewhere"
"""A prompt on the line that leads to the one asked about; one beside it; there is nothing above;
the file continues a part of another one, of which no more can be read."""


UNREADABLE, UNKNOWN_FORMAT, UNKNOWN_AGENT = "unreadable", "unknown-format", "unknown-agent"
NO_TRANSCRIPT, NO_ID, PROMPT_MISSING = "no-transcript", "no-id", "prompt-missing"
PART_MISSING, TOO_MANY_PARTS = "part-missing", "too-many-parts"
BEGINS_HERE, LATER_TURNS_STAY, UNWRITABLE = "begins-here", "later-turns-stay", "unwritable"
"""Why a conversation cannot be trimmed: its file, its prompt, the turns around it, the copy."""


class CannotTrimError(Exception):
    """A conversation cannot be trimmed: one of the reasons above, and a fact that belongs to it."""

    def __init__(self, reason: str, fact: str = "") -> None:
        super().__init__(reason, fact)
        self.reason = reason
        self.fact = fact


class TrimmedConversation(Value):
    """A conversation up to some prompt: where its copy belongs, and the lines of it.

    `own_id` is what the agent will call it, `folder` where the agent worked, and `command` what
    continues it there. `repaired` tells that lines were missing in the middle.
    """

    own_id: str
    path: str
    lines: "Iterator[bytes]"
    folder: str
    command: "tuple[str, ...]"
    repaired: bool = False


class Conversations:
    """How an agent keeps its conversations: one file each, which is only read.

    A conversation is a line of prompts. Going back inside the agent makes it a tree: the new
    prompt stands where an old one stood, and the old ones are still in the file, beside the line.
    """

    trims = True
    """Whether a copy that ends earlier goes on in the agent, and the original stays."""

    def interrupted_at(self, path: str, prompt: str) -> "float | None":
        """When the turn before a prompt was interrupted, in seconds; None if it was not."""
        raise NotImplementedError

    def interrupted_prompt(self, path: str) -> str:
        """What the agent calls the turn that was interrupted last; empty if unknown."""
        raise NotImplementedError

    def was_at_work(self, path: str, prompt: str) -> bool:
        """Whether the interruption is known to have come while a tool ran."""
        raise NotImplementedError

    def before(self, path: str, prompt: str) -> "Iterator[tuple[str, str]]":
        """What stands before a prompt, the nearest first: `ABOVE` and so on, with the agent's id.

        Nothing while the prompt is not written yet.
        """
        raise NotImplementedError

    def calls_beside(self, path: str, call: str) -> "tuple[str, ...] | None":
        """The other calls of the same answer, if the file says so; None until the call is there."""
        del path, call
        return ()

    def trim(self, path: str, prompt: str) -> TrimmedConversation:
        """The conversation up to a prompt, under a new id; `CannotTrimError` says why not."""
        raise NotImplementedError


# -- agents ----------------------------------------------------------------------------------

# Time limits are those of a bad day: a hook that is cut off leaves its turn uncovered. Before the
# first prompt, a project without a checkpoint is read whole.
_FIRST_LOOK, _LOOK, _START = 300, 60, 10


GROUPS, ENTRIES, BLOCK, FILES = "groups", "entries", "block", "files"
"""How settings hold our hooks: JSON with a list of groups for each event, as Claude Code has it;
JSON with a list of entries, which have no inner list; TOML, as tables at the end; files that are
ours as a whole."""


class Trial(Value):
    """What an agent does when its hooks are tried out: one prompt, one command."""

    folder: str
    home: str
    prompt: str
    command: str


_NONE: "Mapping[str, str]" = {}


class Agent:
    """One agent: how it is recognized, read, answered and installed. Each has a file of its own."""

    name: str
    """As the log and the command line call it."""
    title: str
    """As its vendor calls it."""

    kinds: "Mapping[str, str]" = _NONE
    """The events that we hook: the agent's name of each, and what kind it is."""
    tools: "Mapping[str, str]" = _NONE
    """What its own tools may change, where the usual names (`model/tools`) do not say it."""
    conversations: "Conversations | None" = None
    told_at: "tuple[str, ...]" = (PROMPT, GOES_ON, AFTER_TOOL)
    """The kinds of events whose answer reaches the model."""

    form = GROUPS
    """How its settings hold our hooks."""
    folder = ""
    """Where its settings are, in the user's home or in a project; empty: it cannot be installed."""
    hooks_of = ""
    """The agent whose hooks it runs, if it has no settings of its own."""
    project_folder: "str | None" = ""
    """Where they are in a project, if elsewhere; None: a project has none."""
    file = ""
    """The settings file. `FILES` have none: `files` names them."""
    local_file = ""
    """The settings of a project that are one user's own, if it has such; git does not share it."""
    program = ""
    """Its command."""
    program_folder = ""
    """Part of the path of its program, where that has another name than the command."""
    is_editor = False
    """Whether its program is also the editor in whose terminal the user works."""
    marks: "tuple[str, ...]" = ()
    """Environment variables that it gives the commands that it runs."""
    variable = ""
    """Environment variable that names another folder for the user's settings."""
    started_in = ""
    """Environment variable of its hooks: the folder that it was started in."""
    matcher = ""
    """Which tools it shall report; all without one."""
    command_key, event_key = "command", "event"
    """What an entry calls its command line; and its event, if it is a table of TOML."""
    preface: "Mapping[str, Json]" = {}  # noqa: RUF012 -- never changed
    """What its JSON needs beside hooks, as a version of the format."""
    executable = False
    """Whether its `files` are programs."""
    call_limit = _LOOK
    """Seconds that the hook before a call may take."""
    end_limit = 10
    """Seconds that the hook of the last event may take."""
    install_note = ""
    """What the user has to do after `install`."""

    proven = ""
    """The version that was proven with the real client; empty if none was."""
    seen: "tuple[str, ...]" = ()
    not_seen: "tuple[str, ...]" = ()
    """What of it is recorded and what is not, for docs/agents.md; a few words each."""

    version_mark = b""
    """What stands before its version, near the beginning of a conversation."""
    reports_background_ends = True
    """Whether it reports the end of commands that went on in the background."""
    ends_before_background = False
    """Whether it reports the end of a session while commands of it go on in the background."""
    subagents_stop_alike = False
    """Whether the stop of a sub-agent looks like that of its turn."""
    subagents_start_silently = False
    """Whether a sub-agent is a session of its own, known only by a start that was not reported."""
    hides_prompts = False
    """Whether no event reports a prompt: the first tool begins the turn (`newest_prompt`)."""
    hides_stops = False
    """Whether no event reports that a turn is over: the end of the session ends it."""
    rewinds_into_new_file = False
    """Whether its conversation goes on in another file after the user went back."""
    goes_on_when_told = False
    """Whether a denied stop lets its turn go on, with the reason for the model."""
    loses_reason = False
    """Whether the model never reads why a call was refused."""

    # -- hooks -----------------------------------------------------------------------------

    def claims(self, payload: "Payload") -> bool:
        """Whether a payload is from this agent."""
        raise NotImplementedError

    def read(self, payload: "Payload") -> HookEvent:
        """The event that a payload reports."""
        raise NotImplementedError

    def read_files(self, event: HookEvent, user_home: str) -> None:
        """Add what a payload does not say and the agent's own files do; they are only read."""
        del event, user_home

    def answer(self, event: HookEvent, answer: Answer) -> "dict[str, Json]":
        """An answer as the agent reads it from stdout."""
        raise NotImplementedError

    def can_deny(self, event: HookEvent) -> bool:
        """Whether a denial stops what the event announces."""
        del event
        return False

    @property
    def refuses_calls(self) -> bool:
        """Whether a call of a tool can be refused before it is made."""
        return self.can_deny(HookEvent(self, self.event_of(BEFORE_TOOL), BEFORE_TOOL))

    def can_ask(self, event: HookEvent) -> bool:
        """Whether the agent can let the user decide."""
        del event
        return False

    def understood(self, event: HookEvent, verdict: str) -> str:
        """The verdict that the agent understands here: a stricter one if it lacks that, or none."""
        if verdict in (ASK, HOLD):
            verdict = ASK if self.can_ask(event) else DENY
        return ALLOW if verdict == DENY and not self.can_deny(event) else verdict

    def newest_prompt(self, transcript: str) -> "tuple[str, str]":
        """Its id and words of the last prompt in a conversation; empty if they are not there."""
        del transcript
        return "", ""

    # -- settings --------------------------------------------------------------------------

    def groups(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, dict[str, Any]]":
        """What has to be in the settings, by event; by default for all events.

        `reporting` is the command line that also says if Takeback is gone: once for each prompt.
        """
        first = BEFORE_TOOL if self.hides_prompts else PROMPT
        limits = {first: _FIRST_LOOK, SESSION_STARTS: _START, SESSION_ENDS: self.end_limit}
        return {
            event: self._group(event, line, limits.get(self.kinds[event], _LOOK))
            for event, line in self.lines(command, reporting, events).items()
        }

    def _group(self, event: str, line: str, limit: int) -> "dict[str, Any]":
        """What one event has in the settings, as the form wants it."""
        wanted = (
            {"matcher": self.matcher} if self.matcher and self.kinds[event] in _OF_TOOLS else {}
        )
        if self.form == GROUPS:
            handler = {"type": "command", "command": line, "timeout": limit}
            return {**wanted, "hooks": [handler]}
        own = {self.event_key: event} if self.form == BLOCK else {}
        return {**own, **wanted, self.command_key: line, "timeout": limit}

    def block(self, command: str, reporting: str, events: "Iterable[str] | None" = None) -> str:
        """The tables of TOML that have to be in the settings: one of `hooks` for each event."""
        import json

        tables = [
            [
                "[[hooks]]",
                *(
                    f"{key} = {json.dumps(value, ensure_ascii=False)}"
                    for key, value in group.items()
                ),
            ]
            for group in self.groups(command, reporting, events).values()
        ]
        return "\n\n".join("\n".join(lines) for lines in tables)

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The files that are ours as a whole: path in the agent's folder, and text.

        Each holds a command line, or says that it is `written by takeback install.`
        """
        raise NotImplementedError

    def lines(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The command line of each event."""
        return {
            event: reporting if kind == PROMPT else command
            for event, kind in self.kinds.items()
            if events is None or event in events
        }

    def file_names(self) -> "tuple[str, ...]":
        """The files in its folder that hold our hooks, the most telling first."""
        return tuple(self.files("", "")) if self.form == FILES else (self.file,)

    def is_here(self, folder: bytes, search: "Iterable[str]") -> bool:
        """Whether it seems to be on this machine: its command, or anything of its own settings."""
        import os

        if any(os.access(os.path.join(place, self.program), os.X_OK) for place in search):
            return True
        ours = tuple(name.partition("/")[0] for name in self.file_names())
        try:
            names = os.listdir(os.fsdecode(folder))
        except OSError:
            return False
        return any(not name.startswith(ours) for name in names) or self._has_settings(folder)

    def _has_settings(self, folder: bytes) -> bool:
        """Whether settings are there in which nothing is ours: then we did not make them."""
        from takeback.disk import home

        texts = [home.read_small(folder + b"/" + name.encode()) for name in self.file_names()]
        return any(text and b"takeback" not in text.lower() for text in texts)

    def find_version(self, folder: bytes, search: "Iterable[str]") -> "Version | None":
        """The version that is installed here; `folder` has the user's settings."""
        del folder, search
        return None

    def known_events(self, version: "Version | None") -> "tuple[str, ...]":
        """The events that the settings of a version may name."""
        del version
        return tuple(self.kinds)

    def settings_problems(self, settings: str) -> "list[str]":
        """What in its settings keeps it from running hooks, a sentence each."""
        del settings
        return []

    def trust_problems(self, file: str, groups: "Mapping[str, Any]", folder: bytes) -> "list[str]":
        """Why it does not run hooks that are in a settings file, a sentence each."""
        del file, groups, folder
        return []

    def trial(self, kind: str, trial: Trial) -> "Payload | None":
        """The payload of an event of some kind in a trial; None if it has no such event."""
        raise NotImplementedError

    def event_of(self, kind: str) -> str:
        """The first event of some kind; empty if it has none."""
        return next((name for name, each in self.kinds.items() if each == kind), "")
