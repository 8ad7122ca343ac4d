"""What stands of turns: what they did, without what undos took of it, and with what redos did.

    the turn        its runs
    an undo         took them, but for what its event lists as left, run by run and block by block
    a redo          did what it did: its own changes stand for what it put back

    X1 adds a line    X2 deletes it    undo X2    undo X1    redo X2    undo X2
                                       it's back  it's gone  nothing    nothing: not X1's line again

`Rest` finds what an undo leaves, for its event; `Standing` reads that again, and `history/shared`
what is left of changes that turns share.
"""

import copy

from takeback.capture import changes
from takeback.capture.changes import Run
from takeback.model import reasons, words
from takeback.model.plan import EARLIER, FORCED, GONE, NAME, OPEN, SETTLED, Left
from takeback.model.tree import UnstoredFile, is_same
from takeback.model.value import Value, path_bytes, path_text
from takeback.undo.plans.draft import Draft
from takeback.undo.plans.merge import without
from takeback.undo.plans.renames import Unmoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.plan import Plan
    from takeback.model.text.json_text import Json
    from takeback.model.text.lines import Block
    from takeback.model.tree import Entry
    from takeback.undo.plans.merge import Merging
    from takeback.undo.plans.reverts import Reverts, Taken
    from takeback.undo.plans.wishes import View

    Known = Entry | None

    At = Callable[[int, bytes], Known]
    """What a path was at a checkpoint."""

    OfRun = tuple[int, str, tuple[Block, ...] | None]
    """What is left of a run: which it is, why it is left, and which blocks; None is all."""


_NEWEST = 1 << 62


class Record:
    """What an undo says that it left of its turns, and of some paths only, which it took."""

    def __init__(self, ledger: "Ledger", undo: "RestoreRow") -> None:
        event = ledger.event(undo.event)
        said: Any = event.payload if event is not None else None
        said = said or {}

        def number(id: str) -> int:
            return ledger.checkpoints.with_prefix(id)[0].number

        self.before = undo.before
        self.shared = undo.shared
        self.is_anew = bool(said.get("anew"))
        """Whether what somebody had decided to keep was decided once more."""
        self._kept = {path_bytes(row[0]) for row in said.get("kept", ())}
        """Where somebody saved meanwhile."""
        self._took = {(path_bytes(path), number(last)) for path, last in said.get("took", ())}
        self._is_partial = undo.partial
        self._rest: dict[tuple[str, bytes, int], list[tuple[str, Any]]] = {}
        for path, turn, last, why, blocks in said.get("left", ()):
            key = (turn, path_bytes(path), number(last))
            self._rest.setdefault(key, []).append((why, blocks))

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left."""
        return not (self._is_partial or self._kept or self._rest)

    @property
    def forced(self) -> "set[bytes]":
        """The paths at which something was taken over what others had changed."""
        rows = self._rest.items()
        return {key[1] for key, rest in rows if any(why == FORCED for why, _ in rest)}

    @property
    def has_settled(self) -> bool:
        """Whether somebody decided to keep something."""
        return any(why == SETTLED for rest in self._rest.values() for why, _ in rest)

    def left_of(self, turn: str, run: Run) -> "list[tuple[str, Any]]":
        """What is left of a run, and why: some blocks of it, or all."""
        went_on = run.last > self.before
        is_other = self._is_partial and (run.path, run.last) not in self._took
        if went_on or is_other or run.path in self._kept:
            return [(OPEN, None)]
        return self.listed(turn, run.path, run.last)

    def listed(self, turn: str, path: bytes, last: int) -> "list[tuple[str, Any]]":
        """What is listed as left of the change that ends with a checkpoint."""
        rest = self._rest.get((turn, path, last), [])
        return [(why, blocks) for why, blocks in rest if why not in (FORCED, EARLIER)]


def is_decided(ledger: "Ledger", undo: "RestoreRow") -> bool:
    """Whether an undo kept something by decision, took over others' changes, or took what an
    earlier one had kept.
    """
    record = Record(ledger, undo)
    if record.forced or record.has_settled:
        return True
    older = (act for turn in undo.turns for act in ledger.stack.about(turn))
    return record.is_anew and any(
        act.verb == words.UNDO and act.reversed is None and act.number < undo.number
        for act in older
    )


class Piece(Value):
    """What is left of a run: some blocks of it, or all; `settled_by` is the undo in which somebody
    decided to keep it, if one did.
    """

    run: Run
    blocks: "frozenset[Block] | None" = None
    settled_by: int = 0


class Standing:
    """Finds what is to be reverted to take some turns back."""

    def __init__(
        self, ledger: "Ledger", at: "At", merging: "Merging", turns: "Sequence[int]"
    ) -> None:
        self._ledger = ledger
        self._at = at
        self._merging = merging
        self._turns = turns
        self._acts: dict[int, list[RestoreRow]] = {}
        self._records: dict[int, Record] = {}
        self._apart: dict[int, int] = {}

    def runs(self, shared: "Sequence[DeltaRow]", *, anew: bool) -> "list[Run]":
        """The runs of all turns, by path and in the order in which they were made.

        What somebody decided to keep is among them only if it is decided `anew`.
        """
        told = [turn for turn in self._turns if self._about(turn)]
        plain = [turn for turn in self._turns if turn not in told]
        found = list(changes.runs(self._ledger, *plain, shared=shared))
        seen: set[tuple[bytes, int]] = set()
        for turn in told:
            for run in self._standing(turn, anew=anew):
                # A redo of several turns tells of each of them.
                if not run.is_restored or (run.path, run.last) not in seen:
                    seen.add((run.path, run.last))
                    found.append(run)
        return sorted(found, key=lambda run: (run.path, run.first))

    def of_each(self, *, anew: bool) -> "Iterator[tuple[int, Run]]":
        """The runs of each turn by itself."""
        for turn in self._turns:
            yield from ((turn, run) for run in self._standing(turn, anew=anew))

    def settled(self) -> "Iterator[Left]":
        """What the user decided to keep in earlier undos of these turns."""
        for turn in self._turns:
            pieces = (each for each in self._until(turn, _NEWEST) if each.settled_by)
            for run, _ in _joined(pieces):
                yield Left(run.path, turn, run.last, EARLIER, ())

    def _standing(self, turn: int, *, anew: bool, before: int = _NEWEST) -> "Iterator[Run]":
        """What stands of a turn before a restore, each run with all that stands of it."""
        pieces = [each for each in self._until(turn, before) if anew or not each.settled_by]
        for run, blocks in _joined(pieces):
            yield run if blocks is None else self._part(run, blocks)

    def _until(self, turn: int, number: int) -> "list[Piece]":
        """What is left of a turn before a restore, also what somebody decided to keep."""
        found = [Piece(run) for run in changes.runs(self._ledger, turn)]
        hows = {piece.run.path: piece.run.how for piece in found}
        origins: dict[bytes, set[bytes]] = {}
        for piece in found:
            origins.setdefault(piece.run.path, set()).update(piece.run.origins)
        undos: dict[int | None, list[Piece]] = {}
        for act in self._since_it_began(turn, number):
            if act.verb == words.UNDO:
                undos[act.number] = found
                found = self._left(turn, found, act.number)
            elif act.entry in undos and not self._is_told(act, number):
                found = undos[act.entry]
            elif act.entry in undos:
                found = self._put_back(found, undos[act.entry], act)
                again = [Piece(run) for run in self._again(act, hows, origins)]
                forced = self._record(act.entry or 0).forced
                found = found + [piece for piece in again if piece.run.path not in forced]
        return found

    def _left(self, turn: int, pieces: "list[Piece]", undo: int) -> "list[Piece]":
        """What an undo left of these."""
        record, id = self._record(undo), self._id(turn)
        found = [piece for piece in pieces if piece.settled_by and not record.is_anew]
        # What is left of a redo is left of each turn that it was about, also of one by itself.
        redos = {act.after for act in self._about(turn) if act.verb == words.REDO}
        redos -= {piece.run.last for piece in pieces}
        for run, blocks in _joined(piece for piece in pieces if piece not in found):
            joint = [(w, None) for at in redos for w, _ in record.listed(id, run.path, at)]
            for why, some in record.left_of(id, run) + joint:
                left = blocks if some is None else frozenset(map(tuple, some))
                found.append(Piece(run, left, undo if why == SETTLED else 0))
        return found

    def _put_back(
        self, left: "list[Piece]", before: "list[Piece]", redo: "RestoreRow"
    ) -> "list[Piece]":
        """What is left when an undo is put back: its decisions do not count any more.

        What was taken over others' changes is asked again, as if it had not been.
        """
        forced = self._record(redo.entry or 0).forced
        found = [piece for piece in before if piece.run.path in forced]
        for piece in left:
            if piece.run.path in forced:
                continue
            if piece.settled_by == redo.entry and not redo.partial:
                found += [Piece(*each) for each in _as_before(piece, before)]
            else:
                found.append(piece)
        return found

    def _since_it_began(self, turn: int, number: int) -> "list[RestoreRow]":
        """The restores that tell what stands of a turn, the oldest first.

        They begin with the newest undo that left nothing of it, so that toggling stays cheap.
        """
        acts = [act for act in reversed(self._about(turn)) if act.number < number]
        oldest = number
        for place in range(len(acts) - 1, 0, -1):
            act = acts[place]
            if act.verb == words.REDO:
                undo = act.entry or 0
                oldest = min(oldest, undo if self._is_told(act, number) else undo - 1)
            elif act.number <= oldest and self._record(act.number).is_whole:
                return acts[place:]
        return acts

    def _is_told(self, redo: "RestoreRow", number: int) -> bool:
        """Whether the states around a redo tell what it put back of these turns.

        They do not if it was about others, too, or about what is shared, or if a later undo, before
        a restore, took back only some of what it had put back: the states do not tell it apart.
        Then these turns are as if nothing had been taken back.
        """
        if not is_alone(redo, self._turns) or self._record(redo.entry or 0).shared:
            return False
        return self._taken_apart(redo) >= number

    def _taken_apart(self, redo: "RestoreRow") -> int:
        """The first undo of only some of what a redo had put back."""
        if redo.number not in self._apart:
            acts = {act.number: act for turn in redo.turns for act in self._about(turn)}
            later = (act for act in acts.values() if act.number > redo.number)
            some = (x.number for x in later if x.verb == words.UNDO and not is_alone(redo, x.turns))
            self._apart[redo.number] = min(some, default=_NEWEST)
        return self._apart[redo.number]

    def _record(self, undo: int) -> Record:
        if undo not in self._records:
            row = self._ledger.stack.numbered(undo)
            assert row is not None, "a redo names the undo that it put back"
            self._records[undo] = Record(self._ledger, row)
        return self._records[undo]

    def _part(self, run: Run, blocks: "Iterable[Block]") -> Run:
        """A change of which only some blocks stand."""
        before, after = self.states(run)
        assert before is not None, "blocks are of texts"
        new, old = (self._merging.content(s) or b"" if s else b"" for s in (after, before))
        text = without(new, old, sorted(blocks))
        part = _with_states(run, (before, UnstoredFile(text, before.mode)))
        part.blocks = frozenset(blocks)
        return part

    def _id(self, turn: int) -> str:
        row = self._ledger.turns.numbered(turn)
        return row.id if row is not None else ""

    def _about(self, turn: int) -> "list[RestoreRow]":
        if turn not in self._acts:
            wanted = {turn, *self._turns} - self._acts.keys()
            self._acts |= self._ledger.stack.about_each(wanted)
        return self._acts[turn]

    def _again(
        self, redo: "RestoreRow", hows: "dict[bytes, str]", origins: "dict[bytes, set[bytes]]"
    ) -> "list[Run]":
        found, restored = [], self._restored(redo)
        paths = {path for path, _ in restored}
        for path, origin in restored:
            before = self._ledger.checkpoints.parent_of(redo.after)
            run = Run(path, before, redo.after, hows.get(path, ""), origin)
            # What the turn renamed and then rewrote no longer looks like a rename.
            run.origins |= origins.get(path, set()) & paths
            run.is_restored = True
            found.append(run)
        return found

    def _restored(self, act: "RestoreRow") -> "list[tuple[bytes, bytes | None]]":
        """What a restore changed; nothing, if it made no checkpoint."""
        if act.before == act.after:
            return []
        return [(row.path, row.origin) for row in self._ledger.deltas.restored(act.after)]

    # -- what an undo took of some of its turns ----------------------------------------------

    def not_alone(self, undo: "RestoreRow") -> "set[bytes]":
        """The paths of these turns of which an undo does not tell what it took of these.

        It took back others there, too, or found the file under a name that others gave it. What it
        found of others under another name may be at any path.
        """
        others = [turn for turn in undo.turns if turn not in self._turns]
        theirs = Standing(self._ledger, self._at, self._merging, others).before(undo)
        runs = [*theirs, *self.before(undo)]
        found = {run.path for run in theirs}
        paths, restored = {run.path for run in runs}, {path for path, _ in self._restored(undo)}
        found |= paths if found - restored else paths - restored
        size = -1
        while size != len(found):
            size = len(found)
            for run in runs:
                if not found.isdisjoint({run.path, *run.origins}):
                    found |= {run.path, *run.origins}
        return found

    def before(self, undo: "RestoreRow") -> "list[Run]":
        """What these turns did, and what restores had done for them before an undo."""
        told = (each.run for turn in self._turns for each in self._until(turn, undo.number))
        return [*changes.runs(self._ledger, *self._turns), *told]

    def taken(self, undo: "RestoreRow", paths: "set[bytes]") -> "list[Run]":
        """What an undo took of the turns at some paths: without what it left."""
        record, found = self._record(undo.number), []
        for turn in self._turns:
            id = self._id(turn)
            for run in self._standing(turn, anew=record.is_anew, before=undo.number):
                rest = record.left_of(id, run) if run.path in paths else [(OPEN, None)]
                if any(blocks is None and why != NAME for why, blocks in rest):
                    continue
                some = {tuple(block) for _, blocks in rest for block in blocks or ()}
                if some:
                    whole = _with_states(run, None)
                    left = self.states(self._part(whole, some))[1]
                    found.append(_with_states(run, (left, self.states(run)[1])))
                else:
                    found.append(run)
        return sorted(found, key=lambda run: (run.path, run.first))

    def states(self, run: Run) -> "tuple[Known, Known]":
        """What a run leads from and to."""
        return run.states or (self._at(run.before, run.path), self._at(run.last, run.path))


def _joined(pieces: "Iterable[Piece]") -> "Iterator[tuple[Run, frozenset[Block] | None]]":
    """Each run once, with all blocks of it."""
    found: dict[tuple[bytes, int], tuple[Run, frozenset[Block] | None]] = {}
    for piece in pieces:
        key = piece.run.path, piece.run.last
        blocks = found[key][1] if key in found else frozenset()
        both = None if blocks is None or piece.blocks is None else blocks | piece.blocks
        found[key] = piece.run, both
    yield from found.values()


def _as_before(
    piece: Piece, before: "list[Piece]"
) -> "Iterator[tuple[Run, frozenset[Block] | None, int]]":
    """What was kept, and whether it had been kept before that, too."""
    of_run = [x for x in before if (x.run.path, x.run.last) == (piece.run.path, piece.run.last)]
    for old in of_run:
        if old.blocks is None or piece.blocks is None:
            yield piece.run, piece.blocks if old.blocks is None else old.blocks, old.settled_by
        elif old.blocks & piece.blocks:
            yield piece.run, old.blocks & piece.blocks, old.settled_by


def _with_states(run: Run, states: "tuple[Known, Known] | None") -> Run:
    """The same run, leading from and to something else."""
    other = Run(run.path, run.before, run.first, run.how, run.origin)
    other.last, other.origins, other.is_restored = run.last, run.origins, run.is_restored
    other.states = states
    return other


def is_alone(act: "RestoreRow", turns: "Sequence[int]") -> bool:
    """Whether a restore was about nothing but these turns."""
    return set(act.turns) <= set(turns)


# -- what an undo leaves -------------------------------------------------------------------------


class Rest:
    """Finds what an undo leaves of its turns, for whoever takes back the rest, or undoes a redo.

    `along` are changes that the turns share and that go, too, each with the turns among them.
    """

    def __init__(
        self,
        now: "View",
        merging: "Merging",
        reverts: "Reverts",
        turns: "tuple[int, ...]",
        along: "dict[DeltaRow, list[int]]",
    ) -> None:
        self._now = now
        self._merging = merging
        self._reverts = reverts
        self._turns = turns
        self._along = along
        self._shared = {row.path for row in along}
        self._known: dict[bytes, list[tuple[int, Taken]]] | None = None

    def left(self, taken: "list[Taken]", draft: Draft) -> "Iterator[Left]":
        """What is left, and why."""
        rest = {
            each.path: (each, found)
            for each in taken
            if each.path in draft.covered and (found := _at(each, draft))
        }
        for path, (each, found) in rest.items():
            if self._is_alone(path):
                for place, why, blocks in found:
                    known = original(blocks, each.blocks[place])
                    yield Left(path, self._turns[0], each.lasts[place], why, known)
            else:
                yield from self._of_each(path, found, draft)
        for row, turns in self._along.items():
            for turn in turns if row.path in rest else ():
                yield Left(row.path, turn, row.checkpoint, _gravest(rest[row.path][1]))
        if not self._merging.is_anew:
            yield from self._reverts.settled(*self._turns, merging=self._merging)

    def took(self, taken: "list[Taken]", draft: Draft) -> "tuple[tuple[bytes, int], ...]":
        """The runs that were meant, if only some paths were."""
        meant = [each for each in taken if each.path in draft.covered]
        alone = [(each.path, last) for each in meant if self._is_alone(each.path)
                 for last in each.lasts]  # fmt: skip
        others = [(each.path, own.last) for each in meant if not self._is_alone(each.path)
                  for _, own in self._own(each.path)]  # fmt: skip
        return tuple(dict.fromkeys((*alone, *others)))

    def _is_alone(self, path: bytes) -> bool:
        """Whether a path is taken back for one turn, and all of that is its own."""
        return len(self._turns) == 1 and path not in self._shared

    def _own(self, path: bytes) -> "list[tuple[int, Taken]]":
        if self._known is None:
            self._known = self._reverts.of_each(*self._turns, merging=self._merging)
        return self._known.get(path, [])

    def _of_each(self, path: bytes, rest: "list[OfRun]", draft: Draft) -> "Iterator[Left]":
        """The same of several turns: what they did together is told run by run, turn by turn.

        Where taking back each run by itself leads elsewhere, all of each counts as left: what is
        taken back already is no conflict when it is taken back once more.
        """
        own, scratch = self._own(path), Draft(self._now, self._merging, Unmoved())
        if own and any(blocks is not None for _, _, blocks in rest):
            whole = copy.copy(own[0][1])
            whole.runs = [each.runs[0] for _, each in own]
            state = scratch.fold(whole)
            if draft.places.get(path) == path and is_same(draft.planned(path), state):
                for place, (turn, each) in enumerate(own):
                    for why, blocks in scratch.rest.get((path, place), ()):
                        yield Left(path, turn, each.last, why, original(blocks, each.blocks[0]))
                return
        for turn, each in own:
            yield Left(path, turn, each.last, _gravest(rest), original(None, each.blocks[0]))


def _at(taken: "Taken", draft: Draft) -> "list[OfRun]":
    """What is left at a path: in which of its runs, why, and which blocks."""
    names = draft.moved.get(taken.path, set()) | {draft.places.get(taken.path) or taken.path}
    is_name = taken.path in draft.moved  # perhaps one in between, where nothing was, nor is
    changed = [n for n, run in enumerate(taken.runs) if is_name or not is_same(*run)]
    if taken.path not in draft.idle and draft.wishes.keys().isdisjoint(names):
        why = draft.why_left(names)
        return [(place, why, None) for place in changed]
    if is_name:
        # A renamed file carries along what others did to it, unless it was renamed once more.
        return [(place, NAME, None) for place in changed if taken.path in draft.places]
    return [(place, *rest) for place in changed for rest in draft.rest.get((taken.path, place), ())]


def _gravest(rest: "list[OfRun]") -> str:
    told = {why for _, why, _ in rest}
    return next(why for why in (OPEN, SETTLED, GONE, NAME, FORCED) if why in told)


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


def facts(ledger: "Ledger", plan: "Plan") -> "dict[str, Json]":
    """What the event of an undo says that it took: all of its turns, but for what it left."""

    def id_of(checkpoint: int) -> str:
        row = ledger.checkpoints.numbered(checkpoint)
        assert row is not None, "what a plan speaks of is there"
        return row.id

    turns = {ledger.turns.number_of(id): id for id in plan.turns}
    left: list[Json] = [
        [path_text(x.raw_path), turns[x.turn], id_of(x.last), x.why, _blocks(x.blocks)]
        for x in plan.left
    ]
    took: list[Json] = [[path_text(path), id_of(last)] for path, last in plan.raw_took]
    marked: list[Json] = [
        [path_text(change.raw_path)]
        for change in plan.changes
        if change.merged is not None and change.merged.code == reasons.WITH_MARKERS
    ]
    found: dict[str, Json] = {"left": left, "took": took, "partly": list(plan.partly)}
    found |= {"marked": marked, "anew": plan.anew, "shared": plan.took_shared}
    return {name: fact for name, fact in found.items() if fact}


def _blocks(blocks: "Iterable[Block] | None") -> "Json":
    return None if blocks is None else [list(block) for block in blocks]
