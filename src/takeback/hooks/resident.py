"""The resident helper: one warm process for each user that hears events for hooks.

It is a convenience. Whoever finds none hears the event himself and leaves one behind for the next
event; it ends when nobody asked for a while, when the program it is of was changed, and when it
is killed, whenever that is. Each event is heard by a copy of it, so nothing of one event is left
for another, and what goes wrong in one stays there.
"""

import os
import signal

from takeback.hooks import line
from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import NoReturn

    Hear = Callable[[tuple[bytes, ...], bytes], bytes]

IDLE = 900.0
"""Seconds without an event after which it ends."""
_WAITING = 32
_WORDS = 4
_LONGEST_WORDS = 1 << 16


def leave_behind(home: bytes, hear: "Hear", *, idle: float = IDLE) -> bool:
    """Leave a helper behind that hears the next events, unless there is one; whether it began."""
    if len(home + line.NAME) > line.LONGEST_PATH:
        return False
    try:
        if os.fork() == 0:
            _become_helper(home, hear, idle)
        os.wait()
    except OSError:
        return False
    return True


def _become_helper(home: bytes, hear: "Hear", idle: float) -> "NoReturn":
    """In a copy: nobody's child, in a session of its own, with nothing of ours open.

    The hook that leaves it behind has closed its project, and has one thread.
    """
    try:
        os.setsid()
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number in range(3):
                os.dup2(nothing, number)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.chdir(b"/")
            serve(home, hear, idle=idle)
    finally:
        os._exit(0)


def serve(home: bytes, hear: "Hear", *, idle: float = IDLE) -> None:
    """Hear events until nobody asks any more."""
    import _socket

    right = _right_to_serve(home)
    if right is None:
        return
    stamp = line.stamp()
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _listen(listening, home + line.NAME)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies are not waited for
        listening.settimeout(idle)
        while line.stamp() == stamp:
            fd, _ = listening._accept()  # type: ignore[attr-defined]  # as `socket.accept` does
            _hear_in_copy(fd, listening, stamp, hear)
    except OSError:
        pass  # nobody asked for a while, or the folder is gone
    finally:
        fsops.discard(home + line.NAME)
        listening.close()
        os.close(right)


def _right_to_serve(home: bytes) -> "int | None":
    """Held by the one helper that there is; it goes with the process."""
    fd = fsops.open_or_create(home + line.NAME + b".lock")
    if fsops.lock(fd):
        return fd
    os.close(fd)
    return None


def _listen(listening: "socket", path: bytes) -> None:
    fsops.discard(path)  # of one that was killed
    before = os.umask(0o177)
    try:
        listening.bind(path)
    finally:
        os.umask(before)
    listening.listen(_WAITING)


def _hear_in_copy(fd: int, listening: "socket", stamp: bytes, hear: "Hear") -> None:
    import _socket

    connection = _socket.socket(fileno=fd)
    try:
        if line.is_ours(connection) and os.fork() == 0:
            _answer_and_end(connection, listening, stamp, hear)
    finally:
        connection.close()


def _answer_and_end(
    connection: "socket", listening: "socket", stamp: bytes, hear: "Hear"
) -> "NoReturn":
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        connection.settimeout(line.PATIENCE)
        _answer(connection, stamp, hear)
    finally:
        os._exit(0)


def _answer(connection: "socket", stamp: bytes, hear: "Hear") -> None:
    """Hear what is asked; whoever is another program, or says something else, gets no answer."""
    if line.read_line(connection) != line.MAGIC + stamp:
        return
    lengths = line.read_line(connection).split()
    if len(lengths) != 2:
        return
    said = line.read_exactly(connection, min(int(lengths[0]), _LONGEST_WORDS))
    payload = line.read_exactly(connection, int(lengths[1]))
    words = said.split(b"\0")[:-1] if said is not None else []
    if payload is None or len(words) != _WORDS:
        return
    answer = hear(tuple(words), payload)
    connection.sendall(b"%d\n" % len(answer) + answer)
