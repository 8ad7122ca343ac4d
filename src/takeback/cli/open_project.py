"""How the commands get at a project; what recovery did there is told once, whatever the command."""

import os

import takeback
from takeback import environment
from takeback.errors import TakebackError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.project import Project


def opened(path: bytes, screen: "Screen") -> "Project":
    """The project that `path` is in, made on first use."""
    return settled(heard(takeback.open(path), screen))


def find(path: bytes, screen: "Screen") -> "Project | None":
    """The project that `path` is in, or None."""
    from takeback.project import Project

    found = Project.find(path, home=environment.default_home())
    return settled(heard(found, screen)) if found is not None else None


def existing(path: bytes, screen: "Screen") -> "Project":
    """The project that `path` is in, which must exist."""
    project = find(path, screen)
    if project is None:
        where = os.fsdecode(os.path.realpath(path))
        raise UsageError(f"`{where}` is not in a project yet", hint=_how_to_begin(path))
    return project


def _how_to_begin(path: bytes) -> str:
    """What makes a folder a project; some, such as the home folder, cannot be one."""
    from takeback import location

    try:
        location.root_of(path, home=environment.default_home(), user_home=environment.user_home())
    except TakebackError as problem:
        return f"it cannot be one; {problem.hint}"
    return "`takeback checkpoint` makes it one"


def heard(project: "Project", screen: "Screen") -> "Project":
    """A project whose recovery is told when it happens: when it is opened, or later locked."""
    screen.listen(lambda: _recovered(project))
    screen.secret_names = project.secret_names
    return project


def _recovered(project: "Project") -> "list[str]":
    if not project.recovered:
        return []
    from takeback.cli.reason_text import sentence

    return [sentence(reason) for reason in project.recovered]


def settled(project: "Project") -> "Project":
    """A project whose turns are closed that were interrupted inside an agent."""
    project.end_interrupted()
    return project


def inside(project: "Project", here: bytes) -> bytes:
    """The current folder, counted from the project's root."""
    way = os.path.relpath(os.path.realpath(here), project.root)
    return b"" if way == b"." or way.startswith(b"..") else way
