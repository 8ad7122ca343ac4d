"""How the stack followed restores at first, for logs that hold such: see `restores` for the rules.

A rollback covered the live entries since its goal, and never touched what older restores had said.
So a turn that was undone stayed so, also when a rollback brought back a state that holds its work.
Events of restores that say `stack` are followed by `restores`; what it makes holds for older ones,
too, as soon as a rollback comes, or one is undone or put back.
"""

from takeback.model.terms import REDO, ROLLBACK, UNDO
from takeback.store import fsops, restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.restores import RestoreRow
    from takeback.store.sqlite import Connection


def follow(db: "Connection", number: int) -> None:
    """Let the stack follow a restore."""
    act = restores.numbered(db, number)
    if act is None:
        return
    if act.verb == ROLLBACK:
        _cover(db, act)
    elif act.verb == UNDO and not act.partial and not _goes_on(db, act):
        _set(db, "turns", "undone", number, act.turn)
        _set(db, "restores", "undone", number, act.entry)
        for table in ("turns", "restores"):
            change = f"UPDATE {table} SET covered = NULL WHERE covered = ?"  # noqa: S608
            fsops.sql(db, change, (act.entry,))
    elif act.verb == REDO:
        _put_back(db, act)


def _cover(db: "Connection", act: "RestoreRow") -> None:
    if act.partial or act.target is None:
        return
    live = "undone IS NULL AND covered IS NULL AND before >= ?2"
    turns = f"UPDATE turns SET covered = ?1 WHERE {live} AND opened < ?3"  # noqa: S608
    fsops.sql(db, turns, (act.number, act.target, act.event))
    others = f"UPDATE restores SET covered = ?1 WHERE {live} AND number < ?1 AND verb = ?3"  # noqa: S608
    fsops.sql(db, others, (act.number, act.target, ROLLBACK))


def _put_back(db: "Connection", redo: "RestoreRow") -> None:
    undo = restores.numbered(db, redo.entry)
    if undo is None:
        return
    if not redo.partial:
        _set(db, "restores", "reversed", redo.number, undo.number)
    if undo.partial:
        return
    _set(db, "turns", "undone", None, undo.turn)
    _set(db, "restores", "undone", None, undo.entry)
    entry = restores.numbered(db, undo.entry)
    if entry is not None and not redo.partial:
        _cover(db, entry)


def _goes_on(db: "Connection", act: "RestoreRow") -> bool:
    """Whether a turn changed something while it was being taken back."""
    if act.before == act.after:
        return False  # nothing changed at all: what that checkpoint holds was before
    query = "SELECT 1 FROM deltas WHERE checkpoint = ? AND turn = ? LIMIT 1"
    return db.execute(query, (act.after, act.turn)).fetchone() is not None


def _set(
    db: "Connection", table: str, column: str, value: "int | None", number: "int | None"
) -> None:
    if number is not None:
        fsops.sql(db, f"UPDATE {table} SET {column} = ? WHERE number = ?", (value, number))  # noqa: S608
