"""Which project a folder belongs to.

A project's root is known by device and inode first and by path second, so that a folder that
was moved finds its history and two folders never share one. An inode alone proves little, since
a removed folder's number is given to a new one; what is inside must agree.
"""

import os

from takeback.errors import ProjectIdentityError, UnsafeRootError
from takeback.model.tree import KIND, REGULAR
from takeback.store import home as homes
from takeback.store.home import Home, Root
from takeback.store.layout import RECORD, unpack_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_INDEX_HEADER = 128
_ENOUGH_OF_INDEX = 64 << 20
_ENOUGH = 3
_LOOK_AT = 32


class Found:
    """The answer: a project that we know, or the folder that would become a new one."""

    __slots__ = ("is_registered", "path", "root")

    def __init__(self, path: bytes, root: "Root | None", *, is_registered: bool = True) -> None:
        self.path = path
        self.root = root
        self.is_registered = is_registered
        """Whether the registry says so, too; if not, it should be put right."""


def find(home: Home, start: bytes) -> Found:
    """The nearest project at or above `start`, else the folder where a new one begins."""
    start = os.path.realpath(start)
    found = _nearest(home, home.roots(), start)
    if found is not None:
        return found
    # The registry may have been lost; the stores themselves know better, but take longer.
    found = _nearest(home, home.roots_from_stores(), start)
    if found is not None:
        found.is_registered = False
        return found
    from takeback.store import usergit

    return Found(usergit.top_of_repository(start) or start, None)


def refuse_unsafe(path: bytes, home: Home, user_home: bytes) -> None:
    """An error for folders that must never become a project."""
    shown = os.fsdecode(path)
    if path == b"/":
        raise UnsafeRootError(
            "`/` cannot be a project: it is the whole machine",
            hint="go into a folder with your work and try again, or name one with -C DIR",
        )
    if user_home and path == os.path.realpath(user_home):
        raise UnsafeRootError(
            f"your home folder `{shown}` cannot be a project: it holds far more than one",
            hint="go into a folder with your work and try again, or name one with -C DIR",
        )
    refuse_inside_store(path, home)


def refuse_inside_store(path: bytes, home: Home) -> None:
    """An error for anything at or below the folder of all stores."""
    inside = os.path.realpath(home.path)
    if (os.path.realpath(path) + b"/").startswith(inside + b"/"):
        raise UnsafeRootError(
            f"`{os.fsdecode(path)}` is inside Takeback's own store",
            hint="name a folder outside of it",
        )


def refuse_lookalike(home: Home, path: bytes) -> None:
    """Ask before a new history begins in what looks like a known project that lost its place."""
    names = _names(path)
    for root in home.roots():
        if not os.path.lexists(root.path):
            before = {name for name, _, _ in known_entries(home, root)}
            if len(before) >= _ENOUGH and len(before & names) * 5 >= len(before) * 4:
                raise _question(root, path, "looks like a copy of")


def _nearest(home: Home, known: "list[Root]", start: bytes) -> "Found | None":
    for path in _upwards(start):
        found = _match(home, known, path)
        if found is not None:
            return found
    return None


def _match(home: Home, known: "list[Root]", path: bytes) -> "Found | None":
    try:
        here = os.lstat(path)
    except OSError:
        return None
    for root in known:
        if root.path == path:
            return _match_path(home, root, here)
    for root in known:
        if root.is_folder(here):
            found = _match_inode(home, root, here, path)
            if found is not None:
                return found
    return None


def _match_path(home: Home, root: Root, here: os.stat_result) -> Found:
    """Decide whether a folder at the path of a known project is that project."""
    if root.is_folder(here):
        return Found(root.path, root)
    if root.inode == here.st_ino and agrees(home, root, root.path):
        # Some file systems get another device number at each mount.
        return Found(root.path, _at(root, here, root.path), is_registered=False)
    raise _question(root, root.path, "is at the place of, but is another folder than,")


def _match_inode(home: Home, root: Root, here: os.stat_result, path: bytes) -> "Found | None":
    """Decide whether a folder with the inode of a known project is that one, moved."""
    if root.is_there():
        return Found(path, root)
    if agrees(home, root, path):
        return Found(path, _at(root, here, path), is_registered=False)
    if not os.path.lexists(home.store_path(root.id) + b"/index"):
        raise _question(root, path, "may be")
    return None


def agrees(home: Home, root: Root, path: bytes) -> bool:
    """Whether what is in a folder is what the project's stat cache saw there last."""
    looked = same = untouched = 0
    for name, inode, ctime in known_entries(home, root):
        try:
            found = os.lstat(path + b"/" + name)
        except OSError:
            continue
        looked += 1
        same += found.st_ino == inode
        untouched += (found.st_ino, found.st_ctime_ns) == (inode, ctime)
    # Inodes may all have been given to new files; a change time nobody can set back.
    return same * 2 > looked and untouched > 0


def known_entries(home: Home, root: Root) -> "Iterator[tuple[bytes, int, int]]":
    """(name, inode, change time) of what was at the top of a project when last seen.

    Some are enough: only the beginning of the stat cache is read.
    """
    data = homes.read_small(home.store_path(root.id) + b"/index", limit=_ENOUGH_OF_INDEX)
    at = _INDEX_HEADER
    while at + RECORD.size <= len(data):
        length, depth, _, _, _, _, ctime, _, inode, *_ = RECORD.unpack_from(data, at)
        if not length or at + length > len(data):
            return
        if depth == 0:
            for fields, name in unpack_record(data, at)[2][:_LOOK_AT]:
                if fields[4] & KIND == REGULAR:
                    yield name, fields[0], fields[3]
        elif depth == 1:
            yield unpack_record(data, at)[1], inode, ctime
        at += length


def _question(root: Root, path: bytes, how: str) -> ProjectIdentityError:
    here, there = os.fsdecode(path), os.fsdecode(root.path)
    return ProjectIdentityError(
        f"`{here}` {how} project `{root.id}` (`{there}`)",
        hint="if its history belongs to this folder: takeback relocate --join "
        f"{root.id}; to begin a new history here: takeback relocate --new",
    )


def _at(root: Root, here: os.stat_result, path: bytes) -> Root:
    return Root(root.id, here.st_dev, here.st_ino, path)


def _names(path: bytes) -> "set[bytes]":
    try:
        return set(os.listdir(path))
    except OSError:
        return set()


def _upwards(path: bytes) -> "Iterator[bytes]":
    yield path
    while path != b"/":
        path = os.path.dirname(path)
        yield path
