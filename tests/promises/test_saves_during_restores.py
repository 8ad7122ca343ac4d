"""Somebody saves while a restore runs: no newest save is ever lost.

In the first part the save is made at an exact moment, inside of the step: before every change on
disk and before every look at what is there. In the second part another process saves as fast as
it can while this one restores; `FAULTS=full` lets it save 5,000 times:

    FAULTS=full .venv/bin/python -I -m pytest tests/promises/test_saves_during_restores.py
"""

import contextlib
import itertools
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import takeback
from faults.children import Child, Tell
from faults.harness import settle
from faults.report import FULL, SECONDS, noted, stage
from moments import VERBS, Moments, restore, watched_by
from savers import AT_ONCE, HOW, Editor, Kept, Save
from takeback.disk import operations
from takeback.errors import TakebackError
from takeback.project import Project

SHARE = 30
"""Of so many moments, one is tried in `./check` for each way to save."""
LONG = b"x" * 100 + b"\n"

VICTIMS = (
    "written.txt",
    "made.txt",
    "gone.txt",
    "mode.sh",
    "lost/in.txt",
    "new/in.txt",
    "new/extra.txt",
    "same.txt",
    "link",
    "kind",
)
"""What is saved: each stands for another thing that a restore does to a path, or does not."""
FOLDERS = ("new", "lost", "kind")
"""Folders that a restore makes or removes, in whose place somebody saves a file."""


def before_the_turn(tree: Path) -> None:
    """Fill an emptied folder."""
    for name in ("written.txt", "gone.txt", "mode.sh", "lost/in.txt", "same.txt", "kind"):
        path = tree / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"old " + name.encode() + LONG)
    (tree / "link").symlink_to("old")


def change_everything(tree: Path) -> None:
    """What the turn does."""
    (tree / "written.txt").write_bytes(b"written by the turn" + LONG)
    (tree / "made.txt").write_bytes(b"made by the turn" + LONG)
    (tree / "gone.txt").unlink()
    (tree / "mode.sh").chmod(0o755)
    shutil.rmtree(tree / "lost")
    (tree / "new").mkdir()
    (tree / "new/in.txt").write_bytes(b"also made by the turn" + LONG)
    (tree / "link").unlink()
    (tree / "link").symlink_to("new")
    (tree / "kind").unlink()
    (tree / "kind").mkdir()


def empty(tree: Path) -> None:
    """Remove everything in a folder."""
    for path in tree.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class Outcome(NamedTuple):
    """One restore under fire: the saves, whether it went through, which paths it named."""

    moment: str
    saves: list[Save]
    problem: str
    named: frozenset[str]
    in_place: frozenset[str]
    """The saves that are at their paths afterwards."""


class Theatre:
    """A tree and its store, in which one restore after the other is disturbed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.home = folder / "home"

    def open(self) -> Project:
        """The project."""
        return takeback.open(self.tree, home=self.home)

    def play(self, verb: str, how: str, at: int, victims: tuple[str, ...]) -> Outcome | None:
        """Save the victims at a moment of a restore; None if it has fewer moments."""
        with self.open() as project:
            target = self.prepare(project, verb)
            if how not in AT_ONCE:
                # A look waits for files that are young and open for writing; these are known.
                settle(self.folder)
                project.checkpoint()
            editor = Editor(self.tree, self.folder / "aside", how, victims)
            moments = Moments(at, editor.save_all)
            named, problem = self._restore(project, verb, target, moments)
            saves = editor.finish()
        with self.open() as project:
            project.checkpoint()
            named |= set(_named_by_events(project, target.cursor))
        if moments.is_over:
            return None
        in_place = frozenset(save.path for save in saves if self._holds(save))
        return Outcome(f"{verb}, {how}, {moments.name}", saves, problem, frozenset(named), in_place)

    def prepare(self, project: Project, verb: str) -> takeback.Checkpoint:
        """A turn to be taken back, or put back; the state before it."""
        empty(self.tree)
        before_the_turn(self.tree)
        before = project.checkpoint()
        with project.session("agent") as session, session.turn("everything"):
            change_everything(self.tree)
        if verb == "redo":
            project.undo()
        return before

    def _restore(
        self, project: Project, verb: str, target: takeback.Checkpoint, moments: Moments
    ) -> tuple[set[str], str]:
        try:
            with watched_by(moments):
                report = restore(project, verb, target.id)
        except TakebackError as problem:
            return set(), str(problem)
        return {os.fsdecode(told.path) for told in (*report.kept, *report.rescued)}, ""

    def _holds(self, save: Save) -> bool:
        try:
            return (self.tree / save.path).read_bytes() == save.content
        except OSError:
            return False

    def lost(self, outcomes: list[Outcome]) -> Iterator[str]:
        """The saves that nobody can find any more, or finds only by searching."""
        with self.open() as project:
            kept = Kept(os.fsencode(project.git_dir))
        for outcome in outcomes:
            for save in outcome.saves:
                if save.blob in kept.shown:
                    continue
                if save.blob not in kept.blobs:
                    yield f"{outcome.moment}: {save} is lost ({outcome.problem})"
                elif save.path not in outcome.named:
                    yield f"{outcome.moment}: {save} is in the store, and nobody says so"


def _named_by_events(project: Project, since: int) -> Iterator[str]:
    """The paths that events of rescue name."""
    for event in project.workspace.ledger.events_of("SavesRescued", after=since):
        saves: Any = (event.payload or {})["saves"]
        for told in saves:
            yield str(told[0])


# -- at an exact moment ------------------------------------------------------------------------


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("verb", VERBS)
def test_no_save_at_any_moment_is_lost(verb: str) -> None:
    """Files are saved before each step and each look of a restore, in every way, all at once."""
    with stage() as folder, noted(saves=f"at each moment of {verb}") as note:
        theatre = Theatre(folder)
        outcomes = [
            *_at_each_moment(theatre, verb, VICTIMS),
            *_at_each_moment(theatre, verb, FOLDERS, AT_ONCE),
        ]
        assert_nothing_is_lost(theatre, outcomes)
        note["restores"] = len(outcomes)
        note["tried"] = sum(len(outcome.saves) for outcome in outcomes)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("victim", VICTIMS if FULL else VICTIMS[:1])
def test_no_single_save_at_any_moment_is_lost(victim: str) -> None:
    """During an undo each file is saved alone, so that no save can help another."""
    with stage() as folder, noted(saves=f"of {victim} alone") as note:
        theatre = Theatre(folder)
        by = len(HOW) if FULL else SHARE
        outcomes = list(_at_each_moment(theatre, "undo", (victim,), by=by))
        assert_nothing_is_lost(theatre, outcomes)
        note["tried"] = sum(len(outcome.saves) for outcome in outcomes)


def _at_each_moment(
    theatre: Theatre,
    verb: str,
    victims: tuple[str, ...],
    ways: tuple[str, ...] = HOW,
    by: int = 1 if FULL else SHARE,
) -> Iterator[Outcome]:
    """Restores with saves in every way at each moment, or at one of so many."""
    for number, how in enumerate(ways):
        for at in itertools.count(1 + number * by // len(ways), by):
            outcome = theatre.play(verb, how, at, victims)
            if outcome is None:
                break
            yield outcome


def assert_nothing_is_lost(theatre: Theatre, outcomes: list[Outcome]) -> None:
    """Every save is at its path or in the store, and named; the newest stays at its path."""
    assert len(outcomes) > 20
    assert any(not outcome.problem for outcome in outcomes)
    assert list(theatre.lost(outcomes)) == []
    displaced = [
        f"{outcome.moment}: {save.path} ({outcome.problem})"
        for outcome in outcomes
        for save in outcome.saves
        # An exact rollback goes over what was saved before it looked: the safe point has that.
        if save.how in AT_ONCE and save.path not in outcome.in_place
        if not outcome.moment.startswith("rollback")
    ]
    assert displaced == []


class Always(Moments):
    """Acts at every moment, once an entry of the tree is to be changed."""

    def step(self, step: str, args: tuple[object, ...]) -> None:
        """Before a change on disk."""
        if step in ("exchange", "move"):
            self._at = min(self._at, self.count + 1)
        super().step(step, args)

    def _pass(self, name: str) -> None:
        super()._pass(name)
        self._at = max(self._at, self.count + 1) if self.name else self._at


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("how", AT_ONCE)
def test_who_never_stops_saving_stops_nobody(verb: str, how: str) -> None:
    """Files are saved at every single moment: the restore ends, and the newest saves are there."""
    with stage() as folder:
        theatre = Theatre(folder)
        with theatre.open() as project:
            target = theatre.prepare(project, verb)
            editor = Editor(theatre.tree, folder / "aside", how, VICTIMS)
            rounds = 0

            def save_once_more() -> None:
                nonlocal rounds
                rounds += 1
                editor.save_all()

            with watched_by(Always(1 << 30, save_once_more)):
                report = restore(project, verb, target.id)
            assert rounds > 40
            assert report.kept
            for save in editor.finish():
                assert (theatre.tree / save.path).read_bytes() == save.content


# -- another process ---------------------------------------------------------------------------

SAVES = 5000 if FULL else 400
FILES = tuple(f"{kind}{number}" for kind in ("written", "made", "gone") for number in range(8))


class Rival:
    """Another process that saves files, each once or twice, in an order and at times of its own."""

    def __init__(self, theatre: Theatre, seed: int) -> None:
        self._theatre = theatre
        self._seed = seed
        self._orders, self._give = os.pipe()
        self._child = Child(self._obey)
        os.close(self._orders)

    def open_files(self) -> None:
        """Let it open what it appends to or maps; return when it has."""
        os.write(self._give, b"o")
        self._child.hear()

    def go(self) -> None:
        """Let it save; do not wait."""
        os.write(self._give, b"g")

    def finish(self) -> list[tuple[str, str, str, float]]:
        """Let it close everything; of each file the path, way, blob and time of the newest save."""
        os.write(self._give, b"f")
        heard = self._child.hear()
        assert heard is not None
        assert "saves" in heard, heard
        return [(p, h, b, float(t)) for p, h, b, t in map(str.split, heard["saves"])]  # type: ignore[arg-type]

    def end(self) -> None:
        """Let it go home."""
        os.close(self._give)
        self._child.end()

    def _obey(self, tell: Tell) -> None:
        os.close(self._give)
        chance = random.Random(self._seed)
        editors: list[tuple[Editor, str]] = []
        times: dict[str, float] = {}
        while order := os.read(self._orders, 1):
            if order == b"o":
                editors = [(self._editor(chance, path), path) for path in FILES]
                times = {}
                tell({"ready": True})
            elif order == b"g":
                for editor, path in chance.sample(editors * 2, len(editors) * 3 // 2):
                    editor.save(path)
                    times[path] = time.monotonic()
                    _idle(chance.random() * 0.0015)
            else:
                saves = [save for editor, _ in editors for save in editor.finish()]
                now = time.monotonic()
                told = [(s.path, s.how, s.blob, str(times.get(s.path, now))) for s in saves]
                tell({"saves": [" ".join(words) for words in told]})

    def _editor(self, chance: random.Random, path: str) -> Editor:
        aside = self._theatre.folder / "rival"
        return Editor(self._theatre.tree, aside, chance.choice(HOW), [path])


def _idle(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


class Burst(NamedTuple):
    """One restore while the rival saved: its saves, the named paths, when it ran."""

    saves: list[tuple[str, str, str, float]]
    named: frozenset[str]
    start: float
    end: float


@pytest.mark.timeout(SECONDS)
def test_another_process_loses_no_save() -> None:
    """Thousands of saves by a real process while restores run: each newest one is found again."""
    with stage() as folder, noted(saves="by another process") as note:
        theatre = Theatre(folder)
        rival = Rival(theatre, seed=4)
        bursts = list(_bursts(theatre, rival))
        rival.end()
        assert list(_lost_in(theatre, bursts)) == []
        every = [(save, burst) for burst in bursts for save in burst.saves]
        during = sum(burst.start < save[3] < burst.end for save, burst in every)
        note.update(restores=len(bursts), tried=len(every), during=during)
        assert during > len(every) // 20


def _bursts(theatre: Theatre, rival: Rival) -> Iterator[Burst]:
    chance = random.Random(5)
    done = 0
    while done < SAVES:
        verb = chance.choice(VERBS)
        burst = _burst(theatre, rival, verb, chance)
        done += len(burst.saves)
        yield burst


def _burst(theatre: Theatre, rival: Rival, verb: str, chance: random.Random) -> Burst:
    with theatre.open() as project:
        target = _turn_on_many_files(theatre.tree, project, verb)
        settle(theatre.folder)
        project.checkpoint()
        rival.open_files()
        start = Starter(rival.go, chance)
        began = time.monotonic()
        named: set[str] = set()
        with contextlib.suppress(TakebackError), pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "hook", start)
            report = restore(project, verb, target.id)
            named = {os.fsdecode(told.path) for told in (*report.kept, *report.rescued)}
        ended = time.monotonic()
        start.now()
        saves = rival.finish()
    with theatre.open() as project:
        project.checkpoint()
        named |= set(_named_by_events(project, target.cursor))
    return Burst(saves, frozenset(named), began, ended)


class Starter:
    """Lets the rival go at a step of its choice, mostly after the first look of the restore."""

    def __init__(self, go: Callable[[], None], chance: random.Random) -> None:
        self._go: Callable[[], None] | None = go
        self._left = chance.randrange(60)
        self._is_waiting = chance.random() < 0.8

    def __call__(self, step: str, _args: tuple[object, ...]) -> None:
        """A step of the restore."""
        self._is_waiting = self._is_waiting and step != "mkdir"
        if self._is_waiting:
            return
        self._left -= 1
        if self._left < 0:
            self.now()

    def now(self) -> None:
        """Start it, if nothing has."""
        if self._go is not None:
            self._go()
            self._go = None


def _turn_on_many_files(tree: Path, project: Project, verb: str) -> takeback.Checkpoint:
    empty(tree)
    for name in FILES:
        if not name.startswith("made"):
            (tree / name).write_bytes(b"old " + LONG)
    before = project.checkpoint()
    with project.session("agent") as session, session.turn("everything"):
        for name in FILES:
            if name.startswith("gone"):
                (tree / name).unlink()
            else:
                (tree / name).write_bytes(b"by the turn" + LONG)
    if verb == "redo":
        project.undo()
    return before


def _lost_in(theatre: Theatre, bursts: list[Burst]) -> Iterator[str]:
    with theatre.open() as project:
        kept = Kept(os.fsencode(project.git_dir))
    for burst in bursts:
        for path, how, blob, _ in burst.saves:
            if blob not in kept.blobs:
                yield f"{path}, saved by {how}, is lost"
            elif blob not in kept.shown and path not in burst.named:
                yield f"{path}, saved by {how}, is in the store, and nobody says so"
