"""Cline by what was recorded of 3.0.65: turns that begin with a tool, prompts from its messages."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.agents.agent import DENY, Answer
from takeback.agents.dialects.cline import AGENT
from takeback.model.history import RecordedTurn

RECORDED = Path(__file__).parents[1] / "support/payloads/cline-3.0.65"
SESSION = "1794767738761_i0pj9"


class Played:
    """A project in which recorded events happen, and the messages that Cline keeps."""

    def __init__(self, project: takeback.Project, tree: Path, user: Path) -> None:
        self.project = project
        self.tree = tree
        self._messages = user / f".cline/data/sessions/{SESSION}/{SESSION}.messages.json"
        self._messages.parent.mkdir(parents=True)
        self._count = 0

    def types(self, *prompts: str) -> None:
        """What the user typed so far, and what tools said in between."""
        result = {"id": "r", "role": "user", "content": [{"type": "tool_result", "content": "x"}]}
        told: list[dict[str, Any]] = []
        for number, prompt in enumerate(prompts):
            typed = f'<user_input mode="act">{prompt}</user_input>'
            part = {"type": "text", "text": typed}
            told += [{"id": f"m{number}", "role": "user", "content": [part]}, result]
        self._messages.write_text(json.dumps({"messages": told}, indent=2) + "\n")

    def begins(self, prompt: str) -> None:
        """A session, whose messages are not written yet."""
        session = self._messages.with_name(f"{SESSION}.json")
        session.write_text(json.dumps({"session_id": SESSION, "prompt": prompt}) + "\n")

    def tell(self, name: str, call: str = "", **more: object) -> dict[str, Any]:
        """The next event."""
        told = json.loads((RECORDED / f"{name}.json").read_text())
        self._count += 1
        told |= {"timestamp": f"2026-11-18T07:00:{self._count:02}.000Z", **more}
        told |= {"sessionContext": {"rootSessionId": SESSION}, "workspaceRoots": [str(self.tree)]}
        for part in ("tool_call", "tool_result"):
            if call and part in told:
                told[part]["id"] = call
        return heard(json.loads(json.dumps(told).replace("/project", str(self.tree))))

    def turns(self) -> list[RecordedTurn]:
        """The turns in the log, the oldest first."""
        return [self.project.turn(turn.id) for turn in reversed(self.project.log().turns)]


@pytest.fixture
def played(tree: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """A project with one file."""
    assert home.is_dir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as project:
        yield Played(project, tree, tmp_path / "user")


def test_each_prompt_is_a_turn_with_its_words(played: Played) -> None:
    """Also if the event of the prompt comes after the first tool; undo takes back one of them."""
    played.begins("make it")
    played.tell("PreToolUse.editor", "c1")
    played.tell("TaskStart")
    played.types("make it")
    (played.tree / "new.txt").write_text("line one\n")
    played.tell("PostToolUse.editor", "c1")
    played.tell("TaskComplete")
    played.types("make it", "change it")
    played.tell("TaskStart")
    played.tell("PreToolUse.run_commands", "c2")
    (played.tree / "a.txt").unlink()
    played.tell("PostToolUse.run_commands", "c2")
    played.tell("TaskComplete")
    first, second = played.turns()
    assert [(turn.agent, turn.label, turn.status) for turn in (first, second)] == [
        ("cline", "make it", "done"),
        ("cline", "change it", "done"),
    ]
    assert {change.path for change in first.changes} == {"new.txt"}
    assert {change.path for change in second.changes} == {"a.txt"}
    played.project.undo()
    assert (played.tree / "a.txt").read_text() == "one\n"


def test_a_prompt_that_is_not_written_is_said(played: Played) -> None:
    """Without messages the turn is recorded all the same; Esc ends it."""
    played.tell("PreToolUse.run_commands", "c1")
    (played.tree / "half.txt").write_text("half\n")
    played.tell("PostToolUse.run_commands", "c1")
    played.tell("SessionShutdown")
    (turn,) = played.turns()
    assert turn.label == "(the prompt was not seen)"
    assert turn.status == "interrupted"
    assert {change.path for change in turn.changes} == {"half.txt"}


def test_a_restore_is_told_with_the_next_tool(played: Played) -> None:
    """Its answer adds text to what the model reads."""
    played.types("make it")
    played.tell("PreToolUse.editor", "c1")
    (played.tree / "new.txt").write_text("line one\n")
    played.tell("PostToolUse.editor", "c1")
    played.tell("TaskComplete")
    played.project.undo()
    played.types("make it", "go on")
    said = [
        played.tell("PreToolUse.run_commands", "c2"),
        played.tell("PostToolUse.run_commands", "c2"),
    ]
    (note,) = [one["contextModification"] for one in said if "contextModification" in one]
    assert "make it" in note
    assert not any(one.get("cancel") for one in said)


def test_a_denial_ends_the_run_with_the_reason() -> None:
    """Only before a tool; programs carry the line of every event."""
    before = AGENT.read(json.loads((RECORDED / "PreToolUse.editor.json").read_text()))
    told = AGENT.answer(before, Answer(verdict=DENY, to_user="paused"))
    assert told == {"cancel": True, "errorMessage": "paused"}
    after = AGENT.read(json.loads((RECORDED / "PostToolUse.editor.json").read_text()))
    assert AGENT.answer(after, Answer(verdict=DENY, to_user="paused")) == {}
    assert after.took >= 0
    files = AGENT.files("us", "us")
    assert all(text.startswith("#!/bin/sh\n") and "\nus\n" in text for text in files.values())
    assert {Path(name).stem for name in files} == set(AGENT.kinds)
