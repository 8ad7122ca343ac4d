"""How long a merge takes: the same undo of ten files, with and without your edits since."""

import shutil
from collections.abc import Callable
from pathlib import Path

from contenders import Takeback
from timing import Series, Times
from trees import Tree

FILES = 10
EXACT, MERGED = "nobody was there since", "you edited the same files since"


def measure(tree: Tree, work: Path, rounds: int) -> Times:
    """Time both undos in turns; the tree is afterwards as it was."""
    names = tree.chosen(FILES)
    old = {name: (tree.path / name).read_bytes() for name in names}
    times: Times = {EXACT: Series(), MERGED: Series()}
    worker = Takeback(tree.path, work)
    try:
        worker.first()
        for number in range(rounds):
            _round(worker, tree, old, times[EXACT], number, lambda content: content)
            _round(worker, tree, old, times[MERGED], number, lambda content: content + b"# mine\n")
    finally:
        worker.close()
        shutil.rmtree(work)
    return times


def _round(
    worker: Takeback,
    tree: Tree,
    old: dict[str, bytes],
    series: Series,
    number: int,
    yours: Callable[[bytes], bytes],
) -> None:
    """An agent changes the first line of each file, you the end, and the agent's goes."""
    worker.begin()
    for name, content in old.items():
        _, _, rest = content.partition(b"\n")
        tree.write(name, b"# the agent's line %d\n" % number + rest)
    tree.settle()
    worker.end()
    for name in old:
        tree.write(name, yours((tree.path / name).read_bytes()))
    tree.settle()
    series.seconds.append(worker.undo())
    for name, content in old.items():
        if (tree.path / name).read_bytes() != yours(content):
            raise RuntimeError(f"{name} is not what it shall be")
        tree.write(name, content)
    tree.settle()
    worker.take()
