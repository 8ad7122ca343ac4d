"""`takeback effects`: what was done outside the files, and stays."""

import time

from takeback.cli.app import get_project
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line
from takeback.cli.text import effect_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.effects import Effect
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
        "commits, files outside the project, changed settings."
    ),
    options=(
        Option(("--all",), "also what was refused, and what is local to this machine"),
        Option(("--session",), "only those of this session", "SESSION"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback effects", "what stays, whatever you undo"),
        ("takeback effects --session mvkr", "of one session"),
        ("takeback effects --json", "for a program"),
    ),
    group=LOOK,
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        session = _session(project, given.get("session"))
        found = project.effects.list(session=session, all=given.has("all"))
    if screen.json:
        screen.data({"effects": [effect_text.as_json(each, screen.masker) for each in found]})
        return 0
    _show(found, screen)
    return 0


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
