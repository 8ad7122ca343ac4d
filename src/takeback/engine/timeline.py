"""What the log says, as values: turns and sessions, newest first.

Everything here reads one moment of the ledger and costs what it shows: rows are found by their
keys or by an index, never by looking at all of them.
"""

from takeback.engine import details, references, retention, titles
from takeback.errors import DamagedStoreError
from takeback.model.history import Log, RecordedRestore, RecordedSession, RecordedTurn
from takeback.model.terms import INTERRUPTED, MKDIR, RMDIR, RUNNING
from takeback.store import processes, restores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from takeback.model.history import Change
    from takeback.store.ledger import Ledger

    Row = tuple[Any, ...]

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
        with details.Sound():
            turns = tuple(self._turn(row, changes=changes) for row in rows[:limit])
        newest = ledger.newest()
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
        row = restores.find(self._ledger, "WHERE number = ?", (number,))
        return titles.of(self._ledger, row) if row is not None else ""

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
            with details.Sound():
                return self._turn(row, changes=True, steps=True)
        raise DamagedStoreError(
            "the ledger names a turn that it does not have",
            hint="`takeback doctor` shows what is wrong",
        )

    def sessions(self, limit: "int | None") -> "tuple[RecordedSession, ...]":
        """Sessions, the one that was seen last first."""
        found = self._ledger.rows(SESSIONS, (_ALL if limit is None else limit,))
        with details.Sound():
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
        told = details.Turn(self._ledger, number, id, session)
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
            git_before=details.git(git_before) if changes else None,
            git_after=details.git(git_after) if changes else None,
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
