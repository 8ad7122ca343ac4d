"""Runs the inverse commands of effects: on the user's word only, the newest effect first.

Each outcome is recorded, before a command starts and after it ends. So one that was done is not run
again, and of one that was interrupted it is known that nobody knows.
"""

import time

from takeback.disk import programs
from takeback.disk.failures import FailingAs
from takeback.effects.effect_log import as_effect, is_undone
from takeback.errors import TakebackError, UnknownReferenceError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import words
from takeback.model.reasons import Action
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.capture.workspace import Workspace
    from takeback.model.beyond.effects import Effect

_PATIENCE = 300.0
_LONGEST = 2000
_CANNOT_RUN = 127


class Compensation(Value):
    """What became of one effect: its outcome, and what the command printed last."""

    effect: "Effect"
    outcome: str
    code: int = 0
    output: str = ""


def choose(work: "Workspace", ids: "Iterable[str]" = ()) -> "tuple[Effect, ...]":
    """The effects whose inverse may be run, the newest first: those named, or all that stay.

    One whose inverse was begun and never ended has to be named.
    """
    with FailingAs(TakebackError, "the store could not be read"):
        wanted = list(ids)
        if not wanted:
            every = map(as_effect, work.ledger.effects.all())
            return tuple(each for each in every if _can(each) and each.undone != words.RUNNING)
        found = [_named(work, id) for id in wanted]
    newest_first = sorted(found, key=lambda each: -each.at)
    return tuple(each for each in dict.fromkeys(newest_first) if _can(each))


def _can(effect: "Effect") -> bool:
    return bool(effect.inverse) and effect.status != words.REFUSED and not is_undone(effect)


def _named(work: "Workspace", id: str) -> "Effect":
    rows = work.ledger.effects.with_prefix(id)
    if len(rows) != 1 or not id:
        what = "several effects match" if rows and id else "no effect matches"
        raise UnknownReferenceError(f"{what} `{id}`", hint=Action("effects"))
    effect = as_effect(rows[0])
    if not effect.inverse:
        raise UnknownReferenceError(
            f"no command is known that takes back the effect `{effect.id[:8]}`",
            hint=Action("effects"),
        )
    return effect


def run(work: "Workspace", chosen: "Iterable[Effect]") -> "list[Compensation]":
    """Run the inverse of each, one after the other; one that fails hides no other."""
    return [_run(work, each) for each in chosen]


def _run(work: "Workspace", effect: "Effect") -> Compensation:
    with work.held():
        (row,) = work.ledger.effects.with_prefix(effect.id)
        if is_undone(as_effect(row)):
            return Compensation(effect, words.DONE)  # another process did it meanwhile
        _record(work, effect, words.RUNNING, row.event)
    command = ["/bin/sh", "-c", effect.inverse]
    try:
        ended = programs.run_limited(command, b"", cwd=work.root, seconds=_PATIENCE, capture=True)
        code, output = ended.code, (ended.output + ended.errors).decode("utf-8", "replace")
    except (OSError, TimeoutError) as problem:
        code, output = _CANNOT_RUN, str(problem) or "it took too long, and was stopped"
    outcome = words.FAILED if code else words.DONE
    with work.held():
        _record(work, effect, outcome, row.event)
    return Compensation(effect, outcome, code, output.strip()[-_LONGEST:])


def _record(work: "Workspace", effect: "Effect", outcome: str, event: int) -> None:
    said = {"effect": effect.id, "outcome": outcome}
    now = time.time_ns()
    work.ledger.record(NewEvent(events.EFFECT_COMPENSATED, said, now, parents=(event,)))
