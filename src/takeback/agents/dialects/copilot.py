"""Copilot CLI: its own hooks, and those in Claude Code's settings of a project, which it loads.

Proven with 1.0.102: an event is spelled as its settings spell it, `preToolUse` with its own
fields, `PreToolUse` with Claude Code's; some events have its own fields in either case, and those
of its own spelling are not named at all. No event has the id of a prompt or a call. A sub-agent is
a session of its own, which names the one it works for. No hook reports what the user types while
it works.

Its conversation is a file of events, `session-state/ID/events.jsonl`. The time of a prompt's hook
stands there to the millisecond, so it serves as the id of the prompt. Going back there cuts the
file off behind the hook of the prompt that one went back to, and says so.
"""

import os

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import (
    ABOVE,
    ASK,
    BEGINNING,
    BEGINS_HERE,
    DENY,
    FILES,
    NO_ID,
    PASSED,
    PROMPT_MISSING,
    UNKNOWN_FORMAT,
    UNREADABLE,
    Agent,
    CannotTrimError,
    Conversations,
    HookEvent,
    TrimmedConversation,
    fields,
    text,
)
from takeback.agents.dialects.claude_format import KINDS
from takeback.agents.transcripts import inner
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.agents.transcripts import Line
    from takeback.model.text.json_text import Json

_HOOKED = {
    "sessionStart": kinds.SESSION_STARTS,
    "userPromptSubmitted": kinds.PROMPT,
    "preToolUse": kinds.BEFORE_TOOL,
    "notification": kinds.ASKS,
    "postToolUse": kinds.AFTER_TOOL,
    "postToolUseFailure": kinds.AFTER_TOOL,
    "agentStop": kinds.STOPS,
    "subagentStop": kinds.SUBAGENT_STOPS,
    "sessionEnd": kinds.SESSION_ENDS,
}
_TOOLS = {"Write": "create", "Edit": "edit", "Bash": "bash", "Agent": "task", "Read": "view"}
"""Its own names of tools that it spells as Claude Code does, so that both mean the same call."""
_READERS = (
    "view", "grep", "glob", "sql", "session_store_sql", "skill", "read_bash", "list_bash",
    "read_agent", "list_agents", "fetch_copilot_cli_documentation",
)  # fmt: skip
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
_TURNED = (kinds.PROMPT, kinds.STOPS, kinds.SESSION_STARTS, kinds.SESSION_ENDS)
_BY_ITSELF = "<system_notification>"
_SHELL, _SUBAGENT, _EXIT = "shellId: ", "started in background with agent_id: ", "exit code "
_COMMAND = "Run command: "
_LIMITS = {kinds.PROMPT: 300, kinds.SESSION_STARTS: 10, kinds.SESSION_ENDS: 10}
_LIMIT = 60


class Copilot(Agent):
    """It counts an event that two of its settings report, once in each spelling, as one."""

    name = "copilot"
    title = "Copilot CLI"
    proven = "1.0.102"
    seen = ("prompts", "edits", "shell", "sub-agents", "background", "dialogs", "Esc", "`/rewind`")
    not_seen = ("what you type while it works", "which of two equal calls ended")
    kinds = _HOOKED
    tools = dict.fromkeys(_READERS, words.READ)
    form = FILES
    folder = ".copilot"
    project_folder = ".github"
    program = "copilot"
    marks = ("COPILOT_AGENT_SESSION_ID",)
    variable = "COPILOT_HOME"
    started_in = "COPILOT_PROJECT_DIR"
    matcher = f"^(?!(?:{'|'.join(_READERS)})$).*"  # it matches whole names
    version_mark = b'"copilotVersion":"'
    ends_before_background = True

    def __init__(self) -> None:
        self.conversations = CopilotConversations()

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
        event = HookEvent(self, name, KINDS.get(name, kinds.OTHER))
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
        _read_prompt(event)
        _read_end(event)
        _read_dialog(event, payload)
        return event

    def read_files(self, event: HookEvent, user_home: str) -> None:
        """Where the conversation is, if `COPILOT_HOME` is not set; when a dialog was answered."""
        if not event.transcript and event.session.isprintable() and "/" not in event.session:
            folder = f"{user_home}/{self.folder}/session-state"
            event.transcript = f"{folder}/{event.session}/events.jsonl"
        if event.kind == kinds.AFTER_TOOL and event.tool_kind == words.SHELL:
            event.took = _took(event)

    def can_deny(self, event: HookEvent) -> bool:
        """Before a tool, and a prompt."""
        return event.kind in (kinds.BEFORE_TOOL, kinds.PROMPT)

    def can_ask(self, event: HookEvent) -> bool:
        """In its own dialog."""
        return event.kind == kinds.BEFORE_TOOL

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """It reads a verdict where the settings' spelling has it, and a note outside of it.

        It shows the user the reason of a prompt that is blocked, and nothing else that a hook says.
        """
        verdict = self.understood(event, answer.verdict)
        why = answer.to_agent or answer.to_user or answer.reason or "Takeback"
        if verdict == DENY and event.name == "UserPromptSubmit":
            return {"decision": "block", "reason": answer.to_user or why}
        if verdict in (ASK, DENY):
            own: dict[str, Json] = {
                "permissionDecision": verdict,
                "permissionDecisionReason": why,
            }
            return {**own, "hookSpecificOutput": {"hookEventName": event.name, **own}}
        told = [answer.to_agent]
        if answer.to_user and event.can_be_told():
            told.append(f"Tell your user, before anything else: {answer.to_user}")
        said = "\n".join(filter(None, told))
        return {"additionalContext": said} if said else {}

    # -- settings --------------------------------------------------------------------------

    def files(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """One file beside those of others; it reads all that are there."""
        import json

        hooks = {
            event: [
                {
                    "type": "command",
                    "bash": line,
                    "timeoutSec": _LIMITS.get(self.kinds[event], _LIMIT),
                    **({"matcher": self.matcher} if "ToolUse" in event else {}),
                }
            ]
            for event, line in self.lines(command, reporting, events).items()
        }
        return {"hooks/takeback.json": json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"}

    def trial(self, kind: str, trial: "Trial") -> "Payload | None":
        """As recorded."""
        tool: dict[str, object] = {"toolName": "bash", "toolArgs": {"command": trial.command}}
        more: dict[str, dict[str, object]] = {
            kinds.SESSION_STARTS: {"source": "new"},
            kinds.PROMPT: {"prompt": trial.prompt},
            kinds.BEFORE_TOOL: tool,
            kinds.AFTER_TOOL: {**tool, "toolResult": {"resultType": "success"}},
            kinds.STOPS: {"stopReason": "end_turn"},
            kinds.SESSION_ENDS: {"reason": "complete"},
        }
        if kind not in more:
            return None
        moment = 946684800000 + list(more).index(kind)
        return {"sessionId": "trial", "timestamp": moment, "cwd": trial.folder, **more[kind]}


# -- events --------------------------------------------------------------------------------


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
    if event.kind in _TURNED:
        event.kind = kinds.OTHER


def _read_prompt(event: HookEvent) -> None:
    """The time of a prompt is its id; it may also report that something is done."""
    if event.kind != kinds.PROMPT:
        return
    event.turn = event.stamp
    if event.prompt.startswith(_BY_ITSELF):
        event.kind = kinds.GOES_ON
        event.task = _shell_in(event.prompt)


def _read_end(event: HookEvent) -> None:
    """The exit code of a command, or under which name it goes on; so do sub-agents."""
    if event.kind != kinds.AFTER_TOOL or event.failed:
        return
    if event.tool_kind == words.SHELL:
        last = event.output.rstrip().rpartition("\n")[2]
        code = last.rpartition(_EXIT)[2].removesuffix(">")
        if _EXIT in last and code.isascii() and code.isdigit():
            event.exit_code = int(code)
        else:
            event.task = _shell_in(last)
            event.background = bool(event.task)
    elif _SUBAGENT in event.output:
        event.task = event.output.partition(_SUBAGENT)[2].partition(" ")[0].rstrip(".")
        event.background = True


def _shell_in(said: str) -> str:
    """The name of a command that goes on, or is done; empty if none is named."""
    number = said.partition(_SHELL)[2]
    number = number[: len(number) - len(number.lstrip("0123456789"))]
    return f"shell-{number}" if number else ""


def _read_dialog(event: HookEvent, payload: "Payload") -> None:
    """A dialog that asks whether a command may run; edits have a path of their own."""
    is_asked = text(payload, "notification_type") == "permission_prompt"
    asked = text(payload, "message")
    if event.name == "Notification" and is_asked and asked.startswith(_COMMAND):
        event.kind, event.tool = kinds.ASKS, "bash"
        event.given = {"command": asked.removeprefix(_COMMAND)}


def _moment(time: object) -> str:
    """A time in milliseconds, from either spelling; empty if it is none."""
    if isinstance(time, int | float) and 0 < time < 1 << 53:
        return str(int(time))
    seconds = transcripts.seconds({"timestamp": time}) if isinstance(time, str) else None
    return str(round(seconds * 1000)) if seconds else ""


# -- conversations -------------------------------------------------------------------------

_ASKED, _STOPPED, _SAID, _ABORTED, _REWOUND, _BEGUN = (
    "userPromptSubmitted", "agentStop", "user.message", "abort", "rewind", "session.start",
)  # fmt: skip
_TELLING = tuple(
    f'"{kind}"'.encode() for kind in (_ASKED, _STOPPED, _SAID, _ABORTED, _REWOUND, _BEGUN)
)
_FILE = "/events.jsonl"


class CopilotConversations(Conversations):
    """The files of events that Copilot CLI writes."""

    def interrupted_at(self, path: str, prompt: str) -> "float | None":
        """When the turn before a prompt was interrupted."""
        line = _interruption(path, prompt)
        return transcripts.seconds(line) if line is not None else None

    def interrupted_prompt(self, path: str) -> str:
        """The turn that was interrupted last; empty if nobody says."""
        if _interruption(path, "") is None:
            return ""
        asked = (_id_of(line) for kind, line in _telling(path) if kind == _ASKED)
        return next(asked, "")

    def was_at_work(self, path: str, prompt: str) -> bool:
        """Whether the newest dialog before that was answered with yes."""
        if _interruption(path, prompt) is None:
            return False
        for line in _lines(path, (b'"permission.',)):
            kind, told = text(line, "type"), inner(inner(line, "data"), "result")
            if kind in ("permission.requested", "permission.completed"):
                return text(told, "kind").startswith("approved")
        return False

    def before(self, path: str, prompt: str) -> "Iterator[tuple[str, str]]":
        """The prompts before the newest one. Of those that were left, the first is still there."""
        is_rewound = has_message = False
        for kind, line in _telling(path):
            if kind == _SAID:
                has_message = True
            elif kind == _REWOUND:
                is_rewound = True
            elif kind == _BEGUN:
                yield BEGINNING, ""
            elif kind == _ASKED:
                if _id_of(line) != prompt and (has_message or is_rewound):
                    yield (ABOVE if has_message else PASSED), _id_of(line)
                has_message = False

    def trim(self, path: str, prompt: str) -> TrimmedConversation:
        """The conversation up to a prompt, under a new id, in a folder beside the other one."""
        if not path.endswith(_FILE):
            raise CannotTrimError(UNKNOWN_FORMAT)
        try:
            last, begun = _before(path, prompt)
        except OSError as problem:
            raise CannotTrimError(UNREADABLE, problem.strerror or str(problem)) from None
        old = text(begun, "sessionId")
        new = transcripts.uuid4()
        above = os.path.dirname(os.path.dirname(path))
        return TrimmedConversation(
            new,
            f"{above}/{new}{_FILE}",
            _copied(path, last, old, new),
            folder=text(inner(begun, "context"), "cwd"),
            command=("copilot", f"--resume={new}"),
        )


def _lines(path: str, marks: "tuple[bytes, ...]") -> "Iterator[Line]":
    """The lines with one of some marks, the last one first."""
    for raw in transcripts.backwards(path):
        line = transcripts.read(raw) if any(mark in raw for mark in marks) else None
        if line is not None:
            yield line


def _telling(path: str) -> "Iterator[tuple[str, Line]]":
    """The lines that tell where turns begin and end, the last one first."""
    for line in _lines(path, _TELLING):
        kind = _kind(line)
        if kind:
            yield kind, line


def _kind(line: "Line") -> str:
    """What a line tells; empty if nothing. Sub-agents have prompts and stops of their own."""
    kind, data = text(line, "type"), inner(line, "data")
    if kind == "hook.start":
        is_own = "parentAgentId" not in inner(data, "input")
        kind = text(data, "hookType") if is_own else ""
        return kind if kind in (_ASKED, _STOPPED) else ""
    if kind == "session.info":
        return _REWOUND if text(data, "infoType") == _REWOUND else ""
    return kind if kind in (_SAID, _ABORTED, _BEGUN) else ""


def _id_of(line: "Line") -> str:
    """When something was, as its hook has it."""
    told = inner(inner(line, "data"), "input").get("timestamp")
    return _moment(told if isinstance(told, int) else text(line, "timestamp"))


def _interruption(path: str, prompt: str) -> "Line | None":
    """The line of the interruption that ended the turn before a prompt."""
    for kind, line in _telling(path):
        if kind == _ABORTED:
            return line
        if not (kind == _ASKED and prompt and _id_of(line) == prompt):
            return None
    return None


def _took(event: HookEvent) -> int:
    """For how long a command ran after its dialog was answered; -1 if there was no dialog."""
    answered: dict[str, str] = {}
    wanted = event.given.get("command")
    for line in _lines(event.transcript, (b'"permission.', b'"tool.execution_start"')):
        kind, data = text(line, "type"), inner(line, "data")
        if kind == "permission.completed":
            answered[text(data, "toolCallId")] = _id_of(line)
        elif kind == "permission.requested":
            asked = inner(data, "permissionRequest")
            moment = answered.get(text(asked, "toolCallId"), "")
            if asked.get("fullCommandText") == wanted and moment and event.stamp:
                return max(0, int(event.stamp) - int(moment))
        elif inner(data, "arguments").get("command") == wanted:
            break
    return -1


def _before(path: str, prompt: str) -> "tuple[int, Line]":
    """How many lines are before a prompt, and how the conversation began."""
    begun: Line | None = None
    has_message = False
    for number, raw in enumerate(transcripts.forwards(path)):
        line = transcripts.read(raw) if any(mark in raw for mark in _TELLING) else None
        kind = _kind(line) if line is not None else ""
        if line is None or not kind:
            continue
        if kind == _BEGUN and begun is None:
            begun = inner(line, "data")
        if kind == _ASKED and _id_of(line) == prompt:
            if begun is None:
                raise CannotTrimError(NO_ID)
            if not has_message:
                raise CannotTrimError(BEGINS_HERE)
            return number, begun
        has_message = has_message or kind == _SAID
    raise CannotTrimError(PROMPT_MISSING)


def _copied(path: str, last: int, old: str, new: str) -> "Iterator[bytes]":
    """So many lines, as they stand but for the name of the conversation."""
    for number, raw in enumerate(transcripts.forwards(path)):
        if number >= last:
            return
        if transcripts.read(raw) is not None:
            yield transcripts.renamed(raw.strip(), ("sessionId",), old, new)


AGENT = Copilot()
