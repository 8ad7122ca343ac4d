"""Rows of sessions, turns and steps, as recording needs them."""

from takeback.errors import UnknownReferenceError, UsageError
from takeback.ledger.schema import DETACHED
from takeback.model import words
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json

_SESSION = "SELECT number, id, opened, ended, holder, seen, inside, agent FROM sessions "
_TURN = "SELECT number, id, session, status, whole, opened, steps FROM turns "
_STEP = (
    "SELECT number, id, turn, parent, tool, kind, background, opened, closed, status FROM steps "
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


def get_session(ledger: "Ledger", id: str) -> SessionRow:
    """The session with this id."""
    for row in ledger.rows(_SESSION + "WHERE id = ?", (id,)):
        return SessionRow(*row)
    raise UnknownReferenceError(f"no session is called `{id}`")


def find_session(ledger: "Ledger", agent: str, own_id: str) -> "SessionRow | None":
    """The session that an agent knows by an id of its own."""
    # The last condition is that of the index, which SQLite would not see in a parameter.
    where = "WHERE agent = ? AND own_id = ? AND own_id <> ''"
    for row in ledger.rows(_SESSION + where, (agent, own_id)):
        return SessionRow(*row)
    return None


def held_sessions(ledger: "Ledger") -> "list[SessionRow]":
    """The sessions that go on as long as a process lives."""
    where = "INDEXED BY sessions_held WHERE ended IS NULL AND holder <> ''"
    found = ledger.rows(_SESSION + where)
    return [SessionRow(*row) for row in found]


def silent_sessions(ledger: "Ledger", before: int, limit: int) -> "list[SessionRow]":
    """Sessions that no process holds and that gave no sign of life since a moment."""
    query = _SESSION + "WHERE ended IS NULL AND seen < ? AND holder = '' ORDER BY seen LIMIT ?"
    return [SessionRow(*row) for row in ledger.rows(query, (before, limit))]


def get_turn(ledger: "Ledger", id: str) -> TurnRow:
    """The turn with this id."""
    for row in ledger.rows(_TURN + "WHERE id = ?", (id,)):
        return TurnRow(*row)
    raise UnknownReferenceError(f"no turn is called `{id}`")


def newest_turn(ledger: "Ledger", session: int) -> "TurnRow | None":
    """The newest turn of a session."""
    for row in ledger.rows(_TURN + "WHERE session = ? ORDER BY number DESC LIMIT 1", (session,)):
        return TurnRow(*row)
    return None


def running_turns(ledger: "Ledger", session: int) -> "list[TurnRow]":
    """The turns of a session that have not ended."""
    return [
        TurnRow(*row)
        for row in ledger.rows(_TURN + "WHERE closed IS NULL AND session = ?", (session,))
    ]


def get_step(ledger: "Ledger", id: str) -> StepRow:
    """The step with this id."""
    for row in ledger.rows(_STEP + "WHERE id = ?", (id,)):
        return StepRow(*row)
    raise UnknownReferenceError(f"no step is called `{id}`")


def session_of(ledger: "Ledger", part: "TurnRow | StepRow") -> SessionRow:
    """The session that a turn or a step belongs to."""
    if isinstance(part, TurnRow):
        where, number = "WHERE number = ?", part.session
    else:
        where, number = "WHERE number = (SELECT session FROM turns WHERE number = ?)", part.turn
    for row in ledger.rows(_SESSION + where, (number,)):
        return SessionRow(*row)
    raise UnknownReferenceError(f"the session of `{part.id}` is not in the log")


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


def is_elsewhere(ledger: "Ledger", row: SessionRow, inside: "str | None") -> bool:
    """Whether a session works inside another turn of this project now than the log says."""
    found = ledger.rows("SELECT number FROM turns WHERE id = ?", (inside,)) if inside else []
    return bool(found) and found[0][0] != row.inside


def is_over(ledger: "Ledger", turn: int) -> bool:
    """Whether a turn has ended."""
    return bool(ledger.rows("SELECT 1 FROM turns WHERE number = ? AND closed NOT NULL", (turn,)))


def late_steps(ledger: "Ledger", session: int, *, background: bool = False) -> "list[StepRow]":
    """The open steps of a session whose turn is over; with those in the background, or without."""
    query = (
        "WHERE closed IS NULL AND (? OR NOT background) AND EXISTS (SELECT 1 FROM turns t"
        " WHERE t.number = steps.turn AND t.session = ? AND t.closed IS NOT NULL)"
    )
    return [StepRow(*row) for row in ledger.rows(_STEP + query, (background, session))]


def open_inside(ledger: "Ledger", step: StepRow) -> "list[StepRow]":
    """The steps inside a step that are open and end with it: not what was detached, nor in that."""
    rows = ledger.rows(_STEP + "WHERE closed IS NULL AND turn = ?", (step.turn,))
    found = [StepRow(*row) for row in rows]
    return [each for each in found if _is_inside(ledger, each, step.number)]


def _is_inside(ledger: "Ledger", step: StepRow, above: int) -> bool:
    while step.parent is not None and not (step.background == DETACHED and step.closed is None):
        if step.parent == above:
            return True
        step = StepRow(*ledger.rows(_STEP + "WHERE number = ?", (step.parent,))[0])
    return False


# -- what hooks look for ---------------------------------------------------------------------

_STEPS_OF = (
    "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND "
)


def waiting_steps(
    ledger: "Ledger", *, session: str = "", turn: str = "", inside: str = ""
) -> "list[str]":
    """The steps of which nobody knows whether they began: not in the background, or in a step."""
    where, id = (
        ("z.id = ? AND NOT s.background", session) if session
        else ("t.id = ? AND NOT s.background", turn) if turn
        else ("s.parent = (SELECT number FROM steps WHERE id = ?)", inside)
    )  # fmt: skip
    rows = ledger.rows(f"{_STEPS_OF}s.status = ? AND {where}", (words.WAITING, id))
    return [str(id) for (id,) in rows]


def background_shells(ledger: "Ledger", session: str) -> "list[str]":
    """The commands of a session that go on in the background."""
    query = _STEPS_OF + "s.kind = ? AND z.id = ? AND s.background"
    return [str(id) for (id,) in ledger.rows(query, (words.SHELL, session))]


def running_shells(ledger: "Ledger", turn: str) -> "list[str]":
    """The commands of a turn that run, and are not in the background."""
    query = _STEPS_OF + "s.kind = ? AND t.id = ? AND NOT s.background"
    return [str(id) for (id,) in ledger.rows(query, (words.SHELL, turn))]


def find_step_like(ledger: "Ledger", turn: str, likeness: str) -> "str | None":
    """The oldest step of a turn that runs and whose hook had this likeness."""
    query = (
        "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn JOIN events e"
        " ON e.seq = s.opened WHERE s.closed IS NULL AND NOT s.background AND t.id = ?"
        " AND e.request LIKE 'hook % ' || ? ORDER BY s.number LIMIT 1"
    )
    return next((str(id) for (id,) in ledger.rows(query, (turn, likeness))), None)


def find_running_step(ledger: "Ledger", session: str, tool: str, summary: str) -> "str | None":
    """The oldest step that runs with a tool to do this; if none does, the latest with the tool."""
    query = (
        "SELECT s.id, s.summary, s.status FROM steps s JOIN turns t ON t.number = s.turn"
        " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL"
        " AND s.background <> ? AND s.tool = ? AND z.id = ? ORDER BY s.number"
    )
    rows = ledger.rows(query, (DETACHED, tool, session))
    alike = [row for row in rows if row[1] == summary] or rows[-1:]
    return next((str(id) for id, _, status in alike if status == words.RUNNING), None)


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


def newest_beginning(ledger: "Ledger", session: str) -> "Beginning | None":
    """How the newest turn of a session began."""
    query = (
        "SELECT t.started, t.steps, t.closed, e.at, e.request FROM turns t"
        " JOIN sessions z ON z.number = t.session JOIN events e ON e.seq = t.opened"
        " WHERE z.id = ? ORDER BY t.number DESC LIMIT 1"
    )
    return next((Beginning(*row) for row in ledger.rows(query, (session,))), None)


def conversation_of(ledger: "Ledger", opened: int) -> "tuple[str, str]":
    """Where an agent keeps the conversation of a turn, and what it calls its prompt."""
    for event in ledger.events("WHERE seq = ?", (opened,)):
        known = (event.payload or {}).get("conversation")
        if isinstance(known, dict):
            return str(known.get("transcript") or ""), str(known.get("prompt") or "")
    return "", ""
