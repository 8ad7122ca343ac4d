"""Whoever edits the ledger is found out; what a newer program wrote is kept or left alone."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from spoken import spoken
from takeback.effects import rescue
from takeback.errors import DamagedStoreError, NewerStoreError, OldStoreError
from takeback.hooks import helper
from takeback.ledger import schema
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model.beyond.effects import DELETE, Judgement, Target
from takeback.model.reasons import Reason
from takeback.project import Project

ROOT = Path(__file__).parents[2]
UNRELEASED = 0x544B4231
"""`TKB1`, the mark of ledgers of formats 1 to 5."""

OLD = 5
"""The last format with that mark."""


def _opened(tree: Path, home: Path) -> Project:
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def ledger_of(home: Path) -> Path:
    """The one ledger of a home folder."""
    (ledger,) = home.glob("projects/*/ledger.db")
    return ledger


def _rescue(project: Project, step: str, path: Path) -> None:
    """Save a file that is about to be deleted."""
    target = Target(os.fsencode(path), DELETE)
    judged = Judgement("destructive", "test", Reason("test"), targets=(target,))
    with project.workspace.held():
        rescue.before(project.workspace, step, judged)


EFFECT = [
    "k" * 12, "irreversible", "push", "git push", "host", "git push -d", "push",
]  # fmt: skip
REFUSAL: dict[str, Any] = {
    "refusal": "m" * 12, "verdict": "deny", "tool": "Bash", "summary": "git push",
    "class": "opaque", "rule": "rule", "reason": {"code": "x"}, "instead": "ask",
    "trace": "12345678", "why": "guard", "restores": [],
}  # fmt: skip


def _guard(project: takeback.Project, session: str, turn: str) -> None:
    """What a guard says."""
    guard = [
        (events.EFFECT_REPORTED, {"turn": turn, "effects": [EFFECT]}),
        (events.CALL_REFUSED, {"session": session, "turn": turn, **REFUSAL}),
        (events.GUARD_ALLOWED, {"refusal": REFUSAL["refusal"], "scope": "once"}),
        (events.EFFECT_REPORTED, {"turn": turn, "allowed": REFUSAL["refusal"]}),
        (events.GUARD_MODE_SET, {"before": "watch", "after": "ask", "by": "ana"}),
    ]
    for kind, facts in guard:
        project.workspace.ledger.record(NewEvent(kind, facts, 1))


class Original:
    """A tree and a store in whose log everything is that can be."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.home = folder / "tree", folder / "home"
        self.tree.mkdir()
        (self.tree / "a").write_text("a\n")
        (self.tree / ".env").write_text("KEY=a secret value\n")
        (self.tree / "big").touch()
        os.truncate(self.tree / "big", 20_000_000)  # too large to be covered
        (self.tree / ".git" / "refs" / "heads").mkdir(parents=True)
        (self.tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.tree / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
        with _opened(self.tree, self.home) as project:
            project.checkpoint("first", request="r1")
            with project.session("claude", id="own", title="t") as session:
                turn = self._first_turn(project, session, folder)
                project.register(takeback.memory({"k": 1}))
                session.memory["plan"] = ["one"]
                with (
                    session.plan("all of it", id="p") as plan,
                    plan.step("a part", key="k") as part,
                ):
                    part.result = {"n": 1}
                with session.turn("again") as again:
                    session.memory["plan"] = ["two"]
                    again.mutate("price", 1, 2, inverse="set-price")
                    (self.tree / ".git" / "refs" / "heads" / "main").write_text("2" * 40 + "\n")
            project.checkpoint("last", request="r3")
            project.undo(because="it was wrong", request="r4", yes=True)
            project.redo(yes=True)
            project.rollback(turn.before)
            project.recorder().pause()
            with project.workspace.held():
                kept = {"checkpoint": turn.before, "label": "good"}
                project.workspace.ledger.record(NewEvent(events.CHECKPOINT_KEPT, kept, 1))
                root = project.workspace.ledger._reader.rows(
                    "SELECT root FROM checkpoints LIMIT 1"
                )[0][0].hex()
                project.workspace.ledger.record(NewEvent("MoonSeen", {"objects": [root]}, 1))
                (lesson,) = project.lessons.list(all=True)
                told: dict[str, Any] = {"session": session.id, "lessons": [lesson.id]}
                project.workspace.ledger.record(NewEvent(events.LESSONS_TOLD, told, 1))
                seen: dict[str, Any] = {
                    "turn": turn.id,
                    "restore": lesson.restore,
                    "lines": 1,
                    "taken": 2,
                }
                project.workspace.ledger.record(NewEvent(events.RELAPSE_SEEN, seen, 1))
                left = {"restore": "nmnmnmnm", "moves": [["box", "not-aborted", "gone"]]}
                project.workspace.ledger.record(NewEvent(events.PARTICIPANTS_MOVED, left, 1))
                _guard(project, session.id, turn.id)
                project.workspace.ledger.record(
                    NewEvent(events.HISTORY_TRIMMED, {"checkpoints": [], "why": "age"}, 2)
                )

    def _first_turn(
        self, project: Project, session: takeback.Session, folder: Path
    ) -> takeback.Turn:
        """Edits inside and outside, commands, and a rescue."""
        with session.turn("go", request="r2") as turn:
            with turn.step("Write", {"file_path": "b"}):
                (self.tree / "b").write_text("b\n")
            (folder / "outside").write_text("before\n")
            with turn.step("Write", {"file_path": str(folder / "outside")}):
                (folder / "outside").write_text("after\n")
            turn.step("Bash", {"command": "make &"}).detach()
            turn.step("Bash", {"command": "ls"}).end(output="a b", exit_code=0)
            with turn.step("Bash", {"command": "rm big"}) as step:
                _rescue(project, step.id, self.tree / "big")
                (self.tree / "big").unlink()
        return turn

    def copied(self, folder: Path) -> Path:
        """A copy of the store, to be tampered with."""
        shutil.copytree(self.home, folder / "copy", symlinks=True)
        return folder / "copy"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """A store that nobody has touched."""
    return Original(tmp_path_factory.mktemp("original"))


def _change(home: Path, *statements: str) -> None:
    db = sqlite3.connect(ledger_of(home))
    for statement in statements:
        assert db.execute(statement).rowcount != 0, f"nothing was changed by {statement}"
    db.commit()
    db.close()


def _found(tree: Path, home: Path) -> tuple[list[str], list[str]]:
    """What `verify` and `doctor` say."""
    with _opened(tree, home) as project:
        told = list(spoken(project.upkeep.examine()[0]))
        return list(spoken(project.verify().problems)), told


# -- events ----------------------------------------------------------------------------------

_SWAP = (
    "UPDATE events SET seq = -1 WHERE seq = 3",
    "UPDATE events SET seq = 3 WHERE seq = 4",
    "UPDATE events SET seq = 4 WHERE seq = -1",
)
_LAST = "(SELECT max(seq) FROM events)"
TAMPERING: dict[str, tuple[str, ...]] = {
    "an edited payload": (
        "UPDATE events SET payload = replace(payload, 'go', 'no') WHERE seq = 3",
    ),
    "an emptied payload": ("UPDATE events SET payload = '{}' WHERE seq = 5",),
    "a payload put in": ("UPDATE events SET payload = payload || ' ' WHERE seq = 1",),
    "an edited payload with its commitment": (
        """UPDATE events SET payload = (SELECT payload FROM events WHERE seq = 2),
        salt = (SELECT salt FROM events WHERE seq = 2),
        commitment = (SELECT commitment FROM events WHERE seq = 2) WHERE seq = 1""",
    ),
    "an edited kind": ("UPDATE events SET kind = 'MoonLanded' WHERE seq = 5",),
    "an edited time": ("UPDATE events SET at = at + 1 WHERE seq = 2",),
    "an edited author": ("UPDATE events SET author = 'eve@moon' WHERE seq = 3",),
    "an author taken away": ("UPDATE events SET author = NULL WHERE seq = 3",),
    "the whole envelope taken away": (
        "UPDATE events SET author = NULL, request = NULL, parents = NULL WHERE seq = 3",
    ),
    "an edited request": ("UPDATE events SET request = 'r9' WHERE request = 'r2'",),
    "a request taken away": ("UPDATE events SET request = NULL WHERE request = 'r1'",),
    "a request put in": ("UPDATE events SET request = 'r9' WHERE seq = 5",),
    "edited parents": ("UPDATE events SET parents = '[1]' WHERE seq = 5",),
    "parents taken away": ("UPDATE events SET parents = NULL WHERE seq = 5",),
    "an edited link": ("UPDATE events SET chain = zeroblob(32) WHERE seq = 4",),
    "an edited link at the end": (f"UPDATE events SET chain = zeroblob(32) WHERE seq = {_LAST}",),
    "an edited salt": ("UPDATE events SET salt = zeroblob(16) WHERE seq = 4",),
    "two swapped events": _SWAP,
    "a removed first event": ("DELETE FROM events WHERE seq = 1",),
    "a removed event": ("DELETE FROM events WHERE seq = 5",),
    "a removed event and a closed gap": (
        "DELETE FROM events WHERE seq = 5",
        "UPDATE events SET seq = -seq WHERE seq > 5",
        "UPDATE events SET seq = -seq - 1 WHERE seq < 0",
    ),
    "a removed last event": (f"DELETE FROM events WHERE seq = {_LAST}",),
    "the last three events removed": (f"DELETE FROM events WHERE seq > {_LAST} - 3",),
    "an event said twice": (
        """INSERT INTO events SELECT seq + 1000, kind, at, salt, commitment, chain, payload, author,
        NULL, parents, NULL FROM events WHERE seq = 5""",
    ),
    "a payload blanked": ("UPDATE events SET payload = NULL WHERE seq = 4",),
    "a payload blanked as if forgotten": (
        "UPDATE events SET payload = '{}', redacted = 9 WHERE seq = 4",
    ),
    "an event of another kind of value": ("UPDATE events SET payload = 7 WHERE seq = 4",),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_with_events_is_found(original: Original, how: str, tmp_path: Path) -> None:
    """Every edited, reordered or removed event is found by `verify` and by `doctor`."""
    home = original.copied(tmp_path)
    _change(home, *TAMPERING[how])
    verified, examined = _found(original.tree, home)
    assert verified
    assert examined


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_removed_end_is_missed(original: Original, count: int, tmp_path: Path) -> None:
    """The lock file knows how far the log went, and nothing is rebuilt from what is left of it."""
    home = original.copied(tmp_path)
    _change(home, f"DELETE FROM events WHERE seq > {_LAST} - {count}")
    lock = ledger_of(home).with_name("lock")
    anchor = lock.read_bytes()
    with _opened(original.tree, home) as project:
        before = project.workspace.ledger._reader.rows("SELECT * FROM checkpoints")
        with pytest.raises(DamagedStoreError, match="lost its end"):
            project.rebuild()
        assert project.workspace.ledger._reader.rows("SELECT * FROM checkpoints") == before
    assert lock.read_bytes() == anchor
    verified, examined = _found(original.tree, home)
    assert any("lost its end" in what for what in verified)
    assert any("lost its end" in what for what in examined)


def test_untouched(original: Original, tmp_path: Path) -> None:
    """In a store that nobody touched nothing is found."""
    assert _found(original.tree, original.copied(tmp_path)) == ([], [])


# -- tables ----------------------------------------------------------------------------------


def _columns() -> Iterator[tuple[str, str]]:
    db = sqlite3.connect(":memory:")
    schema.make(db, schema.PROJECTIONS)
    for table in schema.TABLES:
        for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})"):
            yield table, f"{name} {kind}"
    db.close()


def _key(table: str) -> str:
    keys = {"delta_rows": "path", "change_rows": "path", "needs": "object"}
    keys |= {"git_refs": "name", "git_moves": "name", "names": "name"}
    return keys.get(table, "rowid")


_OTHER = {"INTEGER": "coalesce({0}, 0) + 1", "TEXT": "coalesce({0}, '') || 'x'"}


@pytest.mark.parametrize(
    ("table", "column"), list(_columns()), ids=lambda value: value.split(" ")[0]
)
def test_an_edited_cell_is_found(
    original: Original, table: str, column: str, tmp_path: Path
) -> None:
    """Any one cell of any table that follows from the log: edited, found, and made again."""
    home = original.copied(tmp_path)
    name, kind = column.split(" ")
    other = _OTHER.get(kind, "CAST(coalesce({0}, x'') || x'00' AS BLOB)").format(name)
    row = f"SELECT * FROM {table} ORDER BY 1 DESC, 2 DESC LIMIT 1"
    key = _key(table)
    where = f"{key} = (SELECT {key} FROM ({row.replace('*', f'*, {key}')}))"
    if table == "delta_rows":
        where += " AND checkpoint = (SELECT max(checkpoint) FROM delta_rows)"
    _change(home, f"UPDATE {table} SET {name} = {other} WHERE {where}")
    verified, examined = _found(original.tree, home)
    assert any(f"`{table}`" in what for what in examined), examined
    assert verified
    with _opened(original.tree, home) as project:
        project.rebuild()
    assert _found(original.tree, home) == ([], [])


@pytest.mark.parametrize("table", schema.TABLES)
@pytest.mark.parametrize("how", ["removed", "emptied", "dropped"])
def test_a_lost_row_is_found(original: Original, table: str, how: str, tmp_path: Path) -> None:
    """A row that is gone, all of them, or the whole table: found, and made again."""
    home = original.copied(tmp_path)
    key = _key(table)
    _change(
        home,
        {
            "removed": f"DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})",
            "emptied": f"DELETE FROM {table}",
            "dropped": f"DROP TABLE {table}",
        }[how],
    )
    with _opened(original.tree, home) as project:
        assert project.upkeep.examine()[0]
        project.rebuild()
    assert _found(original.tree, home) == ([], [])


@pytest.mark.parametrize("view", schema.VIEWS)
@pytest.mark.parametrize("how", ["dropped", "other", "a table"])
def test_a_changed_view_is_found(original: Original, view: str, how: str, tmp_path: Path) -> None:
    """A view that is gone, that tells something else, or that is a table: found, and made again."""
    home = original.copied(tmp_path)
    made = {
        "dropped": [],
        "other": [f"CREATE VIEW {view} AS SELECT * FROM other WHERE 0"],
        "a table": [f"CREATE TABLE {view} AS SELECT * FROM other"],
    }
    _change(home, f"CREATE TABLE other AS SELECT * FROM {view}", f"DROP VIEW {view}", *made[how])
    with _opened(original.tree, home) as project:
        assert any(f"`{view}`" in what for what in spoken(project.upkeep.examine()[0]))
        project.rebuild()
    assert _found(original.tree, home) == ([], [])


@pytest.mark.parametrize(
    ("name", "words", "others", "is_mended"),
    [
        ("turns", b"uncounted INTEGER", b"uncountex INTEGER", True),
        ("turns_of_session", b"(session, number)", b"(session, opened)", True),
        ("deltas", b"AS origin", b"AS orig\xa0n", True),
        ("forgetting", b"phase TEXT", b"ph\xa0se TEXT", False),
        ("journal", b"said TEXT", b"saix TEXT", False),
        ("events", b"parents TEXT", b"parentx TEXT", False),
        ("requests", b"request IS NOT NULL", b"author  IS NOT NULL", False),
    ],
)
def test_a_damaged_statement_is_found(
    original: Original, name: str, words: bytes, others: bytes, is_mended: bool, tmp_path: Path
) -> None:
    """By which words a table, an index or a view was made is checked, too."""
    home = original.copied(tmp_path)
    ledger = ledger_of(home)
    data = ledger.read_bytes()
    at = data.index(words, data.index(name.encode() + b" "))
    assert len(words) == len(others)
    ledger.write_bytes(data[:at] + others + data[at + len(words) :])
    assert _found(original.tree, home) != ([], [])
    if is_mended:
        with _opened(original.tree, home) as project:
            project.rebuild()
        assert _found(original.tree, home) == ([], [])


# -- details ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM details WHERE event = (SELECT max(event) FROM details)",
        "UPDATE details SET text = '{}'",
        "UPDATE details SET salt = x'00'",
        "INSERT INTO details SELECT 1, salt, text FROM details LIMIT 1",
    ],
)
def test_a_changed_detail_is_found(original: Original, change: str, tmp_path: Path) -> None:
    """What an event says at length is committed to as well."""
    home = original.copied(tmp_path)
    _change(home, change)
    verified, examined = _found(original.tree, home)
    assert any("detail" in what for what in verified)
    assert any("detail" in what for what in examined)


# -- the origin ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", ["UPDATE origin SET id = 'x' || id", "DELETE FROM origin", "UPDATE origin SET id = 1"]
)
def test_another_origin_is_found(original: Original, change: str, tmp_path: Path) -> None:
    """The chain begins at the origin, so nobody can give a log to another store."""
    home = original.copied(tmp_path)
    _change(home, change)
    verified, examined = _found(original.tree, home)
    assert verified
    assert examined


def test_origins_differ_and_stay(original: Original, tmp_path: Path) -> None:
    """Each store has an origin of its own; a rebuild and a copy keep it, and events name it."""
    home = original.copied(tmp_path)
    with _opened(original.tree, original.home) as project:
        before = project.origin
    with _opened(original.tree, home) as project:
        project.rebuild()
        assert project.origin == before == project.status().origin
        ids = [event.id for event in project.workspace.ledger.events()]
        assert ids == [(before, n) for n in range(1, len(ids) + 1)]
    (tmp_path / "other").mkdir()
    with _opened(tmp_path / "other", home) as project:
        assert project.origin != before


def test_parents_may_be_elsewhere(original: Original, tmp_path: Path) -> None:
    """What led to an event may be in the log of another store."""
    home = original.copied(tmp_path)
    with _opened(original.tree, home) as project:
        with project.workspace.held():
            project.workspace.ledger.record(NewEvent("MoonLanded", {}, 7, parents=(1, ("abc", 3))))
        (kept,) = [
            event for event in project.workspace.ledger.events() if event.kind == "MoonLanded"
        ]
        assert kept.parents == (1, ("abc", 3))
    assert _found(original.tree, home) == ([], [])


# -- what others wrote -----------------------------------------------------------------------


def test_unknown_kinds_are_kept(original: Original, tmp_path: Path) -> None:
    """An event of a newer program is chained, survives a rebuild, and changes no table."""
    home = original.copied(tmp_path)
    with _opened(original.tree, home) as project:
        before = _tables(home)
        with project.workspace.held():
            moon = NewEvent("MoonLanded", {"turn": "x", "session": "y"}, 7, parents=(1,))
            (seq,) = project.workspace.ledger.record(moon)
        assert _tables(home) == before
        project.rebuild()
        assert _tables(home) == before
        (kept,) = [
            event for event in project.workspace.ledger.events() if event.kind == "MoonLanded"
        ]
        assert (kept.seq, kept.payload, kept.parents) == (seq, {"turn": "x", "session": "y"}, (1,))
        assert project.checkpoint().cursor == seq + 1
    assert _found(original.tree, home) == ([], [])


def _tables(home: Path) -> dict[str, list[str]]:
    db = sqlite3.connect(ledger_of(home))
    found = {t: [repr(row) for row in db.execute(f"SELECT * FROM {t}")] for t in schema.TABLES}
    db.close()
    return found


# -- older and newer programs ----------------------------------------------------------------


def _bytes_of(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def test_a_newer_store_is_refused(original: Original, tmp_path: Path) -> None:
    """A ledger of a format that this program does not know is not touched, to the byte."""
    home = original.copied(tmp_path)
    db = sqlite3.connect(ledger_of(home))
    db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    db.close()
    before = _bytes_of(home)
    with pytest.raises(NewerStoreError, match=f"format {schema.VERSION + 1}") as refused:
        _opened(original.tree, home)
    assert "update Takeback" in refused.value.hint
    assert _bytes_of(home) == before


@pytest.mark.parametrize(
    ("application", "version"),
    [*((UNRELEASED, n) for n in range(1, OLD + 1)), (schema.APPLICATION, schema.VERSION - 1)],
)
def test_an_old_store_is_refused(
    original: Original, application: int, version: int, tmp_path: Path
) -> None:
    """A ledger of a format that was never released is not touched, to the byte."""
    home = original.copied(tmp_path)
    _stamp(home, application, version)
    before = _bytes_of(home)
    with pytest.raises(OldStoreError, match="older, unreleased Takeback") as refused:
        _opened(original.tree, home)
    assert "takeback relocate --new" in refused.value.hint
    assert _bytes_of(home) == before


@pytest.mark.parametrize(
    ("application", "version"),
    [
        (UNRELEASED, schema.VERSION),
        (schema.APPLICATION, 0),
        (7, schema.VERSION),
    ],
)
def test_a_ledger_with_the_wrong_mark_is_damaged(
    original: Original, application: int, version: int, tmp_path: Path
) -> None:
    """Mark and format belong together; with any other pair the ledger is not used."""
    home = original.copied(tmp_path)
    _stamp(home, application, version)
    before = _bytes_of(home)
    with pytest.raises(DamagedStoreError, match="not a Takeback ledger"):
        _opened(original.tree, home)
    assert _bytes_of(home) == before


def _stamp(home: Path, application: int, version: int) -> None:
    db = sqlite3.connect(ledger_of(home))
    db.execute(f"PRAGMA application_id = {application}")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


def test_an_older_program_can_tell_the_format(original: Original) -> None:
    """Programs of formats 1 to 5 refuse a larger `user_version`; where it is, SQLite says."""
    head = ledger_of(original.home).read_bytes()[:72]
    assert int.from_bytes(head[60:64], "big") == schema.VERSION > OLD
    assert head[68:72] == b"TKB6"


def test_no_event_goes_to_an_older_helper() -> None:
    """A helper of format 5 listens at another socket, and breaks off at another first line."""
    assert helper.NAME != b"/hooks.sock"
    assert not helper.MAGIC.startswith((b"takeback-hook-1 ", b"takeback-hook-2 "))


_GIT = ("git", "-C", str(ROOT))


def _program_of(old: int, folder: Path) -> Path:
    """The sources of the last program that wrote a format."""
    commit = _newest_of(old)
    if commit is None:
        pytest.skip(
            f"no commit of a program of format {old} is in this checkout (a shallow clone?)"
        )
    archive = subprocess.run([*_GIT, "archive", commit, "src"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def _newest_of(old: int) -> str | None:
    """The newest commit whose program writes a format, found by what it holds."""
    schema_file = "src/takeback/ledger/schema.py"
    log = [*_GIT, "log", "--format=%H", "--", schema_file]
    known = subprocess.run(log, capture_output=True, text=True, check=False).stdout.split()
    for commit in known:
        shown = [*_GIT, "show", f"{commit}:{schema_file}"]
        text = subprocess.run(shown, capture_output=True, text=True, check=False).stdout
        if f"\nVERSION = {old}\n" in text:
            return commit
    return None


_OLD = """
import sys
sys.path[:0] = [{source!r}]
import takeback
from takeback.project import Project
assert takeback.__file__.startswith({source!r})
project = Project.open({tree!r}, home={home!r})
{then}
"""


def _run_old(source: Path, tree: Path, home: Path, then: str) -> subprocess.CompletedProcess[str]:
    given = {"source": str(source), "tree": os.fsencode(tree), "home": os.fsencode(home)}
    command = [sys.executable, "-I", "-c", _OLD.format(**given, then=then)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_older_program_refuses_this_store(original: Original, tmp_path: Path) -> None:
    """The last program of the format before says that the store is newer, and changes nothing."""
    program = _program_of(schema.VERSION - 1, tmp_path)
    home = original.copied(tmp_path)
    before = _bytes_of(home)
    ran = _run_old(program, original.tree, home, "project.checkpoint()")
    assert "NewerStoreError" in ran.stderr
    assert "was written by a newer Takeback" in ran.stderr
    assert f"format {schema.VERSION}, this one reads up to {schema.VERSION - 1}" in ran.stderr
    assert _bytes_of(home) == before


def test_the_command_of_an_older_program_says_what_to_do(
    original: Original, tmp_path: Path
) -> None:
    """On the command line of the last format it is one sentence and a hint, and no traceback."""
    program = _program_of(schema.VERSION - 1, tmp_path)
    home = original.copied(tmp_path)
    code = f"import sys; sys.path[:0] = [{str(program)!r}]\nfrom takeback.cli.app import main\n"
    code += "sys.exit(main(['log']))"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=original.tree,
        env={**os.environ, "TAKEBACK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: this project's history was written by a newer Takeback")
    assert "hint: update Takeback; nothing was changed" in ran.stderr
