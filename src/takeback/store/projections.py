"""What follows from the events: every table but `events` itself.

`apply` is the only code that writes these tables. It sees the event and the tables as they are,
nothing else: no clock, no disk, no chance. So replaying the log makes the same rows again, and
live tables and rebuilt ones can be compared byte for byte.
"""

from takeback.model.terms import DONE, INTERRUPTED, MKDIR, RMDIR, RUNNING
from takeback.store import events, fsops
from takeback.store.rows import row_from
from takeback.store.schema import DETACHED, WITH_ITS_PARENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.store.events import Event
    from takeback.store.sqlite import Connection

    Said = Mapping[str, object]
    Apply = Callable[[Connection, Event, Said], None]

_ROW = "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELTA = "INSERT INTO deltas VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CHANGE = "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)"
_TURN = "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_STEP = "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SESSION = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def apply(db: "Connection", event: "Event") -> None:
    """Let the tables follow one event. What is not known here changes nothing."""
    handler = _APPLY.get(event.kind)
    if handler is not None and event.payload is not None:
        handler(db, event, event.payload)


def replay(source: "Connection", target: "Connection") -> None:
    """Make all rows from the events of `source` in the empty tables of `target`."""
    for event in events.read(source):
        apply(target, event)


# -- checkpoints ---------------------------------------------------------------------------


def _checkpoint_taken(db: "Connection", event: "Event", said: "Said") -> None:
    for pack in _list(said.get("packs")):
        fsops.sql(db, "INSERT INTO packs VALUES (?, ?, ?, ?)", tuple(_list(pack)))  # type: ignore[arg-type]
    row = row_from(_next(db, "checkpoints"), event.seq, event.at, said)  # type: ignore[arg-type]
    fsops.sql(db, _ROW, row.values())
    place = _coordinate(db, event, said, row.number)
    authors = [_author(db, _list(author)) for author in _list(said.get("authors"))]
    rows = [_delta(row.number, _list(delta), authors) for delta in _list(said.get("deltas"))]
    if rows:
        fsops.sql_many(db, _DELTA, rows)
    _seen(db, place, event.at)


def _delta(
    checkpoint: int, delta: "list[object]", authors: "list[tuple[object, ...]]"
) -> "tuple[object, ...]":
    path, verb, author, *origin = delta
    who, how, session, turn, step, sessions = authors[int(str(author))]
    came = _bytes(origin[0]) if origin else None
    return checkpoint, _bytes(path), verb, came, who, how, session, turn, step, sessions


def _author(db: "Connection", author: "list[object]") -> "tuple[object, ...]":
    who, how, session, turn, step, sessions = author
    return (
        who,
        how,
        _number(db, "sessions", session),
        _number(db, "turns", turn),
        _number(db, "steps", step),
        " ".join(map(str, _list(sessions))),
    )


def _checkpoint_named(db: "Connection", event: "Event", said: "Said") -> None:
    number = _number(db, "checkpoints", said.get("checkpoint"))
    if number is not None:
        _seen(db, _coordinate(db, event, said, number), event.at)


def _observed(db: "Connection", event: "Event", said: "Said") -> "int | None":
    """The checkpoint that an event names, noted as a look at the tree."""
    number = _number(db, "checkpoints", said.get("checkpoint"))
    if number is not None:
        _coordinate(db, event, said, number)
    return number


def _coordinate(db: "Connection", event: "Event", said: "Said", checkpoint: int) -> "int | None":
    step = _number(db, "steps", said.get("step"))
    turn = _number(db, "turns", said.get("turn")) or _above(db, "turn", "steps", step)
    session = _number(db, "sessions", said.get("session")) or _above(db, "session", "turns", turn)
    looked = said.get("looked", event.at)
    values = (event.seq, checkpoint, looked, session, turn, step)
    fsops.sql(db, "INSERT INTO coordinates VALUES (?, ?, ?, ?, ?, ?)", values)  # type: ignore[arg-type]
    return session


# -- sessions ------------------------------------------------------------------------------


def _session_started(db: "Connection", event: "Event", said: "Said") -> None:
    number = _next(db, "sessions")
    names = [str(said.get(name, "")) for name in ("session", "agent", "own_id", "title")]
    held = (
        event.author or "",
        str(said.get("holder", "")),
        _number(db, "turns", said.get("inside")),
    )
    times = (event.at, event.at, None, event.seq, 0)
    fsops.sql(db, _SESSION, (number, *names, *held, *times))


def _session_resumed(db: "Connection", event: "Event", said: "Said") -> None:
    session = _number(db, "sessions", said.get("session"))
    change = "UPDATE sessions SET ended = NULL, holder = ?, seen = ? WHERE number = ?"
    fsops.sql(db, change, (str(said.get("holder", "")), event.at, session))
    if "inside" in said:
        inside = _number(db, "turns", said["inside"])
        fsops.sql(db, "UPDATE sessions SET inside = ? WHERE number = ?", (inside, session))


def _session_ended(db: "Connection", event: "Event", said: "Said") -> None:
    """Nothing of a session outlives it: what runs in the background ends here."""
    _observed(db, event, said)
    session = _number(db, "sessions", said.get("session"))
    ended = said.get("ended", event.at)
    close = (
        "UPDATE steps SET status = ?, ended = ?, closed = ? WHERE closed IS NULL"
        " AND EXISTS (SELECT 1 FROM turns t WHERE t.number = steps.turn AND t.session = ?)"
    )
    fsops.sql(db, close, (INTERRUPTED, ended, event.seq, session))  # type: ignore[arg-type]
    change = "UPDATE sessions SET ended = ?, seen = max(seen, ?) WHERE number = ?"
    fsops.sql(db, change, (ended, ended, session))  # type: ignore[arg-type]


def _seen(db: "Connection", session: "int | None", at: int) -> None:
    if session is not None:
        change = "UPDATE sessions SET seen = max(seen, ?) WHERE number = ?"
        fsops.sql(db, change, (at, session))


# -- turns ---------------------------------------------------------------------------------


def _turn_started(db: "Connection", event: "Event", said: "Said") -> None:
    number = _next(db, "turns")
    session = _number(db, "sessions", said.get("session"))
    before = _number(db, "checkpoints", said.get("checkpoint"))
    names = (str(said.get("turn")), session, str(said.get("label", "")), RUNNING)
    times = (bool(said.get("whole")), event.at, None, event.seq, None, before, None)
    sums = (0, 0, 0, 0, 0, 0)
    fsops.sql(db, _TURN, (number, *names, *times, *sums, _text(said.get("git")), None))
    _observed(db, event, said)
    change = "UPDATE sessions SET turns = turns + 1, seen = max(seen, ?) WHERE number = ?"
    fsops.sql(db, change, (event.at, session))


def _turn_resumed(db: "Connection", event: "Event", said: "Said") -> None:
    turn = _number(db, "turns", said.get("turn"))
    change = "UPDATE turns SET status = ?, ended = NULL, closed = NULL WHERE number = ?"
    fsops.sql(db, change, (RUNNING, turn))
    _observed(db, event, said)
    _seen(db, _above(db, "session", "turns", turn), event.at)


def _turn_ended(db: "Connection", event: "Event", said: "Said") -> None:
    turn = _number(db, "turns", said.get("turn"))
    status, ended = str(said.get("status")), said.get("ended", event.at)
    left = DONE if status == DONE else INTERRUPTED
    close = (
        "UPDATE steps SET status = ?, ended = ?, closed = ?"
        " WHERE turn = ? AND closed IS NULL AND NOT background"
    )
    fsops.sql(db, close, (left, ended, event.seq, turn))  # type: ignore[arg-type]
    after = _observed(db, event, said)
    change = (
        "UPDATE turns SET status = ?, ended = ?, closed = ?, after = ?, git_after = ?"
        " WHERE number = ?"
    )
    values = (status, ended, event.seq, after, _text(said.get("git")), turn)
    fsops.sql(db, change, values)  # type: ignore[arg-type]
    _replace_changes(db, turn, _list(said.get("changes")))
    _seen(db, _above(db, "session", "turns", turn), event.at)


def _replace_changes(db: "Connection", turn: "int | None", changes: "list[object]") -> None:
    """The changes of a turn as its end tells them; one that goes on, or whose step does, again."""
    fsops.sql(db, "DELETE FROM changes WHERE turn = ?", (turn,))
    rows = []
    for change in changes:
        path, verb, added, removed, how, *origin = _list(change)
        came = _bytes(origin[0]) if origin else None
        rows.append((turn, _bytes(path), verb, came, added, removed, how))
    if rows:
        fsops.sql_many(db, _CHANGE, rows)
    files = [row for row in rows if row[2] not in (MKDIR, RMDIR)]
    added_lines = sum(row[4] for row in rows if isinstance(row[4], int))
    removed_lines = sum(row[5] for row in rows if isinstance(row[5], int))
    uncounted = sum(1 for row in files if row[4] is None)
    change = (
        "UPDATE turns SET paths = ?, files = ?, added = ?, removed = ?, uncounted = ?"
        " WHERE number = ?"
    )
    sums = (len(rows), len(files), added_lines, removed_lines, uncounted)
    fsops.sql(db, change, (*sums, turn))


# -- steps ---------------------------------------------------------------------------------


def _step_started(db: "Connection", event: "Event", said: "Said") -> None:
    turn = _number(db, "turns", said.get("turn"))
    names = (str(said.get("step")), turn, _number(db, "steps", said.get("parent")))
    what = [str(said.get(name, "")) for name in ("tool", "kind", "summary")]
    paths = _text(said.get("paths", []))
    times = (RUNNING, _inherited(db, names[2]), event.at, None, event.seq, None)
    fsops.sql(db, _STEP, (_next(db, "steps"), *names, *what, paths, *times))
    fsops.sql(db, "UPDATE turns SET steps = steps + 1 WHERE number = ?", (turn,))
    _observed(db, event, said)
    _seen(db, _above(db, "session", "turns", turn), event.at)


def _inherited(db: "Connection", parent: "int | None") -> int:
    """Whether a step is in the background because the one around it is."""
    query = "SELECT 1 FROM steps WHERE number = ? AND background AND closed IS NULL"
    return WITH_ITS_PARENT if db.execute(query, (parent,)).fetchone() else 0


def _step_detached(db: "Connection", event: "Event", said: "Said") -> None:
    step = _number(db, "steps", said.get("step"))
    turn = _above(db, "turn", "steps", step)
    fsops.sql(db, "UPDATE steps SET background = ? WHERE number = ?", (DETACHED, step))
    change = "UPDATE steps SET background = ? WHERE id = ? AND NOT background"
    for inner in _list(said.get("inside")):
        fsops.sql(db, change, (WITH_ITS_PARENT, str(inner)))
    _observed(db, event, said)
    _seen(db, _above(db, "session", "turns", turn), event.at)


def _step_ended(db: "Connection", event: "Event", said: "Said") -> None:
    step = _number(db, "steps", said.get("step"))
    change = "UPDATE steps SET status = ?, ended = ?, closed = ? WHERE number = ?"
    values = (str(said.get("status")), said.get("ended", event.at), event.seq, step)
    fsops.sql(db, change, values)  # type: ignore[arg-type]
    _observed(db, event, said)
    turn = _above(db, "turn", "steps", step)
    if "changes" in said:
        _replace_changes(db, turn, _list(said["changes"]))
    _seen(db, _above(db, "session", "turns", turn), event.at)


# -- small pieces --------------------------------------------------------------------------


def _next(db: "Connection", table: str) -> int:
    query = f"SELECT coalesce(max(number), 0) + 1 FROM {table}"  # noqa: S608 - our own names
    return int(db.execute(query).fetchone()[0])


def _number(db: "Connection", table: str, id: object) -> "int | None":
    if not isinstance(id, str) or not id:
        return None
    query = f"SELECT number FROM {table} WHERE id = ?"  # noqa: S608 - our own names
    row = db.execute(query, (id,)).fetchone()
    return int(row[0]) if row else None


def _above(db: "Connection", column: str, table: str, number: "int | None") -> "int | None":
    query = f"SELECT {column} FROM {table} WHERE number = ?"  # noqa: S608 - our own names
    row = db.execute(query, (number,)).fetchone()
    return int(row[0]) if row and row[0] is not None else None


def _list(value: object) -> "list[object]":
    return list(value) if isinstance(value, list | tuple) else []


def _bytes(path: object) -> bytes:
    return str(path).encode("utf-8", "surrogateescape")


def _text(value: object) -> "str | None":
    from takeback.model import jsontext

    return None if value is None else jsontext.dumps(value)  # type: ignore[arg-type]


_APPLY: "dict[str, Apply]" = {
    events.CHECKPOINT_TAKEN: _checkpoint_taken,
    events.CHECKPOINT_NAMED: _checkpoint_named,
    events.SESSION_STARTED: _session_started,
    events.SESSION_RESUMED: _session_resumed,
    events.SESSION_ENDED: _session_ended,
    events.TURN_STARTED: _turn_started,
    events.TURN_RESUMED: _turn_resumed,
    events.TURN_ENDED: _turn_ended,
    events.STEP_STARTED: _step_started,
    events.STEP_DETACHED: _step_detached,
    events.STEP_ENDED: _step_ended,
}
