"""Steps: their rows, and what is asked about them."""

from takeback.errors import UnknownReferenceError
from takeback.ledger.database import Table
from takeback.ledger.schema import DETACHED
from takeback.model import words
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.value import Value, path_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ledger.database import Values

_OPEN = (
    "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND "
)
_WINDOWS_OF_STEPS = (
    "SELECT s.id, t.id, z.id, s.kind, s.paths, s.opened, s.started, s.ended, z.seen, z.holder,"
    " s.background, s.status, s.interactive FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed "
)
_WINDOWS_OF_TURNS = (
    "SELECT '', t.id, z.id, CASE WHEN t.whole THEN 'turn' ELSE 'unreported' END, '[]', t.opened,"
    " t.started, t.ended, z.seen, z.holder, 0, '', 0 FROM turns t JOIN sessions z"
    " ON z.number = t.session WHERE t.steps = 0 AND (t.whole OR (z.holder = '' AND NOT z.reports))"
    " AND t.closed "
)


class StepRow(Value):
    """What the ledger holds of a step; `closed` is None while its window is open."""

    number: int
    id: str
    turn: int
    parent: "int | None"
    tool: str
    kind: str
    summary: str
    paths: str
    status: str
    background: int
    started: int
    ended: "int | None"
    opened: int
    closed: "int | None"
    first: int
    last: "int | None"

    @property
    def names(self) -> "tuple[bytes, ...]":
        """The paths that its tool named."""
        return _names(self.paths)


class WindowRow(Value):
    """A step, or a turn without steps, that was open for some time, and whose it is."""

    step: str
    turn: str
    session: str
    kind: str
    paths: str
    opened: int
    started: int
    ended: "int | None"
    seen: int
    holder: str
    background: int
    status: str
    interactive: int

    @property
    def names(self) -> "tuple[bytes, ...]":
        """The paths that its tool named."""
        return _names(self.paths)


def _names(paths: str) -> "tuple[bytes, ...]":
    if paths == "[]":
        return ()
    return tuple(path_bytes(str(path)) for path in json_text.loads(paths))


_STEP = f"SELECT {', '.join(StepRow._fields)} FROM steps "


class Steps(Table):
    """What is asked about steps."""

    __slots__ = ()
    table = "steps"
    what, label = "'step ' || tool", "summary"

    @property
    def _in_line(self) -> str:
        return f"EXISTS (SELECT 1 FROM turns t WHERE t.number = steps.turn AND t.{self._here})"

    def get(self, id: str) -> StepRow:
        """The step with this id."""
        for row in self._some("WHERE id = ?", (id,)):
            return row
        raise UnknownReferenceError(f"there is no step `{id}`", hint=Action("log"))

    def numbered(self, number: int) -> "StepRow | None":
        """The step with this number."""
        return next(iter(self._some("WHERE number = ?", (number,))), None)

    def of_turn(self, turn: int) -> "list[StepRow]":
        """The steps of a turn, in their order."""
        return self._some("WHERE turn = ? ORDER BY number", (turn,))

    def open_at(self, session: int, event: int) -> "list[StepRow]":
        """The steps of a session, not in the background, that were open at an event."""
        where = (
            "WHERE turn IN (SELECT number FROM turns WHERE session = ?1) AND opened < ?2"
            " AND (closed IS NULL OR closed > ?2) AND NOT background"
        )
        return self._some(where, (session, event))

    def windows_since(self, event: int) -> "list[WindowRow]":
        """What was open at any moment after an event: steps, and turns without steps."""
        rows = []
        for query in (_WINDOWS_OF_STEPS, _WINDOWS_OF_TURNS):
            rows += self._reader.rows(f"{query} IS NULL AND t.{self._here}")
            rows += self._reader.rows(f"{query} > ? AND t.{self._here}", (event,))
        return [WindowRow(*row) for row in rows]

    def late(self, session: int, *, background: bool = False) -> "list[StepRow]":
        """The open steps of a session whose turn is over; with or without those in background."""
        where = (
            "WHERE closed IS NULL AND (? OR NOT background) AND EXISTS (SELECT 1 FROM turns t"
            f" WHERE t.number = steps.turn AND t.session = ? AND t.closed IS NOT NULL"
            f" AND t.{self._here})"
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

    def in_background(self, session: str, *kinds: str) -> "list[str]":
        """The steps of a session that go on in the background, of some kinds or of all."""
        only = f" AND s.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        return self._reader.column(_OPEN + "z.id = ? AND s.background" + only, (session, *kinds))

    def running(self, turn: str, kind: str) -> "list[str]":
        """The steps of a kind in a turn that run, and are not in the background."""
        query = _OPEN + "s.kind = ? AND t.id = ? AND NOT s.background"
        return self._reader.column(query, (kind, turn))

    def open_calls(self, word: str) -> "list[tuple[str, str, str]]":
        """The steps that run with a word in the name of their tool: session, tool, summary."""
        query = (
            "SELECT z.id, s.tool, s.summary FROM steps s JOIN turns t ON t.number = s.turn"
            " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND NOT s.background"
            f" AND instr(lower(s.tool), ?) AND t.{self._here} ORDER BY s.number"
        )
        return self._reader.rows(query, (word,))

    def find_like(self, turn: str, likeness: str) -> "str | None":
        """The oldest step of a turn that runs and whose hook had this likeness."""
        query = (
            "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn JOIN events e"
            " ON e.seq = s.opened WHERE s.closed IS NULL AND s.background <> ? AND t.id = ?"
            " AND e.request LIKE 'hook % ' || ? ORDER BY s.number LIMIT 1"
        )
        id: str | None = self._reader.value(query, (DETACHED, turn, likeness))
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
