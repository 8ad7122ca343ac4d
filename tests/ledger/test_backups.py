"""An older ledger put back in the place of the newer one: no command deletes what it lost."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
import takeback
from history import Said, command
from spoken import spoken

LEDGER = ("ledger.db", "ledger.db-wal", "ledger.db-shm")


class Kept:
    """A project whose ledger is put back to an older copy, and once more to the newest."""

    def __init__(self, tree: Path, home: Path, out: Path) -> None:
        self._tree, self._out = tree, out
        self._outside = out / "outside.txt"
        self.states: dict[str, oracle.Picture] = {}
        self.edit("secret", "a secret text\n")
        self.edit("file", "0\n")
        (self.store,) = (home / "projects").iterdir()

    def edit(self, name: str, text: str) -> None:
        """A checkpoint of a change."""
        (self._tree / name).write_text(text)
        with takeback.open(self._tree) as project:
            self.states[project.checkpoint().id] = oracle.picture(self._tree)

    def edit_outside(self, text: str) -> None:
        """A file outside the project, which no commit of the git view shows."""
        with (
            takeback.open(self._tree) as project,
            project.session("agent") as agent,
            agent.turn("outside", whole=False) as turn,
            turn.step("Write", {"file_path": str(self._outside)}),
        ):
            self._outside.write_text(text)

    def merge(self) -> None:
        """Put all packs into one."""
        with takeback.open(self._tree) as project:
            project.gc(full=True)

    def copy(self, name: str) -> None:
        """Copy the ledger."""
        (self._out / name).mkdir()
        for part in LEDGER:
            if (self.store / part).exists():
                shutil.copy(self.store / part, self._out / name / part)

    def put_back(self, name: str) -> None:
        """Put a copy in the place of the ledger."""
        for part in LEDGER:
            (self.store / part).unlink(missing_ok=True)
            if (self._out / name / part).exists():
                shutil.copy(self._out / name / part, self.store / part)

    def packs(self) -> set[str]:
        """The packs that are there."""
        return {path.name for path in self.store.glob("git/objects/pack/*.pack")}

    def __call__(self, *words: str) -> Said:
        """Run `takeback`."""
        return command(self._tree, *words)

    def die(self) -> None:
        """Leave the lock as a process does that was killed."""
        with (self.store / "lock").open("r+b") as file:
            file.write(b"%-10d" % 999_999_999)

    def wrong(self) -> list[str]:
        """What is not as it was, with the newest ledger."""
        with takeback.open(self._tree) as project:
            found = list(spoken(project.verify().problems))
            for id, picture in self.states.items():
                project.extract(id, self._out / id)
                found += oracle.differences(picture, oracle.picture(self._out / id))
        return found


@pytest.fixture
def kept(tree: Path, home: Path, tmp_path: Path) -> Kept:
    """A project with two checkpoints."""
    (tmp_path / "out").mkdir()
    return Kept(tree, home, tmp_path / "out")


def _more_checkpoints(kept: Kept) -> None:
    kept.edit("file", "1\n")
    kept.edit("file", "2\n")


LOST: dict[str, Callable[[Kept], None]] = {
    "checkpoints": _more_checkpoints,
    "outside": lambda kept: kept.edit_outside("lost\n"),
    "merge": Kept.merge,
}
COMMANDS = {
    "forget": (("forget", "secret", "--yes"),),
    "gc": (("gc", "--full"),),
    "doctor": (("doctor", "--repair"), ("gc",)),
    "checkpoint": (("checkpoint",), ("gc",), ("forget", "secret", "--yes")),
}
CASES = (
    ("checkpoints", "forget", False),
    ("outside", "forget", True),
    ("outside", "checkpoint", False),
    ("merge", "gc", True),
    ("merge", "doctor", False),
    ("merge", "checkpoint", False),
)


@pytest.mark.parametrize(("lost", "words", "died"), CASES)
def test_no_command_deletes_what_an_older_ledger_does_not_know(
    kept: Kept, lost: str, words: str, died: bool
) -> None:
    """All packs stay; with the newer ledger in place again, everything is as it was."""
    kept.copy("old")
    LOST[lost](kept)
    kept.copy("new")
    kept.put_back("old")
    if died:
        kept.die()
    before = kept.packs()
    said = [kept(*each) for each in COMMANDS[words]]
    assert before <= kept.packs()
    assert not any("Traceback" in each.err for each in said)
    assert said[-1].code != 0
    kept.put_back("new")
    assert [what for what in kept.wrong() if "lost its end" not in what] == []


def test_doctor_takes_no_lost_pack_for_litter(kept: Kept) -> None:
    """What an older ledger lost is not called unfinished; with the newer one it is all well."""
    kept.copy("old")
    _more_checkpoints(kept)
    kept.copy("new")
    kept.put_back("old")
    said = kept("doctor")
    assert (said.code, "lost its end" in said.out) == (4, True)
    assert "was never finished" not in said.out
    (kept.store / "lock").unlink()
    said = kept("doctor")
    assert (said.code, "was never finished" in said.out) == (4, False)
    kept.put_back("new")
    assert kept.wrong() == []


def test_what_a_lost_end_of_the_ledger_left_is_kept(tree: Path, home: Path) -> None:
    """Packs that only a lost part of the ledger knew survive crashes and later checkpoints."""
    (tree / "a").write_text("1")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    store = home / "projects" / project.id
    shutil.copy(store / "ledger.db", home / "backup.db")
    with takeback.open(tree, home=home) as project:
        (tree / "a").write_text("2")
        project.checkpoint()
    packs = set(os.listdir(store / "git" / "objects" / "pack"))
    shutil.copy(home / "backup.db", store / "ledger.db")
    for number in (3, 4):
        with (store / "lock").open("r+b") as lock:
            lock.write(b"%-10d" % 99999)
        with takeback.open(tree, home=home) as project:
            (tree / "a").write_text(f"{number}")
            project.checkpoint()
            assert packs <= set(os.listdir(store / "git" / "objects" / "pack"))
            assert any("lost its end" in what for what in spoken(project.verify().problems))
