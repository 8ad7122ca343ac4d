"""Mutations of the application's state: what was changed, from what to what, and how it goes back.

One is `begun` before its call and `applied` after it; `inverted` once an undo took it back. What
became of each inverse is in the table `moves`, like that of any participant.
"""

from takeback.disk import operations
from takeback.ledger.database import Group
from takeback.ledger.log import events
from takeback.model.beyond.participants import MUTATION_NAME, Mutation
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]

BEGUN, APPLIED, INVERTED, BROKEN = "begun", "applied", "inverted", "broken"
_SELECT = (
    "SELECT m.id, t.id, m.target, m.before, m.after, m.given, m.inverse, m.state, m.event"
    " FROM mutations m JOIN turns t ON t.number = m.turn "
)


class Mutations(Group):
    """What is asked about mutations."""

    __slots__ = ()

    def find(self, id: str) -> "Mutation | None":
        """A mutation by its key."""
        return next(iter(self._some("WHERE m.id = ?", (id,))), None)

    def of_turns(self, turns: "Iterable[str]") -> "list[Mutation]":
        """What turns did, the newest first."""
        named = json_text.dumps(list(turns))
        where = "WHERE t.id IN (SELECT value FROM json_each(?)) ORDER BY m.number DESC"
        return self._some(where, (named,))

    def since(self, cursor: int) -> "list[Mutation]":
        """What was done after an event, the newest first."""
        where = f"WHERE m.event > ? AND t.{self._here} ORDER BY m.number DESC"
        return self._some(where, (cursor,))

    def later(self, mutation: Mutation) -> "list[Mutation]":
        """What was done to the same target since, and stands, the newest first."""
        where = "WHERE m.target = ? AND m.event > ? AND m.state = 'applied' ORDER BY m.number DESC"
        return self._some(where, (mutation.target, mutation.event))

    def has_any(self) -> bool:
        """Whether there is one at all."""
        return self._reader.has("SELECT 1 FROM mutations LIMIT 1")

    def count(self) -> int:
        """How many there are."""
        return int(self._reader.value("SELECT count(*) FROM mutations"))

    def _some(self, where: str, values: "tuple[Any, ...]") -> "list[Mutation]":
        return [_mutation(row) for row in self._reader.rows(_SELECT + where, values)]


def _mutation(row: "tuple[Any, ...]") -> Mutation:
    id, turn, target, before, after, given, inverse, state, event = row
    return Mutation(
        key=str(id),
        turn=str(turn),
        target=str(target),
        before=json_text.loads(before),
        after=json_text.loads(after),
        given=json_text.loads(given),
        inverse=str(inverse),
        state=str(state),
        event=int(event),
    )


def count(db: "Connection", turn: "int | None") -> int:
    """How many mutations a turn made."""
    query = "SELECT count(*) FROM mutations WHERE turn = ? AND state <> 'broken'"
    return int(db.execute(query, (turn,)).fetchone()[0])


def follow_move(to: "Tables", name: str) -> None:
    """The inverse of a mutation is done; or what does it again, if it was inverted."""
    change = (
        "UPDATE mutations SET state = CASE state WHEN 'inverted' THEN 'applied' ELSE 'inverted' END"
        " WHERE id = ?"
    )
    operations.sql(to.db, change, (name.removeprefix(MUTATION_NAME),))


def _recorded(to: "Tables", event: "Event", said: "Said") -> None:
    """A mutation is about to be done, or was done just now."""
    texts = [json_text.dumps(said.get(name)) for name in ("was", "became", "given")]  # type: ignore[arg-type]
    names = (str(said["mutation"]), event.seq, event.at, to.number("turns", said.get("turn")))
    what = (str(said.get("of", "")), *texts, str(said.get("inverse", "")))
    row = (to.next("mutations"), *names, *what, str(said.get("stage", APPLIED)))
    # A key that was forgotten may be that of several.
    add = "INSERT OR IGNORE INTO mutations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    operations.sql(to.db, add, row)


def _settled(to: "Tables", event: "Event", said: "Said") -> None:
    """The call of a mutation came back: with what, or not at all."""
    del event
    change = "UPDATE mutations SET state = ?, after = ? WHERE id = ? AND state = 'begun'"
    after = json_text.dumps(said.get("became"))  # type: ignore[arg-type]
    values = (str(said.get("stage")), after, str(said["mutation"]))
    operations.sql(to.db, change, values)


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.MUTATION_RECORDED: _recorded,
    events.MUTATION_SETTLED: _settled,
}
