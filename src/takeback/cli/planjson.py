"""A plan and the report of one as JSON, as documented in docs/json.md."""

from takeback.model.jsontext import path_fields
from takeback.model.secrets import without_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.jsontext import Json
    from takeback.model.plan import Conflict, Dependent, Plan, PlannedChange, Remark, Report


def of_plan(plan: "Plan") -> "dict[str, Json]":
    """A plan as documented in docs/json.md."""
    return _json(plan, None)


def of_report(made: "Report") -> "dict[str, Json]":
    """A report as documented in docs/json.md: the plan, and what became of it."""
    return _json(made.plan, made)


def _json(plan: "Plan", made: "Report | None") -> "dict[str, Json]":
    return {
        "verb": plan.verb,
        "target": plan.target or None,
        "base": plan.base,
        "entry": plan.entry or None,
        "turns": list(plan.turns),
        "title": without_tokens(plan.title),
        "session": plan.session or None,
        "agent": plan.agent or None,
        "newest": plan.is_newest,
        "changes": [_change(change) for change in plan.changes],
        "conflicts": [_conflict(each) for each in plan.conflicts],
        "kept": _remarks((*plan.kept, *(made.kept if made else ()))),
        "skipped": _remarks(plan.skipped),
        "shared": _remarks(plan.shared),
        "rescued": _remarks(made.rescued if made else ()),
        "doubts": list(plan.doubts),
        "stays": list(plan.stays),
        "covers": list(plan.covers),
        "passed_over": plan.passed_over,
        "effects": [],
        "dependents": [_dependent(each) for each in plan.dependents],
        "done": made is not None and bool(made.id),
        "id": (made.id or None) if made else None,
        "before": (made.before or None) if made else None,
        "after": (made.after or None) if made else None,
        "because": (made.because or None) if made else None,
        "problems": list(made.problems) if made else [],
        "undo": (made.undo or None) if made else None,
    }


def _change(change: "PlannedChange") -> "dict[str, Json]":
    return {
        **path_fields(change.path),
        "verb": change.verb,
        "whose": list(change.whose),
        "how": change.how or None,
        "along": change.along or None,
        "merged": change.merged or None,
        "outside": change.outside,
    }


def _dependent(dependent: "Dependent") -> "dict[str, Json]":
    return {
        "id": dependent.id,
        "title": without_tokens(dependent.title),
        "agent": dependent.agent or None,
        "paths": [path_fields(path) for path in dependent.paths],
    }


def _conflict(conflict: "Conflict") -> "dict[str, Json]":
    from takeback.cli import clashes

    said = {**path_fields(conflict.path), "reason": conflict.reason}
    return said | clashes.as_json(conflict)


def _remarks(remarks: "Iterable[Remark]") -> "list[Json]":
    return [{**path_fields(each.path), "reason": each.reason} for each in remarks]
