"""What a turn or a restore changed, as it is needed to take it back: states, path by path.

Each path comes with the runs of changes that are to be reverted, the newest first. Between two
runs somebody else changed the path. What of a turn stands is told by `standing`.

What happened to paths after what is taken back had left them: who did it, in which turns.
"""

from itertools import pairwise

from takeback.capture import changes
from takeback.capture.changes import Run, Trees
from takeback.errors import DamagedStoreError
from takeback.history import retention
from takeback.model import words
from takeback.model.plan import Dependent
from takeback.model.reasons import Action
from takeback.model.tree import judge
from takeback.undo.plans.standing import Standing, is_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from takeback.ledger.checkpoints import DeltaRow, NamedDelta
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.outside import OutsideRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.plan import Conflict, Left
    from takeback.model.tree import Entry
    from takeback.undo.plans.merge import Merging

    Known = Entry | None

    Fold = list[tuple[Known, Known]]

    ClashAt = Callable[[Conflict, int], object]
    """What of a conflict there was at a checkpoint; None if nothing."""


def rows_outside(ledger: "Ledger", turns: "Sequence[int]") -> "list[OutsideRow]":
    """The same of files outside."""
    found = {row.number: row for row in ledger.outside.of_turns(turns)}
    for turn in turns if found else ():
        last: dict[bytes, tuple[RestoreRow, OutsideRow]] = {}
        for act in reversed(ledger.stack.about(turn)):
            rows = ledger.outside.of_restore(act.number)
            last |= {row.path: (act, row) for row in rows if is_alone(act, turns)}
        for path, (act, done) in last.items():
            own = [r for r in found.values() if (r.turn, r.path) == (turn, path)]
            for row in own:
                if row.number < done.number:
                    del found[row.number]
            if act.verb == words.REDO:
                found[done.number] = done
    return [found[number] for number in sorted(found)]


_RESTORED_BY = "a restore"
_DOUBTS = (
    "",
    words.NAMED,
    words.BY_TURN,
    words.BY_SHELL,
    words.PERHAPS,
    words.UNREPORTED,
    words.UNKNOWN,
)
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

    def order_of(self, place: int) -> int:
        """The same of one of its runs."""
        return self.lasts[-1 - place] if self.is_forward else -self.lasts[place]

    @property
    def newest(self) -> "Fold":
        """The runs of the file that had the path in the end: since the name was given to it."""
        for place, (newer, older) in enumerate(pairwise(self.runs), 1):
            if newer[0] is None and None not in older:
                return self.runs[:place]
        return self.runs

    @property
    def older(self) -> "Fold":
        """The other runs: they are of a file that had the path before."""
        return self.runs[len(self.newest) :]

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

    def settled(self, *turns: int, merging: "Merging") -> "Iterator[Left]":
        """What the user decided to keep in earlier undos of turns."""
        return Standing(self._ledger, self.at, merging, turns).settled()

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
        own = shared | {run.path for run in standing.before(undo)}
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
            self._found = changed_since(self._ledger, self.last, self._turns)
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
                found[id] = known.replace(raw_paths=tuple(sorted({*known.raw_paths, row.path})))
        return tuple(found.values())

    def _is_of(self, conflict: "Conflict", row: "NamedDelta", clash: "ClashAt") -> bool:
        """Whether a change has to do with a conflict: without it, there would be less of it."""
        if conflict.base is None and conflict.theirs is None:
            return True
        before = self._ledger.checkpoints.parent_of(row.checkpoint)
        after = clash(conflict, row.checkpoint)
        return after is not None and after != clash(conflict, before)
