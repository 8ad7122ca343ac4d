"""Which project a folder belongs to.

A project's root is known by device, inode and time of birth first and by path second, so that a
folder that was moved finds its history and two folders never share one. An inode alone proves
little, since a removed folder's number is given to a new one, and a device number even less, since
a disk may get another one at each mount. Where the file system does not tell when a folder was
made, what is inside must agree.

Find the project that a folder is in, make it on first use, or let it move.
"""

import os

from takeback import store as stores
from takeback.disk import home as homes
from takeback.disk.home import Home, Root
from takeback.disk.lock import PATIENCE, Held, Lock
from takeback.errors import (
    DamagedStoreError,
    ProjectIdentityError,
    TakebackError,
    UnknownReferenceError,
    UnsafeRootError,
    UsageError,
)
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.tree import KIND, REGULAR
from takeback.model.value import Value
from takeback.worktree.folders import ENTRY, RECORD, unpack_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_INDEX_HEADER = 128
_ENOUGH_OF_INDEX = 64 << 20
_BEGINNING_OF_INDEX = 64 << 10
_ENOUGH = 3
_LOOK_AT = 32
_STATX_BTIME, _HERE, _NO_FOLLOW = 0x800, -100, 0x100


class Found(Value):
    """The answer: a project that we know, or the folder that would become a new one."""

    path: bytes
    root: "Root | None"
    moved: "Root | None" = None
    """The project as it was known before, if its folder moved."""
    is_registered: bool = True
    """Whether the registry says so, too; if not, it should be put right."""


def locate(home: Home, start: bytes) -> Found:
    """The nearest project at or above `start`, else the folder where a new one begins."""
    start = os.path.realpath(start)
    try:
        told = _nearest(home, home.roots(), start)
    except ProjectIdentityError:
        told = None  # asked below, if the stores agree
    known = (told.moved or told.root) if told is not None else None
    if told is not None and known is not None and home.confirms(known):
        return told
    # The registry may be lost or damaged; the stores themselves know better, but take longer.
    found = _nearest(home, home.roots_from_stores(), start)
    if found is not None:
        return found.replace(is_registered=False)
    if told is not None and told.root is not None and _is_lost(home, told.root):
        raise _lost(home, told.root)
    from takeback.worktree import user_git

    return Found(user_git.top_of_repository(start) or start, None)


def root_at(id: str, path: bytes) -> Root:
    here = os.lstat(path)
    return Root(id, here.st_dev, here.st_ino, path, birth_of(path, here))


def birth_of(path: bytes, here: os.stat_result) -> int:
    """When a folder was made, in nanoseconds; 0 where nobody can tell."""
    told = getattr(here, "st_birthtime", None)
    if told is not None:
        return max(0, int(told * 1_000_000_000))
    from takeback.disk import machine

    return 0 if machine.copies_up(path) else max(0, _statx_birth(path))


def _statx_birth(path: bytes) -> int:
    # Only when a project is made, moved or in doubt: `ctypes` takes milliseconds to import.
    try:
        import ctypes

        statx = ctypes.CDLL(None).statx
    except (ImportError, OSError, AttributeError):
        return 0
    told = ctypes.create_string_buffer(256)
    if statx(_HERE, path, _NO_FOLLOW, _STATX_BTIME, told):
        return 0
    from struct import unpack_from

    mask, seconds, nanoseconds = unpack_from("=I76xqI", told)
    return int(seconds * 1_000_000_000 + nanoseconds) if mask & _STATX_BTIME else 0


def refuse_unsafe(path: bytes, home: Home, user_home: bytes) -> None:
    """An error for folders that must never become a project."""
    shown = os.fsdecode(path)
    if path == b"/":
        raise UnsafeRootError(
            "`/` cannot be a project: it is the whole machine",
            hint=Action("choose-folder"),
        )
    if user_home and path == os.path.realpath(user_home):
        raise UnsafeRootError(
            f"your home folder `{shown}` cannot be a project: it holds far more than one",
            hint=Action("choose-folder"),
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
        # One without an inode was set aside: another project has its folder.
        if root.inode and not os.path.lexists(root.path):
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
        if not is_remade(home, root, here):
            return Found(root.path, root)
    elif _is_mounted_again(home, root, here):
        # Some file systems get another device number at each mount.
        return _moved(root, root.path)
    raise _question(root, root.path, "is at the place of, but is another folder than,")


def is_remade(home: Home, root: Root, here: os.stat_result) -> bool:
    """Whether the folder was removed and another one was made, which got its inode.

    One that was emptied is still the same. Asked at each start, so the cheap evidence is first.
    """
    data = homes.read_small(home.store_path(root.id) + b"/index", limit=_BEGINNING_OF_INDEX)
    if len(data) >= _INDEX_HEADER + RECORD.size:
        _, _, _, _, _, _, ctime, _, inode, *_ = RECORD.unpack_from(data, _INDEX_HEADER)
        if (inode, ctime) == (here.st_ino, here.st_ctime_ns):
            return False
    if any(_is_untouched(root.path + b"/" + name, *stamps) for name, *stamps in _entries_in(data)):
        return False
    birth = home.birth(root)
    return birth > 0 and birth_of(root.path, here) not in (0, birth)


def _is_untouched(path: bytes, inode: int, ctime: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_ino, found.st_ctime_ns) == (inode, ctime)


def _is_mounted_again(home: Home, root: Root, here: os.stat_result) -> bool:
    # Without the inode a birth proves nothing: folders made at the same moment have the same.
    if root.inode != here.st_ino:
        return False
    known = home.birth(root)
    birth = birth_of(root.path, here) if known else 0
    if birth and birth == known:
        return True
    knows_nothing = not birth and not any(known_entries(home, root))
    return knows_nothing or agrees(home, root, root.path)


def _match_inode(home: Home, root: Root, here: os.stat_result, path: bytes) -> "Found | None":
    """Decide whether a folder with the inode of a known project is that one, moved."""
    if root.is_there():
        return Found(path, root)
    known = home.birth(root)
    birth = birth_of(path, here) if known else 0
    if birth:
        return _moved(root, path) if birth == known else None
    if agrees(home, root, path):
        return _moved(root, path)
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
    return _entries_in(
        homes.read_small(home.store_path(root.id) + b"/index", limit=_ENOUGH_OF_INDEX)
    )


def _entries_in(data: bytes) -> "Iterator[tuple[bytes, int, int]]":
    at = _INDEX_HEADER
    while at + RECORD.size <= len(data):
        length, depth, _, count, _, _, ctime, _, inode, *_ = RECORD.unpack_from(data, at)
        if not RECORD.size + count * ENTRY.size < length <= len(data) - at:
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
        hint=(Action("join", id=root.id, path=here), Action("new-history-at", path=here)),
    )


def _is_lost(home: Home, root: Root) -> bool:
    from takeback.disk.home import SUFFIX

    # One that somebody removed, and died before the registry knew, is not missed.
    path = home.store_path(root.id)
    return not os.path.lexists(path) and not os.path.lexists(path + SUFFIX)


def _lost(home: Home, root: Root) -> DamagedStoreError:
    here = os.fsdecode(root.path)
    return DamagedStoreError(
        f"the store of `{here}` is gone: there is no `{os.fsdecode(home.store_path(root.id))}`",
        hint=(
            "bring it back from a backup, with everything in it",
            Action("new-history-at", path=here),
        ),
    )


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _moved(root: Root, path: bytes) -> Found:
    return Found(path, root_at(root.id, path), moved=root, is_registered=False)


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


def open(path: bytes, *, home: bytes, user_home: bytes = b"") -> "tuple[Root, Home]":
    """The project that `path` is in, made on first use."""
    place = Home(home)
    _require_folder(path)
    found = locate(place, path) if place.exists() else None
    if found is not None and found.root is not None:
        _tidy(place)
        if not found.is_registered:
            _record(place, found.root)
        return found.root, place
    return _create(place, path, user_home), place


def find(path: bytes, *, home: bytes) -> "tuple[Root, Home] | None":
    """The project that `path` is in, or None; makes nothing."""
    place = Home(home)
    _require_folder(path)
    if not place.exists():
        return None
    found = locate(place, path)
    return (found.root, place) if found.root is not None else None


def root_of(path: bytes, *, home: bytes, user_home: bytes = b"") -> bytes:
    """The root of the project that `path` is in, or would be in; makes nothing."""
    place = Home(home)
    _require_folder(path)
    place.exists()
    found = locate(place, path)
    if found.root is not None:
        return found.root.path
    refuse_unsafe(os.path.realpath(path), place, user_home)
    return _chosen(found.path, path, user_home)


def relocate(
    path: bytes, *, home: bytes, user_home: bytes = b"", join: "str | None" = None
) -> "tuple[Root, Home]":
    """Let the history of a known project go on in this folder, or begin a new one here."""
    place = Home(home)
    _require_folder(path)
    here = os.path.realpath(path)
    refuse_unsafe(here, place, user_home)
    place.create()
    with held_home(place):
        root = _join(place, join, here) if join is not None else _begin_anew(place, here)
        aside = _set_aside(place, root)
        place.record(root)
        for other in aside:
            # Its number is that of this folder: it must not be found by it any more.
            place.record(Root(other.id, other.device, 0, other.path))
        _require_joined(place, root)
    return root, place


def _create(place: Home, path: bytes, user_home: bytes) -> Root:
    """Make the store of a new project, unless somebody else just did."""
    refuse_unsafe(os.path.realpath(path), place, user_home)
    place.create()
    with held_home(place):
        for root in place.roots_from_stores()[:1]:
            place.record(root)  # makes a lost registry again
        found = locate(place, path)
        if found.root is not None:
            return found.root
        chosen = _chosen(found.path, path, user_home)
        refuse_lookalike(place, chosen)
        id = place.unclaimed() or ids.from_entropy(os.urandom(8))
        root = root_at(id, chosen)
        stores.create(place.store_path(root.id))
        place.record(root)
        return root


def _chosen(found: bytes, path: bytes, user_home: bytes) -> bytes:
    if found in (b"/", os.path.realpath(user_home)):
        # A repository of dotfiles around everything does not make everything one project.
        return os.path.realpath(path)
    return found


def _join(place: Home, id: str, here: bytes) -> Root:
    """The known project `id`, from now on in the folder `here`."""
    found = [root for root in place.known_roots() if root.id == id]
    if not found:
        raise UnknownReferenceError(f"there is no project `{id}`", hint=Action("projects"))
    known = found[0]
    if here.startswith(known.path + b"/"):
        if known.is_there() and not is_remade(place, known, os.lstat(known.path)):
            raise TakebackError(
                f"`{os.fsdecode(here)}` is inside `{os.fsdecode(known.path)}`, which is project "
                f"`{id}`: it is part of that history already",
                hint=("there is nothing to join", Action("log")),
            )
        here = known.path  # the question was about this one
    return root_at(id, here)


def _set_aside(place: Home, root: Root) -> "list[Root]":
    """Let go of the place of others that were at that of `root`; those with its very folder."""
    same = []
    for other in place.known_roots():
        if other.path == root.path and other.id != root.id:
            before = other.path + b" (before)"
            moved = Root(other.id, other.device, other.inode, before, place.birth(other))
            place.record(moved)
            if (other.device, other.inode) == (root.device, root.inode):
                same.append(moved)
    return same


def _require_joined(place: Home, root: Root) -> None:
    """An error unless the folder has from now on the history that was asked for."""
    found = locate(place, root.path).root
    if found is None or found.id != root.id:
        raise TakebackError(
            f"`{os.fsdecode(root.path)}` is not project `{root.id}` now, "
            f"but {f'project `{found.id}`' if found else 'none that is known'}",
            hint=Action("doctor"),
        )


def _begin_anew(place: Home, here: bytes) -> Root:
    """A new project in the folder `here`; one that was there keeps its history elsewhere."""
    above = locate(place, os.path.dirname(here)).root
    if above is not None:
        raise UsageError(
            f"`{os.fsdecode(here)}` is inside project `{above.id}`, which covers it",
            hint="no two projects cover one file; work with the one above",
        )
    # What a full disk left of an earlier try is used again, so that it does not pile up.
    root = root_at(place.unclaimed() or ids.from_entropy(os.urandom(8)), here)
    stores.create(place.store_path(root.id))
    return root


def held_home(place: Home, patience: float = PATIENCE, lock: "Lock | None" = None) -> Held:
    """The lock of the home folder, for a `with` block; what a dead holder left is removed."""
    return Held(
        lock or Lock(place.lock_path),
        recover=lambda died: place.clean_up() if died else None,
        patience=patience,
    )


def _tidy(place: Home) -> None:
    """Remove what a process left that died at work on the home folder, unless one is at it."""
    if Lock(place.lock_path).is_marked:
        try:
            with held_home(place, patience=0):
                pass
        except (TakebackError, OSError):
            pass  # the next one will; nobody who wants to work is kept from it


def _record(place: Home, root: Root) -> None:
    with held_home(place):
        place.record(root)


def _require_folder(path: bytes) -> None:
    if not os.path.isdir(path):
        raise UnknownReferenceError(
            f"there is no folder `{os.fsdecode(path)}`", hint="name an existing folder"
        )
