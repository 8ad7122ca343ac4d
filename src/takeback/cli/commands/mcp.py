"""`takeback mcp`: the server that agents call; see `takeback.mcp`.

It lends its words to that door: the JSON and the sentences of the command line (`mcp.voice`).
"""

import os
import sys

from takeback.cli import diff_view
from takeback.cli.app import folder
from takeback.cli.commands import checkpoint as checkpoint_text
from takeback.cli.parser import BEYOND, Arguments, Command
from takeback.cli.screen import title
from takeback.cli.text import action_text, now_text, reason_text, turn_text
from takeback.cli.text.restores import plan_text
from takeback.model.beyond.participants import STAYS
from takeback.model.history import RecordedTurn
from takeback.model.text.json_text import path_fields
from takeback.model.words import REDO, ROLLBACK, UNDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.cli.screen import Screen
    from takeback.history.compare import Comparison
    from takeback.history.unified import Shown
    from takeback.lessons.lesson import Lesson
    from takeback.model.history import Log, RecordedCheckpoint, RecordedStep, Unrecorded
    from takeback.model.plan import Plan, Report
    from takeback.model.reasons import Action, Reason
    from takeback.model.results import Checkpoint, Status
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

    Fields = dict[str, Json]

COMMAND = Command(
    "mcp",
    "serve the history to an agent as tools",
    text=(
        "A server of the Model Context Protocol on stdin and stdout; an agent starts it, not you.\n"
        "It serves the project of the folder that it is started in, or of -C DIR. The agent can\n"
        "look at the history, make checkpoints, preview an undo, and take back its own changes.\n"
        "For anything else it gets a command for you. It needs `pip install 'takeback[mcp]'`."
    ),
    examples=(
        ("claude mcp add takeback -- takeback mcp", "let Claude Code start it"),
        ("codex mcp add takeback -- takeback mcp", "let Codex start it"),
    ),
    group=BEYOND,
)

_DOING = {UNDO: "Take back", REDO: "Put back", ROLLBACK: "Roll back to"}
_MOST_PATHS = 10
_LONGEST_REASON = 200
_NOT_TOLD = ("base", "tree", "cursor", "authors", "check", "conversations")
"""Fields that are for programs only."""


def run(given: "Arguments", screen: "Screen") -> int:
    from takeback import environment
    from takeback.mcp import serve
    from takeback.mcp.door import Door

    del screen
    place = os.path.abspath(folder(given))
    door = Door(place, environment.default_home(), environment.user_home(), sys.modules[__name__])
    serve.server(door)()
    return 0


# -- the words that it lends ---------------------------------------------------------------------


def _told(fields: "Fields") -> "Fields":
    return {name: value for name, value in fields.items() if name not in _NOT_TOLD}


def status(status: "Status", seen: "Unrecorded", masker: "Masker") -> "Fields":
    newest = status.newest
    return {
        "project": status.project,
        "root": path_fields(status.raw_root),
        "checkpoints": status.checkpoints,
        "newest": checkpoint(newest, masker) if newest is not None else None,
        "now": now_text.as_json(seen, masker),
        "not_covered": [{**path_fields(x.raw_path), "reason": x.reason} for x in status.left_out],
    }


def log(log: "Log", masker: "Masker") -> "Fields":
    return {
        "turns": [_told(turn_text.as_json(turn, masker)) for turn in log.turns],
        "restores": [turn_text.restore_json(each, masker) for each in log.restores],
        "names": [now_text.name_json(each, masker) for each in log.names],
    }


def recorded(found: "RecordedTurn | RecordedCheckpoint", masker: "Masker") -> "Fields":
    if isinstance(found, RecordedTurn):
        steps: list[Json] = [_step(step, masker) for step in found.steps]
        return {"turn": {**_told(turn_text.as_json(found, masker)), "steps": steps}}
    fields = checkpoint(found.checkpoint, masker)
    fields["changes"] = [turn_text.change_json(change) for change in found.changes]
    return {"checkpoint": fields}


def _step(step: "RecordedStep", masker: "Masker") -> "Json":
    return {
        "id": step.id,
        "tool": step.tool,
        "kind": step.kind,
        "summary": masker.words(step.summary),
        "status": step.status,
        "exit_code": step.exit_code,
        "changes": [
            {**path_fields(change.raw_path), "verb": change.verb} for change in step.changes
        ],
    }


def lesson(lesson: "Lesson", masker: "Masker") -> "Fields":
    return {
        "id": lesson.id,
        "text": masker.words(lesson.text),
        "status": lesson.status,
        "source": lesson.source,
        "verb": lesson.verb,
        "turns": list(lesson.turns),
        "prompt": masker.words(lesson.prompt),
        "paths": [path_fields(path) for path in lesson.raw_paths],
        "files": lesson.files,
        "added": lesson.added,
        "removed": lesson.removed,
        "exit_code": lesson.exit_code,
    }


def checkpoint(made: "Checkpoint", masker: "Masker") -> "Fields":
    return _told(checkpoint_text.as_json(made, masker.words))


def plan(plan: "Plan", masker: "Masker", made: "Report | None" = None) -> "Fields":
    return _told(plan_text.as_json(plan, masker, made))


def question(plan: "Plan", because: str, masker: "Masker") -> str:
    of = f" of {plan.agent}" if plan.agent else ""
    amount = plan_text.amount(plan, done=False)
    lines = [f"{_DOING[plan.verb]} {masker.words(plan.called)}{of}: {amount}."]
    paths = [change.path or "." for change in plan.changes]
    lines += [f"- {change.verb} {change.path or '.'}" for change in plan.changes[:_MOST_PATHS]]
    lines += [f"- and {len(paths) - _MOST_PATHS:,} more"] if len(paths) > _MOST_PATHS else []
    lines += [f"! {reason(each, masker)}" for each in plan.doubts]
    own = plan_text.own_edits(plan)
    lines += [f"! {own}"] if own else []
    lines += [f"! also moves {each.name}" for each in plan.moves if each.how != STAYS]
    lines += [f"! {each.agent} is working on these files" for each in plan.running]
    if because:
        lines.append(f'The agent says: "{title(masker.words(because))[:_LONGEST_REASON]}"')
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)


def shown(comparison: "Comparison", masker: "Masker") -> "Iterator[Shown]":
    return diff_view.made_ready(comparison, masker)


def difference(shown: "Shown") -> "Fields":
    return diff_view.as_json(shown)


def reason(reason: "Reason", masker: "Masker") -> str:
    told = reason_text.as_json(reason, masker)
    return str(told["text"]) if isinstance(told, dict) else ""


def hint(actions: "Iterable[str | Action]") -> str:
    return action_text.hint(actions)
