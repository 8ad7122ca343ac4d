"""The undo stack: what a bare undo or redo means. Drawn in `store/restores`.

Entries are turns that changed something, and rollbacks; those neither undone nor covered by a
rollback are live, and make up the current line. Undo and redo are never entries themselves, and
neither is what you do by hand.
"""

from takeback.engine import titles
from takeback.model import plan
from takeback.model.terms import ROLLBACK, UNDO
from takeback.store import restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from takeback.store.ledger import Ledger
    from takeback.store.restores import RestoreRow

_TURN = (
    "SELECT t.number, t.id, t.opened, t.label, z.id, z.agent, t.undone, t.covered,"
    " t.git_before, t.git_after, t.before, t.after"
    " FROM turns t JOIN sessions z ON z.number = t.session "
)
_LIVE = "t.undone IS NULL AND t.covered IS NULL"
_OF = " AND (?1 IS NULL OR t.session = ?1)"
_NEWEST = " ORDER BY t.number DESC LIMIT 1"
_CHANGED = f"WHERE t.paths > 0 AND {_LIVE}"
_SO_FAR = (
    "(EXISTS (SELECT 1 FROM deltas d WHERE d.turn = t.number AND d.who = 'step')"
    " OR EXISTS (SELECT 1 FROM outside o WHERE o.turn = t.number AND o.changed))"
)
_RUNNING = f"WHERE t.closed IS NULL AND {_LIVE} AND {_SO_FAR}"
_BEHIND = "t.number IN (SELECT turn FROM steps WHERE closed IS NULL)"
_IN_BACKGROUND = f"WHERE {_BEHIND} AND {_LIVE} AND {_SO_FAR}"
"""What a turn changed is counted at its end; while it runs, or a step of it does, it is not yet."""

_STANDS = "reversed IS NULL AND covered IS NULL"
"""Of an undo: it was not put back, and no rollback went over it."""

_WITHOUT_CHANGES = "SELECT count(*) FROM turns t WHERE t.paths = 0 AND t.closed NOT NULL AND "


class Item:
    """One entry of the stack: a turn, or a rollback if `restore` is there.

    `opened` is the event with which it began: that is what the stack is ordered by.
    """

    __slots__ = (
        "after",
        "agent",
        "before",
        "covered",
        "git_after",
        "git_before",
        "id",
        "number",
        "opened",
        "restore",
        "session",
        "title",
        "undone",
    )

    def __init__(self, row: "tuple[Any, ...]", restore: "RestoreRow | None" = None) -> None:
        self.number: int = row[0]
        self.id: str = row[1]
        self.opened: int = row[2]
        self.title: str = row[3]
        self.session: str = row[4]
        self.agent: str = row[5]
        self.undone: int | None = row[6]
        self.covered: int | None = row[7]
        self.git_before: str | None = row[8]
        self.git_after: str | None = row[9]
        self.before: int = row[10]
        self.after: int | None = row[11]
        self.restore = restore

    @property
    def called(self) -> str:
        """What one calls it in a sentence."""
        return plan.called(self.title, is_turn=self.restore is None)


def turn(ledger: "Ledger", number: int) -> Item:
    """A turn as an entry."""
    return Item(ledger.rows(_TURN + "WHERE t.number = ?", (number,))[0])


def rollback(ledger: "Ledger", row: "RestoreRow") -> Item:
    """A rollback as an entry."""
    states = (row.undone, row.covered, None, None, row.before, row.after)
    return Item((row.number, row.id, row.event, titles.of(ledger, row), "", "", *states), row)


def newest(ledger: "Ledger", session: "int | None" = None) -> "Item | None":
    """The newest live entry: of the project, or the newest turn of one session."""
    found = []
    for where in (_CHANGED, _RUNNING, _IN_BACKGROUND):
        rows = ledger.rows(_TURN + where + _OF + _NEWEST, (session,))
        found += [Item(row) for row in rows]
    if session is None:
        row = restores.find(
            ledger,
            "WHERE verb = ? AND undone IS NULL AND covered IS NULL ORDER BY number DESC",
            (ROLLBACK,),
        )
        found += [rollback(ledger, row)] if row is not None else []
    return max(found, key=lambda item: item.opened, default=None)


def passed_over(ledger: "Ledger", item: Item, session: "int | None") -> int:
    """How many live turns that are newer than an entry changed nothing."""
    return int(
        ledger.rows(_WITHOUT_CHANGES + _LIVE + _OF + " AND t.opened > ?2", (session, item.opened))[
            0
        ][0]
    )


def newest_undo(ledger: "Ledger", session: "int | None" = None) -> "RestoreRow | None":
    """The newest undo that still stands."""
    where = f"WHERE verb = ?1 AND {_STANDS} AND (?2 IS NULL OR session = ?2)"
    return restores.find(ledger, where + " ORDER BY number DESC", (UNDO, session))


def undo_of(ledger: "Ledger", item: Item) -> "RestoreRow | None":
    """The newest undo of an entry, or of paths of it, that still stands."""
    of = "entry = ?1"
    if item.restore is None:
        of = "EXISTS (SELECT 1 FROM json_each(turns) WHERE value = ?1)"
    where = f"WHERE {of} AND verb = ?2 AND {_STANDS} ORDER BY number DESC"
    return restores.find(ledger, where, (item.number, UNDO))


def undone_by(ledger: "Ledger", undo: "RestoreRow") -> "list[Item]":
    """What an undo took back: a rollback, or one turn or several, the newest first."""
    if undo.turns:
        items = [turn(ledger, number) for number in undo.turns]
        return sorted(items, key=lambda item: -item.opened)
    row = restores.find(ledger, "WHERE number = ?", (undo.entry or 0,))
    assert row is not None, "an undo names what it took back"
    return [rollback(ledger, row)]


def live_turns(ledger: "Ledger", session: int) -> "list[Item]":
    """The live turns of a session that changed something, the newest first."""
    found: dict[int, Item] = {}
    for where in (_CHANGED, _RUNNING, _IN_BACKGROUND):
        rows = ledger.rows(_TURN + where + _OF, (session,))
        found |= {row[0]: Item(row) for row in rows}
    return [found[number] for number in sorted(found, reverse=True)]


def covered_by(ledger: "Ledger", target: int) -> "list[str]":
    """The turns that changed something and that a rollback to a checkpoint goes back over."""
    changed = f"(t.paths > 0 OR ((t.closed IS NULL OR {_BEHIND}) AND {_SO_FAR}))"
    query = (
        f"SELECT t.id FROM turns t WHERE {_LIVE} AND t.before >= ? AND {changed}"  # noqa: S608
        " ORDER BY t.number DESC"
    )
    return [str(id) for (id,) in ledger.rows(query, (target,))]
