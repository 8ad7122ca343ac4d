"""`takeback relocate`: say which history belongs to this folder."""

from takeback import environment
from takeback.cli.app import attach, folder
from takeback.cli.parser import Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.errors import UsageError
from takeback.project import Project

COMMAND = Command(
    "relocate",
    "say which history belongs to this folder, when Takeback cannot tell",
    text=(
        "A folder that was moved finds its history by itself. One that was copied, restored from\n"
        "a backup or made anew might be the same project or another one: you decide."
    ),
    options=(
        Option(("--join",), "go on with the history of project ID in this folder", "ID"),
        Option(("--new",), "begin a new history; the old one stays"),
    ),
    examples=(
        ("takeback relocate --join kxvwzyts", "it is the same project"),
        ("takeback relocate --new", "it is another one"),
    ),
)


def run(given: "Arguments", screen: "Screen") -> int:
    if given.has("join") == given.has("new"):
        raise UsageError(
            "`relocate` needs either --join ID or --new", hint="see `takeback relocate --help`"
        )
    project = Project.relocate(
        folder(given),
        home=environment.default_home(),
        user_home=environment.user_home(),
        join=given.get("join") if given.has("join") else None,
    )
    with attach(project, screen):
        if screen.json:
            screen.data({"project": project.id})
        else:
            where = safe_line(project.root)
            screen.say(f"{where} is project {project.id} now")
    return 0
