"""The kernel's notes of what happens in folders (Linux), by three calls of the C library.

Python has no module for it, and the packages that do bring threads and event loops along, which
a process that is asked now and then does not need.
"""

import os
import sys
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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

    __slots__ = ("_calls", "_fd")

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("there is no inotify here")
        import ctypes

        self._calls = ctypes.CDLL(None, use_errno=True)
        self._fd = self._done(self._calls.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def close(self) -> None:
        """Watch nothing any more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def add(self, folder: bytes) -> int:
        """Watch a folder; the number of one that is watched already stays the same."""
        return self._done(self._calls.inotify_add_watch(self._fd, folder, _ASKED))

    def remove(self, number: int) -> None:
        """Watch a folder no more; one that is gone is not watched anyway."""
        self._calls.inotify_rm_watch(self._fd, number)

    def notes(self) -> "Iterator[tuple[int, int]]":
        """(number of the folder, what happened there) of all that was noted since the last time."""
        while True:
            try:
                said = os.read(self._fd, _AT_ONCE)
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
