"""`takeback hook`: one event from stdin, one answer to stdout, and always exit 0.

A warm process hears the event if there is one (`line`); else this one does, and leaves one behind
for the next event (`resident`).
"""

import gc
import os
import sys

from takeback import environment
from takeback.hooks import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

_LARGEST = 64 << 20
"""Bytes of a payload that are held: a tool's whole output may be in it."""
_AT_ONCE = 1 << 20


def main(folder: str = "", *, ends: bool = False) -> int:
    """Handle one event of an agent that was started in a folder, and with `ends`, end.

    The exit code is 0, whatever happens.
    """
    try:
        _hear_one(os.fsencode(folder), ends=ends)
    except BaseException:  # noqa: BLE001 -- also an interrupt: the agent must not notice
        return 0
    return 0


def _hear_one(folder: bytes, *, ends: bool) -> None:
    home = environment.default_home()
    words = (home, environment.user_home(), folder, os.getcwdb(), environment.event_id())
    data = _read(0, home)
    wants_helper = environment.wants_helper()
    helped = line.ask(home, words, data) if wants_helper else None
    # The helper is forked from this process, so no file may be open.
    _say(helped if helped is not None else _alone(words, data, ends=ends and not wants_helper))
    if helped is None and wants_helper:
        _leave_helper(home)


def finish(folder: str = "") -> "NoReturn":
    """Handle one event as the whole program; taking the interpreter apart only costs time."""
    gc.disable()  # nothing here lives long enough to be worth a search for cycles
    os._exit(main(folder, ends=True))


def _alone(words: "tuple[bytes, ...]", data: bytes, *, ends: bool) -> bytes:
    from takeback.hooks import hearing

    if ends:
        _leave_databases()
    return hearing.hear(words, data, os.getpid())


def _leave_databases() -> None:
    """Let the end of this process close them."""
    try:
        from takeback.store import database
    except ImportError:
        return  # whoever hears the event tells what is wrong
    database.ends = True


def _say(answer: bytes) -> None:
    if answer:
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()


def _leave_helper(home: bytes) -> None:
    from takeback.hooks import hearing, resident

    if os.path.isdir(home):
        gc.enable()
        resident.leave_behind(home, hearing.HookListener(watches=True))


def _read(fd: int, home: bytes) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size <= _LARGEST:
        piece = os.read(fd, _AT_ONCE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return _shortened(fd, pieces, home)


def _shortened(fd: int, pieces: "list[bytes]", home: bytes) -> bytes:
    """What a payload says that is larger; if it cannot be made smaller, `doctor` tells of it."""
    from takeback.hooks import oversize

    def all_pieces() -> "Iterator[bytes]":
        for number, piece in enumerate(pieces):
            pieces[number] = b""
            yield piece
        while piece := os.read(fd, _AT_ONCE):
            yield piece

    found = oversize.shortened(all_pieces())
    if not found:
        import time

        from takeback.hooks import troubles

        what = "an event is too large to be read, and was not recorded"
        troubles.note(home, time.time_ns(), "unknown", "", "", what)
    return found
