"""What turns changed, as it stands: what was taken back and put back is what its redo did.

    X1 adds a line    X2 deletes it    undo X2    undo X1    redo X2    undo X2
                                       it's back  it's gone  nothing    nothing: not X1's line again

A redo by merge does less than its turn had done where others went on meanwhile. To undo the turn
once more is to revert what the redo did, as a redo reverts what the undo did; and then what the
undo had left of the turn, for it was not there to be taken back: others had deleted it. That is
the turn's own change with the undo applied to both of its sides.

What a turn or a restore changed, as it is needed to take it back: states, path by path.

Each path comes with the runs of changes that are to be reverted, the newest first. Between two
runs somebody else changed the path.
"""

from takeback.capture import changes
from takeback.capture.changes import Run, Trees
from takeback.errors import DamagedStoreError
from takeback.history import retention
from takeback.model import words
from takeback.model.reasons import Action
from takeback.model.tree import is_same, judge
from takeback.undo.merge import Clash, Kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.outside import OutsideRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.tree import Entry
    from takeback.undo.merge import Merging

    Known = Entry | None

    At = Callable[[int, bytes], Known]

    """What a path was at a checkpoint."""

    Fold = list[tuple[Known, Known]]


_NEWEST = 1 << 62


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

    def runs(self, shared: "Sequence[DeltaRow]") -> "list[Run]":
        """The runs of all turns, by path and in the order in which they were made."""
        told = [turn for turn in self._turns if self._about(turn)]
        plain = [turn for turn in self._turns if turn not in told]
        found = list(changes.runs(self._ledger, *plain, shared=shared))
        standing = self._until(told, _NEWEST)
        seen: set[tuple[bytes, int]] = set()
        for turn in told:
            for run in standing[turn]:
                # A redo of several turns tells of each of them.
                if not run.is_restored or (run.path, run.last) not in seen:
                    seen.add((run.path, run.last))
                    found.append(run)
        return sorted(found, key=lambda run: (run.path, run.first))

    def _until(self, turns: "Iterable[int]", number: int) -> "dict[int, list[Run]]":
        """What turns did, through all that was taken back and put back of them before a restore.

        Each restore is walked over once: to look up for each turn what the others had done by then
        would cost more with every restore, as many times more as there are turns.
        """
        turns = tuple(turns)
        begin = self._beginning(turns, number)
        needed = (
            self._needed(turns, number) if begin is None else dict.fromkeys(begin.turns, number)
        )
        found = {turn: list(changes.runs(self._ledger, turn)) for turn in needed}
        hows = {turn: {run.path: run.how for run in runs} for turn, runs in found.items()}
        undos: dict[int, dict[int | None, list[Run]]] = {turn: {} for turn in needed}
        acts = {act.number: act for turn in needed for act in self._about(turn)}
        if begin is not None:
            acts = {number: act for number, act in acts.items() if number > begin.number}
            for turn, runs in found.items():
                undos[turn][begin.number] = []
                found[turn] = [run for run in runs if run.last > begin.before]
        for act in (acts[number] for number in sorted(acts)):
            about = [turn for turn in act.turns if act.number < needed.get(turn, 0)]
            if act.verb == words.UNDO and not act.partial and about:
                for turn in about:
                    undos[turn][act.number] = found[turn]
                found |= self._left({turn: found[turn] for turn in act.turns}, act)
                continue
            # Paths that were taken back alone may be named once more, so that does not count.
            for turn in about:
                undo = acts.get(act.entry or 0)
                is_mixed = undo is not None and undo.shared
                if act.entry in undos[turn] and _is_alone(act, self._turns) and not is_mixed:
                    found[turn] = found[turn] + self._again(act, hows[turn])
                elif act.entry in undos[turn]:
                    # What of it was this turn's cannot be told: as if nothing had been taken back.
                    found[turn] = undos[turn][act.entry]
        return found

    def _beginning(self, turns: "tuple[int, ...]", number: int) -> "RestoreRow | None":
        """The newest undo before a restore that left nothing of just these turns.

        What came before it need not be walked over, so the next undo costs as much as the last;
        unless it has to be known to tell what a later restore did.
        """
        acts = {act.number: act for turn in turns for act in self._about(turn)}
        oldest = number
        for at in sorted((at for at in acts if at < number), reverse=True):
            act, others = acts[at], set(acts[at].turns) - set(turns)
            is_undo = act.verb == words.UNDO and not act.partial
            if is_undo and at <= oldest and len(act.turns) == len(turns) and self._is_exact(act):
                return act
            if not act.partial and (others or not (is_undo or _is_alone(act, self._turns))):
                return None
            if act.verb == words.REDO:
                oldest = min(oldest, act.entry or 0)
        return None

    def _is_exact(self, undo: "RestoreRow") -> bool:
        """Whether an undo said that it took back all of its turns, exactly."""
        event = self._ledger.event(undo.event)
        return event is not None and (event.payload or {}).get("exact") is True

    def _needed(self, turns: "Iterable[int]", number: int) -> "dict[int, int]":
        """The turns in question, and before which restore: also those taken back with others."""
        needed: dict[int, int] = {}
        waiting = [(turn, number) for turn in turns]
        for turn, before in waiting:
            if needed.get(turn, 0) >= before:
                continue
            needed[turn] = before
            for act in self._about(turn):
                if act.number < before and act.verb == words.UNDO and not act.partial:
                    waiting += [(other, act.number) for other in act.turns if other != turn]
        return needed

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

    # -- what an undo left -----------------------------------------------------------------

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
        """What an undo took of the turns at some paths: without what it could not take."""
        runs = self._until(undo.turns, undo.number)
        for turn in self._turns:
            runs[turn] = [run for run in runs[turn] if run.path in paths]
        found = []
        for turn, run, left in self._pairs(runs, undo):
            taken = run if left is None else self._but(run, left)
            found += [taken] if taken is not None and turn in self._turns else []
        return sorted(found, key=lambda run: (run.path, run.first))

    def _left(self, runs: "dict[int, list[Run]]", undo: "RestoreRow") -> "dict[int, list[Run]]":
        found: dict[int, list[Run]] = {turn: [] for turn in runs}
        for turn, _, left in self._pairs(runs, undo):
            found[turn] += [left] if left is not None else []
        return found

    def _pairs(
        self, runs: "dict[int, list[Run]]", undo: "RestoreRow"
    ) -> "Iterator[tuple[int, Run, Run | None]]":
        """Each run of each turn that an undo took, and what it left of it."""
        every = [run for turn in undo.turns for run in runs[turn]]
        touched = {path for path, _ in self._restored(undo)}
        # What is renamed carries along what others did to it; that is not left of the turn.
        moved = _moved(every)
        effects = self._effects(every, undo, touched)
        for turn, run in ((each, run) for each in undo.turns for run in runs[each]):
            if run.last > undo.before:
                yield turn, run, run  # the turn went on
            elif run.path in moved:
                yield turn, run, run if moved.isdisjoint(touched) else None
            elif id(run) in effects:
                yield turn, run, self._left_of(run, effects[id(run)])
            else:
                place = self._found_at(run, undo, touched)
                taken = self._at(undo.before, place), self._at(undo.after, place)
                yield turn, run, run if is_same(*taken) else None

    def _found_at(self, run: Run, undo: "RestoreRow", touched: "set[bytes]") -> bytes:
        """Where an undo found a file: others may have renamed it since."""
        if run.path in touched or self._at(undo.before, run.path) is not None:
            return run.path
        names, seen = [run.path], {run.path}
        for name in names:
            for path in self._ledger.deltas.names_after(name, run.last, undo.before):
                if path in touched:
                    return path
                if path not in seen:
                    seen.add(path)
                    names.append(path)
        return run.path

    def _effects(
        self, runs: "list[Run]", undo: "RestoreRow", touched: "set[bytes]"
    ) -> "dict[int, tuple[Known, Known]]":
        """What became of each path by taking back each of its runs, by the id of the run.

        Found by taking them back once more, the newest first. Where that does not lead to what the
        undo made of it, somebody decided something else, and nothing is told.
        """
        found: dict[int, tuple[Known, Known]] = {}
        by_place: dict[bytes, list[Run]] = {}
        same: dict[int, int] = {}
        copies: dict[tuple[bytes, int], Run] = {}
        for run in sorted(runs, key=lambda run: -run.last):
            if run.last > undo.before:
                continue
            # What a redo of several turns did is told of each of them, and was taken back once.
            first = copies.setdefault((run.path, run.last), run) if run.is_restored else run
            same[id(run)] = id(first)
            if first is run:
                by_place.setdefault(self._found_at(run, undo, touched), []).append(run)
        for place, newest_first in by_place.items():
            steps = self._steps(self._at(undo.before, place), newest_first)
            if steps and is_same(steps[-1][1], self._at(undo.after, place)):
                found |= {id(run): step for run, step in zip(newest_first, steps, strict=True)}
        return {run: found[first] for run, first in same.items() if first in found}

    def _steps(self, state: "Known", runs: "list[Run]") -> "list[tuple[Known, Known]]":
        """The states before and after each run is taken back; none if they clash."""
        steps: list[tuple[Known, Known]] = []
        for run in runs:
            before, after = self._states(run)
            reverted = self._applied(state, after, before)
            if isinstance(reverted, Clash):
                return []
            if isinstance(reverted, Kept):
                break  # it stays as it is, and so does what was done before
            steps.append((state, reverted))
            state = reverted
        return steps + [(state, state)] * (len(runs) - len(steps))

    def _but(self, run: Run, left: Run) -> "Run | None":
        """A change without what was left of it; None if that is all of it."""
        if left is run:
            return None
        before, after = self._states(run)
        begun = self._applied(before, *self._states(left))
        if isinstance(begun, Clash | Kept):
            return run
        return None if is_same(begun, after) else _with_states(run, (begun, after))

    def _left_of(self, run: Run, effect: "tuple[Known, Known]") -> "Run | None":
        """A change with what an undo did to it on both of its sides; None if nothing is left."""
        if is_same(*effect):
            return run
        before, after = (self._applied(state, *effect) for state in self._states(run))
        if isinstance(before, Clash | Kept) or isinstance(after, Clash | Kept):
            return None
        return None if is_same(before, after) else _with_states(run, (before, after))

    def _states(self, run: Run) -> "tuple[Known, Known]":
        return run.states or (self._at(run.before, run.path), self._at(run.last, run.path))

    def _applied(
        self, state: "Known", before: "Known", after: "Known"
    ) -> "Entry | Clash | Kept | None":
        """What becomes of a state by what a restore did."""
        if is_same(state, before):
            return after
        if state is None or is_same(state, after):
            return state
        return self._merging.outcome(before, after, state)


def _moved(runs: "Iterable[Run]") -> "set[bytes]":
    """The old and the new names of what was renamed."""
    return {path for run in runs if run.origins for path in (run.path, *run.origins)}


def _with_states(run: Run, states: "tuple[Known, Known]") -> Run:
    """The same run, leading from and to something else."""
    other = Run(run.path, run.before, run.first, run.how, run.origin)
    other.last, other.origins, other.is_restored = run.last, run.origins, run.is_restored
    other.states = states
    return other


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
    `origins` are the names that the file had before it was renamed to this one. `leads_to` is the
    checkpoint that it goes back to.
    """

    __slots__ = ("before", "first", "how", "last", "leads_to", "origins", "path", "runs")

    def __init__(self, run: Run, states: "tuple[Known, Known]") -> None:
        self.path = run.path
        self.how = run.how
        self.first = run.first
        self.last = run.last
        self.runs: Fold = [states]
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
        self, *turns: int, merging: "Merging", shared: "Sequence[DeltaRow]" = ()
    ) -> "list[Taken]":
        """What turns changed, as it stands, and with it what they share."""
        found = Standing(self._ledger, self.at, merging, turns).runs(shared)
        return list(self._taken(found))

    def ever_changed(self, *turns: int) -> "list[bytes]":
        """The paths that turns changed, also those that were taken back since."""
        return [run.path for run in changes.runs(self._ledger, *turns)]

    def of_undone(
        self, *turns: int, undo: "RestoreRow", merging: "Merging", shared: "set[bytes]"
    ) -> "list[Taken]":
        """What an undo of these turns and of others took of these, to be put back.

        Where the undo was about these alone, what it did is reverted; so it is at `shared` paths.
        """
        standing = Standing(self._ledger, self.at, merging, turns)
        mixed = standing.not_alone(undo)
        own = shared | {run.path for run in changes.runs(self._ledger, *turns)}
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
                hint=Action("verify"),
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
        if row.who == words.STEP and not row.is_live:
            continue  # it was taken back since
        known = row.how if row.who == words.STEP and row.how in _DOUBTS else ""
        found.setdefault(row.path, Changed()).add(name_of(row.who, row.agent, row.label), known)
    for each in found.values():
        # What a restore did is known by what it took back or put back; the names are enough.
        each.names = [name for name in each.names if name != _RESTORED_BY] or each.names
    return found


def name_of(who: str, agent: "str | None", label: "str | None") -> str:
    """What one calls who made a change."""
    from takeback.history.references import quoted

    if who == words.STEP:
        return f'"{quoted(str(label))}" ({agent})' if label else str(agent)
    return {words.YOU: "you", words.SHARED: "several sessions", words.RESTORE: _RESTORED_BY}.get(
        who, who
    )
