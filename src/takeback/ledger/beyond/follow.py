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


def find(kind: str) -> "Apply | None":
    """How the tables follow events of a kind; None if it is about files, or not known here."""
    if kind in _LESSONS:
        from takeback.ledger.beyond import lessons

        return lessons.FOLLOW[kind]
    if kind in _RESCUES:
        from takeback.ledger.beyond import rescues

        return rescues.FOLLOW[kind]
    return None
