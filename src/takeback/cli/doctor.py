"""`takeback doctor`: see whether what follows from the log follows from it, and make it again."""

from takeback.cli.app import folder
from takeback.cli.arguments import Command, Option
from takeback.cli.projects import existing
from takeback.cli.render import count, safe_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen

COMMAND = Command(
    "doctor",
    "look after the log: compare its tables with its events, make them again",
    text=(
        "Sessions, turns, steps, checkpoints and deltas follow from the events of the log.\n"
        "Without an option this tells whether they still do; nothing is changed. If the events\n"
        "themselves are not as they were written, nothing is made from them."
    ),
    options=(Option(("--rebuild",), "make all tables again from the events"),),
    examples=(
        ("takeback doctor", "is everything as the log says?"),
        ("takeback doctor --rebuild", "make it so"),
    ),
)

_DAMAGED = 4


def run(given: "Arguments", screen: "Screen") -> int:
    """Examine, or rebuild and examine."""
    with existing(folder(given), screen) as project:
        if given.has("rebuild"):
            project.rebuild()
        problems, events = project.examine()
    if screen.json:
        screen.data({"rebuilt": given.has("rebuild"), "events": events, "problems": list(problems)})
    elif problems:
        for problem in problems:
            screen.say(safe_line(problem))
        screen.note("`takeback doctor --rebuild` makes the tables again from the log")
    else:
        done = "made again from" if given.has("rebuild") else "as told by"
        screen.say(f"All tables are {done} {count(events, 'event')}.")
    return _DAMAGED if problems else 0
