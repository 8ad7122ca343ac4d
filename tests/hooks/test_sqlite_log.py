"""A hook that runs alone leaves SQLite's log for the next process, and nothing depends on it."""

import json
import os
import shutil
from pathlib import Path

import pytest

import takeback
from agents import hook
from takeback.ledger import database


@pytest.fixture
def ledger(tree: Path, home: Path) -> Path:
    """The ledger of a project that is closed."""
    (tree / "a").write_text("a\n")
    with takeback.open(tree) as project:
        project.checkpoint()
    (found,) = home.glob("projects/*/ledger.db")
    assert not log_of(found).exists()
    return found


def log_of(ledger: Path) -> Path:
    """SQLite's log beside a database."""
    return ledger.with_name(ledger.name + "-wal")


def tell(tree: Path, event: str, prompt: str, helper: str = "0") -> None:
    """An event of an agent, heard by a hook of its own."""
    said = {"session_id": "S", "cwd": str(tree), "prompt_id": prompt, "prompt": prompt}
    done = hook(json.dumps({**said, "hook_event_name": event}).encode(), TAKEBACK_HELPER=helper)
    assert (done.returncode, done.stderr) == (0, b"")


def labels(tree: Path) -> list[str]:
    """The prompts in the log of the project."""
    with takeback.open(tree) as project:
        assert not project.verify().problems
        return [turn.label for turn in project.log().turns]


def test_the_next_process_finds_everything(ledger: Path, tree: Path) -> None:
    """What hooks left in the log is there for whoever opens the project, and then the log goes."""
    tell(tree, "UserPromptSubmit", "one")
    assert log_of(ledger).stat().st_size > 0
    tell(tree, "UserPromptSubmit", "two")
    assert labels(tree) == ["two", "one"]
    assert not log_of(ledger).exists()


def test_the_log_stays_short(ledger: Path, tree: Path) -> None:
    """However many hooks come, what the next one has to read is bounded."""
    sizes = []
    for number in range(40):
        tell(tree, "UserPromptSubmit", f"prompt {number}")
        log = log_of(ledger)
        sizes.append(log.stat().st_size if log.exists() else 0)
        if len(sizes) > 1 and sizes[-1] < sizes[-2]:
            break
    else:
        pytest.fail("the log only grows")
    assert max(sizes) < 2 * database._SHORT_LOG
    assert labels(tree) == [f"prompt {number}" for number in reversed(range(len(sizes)))]


def test_it_is_as_durable_as_the_ledger(ledger: Path, tree: Path, tmp_path: Path) -> None:
    """The files as they are on the disk when the hook has ended hold all that it was told."""
    tell(tree, "UserPromptSubmit", "told")
    copy = tmp_path / "copy"
    shutil.copytree(ledger.parents[2], copy)
    log_of(copy / ledger.relative_to(ledger.parents[2])).chmod(0o600)
    with takeback.open(tree, home=copy) as project:
        assert [turn.label for turn in project.log().turns] == ["told"]


def test_with_a_helper_nothing_stays_open(ledger: Path, tree: Path, home: Path) -> None:
    """A hook that may leave a helper behind has closed the ledger before."""
    (home / "helper.sock.lock").mkdir()  # so that no helper begins
    tell(tree, "UserPromptSubmit", "closed", helper="1")
    assert not log_of(ledger).exists()
    os.rmdir(home / "helper.sock.lock")
    assert labels(tree) == ["closed"]
