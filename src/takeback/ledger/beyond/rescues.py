"""Rescues: what was saved just before a command that destroys, and where it lies.

open      the command runs, or nobody reported its end
kept      what is gone since; undo brings it back
dropped   nothing was gone, or it had to go: too old, too much, forgotten

The list of what a rescue holds is a file of the store; the ledger knows its hash. `tops` are the
paths that hold all of it: outside the project a restore may write only there. `beyond` counts those
of them that no checkpoint knows.
"""

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.ledger.database import Group
from takeback.ledger.log import events
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.value import Value, path_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Values
    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]

OPEN, KEPT, DROPPED = "open", "kept", "dropped"

_SELECT = (
    "SELECT number, id, event, at, turn, step, state, areas, tops, digest, files, bytes"
    " FROM rescues "
)
_THERE = "state <> 'dropped'"


class RescueRow(Value):
    """What the ledger holds of a rescue; `areas` are the folders in which it lies."""

    number: int
    id: str
    event: int
    at: int
    turn: "int | None"
    step: "int | None"
    state: str
    areas: "tuple[bytes, ...]"
    tops: "tuple[bytes, ...]"
    digest: str
    files: int
    bytes: int


class Rescues(Group):
    """What is asked about rescues; they are of the whole store, whatever its lines."""

    __slots__ = ()

    def there(self) -> "list[RescueRow]":
        """All that are not dropped, the oldest first."""
        return self._some(f"WHERE {_THERE} ORDER BY number")

    def has_any(self) -> bool:
        """Whether any rescue is kept, or its command runs."""
        return self._reader.has(f"SELECT 1 FROM rescues WHERE {_THERE} LIMIT 1")

    def of_turns(self, turns: "Iterable[int]") -> "list[RescueRow]":
        """What was saved while some turns ran, the oldest first."""
        where = f"WHERE {_THERE} AND turn IN (SELECT value FROM json_each(?)) ORDER BY number"
        return self._some(where, (json_text.dumps(list(turns)),))

    def since(self, event: int) -> "list[RescueRow]":
        """What was saved on this line after an event, the oldest first."""
        where = f"WHERE {_THERE} AND event > ? AND (line IS NULL OR {self._here}) ORDER BY number"
        return self._some(where, (event,))

    def of_step(self, step: str) -> "list[RescueRow]":
        """What was saved before a step whose end was not seen yet."""
        where = "WHERE state = 'open' AND step = (SELECT number FROM steps WHERE id = ?)"
        return self._some(where + " ORDER BY number", (step,))

    def over(self) -> "list[RescueRow]":
        """What was saved before steps that are over, or that nobody knows, and is not settled."""
        where = (
            "WHERE state = 'open' AND (step IS NULL OR EXISTS (SELECT 1 FROM steps s"
            " WHERE s.number = rescues.step AND s.closed IS NOT NULL)) ORDER BY number"
        )
        return self._some(where)

    def all_areas(self) -> "list[bytes]":
        """Every folder in which a rescue ever lay."""
        found: set[bytes] = set()
        for (areas,) in self._reader.rows("SELECT DISTINCT areas FROM rescues"):
            found.update(_paths(areas))
        return sorted(found)

    def is_known(self, path: bytes) -> bool:
        """Whether a path outside the project is one that was saved, or leads to one."""
        return any(
            path == top or path.startswith(top + b"/") or top.startswith(path + b"/")
            for row in self.there()
            for top in row.tops
        )

    def _some(self, where: str, values: "Values" = ()) -> "list[RescueRow]":
        return [_row(row) for row in self._reader.rows(_SELECT + where, values)]


def _row(row: "tuple[Any, ...]") -> RescueRow:
    return RescueRow(*(*row[:7], _paths(row[7]), _paths(row[8]), *row[9:]))


def _paths(text: str) -> "tuple[bytes, ...]":
    try:
        return tuple(path_bytes(str(path)) for path in json_text.loads(text))
    except (ValueError, TypeError) as problem:
        raise DamagedStoreError(
            "a row of the rescues cannot be read", hint=Action("verify")
        ) from problem


def count(db: "Connection", turn: "int | None") -> None:
    """Add what a turn destroyed that only a rescue holds to the paths that it changed."""
    query = "SELECT coalesce(sum(beyond), 0) FROM rescues WHERE turn = ? AND state = 'kept'"
    (number,) = db.execute(query, (turn,)).fetchone()
    operations.sql(db, "UPDATE turns SET paths = paths + ? WHERE number = ?", (number, turn))


# -- how the table follows events ----------------------------------------------------------


def _made(to: "Tables", event: "Event", said: "Said") -> None:
    step, turn = to.number("steps", said.get("step")), to.number("turns", said.get("turn"))
    line = to.line_of_turn(turn)
    row = (to.next("rescues"), str(said["rescue"]), event.seq, event.at, turn, step, line, OPEN)
    lists = [json_text.dumps(said.get(name) or []) for name in ("areas", "tops")]  # type: ignore[arg-type]
    counts = [int(str(said.get(name, 0))) for name in ("files", "bytes")]
    insert = "INSERT INTO rescues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    operations.sql(to.db, insert, (*row, *lists, str(said.get("list", "")), *counts, 0))


def _settled(to: "Tables", event: "Event", said: "Said") -> None:
    """The command is over: what is left of its rescue is kept. Or a part of it was forgotten."""
    del event
    number = to.number("rescues", said.get("rescue"))
    row = to.db.execute("SELECT turn, state FROM rescues WHERE number = ?", (number,)).fetchone()
    if row is None:
        return
    counts = [int(str(said.get(name, 0))) for name in ("files", "bytes", "beyond")]
    state = KEPT if said.get("left") else DROPPED
    tops = json_text.dumps(said.get("tops") or [])  # type: ignore[arg-type]
    change = (
        "UPDATE rescues SET state = ?, tops = ?, digest = ?, files = ?, bytes = ?, beyond = ?"
        " WHERE number = ?"
    )
    operations.sql(to.db, change, (state, tops, str(said.get("list", "")), *counts, number))
    turn, before = row
    if turn is None or before != OPEN or not counts[2]:
        return
    from takeback.ledger import undo_stack

    undo_stack.go_on(to.db, {turn})
    closed = "UPDATE turns SET paths = paths + ? WHERE number = ? AND closed IS NOT NULL"
    operations.sql(to.db, closed, (counts[2], turn))


def _dropped(to: "Tables", event: "Event", said: "Said") -> None:
    del event
    named = said.get("rescues")
    rows = [(DROPPED, str(id)) for id in (named if isinstance(named, list) else ())]
    change = "UPDATE rescues SET state = ?, tops = '[]', files = 0, bytes = 0 WHERE id = ?"
    if rows:
        operations.sql_many(to.db, change, rows)


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.RESCUE_MADE: _made,
    events.RESCUE_SETTLED: _settled,
    events.RESCUES_DROPPED: _dropped,
}
