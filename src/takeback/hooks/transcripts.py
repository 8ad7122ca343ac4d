"""What the files say in which agents keep their conversations; read leniently, never written.

Only the end of such a file is read: it grows by whole requests.
"""

import os

from takeback.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from takeback.hooks.calls import Call

_TAIL = 256 * 1024
_INTERRUPTED = "[Request interrupted by user"


def interrupted_at(call: "Call") -> "float | None":
    """When the turn before was interrupted, in seconds since 1970; None if it was not."""
    for line in _backwards(call.transcript):
        if _is_end_of_turn(line):
            return None
        if _is_interruption(line):
            return _time(line.get("timestamp"))
    return None


def _is_end_of_turn(line: "dict[str, Any]") -> bool:
    """The last thing that a turn says when nobody interrupts it."""
    payload = line.get("payload")
    if isinstance(payload, dict):
        return payload.get("type") == "task_complete"
    return line.get("subtype") == "stop_hook_summary"


def _is_interruption(line: "dict[str, Any]") -> bool:
    payload = line.get("payload")
    if isinstance(payload, dict):  # Codex
        return payload.get("type") == "turn_aborted"
    return line.get("type") == "user" and _INTERRUPTED in str(line.get("message"))[:2000]


def _time(said: object) -> "float | None":
    from datetime import datetime

    try:
        return datetime.fromisoformat(str(said)).timestamp()
    except (ValueError, OverflowError):
        return None


def _backwards(path: str) -> "Iterator[dict[str, Any]]":
    """The lines at the end of a file, the last one first; what is no JSON object is passed over."""
    for line in reversed(_tail(path).split(b"\n")):
        try:
            said = jsontext.loads(line.decode("utf-8", "replace").strip())
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(said, dict):
            yield said


def _tail(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return b""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, _TAIL, max(0, size - _TAIL))
    except OSError:
        return b""
    finally:
        os.close(fd)
