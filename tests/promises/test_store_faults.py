"""Whatever breaks while a store is removed or given another folder: nothing else suffers.

A share of the faults that is always the same; `scripts/faults` tries every one of them.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oracle
from faults import injection
from faults.children import Ended, Tell, in_child
from faults.harness import impatient, open_project
from faults.injection import Strike
from faults.report import FULL, SECONDS, noted, stage
from takeback.disk import home as removal
from takeback.disk import operations
from takeback.disk.home import Home
from takeback.errors import ProjectIdentityError, TakebackError
from takeback.project import Project
from takeback.upkeep.stores import Housekeeping

KINDS = ("kill", "ENOSPC", "EIO", "torn", "half", "interrupt")
NOW = 10**18 * 2


class Scene:
    """Two projects with a history each, and something that is done to the store of the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._prepared = folder / "prepared"
        self.trees = [folder / "one", folder / "two"]
        self.ids: list[str] = []
        self.made: dict[str, tuple[str, oracle.Picture]] = {}
        for tree in self.trees:
            tree.mkdir()
            for name in ("a", "b", "c"):
                (tree / name).write_text(f"{tree.name} {name}\n")
            with open_project(tree, self._prepared) as project:
                self.ids.append(project.id)
                self.made[project.id] = (project.checkpoint().id, oracle.picture(tree))
        self.prepare()

    def prepare(self) -> None:
        """What happened to the folder of the first project."""

    def act(self) -> None:
        """What the fault strikes."""
        raise NotImplementedError

    def judge(self, *, acked: bool) -> Iterator[str]:
        """What is wrong with the first store."""
        raise NotImplementedError

    def reset(self) -> None:
        """Put the stores back to where they were."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self._prepared, self.home)

    def steps(self) -> int:
        """How many steps it takes when nothing goes wrong."""
        self.reset()
        recorder = injection.Recorder()

        def play(tell: Tell) -> None:
            operations.hook = recorder
            self.act()
            tell({"steps": len(recorder.steps)})

        return int(str(in_child(play).last("steps")))

    def play(self, kind: str, step: int) -> list[str]:
        """Let a fault happen; return what is wrong afterwards."""
        self.reset()
        ended = in_child(lambda tell: self._attempt(tell, kind, step))
        found = [f"it failed: {text}" for text in ended.every("crashed") + ended.every("broken")]
        return found + in_child(lambda tell: self._look(tell, ended)).every("wrong")

    def _attempt(self, tell: Tell, kind: str, step: int) -> None:
        impatient()
        operations.hook = Strike(kind, step, tell, lambda _: None)
        try:
            self.act()
            tell({"acked": True})
        except (TakebackError, KeyboardInterrupt) as problem:
            tell({"refused": str(problem)})
        except BaseException as problem:
            tell({"broken": repr(problem)})

    def _look(self, tell: Tell, ended: Ended) -> None:
        """In a fresh process: the other store first, whose start cleans up; then this one."""
        for what in (
            *self.sound(self.trees[1], self.ids[1]),
            *self.judge(acked=bool(ended.last("acked"))),
            *self.sound(self.trees[1], self.ids[1]),
        ):
            tell({"wrong": what})

    def sound(self, tree: Path, id: str) -> Iterator[str]:
        """Whether a project has its whole history."""
        with open_project(tree, self.home) as project:
            if project.id != id:
                yield f"{tree.name} is project {project.id} instead of {id}"
                return
            if not project.verify().ok or project.upkeep.examine()[0]:
                yield f"the store of {tree.name} is damaged"
            checkpoint, picture = self.made[id]
            out = self.folder / "out"
            project.extract(checkpoint, out)
            if oracle.picture(out) != picture:
                yield f"the checkpoint of {tree.name} is not what it was"
            shutil.rmtree(out)


class Removing(Scene):
    """The folder of the first project is deleted, and its store removed."""

    def act(self) -> None:
        """Remove it."""
        home = os.fsencode(self.home)
        Housekeeping(home).remove(self.ids[0], NOW, even_if_in_use=True)

    def judge(self, *, acked: bool) -> Iterator[str]:
        """The store is whole or gone, with nothing left of it."""
        left = [path.name for path in (self.home / "projects").iterdir()]
        if any(name not in self.ids for name in left):
            yield f"the next start left {left}"
        keeping = Housekeeping(os.fsencode(self.home))
        there = self.ids[0] in {each.id for each in keeping.projects(NOW)}
        if there and acked:
            yield "it was said to be removed, and is there"
        if there:
            yield from self.sound(self.trees[0], self.ids[0])
            self.act()
        elif self.ids[0] in (self.home / "registry").read_text():
            yield "the registry names what is gone"
        if (self.home / "projects" / self.ids[0]).exists():
            yield "it cannot be removed any more"


class Joining(Scene):
    """The first project was copied elsewhere and its folder deleted; the copy goes on with it."""

    def prepare(self) -> None:
        """Move it as from one disk to another."""
        self.copy = self.folder / "copy"
        shutil.copytree(self.trees[0], self.copy)
        shutil.rmtree(self.trees[0])

    def act(self) -> None:
        """Join."""
        home = os.fsencode(self.home)
        Project.relocate(os.fsencode(self.copy), home=home, join=self.ids[0]).close()

    def judge(self, *, acked: bool) -> Iterator[str]:
        """The copy belongs to the history, or is asked about as before; then it can be joined."""
        try:
            yield from self.sound(self.copy, self.ids[0])
        except ProjectIdentityError:
            if acked:
                yield "it was said to be joined, and is not"
        self.act()
        yield from self.sound(self.copy, self.ids[0])


class Beginning(Scene):
    """Another folder is at the place of the first project; a new history begins there."""

    def prepare(self) -> None:
        """Put another folder at its place."""
        self.trees[0].rename(self.folder / "kept")
        self.trees[0].mkdir()
        (self.trees[0] / "other").write_text("other\n")

    def act(self) -> None:
        """Begin anew."""
        home = os.fsencode(self.home)
        Project.relocate(os.fsencode(self.trees[0]), home=home).close()

    def judge(self, *, acked: bool) -> Iterator[str]:
        """The place is asked about as before, or has a new history; the old one can be joined."""
        try:
            with open_project(self.trees[0], self.home) as project:
                if project.id == self.ids[0]:
                    yield "the new folder has the old history"
        except ProjectIdentityError:
            if acked:
                yield "it was said to begin anew, and did not"
            self.act()
        with open_project(self.trees[0], self.home) as project:
            if project.id in self.ids or not project.checkpoint().new:
                yield "no new history begins there"
        kept, home = os.fsencode(self.folder / "kept"), os.fsencode(self.home)
        Project.relocate(kept, home=home, join=self.ids[0]).close()
        yield from self.sound(self.folder / "kept", self.ids[0])


class Restoring(Scene):
    """The folder of the first project was deleted, and comes back."""

    def reset(self) -> None:
        """Delete it, and what a restore that was killed left beside it."""
        super().reset()
        for path in self.folder.glob("one*"):
            shutil.rmtree(path)

    def act(self) -> None:
        """Bring it back."""
        Housekeeping(os.fsencode(self.home)).restore(self.ids[0], None, NOW)

    def judge(self, *, acked: bool) -> Iterator[str]:
        """The folder is there whole and has its history, or is not there; then it can come back."""
        there = self.trees[0].exists()
        if acked and not there:
            yield "it was said to be back, and is not"
        if there and oracle.picture(self.trees[0]) != self.made[self.ids[0]][1]:
            yield "only a part of it is back"
        if not there:
            self.act()
        yield from self.sound(self.trees[0], self.ids[0])


def test_a_removal_in_place_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """If files went before the name, the harness would notice."""

    def in_place(home: Home, id: str) -> None:
        removal.delete(home.store_path(id))

    monkeypatch.setattr(removal, "remove", in_place)
    with stage() as folder:
        scene = Removing(folder)
        assert any(scene.play("kill", step) for step in range(1, scene.steps() + 1))


SCENES: dict[str, Callable[[Path], Scene]] = {
    "store-removed": Removing,
    "relocated": Joining,
    "begun-anew": Beginning,
    "brought-back": Restoring,
}


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", SCENES)
def test_a_store_is_where_it_was_or_where_it_should_be(name: str) -> None:
    """After a fault at any step it is done or not, the next start goes on, and others are whole."""
    wrong: list[str] = []
    with stage() as folder:
        scene = SCENES[name](folder)
        steps = scene.steps()
        for kind in KINDS:
            chosen = range(1, steps + 1)
            if not FULL:
                chosen = range(1, steps + 1, 4 if kind == "kill" else max(steps // 2, 1))
            with noted(scenario=name, fault=kind, sync=True, cache=True) as note:
                note["steps"], note["faults"] = steps, len(chosen)
                found = [
                    f"{name} {kind} at step {n}: {what}"
                    for n in chosen
                    for what in scene.play(kind, n)
                ]
                note["wrong"] = len(found)
            wrong += found
    assert not wrong, "\n".join(wrong)
