"""Copies of the resident helper, each of which hears the events of one place.

A copy keeps the project of its place open. It hears one event at a time: if another one comes
meanwhile, that is for another copy. What goes wrong in one copy ends that copy, and nothing else;
whoever waits for its answer finds the line broken and hears the event himself.
"""

import os
import signal
import sys

from takeback.hooks import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable
    from typing import NoReturn, Protocol

    class Listener(Protocol):
        """Handles events, one after the other."""

        def hear(self, words: tuple[bytes, ...], data: bytes, sender: int = 0) -> bytes:
            """The answer to one of them, which a process sent."""

        def settle(self) -> None:
            """Do what the next one is faster with."""

        def close(self) -> None:
            """Close what stayed open for the next one."""


MOST = 8
"""Copies that wait for work; of more, the one that waited longest goes."""
_EVENTS = 1000
"""How many events a copy hears before another one takes its place: nobody lives for ever."""
_WORDS = 5
_LONGEST_WORDS = 1 << 16
_FD = 4
"""Bytes of a descriptor that is handed over."""
_GLANCE = 0.2
"""Seconds to wait for the first words of an event. All are said at once, so they are there."""


class Copies:
    """The copies of one helper."""

    def __init__(self, stamp: bytes, listener: "Listener") -> None:
        self._stamp = stamp
        self._listener = listener
        self._busy: dict[socket, bytes] = {}
        self._waiting: dict[socket, bytes] = {}

    @property
    def busy(self) -> "Iterable[socket]":
        """Lines to the copies that are at work: they say so when they are done."""
        return self._busy

    def give(self, connection: "socket") -> None:
        """Let a copy hear what a hook says."""
        try:
            if line.is_ours(connection):
                place = _place_of(connection)
                copy = self._copy_for(place)
                self._busy[copy] = place
                _hand_over(copy, connection)
        except OSError:
            pass  # the hook, or the copy, is gone: the one hears nothing, the other says so
        finally:
            connection.close()

    def is_done(self, copy: "socket") -> None:
        """Hear from a copy: it waits for work from now on, unless it ended."""
        place = self._busy.pop(copy)
        try:
            if copy.recv(1):
                self._waiting[copy] = place
                if len(self._waiting) > MOST:
                    self._dismiss(next(iter(self._waiting)))
                return
        except OSError:
            pass
        copy.close()

    def dismiss_all(self) -> None:
        """Let all copies end, those at work when they are done."""
        for copy in (*self._waiting, *self._busy):
            copy.close()

    def _dismiss(self, copy: "socket") -> None:
        del self._waiting[copy]
        copy.close()

    def _copy_for(self, place: bytes) -> "socket":
        """One that knows the place and has nothing to do, else a new one."""
        for copy, known in self._waiting.items():
            if known == place:
                del self._waiting[copy]
                return copy
        return self._new()

    def _new(self) -> "socket":
        import _socket

        ours, theirs = _socket.socketpair()
        if os.fork() == 0:
            _attend(theirs, self._stamp, self._listener)
        theirs.close()
        return ours


def _place_of(connection: "socket") -> bytes:
    """Where an event is from, as far as it says so at once: the agent's folder, or the current."""
    import _socket

    connection.settimeout(_GLANCE)
    said = connection.recv(_LONGEST_WORDS, _socket.MSG_PEEK)
    if not said.startswith(line.MAGIC):
        raise ConnectionError("this is no event of ours")
    words = said.split(b"\n", 2)[-1].split(b"\0", _WORDS)
    return b"\0".join((words[0], words[2] or words[3])) if len(words) > _WORDS else b""


def _hand_over(copy: "socket", connection: "socket") -> None:
    import _socket

    fd = connection.fileno().to_bytes(_FD, sys.byteorder)
    copy.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd)])


# -- in a copy -----------------------------------------------------------------------------------


def _attend(helper: "socket", stamp: bytes, listener: "Listener") -> "NoReturn":
    """Hear what is handed over until the helper is gone."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.closerange(3, helper.fileno())
        os.closerange(helper.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        for _ in range(_EVENTS):
            connection = _taken_over(helper)
            if connection is None:
                break
            answer = _heard(connection, stamp, listener)
            # Before the hook goes on: its next event finds this copy free.
            helper.sendall(b".")
            _reply(connection, answer)
            listener.settle()
        listener.close()
    finally:
        os._exit(0)


def _taken_over(helper: "socket") -> "socket | None":
    """The next line to a hook; None if there will be none."""
    import _socket

    said, handed, _, _ = helper.recvmsg(1, _socket.CMSG_LEN(_FD))
    if not said or not handed:
        return None
    fd = int.from_bytes(handed[0][2], sys.byteorder)
    os.set_inheritable(fd, False)
    return _socket.socket(fileno=fd)


def _heard(connection: "socket", stamp: bytes, listener: "Listener") -> "bytes | None":
    """The answer to what a hook says; None if it broke off, or says something else."""
    try:
        connection.settimeout(line.PATIENCE)
        asked = _asked(connection, stamp)
        # A client that gave up handles the event itself; its agent may be far ahead by now.
        if asked is None or not _waits(connection):
            return None
        return listener.hear(*asked, line.sender(connection))
    except (OSError, ValueError):
        return None


def _waits(connection: "socket") -> bool:
    """Whether the client still waits for an answer."""
    import _socket

    connection.settimeout(0)
    try:
        return connection.recv(1, _socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    finally:
        connection.settimeout(line.PATIENCE)


def _reply(connection: "socket", answer: "bytes | None") -> None:
    """Give an answer; whoever gets none hears his event himself."""
    try:
        if answer is not None:
            connection.sendall(b"%d\n" % len(answer) + answer)
    except OSError:
        pass  # the hook is gone
    finally:
        connection.close()


def _asked(connection: "socket", stamp: bytes) -> "tuple[tuple[bytes, ...], bytes] | None":
    """What a hook asks; None if it is of another program."""
    if line.read_line(connection) != line.MAGIC + stamp:
        return None
    lengths = line.read_line(connection).split()
    if len(lengths) != 2:
        return None
    said = line.read_exactly(connection, min(int(lengths[0]), _LONGEST_WORDS))
    payload = line.read_exactly(connection, int(lengths[1]))
    words = said.split(b"\0")[:-1] if said is not None else []
    return (tuple(words), payload) if payload is not None and len(words) == _WORDS else None
