r"""Copies of the resident helper, each of which hears the events of one place.

A copy keeps the project of its place open. It hears one event at a time: if another one comes
meanwhile, that is for another copy. What goes wrong in one copy ends that copy, and nothing else;
whoever waits for its answer finds the line broken and hears the event himself.

The line to the resident helper: ask a warm process to hear an event, if one is there.

    request   MAGIC stamp \n  length of words, length of payload \n  words  payload
    words     home, user's home, the agent's folder, the current folder, the id of the event,
              each ended by a NUL
    reply     length \n  answer

Nothing is lost if nobody answers: this process handles the event then. If the helper handles it,
too, even much later, it counts once: both know it by the same id. Imported before everything
else, so it imports almost nothing itself.

The resident helper: one warm process for each user that hears events for hooks.

    hook ──► helper ──► copy of it for this place: keeps the project open, hears one event at a time

It is a convenience. Whoever finds none hears the event himself and leaves one behind for the next
event; it ends when nobody asked for a while, when the program it is of was changed, and when it
is killed, whenever that is. Its copies (`copies`) end with it.

The project of an event: opened for it, or still open from the event before.

To open one, and to look at its tree for the first time, is most of what an event costs.
"""

import os
import signal
import sys

from takeback.disk import operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable
    from typing import NoReturn, Protocol

    from takeback.project import Project

    class Listener(Protocol):
        """Handles events, one after the other."""

        def hear(self, words: tuple[bytes, ...], data: bytes, sender: int = 0) -> bytes:
            """The answer to one of them, which a process sent."""

        def settle(self) -> None:
            """Do what the next one is faster with."""

        def close(self) -> None:
            """Close what stayed open for the next one."""


MAGIC = b"takeback-hook-3 "
NAME = b"/helper.sock"
"""Not `hooks.sock`: helpers of programs before store format 6 listen there."""
LONGEST_PATH = 100
"""Bytes: what the address of a socket holds on every system."""
PATIENCE = 10.0
"""Seconds to wait for an answer before hearing the event oneself."""
_AT_ONCE = 1 << 16
_MOST = 1 << 26


def program_stamp() -> bytes:
    """What both ends must have in common: the very same program, unchanged, and the same files.

    In another container a path may be another file, also if both share a home.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = []
    for name in ("", "/version.py", "/hooks", "/agents", "/capture", "/ledger", "/undo"):
        found = os.stat(here + name)
        parts.append(f"{found.st_ino}.{found.st_mtime_ns}")
    root = os.stat("/")
    parts += [str(_mount_namespace()), f"{root.st_dev}.{root.st_ino}"]
    return os.fsencode(here) + b"@" + ",".join(parts).encode()


def _mount_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return 0  # a system without them


def ask(home: bytes, words: "tuple[bytes, ...]", payload: bytes) -> "bytes | None":
    """The answer of the helper; None if there is none, or it is another program's."""
    path = home + NAME
    if len(path) > LONGEST_PATH or len(payload) > _MOST or not os.path.exists(path):
        return None
    import _socket

    try:
        with_helper = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            with_helper.settimeout(PATIENCE)
            with_helper.connect(path)
            if not is_ours(with_helper):
                return None
            said = b"".join(word + b"\0" for word in words)
            head = b"%s%s\n%d %d\n" % (MAGIC, program_stamp(), len(said), len(payload))
            with_helper.sendall(head + said + payload)
            return _reply(with_helper)
        finally:
            with_helper.close()
    except (OSError, ValueError):
        return None


def _reply(connection: "socket") -> "bytes | None":
    """What was answered; None if the other end broke off."""
    found = read_line(connection)
    return read_exactly(connection, int(found)) if found else None


def is_ours(connection: "socket") -> bool:
    """Whether the other end is a process of the same user, where the system can tell."""
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return True
    found = connection.getsockopt(_socket.SOL_SOCKET, option, 12)
    return int.from_bytes(found[4:8], "little") == os.geteuid()


def sender(connection: "socket") -> int:
    """The process at the other end; 0 where the system does not tell."""
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    return int.from_bytes(connection.getsockopt(_socket.SOL_SOCKET, option, 12)[:4], "little")


def read_line(connection: "socket") -> bytes:
    """Some bytes up to the end of a line; empty if the other end broke off."""
    found = bytearray()
    while not found.endswith(b"\n"):
        piece = connection.recv(1)
        if not piece or len(found) > _AT_ONCE:
            return b""
        found += piece
    return bytes(found[:-1])


def read_exactly(connection: "socket", size: int) -> "bytes | None":
    """So many bytes; None if the other end broke off."""
    if not 0 <= size <= _MOST:
        return None
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(min(size - len(found), _AT_ONCE))
        if not piece:
            return None
        found += piece
    return bytes(found)


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
            if is_ours(connection):
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
    if not said.startswith(MAGIC):
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
            _answer_hook(connection, answer)
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
        connection.settimeout(PATIENCE)
        asked = _asked(connection, stamp)
        # A client that gave up handles the event itself; its agent may be far ahead by now.
        if asked is None or not _waits(connection):
            return None
        return listener.hear(*asked, sender(connection))
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
        connection.settimeout(PATIENCE)


def _answer_hook(connection: "socket", answer: "bytes | None") -> None:
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
    if read_line(connection) != MAGIC + stamp:
        return None
    lengths = read_line(connection).split()
    if len(lengths) != 2:
        return None
    said = read_exactly(connection, min(int(lengths[0]), _LONGEST_WORDS))
    payload = read_exactly(connection, int(lengths[1]))
    words = said.split(b"\0")[:-1] if said is not None else []
    return (tuple(words), payload) if payload is not None and len(words) == _WORDS else None


IDLE = 900.0
"""Seconds without an event after which it ends."""
_WAITING = 32


def leave_behind(home: bytes, listener: "Listener", *, idle: float = IDLE) -> bool:
    """Leave a helper behind that hears the next events, unless there is one; whether it began."""
    if len(home + NAME) > LONGEST_PATH:
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
    stamp = program_stamp()
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    copies = Copies(stamp, listener)
    try:
        _listen(listening, home + NAME)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies are not waited for
        while program_stamp() == stamp and _is_asked(listening, copies, idle):
            fd, _ = listening._accept()  # type: ignore[attr-defined]  # as `socket.accept` does
            copies.give(_socket.socket(fileno=fd))
    except OSError:
        pass  # the folder is gone
    finally:
        operations.discard(home + NAME)
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
    fd = operations.open_or_create(home + NAME + b".lock")
    if operations.lock(fd):
        return fd
    os.close(fd)
    return None


def _listen(listening: "socket", path: bytes) -> None:
    operations.discard(path)  # of one that was killed
    before = os.umask(0o177)
    try:
        listening.bind(path)
    finally:
        os.umask(before)
    listening.listen(_WAITING)


class ProjectCache:
    """The project of the last event, as long as opening it again would give the same."""

    __slots__ = ("_freshness", "_key", "_project", "_watches")

    def __init__(self, *, watches: bool = False) -> None:
        self._watches = watches
        self._key: tuple[bytes, ...] = ()
        self._project: Project | None = None
        self._freshness: tuple[object, ...] = ()

    def project(self, where: bytes, home: bytes, user_home: bytes) -> "tuple[Project, bool]":
        """The project that a folder is in, and whether it was opened just now."""
        key = (where, home, user_home)
        known = self._project
        if (
            known is not None
            and self._key == key
            and known.workspace.rules.freshness() == self._freshness
        ):
            known.workspace.recover_early()  # as whoever opens it does
            return known, False
        self.close()

        from takeback.project import Project

        # Nobody can be asked here whose history it is, and the turn shall be covered.
        found = Project.open(where, home=home, user_home=user_home, begin=True)
        self._project = found
        self._key, self._freshness = key, found.workspace.rules.freshness()
        if self._watches:
            found.workspace.watch_tree()
        return found, True

    def rest(self) -> None:
        """Let go of packs until the next event: what is removed from the store shall be gone."""
        if self._project is not None:
            self._project.workspace.objects.close()

    def settle(self) -> None:
        """Do what the next event is faster with, once nobody waits for this one."""
        if self._project is not None:
            self._project.workspace.settle_watch()

    def close(self) -> None:
        """Close what is open."""
        known, self._project = self._project, None
        if known is not None:
            known.close()
