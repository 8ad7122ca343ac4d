"""The undo stack as tables: what is undone, what a rollback covers, what was put back.

    turns that changed something, and rollbacks           undo and redo are never entries
    ┌──────────────────────────────┐
    │ R2  rollback to after T2     │  live      ◄── undo takes back the newest live entry
    │ T4                           │  covered by R2 ┐ undoing R2 uncovers them
    │ T3                           │  covered by R2 ┘
    │ T2                           │  live
    │ T1                           │  undone    ◄── redo puts back what was undone last,
    └──────────────────────────────┘                unless a live entry began since

`undone` is the undo that took an entry back, `covered` the rollback that went over it, and
`reversed`, of an undo, the redo that put back what it had taken.
"""

from takeback.model.terms import REDO, ROLLBACK, UNDO
from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.store.ledger import Ledger
    from takeback.store.sqlite import Connection

_SELECT = (
    "SELECT number, id, event, at, verb, turn, entry, target, before, after, partial, goal,"
    " because, session, undone, covered, reversed FROM restores "
)


class RestoreRow:
    """What the ledger holds of a restore.

    `turn` or `entry` is what it took back or put back; a rollback has a `target` instead. All
    are numbers of rows.
    """

    __slots__ = (
        "after",
        "at",
        "because",
        "before",
        "covered",
        "entry",
        "event",
        "goal",
        "id",
        "number",
        "partial",
        "reversed",
        "session",
        "target",
        "turn",
        "undone",
        "verb",
    )  # fmt: skip

    def __init__(self, row: "tuple[Any, ...]") -> None:
        self.number: int = row[0]
        self.id: str = row[1]
        self.event: int = row[2]
        self.at: int = row[3]
        self.verb: str = row[4]
        self.turn: int | None = row[5]
        self.entry: int | None = row[6]
        self.target: int | None = row[7]
        self.before: int = row[8]
        self.after: int = row[9]
        self.partial = bool(row[10])
        self.goal: str = row[11]
        self.because: str = row[12]
        self.session: int | None = row[13]
        self.undone: int | None = row[14]
        self.covered: int | None = row[15]
        self.reversed: int | None = row[16]

    @property
    def is_live(self) -> bool:
        """Whether it is on the current line."""
        return self.undone is None and self.covered is None


def find(
    ledger: "Ledger", where: str, values: "tuple[int | str | None, ...]" = ()
) -> "RestoreRow | None":
    """The first restore that a condition, with its order, gives."""
    for row in ledger.rows(_SELECT + where + " LIMIT 1", values):
        return RestoreRow(row)
    return None


def follow(
    db: "Connection",
    number: int,
    verb: str,
    turn: "int | None",
    entry: "int | None",
    target: "int | None",
    partial: bool,
) -> None:
    """Let the stack follow a restore."""
    if verb == ROLLBACK and target is not None:
        _cover(db, number, target)
    elif verb == UNDO and not partial:
        _set(db, "turns", "undone", number, turn)
        _set(db, "restores", "undone", number, entry)
        if entry is not None:
            _uncover(db, entry)
    elif verb == REDO:
        _put_back(db, number, entry, partial)


def _cover(db: "Connection", number: int, target: int) -> None:
    """A rollback covers what began at or after the state that it went back to, and before it."""
    turns = (
        "UPDATE turns SET covered = ?1 WHERE undone IS NULL AND covered IS NULL AND before >= ?2"
        " AND opened < (SELECT event FROM restores WHERE number = ?1)"
    )
    fsops.sql(db, turns, (number, target))
    others = (
        "UPDATE restores SET covered = ?1 WHERE verb = ?3 AND undone IS NULL AND covered IS NULL"
        " AND before >= ?2 AND number < ?1"
    )
    fsops.sql(db, others, (number, target, ROLLBACK))


def _uncover(db: "Connection", number: int) -> None:
    for table in ("turns", "restores"):
        fsops.sql(db, f"UPDATE {table} SET covered = NULL WHERE covered = ?", (number,))  # noqa: S608


def _put_back(db: "Connection", number: int, undo: "int | None", partial: bool) -> None:
    """A redo reverses an undo: what that had taken back is live again.

    If only some paths were put back, the undo stays, so that the others still can be.
    """
    if not partial:
        _set(db, "restores", "reversed", number, undo)
    query = "SELECT turn, entry FROM restores WHERE number = ? AND NOT partial"
    for turn, entry in db.execute(query, (undo,)).fetchall():
        _set(db, "turns", "undone", None, turn)
        _set(db, "restores", "undone", None, entry)
        query = "SELECT target FROM restores WHERE number = ? AND NOT partial"
        for (target,) in () if partial else db.execute(query, (entry,)).fetchall():
            _cover(db, entry, target)


def go_on(db: "Connection", turns: "Iterable[object]") -> None:
    """Turns that change something after they were taken back are live again."""
    for turn in sorted(turns):  # type: ignore[type-var]
        change = (
            "UPDATE turns SET undone = NULL, covered = NULL"
            " WHERE number = ? AND (undone IS NOT NULL OR covered IS NOT NULL)"
        )
        fsops.sql(db, change, (turn,))  # type: ignore[arg-type]


def _set(
    db: "Connection", table: str, column: str, value: "int | None", number: "int | None"
) -> None:
    if number is not None:
        fsops.sql(db, f"UPDATE {table} SET {column} = ? WHERE number = ?", (value, number))  # noqa: S608
