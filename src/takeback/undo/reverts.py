"""What a turn or a restore changed, as it is needed to take it back: states, path by path.

Each path comes with the runs of changes that are to be reverted, the newest first. Between two
runs somebody else changed the path.

What of a turn stands is told by the restores that were about it, the oldest first:

    the turn        its runs
    an undo         took them, but for what its event lists as left, run by run and block by block
    a redo          did what it did: its own changes stand for what it put back

    X1 adds a line    X2 deletes it    undo X2    undo X1    redo X2    undo X2
                                       it's back  it's gone  nothing    nothing: not X1's line again
"""

from takeback.capture import changes
from takeback.capture.changes import Run, Trees
from takeback.errors import DamagedStoreError
from takeback.history import retention
from takeback.model import words
from takeback.model.plan import FORCED, OPEN, SETTLED
from takeback.model.tree import UnstoredFile, judge
from takeback.model.value import Value
from takeback.undo.merge import without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from takeback.capture.changes import Span
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.outside import OutsideRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.lines import Block
    from takeback.model.tree import Entry
    from takeback.undo.merge import Merging

    Known = Entry | None

    At = Callable[[int, bytes], Known]

    """What a path was at a checkpoint."""

    Fold = list[tuple[Known, Known]]


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
        self.is_anew = bool(said.get("anew"))
        """Whether what somebody had decided to keep was decided once more."""
        self._kept = {_bytes(row[0]) for row in said.get("kept", ())}
        """Where somebody saved meanwhile."""
        self._took = {(_bytes(path), number(last)) for path, last in said.get("took", ())}
        self._is_partial = undo.partial
        self._rest: dict[tuple[str, bytes, int], list[tuple[str, Any]]] = {}
        for path, turn, last, why, blocks in said.get("left", ()):
            key = (turn, _bytes(path), number(last))
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

    def left_of(self, turn: str, run: Run) -> "list[tuple[str, Any]]":
        """What is left of a run, and why: some blocks of it, or all."""
        went_on = run.last > self.before
        is_other = self._is_partial and (run.path, run.last) not in self._took
        if went_on or is_other or run.path in self._kept:
            return [(OPEN, None)]
        rest = self._rest.get((turn, run.path, run.last), [])
        return [(why, blocks) for why, blocks in rest if why != FORCED]


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

    def runs(self, shared: "Sequence[Span]", *, anew: bool) -> "list[Run]":
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

    def _standing(self, turn: int, *, anew: bool, before: int = _NEWEST) -> "Iterator[Run]":
        """What stands of a turn before a restore, each run with all that stands of it."""
        pieces = [each for each in self._until(turn, before) if anew or not each.settled_by]
        for run, blocks in _joined(pieces):
            yield run if blocks is None else self._part(run, blocks)

    def _until(self, turn: int, number: int) -> "list[Piece]":
        """What is left of a turn before a restore, also what somebody decided to keep."""
        found = [Piece(run) for run in changes.runs(self._ledger, turn)]
        hows = {piece.run.path: piece.run.how for piece in found}
        undos: dict[int | None, list[Piece]] = {}
        for act in self._since_it_began(turn, number):
            if act.verb == words.UNDO:
                undos[act.number] = found
                found = self._left(turn, found, act.number)
            elif act.entry in undos and not _is_alone(act, self._turns):
                # What of it was this turn's cannot be told: as if nothing had been taken back.
                found = self._until(turn, act.entry or 0)
            elif act.entry in undos:
                found = self._put_back(found, undos[act.entry], act)
                again = [Piece(run) for run in self._again(act, hows)]
                forced = self._record(act.entry or 0).forced
                found = found + [piece for piece in again if piece.run.path not in forced]
        return found

    def _left(self, turn: int, pieces: "list[Piece]", undo: int) -> "list[Piece]":
        """What an undo left of these."""
        record, id = self._record(undo), self._id(turn)
        found = [piece for piece in pieces if piece.settled_by and not record.is_anew]
        for run, blocks in _joined(piece for piece in pieces if piece not in found):
            for why, some in record.left_of(id, run):
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
                oldest = min(oldest, act.entry or 0)
            elif act.number <= oldest and self._record(act.number).is_whole:
                return acts[place:]
        return acts

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

    def _again(self, redo: "RestoreRow", hows: "dict[bytes, str]") -> "list[Run]":
        found = []
        for path, origin in self._restored(redo):
            before = self._ledger.checkpoints.parent_of(redo.after)
            run = Run(path, before, redo.after, hows.get(path, ""), origin)
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

        It took back others there, too, or found the file under a name that others gave it.
        """
        others = [turn for turn in undo.turns if turn not in self._turns]
        runs = list(changes.runs(self._ledger, *undo.turns))
        found = {run.path for run in changes.runs(self._ledger, *others)}
        found |= {run.path for run in runs} - {path for path, _ in self._restored(undo)}
        size = -1
        while size != len(found):
            size = len(found)
            for run in runs:
                if not found.isdisjoint({run.path, *run.origins}):
                    found |= {run.path, *run.origins}
        return found

    def taken(self, undo: "RestoreRow", paths: "set[bytes]") -> "list[Run]":
        """What an undo took of the turns at some paths: without what it left."""
        record, found = self._record(undo.number), []
        for turn in self._turns:
            id = self._id(turn)
            for run in self._standing(turn, anew=record.is_anew, before=undo.number):
                rest = record.left_of(id, run) if run.path in paths else [(OPEN, None)]
                if any(blocks is None for _, blocks in rest):
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


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _is_alone(act: "RestoreRow", turns: "Sequence[int]") -> bool:
    """Whether a restore was about nothing but these turns."""
    return set(act.turns) <= set(turns)


def rows_outside(ledger: "Ledger", turns: "Sequence[int]") -> "list[OutsideRow]":
    """The same of files outside."""
    found = {row.number: row for row in ledger.outside.of_turns(turns)}
    for turn in turns if found else ():
        last: dict[bytes, tuple[RestoreRow, OutsideRow]] = {}
        for act in reversed(ledger.stack.about(turn)):
            rows = ledger.outside.of_restore(act.number)
            last |= {row.path: (act, row) for row in rows if _is_alone(act, turns)}
        for path, (act, done) in last.items():
            own = [r for r in found.values() if (r.turn, r.path) == (turn, path)]
            for row in own:
                if row.number < done.number:
                    del found[row.number]
            if act.verb == words.REDO:
                found[done.number] = done
    return [found[number] for number in sorted(found)]


_RESTORED_BY = "a restore"
_DOUBTS = ("", words.NAMED, words.BY_TURN, words.BY_SHELL, words.PERHAPS)
"""How it is known whose change something is, the most certain first."""


class Taken:
    """One path of what is taken back.

    `runs` are (before, after), the newest first; `before` is the state before the oldest of them,
    `first` the checkpoint with which that begins, `last` the one with which the newest ends.
    `lasts` are the checkpoints with which each of the runs ends, `blocks` those of its blocks that
    stand; None is all. `origins` are the names that the
    file had before it was renamed to this one. `leads_to` is the checkpoint that it goes back to.
    """

    __slots__ = ("before", "blocks", "first", "how", "last", "lasts", "leads_to", "origins",
                 "path", "runs")  # fmt: skip

    def __init__(self, run: Run, states: "tuple[Known, Known]") -> None:
        self.path = run.path
        self.how = run.how
        self.first = run.first
        self.last = run.last
        self.runs: Fold = [states]
        self.lasts = [run.last]
        self.blocks = [run.blocks]
        self.origins = run.origins
        self.before = self.leads_to = run.before

    @property
    def is_forward(self) -> bool:
        """Whether it is done once more, and not taken back."""
        return self.leads_to == self.last

    @property
    def order(self) -> int:
        """Where it comes in a row: the newest first, or what is done once more as it was done."""
        return self.first if self.is_forward else -self.last

    def turn_round(self) -> None:
        """Let it be done once more."""
        self.runs = [(after, before) for before, after in reversed(self.runs)]
        self.leads_to = self.last


def forward(taken: "list[Taken]") -> "list[Taken]":
    """The same the other way round: what is to be done once more, with its renames."""
    origins = {each.path: each.origins for each in taken}
    for each in taken:
        each.turn_round()
        each.origins = {path for path, names in origins.items() if each.path in names}
    return taken


class Reverts:
    """Looks up what is to be reverted, in the trees of the checkpoints around it."""

    def __init__(self, ledger: "Ledger", trees: Trees) -> None:
        self._ledger = ledger
        self._trees = trees
        self._rows: dict[int, CheckpointRow] = {}

    def of_turns(
        self, *turns: int, merging: "Merging", shared: "Sequence[Span]" = ()
    ) -> "list[Taken]":
        """What turns changed, as it stands; also what is shared in some spans."""
        standing = Standing(self._ledger, self.at, merging, turns)
        return list(self._taken(standing.runs(shared, anew=merging.is_anew)))

    def of_each(self, *turns: int, merging: "Merging") -> "dict[bytes, list[tuple[int, Taken]]]":
        """The same, by path and run by run, the newest first, with the turn of each."""
        standing = Standing(self._ledger, self.at, merging, turns)
        found: dict[bytes, list[tuple[int, Taken]]] = {}
        told = standing.of_each(anew=merging.is_anew)
        for turn, run in sorted(told, key=lambda each: -each[1].last):
            taken = Taken(run, standing.states(run))
            found.setdefault(run.path, []).append((turn, taken))
        return found

    def ever_changed(self, *turns: int) -> "list[bytes]":
        """The paths that turns changed, also those that were taken back since."""
        return [run.path for run in changes.runs(self._ledger, *turns)]

    def of_undone(self, *turns: int, undo: "RestoreRow", merging: "Merging") -> "list[Taken]":
        """What an undo of these turns and of others took of these, to be put back.

        Where the undo was about these alone, what it did is reverted.
        """
        standing = Standing(self._ledger, self.at, merging, turns)
        mixed = standing.not_alone(undo)
        own = {run.path for run in changes.runs(self._ledger, *turns)}
        done = self.of_restore(undo.before, undo.after, undo.turns)
        alone = [each for each in done if each.path in own and each.path not in mixed]
        return alone + forward(list(self._taken(standing.taken(undo, mixed))))

    def of_restore(self, before: int, after: int, turns: "tuple[int, ...]" = ()) -> "list[Taken]":
        """What a restore changed; nothing, if it made no checkpoint.

        `turns` are those that it took back, whose changes they were.
        """
        if before == after:
            return []
        hows = {row.path: row.how for row in self._ledger.deltas.of_turns(turns)}
        at = self._ledger.checkpoints.parent_of(after)
        rows = self._ledger.deltas.restored(after)
        runs = (Run(row.path, at, after, hows.get(row.path, ""), row.origin) for row in rows)
        return list(self._taken(runs))

    def left_out(self, *turns: int) -> "list[bytes]":
        """What turns made that is not covered."""
        return list(dict.fromkeys(row.path for row in self._ledger.deltas.left_out(turns)))

    def shared(self, session: str, before: int, after: "int | None") -> "list[bytes]":
        """What may be a turn's, or another session's."""
        rows = self._ledger.deltas.shared(session, before, after)
        return list(dict.fromkeys(row.path for row in rows))

    def yours(self, before: int, now: "CheckpointRow") -> "list[bytes]":
        """What you changed since a checkpoint, and is still changed."""
        # What is put back may be older than what is kept.
        floor = retention.floor(self._ledger)
        kept = self._ledger.care.first_above(floor) if before <= floor else None
        then = self._row(before if kept is None else kept)
        found = self._ledger.deltas.yours_since(before)
        return [
            path
            for path in sorted(found)
            if judge(path, self._trees.at(then, path), self._trees.at(now, path)) is not None
        ]

    def before(self, taken: Taken, path: bytes) -> "Known":
        """What a folder on the way to a path was where this leads to."""
        return self._trees.at(self._row(taken.leads_to), path)

    def _taken(self, runs: "Iterable[Run]") -> "Iterator[Taken]":
        found: Taken | None = None
        for run in runs:
            states = run.states
            if states is None:
                states = self.at(run.before, run.path), self.at(run.last, run.path)
            if found is not None and found.path == run.path:
                found.runs.insert(0, states)
                found.lasts.insert(0, run.last)
                found.blocks.insert(0, run.blocks)
                found.origins |= run.origins
                found.last = run.last
                continue
            if found is not None:
                yield found
            found = Taken(run, states)
        if found is not None:
            yield found

    def at(self, checkpoint: int, path: bytes) -> "Known":
        """What a path was at a checkpoint."""
        return self._trees.at(self._row(checkpoint), path)

    def _row(self, number: int) -> "CheckpointRow":
        row = self._rows.get(number) or self._ledger.checkpoints.numbered(number)
        if row is None:
            raise DamagedStoreError(
                f"checkpoint {number} is not in the ledger",
                hint="run `takeback verify` to see what is damaged",
            )
        self._rows[number] = row
        return row


class Changed:
    """Who changed a path, in words, the newest last; and how that is known of an agent."""

    __slots__ = ("how", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.how = ""

    def add(self, name: str, how: str) -> None:
        """One change more. What is least certain is what one has to know."""
        if name not in self.names:
            self.names.append(name)
        self.how = max(self.how, how, key=_DOUBTS.index)


def changed_since(
    ledger: "Ledger", checkpoint: int, but: "Iterable[int]" = ()
) -> "dict[bytes, Changed]":
    """Who changed each path after a checkpoint, but for some turns."""
    found: dict[bytes, Changed] = {}
    for row in ledger.deltas.since(checkpoint, but):
        known = row.how if row.who == words.STEP and row.how in _DOUBTS else ""
        found.setdefault(row.path, Changed()).add(_name(row.who, row.agent, row.label), known)
    for each in found.values():
        # What a restore did is known by what it took back or put back; the names are enough.
        each.names = [name for name in each.names if name != _RESTORED_BY] or each.names
    return found


def _name(who: str, agent: "str | None", label: "str | None") -> str:
    from takeback.history.references import quoted

    if who == words.STEP:
        return f'"{quoted(str(label))}" ({agent})' if label else str(agent)
    return {words.YOU: "you", words.SHARED: "several sessions", words.RESTORE: _RESTORED_BY}.get(
        who, who
    )
