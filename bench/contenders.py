"""Everything that is timed, behind one face: `first` and `take` return seconds."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from peers import Peer

ROOT = Path(__file__).resolve().parent.parent
SKIPPED_BY_LISTER = (".git", "node_modules")


class Contender(Protocol):
    """Something that takes checkpoints, or only looks."""

    name: str

    def first(self) -> float:
        """Set up, and take the first checkpoint."""

    def take(self) -> float:
        """Take a checkpoint."""

    def close(self) -> None:
        """End what was started; the store stays."""


class Takeback:
    """Takeback in a warm process of its own."""

    def __init__(
        self, tree: Path, store: Path, *, twin: bool = False, checkout: Path = ROOT
    ) -> None:
        self.name = "Takeback, pure Python" if twin else "Takeback"
        store.mkdir(mode=0o700, parents=True)
        python = sys.executable if checkout == ROOT else str(checkout / ".venv/bin/python")
        command = [python, "-I", str(checkout / "bench/worker.py"), str(tree), str(store)]
        self._process = subprocess.Popen(
            [*command, "twin"] if twin else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def first(self) -> float:
        """Take the first checkpoint; the process has been started and the project opened."""
        return self._ask("take")

    def take(self) -> float:
        """Take a checkpoint."""
        return self._ask("take")

    def scan(self) -> float:
        """Run the stat loop alone."""
        return self._ask("scan")

    def begin(self) -> float:
        """Begin a turn of an agent."""
        return self._ask("begin")

    def end(self) -> float:
        """End the turn."""
        return self._ask("end")

    def undo(self) -> float:
        """Take the newest turn back."""
        return self._ask("undo")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}")

    def _ask(self, word: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()) / 1e9


class TimedPeer:
    """A peer's commands, timed from outside."""

    def __init__(self, peer: Peer) -> None:
        self.name = peer.name
        self._peer = peer
        peer.store.mkdir(parents=True)

    def first(self) -> float:
        """Set up, and take the first checkpoint."""
        before = time.perf_counter()
        self._peer.first()
        return time.perf_counter() - before

    def take(self) -> float:
        """Take a checkpoint."""
        before = time.perf_counter()
        self._peer.take()
        return time.perf_counter() - before

    def close(self) -> None:
        """Nothing runs."""


class Lister:
    """The C program that only lists and lstats; `node_modules` and `.git` it need not enter."""

    name = "C: list + lstat only"

    def __init__(self, tree: Path, program: Path) -> None:
        self._command = [str(program), str(tree), *SKIPPED_BY_LISTER]

    def first(self) -> float:
        """It has nothing to set up."""
        return self.take()

    def take(self) -> float:
        """Look at everything once."""
        before = time.perf_counter()
        subprocess.run(self._command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - before

    def close(self) -> None:
        """Nothing runs."""
