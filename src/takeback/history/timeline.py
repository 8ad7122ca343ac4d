"""What one turn or one checkpoint consists of: changes with their authors, steps, left out.

What the log says, as values: turns and sessions, newest first.

Everything here reads one moment of the ledger and costs what it shows: rows are found by their
keys or by an index, never by looking at all of them.
"""

from takeback.disk import processes
from takeback.errors import DamagedStoreError
from takeback.history import references, retention
from takeback.ledger import outside
from takeback.ledger import sessions as history
from takeback.model import json_text, words
from takeback.model.difference import judge
from takeback.model.history import (
    Author,
    Change,
    GitState,
    Log,
    RecordedRestore,
    RecordedSession,
    RecordedStep,
    RecordedTurn,
)
from takeback.model.results import LeftOut, OutsideFile
from takeback.model.words import INTERRUPTED, MKDIR, RMDIR, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.history import Change

    Row = tuple[Any, ...]


CHANGES = "SELECT path, verb, origin, added, removed, how FROM changes WHERE turn = ? ORDER BY path"
DELTAS = (
    "SELECT step, path, verb, origin, how FROM deltas WHERE turn = ? AND who = 'step'"
    " AND verb <> 'omit' ORDER BY checkpoint, path"
)
SHARED = (
    "SELECT path, verb, origin, sessions FROM deltas"
    " WHERE who = 'shared' AND verb <> 'omit' AND checkpoint > ? AND checkpoint <= ?"
    " ORDER BY checkpoint, path"
)
LEFT_OUT = "SELECT path, origin FROM deltas WHERE verb = 'omit' AND turn = ? ORDER BY path"
STEPS = (
    "SELECT s.number, s.id, p.id, s.tool, s.kind, s.summary, s.paths, s.status, s.background,"
    " s.started, s.ended FROM steps s LEFT JOIN steps p ON p.number = s.parent"
    " WHERE s.turn = ? ORDER BY s.number"
)
OF_CHECKPOINT = (
    "SELECT d.path, d.verb, d.origin, d.who, d.how, z.id, t.id, s.id, d.sessions FROM deltas d"
    " LEFT JOIN sessions z ON z.number = d.session LEFT JOIN turns t ON t.number = d.turn"
    " LEFT JOIN steps s ON s.number = d.step WHERE d.checkpoint = ? ORDER BY d.path"
)
PLACE = (
    "SELECT z.id, t.id, s.id FROM coordinates c LEFT JOIN sessions z ON z.number = c.session"
    " LEFT JOIN turns t ON t.number = c.turn LEFT JOIN steps s ON s.number = c.step"
    " WHERE c.cursor = ?"
)
_NEWEST = 1 << 62


class Sound:
    """Turns what goes wrong with values of the wrong kind into damage: a flipped bit makes them."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, TypeError | ValueError | AttributeError):
            raise DamagedStoreError(
                f"a row of the log holds values of the wrong kind: {problem}",
                hint="`takeback doctor` tells more, and `takeback doctor --rebuild` may mend it",
            ) from problem


class Turn:
    """Looks up what belongs to one turn."""

    def __init__(self, ledger: "Ledger", number: int, id: str, session: str) -> None:
        self._ledger = ledger
        self._number = number
        self._id = id
        self._session = session

    def changes(self) -> "tuple[Change, ...]":
        """Its own changes, as its end told them."""
        return tuple(
            _change(path, verb, origin, self._author(how), added=added, removed=removed)
            for path, verb, origin, added, removed, how in self._ledger.rows(
                CHANGES, (self._number,)
            )
        )

    def went_back(self) -> "str | None":
        """The turn before which somebody went back inside the agent; None if nobody did."""
        event = self._ledger.requested(history.rewind_request(self._id))
        return str((event.payload or {}).get("to") or "") if event is not None else None

    def so_far(self) -> "tuple[Change, ...]":
        """Its own changes while it runs; nobody has counted lines yet."""
        rows = self._ledger.rows(DELTAS, (self._number,))
        return fold(
            _change(path, verb, origin, self._author(how)) for _, path, verb, origin, how in rows
        )

    def shared(self, before: int, after: "int | None") -> "tuple[Change, ...]":
        """What changed while it ran and may be its own or another session's."""
        rows = self._ledger.rows(SHARED, (before, _NEWEST if after is None else after))
        return fold(
            _change(path, verb, origin, Author(words.SHARED, sessions=tuple(sessions.split())))
            for path, verb, origin, sessions in rows
            if self._session in sessions.split()
        )

    def left_out(self) -> "tuple[LeftOut, ...]":
        """What appeared by its doing and is not covered."""
        rows = self._ledger.rows(LEFT_OUT, (self._number,))
        found = {path: LeftOut(_path(path), _text(reason)) for path, reason in rows}
        return tuple(found.values())

    def outside(self) -> "tuple[OutsideFile, ...]":
        """What its edit tools named outside the project: what was done, or why nobody knows."""
        if not self._ledger.rows("SELECT 1 FROM outside WHERE turn = ? LIMIT 1", (self._number,)):
            return ()
        rows = self._ledger.outside.of_turns((self._number,))
        found = {row.path: OutsideFile(row.path, reason=row.reason) for row in rows if row.reason}
        for path, runs in outside.runs(rows).items():
            changed = judge(path, runs[-1][0], runs[0][1])
            found[path] = OutsideFile(path, changed.verb if changed is not None else words.WRITE)
        return tuple(found[path] for path in sorted(found))

    def steps(self, *, interrupted: bool) -> "tuple[RecordedStep, ...]":
        """Its steps in their order, each with its own changes."""
        found: dict[int | None, list[Change]] = {}
        for step, path, verb, origin, how in self._ledger.rows(DELTAS, (self._number,)):
            change = _change(path, verb, origin, self._author(how))
            found.setdefault(step, []).append(change)
        return tuple(
            RecordedStep(
                id=id,
                parent=parent or "",
                tool=tool,
                kind=kind,
                summary=summary,
                paths=_names(paths),
                status=words.INTERRUPTED if interrupted and status == words.RUNNING else status,
                started=started / 1e9,
                ended=None if ended is None else ended / 1e9,
                background=bool(background),
                changes=fold(found.get(number, ())),
            )
            for (
                number,
                id,
                parent,
                tool,
                kind,
                summary,
                paths,
                status,
                background,
                started,
                ended,
            ) in self._ledger.rows(STEPS, (self._number,))
        )

    def _author(self, how: str) -> Author:
        return Author(words.STEP, session=self._session, turn=self._id, how=how)


def of_checkpoint(ledger: "Ledger", row: "CheckpointRow") -> "tuple[Change, ...]":
    """What changed between a checkpoint and the one before, and who did it."""
    with Sound():
        return tuple(
            _of_checkpoint(*values) for values in ledger.rows(OF_CHECKPOINT, (row.number,))
        )


def _of_checkpoint(
    path: object,
    verb: object,
    origin: object,
    who: str,
    how: str,
    session: "str | None",
    turn: "str | None",
    step: "str | None",
    sessions: str,
) -> Change:
    author = Author(
        who,
        session=session or "",
        turn=turn or "",
        step=step or "",
        how=how,
        sessions=tuple(sessions.split()),
    )
    return _change(path, verb, origin, author)


def place(ledger: "Ledger", row: "CheckpointRow") -> "tuple[str | None, str | None, str | None]":
    """The session, turn and step that a checkpoint was taken for."""
    for session, turn, step in ledger.rows(PLACE, (row.event,)):
        return session, turn, step
    return None, None, None


def fold(changes: "Iterable[Change]") -> "tuple[Change, ...]":
    """Changes in their order as one per path; what was made and removed again is none."""
    found: dict[bytes, Change] = {}
    for change in changes:
        before = found.pop(change.path, None)
        verb = _joined(before.verb, change.verb) if before is not None else change.verb
        if not verb:
            continue
        origin = before.origin if before is not None and before.origin else change.origin
        found[change.path] = Change(change.path, verb, author=change.author, origin=origin)
    for path, change in list(found.items()):
        # A renamed file is one change, not two.
        gone = found.get(change.origin) if change.origin is not None else None
        if gone is not None and (change.verb, gone.verb) == (words.CREATE, words.DELETE):
            del found[gone.path]
            found[path] = Change(path, words.RENAME, author=change.author, origin=change.origin)
    return tuple(found[path] for path in sorted(found))


_MADE = (words.CREATE, words.MKDIR, words.RENAME)
_GONE = (words.DELETE, words.RMDIR)


def _joined(first: str, second: str) -> str:
    """Two changes of one path as one; empty if they cancel out."""
    if first in _MADE and second in _GONE:
        return ""
    if first in _MADE and second in (words.WRITE, words.MODE):
        return first
    if first in _GONE and second == words.CREATE:
        return words.WRITE
    return words.WRITE if (first, second) == (words.WRITE, words.MODE) else second


def _change(
    path: object,
    verb: object,
    origin: object,
    author: Author,
    *,
    added: "int | None" = None,
    removed: "int | None" = None,
) -> Change:
    came = None if origin is None else _path(origin)
    return Change(_path(path), str(verb), author=author, added=added, removed=removed, origin=came)


def _path(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a path is not made of bytes")
    return value


def git(text: "str | None") -> "GitState | None":
    """The user's git as a turn's boundary recorded it."""
    if text is None:
        return None
    return GitState(*json_text.loads(text))


def _names(paths: str) -> "tuple[bytes, ...]":
    if paths == "[]":
        return ()
    return tuple(str(path).encode("utf-8", "surrogateescape") for path in json_text.loads(paths))


def _text(reason: "bytes | None") -> str:
    return "" if reason is None else reason.decode("utf-8", "replace")


TURNS = (
    "SELECT t.number, t.id, t.label, t.status, t.started, t.ended, b.id, a.id, t.before, t.after,"
    " t.files, t.added, t.removed, t.uncounted, t.git_before, t.git_after,"
    " z.id, z.agent, z.author, z.holder, z.ended, r.id"
    " FROM turns t JOIN sessions z ON z.number = t.session"
    " LEFT JOIN restores r ON r.number = coalesce(t.covered, t.undone)"
    " LEFT JOIN checkpoints b ON b.number = t.before LEFT JOIN checkpoints a ON a.number = t.after "
)
NEWEST = "WHERE t.number BETWEEN ? AND ? {live}ORDER BY t.number DESC LIMIT ?"
OF_SESSION = (
    "WHERE t.session = ? AND t.number BETWEEN ? AND ? {live}"
    " ORDER BY t.session DESC, t.number DESC LIMIT ?"
)
LIVE = "AND t.undone IS NULL AND t.covered IS NULL "
UNDONE = (
    "SELECT (SELECT count(*) FROM turns WHERE undone IS NOT NULL)"
    " + (SELECT count(*) FROM turns WHERE covered IS NOT NULL AND undone IS NULL)"
)
RESTORES = (
    "SELECT r.number, r.id, r.verb, r.at, t.id, b.id, a.id, r.partial, r.because, u.id"
    " FROM restores r LEFT JOIN turns t ON t.number = r.turn"
    " LEFT JOIN checkpoints b ON b.number = r.before"
    " LEFT JOIN checkpoints a ON a.number = r.after"
    " LEFT JOIN restores u ON u.number = coalesce(r.undone, r.covered, r.reversed) "
)
ROLLBACKS = "WHERE r.verb = 'rollback' AND r.undone IS NULL AND r.covered IS NULL AND r.at >= ? "
SESSIONS = (
    "SELECT z.id, z.agent, z.own_id, z.title, z.author, z.started, z.seen, z.ended, z.turns,"
    " z.holder, (SELECT label FROM turns WHERE session = z.number ORDER BY number DESC LIMIT 1)"
    " FROM (SELECT * FROM sessions ORDER BY seen DESC, number DESC LIMIT ?) z"
    " ORDER BY z.seen DESC, z.number DESC"
)
YOURS = "SELECT count(DISTINCT path) FROM deltas WHERE checkpoint > ? AND who = 'you'"

_ALL = 1 << 62


class Timeline:
    """Reads the log of one project, at one moment."""

    def __init__(self, ledger: "Ledger", now: float) -> None:
        self._ledger = ledger
        self._now = now
        self._alive: dict[str, bool] = {}
        self._floor = retention.floor(ledger)

    def log(
        self,
        *,
        limit: "int | None",
        session: "str | None",
        since: "float | None",
        changes: bool,
    ) -> Log:
        """The newest turns: of a session, since a time; with their changes if those are wanted."""
        ledger = self._ledger
        first = 0
        if since is not None:
            first = 1 + (references.last_by(ledger, "turns", "started", int(since * 1e9) - 1) or 0)
        asked, live = (_ALL, "") if limit is None else (limit + 1, LIVE)
        if session is None:
            rows = ledger.rows(TURNS + NEWEST.format(live=live), (first, _ALL, asked))
        else:
            number = references.session(ledger, session, self._now)
            query = TURNS + OF_SESSION.format(live=live)
            rows = ledger.rows(query, (number, first, _ALL, asked))
        with Sound():
            turns = tuple(self._turn(row, changes=changes) for row in rows[:limit])
        newest = ledger.checkpoints.newest()
        return Log(
            newest.id if newest is not None else "",
            turns,
            more=limit is not None and len(rows) > limit,
            made=newest.created / 1e9 if newest is not None else None,
            yours=self._yours(),
            restores=self._restores(turns, all=limit is None) if session is None else (),
            undone=0 if limit is None else int(ledger.rows(UNDONE)[0][0]),
        )

    def _restores(
        self, turns: "tuple[RecordedTurn, ...]", *, all: bool
    ) -> "tuple[RecordedRestore, ...]":
        """The rollbacks that belong between the turns, or everything."""
        order = "ORDER BY r.number DESC"
        if all:
            return self._as_restores(RESTORES + order)
        oldest = int(min((turn.started for turn in turns), default=0) * 1e9)
        return self._as_restores(RESTORES + ROLLBACKS + order, oldest)

    def restore(self, checkpoint: int) -> "RecordedRestore | None":
        """The newest restore that ended in a checkpoint, if one did."""
        where = "WHERE r.after = ? ORDER BY r.number DESC LIMIT 1"
        return next(iter(self._as_restores(RESTORES + where, checkpoint)), None)

    def _title(self, number: int) -> str:
        row = self._ledger.stack.numbered(number)
        return references.of(self._ledger, row) if row is not None else ""

    def _as_restores(self, query: str, *values: int) -> "tuple[RecordedRestore, ...]":
        return tuple(
            RecordedRestore(
                id=id,
                verb=verb,
                title=self._title(number),
                at=at / 1e9,
                turn=turn or "",
                before=before or "",
                after=after or "",
                partial=bool(partial),
                because=because,
                undone=undone or "",
            )
            for number, id, verb, at, turn, before, after, partial, because, undone in (
                self._ledger.rows(query, values)
            )
        )

    def turn(self, number: int) -> RecordedTurn:
        """One turn with everything that is known of it."""
        for row in self._ledger.rows(TURNS + "WHERE t.number = ?", (number,)):
            with Sound():
                return self._turn(row, changes=True, steps=True)
        raise DamagedStoreError(
            "the ledger names a turn that it does not have",
            hint="`takeback doctor` shows what is wrong",
        )

    def sessions(self, limit: "int | None") -> "tuple[RecordedSession, ...]":
        """Sessions, the one that was seen last first."""
        found = self._ledger.rows(SESSIONS, (_ALL if limit is None else limit,))
        with Sound():
            return tuple(self._session(row) for row in found)

    def _session(self, row: "Row") -> RecordedSession:
        id, agent, own_id, title, author, started, seen, ended, turns, holder, label = row
        return RecordedSession(
            id=id,
            agent=agent,
            own_id=own_id,
            title=title,
            author=author,
            started=started / 1e9,
            seen=seen / 1e9,
            ended=_seconds(ended),
            turns=turns,
            running=ended is None and not self._is_dead(holder),
            label=label or "",
        )

    def _turn(self, row: "Row", *, changes: bool, steps: bool = False) -> RecordedTurn:
        (number, id, label, status, started, ended, before, after, first, last, *rest) = row
        files, added, removed, uncounted, git_before, git_after = rest[:6]
        session, agent, account, holder, session_ended, undone = rest[6:]
        is_running = status == RUNNING
        if is_running and session_ended is None and self._is_dead(holder):
            status = INTERRUPTED
        told = Turn(self._ledger, number, id, session)
        own: tuple[Change, ...] = ()
        if is_running:
            # What it changed is folded when it ends; until then its deltas have to do.
            own = told.so_far()
            files = sum(1 for change in own if change.verb not in (MKDIR, RMDIR))
            uncounted = files
        elif changes:
            own = told.changes()
        return RecordedTurn(
            id=id,
            session=session,
            agent=str(agent),
            account=str(account),
            label=str(label),
            undone=undone or "",
            kept=(first or 0) > self._floor,
            status=status,
            started=started / 1e9,
            ended=_seconds(ended),
            before=before or "",
            after=after or "",
            files=files,
            added=added if not is_running else 0,
            removed=removed if not is_running else 0,
            uncounted=uncounted,
            changes=own,
            shared=told.shared(first or 0, last),
            left_out=told.left_out(),
            outside=told.outside(),
            git_before=git(git_before) if changes else None,
            git_after=git(git_after) if changes else None,
            steps=told.steps(interrupted=status == INTERRUPTED) if steps else (),
            went_back=told.went_back(),
        )

    def _yours(self) -> int:
        """How many paths you changed since the newest turn began or ended."""
        begun = self._ledger.rows("SELECT before FROM turns ORDER BY number DESC LIMIT 1")
        over = self._ledger.rows("SELECT after FROM turns ORDER BY closed DESC LIMIT 1")
        known = [int(number) for (number,) in (*begun, *over) if number is not None]
        if not known:
            return 0
        return int(self._ledger.rows(YOURS, (max(known),))[0][0])

    def _is_dead(self, holder: str) -> bool:
        if not holder:
            return False
        if holder not in self._alive:
            self._alive[holder] = processes.is_alive(holder) is not False
        return not self._alive[holder]


def _seconds(nanoseconds: "int | None") -> "float | None":
    return None if nanoseconds is None else nanoseconds / 1e9
