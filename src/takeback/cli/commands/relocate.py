"""`takeback relocate`: say which history belongs to this folder."""

from takeback import environment, location
from takeback.cli.app import attach, folder
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.errors import DecisionNeededError, UsageError
from takeback.project import Project

COMMAND = Command(
    "relocate",
    "say which history belongs to this folder",
    text=(
        "Takeback finds the history of a folder that you moved. A folder that was copied,\n"
        "restored from a backup or created again may be the same project or another one: you\n"
        "decide.\n"
        "\n"
        "If the folder has a history already, or the history has a folder, Takeback asks first.\n"
        "It keeps a history that is replaced, and shows the command that brings it back."
    ),
    options=(
        Option(("--join",), "continue the history of project ID in this folder", "ID"),
        Option(("--new",), "begin a new history and keep the old one"),
        Option(("-y", "--yes"), "do not ask"),
    ),
    examples=(
        ("takeback relocate --join kxvwzyts", "it is the same project"),
        ("takeback relocate --new", "it is another one"),
    ),
    group=CARE,
    warning="changes which history is used",
)


def run(given: "Arguments", screen: "Screen") -> int:
    if given.has("join") == given.has("new"):
        raise UsageError(
            "`relocate` needs either --join ID or --new", hint="see `takeback relocate --help`"
        )
    try:
        project = _relocate(given, yes=given.has("yes"))
    except DecisionNeededError as problem:
        if not screen.can_ask:
            raise
        screen.note(safe_line(str(problem)))
        if not screen.ask("Begin a new history?" if given.has("new") else "Join nevertheless?"):
            screen.note("nothing was changed")
            return problem.exit_code
        project = _relocate(given, yes=True)
    with attach(project, screen):
        _tell(project, screen)
    return 0


def _relocate(given: "Arguments", *, yes: bool) -> Project:
    return Project.relocate(
        folder(given),
        home=environment.default_home(),
        user_home=environment.user_home(),
        join=given.get("join") if given.has("join") else None,
        yes=yes,
    )


def _tell(project: Project, screen: "Screen") -> None:
    detached = project.workspace.instead_of
    is_usable = detached and location.is_usable(project.workspace.home, detached)
    way_back = way_to_join(project) if is_usable else ""
    if screen.json:
        screen.data({"project": project.id, "detached": detached or None, "undo": way_back or None})
        return
    screen.say(f"{safe_line(project.root)} is project {project.id} now")
    if way_back:
        screen.note(f"the history of project {detached} is kept: `{way_back}` joins it")
    elif detached:
        screen.note(f"the history of project {detached} is kept, but Takeback cannot read it")


def way_to_join(project: Project, id: str = "") -> str:
    """The command that joins the history which a folder had before."""
    import shlex

    where = shlex.quote(project.root)
    return f"takeback relocate --join {id or project.workspace.instead_of} -C {safe_line(where)}"


def older_history(project: Project) -> str:
    """A sentence about the history that a folder had before a new one began by itself, if any."""
    for id in location.detached_at(project.workspace.root, project.workspace.home):
        return f"this folder had an older history; `{way_to_join(project, id)}` continues it"
    return ""
