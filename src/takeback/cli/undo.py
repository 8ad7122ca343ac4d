"""`takeback undo`: take back what a turn did, and keep what everybody else did."""

from takeback.cli.app import folder
from takeback.cli.arguments import Command
from takeback.cli.projects import existing
from takeback.cli.restoring import DECIDING, OPTIONS, SESSION, Restoring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen

COMMAND = Command(
    "undo",
    "take back what a turn did; what others did stays",
    text=(
        "Without TURN the newest turn that changed something, or the newest rollback; once more\n"
        "takes back the one before, and `takeback redo` puts the last one back. TURN is the id of\n"
        "a turn or its beginning, `@~N`, a time or words of its prompt; the turns after it stay.\n"
        "A file that you or another session changed since is a conflict: it is listed, and\n"
        "nothing is done. The newest turn is taken back without a question; for anything else\n"
        "you see first what would be done. A checkpoint keeps everything as it was."
    ),
    operands=("[TURN]", "[-- PATH…]"),
    options=(*OPTIONS, *DECIDING, SESSION),
    examples=(
        ("takeback undo", "take back the last turn"),
        ("takeback undo --dry-run", "only show what that would do"),
        ('takeback undo "payment validation"', "a certain turn; later ones stay"),
        ("takeback undo mvkr -- src/pay.py", "only this file of it"),
        ('takeback undo --because "tests fail"', "so that the log knows why"),
    ),
)


def run(given: "Arguments", screen: "Screen") -> int:
    """Take it back."""
    with existing(folder(given), screen) as project:
        this = Restoring("undo", given, screen, project)
        return this.run(
            lambda wanted: project.plan_undo(
                this.ref,
                session=this.session,
                paths=wanted.paths,
                decide=wanted.decide,
                inside=wanted.inside,
            ),
            lambda: project.undo(
                decide=this.decide,
                because=this.because,
                keep_mtime=this.keep_mtime,
                yes=this.agreed,
            ),
        )
