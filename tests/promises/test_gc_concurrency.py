"""The store is put in order again and again while others capture, take back and read."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
import takeback
from faults.children import Child, Tell
from faults.judge import fsck
from faults.report import FULL, SECONDS, noted, stage
from faults.tidying import tidy
from spoken import spoken
from takeback.errors import BusyError, DecisionNeededError, NoLongerKeptError, TakebackError
from takeback.ledger.ledger import Ledger
from takeback.objects.pack_merge import Order
from takeback.project import Project
from takeback.upkeep.reachable import Reach

ROUNDS = 200 if FULL else 30
"""How many turns each agent makes."""
AGENTS = 2


def opened(folder: Path) -> Project:
    """The project of the crowd, in a process of its own."""
    return takeback.open(folder / "tree", home=folder / "home")


def work(folder: Path, name: str, tell: Tell) -> None:
    """An agent: turns in files of its own, some taken back and put back, each state noted."""
    place = folder / "tree" / name
    with opened(folder) as project:
        for number in range(ROUNDS):
            was = oracle.picture(place)
            with (
                project.session("agent", id=f"{name}-{number}") as agent,
                agent.turn(f"{name} {number}", whole=False) as turn,
                turn.step("Write", {"file_path": f"{name}/file"}),
            ):
                (place / "file").write_text(f"{number}\n" * 50)
                (place / f"new{number % 4}").write_text(f"{number}")
            now = oracle.picture(place)
            if number % 3 == 0:
                _back_and_forth(project, turn.id, place, was, now, tell)
            tell({"done": number})


def _back_and_forth(
    project: Project,
    turn: str,
    place: Path,
    was: oracle.Picture,
    now: oracle.Picture,
    tell: Tell,
) -> None:
    try:
        project.undo(turn, yes=True, decide="take-back", shared=True)
        if was.get(b"file") != oracle.picture(place).get(b"file"):
            tell({"wrong": f"the undo of {turn} is not exact"})
        project.redo(turn, yes=True, decide="take-back")
        if oracle.picture(place).get(b"file") != now.get(b"file"):
            tell({"wrong": f"the redo of {turn} is not exact"})
    except NoLongerKeptError:
        tell({"late": turn})
    except DecisionNeededError as problem:
        tell({"undecided": str(problem)})


def read(folder: Path, tell: Tell, name: str = "reading") -> None:
    """A reader: the log, turns, files, differences, whole states; what is gone says so."""
    with opened(folder) as project:
        while not (folder / "over").exists():
            _read_all(project, folder / name, tell)


def check(folder: Path, tell: Tell) -> None:
    """A reader that also verifies."""
    with opened(folder) as project:
        while not (folder / "over").exists():
            for what in spoken(project.verify().problems):
                tell({"wrong": f"verify: {what}"})
            tell({"verified": True})
            _read_all(project, folder / "checking", tell)


def _read_all(project: Project, target: Path, tell: Tell) -> None:
    for turn in project.log(6).turns:
        try:
            project.recorded(turn.id)
            with project.compare(f"{turn.id}-", turn.id) as compared:
                for found in compared.differences:
                    compared.contents(found)
            project.extract(turn.id, target)
            tell({"read": turn.id})
        except NoLongerKeptError:
            tell({"late": turn.id})
        finally:
            shutil.rmtree(target, ignore_errors=True)


def care(folder: Path, tell: Tell) -> None:
    """Puts the store in order all the time."""
    with opened(folder) as project:
        while not (folder / "over").exists():
            try:
                done = tidy(project, full=project.workspace.ledger.last_event() % 3 == 0)
                tell({"tidied": done.checkpoints})
            except BusyError:
                tell({"busy": True})
            # Who verifies gets a chance, too: one of both is there at a time.
            _read_all(project, folder / "caring", tell)


def crowd(folder: Path) -> tuple[list[str], dict[str, int]]:
    """Let all of them work until the agents are done; what went wrong, and how much was done."""
    (folder / "home").mkdir(mode=0o700)
    names = [f"agent{number}" for number in range(AGENTS)]
    for name in names:
        (folder / "tree" / name).mkdir(parents=True)
    with opened(folder) as project:
        project.checkpoint()
    agents = [Child(lambda tell, name=name: work(folder, name, tell)) for name in names]  # type: ignore[misc]
    others = [Child(lambda tell, act=act: act(folder, tell)) for act in (read, check, care)]  # type: ignore[misc]
    ended = [child.end() for child in agents]
    (folder / "over").touch()
    ended += [child.end() for child in others]
    said = [word for child in ended for word in child.said]
    wrong = [str(word) for word in said if word.keys() & {"wrong", "crashed", "broken"}]
    wrong += [f"a process ended with {child.status}" for child in ended if child.status]
    counted: dict[str, int] = {}
    for word in said:
        for key in word:
            counted[key] = counted.get(key, 0) + 1
    return wrong, counted


@pytest.mark.timeout(SECONDS)
def test_nobody_notices() -> None:
    """No capture, undo, redo, read or check fails because somebody puts the store in order."""
    with stage() as folder, noted(gc_beside=AGENTS + 2, turns=ROUNDS) as note:
        wrong, counted = crowd(folder)
        note |= dict(sorted(counted.items()))
        assert wrong == []
        assert counted["done"] == AGENTS * ROUNDS
        assert min(counted.get(word, 0) for word in ("tidied", "read", "verified")) >= 1
        with opened(folder) as project:
            tidy(project)
            assert project.verify().ok
        assert fsck(folder / "home") == []


def test_the_lock_is_held_for_moments_only(tree: Path, home: Path) -> None:
    """While packs are written, somebody else makes a checkpoint."""
    with takeback.open(tree, home=home) as project, takeback.open(tree, home=home) as other:
        for number in range(8):
            (tree / "file").write_text(str(number))
            project.checkpoint()
        made: list[str] = []
        told = Reach.everything

        def meanwhile(*given: object) -> None:
            (tree / "file").write_text(f"meanwhile {len(made)}")
            made.append(other.checkpoint().id)
            told(*given)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Reach, "everything", meanwhile)
            done = tidy(project)
        assert made
        assert done.packs_after <= 4
        assert project.verify().ok


# -- can it fail? ------------------------------------------------------------------------------


def _without_a_look_at_what_came_since(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Order, "is_current", lambda *_: True)
    patch.setattr(Reach, "follow", lambda *_: None)


def _without_asking_again_for_packs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "packs_now", lambda _self: [])


def test_content_that_was_garbage_is_copied_when_somebody_needs_it_again(
    tree: Path, home: Path
) -> None:
    """What is named again while packs are merged is not lost; without the second look it is."""
    assert _needed_again(tree, home, lambda _: None) == ""
    assert "missing" in _needed_again(tree, home, _without_a_look_at_what_came_since)


def _needed_again(tree: Path, home: Path, break_it: Callable[[pytest.MonkeyPatch], None]) -> str:
    """A file outside gets content back, while gc runs, that was let go: what reading it says."""
    file = tree.parent / "outside"
    turns: list[str] = []

    def edit(project: Project, text: str) -> None:
        with (
            project.session("agent", id=f"{time.time_ns()}") as agent,
            agent.turn(text, whole=False) as turn,
        ):
            with turn.step("Write", {"file_path": str(file)}):
                file.write_text(text)
            (tree / "file").write_text(f"{time.time_ns()}")
        turns.append(turn.id)

    everything = Reach.everything
    with takeback.open(tree, home=home) as project, pytest.MonkeyPatch.context() as patch:
        edit(project, "first")
        for number in range(8):
            edit(project, f"text {number}")
        break_it(patch)

        def meanwhile(*given: object) -> None:
            everything(*given)  # type: ignore[arg-type]
            if len(turns) < 11:
                with takeback.open(tree, home=home) as other:
                    edit(other, "first")
                    edit(other, "last")

        patch.setattr(Reach, "everything", meanwhile)
        tidy(project, full=True)
    try:
        with takeback.open(tree, home=home) as project:
            project.undo(turns[-1], yes=True)
        assert file.read_text() == "first"
    except TakebackError as problem:
        return str(problem)
    finally:
        shutil.rmtree(home / "projects")
        (home / "registry").unlink()
    return ""


def test_a_reader_that_knew_an_old_pack_finds_the_new_one(tree: Path, home: Path) -> None:
    """Who looked up a pack before it was merged reads on; without asking again it could not."""
    for break_it, expected in ((lambda _: None, ""), (_without_asking_again_for_packs, "missing")):
        with pytest.MonkeyPatch.context() as patch:
            break_it(patch)
            assert expected in _read_over_a_merge(tree, home)


def _read_over_a_merge(tree: Path, home: Path) -> str:
    with takeback.open(tree, home=home) as project, takeback.open(tree, home=home) as other:
        made = []
        for _ in range(8):
            (tree / "file").write_text(os.urandom(8).hex())
            made.append(project.checkpoint())
        objects = project.workspace.store.reader()
        rows = [project.workspace.ledger.checkpoints.with_prefix(each.id)[0] for each in made[-3:]]
        objects.refresh()
        tidy(other, full=True)
        try:
            for row in rows:
                objects.manifest(row.root, row.tree)
        except TakebackError as problem:
            return str(problem)
        finally:
            objects.close()
    return ""


def test_what_goes_while_it_is_read_is_no_damage(tree: Path, home: Path) -> None:
    """A reader whose state is let go under its hands is told so, and not that it is damaged."""
    with takeback.open(tree, home=home) as project, takeback.open(tree, home=home) as other:
        made = []
        for number in range(12):
            (tree / "file").write_text(f"{number}" * 100)
            made.append(project.checkpoint().id)
        with project.compare(made[0], made[1]) as compared:
            (found,) = compared.differences
            tidy(other, full=True)
            compared._before._objects.close()  # type: ignore[attr-defined]
            with pytest.raises(NoLongerKeptError):
                compared.contents(found)
