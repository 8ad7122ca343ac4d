"""Damage to the files of a store: where, of what kind, and what must still hold afterwards."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import oracle
from faults.children import Ended, Tell, in_child
from oracle import Picture
from spoken import spoken
from takeback.errors import TakebackError
from takeback.model.ids import PREFIX
from takeback.project import Project

T = TypeVar("T")

KINDS = ("flip", "flip", "flip", "zero", "cut", "delete", "swap")
"""What happens at a random place; most often one bit turns over. Two files may change places."""
RESTORED = 4
"""Of so many injured stores one is also used for a rollback."""
MAY_BLOCK = ("ledger.db", "ledger.db-wal", "root", "registry")
"""Without these nothing can be done; damage to any other file leaves the verbs usable."""
_ZEROED = 64


class Injury(NamedTuple):
    """One thing done to one file of a store."""

    file: str
    kind: str
    place: int

    def __str__(self) -> str:
        return f"{self.file}:{self.kind}:{self.place}"

    def partner(self, home: Path) -> str:
        """The file that changes places with this one."""
        others = [name for name in files_of(home) if name != self.file]
        alike = [name for name in others if Path(name).suffix == Path(self.file).suffix]
        chosen = alike or others
        return chosen[self.place % len(chosen)]

    def touched(self, home: Path) -> list[str]:
        """The files that are injured."""
        return [self.file, self.partner(home)] if self.kind == "swap" else [self.file]

    def inflict(self, home: Path) -> bool:
        """Damage the file; False if that changed nothing."""
        path = home / self.file
        before = path.read_bytes()
        if self.kind == "delete":
            path.unlink()
            return True
        if self.kind == "swap":
            other = home / self.partner(home)
            path.rename(path.with_name("aside"))
            other.rename(path)
            path.with_name("aside").rename(other)
            return path.read_bytes() != before
        after = bytearray(before)
        if self.kind == "flip":
            after[self.place // 8] ^= 1 << self.place % 8
        elif self.kind == "zero":
            place = self.place // 8
            after[place : place + _ZEROED] = bytes(len(after[place : place + _ZEROED]))
        else:
            del after[self.place // 8 :]
        path.write_bytes(after)
        return after != before


def injuries(home: Path, count: int, seed: int) -> Iterator[Injury]:
    """`count` random injuries, the same for the same seed; every file gets its share."""
    chance = Random(seed)
    files = [name for name in files_of(home) if (home / name).stat().st_size]
    for number in range(count):
        # One in two goes by file, so that small files are hit; the others go by size.
        weights = [(home / name).stat().st_size for name in files]
        file = files[number // 2 % len(files)] if number % 2 else chance.choices(files, weights)[0]
        place = chance.randrange((home / file).stat().st_size * 8)
        yield Injury(file, chance.choice(KINDS), place)


def files_of(home: Path) -> list[str]:
    """Every file of a store, by its path below the home folder."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


class Patient(NamedTuple):
    """A store with a history, and what the oracle saw of each checkpoint."""

    tree: Path
    home: Path
    pictures: Mapping[str, Picture]
    """By id, oldest first."""
    tables: str
    """Everything the ledger says."""
    packs: tuple[str, ...]
    """The names of the packs, oldest first, one for each checkpoint; none if they were merged."""
    backup: Path
    """The tree as it is, to bring it back after a restore."""


class Examination:
    """Injures copies of one store, and keeps count of how each injury was noticed."""

    def __init__(self, patient: Patient, folder: Path) -> None:
        self._patient = patient
        self._home = folder / "home"
        self._out = folder / "out"
        self._number = 0
        self.noticed = Counter[str]()
        self.wrong: list[str] = []

    def of(self, injury: Injury) -> None:
        """Injure a copy of the store and note everything that goes wrong which must not."""
        shutil.copytree(self._patient.home, self._home, symlinks=True)
        try:
            if injury.inflict(self._home):
                self._number += 1
                restores = self._number % RESTORED == 1
                look = in_child(
                    lambda tell: _look(tell, self._patient, self._home, self._out, restores)
                )
                self.noticed[_how(look)] += 1
                self.wrong += [f"{injury}: {what}" for what in _judge(self._patient, injury, look)]
            else:
                self.noticed["no change"] += 1
        finally:
            shutil.rmtree(self._home)


def _how(seen: Ended) -> str:
    if seen.last("damage"):
        return "found by verify"
    if seen.last("repaired"):
        return "repaired by verify"
    return "error on use" if seen.every("refused") else "harmless"


def _look(tell: Tell, patient: Patient, home: Path, out: Path, restores: bool) -> None:
    """Use the store in every way, and tell how each of them went."""
    project = _tried(tell, "open", lambda: open_project(patient.tree, home))
    if project is None:
        return
    with project:
        for id, picture in patient.pictures.items():
            _extract(tell, project, id, picture, out)
        tell({"tables": tables_of(home)})
        found = _tried(tell, "verify", project.verify)
        if found is not None:
            tell({"damage": list(spoken(found.problems))})
            tell({"named": sorted({id for damage in found.damage for id in damage.checkpoints})})
            tell({"repaired": list(spoken(found.repaired))})
        _go_on(tell, project, patient, out)
        if restores:
            _roll_back(tell, project, patient)


def _roll_back(tell: Tell, project: Project, patient: Patient) -> None:
    """A rollback in a damaged store is exact, or it is refused and nothing is changed."""
    before = oracle.picture(patient.tree)
    id = list(patient.pictures)[len(patient.pictures) // 2]
    try:
        done = _tried(tell, "rollback", lambda: project.rollback(id, yes=True))
        expected = before if done is None else patient.pictures[id]
        found = oracle.picture(patient.tree)
        if done is None:
            # Where the ledger cannot even say that it is over, our own folder stays: nothing of
            # the user's is in it that is not also in its place, and who recovers removes it.
            found = {path: each for path, each in found.items() if not path.startswith(PREFIX)}
        for difference in oracle.differences(expected, found)[:1]:
            how = "was refused" if done is None else "was done"
            tell({"wrong": f"a rollback to {id} {how}, yet: {difference}"})
    finally:
        for path in patient.tree.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(patient.backup, patient.tree, symlinks=True, dirs_exist_ok=True)


def _go_on(tell: Tell, project: Project, patient: Patient, out: Path) -> None:
    """A new checkpoint in a damaged store holds what was there, or an error says that it cannot."""
    added = patient.tree / "added"
    added.write_bytes(os.urandom(16))
    try:
        made = _tried(tell, "checkpoint", project.checkpoint)
        if made is not None:
            _extract(tell, project, made.id, oracle.picture(patient.tree), out)
    finally:
        added.unlink()


def _extract(tell: Tell, project: Project, id: str, expected: Picture, out: Path) -> None:
    if _tried(tell, f"extract {id}", lambda: project.extract(id, out)) is not None:
        for difference in oracle.differences(expected, oracle.picture(out))[:1]:
            tell({"wrong": f"extract {id}: {difference}"})
        shutil.rmtree(out)
    elif out.exists():
        tell({"wrong": f"extract {id} failed and left something behind"})
        shutil.rmtree(out)


def _tried(tell: Tell, what: str, do: Callable[[], T]) -> T | None:
    try:
        return do()
    except TakebackError as problem:
        tell({"refused": f"{what}: {problem}"})
    except Exception as problem:
        tell({"wrong": f"{what}: not one of our errors: {problem!r}"})
    return None


def _judge(patient: Patient, injury: Injury, seen: Ended) -> Iterator[str]:
    yield from seen.every("wrong")
    if seen.status:
        yield f"the process ended with status {seen.status}: {seen.last('crashed')}"
    refused = seen.every("refused")
    noticed = refused or seen.last("damage") or seen.last("repaired")
    if not noticed and seen.last("tables") != patient.tables:
        yield "the ledger says something else, and nobody noticed"
    surviving = _must_survive(patient, injury)
    if seen.last("damage") is not None:
        named = set(map(str, _listed(seen.last("named"))))
        surviving = sorted({*surviving, *(patient.pictures.keys() - named)})
        if injury.file.endswith(MAY_BLOCK) or injury.kind == "swap":
            surviving = _must_survive(patient, injury)
    for id in surviving:
        yield from (f"not touched, yet {why}" for why in refused if why.startswith(f"extract {id}"))
    if not any(name.endswith(MAY_BLOCK) for name in injury.touched(patient.home)):
        yield from (f"blocked: {why}" for why in refused if why.startswith(("open", "verify")))


def _listed(said: object) -> list[object]:
    return said if isinstance(said, list) else []


def _must_survive(patient: Patient, injury: Injury) -> list[str]:
    """The checkpoints that the injured file has nothing to do with."""
    ids = list(patient.pictures)
    for file in injury.touched(patient.home):
        name = os.path.basename(file)
        if name.startswith("ledger.db") or (injury.kind == "swap" and file.endswith(MAY_BLOCK)):
            return []
        if name.endswith(".pack"):
            # What was stored later cannot be part of an earlier checkpoint.
            stem = name.removesuffix(".pack")
            ids = ids[: patient.packs.index(stem)] if stem in patient.packs else []
    return ids


def open_project(tree: Path, home: Path) -> Project:
    """The project of a tree."""
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def tables_of(home: Path) -> str:
    """Everything that the tables of the ledger say, read without the product."""
    said = []
    for ledger in sorted(home.glob("projects/*/ledger.db")):
        db = sqlite3.connect(ledger)
        try:
            query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            for (table,) in db.execute(query).fetchall():
                rows = map(repr, db.execute(f'SELECT * FROM "{table}"'))
                said += [str(table), *sorted(rows)]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:  # a name may be flipped, too
            said.append(str(problem))
        finally:
            db.close()
    return "\n".join(said)
