"""`takeback redo`: put back what an undo took back."""

from takeback.cli.app import get_project
from takeback.cli.parser import EVERYDAY, Arguments, Command, Option
from takeback.cli.restore_flow import DECIDING, INTERACTIVE, OPTIONS, SESSION, RestoreCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

TAKE_BACK = Option(("--take-back",), "in a conflict, replace your lines with the turn's lines")
COMMAND = Command(
    "redo",
    "put back what undo took back",
    text=(
        "Without TURN, puts back what `takeback undo` took back last. Run it again to put back\n"
        "the one before. After a new turn, name the TURN by its id. Takeback merges the turn with\n"
        "what you or others changed since. Where both changed the same lines there is a conflict,\n"
        "and nothing is changed until you decide."
    ),
    operands=("[TURN]", "[-- PATH…]"),
    options=(*OPTIONS, INTERACTIVE, DECIDING[0], TAKE_BACK, *DECIDING[2:], SESSION),
    examples=(
        ("takeback redo", "put back what the last undo took back"),
        ("takeback redo mvkr", "put back one turn"),
        ("takeback redo mvkr --keep-mine", "in a conflict, keep your lines"),
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
                only=this.only,
            ),
            lambda: project.redo(decide=this.decide, only=this.only, **this.options),
        )
