"""Sub-agents of Codex, by what it sent: whose work it is, and when they are over."""

from pathlib import Path

import pytest

from recorded import PAYLOADS, Played, client
from takeback.agents.dialects import codex
from takeback.model import words

CODEX = "codex-0.166.0"
SESSION = "01a1f280-fdea-7bc2-b566-635cce8ebd4f"
NEWER = "01a1f281-576a-7982-ac2f-4c3810686822"
MAIN = {"turn_id": "main"}
LATER = {"turn_id": "later"}


def begin(played: Played, session: str = SESSION) -> None:
    """A prompt."""
    played.tell("UserPromptSubmit", session_id=session, prompt="send somebody", **MAIN)


def spawned(played: Played) -> None:
    """A prompt sends a sub-agent, which begins."""
    begin(played)
    played.tell("PreToolUse.spawn_agent", **MAIN)
    played.tell("PostToolUse.spawn_agent", **MAIN)
    played.tell("SubagentStart")
    played.tell("UserPromptSubmit.in-subagent")


def stopped(played: Played, turn: dict[str, str]) -> None:
    """The turn is over."""
    played.tell("Stop", session_id=SESSION, **turn)


def changed(played: Played) -> dict[str, list[str]]:
    """What each turn changed."""
    return {turn.label: [change.path for change in turn.changes] for turn in played.turns()}


@client(CODEX)
def test_what_it_does_is_of_the_turn_that_sent_it(played: Played) -> None:
    """Behind the stop, and behind the next prompt, which has an id that its events lack."""
    spawned(played)
    stopped(played, MAIN)
    played.tell("PreToolUse.Bash.in-subagent")
    played.tell("UserPromptSubmit", session_id=SESSION, prompt="and this", **LATER)
    (played.tree / "late").write_text("late\n")
    played.tell("PostToolUse.Bash.in-subagent")
    played.tell("PreToolUse.Bash.in-subagent", tool_use_id="next")
    (played.tree / "later").write_text("later\n")
    played.tell("PostToolUse.Bash.in-subagent", tool_use_id="next")
    played.tell("SubagentStop")
    stopped(played, LATER)
    assert changed(played) == {"send somebody": ["late", "later"], "and this": []}
    spawn, *inner = played.turns()[0].steps
    assert (spawn.kind, spawn.status) == (words.AGENT, "done")
    assert {step.parent for step in inner} == {spawn.id}


@client(CODEX)
def test_one_that_is_called_again_works_for_who_called(played: Played) -> None:
    """Its first job is over by then."""
    spawned(played)
    played.tell("SubagentStop")
    stopped(played, MAIN)
    played.tell("UserPromptSubmit", session_id=SESSION, prompt="once more", **LATER)
    played.tell("PreToolUse.Bash.in-subagent", turn_id="its second")
    (played.tree / "new").write_text("new\n")
    played.tell("PostToolUse.Bash.in-subagent", turn_id="its second")
    stopped(played, LATER)
    assert changed(played) == {"send somebody": [], "once more": ["new"]}


@pytest.mark.parametrize("tool", ["multi_agent_v1wait_agent", "collaborationwait_agent"])
@client(CODEX)
def test_what_the_user_does_while_it_waits_is_the_users(played: Played, tool: str) -> None:
    """Waiting claims nothing."""
    spawned(played)
    played.tell(f"PreToolUse.{tool}", session_id=SESSION, **MAIN)
    (played.tree / "by-hand").write_text("mine\n")
    stopped(played, MAIN)
    assert changed(played) == {"send somebody": []}


@client(CODEX)
def test_a_command_that_reported_no_end_is_over_with_the_next_prompt(played: Played) -> None:
    """It yielded, and the sub-agent that began it is done."""
    spawned(played)
    played.tell("PreToolUse.Bash.in-subagent")
    played.tell("SubagentStop")
    stopped(played, MAIN)
    (played.tree / "late").write_text("late\n")
    played.tell("UserPromptSubmit", session_id=SESSION, prompt="and this", **LATER)
    (played.tree / "by-hand").write_text("mine\n")
    stopped(played, LATER)
    assert changed(played) == {"send somebody": ["late"], "and this": []}


@client(CODEX)
def test_one_that_is_stopped_is_over(played: Played) -> None:
    """It does not say so itself, only the call does."""
    spawned(played)
    played.tell("PreToolUse.Bash.in-subagent")
    payload = {"tool_name": "multi_agent_v1close_agent", "tool_use_id": "close", **MAIN}
    target = {"tool_input": {"target": "01a1f280-ff15-7212-99e2-2c601bdc685f"}}
    played.tell("PostToolUse.spawn_agent", **payload, **target)
    (spawn, command) = played.turns()[0].steps
    assert (spawn.status, command.status) == ("done", "running")
    played.tell("UserPromptSubmit", session_id=SESSION, prompt="and this", **LATER)
    assert [step.status for step in played.turns()[0].steps] == ["done", "done"]


@pytest.mark.parametrize("target", ["helper", "/root/helper"])
@client(CODEX)
def test_the_newer_way_knows_it_by_a_name(played: Played, tmp_path: Path, target: str) -> None:
    """The end of the call names no id; the rollout of the sub-agent has the name, too."""
    rollout = tmp_path / "rollout-of-subagent.jsonl"
    rollout.write_bytes((PAYLOADS / CODEX / "_rollout-of-subagent.jsonl").read_bytes())
    own = {"transcript_path": str(rollout), "session_id": NEWER}
    begin(played, NEWER)
    played.tell("PreToolUse.collaborationspawn_agent", **MAIN)
    played.tell("PostToolUse.collaborationspawn_agent", **MAIN)
    played.tell("PreToolUse.Bash.in-subagent", **own)
    (played.tree / "new").write_text("new\n")
    played.tell("PostToolUse.Bash.in-subagent", **own)
    (turn,) = played.turns()
    spawn, command = turn.steps
    assert (spawn.kind, spawn.status, command.parent) == (words.AGENT, "running", spawn.id)
    payload = {"tool_name": "collaborationinterrupt_agent", "tool_use_id": "interrupt", **MAIN}
    given = {"tool_input": {"target": target}}
    played.tell("PostToolUse.collaborationspawn_agent", **payload, **given)
    assert [step.status for step in played.turns()[0].steps] == ["done", "done"]


def test_what_is_no_text_of_a_call_names_nobody() -> None:
    """Answers of a call that no version is known to give."""
    for said in ("", "{", "[]", '{"agent_id": 1}', "\udc80", None, {"agent_id": "a"}):
        payload = {
            "hook_event_name": "PostToolUse",
            "session_id": "s",
            "turn_id": "t",
            "tool_name": "spawn_agent",
            "tool_response": said,
        }
        event = codex.AGENT.read(payload)
        assert (event.task, event.background) == ("", False)
