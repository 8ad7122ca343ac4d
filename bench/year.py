"""A year of turns: how large the history gets beside git's, and whether anything gets slower.

Each turn edits 25 KiB, through the API that harnesses use: 25 KiB of lines are replaced by new
ones, or, which is harder, only some lines in files that have 25 KiB together. The same states are
commits of a git repository, packed with `git gc --aggressive`. The clock is set back a year and
goes on with each turn. Default retention is what becomes of a copy at the end. Syncs are left out
but where times are taken: they change no size.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Self

import trees
from footprint import MAIN, ROOT, timed

import takeback
from takeback.disk import operations
from takeback.session import Session

KIB, MIB = 1 << 10, 1 << 20
DAY = 86_400 * 10**9
EDITED = 25 * KIB
SESSION = 50
"""Turns of one session."""
WORDS = 3000
ROUNDS = 9
KEEP_ALL = '[retention]\ndays = "forever"\n'
MANUAL = "[gc]\nauto = false\n"
GC = """
import sys, time
sys.path.insert(0, sys.argv[4])
shift = int(sys.argv[3]); real = time.time_ns
time.time_ns = lambda: real() - shift
import takeback
from takeback.disk import operations
operations.sync = False
began = time.perf_counter()
with takeback.open(sys.argv[1], home=sys.argv[2]) as project:
    done = project.gc()
took = time.perf_counter() - began
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], took)
"""


class Plan:
    """How large the year is.

    `spread` is the share of files that are anywhere in the tree and not where the work is. A turn
    brings 25 KiB of new lines; with `few` it edits some lines only in files that have 25 KiB.
    """

    def __init__(
        self, files: int, turns: int, gc_every: int, spread: float, *, few: bool = False
    ) -> None:
        self.files = files
        self.turns = turns
        self.gc_every = gc_every
        self.spread = spread
        self.few = few


FULL = (
    Plan(files=10_000, turns=5_000, gc_every=500, spread=0.15),
    Plan(files=10_000, turns=5_000, gc_every=500, spread=0.15, few=True),
)
QUICK = (
    Plan(files=2_000, turns=500, gc_every=100, spread=0.15),
    Plan(files=2_000, turns=500, gc_every=100, spread=0.15, few=True),
    Plan(files=2_000, turns=500, gc_every=100, spread=1.0, few=True),
)


class Moment:
    """What some things took at one time of the year, in seconds; memory in bytes."""

    def __init__(self) -> None:
        self.checkpoint = 0.0
        self.log = 0.0
        self.show = 0.0
        self.gc = 0.0
        self.gc_memory = 0
        self.sizes: dict[str, int] = {}


class Case:
    """One store, and what was measured of it."""

    def __init__(
        self, name: str, home: Path, settings: str, tree: Path, like: "Case | None" = None
    ) -> None:
        self.name = name
        self.home = home
        self.tree = tree
        self.early = like.early if like is not None else Moment()
        self.late = Moment()
        self.before_gc = like.before_gc if like is not None else 0
        if like is not None:
            shutil.copytree(like.home, home)
        else:
            home.mkdir(mode=0o700)
        (home / "config.toml").write_text(settings)


class Found:
    """All figures of one year."""

    def __init__(self, plan: Plan, cases: list[Case]) -> None:
        self.plan = plan
        self.cases = cases
        self.git: dict[str, int] = {}
        self.edits = 0
        self.folders = 0
        self.seconds = 0.0


class Text:
    """Lines like those of source files."""

    def __init__(self, chance: random.Random) -> None:
        syllables, shapes = trees.SYLLABLES, trees.SHAPES
        self._chance = chance
        self._shapes = shapes
        self.words = [
            "".join(chance.choices(syllables, k=chance.choice((1, 2, 2, 3)))) for _ in range(WORDS)
        ]
        self._weights = list(accumulate(1 / (rank + 5) for rank in range(WORDS)))

    def line(self) -> bytes:
        """One line."""
        chance = self._chance
        drawn = chance.choices(self.words, cum_weights=self._weights, k=5)
        names = dict(zip("abcde", drawn, strict=True))
        shape = chance.choice(self._shapes)
        return shape.format(**names, A=drawn[0].title(), n=chance.randrange(100)).encode()

    def lines(self, size: int) -> list[bytes]:
        """So many bytes of lines, or a little more."""
        made: list[bytes] = []
        while size > 0:
            made.append(self.line())
            size -= len(made[-1])
        return made

    def label(self) -> str:
        """What somebody asks of an agent."""
        return "Change how {} works, so that {} and {} agree".format(
            *self._chance.choices(self.words, k=3)
        )


class World:
    """The tree as it is edited, and the commits that tell the same."""

    def __init__(self, work: Path, plan: Plan, seed: int = 11) -> None:
        self._chance = random.Random(seed)
        self.text = Text(self._chance)
        self._plan = plan
        self.tree = work / "tree"
        self._import = (work / "import").open("wb")
        self._commits = 0
        self.names = list(trees.file_names(self._chance, plan.files))
        self._lines = {}
        self._near: dict[str, list[str]] = {}
        for name in self.names:
            self._lines[name] = self.text.lines(trees.random_size(self._chance))
            self._near.setdefault(name.rpartition("/")[0], []).append(name)
            trees.write_file(self.tree / name, b"".join(self._lines[name]))
        self.commit("before", self.names)

    def turn(self) -> list[str]:
        """Edit 25 KiB; return the names of the files."""
        left, touched = EDITED, []
        at_work = self._near[self._chance.choice(self.names).rpartition("/")[0]]
        while left > 0:
            anywhere = self._chance.random() < self._plan.spread
            name = self._chance.choice(self.names if anywhere else at_work)
            if self._plan.few:
                left -= sum(map(len, self._lines[name]))
                self._edit_lines(name)
            else:
                left -= self._rewrite_part(name)
            touched.append(name)
        return touched

    def _rewrite_part(self, name: str) -> int:
        """Replace a part of a file by as much that is new; return its bytes."""
        chance, lines = self._chance, self._lines[name]
        at = chance.randrange(len(lines))
        end = min(len(lines), at + max(1, int(len(lines) * chance.uniform(0.1, 0.7))))
        fresh = self.text.lines(sum(map(len, lines[at:end])))
        lines[at:end] = fresh
        (self.tree / name).write_bytes(b"".join(lines))
        return sum(map(len, fresh))

    def _edit_lines(self, name: str) -> None:
        chance, lines = self._chance, self._lines[name]
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(lines) + 1)
            fresh = [self.text.line() for _ in range(chance.choice((1, 1, 2, 4)))]
            lines[at : at + chance.choice((0, 1, 1, 2, 5))] = fresh
        (self.tree / name).write_bytes(b"".join(lines))

    def one_more_line(self) -> None:
        """Change one file a little."""
        with (self.tree / self.names[0]).open("ab") as file:
            file.write(self.text.line() + b"# one more\n")

    def as_before(self) -> None:
        """Take back what `one_more_line` did."""
        name = self.names[0]
        (self.tree / name).write_bytes(b"".join(self._lines[name]))

    def commit(self, label: str, names: list[str]) -> None:
        """Tell git of a state."""
        said, at = label.encode(), 1_700_000_000 + self._commits * 600
        head = b"commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata %d\n%s\n"
        self._import.write(head % (at, len(said), said))
        for name in dict.fromkeys(names):
            content = b"".join(self._lines[name])
            self._import.write(b"M 100644 inline %s\ndata %d\n" % (name.encode(), len(content)))
            self._import.write(content + b"\n")
        self._commits += 1

    def packed_by_git(self, folder: Path) -> dict[str, int]:
        """What git makes of all commits, by part."""
        self._import.close()
        folder.mkdir()
        trees.git(folder, "init", "-q", "-b", "main", ".")
        with Path(self._import.name).open("rb") as stream:
            subprocess.run(
                ["git", "fast-import", "--quiet"],
                cwd=folder, stdin=stream, check=True, env=trees.clean(),
            )  # fmt: skip
        trees.git(folder, "gc", "--aggressive", "--prune=now", "-q")
        trees.git(folder, "read-tree", "HEAD")
        return sizes_of(folder / ".git")


def measure(work: Path, plan: Plan, say: Callable[[str], None]) -> Found:
    """Play the year; return all figures."""
    began = time.monotonic()
    work.mkdir()
    say(f"a year: making {plan.files:,} files")
    world = World(work, plan)
    case = Case("everything kept", work / "all", MANUAL + KEEP_ALL, world.tree)
    found = Found(plan, [case])
    with _Clock(plan.turns) as clock:
        play(found, world, clock, say)
        case.before_gc = sum(sizes_of(case.home).values())
        trimmed = Case("default retention", work / "default", MANUAL, world.tree, like=case)
        found.cases.append(trimmed)
        say("a year: its end")
        for each in found.cases:
            each.late = moment(world, each, clock)
    say("a year: what git makes of it")
    found.git = world.packed_by_git(work / "git")
    found.seconds = time.monotonic() - began
    shutil.rmtree(work)
    return found


def play(found: Found, world: World, clock: "_Clock", say: Callable[[str], None]) -> None:
    """All turns, in sessions, with a gc now and then."""
    plan, (case,) = found.plan, found.cases
    for start in range(0, plan.turns, SESSION):
        with (
            takeback.open(world.tree, home=case.home) as project,
            project.session("bench") as session,
        ):
            for number in range(start, min(start + SESSION, plan.turns)):
                names = play_turn(world, session)
                found.edits += len(names)
                found.folders += len({name.rpartition("/")[0] for name in names})
                clock.forward(number)
        if start == 0:
            case.early = moment(world, case, clock)
        elif (start + SESSION) % plan.gc_every == 0:
            say(f"a year: {start + SESSION:,} of {plan.turns:,} turns")
            run_gc(case, clock)


def play_turn(world: World, session: Session) -> list[str]:
    """One turn of an agent; the files that it changed."""
    operations.sync = False
    try:
        label = world.text.label()
        with session.turn(label):
            names = world.turn()
        world.commit(label, names)
    finally:
        operations.sync = True
    return names


class _Clock:
    """The clock of this process, set back a year at first and right at the end."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.shift = 365 * DAY
        self._real = time.time_ns

    def __enter__(self) -> Self:
        time.time_ns = lambda: self._real() - self.shift
        return self

    def __exit__(self, *_: object) -> None:
        time.time_ns = self._real

    def forward(self, done: int) -> None:
        """So many turns are over."""
        self.shift = 365 * DAY * (self._turns - done - 1) // self._turns


def moment(world: World, case: Case, clock: _Clock) -> Moment:
    """What things take now: one gc, checkpoints in a warm process, looks from cold ones."""
    now = Moment()
    now.gc, now.gc_memory = run_gc(case, clock)
    now.sizes = sizes_of(case.home)
    with takeback.open(world.tree, home=case.home) as project:
        project.checkpoint()
        series = []
        for _ in range(ROUNDS):
            world.one_more_line()
            time.sleep(trees.SETTLE_SECONDS)
            began = time.perf_counter()
            project.checkpoint()
            series.append(time.perf_counter() - began)
        world.as_before()
        project.checkpoint()
    now.checkpoint = statistics.median(series)
    environment = {**os.environ, "TAKEBACK_HOME": str(case.home)}
    for words in (["log"], ["show", "@~0"]):
        start = [str(Path(sys.executable).resolve()), "-I", "-S", str(MAIN)]
        command = [*start, "-C", str(case.tree), *words]
        took = statistics.median(timed(command, environment) for _ in range(ROUNDS))
        setattr(now, words[0], took)
    return now


def run_gc(case: Case, clock: _Clock) -> tuple[float, int]:
    """One gc in a process of its own; its seconds, and its peak of memory."""
    arguments = [str(case.tree), str(case.home), str(clock.shift), str(ROOT / "src")]
    done = subprocess.run(
        [sys.executable, "-I", "-c", GC, *arguments], capture_output=True, text=True, check=True
    )
    peak, seconds = done.stdout.split()
    return float(seconds), int(peak) * KIB


def sizes_of(folder: Path) -> dict[str, int]:
    """Bytes by part: packs, their indexes, the ledger, the stat cache, the rest."""
    parts = {".pack": "packs", ".idx": "indexes of packs", "ledger.db": "ledger"}
    parts |= {"index": "stat cache, index"}
    sizes = dict.fromkeys((*parts.values(), "rest"), 0)
    for path in folder.rglob("*"):
        if path.is_file():
            part = parts.get(path.name) or parts.get(path.suffix) or "rest"
            sizes[part] += path.stat().st_size
    return sizes
