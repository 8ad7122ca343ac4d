"""Sessions, turns and steps: their rows, and what is asked about them."""

from takeback.errors import UnknownReferenceError, UsageError
from takeback.ledger.database import Group
from takeback.ledger.schema import DETACHED
from takeback.model import words
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.ledger.database import Values
    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json

_SESSION = "SELECT number, id, opened, ended, holder, seen, inside, agent FROM sessions "
_TURN = "SELECT number, id, session, status, whole, opened, steps FROM turns "
_STEP = (
    "SELECT number, id, turn, parent, tool, kind, background, opened, closed, status FROM steps "
)
_OPEN = (
    "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND "
)


class SessionRow(Value):
    """What the ledger holds of a session; `ended` is None while it goes on."""

    number: int
    id: str
    opened: int
    ended: "int | None"
    holder: str
    seen: int
    inside: "int | None"
    agent: str


class TurnRow:
    """What the ledger holds of a turn; `opened` is the number of the event that began it."""

    __slots__ = ("id", "number", "opened", "session", "status", "steps", "whole")

    def __init__(
        self, number: int, id: str, session: int, status: str, whole: int, opened: int, steps: int
    ) -> None:
        self.number = number
        self.id = id
        self.session = session
        self.status = status
        self.whole = bool(whole)
        self.opened = opened
        self.steps = steps


class StepRow(Value):
    """What the ledger holds of a step; `closed` is None while its window is open."""

    number: int
    id: str
    turn: int
    parent: "int | None"
    tool: str
    kind: str
    background: int
    opened: int
    closed: "int | None"
    status: str


class Beginning:
    """How the newest turn of a session began; `at` is when it was recorded."""

    __slots__ = ("at", "closed", "request", "started", "steps")

    def __init__(
        self, started: int, steps: int, closed: "int | None", at: int, request: "str | None"
    ) -> None:
        self.started = started
        self.steps = steps
        self.closed = closed
        self.at = at
        self.request = request or ""


class Sessions(Group):
    """What is asked about sessions."""

    def get(self, id: str) -> SessionRow:
        """The session with this id."""
        for row in self._some("WHERE id = ?", (id,)):
            return row
        raise UnknownReferenceError(f"no session is called `{id}`")

    def find(self, agent: str, own_id: str) -> "SessionRow | None":
        """The session that an agent knows by an id of its own."""
        # The last condition is that of the index, which SQLite would not see in a parameter.
        where = "WHERE agent = ? AND own_id = ? AND own_id <> ''"
        return next(iter(self._some(where, (agent, own_id))), None)

    def of(self, part: "TurnRow | StepRow") -> SessionRow:
        """The session that a turn or a step belongs to."""
        if isinstance(part, TurnRow):
            where, number = "WHERE number = ?", part.session
        else:
            where, number = "WHERE number = (SELECT session FROM turns WHERE number = ?)", part.turn
        for row in self._some(where, (number,)):
            return row
        raise UnknownReferenceError(f"the session of `{part.id}` is not in the log")

    def held(self) -> "list[SessionRow]":
        """The sessions that go on as long as a process lives."""
        return self._some("INDEXED BY sessions_held WHERE ended IS NULL AND holder <> ''")

    def silent(self, before: int, limit: int) -> "list[SessionRow]":
        """Sessions that no process holds and that gave no sign of life since a moment."""
        where = "WHERE ended IS NULL AND seen < ? AND holder = '' ORDER BY seen LIMIT ?"
        return self._some(where, (before, limit))

    def has_open(self) -> bool:
        """Whether any session has not ended, so that its process may have died."""
        return self._reader.has("SELECT 1 FROM sessions WHERE ended IS NULL LIMIT 1")

    def is_elsewhere(self, row: SessionRow, inside: "str | None") -> bool:
        """Whether a session works inside another turn of this project now than the log says."""
        query = "SELECT number FROM turns WHERE id = ?"
        turn = self._reader.value(query, (inside,)) if inside else None
        return turn is not None and turn != row.inside

    def _some(self, where: str, values: "Values" = ()) -> "list[SessionRow]":
        return [SessionRow(*row) for row in self._reader.rows(_SESSION + where, values)]


class Turns(Group):
    """What is asked about turns."""

    def get(self, id: str) -> TurnRow:
        """The turn with this id."""
        for row in self._some("WHERE id = ?", (id,)):
            return row
        raise UnknownReferenceError(f"no turn is called `{id}`")

    def newest_of(self, session: int) -> "TurnRow | None":
        """The newest turn of a session."""
        where = "WHERE session = ? ORDER BY number DESC LIMIT 1"
        return next(iter(self._some(where, (session,))), None)

    def running(self, session: int) -> "list[TurnRow]":
        """The turns of a session that have not ended."""
        return self._some("WHERE closed IS NULL AND session = ?", (session,))

    def is_over(self, turn: int) -> bool:
        """Whether a turn has ended."""
        query = "SELECT 1 FROM turns WHERE number = ? AND closed NOT NULL"
        return self._reader.has(query, (turn,))

    def newest_beginning(self, session: str) -> "Beginning | None":
        """How the newest turn of a session began."""
        query = (
            "SELECT t.started, t.steps, t.closed, e.at, e.request FROM turns t"
            " JOIN sessions z ON z.number = t.session JOIN events e ON e.seq = t.opened"
            " WHERE z.id = ? ORDER BY t.number DESC LIMIT 1"
        )
        row = self._reader.one(query, (session,))
        return Beginning(*row) if row else None

    def _some(self, where: str, values: "Values" = ()) -> "list[TurnRow]":
        return [TurnRow(*row) for row in self._reader.rows(_TURN + where, values)]


class Steps(Group):
    """What is asked about steps."""

    def get(self, id: str) -> StepRow:
        """The step with this id."""
        for row in self._some("WHERE id = ?", (id,)):
            return row
        raise UnknownReferenceError(f"no step is called `{id}`")

    def late(self, session: int, *, background: bool = False) -> "list[StepRow]":
        """The open steps of a session whose turn is over; with or without those in background."""
        where = (
            "WHERE closed IS NULL AND (? OR NOT background) AND EXISTS (SELECT 1 FROM turns t"
            " WHERE t.number = steps.turn AND t.session = ? AND t.closed IS NOT NULL)"
        )
        return self._some(where, (background, session))

    def open_inside(self, step: StepRow) -> "list[StepRow]":
        """The open steps inside a step that end with it: no detached ones, nor those in them."""
        rows = self._some("WHERE closed IS NULL AND turn = ?", (step.turn,))
        return [each for each in rows if self._is_inside(each, step.number)]

    def _is_inside(self, step: StepRow, above: int) -> bool:
        while step.parent is not None and not (step.background == DETACHED and step.closed is None):
            if step.parent == above:
                return True
            (step,) = self._some("WHERE number = ?", (step.parent,))
        return False

    def waiting(self, *, session: str = "", turn: str = "", inside: str = "") -> "list[str]":
        """The steps that may not have begun: not in the background, or inside a step."""
        where, id = (
            ("z.id = ? AND NOT s.background", session) if session
            else ("t.id = ? AND NOT s.background", turn) if turn
            else ("s.parent = (SELECT number FROM steps WHERE id = ?)", inside)
        )  # fmt: skip
        return self._reader.column(f"{_OPEN}s.status = ? AND {where}", (words.WAITING, id))

    def background_shells(self, session: str) -> "list[str]":
        """The commands of a session that go on in the background."""
        query = _OPEN + "s.kind = ? AND z.id = ? AND s.background"
        return self._reader.column(query, (words.SHELL, session))

    def running_shells(self, turn: str) -> "list[str]":
        """The commands of a turn that run, and are not in the background."""
        query = _OPEN + "s.kind = ? AND t.id = ? AND NOT s.background"
        return self._reader.column(query, (words.SHELL, turn))

    def find_like(self, turn: str, likeness: str) -> "str | None":
        """The oldest step of a turn that runs and whose hook had this likeness."""
        query = (
            "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn JOIN events e"
            " ON e.seq = s.opened WHERE s.closed IS NULL AND NOT s.background AND t.id = ?"
            " AND e.request LIKE 'hook % ' || ? ORDER BY s.number LIMIT 1"
        )
        id: str | None = self._reader.value(query, (turn, likeness))
        return id

    def find_running(self, session: str, tool: str, summary: str) -> "str | None":
        """The oldest step that runs with a tool to do this; if none does, the latest with it."""
        query = (
            "SELECT s.id, s.summary, s.status FROM steps s JOIN turns t ON t.number = s.turn"
            " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL"
            " AND s.background <> ? AND s.tool = ? AND z.id = ? ORDER BY s.number"
        )
        rows = self._reader.rows(query, (DETACHED, tool, session))
        alike = [row for row in rows if row[1] == summary] or rows[-1:]
        return next((str(id) for id, _, status in alike if status == words.RUNNING), None)

    def _some(self, where: str, values: "Values" = ()) -> "list[StepRow]":
        return [StepRow(*row) for row in self._reader.rows(_STEP + where, values)]


def requested(
    ledger: "Ledger", request: "str | None", *kinds: str, **about: str
) -> "Mapping[str, Json] | None":
    """What an earlier call with the same request said, so that a retry makes no second event.

    A request that was used for another kind of event, or for something other than what this one
    is `about`, is a mistake of the caller.
    """
    event = ledger.requested(request)
    if event is None:
        return None
    said = event.payload
    if said is None or event.kind not in kinds or any(said.get(k) != about[k] for k in about):
        raise used_elsewhere(request, event.kind)
    return said


def rewind_request(turn: str) -> str:
    """The request of the event that tells that somebody went back inside the agent for a turn."""
    return f"rewound {turn}"


def used_elsewhere(request: "str | None", kind: str) -> UsageError:
    """What to tell somebody who uses the id of a request for two things."""
    return UsageError(
        f"the request `{request}` was already used for something else ({kind})",
        hint="give each request an id of its own",
    )


def conversation_of(ledger: "Ledger", opened: int) -> "tuple[str, str]":
    """Where an agent keeps the conversation of a turn, and what it calls its prompt."""
    event = ledger.event(opened)
    known = (event.payload or {}).get("conversation") if event else None
    if isinstance(known, dict):
        return str(known.get("transcript") or ""), str(known.get("prompt") or "")
    return "", ""
