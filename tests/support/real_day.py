"""A day's work of three agents and a person on one project, the same each time it is played.

Clock and chance are replaced while it is played, so that ids, times and screens are the same in
every run. `Day.truth` tells who really wrote what: the log has to say the same.
"""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import takeback
from takeback.disk import machine
from takeback.session import Session, Turn

MORNING = 1_793_606_400_000_000_000
"""2026-11-02 08:00 UTC, in nanoseconds."""
SECOND = 1_000_000_000

PROMPTS = (
    "Add payment validation",
    "Fix the flaky login test",
    "Rename the helpers in {part}",
    "Write docs for {part}",
    "Why is {part} slow?",
    "Format everything in {part}",
    "Move the settings of {part} out of the code",
    "Add a health check to {part}",
    "Delete dead code in {part}",
    "Update the dependencies of {part}",
    "Translate the messages of {part} into German: „Größe“ statt „size“",
    "Make {part} handle empty input\n\nSee the report of yesterday.",
)
YOU = "you"


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = MORNING

    def time_ns(self) -> int:
        """The present; each look takes a moment."""
        self.now += 1_000_000
        return self.now

    def time(self) -> float:
        """The present in seconds."""
        return self.time_ns() / SECOND

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)


@contextmanager
def replaced(chance: random.Random, clock: Clock) -> Iterator[None]:
    """The clock and the chance of this process, while the day is played or looked at."""
    saved = time.time_ns, time.time, os.urandom, machine.account
    time.time_ns, time.time = clock.time_ns, clock.time
    os.urandom = chance.randbytes
    machine.account = lambda: "ana@laptop"
    try:
        yield
    finally:
        time.time_ns, time.time, os.urandom, machine.account = saved


class Day:
    """The day: a project, three agents, a person."""

    def __init__(self, root: Path, home: Path, *, files: int = 500, seed: int = 7) -> None:
        self.root, self.home, self.files = root, home, files
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.turns: list[str] = []
        self.truth: dict[tuple[int, bytes], str] = {}
        """Who wrote a path between one checkpoint and the next: a turn's id, or `you`."""
        self._written: dict[bytes, str] = {}

    def play(self, turns: int) -> None:
        """Play it from the first file to the last turn."""
        with replaced(random.Random(1), self.clock):
            self._make_files()
            with takeback.open(self.root, home=self.home) as self.project:
                self.project.checkpoint("before the day")
                agents = [
                    self.project.session("claude-code", id="5e55-10n1", title="Payment work"),
                    self.project.session("codex", id="019a-7b2c"),
                    self.project.session("nightly", title="Scripts"),
                ]
                while len(self.turns) < turns:
                    self._one_turn(agents)
                for agent in agents:
                    agent.end()

    # -- the tree --------------------------------------------------------------------------

    def _make_files(self) -> None:
        for number in range(self.files):
            path = self._path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [f"def function_{number}_{line}(): return {line}" for line in range(12)]
            path.write_text("\n".join(lines) + "\n")
        (self.root / ".env").write_text("API_KEY=sk-first-secret-of-the-day\nDEBUG=1\n")
        (self.root / "notes.md").write_text("# Notes\n")

    def _path(self, number: int) -> Path:
        part = number % 20
        return self.root / f"src/part{part:02}/group{number % 100 // 20}/module{number:04}.py"

    def _some_file(self) -> Path:
        while True:
            path = self._path(self.chance.randrange(self.files))
            if path.exists():
                return path

    def _edit(self, path: Path, author: str) -> None:
        """Change a line, or add one, as `author`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        at = self.chance.randrange(len(lines) + 1)
        new = f"value = {self.chance.randrange(1000)}  # by {author}"
        if lines and self.chance.random() < 0.5:
            lines[at - 1] = new
        else:
            lines.insert(at, new)
        path.write_text("\n".join(lines) + "\n")
        self._wrote(path, author)

    def _remove(self, path: Path, author: str) -> None:
        path.unlink()
        self._wrote(path, author)

    def _wrote(self, path: Path, author: str) -> None:
        self._written[os.fsencode(path.relative_to(self.root))] = author

    def _settle(self) -> None:
        """A look at the tree was taken: what was written until then belongs to it."""
        newest = self.project.workspace.ledger.checkpoints.newest()
        assert newest is not None
        for path, author in self._written.items():
            self.truth[newest.number, path] = author
        self._written.clear()

    # -- what happens ----------------------------------------------------------------------

    def _one_turn(self, agents: list[Session]) -> None:
        self.clock.pass_by(self.chance.uniform(20, 90))
        if self.chance.random() < 0.3:
            self._edit(self._some_file() if self.chance.random() < 0.7 else self._notes(), YOU)
        agent = self.chance.randrange(3)
        label = self.chance.choice(PROMPTS).format(part=f"part{self.chance.randrange(20):02}")
        turn = agents[agent].turn(label, whole=agent == 2)
        self._settle()
        self.turns.append(turn.id)
        ways: tuple[Callable[[Turn], str], ...] = (self._claude, self._codex, self._nightly)
        status = ways[agent](turn)
        self.clock.pass_by(self.chance.uniform(1, 5))
        turn.end(status)
        self._settle()

    def _notes(self) -> Path:
        return self.root / "notes.md"

    def _claude(self, turn: Turn) -> str:
        with turn.step("Read", {"file_path": "notes.md"}):
            self.clock.pass_by(1)
        for _ in range(self.chance.randrange(3)):
            self._edit_step(turn)
        if self.chance.random() < 0.4:
            self._sub_agent(turn)
        if self.chance.random() < 0.5:
            self._shell_step(turn, "python -m pytest -q")
        if self.chance.random() < 0.1:
            self._edit(self._notes(), YOU)  # the person types while the model thinks
        return self.chance.choices(("done", "failed", "interrupted"), (90, 5, 5))[0]

    def _edit_step(self, turn: Turn) -> None:
        path = self._some_file()
        step = turn.step("Edit", {"file_path": str(path.relative_to(self.root))})
        self._settle()
        self.clock.pass_by(2)
        self._edit(path, turn.id)
        if self.chance.random() < 0.15:
            self._edit(self.root / "scratch.txt", YOU)  # saved while the tool ran; not named
        step.end()
        self._settle()

    def _sub_agent(self, turn: Turn) -> None:
        with turn.step("Task", {"description": "look into it"}) as task:
            self._settle()
            path = self._some_file()
            step = task.step("Write", {"file_path": str(path.relative_to(self.root))})
            self._settle()
            self._edit(path, turn.id)
            step.end()
            self._settle()
        self._settle()

    def _shell_step(self, turn: Turn, command: str) -> None:
        step = turn.step("Bash", {"command": command})
        self._settle()
        self.clock.pass_by(self.chance.uniform(1, 20))
        self._edit(self.root / "build/report.txt", turn.id)
        if self.chance.random() < 0.3:
            self._edit(self.root / ".env", turn.id)
        if self.chance.random() < 0.2:
            self._remove(self._some_file(), turn.id)
        if self.chance.random() < 0.2:
            self._move(turn)
        step.end("failed" if self.chance.random() < 0.2 else "done")
        self._settle()

    def _move(self, turn: Turn) -> None:
        source = self._some_file()
        target = source.with_name("moved_" + source.name)
        shutil.move(source, target)
        self._wrote(source, turn.id)
        self._wrote(target, turn.id)

    def _codex(self, turn: Turn) -> str:
        paths = [self._some_file() for _ in range(self.chance.randrange(1, 4))]
        named = [path.relative_to(self.root) for path in paths]
        patch = "".join(f"*** Update File: {path}\n@@\n" for path in named)
        step = turn.step("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"})
        self._settle()
        for path in paths:
            self._edit(path, turn.id)
        step.end()
        self._settle()
        if self.chance.random() < 0.5:
            self._shell_step(turn, "npm test -- --watch=false")
        return "done"

    def _nightly(self, turn: Turn) -> str:
        for _ in range(self.chance.randrange(4)):
            self._edit(self._some_file(), turn.id)
        return "done" if self.chance.random() < 0.9 else "failed"
