"""How long checkpoints take, the first and later ones, and what they add to the store."""

import os
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
TURN_BYTES = 22 * 1024
COPYING = {peer.name for peer in PEERS if not peer.borrows and peer is not PlainGit}


class Plan:
    """How often things are measured at one size of tree."""

    def __init__(self, rounds: int, firsts: int, changes: tuple[int, ...], turns: int = 0) -> None:
        self.rounds = rounds
        self.firsts = firsts
        self.changes = changes
        self.turns = turns


class Speed:
    """All times at one size of tree: case → contender → series."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.warm: dict[str, Times] = {}
        self.first_new: Times = {}
        self.first_held: Times = {}
        self.disk: dict[str, int] = {}
        self.turns = 0


def measure(tree: Tree, work: Path, lister: Path, plan: Plan) -> Speed:
    """Measure everything at the size of `tree`; stores are made below `work` and removed.

    First checkpoints come first, while the pack of the tree's own repository holds all content.
    """
    speed = Speed(len(tree.files))
    measure_firsts(speed, tree.path, work, plan.firsts)
    agents = {peer.name: work / peer.__name__ for peer in PEERS}
    stores = {"Takeback": work / "native", **agents}
    contenders: list[Contender] = [
        Takeback(tree.path, stores["Takeback"]),
        *(TimedPeer(peer(tree.path, agents[peer.name])) for peer in PEERS),
    ]
    others: list[Contender] = [
        Takeback(tree.path, work / "twin", twin=True),
        Lister(tree.path, lister),
    ]
    try:
        set_up(speed, [*contenders, *others])
        speed.warm["nothing changed"] = take_turns([*contenders, *others], plan.rounds)
        for count in plan.changes:
            times = take_turns([*contenders, *others], plan.rounds, partial(tree.edit, count))
            speed.warm[f"{count:,} files changed"] = times
            if not speed.turns:
                # Between few and many changes: after many, some agents have much to do each turn.
                measure_disk(speed, contenders, stores, tree, plan.turns)
    finally:
        for each in (*contenders, *others):
            each.close()
        shutil.rmtree(work)
    return speed


def measure_disk(
    speed: Speed, contenders: list[Contender], stores: dict[str, Path], tree: Tree, turns: int
) -> None:
    """See what many small turns add to the stores."""
    before = {name: disk_usage(store) for name, store in stores.items()}
    take_turns(contenders, turns, partial(tree.turn, TURN_BYTES))
    speed.turns = turns
    speed.disk = {name: disk_usage(store) - before[name] for name, store in stores.items()}


def set_up(speed: Speed, contenders: list[Contender]) -> None:
    """Let everybody take a first checkpoint, and look once more at what was too young then."""
    for each in contenders:
        seconds = each.first()
        if each.name in COPYING:
            speed.first_new[each.name] = Series([seconds])
    for each in contenders:
        each.take()


def disk_usage(folder: Path) -> int:
    """The bytes that a folder and everything in it occupies."""
    blocks = 0
    for path, _, files in os.walk(folder):
        blocks += os.lstat(path).st_blocks
        blocks += sum(os.lstat(os.path.join(path, name)).st_blocks for name in files)
    return blocks * 512


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
