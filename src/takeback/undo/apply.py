"""Carry out a plan: all of it, or nothing, also through a crash.

    preflight   everything that can be refused is refused here
    stage       what is to appear is written and synced; every object was read and checked
    prepare     participants do everything that can fail; a row in the phase `staging` names them
    journal     one row is committed: from here on recovery acts
    apply       each path changes in an instant
    verify      every path is looked at again
    rescue      saves that came in between and have no place in the tree go into the store
    finish      checkpoint, event, and the row is gone: now the restore happened
    commit      participants make it visible; one that cannot is repeated until it can
    clean       our folder in the tree is removed

What fails before the journal leaves nothing behind. What fails after it is taken back at once;
if even that fails, or the process dies, by whoever takes the lock next. Taking back is the same
code with the sides changed, so it can itself be interrupted at any step and taken up again.

What is committed with the checkpoint after a restore: its event, and whose changes it has. And what
a plan does, as operations.
"""

import os

from takeback.disk import descent, operations
from takeback.disk.sqlite import DatabaseError
from takeback.errors import DamagedStoreError, TakebackError, UnfinishedError
from takeback.ledger import journal
from takeback.ledger.beyond.participants import DECIDED
from takeback.ledger.journal import Away
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.ledger.outside import file_facts
from takeback.model import reasons, words
from takeback.model.ids import is_stage
from takeback.model.plan import Remark
from takeback.model.reasons import Action, Reason
from takeback.model.tree import FOLDER, REGULAR, SETUID, Op
from takeback.model.value import path_text
from takeback.undo import rescue
from takeback.worktree.roots import Roots, require_outside, require_possible
from takeback.worktree.stage import Stage
from takeback.worktree.swap import PathSwapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from takeback.capture.deltas import Delta
    from takeback.disk.lock import Lock
    from takeback.ledger.journal import Journal
    from takeback.model.history import Author
    from takeback.model.plan import Plan, Remark
    from takeback.model.text.json_text import Json
    from takeback.model.tree import Entry, Owner
    from takeback.participants.coordinator import Participants, Together
    from takeback.ports import Progress
    from takeback.store import Store
    from takeback.undo.plans.planner import Planner

    Late = list[dict[bytes, bytes]]

    """For each folder what some process still has open for writing: its name there, its path."""


class Finish:
    """What is committed together with the checkpoint after a restore."""

    def __init__(
        self,
        row: "Journal",
        said: "dict[str, Json]",
        at: int,
        request: "str | None",
        apart: "frozenset[bytes]" = frozenset(),
    ) -> None:
        self.journal = row.id
        self.late = False
        self.dropped: list[bytes] = []
        """The paths that are not setuid again."""
        self.kept: dict[bytes, Reason] = {}
        self.rescued: list[Remark] = []
        self._row = row
        self._said = said
        self._at = at
        self._request = request
        self._apart = apart
        """What comes from the rescue: no checkpoint held it, and none has to hold it now."""
        self._targets = {op.path: op.after for op in row.ops if op.path not in apart}

    @property
    def wanted(self) -> "set[bytes]":
        """What was brought back is captured, whatever the limits say by now: it can go again."""
        return {path for path, entry in self._targets.items() if entry is not None}

    @property
    def folders(self) -> "set[bytes]":
        """Where something changed: the folders of all paths, and those among them."""
        return {path.rpartition(b"/")[0] for path in self._targets} | set(self._targets)

    def author(self, delta: "Delta", other: "Author") -> "Author":
        """Who made a change: the restore, or who would have made it without one."""
        from takeback.model.history import Author

        return Author(words.RESTORE) if self._is_ours(delta) else other

    def _is_ours(self, delta: "Delta") -> bool:
        """Whether the restore made a change; somebody may have changed the path once more."""
        if delta.path in self._apart:
            return delta.path not in self.kept
        if delta.path not in self._targets or delta.path in self.kept:
            return False
        target = self._targets[delta.path]
        if target is None:
            return delta.verb in (words.DELETE, words.RMDIR)
        return target.kind == FOLDER or delta.verb == words.MODE or delta.strong == target.strong

    def event(self, checkpoint: str, cursor: int) -> NewEvent:
        """The event of the restore."""
        kept = _told(self.kept)
        rescued: list[Json] = [
            [path_text(each.raw_path), each.reason.as_json()] for each in self.rescued
        ]
        said: dict[str, Json] = {
            **self._said,
            "after": checkpoint,
            "kept": kept,
            "rescued": rescued,
        }
        files = self._done_outside()
        if files:
            said["outside"] = files
        parents = (*self._row.parents, cursor)
        kind = events.RESTORE_APPLIED
        return NewEvent(kind, said, self._at, parents=parents, request=self._request)

    def _done_outside(self) -> "list[Json]":
        """What was done outside the project: path, before, after."""
        ops = [(away.path(op), op) for away in self._row.away for op in away.ops]
        return [
            [*file_facts(path, op.before), file_facts(path, op.after)[1]]
            for path, op in ops
            if path not in self.kept and path not in self._apart
        ]


def _told(kept: "dict[bytes, Reason]") -> "list[Json]":
    """As an event carries what was kept."""
    return [[path_text(path), kept[path].as_json()] for path in sorted(kept)]


# -- what a plan does, as operations --------------------------------------------------------


def ops_inside(plan: "Plan", planner: "Planner", made: "Mapping[bytes, Entry]") -> "list[Op]":
    """What is to be done; `before` as the safety checkpoint has it, `after` as it was stored.

    What was rescued may be in no checkpoint, so its plan looked itself.
    """
    changes = [c for c in plan.changes if not c.outside]
    return [
        Op(
            c.raw_path,
            c.before if c.how == words.RESCUED and c.before is None else planner.now.at(c.raw_path),
            made.get(c.raw_path, c.after),
        )
        for c in changes
    ]


def ops_away(plan: "Plan", made: "Mapping[bytes, Entry]") -> "list[Away]":
    """What is to be done outside the project, folder by folder."""
    found: dict[bytes, list[Op]] = {}
    for change in plan.changes:
        if change.outside:
            folder = _nearest(change.raw_path) if change.how == words.RESCUED else b""
            folder = folder or descent.parted(change.raw_path)[0]
            name = change.raw_path[len(folder.rstrip(b"/")) + 1 :]
            op = Op(name, change.before, made.get(change.raw_path, change.after))
            found.setdefault(folder, []).append(op)
    return [Away(folder, ops) for folder, ops in sorted(found.items())]


def _nearest(path: bytes) -> bytes:
    """The nearest folder above a path that is there."""
    folder = descent.parted(path)[0]
    while folder != b"/" and not os.path.isdir(folder):
        folder = descent.parted(folder)[0]
    return folder


def with_closed_folders(ops: "list[Op]", planner: "Planner") -> "list[Op]":
    """With the folders that forbid to change what is in them: they are opened, and closed again."""
    seen = {op.path for op in ops}
    closed = []
    for op in ops:
        above = op.path
        while above:
            above = above.rpartition(b"/")[0]
            if above in seen:
                break
            seen.add(above)
            entry = planner.now.at(above)
            if entry is not None and entry.kind == FOLDER and entry.mode & 0o300 != 0o300:
                closed.append(Op(above, entry, entry))
    return [*ops, *closed]


# -- all of it, or nothing ------------------------------------------------------------------


class MovedError(Exception):
    """Paths changed after the safety checkpoint; nothing was touched."""

    def __init__(self, paths: "list[bytes]") -> None:
        super().__init__(paths)
        self.paths = paths


def carry_out(
    store: "Store",
    root: int,
    row: "Journal",
    finish: "Finish",
    commit: "Callable[[], None]",
    together: "Together",
    *,
    keep_mtime: bool,
    now: int,
    progress: "Progress | None" = None,
) -> None:
    """Bring every path to where it shall be. `commit` makes the checkpoint with its event."""
    if not row.ops and not row.away:
        together.alone(row, finish, commit)
        return
    roots = Roots(root, store.objects, row)
    roots.trust(_trusted(store, roots.ops))
    roots.report(progress)
    try:
        _preflight(store, roots)
        staged = _stage(store, roots, row, together, keep_mtime=keep_mtime)
        finish.dropped = roots.dropped
        late: Late = []
        try:
            for swapper, names in zip(roots.each, staged, strict=True):
                swapper.apply(names, forward=True)
            _require_done(roots, forward=True)
            finish.kept = roots.kept
            # What nobody writes to any more is final, and only then is it looked at.
            late = _still_written(roots)
            finish.rescued += _rescue(store, roots, row, now)
            finish.rescued += [
                Remark(path, Reason(reasons.STILL_OPEN)) for path in _paths(roots, late)
            ]
            finish.late = any(late) or bool(row.away) or together.is_due
            commit()
        except BaseException as problem:
            store.ledger.abandon()
            if _is_open(store, row):
                together.abort()
                # Begun anew: an interrupt may have left this one between any two steps.
                roots.close()
                roots = Roots(root, store.objects, row, is_way_back=True)
                roots.report(progress)
                why = _reason(problem)
                _bring_back(store, roots, row, now, why)
                _require_all_back(row, roots, problem, why)
                raise
            # It was committed, and only what follows the commit failed.
        is_over = together.is_due and together.commit()
        _clean(store, roots, row, late, is_over=is_over)
    except BaseException as problem:
        if not isinstance(problem, Exception):
            # An interrupt may come between any two steps, also those that tidy up.
            store.lock.leave_unclean()
        raise
    finally:
        roots.close()


def recover(store: "Store", root: int, now: int, participants: "Participants") -> "list[Reason]":
    """Take back what a process left that died in the middle of a restore; what became of it.

    `root` is the folder of the project, also if that is a copy by now of what it was then. What
    was decided is carried on instead.
    """
    found: list[Reason] = participants.go_on(DECIDED)
    for row in store.ledger.journal.read():
        if row.together and row.phase != journal.LATE:
            participants.abort(row.id, row.together)
        roots = Roots(root, store.objects, row, is_way_back=True)
        try:
            if row.phase != journal.APPLYING:
                found += _clean_late(store, roots, row, now)
            else:
                saved = _bring_back(store, roots, row, now, "its process died")
                found.append(_taken_back(row, roots))
                found += [rescue.of_path(save, reasons.SAVE_RESCUED) for save in saved]
        except UnfinishedError as problem:
            # Captures go on: without them new work would have no protection.
            found.append(Reason(reasons.NOT_TAKEN_BACK, problem=str(problem)))
        finally:
            roots.close()
    return found + [rescue.left_alone(row) for row in store.ledger.journal.damaged()]


def sweep(store: "Store", root: int) -> None:
    """Remove folders of ours that no journal speaks of: of restores that never began, or ended."""
    if store.ledger.journal.damaged():
        return  # it may be the row of any of them
    open_rows = {row.stage for row in store.ledger.journal.read()}
    for name in map(os.fsencode, os.listdir(root)):
        if not is_stage(name) or name in open_rows:
            continue
        stage = Stage(root, name, store.objects)
        try:
            stage.sweep()
        finally:
            stage.close()


# -- the way there -------------------------------------------------------------------------


def _preflight(store: "Store", roots: Roots) -> None:
    """Refuse, before anything is touched, what cannot be done."""
    for swapper in roots.each:
        if swapper.at:
            require_outside(swapper.root, swapper.ops, swapper.at)
        else:
            require_possible(swapper.root, swapper.ops)
    moved = roots.changed()
    if moved:
        roots.require_apart()
        raise MovedError(moved)
    _require_readable(store, roots.ops)


def _trusted(store: "Store", ops: "Sequence[Op]") -> "dict[bytes, Owner]":
    """Whose setuid programs were, if there are any among what is to appear."""
    after = [op.after for op in ops if op.after is not None]
    if not any(entry.kind == REGULAR and entry.mode & SETUID for entry in after):
        return {}
    from takeback.capture import deltas

    return deltas.captured(store.ledger)


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
                f"the content of `{os.fsdecode(op.path)}` cannot be read back: {problem}",
                hint=(Action("store-again"), "nothing was changed"),
            ) from problem


def _stage(
    store: "Store", roots: Roots, row: "Journal", together: "Together", *, keep_mtime: bool
) -> "list[dict[bytes, bytes]]":
    """Stage everything, let participants prepare, then commit the journal's row."""
    try:
        # After a power cut nobody would look for our folder without this mark.
        store.lock.make_durable()
        if row.away or together.is_due:
            # Nobody would look for our folders outside the project if no row spoke of them, and
            # nobody would tell participants that nothing came of it.
            store.ledger.journal.write(row, journal.STAGING)
        staged = [each.stage_all(forward=True, keep_mtime=keep_mtime) for each in roots.each]
        together.prepare()
        store.ledger.journal.write(row)
    except BaseException:
        store.ledger.abandon()
        if _is_open(store, row):
            store.lock.leave_unclean()
        else:
            together.abort()
            _clean(store, roots, row, [], is_over=together.is_due)
        raise
    return staged


def _is_open(store: "Store", row: "Journal") -> bool:
    """Whether the journal still has the row; if nobody can tell, the next start finds out."""
    try:
        return store.ledger.journal.is_open(row.id)
    except Exception:
        store.lock.leave_unclean()
        raise


def _require_done(roots: Roots, *, forward: bool) -> None:
    left = roots.unfinished(forward=forward)
    if left:
        shown = ", ".join(f"`{os.fsdecode(path)}`" for path in left[:3])
        raise TakebackError(f"the restore did not produce the planned result at {shown}")


def _still_written(roots: Roots) -> "Late":
    return [swapper.still_written() for swapper in roots.each]


def _paths(roots: Roots, late: "Late") -> "list[bytes]":
    """The paths of what is still being written to."""
    both = zip(roots.each, late, strict=True)
    return sorted({each.named(path) for each, held in both for path in held.values()})


def _rescue(store: "Store", roots: Roots, row: "Journal", now: int) -> "list[Remark]":
    """Keep saves that came in between; what was kept."""
    found = [rescue.into_store(store, swapper, row, now) for swapper in roots.each]
    return [remark for remarks in found for remark in remarks]


# -- the way back --------------------------------------------------------------------------


def _bring_back(store: "Store", roots: Roots, row: "Journal", now: int, why: str) -> "list[Remark]":
    """Bring every path back; the row goes when all of them are. What is in the store only."""
    try:
        for swapper in roots.each:
            swapper.kept = {}
            swapper.open_up(forward=False)
            swapper.stage.open()
            swapper.give_back()
            staged = swapper.stage_all(forward=False, keep_mtime=True)
            swapper.apply(staged, forward=False)
        _require_done(roots, forward=False)
        late = _still_written(roots)
        saved = _rescue(store, roots, row, now)
        said: dict[str, Json] = {"restore": row.id, "verb": row.verb}
        said |= {"why": why, "kept": _told(roots.kept)}
        over = NewEvent(events.RESTORE_TAKEN_BACK, said, now, parents=row.parents)
        store.ledger.record(over, closing=row.id, late=any(late) or bool(row.away))
    except BaseException as problem:
        store.ledger.abandon()
        store.lock.leave_unclean()
        if isinstance(problem, OSError | TakebackError):
            _settle(store, roots, row)
            reason = problem.strerror if isinstance(problem, OSError) else problem
            raise UnfinishedError(
                f"{row.verb} failed ({why}), and it could not be taken back yet: {reason}"
                f" ({_where(row, roots, problem)})",
                hint=(Action("next-command"), Action("free-paths")),
            ) from problem
        raise
    _clean(store, roots, row, late)
    return saved


def _settle(store: "Store", roots: Roots, row: "Journal") -> None:
    """Note which files are back: the next try must not take what is done to them by then."""
    try:
        settled = [op for each in roots.each for op in each.done() if not op.is_settled]
        if settled:
            for swapper in roots.each:
                operations.syncfs(swapper.root)
            for op in settled:
                op.is_settled = True
            store.ledger.journal.write(row)
    except (OSError, TakebackError, DatabaseError):
        store.ledger.abandon()  # the next try begins where this one did


def _reason(problem: BaseException) -> str:
    """Why a restore failed. What one of its looks says of itself is not true of all of it."""
    told = problem.strerror if isinstance(problem, OSError) else str(problem)
    return (told or "").removeprefix("nothing was changed: ") or type(problem).__name__


def _where(row: "Journal", roots: Roots, problem: BaseException) -> str:
    """The paths that are not back yet, as far as one can look."""
    try:
        left = roots.unfinished(forward=False)
    except OSError:
        left = []
    named = getattr(problem, "filename", None)
    first = [named] if isinstance(named, bytes) and named in {*left, *row.paths} else []
    return rescue.shown([*first, *(path for path in left or row.paths if path not in first)])


def _require_all_back(row: "Journal", roots: Roots, problem: BaseException, why: str) -> None:
    """An error if something that was changed is where nobody can bring it back."""
    lost = roots.out_of_reach
    if not lost:
        return
    left = UnfinishedError(
        f"{row.verb} failed ({why}) and was taken back, but not at {rescue.shown(lost)}:"
        " its folder was replaced",
        hint=(
            "files there may be as the restore left them; move them back",
            Action("diff"),
        ),
    )
    if isinstance(problem, Exception):
        raise left from problem
    problem.add_note(str(left))  # an interrupt stays one


def _taken_back(row: "Journal", roots: Roots) -> Reason:
    kept = sorted(roots.kept.items())
    return Reason(
        reasons.TAKEN_BACK,
        verb=row.verb,
        title=row.title,
        lost=tuple(map(os.fsdecode, roots.out_of_reach)),
        kept=tuple(os.fsdecode(path) for path, _ in kept),
        why=tuple(reason.code for _, reason in kept),
    )


# -- afterwards ----------------------------------------------------------------------------


def _clean(
    store: "Store", roots: Roots, row: "Journal", late: "Late", *, is_over: bool = False
) -> None:
    """Remove our folders; what was still being written to stays until it is not.

    The row goes with them if it speaks of folders outside, or if the restore `is_over` undone.
    """
    is_clean = not any(late)
    for swapper, held in zip(roots.each, late or [{} for _ in roots.each], strict=True):
        if not held:
            is_clean = _discard(store, swapper) and is_clean
            continue
        with Tidying(store.lock):
            for _, name, _ in swapper.stage.held():
                if name not in held:
                    swapper.stage.discard(name)
    if (row.away or is_over) and is_clean:
        with Tidying(store.lock):
            store.ledger.record(closing=row.id)


def _discard(store: "Store", swapper: PathSwapper) -> bool:
    """Remove our folder, as far as that can be done; else the next start does."""
    if swapper.stage.fd < 0:
        store.lock.leave_unclean()
        return False
    tidying = Tidying(store.lock)
    with tidying:
        swapper.stage.remove()
    return tidying.is_done


class Tidying:
    """Leaves to the next start what cannot be tidied up now; nothing depends on it."""

    def __init__(self, lock: "Lock") -> None:
        self._lock = lock
        self.is_done = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> bool:
        self.is_done = problem is None
        if problem is not None:
            self._lock.leave_unclean()
        return isinstance(problem, OSError | DatabaseError)


def _clean_late(store: "Store", roots: Roots, row: "Journal", now: int) -> "list[Reason]":
    """Remove our folders of a restore that is over, or never began, if nobody writes there.

    What was still written to when it ended is closed by now, or stays for another time.
    """
    roots.open_stages()
    if any(_still_written(roots)):
        return []
    saved = _rescue(store, roots, row, now) if row.phase == journal.LATE else []
    done = [_discard(store, swapper) for swapper in roots.each]
    if all(done):
        store.ledger.record(closing=row.id)
    return [rescue.of_path(save, reasons.LATE_SAVE_RESCUED) for save in saved]
