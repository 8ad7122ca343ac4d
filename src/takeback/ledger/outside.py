"""Files outside the project that an edit tool named: how one is reached, and what is known of it.

Each is a root of its own: its folder, opened from `/` down, never through a link. The table
`outside` has a row for each file that a step named, with what it was before and after; one for
each that a restore changed; and one for what a plan found there.

    before, after   an entry as JSON; `null` if there was no file; NULL if that is not known
    reason          why it is not known

And the user's git, which is outside, too, as it was found at the boundaries of turns: `git_refs`
has the newest look, name by name, `git_seen` the stamps that belong to it, and `git_moves` what
each look found changed.
"""

from takeback.disk import operations
from takeback.disk.descent import parted
from takeback.errors import DamagedStoreError
from takeback.ledger.database import Group
from takeback.ledger.log.events import entry_facts, entry_from
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.value import path_bytes, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Values
    from takeback.ledger.schema import Tables
    from takeback.model.history import GitState
    from takeback.model.text.json_text import Json
    from takeback.model.tree import Entry

    Run = tuple[Entry | None, Entry | None]

BEFORE, AFTER, NOW = "before", "after", "now"
"""When somebody looked: before a step, after it, or for a plan."""

_LAST = 1 << 62
_SELECT = "SELECT number, turn, step, path, before, after, reason FROM outside "
_INSERT = "INSERT INTO outside VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OF_TURNS = "WHERE turn IN (SELECT value FROM json_each(?)) ORDER BY number"
_WAITING = (
    "WHERE before IS NOT NULL AND after IS NULL AND reason = ''"
    " AND (step IN (SELECT value FROM json_each(?1))"
    " OR (turn IN (SELECT value FROM json_each(?2)) AND step NOT IN"
    " (SELECT number FROM steps WHERE background AND closed IS NULL))"
    " OR turn IN (SELECT number FROM turns WHERE session = ?3)) ORDER BY number"
)


# -- rows ------------------------------------------------------------------------------------


class OutsideRow:
    """A file that a step named, or that a restore changed; `is_known` tells of each side."""

    __slots__ = ("after", "before", "knows_after", "knows_before", "number", "path", "reason",
                 "step", "turn")  # fmt: skip

    def __init__(self, row: "tuple[Any, ...]") -> None:
        self.number: int = row[0]
        self.turn: int | None = row[1]
        self.step: int | None = row[2]
        self.path: bytes = row[3]
        self.knows_before, self.knows_after = row[4] is not None, row[5] is not None
        self.before = _entry(row[4])
        self.after = _entry(row[5])
        self.reason: str = row[6]


class Outside(Group):
    """What is asked about files outside the project."""

    def of_turns(self, turns: "Iterable[int]") -> "list[OutsideRow]":
        """What steps of turns named, in the order in which they did."""
        return self._some(_OF_TURNS, (json_text.dumps(list(turns)),))

    def of_restore(self, restore: int) -> "list[OutsideRow]":
        """What a restore changed."""
        return self._some("WHERE restore = ? ORDER BY number", (restore,))

    def waiting(
        self,
        *,
        turns: "Sequence[int]" = (),
        steps: "Sequence[int]" = (),
        session: "int | None" = None,
    ) -> "list[OutsideRow]":
        """What steps named that end now: these steps, those of turns, or all of a session."""
        values = json_text.dumps(list(steps)), json_text.dumps(list(turns)), session
        return self._some(_WAITING, values)

    def any_waiting(self) -> bool:
        """Whether any step that has not ended yet named a file."""
        where = "WHERE before IS NOT NULL AND after IS NULL AND reason = '' LIMIT 1"
        return self._reader.has("SELECT 1 FROM outside " + where)

    def turns_since(self, path: bytes, number: int) -> "list[tuple[str, str]]":
        """The turns that changed a file after a row: what they are called, and their agents."""
        query = (
            "SELECT DISTINCT t.label, z.agent FROM outside o JOIN turns t ON t.number = o.turn"
            " JOIN sessions z ON z.number = t.session"
            " WHERE o.path = ? AND o.number > ? AND o.changed ORDER BY o.number"
        )
        rows = self._reader.rows(query, (path, number))
        return [(str(label), str(agent)) for label, agent in rows]

    def turns_at(self, path: bytes) -> "list[int]":
        """The turns that changed a file."""
        query = "SELECT DISTINCT turn FROM outside WHERE path = ? AND turn IS NOT NULL AND changed"
        return self._reader.column(query, (path,))

    def is_known(self, path: bytes) -> bool:
        """Whether a step ever named a file."""
        query = "SELECT 1 FROM outside WHERE path = ? AND turn IS NOT NULL LIMIT 1"
        return self._reader.has(query, (path,))

    def folders(self) -> "list[bytes]":
        """The folders of all files that steps ever named."""
        query = "SELECT DISTINCT path FROM outside WHERE turn IS NOT NULL"
        return sorted({parted(path)[0] for path in self._reader.column(query)})

    def sessions_by_path(self) -> "dict[bytes, int]":
        """The session whose step named a file last, by the path of the file."""
        query = "SELECT o.path, t.session FROM outside o JOIN turns t ON t.number = o.turn"
        return dict(self._reader.rows(query + " ORDER BY o.number"))

    def _some(self, where: str, values: "Values") -> "list[OutsideRow]":
        return [OutsideRow(row) for row in self._reader.rows(_SELECT + where, values)]


def runs(rows: "Iterable[OutsideRow]") -> "dict[bytes, list[Run]]":
    """What was changed at each path, the newest first; between two runs somebody else was there."""
    found: dict[bytes, list[Run]] = {}
    for row in rows:
        if not (row.knows_before and row.knows_after):
            continue
        known = found.setdefault(row.path, [])
        if known and is_same(known[0][1], row.before):
            known[0] = (known[0][0], row.after)
        else:
            known.insert(0, (row.before, row.after))
    return {path: known for path, known in found.items() if not all(is_same(*run) for run in known)}


def is_same(one: "Entry | None", other: "Entry | None") -> bool:
    """Whether two entries of files say the same."""
    if one is None or other is None:
        return one is other
    return one.strong == other.strong and not (one.mode ^ other.mode) & 0o7777


# -- what follows from events ------------------------------------------------------------------


def follow_look(to: "Tables", said: "Mapping[str, Any]") -> "set[int]":
    """Let the table follow a look; the turns that are seen to have changed something."""
    turns = set()
    when, turn = said.get("when"), to.number("turns", said.get("turn"))
    for step, path, facts, reason in said.get("files", ()):
        raw, text = _bytes(path), None if reason else json_text.dumps(facts)
        number = to.number("steps", step)
        if when == AFTER:
            turns |= _follow_after(to.db, number, raw, text, str(reason))
            continue
        sides = (None, text) if when == NOW else (text, None)
        values = (_next(to.db), turn, number, None, raw, *sides, str(reason), False)
        operations.sql(to.db, _INSERT, values)
    return turns


def _follow_after(
    db: "Connection", step: "int | None", path: bytes, text: "str | None", reason: str
) -> "set[int]":
    query = "SELECT number, before, turn FROM outside WHERE step = ? AND path = ?"
    row = db.execute(query, (step, path)).fetchone()
    if row is None:
        return set()
    changed = text is not None and not is_same(_entry(row[1]), _entry(text))
    change = "UPDATE outside SET after = ?, reason = ?, changed = ? WHERE number = ?"
    operations.sql(db, change, (text, reason, changed, row[0]))
    return {row[2]} if changed else set()


def follow_restore(db: "Connection", restore: int, files: "Iterable[Any]") -> None:
    """Let the table follow what a restore did."""
    for path, before, after in files:
        sides = json_text.dumps(before), json_text.dumps(after)
        values = (_next(db), None, None, restore, _bytes(path), *sides, "", True)
        operations.sql(db, _INSERT, values)


def count(db: "Connection", turn: "int | None") -> None:
    """Add what a turn changed outside, in the end, to the paths that it changed."""
    rows = db.execute(_SELECT + "WHERE turn = ? ORDER BY number", (turn,)).fetchall()
    changed = len(runs(OutsideRow(row) for row in rows))
    operations.sql(db, "UPDATE turns SET paths = paths + ? WHERE number = ?", (changed, turn))


def file_facts(path: bytes, entry: "Entry | None") -> "tuple[Json, Json]":
    """A file as an event names it."""
    return path_text(path), entry_facts(entry)


def _next(db: "Connection") -> int:
    return int(db.execute("SELECT coalesce(max(number), 0) + 1 FROM outside").fetchone()[0])


def _entry(text: "str | None") -> "Entry | None":
    try:
        return None if text is None else entry_from(json_text.loads(text))
    except (TypeError, ValueError) as problem:
        raise DamagedStoreError(
            f"a row of the table `outside` cannot be read: {problem}",
            hint=Action("rebuild"),
        ) from problem


def _bytes(path: object) -> bytes:
    return path_bytes(str(path))


# -- the user's git --------------------------------------------------------------------------


def git_state(text: "str | None") -> "GitState | None":
    """The user's git as the boundary of a turn recorded it."""
    from takeback.model.history import GitState

    return None if text is None else GitState(*json_text.loads(text))


class GitLooks(Group):
    """What is asked about the user's git."""

    def seen(self) -> "str | None":
        """The stamps of the newest look; empty if they tell nothing, None if nobody looked."""
        found = self._reader.value(f"SELECT seen FROM git_seen WHERE {self._here}")
        return None if found is None else str(found)

    def state(self) -> "dict[str, str]":
        """What the newest look found."""
        query = f"SELECT name, value FROM git_refs WHERE {self._here}"
        return {str(name): str(value) for name, value in self._reader.rows(query)}

    def head(self) -> "dict[str, str]":
        """Only what is checked out, and the index."""
        names = "('.git', 'branch', 'head', 'index', 'refs')"
        query = f"SELECT name, value FROM git_refs WHERE {self._here} AND name IN {names}"
        return {str(name): str(value) for name, value in self._reader.rows(query)}

    def moves(
        self, after: int, last: "int | None" = None
    ) -> "list[tuple[str, str | None, str | None]]":
        """What moved between two events, in the order in which it was found."""
        query = (
            "SELECT name, old, new FROM git_moves WHERE event > ? AND event <= ?"
            f" AND {self._here} ORDER BY event, name"
        )
        rows = self._reader.rows(query, (after, _LAST if last is None else last))
        return [(str(name), old, new) for name, old, new in rows]

    def is_overlapped(self, turn: int, opened: int, closed: "int | None") -> bool:
        """Whether another turn ran at the same time."""
        query = (
            "SELECT 1 FROM turns WHERE number <> ? AND opened < ?"
            f" AND (closed IS NULL OR closed > ?) AND {self._here} LIMIT 1"
        )
        return self._reader.has(query, (turn, _LAST if closed is None else closed, opened))

    def moved_while_idle(self, after: int, last: "int | None") -> bool:
        """Whether anything moved between two events while the turn that they are of had stopped."""
        query = (
            "SELECT 1 FROM git_moves WHERE event > ? AND event <= ? AND idle AND name <> 'index'"
            f" AND {self._here} LIMIT 1"
        )
        return self._reader.has(query, (after, _LAST if last is None else last))

    def has_moves(self, after: int, last: "int | None") -> bool:
        """Whether anything but the checksum of the index moved between two events."""
        query = (
            "SELECT 1 FROM git_moves WHERE event > ? AND event <= ? AND name <> 'index'"
            f" AND {self._here} LIMIT 1"
        )
        return self._reader.has(query, (after, _LAST if last is None else last))

    def turns_without_files(self, session: "int | None", opened: int) -> "list[int]":
        """Live turns that began after an event, changed no file, and saw git move; newest first."""
        query = (
            "SELECT number FROM turns WHERE paths = 0 AND closed NOT NULL AND undone IS NULL"
            " AND covered IS NULL AND (?1 IS NULL OR session = ?1) AND opened > ?2"
            f" AND {self._here} AND EXISTS (SELECT 1 FROM git_moves m WHERE m.event > turns.opened"
            " AND m.event <= turns.closed AND m.line = turns.line"
            " AND (m.name <> 'index' OR m.new IS NULL)) ORDER BY number DESC"
        )
        return self._reader.column(query, (session, opened))


def follow_git(
    db: "Connection",
    seen: str,
    line: "int | None",
    moves: "list[tuple[Any, ...]]",
    whole: "list[Any] | None",
) -> None:
    """Let the tables follow a look at the user's git."""
    operations.sql(db, "INSERT OR REPLACE INTO git_seen VALUES (?, ?)", (line, seen))
    if moves:
        operations.sql_many(db, "INSERT OR REPLACE INTO git_moves VALUES (?, ?, ?, ?, ?, ?)", moves)
    put = [(line, name, new) for _, name, _, new, *_ in moves if new is not None]
    if whole is not None:
        operations.sql(db, "DELETE FROM git_refs WHERE line = ?", (line,))
        put = [(line, name, value) for name, value in whole]
    else:
        gone = [(line, name) for _, name, _, new, *_ in moves if new is None]
        if gone:
            operations.sql_many(db, "DELETE FROM git_refs WHERE line = ? AND name = ?", gone)
    if put:
        operations.sql_many(db, "INSERT OR REPLACE INTO git_refs VALUES (?, ?, ?)", put)
