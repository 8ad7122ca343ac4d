"""`takeback rollback`: bring the whole project back to a state, exactly."""

from takeback.cli.app import get_project
from takeback.cli.conversation import RESUME_OPTIONS
from takeback.cli.parser import EVERYDAY, Arguments, Command
from takeback.cli.restore_flow import OPTIONS, SESSION, RestoreCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

COMMAND = Command(
    "rollback",
    "bring all files back to an earlier state",
    text=(
        "Removes everything that changed since, also your own edits. A safety checkpoint keeps\n"
        "them, and `takeback undo` brings them back. Takeback shows a preview first.\n"
        "REF is the id of a turn, step or checkpoint or its beginning (a turn means the state it\n"
        "left), `ID-` (before it), `@~N` (N turns back), a time (`10m`, `14:05`) or words of a\n"
        "prompt. With PATH, only these files and folders are restored. Commits stay as they are.\n"
        "With --resume, Takeback also copies the conversations as they were, and shows the\n"
        "commands that continue them."
    ),
    operands=("REF", "[-- PATH…]"),
    options=(*OPTIONS, SESSION, *RESUME_OPTIONS),
    examples=(
        ("takeback rollback mvkr-", "to before a turn"),
        ("takeback rollback 10m", "to ten minutes ago"),
        ("takeback rollback mvkr- -- src/pay.py", "only one file"),
        ("takeback rollback @~3 --dry-run", "only show what that would do"),
        ("takeback rollback mvkr- --resume", "and continue the conversation as it was then"),
    ),
    group=EVERYDAY,
    warning="changes your files",
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        this = RestoreCommand("rollback", given, screen, project)
        return this.run(
            lambda wanted: project.plan_rollback(
                given.operands[0],
                session=this.session,
                paths=wanted.paths,
                inside=wanted.inside,
                only=this.only,
            )
        )
