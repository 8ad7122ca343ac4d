"""Reach any folder below a root through directory descriptors, never through a link."""

import os

from takeback.model.tree import is_safe_name

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_AT_ONCE = 64


class Descent:
    """Opens folders below a root one component at a time and keeps the last way down open.

    Paths of any depth work: only the deepest descriptors stay open, and coming back to a
    shallower folder walks down again from the nearest one that still is.
    """

    __slots__ = ("_last", "_steps", "root")

    def __init__(self, root: int) -> None:
        self.root = root
        self._steps: list[_Step] = []
        self._last: tuple[bytes, ...] | None = None
        """The way that was opened last, if nothing of it was closed since."""
        # One list of both names and descriptors: an interrupt between two lists that must agree
        # would let a name lead into another folder.

    def open(self, way: "tuple[bytes, ...]") -> int:
        """A descriptor of the folder that `way` leads to; it stays ours. Raises OSError."""
        steps = self._steps
        if way == self._last:
            return steps[-1].fd if way else self.root
        self._leave(self._shared(way))
        start = len(steps)
        while start and steps[start - 1].fd < 0:
            start -= 1
        for level in range(start, len(way)):
            above = steps[level - 1].fd if level else self.root
            fd = os.open(way[level], _FLAGS, dir_fd=above)
            if level < len(steps):
                steps[level].fd = fd
            else:
                steps.append(_Step(way[level], fd))
            if level >= _OPEN_AT_ONCE:
                steps[level - _OPEN_AT_ONCE].close()
        self._last = way
        return steps[-1].fd if way else self.root

    def open_anew(self, way: "tuple[bytes, ...]") -> int:
        """As `open`, but only through folders that still have these names."""
        above = self.root
        for level in range(self._shared(way)):
            fd = self._steps[level].fd
            if fd < 0 or not _is_at(fd, way[level], above):
                self._leave(0 if fd < 0 else level)
                break
            above = fd
        return self.open(way)

    def close(self) -> None:
        """Close everything but the root."""
        self._leave(0)

    def _shared(self, way: "tuple[bytes, ...]") -> int:
        level = 0
        for step, name in zip(self._steps, way, strict=False):
            if step.name != name:
                break
            level += 1
        return level

    def _leave(self, keep: int) -> None:
        self._last = None
        while len(self._steps) > keep:
            self._steps.pop().close()


class _Step:
    """One folder on the way down; its descriptor is -1 when it is not open any more."""

    __slots__ = ("fd", "name")

    def __init__(self, name: bytes, fd: int) -> None:
        self.name = name
        self.fd = fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _is_at(fd: int, name: bytes, above: int) -> bool:
    there = os.stat(name, dir_fd=above, follow_symlinks=False)
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


_ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(path: bytes) -> int:
    """A folder by its whole path, open; never through a link. Raises OSError."""
    if not is_whole(path) and path != b"/":
        raise FileNotFoundError(2, "not the whole path of a folder", path)
    names = path.split(b"/")[1:] if path != b"/" else []
    # What leads there need not be readable, only the folder itself.
    fd = os.open(b"/", _ON_THE_WAY if names else _TO_READ)
    for number, name in enumerate(names, 1):
        try:
            inner = os.open(name, _TO_READ if number == len(names) else _ON_THE_WAY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def is_whole(path: bytes) -> bool:
    """Whether a path begins at `/` and says nothing but names."""
    return path.startswith(b"/") and all(map(is_safe_name, path[1:].split(b"/")))


def whole(root: bytes, inside: bytes, path: bytes) -> bytes:
    """A path as files outside are known by: whole, and without links on the way."""
    named = os.path.join(root, inside, path)
    return os.path.join(os.path.realpath(os.path.dirname(named)), os.path.basename(named))


def parted(path: bytes) -> "tuple[bytes, bytes]":
    folder, _, name = path.rpartition(b"/")
    return folder or b"/", name
