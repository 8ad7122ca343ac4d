"""A watch on a tree: in which folders something may have changed since the last look.

    look ──► settle: each folder that the stat cache knows is watched
      ▲         │
      └── changed: the folders to look at, or None: at all of them

It only spares looks at folders in which nothing happened. Whenever it cannot be sure, it says
None: when it began only now, a folder went or moved, notes were lost, or somebody else wrote the
stat cache. What the kernel does not note (a file that is written under another name,
or in memory only) is found by the next look at everything, of which there is one at each end of
a turn, and one a minute.

inotify is called through ctypes: the packages for it bring threads and event loops along.

A look at everything is the truth. Looks inside a turn may be glances: what a glance overlooks is
found by the next look at everything, and belongs to whoever worked since the last of these.
"""

import errno
import os
import sys
from struct import Struct

from takeback.disk import machine
from takeback.worktree import stat_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.worktree.stat_cache import StatCache


MODIFIED, ATTRIBUTES, WRITTEN = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATED, DELETED = 0x40, 0x80, 0x100, 0x200
FOLDER_DELETED, FOLDER_MOVED = 0x400, 0x800
UNMOUNTED, OVERFLOWN, IGNORED = 0x2000, 0x4000, 0x8000
IS_FOLDER = 0x40000000
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_ASKED = (
    MODIFIED | ATTRIBUTES | WRITTEN | MOVED_FROM | MOVED_TO | CREATED | DELETED
    | FOLDER_DELETED | FOLDER_MOVED | _ONLY_FOLDERS | _NO_LINKS
)  # fmt: skip
_NOTE = Struct("=iIII")
_AT_ONCE = 1 << 18


class Inotify:
    """Folders that are watched, each by its number."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("there is no inotify here")
        import ctypes

        self._calls = ctypes.CDLL(None, use_errno=True)
        self.fd = self._done(self._calls.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def add(self, folder: bytes) -> int:
        return self._done(self._calls.inotify_add_watch(self.fd, folder, _ASKED))

    def remove(self, number: int) -> None:
        self._calls.inotify_rm_watch(self.fd, number)

    def notes(self) -> "Iterator[tuple[int, int]]":
        """(number of the folder, what happened there) of all that was noted since the last time."""
        while True:
            try:
                said = os.read(self.fd, _AT_ONCE)
            except BlockingIOError:
                return
            at = 0
            while at < len(said):
                number, what, _, length = _NOTE.unpack_from(said, at)
                yield number, what
                at += _NOTE.size + length

    def _done(self, result: int) -> int:
        if result < 0:
            import ctypes

            problem = ctypes.get_errno()
            raise OSError(problem, os.strerror(problem))
        return result


MOST_FOLDERS = 8192
"""More are not watched: each takes memory of the kernel."""
_SHARE = 4
"""One in so many of the watches that a user may have is the most that one tree may take."""
_LIMIT = b"/proc/sys/fs/inotify/max_user_watches"
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Watch:
    """A watch on one tree. With one that gave up, everything is looked at, as without any."""

    def __init__(self, root: bytes, most: int = MOST_FOLDERS) -> None:
        self._root = root
        self._most = min(most, _allowed())
        self._gave_up = not machine.is_watchable(root)
        self._cache: StatCache | None = None
        self._forget()

    def _forget(self) -> None:
        self._process = os.getpid()
        self._notes: Inotify | None = None
        self._folders: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}
        self._pending: set[bytes] | None = None
        self._records: bytes | bytearray | None = None

    def close(self) -> None:
        if self._notes is not None:
            self._notes.close()
        self._forget()

    def changed(self, cache: "StatCache") -> "set[bytes] | None":
        """The folders in which something may differ from what a stat cache says; None for all."""
        if self._process != os.getpid():
            self.close()  # a copy of the process must not read what the original waits for
        if self._notes is not None:
            self._read(self._notes)
        return self._pending if self._records is cache.records else None

    def ready(self) -> int:
        """The file to wait at until something happens; -1 if nobody notes that."""
        return self._notes.fd if self._notes is not None else -1

    def noted(self) -> None:
        """Read what happened; the next look needs it."""
        if self._notes is not None:
            self._read(self._notes)

    def looked(self, cache: "StatCache") -> None:
        """What `changed` said was looked at, and the stat cache says how it was found."""
        self._cache = cache
        if self._notes is not None:
            self._pending = set()

    def settle(self) -> None:
        """Watch the folders that the last look found."""
        cache = self._cache
        if self._gave_up or cache is None or self._records is cache.records:
            return
        try:
            self._settle(cache.records)
        except OSError as problem:
            # If one is not there any more, the next look tells.
            self._gave_up = problem.errno not in _GONE
            self.close()

    def _settle(self, known: "bytes | bytearray") -> None:
        wanted = set(stat_cache.paths(known))
        if len(wanted) > self._most:
            self._gave_up = True
            self.close()
            return
        if self._notes is None:
            self._notes = Inotify()
        for path in self._numbers.keys() - wanted:
            number = self._numbers.pop(path)
            del self._folders[number]
            self._notes.remove(number)
        for path in wanted - self._numbers.keys():
            number = self._notes.add(self._root + b"/" + path if path else self._root)
            self._folders[number] = path
            self._numbers[path] = number
            if self._pending is not None:
                self._pending.add(path)  # what happened before it was watched
        self._records = known

    def _read(self, notes: Inotify) -> None:
        for number, what in notes.notes():
            folder = self._folders.get(number)
            if what & OVERFLOWN or (folder is not None and _moves(what)):
                # Notes are lost, or what is watched below has other paths by now: begin anew.
                self.close()
                return
            if folder is None:
                continue  # it is watched no more
            if what & IGNORED:
                # It is gone; there may be another one in its place.
                del self._folders[number], self._numbers[folder]
                self._pending = self._records = None
            elif self._pending is not None:
                self._pending.add(folder)


def _moves(what: int) -> bool:
    """Whether a note is about a folder that has another path now, or none."""
    if what & IS_FOLDER and what & (MOVED_FROM | MOVED_TO):
        return True
    return bool(what & (FOLDER_MOVED | UNMOUNTED))


def _allowed() -> int:
    try:
        with open(_LIMIT, "rb") as file:
            return int(file.read()) // _SHARE
    except (OSError, ValueError):
        return 0


LONGEST = 60_000_000_000
"""Nanoseconds: however long a turn is, everything is looked at so often."""


class PartialScan:
    """What a `watch` spares one project's looks.

    `whole` is the last look at everything: the newest event by then, and when it began.
    """

    def __init__(self, watch: "Watch") -> None:
        self.whole = (0, 0)
        self.watch = watch
        self._changed: set[bytes] | None = None
        self._is_whole = True
        self._now = (0, 0)

    def close(self) -> None:
        self.watch.close()

    def settle(self) -> None:
        self.watch.settle()

    def intend(self, event: int, at: int, *, whole: bool) -> "PartialScan":
        """Say which look comes next: the newest event by then, and the time."""
        self._now, self._changed = (event, at), None
        is_fresh = 0 <= at - self.whole[1] <= LONGEST
        self._is_whole = whole or not is_fresh
        return self

    def folders(self, cache: "StatCache") -> "set[bytes] | None":
        self._changed = self.watch.changed(cache)
        if self._is_whole or self._changed is None:
            self._is_whole = True
            return None
        return self._changed

    def overlooked(self, path: bytes) -> bool:
        """Whether something that this look found happened before the last glance already."""
        return self._changed is not None and path.rpartition(b"/")[0] not in self._changed

    def done(self, cache: "StatCache") -> None:
        self.watch.looked(cache)
        if self._is_whole:
            self.whole = self._now
