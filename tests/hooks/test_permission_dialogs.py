"""What you save while a permission dialog waits is yours, whatever you answer."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import residents
import takeback
from agents import MAIN, Agent, Codex, Tool
from spoken import spoken
from takeback.cli import app
from talks import Claude, CodexTalk

ANSWERED = 0.25
"""Seconds from your last save to the answer; nobody is faster in two windows."""
RAN = 80
"""Milliseconds that each command says it ran; less than that passes until its end is heard."""


@pytest.fixture(autouse=True)
def _project(tree: Path, home: Path) -> None:
    """A small project."""
    assert home.is_dir()
    (tree / "a.txt").write_text("a\n")
    (tree / "b.txt").write_text("b\n")


@pytest.fixture(params=[Agent, Codex], ids=["claude-code", "codex"])
def agent(request: pytest.FixtureRequest, tree: Path) -> Agent:
    """An agent in it."""
    made: Agent = request.param(tree)
    return made


def asked(agent: Agent, command: str = "make", **more: Any) -> Tool:  # noqa: ANN401 -- JSON
    """A shell command for which a dialog appears, as both agents tell it: without an id."""
    given = {"command": command}
    call = agent.begin("Bash", given, **more)
    said = {**given, "description": "need it"}
    agent.tell("PermissionRequest", tool_name="Bash", tool_input=said, **more)
    return call


def save(tree: Path, **files: str) -> None:
    """You save files."""
    for name, text in files.items():
        (tree / f"{name}.txt").write_text(text)


def run(call: Tool, work: Callable[[], object], *, timed: bool = True, **more: Any) -> None:  # noqa: ANN401
    """You say yes: the command runs, and its end tells for how long, if the agent does that."""
    time.sleep(ANSWERED if timed else 0)
    work()
    took = {"duration_ms": RAN} if timed else {}
    call.over({"stdout": ""}, **took, **more)


def undo(tree: Path, *words: str) -> int:
    """The command itself; its exit code."""
    return app.main(["-C", str(tree), "undo", *words])


def texts(tree: Path) -> dict[str, str]:
    """What is there now."""
    return {path.stem: path.read_text() for path in tree.glob("*.txt")}


# -- yes ---------------------------------------------------------------------------------------


def test_what_you_save_before_you_say_yes_stays(tree: Path) -> None:
    """Claude Code tells for how long a command ran: what is older is yours, without a question."""
    agent = Agent(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n", new="mine\n")
    run(call, lambda: save(tree, b="agent\n", made="agent\n"))
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n", "new": "mine\n"}


def test_where_the_start_is_not_told_undo_asks(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Codex does not tell it: nothing goes unasked, and the question names the files."""
    agent = Codex(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    run(call, lambda: save(tree, b="agent\n"), timed=False)
    agent.stop()
    assert undo(tree) == 3
    assert texts(tree) == {"a": "mine\n", "b": "agent\n"}
    said = capsys.readouterr()
    assert "permission dialog" in said.err
    assert "`a.txt`, `b.txt`" in said.err
    assert undo(tree, "--yes", "--", str(tree / "b.txt")) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_a_question_also_in_a_turn_that_is_not_the_newest(tree: Path) -> None:
    """Several turns are taken back at once: what is in doubt in any of them is asked for."""
    agent = Codex(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    run(call, lambda: None, timed=False)
    agent.stop()
    agent.prompt("go on")
    agent.shell(**{"b.txt": "agent\n"})
    agent.stop()
    with takeback.open(tree) as project:
        turns = [turn.id for turn in project.log().turns]
        with pytest.raises(takeback.DecisionNeededError) as refused:
            project.undo(turns)
    assert "permission dialog" in "".join(spoken(refused.value.reasons))
    assert texts(tree) == {"a": "mine\n", "b": "agent\n"}


def test_without_a_dialog_nothing_is_asked(agent: Agent, tree: Path) -> None:
    """A command that needs no permission is taken back as ever."""
    agent.prompt("go")
    agent.shell(**{"a.txt": "agent\n"})
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


@residents.NEEDS_PROC
@pytest.mark.parametrize("helper", ["0", "1"], ids=["alone", "helper"])
def test_the_time_that_a_hook_takes_to_start_is_not_yours(
    helper: str, tree: Path, home: Path
) -> None:
    """The real command, a process for each event, on a machine that is slow to start them."""
    agent = Agent(tree)

    def tell(event: str, **more: object) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", f"sleep 0.2; exec {sys.executable} -I -S {MAIN} hook"],
            input=json.dumps({**agent.common(), "hook_event_name": event, **more}).encode(),
            capture_output=True,
            check=False,
            env={**os.environ, "TAKEBACK_HELPER": helper},
        )
        assert (done.returncode, done.stdout) == (0, b"")

    agent.prompt("go")
    if helper == "1":
        tell("SessionStart")
    call = asked(agent)
    save(tree, a="mine\n")
    time.sleep(ANSWERED)
    save(tree, b="agent\n")
    shell = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": call.id}
    tell("PostToolUse", **shell, tool_response={}, duration_ms=RAN)
    for pid in residents.helpers(home):
        os.kill(pid, signal.SIGKILL)
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_a_command_that_fails_after_a_yes(tree: Path) -> None:
    """Its end is another event, and tells the same."""
    agent = Agent(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    time.sleep(ANSWERED)
    save(tree, b="agent\n")
    call.tell("PostToolUseFailure", error="exit code 1", duration_ms=RAN)
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_a_command_that_goes_on_in_the_background_after_a_yes(tree: Path) -> None:
    """It returns at once; what was saved before is yours, what it does later is its own."""
    agent = Agent(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    time.sleep(ANSWERED)
    call.over({"backgroundTaskId": "B1"}, duration_ms=RAN)
    save(tree, b="agent\n")
    agent.tell(
        "UserPromptSubmit",
        prompt="<task-notification><task-id>B1</task-id></task-notification>",
    )
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_an_edit_that_waits_names_a_file_that_you_save(tree: Path) -> None:
    """Claude Code does not write over your save, it fails: the file is as you left it."""
    agent = Agent(tree)
    agent.prompt("go")
    given = {"file_path": str(tree / "a.txt"), "content": "agent\n"}
    call = agent.begin("Write", given)
    agent.tell("PermissionRequest", tool_name="Write", tool_input=given)
    save(tree, a="mine\n")
    time.sleep(ANSWERED)
    call.tell("PostToolUseFailure", error="File has been modified since read", duration_ms=RAN)
    agent.edit("b.txt", "agent\n")
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_an_edit_that_was_allowed(tree: Path) -> None:
    """What it names is its own, however long its end takes to be told; what else you save stays."""
    agent = Agent(tree)
    agent.prompt("go")
    given = {"file_path": str(tree / "b.txt"), "content": "agent\n"}
    call = agent.begin("Write", given)
    agent.tell("PermissionRequest", tool_name="Write", tool_input=given)
    save(tree, a="mine\n", b="agent\n")
    time.sleep(ANSWERED)
    call.over({"type": "update"}, duration_ms=1)
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_dialogs_of_two_calls_at_once(tree: Path) -> None:
    """Each has its own start; what the first did while the second one waits is the first one's."""
    agent = Agent(tree)
    agent.prompt("go")
    first, second = asked(agent, "one"), asked(agent, "two")
    save(tree, a="mine\n")
    run(first, lambda: save(tree, one="agent\n"))
    save(tree, b="mine\n")
    run(second, lambda: save(tree, two="agent\n"))
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "mine\n"}


@pytest.mark.parametrize("second", ["one", "two"])
def test_a_call_that_is_told_while_another_one_waits(
    second: str, agent: Agent, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It asks later, so it had not begun: what you saved before is not its own."""
    agent.prompt("go")
    first = agent.begin("Bash", {"command": "one"})
    later = agent.begin("Bash", {"command": second})
    agent.tell("PermissionRequest", tool_name="Bash", tool_input={"command": "one"})
    save(tree, a="mine\n")
    timed = type(agent) is Agent
    run(first, lambda: None, timed=timed)
    agent.tell("PermissionRequest", tool_name="Bash", tool_input={"command": second})
    run(later, lambda: save(tree, b="agent\n"), timed=timed)
    agent.stop()
    assert undo(tree) == (0 if timed else 3)
    assert texts(tree) == {"a": "mine\n", "b": "b\n" if timed else "agent\n"}
    assert timed or "`a.txt`, `b.txt`" in capsys.readouterr().err


def test_what_one_call_does_while_another_one_asks(agent: Agent, tree: Path) -> None:
    """You say no to the second: what the first one did is its own, and nothing is asked."""
    agent.prompt("go")
    first = agent.begin("Bash", {"command": "one"})
    agent.begin("Bash", {"command": "two"})
    save(tree, b="agent\n")
    agent.tell("PermissionRequest", tool_name="Bash", tool_input={"command": "two"})
    first.over({"stdout": ""})
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


def test_a_dialog_of_a_sub_agent(tree: Path) -> None:
    """Its events carry its own name, and the rule is the same."""
    agent = Agent(tree)
    agent.prompt("go")
    task = agent.begin("Agent", {"prompt": "do it"})
    task.over({"isAsync": True, "agentId": "X1"})
    call = asked(agent, agent_id="X1", agent_type="general-purpose")
    agent.stop()
    save(tree, a="mine\n")
    run(call, lambda: save(tree, b="agent\n"))
    agent.tell("SubagentStop", agent_id="X1")
    assert undo(tree, "--yes") == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


# -- no ----------------------------------------------------------------------------------------


def the_next_prompt(agent: Agent) -> None:
    """You say what to do instead."""
    agent.prompt("something else")
    agent.stop()


def the_agent_stops(agent: Agent) -> None:
    """The model is told, and stops."""
    agent.stop()


def the_session_ends(agent: Agent) -> None:
    """You leave."""
    agent.tell("SessionEnd", reason="prompt_input_exit")


@pytest.mark.parametrize("then", [the_next_prompt, the_session_ends])
def test_after_a_no_all_is_yours(then: Callable[[Agent], None], agent: Agent, tree: Path) -> None:
    """The command never ran: undo takes back what the agent did before, and asks nothing."""
    agent.prompt("go")
    agent.shell(**{"b.txt": "agent\n"})
    asked(agent)
    save(tree, a="mine\n", new="mine\n")
    (tree / "b.txt").chmod(0o600)
    then(agent)
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n", "new": "mine\n"}


def test_after_a_no_that_the_model_is_told(tree: Path) -> None:
    """You say what to do instead: its batch tells of your no, and the model goes on."""
    agent = Agent(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …"
    refused = {"tool_name": "Bash", "tool_use_id": call.id, "tool_response": said}
    agent.tell("PostToolBatch", tool_calls=[refused])
    save(tree, new="mine\n")
    agent.shell(**{"b.txt": "agent\n"})
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n", "new": "mine\n"}


def test_after_a_yes_whose_end_was_lost(tree: Path) -> None:
    """The batch tells that it ran, and not when: a doubt that asks."""
    agent = Agent(tree)
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n", b="agent\n")
    ran = {"tool_name": "Bash", "tool_use_id": call.id, "tool_response": "(no output)"}
    agent.tell("PostToolBatch", tool_calls=[ran])
    agent.stop()
    assert undo(tree) == 3


def test_a_dialog_that_is_told_twice(tree: Path) -> None:
    """Two hosts deliver it: the second one is not about the other command that runs."""
    agent = Agent(tree)
    agent.prompt("go")
    other = agent.begin("Bash", {"command": "other"})
    call = asked(agent)
    agent.tell("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    save(tree, b="agent\n")
    other.over({}, duration_ms=RAN)
    run(call, lambda: save(tree, made="agent\n"))
    agent.stop()
    assert undo(tree) == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


@pytest.mark.parametrize("kind", [Claude, CodexTalk], ids=["claude-code", "codex"])
def test_undo_right_after_a_no(
    kind: "type[Claude | CodexTalk]", tree: Path, tmp_path: Path
) -> None:
    """Nothing but the conversation tells it, and undo looks there."""
    agent = kind(tree, tmp_path / "talks")
    agent.asks("go")
    agent.shell(**{"b.txt": "agent\n"})
    asked(agent)
    save(tree, a="mine\n")
    say_no(agent)
    save(tree, new="mine\n")
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n", "new": "mine\n"}


def say_no(agent: "Claude | CodexTalk") -> None:
    """What both agents write down after a no."""
    if isinstance(agent, CodexTalk):
        agent.talk.event("turn_aborted", turn_id=agent.prompt_id, reason="interrupted")
    else:
        agent.talk.interrupt(agent.prompt_id, tool=True)


def test_escape_while_the_command_runs(tree: Path, tmp_path: Path) -> None:
    """You said yes, and interrupted it: when it began nobody knows, so undo asks."""
    agent = Claude(tree, tmp_path / "talks")
    agent.asks("go")
    asked(agent)
    save(tree, b="agent\n")
    block = {"type": "text", "text": "[Request interrupted by user for tool use]"}
    agent.talk.add(
        "user",
        promptId=agent.prompt_id,
        message={"role": "user", "content": [block]},
        interruptedMessageId="msg_1",
        timestamp="2100-01-01T00:00:00.000Z",
    )
    assert undo(tree) == 3
    assert undo(tree, "--yes") == 0
    assert texts(tree) == {"a": "a\n", "b": "b\n"}


# -- while it waits ----------------------------------------------------------------------------


def test_undo_while_the_dialog_waits(agent: Agent, tree: Path) -> None:
    """Nobody knows whether the command runs by now: what you saved does not go unasked."""
    agent.prompt("go")
    agent.shell(**{"b.txt": "agent\n"})
    asked(agent)
    save(tree, a="mine\n")
    assert undo(tree) == 3
    assert texts(tree) == {"a": "mine\n", "b": "agent\n"}


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_somebody_looks_while_the_dialog_waits(answer: str, tree: Path) -> None:
    """What that look was not sure of is known when the dialog is answered."""
    agent = Agent(tree)
    agent.prompt("go")
    agent.shell(**{"b.txt": "agent\n"})
    call = asked(agent)
    save(tree, a="mine\n")
    assert app.main(["-C", str(tree), "checkpoint"]) == 0
    if answer == "yes":
        run(call, lambda: save(tree, b="again\n"))
        agent.stop()
    else:
        the_next_prompt(agent)
    assert undo(tree) == 0
    assert texts(tree) == {"a": "mine\n", "b": "b\n"}


def test_the_log_can_be_made_again(agent: Agent, tree: Path) -> None:
    """The tables follow from the events, also what is in doubt."""
    agent.prompt("go")
    call = asked(agent)
    save(tree, a="mine\n")
    run(call, lambda: save(tree, b="agent\n"), timed=not isinstance(agent, Codex))
    asked(agent)
    assert app.main(["-C", str(tree), "doctor", "--rebuild"]) in (0, 1)
    assert app.main(["-C", str(tree), "verify"]) == 0
