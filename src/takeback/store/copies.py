"""Forked copies of this process that read while this one writes.

A copy changes nothing on disk: it sends what it made through a pipe. Whatever goes wrong in it
(it is killed, there is no memory, nobody may fork), the caller does that share itself. So a crash
has the same few forms as with one process. Nothing is started: a copy never executes a program.
"""

import fcntl
import marshal
import os

from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    Row = tuple[int, int, int, int, int, int, bytes, bytes, bytes]
    Rows = list[Row | None]

_MOST_COPIES = 4
_PIPE = 1 << 20
_KILL = 9
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


def how_many() -> int:
    """How many copies can share the work; 0 where forking is not safe or does not pay.

    A fork takes only the calling thread along, and a lock that another one held stays locked in
    the copy for ever. On macOS the system's own libraries do not survive a fork.
    """
    try:
        if len(os.listdir(b"/proc/self/task")) != 1:
            return 0
        cores = len(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return 0
    return min(cores, _MOST_COPIES) if cores > 1 else 0


class Copy:
    """A forked copy of this process that does `work`, with `keep` as its only open file."""

    __slots__ = ("_pid", "_pipe")

    def __init__(self, work: "Callable[[], Iterable[Rows]]", keep: int) -> None:
        self._pipe, sink = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._pipe)
            os.close(sink)
            raise
        if self._pid == 0:
            _serve(work, sink, keep)
        os.close(sink)
        if _SET_PIPE_SIZE is not None:
            try:
                fcntl.fcntl(self._pipe, _SET_PIPE_SIZE, _PIPE)
            except OSError:
                # A smaller pipe only makes the copy wait more often.
                return

    def next(self) -> "Rows | None":
        """The next rows; None when the copy is gone."""
        head = self._read(4)
        body = self._read(int.from_bytes(head, "little")) if head else b""
        rows: Rows | None = marshal.loads(body) if body else None  # noqa: S302 -- our own copy's
        return rows

    def end(self) -> None:
        """End the copy, whatever it is doing."""
        os.close(self._pipe)
        try:
            os.kill(self._pid, _KILL)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            # The program that we are part of collects its children itself.
            return

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            part = os.read(self._pipe, min(length, _PIPE))
            if not part:
                return b""
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def _serve(work: "Callable[[], Iterable[Rows]]", sink: int, keep: int) -> "NoReturn":
    """Work, send and end; never return into the caller's code."""
    status = 1
    try:
        fsops.hook = None
        # Above all the project's lock: it must not outlive the process that took it.
        low, high = sorted((sink, keep))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        for rows in work():
            body = marshal.dumps(rows)
            fsops.write(sink, len(body).to_bytes(4, "little") + body)
        status = 0
    finally:
        os._exit(status)
