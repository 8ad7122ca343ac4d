"""A history that grows old: turns on days of their own, a copy of each state, and gc at any age."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import oracle
import takeback
from cases import Work
from hostile.ground import git_environment
from spoken import spoken
from takeback.history.retention import Rules
from takeback.model.results import Cleanup
from takeback.session import Turn
from takeback.upkeep import gc

DAY = 86_400 * 10**9


class Years(Work):
    """A tree, its project, and a clock that can be put forward."""

    def __init__(self, tree: Path, home: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(tree, home)
        self._real, self._later = time.time_ns, 0
        patch.setattr(time, "time_ns", lambda: self._real() + self._later)
        patch.setattr(time, "time", lambda: (self._real() + self._later) / 1e9)
        self.states: dict[str, oracle.Picture] = {}
        """What each checkpoint holds, by its id, told by the oracle."""
        self.turns: list[Turn] = []

    @property
    def project(self) -> takeback.Project:
        """The project; SQLite does not wait for the disk either."""
        is_new = self._project is None
        project = super().project
        if is_new:
            project.workspace.ledger._reader.rows("PRAGMA synchronous = OFF")
        return project

    def wait(self, days: float = 1) -> None:
        """Let time pass."""
        self._later += int(days * DAY)

    @contextmanager
    def working(self, label: str = "", session: str = "") -> Iterator[Turn]:
        """A turn, with a copy of the states before and after it."""
        session = session or f"day {time.time_ns() // DAY}"
        with self.project.session("agent", id=session) as agent:
            with agent.turn(label or f"turn {len(self.turns)}") as turn:
                self.note(turn.before)
                yield turn
            self.note(self.project.turn(turn.id).after)
        self.turns.append(turn)

    def days(self, many: int, each: float = 1) -> None:
        """A turn on each of so many days, which changes a file or two."""
        for _ in range(many):
            self.wait(each)
            number = len(self.turns)
            with self.working():
                self.put(f"part{number % 3}/file{number % 5}", f"{number}\n" * (number % 7 + 1))
                self.put("log", "".join(f"line {n}\n" for n in range(number)))

    def note(self, checkpoint: str) -> None:
        """Remember what the tree holds as what a checkpoint holds."""
        self.states.setdefault(checkpoint, self.picture())

    def gc(
        self, days: float | None = 30, turns: int = 5, to_size: int = 0, *, full: bool = False
    ) -> Cleanup:
        """Let old files go, by rules of one's own."""
        wish = gc.Wish(Rules(days, turns), to_size=to_size, full=full)
        project = self.project
        with project.workspace.store.hold_gc():
            return gc.run(project.workspace.store, project.workspace.held, wish, time.time_ns)

    def extracted(self, ref: str) -> oracle.Picture:
        """What a state holds, as it is extracted."""
        target = self.tree.parent / "extracted"
        self.project.extract(ref, target)
        try:
            return oracle.picture(target)
        finally:
            shutil.rmtree(target)

    def kept(self) -> list[str]:
        """The checkpoints of which the ledger says that their files are kept, oldest first."""
        rows = self.project.workspace.ledger._reader.rows(
            "SELECT id FROM checkpoints WHERE gone IS NULL"
        )
        return [str(id) for (id,) in rows]

    def kept_turns(self) -> list[int]:
        """The turns of which the log says that their files are kept, by their place."""
        turns = {turn.id: turn.kept for turn in self.project.log(all=True).turns}
        return [place for place, turn in enumerate(self.turns) if turns[turn.id]]

    def wrong(self) -> list[str]:
        """What is wrong with what is kept: it must extract as it was, and all be sound."""
        found = [f"verify: {what}" for what in spoken(self.project.verify().problems)]
        for id in self.kept():
            if id in self.states:
                was = oracle.differences(self.states[id], self.extracted(id))
                found += [f"{id}: {what}" for what in was]
        for id in self.states.keys() - set(self.kept()):
            try:
                self.extracted(id)
                found.append(f"{id} is gone and can be extracted")
            except takeback.NoLongerKeptError:
                continue
        return found

    def complaints(self) -> list[str]:
        """What git finds wrong with the view; garbage in packs that stay is not wrong."""
        said = self.git("fsck", "--strict", "--full")
        known = ("dangling ", "notice: ")
        return [line for line in said.splitlines() if not line.startswith(known)]

    def git(self, *words: str, within: str = "") -> str:
        """Run git in the view; what it says, complaints and all."""
        del within
        done = subprocess.run(
            ["git", "--git-dir", os.fsdecode(self.project.git_dir), *words],
            env=git_environment(os.fsencode(self.tree.parent)),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr + (f"exit {done.returncode}" if done.returncode else "")
