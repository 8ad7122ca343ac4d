"""Make plans: find what is meant, what it changed, and what the tree is now; `plans` decides."""

from takeback.engine import lookup, references, reverts, stack, titles, userwork
from takeback.engine.compare import Chosen, Saved, differences
from takeback.engine.merging import Merging
from takeback.engine.naming import CHECKPOINT, RESTORE, TURN
from takeback.engine.plans import Draft, in_order, other_sides, remarks, renamed
from takeback.engine.reverts import Changed, Reverts
from takeback.engine.trees import Trees
from takeback.errors import (
    DecisionNeededError,
    NothingToTakeBackError,
    StalePlanError,
    UnknownReferenceError,
    UsageError,
)
from takeback.model.plan import Plan, PlannedChange, Remark, Report
from takeback.model.terms import DECISIONS, REDO, ROLLBACK, UNDO
from takeback.store import restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    from takeback.engine.lookup import Place
    from takeback.engine.reverts import Taken
    from takeback.engine.stack import Item
    from takeback.model.jsontext import Json
    from takeback.model.tree import Entry
    from takeback.store.ledger import Ledger
    from takeback.store.restores import RestoreRow
    from takeback.store.rows import CheckpointRow


class View:
    """The tree of one checkpoint, path by path; the root has the empty path."""

    __slots__ = ("_row", "_trees")

    def __init__(self, trees: Trees, row: "CheckpointRow") -> None:
        self._trees = trees
        self._row = row

    def at(self, path: bytes) -> "Entry | None":
        """What is at a path; an entry with a reason if nobody knows."""
        return self._trees.at(self._row, path)

    def below(self, path: bytes) -> "list[Entry]":
        """What a folder holds."""
        return self._trees.below(self._row, path)


class _Since:
    """Who changed a path after it was left; looked up when somebody did."""

    def __init__(self, ledger: "Ledger", taken: "list[Taken]") -> None:
        self._ledger = ledger
        self._last = min((each.last for each in taken), default=0)
        self._found: dict[bytes, Changed] | None = None

    def of(self, path: bytes) -> "list[str]":
        """Who changed it, in words."""
        if self._found is None:
            self._found = reverts.changed_since(self._ledger, self._last)
        return self._found[path].names if path in self._found else []


class Planner:
    """Makes plans for the tree of one checkpoint, which holds what the tree is now."""

    def __init__(
        self,
        ledger: "Ledger",
        trees: Trees,
        now: "CheckpointRow",
        place: "Place",
        time: float,
        git: "Json",
    ) -> None:
        self._ledger = ledger
        self._row = now
        self._place = place
        self._time = time
        self._git = git
        self._trees = trees
        self._reverts = Reverts(ledger, self._trees)
        self._merging = Merging(trees.content, {})
        self.now = View(self._trees, now)

    def deciding(self, decide: "str | Mapping[bytes, str]") -> "Self":
        """The same, with what was decided about conflicts: for all of them, or path by path."""
        every = decide if isinstance(decide, str) else ""
        chosen = {} if isinstance(decide, str) else decide
        for decision in (every, *chosen.values()):
            if decision and decision not in DECISIONS:
                raise UsageError(
                    f"`{decision}` decides nothing", hint=f"one of: {', '.join(DECISIONS)}"
                )
        self._merging = Merging(self._trees.content, chosen, every)
        return self

    # -- undo ------------------------------------------------------------------------------

    def undo(self, ref: "str | None", session: "str | None", paths: "Iterable[bytes]" = ()) -> Plan:
        """Take back a turn or a rollback: the newest live one, or the one that is named."""
        within = self._session(session)
        newest = stack.newest(self._ledger, within)
        item = self._item(ref, within) if ref is not None else newest
        if item is None:
            raise self._nothing_to_undo(session, within)
        self._require_live(item)
        is_newest = newest is not None and newest.opened == item.opened
        passed = stack.passed_over(self._ledger, item, within) if ref is None else 0
        if item.restore is not None:
            taken = self._reverts.of_restore(item.before, item.after or item.before)
        else:
            taken = self._reverts.of_turns(item.number)
        return self._revert(UNDO, item, taken, tuple(paths), is_newest=is_newest, passed=passed)

    def _nothing_to_undo(
        self, session: "str | None", within: "int | None"
    ) -> NothingToTakeBackError:
        goes_back = "`takeback rollback REF` goes back to any state"
        if stack.newest_undo(self._ledger, within) is None:
            return NothingToTakeBackError(
                self._nothing("undo", session), hint=f"`takeback log` shows turns; {goes_back}"
            )
        return NothingToTakeBackError(
            self._nothing("undo", session).replace("nothing", "nothing left"),
            hint=f"`takeback redo` puts back what was taken back last; {goes_back}",
        )

    def _require_live(self, item: "Item") -> None:
        if item.undone is not None:
            raise NothingToTakeBackError(
                f"`{item.id}` is undone already", hint=f"`takeback redo {item.id}` puts it back"
            )
        self._require_uncovered(item)

    def _require_uncovered(self, item: "Item") -> None:
        if item.covered is not None:
            over = restores.find(self._ledger, "WHERE number = ?", (item.covered,))
            name = over.id if over is not None else ""
            raise NothingToTakeBackError(
                f"the rollback `{name}` went back over `{item.id}`",
                hint=f"`takeback undo {name}` takes the rollback back",
            )

    # -- redo ------------------------------------------------------------------------------

    def redo(self, ref: "str | None", session: "str | None", paths: "Iterable[bytes]" = ()) -> Plan:
        """Put back what an undo took: the newest undo, or that of what is named."""
        within = self._session(session)
        newest = stack.newest_undo(self._ledger, within)
        undo = newest
        if ref is not None:
            item = self._item(ref, within)
            self._require_uncovered(item)
            undo = stack.undo_of(self._ledger, item)
        if undo is None:
            what = f"`{ref}` is not undone" if ref is not None else self._nothing("redo", session)
            raise NothingToTakeBackError(what, hint="`takeback log --all` shows what was undone")
        if ref is None:
            self._require_unblocked(undo, within)
        item = stack.undone_by(self._ledger, undo)
        self._require_uncovered(item)
        taken = self._reverts.of_restore(undo.before, undo.after, undo.turn)
        is_newest = newest is not None and newest.number == undo.number
        plan = self._revert(REDO, item, taken, tuple(paths), is_newest=is_newest, passed=0)
        plan.restore = undo.id
        return plan

    def _require_unblocked(self, undo: "RestoreRow", within: "int | None") -> None:
        """After an undo and new work, putting it back is a decision, not a reflex."""
        newest = stack.newest(self._ledger, within)
        if newest is None or newest.opened < undo.event:
            return
        item = stack.undone_by(self._ledger, undo)
        raise DecisionNeededError(
            f"{newest.called} (`{newest.id[:8]}`) came after the undo of {item.called}",
            hint=f"`takeback redo {item.id[:8]}` puts it back all the same",
        )

    # -- both ------------------------------------------------------------------------------

    def _revert(
        self,
        verb: str,
        item: "Item",
        taken: "list[Taken]",
        paths: "tuple[bytes, ...]",
        *,
        is_newest: bool,
        passed: int,
    ) -> Plan:
        chosen = self._choose(paths, [each.path for each in taken], item)
        draft = Draft(self.now, self._merging)
        since = _Since(self._ledger, taken)
        renames = renamed(taken)
        others = other_sides(renames, chosen.cover)
        for each in taken:
            folder_at = lambda path, each=each: self._reverts.before(each, path)  # noqa: E731
            if chosen.cover(each.path):
                draft.revert(each, folder_at, since.of)
            elif each.path in others:
                draft.take_along(each, others[each.path], folder_at, since.of)
        draft.hold_back(renames, taken)
        if item.restore is None and verb == UNDO:
            for path in filter(chosen.cover, self._reverts.left_out(item.number)):
                draft.skipped.setdefault(path, "not covered, so it stays")
        draft.finish()
        if not chosen.paths:
            self._keep_yours(draft, item)
        shared = self._shared(item) if verb == UNDO else ()
        whose = (item.agent,) if item.agent else ()
        return Plan(
            verb,
            base=self._row.tree.hex(),
            target=item.id,
            title=item.title,
            changes=draft.changes(lambda _: whose),
            turn=item.id if item.restore is None else "",
            restore=item.id if item.restore is not None else "",
            is_newest=is_newest,
            conflicts=in_order(draft.conflicts),
            kept=remarks(draft.kept),
            skipped=remarks(draft.skipped),
            shared=tuple(remark for remark in shared if chosen.cover(remark.path)),
            doubts=userwork.doubts(item, self._git),
            stays=userwork.stays(item, self._git, self._place.root) if verb == UNDO else (),
            passed_over=passed,
            paths=chosen.paths,
            session=item.session,
            agent=item.agent,
        )

    def _keep_yours(self, draft: Draft, item: "Item") -> None:
        """Say that what you did since stays."""
        for path in self._reverts.yours(item.before, self._row):
            if not any(path in told for told in (draft.wishes, draft.conflicts, draft.skipped)):
                draft.kept.setdefault(path, "yours")

    def _shared(self, item: "Item") -> "tuple[Remark, ...]":
        if item.restore is not None:
            return ()
        found = self._reverts.shared(item.session, item.before, item.after)
        return tuple(Remark(path, "shared with another session, so it stays") for path in found)

    # -- rollback --------------------------------------------------------------------------

    def rollback(
        self, ref: str, session: "str | None" = None, paths: "Iterable[bytes]" = ()
    ) -> Plan:
        """Bring everything, or some paths, back to a state, exactly."""
        meant = references.find(self._ledger, ref, self._time, self._session(session))
        row = references.state_of(self._ledger, meant, self._time)
        goal = titles.goal(self._ledger, meant)
        objects = self._trees.objects
        then, now = Saved(objects, row), Saved(objects, self._row)
        chosen = Chosen(lookup.choose((now, then), paths, self._place))
        view, draft = View(self._trees, row), Draft(self.now, self._merging)
        for found in differences(now, then, chosen.paths):
            draft.exactly(found, view.at)
        draft.finish()
        since = reverts.changed_since(self._ledger, row.number)
        nobody = Changed()
        for path, wish in draft.wishes.items():
            wish.how = since.get(path, nobody).how
        covers = () if chosen.paths else tuple(stack.covered_by(self._ledger, row.number))
        return Plan(
            ROLLBACK,
            base=self._row.tree.hex(),
            target=row.id,
            title=titles.of_goal(self._ledger, goal, row),
            goal=goal,
            changes=draft.changes(lambda path: tuple(since.get(path, nobody).names)),
            conflicts=in_order(draft.conflicts),
            skipped=remarks(draft.skipped),
            kept=remarks(draft.kept),
            stays=() if chosen.paths else self._commits_since(row, covers),
            covers=covers,
            paths=chosen.paths,
        )

    def _commits_since(self, row: "CheckpointRow", covers: "tuple[str, ...]") -> "tuple[str, ...]":
        return userwork.commits_since(self._ledger, row, covers, self._git, self._place.root)

    def require_current(self, plan: Plan) -> None:
        """An error if a plan is of another project, or done by now; doubts as they are by now."""
        if plan.verb == ROLLBACK:
            if not self._ledger.with_prefix(plan.target):
                raise StalePlanError(
                    f"there is no checkpoint `{plan.target}` in this project",
                    hint="apply a plan to the project that it was made for",
                )
            return
        item = self._item(plan.target)
        if plan.verb == UNDO:
            self._require_live(item)
        else:
            undo = restores.find(self._ledger, "WHERE id = ?", (plan.restore,))
            self._require_uncovered(item)
            if undo is None or undo.reversed is not None or undo.covered is not None:
                raise NothingToTakeBackError(
                    f"`{plan.entry}` was put back already", hint="`takeback log` shows it"
                )
        plan.doubts = userwork.doubts(item, self._git)

    # -- what is meant ---------------------------------------------------------------------

    def parents(self, plan: Plan) -> "tuple[int, ...]":
        """The event of what a plan goes back to, or takes back."""
        if plan.verb == ROLLBACK:
            return (self._ledger.with_prefix(plan.target)[0].event,)
        if plan.restore:
            row = restores.find(self._ledger, "WHERE id = ?", (plan.restore,))
            return (row.event,) if row is not None else ()
        query = "SELECT opened FROM turns WHERE id = ?"
        return tuple(int(opened) for (opened,) in self._ledger.rows(query, (plan.turn,)))

    def _item(self, ref: str, session: "int | None" = None) -> "Item":
        meant = references.find(self._ledger, ref, self._time, session)
        if meant.kind == TURN and not meant.before:
            return stack.turn(self._ledger, meant.number)
        if meant.kind == RESTORE and not meant.before:
            row = restores.find(self._ledger, "WHERE number = ?", (meant.number,))
            if row is not None and row.verb == ROLLBACK:
                return stack.rollback(self._ledger, row)
            if row is not None:
                return stack.undone_by(self._ledger, row if row.verb == UNDO else self._undo(row))
        hint = "`takeback log` shows turns and their ids"
        if meant.kind == CHECKPOINT or meant.before:
            hint = f"`takeback rollback {meant.ref}` goes back to that state"
        raise UnknownReferenceError(f"`{meant.ref}` means no turn and no rollback", hint=hint)

    def _undo(self, redo: "RestoreRow") -> "RestoreRow":
        row = restores.find(self._ledger, "WHERE number = ?", (redo.entry or 0,))
        assert row is not None, "a redo names the undo that it put back"
        return row

    def _session(self, session: "str | None") -> "int | None":
        if session is None:
            return None
        return references.session(self._ledger, session, self._time)

    def _nothing(self, verb: str, session: "str | None") -> str:
        where = f" in the session `{session}`" if session is not None else ""
        return f"there is nothing to {verb}{where}"

    def _choose(self, paths: "tuple[bytes, ...]", taken: "list[bytes]", item: "Item") -> Chosen:
        """The paths that are meant, of those that are taken back."""
        chosen = []
        for path in paths:
            meant = [
                candidate
                for candidate in self._place.candidates(path)
                if any(Chosen((candidate,)).cover(each) for each in taken)
            ]
            if not meant:
                shown = path.decode("utf-8", "replace")
                raise UnknownReferenceError(
                    f"{item.called} changed nothing at `{shown}`",
                    hint=f"`takeback show {item.id}` lists what it changed",
                )
            chosen.append(meant[0])
        return Chosen(tuple(chosen))


def reported(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that was done before, from what its event says."""
    rows = [ledger.with_prefix(str(said[name]))[0] for name in ("before", "after")]
    row = restores.find(ledger, "WHERE id = ?", (str(said["restore"]),))
    query = "SELECT path, verb FROM deltas WHERE checkpoint = ? AND who = 'restore' ORDER BY path"
    found = ledger.rows(query, (rows[1].number,)) if rows[0].id != rows[1].id else []
    plan = Plan(
        str(said["verb"]),
        base=rows[0].tree.hex(),
        target=str(said["target"]),
        title=titles.of(ledger, row) if row is not None else "",
        changes=tuple(PlannedChange(path, str(verb), None, None) for path, verb in found),
        turn=str(said["turn"] or ""),
        restore=str(said["entry"] or ""),
        is_newest=True,
        session=str(said["session"] or ""),
    )
    kept, rescued = (_remarks(said.get(name)) for name in ("kept", "rescued"))
    return Report(
        plan,
        id=str(said["restore"]),
        before=rows[0].id,
        after=rows[1].id,
        kept=kept,
        rescued=rescued,
        undo=str(said.get("undo", "")),
        because=str(said["because"]),
    )


def reported_as_nothing(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that had nothing to do, from what its event says."""
    (row,) = ledger.with_prefix(str(said["checkpoint"]))
    verb, target, title = (str(said[name]) for name in ("verb", "target", "title"))
    plan = Plan(verb, base=row.tree.hex(), target=target, title=title, changes=())
    return Report(plan, id="", before=row.id, after=row.id)


def _remarks(told: "Json") -> "tuple[Remark, ...]":
    pairs: Any = told or ()
    return tuple(Remark(_bytes(str(path)), str(reason)) for path, reason in pairs)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
