"""A harness of one's own hears that others took back what its turn did, or paused it."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import takeback

HARNESS = """
    import json, sys, takeback

    def step(turn, name):
        try:
            with turn.step("write_file", {"path": name}):
                open(f"{sys.argv[1]}/{name}", "w").write(name)
        except takeback.RolledBack as problem:
            return [problem.verb, problem.because, problem.restore, *problem.paths]
        except takeback.PausedError as problem:
            return str(problem)
        return "done"

    with takeback.open(sys.argv[1]) as project, project.session(agent="mine") as session:
        with session.turn("write files") as turn:
            for name in sys.stdin:
                print(json.dumps(step(turn, name.strip())), flush=True)
"""


class Harness:
    """A program in a process of its own, in the middle of a turn."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def write(self, name: str) -> object:
        """What becomes of a step that writes a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def running(tree: Path) -> Iterator[Harness]:
    """A harness that works until the block is left."""
    words = [sys.executable, "-c", textwrap.dedent(HARNESS), str(tree)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Harness(process)
        process.communicate()
    assert process.returncode == 0


@pytest.fixture
def harness(tree: Path, home: Path) -> Iterator[Harness]:
    """One that wrote `a.txt`."""
    del home
    with running(tree) as harness:
        assert harness.write("a.txt") == "done"
        yield harness


def test_the_next_step_raises_once(harness: Harness, tree: Path) -> None:
    """With what was taken back and why; nothing is overwritten, and the turn may go on."""
    with takeback.open(tree) as project:
        plan = project.plan_undo()
        assert [(each.agent, each.is_alive) for each in plan.running] == [("mine", True)]
        report = project.apply(plan, because="wrong way", yes=True)
    assert harness.write("a.txt") == ["undo", "wrong way", report.id, "a.txt"]
    assert not (tree / "a.txt").exists()
    assert harness.write("a.txt") == "done"


def test_other_files_concern_nobody(harness: Harness, tree: Path) -> None:
    """A restore of what the session never touched raises nothing."""
    with takeback.open(tree) as project, project.session(agent="other") as session:
        with session.turn("beside"):
            (tree / "beside.txt").write_text("beside")
        assert project.undo(yes=True).plan.running == ()
    assert harness.write("b.txt") == "done"


def test_what_one_asks_for_oneself_raises_nothing(tree: Path, home: Path) -> None:
    """A harness that takes back its own turn knows."""
    del home
    with (
        takeback.open(tree) as project,
        project.session(agent="mine") as session,
        session.turn("write") as turn,
    ):
        with turn.step("write_file", {"path": "a.txt"}):
            (tree / "a.txt").write_text("a")
        session.undo(yes=True)
        with turn.step("write_file", {"path": "b.txt"}):
            (tree / "b.txt").write_text("b")


def test_a_paused_harness_begins_no_step(harness: Harness, tree: Path) -> None:
    """Until it is resumed."""
    with takeback.open(tree) as project:
        recorder = project.recorder()
        assert recorder.pause(project.sessions()[0].id)
        assert harness.write("b.txt") == "paused by the user"
        assert not (tree / "b.txt").exists()
        assert recorder.release()
    assert harness.write("b.txt") == "done"
