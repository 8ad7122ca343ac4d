"""Effects outside the files, calls that the guard refused, and its modes: tables and questions.

effects        what a call did, or tried to do, that no checkpoint holds. `status` is empty for the
               effect of a step, which has that of its step; `undone` is how its inverse ended
refusals       calls that the guard refused or asked about; `trace` finds the same call again
allowances     refusals that the user allowed, once or for a session; `used` is the event that did
guard_modes    the modes that were set, when, and by whom

An effect comes with the event of its step (`effects`), or with one of its own, if a harness
reported it. Its words are masked before they are recorded, as those of steps are.
"""

from takeback.disk import operations
from takeback.ledger.database import Table
from takeback.ledger.log import events
from takeback.model.text import json_text
from takeback.model.value import Value
from takeback.model.words import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]

ONCE, IN_SESSION = "once", "session"
"""How long a call is allowed that the guard refused."""

_SELECT = (
    "SELECT e.number, e.id, e.event, e.at, z.id, z.agent, t.id, coalesce(s.id, ''), e.class,"
    " e.kind, e.target, e.host, e.inverse, e.rule,"
    " CASE WHEN e.status <> '' THEN e.status ELSE coalesce(s.status, '') END, e.undone"
    " FROM effects e LEFT JOIN turns t ON t.number = e.turn"
    " LEFT JOIN sessions z ON z.number = e.session LEFT JOIN steps s ON s.number = e.step "
)
_REFUSALS = (
    "SELECT r.number, r.id, r.at, z.id, z.agent, coalesce(t.id, ''), r.verdict, r.tool, r.summary,"
    " r.class, r.rule, r.reason, r.instead, r.trace,"
    " coalesce((SELECT a.scope FROM allowances a WHERE a.refusal = r.number"
    " ORDER BY a.event DESC LIMIT 1), '')"
    " FROM refusals r JOIN sessions z ON z.number = r.session"
    " LEFT JOIN turns t ON t.number = r.turn "
)

_INSERT = "INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_REFUSAL = "INSERT INTO refusals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class EffectRow(Value):
    """What the ledger holds of an effect."""

    number: int
    id: str
    event: int
    at: int
    session: str
    agent: str
    turn: str
    step: str
    effect: str
    kind: str
    target: str
    host: str
    inverse: str
    rule: str
    status: str
    undone: str


class RefusalRow(Value):
    """A call that the guard refused, or asked about; `allowed` is how the user allowed it."""

    number: int
    id: str
    at: int
    session: str
    agent: str
    turn: str
    verdict: str
    tool: str
    summary: str
    effect: str
    rule: str
    reason: str
    instead: str
    trace: str
    allowed: str


class ModeRow(Value):
    """A mode of the guard that was set: when, by whom, and what was before."""

    at: int
    before: str
    after: str
    author: str


class Effects(Table):
    """What is asked about effects and about the guard."""

    __slots__ = ()
    table = "effects"
    what, time, label = "'effect ' || kind", "at", "target"

    def has_any(self) -> bool:
        """Whether there is an effect at all; each plan asks."""
        return self._reader.has("SELECT 1 FROM effects LIMIT 1")

    def all(self, session: str = "", limit: int = -1) -> "list[EffectRow]":
        """The effects of the line, or of a session of it, the newest first."""
        only = " AND z.id = ?" if session else ""
        where = f"WHERE e.line = {self._reader.line}{only} ORDER BY e.number DESC LIMIT ?"
        return self._some(where, (*([session] if session else []), limit))

    def of_turns(self, turns: "Iterable[str]") -> "list[EffectRow]":
        """The effects of turns, the oldest first."""
        where = "WHERE t.id IN (SELECT value FROM json_each(?)) ORDER BY e.number"
        return self._some(where, (json_text.dumps(list(turns)),))

    def since(self, event: int, session: "int | None" = None) -> "list[EffectRow]":
        """The effects since an event, of a session or of all, the oldest first."""
        where = (
            f"WHERE e.event > ? AND e.line = {self._reader.line}"
            " AND (?2 IS NULL OR e.session = ?2) ORDER BY e.number"
        )
        return self._some(where, (event, session))

    def with_prefix(self, prefix: str) -> "list[EffectRow]":
        """The effects whose ids begin so."""
        where = f"WHERE e.line = {self._reader.line} AND substr(e.id, 1, ?) = ?"
        return self._some(where, (len(prefix), prefix))

    def refusals(self, limit: int = -1) -> "list[RefusalRow]":
        """Calls that were refused or asked about, the newest first."""
        rows = self._reader.rows(_REFUSALS + "ORDER BY r.number DESC LIMIT ?", (limit,))
        return [RefusalRow(*row) for row in rows]

    def refusals_with_prefix(self, prefix: str) -> "list[RefusalRow]":
        """The refusals whose ids begin so."""
        where = "WHERE substr(r.id, 1, ?) = ?"
        rows = self._reader.rows(_REFUSALS + where, (len(prefix), prefix))
        return [RefusalRow(*row) for row in rows]

    def allowance(self, session: str, call: str, effect: str) -> "tuple[str, str] | None":
        """The id of the refusal and the scope by which the user allowed a call of a session."""
        query = (
            "SELECT r.id, a.scope FROM allowances a JOIN refusals r ON r.number = a.refusal"
            " JOIN sessions z ON z.number = r.session WHERE z.id = ? AND r.trace = ?"
            " AND r.class = ? AND (a.scope = ? OR a.used IS NULL) ORDER BY a.event DESC LIMIT 1"
        )
        row = self._reader.one(query, (session, call, effect, IN_SESSION))
        return (str(row[0]), str(row[1])) if row else None

    def counts(self) -> "tuple[int, int]":
        """How many calls were refused, and how many effects were recorded."""
        refused = self._reader.value("SELECT count(*) FROM refusals WHERE verdict = 'deny'")
        return int(refused), int(self._reader.value("SELECT count(*) FROM effects"))

    def agent_processes(self) -> "list[str]":
        """The processes of agents that reported a session, as `machine.holder` names them."""
        return self._reader.column("SELECT DISTINCT process FROM sessions WHERE process <> ''")

    def modes(self) -> "list[ModeRow]":
        """The modes that were set, the newest first."""
        query = "SELECT at, before, after, author FROM guard_modes ORDER BY event DESC"
        return [ModeRow(*row) for row in self._reader.rows(query)]

    def _some(self, where: str, values: "tuple[Any, ...]") -> "list[EffectRow]":
        return [EffectRow(*row) for row in self._reader.rows(_SELECT + where, values)]


# -- how the tables follow events ----------------------------------------------------------


def follow_step(to: "Tables", event: "Event", said: "Said") -> None:
    """What a step would do outside, as far as its call tells."""
    turn = to.number("turns", said.get("turn"))
    step = to.number("steps", said.get("step"))
    _add(to, event, said, (to.session_of(turn), turn, step), "")
    _use_allowance(to, event, said)


def follow_refusal(to: "Tables", event: "Event", said: "Said") -> None:
    """A call that the guard refused, or asked about."""
    session = to.number("sessions", said.get("session"))
    turn = to.number("turns", said.get("turn"))
    texts = [str(said.get(key) or "") for key in ("verdict", "tool", "summary", "class", "rule")]
    reason = json_text.dumps(said.get("reason") or {})  # type: ignore[arg-type]
    more = (reason, str(said.get("instead") or ""), str(said.get("trace") or ""))
    row = (to.next("refusals"), str(said["refusal"]), event.seq, event.at, session, turn)
    operations.sql(to.db, _INSERT_REFUSAL, (*row, *texts, *more))
    _add(to, event, said, (session, turn, None), "refused")


def _add(
    to: "Tables",
    event: "Event",
    said: "Said",
    place: "tuple[int | None, int | None, int | None]",
    status: str,
) -> None:
    told = said.get("effects")
    line = (
        to.line_of_turn(place[1])
        if place[1] is not None
        else to.number("lines", said.get("line", "main"))
    )
    for each in told if isinstance(told, list) else ():
        id, *words = map(str, each)
        values: tuple[str | int | None, ...] = (
            to.next("effects"),
            id,
            event.seq,
            event.at,
            *place,
            *words,
            status,
            "",
            line,
        )
        operations.sql(to.db, _INSERT, values)


def _reported(to: "Tables", event: "Event", said: "Said") -> None:
    """A harness reported what it did outside."""
    turn, step = to.number("turns", said.get("turn")), to.number("steps", said.get("step"))
    place = (to.session_of(turn), turn, step)
    _add(to, event, said, place, str(said.get("status") or "done"))
    _use_allowance(to, event, said)


def _compensated(to: "Tables", event: "Event", said: "Said") -> None:
    """An inverse command was begun, or ended."""
    del event
    change = "UPDATE effects SET undone = ? WHERE id = ?"
    operations.sql(to.db, change, (str(said.get("outcome", "")), str(said.get("effect"))))


def _mode_set(to: "Tables", event: "Event", said: "Said") -> None:
    before, after, by = (str(said.get(key) or "") for key in ("before", "after", "by"))
    row = (event.seq, event.at, before, after, by)
    operations.sql(to.db, "INSERT INTO guard_modes VALUES (?, ?, ?, ?, ?)", row)


def _allowed(to: "Tables", event: "Event", said: "Said") -> None:
    refusal = to.number("refusals", said.get("refusal"))
    if refusal is not None:
        row = (event.seq, refusal, str(said.get("scope") or ONCE), None)
        operations.sql(to.db, "INSERT INTO allowances VALUES (?, ?, ?, ?)", row)


def _use_allowance(to: "Tables", event: "Event", said: "Said") -> None:
    """A call was made that the user allowed: one that was allowed once is not, any more."""
    refusal = to.number("refusals", said.get("allowed"))
    if refusal is not None:
        change = "UPDATE allowances SET used = ? WHERE refusal = ? AND used IS NULL AND scope = ?"
        operations.sql(to.db, change, (event.seq, refusal, ONCE))


def forget_words(said: "dict[str, Any]") -> None:
    """Take out of an event what a call of a forgotten turn was about; its class stays."""
    told = said.get("effects", ())
    said["effects"] = [[*row[:3], GONE, "", "", *row[6:]] for row in told]
    if said.get("refusal"):
        said |= {"summary": GONE, "reason": {"code": GONE}, "instead": "", "trace": ""}


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.EFFECT_REPORTED: _reported,
    events.EFFECT_COMPENSATED: _compensated,
    events.GUARD_MODE_SET: _mode_set,
    events.GUARD_ALLOWED: _allowed,
    events.GUARD_ASKED: follow_refusal,
}
