"""How the tables follow an event about something beside files."""

from takeback.ledger.log import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Apply = Callable[[Tables, Event, Mapping[str, object]], None]

_HAS_RESCUES = "SELECT 1 FROM rescues WHERE turn = ? AND beyond LIMIT 1"
_HAS_STATE = (
    "SELECT 1 FROM tokens UNION ALL SELECT 1 FROM memory UNION ALL SELECT 1 FROM mutations LIMIT 1"
)


def find(kind: str) -> "Apply | None":
    """How the tables follow events of a kind; None if it is about files, or not known here."""
    name = events.KINDS.get(kind)
    if not name:
        return None
    from importlib import import_module

    found: Apply = import_module(f"takeback.ledger.beyond.{name}").FOLLOW[kind]
    return found


def beside(to: "Tables", event: "Event", said: "Mapping[str, object]") -> None:
    """Let the tables follow what an event about a step or a call also says of effects."""
    if said.get("refusal") and event.kind == events.CALL_REFUSED:
        from takeback.ledger.beyond import effects

        effects.follow_refusal(to, event, said)
    elif event.kind == events.STEP_STARTED and (said.get("effects") or said.get("allowed")):
        from takeback.ledger.beyond import effects

        effects.follow_step(to, event, said)


def restore(to: "Tables", event: "Event", said: "Mapping[str, object]", number: int) -> None:
    """What follows from a restore besides what it does with files."""
    if said.get("moves"):
        from takeback.ledger.beyond import participants

        participants.follow_restore(to, event, said, number)
    if said.get("because"):
        from takeback.ledger.beyond import lessons

        lessons.follow_restore(to, event, said, number)


def changes(to: "Tables", turn: "int | None") -> None:
    """What a turn changed besides files, once its changes are known."""
    if to.db.execute(_HAS_RESCUES, (turn,)).fetchone():
        from takeback.ledger.beyond import rescues

        rescues.count(to.db, turn)
    if to.db.execute(_HAS_STATE).fetchone():
        from takeback.ledger.beyond import participants

        participants.count(to.db, turn)
