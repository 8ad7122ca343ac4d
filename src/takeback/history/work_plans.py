"""Plans of work and their steps, as the log tells them."""

from takeback.model.history import RecordedPlan, RecordedPlanStep
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.beyond.work_plans import PlanRow, PlanStepRow
    from takeback.ledger.ledger import Ledger

UNDONE = "undone"
"""What became of a step that was taken back, by whomever."""


def of_turns(ledger: "Ledger", turns: "Iterable[int]") -> "dict[int, RecordedPlan]":
    """The plans that some turns are steps of, by the numbers of the turns."""
    rows = ledger.turns.plans.of_turns(turns)
    if not rows:
        return {}
    found = ledger.turns.plans.numbered({row.plan for row in rows})
    plans = {row.number: as_plan(ledger, row) for row in found}
    return {row.turn: plans[row.plan] for row in rows}


def as_plan(ledger: "Ledger", row: "PlanRow") -> RecordedPlan:
    """A plan with all its steps."""
    steps = tuple(as_step(row.id, each) for each in ledger.turns.plans.steps(row.number))
    session = ledger.sessions.numbered(row.session).id
    ended = None if row.ended is None else row.ended / 1e9
    times = (row.started / 1e9, ended)
    return RecordedPlan(row.id, row.own_id, row.label, session, row.status, *times, steps)


def as_step(plan: str, row: "PlanStepRow") -> RecordedPlanStep:
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
