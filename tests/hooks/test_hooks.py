"""What agents tell through hooks becomes turns that can be taken back."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import Agent, Codex, heard, hook
from takeback.agents import agent as kinds
from takeback.agents.registry import agent_of
from takeback.errors import DecisionNeededError
from takeback.hooks import hook as troubles
from takeback.model.history import RecordedTurn

PAYLOADS = Path(__file__).parents[1] / "support/payloads"
OURS = [*PAYLOADS.glob("claude-code-*/*.json"), *PAYLOADS.glob("codex-*/*.json")]


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[takeback.Project]:
    """A small project."""
    assert home.is_dir()
    (tree / "a").write_text("a\n")
    with takeback.open(tree) as opened:
        yield opened


@pytest.fixture(params=[Agent, Codex], ids=["claude-code", "codex"])
def agent(request: pytest.FixtureRequest, project: takeback.Project, tree: Path) -> Agent:
    """An agent in it."""
    assert project.id
    made: Agent = request.param(tree)
    return made


@pytest.fixture
def claude(project: takeback.Project, tree: Path) -> Agent:
    """Claude Code in it."""
    assert project.id
    return Agent(tree)


def turns(project: takeback.Project) -> list[RecordedTurn]:
    """The turns in the log, the oldest first."""
    return [project.turn(turn.id) for turn in reversed(project.log().turns)]


def changed(turn: RecordedTurn) -> set[str]:
    """The names of what a turn changed."""
    return {change.raw_path.decode() for change in turn.changes}


# -- turns -------------------------------------------------------------------------------------


def test_a_prompt_and_what_it_caused_is_a_turn(
    project: takeback.Project, agent: Agent, tree: Path
) -> None:
    """What shell and edit tool did between prompt and stop is one turn, and goes with undo."""
    agent.prompt("make two files")
    agent.shell(b="by shell\n")
    agent.edit("c", "by edit\n")
    agent.stop()
    (turn,) = turns(project)
    assert (turn.label, turn.status, changed(turn)) == ("make two files", "done", {"b", "c"})
    assert turn.agent == ("codex" if isinstance(agent, Codex) else "claude-code")
    (tree / "mine").write_text("mine\n")
    project.undo()
    assert sorted(path.name for path in tree.iterdir()) == ["a", "mine"]


def test_the_state_before_is_durable_when_the_prompt_is_answered(
    project: takeback.Project, agent: Agent, tree: Path
) -> None:
    """When the agent may begin, there is a checkpoint of what was there before."""
    (tree / "a").write_text("edited by hand\n")
    agent.prompt("go")
    (turn,) = turns(project)
    assert b"".join(project.read(turn.before, b"a")) == b"edited by hand\n"


def test_the_same_event_counts_once(project: takeback.Project, agent: Agent) -> None:
    """Several hosts may deliver one event; there is one turn and one step of it."""
    for _ in range(2):
        agent.tell("UserPromptSubmit", prompt="go")
    call = agent.begin("Bash", {"command": "make"})
    call.tell("PreToolUse")
    for _ in range(2):
        call.over()
    agent.stop()
    agent.stop()
    (turn,) = turns(project)
    assert [step.tool for step in turn.steps] == ["Bash"]


def test_the_next_prompt_ends_a_turn_that_was_never_ended(
    project: takeback.Project, agent: Agent, tree: Path
) -> None:
    """After Esc nothing is told until the next prompt; then the turn before was interrupted."""
    agent.prompt("first")
    agent.begin("Bash", {"command": "make"})
    (tree / "b").write_text("b\n")
    agent.prompt("second")
    first, second = turns(project)
    assert (first.status, second.status) == ("interrupted", "running")
    assert changed(first) == {"b"}


def test_a_session_that_ends_in_the_middle(
    project: takeback.Project, agent: Agent, tree: Path
) -> None:
    """The end of the session ends what still runs, and it can be taken back."""
    agent.prompt("go")
    agent.begin("Bash", {"command": "make"})
    (tree / "b").write_text("b\n")
    agent.tell("SessionEnd", reason="other")
    (turn,) = turns(project)
    assert turn.status == "interrupted"
    project.undo()
    assert not (tree / "b").exists()


def test_an_error_of_the_model_ends_the_turn(project: takeback.Project, claude: Agent) -> None:
    """A turn that ended with an error says so."""
    claude.prompt("go")
    claude.shell(b="b\n")
    claude.tell("StopFailure", error="overloaded")
    (turn,) = turns(project)
    assert turn.status == "failed"


def test_a_prompt_that_was_not_seen(project: takeback.Project, agent: Agent) -> None:
    """Hooks that are installed in the middle of a turn record it from there on."""
    agent.shell(b="b\n")
    agent.stop()
    (turn,) = turns(project)
    assert (turn.label, changed(turn)) == ("(the prompt was not seen)", {"b"})


def test_the_project_is_where_the_agent_was_started(
    project: takeback.Project, claude: Agent, tree: Path, tmp_path: Path
) -> None:
    """The model's `cd` does not move the project."""
    claude.started_in = str(tree)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    claude.prompt("go")
    claude.tree = elsewhere
    call = claude.begin("Bash", {"command": "cd …; make"})
    (tree / "b").write_text("b\n")
    call.over()
    claude.stop()
    (turn,) = turns(project)
    assert changed(turn) == {"b"}


# -- steps -------------------------------------------------------------------------------------


def test_tools_that_only_read_leave_no_step(project: takeback.Project, agent: Agent) -> None:
    """A tool that cannot write needs no safe point, and costs nothing."""
    agent.prompt("look")
    agent.begin("Read", {"file_path": "a"}).over()
    agent.stop()
    (turn,) = turns(project)
    assert turn.steps == ()


def test_a_failed_tool(project: takeback.Project, claude: Agent, tree: Path) -> None:
    """What a command did before it failed is the step's, and the step failed."""
    claude.prompt("go")
    call = claude.begin("Bash", {"command": "false"})
    (tree / "b").write_text("b\n")
    call.failed()
    claude.stop()
    (turn,) = turns(project)
    assert [(step.status, step.tool) for step in turn.steps] == [("failed", "Bash")]
    assert changed(turn) == {"b"}


def test_a_refused_tool_ends_with_its_batch(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """A call that was denied tells no end; what you do after its batch is yours."""
    claude.prompt("go")
    call = claude.begin("Bash", {"command": "rm -rf"})
    claude.tell("PostToolBatch", tool_calls=[{"tool_name": "Bash", "tool_use_id": call.id}])
    (tree / "mine").write_text("mine\n")
    claude.stop()
    (turn,) = turns(project)
    assert changed(turn) == set()


def test_a_shell_in_the_background_keeps_its_window(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """What a background shell writes after the stop is the turn's, until it is told to be over."""
    claude.prompt("go")
    call = claude.begin("Bash", {"command": "make &", "run_in_background": True})
    call.over({"backgroundTaskId": "B1"})
    claude.stop(background_tasks=[{"id": "B1", "type": "shell"}])
    (tree / "late").write_text("late\n")
    told = (
        "<task-notification>\n<task-id>B1</task-id>\n"
        f"<tool-use-id>{call.id}</tool-use-id>\n</task-notification>"
    )
    claude.tell("UserPromptSubmit", prompt=told)
    claude.stop()
    (turn,) = turns(project)
    assert (turn.label, changed(turn)) == ("go", {"late"})
    (tree / "mine").write_text("mine\n")
    project.undo()
    assert sorted(path.name for path in tree.iterdir()) == ["a", "mine"]


def test_a_sub_agent_goes_on_behind_the_stop(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """What a sub-agent edits behind the stop is the turn's, inside the step that began it."""
    claude.prompt("go")
    call = claude.begin("Agent", {"description": "job", "prompt": "do"})
    call.over({"isAsync": True, "agentId": "A1"})
    claude.stop()
    target = str(tree / "sub")
    inner = claude.begin("Write", {"file_path": target}, agent_id="A1", agent_type="general")
    (tree / "sub").write_text("sub\n")
    inner.over()
    claude.tell("SubagentStop", agent_id="A1", agent_type="general")
    (turn,) = turns(project)
    assert changed(turn) == {"sub"}
    outer, within = turn.steps
    assert within.parent == outer.id


def test_codex_commands_that_yield_never_end(project: takeback.Project, tree: Path) -> None:
    """What a command writes behind Codex's stop is the turn's, until the next prompt."""
    codex = Codex(tree)
    codex.prompt("go")
    codex.begin("Bash", {"command": "make"})
    codex.stop()
    (tree / "late").write_text("late\n")
    codex.prompt("next")
    (tree / "mine").write_text("mine\n")
    codex.stop()
    first, second = turns(project)
    assert (changed(first), changed(second)) == ({"late"}, set())


def test_a_file_outside_is_captured_before_the_edit(
    project: takeback.Project, claude: Agent, tmp_path: Path
) -> None:
    """A dotfile that an edit tool names comes back with the turn."""
    dotfile = tmp_path / "dotfile"
    dotfile.write_text("before\n")
    claude.prompt("go")
    call = claude.begin("Edit", {"file_path": str(dotfile)})
    dotfile.write_text("after\n")
    call.over()
    claude.stop()
    project.undo(yes=True)
    assert dotfile.read_text() == "before\n"


# -- payloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recorded_payloads_are_understood(path: Path) -> None:
    """Agent, event, session and what it is about are read from every payload that was recorded."""
    payload: dict[str, Any] = json.loads(path.read_text())
    call = agent_of(payload).read(payload)
    assert path.parent.name.startswith(call.agent.name)
    assert (call.name, call.session) == (payload["hook_event_name"], payload["session_id"])
    assert call.cwd == payload.get("cwd", "")
    named = {
        "SessionStart": kinds.SESSION_STARTS, "UserPromptSubmit": kinds.PROMPT,
        "PreToolUse": kinds.BEFORE_TOOL, "PermissionRequest": kinds.ASKS,
        "PostToolUse": kinds.AFTER_TOOL,
        "PostToolUseFailure": kinds.AFTER_TOOL, "PostToolBatch": kinds.BATCH_OVER,
        "Stop": kinds.STOPS, "StopFailure": kinds.FAILS, "SubagentStop": kinds.SUBAGENT_STOPS,
        "SessionEnd": kinds.SESSION_ENDS,
    }  # fmt: skip
    expected = named.get(call.name, kinds.OTHER)
    if "in-subagent" in path.name and expected == kinds.PROMPT:
        expected = kinds.OTHER
    if "task-notification" in path.name:
        expected = kinds.GOES_ON
        assert call.task
        assert call.call
    assert call.kind == expected
    if call.kind in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL):
        assert (call.tool, call.call) == (payload["tool_name"], payload["tool_use_id"])
        assert call.given == payload["tool_input"]
    if "in-subagent" in path.name:
        assert call.subagent == payload["agent_id"]


@pytest.mark.parametrize(
    ("name", "output", "code"),
    [
        ("claude-code-2.1.325/PostToolUse.Bash.json", "", 0),
        ("claude-code-2.1.325/PostToolUseFailure.Bash.json", "Exit code 3\nfailing", 3),
        ("codex-0.166.0/PostToolUse.Bash.json", "", None),
        ("codex-0.166.0/PostToolUse.apply_patch.json", "Exit code: 0\nWall time: 0 seconds", 0),
    ],
)
def test_what_a_tool_said_is_read(name: str, output: str, code: int | None) -> None:
    """Output, exit code and mode of recorded payloads; the model where it is in them."""
    payload = json.loads((PAYLOADS / name).read_text())
    event = agent_of(payload).read(payload)
    assert event.output.startswith(output)
    assert event.exit_code == code
    assert event.permission_mode == "bypassPermissions"
    assert event.model == ("gpt-5.5" if event.agent.name == "codex" else "")


def test_unknown_agents_are_let_through(project: takeback.Project) -> None:
    """Whoever nobody knows is answered with nothing, and changes nothing."""
    before = project.workspace.ledger.last_event()
    strange = {"hook_event_name": "MoonLanded", "session_id": "x"}
    payloads: list[object] = [{}, [], "x", 7, None, strange]
    for payload in payloads:
        assert heard(payload) == {}
    assert project.workspace.ledger.last_event() == before


def test_the_command_never_fails(tree: Path, home: Path) -> None:
    """Whatever is sent, it ends with 0 and says nothing that is no answer."""
    assert home.is_dir()
    for data in (b"", b"{", b"\xff\xfe", b"null", b'{"hook_event_name": 7}', b"[" * 100_000):
        done = hook(data)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tree.iterdir()) == []


def test_trouble_is_told_once_and_noted(
    project: takeback.Project, agent: Agent, tmp_path: Path, home: Path
) -> None:
    """If a turn cannot be covered, the user hears it once, and the agent goes on."""
    assert project.id
    agent.tree = tmp_path / "not there"
    said = [agent.prompt("go"), agent.prompt("go on"), agent.stop()]
    assert "Takeback does not cover this turn" in said[0]["systemMessage"]
    assert said[1:] == [{}, {}]
    noted = troubles.read(str(home).encode())
    assert {line["event"] for line in noted} == {"UserPromptSubmit", "Stop"}


def test_a_newer_store_is_no_reason_for_a_new_history(
    project: takeback.Project, agent: Agent, home: Path
) -> None:
    """Whoever has an older program beside a newer one is asked to update it."""
    (ledger,) = home.glob(f"projects/{project.id}/ledger.db")
    with sqlite3.connect(ledger) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    text = agent.prompt("go")["systemMessage"]
    assert "written by a newer Takeback" in text
    assert "update Takeback" in text
    assert "relocate" not in text


def test_work_by_hand_beside_a_command_in_the_background(
    project: takeback.Project, agent: Agent, tree: Path
) -> None:
    """What changes behind the stop may be the user's: without consent it is not taken back."""
    agent.prompt("start the server")
    call = agent.begin("Bash", {"command": "make serve"})
    if not isinstance(agent, Codex):
        call.over({"stdout": "", "backgroundTaskId": "B1"})
    (tree / "b").write_text("by the command\n")
    agent.stop()
    (tree / "a").write_text("by hand\n")
    with pytest.raises(DecisionNeededError, match="1 doubt"):
        project.undo()
    assert (tree / "a").read_text() == "by hand\n"
    project.undo(yes=True)
    assert not (tree / "b").exists()


def test_a_command_in_the_background_that_wrote_before_the_stop(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """Nobody is asked for what was there when the agent stopped."""
    claude.prompt("start the server")
    call = claude.begin("Bash", {"command": "make serve"})
    call.over({"stdout": "", "backgroundTaskId": "B1"})
    (tree / "b").write_text("by the command\n")
    claude.stop()
    project.undo()
    assert not (tree / "b").exists()


def test_a_mark_of_unicode_is_no_part_of_a_payload(tree: Path, home: Path) -> None:
    """Some shells and wrappers put one before what they pass on."""
    assert home.is_dir()
    said = {"hook_event_name": "UserPromptSubmit", "session_id": "S1", "cwd": str(tree)}
    payload = json.dumps({**said, "prompt": "make it"}).encode("utf-8-sig")
    assert hook(payload).returncode == 0
    with takeback.open(tree) as project:
        assert [turn.label for turn in project.log(all=True).turns] == ["make it"]
