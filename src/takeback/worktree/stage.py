"""The stage: our folder in the work tree while a restore runs.

New entries are written here and displaced ones come here, so that every path changes by a rename
on its own disk. A name tells the path:

    n12   what path 12 shall hold; after the exchange, what it held
    q12   what was at path 12 and has to go
    r12   as n12, when a restore is taken back
    w12   r12 while it is written: it may be torn, so it is never read

Also here: the state of one path (kind, mode, hash), and `Shut`, which opens paths that their
owner may not read. Only a restore does that: the present content must be stored before it goes.
"""

import errno
import hashlib
import os

from takeback.disk import operations
from takeback.disk.descent import Descent
from takeback.errors import DamagedStoreError
from takeback.model.ids import PREFIX
from takeback.model.tree import FOLDER, KIND, LINK, REGULAR, SETUID, RescuedEntry, State
from takeback.model.words import CLEANING
from takeback.worktree.content import LARGE, is_held_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import TypeVar

    from takeback.model.tree import Entry, Owner, Stamp, State
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress

    T = TypeVar("T")


GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says of a path that leads nowhere, or through something that is no folder."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)


def fold(name: bytes) -> bytes:
    """A name as a disk sees it that does not tell upper from lower case, nor forms of letters."""
    from unicodedata import normalize

    return normalize("NFD", os.fsdecode(name)).casefold().encode("utf-8", "surrogateescape")


def _find(dir_fd: int, name: bytes) -> "os.stat_result | None":
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError as problem:
        if problem.errno in GONE:
            return None
        raise


def owner_at(dir_fd: int, name: bytes) -> "Owner | None":
    found = _find(dir_fd, name)
    return (found.st_uid, found.st_gid) if found is not None else None


def kind_at(dir_fd: int, name: bytes) -> "int | None":
    found = _find(dir_fd, name)
    return found.st_mode & KIND if found is not None else None


def give(fd: int, owner: "Owner | None") -> "Owner":
    """Let a new file or folder belong to somebody, as far as we may; whose it is then."""
    found = os.fstat(fd)
    if owner is not None and owner != (found.st_uid, found.st_gid):
        # Only root may give something away; anybody may choose among groups of his own.
        who = owner[0] if os.geteuid() == 0 else -1
        try:
            operations.give_to(fd, who, owner[1])
        except PermissionError:
            return found.st_uid, found.st_gid
        found = os.fstat(fd)
    return found.st_uid, found.st_gid


def mode_for(mode: int, owner: "Owner", trusted: "Owner | None") -> int:
    """A mode; setuid only for the owner who is trusted, setgid only for that owner and group."""
    if trusted is None or owner[0] != trusted[0]:
        return mode & ~SETUID
    return mode if owner == trusted else mode & ~0o2000


def give_link(dir_fd: int, name: bytes, owner: "Owner | None") -> None:
    if os.geteuid() == 0 and owner is not None and owner != owner_at(dir_fd, name):
        try:
            operations.give_link_to(name, *owner, dir_fd=dir_fd)
        except PermissionError:
            return  # such as on a network disk that does not believe in root


def write_content(file: int, objects: "ObjectStore", entry: "Entry") -> None:
    if entry.size > LARGE:
        for chunk in objects.stream(entry):
            operations.write(file, chunk)
    else:
        operations.write(file, objects.content(entry))


def write_rescued(file: int, entry: "RescuedEntry") -> None:
    """Write a file from the rescue area; never the rescued file itself, which may have names."""
    source = os.open(entry.source, _FILE)
    try:
        try:
            operations.clone(file, source)
        except OSError:
            strong = copy_file(file, source)
        else:
            strong = _digest(os.dup(source))
    finally:
        os.close(source)
    if strong != entry.strong:
        raise DamagedStoreError("its rescued copy changed")


def copy_file(copy: int, source: int) -> bytes:
    """Copy what a file holds, and hash it; where it is empty for a MiB, the copy has a hole."""
    end, strong = 0, hashlib.sha256()
    while chunk := os.read(source, _CHUNK):
        strong.update(chunk)
        if len(chunk) < _CHUNK or chunk != _ZEROS:
            operations.write_at(copy, chunk, end)
        end += len(chunk)
    operations.truncate(copy, end)
    return strong.digest()


def modes_of_folder(*entries: "Entry | None") -> "set[int]":
    """The modes that a folder may have from us, also while we have it open for changes."""
    modes = {entry.mode & 0o7777 for entry in entries if entry is not None}
    return modes | {mode | 0o700 for mode in modes}


def look_at(dir_fd: int, name: bytes) -> "State | None":
    try:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        kind = found.st_mode & KIND
        if kind == LINK:
            target = os.readlink(name, dir_fd=dir_fd)
            return State(LINK, 0, hashlib.sha256(target).digest(), len(target))
        if kind != REGULAR:
            return State(kind, found.st_mode & 0o7777, b"")
        strong = _hash_of(dir_fd, name, found.st_mode)
    except OSError as problem:
        if problem.errno in GONE:
            return None
        raise
    return State(REGULAR, found.st_mode & 0o7777, strong, found.st_size, _stamp(found))


def glance_at(dir_fd: int, name: bytes, known: "State") -> "State | None":
    """As `look_at`, but a file with the stamp of a known one is taken for that.

    Enough where a mistake is noticed later: a save may leave the stamp as it was if it comes
    within one tick of the clock.
    """
    try:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return look_at(dir_fd, name)
    return known if _stamp(found) == known.stamp else look_at(dir_fd, name)


def _stamp(found: os.stat_result) -> "Stamp":
    times = found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, *times


def _hash_of(dir_fd: int, name: bytes, mode: int) -> bytes:
    if mode & 0o400 or os.geteuid() == 0:
        return _digest(os.open(name, _FILE, dir_fd=dir_fd))
    stand_in = operations.stand_for(dir_fd, name)
    try:
        operations.chmod_file(stand_in, name, mode & 0o7777 | 0o400)
        try:
            return _digest(os.open(name, _FILE, dir_fd=dir_fd))
        finally:
            operations.chmod_file(stand_in, name, mode & 0o7777)
    finally:
        os.close(stand_in)


def _digest(fd: int) -> bytes:
    try:
        strong = hashlib.sha256()
        while chunk := os.read(fd, _CHUNK):
            strong.update(chunk)
        return strong.digest()
    finally:
        os.close(fd)


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
        operations.chmod_file(fd, name, mode | needed)
        return True

    def shut_files(self) -> None:
        self.shut([path for path, (_, kind, _) in self._open.items() if kind == FOLDER])

    def shut(self, but: "Collection[bytes]" = ()) -> None:
        """Give everything its mode back, but some paths; those below first."""
        for path in sorted(set(self._open) - set(but), reverse=True):
            fd, _, mode = self._open.pop(path)
            try:
                operations.chmod_file(fd, path, mode)
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


SYNC_EACH = 48
"""Up to so many files or folders are synced one by one; more of them with the whole disk.

To sync the whole disk also writes what others have not written yet: with 20 MB of that, which an
agent's build leaves any time, 30 ms (docs/design/0054). One by one costs 0.2 ms each.
"""

_TOLD_EVERY = 16
_IGNORE = b".gitignore"
_WHOLE, _TORN, _OURS = b"nqr", b"w", b"nqrw"
_FOUND = b"takeback-found-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Stage:
    """The folder of one restore, in the root of the work tree."""

    def __init__(self, root: int, name: bytes, objects: "ObjectStore") -> None:
        self._root = root
        self._objects = objects
        self.name = name
        self.fd = -1
        self._unsynced: list[int] = []
        self._many = False
        self.progress: Progress | None = None

    def open(self) -> None:
        if self.fd >= 0 and os.fstat(self.fd).st_nlink:
            return
        self.close()
        found = look_at(self._root, self.name)
        if found is not None and found.kind != FOLDER:
            self.show()
            found = None
        if found is None:
            operations.mkdir(self.name, dir_fd=self._root)
        self.fd = os.open(self.name, _DIRECTORY, dir_fd=self._root)
        if os.fstat(self.fd).st_mode & 0o077:
            operations.fchmod(self.fd, 0o700)
        if look_at(self.fd, _IGNORE) is None:
            file = operations.create(_IGNORE, dir_fd=self.fd)
            try:
                operations.write(file, b"*\n")
            finally:
                os.close(file)

    def ignores_case(self) -> bool:
        return kind_at(self.fd, _IGNORE.upper()) is not None

    def is_there(self) -> bool:
        return kind_at(self._root, self.name) is not None

    def show(self) -> bytes:
        """Let our name be free; what is there gets one that everybody can see, and which."""
        aside = _FOUND + self.name[len(PREFIX) :]
        while look_at(self._root, aside) is not None:
            aside += b"~"
        operations.move(self._root, self.name, self._root, aside)
        return aside

    def close(self) -> None:
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
            rescued = entry.target if isinstance(entry, RescuedEntry) else None
            target = self._objects.content(entry) if rescued is None else rescued
            operations.symlink(target, name, dir_fd=self.fd)
            give_link(self.fd, name, owner)
        else:
            mode = self._write_file(name, entry, owner, trusted)
        if keep_mtime or isinstance(entry, RescuedEntry):
            operations.set_mtime(name, entry.mtime, dir_fd=self.fd)
        return mode

    def _write_file(
        self,
        name: bytes,
        entry: "Entry",
        owner: "Owner | None",
        trusted: "Owner | None",
    ) -> int:
        file = operations.create(name, dir_fd=self.fd)
        try:
            mode = mode_for(entry.mode, give(file, owner), trusted)
            if isinstance(entry, RescuedEntry):
                write_rescued(file, entry)
            else:
                write_content(file, self._objects, entry)
            operations.fchmod(file, mode & 0o7777)
        except BaseException:
            os.close(file)
            raise
        self._unsynced.append(file)
        if len(self._unsynced) > SYNC_EACH:
            self._many = True
            self._close_files()
        elif not self._many:
            operations.begin_to_write(file)
        return mode

    def sync(self) -> None:
        if self._many:
            operations.syncfs(self.fd)
        else:
            for file in self._unsynced:
                operations.fsync(file)
        self._close_files()
        operations.fsync(self.fd)

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
        for name in map(os.fsencode, os.listdir(self.fd)):
            if name[:1] == _TORN and _number(name, _TORN) is not None:
                operations.unlink(name, dir_fd=self.fd)

    def names(self) -> "Iterator[tuple[int, bytes]]":
        """What the folder holds: the number of its path, and its name here."""
        for name in sorted(map(os.fsencode, os.listdir(self.fd))):
            number = _number(name)
            if number is not None:
                yield number, name

    def held(self) -> "Iterator[tuple[int, bytes, State]]":
        for number, name in self.names():
            state = look_at(self.fd, name)
            if state is not None:
                yield number, name, state

    def is_being_written(self, name: bytes) -> bool:
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
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_size

    def read(self, name: bytes) -> "Iterator[bytes]":
        """What a file of the folder holds, or where a link leads."""
        if kind_at(self.fd, name) == LINK:
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
        operations.unlink(name, dir_fd=self.fd)

    def each(self, things: "Sequence[T]", doing: str) -> "Iterator[T]":
        """One thing after the other, and now and then how far that is."""
        for done, thing in enumerate(things):
            if self.progress is not None and done % _TOLD_EVERY == 0:
                self.progress(doing, done, len(things))
            yield thing

    def remove(self) -> None:
        """Remove the folder with all that we or a restore put there; other things stay."""
        if self.fd < 0:
            return
        for name in self.each([os.fsencode(name) for name in os.listdir(self.fd)], CLEANING):
            ours = name == _IGNORE or _number(name, _OURS) is not None
            if ours and kind_at(self.fd, name) != FOLDER:
                operations.unlink(name, dir_fd=self.fd)
        self.close()
        operations.rmdir(self.name, dir_fd=self._root)
        # The lock's mark may be gone sooner than the folder, if the power is cut.
        operations.fsync(self._root)

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
