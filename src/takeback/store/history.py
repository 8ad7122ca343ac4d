"""Rows of sessions, turns and steps, as recording needs them."""

from takeback.errors import UnknownReferenceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.ledger import Ledger

_SESSION = "SELECT number, id, opened, ended, holder, seen FROM sessions "
_TURN = "SELECT number, id, session, status, whole, opened, steps FROM turns "
_STEP = "SELECT number, id, turn, tool, kind, opened, closed FROM steps "


class SessionRow:
    """What the ledger holds of a session; `ended` is None while it goes on."""

    __slots__ = ("ended", "holder", "id", "number", "opened", "seen")

    def __init__(
        self, number: int, id: str, opened: int, ended: "int | None", holder: str, seen: int
    ) -> None:
        self.number = number
        self.id = id
        self.opened = opened
        self.ended = ended
        self.holder = holder
        self.seen = seen


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


class StepRow:
    """What the ledger holds of a step; `closed` is None while its window is open."""

    __slots__ = ("closed", "id", "kind", "number", "opened", "tool", "turn")

    def __init__(
        self,
        number: int,
        id: str,
        turn: int,
        tool: str,
        kind: str,
        opened: int,
        closed: "int | None",
    ) -> None:
        self.number = number
        self.id = id
        self.turn = turn
        self.tool = tool
        self.kind = kind
        self.opened = opened
        self.closed = closed


def get_session(ledger: "Ledger", id: str) -> SessionRow:
    """The session with this id."""
    for row in ledger.rows(_SESSION + "WHERE id = ?", (id,)):
        return SessionRow(*row)
    raise UnknownReferenceError(f"no session is called `{id}`")


def find_session(ledger: "Ledger", agent: str, own_id: str) -> "SessionRow | None":
    """The session that an agent knows by an id of its own."""
    for row in ledger.rows(_SESSION + "WHERE agent = ? AND own_id = ?", (agent, own_id)):
        return SessionRow(*row)
    return None


def held_sessions(ledger: "Ledger") -> "list[SessionRow]":
    """The sessions that go on as long as a process lives."""
    found = ledger.rows(_SESSION + "WHERE ended IS NULL AND holder <> ''")
    return [SessionRow(*row) for row in found]


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
