"""A project with a folder around it, and commands of an agent that destroy."""

import os
from collections.abc import Callable
from pathlib import Path

from takeback import Project
from takeback.effects import rescue
from takeback.model.beyond import effects
from takeback.model.beyond.effects import DELETE, Judgement, Target
from takeback.model.beyond.rescued import Rescued
from takeback.model.reasons import Reason
from takeback.testing import Sandbox

BIG = 20 << 20
"""Bytes that are more than the limit of what is captured."""


class Place:
    """A project with a folder around it, and commands that destroy."""

    def __init__(self, box: Sandbox, project: Project | None = None) -> None:
        self.box = box
        self.project: Project = project or box.project
        self.tree = Path(self.project.root)
        self.around = self.tree.parent
        self.store = Path(os.fsdecode(self.project.workspace.store.path))

    def big(self, name: str, *, byte: bytes = b"x") -> bytes:
        """Make a file in the project that is too large to be captured."""
        content = byte * 1000 + bytes(BIG) + os.urandom(100)
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return content

    def run(
        self, do: Callable[[], object], *paths: Path, loss: str = DELETE, deep: bool = True
    ) -> Rescued:
        """Let an agent run a command that destroys some paths."""
        targets = [Target(os.fsencode(path), loss, is_recursive=deep) for path in paths]
        why = Reason("test")
        return self.judged(do, Judgement(effects.DESTRUCTIVE, "test", why, targets=tuple(targets)))

    def judged(self, do: Callable[[], object], judged: Judgement) -> Rescued:
        work = self.project.workspace
        with self.project.session(agent="test") as session, session.turn("destroy") as turn:
            with turn.step("Bash", {"command": "rm"}, kind="shell") as step:
                with work.held():
                    found = rescue.before(work, step.id, judged)
                do()
            with work.held():
                rescue.after(work, step.id)
        return found

    def undo(self) -> None:
        self.project.apply(self.project.plan_undo(), yes=True)

    def held(self) -> int:
        """How many files the area in the store holds."""
        return sum(len(files) for _, _, files in os.walk(self.store / "rescue"))
