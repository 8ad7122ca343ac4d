"""`takeback extract`: write a checkpoint's tree into a folder of its own."""

import os

from takeback.cli.app import get_project
from takeback.cli.parser import CARE, Arguments, Command
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import reason_text
from takeback.model.text.json_text import path_fields
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.reasons import Reason

COMMAND = Command(
    "extract",
    "write an earlier state into a new folder",
    text=(
        "REF is `@` (the newest checkpoint), `@~N` (N turns back), an id or its beginning, `ID-`\n"
        "(before that), a time (`10m`, `14:05`) or words of a prompt.\n"
        "DIR must be new or empty: nothing is ever overwritten."
    ),
    operands=("REF", "DIR"),
    examples=(
        ("takeback extract @ /tmp/look", "the newest checkpoint"),
        ("takeback extract xozqkk ../before", "one checkpoint, by its id"),
    ),
    group=CARE,
)


def run(given: "Arguments", screen: "Screen") -> int:
    ref, directory = given.operands
    with get_project(given, screen) as project:
        target = os.path.abspath(directory)
        notes: list[Reason] = []
        written = project.extract(ref, target, progress=screen.progress, told=notes.append)
    for reason in notes:
        screen.note(f"note: {safe_line(reason_text.sentence(reason))}")
    if screen.json:
        screen.data({"target": path_fields(os.fsencode(target)), "ref": ref, "entries": written})
    else:
        entries = count(written, "entry", "entries")
        screen.say(f"Wrote {entries} of {ref} to {safe_line(target)}")
        screen.note(f"`rm -r {safe_line(target)}` deletes it again")
    return 0
