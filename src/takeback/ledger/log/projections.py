"""What follows from the events: every table but `events` itself.

`apply` is the only code that writes these tables. It sees the event and the tables as they are,
nothing else: no clock, no disk, no chance. So replaying the log makes the same rows again, and
live tables and rebuilt ones can be compared byte for byte.

What care of the store means for its tables: states that are kept, files that went, packs merged.

kept     checkpoints that somebody wants to keep, whatever their age
names    what checkpoints are called; a name that is given twice means the newer one
care     what was done: `trim` let files go, `merge` put packs together, `forget` took
         something out for good
"""

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.ledger import journal, schema, undo_stack
from takeback.ledger.beyond import follow
from takeback.ledger.log import events
from takeback.ledger.log.events import row_from
from takeback.ledger.schema import DETACHED, WITH_ITS_PARENT, Tables
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.words import (
    BY_SHELL,
    DONE,
    GONE,
    INTERRUPTED,
    MKDIR,
    PERHAPS,
    REFUSED,
    RMDIR,
    RUNNING,
    WAITING,
    YOU,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.log.events import Event

    Said = Mapping[str, object]

    Apply = Callable[["Tables", Event, Said], None]


_ROW = "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELTA = "INSERT INTO delta_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CHANGE = "INSERT INTO change_rows VALUES (?, ?, ?, ?, ?, ?, ?)"
_TURN = (
    "INSERT INTO turns VALUES"
    " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)"
)
_RESTORE = (
    "INSERT INTO restores VALUES"
    " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, ?, ?, ?)"
)
_STEP = "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 0)"
_SESSION = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0)"


def apply(to: Tables, event: "Event") -> None:
    """Let the tables follow one event. Of a kind that is not known here, only its envelope."""
    handler = _APPLY.get(event.kind) or follow.find(event.kind)
    if handler is not None and event.payload is not None:
        handler(to, event, event.payload)
        follow.beside(to, event, event.payload)
    _follow_envelope(to, event)


def _follow_envelope(to: Tables, event: "Event") -> None:
    """Any event may bring `packs`, need `objects`, and drop packs that were merged (`dropped`)."""
    if event.kind in events.KINDS and event.payload and event.payload.get("dropped"):
        gone = [(str(name),) for name in _list(event.payload["dropped"])]
        operations.sql_many(to.db, "DELETE FROM packs WHERE name = ?", gone)
    for name, size, objects in events.packs_in(event.payload):
        row = (name, event.seq, size, objects)
        operations.sql(to.db, "INSERT OR REPLACE INTO packs VALUES (?, ?, ?, ?)", row)
    needed = [(event.seq, oid) for oid in events.objects_in(event.payload)]
    if needed:
        operations.sql_many(to.db, "INSERT OR IGNORE INTO needs VALUES (?, ?)", needed)


def replay(source: "Connection", target: "Connection") -> None:
    """Make all rows from the events of `source` in the empty tables of `target`."""
    from takeback.ledger.log import archive

    tables = Tables(target)
    for event in archive.read_all(source):
        try:
            apply(tables, event)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as problem:
            raise DamagedStoreError(
                f"event {event.seq} of the ledger cannot be understood: {problem!r}",
                hint=Action("verify"),
            ) from problem


def follow_anew(db: "Connection") -> None:
    """Make every table but the events again."""
    schema.drop_projections(db)
    schema.make(db, schema.PROJECTIONS)
    replay(db, db)


# -- checkpoints ---------------------------------------------------------------------------


def _line_started(to: Tables, event: "Event", said: "Said") -> None:
    parent = to.number("checkpoints", said.get("parent"))
    values = (to.next("lines"), str(said["line"]), event.seq, parent)
    operations.sql(to.db, "INSERT INTO lines VALUES (?, ?, ?, ?)", values)


def _checkpoint_taken(to: Tables, event: "Event", said: "Said") -> None:
    line = to.number("lines", said.get("line", schema.MAIN))
    place = (to.next("checkpoints"), line, to.number("checkpoints", said.get("parent")))
    row = row_from(place, event.seq, event.at, said)  # type: ignore[arg-type]
    operations.sql(to.db, _ROW, row.values())
    session = _coordinate(to, event, said, row.number)
    _name(to, event, said, row.number)
    authors = [_author(to, _list(author)) for author in _list(said.get("authors"))]
    deltas = [_list(delta) for delta in _list(said.get("deltas"))]
    if said.get("secrets"):
        numbers = to.paths(_list(said["secrets"]))
        rows = [(number, event.seq) for number in numbers.values()]
        operations.sql_many(to.db, "INSERT OR IGNORE INTO secret_files VALUES (?, ?)", rows)
    if deltas:
        undo_stack.go_on(to.db, _add_deltas(to, row.number, deltas, authors))
    if said.get("losses"):
        _add_losses(to, event, said, authors)
    _seen(to, session, event.at)


def _add_deltas(
    to: Tables,
    checkpoint: int,
    deltas: "list[list[object]]",
    authors: "list[tuple[object, ...]]",
) -> "set[object]":
    """Note what changed, in the order in which the event tells it; the turns that it is of."""
    numbers = to.paths(name for path, _, _, *origin in deltas for name in (path, *origin))
    rows, turns = [], set()
    for place, (path, verb, author, *origin) in enumerate(deltas):
        by = authors[int(str(author))]
        came = numbers[origin[0]] if origin else None
        rows.append((checkpoint, place, numbers[path], verb, came, *by))
        turns.add(by[3])
    operations.sql_many(to.db, _DELTA, rows)
    return turns - {None}


def _losses_seen(to: Tables, event: "Event", said: "Said") -> None:
    _add_losses(to, event, said, [_author(to, _list(each)) for each in _list(said.get("authors"))])


def _add_losses(
    to: Tables, event: "Event", said: "Said", authors: "list[tuple[object, ...]]"
) -> None:
    from takeback.ledger import checkpoints

    line = to.number("lines", said.get("line", schema.MAIN))
    lost, when = _list(said["losses"]), (event.seq, event.at)
    undo_stack.go_on(to.db, checkpoints.follow_losses(to, when, line, lost, authors))


def _author(to: Tables, author: "list[object]") -> "tuple[object, ...]":
    who, how, session, turn, step, sessions = author
    return (
        who,
        how,
        to.number("sessions", session),
        to.number("turns", turn),
        to.number("steps", step),
        " ".join(map(str, _list(sessions))),
    )


def _checkpoint_named(to: Tables, event: "Event", said: "Said") -> None:
    number = to.number("checkpoints", said.get("checkpoint"))
    if number is not None:
        _seen(to, _coordinate(to, event, said, number), event.at)
        _name(to, event, said, number)


def _name(to: Tables, event: "Event", said: "Said", checkpoint: int) -> None:
    """A label names the checkpoint; if another one had that name, it loses it."""
    name = ids.as_name(str(said.get("label") or ""))
    if name and name != GONE:
        values = (to.line_of(checkpoint), name, checkpoint, event.seq, event.at)
        operations.sql(to.db, "INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)", values)


def _observed(to: Tables, event: "Event", said: "Said") -> "int | None":
    """The checkpoint that an event names, noted as a look at the tree."""
    number = to.number("checkpoints", said.get("checkpoint"))
    if number is not None:
        _coordinate(to, event, said, number)
    return number


def _coordinate(to: Tables, event: "Event", said: "Said", checkpoint: int) -> "int | None":
    step = to.number("steps", said.get("step"))
    turn = to.number("turns", said.get("turn")) or to.turn_of(step)
    session = to.number("sessions", said.get("session")) or to.session_of(turn)
    looked = said.get("looked", event.at)
    values = (event.seq, checkpoint, looked, session, turn, step, to.line_of(checkpoint))
    operations.sql(to.db, "INSERT INTO coordinates VALUES (?, ?, ?, ?, ?, ?, ?)", values)  # type: ignore[arg-type]
    return session


# -- sessions ------------------------------------------------------------------------------


def _session_started(to: Tables, event: "Event", said: "Said") -> None:
    number = to.next("sessions")
    names = [str(said.get(name, "")) for name in ("session", "agent", "own_id", "title")]
    held = (
        event.author or "",
        str(said.get("holder", "")),
        to.number("turns", said.get("inside")),
    )
    times = (event.at, event.at, None, event.seq, 0)
    operations.sql(to.db, _SESSION, (number, *names, *held, *times))


def _session_resumed(to: Tables, event: "Event", said: "Said") -> None:
    session = to.number("sessions", said.get("session"))
    change = "UPDATE sessions SET ended = NULL, holder = ?, seen = ? WHERE number = ?"
    operations.sql(to.db, change, (str(said.get("holder", "")), event.at, session))
    if "inside" in said:
        inside = to.number("turns", said["inside"])
        operations.sql(to.db, "UPDATE sessions SET inside = ? WHERE number = ?", (inside, session))


def _session_ended(to: Tables, event: "Event", said: "Said") -> None:
    """Nothing of a session outlives it: what runs in the background ends here."""
    _observed(to, event, said)
    session = to.number("sessions", said.get("session"))
    ended = said.get("ended", event.at)
    close = (
        "UPDATE steps SET status = ?, ended = ?, closed = ? WHERE closed IS NULL"
        " AND EXISTS (SELECT 1 FROM turns t WHERE t.number = steps.turn AND t.session = ?)"
    )
    operations.sql(to.db, close, (INTERRUPTED, ended, event.seq, session))  # type: ignore[arg-type]
    change = "UPDATE sessions SET ended = ?, seen = max(seen, ?) WHERE number = ?"
    operations.sql(to.db, change, (ended, ended, session))  # type: ignore[arg-type]


def _seen(to: Tables, session: "int | None", at: int) -> None:
    if session is not None:
        change = "UPDATE sessions SET seen = max(seen, ?) WHERE number = ?"
        operations.sql(to.db, change, (at, session))


# -- turns ---------------------------------------------------------------------------------


def _turn_started(to: Tables, event: "Event", said: "Said") -> None:
    number = to.next("turns")
    session = to.number("sessions", said.get("session"))
    before = to.number("checkpoints", said.get("checkpoint"))
    names = (str(said.get("turn")), session, str(said.get("label", "")), RUNNING)
    began = int(str(said.get("began", event.at)))
    times = (bool(said.get("whole")), began, None, event.seq, None, before, None)
    sums = (0, 0, 0, 0, 0, 0)
    rest = (_text(said.get("git")), None, to.line_of(before))
    operations.sql(to.db, _TURN, (number, *names, *times, *sums, *rest))
    _git_seen(to, event, said, to.line_of(before))
    _observed(to, event, said)
    change = "UPDATE sessions SET turns = turns + 1, seen = max(seen, ?) WHERE number = ?"
    operations.sql(to.db, change, (event.at, session))
    journal.follow_process(to, said, session)


def _turn_resumed(to: Tables, event: "Event", said: "Said") -> None:
    turn = to.number("turns", said.get("turn"))
    change = "UPDATE turns SET status = ?, ended = NULL, closed = NULL WHERE number = ?"
    operations.sql(to.db, change, (RUNNING, turn))
    _git_seen(to, event, said, to.line_of_turn(turn), idle=True)
    _observed(to, event, said)
    journal.follow_process(to, said, to.session_of(turn))
    _seen(to, to.session_of(turn), event.at)


def _turn_ended(to: Tables, event: "Event", said: "Said") -> None:
    turn = to.number("turns", said.get("turn"))
    status, ended = str(said.get("status")), said.get("ended", event.at)
    left = DONE if status == DONE else INTERRUPTED
    close = (
        "UPDATE steps SET status = ?, ended = ?, closed = ?"
        " WHERE turn = ? AND closed IS NULL AND NOT background"
    )
    operations.sql(to.db, close, (left, ended, event.seq, turn))  # type: ignore[arg-type]
    after = _observed(to, event, said)
    change = (
        "UPDATE turns SET status = ?, ended = ?, closed = ?, after = ?, git_after = ?"
        " WHERE number = ?"
    )
    values = (status, ended, event.seq, after, _text(said.get("git")), turn)
    operations.sql(to.db, change, values)  # type: ignore[arg-type]
    _git_seen(to, event, said, to.line_of_turn(turn))
    _replace_changes(to, turn, _list(said.get("changes")))
    _seen(to, to.session_of(turn), event.at)


def _git_seen(
    to: Tables, event: "Event", said: "Said", line: "int | None", *, idle: bool = False
) -> None:
    """The user's git as it was found: what moved since the last look, or all of it.

    What moved while a turn was `idle` is in its span, and not its own.
    """
    if "git_seen" not in said:
        return
    from takeback.ledger import outside

    moves = [_list(move) for move in _list(said.get("git_moved", []))]
    rows = [(event.seq, name, old, new, line, idle) for name, old, new in moves]
    whole = _list(said["git_whole"]) if "git_whole" in said else None
    outside.follow_git(to.db, str(said["git_seen"]), line, rows, whole)


def _replace_changes(to: Tables, turn: "int | None", changes: "list[object]") -> None:
    """The changes of a turn as its end tells them; one that goes on, or whose step does, again."""
    operations.sql(to.db, "DELETE FROM change_rows WHERE turn = ?", (turn,))
    told = [_list(change) for change in changes]
    numbers = to.paths(name for row in told for name in (row[0], *row[5:])) if told else {}
    rows = []
    for path, verb, added, removed, how, *origin in told:
        came = numbers[origin[0]] if origin else None
        rows.append((turn, numbers[path], verb, came, added, removed, how))
    if rows:
        operations.sql_many(to.db, _CHANGE, rows)
    files = [row for row in rows if row[2] not in (MKDIR, RMDIR)]
    added_lines = sum(row[4] for row in rows if isinstance(row[4], int))
    removed_lines = sum(row[5] for row in rows if isinstance(row[5], int))
    uncounted = sum(1 for row in files if row[4] is None)
    change = (
        "UPDATE turns SET paths = ?, files = ?, added = ?, removed = ?, uncounted = ?"
        " WHERE number = ?"
    )
    sums = (len(rows), len(files), added_lines, removed_lines, uncounted)
    operations.sql(to.db, change, (*sums, turn))
    if to.db.execute("SELECT 1 FROM outside WHERE turn = ? LIMIT 1", (turn,)).fetchone():
        from takeback.ledger import outside

        outside.count(to.db, turn)
    if to.db.execute("SELECT 1 FROM losses WHERE turn = ? LIMIT 1", (turn,)).fetchone():
        from takeback.ledger import checkpoints

        checkpoints.count_losses(to.db, turn)
    follow.changes(to, turn)


# -- steps ---------------------------------------------------------------------------------


def _step_started(to: Tables, event: "Event", said: "Said") -> None:
    turn = to.number("turns", said.get("turn"))
    names = (str(said.get("step")), turn, to.number("steps", said.get("parent")))
    what = [str(said.get(name, "")) for name in ("tool", "kind", "summary")]
    paths = _text(said.get("paths", []))
    status = WAITING if said.get("missed") else RUNNING
    started = int(str(said.get("began", event.at)))
    times = (status, _inherited(to, names[2]), started, None, event.seq, None)
    operations.sql(to.db, _STEP, (to.next("steps"), *names, *what, paths, *times, event.seq))
    operations.sql(to.db, "UPDATE turns SET steps = steps + 1 WHERE number = ?", (turn,))
    _observed(to, event, said)
    change = "UPDATE sessions SET seen = max(seen, ?), reports = 1 WHERE number = ?"
    operations.sql(to.db, change, (event.at, to.session_of(turn)))


def _inherited(to: Tables, parent: "int | None") -> int:
    """Whether a step is in the background because the one around it is."""
    query = "SELECT 1 FROM steps WHERE number = ? AND background AND closed IS NULL"
    return WITH_ITS_PARENT if to.db.execute(query, (parent,)).fetchone() else 0


def _step_detached(to: Tables, event: "Event", said: "Said") -> None:
    step = to.number("steps", said.get("step"))
    turn = to.turn_of(step)
    operations.sql(to.db, "UPDATE steps SET background = ? WHERE number = ?", (DETACHED, step))
    change = "UPDATE steps SET background = ? WHERE id = ? AND NOT background"
    for inner in _list(said.get("inside")):
        operations.sql(to.db, change, (WITH_ITS_PARENT, str(inner)))
    _observed(to, event, said)
    _seen(to, to.session_of(turn), event.at)


def _step_asked(to: Tables, event: "Event", said: "Said") -> None:
    """A dialog asks whether the tool may run; nobody tells when it is answered."""
    step = to.number("steps", said.get("step"))
    turn = to.turn_of(step)
    change = "UPDATE steps SET status = ? WHERE number = ? AND closed IS NULL"
    operations.sql(to.db, change, (WAITING, step))
    # It had not begun, so what was taken for its own is not: another call waited, or ran.
    for table in ("delta_rows", "losses"):
        change = f"UPDATE {table} SET how = ? WHERE turn = ? AND step = ?"
        operations.sql(to.db, change, (PERHAPS, turn, step))
    _observed(to, event, said)
    _seen(to, to.session_of(turn), event.at)


def _step_began(to: Tables, event: "Event", said: "Said") -> None:
    """It is known by now when a tool began: there its window opens."""
    step = to.number("steps", said.get("step"))
    change = (
        "UPDATE steps SET status = ?, started = ?, opened = ? WHERE number = ? AND closed IS NULL"
    )
    began = int(str(said.get("began", event.at)))
    operations.sql(to.db, change, (RUNNING, began, event.seq, step))
    _give_back(to, step, began)


def _give_back(to: Tables, step: "int | None", began: int = 1 << 62) -> None:
    """What was perhaps a step's, and changed before it began, is the user's after all."""
    turn = to.turn_of(step)
    query = "SELECT 1 FROM turns WHERE number = ? AND undone IS NULL"
    if not to.db.execute(query, (turn,)).fetchone():
        return
    change = (
        "UPDATE delta_rows SET who = ?, how = '', session = NULL, turn = NULL, step = NULL"
        " WHERE turn = ? AND step = ? AND how = ?"
        " AND checkpoint IN (SELECT number FROM checkpoints WHERE created < ?)"
    )
    operations.sql(to.db, change, (YOU, turn, step, PERHAPS, began))
    change = (
        "UPDATE losses SET who = ?, how = '', session = NULL, turn = NULL, step = NULL"
        " WHERE turn = ? AND step = ? AND how = ? AND at < ?"
    )
    operations.sql(to.db, change, (YOU, turn, step, PERHAPS, began))


def _step_ended(to: Tables, event: "Event", said: "Said") -> None:
    step = to.number("steps", said.get("step"))
    change = "UPDATE steps SET status = ?, ended = ?, closed = ?, last = ? WHERE number = ?"
    values = (str(said.get("status")), said.get("ended", event.at), event.seq, event.seq, step)
    operations.sql(to.db, change, values)  # type: ignore[arg-type]
    if said.get("status") == REFUSED:
        _give_back(to, step)
    if said.get("interactive"):
        change = "UPDATE steps SET interactive = 1 WHERE number = ?"
        operations.sql(to.db, change, (step,))
        # Whoever sat at the terminal may have changed what its window claims.
        change = "UPDATE delta_rows SET how = ? WHERE turn = ? AND step = ? AND how = ?"
        operations.sql(to.db, change, (PERHAPS, to.turn_of(step), step, BY_SHELL))
    _observed(to, event, said)
    turn = to.turn_of(step)
    if "changes" in said:
        _replace_changes(to, turn, _list(said["changes"]))
    _seen(to, to.session_of(turn), event.at)


# -- restores ------------------------------------------------------------------------------


def _restore_applied(to: Tables, event: "Event", said: "Said") -> None:
    """What is taken back is not live any more; what is put back is."""
    number = to.next("restores")
    verb, partial = str(said.get("verb")), bool(said.get("partial"))
    turn, entry = to.number("turns", said.get("turn")), to.number("restores", said.get("entry"))
    target = to.number("checkpoints", said.get("target"))
    states = [to.number("checkpoints", said.get(name)) for name in ("before", "after")]
    words = [str(said.get(name, "")) for name in ("goal", "because")]
    session = to.number("sessions", said.get("session"))
    names = (number, str(said.get("restore")), event.seq, event.at, verb)
    turns = [to.number("turns", id) for id in _list(said.get("turns"))] or [turn]
    told = json_text.dumps([known for known in turns if known is not None])
    some = [to.number("turns", id) for id in _list(said.get("partly"))]
    partly = json_text.dumps([known for known in some if known is not None])
    marks = bool(said.get("marked"))
    what = (turn, entry, target, told, partly, marks, *states, partial, *words, session)
    shared = int(str(said.get("shared", 0)))
    ran = [to.number("sessions", id) for id in _list(said.get("running"))]
    running = json_text.dumps([known for known in ran if known is not None])
    operations.sql(to.db, _RESTORE, (*names, *what, to.line_of(states[1]), shared, running))
    _observed(to, event, {"checkpoint": said.get("after"), "looked": said.get("looked", event.at)})
    undo_stack.follow(to.db, number)
    if said.get("outside"):
        from takeback.ledger import outside

        outside.follow_restore(to.db, number, _list(said["outside"]))
    follow.restore(to, event, said, number)


def _outside_seen(to: Tables, event: "Event", said: "Said") -> None:
    from takeback.ledger import outside

    del event
    undo_stack.go_on(to.db, outside.follow_look(to, said))


# -- small pieces --------------------------------------------------------------------------


def _list(value: object) -> "list[object]":
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: object) -> "str | None":
    return None if value is None else json_text.dumps(value)  # type: ignore[arg-type]


_APPLY: "dict[str, Apply]" = {
    events.LINE_STARTED: _line_started,
    events.CHECKPOINT_TAKEN: _checkpoint_taken,
    events.CHECKPOINT_NAMED: _checkpoint_named,
    events.SESSION_STARTED: _session_started,
    events.SESSION_RESUMED: _session_resumed,
    events.SESSION_ENDED: _session_ended,
    events.SESSION_PAUSED: journal.follow_pause,
    events.SESSION_RELEASED: journal.follow_release,
    events.HOOK_HANDLED: journal.follow_report,
    events.CALL_REFUSED: journal.follow_report,
    events.TURN_STARTED: _turn_started,
    events.TURN_RESUMED: _turn_resumed,
    events.TURN_ENDED: _turn_ended,
    events.STEP_STARTED: _step_started,
    events.STEP_DETACHED: _step_detached,
    events.STEP_ASKED: _step_asked,
    events.STEP_BEGAN: _step_began,
    events.STEP_ENDED: _step_ended,
    events.RESTORE_APPLIED: _restore_applied,
    events.OUTSIDE_SEEN: _outside_seen,
    events.LOSSES_SEEN: _losses_seen,
}


TRIM, MERGE, FORGET = "trim", "merge", "forget"

_DETAILS = ("checkpoints", "packs", "dropped", "events")
"""What of an event follows elsewhere, or is of no use to a reader."""


def _checkpoint_kept(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """A state is kept from now on."""
    number = to.number("checkpoints", said.get("checkpoint"))
    if number is not None:
        add = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)"
        operations.sql(to.db, add, (number, event.at, str(said.get("label", ""))))
        _name(to, event, said, number)


def _checkpoint_released(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """A state is like any other again, or one of its names is gone, or both."""
    del event
    number = to.number("checkpoints", said.get("checkpoint"))
    if said.get("pin", True):
        operations.sql(to.db, "DELETE FROM kept WHERE checkpoint = ?", (number,))
    if said.get("name"):
        gone = "DELETE FROM names WHERE checkpoint = ? AND name = ?"
        operations.sql(to.db, gone, (number, str(said["name"])))


def _history_trimmed(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """The files of checkpoints, told as ranges of their numbers, are gone."""
    change = "UPDATE checkpoints SET gone = ? WHERE number BETWEEN ? AND ? AND gone IS NULL"
    for first, last in said["checkpoints"]:
        operations.sql(to.db, change, (event.seq, int(first), int(last)))
    operations.sql(to.db, "DELETE FROM details WHERE event <= ?", (said.get("details", 0),))
    _note(to, event, TRIM, said)


def _packs_merged(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """What packs held is in others now."""
    _note(to, event, MERGE, said)


def _forgotten(to: "Tables", event: "Event", said: "Mapping[str, Any]") -> None:
    """Something was forgotten. What is left of other events says so already."""
    _note(to, event, FORGET, said)


def _note(to: "Tables", event: "Event", kind: str, said: "Mapping[str, Any]") -> None:
    told = json_text.dumps({key: said[key] for key in said if key not in _DETAILS})
    values = (to.next("care"), event.seq, event.at, kind, told)
    operations.sql(to.db, "INSERT INTO care VALUES (?, ?, ?, ?, ?)", values)


_APPLY |= {
    events.CHECKPOINT_KEPT: _checkpoint_kept,
    events.CHECKPOINT_RELEASED: _checkpoint_released,
    events.HISTORY_TRIMMED: _history_trimmed,
    events.PACKS_MERGED: _packs_merged,
    events.FORGOTTEN: _forgotten,
}
