"""`takeback redo`: put back what an undo took back."""

from takeback.cli.app import get_project
from takeback.cli.parser import EVERYDAY, Arguments, Command, Option
from takeback.cli.restore_flow import DECIDING, INTERACTIVE, OPTIONS, SESSION, RestoreCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

TAKE_BACK = Option(
    ("--take-back",), "where there is a conflict, put the turn's lines back over yours"
)
COMMAND = Command(
    "redo",
    "put back what undo took back",
    text=(
        "Without TURN what `takeback undo` took back last; once more puts back the one before.\n"
        "After a new turn there is no last one any more; a TURN by its id can be put back at any\n"
        "time. What you or others changed since is merged with it; where both changed the same\n"
        "place there is a conflict, and nothing is done until you decide."
    ),
    operands=("[TURN]", "[-- PATH…]"),
    options=(*OPTIONS, INTERACTIVE, DECIDING[0], TAKE_BACK, *DECIDING[2:], SESSION),
    examples=(
        ("takeback redo", "changed your mind about the last undo"),
        ("takeback redo mvkr", "put back a certain turn"),
        ("takeback redo mvkr --keep-mine", "in a conflict, your version stays"),
    ),
    group=EVERYDAY,
    warning="changes your files",
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        this = RestoreCommand("redo", given, screen, project)
        return this.run(
            lambda wanted: project.plan_redo(
                this.ref,
                session=this.session,
                paths=wanted.paths,
                decide=wanted.decide,
                by_hunk=wanted.by_hunk,
                inside=wanted.inside,
            ),
            lambda: project.redo(decide=this.decide, **this.options),
        )
