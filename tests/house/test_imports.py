"""The start of `takeback` is short because it imports little; these are the lists."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback

MAIN = Path(__file__).resolve().parents[2] / "src/takeback/__main__.py"
PYTHON = str(Path(sys.executable).resolve())

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
        if "takeback.capture.reading" not in imported_by_checkpoint(tree, home):
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


def test_a_checkpoint_imports_nothing_heavy(project: Path, home: Path) -> None:
    """Neither a look that finds nothing new nor a small checkpoint imports what costs time."""
    found = imported_by_checkpoint(project, home)
    assert "takeback.capture.checkpoint" in found
    assert not found & HEAVY
    for number in range(10):
        (project / f"part{number % 3}" / f"file{number}.txt").write_text("changed\n")
    found = imported_by_checkpoint(project, home)
    assert "takeback.capture.reading" in found
    assert not found & HEAVY


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
    assert "takeback.cli.commands.undo" in found
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
