"""A request that is made twice has one effect, and both callers hear the same."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from faults.children import Tell, in_child
from faults.injection import Strike
from takeback.disk import operations
from takeback.errors import UsageError
from takeback.ledger.log.events import NewEvent
from takeback.project import Project

Verb = Callable[[Project, "Ids"], object]


class Ids:
    """A session that nobody holds, a turn and a step that run in it."""

    def __init__(self, project: Project) -> None:
        session = project.session("claude", id="one", held=False)
        turn = session.turn("first")
        self.session = session.id
        self.turn = turn.id
        self.step = turn.step("Bash", {"command": "make"}).id


def _session(project: Project, _ids: Ids) -> object:
    return project.session("codex", id="two", held=False, request="r").id


def _anonymous_session(project: Project, _ids: Ids) -> object:
    return project.session("codex", held=False, request="r").id


def _session_again(project: Project, ids: Ids) -> object:
    recorder = project.recorder()
    if project.workspace.ledger.requested("r") is None:
        recorder.end_session(ids.session)
    return project.session("claude", id="one", held=False, request="r").id


def _turn(project: Project, ids: Ids) -> object:
    return project.recorder().start_turn(ids.session, "next", whole=True, request="r")


def _resume(project: Project, ids: Ids) -> object:
    return project.recorder().resume_turn(ids.session, request="r")


def _step(project: Project, ids: Ids) -> object:
    return project.recorder().start_step(ids.turn, "Edit", {"file_path": "a"}, request="r")


def _step_in_step(project: Project, ids: Ids) -> object:
    recorder = project.recorder()
    return recorder.start_step(ids.turn, "Edit", {}, parent=ids.step, request="r")


def _detach(project: Project, ids: Ids) -> None:
    project.recorder().detach_step(ids.step, request="r")


def _step_end(project: Project, ids: Ids) -> None:
    project.recorder().end_step(ids.step, "done", request="r")


def _turn_end(project: Project, ids: Ids) -> None:
    project.recorder().end_turn(ids.turn, "done", request="r")


def _session_end(project: Project, ids: Ids) -> None:
    project.recorder().end_session(ids.session, request="r")


def _checkpoint(project: Project, _ids: Ids) -> object:
    return project.checkpoint("mine", request="r").id


def _checkpoint_of_turn(project: Project, ids: Ids) -> object:
    return project.checkpoint("mine", turn=ids.turn, request="r").id


VERBS: tuple[Verb, ...] = (
    _session, _anonymous_session, _session_again, _turn, _resume, _step, _step_in_step, _detach,
    _step_end, _turn_end, _session_end, _checkpoint, _checkpoint_of_turn,
)  # fmt: skip

each_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__.strip("_"))


def _opened(tree: Path, home: Path) -> Project:
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def _begun(tree: Path, home: Path) -> Ids:
    (tree / "a").write_text("a\n")
    with _opened(tree, home) as project:
        ids = Ids(project)
    (tree / "a").write_text("b\n")
    return ids


def _kinds(project: Project) -> list[str]:
    return [event.kind for event in project.workspace.ledger.events()]


def _requests(project: Project) -> list[int]:
    return [event.seq for event in project.workspace.ledger.events() if event.request == "r"]


@each_verb
def test_a_second_call_gives_the_first_result(verb: Verb, tree: Path, home: Path) -> None:
    """The same request again, here and from another process: one event and the same answer."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        first = verb(project, ids)
        told = _kinds(project)
        (tree / "a").write_text("c\n")
        assert verb(project, ids) == first
        assert _kinds(project) == told
    with _opened(tree, home) as other:
        assert verb(other, ids) == first
        assert _kinds(other) == told
        assert len(_requests(other)) == 1
        assert other.upkeep.examine()[0] == ()


@each_verb
def test_a_crash_before_the_event_is_retried(verb: Verb, tree: Path, home: Path) -> None:
    """Killed after the look at the tree and before the event: the retry makes the one event."""
    ids = _begun(tree, home)

    def play(tell: Tell) -> None:
        def hook(step: str, args: tuple[object, ...]) -> None:
            if args[:1] == ("COMMIT",) and _is_of_request(project):
                Strike("kill", 1, tell, lambda _: None)(step, args)

        project = _opened(tree, home)
        operations.hook = hook
        tell({"made": str(verb(project, ids))})

    killed = in_child(play)
    assert killed.every("fired")
    with _opened(tree, home) as project:
        assert _requests(project) == []
        made = verb(project, ids)
        told = _kinds(project)
        assert verb(project, ids) == made
        assert _kinds(project) == told
        assert len(_requests(project)) == 1
        assert project.upkeep.examine()[0] == ()


def _is_of_request(project: Project) -> bool:
    """Whether the event of the request is in the transaction that is open now."""
    return project.workspace.ledger.requested("r") is not None


ENDS: tuple[Verb, ...] = (_step_end, _turn_end, _session_end, _detach)


@pytest.mark.parametrize("verb", ENDS, ids=lambda verb: verb.__name__.strip("_"))
def test_an_end_that_was_taken_back_is_not_made_again(verb: Verb, tree: Path, home: Path) -> None:
    """What ended goes on again; a late retry of the end does not end it a second time."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        recorder = project.recorder()
        verb(project, ids)
        project.session("claude", id="one", held=False)
        recorder.resume_turn(ids.session)
        told = _kinds(project)
        verb(project, ids)
        assert _kinds(project) == told
        assert project.turn(ids.turn).status == "running"


@each_verb
def test_a_request_means_one_thing(verb: Verb, tree: Path, home: Path) -> None:
    """A request that was used for something else is refused, and nothing is recorded."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        moon = NewEvent("MoonLanded", {"session": "x", "turn": "x", "step": "x"}, 1, request="r")
        project.workspace.ledger.record(moon)
        if verb is _session_again:
            with pytest.raises(UsageError):
                project.session("claude", id="one", held=False, request="r")
            return
        told = _kinds(project)
        with pytest.raises(UsageError, match="was already used"):
            verb(project, ids)
        assert _kinds(project) == told


def test_a_request_is_about_one_thing(tree: Path, home: Path) -> None:
    """The request that ended one step cannot end another."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        recorder = project.recorder()
        other = recorder.start_step(ids.turn, "Bash", {"command": "ls"})
        _step_end(project, ids)
        with pytest.raises(UsageError, match="was already used"):
            recorder.end_step(other, "done", request="r")


@pytest.mark.parametrize("request_id", ["", "\udc80", "a\nb"], ids=["empty", "surrogate", "lines"])
def test_a_request_has_a_plain_id(request_id: str, tree: Path, home: Path) -> None:
    """An id that cannot be stored and shown is refused before anything is recorded."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        told = _kinds(project)
        with pytest.raises(UsageError, match="printable"):
            project.checkpoint(request=request_id)
        with pytest.raises(UsageError, match="printable"):
            project.session("codex", request=request_id)
        with pytest.raises(UsageError, match="printable"):
            project.recorder().start_turn(ids.session, "", whole=True, request=request_id)
        with pytest.raises(UsageError, match="printable"):
            project.recorder().end_step(ids.step, "done", request=request_id)
        assert _kinds(project) == told


@each_verb
def test_a_forgotten_request_is_not_made_again(verb: Verb, tree: Path, home: Path) -> None:
    """When what a request said was forgotten, a retry is refused instead of made twice."""
    ids = _begun(tree, home)
    with _opened(tree, home) as project:
        verb(project, ids)
        told = _kinds(project)
    db = sqlite3.connect(next(home.glob("projects/*/ledger.db")))
    db.execute("UPDATE events SET payload = NULL WHERE request = 'r'")
    db.commit()
    db.close()
    with _opened(tree, home) as project:
        with pytest.raises(UsageError):
            verb(project, ids)
        assert _kinds(project) == told


def test_the_handles_pass_requests_on(tree: Path, home: Path) -> None:
    """Every method of session, turn and step that records takes a request."""
    with takeback.open(tree, home=home) as project:
        for _ in range(2):
            session = project.session("claude", held=False, request="1")
            turn = session.turn("go", request="2")
            step = turn.step("Bash", {"command": "make"}, request="3")
            inner = step.step("Edit", {"file_path": "a"}, request="4")
            inner.end(request="5")
            step.detach(request="6")
            turn.checkpoint("here", request="7")
            step.end(request="8")
            turn.end(request="9")
            again = session.resume(request="10")
            assert again is not None
            assert again.id == turn.id
            again.end(request="11")
            session.end(request="12")
        asked = [event.request for event in project.workspace.ledger.events() if event.request]
        assert asked == [str(number) for number in range(1, 13)]


def test_a_request_of_another_session_is_refused(tree: Path, home: Path) -> None:
    """Who uses an id twice is told so, instead of getting a session or turn of somebody else."""
    with takeback.open(tree, home=home) as project:
        first = project.session("x", request="one")
        first.turn("x")
        first.resume(request="two")
        with pytest.raises(takeback.UsageError, match="already used"):
            project.session("y", request="one")
        other = project.session("y")
        other.turn("y")
        with pytest.raises(takeback.UsageError, match="already used"):
            other.resume(request="two")
