"""Plans of work and their steps, in words and as JSON."""

from takeback.cli.screen import timestamp
from takeback.model import words as terms
from takeback.model.text.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.model.history import Log, RecordedPlan, RecordedPlanStep, RecordedTurn
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

_UNDONE = "undone"
_INDENT = "  "


def headline(plan: "RecordedPlan", screen: "Screen") -> str:
    """What stands above the steps of a plan in a list."""
    return f"   plan {screen.title(plan.label)}  ({_state(plan)})"


def _state(plan: "RecordedPlan") -> str:
    """How far a plan is."""
    states = [step.status for step in plan.steps]
    told = [status for status in (terms.FAILED, _UNDONE) if status in states]
    said = [
        *([plan.status] if plan.status != terms.DONE else []),
        count(states.count(terms.DONE), "step") + " done",
        *(f"{states.count(status):,} {status}" for status in told),
    ]
    return ", ".join(said)


def title(turn: "RecordedTurn", screen: "Screen") -> str:
    """What a turn is called in a list: steps stand below their plan."""
    indent = _INDENT if turn.plan is not None else ""
    return indent + screen.title(turn.label)


def of_turn(turn: "RecordedTurn") -> str:
    """The plan of a turn, and which step of it the turn is."""
    if turn.plan is None:
        return ""
    steps = [step.id for step in turn.plan.steps]
    place = f"step {steps.index(turn.id) + 1} of {len(steps)}" if turn.id in steps else "a step"
    own = _own(turn)
    key = f", key {own.key}" if own is not None and own.key else ""
    status = f", {own.status}" if own is not None else ""
    return f"{turn.plan.label}  ({place}{key}{status})"


def _own(turn: "RecordedTurn") -> "RecordedPlanStep | None":
    steps = turn.plan.steps if turn.plan is not None else ()
    return next((step for step in steps if step.id == turn.id), None)


def of_turn_json(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> "Json":
    """The plan that a turn is a step of, as a field of the turn."""
    own = _own(turn)
    if turn.plan is None or own is None:
        return None
    return {
        "id": turn.plan.id,
        "label": masker.words(turn.plan.label),
        "key": own.key or None,
        "status": own.status,
    }


def plans_json(log: "Log", masker: "Masker") -> "list[Json]":
    """The plans that the listed turns are steps of, the newest first."""
    plans = {turn.plan.id: turn.plan for turn in log.turns if turn.plan is not None}
    return [_as_json(plan, masker) for plan in plans.values()]


def _as_json(plan: "RecordedPlan", masker: "Masker") -> "Json":
    return {
        "id": plan.id,
        "own_id": plan.own_id or None,
        "label": masker.words(plan.label),
        "session": plan.session,
        "status": plan.status,
        "started": timestamp(plan.started),
        "ended": None if plan.ended is None else timestamp(plan.ended),
        "steps": [
            {
                "turn": step.id,
                "label": masker.words(step.label),
                "key": step.key or None,
                "status": step.status,
                "databases": step.databases,
                "lesson": step.lesson or None,
            }
            for step in plan.steps
        ],
    }
