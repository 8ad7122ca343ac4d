"""`takeback resume`: let agents go on after `takeback pause`."""

import os

from takeback.cli.app import get_project
from takeback.cli.commands.pause import as_json
from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen, safe_line

COMMAND = Command(
    "resume",
    "let paused agents go on",
    text=(
        "Without SESSION all agents in this project go on. To continue a conversation from before\n"
        "an undo, see `takeback undo --resume`."
    ),
    operands=("[SESSION]",),
    examples=(
        ("takeback resume", "let all agents go on"),
        ("takeback resume mvkr", "only this session"),
    ),
    group=AGENTS,
)


def run(given: "Arguments", screen: "Screen") -> int:
    session = given.operands[0] if given.operands else None
    with get_project(given, screen) as project:
        was_paused = project.recorder().release(session)
        where = safe_line(os.fsdecode(project.root))
        if screen.json:
            screen.data(as_json(project, changed=was_paused))
            return 0
    if session is not None:
        state = "goes on" if was_paused else "is not paused"
        screen.say(f"Session {safe_line(session)} {state}.")
    elif was_paused:
        screen.say(f"All agents in {where} go on: their calls run again.")
    else:
        screen.say(f"No agent in {where} is paused.")
    return 0
