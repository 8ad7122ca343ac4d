"""The memory of sessions: values by key, in layers, with their history.

One row for each value that was written; an empty one means that the key was deleted. The state at
an *epoch*, which is the number of a row, is the newest row of each key up to it. A rewind appends
the values of its epoch to the layers that are not persistent, so no row ever changes.
"""

from takeback.disk import operations
from takeback.ledger.database import Group
from takeback.ledger.log import events
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.disk.sqlite import Connection
    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]
    Epoch = dict[tuple[str, str], str]

_LATEST = (
    "SELECT layer, key, value FROM memory m WHERE session = ?1 AND number <= ?2"
    " AND NOT persistent AND NOT EXISTS (SELECT 1 FROM memory n WHERE n.session = m.session"
    " AND n.layer = m.layer AND n.key = m.key AND n.number > m.number AND n.number <= ?2)"
)
_EPOCH = "SELECT coalesce(max(number), 0) FROM memory WHERE session = ? AND event <= ?"
NOW = 1 << 62


class Written(Value):
    """A value as it was written: `value` is JSON, None if the key was deleted."""

    number: int
    event: int
    at: int
    value: "str | None"


class Memory(Group):
    """What is asked about the memory of sessions."""

    __slots__ = ()

    def get(self, session: str, layer: str, key: str) -> "str | None":
        """The value of a key as JSON; None without one."""
        query = (
            "SELECT value FROM memory WHERE session = (SELECT number FROM sessions WHERE id = ?)"
            " AND layer = ? AND key = ? ORDER BY number DESC LIMIT 1"
        )
        found: str | None = self._reader.value(query, (session, layer, key))
        return found

    def keys(self, session: str, layer: str) -> "list[str]":
        """The keys of a layer, in the order in which they were first written."""
        query = (
            "SELECT key FROM memory m WHERE session = (SELECT number FROM sessions WHERE id = ?)"
            " AND layer = ? AND value IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memory n"
            " WHERE n.session = m.session AND n.layer = m.layer AND n.key = m.key"
            " AND n.number > m.number) ORDER BY number"
        )
        return [str(key) for key in self._reader.column(query, (session, layer))]

    def history(self, session: str, layer: str, key: str) -> "list[Written]":
        """All values of a key, the newest first."""
        query = (
            "SELECT number, event, at, value FROM memory WHERE layer = ? AND key = ?"
            " AND session = (SELECT number FROM sessions WHERE id = ?) ORDER BY number DESC"
        )
        return [Written(*row) for row in self._reader.rows(query, (layer, key, session))]

    def is_persistent(self, session: str, layer: str) -> "bool | None":
        """Whether a layer never rewinds; None if nothing was written to it."""
        query = (
            "SELECT persistent FROM memory WHERE layer = ?"
            " AND session = (SELECT number FROM sessions WHERE id = ?) LIMIT 1"
        )
        found = self._reader.value(query, (layer, session))
        return None if found is None else bool(found)

    def sessions(self) -> "list[tuple[str, int]]":
        """(id, number) of the sessions that have a memory, in the order of their beginnings."""
        query = (
            "SELECT id, number FROM sessions WHERE number IN (SELECT session FROM memory"
            " WHERE NOT persistent) ORDER BY number"
        )
        return [(str(id), int(number)) for id, number in self._reader.rows(query)]

    def epoch(self, session: int, cursor: int = NOW) -> int:
        """The epoch of a session's memory at a coordinate; 0 if it was empty."""
        return int(self._reader.value(_EPOCH, (session, cursor)))

    def at(self, session: int, epoch: int) -> "Epoch":
        """The values at an epoch, by layer and key, in the layers that rewind."""
        return _at(self._reader.rows(_LATEST, (session, epoch)))

    def size(self) -> "tuple[int, int]":
        """How many values the history of memory holds, and their bytes."""
        query = "SELECT count(*), coalesce(sum(length(value)), 0) FROM memory"
        rows, size = self._reader.rows(query)[0]
        return int(rows), int(size)


def _at(rows: "list[tuple[str, str, str | None]]") -> "Epoch":
    return {(layer, key): value for layer, key, value in rows if value is not None}


def changed_by(db: "Connection", turn: "int | None") -> int:
    """Whether the memory of a turn's session is another one after it than before, as a number."""
    query = "SELECT session, opened, closed FROM turns WHERE number = ?"
    session, opened, closed = db.execute(query, (turn,)).fetchone()
    epochs = [
        int(db.execute(_EPOCH, (session, at)).fetchone()[0]) for at in (opened, closed or NOW)
    ]
    if epochs[0] == epochs[1]:
        return 0
    before, after = (_at(db.execute(_LATEST, (session, at)).fetchall()) for at in epochs)
    return int(before != after)


# -- how the table follows events ----------------------------------------------------------


def follow_change(to: "Tables", event: "Event", said: "Said") -> None:
    """Values were written: (key, value as JSON or None)."""
    session = to.number("sessions", said.get("session"))
    values = said.get("values")
    for key, value in values if isinstance(values, list) else ():
        what = (str(said.get("layer", "")), str(key), value, bool(said.get("persistent")))
        _add(to, event, session, what)


def _add(
    to: "Tables",
    event: "Event",
    session: "int | None",
    what: "tuple[str, str, str | None, bool]",
) -> None:
    row = (to.next("memory"), event.seq, event.at, session, *what)
    operations.sql(to.db, "INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def rewind(to: "Tables", event: "Event", session: str, epoch: int) -> None:
    """Bring the layers that rewind to what they were."""
    number = to.number("sessions", session)
    if number is None:
        return
    then, now = (_at(to.db.execute(_LATEST, (number, at)).fetchall()) for at in (epoch, NOW))
    for layer, key in sorted(now.keys() | then.keys()):
        value = then.get((layer, key))
        if now.get((layer, key)) != value:
            _add(to, event, number, (layer, key, value, False))


FOLLOW = {events.MEMORY_CHANGED: follow_change}
