"""Stores of older formats, written by the programs of their time, and faults while opened."""

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import oracle
from faults.children import Ended
from faults.harness import Theatre
from faults.judge import Before, Court, verified
from faults.scenarios import SMALL
from takeback.project import Project
from takeback.store import schema

FIXTURES = Path(__file__).parent.parent / "fixtures"
SCENARIO = SMALL._replace(name="migration", history=())
TABLES = ("events", "packs", "checkpoints")
OF_FORMAT_1 = {
    "events": "seq, kind, at, salt, commitment, chain, payload",
    "checkpoints": "number, id, event, tree, root, pack, view, keep, created, label, entries,"
    " changed",
}

Rows = dict[str, list[str]]


def unpack(folder: Path, tree: Path, old: int = 1) -> Path:
    """A home folder with an old store, as the store of `tree`; a process that used it died."""
    with tarfile.open(FIXTURES / f"format-{old}.tar.gz") as tar:
        tar.extractall(folder, filter=_ours)
    (store,) = (folder / "home/projects").iterdir()
    here = tree.stat()
    line = f"{store.name} {here.st_dev} {here.st_ino} {tree}\n"
    for file in (store / "root", folder / "home/registry"):
        file.write_text(line)
        file.chmod(0o600)
    return folder / "home"


def _ours(member: tarfile.TarInfo, _path: str) -> tarfile.TarInfo:
    return member.replace(uid=os.geteuid(), gid=os.getegid(), deep=False)


def ledger_of(home: Path) -> Path:
    """The one ledger of a home folder."""
    (ledger,) = home.glob("projects/*/ledger.db")
    return ledger


def version_of(home: Path) -> int:
    """The format of the ledger."""
    db = sqlite3.connect(ledger_of(home))
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return int(version)


def rows_of(home: Path) -> Rows:
    """What a program of format 1 would read, byte for byte."""
    db = sqlite3.connect(ledger_of(home))
    queries = {t: f"SELECT {OF_FORMAT_1.get(t, '*')} FROM {t} ORDER BY 1" for t in TABLES}
    found = {table: [repr(row) for row in db.execute(queries[table])] for table in TABLES}
    db.close()
    return found


class Migration(Theatre):
    """The tree of the old store, changed since, and the store."""

    def __init__(self, folder: Path, old: int = 1) -> None:
        self._old = old
        super().__init__(SCENARIO._replace(name=f"migration-{old}"), folder)
        copy = folder / "copy"
        copy.mkdir()
        shutil.copytree(self._prepared, copy / "home")
        self._rows = rows_of(copy / "home")
        shutil.rmtree(copy)

    def prepare(self, home: Path) -> None:
        """Put the tree through the states that the old store holds, and the store in its place."""
        # In format 2 the first turn began in an empty tree.
        pictures = [oracle.picture(self.tree)] if self._old > 1 else []
        for make in SMALL.history:
            make(self.tree)
            pictures.append(oracle.picture(self.tree))
        if self._old > 2:  # the second turn was taken back and put back
            pictures += pictures[-2:]
        unpack(home.parent, self.tree, self._old).rename(home)
        ids = [row.split("'")[1] for row in rows_of(_copied(home))["checkpoints"]]
        shutil.rmtree(home.parent / "read")
        self._earlier = dict(zip(ids, pictures, strict=True))

    def act(self, project: Project, label: str) -> Iterator[str]:
        """Opening did it already; asking for something proves that it is done."""
        del label
        yield project.status().project

    @property
    def work(self) -> str:
        """The same in one line of a program."""
        return "tell(acked=project.id)"

    def court(self) -> Court:
        """The judge of a migration."""
        before = Before(self._earlier, self.before.tree)
        return _MigrationCourt(self.tree, self.home, before, self._rows, self._old)


def _copied(home: Path) -> Path:
    """A copy to read with SQLite, which changes what it opens."""
    copy = home.parent / "read"
    shutil.copytree(home, copy)
    return copy


class _MigrationCourt(Court):
    """One store after a fault while it was brought up to date."""

    def __init__(self, tree: Path, home: Path, before: Before, rows: Rows, old: int) -> None:
        super().__init__(tree, home, before)
        self._rows = rows
        self._old = old

    def hold(
        self,
        acked: set[str],
        kind: str,
        attempts: Collection[Ended],
        change: Callable[[], None],
    ) -> Iterator[str]:
        """Look first with nothing but SQLite, then as always."""
        copy = _copied(self._home)
        version, rows = version_of(copy), rows_of(copy)
        shutil.rmtree(copy)
        if version not in (self._old, schema.VERSION) or (acked and version != schema.VERSION):
            yield f"the ledger is of format {version}"
        for table in TABLES:
            if rows[table] != self._rows[table]:
                yield f"format {version}: the table `{table}` is not what it was"
        yield from super().hold(acked, kind, attempts, change)

    def _compare(
        self, present: list[str], acked: set[str], kind: str, attempts: Collection[Ended]
    ) -> Iterator[str]:
        del acked, kind, attempts
        if set(present) != self._before.checkpoints.keys():
            yield f"there are other checkpoints: {present}"
        copy = _copied(self._home)
        if version_of(copy) != schema.VERSION:
            yield "opening did not bring the ledger up to date"
        shutil.rmtree(copy)

    def _go_on(
        self, project: Project, present: list[str], change: Callable[[], None]
    ) -> Iterator[str]:
        """The new verbs work in the old store."""
        del present
        with project.session("claude") as session, session.turn("go on") as turn:
            pass
        yield from self._extract(project, turn.before, self._before.tree)
        there = [checkpoint.id for checkpoint in project.checkpoints()]
        yield from super()._go_on(project, there, change)
        old = rows_of(self._home)["events"][: len(self._rows["events"])]
        if old != self._rows["events"]:
            yield "the old events are not what they were"
        yield from verified(project, "after going on")
