"""Whatever changes the disk goes through `disk/operations`, the one door of the fault harness."""

import re
from pathlib import Path

import pytest

from one_door import find_mutations

PACKAGE = Path(__file__).parents[2] / "src" / "takeback"

DOOR = "disk/operations.py"

# Modules that may change the disk by themselves, each with the reason.
ALLOWED = {
    "cli/commands/demo.py": "plays the user, who edits files in a throw-away project",
    "testing/participant_suite.py": "makes throw-away folders, one for each promise",
    "testing/sandbox.py": "plays an agent in a throw-away project",
    "testing/shelves.py": "keeps what tests of participants capture",
    "hooks/trial.py": "plays an agent in a throw-away project",
}

CAUGHT = [
    "import os; os.rename(a, b)",
    "import os; os.replace(a, b)",
    "import os; os.unlink(a)",
    "import os; os.remove(a)",
    "import os; os.rmdir(a)",
    "import os; os.removedirs(a)",
    "import os; os.mkdir(a)",
    "import os; os.makedirs(a)",
    "import os; os.link(a, b)",
    "import os; os.symlink(a, b)",
    "import os; os.mkfifo(a)",
    "import os; os.mknod(a)",
    "import os; os.chmod(a, 0o600)",
    "import os; os.fchmod(1, 0o600)",
    "import os; os.lchmod(a, 0o600)",
    "import os; os.chown(a, 0, 0)",
    "import os; os.utime(a)",
    "import os; os.truncate(a, 0)",
    "import os; os.ftruncate(1, 0)",
    "import os; os.write(1, b'')",
    "import os; os.pwrite(1, b'', 0)",
    "import os; os.writev(1, [])",
    "import os; os.fsync(1)",
    "import os; os.fdatasync(1)",
    "import os; os.sync()",
    "import os; os.open(a, os.O_WRONLY)",
    "import os; os.open(a, os.O_RDWR | os.O_CLOEXEC)",
    "import os; os.open(a, flags=os.O_CREAT)",
    "import os; FLAGS = os.O_TRUNC; os.open(a, FLAGS)",
    "import os; os.open(a, os.O_RDONLY | os.O_APPEND)",
    "import os; os.open(a, 577)",
    "import os; os.fdopen(1, 'wb')",
    "open(a, 'w')",
    "open(a, mode='ab')",
    "open(a, 'r+')",
    "open(a, mode)",
    "import io; io.open(a, 'x')",
    "import io; io.FileIO(a, 'w')",
    "import shutil; shutil.rmtree(a)",
    "from shutil import copyfile",
    "import tempfile; tempfile.mkdtemp()",
    "from tempfile import TemporaryDirectory as T",
    "path.write_text('')",
    "path.write_bytes(b'')",
    "path.touch()",
    "path.unlink()",
    "path.mkdir(parents=True)",
    "path.rename(other)",
    "path.replace(other)",
    "path.symlink_to(other)",
    "path.chmod(0o600)",
    "path.open('w')",
    "(folder / name).rmdir()",
    "db.execute('INSERT INTO t VALUES (1)')",
    "db.execute('  update t set a = 1')",
    "db.execute('DELETE ' + rest)",
    "db.execute(f'CREATE TABLE {name} (a)')",
    "db.execute('alter table t add b')",
    "db.execute('DROP TABLE t')",
    "db.execute('BEGIN IMMEDIATE')",
    "db.execute('COMMIT')",
    "self.db.execute('ROLLBACK;')",
    "db.execute('VACUUM')",
    "db.execute('REPLACE INTO t VALUES (1)')",
    "ADD = 'INSERT INTO t VALUES (?)'\ndb.execute(ADD, (1,))",
    "db.executemany(statement, rows)",
    "db.executescript(script)",
    "self._db.commit()",
    "import fcntl; fcntl.flock(1, fcntl.LOCK_EX)",
    "import fcntl; fcntl.lockf(1, fcntl.LOCK_EX)",
    "import fcntl; fcntl.fcntl(1, fcntl.F_SETLK, b'')",
    "import mmap; mmap.mmap(1, 0)",
    "import os as o; o.rename(a, b)",
    "from os import rename",
    "from os import rename as r; r(a, b)",
    "import posix; posix.unlink(a)",
    "from posix import unlink as u; u(a)",
    "import os; move = os.rename; move(a, b)",
    "import os; later(os.unlink, a)",
    "import os; getattr(os, 'rename')(a, b)",
    "def f():\n    import os\n    os.rename(a, b)",
]

LET_THROUGH = [
    "import os; os.open(a, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)",
    "import os; os.read(1, 10); os.lstat(a); os.listdir(a); os.close(1)",
    "import os; os.fdopen(1, 'rb')",
    "open(a)",
    "open(a, 'rb')",
    "open(a, encoding='utf-8')",
    "path.open('rb')",
    "path.read_bytes()",
    "text.replace('a', 'b')",
    "when.replace(tzinfo=zone)",
    "db.execute('SELECT a FROM t')",
    "db.execute('PRAGMA query_only = 1')",
    "import sys; sys.stdout.write('done')",
    "import mmap; mmap.mmap(1, 0, access=mmap.ACCESS_READ)",
    "from takeback.disk import operations; operations.rename(a, b); operations.touch(1)",
    "from takeback.disk import operations as door; door.unlink(a)",
    "import takeback.disk.operations; takeback.disk.operations.truncate(1, 0)",
]


def test_only_the_door_changes_the_disk() -> None:
    """No module of the package but the door names a function that changes the disk."""
    found = [
        f"{name}:{line}: {what}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (name := path.relative_to(PACKAGE).as_posix()) not in {DOOR, *ALLOWED}
        for line, what in find_mutations(path.read_text())
    ]
    assert found == []


def test_the_door_is_where_the_changes_are() -> None:
    """The door itself is full of what the checker looks for, so the checker sees real code."""
    found = {what for _, what in find_mutations((PACKAGE / DOOR).read_text())}
    assert {"os.write", "os.rename", "os.unlink", "os.fsync", "fcntl.flock"} <= found


@pytest.mark.parametrize("name", ALLOWED)
def test_every_permission_is_used(name: str) -> None:
    """A module keeps its permission only as long as it needs it."""
    assert find_mutations((PACKAGE / name).read_text())


@pytest.mark.parametrize("snippet", CAUGHT)
def test_a_change_elsewhere_is_caught(snippet: str) -> None:
    """Each way to change the disk without the door is found."""
    assert find_mutations(snippet)


@pytest.mark.parametrize("snippet", LET_THROUGH)
def test_reading_and_the_door_are_let_through(snippet: str) -> None:
    """Reading, and changing through the door, is not reported."""
    assert find_mutations(snippet) == []


def test_a_finding_names_its_line() -> None:
    """What is found says where, so that the failure can be acted on."""
    assert find_mutations("import os\n\nos.rename(a, b)\n") == [(3, "os.rename")]


def test_what_is_in_c_only_looks() -> None:
    """It changes nothing on the disk; the client of hooks passes events on, or becomes Python."""
    changing = re.compile(
        r"\b(?:p?writev?|f?truncate|f(?:data)?sync|sync|rename|unlink|remove|rmdir|mkdir|link"
        r"|symlink|mkfifo|mknod|f?chmod|l?f?chown|utimens|futimens|creat|flock|fopen|system|exec\w+"
        r"|fork|O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND))(?:at2?)?\b(?=\s*\(|\s*[|,)])"
    )
    found = {
        path.name: {match[0] for match in changing.finditer(path.read_text())}
        for path in PACKAGE.rglob("*.c")
    }
    assert found == {"_statloop.c": set(), "_ask.c": {"write", "execv", "fork"}}
