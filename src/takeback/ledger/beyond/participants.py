"""Participants: the tokens that were captured, what restores do with them, and what is owed.

tokens   one row for each new token of a participant; `source` is the event that names its content.
         The newest row at a coordinate is the state there. An empty token means that nobody knows
moves    what a restore does with a participant, and what became of it
aborts   participants that prepared for a restore that never happened, and were not told yet

A move is `decided` from the commit of its restore on, `done` when it is visible. One that `failed`
is repeated; one that `waits` is of a participant that only another program can reach.
"""

from takeback.disk import operations
from takeback.ledger.beyond import memory, mutations
from takeback.ledger.database import Group
from takeback.ledger.log import events
from takeback.model.beyond.participants import (
    AFTERWARDS,
    MEMORY,
    MEMORY_NAME,
    MOVES,
    MUTATION_NAME,
    Captured,
)
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]

DECIDED, DONE, FAILED, WAITS, DROPPED = "decided", "done", "failed", "waits", "dropped"
NOT_ABORTED, ABORTED = "not-aborted", "aborted"
NOW = 1 << 62

_TOKEN = "SELECT name, kind, token, mark, source, event, problem FROM tokens t "
_NEWEST = (
    "WHERE line = ?1 AND event <= ?2 AND NOT EXISTS (SELECT 1 FROM tokens n WHERE n.line = t.line"
    " AND n.name = t.name AND n.number > t.number AND n.event <= ?2)"
)
_MOVE = (
    "SELECT r.id, m.name, m.kind, m.how, m.token, m.before, m.state, m.problem FROM moves m"
    " JOIN restores r ON r.number = m.restore "
)


class TokenRow(Value):
    """A token of a participant, and the event from which on it holds; empty if nobody knows."""

    name: str
    kind: str
    token: str
    mark: str
    source: int
    event: int
    problem: str


class MoveRow(Value):
    """What a restore does with a participant, and what became of that."""

    restore: str
    name: str
    kind: str
    how: str
    token: str
    before: str
    state: str
    problem: str


class Tokens(Group):
    """What is asked about participants."""

    __slots__ = ()

    def at(self, cursor: int = NOW) -> "dict[str, TokenRow]":
        """The newest token of each participant at a coordinate."""
        rows = self._reader.rows(_TOKEN + _NEWEST, (self._reader.line, cursor))
        return {row.name: row for row in (TokenRow(*values) for values in rows)}

    def captured(self, before: int, after: "int | None") -> "tuple[Captured, ...]":
        """The tokens at two coordinates, those of the memory of sessions among them."""
        old = {name: row.token for name, row in self.at(before).items()}
        found = [
            Captured(name, row.kind, old.get(name, ""), row.token, row.problem)
            for name, row in sorted(self.at(after or NOW).items())
        ]
        epochs = memory.Memory(self._reader)
        for id, number in epochs.sessions():
            ends = [epochs.epoch(number, cursor) for cursor in (before, after or NOW)]
            if ends[1]:
                found.append(Captured(MEMORY_NAME + id, MEMORY, *map(str, ends)))
        return tuple(found)

    def last(self, name: str) -> "TokenRow | None":
        """The newest token of one participant that somebody knows."""
        where = "WHERE line = ? AND name = ? AND token <> '' ORDER BY number DESC LIMIT 1"
        row = self._reader.one(_TOKEN + where, (self._reader.line, name))
        return TokenRow(*row) if row is not None else None

    def all(self) -> "list[TokenRow]":
        """All tokens of all lines, the oldest first."""
        return [TokenRow(*row) for row in self._reader.rows(_TOKEN + "ORDER BY number")]

    def count(self) -> int:
        """How many states were captured."""
        return int(self._reader.value("SELECT count(*) FROM tokens WHERE token <> ''"))

    def objects(self) -> "set[bytes]":
        """The ids of the objects of all captures."""
        query = "SELECT object FROM needs WHERE event IN (SELECT source FROM tokens)"
        return set(self._reader.column(query))

    def moves_of(self, restore: int) -> "list[MoveRow]":
        """What a restore does beside files."""
        rows = self._reader.rows(_MOVE + "WHERE m.restore = ? ORDER BY m.name", (restore,))
        return [MoveRow(*row) for row in rows]

    def owed(self, *states: str) -> "list[MoveRow]":
        """The moves that were decided and are not done, the oldest first."""
        named = ", ".join(f"'{state}'" for state in states or (DECIDED, FAILED, WAITS))
        where = f"WHERE m.state <> 'done' AND m.state IN ({named}) AND m.line = ?"
        rows = self._reader.rows(f"{_MOVE}{where} ORDER BY m.restore", (self._reader.line,))
        return [MoveRow(*row) for row in rows]

    def aborts(self) -> "list[tuple[str, str]]":
        """(restore, name) of what prepared for a restore that never happened."""
        query = "SELECT restore, name FROM aborts WHERE line = ? ORDER BY event"
        return [(str(id), str(name)) for id, name in self._reader.rows(query, (self._reader.line,))]

    def cursor_of(self, checkpoint: int) -> int:
        """The newest event by which somebody made or named a checkpoint."""
        query = (
            "SELECT max(e.seq) FROM coordinates c JOIN events e ON e.seq = c.cursor"
            " WHERE c.checkpoint = ? AND e.kind IN (?, ?)"
        )
        kinds = (events.CHECKPOINT_TAKEN, events.CHECKPOINT_NAMED)
        found = self._reader.value(query, (checkpoint, *kinds))
        if found is None:
            query = "SELECT event FROM checkpoints WHERE number = ?"
            found = self._reader.value(query, (checkpoint,))
        return int(found or 0)

    def cursor_by(self, moment: int) -> int:
        """The newest event by a time."""
        query = "SELECT max(cursor) FROM coordinates WHERE looked <= ?"
        return int(self._reader.value(query, (moment,)) or 0)


def count(db: "Connection", turn: "int | None") -> None:
    """Add what a turn changed beside files to the number of things that it changed."""
    row = db.execute("SELECT opened, closed, line FROM turns WHERE number = ?", (turn,)).fetchone()
    if row is None:
        return
    opened, closed, line = row
    before, after = (_known(db, line, at) for at in (opened, closed or NOW))
    changed = sum(1 for name in after if name in before and before[name] != after[name])
    changed += memory.changed_by(db, turn) + mutations.count(db, turn)
    if changed:
        operations.sql(db, "UPDATE turns SET paths = paths + ? WHERE number = ?", (changed, turn))


def _known(db: "Connection", line: int, cursor: int) -> "dict[str, str]":
    rows = db.execute(_TOKEN + _NEWEST, (line, cursor)).fetchall()
    return {str(row[0]): str(row[2]) for row in rows if row[2]}


# -- how the tables follow events ----------------------------------------------------------


def _captured(to: "Tables", event: "Event", said: "Said") -> None:
    line = to.number("lines", said.get("line", "main"))
    for name, kind, token, mark, problem, own in _lists(said.get("tokens")):
        known = _row_of(to.db, line, name, token) if token and not own else None
        # A token that was captured before stands for the same content.
        source = int(known[4]) if known is not None else event.seq
        _add(to, event, line, (name, kind, token, mark), source, problem)


def _add(
    to: "Tables",
    event: "Event",
    line: "int | None",
    what: "tuple[Any, ...]",
    source: int,
    problem: str,
) -> None:
    row = (to.next("tokens"), event.seq, event.at, line, *what, source, problem)
    operations.sql(to.db, "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _row_of(
    db: "Connection", line: "int | None", name: str, token: str
) -> "tuple[Any, ...] | None":
    where = "WHERE line = ? AND name = ? AND token = ? ORDER BY number DESC LIMIT 1"
    found: tuple[Any, ...] | None = db.execute(_TOKEN + where, (line, name, token)).fetchone()
    return found


def follow_restore(to: "Tables", event: "Event", said: "Said", restore: int) -> None:
    """A restore decided what moves beside files; memory moves with the same commit."""
    query = "SELECT line FROM restores WHERE number = ?"
    (line,) = to.db.execute(query, (restore,)).fetchone()
    for name, kind, how, token, before in _lists(said.get("moves")):
        if how not in (MOVES, AFTERWARDS):
            continue
        state = DECIDED
        if name.startswith(MEMORY_NAME):
            memory.rewind(to, event, name.removeprefix(MEMORY_NAME), int(token))
            state = DONE
        values = (restore, name, kind, how, token, before, state, "", line, event.seq)
        add = "INSERT OR IGNORE INTO moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        operations.sql(to.db, add, values)
        if how == MOVES and state == DECIDED:
            _holds_now(to, event, line, name, token)


def _holds_now(to: "Tables", event: "Event", line: "int | None", name: str, token: str) -> None:
    """From here on the participant is what the token says."""
    known = _row_of(to.db, line, name, token)
    if known is not None:
        what = (name, known[1], token, known[3])
        _add(to, event, line, what, int(known[4]), "")


def _moved(to: "Tables", event: "Event", said: "Said") -> None:
    """What became of moves: (name, state, problem)."""
    restore = to.number("restores", said.get("restore"))
    line = to.number("lines", said.get("line", "main"))
    for name, state, problem in _lists(said.get("moves")):
        if state == NOT_ABORTED:
            values = (str(said["restore"]), name, line, event.seq)
            operations.sql(to.db, "INSERT OR REPLACE INTO aborts VALUES (?, ?, ?, ?)", values)
        elif state == ABORTED:
            gone = "DELETE FROM aborts WHERE restore = ? AND name = ?"
            operations.sql(to.db, gone, (str(said["restore"]), name))
        else:
            _advance(to, event, (restore, name), state, problem)


def _advance(
    to: "Tables", event: "Event", which: "tuple[int | None, str]", state: str, problem: str
) -> None:
    query = "SELECT how, token, state, line FROM moves WHERE restore = ? AND name = ?"
    row = to.db.execute(query, which).fetchone()
    if row is None or row[2] == DONE:
        return
    change = "UPDATE moves SET state = ?, problem = ? WHERE restore = ? AND name = ?"
    operations.sql(to.db, change, (state, problem, *which))
    if which[1].startswith(MUTATION_NAME):
        if state == DONE:
            mutations.follow_move(to, which[1])
    elif row[0] == AFTERWARDS and state == DONE:
        _holds_now(to, event, row[3], which[1], row[1])


def _lists(value: object) -> "list[list[Any]]":
    return [list(each) for each in value] if isinstance(value, list | tuple) else []


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.PARTICIPANTS_CAPTURED: _captured,
    events.PARTICIPANTS_MOVED: _moved,
}
