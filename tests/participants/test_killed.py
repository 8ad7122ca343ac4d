"""Kill -9 at every step of a restore with two participants, and of its recovery: never mixed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from faults.children import Tell, in_child
from faults.folders import put_back
from faults.injection import Strike
from takeback.disk import operations
from toys import Box

FULL = os.environ.get("FAULTS") == "full"
SHARE = 9
RECOVERY_SHARE = 4
pytestmark = pytest.mark.timeout(3600 if FULL else 120)

State = tuple[str, ...]


class Theatre:
    """A tree, a store and two boxes after a turn that changed all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("tree", "home", "boxes"):
            (folder / name).mkdir(mode=0o700)
        self.file.write_text("one\n")
        for box in self.boxes():
            box.write(f"{box.name} one")
        with self.open() as project:
            session = project.session("agent", held=False)
            session.memory["k"] = "one"
            self.session = session.id
            with session.turn("go"):
                self.file.write_text("two\n")
                (folder / "tree" / "new").write_text("new\n")
                session.memory["k"] = "two"
                for each in self.boxes():
                    each.write(f"{each.name} two")
        for name in ("tree", "home", "boxes"):
            shutil.copytree(folder / name, folder / f"{name}-copy", symlinks=True)

    @property
    def file(self) -> Path:
        return self.folder / "tree" / "file"

    def boxes(self) -> list[Box]:
        place = self.folder / "boxes"
        return [Box(place / "left", "left"), Box(place / "right", "right")]

    def open(self) -> takeback.Project:
        project = takeback.open(self.folder / "tree", home=self.folder / "home")
        for box in self.boxes():
            project.register(_Stepping(box))
        return project

    def again(self) -> None:
        for name in ("tree", "home", "boxes"):
            put_back(self.folder / name, self.folder / f"{name}-copy")

    def state(self, project: takeback.Project) -> State:
        ledger = project.workspace.ledger
        known = ledger.memory.get(self.session, "", "k") or ""
        is_new = (self.folder / "tree" / "new").exists()
        return (self.file.read_text(), str(is_new), known, *(box.text for box in self.boxes()))

    def play(self, at: int, act: Callable[[takeback.Project], object]) -> tuple[int, bool]:
        """Do something and die at a step; how many steps there were, and whether it died."""

        def play(tell: Tell) -> None:
            strike = Strike("kill", at, tell, lambda _step: None)
            operations.hook = strike  # opening recovers
            with self.open() as project:
                act(project)
                operations.hook = None
            tell({"steps": strike.steps})

        ended = in_child(play)
        steps = ended.last("steps")
        assert ended.last("crashed") is None, ended.last("crashed")
        return (steps if isinstance(steps, int) else 0), steps is None


class _Stepping(Box):
    """A box whose own steps count, so that a program can die between any two of them."""

    def __init__(self, box: Box) -> None:
        super().__init__(box.path, box.name)

    def _call(self, name: str) -> None:
        if operations.hook is not None and name in ("prepare", "commit", "abort"):
            operations.hook(f"{self.name}-{name}", ())
        super()._call(name)


BEFORE: State = ("two\n", "True", '"two"', "left two", "right two")
AFTER: State = ("one\n", "False", '"one"', "left one", "right one")


def _undo(project: takeback.Project) -> None:
    project.undo()


def _recover(project: takeback.Project) -> None:
    project.recover()


def test_before_or_after(tmp_path: Path) -> None:
    """After each kill, and after a second one in the recovery, all is before or all after."""
    theatre = Theatre(tmp_path)
    steps, _ = theatre.play(0, _undo)
    assert steps > 20
    wrong, seen = [], set()
    for at in range(1, steps + 1, 1 if FULL else max(1, steps // SHARE)):
        theatre.again()
        assert theatre.play(at, _undo)[1]
        second = 0 if FULL else at % RECOVERY_SHARE + 1
        for again in range(1, 60) if FULL else (second,):
            if not theatre.play(again, _recover)[1]:
                break
        with theatre.open() as project:
            project.recover()
            found = theatre.state(project)
            left = [path for box in theatre.boxes() for path in box.prepared]
            if found not in (BEFORE, AFTER) or left:
                wrong.append(f"killed at {at}: {found} {left}")
            if project.workspace.ledger.participants.owed():
                wrong.append(f"killed at {at}: something is owed")
            seen.add(found)
            if found == BEFORE:
                project.undo()
            assert theatre.state(project) == AFTER, (at, found, wrong)
    assert not wrong, "\n".join(wrong)
    assert seen == {BEFORE, AFTER}
