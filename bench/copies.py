"""Taking back thousands of files beside a plain copy of the same files.

In each round an agent edits every file; `takeback undo` brings them back, from the start of the
process to its end, and `cp -a && sync -f` copies the same files into a new folder on the same
disk. Both are durable when they end. They take turns in going first, and what others left unwritten
is synced before each, outside the time.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from contenders import Takeback
from restorers import ColdUndo, Restorer
from timing import Series, Times
from trees import Tree

FILES = 4_000
MOST = 2.0
"""How many copies an undo may cost."""
UNDO = ColdUndo.name
COPY = "`cp -a && sync -f`"


class Copy(Restorer):
    """A copy of all files, as one would make it by hand."""

    name = COPY
    scans = False
    syncs = True

    def __init__(self, source: Path, target: Path) -> None:
        super().__init__()
        self._source = source
        self._target = target

    def restore(self) -> float:
        """Copy, and remove the copy outside the time."""
        command = 'cp -a "$1" "$2" && sync -f "$2"'
        before = time.perf_counter()
        subprocess.run(
            ["sh", "-c", command, "sh", str(self._source), str(self._target)], check=True
        )
        seconds = time.perf_counter() - before
        shutil.rmtree(self._target)
        return seconds


def measure(tree: Tree, work: Path, rounds: int) -> Times:
    """Both ways with all files of a tree, in alternated pairs."""
    files = {name: (tree.path / name).read_bytes() for name in tree.files}
    source = work / "source"
    for name, content in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    home = work / "takeback"
    worker = Takeback(tree.path, home)
    worker.first()
    pair: list[Restorer] = [ColdUndo(worker, tree.path, home), Copy(source, work / "copy")]
    times: Times = {each.name: Series() for each in pair}
    try:
        for number in range(rounds):
            worker.begin()
            tree.edit(len(files))
            worker.end()
            for each in pair if number % 2 else reversed(pair):
                os.sync()
                times[each.name].seconds.append(each.restore())
            for name, content in files.items():
                if (tree.path / name).read_bytes() != content:
                    raise RuntimeError(f"{name} did not come back")
    finally:
        worker.close()
        shutil.rmtree(work)
    return times


def render(times: Times) -> str:
    """The result in a few lines of Markdown."""
    undo, copy = times[UNDO], times[COPY]
    ratio = undo.median / copy.median
    verdict = "kept" if ratio <= MOST else "missed"
    rows = [f"| {name} | {s.median:.2f} s | {s.p90:.2f} s |" for name, s in times.items()]
    return "\n".join(
        (
            f"| {FILES:,} files, {len(undo.seconds)} alternated pairs | median | p90 |",
            "|---|---:|---:|",
            *rows,
            "",
            f"An undo takes {ratio:.2f} copies; promised are {MOST:.0f} at most: {verdict}.",
        )
    )
