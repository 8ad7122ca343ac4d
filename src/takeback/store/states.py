"""What is at a path of the work tree at this moment: kind, mode, and the hash of what it holds."""

import errno
import hashlib
import os

from takeback.model.swap import State
from takeback.model.tree import KIND, LINK, REGULAR, SETUID
from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.swap import Owner, Stamp
    from takeback.model.tree import Entry


GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says of a path that leads nowhere, or through something that is no folder."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


def fold(name: bytes) -> bytes:
    """A name as a disk sees it that does not tell upper from lower case, nor forms of letters."""
    from unicodedata import normalize

    return normalize("NFD", os.fsdecode(name)).casefold().encode("utf-8", "surrogateescape")


def owner_at(dir_fd: int, name: bytes) -> "Owner | None":
    """Whose an entry of an open folder is; None if there is none."""
    try:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError as problem:
        if problem.errno in GONE:
            return None
        raise
    return found.st_uid, found.st_gid


def give(fd: int, owner: "Owner | None") -> "Owner":
    """Let a new file or folder belong to somebody, as far as we may; whose it is then."""
    found = os.fstat(fd)
    if owner is not None and owner != (found.st_uid, found.st_gid):
        # Only root may give something away; anybody may choose among groups of his own.
        who = owner[0] if os.geteuid() == 0 else -1
        try:
            fsops.give_to(fd, who, owner[1])
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
    """Let a new link belong to somebody, as far as we may."""
    if os.geteuid() == 0 and owner is not None and owner != owner_at(dir_fd, name):
        try:
            fsops.give_link_to(name, *owner, dir_fd=dir_fd)
        except PermissionError:
            return  # such as on a network disk that does not believe in root


def modes_of_folder(*entries: "Entry | None") -> "set[int]":
    """The modes that a folder may have from us, also while we have it open for changes."""
    modes = {entry.mode & 0o7777 for entry in entries if entry is not None}
    return modes | {mode | 0o700 for mode in modes}


def look_at(dir_fd: int, name: bytes) -> "State | None":
    """What an entry of an open folder is; None if there is none."""
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


def kind_at(dir_fd: int, name: bytes) -> "int | None":
    """Of which kind an entry of an open folder is; None if there is none."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode & KIND
    except OSError as problem:
        if problem.errno in GONE:
            return None
        raise


def _hash_of(dir_fd: int, name: bytes, mode: int) -> bytes:
    """The hash of a file's content, also of one that forbids its owner to read it."""
    if mode & 0o400 or os.geteuid() == 0:
        return _digest(os.open(name, _FILE, dir_fd=dir_fd))
    stand_in = fsops.stand_for(dir_fd, name)
    try:
        fsops.chmod_file(stand_in, name, mode & 0o7777 | 0o400)
        try:
            return _digest(os.open(name, _FILE, dir_fd=dir_fd))
        finally:
            fsops.chmod_file(stand_in, name, mode & 0o7777)
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
