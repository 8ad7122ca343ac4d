"""The example of plan steps: it works; killed while a step is undone, all is before or all after."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import takeback
from faults.children import Ended, Tell, in_child
from faults.injection import Recorder, Strike
from takeback.disk import operations
from takeback.work_plans.plan import WorkPlan

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "autopilot.py"
SHARE, OF_RECOVERY = 6, 3
"""Of all steps of a restore, and of those of a recovery, so many are tried in `./check`."""


@cache
def autopilot() -> ModuleType:
    """The example, as a module."""
    spec = importlib.util.spec_from_file_location("autopilot", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_tells_its_story() -> None:
    """As somebody new runs it: three steps, a failure, all comes back, and then it works."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    told = re.sub(r"  +", "  ", done.stdout)
    backed = re.findall(r"  (\S+)  exactly as before the step", told)
    assert backed[:3] == ["files", "memory", "SQLite"]
    assert "DIFFERS" not in told
    assert "'call Ada about the prices' stays" in told
    assert "prices in cents ........... failed: could not convert" in told
    assert told.count(". done") == 3
    assert "plan Sell in cents  (3 steps done, 1 undone)" in told


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk."""
    monkeypatch.setattr(operations, "sync", False)


class Stage:
    """A shop in the middle of its plan: two steps are done, and the third fails each time."""

    def __init__(self, folder: Path, postgres: str = "") -> None:
        self.folder = folder
        self.postgres = postgres
        (folder / "shop").mkdir()
        ended = in_child(self._prepare)
        assert ended.status == 0, ended
        self.good = str(ended.last("state"))

    @contextmanager
    def _open(self) -> "Iterator[tuple[Any, takeback.Session]]":
        """The shop, with a session that goes on, and databases that take part."""
        opened = takeback.open(self.folder / "shop", home=self.folder / "home")
        with opened as project, project.session("autopilot", id="run 1", held=False) as session:
            yield autopilot().begin(project, session, self.folder, self.postgres), session

    def _prepare(self, tell: Tell) -> None:
        with self._open() as (shop, session):
            autopilot().fill(shop)
            agent = autopilot().Agent(shop)
            with session.plan("sell", id="cents") as plan:
                for label in autopilot().STEPS[:2]:
                    with plan.step(label, key=label, databases=True) as step:
                        agent.work(step)
            tell({"state": _text(shop.state())})

    # -- a step that fails, and the program dies while it is undone -------------------------

    def fail(self, strike: "Callable[[Tell], Any]") -> Ended:
        """Let the third step fail, with a hook on every step of the disk while it is undone."""

        def play(tell: Tell) -> None:
            with self._open() as (shop, session):
                agent = autopilot().Agent(shop)
                plan = session.plan("sell", id="cents")
                undo = WorkPlan._apply_undo

                def watched(
                    self: WorkPlan, turns: "list[str]", because: str, *, databases: bool
                ) -> takeback.Report:
                    tell({"failed": _text(shop.state())})
                    operations.hook = hook = strike(tell)
                    try:
                        return undo(self, turns, because, databases=databases)
                    finally:
                        operations.hook = None
                        steps = hook.steps
                        tell({"steps": str(len(steps) if isinstance(steps, list) else steps)})

                WorkPlan._apply_undo = watched  # type: ignore[method-assign]
                label = autopilot().STEPS[2]
                with plan.step(label, key=label, databases=True, raises=False) as step:
                    agent.work(step)

        return in_child(play)

    def recover(self, strike: "Callable[[Tell], Any] | None" = None) -> Ended:
        """The next program: it opens the project, lets the databases take part, and looks."""

        def play(tell: Tell) -> None:
            operations.hook = strike(tell) if strike is not None else None
            with self._open() as (shop, _):
                shop.project.retry_participants()
                operations.hook = None
                tell({"state": _text(shop.state())})
                tell({"notes": (shop.root / "notes.md").read_text()})

        return in_child(play)

    def settle(self) -> str:
        """The program opens its plan again: the step is undone, once."""

        def play(tell: Tell) -> None:
            with self._open() as (shop, session):
                plan = session.plan("sell", id="cents")
                assert {each.status for each in plan.steps[2:]} <= {"undone"}
                tell({"state": _text(shop.state())})

        ended = in_child(play)
        assert ended.status == 0, ended
        return str(ended.last("state"))

    def judge(self, failed: Ended, recovered: Ended) -> list[str]:
        """What is wrong: neither all before the restore nor all after it, or not undone at last."""
        if recovered.status != 0:
            return [f"recovery failed: {recovered}"]
        now, wrong = recovered.last("state"), []
        if now not in (self.good, failed.last("failed")):
            wrong.append(f"mixed: {now}")
        if "call Ada" not in str(recovered.last("notes")):
            wrong.append("the edit of the user is lost")
        if self.settle() != self.good:
            wrong.append("not as before the step when the plan is opened again")
        return wrong


def _text(state: object) -> str:
    return json.dumps(state, default=repr, sort_keys=True)


def _killed(at: int) -> "Callable[[Tell], Any]":
    return lambda tell: Strike("kill", at, tell, lambda _: None)


def _counted(tell: Tell) -> Recorder:
    del tell
    return Recorder()


def _spread(last: int, number: int) -> "list[int]":
    """So many steps, evenly from the first to the last."""
    return sorted({1 + place * (last - 1) // (number - 1) for place in range(number)})


def _play(stage: Stage, chosen: "Callable[[int], list[int]]", recoveries: int) -> "list[str]":
    """Kill at chosen steps, and in the recoveries of some of these."""
    whole = stage.fail(_counted)
    last = int(str(whole.last("steps")))
    assert last > 50, whole
    assert stage.settle() == stage.good
    wrong, kills, killed = [], chosen(last), 0
    apart = max(1, len(kills) // max(recoveries, 1))
    for number, at in enumerate(kills):
        if recoveries and number % apart == apart // 2:
            for again in count(1, 1 if recoveries > OF_RECOVERY else 9):
                failed = stage.fail(_killed(at))
                stopped = stage.recover(_killed(again))
                found = stage.judge(failed, stage.recover())
                wrong += [f"killed at {at}, then at {again}: {each}" for each in found]
                if stopped.last("state") is not None:
                    break  # there are no more steps
        failed = stage.fail(_killed(at))
        killed += os.WIFSIGNALED(failed.status)
        wrong += [f"killed at {at}: {each}" for each in stage.judge(failed, stage.recover())]
    assert killed > len(kills) * 3 // 4  # a run may have some steps less than the one before
    return wrong


def test_killed_while_a_step_is_undone(tmp_path: Path) -> None:
    """Files, memory and SQLite are all before or all after; a share of the steps."""
    stage = Stage(tmp_path)
    assert _play(stage, lambda last: _spread(last, SHARE), 0) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_every_step(tmp_path: Path) -> None:
    """The same at every step, and at every step of some recoveries."""
    stage = Stage(tmp_path)
    assert _play(stage, lambda last: list(range(1, last + 1)), 6) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_every_step_with_postgres(tmp_path: Path) -> None:
    """With PostgreSQL, too."""
    from postgres import PostgresServer

    server = PostgresServer()
    try:
        stage = Stage(tmp_path, server.new_database())
        every = int(os.environ.get("EVERY", "1"))
        assert _play(stage, lambda last: list(range(1, last + 1, every)), 4) == []
    finally:
        server.stop()
