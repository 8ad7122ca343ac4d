"""A history with a marker in every place that can hold one, and a search of its own for it.

Nothing here uses what the product uses to find, to unpack or to compare.
"""

import base64
import hashlib
import os
import shutil
import sqlite3
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

import takeback
from takeback.effects import rescue
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model.beyond.effects import DELETE, Judgement, Target
from takeback.model.reasons import Reason
from takeback.objects.pack_merge import Piece, merge
from takeback.objects.pack_read import PackFile
from takeback.objects.pack_write import discard_pack

MARK = "mArK-7f3a91c2-Qx"
STAGE = ".takeback-stage-" + "k" * 12
LONG = f"long {MARK}\n" * 100
VERSIONS = [f"{number} lines\n" * 40 + f"{MARK} {number}\n" for number in range(3)]


def plant(tree: Path, home: Path) -> dict[str, str]:
    """Make the history; states and turns that are asked for later, by name."""
    ids: dict[str, str] = {}
    beside = tree.parent / f"beside-{MARK}"
    with takeback.open(tree, home=home) as project:
        _files(tree)
        (tree / "versions").write_text(VERSIONS[2])
        gone = project.checkpoint("will be gone").id
        (tree / "versions").write_text(VERSIONS[0])
        ids["start"] = project.checkpoint(f"label {MARK}").id
        project.checkpoint(f"named again {MARK}")
        project.checkpoint(f"name that goes {MARK}")
        project.release(f"name that goes {MARK}")
        session = project.session("agent", id=f"own {MARK}", title=f"title {MARK}", held=False)
        with session.turn(f"prompt with {MARK} in it") as turn:
            with turn.step("Bash", {"command": f"echo {MARK}"}):
                (tree / "versions").write_text(VERSIONS[1])
            turn.step("Bash", {"command": "cat it"}).end(output=f"said {MARK}\n", exit_code=0)
            turn.step("Write", {"file_path": "elsewhere", "content": LONG}).end()
            with turn.step("Write", {"file_path": f"dir-{MARK}/inner"}):
                (tree / f"dir-{MARK}" / "inner").write_text("harmless\n")
            turn.effect("request", f"POST /{MARK}", inverse=f"undo {MARK}", host=f"{MARK}.example")
            turn.step("Bash", {"command": f"curl -X POST https://a.example/{MARK}"}).end()
            _refused(turn)
            with turn.step("Write", {"file_path": str(beside)}):
                beside.write_text(f"outside {MARK}\n")
        ids["turn"] = turn.id
        with session.turn("a plain turn") as turn:
            (tree / "plain").write_text("two\n")
        ids["plain"] = turn.id
        with session.turn("undone") as turn:
            (tree / "undone").write_text(f"undone {MARK}\n")
        undone = project.undo(turn, because=f"because {MARK}")
        project.lessons.note(f"lesson {MARK}")
        _relapse(project, ids["plain"], undone.id)
        (tree / "versions").write_text(VERSIONS[0])
        (tree / "shared").write_text(f"content {MARK}\n")
        ids["end"] = project.checkpoint("end").id
        _events(project, gone)
        ids["packs"] = " ".join(project.workspace.ledger.packs())
        _merge_packs(project)
        _rescues(project, tree)
        _beside_files(project, session)
        _plans(project, ids)
        (tree / "plain").write_text("three\n")
        ids["last"] = project.checkpoint(f"in the log of the database {MARK}").id
        _leftovers(tree, Path(os.fsdecode(project.git_dir)).parent)
    return ids


def _plans(project: takeback.Project, ids: dict[str, str]) -> None:
    """Plans that were shown: they name paths, and words that a turn is called by."""
    project.plan_rollback(ids["start"], paths=[f"name-{MARK}.txt"])
    project.plan_rollback(f"label {MARK}", minutes=5)
    project.plan_undo(f"prompt with {MARK} in it", decide={f"dir-{MARK}/inner": "keep-mine"})


def _relapse(project: takeback.Project, turn: str, restore: str) -> None:
    """A turn that brought something back in a file with the marker in its name."""
    said: dict[str, Any] = {"turn": turn, "restore": restore, "lines": 1, "taken": 1}
    said["paths"] = [f"dir-{MARK}/inner"]
    with project.workspace.held():
        project.workspace.ledger.record(NewEvent(events.RELAPSE_SEEN, said, time.time_ns()))


def _beside_files(project: takeback.Project, session: takeback.Session) -> None:
    """Memory, a dump of a participant, its token and its mark, and a mutation."""
    state = {"text": f"dump {MARK}\n" * 50}
    project.register(takeback.memory(state, name=f"part-{MARK}"))
    session.memory[f"key {MARK}"] = f"value {MARK}"
    session.memory.layer("facts", persistent=True)["known"] = f"fact {MARK}"
    with session.turn("beside files") as turn:
        inverse = f"inverse-{MARK}"
        turn.mutate(f"target {MARK}", f"before {MARK}", f"after {MARK}", inverse=inverse, key=MARK)
    facts = [f"command-{MARK}", "other", f"token {MARK}", f"mark {MARK}", "", 0]
    broken = [f"broken-{MARK}", "other", "", "", f"problem {MARK}", 0]
    said: dict[str, Any] = {"line": "main", "tokens": [facts, broken]}
    with project.workspace.held():
        project.workspace.ledger.record(
            NewEvent(events.PARTICIPANTS_CAPTURED, said, time.time_ns())
        )


def _refused(turn: takeback.Turn) -> None:
    """A call that the guard refused."""
    turn._recorder.guard = "autopilot"
    try:
        turn.step("Bash", {"command": f"git push --force origin {MARK}"})
    except takeback.GuardRefused:
        turn._recorder.guard = ""
        return
    raise AssertionError("the guard refused nothing")


def _files(tree: Path) -> None:
    (tree / "plain").write_text("one\n")
    (tree / "loose").write_text(f"content {MARK}\n")
    (tree / "versions").write_text(VERSIONS[0])
    (tree / f"name-{MARK}.txt").write_text("harmless too\n")
    (tree / f"dir-{MARK}").mkdir()
    (tree / f"dir-{MARK}" / "inner").write_text("harmless as well\n")
    (tree / "folder").mkdir()
    (tree / "folder" / "rest").write_text("stays\n")
    (tree / "link").symlink_to(f"to/{MARK}")


def _events(project: takeback.Project, gone: str) -> None:
    """What is hard to bring about: saves in between, merged texts, a state that was let go."""
    store = project.workspace.store
    now = time.time_ns()
    with project.workspace.held():
        for kind in (events.SAVES_RESCUED, events.TEXTS_MERGED):
            writer = store.pack_writer()
            data = f"{kind} {MARK}\n".encode()
            oid = writer.add_large(len(data), [data])
            save = [f"save-{MARK}", 0o100644, len(data), hashlib.sha256(data).hexdigest()]
            said: dict[str, object] = {"restore": "k" * 12, "packs": pack_facts(writer.finish())}
            if kind == events.SAVES_RESCUED:
                said["saves"] = [[*save, oid.hex()]]
            project.workspace.ledger.record(NewEvent(kind, said, now))  # type: ignore[arg-type]
        ((row,),) = project.workspace.ledger._reader.rows(
            "SELECT number FROM checkpoints WHERE id = ?", (gone,)
        )
        trimmed = NewEvent(events.HISTORY_TRIMMED, {"checkpoints": [[row, row]]}, now)
        first = project.workspace.ledger._reader.rows("SELECT id FROM checkpoints ORDER BY number")[
            1
        ][0]
        pinned = {"checkpoint": first, "label": f"pinned {MARK}"}
        project.workspace.ledger.record(trimmed, NewEvent(events.CHECKPOINT_KEPT, pinned, now))


def _merge_packs(project: takeback.Project) -> None:
    """Put all packs into one, where versions are deltas of each other."""
    store = project.workspace.store
    with project.workspace.held():
        packs = store.ledger.packs()
        pieces = []
        for name in packs:
            with PackFile(store.packs_dir + b"/" + name.encode()) as pack:
                pieces += [Piece(oid, name.encode(), b"one") for oid in pack.objects()]
        merged = merge(store.packs_dir, pieces)
        said: dict[str, object] = {"packs": pack_facts(merged), "dropped": [*packs]}
        fact = NewEvent(events.PACKS_MERGED, said, time.time_ns())  # type: ignore[arg-type]
        store.ledger.record(fact)
        store.objects.close()
        for name in packs:
            discard_pack(store.packs_dir + b"/" + name.encode())


def _rescues(project: takeback.Project, tree: Path) -> None:
    """What was saved in the store before commands that destroy, and in a folder beside it."""
    notes = tree.parent / f"notes-{MARK}"
    notes.mkdir()
    (notes / "name").write_text("harmless\n")
    other = tree.parent / "others"
    other.mkdir()
    (other / "content").write_text(f"rescued {MARK}\n")
    (other / "link").symlink_to(f"to/{MARK}")
    (other / "plain").write_text("stays in the rescue\n")
    work = project.workspace
    for folder in (notes, other):
        target = Target(os.fsencode(folder), DELETE, is_recursive=True)
        judged = Judgement("destructive", "test", Reason("test"), targets=(target,))
        with project.session("agent", held=False) as session, session.turn("rescued") as turn:
            with turn.step("Bash", {"command": "rm"}) as step:
                with work.held():
                    rescue.before(work, step.id, judged)
                shutil.rmtree(folder)
            with work.held():
                rescue.after(work, step.id)


def _leftovers(tree: Path, store: Path) -> None:
    """What processes that died left, and what the database left in its own file."""
    (tree / STAGE).mkdir()
    (tree / STAGE / "n0").write_text(f"staged {MARK}\n")
    (tree / STAGE / "q1").write_text(f"displaced {MARK}\n")
    (store / "git/objects/pack/tmp-1-1").write_text(f"half a pack {MARK}\n")
    (store / "index.1.tmp").write_text(f"half a cache {MARK}\n")
    (store / "git/packed-refs").write_text(f"# {MARK}\n")
    db = sqlite3.connect(store / "ledger.db", isolation_level=None)
    db.execute("PRAGMA secure_delete = OFF")
    db.execute("CREATE TABLE litter (said TEXT)")
    db.executemany("INSERT INTO litter VALUES (?)", [(f"free page {MARK} " * 100,)] * 20)
    deflated = events.pack(f'{{"turn":"","label":"deflated {MARK}"}}')
    db.executemany("INSERT INTO litter VALUES (?)", [(deflated,)] * 200)
    db.execute("DROP TABLE litter")
    db.close()


# -- the search --------------------------------------------------------------------------------


def ways() -> dict[str, bytes]:
    """The ways in which the marker, or the hash of a content with it, may be written."""
    mark = MARK.encode()
    found = {"plain": mark, "hex": mark.hex().encode(), "HEX": mark.hex().upper().encode()}
    for shift in range(3):
        # The first and the last group depend on what is around.
        whole = base64.b64encode(b"\0" * shift + mark)
        found[f"base64 {shift}"] = whole[4 if shift else 0 : -4]
    contents = [f"content {MARK}\n", f"undone {MARK}\n", f"outside {MARK}\n", LONG, *VERSIONS]
    contents += [f"{kind} {MARK}\n" for kind in ("SavesRescued", "TextsMerged")]
    contents.append(f"to/{MARK}")
    for content in contents:
        data = content.encode()
        strong = hashlib.sha256(data).digest()
        weak = hashlib.sha1(b"blob %d\0" % len(data) + data).digest()
        for name, hashed in (("sha256", strong), ("blob", weak)):
            found[f"{name} of {content[:16]!r}…"] = hashed
            found[f"{name} of {content[:16]!r}… in hex"] = hashed.hex().encode()
    return found


def search(home: Path, tree: Path, work: Path) -> list[str]:
    """Where the marker is: in the bytes of every file, of every object, of every row."""
    copy = work / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy, symlinks=True)
    found = []
    for path in sorted(copy.rglob("*")):
        found += _in(str(path.relative_to(copy)), os.fsencode(path.name))
        if path.is_file():
            found += _in(str(path.relative_to(copy)), path.read_bytes())
    for stage in tree.glob(".takeback-*"):
        found += [f"left in the tree: {stage.name}"]
    for git in copy.glob("projects/*/git"):
        found += _in_objects(git)
        found += _inflated(git)
    for ledger in copy.glob("projects/*/ledger.db*"):
        found += _in_litter(ledger)
    for ledger in copy.glob("projects/*/ledger.db"):
        found += _in_rows(ledger)
    shutil.rmtree(copy)
    return found


def _in(where: str, data: bytes) -> list[str]:
    return [f"{where}: {way}" for way, needle in ways().items() if needle in data]


def _in_objects(git: Path) -> list[str]:
    """What git itself makes of the packs."""
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    done = subprocess.run(
        ["git", "--git-dir", git, "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True, check=True,
    )  # fmt: skip
    return _in("objects", done.stdout)


def _inflated(git: Path) -> list[str]:
    """Every stream of every pack, wherever one may begin: also deltas, and what no index lists."""
    found = []
    for pack in sorted(git.glob("objects/pack/*.pack")):
        data = pack.read_bytes()
        for offset in range(12, len(data) - 20):
            if data[offset] & 0x0F != 8 or (data[offset] * 256 + data[offset + 1]) % 31:
                continue  # no stream begins like that
            try:
                piece = zlib.decompressobj().decompress(data[offset:], 1 << 20)
            except zlib.error:
                continue
            found += _in(f"{pack.name} at {offset}", piece)
    return found


def _in_rows(ledger: Path) -> list[str]:
    """Every row of every table."""
    db = sqlite3.connect(ledger)
    db.text_factory = bytes
    found = []
    names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        for row in db.execute(f"SELECT * FROM {name.decode()}"):
            values = [value for value in row if isinstance(value, bytes)]
            found += _in(f"table {name.decode()}", b"\0".join(values))
            for value in values if name in (b"events", b"details") else ():
                found += _in("a deflated event", _deflated(value))
    db.close()
    return found


def _in_litter(path: Path) -> list[str]:
    """Whatever inflates in a file of the database, as an event does, wherever it begins."""
    data, found = path.read_bytes(), []
    for at, byte in enumerate(data):
        if byte in events._WORDS:
            found += _in(f"deflated in {path.name}", _deflated(data[at : at + 4096]))
    return found


def _deflated(value: bytes) -> bytes:
    """What a value holds if it is deflated, with the words that events share; else nothing."""
    words = events._WORDS.get(value[0]) if value else None
    said, stream = b"", zlib.decompressobj(-15, words or b"")
    for byte in value[1:] if words else b"":
        try:
            said += stream.decompress(bytes([byte]))
        except zlib.error:
            break
        if stream.eof:
            break
    return said
