"""What is kept, trimmed and forgotten: what retention, gc and forget ask the ledger.

The row of a forget says how far it is; what it is about is never in the ledger itself, so its
pages, its log and its free space can be searched for it in the end.

    begun       nothing was changed yet; it starts over
    committed   the history speaks of it no more; what is left of it in files has to go
    proved      everything was searched, and nothing was found; the row goes
"""

from takeback.disk import operations
from takeback.ledger.database import Group
from takeback.ledger.log.events import entry_from
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Reader
    from takeback.ledger.ledger import Transaction
    from takeback.model.tree import Entry

BEGUN, COMMITTED, PROVED = "begun", "committed", "proved"

_RUNNING = (
    "SELECT min(t.before) FROM turns t JOIN sessions z ON z.number = t.session"
    " WHERE t.closed IS NULL AND z.seen > ?"
)
_ACROSS = (
    "SELECT min(before) FROM turns WHERE before < ?1 AND after > ?1 UNION ALL"
    " SELECT min(before) FROM restores WHERE before < ?1 AND after > ?1"
)
_KNOWN = "SELECT 1 FROM {table} WHERE path = ? OR (path > ? AND path < ?) LIMIT 1"
_KEPT = (
    "SELECT c.id, c.view, c.created, k.label, k.at, c.entries FROM kept k"
    " JOIN checkpoints c ON c.number = k.checkpoint"
    " ORDER BY c.number DESC"
)
_CUT = (
    "SELECT c.view FROM checkpoints p JOIN checkpoints c ON c.parent = p.number"
    " WHERE p.gone IS NOT NULL AND c.gone IS NULL"
)
_FIRST_OUTSIDE = (
    "SELECT min(o.number) FROM outside o LEFT JOIN turns t ON t.number = o.turn"
    " LEFT JOIN restores r ON r.number = o.restore WHERE coalesce(t.before, r.before) > ?"
)
_ONLY_ITS_OWN = (
    "SELECT c.number FROM checkpoints c JOIN turns t ON t.number = ?1"
    " WHERE c.line = t.line AND c.number > t.before AND c.number < t.after AND c.gone IS NULL"
    " AND c.number NOT IN (SELECT max(number) FROM checkpoints GROUP BY line)"
    " AND c.number NOT IN (SELECT parent FROM lines WHERE parent IS NOT NULL)"
    " AND NOT EXISTS (SELECT 1 FROM deltas d WHERE d.turn IS NOT ?1 AND (d.checkpoint = c.number"
    "   OR d.checkpoint IN (SELECT n.number FROM checkpoints n WHERE n.parent = c.number)))"
    " AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.number <> ?1"
    "   AND c.number IN (o.before, o.after))"
    " AND NOT EXISTS (SELECT 1 FROM restores r WHERE c.number IN (r.before, r.after, r.target))"
    " AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.checkpoint = c.number) ORDER BY c.number"
)


class KeptRow(Value):
    """A state that somebody keeps: its commit in the git view, and since when it is kept."""

    id: str
    commit: bytes
    created: int
    label: str
    at: int
    entries: int


class Care(Group):
    """What retention and gc ask: bounds of what is kept, as numbers of checkpoints."""

    __slots__ = ()

    def floor(self) -> int:
        """The highest number of the line whose files are gone: what began there is not kept."""
        query = f"SELECT max(number) FROM checkpoints WHERE gone IS NOT NULL AND +{self._here}"
        return self._number(query) or 0

    def first_above(self, floor: int) -> "int | None":
        """The first checkpoint of the line above a number."""
        query = f"SELECT min(number) FROM checkpoints WHERE number > ? AND +{self._here}"
        return self._number(query, floor)

    def trimmed(self) -> int:
        """The highest number in the store whose files are gone."""
        return self._number("SELECT max(number) FROM checkpoints WHERE gone IS NOT NULL") or 0

    def lowest_floor(self) -> int:
        """Below it nothing is kept in any line, but for single states."""
        query = (
            "SELECT min(floor) FROM (SELECT coalesce("
            "max(CASE WHEN gone IS NOT NULL THEN number END), min(number) - 1) AS floor"
            " FROM checkpoints GROUP BY line)"
        )
        return self._number(query) or 0

    def newest(self) -> int:
        """The number of the newest checkpoint of the store; 0 if there is none."""
        return self._number("SELECT max(number) FROM checkpoints") or 0

    def oldest_above(self, floor: int) -> "int | None":
        """When the first checkpoint above the floor was made."""
        query = "SELECT created FROM checkpoints WHERE number > ? ORDER BY number LIMIT 1"
        return self._number(query, floor)

    def first_since(self, moment: int) -> "int | None":
        """The first checkpoint that was made after a moment."""
        return self._number("SELECT min(number) FROM checkpoints WHERE created > ?", moment)

    def begin_of_newest_turns(self, many: int) -> "int | None":
        """Where so many of the newest turns that changed something begin."""
        query = (
            "SELECT min(before) FROM (SELECT before FROM turns WHERE paths > 0"
            " ORDER BY number DESC LIMIT ?)"
        )
        return self._number(query, many)

    def begin_of_running_turns(self, moment: int) -> "int | None":
        """Where turns begin that run in sessions which were heard of since a moment."""
        return self._number(_RUNNING, moment)

    def begin_of_work_across(self, horizon: int) -> "int | None":
        """Where turns and restores begin that reach over a horizon."""
        return self._least(_ACROSS, horizon)

    def with_files_below(self, horizon: int) -> "list[int]":
        """The checkpoints below a horizon that nobody keeps and whose files are there.

        A turn that runs keeps the state before it, however old; each line keeps its newest state,
        and the one of another line at which it began.
        """
        query = (
            "SELECT number FROM checkpoints WHERE number < ? AND gone IS NULL"
            " AND number NOT IN (SELECT checkpoint FROM kept)"
            " AND number NOT IN (SELECT before FROM turns WHERE closed IS NULL)"
            " AND number NOT IN (SELECT max(number) FROM checkpoints GROUP BY line)"
            " AND number NOT IN (SELECT parent FROM lines WHERE parent IS NOT NULL)"
            " ORDER BY number"
        )
        return [int(number) for number in self._reader.column(query, (horizon,))]

    def turns_begun_in(self, first: int, last: int) -> int:
        """How many turns begin at a checkpoint of a range."""
        query = "SELECT count(*) FROM turns WHERE before BETWEEN ? AND ?"
        return self._number(query, first, last) or 0

    def turns_above(self, floor: int) -> int:
        """How many turns can still be taken back."""
        return self._number("SELECT count(*) FROM turns WHERE before > ?", floor) or 0

    def count_with_files(self) -> int:
        """How many checkpoints still have their files."""
        return self._number("SELECT count(*) FROM checkpoints WHERE gone IS NULL") or 0

    def small_packs(self, size: int) -> int:
        """How many packs have less than so many bytes."""
        return self._number("SELECT count(*) FROM packs WHERE bytes < ?", size) or 0

    def last_run(self) -> "int | None":
        """When something was last trimmed, merged or forgotten."""
        return self._number("SELECT max(at) FROM care")

    def first_trim_from(self, number: int) -> "int | None":
        """The event that let the files of the first checkpoint go, from a number on."""
        query = "SELECT gone FROM checkpoints WHERE number >= ? AND gone IS NOT NULL"
        return self._number(f"{query} AND +{self._here} ORDER BY number LIMIT 1", number)

    def run(self, event: "int | None") -> "tuple[int, dict[str, Any]] | None":
        """When an event trimmed, merged or forgot something, and what it says."""
        row = self._reader.one("SELECT at, said FROM care WHERE event = ?", (event,))
        return None if row is None else (int(row[0]), json_text.loads(row[1]))

    # -- states that somebody keeps ----------------------------------------------------------

    def kept(self) -> "list[KeptRow]":
        """The states that somebody keeps, newest first."""
        return [KeptRow(*row) for row in self._reader.rows(_KEPT)]

    def is_kept(self, number: int) -> bool:
        """Whether somebody keeps a state."""
        return self._reader.has("SELECT 1 FROM kept WHERE checkpoint = ?", (number,))

    def cut_commits(self) -> "set[bytes]":
        """The commits of the git view whose parents' files are gone."""
        return set(self._reader.column(_CUT))

    def secret_files(self, limit: int) -> "list[bytes]":
        """Paths that held secrets when they were captured, by their names; the newest first."""
        query = (
            "SELECT p.path FROM secret_files s JOIN paths p ON p.number = s.path"
            " ORDER BY s.path DESC LIMIT ?"
        )
        return [bytes(path) for (path,) in self._reader.rows(query, (limit,))]

    def secrets_changed_since(self, checkpoint: int) -> "list[bytes]":
        """Those of them that were changed, moved or deleted after a checkpoint, in any line."""
        query = (
            "SELECT DISTINCT p.path FROM delta_rows r"
            " JOIN secret_files s ON s.path IN (r.path, r.origin) JOIN paths p ON p.number = s.path"
            " WHERE r.checkpoint > ?"
        )
        return [bytes(path) for (path,) in self._reader.rows(query, (checkpoint,))]

    # -- what gc needs besides checkpoints ---------------------------------------------------

    def event_of(self, number: int) -> int:
        """The event of the newest checkpoint up to a number; 0 if there is none."""
        return self._number("SELECT max(event) FROM checkpoints WHERE number <= ?", number) or 0

    def outside_above(self, floor: int) -> "Iterator[tuple[bytes, Entry | None]]":
        """What files outside held around turns and restores that are kept, and since then."""
        first = self._number(_FIRST_OUTSIDE, floor)
        query = "SELECT path, before, after FROM outside WHERE number >= ? ORDER BY number DESC"
        for path, *sides in self._reader.rows(query, (first,)) if first is not None else ():
            for text in filter(None, sides):
                yield path, entry_from(json_text.loads(text))

    def _number(self, query: str, *values: int) -> "int | None":
        found = self._reader.value(query, values)
        return None if found is None else int(found)

    def _least(self, query: str, *values: int) -> "int | None":
        found = [int(n) for n in self._reader.column(query, values) if n is not None]
        return min(found, default=None)


class Forgets(Group):
    """What forget asks, and the row of one that is under way."""

    __slots__ = ("_transaction",)

    def __init__(self, reader: "Reader", transaction: "Callable[[], Transaction]") -> None:
        super().__init__(reader)
        self._transaction = transaction

    def is_under_way(self) -> bool:
        """Whether one was begun and is not done; each start asks, also in a damaged ledger."""
        return self._reader.has("SELECT 1 FROM forgetting LIMIT 1")

    def under_way(self) -> "tuple[str, str] | None":
        """The id and the phase of a forget that was begun and is not done."""
        row = self._reader.one("SELECT id, phase FROM forgetting LIMIT 1")
        return None if row is None else (str(row[0]), str(row[1]))

    def is_committed(self) -> bool:
        """Whether the history was rewritten, and what is left of the old one may still be there."""
        found = self.under_way()
        return found is not None and found[1] != BEGUN

    def last(self) -> "int | None":
        """The event of the newest forget."""
        found = self._reader.value("SELECT max(event) FROM care WHERE kind = 'forget'")
        return None if found is None else int(found)

    def begin(self, id: str) -> None:
        """From here on whoever takes the lock goes on with it."""
        with self._transaction() as db:
            values = (id, BEGUN, "{}")
            operations.sql(db, "INSERT OR REPLACE INTO forgetting VALUES (?, ?, ?)", values)

    def prove(self, id: str) -> None:
        """Note that everything was searched."""
        with self._transaction() as db:
            advance(db, id, PROVED)

    def end(self, id: str) -> None:
        """It is done, or was given up before anything was changed."""
        with self._transaction() as db:
            operations.sql(db, "DELETE FROM forgetting WHERE id = ?", (id,))

    # -- what it is about ------------------------------------------------------------------

    def turn(self, id: str) -> "tuple[int, str, frozenset[str]] | None":
        """The number of a turn, its label, and the ids of its steps."""
        row = self._reader.one("SELECT number, label FROM turns WHERE id = ?", (id,))
        if row is None:
            return None
        steps = self._reader.column("SELECT id FROM steps WHERE turn = ?", row[:1])
        return int(row[0]), str(row[1]), frozenset(map(str, steps))

    def states_of_turn_alone(self, turn: int) -> "frozenset[int]":
        """The states strictly inside a turn that nobody else has anything to do with."""
        return frozenset(map(int, self._reader.column(_ONLY_ITS_OWN, (turn,))))

    def changed_by_turns(self) -> "Iterator[tuple[bytes, int]]":
        """Each path that a turn changed, with the number of the turn."""
        query = "SELECT DISTINCT path, turn FROM deltas WHERE turn IS NOT NULL"
        yield from self._reader.rows(query)

    def is_changed(self, path: bytes) -> bool:
        """Whether anybody changed a path, or something below it."""
        return self._is_in("deltas", path)

    def is_outside(self, path: bytes) -> bool:
        """Whether a step named a file outside the project, or something below it."""
        return self._is_in("outside", path)

    def _is_in(self, table: str, path: bytes) -> bool:
        span = (path, path + b"/", path + b"0")  # the character after `/`
        return self._reader.has(_KNOWN.format(table=table), span)


def advance(db: "Connection", id: str, phase: str) -> None:
    """Note how far a forget is; in the transaction of the caller."""
    operations.sql(db, "UPDATE forgetting SET phase = ? WHERE id = ?", (phase, id))
