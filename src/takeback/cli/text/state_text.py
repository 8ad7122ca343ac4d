"""What became of a turn, in words: failed, undone, partly undone, shared with whom.

Also the plan that it is a step of, in words and as JSON.
"""

from takeback.cli.screen import cut, safe_line, timestamp, title
from takeback.model import words as terms
from takeback.model.text.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.model.history import Log, RecordedPlan, RecordedPlanStep, RecordedTurn
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

_LONGEST = 40
"""Columns of what another turn is called."""


def state(turn: "RecordedTurn") -> str:
    """How a turn ended, and what became of it: `failed, exit code 2`, `undone`."""
    if turn.undone:
        return "undone"
    failed = f", exit code {turn.exit_code}" if turn.exit_code else ""
    parts = [turn.status + failed] if turn.status != terms.DONE else []
    return ", ".join([*parts, "partly undone"] if turn.undone_in_part else parts)


def undone(found: "RecordedTurn") -> str:
    """By which restore a turn was taken back, or a part of it."""
    if found.undone:
        return f"by {found.undone[:8]}"
    return f"in part, by {found.undone_in_part[:8]}" if found.undone_in_part else ""


def shared_with(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> str:
    """With whom a turn shares changes: `shared with "Tidy up" (codex)`."""
    with_whom = [
        f'"{cut(title(masker.words(each.label)), _LONGEST)}" ({each.agent})'
        for each in turn.shared_with
    ]
    from takeback.cli.text import reason_text

    undone = ", taken back since" if turn.is_shared_undone else ""
    return safe_line(f"shared with {reason_text.names(with_whom) or 'another session'}{undone}")


_UNDONE = "undone"
_INDENT = "  "


def plan_headline(plan: "RecordedPlan", screen: "Screen") -> str:
    """What stands above the steps of a plan in a list."""
    return f"   plan {screen.title(plan.label)}  ({_how_far(plan)})"


def _how_far(plan: "RecordedPlan") -> str:
    """How far a plan is."""
    states = [step.status for step in plan.steps]
    told = [status for status in (terms.FAILED, _UNDONE) if status in states]
    said = [
        *([plan.status] if plan.status != terms.DONE else []),
        count(states.count(terms.DONE), "step") + " done",
        *(f"{states.count(status):,} {status}" for status in told),
    ]
    return ", ".join(said)


def step_title(turn: "RecordedTurn", screen: "Screen") -> str:
    """What a turn is called in a list: steps stand below their plan."""
    indent = _INDENT if turn.plan is not None else ""
    return indent + screen.title(turn.label)


def plan_of_turn(turn: "RecordedTurn") -> str:
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


def plan_of_turn_json(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> "Json":
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
    return [_plan_json(plan, masker) for plan in plans.values()]


def _plan_json(plan: "RecordedPlan", masker: "Masker") -> "Json":
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
