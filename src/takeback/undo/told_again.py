"""The report of a restore that was done before, for a caller that asks for it again."""

from takeback.history import references
from takeback.ledger.beyond.participants import DONE as IS_DONE
from takeback.model import reasons
from takeback.model.beyond.participants import AFTERWARDS, DONE, FAILED, MOVES, Move
from takeback.model.plan import Plan, PlannedChange, Remark, Report
from takeback.model.reasons import Reason
from takeback.model.tree import judge
from takeback.model.value import path_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.ledger.ledger import Ledger
    from takeback.model.text.json_text import Json


def as_done(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that was done before, from what its event says."""
    moves: Any = said.get("moves") or ()
    rows = [ledger.checkpoints.with_prefix(str(said[name]))[0] for name in ("before", "after")]
    row = ledger.stack.find(str(said["restore"]))
    deltas = ledger.deltas.restored(rows[1].number) if rows[0].id != rows[1].id else []
    plan = Plan(
        str(said["verb"]),
        base=rows[0].tree.hex(),
        target=str(said["target"]),
        title=references.of(ledger, row) if row is not None else "",
        changes=(
            *(PlannedChange(each.path, each.verb, None, None) for each in deltas),
            *(_outside(ledger, row.number) if row is not None else ()),
        ),
        turns=_turns(said),
        restore=str(said["entry"] or ""),
        is_newest=True,
        session=str(said["session"] or ""),
        moves=tuple(Move(*facts) for facts in moves),
    )
    outcomes = {}
    if row is not None:
        found = ledger.participants.moves_of(row.number)
        outcomes = {each.name: each.problem for each in found if each.state != IS_DONE}
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
        moves=moved(plan.moves, outcomes),
    )


def moved(moves: "tuple[Move, ...]", outcomes: "Mapping[str, str]") -> "tuple[Move, ...]":
    """What became of moves; `outcomes` tells why some failed."""
    found = []
    for move in moves:
        if move.how in (MOVES, AFTERWARDS):
            why = outcomes.get(move.name, "")
            reason = Reason(reasons.MOVE_FAILED, problem=why) if why else None
            move = move.replace(how=FAILED if why else DONE, reason=reason)
        found.append(move)
    return tuple(found)


def as_nothing(ledger: "Ledger", said: "Mapping[str, Json]") -> Report:
    """The report of a restore that had nothing to do, from what its event says."""
    (row,) = ledger.checkpoints.with_prefix(str(said["checkpoint"]))
    verb, target, title = (str(said[name]) for name in ("verb", "target", "title"))
    plan = Plan(verb, base=row.tree.hex(), target=target, title=title, changes=())
    return Report(plan, id="", before=row.id, after=row.id)


def _outside(ledger: "Ledger", restore: int) -> "Iterator[PlannedChange]":
    """What it changed outside the project."""
    for row in ledger.outside.of_restore(restore):
        found = judge(row.path, row.before, row.after)
        if found is not None:
            yield PlannedChange(row.path, found.verb, row.before, row.after, outside=True)


def _turns(said: "Mapping[str, Json]") -> "tuple[str, ...]":
    """The turns that it was about; at first an event told only one."""
    turns: Any = said.get("turns") or ([said["turn"]] if said["turn"] else [])
    return tuple(map(str, turns))


def _remarks(told: "Json") -> "tuple[Remark, ...]":
    pairs: Any = told or ()
    return tuple(Remark(path_bytes(str(path)), reasons.from_json(why)) for path, why in pairs)
