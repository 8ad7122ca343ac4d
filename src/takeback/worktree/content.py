"""Read one file whole: never a mixture of two of its states, or flagged when nobody can tell.

A file whose stamps are old has been left alone, and equal stamps before and after the read
prove it. A recent file may have a writer in the middle of its work, and a long `write` changes
the stamps only when it starts. There the kernel is asked for a read lease, which it grants only
while nobody has the file open for writing, and which holds new writers off for the
milliseconds of the read. Where there are no leases, a recent file must have settled.
"""

import errno
import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.disk.machine import FsClock

hook: "Callable[[str, bytes], None] | None" = None
"""Called as (step, name) after a file was opened and after it was read. Set by tests only."""

LARGE = 8 * 1024 * 1024
"""Files above this are streamed and never held in memory whole."""

_CHUNK = 1024 * 1024
_LEASE_UP_TO = 64 * 1024 * 1024
_TRIES = 4
_PAUSE = 0.02
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SET_LEASE = getattr(fcntl, "F_SETLEASE", None)
_SET_SIGNAL = getattr(fcntl, "F_SETSIG", None)
_SIGURG = 23
"""Its number on every Linux we support; the module `signal` costs 7 ms to import."""

_GRANTED, _WRITER, _NO_LEASES = 0, 1, 2


class Torn(Exception):
    """The file changed while it was read."""


class NotRegular(OSError):
    """What had been a regular file is something else by now."""


class Patience:
    """How long one scan may wait, in all, for files that do not hold still."""

    def __init__(self, seconds: float = 0.15) -> None:
        self.left = seconds

    def wait(self) -> bool:
        if self.left <= 0:
            return False
        time.sleep(_PAUSE)
        self.left -= _PAUSE
        return True


class Content:
    """An open file that is about to be read, and afterwards what its stamps were."""

    __slots__ = ("_clock", "_fd", "_lease", "_name", "held_open", "stat", "unstable")

    def __init__(self, dir_fd: int, name: bytes, clock: "FsClock") -> None:
        self._fd = os.open(name, _FLAGS, dir_fd=dir_fd)
        self._name = name
        self._clock = clock
        self._lease = _NO_LEASES
        self.unstable = False
        self.held_open = False
        """Whether somebody can go on writing without the stamps moving (a mapping does that)."""
        if hook is not None:
            hook("opened", name)
        try:
            self.stat = os.fstat(self._fd)
            if not stat.S_ISREG(self.stat.st_mode):
                raise NotRegular(f"{name!r} is no longer a regular file")
        except OSError:
            os.close(self._fd)
            raise

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def whole(self, patience: Patience) -> bytes:
        """All bytes of a file that fits in memory; `unstable` says if it never held still."""
        data = b""
        for turn in range(_TRIES):
            self._begin(again=turn > 0)
            data = self._read_all()
            if self._held_still(len(data)):
                return data
            if turn == _TRIES - 1 or not patience.wait():
                break
            os.lseek(self._fd, 0, os.SEEK_SET)
        self.unstable = True
        return data

    def chunks(self, size: int, *, last_try: bool) -> "Iterator[bytes | memoryview]":
        """The first `size` bytes piece by piece; `Torn` at the end if the file changed meanwhile.

        On the last try a file that changed, but kept at least its size, is flagged instead.
        """
        self._begin(again=True)
        done = 0
        os.lseek(self._fd, 0, os.SEEK_SET)
        for piece in self._pieces(size):
            done += len(piece)
            yield piece
        if done != size or not self._held_still(done):
            if done != size or not last_try:
                raise Torn
            self.unstable = True

    def _begin(self, *, again: bool) -> None:
        if again:
            self.stat = os.fstat(self._fd)
        now = self.stat
        recent = self._clock.is_recent(now.st_mtime_ns, now.st_ctime_ns)
        if recent and now.st_size <= _LEASE_UP_TO:
            self._lease = _ask_for_lease(self._fd)
            self.stat = os.fstat(self._fd)
        else:
            self._lease = _NO_LEASES
            if self._clock.is_unsettled(now.st_mtime_ns, now.st_ctime_ns):
                self.held_open = is_held_open(self._fd)

    def _read_all(self) -> bytes:
        size = self.stat.st_size
        data = os.read(self._fd, size + 1)
        if len(data) != size and data:
            parts = [data]
            while len(data) and sum(map(len, parts)) <= LARGE + size:
                data = os.read(self._fd, _CHUNK)
                parts.append(data)
            data = b"".join(parts)
        if hook is not None:
            hook("read", self._name)
        return data

    def _held_still(self, length: int) -> bool:
        before, lease = self.stat, self._lease
        self.held_open = self.held_open or lease == _WRITER
        after = os.fstat(self._fd)
        if lease == _GRANTED:
            _end_lease(self._fd)
        self._lease = _NO_LEASES
        if length != after.st_size or _stamps(before) != _stamps(after):
            return False
        if lease == _GRANTED:
            return True
        mtime, ctime = after.st_mtime_ns, after.st_ctime_ns
        if not self._clock.is_recent(mtime, ctime):
            return True
        return lease == _NO_LEASES and self._clock.is_settled(mtime, ctime)

    def _pieces(self, size: int) -> "Iterator[bytes | memoryview]":
        sparse = self.stat.st_blocks * 512 < size
        zeros = memoryview(bytes(_CHUNK)) if sparse else memoryview(b"")
        at = 0
        while at < size:
            if sparse:
                data_at = min(_next_data(self._fd, at, size), size)
                while at < data_at:
                    piece = zeros[: data_at - at]
                    at += len(piece)
                    yield piece
                if at == size:
                    return
                os.lseek(self._fd, at, os.SEEK_SET)
            data = os.read(self._fd, min(_CHUNK, size - at))
            if not data:
                return
            at += len(data)
            yield data


def _next_data(fd: int, at: int, size: int) -> int:
    if not hasattr(os, "SEEK_DATA"):
        return at
    try:
        return os.lseek(fd, at, os.SEEK_DATA)
    except OSError as problem:
        # Only ENXIO says that the rest is a hole; whatever else it is, reading will show.
        return size if problem.errno == errno.ENXIO else at


def _ask_for_lease(fd: int) -> int:
    if _SET_LEASE is None or _SET_SIGNAL is None:
        return _NO_LEASES
    try:
        # A writer who comes by makes the kernel send us a signal. Its default, SIGIO, would
        # end the process; this one is ignored unless somebody asked for it.
        fcntl.fcntl(fd, _SET_SIGNAL, _SIGURG)
        fcntl.fcntl(fd, _SET_LEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return _WRITER
    except OSError:
        return _NO_LEASES
    return _GRANTED


def is_held_open(fd: int) -> bool:
    """Whether some process has a file open for writing, as far as the system tells."""
    answer = _ask_for_lease(fd)
    if answer == _GRANTED:
        _end_lease(fd)
    return answer == _WRITER


def _end_lease(fd: int) -> None:
    if _SET_LEASE is not None:
        fcntl.fcntl(fd, _SET_LEASE, fcntl.F_UNLCK)


def _stamps(s: os.stat_result) -> "tuple[int, ...]":
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns
