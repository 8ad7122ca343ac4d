"""`takeback off`: record no agent in this project until `takeback on`."""

import os

from takeback.cli.app import open_project
from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen, safe_line
from takeback.model.words import count

COMMAND = Command(
    "off",
    "stop recording agents in this project",
    text=(
        "Agents work on, and their hooks and `takeback run` record nothing here. A turn that runs\n"
        "is ended. What changes until `takeback on` counts as yours. What was recorded stays:\n"
        "`undo`, `log` and `checkpoint` work as before. Nothing is written into the project."
    ),
    examples=(("takeback off", "work without a record"), ("takeback on", "record again")),
    group=AGENTS,
    warning="stops recording agents",
)


def run(given: "Arguments", screen: "Screen") -> int:
    with open_project(given, screen) as project:
        changes = project.workspace.rules.is_recording()
        ended = project.recorder().turn_off()
        where = safe_line(os.fsdecode(project.root))
        if screen.json:
            screen.data({"project": project.id, "recording": False, "changed": changes,
                         "turns_ended": ended})  # fmt: skip
            return 0
    screen.say(
        f"Takeback is {'now' if changes else 'already'} off in {where}: no agent is recorded."
    )
    if ended:
        screen.note(f"{count(ended, 'turn')} that ran ended here; `takeback undo` takes it back")
    screen.note("what changes now counts as yours; `takeback on` records again")
    return 0
