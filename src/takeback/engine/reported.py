"""The report of a restore that was done before, from what its event says: for a second request."""

from takeback.engine import titles
from takeback.model.difference import judge
from takeback.model.plan import Plan, PlannedChange, Remark, Report
from takeback.store import outside, restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.model.jsontext import Json
    from takeback.store.ledger import Ledger


def as_done(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that was done before, from what its event says."""
    rows = [ledger.with_prefix(str(said[name]))[0] for name in ("before", "after")]
    row = restores.find(ledger, "WHERE id = ?", (str(said["restore"]),))
    query = "SELECT path, verb FROM deltas WHERE checkpoint = ? AND who = 'restore' ORDER BY path"
    found = ledger.rows(query, (rows[1].number,)) if rows[0].id != rows[1].id else []
    plan = Plan(
        str(said["verb"]),
        base=rows[0].tree.hex(),
        target=str(said["target"]),
        title=titles.of(ledger, row) if row is not None else "",
        changes=(
            *(PlannedChange(path, str(verb), None, None) for path, verb in found),
            *(_outside(ledger, row.number) if row is not None else ()),
        ),
        turns=_turns(said),
        restore=str(said["entry"] or ""),
        is_newest=True,
        session=str(said["session"] or ""),
    )
    kept, rescued = (_remarks(said.get(name)) for name in ("kept", "rescued"))
    return Report(
        plan,
        id=str(said["restore"]),
        before=rows[0].id,
        after=rows[1].id,
        kept=kept,
        rescued=rescued,
        undo=str(said.get("undo", "")),
        because=str(said["because"]),
    )


def as_nothing(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that had nothing to do, from what its event says."""
    (row,) = ledger.with_prefix(str(said["checkpoint"]))
    verb, target, title = (str(said[name]) for name in ("verb", "target", "title"))
    plan = Plan(verb, base=row.tree.hex(), target=target, title=title, changes=())
    return Report(plan, id="", before=row.id, after=row.id)


def _outside(ledger: "Ledger", restore: int) -> "Iterator[PlannedChange]":
    """What it changed outside the project."""
    for row in outside.of_restore(ledger, restore):
        found = judge(row.path, row.before, row.after)
        if found is not None:
            yield PlannedChange(row.path, found.verb, row.before, row.after, outside=True)


def _turns(said: "Mapping[str, Json]") -> "tuple[str, ...]":
    """The turns that it was about; at first an event told only one."""
    turns: Any = said.get("turns") or ([said["turn"]] if said["turn"] else [])
    return tuple(map(str, turns))


def _remarks(told: "Json") -> "tuple[Remark, ...]":
    pairs: Any = told or ()
    return tuple(Remark(_bytes(str(path)), str(reason)) for path, reason in pairs)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
