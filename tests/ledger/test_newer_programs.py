"""What a newer program wrote: an older one respects its packs and its format.

The newer program is played by this file, which writes events, packs and the format with nothing of
Takeback, as the notes on the store say they are made.
"""

import hashlib
import json
import os
import sqlite3
import struct
import threading
import zlib
from pathlib import Path

import pytest

import takeback
from history import command
from spoken import sentence
from takeback import Project
from takeback.errors import DamagedStoreError
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.objects.git_objects import BLOB

KIND = "MoonLanded"
NEWER = 99
PAUSE = 0.3
"""Long enough for a thread to come to the ledger. If it was not, a test only proves less."""


def ledger_of(project: Project) -> sqlite3.Connection:
    """The ledger of a project, each statement committed at once."""
    path = Path(os.fsdecode(project.git_dir)).parent / "ledger.db"
    return sqlite3.connect(path, isolation_level=None)


def packs_of(project: Project) -> set[str]:
    """The packs that are on disk."""
    folder = Path(os.fsdecode(project.git_dir)) / "objects" / "pack"
    return {path.stem for path in folder.glob("*.pack")}


def write_pack(project: Project, content: bytes) -> tuple[str, int]:
    """A pack with one blob; its name and size."""
    assert len(content) < 16
    data = b"PACK" + struct.pack(">II", 2, 1)
    data += bytes([0x30 | len(content)]) + zlib.compress(content)
    checksum = hashlib.sha1(data).digest()
    name = f"pack-{checksum.hex()}"
    folder = Path(os.fsdecode(project.git_dir)) / "objects" / "pack"
    (folder / f"{name}.pack").write_bytes(data + checksum)
    return name, len(data) + 20


def append(db: sqlite3.Connection, kind: str, said: object) -> None:
    """An event at the end of the log, chained to the one before."""
    seq, chain = db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    text, salt = json.dumps(said), os.urandom(16)
    commitment = hashlib.sha256(salt + text.encode()).digest()
    head = f"{seq + 1} {kind} 7 ".encode()
    link = hashlib.sha256(chain + head + commitment).digest()
    db.execute(
        "INSERT INTO events (seq, kind, at, salt, commitment, chain, payload)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (seq + 1, kind, 7, salt, commitment, link, text),
    )


def land(project: Project, content: bytes = b"moon dust", *, row: bool = True) -> str:
    """An event of a kind that this program does not know, with a pack; the name of the pack."""
    name, size = write_pack(project, content)
    db = ledger_of(project)
    append(db, KIND, {"dust": content.decode(), "packs": [[name, size, 1]]})
    if row:
        ((event,),) = db.execute("SELECT max(seq) FROM events")
        db.execute("INSERT INTO packs VALUES (?, ?, ?, ?)", (name, event, size, 1))
    db.close()
    return name


def work(tree: Path, project: Project, count: int = 2) -> None:
    """Some checkpoints."""
    for number in range(count):
        (tree / "file").write_text(f"{number} {os.urandom(4).hex()}\n" * 20)
        project.checkpoint()


@pytest.mark.parametrize("row", [True, False], ids=["in the tables", "in the log only"])
def test_gc_leaves_the_packs_of_unknown_events_alone(tree: Path, home: Path, row: bool) -> None:
    """However often packs are merged, one that an unknown event names stays."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        name = land(project, row=row)
        for full in (False, True):
            work(tree, project)
            project.gc(full=full, max_age=0)
            assert name in packs_of(project)
        assert (name in project.workspace.ledger.packs()) == row
    with takeback.open(tree, home=home) as project:
        assert project.verify().ok or not row
        project.rebuild()
        assert project.verify().ok
        project.gc(full=True)
        assert name in packs_of(project)


def test_forget_refuses_what_only_a_newer_program_understands(tree: Path, home: Path) -> None:
    """Nobody can tell what such a pack holds, so forget says so, and removes nothing."""
    with takeback.open(tree, home=home) as project:
        (tree / "secret").write_text("a secret\n")
        work(tree, project)
        name = land(project)
        before = packs_of(project)
    said = command(tree, "forget", "secret", "--yes")
    assert said.code == 1
    assert "newer Takeback" in said.err
    assert "update Takeback" in said.err
    with takeback.open(tree, home=home) as project:
        assert name in packs_of(project)
        assert before <= packs_of(project)
        assert project.verify().ok


@pytest.mark.parametrize("words", [("doctor", "--repair"), ("checkpoint",)])
def test_no_repair_removes_the_packs_of_unknown_events(
    tree: Path, home: Path, words: tuple[str, ...]
) -> None:
    """Also after a crash, and if no table has them, they are nobody's litter."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        name = land(project, row=False)
    with (home / "projects" / project.id / "lock").open("r+b") as file:
        file.write(b"%-10d" % 999_999_999)
    command(tree, *words)
    with takeback.open(tree, home=home) as project:
        assert name in packs_of(project)


def test_odd_events_of_unknown_kinds_harm_nobody(tree: Path, home: Path) -> None:
    """Whatever stands where a newer program says something else, work goes on."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        db = ledger_of(project)
        odd: tuple[object, ...] = (
            None,
            7,
            [],
            "packs",
            [[]],
            [["x"]],
            [[1, 2, 3]],
            [["pack-x", 1 << 70, 1]],
        )
        for said in odd:
            append(db, KIND, {"packs": said})
            append(db, KIND, said)
        db.close()
        work(tree, project)
        project.gc(full=True)
        assert project.verify().ok


@pytest.mark.parametrize("kind", [KIND, "CheckpointTaken"])
def test_a_damaged_event_stops_no_checkpoint(tree: Path, home: Path, kind: str) -> None:
    """Nobody can tell which packs it names: after a crash no pack is removed, and work goes on."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        name = land(project, row=False)
        db = ledger_of(project)
        damage = "UPDATE events SET kind = 'x', payload = '{' WHERE seq = "
        db.execute(damage + "(SELECT max(seq) FROM events WHERE kind = ?)", (kind,))
        db.close()
    with (home / "projects" / project.id / "lock").open("r+b") as file:
        file.write(b"%-10d" % 999_999_999)
    with takeback.open(tree, home=home) as project:
        before = packs_of(project)
        work(tree, project)
        assert name in before
        assert before <= packs_of(project)
        assert not project.verify().ok


# -- formats -------------------------------------------------------------------------------------


def stamp(project: Project, version: int) -> None:
    """Give the ledger another format."""
    db = ledger_of(project)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


def version_of(project: Project) -> int:
    """The format of the ledger."""
    db = ledger_of(project)
    ((version,),) = db.execute("PRAGMA user_version")
    db.close()
    return int(version)


def test_an_older_program_never_stamps_a_newer_ledger(tree: Path, home: Path) -> None:
    """A process that waits to make a ledger looks again what it is when its turn comes."""
    with takeback.open(tree, home=home) as project:
        pass
    for file in (home / "projects" / project.id).glob("ledger.db*"):
        file.unlink()
    ledger = home / "projects" / project.id / "ledger.db"
    ledger.touch(mode=0o600)
    newer = ledger_of(project)
    newer.execute("PRAGMA journal_mode = WAL")
    newer.execute("BEGIN IMMEDIATE")
    newer.execute(f"PRAGMA user_version = {NEWER}")
    problems: list[str] = []

    def older() -> None:
        try:
            takeback.open(tree, home=home).close()
        except takeback.TakebackError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=older)
    thread.start()
    thread.join(PAUSE)
    newer.execute("COMMIT")
    newer.close()
    thread.join(60)
    assert version_of(project) == NEWER
    assert len(problems) == 1
    assert "newer Takeback" in problems[0]


def test_the_way_on_from_an_old_store(tree: Path, home: Path) -> None:
    """A folder whose history is of an old format begins a new one; the old one can be removed."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
    store = home / "projects" / project.id
    db = ledger_of(project)
    db.execute(f"PRAGMA application_id = {0x544B4231}")
    db.execute("PRAGMA user_version = 5")
    db.close()
    of_the_folder = ("root", "birth")  # where it is, which `relocate` changes
    inside = [path for path in store.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in inside if path.name not in of_the_folder}
    for words in (("checkpoint",), ("log",), ("undo",), ("gc",), ("doctor", "--repair")):
        said = command(tree, *words)
        assert said.code in (1, 4), words
        assert "unreleased Takeback" in said.err + said.out
        assert "`takeback relocate --new`" in said.err + said.out
    assert command(tree, "relocate", "--new").code == 0
    assert command(tree, "checkpoint").code == 0
    assert {path: path.read_bytes() for path in before} == before
    assert command(tree, "doctor").code == 0
    assert ", older)" in command(tree, "projects").out
    assert command(tree, "projects", "--remove", project.id, "--yes").code == 0
    assert not store.exists()
    assert command(tree, "log").code == 0


def test_a_program_that_became_old_removes_nothing(tree: Path, home: Path) -> None:
    """Packs that only the newer tables know are not swept by a program that was open before."""
    with takeback.open(tree, home=home) as project:
        (tree / "secret").write_text("a secret\n")
        work(tree, project)
        name, _ = write_pack(project, b"of tomorrow")
        stamp(project, NEWER)
        for act in (
            lambda: project.gc(full=True),
            lambda: project.gc(dry_run=True),
            lambda: project.forget(["secret"]),
            project.rebuild,
        ):
            with pytest.raises(takeback.TakebackError, match="newer Takeback"):
                act()
        assert name in packs_of(project)
        assert version_of(project) == NEWER


# -- what an event names in its envelope -----------------------------------------------------


def name_objects(project: Project, *contents: bytes) -> list[str]:
    """An event of an unknown kind that brings a pack, and names all that is in it; the ids."""
    store = project.workspace.store
    with project.workspace.held():
        writer = store.pack_writer()
        ids = [writer.add(BLOB, content).hex() for content in contents]
        said = {"about": ids[:1], "packs": pack_facts(writer.finish()), "objects": ids}
        store.ledger.record(NewEvent(KIND, said, 7))
    return ids


def test_objects_of_unknown_events_stay(tree: Path, home: Path) -> None:
    """What an event names survives gc, whatever its kind and age."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        (id, _) = name_objects(project, b"moon dust", b"more")
        for _ in range(2):
            work(tree, project)
            project.gc(full=True, max_age=1e-9)
        assert project.workspace.store.objects.read(bytes.fromhex(id))[1] == b"moon dust"
        assert project.verify().ok


def test_a_missing_object_of_an_unknown_event_is_found(tree: Path, home: Path) -> None:
    """`verify` names the object and the event, and gc removes nothing."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        with project.workspace.held():
            project.workspace.ledger.record(NewEvent(KIND, {"objects": ["ab" * 20]}, 7))
        event = project.workspace.ledger.last_event()
        (damage,) = project.verify().damage
        assert (
            sentence(damage.what)
            == f"the object `{'ab' * 20}`, which event {event} needs, is missing"
        )
        before = packs_of(project)
        with pytest.raises(DamagedStoreError, match="abab"):
            project.gc(full=True)
        assert packs_of(project) >= before


def test_forget_takes_objects_of_unknown_events(tree: Path, home: Path) -> None:
    """An object that holds the text goes, with its id; what else the event names stays."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        gone, stays = name_objects(project, b"a moon-secret", b"moon dust")
        project.forget(text="moon-secret")
        (event,) = [event for event in project.workspace.ledger.events() if event.kind == KIND]
        assert event.payload is not None
        assert event.payload["objects"] == [stays]
        assert gone not in str(event.payload)
        assert project.workspace.store.objects.read(bytes.fromhex(stays))[1] == b"moon dust"
        with pytest.raises(DamagedStoreError):
            project.workspace.store.objects.read(bytes.fromhex(gone))
        assert project.verify().ok


def test_objects_are_chained(tree: Path, home: Path) -> None:
    """Whoever takes an object out of an event, or out of its table, is found out."""
    with takeback.open(tree, home=home) as project:
        work(tree, project)
        name_objects(project, b"moon dust")
        db = ledger_of(project)
        db.execute("DELETE FROM needs")
        assert not project.verify().ok
        project.rebuild()
        assert project.verify().ok
        db.execute("UPDATE events SET payload = '{}' WHERE kind = ?", (KIND,))
        assert any("was changed" in sentence(each.what) for each in project.verify().damage)
        db.close()
