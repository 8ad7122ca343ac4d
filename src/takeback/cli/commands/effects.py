"""`takeback effects`: what was done outside the files, and stays."""

import time

from takeback.cli.app import get_project
from takeback.cli.parser import BEYOND, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line
from takeback.cli.text import effect_text
from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.effects.compensation import Compensation
    from takeback.model.beyond.effects import Effect
    from takeback.project import Project

_USUAL = 50
_WHEN, _CLASS = 8, 12

COMMAND = Command(
    "effects",
    "list what agents did outside the files",
    text=(
        "A push, a request, a dropped table: what no restore takes back, newest first, each with\n"
        "its turn, its class and, if one is known, the command that reverses it. Takeback records\n"
        "an effect before the call runs, from what the call says; how the call ended is recorded\n"
        "after it. With --all, also calls that were refused, and what is local to this machine:\n"
        "commits, files outside the project, changed settings.\n\n"
        "--undo shows the commands that reverse the effects named, or all that have one, newest\n"
        "effect first, and runs them when you say so. Takeback runs no such command by itself."
    ),
    operands=("[ID…]",),
    options=(
        Option(("--undo",), "run the commands that reverse these effects, after showing them"),
        Option(("-n", "--dry-run"), "with --undo: only show the commands"),
        Option(("-y", "--yes"), "with --undo: run them without asking"),
        Option(("--all",), "also what was refused, and what is local to this machine"),
        Option(("--session",), "only those of this session", "SESSION"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback effects", "what stays, whatever you undo"),
        ("takeback effects --session mvkr", "of one session"),
        ("takeback effects --undo --dry-run", "the commands that would take them back"),
        ("takeback effects --undo mvkrxwop", "take back one of them"),
    ),
    group=BEYOND,
)


def run(given: "Arguments", screen: "Screen") -> int:
    if given.has("undo"):
        return _undo(given, screen)
    if given.operands:
        raise UsageError("an effect is named with --undo only", hint="`takeback effects --undo ID`")
    with get_project(given, screen) as project:
        session = _session(project, given.get("session"))
        found = project.effects.list(session=session, all=given.has("all"))
    if screen.json:
        screen.data({"effects": [effect_text.as_json(each, screen.masker) for each in found]})
        return 0
    _show(found, screen)
    return 0


def _undo(given: "Arguments", screen: "Screen") -> int:
    from takeback.effects import compensation
    from takeback.errors import DecisionNeededError

    with get_project(given, screen) as project:
        chosen = compensation.choose(project.workspace, given.operands)
        if not screen.json:
            _show_commands(chosen, screen)
        if not chosen or given.has("dry-run"):
            return _told([], chosen, screen)
        if not given.has("yes"):
            if not screen.can_ask:
                raise DecisionNeededError(
                    f"{len(chosen)} commands would run", hint="`--yes` runs them"
                )
            if not screen.ask("Run them?"):
                screen.say("Nothing was run.")
                return 3
        made = compensation.run(project.workspace, chosen)
    return _told(made, chosen, screen)


def _show_commands(chosen: "tuple[Effect, ...]", screen: "Screen") -> None:
    if not chosen:
        screen.say("No effect here has a command that reverses it, or all were taken back.")
        return
    screen.say("These commands take back what was done outside, in this order:")
    words = screen.masker.words
    screen.table(
        (safe_line(words(each.inverse)), effect_text.what(each, screen.masker)) for each in chosen
    )


def _told(made: "list[Compensation]", chosen: "tuple[Effect, ...]", screen: "Screen") -> int:
    """What became of them; 1 if one failed."""
    failed = [each for each in made if each.code]
    if screen.json:
        screen.data(
            {
                "effects": [effect_text.as_json(each, screen.masker) for each in chosen],
                "outcomes": [
                    {"id": each.effect.id, "outcome": each.outcome, "code": each.code,
                     "output": screen.masker.words(each.output)}
                    for each in made
                ],
            }
        )  # fmt: skip
        return 1 if failed else 0
    for each in made:
        inverse = safe_line(screen.masker.words(each.effect.inverse))
        how = f"failed with {each.code}" if each.code else "done"
        screen.say(f"{how}: {inverse}")
        if each.code and each.output:
            screen.note(safe_line(screen.masker.words(each.output)))
    if failed:
        screen.note("`takeback effects --undo` tries those that failed again")
    return 1 if failed else 0


def _session(project: "Project", named: str) -> str:
    """The id of a session that somebody named."""
    if not named:
        return ""
    from takeback.history import references

    ledger = project.workspace.ledger
    return ledger.sessions.numbered(references.session(ledger, named, time.time())).id


def _show(found: "tuple[Effect, ...]", screen: "Screen") -> None:
    if not found:
        screen.say("No effects outside the files are recorded here.")
        return
    now = time.time()
    screen.table((_head(each, now), _line(each, screen)) for each in found[:_USUAL])
    if len(found) > _USUAL:
        screen.say(f"  and {len(found) - _USUAL:,} more")
    screen.note(f"`takeback show {found[0].turn[:8]}` shows the turn of the first")


def _head(effect: "Effect", now: float) -> str:
    when = ago(effect.at, now).rjust(_WHEN)
    return f"{effect.id[:8]}  {effect.turn[:8].ljust(8)}  {when}  {effect.effect.ljust(_CLASS)}"


def _line(effect: "Effect", screen: "Screen") -> str:
    return safe_line(effect_text.line(effect, screen.masker))
