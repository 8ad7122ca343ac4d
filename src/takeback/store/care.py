"""What care of the store means for its tables: states that are kept, files that went, packs merged.

kept     checkpoints that somebody wants to keep, whatever their age
care     what was done: `trim` let files go, `merge` put packs together, `forget` took
         something out for good
"""

from takeback.model import jsontext
from takeback.store import events, fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from takeback.store.events import Event
    from takeback.store.tables import Tables

TRIM, MERGE, FORGET = "trim", "merge", "forget"

_DETAILS = ("checkpoints", "packs", "dropped", "events")
"""What of an event follows elsewhere, or is of no use to a reader."""


def _checkpoint_kept(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """A state is kept from now on."""
    number = to.number("checkpoints", said.get("checkpoint"))
    if number is not None:
        add = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)"
        fsops.sql(to.db, add, (number, event.seq, str(said.get("label", ""))))


def _checkpoint_released(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """A state is like any other again."""
    del event
    number = to.number("checkpoints", said.get("checkpoint"))
    fsops.sql(to.db, "DELETE FROM kept WHERE checkpoint = ?", (number,))


def _history_trimmed(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """The files of checkpoints, told as ranges of their numbers, are gone."""
    change = "UPDATE checkpoints SET gone = ? WHERE number BETWEEN ? AND ? AND gone IS NULL"
    for first, last in said["checkpoints"]:
        fsops.sql(to.db, change, (event.seq, int(first), int(last)))
    _note(to, event, TRIM, said)


def _packs_merged(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """What packs held is in others now."""
    _note(to, event, MERGE, said)


def _forgotten(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """Something was forgotten. What is left of other events says so already."""
    _note(to, event, FORGET, said)


def _note(to: "Tables", event: "Event", kind: str, said: "Mapping[str, Any]") -> None:
    told = jsontext.dumps({key: said[key] for key in said if key not in _DETAILS})
    values = (to.next("care"), event.seq, event.at, kind, told)
    fsops.sql(to.db, "INSERT INTO care VALUES (?, ?, ?, ?, ?)", values)


FOLLOW = {
    events.CHECKPOINT_KEPT: _checkpoint_kept,
    events.CHECKPOINT_RELEASED: _checkpoint_released,
    events.HISTORY_TRIMMED: _history_trimmed,
    events.PACKS_MERGED: _packs_merged,
    events.FORGOTTEN: _forgotten,
}
"""How the tables follow each kind of event."""
