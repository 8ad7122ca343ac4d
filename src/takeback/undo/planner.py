"""Make plans: find what is meant, what it changed, and what the tree is now; `plans` decides.

What counts as the work of a command, and may as well be the user's: taking it back asks.

It changed behind the stop of a turn, while a command of it ran on in the background: a server runs
for hours while somebody edits. Or nobody knows whether the command ran by then: a permission dialog
waits while somebody edits, and not every agent tells when it was answered; or it was killed.

What happened to paths after what is taken back had left them: who did it, in which turns.
"""

import copy
import os

from takeback.capture.changes import Trees
from takeback.disk.descent import whole as whole_path
from takeback.errors import UnknownReferenceError, UsageError
from takeback.history import lookup, references
from takeback.history.compare import Chosen, Saved, differences
from takeback.model import reasons, words
from takeback.model.plan import FORCED, GONE, OPEN, SETTLED, Dependent, Left, Plan, Remark
from takeback.model.reasons import Reason
from takeback.model.tree import REGULAR, folders_above, is_same
from takeback.model.words import DECISIONS, REDO, ROLLBACK, UNDO, UNREADABLE
from takeback.undo import git_notes, outside, reverts
from takeback.undo.draft import Draft, in_order, remarks
from takeback.undo.merge import Clash, Merging, TextMerge, clashing, has_markers
from takeback.undo.outside import Elsewhere
from takeback.undo.renames import RenamedSince, Unmoved, moves, other_sides, renamed
from takeback.undo.reverts import Changed, Reverts
from takeback.undo.select import Selection, Selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Self

    from takeback.capture.changes import Trees
    from takeback.history.lookup import Place
    from takeback.ledger.checkpoints import NamedDelta
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json
    from takeback.model.lines import Block
    from takeback.model.plan import Conflict, Decisions, Dependent, Description
    from takeback.model.tree import Entry
    from takeback.undo.outside import Look
    from takeback.undo.renames import Move
    from takeback.undo.reverts import Changed, Taken
    from takeback.undo.select import Item

    ClashAt = Callable[[Conflict, int], object]

    """What of a conflict there was at a checkpoint; None if nothing."""

    Rest = tuple[int, str, tuple[Block, ...] | None]
    """What is left of a run: which it is, why it is left, and which blocks; None is all."""


def doubts(ledger: "Ledger", item: "Item") -> "Iterator[Reason]":
    """What needs consent when a turn is taken back."""
    if item.restore is not None:
        return
    for found, code in (
        (ledger.deltas.behind(item.number), reasons.AFTER_STOP),
        (ledger.deltas.perhaps(item.number), reasons.PERHAPS_RAN),
    ):
        if found:
            yield Reason(code, turn=item.title, paths=tuple(map(os.fsdecode, found)))


def original(
    blocks: "tuple[Block, ...] | None", standing: "frozenset[Block] | None"
) -> "tuple[Block, ...] | None":
    """Blocks of what stands of a change, as blocks of the change: by the lines before it."""
    if standing is None or blocks is None:
        return blocks if standing is None else tuple(sorted(standing))
    spans = [(start, end) for _, _, start, end in blocks]
    return tuple(
        sorted(each for each in standing if any(s <= each[3] and each[2] <= e for s, e in spans))
    )


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


class Since:
    """Who changed a path after it was left; looked up when somebody did."""

    def __init__(self, ledger: "Ledger", taken: "list[Taken]", turns: "tuple[int, ...]") -> None:
        self._ledger = ledger
        self._turns = turns
        self.last = min((each.last for each in taken), default=0)
        self._found: dict[bytes, Changed] | None = None

    def of(self, path: bytes) -> "list[str]":
        """Who changed it, in words."""
        if self._found is None:
            self._found = reverts.changed_since(self._ledger, self.last, self._turns)
        return self._found[path].names if path in self._found else []

    def dependents(
        self, conflicts: "Mapping[bytes, Conflict]", taken: "list[Taken]", clash: "ClashAt"
    ) -> "tuple[Dependent, ...]":
        """The later turns that build on what is taken back.

        They changed a path that was made by what is taken back, or a place that conflicts.
        """
        made = {each.path for each in taken if each.runs[-1][0] is None}
        if not made and not conflicts:
            return ()
        found: dict[str, Dependent] = {}
        rows = self._ledger.deltas.since(self.last, self._turns)
        live = [row for row in rows if row.who == words.STEP and row.is_live]
        for row in sorted(live, key=lambda row: row.turn_number or 0):
            conflict = conflicts.get(row.path)
            if row.path in made or (conflict is not None and self._is_of(conflict, row, clash)):
                id = row.turn or ""
                known = found.setdefault(id, Dependent(id, row.label or "", row.agent or ""))
                found[id] = known.replace(paths=tuple(sorted({*known.paths, row.path})))
        return tuple(found.values())

    def _is_of(self, conflict: "Conflict", row: "NamedDelta", clash: "ClashAt") -> bool:
        """Whether a change has to do with a conflict: without it, there would be less of it."""
        if conflict.base is None and conflict.theirs is None:
            return True
        before = self._ledger.checkpoints.parent_of(row.checkpoint)
        after = clash(conflict, row.checkpoint)
        return after is not None and after != clash(conflict, before)


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
                    f"`{decision}` decides nothing", hint=f"one of: {', '.join(DECISIONS)}"
                )
        decided = copy.copy(self)
        decided._merging = Merging(self._trees.content, chosen, every)
        decided._with_shared = shared
        return decided

    # -- undo and redo ---------------------------------------------------------------------

    def undo(
        self, refs: "Sequence[str]", session: "str | None", paths: "Iterable[bytes]" = ()
    ) -> Plan:
        """Take back turns or a rollback: the newest live entry, or those that are named."""
        is_anew = self._merging.is_anew
        return self._undo(self._select.to_undo(refs, session, anew=is_anew), tuple(paths))

    def undo_session(self, session: str, paths: "Iterable[bytes]" = ()) -> Plan:
        """Take back everything that a session did; what others did stays."""
        chosen = self._select.of_session(session)
        if chosen.items:
            return self._undo(chosen, tuple(paths))
        title = f"the session `{session}`"
        return Plan(UNDO, base=self._row.tree.hex(), target="", title=title, changes=())

    def _undo(self, chosen: Selection, paths: "tuple[bytes, ...]") -> Plan:
        if chosen.newest.restore is not None:
            item = chosen.newest
            taken = self._reverts.of_restore(item.before, item.after or item.before)
        else:
            spans = self._spans(chosen)
            taken = self._reverts.of_turns(*chosen.turns, merging=self._merging, shared=spans)
        return self._revert(UNDO, chosen, taken, paths)

    def _spans(self, chosen: Selection) -> "list[tuple[str, int, int | None]]":
        """When what is shared may have been done by these turns; empty, if it shall stay."""
        if not self._with_shared:
            return []
        return [(item.session, item.before, item.after) for item in chosen.items]

    def redo(self, ref: "str | None", session: "str | None", paths: "Iterable[bytes]" = ()) -> Plan:
        """Put back what an undo took: the newest undo, or that of what is named."""
        self._merging.for_redo()
        chosen = self._select.to_redo(ref, session)
        undo = chosen.undo
        assert undo is not None, "what is put back was taken by an undo"
        if chosen.is_a_part:
            taken = self._reverts.of_undone(*chosen.turns, undo=undo, merging=self._merging)
        else:
            taken = self._reverts.of_restore(undo.before, undo.after, undo.turns)
        return self._revert(REDO, chosen, taken, tuple(paths)).replace(restore=undo.id)

    def _revert(
        self, verb: str, chosen: Selection, taken: "list[Taken]", paths: "tuple[bytes, ...]"
    ) -> Plan:
        newest = chosen.newest
        away = Elsewhere(self._ledger, chosen)
        known = [each.path for each in taken]
        if paths and verb == UNDO:
            # A turn that goes on after its undo stands for what it did since; it did the rest, too.
            known += self._reverts.ever_changed(*chosen.turns)
        within = self._choose(paths, known, chosen, away)
        since = Since(self._ledger, taken, chosen.turns)
        draft = self._draft(taken, chosen, since, within)
        if newest.restore is None and verb == UNDO:
            for path in filter(within.cover, self._reverts.left_out(*chosen.turns)):
                draft.skipped.setdefault(path, Reason(reasons.NOT_COVERED_STAYS))
        draft.finish()
        if not within.paths:
            self._keep_yours(draft, chosen)
        shared = self._shared(chosen) if verb == UNDO and not self._with_shared else ()
        stays = [git_notes.stays(i, self._git, self._place.root) for i in reversed(chosen.items)]
        agent = chosen.one("agent")
        beyond = away.plan(self._merging, self._look, within.cover)
        outer = outside.changes(beyond, agent)
        turns = tuple(item.id for item in chosen.items if item.restore is None)
        left = tuple(self._rest(taken, draft, chosen.turns)) if verb == UNDO else ()
        self._merging.require_known(draft.hunks | beyond.hunks)
        return Plan(
            verb,
            base=self._row.tree.hex(),
            target=newest.id,
            title=newest.title,
            changes=(*draft.changes(lambda _: (agent,) if agent else ()), *outer),
            turns=turns,
            restore=newest.id if newest.restore is not None else "",
            is_newest=chosen.is_newest,
            conflicts=in_order(draft.conflicts | beyond.conflicts),
            kept=remarks(draft.kept | beyond.kept),
            skipped=remarks(draft.skipped | beyond.skipped),
            shared=tuple(remark for remark in shared if within.cover(remark.path)),
            dependents=self._dependents(since, draft, taken) if verb == UNDO else (),
            doubts=(*self._doubts(verb, chosen.items), *outside.doubts(outer)),
            stays=tuple(dict.fromkeys(s for said in stays for s in said)) if verb == UNDO else (),
            passed_over=chosen.passed,
            paths=within.paths,
            session=chosen.one("session"),
            agent=agent,
            left=left,
            took=self._took(taken, draft) if within.paths and turns and verb == UNDO else (),
            partly=self._partly(left, draft, beyond, chosen, verb),
            marked=self._marked(draft),
            anew=verb == UNDO and self._merging.is_anew,
        )

    def _took(self, taken: "list[Taken]", draft: Draft) -> "tuple[tuple[bytes, int], ...]":
        """The runs that were meant, if only some paths were."""
        return tuple(
            (each.path, last) for each in taken if each.path in draft.covered for last in each.lasts
        )

    def _marked(self, draft: Draft) -> "tuple[bytes, ...]":
        """The files in question that still hold the conflict markers of an earlier restore."""
        written: set[bytes] = set()
        for row in self._ledger.stack.with_markers():
            event = self._ledger.event(row.event)
            said: Any = (event.payload or {}).get("marked", ()) if event is not None else ()
            written |= {os.fsencode(path) for (path,) in said}
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
        others = other_sides(renames, within.cover)
        moved: dict[bytes, Move] = {}
        done: dict[Move, bool] = {}
        for move in moves(taken, renames, self.now, self._reverts.at, self._trees.content):
            names = {each.path for each in move.names}
            renames |= dict.fromkeys(names - renames.keys(), names)
            if within.cover(move.old.path) or move.old.path in others:
                moved |= dict.fromkeys(names, move)
        # What was done under a later name is taken back before what was done under an earlier one.
        for each in sorted(taken, key=lambda each: each.order):
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
        draft.hold_back(renames, taken)
        return draft

    # -- what is left of turns -------------------------------------------------------------

    def _rest(
        self, taken: "list[Taken]", draft: Draft, turns: "tuple[int, ...]"
    ) -> "Iterator[Left]":
        """What an undo leaves of the turns, for whoever takes back the rest, or undoes a redo."""
        rest = {
            each.path: found
            for each in taken
            if each.path in draft.covered and (found := self._rest_at(each, draft))
        }
        if len(turns) == 1:
            for each in (each for each in taken if each.path in rest):
                for place, why, blocks in rest[each.path]:
                    known = original(blocks, each.blocks[place])
                    yield Left(each.path, turns[0], each.lasts[place], why, known)
        elif rest:
            own = self._reverts.of_each(*turns, merging=self._merging)
            for path, found in rest.items():
                yield from self._rest_of_each(path, found, own.get(path, []), draft)

    def _rest_at(self, taken: "Taken", draft: Draft) -> "list[Rest]":
        """What is left at a path: in which of its runs, why, and which blocks."""
        names = draft.moved.get(taken.path, {draft.places.get(taken.path) or taken.path})
        changed = [n for n, run in enumerate(taken.runs) if not is_same(*run)]
        if taken.path not in draft.idle and draft.wishes.keys().isdisjoint(names):
            why = draft.why_left(names)
            return [(place, why, None) for place in changed]
        if taken.path in draft.moved:
            return []  # a renamed file carries along what others did to it
        return [
            (place, *rest) for place in changed for rest in draft.rest.get((taken.path, place), ())
        ]

    def _rest_of_each(
        self, path: bytes, rest: "list[Rest]", own: "list[tuple[int, Taken]]", draft: Draft
    ) -> "Iterator[Left]":
        """The same of several turns: what they did together is told run by run, turn by turn.

        Where taking back each run by itself leads elsewhere, all of each counts as left: what is
        taken back already is no conflict when it is taken back once more.
        """
        scratch = Draft(self.now, self._merging, Unmoved())
        if own and any(blocks is not None for _, _, blocks in rest):
            whole = copy.copy(own[0][1])
            whole.runs = [each.runs[0] for _, each in own]
            state = scratch.fold(whole)
            wish = draft.wishes.get(path)
            if wish is not None and is_same(wish.target, state):
                for place, (turn, each) in enumerate(own):
                    for why, blocks in scratch.rest.get((path, place), ()):
                        known = original(blocks, each.blocks[0])
                        yield Left(path, turn, each.last, why, known)
                return
        reasons = {why for _, why, _ in rest}
        why = next(why for why in (OPEN, SETTLED, GONE, FORCED) if why in reasons)
        for turn, each in own:
            yield Left(path, turn, each.last, why, original(None, each.blocks[0]))

    def _dependents(
        self, since: Since, draft: Draft, taken: "list[Taken]"
    ) -> "tuple[Dependent, ...]":
        def clash(conflict: "Conflict", checkpoint: int) -> object:
            state = self._reverts.at(checkpoint, conflict.path)
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

    def _shared(self, chosen: Selection) -> "tuple[Remark, ...]":
        found: dict[bytes, None] = {}
        for item in chosen.items:
            if item.restore is None:
                shared = self._reverts.shared(item.session, item.before, item.after)
                found |= dict.fromkeys(shared)
        return tuple(Remark(path, Reason(reasons.SHARED)) for path in sorted(found))

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
            stays=() if chosen.paths else self._what_stays(row, covers),
            covers=covers,
            paths=chosen.paths,
            marked=self._marked(draft),
        )

    def _what_stays(self, row: "CheckpointRow", covers: "tuple[str, ...]") -> "tuple[Reason, ...]":
        said = git_notes.commits_since(self._ledger, row, covers, self._git, self._place.root)
        return (*said, *outside.staying(self._ledger, covers))

    def shut(self, plan: Plan) -> "set[bytes]":
        """What nobody may read of what a plan is about, or on the way to it."""
        paths = {remark.path for remark in (*plan.conflicts, *plan.skipped)}
        for change in plan.changes:
            is_open = change.before is None or change.before.mode & 0o400
            paths |= set(folders_above(change.path)) if is_open else {change.path}
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
                    hint=f"`takeback show {item.id}` lists what it changed",
                )
            chosen.append(meant[0])
        return Chosen(tuple(chosen))
