"""Which module lets the tables follow an event about something beside files.

Most events do not need one, so each is imported on its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.ledger.events import Event
    from takeback.ledger.schema import Tables

    Apply = Callable[[Tables, Event, Mapping[str, object]], None]

_RESCUES = ("RescueMade", "RescueSettled", "RescuesDropped")
_LESSONS = ("LessonNoted", "LessonChanged", "LessonsTold", "RelapseSeen", "SessionTold")
_HAS_RESCUES = "SELECT 1 FROM rescues WHERE turn = ? AND beyond LIMIT 1"
_HAS_STATE = (
    "SELECT 1 FROM tokens UNION ALL SELECT 1 FROM memory UNION ALL SELECT 1 FROM mutations LIMIT 1"
)
_PARTICIPANTS = ("ParticipantsCaptured", "ParticipantsMoved")


def find(kind: str) -> "Apply | None":
    """How the tables follow events of a kind; None if it is about files, or not known here."""
    if kind in _LESSONS:
        from takeback.ledger.beyond import lessons

        return lessons.FOLLOW[kind]
    if kind in _PARTICIPANTS:
        from takeback.ledger.beyond import participants

        return participants.FOLLOW[kind]
    if kind in ("MutationRecorded", "MutationSettled"):
        from takeback.ledger.beyond import mutations

        return mutations.FOLLOW[kind]
    if kind == "MemoryChanged":
        from takeback.ledger.beyond import memory

        return memory.follow_change
    if kind in _RESCUES:
        from takeback.ledger.beyond import rescues

        return rescues.FOLLOW[kind]
    return None


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
