"""Find the project that a folder is in, make it on first use, or let it move."""

import os

from takeback.errors import TakebackError, UnknownReferenceError, UsageError
from takeback.model import ids
from takeback.store import identity
from takeback.store import store as stores
from takeback.store.home import Home, Root
from takeback.store.lock import PATIENCE, Held, Lock


def open(path: bytes, *, home: bytes, user_home: bytes = b"") -> "tuple[Root, Home]":
    """The project that `path` is in, made on first use."""
    place = Home(home)
    _require_folder(path)
    found = identity.find(place, path) if place.exists() else None
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
    found = identity.find(place, path)
    return (found.root, place) if found.root is not None else None


def root_of(path: bytes, *, home: bytes, user_home: bytes = b"") -> bytes:
    """The root of the project that `path` is in, or would be in; makes nothing."""
    place = Home(home)
    _require_folder(path)
    place.exists()
    found = identity.find(place, path)
    if found.root is not None:
        return found.root.path
    identity.refuse_unsafe(os.path.realpath(path), place, user_home)
    return _chosen(found.path, path, user_home)


def relocate(
    path: bytes, *, home: bytes, user_home: bytes = b"", join: "str | None" = None
) -> "tuple[Root, Home]":
    """Let the history of a known project go on in this folder, or begin a new one here."""
    place = Home(home)
    _require_folder(path)
    here = os.path.realpath(path)
    identity.refuse_unsafe(here, place, user_home)
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
    identity.refuse_unsafe(os.path.realpath(path), place, user_home)
    place.create()
    with held_home(place):
        for root in place.roots_from_stores()[:1]:
            place.record(root)  # makes a lost registry again
        found = identity.find(place, path)
        if found.root is not None:
            return found.root
        chosen = _chosen(found.path, path, user_home)
        identity.refuse_lookalike(place, chosen)
        id = place.unclaimed() or ids.from_entropy(os.urandom(8))
        root = identity.root_at(id, chosen)
        stores.create(place.store_path(root.id))
        place.record(root)
        return root


def _chosen(found: bytes, path: bytes, user_home: bytes) -> bytes:
    """The root of a new project."""
    if found in (b"/", os.path.realpath(user_home)):
        # A repository of dotfiles around everything does not make everything one project.
        return os.path.realpath(path)
    return found


def _join(place: Home, id: str, here: bytes) -> Root:
    """The known project `id`, from now on in the folder `here`."""
    found = [root for root in place.known_roots() if root.id == id]
    if not found:
        raise UnknownReferenceError(
            f"there is no project `{id}`", hint="`takeback projects` lists them"
        )
    known = found[0]
    if here.startswith(known.path + b"/"):
        if known.is_there() and not identity.is_remade(place, known, os.lstat(known.path)):
            raise TakebackError(
                f"`{os.fsdecode(here)}` is inside `{os.fsdecode(known.path)}`, which is project "
                f"`{id}`: it is part of that history already",
                hint="there is nothing to join; `takeback log` shows the history",
            )
        here = known.path  # the question was about this one
    return identity.root_at(id, here)


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
    found = identity.find(place, root.path).root
    if found is None or found.id != root.id:
        raise TakebackError(
            f"`{os.fsdecode(root.path)}` is not project `{root.id}` now, "
            f"but {f'project `{found.id}`' if found else 'none that is known'}",
            hint="`takeback doctor` examines what is known of projects",
        )


def _begin_anew(place: Home, here: bytes) -> Root:
    """A new project in the folder `here`; one that was there keeps its history elsewhere."""
    above = identity.find(place, os.path.dirname(here)).root
    if above is not None:
        raise UsageError(
            f"`{os.fsdecode(here)}` is inside project `{above.id}`, which covers it",
            hint="no two projects cover one file; work with the one above",
        )
    # What a full disk left of an earlier try is used again, so that it does not pile up.
    root = identity.root_at(place.unclaimed() or ids.from_entropy(os.urandom(8)), here)
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
