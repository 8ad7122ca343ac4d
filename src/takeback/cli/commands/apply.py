"""`takeback apply`: carry out a plan that `--dry-run` has shown."""

from takeback.cli.app import get_project
from takeback.cli.parser import CARE, Arguments, Command
from takeback.cli.restore_flow import OPTIONS, RESUME_OPTIONS, RestoreCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

COMMAND = Command(
    "apply",
    "carry out a plan that --dry-run showed",
    text=(
        "PLAN is the id that --dry-run of undo, redo or rollback has printed. It is valid for 15\n"
        "minutes, in any process. A plan is applied once: applied again, it repeats its report\n"
        "and changes nothing.\n"
        "\n"
        "Takeback plans again and compares. If a file that the plan touches changed since, or a\n"
        "folder that it makes or removes, it is refused and nothing is changed. Changes elsewhere\n"
        "do not matter. A rollback of everything takes back what changed since, too; the report\n"
        "names it, and the checkpoint before keeps it."
    ),
    operands=("PLAN",),
    options=(*OPTIONS[2:], RESUME_OPTIONS[0]),
    examples=(("takeback apply kqzvwxnmlptr", "do what the preview has shown"),),
    group=CARE,
    warning="changes your files",
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        return RestoreCommand("apply", given, screen, project).apply(given.operands[0])
