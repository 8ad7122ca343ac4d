"""`takeback checkpoint`: make a checkpoint of the tree as it is now."""

from takeback.cli.app import open_project
from takeback.cli.parser import EVERYDAY, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, timestamp
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.model.results import Checkpoint
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "checkpoint",
    "record the files as they are now",
    text=(
        "Captures every file, link and folder: tracked, untracked and ignored. If nothing changed\n"
        "since the newest checkpoint, Takeback reports that one. It lists what is not covered.\n"
        "NAME works wherever a command takes a REF. If the name exists, it moves to the newer\n"
        "checkpoint. `takeback log --checkpoints` lists names, `takeback keep --release NAME`\n"
        "removes one."
    ),
    options=(
        Option(("-m", "--label"), "name of the checkpoint", "NAME"),
        Option(("--rehash",), "read every file again instead of trusting timestamps"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback checkpoint", "before an agent works"),
        ('takeback checkpoint -m "tests green"', "with a name"),
        ('takeback rollback "tests green"', "restore that state"),
    ),
    group=EVERYDAY,
)


def run(given: "Arguments", screen: "Screen") -> int:
    with open_project(given, screen) as project:
        made = project.checkpoint(
            given.get("label"), rehash=given.has("rehash"), progress=screen.progress
        )
    if screen.json:
        screen.data(as_json(made, screen.words))
    else:
        show(made, screen)
    return 0


def as_json(made: "Checkpoint", words: "Callable[[str], str]") -> "dict[str, Json]":
    return {
        "id": made.id,
        "tree": made.tree,
        "cursor": made.cursor,
        "session": made.session,
        "turn": made.turn,
        "step": made.step,
        "created": timestamp(made.created),
        "label": words(made.label),
        "names": [words(name) for name in made.names],
        "moved": made.moved or None,
        "entries": made.entries,
        "changed": made.changed,
        "new": made.new,
        "left_out": [{**path_fields(x.raw_path), "reason": x.reason} for x in made.left_out],
        "unstable": [path_fields(path) for path in made.raw_unstable],
    }


def show(made: "Checkpoint", screen: "Screen") -> None:
    name = screen.style(made.id, "bold")
    entries = count(made.entries, "entry", "entries")
    if made.new:
        screen.say(
            f"Checkpoint {name}  {entries}, {made.changed:,} changed{screen.quoted(made.label)}"
        )
    else:
        label = screen.quoted(made.label) if made.label in made.names else ""
        screen.say(f"Nothing changed since checkpoint {name}  {entries}{label}")
    note_moved(made.moved, screen)
    for path in made.unstable:
        screen.note(f"changed while it was read: {safe(path)}")
    others = [x for x in made.left_out if x.reason != "version control"]
    if others:
        total = count(len(others), "path")
        screen.note(f"{total} not covered; `takeback` lists what and why")
    screen.note(f"`takeback rollback {made.id[:6]}` restores this state")


def note_moved(before: str, screen: "Screen") -> None:
    """Tell that a name meant another checkpoint until now."""
    if before:
        screen.note(f"the name moved here from checkpoint {before}")
