"""The tables that follow the log, as the code that writes them sees them."""

from zlib import crc32

from takeback.disk import operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.disk.sqlite import Connection

_KNOWN = "SELECT path, number FROM paths WHERE hash IN (SELECT value FROM json_each(?))"
_HASH = 0x7FFFFF
"""So much of a checksum takes three bytes in SQLite. An index of whole paths would double them."""


class Tables:
    """The tables that follow the log, and the numbers that ids have in them.

    Ids, and what belongs to what, never change, so what was looked up once is known.
    """

    __slots__ = ("_above", "_next", "_numbers", "db")

    def __init__(self, db: "Connection") -> None:
        self.db = db
        self._numbers: dict[tuple[str, str], int] = {}
        self._next: dict[str, int] = {}
        self._above: dict[tuple[str, int], int] = {}

    def next(self, table: str) -> int:
        """The number that the next row of a table gets."""
        if table not in self._next:
            query = f"SELECT coalesce(max(number), 0) FROM {table}"  # noqa: S608 - our own names
            self._next[table] = int(self.db.execute(query).fetchone()[0])
        self._next[table] += 1
        return self._next[table]

    def number(self, table: str, id: object) -> "int | None":
        """The number of the row with an id; None if there is none."""
        if not isinstance(id, str) or not id:
            return None
        known = self._numbers.get((table, id))
        if known is None:
            query = f"SELECT number FROM {table} WHERE id = ?"  # noqa: S608 - our own names
            row = self.db.execute(query, (id,)).fetchone()
            if row is None:
                return None
            known = self._numbers[table, id] = int(row[0])
        return known

    def paths(self, names: "Iterable[object]") -> "dict[object, int]":
        """The numbers of paths as events tell them; new ones get the next numbers, in their order.

        Ten thousand are asked for at once when an agent unpacks something, so it is one question.
        """
        paths = {name: str(name).encode("utf-8", "surrogateescape") for name in names}
        hashes = {path: crc32(path) & _HASH for path in paths.values()}
        rows = self.db.execute(_KNOWN, (str(list(hashes.values())),)).fetchall()
        known = {path: int(number) for path, number in rows}
        new = [path for path in hashes if path not in known]
        if new:
            known.update((path, self.next("paths")) for path in new)
            rows = [(known[path], hashes[path], path) for path in new]
            operations.sql_many(self.db, "INSERT INTO paths VALUES (?, ?, ?)", rows)
        return {name: known[path] for name, path in paths.items()}

    def turn_of(self, step: "int | None") -> "int | None":
        """The turn that a step belongs to."""
        return self._belongs("SELECT turn FROM steps WHERE number = ?", step)

    def session_of(self, turn: "int | None") -> "int | None":
        """The session that a turn belongs to."""
        return self._belongs("SELECT session FROM turns WHERE number = ?", turn)

    def _belongs(self, query: str, number: "int | None") -> "int | None":
        if number is None:
            return None
        known = self._above.get((query, number))
        if known is None:
            row = self.db.execute(query, (number,)).fetchone()
            if row is None or row[0] is None:
                return None
            known = self._above[query, number] = int(row[0])
        return known
