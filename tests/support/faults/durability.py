"""Which files and names would be lost in a power cut, told from the steps alone.

A file's bytes are safe once the file was synced, a name once its folder was. What SQLite does
by itself is not seen here; it syncs its own files and their folder.
"""

import os


class Volatile:
    """A hook that keeps the books of what is not yet on disk."""

    def __init__(self) -> None:
        self._bytes: set[str] = set()
        self._names: set[str] = set()
        self.at_commit: list[set[str]] = []
        """For each commit of the ledger, the paths that a power cut would have taken."""

    def __call__(self, step: str, args: tuple[object, ...]) -> None:
        """Account for one step, which is about to happen."""
        if step in ("create", "mkdir", "open_or_create"):
            path = _path(args[0])
            if not os.path.lexists(path):
                self._names.add(path)
        elif step == "write":
            self._bytes.add(_path(args[0]))
        elif step == "rename":
            self._rename(_path(args[0]), _path(args[1]))
        elif step == "unlink":
            self._names.discard(_path(args[0]))
            self._bytes.discard(_path(args[0]))
        elif step == "fsync":
            self._sync(_path(args[0]))
        elif step == "sql" and args[0] == "COMMIT":
            self.at_commit.append(self._bytes | self._names)

    def _rename(self, old: str, new: str) -> None:
        if old in self._bytes:
            self._bytes.remove(old)
            self._bytes.add(new)
        self._names.discard(old)
        self._names.add(new)

    def _sync(self, path: str) -> None:
        self._bytes.discard(path)
        self._names -= {name for name in self._names if os.path.dirname(name) == path}


def _path(arg: object) -> str:
    if isinstance(arg, int):
        return os.readlink(f"/proc/self/fd/{arg}")
    assert isinstance(arg, bytes | str), arg
    return os.fsdecode(arg)
