"""What counts as the work of a command, and may as well be the user's: taking it back asks.

It changed behind the stop of a turn, while a command of it ran on in the background: a server runs
for hours while somebody edits. Or nobody knows whether the command ran by then: a permission dialog
waits while somebody edits, and not every agent tells when it was answered; or it was killed.
"""

import os

from takeback.model import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.engine.stack import Item
    from takeback.store.ledger import Ledger

_LATE = (
    "SELECT DISTINCT d.path FROM deltas d JOIN steps s ON s.number = d.step"
    " JOIN turns t ON t.number = d.turn WHERE d.turn = ? AND s.background AND s.kind = ?"
    " AND d.checkpoint > t.after ORDER BY d.path"
)
_PERHAPS = "SELECT DISTINCT path FROM deltas WHERE turn = ? AND how = ? ORDER BY path"
_MOST_NAMED = 3


def doubts(ledger: "Ledger", item: "Item") -> "Iterator[str]":
    """What needs consent when a turn is taken back."""
    if item.restore is not None:
        return
    for query, word, when in (
        (_LATE, terms.SHELL, _behind(item)),
        (_PERHAPS, terms.PERHAPS, _perhaps(item)),
    ):
        found = [path for (path,) in ledger.rows(query, (item.number, word))]
        if found:
            files = "1 path" if len(found) == 1 else f"{len(found):,} paths"
            yield f"{files} changed {when}, and may be your own work: {_named(found)}"


def _behind(item: "Item") -> str:
    return f"after {item.called} had stopped, while a command of it ran on in the background"


def _perhaps(item: "Item") -> str:
    when = "a permission dialog waited, or its process was killed"
    return f"when it is not known whether a command of {item.called} ran ({when})"


def _named(found: "list[bytes]") -> str:
    shown = [f"`{os.fsdecode(path)}`" for path in found[:_MOST_NAMED]]
    more = len(found) - len(shown)
    shown += [f"{more:,} more"] if more > 0 else []
    return ", ".join(shown)
