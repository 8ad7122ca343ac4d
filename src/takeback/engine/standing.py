"""What turns changed, as it stands: what was taken back and put back is what its redo did.

    X1 adds a line    X2 deletes it    undo X2    undo X1    redo X2    undo X2
                                       it's back  it's gone  nothing    nothing: not X1's line again

A redo by merge does less than its turn had done where others went on meanwhile. To undo the turn
once more is to revert what the redo did, as a redo reverts what the undo did. So of each path the
last restore of the turn that changed it tells: if it put the path back, that is what stands; if it
took the path back, nothing does. What no restore changed is as the turn itself left it.
"""

from takeback.engine import changes
from takeback.engine.changes import Run
from takeback.model import terms
from takeback.store import outside, restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.engine.changes import Span
    from takeback.store.ledger import Ledger
    from takeback.store.outside import OutsideRow
    from takeback.store.restores import RestoreRow

    Restored = dict[bytes, tuple[RestoreRow, bytes | None]]
    """The last restore that changed a path, and the origin that it gave it."""

_RESTORED = "SELECT path, origin FROM deltas WHERE checkpoint = ? AND who = ? ORDER BY path"


def runs(ledger: "Ledger", turns: "Sequence[int]", shared: "Sequence[Span]") -> "list[Run]":
    """What is to be reverted to take turns back, by path and in the order in which it was made."""
    told = {turn: restores.about(ledger, turn) for turn in turns}
    found = list(changes.runs(ledger, *(t for t in turns if not told[t]), shared=shared))
    again: dict[tuple[bytes, int], Run] = {}
    for turn in filter(told.get, turns):
        last = _last(ledger, told[turn])
        own = list(changes.runs(ledger, turn))
        found += _left(own, last, _folded(ledger, turn, told[turn]), turns)
        hows = {run.path: run.how for run in own}
        for path, (act, origin) in last.items():
            if act.verb == terms.REDO and _is_alone(act, turns):
                again[path, act.number] = Run(path, act.after, hows.get(path, ""), origin)
    return sorted([*found, *again.values()], key=lambda run: (run.path, run.first))


def _last(ledger: "Ledger", acts: "Sequence[RestoreRow]") -> "Restored":
    """The last restore that changed each path. One that changed nothing made no checkpoint."""
    found: Restored = {}
    for act in reversed(acts):
        if act.before != act.after:
            rows = ledger.rows(_RESTORED, (act.after, terms.RESTORE))
            found |= {path: (act, origin) for path, origin in rows}
    return found


def _left(
    own: "list[Run]", last: "Restored", folded: "dict[bytes, int]", turns: "Sequence[int]"
) -> "list[Run]":
    """What a turn did itself, and no restore has to tell about."""

    def stands(run: Run) -> bool:
        if run.path not in last:
            return run.last > folded.get(run.path, 0)
        act, _ = last[run.path]
        # A redo of others as well does not tell what of it was this turn's; and a path that was
        # taken back alone may be named once more.
        is_open = act.partial if act.verb == terms.UNDO else not _is_alone(act, turns)
        return is_open or run.last > act.after

    return [run for run in own if stands(run)]


def _folded(ledger: "Ledger", turn: int, acts: "Sequence[RestoreRow]") -> "dict[bytes, int]":
    """Paths on which turns that went together cancelled each other, and until when.

    Nothing changed there when they went, and when one of them came back alone, neither.
    """
    undos = {act.number: act for act in acts if act.verb == terms.UNDO}
    found: dict[bytes, int] = {}
    for act in acts:
        undo = undos.get(act.entry or 0) if act.verb == terms.REDO else None
        if undo is not None and not set(act.turns) >= set(undo.turns):
            others = [each for each in undo.turns if each != turn]
            found |= {run.path: act.after for run in changes.runs(ledger, *others)}
    return found


def _is_alone(act: "RestoreRow", turns: "Sequence[int]") -> bool:
    """Whether a restore was about nothing but these turns."""
    return set(act.turns) <= set(turns)


def rows_outside(ledger: "Ledger", turns: "Sequence[int]") -> "list[OutsideRow]":
    """The same of files outside."""
    found = {row.number: row for row in outside.of_turns(ledger, turns)}
    for turn in turns:
        last: dict[bytes, tuple[RestoreRow, OutsideRow]] = {}
        for act in reversed(restores.about(ledger, turn)):
            rows = outside.of_restore(ledger, act.number)
            last |= {row.path: (act, row) for row in rows if _is_alone(act, turns)}
        for path, (act, done) in last.items():
            own = [r for r in found.values() if (r.turn, r.path) == (turn, path)]
            for row in own:
                if row.number < done.number:
                    del found[row.number]
            if act.verb == terms.REDO:
                found[done.number] = done
    return [found[number] for number in sorted(found)]
