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
    DecisionNeededError,
    ProjectIdentityError,
    TakebackError,
    UnknownReferenceError,
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
    from takeback.worktree.git import user_git

    return Found(user_git.top_of_repository(start) or start, None)


def root_at(id: str, path: bytes) -> Root:
    here = os.lstat(path)
    return Root(id, here.st_dev, here.st_ino, path, birth_of(path, here))


def birth_of(path: bytes, here: os.stat_result) -> int:
    """When a folder was made, in nanoseconds; 0 where nobody can tell."""
    from takeback.disk import machine

    return machine.birth_of(path, here)


def refuse_lookalike(home: Home, path: bytes) -> None:
    """Ask before a new history begins in what looks like a known project that lost its place."""
    names = _names(path)
    for root in home.roots():
        if _is_like(home, root, names):
            raise _question(root, path, "looks like a copy of")


def _is_like(home: Home, root: Root, names: "set[bytes]") -> bool:
    """Whether a project lost its place, and most of what was at its top has one of these names."""
    if root.detached or os.path.lexists(root.path):
        return False
    before = {name for name, _, _ in known_entries(home, root)}
    return len(before) >= _ENOUGH and len(before & names) * 5 >= len(before) * 4


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
    ordered = sorted(known, key=lambda root: root.detached)
    at_place = [root for root in ordered if root.path == path]
    for root in at_place:
        found = _match_path(home, root, here)
        if found is not None:
            return found
    # Whatever was at this place before: a folder that proves to be another project is that one.
    for root in ordered:
        if root.path != path and root.is_folder(here):
            found = _match_inode(home, root, here, path)
            if found is not None:
                return found
    for root in at_place:
        if not root.detached:
            raise _question(root, root.path, "replaced the folder of")
    return None


def _match_path(home: Home, root: Root, here: os.stat_result) -> "Found | None":
    """Decide whether a folder at the path of a known project is that project."""
    if root.is_folder(here):
        if root.detached:
            return _moved(root, root.path) if _is_proven(home, root, here, root.path) else None
        return None if is_remade(home, root, here) else Found(root.path, root)
    if _is_mounted_again(home, root, here):
        # Some file systems get another device number at each mount.
        return _moved(root, root.path)
    return None


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
    knows_nothing = not birth and not root.detached and not any(known_entries(home, root))
    return knows_nothing or agrees(home, root, root.path)


def _match_inode(home: Home, root: Root, here: os.stat_result, path: bytes) -> "Found | None":
    """Decide whether a folder with the inode of a known project is that one, moved."""
    if root.is_there() and not root.detached:
        return Found(path, root)
    if _is_proven(home, root, here, path):
        return _moved(root, path)
    has_birth = home.birth(root) and birth_of(path, here)
    is_unknown = not has_birth and not os.path.lexists(home.store_path(root.id) + b"/index")
    if is_unknown and not root.detached:
        raise _question(root, path, "may be")
    return None


def is_moved_to(home: Home, root: Root, path: bytes) -> bool:
    """Whether the folder of a project that is not at its place is this one."""
    try:
        here = os.lstat(path)
    except OSError:
        return False
    return root.is_folder(here) and _is_proven(home, root, here, path)


def _is_proven(home: Home, root: Root, here: os.stat_result, path: bytes) -> bool:
    """Whether a folder with the inode of a project is that very folder, and did not just get it."""
    known = home.birth(root)
    birth = birth_of(path, here) if known else 0
    return birth == known if birth else agrees(home, root, path)


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
        path=path,
        project=root.id,
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
            "restore it from a backup, with all its files",
            Action("new-history-at", path=here),
        ),
    )


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


class Opened(Value):
    """A project that was found or made. `instead_of` is the one whose place a new one took."""

    root: Root
    home: Home
    instead_of: str = ""


def open(path: bytes, *, home: bytes, user_home: bytes = b"", begin: bool = False) -> Opened:
    """The project that `path` is in, made on first use.

    With `begin` nobody is asked whose history it is: a new one begins, and the old one stays.
    """
    place = Home(home)
    _require_folder(path, place)
    try:
        found = locate(place, path) if place.exists() else None
    except ProjectIdentityError:
        if not begin:
            raise
        found = None
    if found is not None and found.root is not None:
        _tidy(place)
        if not found.is_registered:
            with held_home(place):
                attach(place, found.root)
        return Opened(found.root, place)
    return _create(place, path, user_home, begin=begin)


def find(path: bytes, *, home: bytes) -> "tuple[Root, Home] | None":
    """The project that `path` is in, or None; makes nothing, and remembers where it is now."""
    place = Home(home)
    _require_folder(path, place)
    if not place.exists():
        return None
    found = locate(place, path)
    if found.root is None:
        return None
    if found.moved is not None:
        try:
            with held_home(place, patience=0):
                attach(place, found.root)
        except (TakebackError, OSError):
            pass  # whoever only reads does without
    return found.root, place


def find_gone(path: bytes, home: Home) -> "Root | None":
    """The project that `path` was in, if its folder is not there any more."""
    known = sorted(home.known_roots() if home.exists() else [], key=lambda root: root.detached)
    for start in dict.fromkeys((os.path.realpath(path), os.path.abspath(path))):
        for folder in _upwards(start):
            if os.path.isdir(folder):
                break
            for root in known:
                if root.path == folder:
                    return root
    return None


def root_of(path: bytes, *, home: bytes, user_home: bytes = b"") -> bytes:
    """The root of the project that `path` is in, or would be in; makes nothing."""
    place = Home(home)
    _require_folder(path, place)
    place.exists()
    found = locate(place, path)
    if found.root is not None:
        return found.root.path
    homes.refuse_unsafe(os.path.realpath(path), place, user_home)
    return _chosen(found.path, path, user_home)


def relocate(
    path: bytes,
    *,
    home: bytes,
    user_home: bytes = b"",
    join: "str | None" = None,
    yes: bool = False,
) -> Opened:
    """Let the history of a known project go on in this folder, or begin a new one here.

    Without `yes` it is an error if that takes a history from a folder that it belongs to.
    """
    place = Home(home)
    _require_folder(path, place)
    here = os.path.realpath(path)
    homes.refuse_unsafe(here, place, user_home)
    place.create()
    with held_home(place):
        known = _to_join(place, join) if join is not None else None
        if known is not None:
            _require_usable(place, known)
            here = _place_to_join(place, known, here)
        if not yes:
            _require_consent(place, known, here)
        root = root_at(known.id, here) if known is not None else _begin_anew(place, here)
        detached = attach(place, root)
        _require_joined(place, root)
    return Opened(root, place, detached)


def attach(place: Home, root: Root) -> str:
    """Let a history be that of a folder. What was there is detached; its id. With the lock held.

    A history is detached with its inode first: if this process dies, its folder is still known.
    """
    others = [o for o in place.known_roots() if o.path == root.path and o.id != root.id]
    for other in others:
        if not other.detached:
            place.record(other.replace(detached=True, birth=place.birth(other)))
    place.record(root)
    for other in others:
        is_same = (other.device, other.inode) == (root.device, root.inode)
        if is_same and place.birth(other.replace(detached=True)) in (0, root.birth):
            # This folder is its own: it must not be found by it any more.
            place.record(other.replace(detached=True, inode=0))
    return next((other.id for other in others if not other.detached), "")


def detached_at(path: bytes, home: Home) -> "list[str]":
    """The histories that were in a folder before another one began by itself; usable ones."""
    at = [root.id for root in home.roots() if root.detached and root.inode and root.path == path]
    return [id for id in at if is_usable(home, id)]


def find_unusable(path: bytes, *, home: bytes) -> "bytes | None":
    """The folder of the project that `path` is in, if its store cannot be used any more."""
    place = Home(home)
    known = [root for root in (*place.roots(), *place.roots_from_stores()) if not root.detached]
    for folder in _upwards(os.path.realpath(path)):
        for root in known:
            if root.path == folder:
                return None if is_usable(place, root.id) else folder
    return None


def is_usable(place: Home, id: str) -> bool:
    """Whether the store of a project can be opened."""
    return stores.counts_if_usable(place.store_path(id)) is not None


def _require_usable(place: Home, known: Root) -> None:
    try:
        stores.counts(place.store_path(known.id))
    except DamagedStoreError as problem:
        what = f"project `{known.id}` cannot be joined, and nothing was changed: {problem}"
        raise DamagedStoreError(what, hint=Action("projects")) from None


def _require_consent(place: Home, known: "Root | None", here: bytes) -> None:
    """An error if folders would lose a history that is their own, and can be used."""
    try:
        found = _match(place, place.known_roots(), here)
    except ProjectIdentityError:
        found = None
    own = found.root.id if found is not None and found.root is not None else ""
    is_back = known is not None and (
        (known.detached and known.path == here) or _is_like(place, known, _names(here))
    )
    is_same = known is not None and known.id == own
    where = os.fsdecode(here)
    hint = (
        Action("new-history-anyway", path=where)
        if known is None
        else Action("join-anyway", id=known.id, path=where)
    )
    lost, hints = [], [hint]
    counts = stores.counts_if_usable(place.store_path(own)) if own and not is_same else None
    checkpoints, turns = counts or (0, 0)
    if turns or checkpoints > (1 if is_back else 0):  # the first one is made unasked
        lost.append(f"`{where}` has a history already: that of project `{own}`")
        hints.append(Action("join-back", id=own, path=where))
    if known is not None and _has_folder(place, known, here):
        lost.append(
            f"project `{known.id}` belongs to `{os.fsdecode(known.path)}`, which still exists "
            "and would lose its history"
        )
    if lost:
        raise DecisionNeededError("; ".join(lost), hint=tuple(hints))


def _has_folder(place: Home, known: Root, here: bytes) -> bool:
    is_elsewhere = not known.detached and known.path != here and known.is_there()
    return is_elsewhere and not is_remade(place, known, os.lstat(known.path))


def _create(place: Home, path: bytes, user_home: bytes, *, begin: bool) -> Opened:
    """Make the store of a new project, unless somebody else just did."""
    homes.refuse_unsafe(os.path.realpath(path), place, user_home)
    place.create()
    with held_home(place):
        for root in place.roots_from_stores()[:1]:
            place.record(root)  # makes a lost registry again
        instead_of = ""
        try:
            found = locate(place, path)
            if found.root is not None:
                return Opened(found.root, place)
            chosen = _chosen(found.path, path, user_home)
            refuse_lookalike(place, chosen)
        except ProjectIdentityError as question:
            if not begin:
                raise
            chosen, instead_of = question.path, question.project
            homes.refuse_unsafe(chosen, place, user_home)
        id = place.unclaimed() or ids.from_entropy(os.urandom(8))
        root = root_at(id, chosen)
        stores.create(place.store_path(root.id))
        attach(place, root)
        return Opened(root, place, instead_of)


def _chosen(found: bytes, path: bytes, user_home: bytes) -> bytes:
    if found in (b"/", os.path.realpath(user_home)):
        # A repository of dotfiles around everything does not make everything one project.
        return os.path.realpath(path)
    return found


def _to_join(place: Home, id: str) -> Root:
    """The known project whose id begins like this."""
    found = [root for root in place.known_roots() if id and root.id.startswith(id)]
    if len(found) != 1:
        raise UnknownReferenceError(
            f"there is {'no' if not found else 'more than one'} project `{id}`",
            hint=Action("projects"),
        )
    return found[0]


def _place_to_join(place: Home, known: Root, here: bytes) -> bytes:
    """The folder that a history shall go on in; said in a subfolder, it is about its own folder."""
    if not here.startswith(known.path + b"/"):
        return here
    is_own = known.is_there() and not known.detached
    if is_own and not is_remade(place, known, os.lstat(known.path)):
        raise TakebackError(
            f"`{os.fsdecode(here)}` is inside `{os.fsdecode(known.path)}`, which is project "
            f"`{known.id}`: it is part of that history already",
            hint=("nothing to join", Action("log")),
        )
    return known.path


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
            hint="work in that project: two projects cannot cover the same file",
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


def _require_folder(path: bytes, home: Home) -> None:
    if not os.path.isdir(path):
        gone, shown = find_gone(path, home), os.fsdecode(path)
        if gone is None:
            raise UnknownReferenceError(
                f"there is no folder `{shown}`", hint="name an existing folder"
            )
        where = os.fsdecode(gone.path)
        raise UnknownReferenceError(
            f"there is no folder `{shown}`; project `{gone.id}` was there",
            hint=Action("undo-at", path=where),
        )
