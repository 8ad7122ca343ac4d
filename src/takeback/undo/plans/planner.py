"""Make plans: find what is meant, what it changed, and what the tree is now; `plans` decides.

What counts as the work of a command, and may as well be the user's: taking it back asks.

It changed behind the stop of a turn, while a command of it ran on in the background: a server runs
for hours while somebody edits. Or nobody knows whether the command ran by then: a permission dialog
waits while somebody edits, and not every agent tells when it was answered; or it was killed.
"""

import copy
import os

from takeback.capture.changes import Trees
from takeback.disk.descent import whole as whole_path
from takeback.effects import effect_log
from takeback.errors import DecisionNeededError, UnknownReferenceError, UsageError
from takeback.history import lookup, references
from takeback.history.compare import Chosen, Saved, differences
from takeback.history.shared import SharedChanges, is_among, is_of
from takeback.ledger.undo_stack import ALL_SHARED, SHARED_AMONG
from takeback.model import reasons, tools, words
from takeback.model.beyond import losses
from takeback.model.plan import OPEN, Dependent, Plan, Remark
from takeback.model.reasons import Action, Reason
from takeback.model.tree import REGULAR, folders_above, is_unknown
from takeback.model.words import DECISIONS, REDO, ROLLBACK, UNDO, UNREADABLE
from takeback.undo import git_notes, outside
from takeback.undo.outside import Elsewhere
from takeback.undo.plans import reverts, select
from takeback.undo.plans.draft import Draft
from takeback.undo.plans.merge import Clash, Merging, TextMerge, clashing, has_markers
from takeback.undo.plans.renames import RenamedSince, moves, other_sides, renamed
from takeback.undo.plans.reverts import Changed, Reverts, Since
from takeback.undo.plans.select import Selection, Selector
from takeback.undo.plans.standing import Rest
from takeback.undo.plans.wishes import in_order, remarks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    from takeback.capture.changes import Trees
    from takeback.history.lookup import Place
    from takeback.history.shared import Span
    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.beyond.effects import Effect
    from takeback.model.beyond.git_changes import State
    from takeback.model.beyond.losses import Loss
    from takeback.model.plan import Conflict, Decisions, Dependent, Description, Left
    from takeback.model.tree import Entry
    from takeback.undo.outside import Look
    from takeback.undo.plans.renames import Move
    from takeback.undo.plans.reverts import Changed, Taken
    from takeback.undo.plans.select import Item

_MOST_NAMED = 3


def doubts(ledger: "Ledger", item: "Item") -> "Iterator[Reason]":
    """What needs consent when a turn is taken back."""
    if item.restore is not None:
        return
    for found, code in (
        (ledger.deltas.behind(item.number), reasons.AFTER_STOP),
        (ledger.deltas.perhaps(item.number), reasons.PERHAPS_RAN),
        (ledger.deltas.at_terminal(item.number), reasons.AT_TERMINAL),
        (ledger.deltas.unreported(item.number), reasons.NO_TOOL_EVENT),
        (ledger.deltas.by_unknown(item.number), reasons.UNKNOWN_AUTHOR),
    ):
        paths = tuple(os.fsdecode(path) for path in found if not tools.is_agents_own(path))
        if paths:
            yield Reason(code, turn=item.title, paths=paths)


def _spans(items: "Iterable[Item]") -> "list[Span]":
    return [(item.session, item.before, item.after) for item in items]


class View:
    """The tree of one checkpoint, path by path; the root has the empty path."""

    __slots__ = ("_row", "_trees")

    def __init__(self, trees: "Trees", row: "CheckpointRow") -> None:
        self._trees = trees
        self._row = row

    def at(self, path: bytes) -> "Entry | None":
        """What is at a path; an entry with a reason if nobody knows."""
        return self._trees.at(self._row, path)

    def below(self, path: bytes) -> "list[Entry]":
        """What a folder holds."""
        return self._trees.below(self._row, path)


class Planner:
    """Makes plans for the tree of one checkpoint, which holds what the tree is now."""

    def __init__(
        self,
        ledger: "Ledger",
        trees: Trees,
        now: "CheckpointRow",
        place: "Place",
        time: float,
        git: "State",
        look: "Look",
    ) -> None:
        self._ledger = ledger
        self._row = now
        self._place = place
        self._time = time
        self._git = git
        self._look = look
        """Looks at files outside the project; the store holds them then."""
        self._trees = trees
        self._select = Selector(ledger, time)
        self._reverts = Reverts(ledger, self._trees)
        self._merging = Merging(trees.content, {})
        self._with_shared = self._by_hunk = False
        self._shared = SharedChanges(ledger)
        self.now = View(self._trees, now)

    def plan(self, what: "Description") -> Plan:
        """The plan that is described."""
        planner = self.with_decisions(what.decide, shared=what.shared)
        planner._by_hunk = what.by_hunk
        if what.verb == ROLLBACK:
            return planner.rollback(what.refs[0], what.session, what.paths)
        if what.verb == REDO:
            return planner.redo(next(iter(what.refs), None), what.session, what.paths)
        if what.whole_session:
            return planner.undo_session(what.whole_session, what.paths)
        return planner.undo(what.refs, what.session, what.paths)

    def with_decisions(self, decide: "str | Decisions", *, shared: bool) -> "Self":
        """A copy, with what was decided about conflicts: for all, by path, or by path and hunk.

        `shared` takes along what may be another session's.
        """
        every = decide if isinstance(decide, str) else ""
        chosen = {} if isinstance(decide, str) else decide
        for decision in (every, *chosen.values()):
            if decision and decision not in DECISIONS:
                raise UsageError(
                    f"there is no decision `{decision}`", hint=f"use one of {', '.join(DECISIONS)}"
                )
        decided = copy.copy(self)
        decided._merging = Merging(self._trees.content, chosen, every)
        decided._with_shared = shared
        return decided

    def look_outside(self, path: bytes) -> "Entry | None":
        """The file at a path outside the project, which the store holds now; None if it cannot."""
        return self._look([path])[path].entry

    # -- undo and redo ---------------------------------------------------------------------

    def undo(
        self, refs: "Sequence[str]", session: "str | None", paths: "Iterable[bytes]" = ()
    ) -> Plan:
        """Take back turns or a rollback: the newest live entry, or those that are named."""
        is_anew = self._merging.is_anew
        chosen = self._select.to_undo(refs, session, shared=self._with_shared, anew=is_anew)
        return self._undo(chosen, tuple(paths))

    def undo_session(self, session: str, paths: "Iterable[bytes]" = ()) -> Plan:
        """Take back everything that a session did; what others did stays."""
        chosen = self._select.of_session(session, shared=self._with_shared)
        if chosen.items:
            return self._undo(chosen, tuple(paths))
        title = f"the session `{session}`"
        return Plan(UNDO, base=self._row.tree.hex(), target="", title=title, changes=())

    def _undo(self, chosen: Selection, paths: "tuple[bytes, ...]") -> Plan:
        item = chosen.newest
        if item.restore is not None:
            taken = self._reverts.of_restore(item.before, item.after or item.before)
            return self._revert(UNDO, chosen, taken, paths)
        spans = _spans(chosen.items)
        standing = self._shared.standing(spans, anew=self._merging.is_anew)
        meant = [row for row in standing if self._with_shared or is_among(row, spans)]
        along = {row: [i.number for i in chosen.items if is_of(row, *_spans([i]))] for row in meant}
        staying = [row for row in standing if row not in along]
        taken = self._reverts.of_turns(*chosen.turns, merging=self._merging, shared=list(along))
        if staying and not taken and not Elsewhere(self._ledger, chosen).runs:
            raise self._all_shared(chosen, staying)
        plan = self._revert(UNDO, chosen, taken, paths, self._remarks(staying, spans), along)
        if not along:
            return plan
        return plan.replace(took_shared=ALL_SHARED if self._with_shared else SHARED_AMONG)

    def _remarks(self, rows: "Sequence[DeltaRow]", spans: "Sequence[Span]") -> "tuple[Remark, ...]":
        """What stays because it is shared, and with whom."""
        found: dict[bytes, list[DeltaRow]] = {}
        for row in rows:
            found.setdefault(row.path, []).append(row)
        return tuple(
            Remark(path, Reason(reasons.SHARED, turns=ids, partners=names))
            for path in sorted(found)
            for ids, names in [self._partners(found[path], spans)]
        )

    def _partners(
        self, rows: "Sequence[DeltaRow]", spans: "Sequence[Span]"
    ) -> "tuple[tuple[str, ...], tuple[str, ...]]":
        """The turns that share something with these: their ids, and what one calls them."""
        found = self._shared.partners(rows, spans)
        names = (reverts.name_of(words.STEP, each.agent, each.label) for each in found)
        return tuple(each.id for each in found), tuple(names)

    def _all_shared(self, chosen: Selection, rows: "Sequence[DeltaRow]") -> DecisionNeededError:
        """Nothing can be taken back without what may be the work of others."""
        ids, names = self._partners(rows, _spans(chosen.items))
        own = tuple(item.id[:8] for item in chosen.items)
        hints = [Action("undo-shared", turns=own)]
        if ids:
            hints.append(Action("undo-together", turns=(*own, *(id[:8] for id in ids))))
        older = select.newest_entry(self._ledger)
        if chosen.is_newest and older is not None and older.opened < chosen.newest.opened:
            hints.append(Action("undo-older", turn=older.id[:8]))
        said = Reason(reasons.ALL_SHARED, turn=chosen.newest.title, turns=ids, partners=names)
        with_whom = f" with {', '.join(names[:_MOST_NAMED])}" if names else ""
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        return DecisionNeededError(
            f"nothing was changed: what {chosen.newest.called} did is shared{with_whom}{more}",
            hint=tuple(hints),
            reasons=(said,),
        )

    def redo(self, ref: "str | None", session: "str | None", paths: "Iterable[bytes]" = ()) -> Plan:
        """Put back what an undo took: the newest undo, or that of what is named."""
        self._merging.for_redo()
        chosen = self._select.to_redo(ref, session)
        undo = chosen.undo
        assert undo is not None, "what is put back was taken by an undo"
        if chosen.is_a_part:
            taken = self._reverts.of_undone(
                *chosen.turns, undo=undo, merging=self._merging, shared=self._last_of(chosen, undo)
            )
        else:
            taken = self._reverts.of_restore(undo.before, undo.after, undo.turns)
        return self._revert(REDO, chosen, taken, tuple(paths)).replace(restore=undo.id)

    def _last_of(self, chosen: Selection, undo: "RestoreRow") -> "set[bytes]":
        """What an undo took along and comes back now: what turns share, with the last of them."""
        items = select.undone_by(self._ledger, undo) if undo.shared else []
        others = [item for item in items if item.number not in chosen.turns]
        back = self._ledger.stack.put_back(undo)
        if not others or any(item.number not in back for item in others):
            return set()
        spans = _spans(items)
        rows = self._shared.ever(spans)
        return {row.path for row in rows if undo.shared == ALL_SHARED or is_among(row, spans)}

    def _revert(
        self,
        verb: str,
        chosen: Selection,
        taken: "list[Taken]",
        paths: "tuple[bytes, ...]",
        shared: "tuple[Remark, ...]" = (),
        along: "dict[DeltaRow, list[int]] | None" = None,
    ) -> Plan:
        newest = chosen.newest
        away = Elsewhere(self._ledger, chosen)
        known = [each.path for each in taken]
        own = [] if paths or verb != UNDO else [x for x in known if tools.is_agents_own(x)]
        taken = [each for each in taken if each.path not in own]
        if paths and verb == UNDO:
            # A turn that goes on after its undo stands for what it did since; it did the rest, too.
            known += self._reverts.ever_changed(*chosen.turns)
        within = self._choose(paths, known, chosen, away)
        since = Since(self._ledger, taken, chosen.turns)
        draft = self._draft(taken, chosen, since, within)
        if newest.restore is None and verb == UNDO:
            for path in filter(within.cover, self._reverts.left_out(*chosen.turns)):
                if self.now.at(path) is not None:
                    draft.skipped.setdefault(path, Reason(reasons.NOT_COVERED_STAYS))
        lost = self._lost(chosen, draft, within) if verb == UNDO else ()
        draft.finish()
        draft.kept |= dict.fromkeys(own, Reason(reasons.AGENTS_OWN))
        if not within.paths:
            self._keep_yours(draft, chosen)
        passed, stays = self._stays(chosen) if verb == UNDO else (chosen.passed, ())
        agent = chosen.one("agent")
        beyond = away.plan(self._merging, self._look, within.cover)
        outer = outside.changes(beyond, agent)
        turns = tuple(item.id for item in chosen.items if item.restore is None)
        rest = Rest(self.now, self._merging, self._reverts, chosen.turns, along or {})
        left = tuple(rest.left(taken, draft)) if verb == UNDO and turns else ()
        self._merging.require_known(draft.hunks | beyond.hunks)
        changes = (*draft.changes(lambda _: (agent,) if agent else ()), *outer)
        if verb == UNDO:
            stays += git_notes.staged(self._place.root, changes, self._git, stays)
        return Plan(
            verb,
            base=self._row.tree.hex(),
            target=newest.id,
            title=newest.title,
            changes=changes,
            turns=turns,
            restore=newest.id if newest.restore is not None else "",
            is_newest=chosen.is_newest,
            conflicts=in_order(draft.conflicts | beyond.conflicts),
            kept=remarks(draft.kept | beyond.kept),
            skipped=remarks(draft.skipped | beyond.skipped),
            shared=tuple(remark for remark in shared if within.cover(remark.raw_path)),
            losses=lost,
            dependents=self._dependents(since, draft, taken) if verb == UNDO else (),
            doubts=(*self._doubts(verb, chosen.items), *outside.doubts(outer)),
            stays=stays,
            passed_over=passed,
            raw_paths=within.paths,
            session=chosen.one("session"),
            agent=agent,
            left=left,
            raw_took=rest.took(taken, draft) if within.paths and turns and verb == UNDO else (),
            partly=self._partly(left, draft, beyond, chosen, verb),
            raw_marked=self._marked(draft),
            anew=verb == UNDO and self._merging.is_anew,
            effects=self._effects(chosen, turns) if verb == UNDO else (),
        )

    def _effects(self, chosen: Selection, turns: "tuple[str, ...]") -> "tuple[Effect, ...]":
        """What was done outside and stays: by the turns, and by those that are passed over."""
        found = effect_log.staying(self._ledger, turns)
        if chosen.passed:
            opened = chosen.newest.opened
            found += effect_log.staying_since(self._ledger, opened, chosen.within)
        return tuple(dict.fromkeys(found))

    def _stays(self, chosen: Selection) -> "tuple[int, tuple[Reason, ...]]":
        """How many turns are passed over that changed nothing, and what stays: git, left-out files.

        A turn that changed only these is passed over, too, and not for nothing.
        """
        root, now = self._place.root, self._git
        stays = git_notes.stays(self._ledger, chosen.items, now, root)
        if not chosen.passed:
            return 0, stays
        session, opened = chosen.within, chosen.newest.opened
        count, more = git_notes.passed_over(self._ledger, session, opened, now, root)
        known = set(self._ledger.git.turns_without_files(session, opened))
        head = (Reason(reasons.ONLY_GIT, count=count),) if count else ()
        others = effect_log.turns_since(self._ledger, opened, session) - known
        return chosen.passed - count - len(others), (
            *stays,
            *head,
            *more,
            *self._uncovered_since(chosen),
        )

    def _marked(self, draft: Draft) -> "tuple[bytes, ...]":
        """The files in question that still hold the conflict markers of an earlier restore."""
        written = select.written_with_markers(self._ledger)
        touched = draft.wishes.keys() | draft.conflicts.keys() | draft.kept.keys()
        return tuple(sorted(filter(self._has_markers, written & touched)))

    def _has_markers(self, path: bytes) -> bool:
        entry = self.now.at(path)
        if entry is None or entry.reason or entry.kind != REGULAR:
            return False
        return has_markers(self._trees.content(entry))

    def _partly(
        self,
        left: "tuple[Left, ...]",
        draft: Draft,
        beyond: Draft,
        chosen: Selection,
        verb: str,
    ) -> "tuple[str, ...]":
        """The turns of which something is left that somebody wants to decide later."""
        if OPEN in (
            beyond.why_left(beyond.skipped),
            verb == REDO and draft.why_left(draft.skipped),
        ):
            return tuple(item.id for item in chosen.items if item.restore is None)
        numbers = {each.turn for each in left if each.why == OPEN}
        return tuple(item.id for item in chosen.items if item.number in numbers)

    def _draft(
        self, taken: "list[Taken]", chosen: Selection, since: Since, within: Chosen
    ) -> Draft:
        """What becomes of each path; of a rename, both names together."""
        first = min((each.first for each in taken), default=0)
        lost = sum(each.runs[0][1] is not None and not self.now.at(each.path) for each in taken)
        read = self._trees.content
        named = RenamedSince(self._ledger, read, first, chosen.turns, self.now.at, lost)
        draft = Draft(self.now, self._merging, named, by_hunk=self._by_hunk)
        renames = renamed(taken)
        in_part = bool(within.paths)
        found = moves(taken, renames, self.now, self._reverts.at, read, in_part=in_part)
        names = {move: {each.path for each in move.names} for move in found}
        for each_name in names.values():
            renames |= dict.fromkeys(each_name - renames.keys(), each_name)
        others = other_sides(renames, within.cover)
        moved: dict[bytes, Move] = {}
        done: dict[Move, bool] = {}
        for move in found:
            if within.cover(move.old.path) or move.old.path in others:
                moved |= dict.fromkeys(names[move], move)
        # What was done under a later name is taken back before what was done under an earlier one.
        for each in sorted(taken, key=lambda each: each.order):
            draft.revert_older(each.order)
            own = moved.get(each.path)
            if own is not None and own not in done:
                folder_at = lambda path, own=own: self._reverts.before(own.old, path)  # noqa: E731
                done[own] = draft.revert_move(own, folder_at, since.of)
            if own is not None and done[own]:
                draft.covered.add(each.path)
                draft.moved[each.path] = {name.path for name in own.names}
                continue
            folder_at = lambda path, each=each: self._reverts.before(each, path)  # noqa: E731
            if within.cover(each.path) or each.path in others:
                draft.covered.add(each.path)
            if within.cover(each.path):
                draft.revert(each, folder_at, since.of)
            elif each.path in others:
                draft.take_along(each, others[each.path], folder_at, since.of)
        draft.revert_older()
        draft.hold_back(renames, taken)
        return draft

    def _lost(self, chosen: Selection, draft: Draft, within: Chosen) -> "tuple[Loss, ...]":
        """What the turns lost outside cover and is still missing.

        What they put in its place stays: what was there before is unknown, not absent.
        """
        found = []
        for loss in self._ledger.losses.of_turns(chosen.turns):
            path = loss.raw_path
            own = [p for p in draft.wishes if p == path or p.startswith(path + b"/")]
            if not within.cover(path) or any(draft.wishes[p].target is not None for p in own):
                continue
            for each in own:
                del draft.wishes[each]
                draft.skipped[each] = Reason(reasons.NOT_COVERED, why=loss.reason)
            is_there = self.now.at(path) is not None
            if is_there and loss.what == losses.GONE:
                if own:
                    found.append(loss.replace(what=losses.REPLACED))
                continue
            found.append(loss)
        return tuple(found)

    def _uncovered_since(self, chosen: Selection) -> "tuple[Reason, ...]":
        """What newer turns changed outside cover that are passed over."""
        found = self._ledger.losses.between(chosen.newest.opened)
        paths = tuple(os.fsdecode(loss.raw_path) for loss in found if not loss.is_grave)
        return (Reason(reasons.UNCOVERED_CHANGED, paths=paths),) if paths else ()

    def _dependents(
        self, since: Since, draft: Draft, taken: "list[Taken]"
    ) -> "tuple[Dependent, ...]":
        def clash(conflict: "Conflict", checkpoint: int) -> object:
            state = self._reverts.at(checkpoint, conflict.raw_path)
            found = self._merging.outcome(conflict.base, conflict.theirs, state)
            if isinstance(found, TextMerge) and found.is_clean:
                return None
            return clashing(found) if isinstance(found, Clash | TextMerge) else None

        return since.dependents(draft.conflicts, taken, clash)

    def _keep_yours(self, draft: Draft, chosen: Selection) -> None:
        """Say that what you did since stays."""
        for path in self._reverts.yours(chosen.before, self._row):
            told = (draft.wishes, draft.conflicts, draft.skipped, draft.old_names)
            if not any(path in each for each in told):
                draft.kept.setdefault(path, Reason(reasons.YOURS))

    # -- rollback --------------------------------------------------------------------------

    def rollback(
        self, ref: str, session: "str | None" = None, paths: "Iterable[bytes]" = ()
    ) -> Plan:
        """Bring everything, or some paths, back to a state, exactly."""
        meant = references.find(self._ledger, ref, self._time, self._select.session(session))
        row = references.state_of(self._ledger, meant, self._time)
        goal = references.goal(self._ledger, meant)
        objects = self._trees.objects
        then, now = (Saved(objects, each, self._ledger) for each in (row, self._row))
        chosen = Chosen(lookup.choose((now, then), paths, self._place))
        view = View(self._trees, row)
        read = self._trees.content
        named = RenamedSince(self._ledger, read, row.number, (), self.now.at, 0)
        draft = Draft(self.now, self._merging, named)
        for found in differences(now, then, chosen.paths):
            draft.exactly(found, view.at)
        draft.finish()
        since = reverts.changed_since(self._ledger, row.number)
        nobody = Changed()
        for path, wish in draft.wishes.items():
            wish.how = since.get(path, nobody).how
        covers = () if chosen.paths else tuple(self._ledger.turns.changed_since(row.number))
        return Plan(
            ROLLBACK,
            base=self._row.tree.hex(),
            target=row.id,
            title=references.of_goal(self._ledger, goal, row),
            goal=goal,
            changes=draft.changes(lambda path: tuple(since.get(path, nobody).names)),
            conflicts=in_order(draft.conflicts),
            skipped=remarks(draft.skipped),
            kept=remarks(draft.kept),
            losses=self._lost_since(row, view, chosen),
            stays=() if chosen.paths else self._what_stays(row, covers),
            covers=covers,
            raw_paths=chosen.paths,
            raw_marked=self._marked(draft),
            effects=() if chosen.paths else effect_log.staying_since(self._ledger, row.event),
            cursor=references.cursor_of(self._ledger, meant),
        )

    def _lost_since(self, row: "CheckpointRow", then: View, chosen: Chosen) -> "tuple[Loss, ...]":
        """What was there, outside cover, and is lost by now, whoever did that."""
        return tuple(
            loss
            for loss in self._ledger.losses.between(row.event)
            if loss.is_grave and chosen.cover(loss.raw_path) and is_unknown(then.at(loss.raw_path))
            if loss.what != losses.GONE or self.now.at(loss.raw_path) is None
        )

    def _what_stays(self, row: "CheckpointRow", covers: "tuple[str, ...]") -> "tuple[Reason, ...]":
        said = git_notes.since_state(self._ledger, row, covers, self._git, self._place.root)
        return (*said, *outside.staying(self._ledger, covers))

    def shut(self, plan: Plan) -> "set[bytes]":
        """What nobody may read of what a plan is about, or on the way to it."""
        paths = {remark.raw_path for remark in (*plan.conflicts, *plan.skipped)}
        for change in plan.changes:
            is_open = change.before is None or change.before.mode & 0o400
            paths |= set(folders_above(change.raw_path)) if is_open else {change.raw_path}
        found, known = set(), set()
        for path in paths:
            for above in (*folders_above(path), path):
                if above in known or above.startswith(b"/"):
                    continue
                known.add(above)
                entry = self.now.at(above)
                if entry is not None and entry.reason:
                    found |= {above} if entry.reason == UNREADABLE else set()
                    break
        return found

    def _doubts(self, verb: str, items: "Sequence[Item]") -> "tuple[Reason, ...]":
        """What needs consent before turns are taken back or put back: the doubts of each."""
        found: dict[Reason, None] = {}
        for item in items:
            behind = doubts(self._ledger, item) if verb == UNDO else ()
            found |= dict.fromkeys((*git_notes.doubts(item, self._git), *behind))
        return tuple(found)

    # -- what is meant ---------------------------------------------------------------------

    def parents(self, plan: Plan) -> "tuple[int, ...]":
        """The event of what a plan goes back to, or takes back."""
        if plan.verb == ROLLBACK:
            return (self._ledger.checkpoints.with_prefix(plan.target)[0].event,)
        if plan.restore:
            row = self._ledger.stack.find(plan.restore)
            return (row.event,) if row is not None else ()
        rows = map(self._ledger.turns.find, plan.turns)
        return tuple(row.opened for row in rows if row is not None)

    def _choose(
        self,
        paths: "tuple[bytes, ...]",
        taken: "list[bytes]",
        selected: Selection,
        away: Elsewhere,
    ) -> Chosen:
        """The paths that are meant, of those that are taken back."""
        item = selected.newest
        chosen = []
        for path in paths:
            whole = whole_path(self._place.root, self._place.inside, path)
            if whole in away.runs:
                chosen.append(whole)
                continue
            meant = [
                candidate
                for candidate in self._place.candidates(path)
                if any(Chosen((candidate,)).cover(each) for each in taken)
            ]
            if not meant:
                shown = path.decode("utf-8", "replace")
                raise UnknownReferenceError(
                    f"{item.called} changed nothing at `{shown}`",
                    hint=Action("show", turn=item.id),
                )
            chosen.append(meant[0])
        return Chosen(tuple(chosen))
