"""The resident helper: one warm process for each user that hears events for hooks.

    hook ──► helper ──► copy of it for this place: keeps the project open, hears one event at a time

It is a convenience. Whoever finds none hears the event himself and leaves one behind for the next
event; it ends when nobody asked for a while, when the program it is of was changed, and when it
is killed, whenever that is. Its copies (`copies`) end with it.
"""

import os
import signal

from takeback.hooks import line
from takeback.hooks.copies import Copies
from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import NoReturn

    from takeback.hooks.copies import Listener

IDLE = 900.0
"""Seconds without an event after which it ends."""
_WAITING = 32


def leave_behind(home: bytes, listener: "Listener", *, idle: float = IDLE) -> bool:
    """Leave a helper behind that hears the next events, unless there is one; whether it began."""
    if len(home + line.NAME) > line.LONGEST_PATH:
        return False
    try:
        if os.fork() == 0:
            _become_helper(home, listener, idle)
        os.wait()
    except OSError:
        return False
    return True


def _become_helper(home: bytes, listener: "Listener", idle: float) -> "NoReturn":
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
            serve(home, listener, idle=idle)
    finally:
        os._exit(0)


def serve(home: bytes, listener: "Listener", *, idle: float = IDLE) -> None:
    """Hear events until nobody asks any more."""
    import _socket

    right = _right_to_serve(home)
    if right is None:
        return
    stamp = line.stamp()
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    copies = Copies(stamp, listener)
    try:
        _listen(listening, home + line.NAME)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies are not waited for
        while line.stamp() == stamp and _is_asked(listening, copies, idle):
            fd, _ = listening._accept()  # type: ignore[attr-defined]  # as `socket.accept` does
            copies.give(_socket.socket(fileno=fd))
    except OSError:
        pass  # the folder is gone
    finally:
        fsops.discard(home + line.NAME)
        listening.close()
        copies.dismiss_all()
        os.close(right)


def _is_asked(listening: "socket", copies: Copies, idle: float) -> bool:
    """Wait for the next event; False if there is none for so many seconds."""
    import select

    while True:
        ready = select.select([listening, *copies.busy], [], [], idle)[0]
        for copy in ready:
            if copy is not listening:
                copies.is_done(copy)
        if listening in ready or not ready:
            return bool(ready)


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
