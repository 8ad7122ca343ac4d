"""What one can see of a project: nothing here writes, and nothing waits for the lock."""

import os
import time

from takeback import store as stores
from takeback.capture import checkpoint
from takeback.capture.project_rules import Surroundings
from takeback.disk.failures import FailingAs
from takeback.errors import NoLongerKeptError, TakebackError
from takeback.store import Store
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from takeback.disk.home import Home, Root
    from takeback.history.compare import Comparison, State
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.history import Log, RecordedCheckpoint, RecordedSession, RecordedTurn
    from takeback.model.results import Checkpoint, Status, Usage
    from takeback.model.tree import Entry
    from takeback.ports import Progress

_UNREADABLE = "the store could not be read"
_left_alone: "list[Store]" = []
"""Stores of the process that this one was forked from; never closed here."""


class Looking:
    """A project as one looks at it."""

    def __init__(self, root: "Root", home: "Home") -> None:
        self._root = root
        self._home = home
        self._opened = Store(home.store_path(root.id), root.id)
        self._around = Surroundings(root, home)
        self._cache: StatCache | None = None
        self._process = os.getpid()
        self._is_cut_off = False
        """Whether SQLite believes for ever that a thread writes which only the original has."""

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

    def standing(self) -> "tuple[object, ...]":
        """Changes when an open project is no longer what opening it again would give."""
        return self._around.standing()

    @property
    def git_dir(self) -> bytes:
        """The bare git repository of the store, for `git --git-dir`."""
        return self._store.git_dir

    @property
    def ledger(self) -> "Ledger":
        """The project's ledger."""
        return self._store.ledger

    # -- the log ---------------------------------------------------------------------------

    def log(
        self,
        limit: int = 20,
        *,
        session: "str | None" = None,
        since: "str | float | None" = None,
        all: bool = False,
        changes: bool = True,
    ) -> "Log":
        """The newest turns, newest first.

        `session` is a session's id or the beginning of it; `since` a time as in references, or
        seconds since 1970; `all` lifts the limit. Without `changes` the turns have only their
        numbers of files and lines, which is all that a list of them needs.
        """
        from takeback.history.timeline import Timeline

        now = time.time()
        with FailingAs(TakebackError, _UNREADABLE), self.ledger.snapshot() as ledger:
            return Timeline(ledger, now).log(
                limit=None if all else max(limit, 0),
                session=session,
                since=_moment(since, now),
                changes=changes,
            )

    def turn(self, ref: str) -> "RecordedTurn":
        """What the log says of a turn: its changes, its steps, what it shares, git around it."""
        from takeback.history import references
        from takeback.history.timeline import Timeline

        now = time.time()
        with FailingAs(TakebackError, _UNREADABLE), self.ledger.snapshot() as ledger:
            return Timeline(ledger, now).turn(references.turn(ledger, ref, now))

    def restored(self) -> int:
        """How many restores there were."""
        with FailingAs(TakebackError, _UNREADABLE):
            return self.ledger.stack.count()

    def sessions(self, limit: int = 20, *, all: bool = False) -> "tuple[RecordedSession, ...]":
        """The sessions of the project, the one that was seen last first."""
        from takeback.history.timeline import Timeline

        with FailingAs(TakebackError, _UNREADABLE), self.ledger.snapshot() as ledger:
            return Timeline(ledger, time.time()).sessions(None if all else max(limit, 0))

    def shortened(self, names: "Iterable[str]") -> "dict[str, str]":
        """For each id the shortest beginning, of at least four letters, that means nothing else."""
        from takeback.history import references

        with FailingAs(TakebackError, _UNREADABLE), self.ledger.snapshot() as ledger:
            return references.shortened(ledger, names)

    def recorded(self, ref: str) -> "RecordedTurn | RecordedCheckpoint":
        """The turn that a reference means, or else the checkpoint."""
        from takeback.history import references
        from takeback.history.references import STEP, TURN
        from takeback.history.timeline import Timeline

        now = time.time()
        with FailingAs(TakebackError, _UNREADABLE), self.ledger.snapshot() as ledger:
            meant = references.find(ledger, ref, now)
            number = references.turn_of(ledger, meant) if meant.kind in (TURN, STEP) else None
            if number is not None:
                return Timeline(ledger, now).turn(number)
            return self._recorded(ledger, references.state_of(ledger, meant, now))

    def _recorded(self, ledger: "Ledger", row: "CheckpointRow") -> "RecordedCheckpoint":
        from takeback.capture.checkpoint import Place
        from takeback.history import timeline
        from takeback.history.timeline import Timeline
        from takeback.model.history import RecordedCheckpoint

        place = Place(*ledger.checkpoints.taken_for(row))
        value = checkpoint.as_value(row, new=False, told=self._told(row), place=place)
        restore = Timeline(ledger, time.time()).restore(row.number)
        changes = timeline.of_checkpoint(ledger, row)
        return RecordedCheckpoint(value, changes, restore, kept=row.gone is None)

    def examine(self) -> "tuple[tuple[str, ...], int]":
        """What is wrong with the log, in words, and how many events it has."""
        with FailingAs(TakebackError, "the log could not be read"):
            # Read before the snapshot, which then holds at least what the anchor names.
            lost = tuple(self._store.check_anchor())
            with self.ledger.snapshot() as log:
                return (*log.check(), *lost), log.last_event()

    @property
    def origin(self) -> str:
        """The random id of this store's log: (origin, number) names an event on all machines."""
        with FailingAs(TakebackError, _UNREADABLE):
            return self._store.ledger.origin

    # -- the store -------------------------------------------------------------------------

    def status(self) -> "Status":
        """Where we are: the newest checkpoint and what is not covered."""
        from takeback.model.results import Status

        with FailingAs(TakebackError, _UNREADABLE):
            row = self._store.ledger.checkpoints.newest()
            told = self._told(row) if row else []
            newest = checkpoint.as_value(row, new=False, told=told) if row else None
            return Status(
                project=self.id,
                origin=self._store.ledger.origin,
                root=self.root,
                store=self._store.path,
                checkpoints=self._store.ledger.checkpoints.count(),
                newest=newest,
                entries=newest.entries if newest else 0,
                left_out=newest.left_out if newest else (),
            )

    def checkpoints(self) -> "Iterator[Checkpoint]":
        """All checkpoints, newest first."""
        with FailingAs(TakebackError, _UNREADABLE):
            for row in self._store.ledger.checkpoints.all():
                yield checkpoint.as_value(row, new=False)

    def usage(self) -> "Usage":
        """What the history takes on disk."""
        from takeback.model.results import Usage

        ledger = self._store.ledger
        with FailingAs(TakebackError, _UNREADABLE):
            checkpoints = ledger.checkpoints.count()
            return Usage(
                packs=len(ledger.packs()),
                objects=self._store.packs_size(),
                ledger=stores.size_of(ledger.path) + stores.size_of(ledger.path + b"-wal"),
                index=stores.size_of(self._store.index_path),
                checkpoints=checkpoints,
                gone=checkpoints - ledger.care.count_with_files(),
                pinned=len(ledger.care.kept()),
            )

    def secret_names(self) -> "tuple[str, ...]":
        """The names of files that the user's settings call secret, besides those known."""
        found = self._around.setting("secrets", "names", [])
        return tuple(map(str, found)) if isinstance(found, list) else ()

    # -- states ----------------------------------------------------------------------------

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
        from takeback.history import retention
        from takeback.history.compare import Comparison
        from takeback.history.lookup import Place, choose

        named = tuple(paths)

        def compare() -> Comparison:
            opened: list[State] = []
            try:
                opened.append(self._state(before, progress))
                opened.append(self._state(after, progress))
                chosen = choose(opened, named, Place(self.root, inside))
                return Comparison(opened[0], opened[1], chosen)
            except BaseException:
                for state in opened:
                    state.close()
                raise

        with FailingAs(TakebackError, "nothing was compared"):
            return retention.again(self.ledger, compare)

    def read(self, ref: "str | None", path: bytes, *, inside: bytes = b"") -> "Iterator[bytes]":
        """What a file held in a state, piece by piece; None is now.

        Every byte is verified by the end. An error about the path comes at once.
        """
        from itertools import chain

        from takeback.history import retention

        def begin() -> "Iterator[bytes]":
            return chain([next(pieces := self._pieces(ref, path, inside), b"")], pieces)

        return retention.again(self.ledger, begin)

    def rescued(self, restore: str, path: bytes, *, inside: bytes = b"") -> "Iterator[bytes]":
        """What somebody saved while a restore ran, and is in the store only, piece by piece.

        `restore` is the id of the restore, or the beginning of it. An error about the path comes
        at once.
        """
        from takeback.disk import descent
        from takeback.history.lookup import Place
        from takeback.undo import rescue

        with FailingAs(TakebackError, _UNREADABLE):
            whole = descent.whole(self.root, inside, path)
            is_outside = any(whole == saved for saved, _ in rescue.saves(self.ledger, restore))
            meant = [whole] if is_outside else Place(self.root, inside).candidates(path)
            entry = rescue.find_save(self.ledger, restore, meant)
            if not rescue.is_kept(self.ledger, restore):
                raise NoLongerKeptError(
                    f"what was saved during the restore `{restore}` is no longer kept"
                )
        return self._stream(entry)

    def contents(self, *entries: "Entry | None") -> "tuple[bytes | None, ...]":
        """What entries of a plan hold: files and links; None if that is unknown or very large."""
        from takeback.history.lookup import content_of

        with FailingAs(TakebackError, _UNREADABLE):
            objects = self._store.reader()
            try:
                return tuple(content_of(objects, entry) for entry in entries)
            finally:
                objects.close()

    def _stream(self, entry: "Entry") -> "Iterator[bytes]":
        objects = self._store.reader()
        try:
            yield from objects.stream(entry)
        finally:
            objects.close()

    def _pieces(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        from takeback.history.lookup import Place, read_file

        with FailingAs(TakebackError, "nothing could be read"):
            state = self._state(ref, None)
            try:
                yield from read_file(state, ref or "@", path, Place(self.root, inside))
            finally:
                state.close()

    def _state(self, ref: "str | None", progress: "Progress | None") -> "State":
        """A checkpoint's tree or, with no reference, the work tree as it is."""
        if ref is not None:
            from takeback.history import retention
            from takeback.history.compare import Saved

            row = retention.require(self.ledger, self._resolve(ref))
            return Saved(self._store.reader(), row, self.ledger)
        from takeback.history.worktree_state import Now

        request = self._around.request(time.time_ns(), progress=progress)
        cache = StatCache(self._store.index_path, self._around.mark(request))
        return Now(self._store, cache, request)

    def _resolve(self, ref: str) -> "CheckpointRow":
        """The checkpoint that a reference means."""
        from takeback.history import references

        with self.ledger.snapshot() as ledger:
            return references.state(ledger, ref, time.time())

    @property
    def _store(self) -> Store:
        """The store as this process opened it.

        A connection to SQLite must not be carried over a fork: used or closed in the copy, it
        would break what the original writes. So a copy leaves it alone and opens its own.
        """
        if self._process != os.getpid():
            _left_alone.append(self._opened)
            self._is_cut_off |= self._opened.ledger.writer != 0
            self._opened.lock.leave_to_original()
            self._opened.upkeep.leave_to_original()
            self._opened = Store(self._home.store_path(self._root.id), self._root.id)
            self._cache = None
            self._process = os.getpid()
        return self._opened

    def _told(self, row: "CheckpointRow") -> "list[tuple[bytes, int]]":
        from takeback.capture.manifests import told

        if row.gone is not None:
            return []
        objects = self._store.reader()
        try:
            return list(told(objects, row))
        finally:
            objects.close()


def _moment(since: "str | float | None", now: float) -> "float | None":
    if since is None or not isinstance(since, str):
        return since
    from takeback.errors import UsageError
    from takeback.history import times

    found = times.parse(since, now)
    if found is None:
        raise UsageError(
            f"`{since}` is no time", hint="`10m`, `2h`, `3d`, `14:05`, `yesterday 15:00` are"
        )
    return found
