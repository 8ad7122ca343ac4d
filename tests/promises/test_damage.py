"""Damaged files of a store are found, and never does a wrong byte come out."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle
from faults.children import Tell, in_child
from faults.report import FULL, SECONDS, noted, stage
from faults.rot import Examination, Injury, Patient, files_of, injuries, open_project, tables_of
from takeback.errors import DamagedStoreError, ProjectIdentityError
from takeback.project import Project

COUNT = 200 if FULL else 5
"""For each of the stores and shares; 3,200 or 160 in all."""
CHECKPOINTS = 12
SHARES = 4


@pytest.fixture(scope="module", params=["closed", "wal", "named", "merged"])
def patient(request: pytest.FixtureRequest) -> Iterator[Patient]:
    """A store with a history.

    `wal` is left as a killed process leaves it; so is `named`, whose last call found no change.
    In `merged` all packs were put together, and versions of one file are deltas of each other.
    """
    with stage() as folder:
        yield _made(folder, str(request.param))


def _made(folder: Path, end: str) -> Patient:
    tree, home = folder / "tree", folder / "home"
    tree.mkdir()
    (tree / "link").symlink_to("sub/own-1")
    pictures = {}
    for number in range(CHECKPOINTS):
        _edit(tree, number)
        last = number == CHECKPOINTS - 1
        id = _checkpoint(tree, home, closed=not (last and end == "wal"), by_agent=number % 3 == 1)
        pictures[id] = oracle.picture(tree)
    if end == "named":
        _checkpoint(tree, home, closed=False)
    if end == "merged":
        _merge(tree, home)
    # SQLite tidies up when the last one closes a ledger, and that is not to happen here.
    copy = folder / "copy"
    shutil.copytree(home, copy)
    assert bool(list(home.rglob("ledger.db-wal"))) == (end in ("wal", "named"))
    backup = Path(shutil.copytree(tree, folder / "backup", symlinks=True))
    packs = () if end == "merged" else _packs(copy)
    return Patient(tree, home, pictures, tables_of(copy), packs, backup)


def _merge(tree: Path, home: Path) -> None:
    def play(_tell: Tell) -> None:
        with open_project(tree, home) as project:
            project.gc(full=True)

    assert in_child(play).status == 0
    assert len(list(home.rglob("*.pack"))) < CHECKPOINTS // 2


def _edit(tree: Path, number: int) -> None:
    """Files that stay, files that change, and files that are there for three checkpoints."""
    (tree / "sub/deep").mkdir(parents=True, exist_ok=True)
    (tree / "changes").write_bytes(b"%d " % number * 50)
    (tree / f"sub/own-{number}").write_bytes(hashlib.sha512(b"%d" % number).digest() * 9)
    (tree / f"sub/deep/own-{number}").write_bytes(b"deep %d\n" % number)
    if number >= 3:
        (tree / f"sub/own-{number - 3}").unlink()


def _checkpoint(tree: Path, home: Path, *, closed: bool, by_agent: bool = False) -> str:
    def play(tell: Tell) -> None:
        project = open_project(tree, home)
        tell({"id": _made_by_agent(project) if by_agent else project.checkpoint().id})
        if closed:
            project.close()
        else:
            # Ended as a kill would: SQLite does not get to tidy up.
            os._exit(0)

    return str(in_child(play).last("id"))


def _made_by_agent(project: Project) -> str:
    """A checkpoint that the beginning of a turn made, so that the log holds more than those."""
    session = project.session("claude", id="own", held=False)
    turn = session.turn("go on")
    turn.step("Bash", {"command": "make"}).end()
    turn.end()
    return turn.before


def _packs(home: Path) -> tuple[str, ...]:
    db = sqlite3.connect(next(home.glob("projects/*/ledger.db")))
    names = [name for (name,) in db.execute("SELECT name FROM packs ORDER BY event, name")]
    db.close()
    return tuple(names)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("share", range(SHARES))
def test_damage_is_found(patient: Patient, share: int) -> None:
    """Whatever happens to any byte of a store is found, or is proven to change nothing."""
    with noted(damage="random", share=share) as note, stage() as folder:
        examination = Examination(patient, folder)
        for injury in injuries(patient.home, COUNT, seed=share):
            examination.of(injury)
        note |= examination.noticed
        note["injuries"] = examination.noticed.total()
    assert not examination.wrong, "\n".join(examination.wrong)


@pytest.mark.timeout(SECONDS)
def test_a_lost_file_is_missed(patient: Patient) -> None:
    """Any single file of a store may vanish: it is made again, or it is missed."""
    with noted(damage="deleted") as note, stage() as folder:
        examination = Examination(patient, folder)
        every = files_of(patient.home)
        for file in every if FULL else [*every[::4], *every[-1:]]:
            examination.of(Injury(file, "delete", 0))
        note |= examination.noticed
        note["injuries"] = examination.noticed.total()
    assert not examination.wrong, "\n".join(examination.wrong)


def test_damage_names_the_checkpoints_it_touches(patient: Patient) -> None:
    """A flipped bit in a file that three checkpoints hold is damage of those three."""
    ids = list(patient.pictures)
    pack, place = _find_blob(patient)
    with stage() as folder:
        home = folder / "home"
        shutil.copytree(patient.home, home, symlinks=True)
        Injury(pack, "flip", place * 8).inflict(home)
        with open_project(patient.tree, home) as project:
            found = project.verify()
            named = {id for damage in found.damage for id in damage.checkpoints}
            assert not found.ok
            assert named == set(ids[4:7])
            for id in ids:
                if id in named:
                    with pytest.raises(DamagedStoreError):
                        project.extract(id, folder / "out")
                else:
                    project.extract(id, folder / id)
                    assert oracle.picture(folder / id) == patient.pictures[id]


def _find_blob(patient: Patient) -> tuple[str, int]:
    """The pack that holds a file which checkpoint 4 added, and a place inside its bytes."""
    content = hashlib.sha512(b"4").digest() * 9
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    for pack in sorted(patient.home.rglob("*.pack")):
        command = ["git", "verify-pack", "-v", str(pack)]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            words = line.split()
            if words[:1] == [oid]:
                return str(pack.relative_to(patient.home)), int(words[4]) + int(words[3]) // 2
    raise AssertionError("no pack holds it")


@pytest.mark.parametrize("place", [0, 40, "cut", "delete"])
def test_a_damaged_root_loses_no_project(place: int | str) -> None:
    """A project whose note of where it is was damaged is still found, or is asked about."""
    with stage() as folder:
        home, tree, other = folder / "home", folder / "tree", folder / "other"
        for each in (tree, other):
            each.mkdir()
            (each / "file").write_text(each.name)
        id = _checkpoint(tree, home, closed=True)
        root = str(next(home.glob("projects/*/root")).relative_to(home))
        kind = place if isinstance(place, str) else "flip"
        Injury(root, kind, place if isinstance(place, int) else 0).inflict(home)
        _checkpoint(other, home, closed=True)
        try:
            with open_project(tree, home) as project:
                assert [checkpoint.id for checkpoint in project.checkpoints()] == [id]
        except ProjectIdentityError:
            return


def test_progress_is_told_in_bytes(patient: Patient) -> None:
    """A long verification tells how many bytes it has hashed, up to the size of all packs."""
    told: list[tuple[str, int, int]] = []
    with stage() as folder:
        home = folder / "home"
        shutil.copytree(patient.home, home, symlinks=True)
        with open_project(patient.tree, home) as project:
            assert project.verify(progress=lambda *words: told.append(words)).ok
        size = sum(path.stat().st_size for path in home.rglob("*.pack"))
    hashed = [(done, total) for doing, done, total in told if doing == "hashing"]
    assert {total for _, total in hashed} == {size}
    assert [done for done, _ in hashed] == sorted(done for done, _ in hashed)
    assert size * 0.9 < hashed[-1][0] <= size
    assert len(hashed) > len(list(patient.home.rglob("*.pack")))
