"""Which lessons a session is told now, each once, and again after its agent compacted.

The hook makes the sentences. A restore that the session was told of in full counts as told: that
note gave its reason, too.
"""

import time

from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.lessons import choice
from takeback.lessons.lesson import ACTIVE
from takeback.lessons.lessons import as_lesson, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.disk.lock import Held
    from takeback.ledger.beyond.lessons import LessonRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow
    from takeback.lessons.lesson import Lesson
    from takeback.model.history import Relapse
    from takeback.model.text.json_text import Json

_MOST_RANKED = 50
"""The newest ones; older lessons are not ranked for each prompt."""
_LAST_TURNS = 3
_RELEVANT = 2
"""What a lesson has to score if the session was told others before."""


def pending(
    ledger: "Ledger",
    held: "Callable[[], Held]",
    session: str,
    prompt: str,
    *,
    only_anew: bool = False,
) -> "tuple[Lesson, ...]":
    """The lessons to tell a session now, recorded as told with this.

    With `only_anew`, only a session whose agent forgot what it was told.
    """
    if not ledger.lessons.has_any():
        return ()
    found = ledger.sessions.find_by_id(session)
    if found is None or not _chosen(ledger, found, prompt, only_anew=only_anew):
        return ()
    with held():
        chosen = _chosen(ledger, found, prompt, only_anew=only_anew)
        if chosen:
            ids = [row.id for row in chosen]
            said = {"session": found.id, "lessons": ids}
            parents = tuple(row.event for row in chosen)
            ledger.record(NewEvent(events.LESSONS_TOLD, said, time.time_ns(), parents=parents))
    return tuple(as_lesson(ledger, row) for row in chosen)


def compacted(ledger: "Ledger", held: "Callable[[], Held]", session: str) -> None:
    """The agent compacted: what it was told before is told to it again."""
    found = ledger.sessions.find_by_id(session)
    if found is None or not ledger.lessons.told_to(found.number):
        return
    with held():
        said = {"session": found.id, "lessons": [], "anew": True}
        ledger.record(
            NewEvent(events.LESSONS_TOLD, said, time.time_ns(), parents=(found.opened,))  # type: ignore[arg-type]
        )


TO_AGENT, TO_USER = "agent", "user"
_TURNS_TOLD = 2
"""The newest turns of a session whose relapses are told; one may end before it is told."""


def pending_relapses(
    ledger: "Ledger", held: "Callable[[], Held]", session: str, to: str
) -> "tuple[Relapse, ...]":
    """The relapses of a session to tell its agent or its user, recorded as told with this."""
    if not ledger.lessons.has_relapses():
        return ()
    found = ledger.sessions.find_by_id(session)
    turns = ledger.turns.of_session(found.number, _TURNS_TOLD) if found is not None else []
    relapses = ledger.lessons.relapses(turn.id for turn in turns)
    new = [each for each in relapses if ledger.requested(_told(each, to)) is None]
    if not new:
        return ()
    with held():
        new = [each for each in new if ledger.requested(_told(each, to)) is None]
        opened = {turn.id: turn.opened for turn in turns}
        ledger.record(*(_told_fact(each, session, opened[each.turn], to) for each in new))
    return tuple(new)


def _told(relapse: "Relapse", to: str) -> str:
    return f"told {to} {relapse.turn} {relapse.restore}"


def _told_fact(relapse: "Relapse", session: str, parent: int, to: str) -> NewEvent:
    said: dict[str, Json] = {"session": session, "restore": "", "turn": relapse.turn, "to": to}
    now, request = time.time_ns(), _told(relapse, to)
    return NewEvent(events.SESSION_TOLD, said, now, parents=(parent,), request=request)


def _chosen(
    ledger: "Ledger", session: "SessionRow", prompt: str, *, only_anew: bool
) -> "list[LessonRow]":
    told = ledger.lessons.told_to(session.number)
    is_anew = ledger.lessons.ANEW in told
    if only_anew and not is_anew:
        return []
    rows = [row for row in ledger.lessons.all() if status_of(row) == ACTIVE]
    rows = [row for row in rows if row.number not in told][:_MOST_RANKED]
    if not rows:
        return []
    lessons = {row.id: (as_lesson(ledger, row), row) for row in rows}
    near = _paths(ledger, session)
    ranked = choice.ranked([lesson for lesson, _ in lessons.values()], prompt, near)
    last = max(told.values(), default=0)
    is_first = is_anew or not told
    chosen = [
        lessons[lesson.id][1]
        for score, lesson in ranked
        if is_first or score >= _RELEVANT or lessons[lesson.id][1].event > last
    ]
    return chosen[: choice.MOST]


def _paths(ledger: "Ledger", session: "SessionRow") -> "set[bytes]":
    """What the session worked on last."""
    turns = ledger.turns.of_session(session.number, _LAST_TURNS)
    return {change.path for turn in turns for change in ledger.turns.changes(turn.number)}
