"""Copilot CLI by what was recorded of 1.0.102: its conversation, its background, its dialogs."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.agents.agent import ABOVE, BEGINNING, DENY, PASSED, Answer, CannotTrimError
from takeback.agents.dialects.copilot import AGENT
from takeback.model.history import RecordedTurn

RECORDED = Path(__file__).parents[1] / "support/payloads/copilot-1.0.102-camel"
SESSION = "74d1499b-6777-4594-a9a5-4bdbf8f3fefa"
FIRST, THIRD, FOURTH = "1794985027726", "1794985040007", "1794985057349"
"""Prompts of the conversation in which somebody pressed Esc and went back."""
KNOWN = AGENT.conversations


def payload(name: str, **more: object) -> dict[str, Any]:
    """One recorded event of the session."""
    told = json.loads((RECORDED / f"{name}.json").read_text())
    return {**told, "sessionId": SESSION, **more}


def conversation(name: str) -> str:
    """The path of a recorded conversation."""
    return str(RECORDED / f"_events-{name}.jsonl")


# -- conversations -------------------------------------------------------------------------


def test_an_interruption_is_found_with_its_prompt() -> None:
    """Esc is in the file; a turn that ended by itself, and the prompt after it, have none."""
    interrupted = conversation("interrupted")
    assert KNOWN is not None
    assert KNOWN.interrupted_at(interrupted, "") == pytest.approx(1794985036.033)
    assert KNOWN.interrupted_prompt(interrupted) == FIRST
    assert KNOWN.interrupted_at(conversation("two-turns"), "") is None
    assert KNOWN.interrupted_prompt(conversation("two-turns")) == ""
    assert KNOWN.interrupted_at("/nowhere/events.jsonl", "") is None


def test_the_next_prompt_sees_the_interruption_before_it(tmp_path: Path) -> None:
    """Its own hook stands behind the interruption by then."""
    lines = Path(conversation("rewound")).read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if '"third ' in line) + 1
    file = tmp_path / "events.jsonl"
    file.write_text("".join(lines[:end]))
    assert KNOWN is not None
    assert KNOWN.interrupted_at(str(file), THIRD) == pytest.approx(1794985036.033)
    assert KNOWN.interrupted_at(str(file), FOURTH) is None


@pytest.mark.parametrize(("until", "is_so"), [("approved", True), ("permission_prompt", False)])
def test_whether_a_command_ran_when_it_was_interrupted(
    until: str, is_so: bool, tmp_path: Path
) -> None:
    """After a yes it did; while the dialog waited it did not."""
    lines = Path(conversation("dialogs")).read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if until in line) + 1
    file = tmp_path / "events.jsonl"
    abort = {"type": "abort", "data": {}, "timestamp": "2026-11-18T07:10:00.000Z"}
    file.write_text("".join(lines[:end]) + json.dumps(abort) + "\n")
    assert KNOWN is not None
    assert KNOWN.was_at_work(str(file), "") is is_so


def test_going_back_leaves_the_first_prompt_that_was_left() -> None:
    """The prompt that one went back to has a hook and no message; what came before has both."""
    assert KNOWN is not None
    assert list(KNOWN.before(conversation("rewound"), FOURTH)) == [
        (PASSED, THIRD),
        (ABOVE, FIRST),
        (BEGINNING, ""),
    ]
    second = "1794985220924"
    assert next(KNOWN.before(conversation("two-turns"), second))[0] == ABOVE


def test_a_conversation_is_trimmed_before_a_prompt(tmp_path: Path) -> None:
    """The copy has a folder and an id of its own; the first prompt has nothing before it."""
    folder = tmp_path / "session-state" / SESSION
    folder.mkdir(parents=True)
    file = folder / "events.jsonl"
    file.write_bytes(Path(conversation("two-turns")).read_bytes())
    assert KNOWN is not None
    made = KNOWN.trim(str(file), "1794985220924")
    lines = [json.loads(line) for line in made.lines]
    assert made.path == str(tmp_path / "session-state" / made.own_id / "events.jsonl")
    assert made.command == ("copilot", f"--resume={made.own_id}")
    assert made.folder == "/project"
    assert lines[0]["data"]["sessionId"] == made.own_id
    said = [line["data"]["content"] for line in lines if line["type"] == "user.message"]
    assert [text.split()[0] for text in said] == ["first"]
    for prompt in ("1794985208663", "1"):
        with pytest.raises(CannotTrimError):
            KNOWN.trim(str(file), prompt)


# -- events --------------------------------------------------------------------------------


class Played:
    """A project in which recorded events happen, one after the other."""

    def __init__(self, project: takeback.Project, tree: Path) -> None:
        self.project = project
        self.tree = tree
        self._moment = 1794985000000

    def tell(self, name: str, **more: object) -> dict[str, Any]:
        """The next event."""
        self._moment += 1000
        told = payload(name, **{"timestamp": self._moment, **more})
        return heard(json.loads(json.dumps(told).replace("/project", str(self.tree))))

    def turns(self) -> list[RecordedTurn]:
        """The turns in the log, the oldest first."""
        return [self.project.turn(turn.id) for turn in reversed(self.project.log().turns)]


@pytest.fixture
def played(tree: Path, home: Path) -> Any:  # noqa: ANN401 -- a generator
    """A project with one file."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as project:
        yield Played(project, tree)


def test_a_command_in_the_background_is_the_turns(played: Played) -> None:
    """It ends after the session seems to have, and its end is no prompt of a human."""
    given = {"toolArgs": payload("postToolUse.bash.background")["toolArgs"]}
    played.tell("userPromptSubmitted")
    played.tell("preToolUse.bash", **given)
    played.tell("postToolUse.bash.background")
    played.tell("agentStop")
    played.tell("sessionEnd.complete")
    (played.tree / "async.txt").write_text("late\n")
    played.tell("userPromptSubmitted.shell-done")
    played.tell("agentStop")
    played.tell("sessionEnd.complete")
    (turn,) = played.turns()
    assert {change.path for change in turn.changes} == {"async.txt"}
    assert [step.status for step in turn.steps] == ["done"]


def test_a_name_that_is_used_again_loses_nothing(played: Played) -> None:
    """Copilot counts commands anew when a session goes on in another process."""
    given = {"toolArgs": payload("postToolUse.bash.background")["toolArgs"]}
    for number in range(2):
        played.tell("userPromptSubmitted")
        played.tell("preToolUse.bash", **given)
        (played.tree / f"{number}.txt").write_text("new\n")
        assert played.tell("postToolUse.bash.background") == {}
        played.tell("userPromptSubmitted.shell-done")
        played.tell("agentStop")
    _, second = played.turns()
    assert {change.path for change in second.changes} == {"1.txt"}


def test_a_subagent_in_the_background_is_the_turns(played: Played) -> None:
    """What it writes behind the stop belongs to the prompt that started it."""
    background = payload("postToolUse.task.background")
    started = background["toolResult"]["textResultForLlm"]
    agent = AGENT.read(background).task
    assert agent in started
    played.tell("userPromptSubmitted")
    played.tell("preToolUse.task", toolArgs=background["toolArgs"])
    played.tell("postToolUse.task.background")
    played.tell("agentStop")
    more = {"agentId": agent, "parentAgentId": SESSION}
    played.tell("preToolUse.create.in-subagent", **more)
    (played.tree / "sub.txt").write_text("s\n")
    played.tell("postToolUse.create.in-subagent", **more)
    played.tell("subagentStop", **more)
    (turn,) = played.turns()
    assert {change.path for change in turn.changes} == {"sub.txt"}
    assert [(step.tool, step.status) for step in turn.steps] == [
        ("task", "done"),
        ("create", "done"),
    ]


def test_what_is_saved_while_a_dialog_waits_is_yours(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversation says when the dialog was answered, so undo has no doubt."""
    import time

    monkeypatch.setenv("HOME", str(tmp_path))
    command = {"command": "echo a > denied.txt", "description": "x"}
    told: list[dict[str, object]] = [
        {"type": "tool.execution_start", "data": {"arguments": command}},
        {
            "type": "permission.requested",
            "data": {
                "permissionRequest": {"toolCallId": "c", "fullCommandText": command["command"]}
            },
        },
    ]
    played.tell("userPromptSubmitted")
    played.tell("preToolUse.bash", toolArgs=command)
    played.tell("notification.permission_prompt", message=f"Run command: {command['command']}")
    (played.tree / "a.txt").write_text("by hand\n")
    time.sleep(0.2)
    answered = time.time_ns()
    (played.tree / "denied.txt").write_text("a\n")
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(answered // 10**9))
    moment += f".{answered // 10**6 % 1000:03}Z"
    told.append({"type": "permission.completed", "data": {"toolCallId": "c"}, "timestamp": moment})
    folder = tmp_path / ".copilot/session-state" / SESSION
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    played.tell("postToolUse.bash", toolArgs=command, timestamp=time.time_ns() // 10**6)
    played.tell("agentStop")
    (turn,) = played.turns()
    assert {change.path for change in turn.changes} == {"denied.txt"}
    played.project.undo()
    assert (played.tree / "a.txt").read_text() == "by hand\n"


# -- answers and settings ------------------------------------------------------------------


def test_a_prompt_can_be_blocked_and_the_user_is_told_by_the_agent() -> None:
    """It shows the reason of a block and no other line, so the agent passes that one on."""
    event = AGENT.read(payload("userPromptSubmitted"))
    blocked = AGENT.answer(event, Answer(verdict=DENY, to_user="taken back"))
    assert blocked == {"decision": "block", "reason": "taken back"}
    told = AGENT.answer(event, Answer(to_agent="read it again", to_user="you rewound"))
    assert str(told["additionalContext"]).startswith("read it again\n")
    assert "you rewound" in str(told["additionalContext"])
    assert AGENT.answer(AGENT.read(payload("agentStop")), Answer(to_user="x")) == {}


def test_the_file_names_each_event_once() -> None:
    """One file in Copilot's own form; readers are not reported."""
    (name,) = AGENT.files("us", "us and tell")
    assert name == "hooks/takeback.json"
    hooks = json.loads(AGENT.files("us", "us and tell")[name])["hooks"]
    assert {event: one["bash"] for event, (one,) in hooks.items()} == {
        event: "us and tell" if event == "userPromptSubmitted" else "us" for event in AGENT.kinds
    }
    assert [event for event, (one,) in hooks.items() if "matcher" in one] == [
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
    ]
