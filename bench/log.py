"""What the log costs: safe points in a warm process, and looks at it from a cold one."""

import os
import shutil
import sys
import time
from pathlib import Path

from footprint import MAIN, timed
from timing import Series
from trees import Tree

import takeback
from takeback.ledger.log.events import NewEvent
from takeback.model import ids
from takeback.project import Project

FEW, MANY = 10, 10_000
AT_ONCE = 500
FILES_OF_A_TURN = 3


class LogTimes:
    """Seconds, by what was done."""

    def __init__(self) -> None:
        self.safe_points: dict[str, Series] = {}
        self.looks: dict[str, dict[int, Series]] = {}
        self.rebuild = 0.0


def measure(tree: Tree, work: Path, rounds: int) -> LogTimes:
    """Time everything; the tree has 1,000 files."""
    times = LogTimes()
    try:
        safe_points(times, tree, work / "agent", rounds)
        for turns in (FEW, MANY):
            looks(times, tree, work / f"turns{turns}", turns, rounds)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return times


def safe_points(times: LogTimes, tree: Tree, home: Path, rounds: int) -> None:
    """One turn with two steps per round: a shell that changes a file, and one that does not."""
    with takeback.open(tree.path, home=home) as project:
        project.checkpoint()
        session = project.session("bench")
        for number in range(rounds + 2):
            began = time.perf_counter()
            turn = session.turn(f"turn {number}", whole=False)
            note(times, "turn starts", began, number)
            for what, files in (("one file", 1), ("nothing", 0)):
                began = time.perf_counter()
                step = turn.step("Bash", {"command": "make"})
                note(times, "step starts", began, number)
                tree.edit(files)
                began = time.perf_counter()
                step.end()
                note(times, f"step ends, {what} changed", began, number)
            began = time.perf_counter()
            turn.end()
            note(times, "turn ends, lines counted", began, number)


def note(times: LogTimes, what: str, began: float, number: int) -> None:
    """Remember how long something took; the first two rounds only warm up."""
    took = time.perf_counter() - began
    if number >= 2:
        times.safe_points.setdefault(what, Series()).seconds.append(took)


def looks(times: LogTimes, tree: Tree, home: Path, turns: int, rounds: int) -> None:
    """Whole processes that look at a log with so many turns."""
    with takeback.open(tree.path, home=home) as project:
        fill(project, turns)
        if turns == MANY:
            began = time.perf_counter()
            project.rebuild()
            times.rebuild = time.perf_counter() - began
    python = str(Path(sys.executable).resolve())
    environment = {**os.environ, "TAKEBACK_HOME": str(home)}
    for words in (["log"], ["show", "@~0"], ["sessions"]):
        command = [python, "-I", "-S", str(MAIN), "-C", str(tree.path), *words]
        series = times.looks.setdefault(f"takeback {' '.join(words)}", {}).setdefault(
            turns, Series()
        )
        for _ in range(rounds):
            series.seconds.append(timed(command, environment))


def fill(project: Project, turns: int) -> None:
    """So many turns with a step and three changed files each, written as events."""
    seen = project.checkpoint()
    at, facts = time.time_ns() - turns * 10**10, []
    session = new_id()
    said = {"session": session, "agent": "bench", "own_id": "", "title": "", "holder": ""}
    facts.append(NewEvent("SessionStarted", said, at))
    for number in range(turns):
        turn, step, at = new_id(), new_id(), at + 10**10
        look = {"checkpoint": seen.id, "looked": at}
        begun = {"turn": turn, "session": session, "label": f"prompt {number}", "whole": False}
        facts.append(NewEvent("TurnStarted", {**begun, "git": None, **look}, at))
        call = {"step": step, "turn": turn, "tool": "Bash", "kind": "shell", "summary": "make"}
        facts.append(NewEvent("StepStarted", {**call, "paths": [], **look}, at))
        over = {"step": step, "status": "done", "ended": at, **look}
        facts.append(NewEvent("StepEnded", over, at))
        changes = [[f"src/{n}.py", "write", 3, 1, "shell"] for n in range(FILES_OF_A_TURN)]
        ended = {"turn": turn, "status": "done", "ended": at, "git": None, "changes": changes}
        facts.append(NewEvent("TurnEnded", {**ended, **look}, at))
        if len(facts) > AT_ONCE:
            project.workspace.ledger.record(*facts)
            facts.clear()
    project.workspace.ledger.record(*facts)


def new_id() -> str:
    """An id as the product makes them."""
    return ids.from_entropy(os.urandom(8))
