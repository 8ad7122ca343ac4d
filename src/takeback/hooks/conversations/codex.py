"""Codex: a rollout, one line after the other; each turn has an id, and most lines tell it.

Recorded from 0.166.0. Who goes back there gets a new file for the same conversation. It begins
with `history_base`: the id at the end of another file's name, and up to where that one counts.
Older ones wrote `thread_rolled_back` into the same file instead.
"""

import os
import time

from takeback.hooks import transcripts
from takeback.hooks.conversations.trimmed import (
    ABOVE,
    BEGINNING,
    ELSEWHERE,
    PASSED,
    CannotTrimError,
    Trimmed,
    as_uuid,
)
from takeback.hooks.transcripts import inner, text
from takeback.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.hooks.transcripts import Line

    Base = tuple[str, int]

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


# -- the end of the file, for hooks --------------------------------------------------------


def interrupted_at(path: str, prompt: str) -> "float | None":
    """When the turn before a prompt was interrupted."""
    line = _interruption(path, prompt)
    return transcripts.seconds(line) if line is not None else None


def interrupted_prompt(path: str) -> str:
    """The turn that was interrupted last; empty if nobody says."""
    line = _interruption(path, "")
    return _turn(line) if line is not None else ""


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


def was_at_work(path: str, prompt: str) -> bool:
    """Whether a tool ran when that was: Codex writes the same after a no."""
    del path, prompt
    return False


def before(path: str, prompt: str) -> "Iterator[tuple[str, str]]":
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
                raise CannotTrimError("it goes on from another file, which is not there any more")
            self.files.insert(0, (before, base[1]))
        raise CannotTrimError("it is in too many files")

    def _look(self, path: str) -> "Base | None":
        """What the first line of a file tells."""
        line = transcripts.read(next(transcripts.forwards(path), b""))
        if line is None or _kind(line) != _META:
            raise CannotTrimError("its file does not tell which conversation it is")
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
                    raise CannotTrimError("the conversation begins with this turn")
                return number
            has_turn = has_turn or bool(turn)
        raise CannotTrimError("its prompt is not in the file any more")

    def copied(self, last: int, new: str) -> "Iterator[bytes]":
        """So many lines, as they stand but for the name of the conversation.

        What was in several files is numbered anew, as one.
        """
        for number, (raw, line) in enumerate(self.lines()):
            if number >= last:
                return
            copied = raw.strip()
            if len(self.files) > 1 and "ordinal" in line:
                copied = jsontext.dumps({**line, "ordinal": number}).encode()
            for old in self.names:
                copied = transcripts.renamed(copied, _OWN, old, new)
            yield copied


def trim(path: str, prompt: str) -> Trimmed:
    """The conversation up to a turn, under a new id, in the folder of today."""
    if not path.endswith(".jsonl"):
        raise CannotTrimError("its file is in a format that nobody here knows")
    try:
        files = _Files(path)
        last = files.before(prompt)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise CannotTrimError(f"its file cannot be read: {why}") from None
    new = _uuid7()
    return Trimmed(
        new,
        _place(path, new),
        files.copied(last, new),
        folder=files.folder,
        command=("codex", "resume", new),
    )


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
    return as_uuid(bytes(data))
