"""Reach any folder below a root through directory descriptors, never through a link."""

import os

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_AT_ONCE = 64


class Descent:
    """Opens folders below a root one component at a time and keeps the last way down open.

    Paths of any depth work: only the deepest descriptors stay open, and coming back to a
    shallower folder walks down again from the nearest one that still is.
    """

    __slots__ = ("_names", "_opened", "root")

    def __init__(self, root: int) -> None:
        self.root = root
        self._names: list[bytes] = []
        self._opened: list[int] = []

    def open(self, way: "tuple[bytes, ...]") -> int:
        """A descriptor of the folder that `way` leads to; it stays ours. Raises OSError."""
        same = self._shared(way)
        self._leave(same)
        start = len(self._opened)
        while start and self._opened[start - 1] < 0:
            start -= 1
        for level in range(start, len(way)):
            above = self._opened[level - 1] if level else self.root
            fd = os.open(way[level], _FLAGS, dir_fd=above)
            if level < len(self._opened):
                self._opened[level] = fd
            else:
                self._opened.append(fd)
                self._names.append(way[level])
            if level >= _OPEN_AT_ONCE:
                self._close(level - _OPEN_AT_ONCE)
        return self._opened[-1] if way else self.root

    def open_anew(self, way: "tuple[bytes, ...]") -> int:
        """As `open`, but only through folders that still have these names."""
        above = self.root
        for level in range(self._shared(way)):
            fd = self._opened[level]
            if fd < 0 or not _is_at(fd, way[level], above):
                self._leave(0 if fd < 0 else level)
                break
            above = fd
        return self.open(way)

    def close(self) -> None:
        """Close everything but the root."""
        self._leave(0)

    def _shared(self, way: "tuple[bytes, ...]") -> int:
        names = self._names
        count = min(len(names), len(way))
        if names[:count] == list(way[:count]):
            return count
        for level in range(count):
            if names[level] != way[level]:
                return level
        return count

    def _leave(self, keep: int) -> None:
        while len(self._opened) > keep:
            self._close(len(self._opened) - 1)
            self._opened.pop()
            self._names.pop()

    def _close(self, level: int) -> None:
        fd, self._opened[level] = self._opened[level], -1
        if fd >= 0:
            os.close(fd)


def _is_at(fd: int, name: bytes, above: int) -> bool:
    """Whether an open folder is what has this name in the folder above."""
    there = os.stat(name, dir_fd=above, follow_symlinks=False)
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
