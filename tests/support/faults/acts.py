"""What happens in the log while faults are tried: beginnings and ends of sessions, turns, steps.

Each act has a beginning, played by a process that is gone when the fault comes, and is made
of requests, so that it can be tried again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from faults.scenarios import SMALL, Scenario
from takeback.project import Project

Ids = dict[str, str]
Done = Iterator[tuple[str, str]]


class Act(NamedTuple):
    """One thing that is recorded."""

    scenario: Scenario
    begin: Callable[[Project], Ids]
    """What was recorded before the tree changed: the ids it gave."""
    play: Callable[[Project, Ids], Done]
    """Each request, and what it returned."""


def _nothing(_project: Project) -> Ids:
    return {}


def _session(project: Project) -> Ids:
    return {"session": project.session("claude", id="own", held=False).id}


def _turn(project: Project) -> Ids:
    session = project.session("claude", id="own", held=False)
    return {"session": session.id, "turn": session.turn("make it").id}


def _turn_over(project: Project) -> Ids:
    ids = _turn(project)
    project.recorder().end_turn(ids["turn"], "done")
    return ids


def _step(project: Project) -> Ids:
    session = project.session("claude", id="own", held=False)
    turn = session.turn("make it", whole=False)
    outer = turn.step("Task", {"description": "all of it"})
    step = outer.step("Bash", {"command": "make"})
    return {"session": session.id, "turn": turn.id, "step": step.id}


def _dead(project: Project) -> Ids:
    """A session that its process holds, which ends here without a word."""
    session = project.session("claude", id="own")
    turn = session.turn("make it")
    turn.step("Bash", {"command": "make"})
    return {"session": session.id, "turn": turn.id}


def _start_session(project: Project, _ids: Ids) -> Done:
    yield "s", project.session("codex", id="other", request="s").id


def _start_turn(project: Project, ids: Ids) -> Done:
    recorder = project.recorder()
    yield "t", recorder.start_turn(ids["session"], "and now", whole=True, request="t")


def _resume_turn(project: Project, ids: Ids) -> Done:
    yield "r", str(project.recorder().resume_turn(ids["session"], request="r"))


def _start_step(project: Project, ids: Ids) -> Done:
    given = {"file_path": "new"}
    yield "a", project.recorder().start_step(ids["turn"], "Write", given, request="a")


def _end_step(project: Project, ids: Ids) -> Done:
    project.recorder().detach_step(ids["step"], request="d")
    yield "d", ""
    project.recorder().end_step(ids["step"], "failed", request="e")
    yield "e", ""


def _end_turn(project: Project, ids: Ids) -> Done:
    project.recorder().end_turn(ids["turn"], "done", request="e")
    yield "e", ""


def _end_session(project: Project, ids: Ids) -> Done:
    project.recorder().end_session(ids["session"], request="e")
    yield "e", ""


def _edit_outside(project: Project, ids: Ids) -> Done:
    """A step that names a file beside the tree, changes it, and ends."""
    file = Path(os.fsdecode(project.root)).parent / "beside"
    if project.workspace.ledger.requested("a") is None:
        file.write_bytes(b"before\n")
    given = {"file_path": "../beside"}
    step = project.recorder().start_step(ids["turn"], "Write", given, request="a")
    yield "a", step
    file.write_bytes(b"after\n")
    project.recorder().end_step(step, "done", request="e")
    yield "e", ""


def _somebody_else(project: Project, _ids: Ids) -> Done:
    session = project.session("codex", id="other", held=False, request="s")
    yield "s", session.id
    yield "t", session.turn("mine", request="t").id


def _named(name: str) -> Scenario:
    return SMALL._replace(name=name)


SESSION_START = Act(_named("session-start"), _nothing, _start_session)
TURN_START = Act(_named("turn-start"), _session, _start_turn)
TURN_RESUME = Act(_named("turn-resume"), _turn_over, _resume_turn)
STEP_START = Act(_named("step-start"), _turn, _start_step)
STEP_END = Act(_named("step-end"), _step, _end_step)
TURN_END = Act(_named("turn-end"), _turn, _end_turn)
SESSION_END = Act(_named("session-end"), _step, _end_session)
INTERRUPTED_TURN = Act(_named("interrupted-turn"), _turn, _start_turn)
EDIT_OUTSIDE = Act(_named("edit-outside"), _turn, _edit_outside)
DEAD_SESSION = Act(_named("dead-session"), _dead, _somebody_else)

ACTS = (
    SESSION_START, TURN_START, TURN_RESUME, STEP_START, STEP_END, TURN_END, SESSION_END,
    INTERRUPTED_TURN, DEAD_SESSION, EDIT_OUTSIDE,
)  # fmt: skip


def perform(name: str, project: Project, ids: Ids, tell: Callable[..., None]) -> None:
    """Play the act of that name and tell each request with its result."""
    act = next(act for act in ACTS if act.scenario.name == name)
    for request, result in act.play(project, ids):
        tell(acked=f"{request} {result}")
