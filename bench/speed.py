"""How long checkpoints take: no change, some files changed, and the first one."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from contenders import Contender, Lister, Takeback, TimedPeer
from peers import PEERS, Peer, PlainGit
from timing import Series, Times, take_turns
from trees import Tree, make_empty_repository

Factory = Callable[[Path], Contender]
COPYING = {peer.name for peer in PEERS if not peer.borrows and peer is not PlainGit}


class Speed:
    """All times at one size of tree: case → contender → series."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.warm: dict[str, Times] = {}
        self.first_new: Times = {}
        self.first_held: Times = {}


def measure(tree: Tree, work: Path, lister: Path, rounds: int, firsts: int) -> Speed:
    """Measure everything at the size of `tree`; stores are made below `work` and removed.

    First checkpoints come first, while the pack of the tree's own repository holds all content.
    """
    speed = Speed(len(tree.files))
    measure_firsts(speed, tree.path, work, firsts)
    contenders = all_contenders(tree.path, work, lister)
    try:
        for each in contenders:
            once = each.first()
            if each.name in COPYING:
                speed.first_new[each.name] = Series([once])
        for each in contenders:
            each.take()  # what was too young to be trusted at the first is looked at once more
        speed.warm["nothing changed"] = take_turns(contenders, rounds)
        for count in (10, 1000) if speed.files == 10_000 else (10,):
            times = take_turns(contenders, rounds, partial(tree.edit, count))
            speed.warm[f"{count:,} files changed"] = times
    finally:
        for each in contenders:
            each.close()
        shutil.rmtree(work)
    return speed


def all_contenders(tree: Path, work: Path, lister: Path) -> list[Contender]:
    """Everybody, each with a store of its own."""
    peers = [TimedPeer(peer(tree, work / peer.__name__)) for peer in PEERS]
    native, twin = Takeback(tree, work / "native"), Takeback(tree, work / "twin", twin=True)
    return [native, twin, *peers, Lister(tree, lister)]


def measure_firsts(speed: Speed, tree: Path, work: Path, count: int) -> None:
    """Take first checkpoints into new stores, in turns, `count` of each that matters.

    Peers which copy everything, other than git itself, are only set up once, later: at 100,000
    files each of them takes a minute.
    """
    borrowing = [peer for peer in PEERS if peer.borrows]
    held: dict[str, Factory] = {"Takeback": partial(Takeback, tree), **factories(tree, borrowing)}
    speed.first_held = repeat_first(held, work, count)
    new: dict[str, Factory] = {"Takeback": partial(Takeback, tree), **factories(tree, [PlainGit])}
    with without_packs(tree, work):
        speed.first_new = repeat_first(new, work, count)


def factories(tree: Path, peers: list[type[Peer]]) -> dict[str, Factory]:
    """For each peer, what makes it anew with a given store."""
    return {peer.name: partial(new_peer, peer, tree) for peer in peers}


def new_peer(peer: type[Peer], tree: Path, store: Path) -> Contender:
    """A peer with a new store."""
    return TimedPeer(peer(tree, store))


def repeat_first(makers: dict[str, Factory], work: Path, count: int) -> Times:
    """Take the first checkpoint of each maker `count` times, in turns, in a new store each time."""
    times: Times = {name: Series() for name in makers}
    for _ in range(count):
        for name, make in makers.items():
            contender = make(work / "first")
            times[name].seconds.append(contender.first())
            contender.close()
            shutil.rmtree(work / "first")
    return times


@contextmanager
def without_packs(tree: Path, work: Path) -> Iterator[None]:
    """Let the tree have a repository with one empty commit for a while."""
    work.mkdir(exist_ok=True)
    aside = work / "aside.git"
    (tree / ".git").rename(aside)
    try:
        make_empty_repository(tree / ".git")
        yield
    finally:
        shutil.rmtree(tree / ".git")
        aside.rename(tree / ".git")
