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
        "Agents continue to work, but their hooks and `takeback run` record nothing here. A\n"
        "running turn ends. What changes until `takeback on` counts as yours. The history stays:\n"
        "`undo`, `log` and `checkpoint` work as before. Nothing is written into the project."
    ),
    examples=(("takeback off", "record nothing"), ("takeback on", "record again")),
    group=AGENTS,
    inverse="on",
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
        screen.note(f"{count(ended, 'running turn')} ended here; `takeback undo` takes it back")
    screen.note("changes from now on count as yours; `takeback on` records agents again")
    return 0
