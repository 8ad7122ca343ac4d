"""What a turn or a restore changed, as it is needed to take it back: states, path by path.

Each path comes with the runs of changes that are to be reverted, the newest first. Between two
runs somebody else changed the path.
"""

from takeback.engine import changes, retention
from takeback.engine.changes import Run
from takeback.engine.standing import Standing
from takeback.engine.trees import Trees
from takeback.errors import DamagedStoreError
from takeback.model import jsontext, terms
from takeback.model.difference import judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from takeback.engine.changes import Span
    from takeback.engine.merging import Merging
    from takeback.model.tree import Entry
    from takeback.store.ledger import Ledger
    from takeback.store.restores import RestoreRow
    from takeback.store.rows import CheckpointRow

    Known = Entry | None
    Fold = list[tuple[Known, Known]]

_RESTORED = "SELECT path, origin FROM deltas WHERE checkpoint = ? AND who = ? ORDER BY path"
_HOW = (
    "SELECT path, how FROM deltas WHERE turn IN (SELECT value FROM json_each(?))"
    " AND who = 'step' ORDER BY checkpoint"
)
_LEFT_OUT = (
    "SELECT DISTINCT path FROM deltas WHERE verb = 'omit'"
    " AND turn IN (SELECT value FROM json_each(?)) ORDER BY path"
)
_SHARED = (
    "SELECT DISTINCT path FROM deltas WHERE who = 'shared' AND verb <> 'omit'"
    " AND checkpoint > ? AND checkpoint <= ? AND instr(' ' || sessions || ' ', ?)"
)
_SINCE = (
    "SELECT d.path, d.who, d.how, z.agent, t.label FROM deltas d"
    " LEFT JOIN sessions z ON z.number = d.session LEFT JOIN turns t ON t.number = d.turn"
    " WHERE d.checkpoint > ? AND d.checkpoint <= ?"
    " AND (d.turn IS NULL OR d.turn NOT IN (SELECT value FROM json_each(?))) ORDER BY d.checkpoint"
)
_YOURS = "SELECT DISTINCT path FROM deltas WHERE checkpoint > ? AND who = 'you' AND verb <> 'omit'"
_NEWEST = 1 << 62
_RESTORED_BY = "a restore"
_DOUBTS = ("", terms.NAMED, terms.BY_TURN, terms.BY_SHELL, terms.PERHAPS)
"""How it is known whose change something is, the most certain first."""


class Taken:
    """One path of what is taken back.

    `runs` are (before, after), the newest first; `first` is the checkpoint with which the oldest
    of them begins, `last` the one with which the newest ends. `origins` are the names that the
    file had before it was renamed to this one. `leads_to` is the checkpoint that it goes back to.
    """

    __slots__ = ("first", "how", "last", "leads_to", "origins", "path", "runs")

    def __init__(self, run: Run, states: "tuple[Known, Known]") -> None:
        self.path = run.path
        self.how = run.how
        self.first = run.first
        self.last = run.last
        self.runs: Fold = [states]
        self.origins = run.origins
        self.leads_to = run.first - 1

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
        found = Standing(self._ledger, self.at, merging, turns).runs(shared)
        return list(self._taken(found))

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
        hows = dict(self._ledger.rows(_HOW, (jsontext.dumps(turns),))) if turns else {}
        rows = self._ledger.rows(_RESTORED, (after, terms.RESTORE))
        return list(
            self._taken(Run(path, after, hows.get(path, ""), origin) for path, origin in rows)
        )

    def left_out(self, *turns: int) -> "list[bytes]":
        """What turns made that is not covered."""
        return [path for (path,) in self._ledger.rows(_LEFT_OUT, (jsontext.dumps(turns),))]

    def shared(self, session: str, before: int, after: "int | None") -> "list[bytes]":
        """What may be a turn's, or another session's."""
        span = (before, _NEWEST if after is None else after)
        return [path for (path,) in self._ledger.rows(_SHARED, (*span, f" {session} "))]

    def yours(self, before: int, now: "CheckpointRow") -> "list[bytes]":
        """What you changed since a checkpoint, and is still changed."""
        # What is put back may be older than what is kept.
        then = self._row(max(before, retention.floor(self._ledger) + 1))
        found = [path for (path,) in self._ledger.rows(_YOURS, (before,))]
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
                states = self.at(run.first - 1, run.path), self.at(run.last, run.path)
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
        row = self._rows.get(number) or self._ledger.checkpoint(number)
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
    span = (checkpoint, _NEWEST, jsontext.dumps(list(but)))
    for path, who, how, agent, label in ledger.rows(_SINCE, span):
        known = str(how) if who == terms.STEP and how in _DOUBTS else ""
        found.setdefault(path, Changed()).add(_name(str(who), agent, label), known)
    for each in found.values():
        # What a restore did is known by what it took back or put back; the names are enough.
        each.names = [name for name in each.names if name != _RESTORED_BY] or each.names
    return found


def _name(who: str, agent: "str | None", label: "str | None") -> str:
    from takeback.engine.naming import quoted

    if who == terms.STEP:
        return f'"{quoted(str(label))}" ({agent})' if label else str(agent)
    return {terms.YOU: "you", terms.SHARED: "several sessions", terms.RESTORE: _RESTORED_BY}.get(
        who, who
    )
