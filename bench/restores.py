"""How long it takes to go back: one, ten and a thousand files, ours and the peers' ways."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contenders import Takeback
from peers import PEERS, OpenCode, Peer, PlainGit
from restorers import (
    ColdPreview,
    ColdUndo,
    CopyBack,
    OpenCodeAll,
    OpenCodeFiles,
    PeerRestore,
    Restorer,
    WarmUndo,
)
from timing import Series, Times
from trees import Tree, git

import takeback

FEW = (1, 10)
MANY = 1_000
COUNTS = (*FEW, MANY)
LAST_FILES = 10_000
KILLED = Path(__file__).with_name("killed.py")
GIT = "git read-tree --reset -u"
NAMES: dict[type[Peer], str] = {PlainGit: GIT}


class Restores:
    """All times at one size of tree: number of files → contender → series."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.times: dict[int, Times] = {}
        self.ways: dict[str, Restorer] = {}
        self.recovery = Series()
        self.merges: Times = {}


def measure(tree: Tree, work: Path, few: int, many: int) -> Restores:
    """Measure all ways back at the size of `tree`, which is afterwards as it was."""
    found = Restores(len(tree.files))
    with restorers(tree, work) as (usual, last):
        for each in (*usual, *last):
            each.first()
            found.ways[each.name] = each
        for count in COUNTS:
            rounds = many if count == MANY else few
            found.times[count] = take_turns(usual, tree, count, rounds)
        # It writes every file, and so makes everybody read every file again.
        found.times[10] |= take_turns(last, tree, 10, many)
    git(tree.path, "update-index", "-q", "--refresh")
    return found


@contextmanager
def restorers(tree: Tree, work: Path) -> Iterator[tuple[list[Restorer], list[Restorer]]]:
    """Everybody with a store of its own; the second list is measured after the first.

    With many files OpenCode's redo takes minutes, and is left out.
    """
    home = work / "takeback"
    worker = Takeback(tree.path, home)
    worker.first()
    usual: list[Restorer] = [
        WarmUndo(worker),
        ColdUndo(worker, tree.path, home),
        ColdPreview(worker, tree.path, home),
        *(
            PeerRestore(peer(tree.path, work / peer.__name__), NAMES.get(peer, ""))
            for peer in PEERS
        ),
        OpenCodeFiles(OpenCode(tree.path, work / "files")),
        CopyBack(tree.path, work / "copies", synced=False),
        CopyBack(tree.path, work / "synced", synced=True),
    ]
    last: list[Restorer] = []
    if len(tree.files) <= LAST_FILES:
        last.append(OpenCodeAll(OpenCode(tree.path, work / "all")))
    try:
        yield usual, last
    finally:
        worker.close()
        shutil.rmtree(work)


def take_turns(contenders: list[Restorer], tree: Tree, count: int, rounds: int) -> Times:
    """Let everybody take back the same number of edits in each round, each in another order."""
    times: Times = {each.name: Series() for each in contenders}
    files = tree.chosen(count)
    wanted = {name: (tree.path / name).read_bytes() for name in files}
    for number in range(rounds):
        for place in range(len(contenders)):
            each = contenders[(place + number) % len(contenders)]
            each.files = files
            each.before()
            tree.edit(count)
            each.after()
            times[each.name].seconds.append(each.restore())
            for name, content in wanted.items():
                if (tree.path / name).read_bytes() != content:
                    raise RuntimeError(f"{each.name} did not take {name} back")
    return times


def measure_recovery(tree: Tree, work: Path, rounds: int) -> Series:
    """How long a process needs that finds a restore of 1,000 files killed in the middle."""
    series = Series()
    worker = Takeback(tree.path, work)
    try:
        worker.first()
        for _ in range(rounds):
            worker.begin()
            tree.edit(MANY)
            worker.end()
            series.seconds.append(recover(tree, work))
            worker.undo()
    finally:
        worker.close()
        shutil.rmtree(work)
    return series


def recover(tree: Tree, home: Path) -> float:
    """Kill a restore half-way; time what brings everything back to before it."""
    files = tree.chosen(MANY)
    edited = [(tree.path / name).read_bytes() for name in files]
    command = [sys.executable, "-I", str(KILLED), str(tree.path), str(home), str(MANY // 2)]
    if (ended := subprocess.run(command, check=False).returncode) != -signal.SIGKILL:
        raise RuntimeError(f"the restore was not killed: {ended}")
    if [(tree.path / name).read_bytes() for name in files] == edited:
        raise RuntimeError("the restore was killed before it changed anything")
    before = time.perf_counter()
    takeback.open(tree.path, home=home).close()
    seconds = time.perf_counter() - before
    if [(tree.path / name).read_bytes() for name in files] != edited:
        raise RuntimeError("the restore was not taken back")
    return seconds
