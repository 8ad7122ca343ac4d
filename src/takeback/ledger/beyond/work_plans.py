"""Plans of work and their steps: their tables, how they follow from events, what is asked.

work_plans  what an agent set out to do; `own_id` is what the agent calls it, to go on with it
plan_steps  the turns that are steps of a plan. `key` tells which step it is, whatever its label;
            `back` is the event with which the plan took it back though it had changed nothing

Whether a step was taken back since follows from its turn, as with any other turn.
"""

from takeback.disk import operations
from takeback.ledger.database import Table
from takeback.ledger.log import events
from takeback.model.history import RecordedPlan, RecordedPlanStep
from takeback.model.text import json_text
from takeback.model.value import Value
from takeback.model.words import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from takeback.ledger.log.events import Event
    from takeback.ledger.schema import Tables

    Said = Mapping[str, object]


class PlanRow(Value):
    """What the ledger holds of a plan of work."""

    number: int
    id: str
    event: int
    started: int
    session: int
    own_id: str
    label: str
    status: str
    ended: "int | None"


class PlanStepRow(Value):
    """What the ledger holds of a step of a plan, and of its turn.

    `taken` is the restore that took the turn back, or went back over it. `is_entry` tells that the
    turn changed something that an undo takes back.
    """

    turn: int
    id: str
    plan: int
    label: str
    key: str
    databases: bool
    status: str
    result: "str | None"
    lesson: str
    back: "int | None"
    taken: "int | None"
    is_entry: bool

    @property
    def is_back(self) -> bool:
        """Whether it was taken back, by whomever."""
        return self.taken is not None or self.back is not None


UNDONE = "undone"
"""What became of a step that was taken back, by whomever."""
_PLAN = f"SELECT {', '.join(f'p.{name}' for name in PlanRow._fields)} FROM work_plans p "
_STEP = (
    "SELECT s.turn, t.id, s.plan, t.label, s.key, s.databases, s.status, s.result, s.lesson,"
    " s.back, coalesce(t.covered, t.undone), t.paths > 0"
    " FROM plan_steps s JOIN turns t ON t.number = s.turn "
)


class WorkPlans(Table):
    """What is asked about plans of work."""

    __slots__ = ()
    table = "work_plans"
    what, label = "'plan'", "label"

    def get(self, id: str) -> "PlanRow | None":
        """The plan with an id."""
        return self._first("WHERE p.id = ?", (id,))

    def find(self, own_id: str) -> "PlanRow | None":
        """The plan that an agent calls so."""
        where = f"WHERE p.{self._here} AND p.own_id = ? AND p.own_id <> ''"
        return self._first(where, (own_id,)) if own_id else None

    def steps(self, plan: int) -> "list[PlanStepRow]":
        """The steps of a plan, the oldest first."""
        rows = self._reader.rows(_STEP + "WHERE s.plan = ? ORDER BY s.turn", (plan,))
        return list(map(_step, rows))

    def of_turns(self, turns: "Iterable[int]") -> "list[PlanStepRow]":
        """Those of some turns that are steps of a plan."""
        if not self._reader.has("SELECT 1 FROM plan_steps LIMIT 1"):
            return []
        where = "WHERE s.turn IN (SELECT value FROM json_each(?)) ORDER BY s.turn"
        return list(map(_step, self._reader.rows(_STEP + where, (json_text.dumps(list(turns)),))))

    def numbered(self, numbers: "Iterable[int]") -> "list[PlanRow]":
        """Plans by their numbers, the newest first."""
        where = "WHERE p.number IN (SELECT value FROM json_each(?)) ORDER BY p.number DESC"
        rows = self._reader.rows(_PLAN + where, (json_text.dumps(list(numbers)),))
        return [PlanRow(*row) for row in rows]

    def told_of(self, turns: "Iterable[int]") -> "dict[int, RecordedPlan]":
        """The plans that some turns are steps of, by the numbers of the turns."""
        rows = self.of_turns(turns)
        if not rows:
            return {}
        found = self.numbered({row.plan for row in rows})
        plans = {row.number: self.recorded(row) for row in found}
        return {row.turn: plans[row.plan] for row in rows}

    def recorded(self, row: PlanRow) -> RecordedPlan:
        """A plan with all its steps, as the log tells it."""
        steps = tuple(as_step(row.id, each) for each in self.steps(row.number))
        session = str(
            self._reader.value("SELECT id FROM sessions WHERE number = ?", (row.session,)) or ""
        )
        ended = None if row.ended is None else row.ended / 1e9
        times = (row.started / 1e9, ended)
        return RecordedPlan(row.id, row.own_id, row.label, session, row.status, *times, steps)

    def _first(self, where: str, values: "tuple[str, ...]") -> "PlanRow | None":
        row = self._reader.one(_PLAN + where, values)
        return PlanRow(*row) if row else None


def as_step(plan: str, row: PlanStepRow) -> RecordedPlanStep:
    """A step of a plan, as the log tells it."""
    return RecordedPlanStep(
        row.id,
        plan,
        row.label,
        row.key,
        UNDONE if row.is_back else row.status,
        databases=row.databases,
        result=json_text.loads(row.result) if row.result is not None else None,
        lesson=row.lesson,
    )


def _step(row: "tuple[Any, ...]") -> PlanStepRow:
    return PlanStepRow(*(*row[:5], bool(row[5]), *row[6:11], bool(row[11])))


# -- how the tables follow events ----------------------------------------------------------


def _started(to: "Tables", event: "Event", said: "Said") -> None:
    session = to.number("sessions", said.get("session"))
    line = to.number("lines", said.get("line", "main"))
    names = (str(said.get("own_id") or ""), str(said.get("label") or ""))
    row = (to.next("work_plans"), str(said["plan"]), event.seq, event.at, session, *names)
    change = "INSERT INTO work_plans VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
    operations.sql(to.db, change, (*row, RUNNING, line))


def _resumed(to: "Tables", event: "Event", said: "Said") -> None:
    """It goes on, perhaps in another session."""
    del event
    session = to.number("sessions", said.get("session"))
    change = "UPDATE work_plans SET status = ?, ended = NULL, session = ? WHERE id = ?"
    operations.sql(to.db, change, (RUNNING, session, str(said.get("plan"))))


def _ended(to: "Tables", event: "Event", said: "Said") -> None:
    change = "UPDATE work_plans SET status = ?, ended = ? WHERE id = ?"
    operations.sql(to.db, change, (str(said.get("status")), event.at, str(said.get("plan"))))


def _step_started(to: "Tables", event: "Event", said: "Said") -> None:
    turn, plan = to.number("turns", said.get("turn")), to.number("work_plans", said.get("plan"))
    if turn is None or plan is None:
        return
    key, databases = str(said.get("key") or ""), bool(said.get("databases"))
    row = (turn, plan, event.seq, key, databases, RUNNING)
    change = "INSERT INTO plan_steps VALUES (?, ?, ?, ?, ?, ?, NULL, '', NULL)"
    operations.sql(to.db, change, row)


def _step_ended(to: "Tables", event: "Event", said: "Said") -> None:
    del event
    result = json_text.dumps(said["result"]) if "result" in said else None  # type: ignore[arg-type]
    words = (str(said.get("status")), result, str(said.get("lesson") or ""))
    change = "UPDATE plan_steps SET status = ?, result = ?, lesson = ? WHERE turn = ?"
    operations.sql(to.db, change, (*words, to.number("turns", said.get("turn"))))


def _taken_back(to: "Tables", event: "Event", said: "Said") -> None:
    """The plan took steps back. Of those that changed something their turns tell that."""
    turns = said.get("turns")
    numbers = [to.number("turns", id) for id in (turns if isinstance(turns, list) else ())]
    change = "UPDATE plan_steps SET back = ? WHERE turn = ?"
    operations.sql_many(to.db, change, [(event.seq, number) for number in numbers])


FOLLOW: "dict[str, Callable[[Tables, Event, Said], None]]" = {
    events.WORK_PLAN_STARTED: _started,
    events.WORK_PLAN_RESUMED: _resumed,
    events.WORK_PLAN_ENDED: _ended,
    events.PLAN_STEP_STARTED: _step_started,
    events.PLAN_STEP_ENDED: _step_ended,
    events.PLAN_STEPS_TAKEN_BACK: _taken_back,
}
