"""Sessions and turns: their rows, and what is asked about them."""

from takeback.errors import UnknownReferenceError
from takeback.ledger.database import Chosen, Table
from takeback.model import words
from takeback.model.reasons import Action
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.ledger.beyond.work_plans import WorkPlans
    from takeback.ledger.database import Values
    from takeback.ledger.steps import StepRow

_LIVE = "undone IS NULL AND covered IS NULL"
_SO_FAR = (
    "(EXISTS (SELECT 1 FROM deltas d WHERE d.turn = turns.number AND d.who = 'step')"
    " OR EXISTS (SELECT 1 FROM outside o WHERE o.turn = turns.number AND o.changed)"
    " OR EXISTS (SELECT 1 FROM losses l WHERE l.turn = turns.number AND l.grave)"
    " OR EXISTS (SELECT 1 FROM rescues r WHERE r.turn = turns.number AND r.beyond))"
)
_BEHIND = "number IN (SELECT turn FROM steps WHERE closed IS NULL)"
_CHANGED = (
    f"paths > 0 AND {_LIVE}",
    f"closed IS NULL AND {_LIVE} AND {_SO_FAR}",
    f"{_BEHIND} AND {_LIVE} AND {_SO_FAR}",
)
"""What a turn changed is counted at its end; while it runs, or a step of it does, it is not yet.

Three conditions, and not one: SQLite finds the turns of each by an index of its own.
"""
_ALL = 1 << 62
_OF = "(?1 IS NULL OR session = ?1)"
_PAGE = 500
_RECORD = (
    "SELECT t.number, t.id, t.label, t.status, t.started, t.ended, b.id, a.id, t.before, t.after,"
    " t.files, t.added, t.removed, t.uncounted, t.git_before, t.git_after,"
    " z.id, z.agent, z.author, z.holder, z.ended, r.id, r.because, t.opened, t.closed, t.steps"
    " FROM turns t JOIN sessions z ON z.number = t.session"
    " LEFT JOIN restores r ON r.number = coalesce(t.covered, t.undone)"
    " LEFT JOIN checkpoints b ON b.number = t.before LEFT JOIN checkpoints a ON a.number = t.after "
)


class SessionRow(Value):
    """What the ledger holds of a session; `ended` is None while it goes on."""

    number: int
    id: str
    agent: str
    own_id: str
    title: str
    author: str
    holder: str
    inside: "int | None"
    started: int
    seen: int
    ended: "int | None"
    opened: int
    turns: int
    process: str


class TurnRow(Value):
    """What the ledger holds of a turn.

    `opened` and `closed` are the events that began and ended it, `before` and `after` the numbers
    of the checkpoints around it.
    """

    number: int
    id: str
    session: int
    label: str
    status: str
    whole: int
    started: int
    opened: int
    closed: "int | None"
    before: int
    after: "int | None"
    steps: int
    git_before: "str | None"
    git_after: "str | None"
    undone: "int | None"
    covered: "int | None"


class TurnRecord(Value):
    """A turn with all that the log shows of it; `first` and `last` are numbers of checkpoints."""

    number: int
    id: str
    label: str
    status: str
    started: int
    ended: "int | None"
    before: "str | None"
    after: "str | None"
    first: int
    last: "int | None"
    files: int
    added: int
    removed: int
    uncounted: int
    git_before: "str | None"
    git_after: "str | None"
    session: str
    agent: str
    account: str
    holder: str
    session_ended: "int | None"
    undone: "str | None"
    because: "str | None"
    opened: int
    closed: "int | None"
    steps: int


class ChangeRow(Value):
    """What a turn changed at a path, in the end."""

    path: bytes
    verb: str
    origin: "bytes | None"
    added: "int | None"
    removed: "int | None"
    how: str


_SESSION = f"SELECT {', '.join(SessionRow._fields)} FROM sessions "
_TURN = f"SELECT {', '.join(TurnRow._fields)} FROM turns "


class ToollessTurn(Value):
    """A turn that changed paths without one tool event, and when it began."""

    agent: str
    id: str
    paths: int
    started: int


class Beginning(Value):
    """How the newest turn of a session began; `at` is when it was recorded."""

    started: int
    steps: int
    closed: "int | None"
    at: int
    request: str


class Sessions(Table):
    """What is asked about sessions."""

    __slots__ = ()
    table = "sessions"
    what, label = "'session of ' || agent", "title"
    _in_line = "1"

    @property
    def _is_free(self) -> str:
        """No turn of it runs in another tree: only who looks at that one can end the turn."""
        of = f"t.session = sessions.number AND t.closed IS NULL AND NOT t.{self._here}"
        return f"NOT EXISTS (SELECT 1 FROM turns t WHERE {of})"

    def get(self, id: str) -> SessionRow:
        """The session with this id."""
        row = self.find_by_id(id)
        if row is None:
            raise UnknownReferenceError(f"there is no session `{id}`", hint=Action("sessions"))
        return row

    def find(self, agent: str, own_id: str) -> "SessionRow | None":
        """The session that an agent knows by an id of its own."""
        # The last condition is that of the index, which SQLite would not see in a parameter.
        where = "WHERE agent = ? AND own_id = ? AND own_id <> ''"
        return next(iter(self._some(where, (agent, own_id))), None)

    def find_by_id(self, id: str) -> "SessionRow | None":
        """The session with this id."""
        return next(iter(self._some("WHERE id = ?", (id,))), None)

    def numbered(self, number: int) -> SessionRow:
        """The session with a number."""
        return self._some("WHERE number = ?", (number,))[0]

    def of(self, part: "TurnRow | StepRow") -> SessionRow:
        """The session that a turn or a step belongs to."""
        if isinstance(part, TurnRow):
            where, number = "WHERE number = ?", part.session
        else:
            where, number = "WHERE number = (SELECT session FROM turns WHERE number = ?)", part.turn
        for row in self._some(where, (number,)):
            return row
        raise UnknownReferenceError(f"the session of `{part.id}` is not in the log")

    def newest(self, limit: "int | None") -> "list[SessionRow]":
        """Sessions, the one that was seen last first."""
        order = "ORDER BY seen DESC, number DESC LIMIT ?"
        return self._some(order, (_ALL if limit is None else limit,))

    def held(self) -> "list[SessionRow]":
        """The sessions that go on as long as a process lives."""
        where = "INDEXED BY sessions_held WHERE ended IS NULL AND holder <> ''"
        return self._some(f"{where} AND {self._is_free}")

    def silent(self, before: int, limit: int) -> "list[SessionRow]":
        """Sessions that no process holds and that gave no sign of life since a moment."""
        where = f"WHERE ended IS NULL AND seen < ? AND holder = '' AND {self._is_free}"
        return self._some(where + " ORDER BY seen LIMIT ?", (before, limit))

    def has_open(self) -> bool:
        """Whether any session has not ended, so that its process may have died."""
        return self._reader.has("SELECT 1 FROM sessions WHERE ended IS NULL LIMIT 1")

    def open(self) -> "list[SessionRow]":
        """The sessions that have not ended."""
        return self._some("WHERE ended IS NULL ORDER BY number")

    def is_paused(self, number: int) -> bool:
        """Whether a session is paused, or all of them are."""
        return self._reader.has("SELECT 1 FROM pauses WHERE session IN (0, ?)", (number,))

    def paused(self) -> "dict[int, int]":
        """When sessions were paused, by their numbers; 0 stands for all of them."""
        return dict(self._reader.rows("SELECT session, at FROM pauses"))

    def is_elsewhere(self, row: SessionRow, inside: "str | None") -> bool:
        """Whether a session works inside another turn of this project now than the log says."""
        query = "SELECT number FROM turns WHERE id = ?"
        turn = self._reader.value(query, (inside,)) if inside else None
        return turn is not None and turn != row.inside

    def _some(self, where: str, values: "Values" = ()) -> "list[SessionRow]":
        return [SessionRow(*row) for row in self._reader.rows(_SESSION + where, values)]


class Turns(Table):
    """What is asked about turns."""

    __slots__ = ()
    table = "turns"
    what, label = "'turn'", "label"

    @property
    def plans(self) -> "WorkPlans":
        """The plans of work whose steps are turns."""
        from takeback.ledger.beyond.work_plans import WorkPlans

        return WorkPlans(self._reader)

    def get(self, id: str) -> TurnRow:
        """The turn with this id."""
        row = self.find(id)
        if row is None:
            raise UnknownReferenceError(f"there is no turn `{id}`", hint=Action("log"))
        return row

    def find(self, id: str) -> "TurnRow | None":
        """The turn with this id."""
        return self._first("WHERE id = ?", (id,))

    def numbered(self, number: int) -> "TurnRow | None":
        """The turn with this number."""
        return self._first("WHERE number = ?", (number,))

    def newest_of(self, session: int) -> "TurnRow | None":
        """The newest turn of a session."""
        return next(iter(self.of_session(session, 1)), None)

    def of_session(self, session: int, limit: int) -> "list[TurnRow]":
        """The turns of a session, the newest first."""
        where = f"WHERE session = ? AND {self._here} ORDER BY number DESC LIMIT ?"
        return self._some(where, (session, limit))

    def running(self, session: int) -> "list[TurnRow]":
        """The turns of a session that have not ended."""
        return self._some(f"WHERE closed IS NULL AND session = ? AND {self._here}", (session,))

    def running_but_of(self, session: str) -> "list[TurnRow]":
        """The turns of all sessions but one that have not ended."""
        where = (
            "WHERE closed IS NULL AND session NOT IN (SELECT number FROM sessions WHERE id = ?)"
            f" AND {self._here} ORDER BY number"
        )
        return self._some(where, (session,))

    def with_sessions_inside(self) -> "frozenset[str]":
        """The running turns inside of which another session works and tells its own steps."""
        query = (
            "SELECT t.id FROM turns t JOIN sessions z ON z.inside = t.number"
            " WHERE t.closed IS NULL AND z.turns > 0 AND z.ended IS NULL"
        )
        return frozenset(self._reader.column(query))

    def labels(self, chosen: "Chosen | None" = None) -> "Iterator[tuple[int, str, int, str]]":
        """Number, label, session and why it was taken back, of each turn, the newest first."""
        chosen = chosen or Chosen()
        while True:
            query = (
                "SELECT t.number, t.label, t.session, coalesce(r.because, '') FROM turns t"
                " LEFT JOIN restores r ON r.number = coalesce(t.covered, t.undone)"
                f" WHERE t.{self._here} AND {chosen.condition} ORDER BY t.number DESC LIMIT {_PAGE}"
            )
            page = self._reader.rows(query, chosen.values)
            for number, label, session, because in page:
                yield number, str(label), session, str(because)
            if not page:
                return
            chosen = chosen.replace(last=page[-1][0] - 1)

    # -- live turns ------------------------------------------------------------------------

    def newest_changed(self, session: "int | None") -> "TurnRow | None":
        """The newest live turn that changed something: of the project, or of one session."""
        newest = f" AND {self._here} ORDER BY number DESC LIMIT 1"
        rows = [self._first(f"WHERE {each} AND {_OF}{newest}", (session,)) for each in _CHANGED]
        known = [row for row in rows if row is not None]
        return max(known, key=lambda row: row.opened, default=None)

    def toolless(self) -> "list[ToollessTurn]":
        """The newest turn that changed something without a tool event, of each agent.

        Not of one that reported a tool in this conversation or a later one.
        """
        query = (
            "SELECT z.agent, t.id, t.paths, t.started, max(t.number) FROM turns t"
            " JOIN sessions z ON z.number = t.session WHERE t.paths > 0 AND t.steps = 0"
            " AND NOT z.reports AND EXISTS"
            " (SELECT 1 FROM deltas d WHERE d.turn = t.number AND d.how = ?)"
            " AND NOT EXISTS (SELECT 1 FROM sessions o WHERE o.agent = z.agent AND o.reports"
            " AND o.seen > z.seen) GROUP BY z.agent"
        )
        return [ToollessTurn(*row[:4]) for row in self._reader.rows(query, (words.UNREPORTED,))]

    def changed(self, session: int) -> "list[TurnRow]":
        """The live turns of a session that changed something, the newest first."""
        where = f"WHERE {self._here} AND {_OF} AND "
        known = {
            row.number: row for each in _CHANGED for row in self._some(where + each, (session,))
        }
        return [known[number] for number in sorted(known, reverse=True)]

    def changed_since(self, checkpoint: int) -> "list[str]":
        """The live turns that changed something and began at a state or later, newest first."""
        changed = f"(paths > 0 OR ((closed IS NULL OR {_BEHIND}) AND {_SO_FAR}))"
        query = (
            f"SELECT id FROM turns WHERE {self._here} AND {_LIVE} AND before >= ? AND {changed}"
            " ORDER BY number DESC"
        )
        return self._reader.column(query, (checkpoint,))

    def count_unchanged(self, session: "int | None", opened: int) -> int:
        """How many live turns changed nothing that began after an event."""
        query = (
            f"SELECT count(*) FROM turns WHERE paths = 0 AND closed NOT NULL AND {_LIVE} AND {_OF}"
            f" AND opened > ?2 AND {self._here}"
        )
        return int(self._reader.value(query, (session, opened)))

    def count_changed_after(self, turn: TurnRow) -> int:
        """How many live turns of its session came after a turn and changed something."""
        query = (
            "SELECT count(*) FROM turns WHERE session = ? AND number > ? AND paths > 0"
            f" AND {_LIVE} AND {self._here}"
        )
        return int(self._reader.value(query, (turn.session, turn.number)))

    def count_undone(self, chosen: "Chosen | None" = None) -> int:
        """How many turns are undone, or were gone back over; of some turns, or of all."""
        if chosen is not None:
            where = f"t.{self._here} AND {chosen.condition} AND NOT (t.{_LIVE})"
            query = f"SELECT count(*) FROM turns t WHERE {where}"
            return int(self._reader.value(query, chosen.values))
        of = f"SELECT count(*) FROM turns WHERE {self._here} AND"
        query = f"SELECT ({of} undone NOT NULL) + ({of} covered NOT NULL AND undone IS NULL)"
        return int(self._reader.value(query))

    # -- before and after ------------------------------------------------------------------

    def begun_since(self, checkpoint: int, after: "TurnRow | None") -> "list[TurnRow]":
        """The turns that began at a state or later, and `after` a turn."""
        last = after.number if after is not None else 0
        where = f"WHERE {self._here} AND before >= ? AND number > ? ORDER BY number"
        return self._some(where, (checkpoint, last))

    def one_before(self, turn: TurnRow) -> "TurnRow | None":
        """The turn of the same session before a turn."""
        where = f"WHERE session = ? AND number < ? AND {self._here} ORDER BY number DESC LIMIT 1"
        return self._first(where, (turn.session, turn.number))

    def first_between(self, number: int, turn: TurnRow) -> "TurnRow | None":
        """The first turn of a session after a number and before a turn; a live one, if any is."""
        within = f"WHERE session = ? AND number > ? AND number < ? AND {self._here} "
        values = (turn.session, number, turn.number)
        live = self._first(f"{within} AND {_LIVE} ORDER BY number LIMIT 1", values)
        return live or self._first(within + "ORDER BY number LIMIT 1", values)

    def newest_state(self) -> "int | None":
        """The newest checkpoint with which a turn began or ended."""
        queries = (
            f"SELECT before FROM turns WHERE {self._here} ORDER BY number DESC LIMIT 1",
            f"SELECT after FROM turns WHERE {self._here} ORDER BY closed DESC LIMIT 1",
        )
        known = [number for query in queries if (number := self._reader.value(query)) is not None]
        return max(map(int, known), default=None)

    # -- what the log shows ----------------------------------------------------------------

    def record(self, number: int) -> "TurnRecord | None":
        """One turn as the log shows it."""
        row = self._reader.one(_RECORD + "WHERE t.number = ?", (number,))
        return TurnRecord(*row) if row else None

    def records(self, chosen: Chosen, limit: int) -> "list[TurnRecord]":
        """The newest of some turns as the log shows them."""
        order = "t.number DESC" if chosen.session is None else "t.session DESC, t.number DESC"
        query = f"{_RECORD}WHERE t.{self._here} AND {chosen.condition} ORDER BY {order} LIMIT ?2"
        rows = self._reader.rows(query, (*chosen.values, limit))
        return [TurnRecord(*row) for row in rows]

    def changes(self, number: int) -> "list[ChangeRow]":
        """What a turn changed, as its end recorded it."""
        query = f"SELECT {', '.join(ChangeRow._fields)} FROM changes WHERE turn = ? ORDER BY path"
        return [ChangeRow(*row) for row in self._reader.rows(query, (number,))]

    def is_entry(self, turn: int) -> bool:
        """Whether a turn changed a file, or lost something outside cover: undo comes to it."""
        return self._reader.has("SELECT 1 FROM turns WHERE number = ? AND paths > 0", (turn,))

    def is_over(self, turn: int) -> bool:
        """Whether a turn has ended."""
        query = "SELECT 1 FROM turns WHERE number = ? AND closed NOT NULL"
        return self._reader.has(query, (turn,))

    def newest_beginning(self, session: str) -> "Beginning | None":
        """How the newest turn of a session began."""
        query = (
            "SELECT t.started, t.steps, t.closed, e.at, coalesce(e.request, '') FROM turns t"
            " JOIN sessions z ON z.number = t.session JOIN events e ON e.seq = t.opened"
            f" WHERE z.id = ? AND t.{self._here} ORDER BY t.number DESC LIMIT 1"
        )
        row = self._reader.one(query, (session,))
        return Beginning(*row) if row else None

    def _first(self, where: str, values: "Values" = ()) -> "TurnRow | None":
        row = self._reader.one(_TURN + where, values)
        return TurnRow(*row) if row else None

    def _some(self, where: str, values: "Values" = ()) -> "list[TurnRow]":
        return [TurnRow(*row) for row in self._reader.rows(_TURN + where, values)]
