"""A watch on a tree: in which folders something may have changed since the last look.

    look ──► settle: each folder that the stat cache knows is watched
      ▲         │
      └── changed: the folders to look at, or None: at all of them

It only spares looks at folders in which nothing happened. Whenever it cannot be sure, it says
None: when it began only now, a folder went or moved, notes were lost, or somebody else wrote the
stat cache. What the kernel does not note (a file that is written under another name,
or in memory only) is found by the next look at everything, of which there is one at each end of
a turn, and one a minute.
"""

import errno
import os

from takeback.store import inotify, mounts, records
from takeback.store.inotify import Inotify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.statcache import StatCache

MOST_FOLDERS = 8192
"""More are not watched: each takes memory of the kernel."""
_SHARE = 4
"""One in so many of the watches that a user may have is the most that one tree may take."""
_LIMIT = b"/proc/sys/fs/inotify/max_user_watches"
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Watch:
    """A watch on one tree. With one that gave up, everything is looked at, as without any."""

    __slots__ = (
        "_cache",
        "_folders",
        "_gave_up",
        "_most",
        "_notes",
        "_numbers",
        "_pending",
        "_process",
        "_records",
        "_root",
    )

    def __init__(self, root: bytes, most: int = MOST_FOLDERS) -> None:
        self._root = root
        self._most = min(most, _allowed())
        self._gave_up = not mounts.is_watchable(root)
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
        """Watch nothing, until it is settled again."""
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
        wanted = set(records.paths(known))
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
        """Take in what was noted."""
        for number, what in notes.notes():
            folder = self._folders.get(number)
            if what & inotify.OVERFLOWN or (folder is not None and _moves(what)):
                # Notes are lost, or what is watched below has other paths by now: begin anew.
                self.close()
                return
            if folder is None:
                continue  # it is watched no more
            if what & inotify.IGNORED:
                # It is gone; there may be another one in its place.
                del self._folders[number], self._numbers[folder]
                self._pending = self._records = None
            elif self._pending is not None:
                self._pending.add(folder)


def _moves(what: int) -> bool:
    """Whether a note is about a folder that has another path now, or none."""
    if what & inotify.IS_FOLDER and what & (inotify.MOVED_FROM | inotify.MOVED_TO):
        return True
    return bool(what & (inotify.FOLDER_MOVED | inotify.UNMOUNTED))


def _allowed() -> int:
    """How many folders one tree may take of those that the user may watch."""
    try:
        with open(_LIMIT, "rb") as file:
            return int(file.read()) // _SHARE
    except (OSError, ValueError):
        return 0
