"""What restores and the states they go to are called.

A prompt is in the log once, with its turn: a restore only names the turn. So whoever forgets the
prompt has forgotten it here, too.
"""

from takeback.engine.naming import RESTORE, STEP, TURN, quoted
from takeback.model.terms import ROLLBACK
from takeback.store import restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.engine.references import Meaning
    from takeback.store.ledger import Ledger
    from takeback.store.restores import RestoreRow
    from takeback.store.rows import CheckpointRow

_ID = {
    TURN: "SELECT id FROM turns WHERE number = ?",
    STEP: "SELECT id FROM steps WHERE number = ?",
    RESTORE: "SELECT id FROM restores WHERE number = ?",
}


def of(ledger: "Ledger", row: "RestoreRow") -> str:
    """What a restore was about: the prompt of the turn, or the state that was gone back to."""
    if row.turn is not None:
        return _one(ledger, "SELECT label FROM turns WHERE number = ?", row.turn)
    if row.verb == ROLLBACK:
        target = ledger.checkpoint(row.target or 0)
        return of_goal(ledger, row.goal, target) if target is not None else ""
    entry = restores.find(ledger, "WHERE number = ?", (row.entry or 0,))
    return of(ledger, entry) if entry is not None else ""


def goal(ledger: "Ledger", meant: "Meaning") -> str:
    """The state that a reference means, without anybody's words: `before ID`, `after ID`."""
    query = _ID.get(meant.kind)
    side = "before" if meant.before else "after"
    return f"{side} {_one(ledger, query, meant.number)}" if query else ""


def of_goal(ledger: "Ledger", goal: str, row: "CheckpointRow") -> str:
    """What a state is called: before or after something, or by its own label or id."""
    side, _, id = goal.partition(" ")
    for (label,) in ledger.rows("SELECT label FROM turns WHERE id = ?", (id,)):
        return f'{side} "{quoted(str(label))}"'
    restore = restores.find(ledger, "WHERE id = ?", (id,))
    if restore is not None:
        to = "to" if restore.verb == ROLLBACK else "of"
        return f"{side} the {restore.verb} {to} {quoted(of(ledger, restore))}"
    if id:
        return f"{side} the step `{id}`"
    return f'"{quoted(row.label)}"' if row.label else f"checkpoint `{row.id}`"


def _one(ledger: "Ledger", query: str, value: "int | str") -> str:
    for (text,) in ledger.rows(query, (value,)):
        return str(text)
    return ""
