"""Reads the history of a project: nothing here writes, and nothing waits for the lock."""

import os
import time

from takeback.capture import checkpoint
from takeback.disk.failures import FailingAs
from takeback.errors import TakebackError, UnknownReferenceError, UsageError
from takeback.history import references, retention
from takeback.history.lookup import (
    Past,
    Place,
    choose,
    content_of,
    extract,
    find,
    past,
    read_file,
)
from takeback.history.timeline import Timeline
from takeback.model import ids
from takeback.model.beyond.participants import Captured
from takeback.model.history import PathHistory
from takeback.model.reasons import Action
from takeback.model.results import Status
from takeback.model.words import word
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from takeback.capture.workspace import Workspace
    from takeback.history.compare import Comparison, OwnChanges, State
    from takeback.history.lookup import Found
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.history import (
        ListedCheckpoint,
        Log,
        RecordedCheckpoint,
        RecordedSession,
        RecordedTurn,
        Unrecorded,
    )
    from takeback.model.ids import ShortId
    from takeback.model.reasons import Reason
    from takeback.model.results import Checkpoint
    from takeback.model.tree import Entry
    from takeback.ports import Progress

_MOST_ALIKE = 3
_READING = FailingAs(TakebackError, "the store could not be read")


class HistoryReader:
    """The log and the recorded states of one project."""

    def __init__(self, work: "Workspace") -> None:
        self._work = work

    @property
    def _ledger(self) -> "Ledger":
        return self._work.ledger

    # -- the log ---------------------------------------------------------------------------

    def log(
        self,
        limit: "int | None",
        *,
        session: "str | None" = None,
        since: "str | float | None" = None,
        until: "str | float | None" = None,
        grep: str = "",
        paths: "tuple[bytes, ...]" = (),
        inside: bytes = b"",
        all: bool = False,
        changes: bool = True,
        before: "str | None" = None,
    ) -> "Log":
        """The newest turns, newest first; with `before`, those that are older than this turn."""
        now = time.time()
        with _READING, self._ledger.snapshot() as ledger:
            return Timeline(ledger, now, self._work.root).log(
                limit=limit,
                session=session,
                since=_moment(since, now),
                until=_moment(until, now),
                grep=grep,
                pasts=self._pasts(ledger, paths, inside),
                all=all,
                changes=changes,
                before=before,
            )

    def _pasts(
        self, ledger: "Ledger", paths: "tuple[bytes, ...]", inside: bytes
    ) -> "list[Past] | None":
        """Who changed each of some paths; None if that is everything."""
        found = [self._past(ledger, path, inside) for path in paths]
        return found if found and all(each.told.raw_path for each in found) else None

    def _past(self, ledger: "Ledger", path: bytes, inside: bytes) -> "Past":
        """Who changed a path; an error if it never was in the project."""
        if path.startswith(b"/") and (turns := ledger.outside.turns_at(os.path.normpath(path))):
            return Past(PathHistory(os.path.normpath(path)), frozenset(turns), frozenset())
        root = self._work.root
        candidates = Place(root, inside).candidates(path)
        for each in candidates:
            place = os.path.join(root, each)
            is_there = os.path.lexists(place)
            known = past(ledger, each, is_folder=not is_there or os.path.isdir(place))
            found = self._newest(ledger, each)
            if known is not None or is_there or found is not None:
                told = known.told if known is not None else PathHistory(each)
                why = word(found.entry.reason) if found and found.entry.reason else ""
                known = known or Past(told, frozenset(), frozenset())
                return known.replace(told=told.replace(is_there=is_there, left_out=why))
        alike = ledger.deltas.paths_ending(os.path.basename(candidates[0]), _MOST_ALIKE)
        hint = f"did you mean {' or '.join(f'`{os.fsdecode(each)}`' for each in alike)}?"
        raise UnknownReferenceError(
            f"`{os.fsdecode(path)}` was never in this project",
            hint=hint
            if alike
            else ("give a path from the current folder or from the project's root", Action("log")),
        )

    def _newest(self, ledger: "Ledger", path: bytes) -> "Found | None":
        """What the newest checkpoint has at a path."""
        from takeback.history.compare import Saved

        row = ledger.checkpoints.newest()
        if row is None or row.gone is not None:
            return None
        state = Saved(self._work.store.reader(), row, ledger)
        try:
            return find(state, path)
        finally:
            state.close()

    def turn(self, ref: str) -> "RecordedTurn":
        """What the log says of a turn."""
        now = time.time()
        with _READING, self._ledger.snapshot() as ledger:
            return Timeline(ledger, now, self._work.root).turn(references.turn(ledger, ref, now))

    def sessions(self, limit: "int | None") -> "tuple[RecordedSession, ...]":
        """The sessions, the one that was seen last first."""
        with _READING, self._ledger.snapshot() as ledger:
            return Timeline(ledger, time.time()).sessions(limit)

    def restored(self) -> int:
        """How many restores there were."""
        with _READING:
            return self._ledger.stack.count()

    def listed_checkpoints(self, limit: "int | None") -> "tuple[ListedCheckpoint, ...]":
        """The newest checkpoints that no turn made, or that have a name; without a limit, all."""
        with _READING, self._ledger.snapshot() as ledger:
            return Timeline(ledger, time.time()).checkpoints(limit)

    def unrecorded(self) -> "Unrecorded":
        """What changed since the newest checkpoint, and who did it."""
        from takeback.history import look

        with _READING:
            return look.unrecorded(self._work)

    def shortened(self, names: "Iterable[str]") -> "dict[str, ShortId]":
        """For each id the shortest unique beginning of at least four letters."""
        with _READING, self._ledger.snapshot() as ledger:
            return references.shortened(ledger, names)

    def recorded(self, ref: str) -> "RecordedTurn | RecordedCheckpoint":
        """The turn that a reference means, or else the checkpoint."""
        now = time.time()
        with _READING, self._ledger.snapshot() as ledger:
            meant = references.find(ledger, ref, now)
            is_turn = meant.kind in (references.TURN, references.STEP)
            number = references.turn_of(ledger, meant) if is_turn else None
            if number is not None:
                span = ledger.turns.numbered(number)
                ends = (span.opened, span.closed) if span is not None else (0, 0)
                told = Timeline(ledger, now, self._work.root).turn(number)
                return told.replace(participants=ledger.participants.captured(*ends))
            told_of = self._recorded(ledger, references.state_of(ledger, meant, now))
            cursor = references.cursor_of(ledger, meant)
            return told_of.replace(participants=ledger.participants.captured(cursor, cursor))

    def _recorded(self, ledger: "Ledger", row: "CheckpointRow") -> "RecordedCheckpoint":
        from takeback.history import timeline
        from takeback.model.history import RecordedCheckpoint

        place = checkpoint.Place(*ledger.checkpoints.taken_for(row.event))
        told = self._work.left_out(row)
        value = checkpoint.as_value(row, new=False, told=told, place=place)
        value = value.replace(names=tuple(ledger.names.of(row.number)))
        restore = Timeline(ledger, time.time()).restore(row.number)
        changes = timeline.of_checkpoint(ledger, row)
        return RecordedCheckpoint(value, changes, restore, kept=row.gone is None)

    def status(self) -> Status:
        """The newest checkpoint and what is not covered."""
        with _READING:
            row = self._ledger.checkpoints.newest()
            told = self._work.left_out(row) if row else []
            newest = checkpoint.as_value(row, new=False, told=told) if row else None
            if row is not None and newest is not None:
                newest = newest.replace(names=tuple(self._ledger.names.of(row.number)))
            return Status(
                project=self._work.id,
                raw_root=self._work.root,
                origin=self._ledger.origin,
                raw_store=self._work.store.path,
                checkpoints=self._ledger.checkpoints.count(),
                newest=newest,
                entries=newest.entries if newest else 0,
                left_out=newest.left_out if newest else (),
                participants=tuple(
                    Captured(row.name, row.kind, "", row.token, row.problem)
                    for row in self._ledger.participants.at().values()
                ),
            )

    def checkpoints(self, session: "str | None") -> "Iterator[Checkpoint]":
        """All checkpoints, or those of a session, newest first."""
        with _READING:
            table = self._ledger.checkpoints
            found: Iterator[tuple[CheckpointRow, int]]
            if session is None:
                found = ((row, row.event) for row in table.all())
            else:
                found = table.of_session(references.session(self._ledger, session, time.time()))
            for row, event in found:
                place = checkpoint.Place(*table.taken_for(event))
                yield checkpoint.as_value(row, new=False, place=place)

    # -- names -----------------------------------------------------------------------------

    def require_name(self, label: str) -> str:
        """The checkpoint that a name means so far; an error if it cannot be one."""
        row = references.require_name(self._ledger, label, time.time()) if label.strip() else None
        return row.checkpoint if row is not None else ""

    def with_names(self, made: "Checkpoint", label: str, was: str) -> "Checkpoint":
        """A checkpoint that was just made or named, with its names."""
        number = self._ledger.checkpoints.number_of(made.id) or 0
        names = tuple(self._ledger.names.of(number))
        called = made.label if made.new else ids.as_name(label)
        return made.replace(label=called, names=names, moved=was if was != made.id else "")

    # -- states ----------------------------------------------------------------------------

    def resolve(self, ref: str) -> "CheckpointRow":
        """The checkpoint that a reference means."""
        with self._ledger.snapshot() as ledger:
            return references.state(ledger, ref, time.time())

    def compare(
        self,
        before: "str | None",
        after: "str | None",
        paths: "tuple[bytes, ...]",
        inside: bytes,
        progress: "Progress | None",
    ) -> "Comparison":
        """Where two states differ; None is now."""
        from takeback.history.compare import Comparison

        def compare() -> Comparison:
            opened: list[State] = []
            try:
                opened.append(self._state(before, progress))
                opened.append(self._state(after, progress))
                chosen = choose(opened, paths, Place(self._work.root, inside))
                return Comparison(opened[0], opened[1], chosen)
            except BaseException:
                for state in opened:
                    state.close()
                raise

        with FailingAs(TakebackError, "nothing was compared"):
            return retention.again(self._ledger, compare)

    def own_changes(self, ref: str, paths: "tuple[bytes, ...]", inside: bytes) -> "OwnChanges":
        """What a turn changed itself, with the contents before and after."""
        from takeback.history.compare import OwnChanges

        now = time.time()

        def read() -> OwnChanges:
            ledger = self._ledger
            turn = references.turn(ledger, ref, now)
            chosen = tuple(self._past(ledger, path, inside).told.raw_path for path in paths)
            objects = self._work.store.reader()
            try:
                return OwnChanges(ledger, objects, turn, chosen)
            except BaseException:
                objects.close()
                raise

        with FailingAs(TakebackError, "nothing was compared"):
            return retention.again(self._ledger, read)

    def read(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        """What a file held in a state, piece by piece; an error about the path comes at once."""
        from itertools import chain

        def begin() -> "Iterator[bytes]":
            return chain([next(pieces := self._pieces(ref, path, inside), b"")], pieces)

        return retention.again(self._ledger, begin)

    def contents(self, *entries: "Entry | None") -> "tuple[bytes | None, ...]":
        """What entries of a plan hold: files and links; None if that is unknown or very large."""
        with _READING:
            objects = self._work.store.reader()
            try:
                return tuple(content_of(objects, entry) for entry in entries)
            finally:
                objects.close()

    def stream(self, entry: "Entry") -> "Iterator[bytes]":
        """What a stored file holds, piece by piece."""
        objects = self._work.store.reader()
        try:
            yield from objects.stream(entry)
        finally:
            objects.close()

    def extract(
        self,
        ref: str,
        target: bytes,
        progress: "Progress | None",
        told: "Callable[[Reason], None] | None",
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries."""
        from takeback.disk import home

        with FailingAs(TakebackError, "nothing was extracted"):
            target = os.path.abspath(target)
            home.refuse_inside_store(target, self._work.home)
            return retention.again(
                self._ledger,
                lambda: extract(self._work.store, self.resolve(ref), target, progress, told),
            )

    def _pieces(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        with FailingAs(TakebackError, "nothing could be read"):
            state = self._state(ref, None)
            try:
                yield from read_file(state, ref or "@", path, Place(self._work.root, inside))
            finally:
                state.close()

    def _state(self, ref: "str | None", progress: "Progress | None") -> "State":
        """A checkpoint's tree or, with `@` or no reference, the work tree as it is."""
        work = self._work
        if ref is not None and not references.is_now(ref):
            from takeback.history.compare import Saved

            row = retention.require(work.ledger, self.resolve(ref))
            return Saved(work.store.reader(), row, work.ledger)
        from takeback.history.worktree_state import Now

        site = work.rules.site()
        cache = StatCache(work.store.index_path, work.rules.mark(site))
        return Now(work.store, cache, site, time.time_ns(), progress)


def _moment(since: "str | float | None", now: float) -> "float | None":
    if since is None or not isinstance(since, str):
        return since
    from takeback.history import times

    found = times.parse(since, now)
    if found is None:
        raise UsageError(
            f"`{since}` is not a time", hint="use `10m`, `2h`, `3d`, `14:05` or `yesterday 15:00`"
        )
    return found
