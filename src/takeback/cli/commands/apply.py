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
        "PLAN is the id that --dry-run of undo, redo or rollback printed. It is valid for 15\n"
        "minutes, in any process. Applying the same plan again repeats its report and changes\n"
        "nothing.\n"
        "\n"
        "Takeback plans again and compares. If a file that the plan touches changed since, or a\n"
        "folder that it makes or removes, Takeback refuses and changes nothing. Other changes do\n"
        "not matter. A full rollback also removes what changed since the preview: the report\n"
        "lists it, and the safety checkpoint keeps it."
    ),
    operands=("PLAN",),
    options=(*OPTIONS[2:], RESUME_OPTIONS[0]),
    examples=(("takeback apply kqzvwxnmlptr", "apply what the preview showed"),),
    group=CARE,
    warning="changes your files",
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        return RestoreCommand("apply", given, screen, project).apply(given.operands[0])
