"""Codex: Claude Code's payloads, with differences.

Recorded from 0.166.0: a command that fails reports its end like any other; one that yields reports
no end at all, and neither does Esc, after which the command goes on; `Stop` comes while it runs.

A sub-agent never holds up the one that spawned it. Its events have the session of the conversation
that it is of, but a `turn_id`, a rollout and an `agent_id` of its own. Of its two ways to have them
(`multi_agent`, and `multi_agent_v2`, which is off), the older reports the prompt of a sub-agent and
its id with the end of the call; the newer neither, but a name, which stands in the rollout, too. A
sub-agent that another one stops, or that fails, does not report that.

Its conversation is a rollout, one line after the other; each turn has an id, and most lines have
it. Going back there begins a new file for the same conversation. It begins with `history_base`: the
id at the end of another file's name, and up to where that one counts. Older versions wrote
`thread_rolled_back` into the same file instead.
"""

import os
import time

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import (
    ABOVE,
    BEGINNING,
    BEGINS_HERE,
    ELSEWHERE,
    NO_ID,
    PART_MISSING,
    PASSED,
    PROMPT_MISSING,
    TOO_MANY_PARTS,
    UNKNOWN_FORMAT,
    UNREADABLE,
    CannotTrimError,
    Conversations,
    TrimmedConversation,
    number_after,
    text,
)
from takeback.agents.dialects import claude_format
from takeback.agents.dialects.claude_format import ClaudeFormat
from takeback.agents.transcripts import inner
from takeback.model import words
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.agents.agent import HookEvent, Payload, Trial
    from takeback.agents.transcripts import Line

    Base = tuple[str, int]

KINDS = {name: claude_format.KINDS[name] for name in (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop",
    "SubagentStop", "SessionEnd",
)}  # fmt: skip
_EVENTS = (*KINDS, "PreCompact", "PostCompact", "SubagentStart")
_ROLLOUT = "/rollout-"
_SPACES = ("multi_agent_v1", "collaboration")
"""What stands before the names of tools for sub-agents, of the older way and the newer."""
_TALKS = (
    "wait_agent", "list_agents", "close_agent", "resume_agent", "interrupt_agent", "send_input",
    "send_message", "followup_task",
)  # fmt: skip
"""They change no file, and one of them waits while the user may be at work."""
_SPAWNS = ("spawn_agent", *(f"{space}spawn_agent" for space in _SPACES))
_TOOLS = {
    **dict.fromkeys((f"{space}{name}" for space in _SPACES for name in _TALKS), words.READ),
    **dict.fromkeys(_SPAWNS, words.AGENT),
}
_STOPS = ("multi_agent_v1close_agent", "collaborationinterrupt_agent")
"""Tools that stop a sub-agent, which reports no end of its own then."""
_NAME = b'"agent_path":"'
_ROOT = "/root"
_ADDED = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_ASKED = "## My request for Codex:"
"""What its extension of editors and its app put before a prompt, and where that begins."""
_EXIT_CODE = "Exit code: "
_BEGINS = ("task_started", "turn_started", "turn_context")
_ENDS = ("task_complete", "turn_complete")
_ABORTED = "turn_aborted"
_TAKEN_BACK = "thread_rolled_back"
_META = "session_meta"
_KINDS = (*_BEGINS, *_ENDS, _ABORTED, _TAKEN_BACK, _META)
_TELLING = tuple(f'"{kind}"'.encode() for kind in _KINDS)
_OWN = ("id", "session_id", "thread_id")
"""Fields that name the conversation itself."""
_MOST_FILES = 100
"""How often one can go back in one conversation before nobody follows any more."""


class Codex(ClaudeFormat):
    """It runs no hook that the user did not trust, and knows each by the hash of its settings."""

    name = "codex"
    version_mark = b'"cli_version":"'
    title = "Codex"
    proven = "0.166.0"
    seen = ("prompts", "edits", "shell", "sub-agents", "permission dialogs", "Esc", "Esc Esc")
    not_seen = (
        "when a command began that asked first", "commands that run on after Esc",
        "when a sub-agent failed",
    )  # fmt: skip
    kinds = KINDS
    tools = _TOOLS
    folder = ".codex"
    file = "hooks.json"
    program = "codex"
    marks = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID")
    program_folder = "/codex/bin/"
    goes_on_when_told = True
    variable = "CODEX_HOME"
    # No matcher: its regular expressions cannot say "not", and hardly any tool of it only reads.
    end_limit = 3  # more is not granted
    install_note = (
        "Codex runs only hooks that you trust, and asks when it starts: choose `Trust all and"
        " continue`\n(later: `/hooks` in Codex). Until then it runs none of them, and `codex exec`"
        " does not warn.\nIt asks once: the command line stays the same when Takeback is"
        " upgraded"
    )
    reports_background_ends = False
    rewinds_into_new_file = True

    def __init__(self) -> None:
        self.conversations = CodexConversations()

    def claims(self, payload: "Payload") -> bool:
        """It sends a `turn_id`; an event without one still names the rollout."""
        if text(payload, "hook_event_name") not in _EVENTS or "prompt_id" in payload:
            return False
        return "turn_id" in payload or _ROLLOUT in text(payload, "transcript_path")

    def read(self, payload: "Payload") -> "HookEvent":
        """One event."""
        event = super().read(payload)
        event.turn = text(payload, "turn_id")
        if event.prompt.startswith(_ADDED):
            event.prompt = event.prompt.partition(_ASKED)[2].strip() or event.prompt
        event.output = text(payload, "tool_response")
        event.exit_code = number_after(_EXIT_CODE, event.output)
        if event.subagent:
            own = text(payload, "agent_transcript_path") or event.transcript
            event.subagent = transcripts.text_behind(own, _NAME) or event.subagent
        if event.name == "PostToolUse" and event.tool in _SPAWNS:
            said = transcripts.read(event.output.encode("utf-8", "replace")) or {}
            event.task = text(said, "agent_id", "task_name")
            event.background = bool(event.task)
        elif event.name == "PostToolUse" and event.tool in _STOPS:
            event.kind, event.subagent = kinds.SUBAGENT_STOPS, _stopped(event)
        return event

    def can_ask(self, event: "HookEvent") -> bool:
        """Its own dialog can stay; it takes `ask` for an error, and runs the tool then."""
        return event.name == "PermissionRequest"

    # -- settings --------------------------------------------------------------------------

    def trust_problems(self, file: str, groups: "Mapping[str, Any]", folder: bytes) -> "list[str]":
        """Its own settings say which hooks the user trusts."""
        import tomllib

        try:
            with open(os.path.join(folder, b"config.toml"), "rb") as config:
                known: Any = tomllib.load(config)
        except FileNotFoundError:
            known = {}
        except (OSError, ValueError, RecursionError):
            return [
                "Takeback cannot check whether Codex trusts them: its `config.toml` cannot be read"
            ]
        hooks = known.get("hooks")
        state = hooks.get("state") if isinstance(hooks, dict) else None
        names = (file, os.path.realpath(file))
        trusted = {
            str(one.get("trusted_hash"))
            for key, one in (state if isinstance(state, dict) else {}).items()
            # The file, the event, the number of the group and that of the hook in it.
            if isinstance(one, dict) and str(key).rsplit(":", 3)[0] in names
            if one.get("enabled") is not False
        }
        if all(_trusted_hash(event, group) in trusted for event, group in groups.items()):
            return []
        return [
            "Codex does not seem to trust them yet, so it does not run them: open `/hooks` in Codex"
        ]

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """As recorded."""
        own = {"turn_id": "trial", "model": "trial"}
        rollout = f"{trial.home}/rollout-trial.jsonl"
        return {**super().trial(kind, trial), **own, "transcript_path": rollout}


def _stopped(event: "HookEvent") -> str:
    """The sub-agent that a call stopped: its id, or its name below who called."""
    target = text(event.given, "target")
    is_name = event.tool == _STOPS[1] and not target.startswith("/")
    return f"{event.subagent or _ROOT}/{target}" if is_name else target


def _trusted_hash(event: str, group: "Any") -> str:  # noqa: ANN401 -- JSON
    """What Codex remembers of a hook that is trusted; recorded from 0.166.0."""
    import hashlib
    import json

    if not isinstance(group, dict):
        return ""
    hooks = [{"async": False, **hook} for hook in group["hooks"]]
    said = {**group, "event_name": _snake(event), "hooks": hooks}
    data = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def _snake(event: str) -> str:
    """`PreToolUse` as Codex writes it in its settings: `pre_tool_use`."""
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in event).lstrip("_")


# -- conversations -------------------------------------------------------------------------


class CodexConversations(Conversations):
    """The rollouts that Codex writes."""

    def interrupted_at(self, path: str, prompt: str) -> "float | None":
        """When the turn before a prompt was interrupted."""
        line = _interruption(path, prompt)
        return transcripts.seconds(line) if line is not None else None

    def interrupted_prompt(self, path: str) -> str:
        """The turn that was interrupted last; empty if nobody says."""
        line = _interruption(path, "")
        return _turn(line) if line is not None else ""

    def was_at_work(self, path: str, prompt: str) -> bool:
        """Whether a tool ran when that was: Codex writes the same after a no."""
        del path, prompt
        return False

    def before(self, path: str, prompt: str) -> "Iterator[tuple[str, str]]":
        """The turns before one; those that were taken back stand beside its line."""
        seen, gone, is_part = {prompt, ""}, 0, False
        for kind, line in _telling(path):
            turn = _turn(line)
            if kind == _TAKEN_BACK:
                count = inner(line, "payload").get("num_turns")
                gone += count if isinstance(count, int) else 0
            elif kind == _META:
                is_part = _base(line) is not None
                if not is_part:
                    yield BEGINNING, ""
            elif turn not in seen:
                seen.add(turn)
                yield (PASSED if gone > 0 else ABOVE), turn
                gone -= gone > 0
        if is_part:
            yield ELSEWHERE, ""

    def trim(self, path: str, prompt: str) -> TrimmedConversation:
        """The conversation up to a turn, under a new id, in the folder of today."""
        if not path.endswith(".jsonl"):
            raise CannotTrimError(UNKNOWN_FORMAT)
        try:
            files = _Files(path)
            last = files.before(prompt)
        except OSError as problem:
            raise CannotTrimError(UNREADABLE, problem.strerror or str(problem)) from None
        new = _uuid7()
        return TrimmedConversation(
            new,
            _place(path, new),
            files.copied(last, new),
            folder=files.folder,
            command=("codex", "resume", new),
        )


def _interruption(path: str, prompt: str) -> "Line | None":
    """The line of the interruption that ended the turn before a prompt."""
    for kind, line in _telling(path):
        if _turn(line) == prompt and prompt:
            continue
        if kind == _ABORTED:
            return line
        if kind in _BEGINS or kind in _ENDS:
            return None
    return None


def _telling(path: str) -> "Iterator[tuple[str, Line]]":
    """The lines that tell where turns begin and end, the last one first.

    The one that begins a file comes last; behind it what the file goes on from, if it does.
    """
    end: int | None = None
    for _ in range(_MOST_FILES):
        base: Base | None = None
        for raw in transcripts.backwards(path, end=end):
            line = transcripts.read(raw) if any(word in raw for word in _TELLING) else None
            kind = _kind(line) if line is not None else ""
            base = _base(line) if line is not None and kind == _META else None
            if line is not None and kind in _KINDS:
                yield kind, line
        if base is None:
            return
        path, end = _file_of(path, base[0]), base[1]


def _base(meta: "Line") -> "Base | None":
    """The id of the file that another goes on from, and up to where."""
    told = inner(inner(meta, "payload"), "history_base")
    end = told.get("end_byte_offset")
    return (text(told, "thread_id"), end) if isinstance(end, int) and end > 0 else None


def _file_of(path: str, id: str) -> str:
    """The file whose name ends in an id: beside another, or in the folder of the id's day."""
    folders = [os.path.dirname(path)]
    parts = path.split("/")
    if _is_dated(parts):
        above = "/".join(parts[:-4])
        days = {
            time.strftime("%Y/%m/%d", zone(_made(id))) for zone in (time.localtime, time.gmtime)
        }
        folders += [f"{above}/{day}" for day in sorted(days)]
    for folder in folders:
        try:
            names = os.listdir(folder)
        except (OSError, ValueError):
            continue
        for name in names:
            if id and name.endswith((f"-{id}.jsonl", f"_{id}.jsonl")):
                return os.path.join(folder, name)
    return ""


def _made(id: str) -> float:
    """When an id was made; it begins with the time."""
    try:
        return min(int(id.replace("-", "")[:12], 16) / 1000, 1 << 33)
    except ValueError:
        return 0


def _is_dated(parts: "list[str]") -> bool:
    return len(parts) > 4 and all(part.isdigit() for part in parts[-4:-1])


def _kind(line: "Line") -> str:
    outer = text(line, "type")
    return text(inner(line, "payload"), "type") if outer == "event_msg" else outer


def _turn(line: "Line") -> str:
    """The turn that a line belongs to."""
    payload = inner(line, "payload")
    told = inner(payload, "internal_chat_message_metadata_passthrough")
    return text(payload, "turn_id") or text(told, "turn_id")


# -- all of it, to trim it -----------------------------------------------------------------


class _Files:
    """The files that a conversation is in, the oldest first, each with up to where it counts."""

    def __init__(self, path: str) -> None:
        self.files: list[tuple[str, int | None]] = [(path, None)]
        self.names: dict[str, None] = {}
        """What the conversation is called in them."""
        self.folder = ""
        while len(self.files) < _MOST_FILES:
            base = self._look(self.files[0][0])
            if base is None:
                return
            before = _file_of(path, base[0])
            if not before:
                raise CannotTrimError(PART_MISSING)
            self.files.insert(0, (before, base[1]))
        raise CannotTrimError(TOO_MANY_PARTS)

    def _look(self, path: str) -> "Base | None":
        """What the first line of a file tells."""
        line = transcripts.read(next(transcripts.forwards(path), b""))
        if line is None or _kind(line) != _META:
            raise CannotTrimError(NO_ID)
        told = inner(line, "payload")
        self.names |= dict.fromkeys(filter(None, (text(told, name) for name in _OWN)))
        self.folder = self.folder or text(told, "cwd")
        return _base(line)

    def lines(self) -> "Iterator[tuple[bytes, Line]]":
        """All lines, through all files but for their own first ones; torn ones are passed over."""
        for number, (path, end) in enumerate(self.files):
            for raw in transcripts.forwards(path, end):
                line = transcripts.read(raw)
                if line is not None and not (number and _kind(line) == _META):
                    yield raw, line

    def before(self, prompt: str) -> int:
        """How many lines are before a turn."""
        has_turn = False
        for number, (_, line) in enumerate(self.lines()):
            turn = _turn(line)
            if turn and turn == prompt:
                if not has_turn:
                    raise CannotTrimError(BEGINS_HERE)
                return number
            has_turn = has_turn or bool(turn)
        raise CannotTrimError(PROMPT_MISSING)

    def copied(self, last: int, new: str) -> "Iterator[bytes]":
        """So many lines, as they stand but for the name of the conversation.

        What was in several files is numbered anew, as one.
        """
        for number, (raw, line) in enumerate(self.lines()):
            if number >= last:
                return
            copied = raw.strip()
            if len(self.files) > 1 and "ordinal" in line:
                copied = json_text.dumps({**line, "ordinal": number}).encode()
            for old in self.names:
                copied = transcripts.renamed(copied, _OWN, old, new)
            yield copied


def _place(path: str, own_id: str) -> str:
    """Where a rollout of today belongs: `sessions/YEAR/MONTH/DAY`, else beside the one it is of."""
    now = time.localtime()
    name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', now)}-{own_id}.jsonl"
    parts = path.split("/")
    if _is_dated(parts):
        return "/".join((*parts[:-4], time.strftime("%Y/%m/%d", now), name))
    return os.path.join(os.path.dirname(path), name)


def _uuid7() -> str:
    data = bytearray((time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(10))
    data[6] = data[6] & 0x0F | 0x70
    data[8] = data[8] & 0x3F | 0x80
    return transcripts.as_uuid(bytes(data))


AGENT = Codex()
