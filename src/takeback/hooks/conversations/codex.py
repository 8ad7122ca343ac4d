"""Codex: a rollout, one line after the other; each turn has an id, and most lines tell it.

Recorded from 0.166.0. Who goes back there gets a new file for the same conversation, which holds
the turns that stay. Older ones wrote `thread_rolled_back` into the same file instead.
"""

import os
import time

from takeback.hooks import transcripts
from takeback.hooks.conversations.claude_code import as_uuid
from takeback.hooks.conversations.trimmed import (
    ABOVE,
    BEGINNING,
    PASSED,
    CannotTrimError,
    Trimmed,
)
from takeback.hooks.transcripts import inner, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.hooks.transcripts import Line

_BEGINS = ("task_started", "turn_started", "turn_context")
_ENDS = ("task_complete", "turn_complete")
_ABORTED = "turn_aborted"
_TAKEN_BACK = "thread_rolled_back"
_META = "session_meta"
_TELLING = tuple(f'"{kind}"'.encode() for kind in (*_BEGINS, *_ENDS, _ABORTED, _TAKEN_BACK, _META))
_OWN = ("id", "session_id", "thread_id")
"""Fields that name the conversation itself."""


# -- the end of the file, for hooks --------------------------------------------------------


def interrupted_at(path: str, prompt: str) -> "float | None":
    """When the turn before a prompt was interrupted."""
    for kind, line in _telling(path):
        if _turn(line) == prompt and prompt:
            continue
        if kind == _ABORTED:
            return transcripts.seconds(line)
        if kind in _BEGINS or kind in _ENDS:
            return None
    return None


def before(path: str, prompt: str) -> "Iterator[tuple[str, str]]":
    """The turns before one; those that were taken back stand beside its line."""
    seen, gone = {prompt, ""}, 0
    for kind, line in _telling(path):
        turn = _turn(line)
        if kind == _TAKEN_BACK:
            count = inner(line, "payload").get("num_turns")
            gone += count if isinstance(count, int) else 0
        elif kind == _META:
            yield BEGINNING, ""
            return
        elif turn not in seen:
            seen.add(turn)
            yield (PASSED if gone > 0 else ABOVE), turn
            gone -= gone > 0


def _telling(path: str) -> "Iterator[tuple[str, Line]]":
    """The lines that tell where turns begin and end, the last one first."""
    for raw in transcripts.backwards(path):
        if not any(word in raw for word in _TELLING):
            continue
        line = transcripts.read(raw)
        if line is not None:
            kind = _kind(line)
            if kind in (*_BEGINS, *_ENDS, _ABORTED, _TAKEN_BACK, _META):
                yield kind, line


def _kind(line: "Line") -> str:
    outer = text(line, "type")
    return text(inner(line, "payload"), "type") if outer == "event_msg" else outer


def _turn(line: "Line") -> str:
    """The turn that a line belongs to."""
    payload = inner(line, "payload")
    told = inner(payload, "internal_chat_message_metadata_passthrough")
    return text(payload, "turn_id") or text(told, "turn_id")


# -- all of it, to trim it -----------------------------------------------------------------


def trim(path: str, prompt: str) -> Trimmed:
    """The conversation up to a turn, under a new id, in the folder of today."""
    if not path.endswith(".jsonl"):
        raise CannotTrimError("its file is in a format that nobody here knows")
    try:
        last, own, folder = _before(path, prompt)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise CannotTrimError(f"its file cannot be read: {why}") from None
    new = _uuid7()
    return Trimmed(
        new,
        _place(path, new),
        _copied(path, last, own, new),
        folder=folder,
        command=("codex", "resume", new),
    )


def _before(path: str, prompt: str) -> "tuple[int, str, str]":
    """The number of the first line of a turn; what the conversation is called, and its folder."""
    own = folder = ""
    has_turn = False
    for number, raw in enumerate(transcripts.forwards(path)):
        line = transcripts.read(raw)
        if line is None:
            continue
        if _kind(line) == _META and not own:
            meta = inner(line, "payload")
            own, folder = text(meta, "id"), text(meta, "cwd")
        turn = _turn(line)
        if turn and turn == prompt:
            if not own:
                raise CannotTrimError("its file does not tell which conversation it is")
            if not has_turn:
                raise CannotTrimError("the conversation begins with this turn")
            return number, own, folder
        has_turn = has_turn or bool(turn)
    raise CannotTrimError("its prompt is not in the file any more")


def _copied(path: str, last: int, old: str, new: str) -> "Iterator[bytes]":
    """The lines of a copy, as they stand but for the name of the conversation."""
    for number, raw in enumerate(transcripts.forwards(path)):
        if number >= last:
            return
        if transcripts.read(raw) is not None:
            yield transcripts.renamed(raw.strip(), _OWN, old, new)


def _place(path: str, own_id: str) -> str:
    """Where a rollout of today belongs: `sessions/YEAR/MONTH/DAY`, else beside the one it is of."""
    now = time.localtime()
    name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', now)}-{own_id}.jsonl"
    parts = path.split("/")
    if len(parts) > 4 and all(part.isdigit() for part in parts[-4:-1]):
        return "/".join((*parts[:-4], time.strftime("%Y/%m/%d", now), name))
    return os.path.join(os.path.dirname(path), name)


def _uuid7() -> str:
    data = bytearray((time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(10))
    data[6] = data[6] & 0x0F | 0x70
    data[8] = data[8] & 0x3F | 0x80
    return as_uuid(bytes(data))
