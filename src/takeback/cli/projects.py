"""How the commands get at a project."""

import os

from takeback import environment
from takeback.errors import UsageError
from takeback.project import Project


def find(path: bytes) -> "Project | None":
    """The project that `path` is in, or None."""
    return Project.find(path, home=environment.default_home())


def existing(path: bytes) -> Project:
    """The project that `path` is in, which must exist."""
    project = find(path)
    if project is None:
        where = os.fsdecode(os.path.realpath(path))
        raise UsageError(
            f"`{where}` is not in a project yet", hint="`takeback checkpoint` makes it one"
        )
    return project


def inside(project: Project, here: bytes) -> bytes:
    """The current folder, counted from the project's root."""
    way = os.path.relpath(os.path.realpath(here), project.root)
    return b"" if way == b"." or way.startswith(b"..") else way
