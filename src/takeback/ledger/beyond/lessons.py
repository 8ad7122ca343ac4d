"""Lessons and relapses: their tables, how they follow from events, and what is asked about them.

lessons        what a restore taught, or what somebody noted: `text` is always a person's or an
               agent's own words, never a file's and never a command's output
lessons_told   which session was told which lesson
relapses       turns that brought back what a restore had taken back

A restore with a reason makes a lesson by itself, with the id of the restore. If an agent gave the
reason, the lesson waits for the user.
"""

from takeback.disk import operations
from takeback.ledger.database import Table
from takeback.ledger.log import events
from takeback.model.text import json_text
from takeback.model.value import Value, path_bytes
from takeback.model.words import GONE, REDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables
    from takeback.model.history import Relapse

    Said = Mapping[str, object]


ACTIVE, WAITING, DROPPED = "active", "waiting", "dropped"
"""The state of a lesson: told to agents; not before the user accepts it; never any more."""
USER, AGENT = "user", "agent"
"""Whose words a lesson is."""

_SELECT = (
    "SELECT l.number, l.id, l.event, l.at, l.source, l.state, l.text, l.restore, l.turns,"
    " l.session, l.restore IS NULL OR r.undone IS NULL AND r.reversed IS NULL"
    " AND (r.covered IS NULL OR EXISTS (SELECT 1 FROM turns t"
    " WHERE t.number IN (SELECT value FROM json_each(l.turns))"
    " AND (t.undone IS NOT NULL OR t.covered IS NOT NULL)))"
    " FROM lessons l LEFT JOIN restores r ON r.number = l.restore "
)
"""The last column: what the lesson is about is still taken back."""
_AT_WORK = (
    "SELECT t.session, s.tool || ' ' || s.summary FROM steps s JOIN turns t ON t.number = s.turn"
    " WHERE s.closed IS NULL AND NOT s.background"
)
_TOOK = (
    "SELECT t.number FROM turns t JOIN restores r ON r.number = ?1 WHERE t.covered = ?1"
    " OR t.number IN (SELECT value FROM json_each(r.turns)) ORDER BY t.number"
)
_TAKEN = (
    "SELECT number FROM restores WHERE line = ? AND verb <> ? AND undone IS NULL"
    " AND covered IS NULL AND reversed IS NULL AND after <> before AND event < ?"
    " ORDER BY number DESC LIMIT ?"
)


_RELAPSES = (
    "SELECT t.id, r.id, x.lines, x.taken, x.paths, u.label, r.because FROM relapses x"
    " JOIN turns t ON t.number = x.turn JOIN restores r ON r.number = x.restore"
    " LEFT JOIN turns u ON u.number = r.turn"
    " WHERE t.id IN (SELECT value FROM json_each(?)) ORDER BY x.number"
)
_TELL = "INSERT OR REPLACE INTO lessons_told VALUES (?, ?, ?)"


class LessonRow(Value):
    """What the ledger holds of a lesson; `stands` unless a redo put back what it is about."""

    number: int
    id: str
    event: int
    at: int
    source: str
    state: str
    text: str
    restore: "int | None"
    turns: "tuple[int, ...]"
    session: "int | None"
    stands: bool


class Lessons(Table):
    """What is asked about lessons and relapses."""

    __slots__ = ()
    ANEW = 0
    """Among the lessons that a session was told: its agent forgot all that it was told before."""
    table = "lessons"
    what, time, label = "'lesson'", "at", "text"

    def all(self) -> "list[LessonRow]":
        """The lessons of the line, the newest first."""
        where = f"WHERE l.line = {self._reader.line} ORDER BY l.number DESC"
        return [_lesson(row) for row in self._reader.rows(_SELECT + where)]

    def with_prefix(self, prefix: str) -> "list[LessonRow]":
        """Lessons by the beginning of their id."""
        where = f"WHERE l.line = {self._reader.line} AND substr(l.id, 1, ?) = ?"
        rows = self._reader.rows(_SELECT + where, (len(prefix), prefix))
        return [_lesson(row) for row in rows]

    def turns_of(self, restore: int) -> "list[str]":
        """The turns that a restore took back or went over, the newest last."""
        query = f"SELECT id FROM turns WHERE number IN ({_TOOK}) ORDER BY number"
        return self._reader.column(query, (restore,))

    def agent_at_work(self) -> "int | None":
        """The session whose own command calls Takeback at this moment, if one does."""
        return _agent_at_work(self._reader.rows(_AT_WORK))

    def has_any(self) -> bool:
        """Whether there is a lesson at all; each prompt asks."""
        return self._reader.has("SELECT 1 FROM lessons LIMIT 1")

    def counts(self) -> "tuple[int, int, int]":
        """How many lessons agents are told, how many wait for the user, and how many relapses."""
        query = (
            "SELECT (SELECT count(*) FROM lessons WHERE state = ?),"
            " (SELECT count(*) FROM lessons WHERE state = ?), (SELECT count(*) FROM relapses)"
        )
        ((taught, waiting, relapses),) = self._reader.rows(query, (ACTIVE, WAITING))
        return taught, waiting, relapses

    def told_to(self, session: int) -> "dict[int, int]":
        """The lessons that a session was told, by number, and the event that says so."""
        query = "SELECT lesson, event FROM lessons_told WHERE session = ?"
        return dict(self._reader.rows(query, (session,)))

    def has_taken(self) -> bool:
        """Whether any restore stands that took something back; each tool of an agent asks."""
        return bool(self._reader.rows(_TAKEN, (self._reader.line, REDO, 1 << 62, 1)))

    def taken_before(self, event: int, limit: int) -> "list[int]":
        """The newest restores before an event that took something back and still stand."""
        return self._reader.column(_TAKEN, (self._reader.line, REDO, event, limit))

    def relapses(self, turns: "Iterable[str]") -> "tuple[Relapse, ...]":
        """What turns brought back that was taken back before, the oldest first."""
        if not self.has_relapses():
            return ()
        rows = self._reader.rows(_RELAPSES, (json_text.dumps(list(turns)),))
        from takeback.model.history import Relapse

        return tuple(
            Relapse(
                turn=turn,
                restore=restore,
                lines=lines,
                taken=taken,
                raw_paths=_paths(paths),
                prompt=first_line(label or ""),
                because=because,
            )
            for turn, restore, lines, taken, paths, label, because in rows
        )

    def relapsed_into(self, turn: int) -> "set[int]":
        """The restores of which a turn brought something back."""
        return set(self._reader.column("SELECT restore FROM relapses WHERE turn = ?", (turn,)))

    def has_relapses(self) -> bool:
        """Whether any turn brought something back."""
        return self._reader.has("SELECT 1 FROM relapses LIMIT 1")


def _lesson(row: "tuple[Any, ...]") -> LessonRow:
    return LessonRow(*(*row[:8], tuple(json_text.loads(row[8])), row[9], bool(row[10])))


def first_line(label: str) -> str:
    """The first line of a prompt."""
    lines = (line.strip() for line in label.splitlines())
    return next(filter(None, lines), "")


def _paths(said: str) -> "tuple[bytes, ...]":
    return tuple(path_bytes(str(path)) for path in json_text.loads(said))


# -- how the tables follow events ----------------------------------------------------------


def follow_restore(to: "Tables", event: "Event", said: "Said", restore: int) -> None:
    """A restore that took something back, and says why, makes a lesson."""
    text = str(said.get("because") or "")
    if not text or said.get("verb") == REDO:
        return
    turns = [int(number) for (number,) in to.db.execute(_TOOK, (restore,)).fetchall()]
    query = "SELECT line FROM restores WHERE number = ?"
    (line,) = to.db.execute(query, (restore,)).fetchone()
    agent = to.number("sessions", said.get("asker")) or _agent_at_work(
        to.db.execute(_AT_WORK).fetchall()
    )
    source, state = (AGENT, WAITING) if agent else (USER, ACTIVE)
    row = (str(said["restore"]), event.seq, event.at, source, _state(state, text), text)
    _insert(to, (*row, restore, json_text.dumps(turns), agent, line))


def _agent_at_work(steps: "list[tuple[Any, ...]]") -> "int | None":
    """The session of an open step that calls Takeback: then an agent gives the reasons."""
    for session, said in steps:
        words = "".join(c if c.isalnum() else " " for c in str(said)).split()
        if not {"takeback", "tb"}.isdisjoint(words):
            return int(session)
    return None


def _noted(to: "Tables", event: "Event", said: "Said") -> None:
    restore = to.number("restores", said.get("restore"))
    session = to.number("sessions", said.get("session"))
    named = said.get("turns")
    known = [to.number("turns", id) for id in (named if isinstance(named, list) else ())]
    turns = [turn for turn in known if turn is not None]
    line = to.number("lines", said.get("line", "main"))
    source = AGENT if said.get("source") == AGENT else USER
    text = str(said.get("text") or "")
    state = _state(WAITING if source == AGENT else ACTIVE, text)
    row = (str(said["lesson"]), event.seq, event.at, source, state, text)
    _insert(to, (*row, restore, json_text.dumps(turns), session, line))
    if restore is not None and source == USER:
        # The user gave the reason after the restore was done.
        change = "UPDATE restores SET because = ? WHERE number = ? AND because = ''"
        operations.sql(to.db, change, (text, restore))


def _insert(to: "Tables", values: "tuple[Any, ...]") -> None:
    row = (to.next("lessons"), *values)
    operations.sql(to.db, "INSERT INTO lessons VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _state(state: str, text: str) -> str:
    """A lesson whose words were forgotten teaches nothing."""
    return DROPPED if not text or text == GONE else state


def _changed(to: "Tables", event: "Event", said: "Said") -> None:
    """A lesson is accepted, dropped, or says something else."""
    del event
    state, text = said.get("state"), said.get("text")
    change = "UPDATE lessons SET state = ? WHERE id = ?"
    if state in (ACTIVE, DROPPED):
        operations.sql(to.db, change, (str(state), str(said["lesson"])))
    if isinstance(text, str):
        new = "UPDATE lessons SET text = ? WHERE id = ?"
        operations.sql(to.db, new, (text, str(said["lesson"])))
        if _state(ACTIVE, text) == DROPPED:
            operations.sql(to.db, change, (DROPPED, str(said["lesson"])))
        # Whoever was told the old words is told the new ones.
        anew = "DELETE FROM lessons_told WHERE lesson = (SELECT number FROM lessons WHERE id = ?)"
        operations.sql(to.db, anew, (str(said["lesson"]),))


def _told(to: "Tables", event: "Event", said: "Said") -> None:
    """A session was told lessons; `anew` tells that it forgot all that it was told before."""
    session = to.number("sessions", said.get("session"))
    if session is None:
        return
    which = "" if said.get("anew") else f" AND lesson = {Lessons.ANEW}"
    operations.sql(to.db, f"DELETE FROM lessons_told WHERE session = ?{which}", (session,))
    named = said.get("lessons")
    numbers = [to.number("lessons", id) for id in (named if isinstance(named, list) else ())]
    numbers += [Lessons.ANEW] if said.get("anew") else []
    rows = [(session, number, event.seq) for number in numbers if number is not None]
    if rows:
        operations.sql_many(to.db, _TELL, rows)


def _told_restore(to: "Tables", event: "Event", said: "Said") -> None:
    """A session was told of a restore with its reason: that is its lesson, too."""
    session, restore = to.number("sessions", said.get("session")), said.get("restore")
    if session is None or not restore or said.get("unsaid") or said.get("subagent"):
        return
    query = "SELECT l.number FROM lessons l JOIN restores r ON r.number = l.restore WHERE r.id = ?"
    rows = [(session, number, event.seq) for (number,) in to.db.execute(query, (str(restore),))]
    if rows:
        operations.sql_many(to.db, _TELL, rows)


def _relapsed(to: "Tables", event: "Event", said: "Said") -> None:
    turn, restore = to.number("turns", said.get("turn")), to.number("restores", said.get("restore"))
    if turn is None or restore is None:
        return
    operations.sql(to.db, "DELETE FROM relapses WHERE turn = ? AND restore = ?", (turn, restore))
    if not said.get("lines"):
        return  # the turn removed them again itself
    counts = (int(str(said.get("lines", 0))), int(str(said.get("taken", 0))))
    paths = json_text.dumps(said.get("paths", []))  # type: ignore[arg-type]
    row = (to.next("relapses"), event.seq, event.at, turn, restore, *counts, paths)
    operations.sql(to.db, "INSERT INTO relapses VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.LESSON_NOTED: _noted,
    events.LESSON_CHANGED: _changed,
    events.LESSONS_TOLD: _told,
    events.SESSION_TOLD: _told_restore,
    events.RELAPSE_SEEN: _relapsed,
}
