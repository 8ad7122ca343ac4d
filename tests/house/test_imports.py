"""The start of `takeback` is short because it imports little; these are the lists."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback

MAIN = Path(__file__).resolve().parents[2] / "src/takeback/__main__.py"
PYTHON = str(Path(sys.executable).resolve())

PYTHONS_OWN = frozenset(
    """
    _collections _collections_abc _functools _operator collections functools keyword operator
    reprlib types _hashlib _blake2 _json _sha1 _sha2 _sha256 _sha512 _sqlite3 _stat
    _struct errno fcntl genericpath hashlib itertools os posixpath pwd stat struct zlib
    """.split()
)

ALWAYS = frozenset(
    """
    takeback takeback.cli takeback.cli.app takeback.cli.arguments takeback.cli.checkpoint
    takeback.cli.projects takeback.cli.render takeback.engine takeback.engine.capture
    takeback.engine.limits
    takeback.engine.request takeback.model.terms takeback.opening takeback.store.events
    takeback.store.eventtext
    takeback.store.processes takeback.store.projections takeback.surroundings
    takeback.capturing takeback.caring takeback.environment takeback.errors takeback.looking
    takeback.model
    takeback.capturing takeback.environment takeback.errors takeback.looking takeback.model
    takeback.forgetting
    takeback.model.counting takeback.model.staging takeback.store.database
    takeback.store.restores
    takeback.model.ids
    takeback.model.jsontext takeback.model.reasons takeback.model.safetext takeback.model.tree
    takeback.model.values takeback.project takeback.store takeback.store._statloop
    takeback.store.descent takeback.store.failures takeback.store.folders takeback.store.fsclock
    takeback.store.fsops takeback.store.home takeback.store.identity takeback.store.layout
    takeback.store.ledger takeback.store.lock takeback.store.mounts
    takeback.store.records takeback.store.rows takeback.store.scan takeback.store.schema
    takeback.store.settings takeback.store.sqlite takeback.store.statcache takeback.store.statloop
    takeback.store.store takeback.store.tables
    """.split()
)
TO_STORE = frozenset(
    """
    takeback.engine.attribution takeback.engine.deltas takeback.engine.describe
    takeback.engine.reading takeback.engine.windows takeback.model.history
    takeback.store.content takeback.store.deflate takeback.store.gitobjects
    takeback.store.objects takeback.store.packindex takeback.store.packwrite takeback.store.view
    """.split()
)
"""Needed only when there is something new to store."""

HEAVY = frozenset(
    """
    argparse asyncio cffi click concurrent dataclasses datetime decimal difflib email enum http
    importlib.metadata inspect json logging multiprocessing numpy pathlib pickle pydantic pygit2
    random re rich shutil socket sqlite3 ssl subprocess tempfile threading tokenize traceback
    typing unittest urllib xml zipfile
    """.split()
)
"""What costs milliseconds to import, or tens of them, and is not needed to take something back."""


@pytest.fixture
def project(tree: Path, home: Path) -> Path:
    """A tree with a first checkpoint, whose stamps are old enough to be trusted."""
    for number in range(30):
        path = tree / f"part{number % 3}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 50)
    imported_by_checkpoint(tree, home)
    for _ in range(100):
        # Once no stamp is too young, a checkpoint finds nothing to read.
        if "takeback.engine.reading" not in imported_by_checkpoint(tree, home):
            return tree
    pytest.fail("the tree never settles")


def imported_by_checkpoint(tree: Path, home: Path) -> set[str]:
    """What a checkpoint imports beyond what Python does by itself."""
    checkpoint = [str(MAIN), "-C", str(tree), "checkpoint"]
    return imported(checkpoint, home) - imported(["-c", "pass"], home)


def imported_by_undo(tree: Path, home: Path, *options: str) -> set[str]:
    """What taking back a turn of ten files imports beyond what Python does by itself."""
    with (
        takeback.open(tree, home=home) as project,
        project.session("test") as session,
        session.turn("edit ten files"),
    ):
        for number in range(10):
            (tree / f"part{number % 3}" / f"file{number}.txt").write_text("changed\n")
    undo = [str(MAIN), "-C", str(tree), "undo", *options]
    return imported(undo, home) - imported(["-c", "pass"], home)


def imported(arguments: list[str], home: Path) -> set[str]:
    """The modules that Python reports as imported when it is started as `./takeback` does."""
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-X", "importtime", *arguments],
        env={**os.environ, "TAKEBACK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines[1:]}


def test_a_checkpoint_without_changes_imports_little(project: Path, home: Path) -> None:
    """When nothing changed, only what looks at the tree and at the ledger is imported."""
    assert imported_by_checkpoint(project, home) - PYTHONS_OWN <= ALWAYS


def test_a_small_checkpoint_imports_little(project: Path, home: Path) -> None:
    """When ten files changed, only what reads and packs them is imported on top."""
    for number in range(10):
        (project / f"part{number % 3}" / f"file{number}.txt").write_text("changed\n")
    assert imported_by_checkpoint(project, home) - PYTHONS_OWN <= ALWAYS | TO_STORE


@pytest.mark.parametrize("options", [["--dry-run"], []], ids=["preview", "undo"])
@pytest.mark.parametrize("place", ["in git", "no git"])
def test_taking_back_imports_nothing_heavy(
    project: Path, home: Path, options: list[str], place: str
) -> None:
    """Neither a preview nor an undo from a cold start imports pygit2, or anything else heavy."""
    if place == "in git":
        who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        subprocess.run(["git", "add", "."], cwd=project, check=True)
        subprocess.run(["git", *who, "commit", "-q", "-m", "all"], cwd=project, check=True)
    found = imported_by_undo(project, home, *options)
    assert "takeback.cli.undo" in found
    assert not found & HEAVY


def test_a_program_that_takes_back_has_nothing_heavy(project: Path, home: Path) -> None:
    """`plan_undo` and `undo` load no heavy module into the program that calls them."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import takeback;"
        "project = takeback.open(sys.argv[2], home=sys.argv[3]);"
        "session = project.session('test'); turn = session.turn('edit');"
        "file = open(os.path.join(sys.argv[2], 'part0', 'file0.txt'), 'w');"
        "file.write('changed'); file.close(); turn.end();"
        "assert len(project.plan_undo().changes) == 1; project.undo();"
        "print(*sys.modules)"
    )
    command = [PYTHON, "-I", "-S", "-c", code, str(MAIN.parent.parent), str(project), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (project / "part0" / "file0.txt").read_text() == "0\n" * 50
    assert not set(done.stdout.split()) & HEAVY


def test_the_list_names_nothing_that_is_gone(project: Path, home: Path) -> None:
    """Every module of ours on the list is imported, so that the list stays what it says."""
    (project / "part0" / "file0.txt").write_text("changed\n")
    optional = {"takeback.store._statloop"}
    assert imported_by_checkpoint(project, home) | optional >= ALWAYS | TO_STORE
