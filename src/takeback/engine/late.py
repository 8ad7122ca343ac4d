"""What changed behind the stop of a turn, while a command of it ran on in the background.

It counts as the command's, and it may as well be the user's: a server runs for hours while
somebody edits. So taking it back needs consent.
"""

import os

from takeback.model import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.engine.stack import Item
    from takeback.store.ledger import Ledger

_LATE = (
    "SELECT DISTINCT d.path FROM deltas d JOIN steps s ON s.number = d.step"
    " JOIN turns t ON t.number = d.turn WHERE d.turn = ? AND s.background AND s.kind = ?"
    " AND d.checkpoint > t.after ORDER BY d.path"
)
_MOST_NAMED = 3


def doubts(ledger: "Ledger", item: "Item") -> "tuple[str, ...]":
    """What needs consent when a turn is taken back."""
    if item.restore is not None:
        return ()
    found = [path for (path,) in ledger.rows(_LATE, (item.number, terms.SHELL))]
    if not found:
        return ()
    shown = [f"`{os.fsdecode(path)}`" for path in found[:_MOST_NAMED]]
    more = len(found) - len(shown)
    shown += [f"{more:,} more"] if more > 0 else []
    files = "1 path" if len(found) == 1 else f"{len(found):,} paths"
    when = f"after {item.called} had stopped, while a command of it ran on in the background"
    return (f"{files} changed {when}, and may be your own work: {', '.join(shown)}",)
