"""`takeback undo`: take back what a turn did, and keep what everybody else did."""

import os

from takeback import location
from takeback.cli.app import folder, get_project
from takeback.cli.conversation import RESUME_OPTIONS
from takeback.cli.parser import EVERYDAY, Arguments, Command, Option
from takeback.cli.restore_flow import DECIDING, INTERACTIVE, OPTIONS, RestoreCommand
from takeback.disk.home import Home
from takeback.environment import default_home
from takeback.errors import NothingToTakeBackError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.project import Project

COMMAND = Command(
    "undo",
    "take back what a turn did; keep everything else",
    text=(
        "Without TURN, undoes the most recent turn or rollback. Run it again to go further back;\n"
        "`takeback redo` puts the last one back. TURN is the id of a turn or its beginning,\n"
        "`@~N`, a time or words of its prompt; later turns are kept. With --session and no TURN,\n"
        "undoes everything that the session did.\n"
        "\n"
        "Takeback merges with what you or others changed since in the same files. Where both\n"
        "changed the same lines there is a conflict: Takeback shows it and changes nothing until\n"
        "you decide, by an option for all conflicts, or one by one on a terminal. `undo` takes\n"
        "back the newest turn without asking. Anything else shows a preview first, in which you\n"
        "can choose. A safety checkpoint keeps everything as it was.\n"
        "\n"
        "If the folder itself was deleted, name it with -C: Takeback restores it as it was last.\n"
        "If a turn was running then, its other changes are taken back, too.\n"
        "\n"
        "With --resume, Takeback copies the agent's conversation up to the turn before, and shows\n"
        "the command that continues it; the original stays. Without --resume, the agent gets a\n"
        "note at its next prompt that lists what was taken back."
    ),
    operands=("[TURN…]", "[-- PATH…]"),
    options=(
        *OPTIONS,
        INTERACTIVE,
        *DECIDING,
        Option(("--shared",), "also take back what may be another session's"),
        Option(("--session",), "all of this session, or the TURN in it", "SESSION"),
        *RESUME_OPTIONS,
    ),
    examples=(
        ("takeback undo", "take back the last turn"),
        ("takeback undo --dry-run", "only show what that would do"),
        ('takeback undo "payment validation"', "one turn; later ones are kept"),
        ("takeback undo mvkr -- src/pay.py", "only this file of it"),
        ("takeback undo -i", "choose files and hunks of the last turn"),
        ("takeback undo mvkr zosp", "two turns together"),
        ("takeback undo --session kqzv", "all that one session did"),
        ("takeback undo mvkr --keep-mine", "in a conflict, keep your lines"),
        ('takeback undo --because "tests fail"', "the log and the agent get the reason"),
        ("takeback undo -C ../shop", "restore a deleted folder"),
        ("takeback undo --resume", "and continue the conversation from before"),
    ),
    group=EVERYDAY,
    warning="changes your files",
)


def run(given: "Arguments", screen: "Screen") -> int:
    path = folder(given)
    gone = None if os.path.isdir(path) else location.find_gone(path, Home(default_home()))
    if gone is not None and not _bring_back(gone.id, given, screen):
        return 0
    with get_project(given, screen) as project:
        try:
            return _undo(project, given, screen)
        except NothingToTakeBackError as problem:
            from takeback.cli.commands.relocate import older_history

            older = older_history(project)
            problem.actions = (older,) if older else problem.actions
            raise


def _undo(project: "Project", given: "Arguments", screen: "Screen") -> int:
    this = RestoreCommand("undo", given, screen, project)
    shared = given.has("shared")
    refs = given.operands
    whole = this.session if this.session is not None and not refs else ""
    return this.run(
        lambda wanted: project.plan_undo(
            wanted.turns or refs,
            session=None if wanted.turns else this.session,
            whole_session="" if wanted.turns else whole,
            paths=wanted.paths,
            decide=wanted.decide,
            by_hunk=wanted.by_hunk,
            shared=shared,
            inside=wanted.inside,
            only=this.only,
        ),
        lambda: project.undo(decide=this.decide, shared=shared, only=this.only, **this.options),
    )


def _bring_back(id: str, given: "Arguments", screen: "Screen") -> bool:
    """Bring the deleted folder of a project back; whether a turn is to be taken back, too.

    It is if one is named, or if the folder went while a turn was running that did more.
    """
    from takeback.cli.commands import projects

    dry_run = given.has("dry-run")
    done = projects.restore(id, None, screen, dry_run=dry_run)
    names_more = given.operands or given.rest or given.has("session")
    goes_on = not dry_run and (bool(names_more) or done.is_part_of_turn)
    if not goes_on or not screen.json:
        projects.tell_of_restored(done, screen, dry_run=dry_run)
    return goes_on
