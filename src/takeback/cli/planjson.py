"""A plan and the report of one as JSON, as documented in docs/json.md."""

from takeback.model.jsontext import path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.jsontext import Json
    from takeback.model.masking import Masker
    from takeback.model.plan import Conflict, Dependent, Plan, PlannedChange, Remark, Report


def of_plan(
    plan: "Plan", masker: "Masker", conversations: "list[Json] | None" = None
) -> "dict[str, Json]":
    """A plan as documented in docs/json.md."""
    return _json(plan, None, masker, conversations)


def of_report(
    made: "Report", masker: "Masker", conversations: "list[Json] | None" = None
) -> "dict[str, Json]":
    """A report as documented in docs/json.md: the plan, and what became of it."""
    return _json(made.plan, made, masker, conversations)


def _json(
    plan: "Plan",
    made: "Report | None",
    masker: "Masker",
    conversations: "list[Json] | None",
) -> "dict[str, Json]":
    words = masker.words
    return {
        "verb": plan.verb,
        "target": plan.target or None,
        "base": plan.base,
        "entry": plan.entry or None,
        "turns": list(plan.turns),
        "title": words(plan.title),
        "session": plan.session or None,
        "agent": plan.agent or None,
        "newest": plan.is_newest,
        "changes": [_change(change, masker) for change in plan.changes],
        "conflicts": [_conflict(each, masker) for each in plan.conflicts],
        "kept": _remarks((*plan.kept, *(made.kept if made else ())), masker),
        "skipped": _remarks(plan.skipped, masker),
        "shared": _remarks(plan.shared, masker),
        "rescued": _remarks(made.rescued if made else (), masker),
        "doubts": [words(text) for text in plan.doubts],
        "stays": [words(text) for text in plan.stays],
        "covers": list(plan.covers),
        "passed_over": plan.passed_over,
        "effects": [],
        "dependents": [_dependent(each, masker) for each in plan.dependents],
        "done": made is not None and bool(made.id),
        "id": (made.id or None) if made else None,
        "before": (made.before or None) if made else None,
        "after": (made.after or None) if made else None,
        "because": (words(made.because) or None) if made else None,
        "problems": [words(text) for text in made.problems] if made else [],
        "undo": (made.undo or None) if made else None,
        "conversations": conversations or [],
    }


def _change(change: "PlannedChange", masker: "Masker") -> "dict[str, Json]":
    return {
        **path_fields(change.path),
        "verb": change.verb,
        "whose": [masker.words(name) for name in change.whose],
        "how": change.how or None,
        "along": masker.words(change.along) or None,
        "merged": masker.words(change.merged) or None,
        "outside": change.outside,
    }


def _dependent(dependent: "Dependent", masker: "Masker") -> "dict[str, Json]":
    return {
        "id": dependent.id,
        "title": masker.words(dependent.title),
        "agent": dependent.agent or None,
        "paths": [path_fields(path) for path in dependent.paths],
    }


def _conflict(conflict: "Conflict", masker: "Masker") -> "dict[str, Json]":
    from takeback.cli import clashes

    said = {**path_fields(conflict.path), "reason": masker.words(conflict.reason)}
    return said | clashes.as_json(conflict, masker)


def _remarks(remarks: "Iterable[Remark]", masker: "Masker") -> "list[Json]":
    return [{**path_fields(each.path), "reason": masker.words(each.reason)} for each in remarks]
