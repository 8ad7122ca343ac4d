"""`tb undo` typed into an agent: done at once, and no model is asked."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import MAIN, Agent, Codex, heard, surroundings
from takeback.agents import typed
from takeback.agents.agent import PROMPT, HookEvent
from takeback.agents.registry import find_agent
from takeback.disk import programs
from takeback.hooks import hook as hearing
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.upkeep.settings import Settings


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[takeback.Project]:
    """A small project."""
    assert home.is_dir()
    (tree / "a").write_text("one\ntwo\nthree\n")
    with takeback.open(tree) as opened:
        yield opened


@pytest.fixture
def claude(project: takeback.Project, tree: Path) -> Agent:
    """Claude Code in it, behind one turn that made a file and changed another."""
    assert project.id
    return worked(Agent(tree))


def worked(agent: Agent, prompt: str = "add payment validation") -> Agent:
    """An agent behind a turn."""
    agent.prompt(prompt)
    agent.edit("a", "one\nTWO\nthree\n")
    agent.shell(b="new\n")
    agent.stop()
    return agent


def names(tree: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in tree.iterdir())


def said(answer: dict[str, Any]) -> str:
    """What the user reads of a prompt that was dropped; an error if it was not."""
    assert set(answer) == {"decision", "reason"}, answer
    assert answer["decision"] in {"block", "deny"}
    return str(answer["reason"])


def labels(project: takeback.Project) -> list[str]:
    """The prompts of all turns, the newest first."""
    return [turn.label for turn in project.log(all=True).turns]


def test_undo_and_redo(project: takeback.Project, claude: Agent, tree: Path) -> None:
    """The newest turn of the conversation goes and comes back; the agent hears of it later."""
    (tree / "mine").write_text("mine\n")
    text = said(claude.prompt("tb undo"))
    assert text.splitlines()[0] == (
        'Took back "add payment validation": restored 1 file, removed 1; kept mine (yours)'
    )
    assert text.splitlines()[-1] == "`tb redo` puts it back"
    assert (names(tree), (tree / "a").read_text()) == (["a", "mine"], "one\ntwo\nthree\n")
    text = said(claude.prompt("  tb redo\n"))
    assert text.splitlines()[-1] == "`tb undo` takes it back again"
    assert names(tree) == ["a", "b", "mine"]
    said(claude.prompt("tb undo"))
    assert labels(project) == ["add payment validation"]
    assert [turn.status for turn in project.log(all=True).turns] == ["done"]
    told = claude.prompt("go on")["hookSpecificOutput"]["additionalContext"]
    assert 'took back what you did for the prompt "add payment validation"' in told
    assert labels(project) == ["go on", "add payment validation"]


@pytest.mark.parametrize("is_gemini", [False, True], ids=["codex", "gemini-cli"])
def test_other_agents(project: takeback.Project, tree: Path, is_gemini: bool) -> None:
    """Codex by its ids; Gemini CLI by times, with what other hooks put before the prompt."""
    assert project.id
    if not is_gemini:
        assert said(worked(Codex(tree)).prompt("tb undo")).startswith("Took back")
    else:
        at = {"session_id": "S1", "cwd": str(tree), "transcript_path": "/h/.gemini/tmp/x.json"}

        def tell(event: str, second: int, **more: object) -> dict[str, Any]:
            stamp = f"2026-11-18T07:00:{second:02}.000Z"
            return heard({**at, "hook_event_name": event, "timestamp": stamp, **more})

        tell("BeforeAgent", 1, prompt="make it")
        tool = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
        tell("BeforeTool", 2, **tool)
        (tree / "b").write_text("new\n")
        tell("AfterTool", 3, **tool, tool_response={"llmContent": ""})
        tell("AfterAgent", 4, prompt="make it")
        prompt = "<hook_context>from a hook\ntb redo</hook_context>\n\ntb undo"
        first = tell("BeforeAgent", 5, prompt=prompt)
        assert said(first).startswith('Took back "make it"')
        assert said(tell("BeforeAgent", 5, prompt=prompt)).startswith('Took back "make it"')
    assert names(tree) == ["a"]
    assert len(labels(project)) == 1


def test_one_event_counts_once(project: takeback.Project, claude: Agent, tree: Path) -> None:
    """Two settings report the same prompt, or a hook that took too long is run again."""
    worked(claude, "the second").edit("c", "later\n")
    claude.stop()
    first = said(claude.prompt("tb undo"))
    again = said(claude.tell("UserPromptSubmit", prompt="tb undo"))
    assert again.splitlines()[0] == first.splitlines()[0]
    assert [bool(turn.undone) for turn in project.log(all=True).turns] == [True, False]
    old = {"hook_event_name": "UserPromptSubmit", "session_id": "S1", "cwd": str(tree)}
    for _ in range(2):  # without any id, as Claude Code up to 2.1.112 sends it
        assert said(heard({**old, "prompt": "tb redo"})).startswith('Put back "the second"')
    assert [bool(turn.undone) for turn in project.log(all=True).turns] == [False, False]


def test_turns_that_changed_nothing_are_named(claude: Agent, tree: Path) -> None:
    """They are passed over, as on the command line, and that is said."""
    claude.prompt("explain it")
    claude.stop()
    text = said(claude.prompt("tb undo"))
    assert text.startswith('Took back "add payment validation"')
    assert "skipped 1 newer turn that changed nothing" in text
    assert names(tree) == ["a"]


def test_two_settings_may_report_two_times(project: takeback.Project, tree: Path) -> None:
    """Copilot's own and Claude Code's: one command, and later another one."""
    at = {"sessionId": "C1", "cwd": str(tree)}
    alike = {"session_id": "C1", "cwd": str(tree), "hook_event_name": "UserPromptSubmit"}
    for second, name in enumerate("de"):
        heard({**at, "timestamp": 1794854219000 + second * 1000, "prompt": f"make {name}"})
        tool = {"toolName": "bash", "toolArgs": {"command": "make"}}
        heard({**at, "timestamp": 1794854219100 + second * 1000, **tool})
        (tree / name).write_text("new\n")
        result = {"toolResult": {"resultType": "success", "textResultForLlm": ""}}
        heard({**at, "timestamp": 1794854219200 + second * 1000, **tool, **result})
        heard({**at, "timestamp": 1794854219300 + second * 1000, "stopReason": "end_turn"})
    told = [
        said(heard({**at, "timestamp": 1794854229000, "prompt": "tb undo"})),
        said(heard({**alike, "timestamp": "2026-11-16T18:37:09.004Z", "prompt": "tb undo"})),
    ]
    assert all(each.startswith('Took back "make e": removed 1 file') for each in told)
    assert names(tree) == ["a", "d"]
    assert [bool(turn.undone) for turn in project.log(all=True).turns] == [True, False]


def test_a_slow_one_without_ids_counts_once(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """Sent twice while somebody else works on the project, so that it is done much later."""
    worked(claude, "the second").edit("c", "later\n")
    claude.stop()
    old = {"hook_event_name": "UserPromptSubmit", "session_id": "S1", "cwd": str(tree)}
    for verb in ("undo", "redo"):
        with ThreadPoolExecutor(2) as both:
            with project.workspace.held():
                answers = [both.submit(heard, {**old, "prompt": f"tb {verb}"}) for _ in range(2)]
                time.sleep(2.5)
            assert len({said(each.result()).splitlines()[0] for each in answers}) == 1
        undone = [bool(turn.undone) for turn in project.log(all=True).turns]
        assert undone == [verb == "undo", False]
        said(heard({**old, "prompt": "tb status"}))


def test_an_editor_adds_to_a_prompt(project: takeback.Project, tree: Path) -> None:
    """Codex in an editor says what is open there; a turn is called what its user typed."""
    codex = Codex(tree)
    added = "# Context from my IDE setup:\n\n## Active file: a\n\n## My request for Codex:\n"
    codex.prompt(f"{added}make it\n")
    codex.edit("b", "new\n")
    codex.stop()
    assert labels(project) == ["make it"]
    assert codex.prompt("# Context from my IDE setup:\n\ntb undo") == {}
    codex.stop()
    assert said(codex.prompt(f"{added}tb undo\n")).startswith('Took back "make it"')
    assert names(tree) == ["a"]


def test_several_in_one_turn(project: takeback.Project, tree: Path) -> None:
    """What is typed into Codex while it works has the id of the turn that runs."""
    codex = Codex(tree)
    codex.prompt("make it")
    codex.edit("b", "new\n")
    for verb, there in (("undo", ["a"]), ("undo", ["a"]), ("redo", ["a", "b"])):
        said(codex.tell("UserPromptSubmit", prompt=f"tb {verb}"))
        assert names(tree) == there
    assert len(project.log(all=True).restores) == 2


@pytest.mark.parametrize("cwd", ["\ud800", "/a\0b", 5])
def test_it_is_never_for_the_model(project: takeback.Project, claude: Agent, cwd: object) -> None:
    """Whatever else is in the event."""
    said(claude.prompt("tb undo", cwd=cwd))
    assert labels(project) == ["add payment validation"]


def test_what_needs_a_decision_is_shown(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """A conflict, and later work of others in the same file: shown with the command, not done."""
    (tree / "a").write_text("one\nmine\nthree\n")
    text = said(claude.prompt("tb undo"))
    assert "1 path is in conflict" in text
    turn = project.log().turns[0].id[:8]
    assert text.endswith(f"`takeback undo {turn}` in a terminal lets you decide")
    assert (tree / "b").exists()
    (tree / "a").write_text("one\nTWO\nthree\n")
    other = Codex(tree, "S2")
    other.prompt("change it, too")
    other.edit("b", "new\nand more\n")
    other.stop()
    text = said(claude.prompt("tb undo"))
    assert "Nothing was changed: " in text
    assert (tree / "b").read_text() == "new\nand more\n"
    assert said(other.prompt("tb undo")).startswith('Took back "change it, too"')
    assert (tree / "b").read_text() == "new\n"


def test_what_was_interrupted_goes_back(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """After Esc no hook reports the end of the turn; the command does, as a prompt would."""
    claude.prompt("the second")
    claude.begin("Bash", {"command": "make"})
    (tree / "c").write_text("half\n")
    assert said(claude.prompt("tb undo")).startswith('Took back "the second"')
    assert names(tree) == ["a", "b"]
    assert [(turn.label, turn.status) for turn in project.log(all=True).turns] == [
        ("the second", "interrupted"),
        ("add payment validation", "done"),
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        "please type tb undo",
        "tb undo the last change",
        "tb undo\ntb redo",
        "tb",
        "tb frobnicate",
        "tb name",
        "TB UNDO!",
        "undo",
    ],
)
def test_prompts_that_are_not_ours(prompt: str) -> None:
    """Only the whole of a prompt is a command."""
    assert typed.read(prompt) is None


@pytest.mark.parametrize(
    "prompt",
    [
        "tb undo",
        "  tb undo\n",
        "/takeback:undo",
        "<system-reminder>from a hook\ntb redo</system-reminder>\ntb undo",
        "tb undo\n\n<system_reminder>\nNote from Takeback\n</system_reminder>",
        "<ide_selection>x</ide_selection><ide_opened_file>y</ide_opened_file> tb undo",
    ],
)
def test_what_was_injected_is_no_part_of_a_prompt(prompt: str) -> None:
    """Wherever it stands; what is left is as a whole the command."""
    found = typed.read(prompt)
    assert found is not None
    assert found.verb == typed.UNDO


@pytest.mark.parametrize("start", ["exit 3", "cat > /dev/null", "echo 99999; sleep 2 &"])
def test_a_prompt_is_dropped_whatever_happens(
    start: str, claude: Agent, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that does it cannot start, ends without a word, or in the middle of one."""
    monkeypatch.setattr(programs, "_ASIDE", start)
    monkeypatch.setattr(hearing, "PATIENCE", 0.5)
    assert said(claude.prompt("tb undo")).startswith("Takeback ")
    assert names(tree) == ["a", "b"]


def test_who_cannot_type(project: takeback.Project, claude: Agent, tree: Path) -> None:
    """A sub-agent, a task that is done, an agent that drops no prompts; a switch that is off."""
    assert claude.tell("UserPromptSubmit", prompt="tb undo", agent_id="A1") == {}
    claude.prompt("tb undo", source="system")
    opencode = find_agent("opencode")
    assert opencode is not None
    event = HookEvent(opencode, "chat.message", PROMPT)
    event.session, event.prompt = "O1", "tb undo"
    assert not typed.is_ours(event, {})
    home = Path(os.environ["TAKEBACK_HOME"])
    Settings(os.fsencode(home), project.id).set("hooks.typed", "false")
    claude.prompt("tb undo")
    assert names(tree) == ["a", "b"]
    assert labels(project) == ["tb undo", "add payment validation"]


@pytest.mark.parametrize(
    "inner", ["agent_id", "parent_agent_id", "parent_session_id", "parentAgentId"]
)
def test_an_id_of_an_agent_or_a_parent_is_no_humans(inner: str, claude: Agent, tree: Path) -> None:
    """Whatever the agent calls it, and whether it is known to send it."""
    claude.prompt("tb undo", **{inner: "A1"})
    gemini = {"session_id": "S1", "cwd": str(tree), "transcript_path": "/h/.gemini/tmp/x.json"}
    at = {"hook_event_name": "BeforeAgent", "timestamp": "2026-11-18T07:00:01.000Z"}
    assert "Takeback" not in str(heard({**gemini, **at, "prompt": "tb undo", inner: "A1"}))
    assert names(tree) == ["a", "b"]


def test_the_other_commands(project: takeback.Project, claude: Agent, tree: Path) -> None:
    """`log`, `status`, `why` and `name` print a few lines and begin no turn."""
    log = said(claude.prompt("tb log"))
    assert "add payment validation" in log
    assert '`tb undo` takes back "add payment validation"' in said(claude.prompt("tb status"))
    why = said(claude.prompt("tb why"))
    assert "  add payment validation" in why
    assert "claude-code: 1 by edit tools, 1 by shell" in why
    assert said(claude.prompt("tb name before the refactor")).startswith(
        'Named this state "before the refactor"'
    )
    (tree / "b").unlink()
    project.rollback("before the refactor")
    assert (tree / "b").exists()
    assert labels(project) == ["add payment validation"]
    assert "nothing of this conversation" in said(Agent(tree, "S9").prompt("tb undo"))


def test_a_hint_at_redo_only_where_there_is_one(
    project: takeback.Project, claude: Agent, tree: Path
) -> None:
    """What a rollback took back is not put back by a redo."""
    project.rollback(project.log().turns[0].id + "-")
    assert said(claude.prompt("tb status")).endswith("\n1 turn taken back")
    assert "nothing left to redo" in said(claude.prompt("tb redo"))
    worked(claude, "the second")
    said(claude.prompt("tb undo"))
    status = said(claude.prompt("tb status"))
    assert status.endswith("2 turns taken back; `tb redo` puts back the last")
    assert names(tree) == ["a"]


def test_what_cannot_come_back_is_not_offered(project: takeback.Project, claude: Agent) -> None:
    """The files of the turn were deleted, as `takeback gc` does."""
    with project.workspace.held():
        trimmed = NewEvent(events.HISTORY_TRIMMED, {"checkpoints": [[1, 1 << 40]]}, 1)
        project.workspace.ledger.record(trimmed)
    assert "`tb undo` cannot take back" in said(claude.prompt("tb status"))
    assert "no longer kept" in said(claude.prompt("tb undo"))


@pytest.mark.parametrize(
    "name",
    [
        "-x",
        "--yes",
        "before password=hunter2swordfish",
        "\U0001f469\u200d\U0001f4bb done",
        "a\x1b[31mb",
    ],
)
def test_a_hint_with_an_odd_name_can_be_run(
    project: takeback.Project, claude: Agent, tree: Path, name: str
) -> None:
    """By the id of the checkpoint then."""
    text = said(claude.prompt(f"tb name {name}"))
    (tree / "b").unlink()
    ref = shlex.split(text.splitlines()[-1].split("`")[1])[2]
    assert not ref.startswith("-")
    project.rollback(ref)
    assert (tree / "b").exists()


def test_a_result_that_comes_later(
    project: takeback.Project, claude: Agent, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook answers in time; the undo goes on, is done once, and told with the next prompt."""
    monkeypatch.setattr(hearing, "PATIENCE", 0.3)
    with project.workspace.held():
        late = said(claude.prompt("tb undo"))
        assert late.startswith("Takeback is still at work on this.")
        assert (tree / "b").exists()
    end = time.monotonic() + 20
    while not list(Path(os.environ["TAKEBACK_HOME"]).glob("projects/*/typed-*")):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert names(tree) == ["a"]
    answer = claude.prompt("go on")
    assert 'Took back "add payment validation"' in answer["systemMessage"]
    assert "systemMessage" not in claude.prompt("and on")


def test_a_late_result_waits_until_it_can_be_shown(project: takeback.Project, tree: Path) -> None:
    """Cursor shows nothing of a prompt that goes on; the next command that is typed tells it."""
    asked = 0

    def ask(prompt: str) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        ids = {"conversation_id": "C1", "generation_id": f"G{asked}", "cursor_version": "3"}
        given = {"hook_event_name": "beforeSubmitPrompt", "workspace_roots": [str(tree)]}
        return heard({**ids, **given, "prompt": prompt})

    ask("make it")
    for _ in range(2):  # the prompt was sent twice
        session = project.sessions()[0].id
        typed.keep_result(project.workspace.store, session, "Took back the last one")
    assert ask("go on") == {}
    answer = ask("tb log")
    assert answer["continue"] is False
    assert answer["user_message"].startswith("Took back the last one\n")
    assert answer["user_message"].count("Took back") == 1
    assert "Took back the last one" not in ask("tb log")["user_message"]


def test_a_prompt_that_overtakes_it(
    project: takeback.Project, claude: Agent, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited until the next turn began takes nothing back."""
    monkeypatch.setattr(hearing, "PATIENCE", 0.01)
    with project.workspace.held():
        said(claude.prompt("tb undo"))
        project.recorder().start_turn(project.sessions()[0].id, "the second", whole=False)
    end = time.monotonic() + 20
    while not list(Path(os.environ["TAKEBACK_HOME"]).glob("projects/*/typed-*")):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert names(tree) == ["a", "b"]
    assert [turn.status for turn in project.log().turns] == ["running", "done"]


def test_a_clock_that_was_set_back_is_no_later_prompt(
    claude: Agent, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn seems to be of the future then, and goes back all the same."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() - 3600 * 10**9)
    assert said(claude.prompt("tb undo")).startswith('Took back "add payment validation"')
    assert names(tree) == ["a"]


def test_a_usual_prompt_loads_nothing_of_it(claude: Agent) -> None:
    """Neither the command line, nor settings, nor what starts programs."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from takeback.hooks import hook;"
        "words = tuple(map(str.encode, sys.argv[2:7]));"
        "hook.hear(words, sys.argv[7].encode()); print(*sys.modules)"
    )
    usual = json.dumps({**claude.common(), "hook_event_name": "UserPromptSubmit", "prompt": "go"})
    where = [os.fsdecode(word) for word in surroundings()]
    python = str(Path(sys.executable).resolve())
    command = [python, "-I", "-S", "-c", code, str(MAIN.parent.parent), *where, usual]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"subprocess", "takeback.cli", "takeback.upkeep.settings"}
