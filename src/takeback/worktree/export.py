"""Write new files outside the store: an extracted tree, or a trimmed copy of a conversation.

An existing file is never opened for writing, let alone replaced.
"""

import errno
import os

from takeback.disk import operations
from takeback.disk.descent import Descent
from takeback.errors import TargetError
from takeback.model.tree import FOLDER, LINK, REGULAR, SETUID
from takeback.worktree.stage import give, give_link, mode_for, owner_at, write_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.model.tree import Entry, Manifest, Owner
    from takeback.objects.object_store import ObjectStore


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Extraction:
    """Writes one tree into an empty folder that nobody else writes to.

    Files are made 0600 and get their mode when their content is there; folders are 0700 until
    everything below them is done. So nothing is ever more readable than it was. Everything belongs
    to the owner of the root; what root extracts for somebody else is setuid only if it was his.
    """

    def __init__(
        self,
        root: int,
        objects: "ObjectStore",
        captured: "Callable[[], dict[bytes, Owner]]",
    ) -> None:
        self._descent = Descent(root)
        self._objects = objects
        self._captured = captured
        self._trusted: dict[bytes, Owner] | None = None
        found = os.fstat(root)
        self._owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
        self.dropped: list[bytes] = []
        """The paths that are not setuid again."""
        self._folders: list[tuple[tuple[bytes, ...], int]] = []

    def close(self) -> None:
        self._descent.close()

    def write_folder(self, way: "tuple[bytes, ...]", manifest: "Manifest") -> int:
        """Write what one folder holds, its subfolders still empty; return how many entries."""
        fd = self._descent.open(way)
        self._folders.append((way, manifest.mode))
        count = 0
        for entry in manifest.entries:
            if not entry.reason:
                self._write(fd, way, entry)
                count += 1
        return count

    def close_folders(self) -> None:
        for way, mode in reversed(self._folders):
            operations.fchmod(self._descent.open(way), mode)

    def _write(self, fd: int, way: "tuple[bytes, ...]", entry: "Entry") -> None:
        if entry.kind == FOLDER:
            operations.mkdir(entry.name, dir_fd=fd)
            if self._owner not in (None, owner_at(fd, entry.name)):
                give(self._descent.open((*way, entry.name)), self._owner)
        elif entry.kind == LINK:
            operations.symlink(self._objects.content(entry), entry.name, dir_fd=fd)
            give_link(fd, entry.name, self._owner)
            operations.set_mtime(entry.name, entry.mtime, dir_fd=fd)
        elif entry.kind == REGULAR:
            self._write_file(fd, way, entry)

    def _mode(self, way: "tuple[bytes, ...]", entry: "Entry", owner: "Owner") -> int:
        if not entry.mode & SETUID:
            return entry.mode & 0o7777
        if self._trusted is None:
            self._trusted = self._captured()
        path = b"/".join((*way, entry.name))
        mode = mode_for(entry.mode, owner, self._trusted.get(path))
        if mode != entry.mode:
            self.dropped.append(path)
        return mode & 0o7777

    def _write_file(self, fd: int, way: "tuple[bytes, ...]", entry: "Entry") -> None:
        file = operations.create(entry.name, dir_fd=fd)
        try:
            mode = self._mode(way, entry, give(file, self._owner))
            write_content(file, self._objects, entry)
            operations.fchmod(file, mode)
        finally:
            os.close(file)
        operations.set_mtime(entry.name, entry.mtime, dir_fd=fd)


class Target:
    """The folder that a tree is extracted into: new, or there and empty.

    The tree is written into a folder of its own first, beside its place or in it, and gets its
    name when it is complete. So a crash leaves no half tree under that name, and giving up
    removes nothing that is not ours.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self._is_new = not os.path.lexists(path)
        mark = b".takeback-%s.tmp" % os.urandom(4).hex().encode()
        self._work = path + mark if self._is_new else path + b"/" + mark
        if not self._is_new:
            _require_empty(path)
        self.fd = -1

    def begin(self) -> int:
        parent = os.path.dirname(self.path)
        if not os.path.isdir(parent):
            raise TargetError(
                f"there is no folder `{os.fsdecode(parent)}` to extract into",
                hint="make it first, or name another folder",
            )
        operations.mkdir(self._work)
        self.fd = os.open(self._work, _DIRECTORY)
        if os.geteuid() == 0:
            found = os.stat(parent if self._is_new else self.path)
            give(self.fd, (found.st_uid, found.st_gid))
        return self.fd

    def finish(self, claim: "Callable[[bytes], None] | None" = None) -> None:
        """Let the complete tree appear under its name.

        `claim` hears which folder that is: a new one before it appears, with the name it has until
        then, and one that was there when it is filled.
        """
        try:
            if self._is_new:
                if claim is not None:
                    operations.syncfs(self.fd)
                    claim(self._work)
                operations.rename(self._work, self.path)
            else:
                self._move_in()
                if claim is not None:
                    operations.syncfs(self.fd)
                    claim(self.path)
        except OSError as problem:
            raise TargetError(
                f"`{os.fsdecode(self.path)}` cannot be filled: {problem.strerror}",
                hint="name a folder that does not exist yet",
            ) from problem
        os.close(self.fd)

    def _move_in(self) -> None:
        """Move everything up into the folder that was there; it stays the same folder."""
        if os.listdir(self.path) != [os.path.basename(self._work)]:
            raise FileExistsError(errno.EEXIST, "something else is in it now")
        mode = os.fstat(self.fd).st_mode & 0o7777
        operations.fchmod(self.fd, 0o700)
        for name in map(os.fsencode, os.listdir(self.fd)):
            operations.rename(self._work + b"/" + name, self.path + b"/" + name)
        operations.rmdir(self._work)
        target = os.open(self.path, _DIRECTORY)
        try:
            operations.fchmod(target, mode)
        finally:
            os.close(target)

    def abandon(self) -> None:
        if self.fd < 0:
            return
        try:
            remove_below(self.fd)
            operations.rmdir(self._work)
        except OSError:
            # The error that made us give up is the one to tell.
            pass
        finally:
            os.close(self.fd)


def remove_below(root: int) -> None:
    """Remove everything in a folder that we made and filled ourselves."""
    descent = Descent(root)
    stack: list[tuple[tuple[bytes, ...], bool]] = [((), False)]
    while stack:
        way, emptied = stack.pop()
        if emptied:
            operations.rmdir(way[-1], dir_fd=descent.open(way[:-1]))
            continue
        if way:
            stack.append((way, True))
        fd = descent.open(way)
        operations.fchmod(fd, 0o700)
        for name in map(os.fsencode, os.listdir(fd)):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if found.st_mode & 0o170000 == FOLDER:
                stack.append(((*way, name), False))
            else:
                operations.unlink(name, dir_fd=fd)
    descent.close()


def _require_empty(path: bytes) -> None:
    shown = os.fsdecode(path)
    hint = "name a folder that does not exist yet, or an empty one"
    try:
        held = os.listdir(path)
    except NotADirectoryError:
        raise TargetError(f"`{shown}` is not a folder", hint=hint) from None
    except PermissionError:
        raise TargetError(f"`{shown}` cannot be read: permission denied", hint=hint) from None
    if os.path.islink(path):
        raise TargetError(f"`{shown}` is a link, not a folder", hint=hint)
    if held:
        raise TargetError(f"`{shown}` is not empty; nothing was written", hint=hint)


_AT_ONCE = 1 << 20


def write_new(path: str, lines: "Iterable[bytes]") -> int:
    """Write lines into a file that must not exist; it is on the disk when this returns.

    Return how many. If anything goes wrong, the file is gone again.
    """
    folder = os.path.dirname(path)
    _make_folders(folder)
    fd = operations.create(path)
    try:
        written = _write(fd, lines)
        operations.fsync(fd)
    except BaseException:
        os.close(fd)
        operations.discard(path)
        raise
    os.close(fd)
    operations.fsync_dir(folder)
    return written


def _write(fd: int, lines: "Iterable[bytes]") -> int:
    waiting, size, count = [], 0, 0
    for line in lines:
        waiting.append(line + b"\n")
        size, count = size + len(line), count + 1
        if size >= _AT_ONCE:
            operations.write(fd, b"".join(waiting))
            waiting, size = [], 0
    operations.write(fd, b"".join(waiting))
    return count


def _make_folders(folder: str) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        operations.mkdir(each)
        operations.fsync_dir(os.path.dirname(each))
