"""Every moment of a restore at which somebody else may do something.

That is before each change on disk, which `disk.operations` announces, and before each look at what
is there: between a look and the change that follows from it lies what a race is made of.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest

import takeback
from takeback.disk import operations
from takeback.model.tree import State
from takeback.project import Project
from takeback.worktree import stage, swap
from takeback.worktree.stage import look_at

VERBS = ("undo", "redo", "rollback")


def restore(project: Project, verb: str, target: str) -> takeback.Report:
    """Take back, put back, or go back."""
    if verb == "rollback":
        return project.rollback(target, yes=True)
    return project.undo() if verb == "undo" else project.redo()


class Moments:
    """Counts steps and looks, and acts before one of them."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self._at = at
        self._act = act
        self.count = 0
        self.name = ""

    def step(self, step: str, args: tuple[object, ...]) -> None:
        """Before a change on disk."""
        self._pass(f"{step} {args}")

    def look(self, dir_fd: int, name: bytes) -> State | None:
        """Before a look at what is there."""
        self._pass(f"look at {name!r}")
        return look_at(dir_fd, name)

    def _pass(self, name: str) -> None:
        self.count += 1
        if self.count == self._at:
            self.name = f"{self.count}: {name}"
            self._act()

    @property
    def is_over(self) -> bool:
        """Whether there were not so many."""
        return self.count < self._at


@contextlib.contextmanager
def watched_by(moments: Moments) -> Iterator[None]:
    """Let every step and look of a restore pass by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "hook", moments.step)
        patch.setattr(swap, "look_at", moments.look)
        patch.setattr(stage, "look_at", moments.look)
        yield
