"""Somebody who saves files while a restore runs, and who remembers what each file holds.

Every save carries a marker that nobody else has. Some ways to save: a new file is put in the place
of the old one; the old one is moved aside first, and the path is empty for a moment; the file is
emptied and written again; bytes are appended through a descriptor that was opened before; bytes
are changed in memory that was mapped before. The last two are closed with the save, so that nothing
tells any more that there was a writer.
"""

import contextlib
import hashlib
import itertools
import mmap
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HOW = ("rename", "backup", "truncate", "append", "mmap", "late")
"""`late` is an append whose descriptor stays open, and gets more when the restore is over."""
AT_ONCE = ("rename", "backup", "truncate")
"""Ways in which a save goes to whatever the path leads to, and not to a file opened before."""

_markers = itertools.count(1)


class Save(NamedTuple):
    """The newest save of one file: all that it holds now."""

    path: str
    how: str
    content: bytes

    @property
    def blob(self) -> str:
        """The name that git gives to this content."""
        return hashlib.sha1(b"blob %d\0%s" % (len(self.content), self.content)).hexdigest()


class Editor:
    """Opens files before a restore, saves them while it runs; a save that fails is none."""

    def __init__(self, tree: Path, aside: Path, how: str, paths: Iterable[str]) -> None:
        self._tree = tree
        self._aside = aside
        self._how = how
        self._paths = list(paths)
        self._opened: dict[str, int] = {}
        self._mapped: dict[str, mmap.mmap] = {}
        self.saves: dict[str, Save] = {}
        if how not in AT_ONCE:
            self._open_all()

    def _open_all(self) -> None:
        for path in self._paths:
            with contextlib.suppress(OSError):
                flags = os.O_RDWR | os.O_NOFOLLOW | (0 if self._how == "mmap" else os.O_APPEND)
                self._opened[path] = os.open(self._tree / path, flags)
        if self._how == "mmap":
            self._mapped = {path: mmap.mmap(fd, 0) for path, fd in self._opened.items()}
            self._close()

    def _close(self) -> None:
        for fd in self._opened.values():
            os.close(fd)
        self._opened.clear()

    def save_all(self) -> None:
        """Save every file once."""
        for path in self._paths:
            self.save(path)

    def save(self, path: str) -> None:
        """Save one file, if that is possible."""
        marker = b"%s saved by %s, number %d\n" % (
            os.fsencode(path),
            self._how.encode(),
            next(_markers),
        )
        try:
            content = self._put(path, marker)
        except OSError:
            return
        self.saves[path] = Save(path, self._how, content)

    def _put(self, path: str, marker: bytes) -> bytes:
        if path in self._mapped:
            with self._mapped.pop(path) as view:
                view[: len(marker)] = marker
                return bytes(view)
        if path in self._opened:
            return self._append(path, marker)
        if self._how == "backup":
            with contextlib.suppress(FileNotFoundError):
                (self._tree / path).rename(self._tree / f"{path}~")
        if self._how in ("backup", "truncate"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with open(os.open(self._tree / path, flags, 0o644), "wb") as file:
                file.write(marker)
            return marker
        self._aside.write_bytes(marker)
        self._aside.rename(self._tree / path)
        return marker

    def _append(self, path: str, marker: bytes) -> bytes:
        fd = self._opened[path]
        os.write(fd, marker)
        content = os.pread(fd, 1 << 20, 0)
        if self._how != "late":
            os.close(self._opened.pop(path))
        return content

    def finish(self) -> "list[Save]":
        """Close everything, after late bytes where that is the way; the newest saves."""
        if self._how == "late":
            for path in self._opened:
                self.save(path)
        for mapped in self._mapped.values():
            mapped.close()
        self._close()
        return list(self.saves.values())


class Kept:
    """What a store holds, told by git: every blob, and those that a checkpoint shows."""

    def __init__(self, git_dir: bytes) -> None:
        self._git_dir = os.fsdecode(git_dir)
        every = self._git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
        self.blobs = set(every.split())
        shown = self._git("rev-list", "--objects", "refs/heads/checkpoints")
        self.shown = {line[:40] for line in shown.splitlines()}

    def _git(self, *words: str) -> str:
        command = ["git", "--git-dir", self._git_dir, *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, errors="replace"
        ).stdout
