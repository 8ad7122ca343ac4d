"""Carry out a plan: all of it, or nothing, also through a crash.

    preflight   everything that can be refused is refused here
    stage       what is to appear is written and synced; every object was read and checked
    journal     one row is committed: from here on recovery acts
    apply       each path changes in an instant
    verify      every path is looked at again
    rescue      saves that came in between and have no place in the tree go into the store
    finish      checkpoint, event, and the row is gone: now the restore happened
    clean       our folder in the tree is removed

What fails before the journal leaves nothing behind. What fails after it is taken back at once;
if even that fails, or the process dies, by whoever takes the lock next. Taking back is the same
code with the sides changed, so it can itself be interrupted at any step and taken up again.
"""

import os

from takeback.engine import aside, rescue
from takeback.errors import DamagedStoreError, TakebackError, UnfinishedError
from takeback.model import terms
from takeback.model.plan import Remark
from takeback.model.staging import is_stage
from takeback.model.terms import ROLLBACK
from takeback.model.tree import FOLDER
from takeback.store import events, journal
from takeback.store.events import NewEvent
from takeback.store.preflight import require_possible
from takeback.store.restoring import Restoring
from takeback.store.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from takeback.engine.deltas import Delta
    from takeback.model.history import Author
    from takeback.model.jsontext import Json
    from takeback.store.journal import Journal
    from takeback.store.lock import Lock
    from takeback.store.states import Op
    from takeback.store.store import Store

_MOST_SHOWN = 10
_STILL_OPEN = "some program has the old file open: what it writes there goes into the store"


class MovedError(Exception):
    """Paths changed after the safety checkpoint; nothing was touched."""

    def __init__(self, paths: "list[bytes]") -> None:
        super().__init__(paths)
        self.paths = paths


class Finish:
    """What is committed together with the checkpoint after a restore."""

    def __init__(self, row: "Journal", said: "dict[str, Json]", at: int, request: "str | None"):
        self.journal = row.id
        self.late = False
        self.kept: dict[bytes, str] = {}
        self.rescued: list[Remark] = []
        self._row = row
        self._said = said
        self._at = at
        self._request = request
        self._targets = {op.path: op.after for op in row.ops}

    @property
    def known(self) -> "dict[bytes, int]":
        """The objects that are in the store already, and their packs."""
        wanted = (entry for entry in self._targets.values() if entry is not None)
        return {entry.oid: entry.number for entry in wanted if entry.kind != FOLDER}

    @property
    def folders(self) -> "set[bytes]":
        """Where something changed: the folders of all paths, and those among them."""
        return {path.rpartition(b"/")[0] for path in self._targets} | set(self._targets)

    def author(self, delta: "Delta", other: "Author") -> "Author":
        """Who made a change: the restore, or who would have made it without one."""
        from takeback.model.history import Author

        return Author(terms.RESTORE) if self._is_ours(delta) else other

    def _is_ours(self, delta: "Delta") -> bool:
        """Whether the restore made a change; somebody may have changed the path once more."""
        if delta.path not in self._targets or delta.path in self.kept:
            return False
        target = self._targets[delta.path]
        if target is None:
            return delta.verb in (terms.DELETE, terms.RMDIR)
        return target.kind == FOLDER or delta.verb == terms.MODE or delta.strong == target.strong

    def event(self, checkpoint: str, cursor: int) -> NewEvent:
        """The event of the restore."""
        kept = [[_text(path), reason] for path, reason in sorted(self.kept.items())]
        rescued = [[_text(save.path), save.reason] for save in self.rescued]
        said = {**self._said, "after": checkpoint, "kept": kept, "rescued": rescued}
        parents = (*self._row.parents, cursor)
        kind = events.RESTORE_APPLIED
        return NewEvent(kind, said, self._at, parents=parents, request=self._request)


def carry_out(
    store: "Store",
    root: int,
    row: "Journal",
    finish: Finish,
    commit: "Callable[[], None]",
    *,
    keep_mtime: bool,
    now: int,
) -> None:
    """Bring every path to where it shall be. `commit` makes the checkpoint with its event."""
    if not row.ops:
        commit()
        return
    restoring = Restoring(root, store.objects, row.stage, row.ops)
    try:
        _preflight(store, root, restoring)
        staged = _stage(store, restoring, row, keep_mtime=keep_mtime)
        late: dict[bytes, bytes] = {}
        try:
            restoring.apply(staged, forward=True)
            _require_done(restoring, forward=True)
            finish.kept = restoring.kept
            # What nobody writes to any more is final, and only then is it looked at.
            late = restoring.still_written()
            finish.rescued = rescue.into_store(store, restoring, row, now)
            finish.rescued += [Remark(path, _STILL_OPEN) for path in sorted(set(late.values()))]
            finish.late = bool(late)
            commit()
        except BaseException as problem:
            store.ledger.abandon()
            if _is_open(store, row):
                # Begun anew: an interrupt may have left this one between any two steps.
                restoring.close()
                restoring = Restoring(root, store.objects, row.stage, row.ops)
                _bring_back(store, restoring, row, now, str(problem) or type(problem).__name__)
                raise
            # It was committed, and only what follows the commit failed.
        _clean(store, restoring, late)
    except BaseException as problem:
        if not isinstance(problem, Exception):
            # An interrupt may come between any two steps, also those that tidy up.
            store.lock.leave_unclean()
        raise
    finally:
        restoring.close()


def recover(store: "Store", root: int, now: int) -> "list[str]":
    """Take back what a process left that died in the middle of a restore; in words.

    `root` is the folder of the project, also if that is a copy by now of what it was then.
    """
    told = []
    for row in journal.read(store.ledger):
        restoring = Restoring(root, store.objects, row.stage, row.ops)
        try:
            if row.phase == journal.LATE:
                told += _clean_late(store, restoring, row, now)
            else:
                saved = _bring_back(store, restoring, row, now, "its process died")
                told.append(_in_words(row, restoring.kept))
                told += [f"`{os.fsdecode(save.path)}`: {save.reason}" for save in saved]
        finally:
            restoring.close()
    return told + [aside.left_alone(row) for row in journal.damaged(store.ledger)]


def sweep(store: "Store", root: int) -> None:
    """Remove folders of ours that no journal speaks of: of restores that never began, or ended."""
    if journal.damaged(store.ledger):
        return  # it may be the row of any of them
    open_rows = {row.stage for row in journal.read(store.ledger)}
    for name in map(os.fsencode, os.listdir(root)):
        if not is_stage(name) or name in open_rows:
            continue
        stage = Stage(root, name, store.objects)
        try:
            stage.sweep()
        finally:
            stage.close()


# -- the way there -------------------------------------------------------------------------


def _preflight(store: "Store", root: int, restoring: Restoring) -> None:
    """Refuse, before anything is touched, what cannot be done."""
    require_possible(root, restoring.ops)
    moved = restoring.changed()
    if moved:
        raise MovedError(moved)
    _require_readable(store, restoring.ops)


def _require_readable(store: "Store", ops: "Sequence[Op]") -> None:
    """See that the way back can be read: what is there now, as the store holds it."""
    for op in ops:
        entry = op.before
        if entry is None or entry.kind == FOLDER:
            continue
        try:
            for _ in store.objects.stream(entry):
                pass
        except DamagedStoreError as problem:
            raise DamagedStoreError(
                f"what `{os.fsdecode(op.path)}` holds now cannot be read back: {problem}",
                hint="`takeback checkpoint --rehash` stores it again; nothing was changed",
            ) from problem


def _stage(
    store: "Store", restoring: Restoring, row: "Journal", *, keep_mtime: bool
) -> "dict[bytes, bytes]":
    """Stage everything, then commit the journal's row."""
    try:
        staged = restoring.stage_all(forward=True, keep_mtime=keep_mtime)
        journal.write(store.ledger, row)
    except BaseException:
        store.ledger.abandon()
        if _is_open(store, row):
            store.lock.leave_unclean()
        else:
            _discard(store, restoring)
        raise
    return staged


def _is_open(store: "Store", row: "Journal") -> bool:
    """Whether the journal still has the row; if nobody can tell, the next start finds out."""
    try:
        return journal.is_open(store.ledger, row.id)
    except Exception:
        store.lock.leave_unclean()
        raise


def _require_done(restoring: Restoring, *, forward: bool) -> None:
    left = restoring.unfinished(forward=forward)
    if left:
        shown = ", ".join(f"`{os.fsdecode(path)}`" for path in left[:3])
        raise TakebackError(f"the restore did not come out as planned at {shown}")


# -- the way back --------------------------------------------------------------------------


def _bring_back(
    store: "Store", restoring: Restoring, row: "Journal", now: int, why: str
) -> "list[Remark]":
    """Bring every path back; the row goes when all of them are. What is in the store only."""
    try:
        restoring.kept = {}
        restoring.stage.open()
        restoring.give_back()
        staged = restoring.stage_all(forward=False, keep_mtime=True)
        restoring.apply(staged, forward=False)
        _require_done(restoring, forward=False)
        late = restoring.still_written()
        saved = rescue.into_store(store, restoring, row, now)
        kept = [[_text(path), reason] for path, reason in sorted(restoring.kept.items())]
        said: dict[str, Json] = {"restore": row.id, "verb": row.verb}
        said |= {"why": why, "kept": kept}
        over = NewEvent(events.RESTORE_TAKEN_BACK, said, now, parents=row.parents)
        store.ledger.record(over, closing=row.id, late=bool(late))
    except BaseException as problem:
        store.ledger.abandon()
        store.lock.leave_unclean()
        if isinstance(problem, OSError | TakebackError):
            reason = problem.strerror if isinstance(problem, OSError) else problem
            raise UnfinishedError(
                f"{row.verb} failed ({why}), and could not be taken back yet: {reason}",
                hint="the next `takeback` command tries again; free some space, or see to the disk",
            ) from problem
        raise
    _clean(store, restoring, late)
    return saved


def _in_words(row: "Journal", kept: "dict[bytes, str]") -> str:
    what = f"the {row.verb} {'to' if row.verb == ROLLBACK else 'of'} {row.title}"
    said = f"{what} was interrupted; it was taken back, and everything is as it was before"
    if kept:
        shown = [f"`{os.fsdecode(path)}` ({kept[path]})" for path in sorted(kept)[:_MOST_SHOWN]]
        more = [f"{len(kept) - _MOST_SHOWN:,} more"] if len(kept) > _MOST_SHOWN else []
        said += f"; left as found: {', '.join(shown + more)}"
    return said


# -- afterwards ----------------------------------------------------------------------------


def _clean(store: "Store", restoring: Restoring, late: "Collection[bytes]") -> None:
    """Remove our folder; what was still being written to stays until it is not."""
    if not late:
        _discard(store, restoring)
        return
    with _Tidying(store.lock):
        for _, name, _ in restoring.stage.held():
            if name not in late:
                restoring.stage.discard(name)


def _discard(store: "Store", restoring: Restoring) -> None:
    """Remove our folder, as far as that can be done; else the next start does."""
    if restoring.stage.fd < 0:
        store.lock.leave_unclean()
    with _Tidying(store.lock):
        restoring.stage.remove()


class _Tidying:
    """Leaves to the next start what cannot be tidied up now; nothing depends on it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: "Lock") -> None:
        self._lock = lock

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> bool:
        if problem is not None:
            self._lock.leave_unclean()
        return isinstance(problem, OSError)


def _clean_late(store: "Store", restoring: Restoring, row: "Journal", now: int) -> "list[str]":
    """See whether what was still written to when a restore ended is closed by now."""
    restoring.stage.open()
    if restoring.still_written():
        return []
    saved = rescue.into_store(store, restoring, row, now)
    store.ledger.record(closing=row.id)
    _discard(store, restoring)
    return [f"`{os.fsdecode(save.path)}` was still written to: {save.reason}" for save in saved]


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
