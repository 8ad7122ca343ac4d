"""`takeback why`: what was asked for, by whom, and what became of it."""

import time

from takeback.cli.app import get_project
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.text import show_text, turn_text
from takeback.errors import NothingToTakeBackError
from takeback.model.reasons import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.project import Project

COMMAND = Command(
    "why",
    "show a turn's prompt, its authors and the reason",
    text=(
        "Prints the whole prompt of a turn, the agent and the model that worked on it, who made\n"
        "its changes and how that is known, and the reason that you gave if you took it back.\n"
        "Without TURN, the newest one, also if it was taken back. `takeback show TURN` prints its\n"
        "steps and all files; `takeback log PATH` lists the turns that touched a file. Typed into\n"
        "an agent, `tb why` shows the newest turn of that conversation."
    ),
    operands=("[TURN]",),
    options=(
        Option(("--session",), "look only among the turns of this session", "SESSION"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback why", "the newest turn"),
        ("takeback why mvkr", "another one"),
        ('takeback why "payment validation"', "by words of its prompt"),
    ),
    group=LOOK,
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        turn = project.turn(given.operands[0] if given.operands else _newest(project, given))
    if screen.json:
        models = list(dict.fromkeys(step.model for step in turn.steps if step.model))
        told = turn_text.as_json(turn, screen.masker)
        screen.data({"turn": {**told, "account": turn.account, "models": models}})
    else:
        show_text.why(turn, screen, time.time())
        screen.note(f"`takeback show {turn.id[:8]}` shows its steps and files")
    return 0


def _newest(project: "Project", given: "Arguments") -> str:
    found = project.log(1, session=given.get("session") or None, all=True, changes=False).turns
    if not found:
        raise NothingToTakeBackError("no turn was recorded yet", hint=Action("log"))
    return found[0].id
