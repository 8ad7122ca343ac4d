"""Paths that their owner has no right to read: opened for a look, and shut again.

A checkpoint never does that. A restore does where it would have to refuse otherwise: what is there
must be in the store before it is taken back.
"""

import os

from takeback.model.tree import FOLDER, KIND, REGULAR
from takeback.store import fsops
from takeback.store.descent import Descent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_NEEDED = {REGULAR: 0o400, FOLDER: 0o700}
_FLAGS = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


class Shut:
    """What was opened in a work tree, by path. Closes the root in the end."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: dict[bytes, tuple[int, int, int]] = {}
        """For each path a descriptor that stands for it, its kind, and the mode it had."""

    @property
    def modes(self) -> "dict[bytes, int]":
        """The modes that the paths really have."""
        return {path: mode for path, (_, _, mode) in self._open.items()}

    def open(self, paths: "Iterable[bytes]") -> bool:
        """Let us read some paths of our own; whether there was one that we may read now."""
        if not hasattr(os, "O_PATH") or os.geteuid() == 0:
            return False
        descent = Descent(self._root)
        try:
            # Those above first, and each of them.
            return sum(self._open_one(descent, path) for path in sorted(paths)) > 0
        finally:
            descent.close()

    def _open_one(self, descent: Descent, path: bytes) -> bool:
        *way, name = path.split(b"/")
        if path in self._open:
            return False
        try:
            fd = os.open(name, _FLAGS, dir_fd=descent.open(tuple(way)))
        except OSError:
            return False
        found = os.fstat(fd)
        mode, kind = found.st_mode & 0o7777, found.st_mode & KIND
        needed = _NEEDED.get(kind, 0)
        if found.st_uid != os.geteuid() or mode & needed == needed:
            os.close(fd)
            return False
        self._open[path] = fd, kind, mode
        fsops.chmod_file(fd, name, mode | needed)
        return True

    def shut_files(self) -> None:
        """Give files their modes back; a restore needs only folders open."""
        self.shut([path for path, (_, kind, _) in self._open.items() if kind == FOLDER])

    def shut(self, but: "Collection[bytes]" = ()) -> None:
        """Give everything its mode back, but some paths; those below first."""
        for path in sorted(set(self._open) - set(but), reverse=True):
            fd, _, mode = self._open.pop(path)
            try:
                fsops.chmod_file(fd, path, mode)
            finally:
                os.close(fd)

    def close(self, done: "Collection[bytes]" = ()) -> None:
        """Shut everything but what a restore has `done`, and close the root."""
        try:
            self.shut(done)
        finally:
            while self._open:
                os.close(self._open.popitem()[1][0])
            os.close(self._root)
