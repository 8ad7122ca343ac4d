"""Our folder in the work tree while a restore runs.

Here is written what is to appear, and here comes what is displaced, so that every path of the
tree changes by a rename on its own disk. The names say of which path something is:

    n12   what path 12 shall hold; after the exchange, what it held
    q12   what was at path 12 and has to go
    r12   as n12, when a restore is taken back
    w12   what is being written, before it is called r12: it may be torn, so nobody looks at it
"""

import errno
import os

from takeback.model.staging import PREFIX
from takeback.model.tree import FOLDER, LINK, REGULAR
from takeback.store import fsops
from takeback.store.content import LARGE, is_held_open
from takeback.store.states import give, give_link, kind_at, look_at, mode_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.model.swap import Owner, State
    from takeback.model.tree import Entry
    from takeback.store.objects import ObjectStore

SYNC_EACH = 48
"""Up to so many files or folders are synced one by one; more of them with the whole disk.

To sync the whole disk also writes what others have not written yet: with 20 MB of that, which an
agent's build leaves any time, 30 ms (docs/design/0009). One by one costs 0.2 ms each.
"""

_IGNORE = b".gitignore"
_WHOLE, _TORN, _OURS = b"nqr", b"w", b"nqrw"
_FOUND = b"takeback-found-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Stage:
    """The folder of one restore, in the root of the work tree."""

    def __init__(self, root: int, name: bytes, objects: "ObjectStore") -> None:
        self._root = root
        self._objects = objects
        self.name = name
        self.fd = -1
        self._unsynced: list[int] = []
        self._many = False

    def open(self) -> None:
        """Make the folder, or open the one that is there."""
        if self.fd >= 0 and os.fstat(self.fd).st_nlink:
            return
        self.close()
        found = look_at(self._root, self.name)
        if found is not None and found.kind != FOLDER:
            self.show()
            found = None
        if found is None:
            fsops.mkdir(self.name, dir_fd=self._root)
        self.fd = os.open(self.name, _DIRECTORY, dir_fd=self._root)
        if os.fstat(self.fd).st_mode & 0o077:
            fsops.fchmod(self.fd, 0o700)
        if look_at(self.fd, _IGNORE) is None:
            file = fsops.create(_IGNORE, dir_fd=self.fd)
            try:
                fsops.write(file, b"*\n")
            finally:
                os.close(file)

    def ignores_case(self) -> bool:
        """Whether the disk does not tell upper from lower case."""
        return kind_at(self.fd, _IGNORE.upper()) is not None

    def is_there(self) -> bool:
        """Whether there is something of this name."""
        return kind_at(self._root, self.name) is not None

    def show(self) -> bytes:
        """Let our name be free; what is there gets one that everybody can see, and which."""
        aside = _FOUND + self.name[len(PREFIX) :]
        while look_at(self._root, aside) is not None:
            aside += b"~"
        fsops.move(self._root, self.name, self._root, aside)
        return aside

    def close(self) -> None:
        """Close the folder."""
        self._close_files()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def write(
        self,
        name: bytes,
        entry: "Entry",
        *,
        keep_mtime: bool,
        owner: "Owner | None" = None,
        trusted: "Owner | None" = None,
    ) -> int:
        """Write what an entry says; every byte is checked. 0600 until all of it is there.

        It belongs to `owner`, if that can be. It is setuid or setgid only if it then belongs to the
        one who is `trusted`; the mode that it got is returned. Nothing is durable before `sync`.
        """
        mode = entry.mode
        if entry.kind == LINK:
            fsops.symlink(self._objects.content(entry), name, dir_fd=self.fd)
            give_link(self.fd, name, owner)
        else:
            mode = self._write_file(name, entry, owner, trusted)
        if keep_mtime:
            fsops.set_mtime(name, entry.mtime, dir_fd=self.fd)
        return mode

    def _write_file(
        self,
        name: bytes,
        entry: "Entry",
        owner: "Owner | None",
        trusted: "Owner | None",
    ) -> int:
        file = fsops.create(name, dir_fd=self.fd)
        try:
            mode = mode_for(entry.mode, give(file, owner), trusted)
            if entry.size > LARGE:
                for chunk in self._objects.stream(entry):
                    fsops.write(file, chunk)
            else:
                fsops.write(file, self._objects.content(entry))
            fsops.fchmod(file, mode & 0o7777)
        except BaseException:
            os.close(file)
            raise
        self._unsynced.append(file)
        if len(self._unsynced) > SYNC_EACH:
            self._many = True
            self._close_files()
        elif not self._many:
            fsops.begin_to_write(file)
        return mode

    def sync(self) -> None:
        """Make everything that was written durable, with its names."""
        if self._many:
            fsops.syncfs(self.fd)
        else:
            for file in self._unsynced:
                fsops.fsync(file)
        self._close_files()
        fsops.fsync(self.fd)

    def _close_files(self) -> None:
        while self._unsynced:
            os.close(self._unsynced.pop())

    def unused(self, name: bytes) -> bytes:
        """This name or, if an earlier try left something there, one like it."""
        free, again = name, 0
        while kind_at(self.fd, free) is not None:
            again += 1
            free = b"%s.%d" % (name, again)
        return free

    def drop_torn(self) -> None:
        """Remove what an earlier try to write left half done."""
        for name in map(os.fsencode, os.listdir(self.fd)):
            if name[:1] == _TORN and _number(name, _TORN) is not None:
                fsops.unlink(name, dir_fd=self.fd)

    def names(self) -> "Iterator[tuple[int, bytes]]":
        """What the folder holds: the number of its path, and its name here."""
        for name in sorted(map(os.fsencode, os.listdir(self.fd))):
            number = _number(name)
            if number is not None:
                yield number, name

    def held(self) -> "Iterator[tuple[int, bytes, State]]":
        """What the folder holds, and what each of it is."""
        for number, name in self.names():
            state = look_at(self.fd, name)
            if state is not None:
                yield number, name, state

    def is_being_written(self, name: bytes) -> bool:
        """Whether some process still has a file open for writing."""
        if kind_at(self.fd, name) != REGULAR:
            return False
        try:
            file = os.open(name, _FILE, dir_fd=self.fd)
        except OSError:
            return False
        try:
            return is_held_open(file)
        finally:
            os.close(file)

    def size(self, name: bytes) -> int:
        """How large a file of the folder is now."""
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_size

    def read(self, name: bytes) -> "Iterator[bytes]":
        """What a file of the folder holds, or where a link leads."""
        if os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode & 0o170000 == LINK:
            yield os.readlink(name, dir_fd=self.fd)
            return
        file = os.open(name, _FILE, dir_fd=self.fd)
        try:
            while chunk := os.read(file, 1 << 20):
                yield chunk
        finally:
            os.close(file)

    def discard(self, name: bytes) -> None:
        """Remove one entry; the store holds what was in it."""
        fsops.unlink(name, dir_fd=self.fd)

    def remove(self) -> None:
        """Remove the folder with all that we or a restore put there; other things stay."""
        if self.fd < 0:
            return
        for name in map(os.fsencode, os.listdir(self.fd)):
            ours = name == _IGNORE or _number(name, _OURS) is not None
            if ours and not self._is_folder(name):
                fsops.unlink(name, dir_fd=self.fd)
        self.close()
        fsops.rmdir(self.name, dir_fd=self._root)
        # The lock's mark may be gone sooner than the folder, if the power is cut.
        fsops.fsync(self._root)

    def _is_folder(self, name: bytes) -> bool:
        mode = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
        return mode & 0o170000 == FOLDER

    def sweep(self) -> None:
        """Remove the folder, which a restore left that nobody knows of any more."""
        try:
            self.fd = os.open(self.name, _DIRECTORY, dir_fd=self._root)
            self.remove()
        except OSError as problem:
            # It only has the name of one of ours, or holds what is not ours.
            if problem.errno not in (errno.ENOTDIR, errno.ELOOP, errno.ENOTEMPTY, errno.EEXIST):
                raise


def _number(name: bytes, letters: bytes = _WHOLE) -> "int | None":
    """The number of the path that something in our folder is of."""
    number = name[1:].partition(b".")[0]
    return int(number) if name[:1] in letters and number.isdigit() else None
