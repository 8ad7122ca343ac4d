"""`takeback usage`: what a project's history takes on disk."""

from takeback.cli.app import folder
from takeback.cli.arguments import Command
from takeback.cli.projects import existing
from takeback.cli.render import count, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen

COMMAND = Command(
    "usage",
    "what the history takes on disk",
    examples=(("takeback usage", "of this project"),),
)


def run(given: "Arguments", screen: "Screen") -> int:
    """Add it up and show it."""
    with existing(folder(given), screen) as project:
        used = project.usage()
    if screen.json:
        screen.data(
            {
                "total": used.total,
                "objects": used.objects,
                "ledger": used.ledger,
                "index": used.index,
                "packs": used.packs,
                "checkpoints": used.checkpoints,
            }
        )
    else:
        screen.say(f"{size(used.total)} for {count(used.checkpoints, 'checkpoint')}")
        screen.table(
            (
                ("objects", f"{size(used.objects)} in {count(used.packs, 'pack')}"),
                ("ledger", size(used.ledger)),
                ("stat cache", f"{size(used.index)} (disposable)"),
            )
        )
    return 0
