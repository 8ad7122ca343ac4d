"""`takeback on`: record agents in this project again."""

import os

from takeback.cli.app import open_project
from takeback.cli.commands.checkpoint import as_json
from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen, safe_line
from takeback.model.words import count

COMMAND = Command(
    "on",
    "record agents in this project again",
    text=(
        "Takeback captures what changed while it was off in a checkpoint; these changes count as\n"
        "yours. If an agent is in the middle of a turn, the rest of that turn is recorded."
    ),
    examples=(("takeback on", "after `takeback off`"),),
    group=AGENTS,
)


def run(given: "Arguments", screen: "Screen") -> int:
    with open_project(given, screen) as project:
        changes = not project.workspace.rules.is_recording()
        made = project.checkpoint(progress=screen.progress) if changes else None
        project.recorder().turn_on()
        where = safe_line(os.fsdecode(project.root))
        if screen.json:
            checkpoint = as_json(made, screen.words) if made is not None else None
            screen.data({"project": project.id, "recording": True, "changed": changes,
                         "checkpoint": checkpoint})  # fmt: skip
            return 0
    screen.say(f"Takeback is {'now' if changes else 'already'} on in {where}: agents are recorded.")
    if made is not None and made.changed:
        screen.note(f"{count(made.changed, 'change')} since the last checkpoint counts as yours")
    return 0
