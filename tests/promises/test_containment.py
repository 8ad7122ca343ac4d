"""Whatever is swapped for whatever while a restore runs, nothing outside of the project changes.

The swap is made at an exact moment, before every step and every look of a restore or of its
recovery. Outside lies a folder with the same names as inside, so that a path that is followed
through a link finds something to damage. `FAULTS=full` tries every swap at every moment.
"""

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import oracle
import takeback
from faults.children import Child, Tell, in_child
from faults.injection import Recorder, die
from faults.report import FULL, SECONDS, noted, stage
from moments import VERBS, Moments, restore, watched_by
from spoken import of_remark, sentence, spoken
from takeback.disk import operations
from takeback.errors import TakebackError
from takeback.project import Project

INNER = "d/inner"
SHARE = 48
"""Of so many moments, one is tried in `./check` for each swap and verb."""


# -- the stage ---------------------------------------------------------------------------------


def before_the_turn(folder: Path) -> None:
    """Files and folders in `d`, one of each kind that a restore treats in another way."""
    for name in ("written", "gone", "mode", "kind", "lost/in", "inner/deep/written", "inner/gone"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} of {folder.name}, old\n")
    (folder / "link").symlink_to("written")
    (folder / "closed").mkdir()
    (folder / "closed/written").write_text("old\n")
    (folder / "closed").chmod(0o555)
    (folder / "lost").chmod(0o750)


def change_everything(folder: Path) -> None:
    """What the turn does."""
    for name in ("written", "made", "inner/deep/written", "inner/made", "closed/written"):
        (folder / name).write_text(f"{name} of {folder.name}, new\n")
    for name in ("gone", "inner/gone", "kind", "link"):
        (folder / name).unlink()
    (folder / "mode").chmod(0o600)
    (folder / "inner").chmod(0o700)
    shutil.rmtree(folder / "lost")
    (folder / "new/dir").mkdir(parents=True)
    (folder / "new/dir/in").write_text("new\n")
    (folder / "kind").mkdir()
    (folder / "link").symlink_to("made")


def fill_outside(outside: Path) -> None:
    """The same names as in `d`, in both states at once."""
    outside.mkdir()
    before_the_turn(outside)
    for name in ("made", "inner/made", "new/dir/in"):
        path = outside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("outside\n")
    (outside / "empty").mkdir()


def open_up(folder: Path) -> None:
    """Let everything below a folder be removed."""
    for inner, _, _ in os.walk(folder):
        os.chmod(inner, 0o700)


@contextlib.contextmanager
def a_stage() -> "Iterator[Stage]":
    """A project beside a folder that must not change; all of it is removed afterwards."""
    with stage() as folder:
        try:
            yield Stage(folder)
        finally:
            open_up(folder)


class Stage:
    """A project and, beside it, a folder that must never change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.away = folder / "tree/away"
        self.outside = folder / "outside"
        self.home = folder / "home"
        self.tree.mkdir()
        fill_outside(self.outside)
        self._inventory = oracle.picture(self.outside), oracle.stamps(self.outside)

    def open(self) -> Project:
        """The project."""
        return takeback.open(self.tree, home=self.home)

    def escapes(self) -> list[str]:
        """What changed outside."""
        now = oracle.picture(self.outside), oracle.stamps(self.outside)
        return [
            *oracle.differences(self._inventory[0], now[0]),
            *oracle.differences(self._inventory[1], now[1]),
        ]

    def prepare(self, verb: str) -> tuple[str, oracle.Picture, oracle.Picture]:
        """A turn to be taken back: the state before it, and the tree before and after a restore."""
        open_up(self.tree)
        for path in self.tree.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        (self.tree / "d").mkdir()
        before_the_turn(self.tree / "d")
        old = oracle.picture(self.tree)
        with self.open() as project:
            target = project.checkpoint().id
            with project.session("agent") as session, session.turn("everything"):
                change_everything(self.tree / "d")
            new = oracle.picture(self.tree)
            if verb == "redo":
                project.undo()
                old, new = new, old
        return target, new, old


# -- swaps -------------------------------------------------------------------------------------


class Swap:
    """Puts something else in the place of a folder, and can take that back."""

    def __init__(self, stage: Stage, path: str, put: Callable[[Path, Path], None]) -> None:
        self._place = stage.tree / path
        self._away = stage.away
        self._put = put
        self._target = stage.outside / path.partition("/")[2]

    def do(self) -> None:
        """Move the folder away and put something else there."""
        with contextlib.suppress(FileNotFoundError):
            self._place.rename(self._away)
            self._put(self._place, self._target)

    def undo(self) -> None:
        """Put the folder back; what was put there is removed, unless it is a folder by now."""
        if not self._away.exists():
            return
        if self._place.is_symlink() or self._place.is_file():
            self._place.unlink()
        with contextlib.suppress(OSError):
            self._away.rename(self._place)


class SwapFiles:
    """Puts links to the outside in the place of all files in a folder."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def do(self) -> None:
        """Replace every file that is also outside."""
        for name in ("written", "made", "mode", "gone", "kind", "inner/deep/written", "new/dir/in"):
            link = self._stage.folder / "link"
            with contextlib.suppress(OSError):
                link.symlink_to(self._stage.outside / name)
                link.rename(self._stage.tree / "d" / name)
            link.unlink(missing_ok=True)

    def undo(self) -> None:
        """Nothing: these links are somebody's work and stay."""


class SwapStaged:
    """Puts a link to the outside in the place of our own folder in the tree."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def do(self) -> None:
        """Replace it, if it is there."""
        for folder in self._stage.tree.glob(".takeback-*"):
            folder.rename(self._stage.folder / "stolen")
            folder.symlink_to(self._stage.outside)

    def undo(self) -> None:
        """Take the link away; what was stolen stays stolen."""
        for link in self._stage.tree.glob(".takeback-*"):
            if link.is_symlink():
                link.unlink()
        shutil.rmtree(self._stage.folder / "stolen", ignore_errors=True)


class SwapRoot:
    """Puts a link to the outside in the place of the whole project."""

    def __init__(self, stage: Stage) -> None:
        self._tree = stage.tree
        self._away = stage.folder / "the whole project"
        self._outside = stage.outside

    def do(self) -> None:
        """Move the project away."""
        self._tree.rename(self._away)
        self._tree.symlink_to(self._outside)

    def undo(self) -> None:
        """Move it back."""
        if self._away.exists():
            self._tree.unlink()
            self._away.rename(self._tree)


class RemoveStaged:
    """Removes our own folder in the tree, as a clean-up does that knows nothing of it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def do(self) -> None:
        """Remove it, if it is there."""
        for folder in self._stage.tree.glob(".takeback-*"):
            shutil.rmtree(folder)

    def undo(self) -> None:
        """Nothing: it is gone."""


class EmptyStaged(RemoveStaged):
    """Removes what is in our own folder."""

    def do(self) -> None:
        """Remove every file in it."""
        for file in self._stage.tree.glob(".takeback-*/*"):
            file.unlink()


def _link(place: Path, target: Path) -> None:
    place.symlink_to(target)


def _file(place: Path, _target: Path) -> None:
    place.write_text("a file by now\n")


def _nothing(_place: Path, _target: Path) -> None:
    return


def _empty_folder(place: Path, _target: Path) -> None:
    place.mkdir()


Swapping = Swap | SwapFiles | SwapStaged | SwapRoot | RemoveStaged
SWAPS: dict[str, Callable[[Stage], Swapping]] = {
    "folder for a link": lambda stage: Swap(stage, "d", _link),
    "folder for a file": lambda stage: Swap(stage, "d", _file),
    "folder moved": lambda stage: Swap(stage, "d", _nothing),
    "folder for another": lambda stage: Swap(stage, "d", _empty_folder),
    "inner folder for a link": lambda stage: Swap(stage, INNER, _link),
    "files for links": SwapFiles,
    "project for a link": SwapRoot,
    "our folder for a link": SwapStaged,
    "our folder removed": RemoveStaged,
    "our folder emptied": EmptyStaged,
}


# -- at an exact moment ------------------------------------------------------------------------


class Told(NamedTuple):
    """Everything that a restore or its recovery said."""

    text: str
    failed: bool


def attempt(act: Callable[[], takeback.Report | None]) -> Told:
    """Do something that may fail, and collect what it says."""
    try:
        report = act()
    except TakebackError as problem:
        return Told(f"{problem} {problem.hint}", failed=True)
    if report is None:
        return Told("", failed=False)
    # What was moved away before anybody looked was renamed by somebody: the plan follows it.
    told = [(m.path, of_remark(m)) for m in (*report.kept, *report.rescued, *report.plan.kept)]
    told += [
        (change.path, sentence(change.along)) for change in report.plan.changes if change.along
    ]
    return Told(" ".join(f"{os.fsdecode(path)} {said}" for path, said in told), failed=False)


def recovered(stage: Stage) -> str:
    """Open the project, which recovers; what it says."""
    with stage.open() as project:
        said = " ".join(spoken(project.recovered))
        project.checkpoint()
    return said


def judge(stage: Stage, before: oracle.Picture, after: oracle.Picture, told: str) -> list[str]:
    """What is wrong: something outside changed, or a half state that nobody mentions."""
    wrong = stage.escapes()
    now = oracle.picture(stage.tree)
    half = min(oracle.differences(before, now), oracle.differences(after, now), key=len)
    silent = [path for path in _paths(before, after, now) if not _is_named(path, told)]
    if half and silent:
        wrong += [f"silent about {silent}: {half[:3]}, told {told!r}"]
    if list(stage.tree.glob(".takeback-*")):
        wrong.append("our folder is left in the tree")
    return wrong


def judge_strictly(before: oracle.Picture, after: oracle.Picture, now: oracle.Picture) -> list[str]:
    """What is wrong when nobody touched a path that is restored: a half state, told or not."""
    return min(oracle.differences(before, now), oracle.differences(after, now), key=len)


def _paths(before: oracle.Picture, after: oracle.Picture, now: oracle.Picture) -> list[str]:
    """The paths that are as in neither state, without what the swap itself left in the tree."""
    return [
        os.fsdecode(path)
        for path in before.keys() | after.keys() | now.keys()
        if now.get(path) not in (before.get(path), after.get(path))
        if not path.startswith((b"away", b"takeback-found-")) and not _leads_out(now.get(path))
    ]


def _leads_out(entry: oracle.Entry | None) -> bool:
    return entry is not None and entry[0] == "link" and b"/outside/" in bytes(str(entry[1]), "utf8")


def _is_named(path: str, told: str) -> bool:
    return any(str(above) in told for above in (Path(path), *Path(path).parents[:-1]))


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("swap", SWAPS)
def test_no_swap_at_any_moment_reaches_outside(swap: str) -> None:
    """A swap before each step and look of undo, redo and rollback changes nothing outside."""
    with a_stage() as place, noted(swaps=swap) as note:
        tried = 0
        for number, verb in enumerate(VERBS):
            first, by = (1, 1) if FULL else (1 + number * SHARE // len(VERBS), SHARE)
            for at in itertools.count(first, by):
                wrong = swap_at(place, swap, verb, at)
                if wrong is None:
                    break
                assert wrong == [], f"{verb}, {swap}, moment {at}"
                tried += 1
        note["tried"] = tried
        assert tried > 8


def swap_at(place: Stage, name: str, verb: str, at: int) -> list[str] | None:
    """Swap at a moment of a restore; what is wrong, or None if it has fewer moments."""
    target, before, after = place.prepare(verb)
    swap = SWAPS[name](place)
    moments = Moments(at, swap.do)
    with place.open() as project, watched_by(moments):
        told = attempt(lambda: restore(project, verb, target))
    wrong = place.escapes()
    swap.undo()
    text = told.text + recovered(place)
    if moments.is_over:
        return None
    wrong += judge(place, before, after, text)
    if isinstance(swap, RemoveStaged):
        wrong += judge_strictly(before, after, oracle.picture(place.tree))
    return [f"{moments.name}: {what}" for what in wrong]


class MoveOut:
    """Moves a folder out of the project, and remembers what it held then."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._place = stage.folder / "moved out"
        self._then: oracle.Picture = {}

    def do(self) -> None:
        """Move it."""
        (self._stage.tree / "d").rename(self._place)
        self._then = oracle.picture(self._place)

    def changes(self) -> list[str]:
        """What changed in it since."""
        return oracle.differences(self._then, oracle.picture(self._place)) if self._then else []

    def undo(self) -> None:
        """Move it back."""
        if self._place.exists() and not (self._stage.tree / "d").exists():
            self._place.rename(self._stage.tree / "d")
        shutil.rmtree(self._place, ignore_errors=True)


@pytest.mark.timeout(SECONDS)
def test_a_folder_that_leaves_the_project_is_left_alone() -> None:
    """After a folder is moved out, at most the one step that was under way still reaches it."""
    with a_stage() as place, noted(swaps="folder moved out") as note:
        reached = [len(found) for found in _moved_out(place)]
        note["tried"] = len(reached)
        assert len(reached) > 8
        assert max(reached) <= 1


def _moved_out(place: Stage) -> Iterator[list[str]]:
    for at in itertools.count(1, 1 if FULL else SHARE // 4):
        place.prepare("undo")
        out = MoveOut(place)
        moments = Moments(at, out.do)
        with place.open() as project, watched_by(moments):
            attempt(project.undo)
        if moments.is_over:
            return
        assert place.escapes() == []
        yield out.changes()
        out.undo()
        recovered(place)


# -- recovery ----------------------------------------------------------------------------------

CHANGES = ("exchange", "move", "mkdir", "rmdir", "chmod_file", "fchmod")


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("swap", SWAPS)
def test_no_swap_during_recovery_reaches_outside(swap: str) -> None:
    """A restore dies half-way; a swap before each step and look of its recovery does no harm."""
    with a_stage() as place, noted(swaps=f"{swap}, recovery") as note:
        deaths = _deaths(place)
        chosen = deaths[::4] if FULL else deaths[len(deaths) // 2 :: len(deaths)]
        tried = 0
        for death in chosen:
            for at in itertools.count(1, 1 if FULL else SHARE // 4):
                wrong = swap_in_recovery(place, swap, death, at)
                if wrong is None:
                    break
                assert wrong == [], f"killed at step {death}, {swap}, moment {at}"
                tried += 1
        note["tried"] = tried
        assert tried > 5


def _deaths(place: Stage) -> list[int]:
    """The steps of an undo that change the tree, each with the journal's row committed."""
    place.prepare("undo")
    recorder = Recorder()
    with place.open() as project, pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "hook", recorder)
        project.undo()
    steps = enumerate(recorder.steps, 1)
    (written,) = [at for at, (_, args) in steps if "INTO journal" in str(args)]
    steps = enumerate(recorder.steps, 1)
    return [at for at, (step, _) in steps if at > written and step in CHANGES]


def swap_in_recovery(place: Stage, name: str, death: int, at: int) -> list[str] | None:
    """Swap at a moment of the recovery of an undo that died at a step."""
    _, before, after = place.prepare("undo")
    swap = SWAPS[name](place)
    in_child(lambda _tell: _undo_and_die(place, death))
    moments = Moments(at, swap.do)
    said: list[str] = []

    def recover() -> None:
        with place.open() as project:
            said.extend(spoken(project.recovered))

    with watched_by(moments):
        told = attempt(recover)
    wrong = place.escapes()
    swap.undo()
    text = " ".join((told.text, *said, recovered(place)))
    if moments.is_over:
        return None
    wrong += judge(place, before, after, text)
    if isinstance(swap, RemoveStaged):
        wrong += judge_strictly(before, after, oracle.picture(place.tree))
    return [f"{moments.name}: {what}" for what in wrong]


def _undo_and_die(place: Stage, death: int) -> None:
    moments = Moments(death, die)
    with place.open() as project:
        operations.hook = moments.step
        project.undo()


# -- as fast as it can -------------------------------------------------------------------------


@pytest.mark.timeout(SECONDS)
def test_a_process_that_swaps_all_the_time_gets_nothing_out() -> None:
    """A folder flips between itself and a link to the outside while restores run."""
    rounds = 400 if FULL else 15
    with a_stage() as place, noted(swaps="all the time") as note:
        done = 0
        for number in range(rounds):
            done += not _restored_while_it_flips(place, VERBS[number % 3]).failed
            assert place.escapes() == []
            SWAPS["folder for a link"](place).undo()
            recovered(place)
            assert place.escapes() == []
        note.update(tried=rounds, done=done)


def _restored_while_it_flips(place: Stage, verb: str) -> Told:
    target, _, _ = place.prepare(verb)
    flipping = Child(lambda tell: _flip(place, tell))
    flipping.hear()
    try:
        with place.open() as project:
            return attempt(lambda: restore(project, verb, target))
    finally:
        os.kill(flipping.pid, signal.SIGKILL)
        flipping.end()


def _flip(place: Stage, tell: Tell) -> None:
    folder, link = place.tree / "d", place.folder / "link"
    for number in itertools.count():
        folder.rename(place.away)
        link.symlink_to(place.outside)
        link.rename(folder)
        folder.unlink()
        place.away.rename(folder)
        if number == 0:
            tell({"began": True})
