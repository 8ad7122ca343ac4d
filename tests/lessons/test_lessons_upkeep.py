"""forget, gc, doctor, usage and verify know lessons and relapses."""

import os
import time
from pathlib import Path

import pytest

import takeback
from agents import Agent
from takeback.disk import operations
from takeback.doctor import Doctor
from takeback.history.retention import Rules
from takeback.upkeep import gc

CODE = "".join(f"secret_rate_{n} = fetch('{n}', region=europe)\n" for n in range(5))


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def agent(tree: Path, home: Path) -> Agent:
    """An agent with a lesson, and a relapse into what it is about."""
    del home
    agent = Agent(tree)
    agent.prompt("add hunter2 rates")
    agent.edit("rates-hunter2.py", CODE)
    agent.stop()
    with takeback.open(tree) as project:
        project.undo(because="no hunter2 here")
        project.lessons.note("hunter2 is a secret")
    agent.prompt("make it work")
    agent.edit("rates-hunter2.py", CODE)
    agent.stop()
    with takeback.open(tree) as project:
        assert project.usage().lessons == 2
        assert project.usage().relapses == 1
    return agent


def told(tree: Path) -> str:
    """What a new session is told."""
    answer = Agent(tree, "later").prompt("go on")
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_what_is_forgotten_is_told_to_nobody(agent: Agent, tree: Path) -> None:
    """A text goes from the words of lessons, and files that hold it from relapses."""
    del agent
    with takeback.open(tree) as project:
        project.forget(text="hunter2")
        texts = [each.text for each in project.lessons]
        assert texts == ["(forgotten) is a secret", "no (forgotten) here"]
        turns = [turn.id for turn in project.log(all=True).turns]
        assert [each.raw_paths for each in project.lessons.relapses(turns)] == [()]
        assert project.verify().damage == ()
    said = told(tree)
    assert "hunter2" not in said
    assert "no (forgotten) here" in said


def test_the_lesson_of_a_forgotten_turn_is_dropped(agent: Agent, tree: Path) -> None:
    """It says nothing any more, so nobody is told it."""
    del agent
    with takeback.open(tree) as project:
        turn = project.log(all=True).turns[-1]
        project.forget(turn=turn.id)
        assert [each.text for each in project.lessons] == ["hunter2 is a secret"]
        (*_, gone) = project.lessons.list(all=True)
        assert (gone.text, gone.status) == ("(forgotten)", "dropped")
        assert project.verify().damage == ()
    assert "no hunter2 here" not in told(tree)


def test_after_gc_nothing_is_compared_and_lessons_stay(agent: Agent, tree: Path) -> None:
    """What is no longer kept cannot come back as a relapse; the words are in the log."""
    del agent
    with takeback.open(tree) as project:
        project.undo()
        project.checkpoint("later")
        with project.session("test") as session, session.turn("something else"):
            (tree / "else").touch()
        store, wish = project.workspace.store, gc.Wish(Rules(0, 1))
        with store.hold_gc():
            assert gc.run(store, project.workspace.held, wish, time.time_ns).checkpoints
        assert len(project.lessons.list()) == 2
        assert project.verify().damage == ()
    other = Agent(tree, "other")
    other.prompt("once more")
    other.edit("other.py", CODE)
    assert other.stop() == {}
    assert "no hunter2 here" in told(tree)


def test_the_doctor_says_what_waits(agent: Agent, tree: Path, home: Path) -> None:
    """A note, with the command that lists lessons."""
    del agent

    def part() -> tuple[str, list[str]]:
        found = Doctor(os.fsencode(tree), home=os.fsencode(home)).examine(time.time())
        (part,) = (each for each in found.parts if each.name == "lessons")
        assert part.state is not None
        return str(dict(part.state.facts)), [each.what.code for each in part.findings]

    assert part() == ("{'count': 2, 'relapses': 1}", [])
    with takeback.open(tree) as project, project.session("test") as session:
        project.lessons.note("by an agent", session=session.id)
    assert part()[1] == ["lessons-wait"]
