"""Project: wires the layers together, takes the lock, and speaks the verbs."""

import _thread
import os

from takeback.engine import capture
from takeback.errors import CaptureError, TakebackError, UnknownReferenceError, UsageError
from takeback.looking import Looking
from takeback.model import ids
from takeback.store import identity
from takeback.store import store as stores
from takeback.store.failures import FailingAs
from takeback.store.home import Home, Root
from takeback.store.lock import Held, Lock
from takeback.store.statcache import StatCache
from takeback.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from takeback.engine.compare import Comparison, State
    from takeback.model.values import Checkpoint, Status, Usage, Verification
    from takeback.ports import Progress
    from takeback.store.rows import CheckpointRow

_left_alone: "list[Store]" = []
"""Stores of the process that this one was forked from; never closed here."""


class Project:
    """A work tree and its store."""

    def __init__(self, root: Root, home: Home) -> None:
        self._root = root
        self._home = home
        self._opened = Store(home.store_path(root.id), root.id)
        self._looking = Looking(root, home)
        self._cache: StatCache | None = None
        self._mutex = _thread.RLock()
        self._process = os.getpid()

    # -- opening ---------------------------------------------------------------------------

    @classmethod
    def open(cls, path: bytes, *, home: bytes, user_home: bytes = b"") -> "Self":
        """The project that `path` is in, made on first use."""
        place = Home(home)
        _require_folder(path)
        with FailingAs(TakebackError, "the project could not be opened"):
            found = identity.find(place, path) if place.exists() else None
            if found is not None and found.root is not None:
                if not found.is_registered:
                    _record(place, found.root)
                return cls(found.root, place)
            return cls(_create(place, path, user_home), place)

    @classmethod
    def find(cls, path: bytes, *, home: bytes) -> "Self | None":
        """The project that `path` is in, or None; makes nothing."""
        place = Home(home)
        _require_folder(path)
        if not place.exists():
            return None
        with FailingAs(TakebackError, "the project could not be opened"):
            found = identity.find(place, path)
            return cls(found.root, place) if found.root is not None else None

    @classmethod
    def relocate(
        cls, path: bytes, *, home: bytes, user_home: bytes = b"", join: "str | None" = None
    ) -> "Self":
        """Let the history of a known project go on in this folder, or begin a new one here."""
        place = Home(home)
        _require_folder(path)
        here = os.path.realpath(path)
        identity.refuse_unsafe(here, place, user_home)
        with FailingAs(TakebackError, "nothing was decided"):
            place.create()
            with _held_home(place):
                root = _join(place, join, here) if join is not None else _begin_anew(place, here)
                place.record(root)
        return cls(root, place)

    def close(self) -> None:
        """Close the store."""
        if self._process == os.getpid():
            self._store.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """The project's own id."""
        return self._root.id

    @property
    def root(self) -> bytes:
        """The folder of the project."""
        return self._root.path

    @property
    def git_dir(self) -> bytes:
        """The bare git repository of the store, for `git --git-dir`."""
        return self._store.git_dir

    # -- verbs -----------------------------------------------------------------------------

    def checkpoint(
        self, label: str = "", *, rehash: bool = False, progress: "Progress | None" = None
    ) -> "Checkpoint":
        """Make a checkpoint of the tree as it is now.

        If nothing changed since the newest one, that one is returned with `new` false.
        `rehash` reads every file again instead of trusting its stamps.
        """
        with FailingAs(CaptureError, "no checkpoint was made"), self._held():
            request = self._looking.request(_clean(label), rehash=rehash, progress=progress)
            try:
                return capture.take(self._store, self._stat_cache(request), request)
            finally:
                os.close(request.root)

    def extract(
        self,
        ref: str,
        directory: "str | bytes | os.PathLike[str] | os.PathLike[bytes]",
        *,
        progress: "Progress | None" = None,
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries."""
        from takeback.engine.extract import extract

        with FailingAs(TakebackError, "nothing was extracted"):
            target = os.path.abspath(os.fsencode(directory))
            identity.refuse_inside_store(target, self._home)
            return extract(self._store, self._resolve(ref), target, progress)

    def compare(
        self,
        before: "str | None",
        after: "str | None" = None,
        paths: "Iterable[bytes]" = (),
        *,
        inside: bytes = b"",
        progress: "Progress | None" = None,
    ) -> "Comparison":
        """Where two states differ; None is now, the files on disk. Writes nothing.

        `paths` are counted from the folder `inside` of the project, or else from its root.
        """
        from takeback.engine.compare import Comparison
        from takeback.engine.lookup import Place, choose

        with FailingAs(TakebackError, "nothing was compared"):
            opened: list[State] = []
            try:
                opened.append(self._state(before, progress))
                opened.append(self._state(after, progress))
                chosen = choose(opened, paths, Place(self.root, inside))
                return Comparison(opened[0], opened[1], chosen)
            except BaseException:
                for state in opened:
                    state.close()
                raise

    def read(self, ref: "str | None", path: bytes, *, inside: bytes = b"") -> "Iterator[bytes]":
        """What a file held in a state, piece by piece; None is now.

        Every byte is verified by the end. An error about the path comes at once.
        """
        from itertools import chain

        pieces = self._pieces(ref, path, inside)
        return chain([next(pieces, b"")], pieces)

    def _pieces(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        from takeback.engine.lookup import Place, read_file

        with FailingAs(TakebackError, "nothing could be read"):
            state = self._state(ref, None)
            try:
                yield from read_file(state, ref or "@", path, Place(self.root, inside))
            finally:
                state.close()

    def verify(self, *, progress: "Progress | None" = None) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised."""
        from takeback.engine.verify import verify

        with FailingAs(TakebackError, "the store could not be verified"):
            return verify(self._store, self._held, progress)

    def status(self) -> "Status":
        """Where we are: the newest checkpoint and what is not covered."""
        from takeback.model.values import Status

        with FailingAs(TakebackError, "the store could not be read"):
            row = self._store.ledger.newest()
            told = self._told(row) if row else []
            newest = capture.as_value(row, new=False, told=told) if row else None
            return Status(
                project=self.id,
                root=self.root,
                store=self._store.path,
                checkpoints=self._store.ledger.count(),
                newest=newest,
                entries=newest.entries if newest else 0,
                left_out=newest.left_out if newest else (),
            )

    def checkpoints(self) -> "Iterator[Checkpoint]":
        """All checkpoints, newest first."""
        with FailingAs(TakebackError, "the store could not be read"):
            for row in self._store.ledger.checkpoints():
                yield capture.as_value(row, new=False)

    def usage(self) -> "Usage":
        """What the history takes on disk."""
        from takeback.model.values import Usage

        ledger = self._store.ledger
        with FailingAs(TakebackError, "the store could not be read"):
            return Usage(
                packs=len(ledger.packs()),
                objects=self._store.packs_size(),
                ledger=stores.size_of(ledger.path) + stores.size_of(ledger.path + b"-wal"),
                index=stores.size_of(self._store.index_path),
                checkpoints=ledger.count(),
            )

    # -- references ------------------------------------------------------------------------

    def _resolve(self, ref: str) -> "CheckpointRow":
        """The checkpoint that a reference means: `@`, `@~N`, an id or its unique beginning."""
        if ref == "@" or ref.startswith("@~"):
            back = ref[2:] or "0"
            known = back.isascii() and back.isdigit() and len(back) < 10
            row = self._store.ledger.newest(int(back)) if known else None
            if row is not None:
                return row
        elif ids.is_prefix(ref):
            rows = self._store.ledger.with_prefix(ref)
            if len(rows) == 1:
                return rows[0]
            if rows:
                listed = ", ".join(f"`{row.id}`" for row in rows)
                raise UnknownReferenceError(
                    f"`{ref}` is the beginning of several checkpoints",
                    hint=f"one of these was meant: {listed}",
                )
        raise UnknownReferenceError(
            f"no checkpoint is called `{ref}`",
            hint="`@` is the newest, `@~1` the one before; `takeback` shows ids",
        )

    @property
    def _store(self) -> Store:
        """The store as this process opened it.

        A connection to SQLite must not be carried over a fork: used or closed in the copy, it
        would break what the original writes. So a copy leaves it alone and opens its own.
        """
        if self._process != os.getpid():
            _left_alone.append(self._opened)
            self._opened = Store(self._home.store_path(self._root.id), self._root.id)
            self._cache = None
            self._process = os.getpid()
        return self._opened

    # -- wiring ----------------------------------------------------------------------------

    def _held(self) -> Held:
        return Held(self._store.lock, self._mutex, self._store.recover, self._store.anchor)

    def _state(self, ref: "str | None", progress: "Progress | None") -> "State":
        """A checkpoint's tree or, with no reference, the work tree as it is."""
        if ref is not None:
            from takeback.engine.compare import Saved

            return Saved(self._store.reader(), self._resolve(ref))
        from takeback.engine.now import Now

        request = self._looking.request(progress=progress)
        return Now(
            self._store, StatCache(self._store.index_path, self._looking.mark(request)), request
        )

    def _stat_cache(self, request: capture.Request) -> StatCache:
        mark = self._looking.mark(request)
        if self._cache is None or self._cache.identity != mark:
            self._cache = StatCache(self._store.index_path, mark)
        return self._cache

    def _told(self, row: "CheckpointRow") -> "list[tuple[bytes, int]]":
        from takeback.engine.previous import told

        objects = self._store.reader()
        try:
            return list(told(objects, row))
        finally:
            objects.close()


def _create(place: Home, path: bytes, user_home: bytes) -> Root:
    """Make the store of a new project, unless somebody else just did."""
    identity.refuse_unsafe(os.path.realpath(path), place, user_home)
    place.create()
    with _held_home(place):
        for root in place.roots_from_stores()[:1]:
            place.record(root)  # makes a lost registry again
        found = identity.find(place, path)
        if found.root is not None:
            return found.root
        chosen = found.path
        if chosen in (b"/", os.path.realpath(user_home)):
            # A repository of dotfiles around everything does not make everything one project.
            chosen = os.path.realpath(path)
        identity.refuse_lookalike(place, chosen)
        here = os.lstat(chosen)
        id = place.unclaimed() or ids.from_entropy(os.urandom(8))
        root = Root(id, here.st_dev, here.st_ino, chosen)
        stores.create(place.store_path(root.id))
        place.record(root)
        return root


def _join(place: Home, id: str, here: bytes) -> Root:
    """The known project `id`, from now on in the folder `here`."""
    if all(root.id != id for root in place.roots_from_stores()):
        raise UnknownReferenceError(f"there is no project `{id}`")
    found = os.lstat(here)
    return Root(id, found.st_dev, found.st_ino, here)


def _begin_anew(place: Home, here: bytes) -> Root:
    """A new project in the folder `here`; one that was there keeps its history elsewhere."""
    above = identity.find(place, os.path.dirname(here)).root
    if above is not None:
        raise UsageError(
            f"`{os.fsdecode(here)}` is inside project `{above.id}`, which covers it",
            hint="no two projects cover one file; work with the one above",
        )
    for other in place.roots_from_stores():
        if other.path == here:
            place.record(Root(other.id, other.device, other.inode, here + b" (before)"))
    found = os.lstat(here)
    root = Root(ids.from_entropy(os.urandom(8)), found.st_dev, found.st_ino, here)
    stores.create(place.store_path(root.id))
    return root


def _held_home(place: Home) -> Held:
    return Held(Lock(place.lock_path), recover=place.clean_up)


def _record(place: Home, root: Root) -> None:
    with _held_home(place):
        place.record(root)


def _require_folder(path: bytes) -> None:
    if not os.path.isdir(path):
        raise UnknownReferenceError(
            f"there is no folder `{os.fsdecode(path)}`", hint="name an existing folder"
        )


def _clean(label: str) -> str:
    """A label as text that can be stored and shown; the command line may hold any bytes."""
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in label)
