"""Project: wires the layers together, takes the lock, and speaks the verbs."""

import _thread
import os
import time

from takeback.engine import capture
from takeback.engine.limits import LimitRules, Limits, from_settings
from takeback.errors import (
    CaptureError,
    DamagedStoreError,
    TakebackError,
    UnknownReferenceError,
)
from takeback.model import ids
from takeback.store import identity, mounts, sqlite, statcache
from takeback.store import store as stores
from takeback.store.home import Home, Root, read_small
from takeback.store.lock import Lock
from takeback.store.statcache import StatCache
from takeback.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from takeback.model.values import Checkpoint, Status, Usage, Verification
    from takeback.ports import Progress, Rules
    from takeback.store.ignore import IgnoreRules
    from takeback.store.ledger import CheckpointRow

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Project:
    """A work tree and its store."""

    def __init__(self, root: Root, home: Home) -> None:
        self._root = root
        self._home = home
        self._store = Store(home.store_path(root.id), root.id)
        self._limits: Limits | None = None
        self._cache: StatCache | None = None
        self._mutex = _thread.RLock()

    # -- opening ---------------------------------------------------------------------------

    @classmethod
    def open(cls, path: bytes, *, home: bytes, user_home: bytes = b"") -> "Self":
        """The project that `path` is in, made on first use."""
        place = Home(home)
        _require_folder(path)
        with _FailingAs(TakebackError, "the project could not be opened"):
            found = identity.find(place, path) if place.exists() else None
            if found is not None and found.root is not None:
                if found.moved_from is not None:
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
        with _FailingAs(TakebackError, "the project could not be opened"):
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
        stat = os.lstat(here)
        place.create()
        with _Held(Lock(place.lock_path)):
            known = {root.id: root for root in place.roots_from_stores()}
            if join is not None:
                if join not in known:
                    raise UnknownReferenceError(f"there is no project `{join}`")
                root = Root(join, stat.st_dev, stat.st_ino, here)
            else:
                for other in known.values():
                    if other.path == here:
                        place.record(Root(other.id, other.device, other.inode, here + b" (before)"))
                root = Root(ids.from_entropy(os.urandom(8)), stat.st_dev, stat.st_ino, here)
                stores.create(place.store_path(root.id))
            place.record(root)
        return cls(root, place)

    def close(self) -> None:
        """Close the store."""
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
        with _FailingAs(CaptureError, "no checkpoint was made"), self._held():
            root = self._open_root()
            try:
                request = capture.Request(
                    root=root,
                    device=os.fstat(root).st_dev,
                    rules=self._rules,
                    mounts=mounts.below(self.root),
                    at=time.time_ns(),
                    id=ids.from_entropy(os.urandom(8)),
                    label=label,
                    rehash=rehash,
                    progress=progress,
                )
                return capture.take(self._store, self._stat_cache(), request)
            finally:
                os.close(root)

    def extract(
        self,
        ref: str,
        directory: "str | bytes | os.PathLike[str] | os.PathLike[bytes]",
        *,
        progress: "Progress | None" = None,
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries."""
        from takeback.engine.extract import extract

        with _FailingAs(TakebackError, "nothing was extracted"):
            return extract(self._store, self._resolve(ref), os.fsencode(directory), progress)

    def verify(self, *, progress: "Progress | None" = None) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised."""
        from takeback.engine.verify import verify

        with _FailingAs(TakebackError, "the store could not be verified"), self._held():
            return verify(self._store, progress)

    def status(self) -> "Status":
        """Where we are: the newest checkpoint and what is not covered."""
        from takeback.model.values import Status

        with _FailingAs(TakebackError, "the store could not be read"):
            row = self._store.ledger.newest()
            newest = capture.as_value(row, new=False, told=self._told(row)) if row else None
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
        with _FailingAs(TakebackError, "the store could not be read"):
            for row in self._store.ledger.checkpoints():
                yield capture.as_value(row, new=False)

    def usage(self) -> "Usage":
        """What the history takes on disk."""
        from takeback.model.values import Usage

        ledger = self._store.ledger
        with _FailingAs(TakebackError, "the store could not be read"):
            return Usage(
                packs=len(ledger.packs()),
                objects=self._store.packs_size(),
                ledger=_size(ledger.path) + _size(ledger.path + b"-wal"),
                index=_size(self._store.index_path),
                checkpoints=ledger.count(),
            )

    # -- references ------------------------------------------------------------------------

    def _resolve(self, ref: str) -> "CheckpointRow":
        """The checkpoint that a reference means: `@`, `@~N`, an id or its unique beginning."""
        if ref == "@" or ref.startswith("@~"):
            back = ref[2:] or "0"
            row = self._store.ledger.newest(int(back)) if back.isdigit() else None
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

    # -- wiring ----------------------------------------------------------------------------

    def _held(self) -> "_Held":
        return _Held(self._store.lock, self._mutex, self._store.recover)

    def _open_root(self) -> int:
        fd = os.open(self.root, _DIRECTORY)
        if not self._root.is_folder(os.fstat(fd)):
            os.close(fd)
            raise CaptureError(
                f"`{os.fsdecode(self.root)}` is not the folder it was when the project was opened",
                hint="open it again, which finds out whether it was moved or replaced",
            )
        return fd

    def _stat_cache(self) -> StatCache:
        if self._cache is None:
            rules = self._read_limits().fingerprint()
            mark = statcache.identity(self.id, statcache.boot(), rules)
            self._cache = StatCache(self._store.index_path, mark)
        return self._cache

    def _told(self, row: "CheckpointRow") -> "Iterator[tuple[bytes, int]]":
        from takeback.engine.previous import told

        return told(self._store.objects, row)

    def _read_limits(self) -> Limits:
        if self._limits is None:
            paths = (self._store.path, self._home.path)
            layers = [_settings(path + b"/config.toml") for path in paths]
            self._limits = from_settings(*layers)
        return self._limits

    def _rules(self, was_captured: "Callable[[bytes], bool]") -> "Rules":
        return LimitRules(
            self._read_limits(),
            was_captured=was_captured,
            tracked=self._tracked_files,
            ignored=self._ignore_rules,
        )

    def _ignore_rules(self) -> "IgnoreRules":
        from takeback.store.ignore import IgnoreRules

        return IgnoreRules(self.root)

    def _tracked_files(self) -> frozenset[bytes]:
        from takeback.store import usergit

        repository = usergit.find_repository(self.root)
        return repository.tracked_files() if repository is not None else frozenset()


class _Held:
    """The lock, held for the length of a `with` block; cleans up after a holder that died."""

    __slots__ = ("_lock", "_mutex", "_recover")

    def __init__(
        self,
        lock: Lock,
        mutex: "_thread.RLock | None" = None,
        recover: "Callable[[], None] | None" = None,
    ) -> None:
        self._lock = lock
        self._mutex = mutex
        self._recover = recover

    def __enter__(self) -> None:
        if self._mutex is not None:
            self._mutex.acquire()
        try:
            if self._lock.acquire():
                self._clean_up()
        except BaseException:
            if self._mutex is not None:
                self._mutex.release()
            raise

    def _clean_up(self) -> None:
        if self._recover is None:
            return
        try:
            self._recover()
        except BaseException:
            self._lock.leave_unclean()
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._lock.release()
        finally:
            if self._mutex is not None:
                self._mutex.release()


class _FailingAs:
    """Turns the system's errors into ours, with what they mean for the user."""

    __slots__ = ("_kind", "_meaning")

    def __init__(self, kind: "type[TakebackError]", meaning: str) -> None:
        self._kind = kind
        self._meaning = meaning

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, OSError):
            where = f" (`{os.fsdecode(problem.filename)}`)" if problem.filename else ""
            raise self._kind(f"{self._meaning}: {problem.strerror}{where}") from problem
        if isinstance(problem, sqlite.OperationalError):
            raise self._kind(f"{self._meaning}: the ledger said: {problem}") from problem
        if isinstance(problem, sqlite.DatabaseError):
            raise DamagedStoreError(
                f"{self._meaning}: the ledger is damaged: {problem}",
                hint="run `takeback verify` to see what is damaged",
            ) from problem


def _create(place: Home, path: bytes, user_home: bytes) -> Root:
    """Make the store of a new project, unless somebody else just did."""
    identity.refuse_unsafe(os.path.realpath(path), place, user_home)
    place.create()
    with _Held(Lock(place.lock_path)):
        for root in place.roots_from_stores():
            place.record(root)
            break
        found = identity.find(place, path)
        if found.root is not None:
            return found.root
        chosen = found.path
        if chosen in (b"/", os.path.realpath(user_home)):
            # A repository of dotfiles around everything does not make everything one project.
            chosen = os.path.realpath(path)
        identity.refuse_lookalike(place, chosen)
        here = os.lstat(chosen)
        root = Root(ids.from_entropy(os.urandom(8)), here.st_dev, here.st_ino, chosen)
        stores.create(place.store_path(root.id))
        place.record(root)
        return root


def _record(place: Home, root: Root) -> None:
    with _Held(Lock(place.lock_path)):
        place.record(root)


def _require_folder(path: bytes) -> None:
    if not os.path.isdir(path):
        raise UnknownReferenceError(
            f"there is no folder `{os.fsdecode(path)}`", hint="name an existing folder"
        )


def _settings(path: bytes) -> "dict[str, object]":
    text = read_small(path, limit=1 << 20)
    if not text:
        return {}
    import tomllib

    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UnknownReferenceError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: {problem}"
        ) from None
    limits = table.get("limits", {})
    return limits if isinstance(limits, dict) else {}


def _size(path: bytes) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
