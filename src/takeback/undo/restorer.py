"""Take back: plan what would be done, and do it. One look at the tree stands before each.

Everything happens under the lock of the project. The look makes a checkpoint if anything
changed, so what a plan speaks of is in the store before it is touched: that is the safety
checkpoint, and the way back.
"""

import os
import time

from takeback.capture.changes import Trees
from takeback.capture.checkpoint import NOTHING, Place, Request
from takeback.capture.safe_points import SafePoints, touched_sessions
from takeback.effects.rescue import settle
from takeback.effects.saved import returning
from takeback.errors import (
    BlockedError,
    ConflictError,
    DecisionNeededError,
    StalePlanError,
    UsageError,
)
from takeback.history.lookup import Place as Folder
from takeback.ledger.journal import Journal
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.ledger.undo_stack import ALL_SHARED
from takeback.model import ids, reasons
from takeback.model.beyond.participants import CONFLICTS, EVERY, FILES, KINDS
from takeback.model.plan import SETTLED, Plan, Remark, Report, entry_ids, move_states
from takeback.model.reasons import Action, Reason
from takeback.model.tree import FOLDER, UnstoredFile, is_same
from takeback.model.words import REDO, RESCUED, ROLLBACK, count
from takeback.objects.git_objects import BLOB
from takeback.participants import moves
from takeback.undo import apply, own, rescue
from takeback.undo.apply import Finish, MovedError
from takeback.undo.plans import planner as planning
from takeback.undo.plans import select, standing
from takeback.undo.told_again import as_done, as_nothing, moved
from takeback.worktree.stage import Shut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.capture.workspace import Workspace
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow, Event
    from takeback.model.beyond.git_changes import State
    from takeback.model.history import RunningSession
    from takeback.model.plan import Description, Preview
    from takeback.model.results import Checkpoint
    from takeback.model.text.json_text import Json
    from takeback.model.tree import Entry


_TRIES = 3
_LONGEST_REASON = 2000
_MOST_NAMED = 3


class Restorer(SafePoints):
    """Plans restores of one project and carries them out. With the lock held."""

    def __init__(self, work: "Workspace", inside: bytes = b"") -> None:
        super().__init__(work)
        self._store = work.store
        self._folder = Folder(work.root, inside)
        self.has_restored = False
        """Whether anything was done, and not only told again."""
        self._looked = 0
        """When the last look at the whole tree began."""
        self._trees: Trees | None = None
        self._git: State = {}

    def plan(self, what: "Description") -> Plan:
        """Look at the tree, then plan; any process can apply the plan by its id."""
        self._ledger.journal.require_sound()
        self._capture_beside(what)
        shut = Shut(self._work.rules.open_root())
        try:
            plan, _ = self._planned(what, self._safety(), shut)
            plan = plan.replace(running=_running(self._ledger, plan))
        finally:
            shut.close()
        return plan.replace(id=self._ledger.plans.add(plan, what, time.time_ns()))

    def plan_again(self, id: str) -> Plan:
        """A plan that was shown, made anew; an error if it is not the same any more."""
        self._ledger.journal.require_sound()
        preview = self._ledger.plans.get(id, time.time_ns())
        self._capture_beside(preview.description)
        shut = Shut(self._work.rules.open_root())
        try:
            plan, _ = self._planned(preview.description, self._safety(), shut)
        finally:
            shut.close()
        _changed_since(preview, plan)
        return plan.replace(id=id, running=_running(self._ledger, plan))

    def apply(
        self,
        id: str,
        *,
        because: str = "",
        keep_mtime: bool = False,
        yes: bool = False,
        asker: str = "",
        only_own: bool = False,
    ) -> Report:
        """Make a plan that was shown once more, and do it if it is still the same.

        Its id is that of the request, so that it is applied once.
        """
        request = f"plan:{id}"
        known = self._ledger.requested(request) if ids.is_prefix(id) else None
        if known is not None:
            return self._done_before(str((known.payload or {}).get("verb")), known)
        preview = self._ledger.plans.get(id, time.time_ns())
        return self.carry_out(
            preview.description,
            preview,
            because=because,
            keep_mtime=keep_mtime,
            yes=yes,
            asker=asker,
            only_own=only_own,
            request=request,
        )

    def carry_out(
        self,
        what: "Description",
        preview: "Preview | None" = None,
        *,
        because: str = "",
        keep_mtime: bool = False,
        yes: bool = False,
        asker: str = "",
        only_own: bool = False,
        request: "str | None" = None,
    ) -> Report:
        """Look at the tree, plan, and do it; only as in the `preview`, if there was one.

        `asker` is the session that asks for it, so that its next call is not refused. With
        `only_own`, what touches more than that session's own changes is refused.
        """
        self._ledger.journal.require_sound()
        known = self._ledger.requested(request)
        if known is not None:
            return self._done_before(what.verb, known)
        self._store.lock.announce_restore()
        self._capture_beside(what)
        shut = Shut(self._work.rules.open_root())
        done: tuple[bytes, ...] = ()
        try:
            report = self._try(
                what,
                shut,
                preview,
                because,
                keep_mtime=keep_mtime,
                yes=yes,
                asker=asker,
                only_own=only_own,
                request=request,
            )
            done = tuple(change.raw_path for change in report.plan.changes)
            return report
        finally:
            shut.close(done)

    def _try(
        self,
        what: "Description",
        shut: Shut,
        preview: "Preview | None",
        because: str,
        *,
        keep_mtime: bool,
        yes: bool,
        asker: str,
        only_own: bool,
        request: "str | None",
    ) -> Report:
        """Plan, and do it; again, if somebody saves in between."""
        moved: frozenset[bytes] = frozenset()
        planned: Plan | None = None
        for _ in range(_TRIES):
            now = self._safety(again=moved, modes=shut.modes)
            plan, now = self._planned(what, now, shut)
            since: tuple[bytes, ...] = ()
            if preview is not None:
                since = _changed_since(preview, plan)
                plan = plan.replace(id=preview.id)
            if only_own:
                running = _running(self._ledger, plan, asker)
                own.require(self._ledger, plan.replace(running=running), asker)
            _require_decided(plan, yes=yes)
            saves = _saves_since(planned, plan, now)
            planned = planned or plan
            try:
                now = self._capture_left_out(plan, now, shut)
                report = self._apply(
                    plan, now, because, saves, keep_mtime=keep_mtime, asker=asker, request=request
                )
                return report.replace(raw_since_preview=since)
            except MovedError as problem:
                # A save between the look and now; or bytes that changed without any stamp.
                moved = frozenset(problem.paths)
        raise BlockedError(
            "a program keeps writing to the files to be restored",
            hint="wait until it ends, or stop it, and try again; nothing was changed",
        )

    # -- the pieces ------------------------------------------------------------------------

    def _capture_beside(self, what: "Description") -> None:
        """The safety capture of what may move beside the files."""
        kinds = KINDS if not what.paths else ()
        chosen = [kind for kind in kinds if kind in (what.only or EVERY)]
        if chosen:
            self._work.participants.require_settled()
            self._work.participants.capture(kinds=chosen)

    def _safety(
        self,
        *,
        rehash: bool = False,
        wanted: "frozenset[bytes]" = frozenset(),
        again: "frozenset[bytes]" = frozenset(),
        modes: "Mapping[bytes, int] | None" = None,
    ) -> "CheckpointRow":
        at = self._looked = time.time_ns()
        dead, late = self.dead_sessions(at), self.late_turns()
        request = Request(
            at,
            Place(title="before a restore"),
            {row.id: ended for row, ended in dead},
            rehash=rehash,
            wanted=wanted,
            again=again,
            modes=modes or NOTHING,
            progress=self._work.progress,
            late=late,
        )
        seen = self._work.checkpoint_if_changed(request)
        self.close_dead_sessions(dead, seen, at)
        self.end_late_turns(late, seen, at)
        settle(self._work)  # also of a command whose agent died
        return self._row(seen)

    def _planned(
        self, what: "Description", now: "CheckpointRow", shut: Shut
    ) -> "tuple[Plan, CheckpointRow]":
        """A plan, and the look that it is for; what nobody may read is opened, and captured."""
        tried: set[bytes] = set()
        while True:
            planner = self._planner(now)
            plan = returning.with_rescued(self._work, planner, planner.plan(what))
            plan = self._within(what, plan)
            closed = planner.shut(plan) - tried
            tried |= closed
            if not shut.open(closed):
                return plan, now
            try:
                now = self._safety(modes=shut.modes)
            finally:
                shut.shut_files()

    def _within(self, what: "Description", plan: Plan) -> Plan:
        """A plan with what it does beside the files, and without these if only that is meant."""
        plan = plan.replace(only=what.only, cursor=what.cursor or plan.cursor)
        found = moves.Moving(self._ledger, self._work.participants).plan(what, plan)
        plan = plan if _has_files(plan) else _without_files(plan)
        return plan.replace(moves=found)

    def _row(self, seen: "Checkpoint") -> "CheckpointRow":
        return self._ledger.checkpoints.with_prefix(seen.id)[0]

    def _planner(self, now: "CheckpointRow") -> "planning.Planner":
        if self._trees is None:
            # Kept for all plans of this restore: what has one hash is read once.
            self._trees = Trees(self._work.objects)
            self._git = self._work.git_state()
        look, at = self._work.outside().now, time.time()
        return planning.Planner(self._ledger, self._trees, now, self._folder, at, self._git, look)

    def _capture_left_out(self, plan: Plan, now: "CheckpointRow", shut: Shut) -> "CheckpointRow":
        """What a plan touches is captured first, whatever its size."""
        wanted = frozenset(
            c.raw_path for c in plan.changes if c.before is not None and c.before.reason
        )
        if not wanted:
            return now
        now = self._safety(rehash=True, wanted=wanted, modes=shut.modes)
        found = self._planner(now).now
        own = [c for c in plan.changes if not c.outside and c.how != RESCUED]
        inside = [c for c in own if c.raw_path not in wanted]
        # The plan knows nothing of what somebody saved between its look and this one.
        moved = [c.raw_path for c in inside if not is_same(found.at(c.raw_path), c.before)]
        if moved:
            raise MovedError(moved)
        return now

    def _is_only_git(self, plan: Plan) -> bool:
        """Whether a plan is about turns that changed git and no file: nothing is taken back."""
        if not any(each.code in reasons.OF_GIT for each in plan.stays):
            return False
        rows = map(self._ledger.turns.find, plan.turns)
        return not any(self._ledger.turns.is_entry(row.number) for row in rows if row is not None)

    def _apply(
        self,
        plan: Plan,
        now: "CheckpointRow",
        because: str,
        saves: "list[Remark]",
        *,
        keep_mtime: bool,
        asker: str,
        request: "str | None",
    ) -> Report:
        is_settled = any(each.why == SETTLED for each in plan.left)
        is_part = bool(plan.paths or not _has_files(plan)) and not is_settled
        together = self._work.participants.together(id := _new_id(), plan.moves)
        if (
            not plan.changes
            and not together.moves
            and (is_part or not plan.entry or self._is_only_git(plan))
        ):
            return self._nothing_done(plan, now, request)
        at = time.time_ns()
        plan = plan.replace(running=_running(self._ledger, plan, asker))
        why = because.strip()[:_LONGEST_REASON].encode("utf-8", "replace").decode()
        said = _said(plan, id, now, why, self._looked)
        said |= {"running": [each.id for each in plan.running]} if plan.running else {}
        said |= {"asker": asker} if asker else {}
        said |= standing.facts(self._ledger, plan)
        said["undo"] = self._reverse_of(plan, now)
        planner = self._planner(now)
        root = self._work.rules.open_root()
        try:
            made = self._store_texts(plan, at)
            ops = apply.with_closed_folders(apply.ops_inside(plan, planner, made), planner)
            parents = (now.event, *planner.parents(plan))
            away = apply.ops_away(plan, made)
            row = Journal(
                id, plan.verb, plan.called, ops, parents, away=away, together=together.names
            )
            apart = frozenset(c.raw_path for c in plan.changes if c.how == RESCUED)
            finish = Finish(row, said, at, request, apart)
            finish.rescued = saves
            looked: list[Checkpoint] = []
            place = Place(title=f"after {plan.verb} {id}")

            def look() -> None:
                request = Request(
                    time.time_ns(),
                    place,
                    finish=finish,
                    looked=self._looked,
                    progress=self._work.progress,
                )
                looked.append(self._work.checkpoint_if_changed(request))

            with moves.Offering(plan):
                apply.carry_out(
                    self._store,
                    root,
                    row,
                    finish,
                    look,
                    together,
                    keep_mtime=keep_mtime,
                    now=at,
                    progress=self._work.progress,
                )
        finally:
            os.close(root)
        self.has_restored = True
        after = (
            looked[0].id if looked else str(getattr(self._ledger.checkpoints.newest(), "id", ""))
        )
        done = tuple(change for change in plan.changes if change.raw_path not in finish.kept)
        return Report(
            plan.replace(changes=done),
            id=id,
            before=now.id,
            after=after,
            kept=tuple(Remark(path, finish.kept[path]) for path in sorted(finish.kept)),
            rescued=tuple(finish.rescued),
            undo=str(said["undo"]),
            because=str(said["because"]),
            moves=moved(plan.moves, together.outcomes),
            problems=tuple(
                Reason(reasons.SETUID_DROPPED, path=os.fsdecode(path)) for path in finish.dropped
            ),
        )

    def _store_texts(self, plan: Plan, at: int) -> "dict[bytes, Entry]":
        """Store what came of merges: recovery finds both states of every path in the store."""
        texts = {c.raw_path: c.after for c in plan.changes if isinstance(c.after, UnstoredFile)}
        if not texts:
            return {}
        writer = self._store.pack_writer()
        try:
            stored = {}
            for path, text in texts.items():
                stored[path] = text.stored(writer.add(BLOB, text.content))
            said: dict[str, Json] = {"packs": pack_facts(writer.finish())}
            self._ledger.record(NewEvent(events.TEXTS_MERGED, said, at))
        except BaseException:
            self._ledger.abandon()
            writer.abort()
            raise
        return stored

    def _reverse_of(self, plan: Plan, before: "CheckpointRow") -> str:
        """The command that reverses a plan that is about to be applied."""
        if plan.verb != REDO:
            return "takeback undo" if plan.verb == ROLLBACK else "takeback redo"
        undo = self._ledger.stack.find(plan.restore)
        items = select.undone_by(self._ledger, undo) if undo is not None else []
        items = [item for item in items if item.id in (*plan.turns, plan.target)]
        if undo is None or plan.paths or any(item.undone != undo.number for item in items):
            # Not all of what it takes to be live comes back with it.
            return f"takeback rollback {before.id[:8]}"
        is_share = bool(undo.shared) and len(items) < len(undo.turns)
        if is_share or standing.is_decided(self._ledger, undo):
            # An undo would leave what is shared, ask once more, or take what was kept.
            return f"takeback rollback {before.id[:8]}"
        shared = ["--shared"] if undo.shared == ALL_SHARED else []
        newest = select.newest(self._ledger)
        if len(items) == 1 and not shared and (newest is None or newest.opened < items[0].opened):
            return "takeback undo"
        return " ".join(["takeback undo", *(item.id[:8] for item in items), *shared])

    def _nothing_done(self, plan: Plan, now: "CheckpointRow", request: "str | None") -> Report:
        """Everything is as it shall be; a retry must not find that it is not so any more."""
        if request is not None:
            said: dict[str, Json] = {"checkpoint": now.id, "label": "", "looked": self._looked}
            said |= {"verb": plan.verb, "target": plan.target, "title": plan.title}
            self._record(events.CHECKPOINT_NAMED, said, (now.event,), request)
        return Report(plan, id="", before=now.id, after=now.id)

    def _done_before(self, verb: str, event: "Event") -> Report:
        """What an earlier call with the same request reported."""
        said = event.payload or {}
        if said.get("verb") == verb and event.kind == events.RESTORE_APPLIED:
            return as_done(self._ledger, said)
        if said.get("verb") == verb and event.kind == events.CHECKPOINT_NAMED:
            return as_nothing(self._ledger, said)
        raise UsageError(
            f"the request id `{event.request}` was already used",
            hint="give each request an id of its own",
        )

    # -- after a crash ---------------------------------------------------------------------

    def set_aside(self) -> "list[Reason]":
        """Let work go on without journals that cannot be read; nothing of them is lost."""
        root = self._work.rules.open_root()
        try:
            return rescue.set_aside(self._store, root, time.time_ns())
        finally:
            os.close(root)

    def recover(self, *, died: bool) -> "list[Reason]":
        """Take back what was interrupted, and remove what was left of it; in words."""
        root = self._work.rules.open_root()
        try:
            told = apply.recover(self._store, root, time.time_ns(), self._work.participants)
            if died:
                with apply.Tidying(self._store.lock):
                    apply.sweep(self._store, root)
            return told
        finally:
            os.close(root)


def _running(ledger: "Ledger", plan: Plan, asker: str = "") -> "tuple[RunningSession, ...]":
    """The sessions in the middle of a turn whose files a plan changes, but for the asker."""
    paths = {change.raw_path for change in plan.changes}
    return touched_sessions(ledger, {*plan.turns, *plan.covers}, paths, asker)


def _changed_since(preview: "Preview", plan: Plan) -> "tuple[bytes, ...]":
    """What changed after the preview, and goes back with a whole rollback; else an error."""
    hint = preview.description.again
    if preview.entry != entry_ids(plan):
        raise StalePlanError("the history changed since this was planned", hint=hint)
    moved = preview.moved(plan)
    others = set(preview.moves) ^ set(move_states(plan))
    if others:
        named = ", ".join(f"`{name}`" for name in sorted({name for name, _ in others}))
        raise StalePlanError(
            f"{named} changed since this was planned; nothing was changed", hint=hint
        )
    if moved and preview.is_bound:
        named = ", ".join(f"`{os.fsdecode(path) or '.'}`" for path in moved[:_MOST_NAMED])
        more = f" and {len(moved) - _MOST_NAMED:,} more" if len(moved) > _MOST_NAMED else ""
        raise StalePlanError(
            f"{named}{more} changed since this was planned; nothing was changed",
            hint=hint,
            paths=tuple(map(os.fsdecode, moved)),
        )
    touched = {change.raw_path for change in plan.changes}
    return tuple(path for path in moved if path in touched)


def _has_files(plan: Plan) -> bool:
    """Whether a plan may move files."""
    return FILES in (plan.only or EVERY)


def _without_files(plan: Plan) -> Plan:
    """What a plan says of files does not hold if they stay."""
    names = "changes conflicts kept skipped shared losses doubts stays covers left raw_took partly"
    return plan.replace(**dict.fromkeys((*names.split(), "dependents", "raw_marked"), ()))


def _new_id() -> str:
    return ids.from_entropy(os.urandom(8))


def _saves_since(first: "Plan | None", plan: Plan, now: "CheckpointRow") -> "list[Remark]":
    """What was saved after the first plan was made, and is replaced by this one: where it is."""
    if first is None:
        return []
    before = {change.path: change.before for change in first.changes}
    # What was left out of the first look was there all along, and is captured by now.
    known = {path for path, entry in before.items() if entry is not None and entry.reason}
    return [
        Remark(change.raw_path, Reason(reasons.SAVED_BEFORE, checkpoint=now.id[:8]))
        for change in plan.changes
        if not change.outside and not change.merged and change.path not in known
        if change.before is not None and change.before.kind != FOLDER
        if change.path not in before or not is_same(change.before, before[change.path])
    ]


def _require_decided(plan: Plan, *, yes: bool) -> None:
    if plan.conflicts:
        raise ConflictError(
            f"{rescue.shown([each.raw_path for each in plan.conflicts])} cannot be taken back;"
            " nothing was changed",
            hint=(Action("decide"), Action("other-paths")),
            conflicts=tuple((remark.path, remark.reason) for remark in plan.conflicts),
        )
    clashing = [each for each in plan.moves if each.how == CONFLICTS]
    if clashing:
        named = ", ".join(f"`{each.differences[0].what}`" for each in clashing[:_MOST_NAMED])
        raise ConflictError(
            f"{named} changed since, so it cannot be taken back; nothing was changed",
            hint=(Action("decide-stays"), "nothing was changed"),
            conflicts=tuple(
                (each.differences[0].what, each.reason) for each in clashing if each.reason
            ),
        )
    if plan.doubts and not yes:
        raise DecisionNeededError(
            f"{count(len(plan.doubts), 'doubt needs', 'doubts need')} your consent",
            hint=Action("consent"),
            reasons=plan.doubts,
        )


def _said(
    plan: Plan, id: str, now: "CheckpointRow", because: str, looked: int
) -> "dict[str, Json]":
    """What the event of a restore says of it; what became of it is added when it is done."""
    return {
        "restore": id,
        "verb": plan.verb,
        "turn": plan.turn or None,
        "turns": list(plan.turns),
        "entry": plan.restore or None,
        "target": plan.target,
        "before": now.id,
        "partial": bool(plan.paths)
        or not _has_files(plan)
        or (plan.verb == REDO and bool(plan.partly)),
        "goal": plan.goal,
        "because": because,
        "session": plan.session or None,
        "looked": looked,
        "moves": [[each.name, each.kind, each.how, each.token, each.before] for each in plan.moves],
    }
