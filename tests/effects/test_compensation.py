"""Inverse commands of effects: run on the user's word, newest first, each once."""

import json
import os
from pathlib import Path

import pytest

import takeback
from program import run
from takeback.disk import operations
from takeback.effects import compensation


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


def done(tree: Path) -> list[str]:
    """What the inverse commands left, in their order."""
    log = tree.parent / "log"
    return log.read_text().split() if log.exists() else []


def plant(tree: Path, *inverses: str) -> list[str]:
    """Effects with these inverse commands, the oldest first; their ids."""
    with takeback.open(tree) as project, project.session(agent="mine") as session:
        turn = session.turn("do it")
        return [turn.effect("http", f"POST /{n}", inverse=i) for n, i in enumerate(inverses)]


def test_nothing_runs_before_the_user_says_so(tree: Path, home: Path) -> None:
    """The commands are shown, newest effect first; without a terminal it needs --yes."""
    del home
    plant(tree, "echo one >>../log", "echo two >>../log")
    shown = run(["effects", "--undo", "--dry-run"], tree, os.environ).stdout.decode()
    assert shown.index("echo two") < shown.index("echo one")
    assert run(["effects", "--undo"], tree, os.environ).returncode == 3
    assert done(tree) == []


def test_each_runs_once_in_reverse_order(tree: Path, home: Path) -> None:
    """One that fails is reported, hides no other, and is tried again; one that was done is not."""
    del home
    plant(tree, "echo one >>../log", "test -e ../ready && echo two >>../log", "echo three >>../log")
    first = run(["effects", "--undo", "--yes", "--json"], tree, os.environ)
    assert first.returncode == 1
    outcomes = [each["outcome"] for each in json.loads(first.stdout)["outcomes"]]
    assert outcomes == ["done", "failed", "done"]
    assert done(tree) == ["three", "one"]
    (tree.parent / "ready").touch()
    assert run(["effects", "--undo", "--yes"], tree, os.environ).returncode == 0
    assert done(tree) == ["three", "one", "two"]
    assert run(["effects", "--undo", "--yes"], tree, os.environ).returncode == 0
    assert done(tree) == ["three", "one", "two"]
    found = json.loads(run(["effects", "--json"], tree, os.environ).stdout)["effects"]
    assert [each["undone"] for each in found] == ["done"] * 3
    with takeback.open(tree) as project:
        assert project.plan_rollback(project.checkpoints().__next__().id).effects == ()


def test_one_of_them_by_its_id(tree: Path, home: Path) -> None:
    """And one that nobody saw the end of only by its id."""
    del home
    first, second = plant(tree, "echo one >>../log", "echo two >>../log")
    assert run(["effects", "--undo", first[:8], "--yes"], tree, os.environ).returncode == 0
    assert done(tree) == ["one"]
    with takeback.open(tree) as project:
        work = project.workspace
        (effect,) = compensation.choose(work)
        assert effect.id == second
        with work.held():
            compensation._record(work, effect, "running", 1)
        assert compensation.choose(work) == ()
        assert [each.id for each in compensation.choose(work, [second])] == [second]
    assert run(["effects", "--undo", "zzzz", "--yes"], tree, os.environ).returncode == 2
