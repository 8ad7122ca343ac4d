"""What changes between a prompt and its stop without one tool event is a doubt that is said."""

import os
from pathlib import Path

import pytest

import takeback
from agents import Agent, heard
from program import run
from takeback.agents.registry import find_agent
from takeback.disk import operations


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


def changes(tree: Path) -> list[tuple[str, str]]:
    """What the newest turn changed, and how that is known."""
    with takeback.open(tree) as project:
        turn = project.log().turns[0]
        return [(change.path, change.author.how) for change in turn.changes]


@pytest.fixture
def silent(tree: Path, home: Path) -> Agent:
    """An agent whose hooks report prompts and stops, and no tool, has written a file."""
    del home
    agent = Agent(tree)
    agent.prompt("write it")
    (tree / "a.txt").write_text("by the agent, or by you\n")
    agent.stop()
    return agent


def test_it_is_said(silent: Agent, tree: Path) -> None:
    """By the log, by `show` and before an undo, which asks."""
    assert changes(tree) == [("a.txt", "unreported")]
    for words in (["log"], ["show", "@~0"]):
        assert b"without a tool event; perhaps yours" in run(words, tree, os.environ).stdout
    with takeback.open(tree) as project:
        with pytest.raises(takeback.DecisionNeededError) as doubt:
            project.undo()
        assert [each.code for each in doubt.value.reasons] == ["no-tool-event"]
        project.undo(yes=True)
    assert not (tree / "a.txt").exists()
    with takeback.open(tree) as project:
        assert project.upkeep.examine()[0] == ()
    assert silent.prompt("go on")


SIGNS: dict[str, dict[str, str]] = {
    "copilot": {"timestamp": "2026-11-16T18:37:0{n}.000Z"},
    "cursor": {"cursor_version": "3", "conversation_id": "S1", "generation_id": "G1"},
    "vs-code": {"timestamp": "2026-11-16T18:37:0{n}.000Z", "transcript_path": "/agent/chat.json"},
    "claude-code": {"prompt_id": "P1"},
}


@pytest.mark.parametrize("name", SIGNS)
def test_the_doctor_says_it(name: str, tree: Path, home: Path) -> None:
    """Of a host that runs the hooks in Claude Code's settings and never fires those of tools."""
    del home

    def tell(event: str, n: int, **more: object) -> None:
        own = {key: value.format(n=n) for key, value in SIGNS[name].items()}
        said = {"hook_event_name": event, "session_id": "S1", "cwd": str(tree), **own, **more}
        heard(said)

    def found() -> str:
        return " ".join(run(["doctor"], tree, os.environ).stdout.decode().split())

    tell("UserPromptSubmit", 1, prompt="write it")
    (tree / "a.txt").write_text("a\n")
    tell("Stop", 2)
    with takeback.open(tree) as project:
        (turn,) = project.log().turns
        assert (turn.agent, turn.unreported) == (name, True)
    agent = find_agent(name)
    assert agent is not None
    said = f"{agent.title} reported no tool while 1 path changed"
    assert f"{said} (turn `{turn.id[:8]}`): its hooks may not fire" in found()
    fix = name if agent.folder else "claude-code"
    assert f"`takeback install {fix}` renews them" in found()
    tell("UserPromptSubmit", 3, prompt="again")
    given: dict[str, object] = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    given |= {} if name == "copilot" else {"tool_use_id": "T1"}
    tell("PreToolUse", 4, **given)
    tell("PostToolUse", 5, **given)
    assert "reported no tool" not in found()


def test_who_reports_tools_did_not_do_it(tree: Path, home: Path) -> None:
    """Once a conversation reported a tool, what no tool did is yours; a look is a tool, too."""
    del home
    for number, tool in enumerate(("Bash", "Read")):
        agent = Agent(tree, f"S{number}")
        agent.prompt("look")
        agent.begin(tool, {"command": "ls"}).over()
        agent.stop()
        agent.prompt("explain")
        (tree / "mine.txt").write_text(f"{number}\n")
        agent.stop()
        assert changes(tree) == []


def test_another_agent_that_reports_goes_first(tree: Path, home: Path) -> None:
    """What falls into the command of one session is not doubted because another is silent."""
    del home
    silent, other = Agent(tree), Agent(tree, "S2")
    silent.prompt("think")
    other.prompt("write")
    call = other.begin("Bash", {"command": "make"})
    (tree / "made.txt").write_text("made\n")
    silent.stop()
    call.over()
    other.stop()
    with takeback.open(tree) as project:
        found = {turn.label: [c.path for c in turn.changes] for turn in project.log().turns}
    assert found == {"think": [], "write": ["made.txt"]}
