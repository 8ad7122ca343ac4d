"""Many processes at once, some of them killed: nothing acked is lost, and nothing is mixed."""

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

import pytest

from faults.children import Child, Tell
from faults.judge import fsck
from faults.report import FULL, SECONDS, noted, stage
from takeback.disk.lock import PATIENCE
from takeback.project import Project

WORKERS = 4
EACH = 100 if FULL else 25
KILL_AFTER = 8
"""So many checkpoints are acked between two kills."""
FILES = ("one", "two", "deep/three")


class Acked(NamedTuple):
    """A checkpoint that a worker was told of, and its own state at that time."""

    id: str
    worker: str
    state: int


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("round_number", range(5 if FULL else 1))
def test_nothing_is_lost_or_mixed(round_number: int) -> None:
    """Four processes edit and checkpoint one project while one after the other is killed."""
    with stage() as folder, noted(concurrency=WORKERS, each=EACH, round=round_number) as note:
        tree, home = folder / "tree", folder / "home"
        tree.mkdir()
        crowd = _Crowd(tree, home)
        crowd.run()
        note["killed"], note["acked"] = crowd.kills, len(crowd.acked)
        note["longest_wait_ms"] = int(crowd.longest * 1000)
        assert crowd.broken == []
        assert len(crowd.acked) == WORKERS * EACH
        assert crowd.kills >= EACH * WORKERS // KILL_AFTER - WORKERS
        assert crowd.longest < PATIENCE
        wrong = list(_judge(tree, home, crowd.acked))
        assert not wrong, "\n".join(wrong[:20])


class _Crowd:
    """The workers, a writer that never checkpoints, and whoever kills."""

    def __init__(self, tree: Path, home: Path) -> None:
        self._tree = tree
        self._home = home
        self.acked: list[Acked] = []
        self.broken: list[str] = []
        self.longest = 0.0
        self.kills = 0
        self._states = dict.fromkeys(map(str, range(WORKERS)), 0)
        self._children: dict[str, Child] = {}

    def run(self) -> None:
        """Start everybody, listen, kill now and then, and start the killed again."""
        writer = Child(self._scribble)
        with DefaultSelector() as ears:
            for worker in self._states:
                self._start(worker, ears)
            while ears.get_map():
                for key, _ in ears.select():
                    self._listen(str(key.data), ears)
        os.kill(writer.pid, signal.SIGKILL)
        writer.end()

    def _start(self, worker: str, ears: DefaultSelector) -> None:
        child = Child(lambda tell: self._work(tell, worker, self._states[worker]))
        self._children[worker] = child
        ears.register(child.fileno(), EVENT_READ, worker)

    def _listen(self, worker: str, ears: DefaultSelector) -> None:
        child = self._children[worker]
        heard = child.hear()
        if heard is None:
            ears.unregister(child.fileno())
            ended = child.end()
            if os.WIFSIGNALED(ended.status):
                self._start(worker, ears)
        elif "broken" in heard or "crashed" in heard:
            self.broken.append(str(heard))
        elif "state" in heard:
            self._states[worker] = int(str(heard["state"]))
        else:
            self._note(Acked(str(heard["acked"]), worker, self._states[worker]))
            self.longest = max(self.longest, float(str(heard["took"])))

    def _note(self, acked: Acked) -> None:
        self.acked.append(acked)
        if len(self.acked) % KILL_AFTER == 0:
            self._kill_somebody()

    def _kill_somebody(self) -> None:
        """Kill the next one in turn, whatever it is doing: waiting, reading, committing."""
        turns = (str((self.kills + turn) % WORKERS) for turn in range(WORKERS))
        for worker in turns:
            victim = self._children[worker].pid
            if _is_running(victim):
                os.kill(victim, signal.SIGKILL)
                self.kills += 1
                return

    def _work(self, tell: Tell, worker: str, state: int) -> None:
        """Edit, say so, checkpoint, say so."""
        with Project.open(os.fsencode(self._tree), home=os.fsencode(self._home)) as project:
            while sum(acked.worker == worker for acked in self.acked) < EACH:
                state += 1
                _save_all(self._tree / worker, worker, state)
                tell({"state": state})
                start = time.monotonic()
                made = project.checkpoint(f"{worker} {state}")
                took = str(time.monotonic() - start)
                tell({"acked": made.id, "took": took})
                self.acked.append(Acked(made.id, worker, state))

    def _scribble(self, _tell: Tell) -> None:
        """Save all the time, in a folder that nobody else writes to."""
        state = 0
        while True:
            state += 1
            _save_all(self._tree / "writer", "writer", state)


def _is_running(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


# -- states ----------------------------------------------------------------------------------


def _text(author: str, state: int, name: str) -> bytes:
    line = f"{author} {state} {name}\n".encode()
    return line * (1 + state * 37 % 400)


def _save_all(folder: Path, author: str, state: int) -> None:
    """Save a new state of every file as editors do: beside it, then renamed over it."""
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        beside = folder / f"{name}.new"
        beside.write_bytes(_text(author, state, name))
        os.replace(beside, folder / name)


def _states(tree: Path) -> Iterator[tuple[str, str, int]]:
    """(author, file, state) of every file that is there; state -1 if it is not a whole one."""
    for author in sorted(os.listdir(tree)):
        for name in FILES:
            for path in (tree / author / name, tree / author / f"{name}.new"):
                if path.exists():
                    yield author, path.name, _state(author, name, path.read_bytes())


def _state(author: str, name: str, data: bytes) -> int:
    words = data.split(b"\n", 1)[0].decode().split(" ")
    state = int(words[1]) if len(words) == 3 and words[1].isdigit() else -1
    return state if data == _text(author, state, name) else -1


# -- the judgement ---------------------------------------------------------------------------


def _judge(tree: Path, home: Path, acked: list[Acked]) -> Iterator[str]:
    with Project.open(os.fsencode(tree), home=os.fsencode(home)) as project:
        for damage in project.verify().damage:
            yield f"verify: {damage.what}"
        order = [checkpoint.id for checkpoint in project.checkpoints()][::-1]
        for lost in {one.id for one in acked} - set(order):
            yield f"checkpoint {lost} was acked and is lost"
        seen: dict[tuple[str, str], int] = {}
        for id in order:
            found = dict(_extracted(project, id, tree.parent / "out"))
            yield from _mixed(id, found)
            yield from _went_back(id, found, seen)
            yield from _not_its_own(id, found, acked)
    yield from fsck(home)
    yield from _gaps(home)


def _extracted(project: Project, id: str, out: Path) -> Iterator[tuple[tuple[str, str], int]]:
    project.extract(id, out)
    try:
        for author, name, state in _states(out):
            yield (author, name), state
    finally:
        shutil.rmtree(out)


def _mixed(id: str, found: dict[tuple[str, str], int]) -> Iterator[str]:
    """Every file is one whole state that was saved; only what is beside it may be half-written."""
    for (author, name), state in found.items():
        if state < 0 and not name.endswith(".new"):
            yield f"checkpoint {id}: {author}/{name} is no state that was ever saved"


def _went_back(
    id: str, found: dict[tuple[str, str], int], seen: dict[tuple[str, str], int]
) -> Iterator[str]:
    """No checkpoint holds an older state of a file than the checkpoint before it."""
    for file, state in found.items():
        if not file[1].endswith(".new"):
            if state < seen.get(file, 0):
                yield f"checkpoint {id}: {file} is at {state}, it was at {seen[file]} before"
            seen[file] = max(state, seen.get(file, 0))


def _not_its_own(id: str, found: dict[tuple[str, str], int], acked: list[Acked]) -> Iterator[str]:
    """Whoever was told of a checkpoint finds its own last save in it."""
    for one in acked:
        if one.id == id:
            for name in FILES:
                state = found.get((one.worker, os.path.basename(name)))
                if state != one.state:
                    yield f"checkpoint {id}: {one.worker} saved {one.state}, it holds {state}"


def _gaps(home: Path) -> Iterator[str]:
    for ledger in home.glob("projects/*/ledger.db"):
        db = sqlite3.connect(ledger)
        numbers = [seq for (seq,) in db.execute("SELECT seq FROM events ORDER BY seq")]
        db.close()
        if numbers != list(range(1, len(numbers) + 1)):
            yield "the events have gaps"
