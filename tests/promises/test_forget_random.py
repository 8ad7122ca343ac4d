"""Random histories in which things are forgotten now and then, against plain copies of the tree.

`FORGET_SEEDS=0:500` tries other histories than the few of `./check`.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from takeback.disk import operations

NAMES = ("a", "b", "d/x", "d/y", "d/e/z", "g/h")
FOLDERS = ("d", "d/e", "g")
TOKEN = "tokenXYZ-"
CONTENTS = [f"content {number}\n" * 3 for number in range(5)] + [f"{TOKEN}{n}\n" for n in range(3)]
FIRST, LAST = map(int, os.environ.get("FORGET_SEEDS", "0:6").split(":"))

Picture = dict[str, bytes]


class History:
    """A history, and what each of its states must still hold."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.folder, self.tree = folder, folder / "tree"
        self.tree.mkdir()
        (folder / "home").mkdir(mode=0o700)
        self.project = takeback.open(self.tree, home=folder / "home")
        self.session = self.project.session("agent", held=False)
        self.states: dict[str, Picture] = {}

    def edit(self) -> None:
        """Change some files."""
        for _ in range(self.chance.randint(1, 4)):
            place = self.tree / self.chance.choice(NAMES)
            if place.exists() and self.chance.random() < 0.25:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(self.chance.choice(CONTENTS))

    def go_on(self, number: int) -> None:
        """Somebody works, or takes something back; then there is a checkpoint."""
        what = self.chance.random()
        if what < 0.5:
            with self.session.turn(f"turn {number} {TOKEN}{number}") as turn:
                self.edit()
                with turn.step("Bash", {"command": f"use {TOKEN}1"}):
                    self.edit()
        elif what < 0.75 and self.states:
            self.project.rollback(self.chance.choice(list(self.states)), yes=True)
        else:
            self.edit()
        self.look()

    def look(self) -> None:
        """Make a checkpoint of the tree, and a plain copy."""
        self.states[self.project.checkpoint().id] = picture(self.tree)

    def forget(self) -> None:
        """Forget something; from now on no state holds it."""
        kind = self.chance.choice(("path", "names", "folder", "content", "text"))
        if kind == "content":
            data = self.chance.choice(CONTENTS).encode()
            self.forget_all(lambda _path, held: held == data, content=data)
        elif kind == "text":
            self.forget_all(lambda _path, held: TOKEN.encode() in held, text=TOKEN)
        else:
            path = self.chance.choice(FOLDERS if kind == "folder" else NAMES)
            had = [ref for ref, state in self.states.items() if any(below(path, p) for p in state)]
            self.forget_all(
                lambda found, _held: below(path, found), paths=[path], names=kind == "names"
            )
            self.require_untouched(path, had)

    def forget_all(self, is_it: Callable[[str, bytes], bool], **what: object) -> None:
        """Forget, and expect that of every state."""
        is_known = any(
            is_it(p, held) for state in self.states.values() for p, held in state.items()
        )
        try:
            self.project.forget(**what)  # type: ignore[arg-type]
        except takeback.UnknownReferenceError:
            assert not is_known
        for state in self.states.values():
            for path in [path for path, held in state.items() if is_it(path, held)]:
                del state[path]

    def require_untouched(self, path: str, had: list[str]) -> None:
        """Going back to a state in which something was forgotten does nothing to it."""
        if not had:
            return
        before = {p: held for p, held in picture(self.tree).items() if below(path, p)}
        self.project.rollback(self.chance.choice(had), yes=True)
        after = {p: held for p, held in picture(self.tree).items() if below(path, p)}
        assert after == before
        self.look()

    def require_sound(self) -> None:
        """Every state holds what it must, the store is whole, and git agrees."""
        assert [damage.what for damage in self.project.verify().damage] == []
        git = ["git", "--git-dir", os.fsdecode(self.project.git_dir)]
        done = subprocess.run(
            [*git, "fsck", "--strict", "--no-dangling"], capture_output=True, check=False
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")
        for ref, state in self.states.items():
            self.project.extract(ref, self.folder / "out")
            assert picture(self.folder / "out") == state
            shutil.rmtree(self.folder / "out")


def picture(tree: Path) -> Picture:
    """What every file of a tree holds."""
    files = [path for path in tree.rglob("*") if path.is_file()]
    return {str(path.relative_to(tree)): path.read_bytes() for path in files}


def below(path: str, found: str) -> bool:
    """Whether a path is another, or below it."""
    return found == path or found.startswith(path + "/")


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_states_hold_all_that_was_not_forgotten(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is forgotten in whatever order, between gc runs and restores: the rest stays."""
    monkeypatch.setattr(operations, "sync", False)
    history = History(seed, tmp_path)
    for number in range(history.chance.randint(4, 9)):
        history.go_on(number)
        if history.chance.random() < 0.4:
            history.forget()
            history.require_sound()
        if history.chance.random() < 0.2:
            history.project.gc(full=True)
    history.require_sound()
    history.project.close()
