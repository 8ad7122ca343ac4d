"""Agents that run now: who they are, what a restore under them does, what is refused and when."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pages
import takeback
from agents import MAIN, Agent, Codex, hook
from program import run
from takeback.agents import agent as kinds
from takeback.agents import refusals, registry
from takeback.capture.workspace import Workspace
from takeback.cli.restore_flow import Contents
from takeback.cli.screens.typed import Paper
from takeback.cli.text.restores import plan_text
from takeback.disk import operations
from takeback.hooks import hook as hearing
from takeback.ledger.log import events
from takeback.worktree.swap import PathSwapper
from talks import Claude


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def claude(tree: Path, home: Path) -> Agent:
    """An agent in the middle of its second turn; the first one wrote `one.txt`."""
    del home
    agent = Agent(tree)
    agent.prompt("write one")
    agent.edit("one.txt", "one\n")
    agent.stop()
    agent.prompt("write two")
    agent.edit("two.txt", "two\n")
    return agent


def undo(tree: Path, **options: Any) -> None:  # noqa: ANN401
    """The user takes something back."""
    with takeback.open(tree) as project:
        project.undo(yes=True, **options)


def reasons(tree: Path) -> list[str]:
    """Why calls were refused, as the log has it."""
    with takeback.open(tree) as project:
        found = project.workspace.ledger.events_of(events.CALL_REFUSED)
        return [str((event.payload or {})["why"]) for event in found]


def told(tree: Path, *words: str) -> Any:  # noqa: ANN401 -- JSON
    """What the command line answers."""
    return json.loads(run([*filter(None, words), "--json"], tree, os.environ).stdout)


def shell(agent: Agent) -> str:
    """Why a shell command is refused; empty if it is not."""
    return agent.begin("Bash", {"command": "make"}).refused


def write(agent: Agent, name: str) -> str:
    """Why an edit of a file is refused; empty if it is not."""
    return agent.begin("Write", {"file_path": str(agent.tree / name), "content": ""}).refused


@pytest.mark.parametrize("call", [shell, lambda agent: write(agent, "two.txt")])
def test_the_next_call_is_refused_once(claude: Agent, tree: Path, call: Any) -> None:  # noqa: ANN401
    """With what was taken back, why, and which files to read again; it is no step of its turn."""
    with takeback.open(tree) as project:
        steps = len(project.log().turns[0].steps)
    undo(tree, because="wrong way")
    reason = call(claude)
    assert 'took back what you did for the prompt "write two"' in reason
    assert 'Reason given: "wrong way"' in reason
    assert '"two.txt" (removed)' in reason
    assert "Read these files again" in reason
    with takeback.open(tree) as project:
        assert len(project.log().turns[0].steps) == steps
    assert call(claude) == ""
    assert reasons(tree) == ["restored"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-code", "its next call is refused once, and it is told why"),
        ("cline", "it would not read why a call is refused, so it is told with its next one"),
        ("goose", "it cannot be told"),
        ("run", "it cannot be told"),
        ("my-harness", "its next step raises `RolledBack`"),
    ],
)
def test_the_preview_says_how_it_is_told(name: str, said: str, claude: Agent, tree: Path) -> None:
    """Whether the next call is refused, or the agent hears of it later, or not at all."""
    assert claude.tree == tree
    with takeback.open(tree) as project:
        plan = project.plan_undo()
        (running,) = plan.running
        plan = plan.replace(running=(running.replace(agent=name),))
        paper = Paper()
        plan_text.preview(plan, paper, Contents(project, paper.masker))
    who = f"! {name} (session {running.id[:8]}) may be working on these files"
    assert f"{who}: {said}" in " ".join(paper.text.split())


def test_the_event_of_a_restore_names_who_runs(claude: Agent, tree: Path) -> None:
    """Not one that is between turns, nor one that works on other files."""
    idle, other = Codex(tree, "S2"), Codex(tree, "S3")
    idle.prompt("write three")
    idle.edit("two.txt", "three\n")
    idle.stop()
    other.prompt("write four")
    other.edit("four.txt", "four\n")
    claude.edit("two.txt", "two again\n")
    with takeback.open(tree) as project:
        first = project.log().turns[-1].id
        project.rollback(f"{first}-", paths=["two.txt"], yes=True)
        (done,) = project.workspace.ledger.events_of(events.RESTORE_APPLIED)
        said: dict[str, Any] = dict(done.payload or {})
        named = {each.id: each.agent for each in project.sessions()}
        assert [named[str(id)] for id in said["running"]] == ["claude-code"]


def test_a_long_prompt_leaves_room_for_the_tool(claude: Agent, tree: Path) -> None:
    """`sessions` says what an agent does, on a narrow terminal, too."""
    claude.prompt("go through " + "a/very/long/path" * 9)
    claude.begin("Bash", {"command": "make -j8 all"})
    shown = run(["sessions"], tree, {**os.environ, "COLUMNS": "80"}).stdout.decode()
    doing = shown.splitlines()[-1]
    assert doing.endswith('…": Bash make -j8 all')
    assert len(doing) <= 80


def test_only_what_may_overwrite_is_refused(claude: Agent, tree: Path) -> None:
    """An edit of another file, a look and a sub-agent are no danger; the refusal waits for one."""
    undo(tree)
    assert write(claude, "three.txt") == ""
    assert claude.begin("Read", {"file_path": str(tree / "two.txt")}).refused == ""
    assert claude.begin("Task", {"prompt": "help"}).refused == ""
    assert write(claude, "two.txt") != ""


@pytest.mark.parametrize("name", ["TWO.txt", "../TREE/Two.TXT"])
def test_another_case_may_be_the_same_file(claude: Agent, tree: Path, name: str) -> None:
    """It is, where case makes no difference."""
    undo(tree)
    assert write(claude, name.replace("TREE", tree.name)) != ""


@pytest.mark.parametrize("name", ["~/{}/two.txt", "@{}/two.txt", "@two.txt"])
def test_a_short_name_is_that_of_the_file(
    claude: Agent, tree: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents write to the user's home by `~`, and leave out an `@`."""
    monkeypatch.setenv("HOME", str(tree.parent))
    place = tree.name if name.startswith("~") else str(tree)
    call = claude.begin("Write", {"file_path": name.format(place), "content": ""})
    (tree / "two.txt").write_text("by a short name\n")
    call.over()
    with takeback.open(tree) as project:
        assert project.now().changes == ()
    undo(tree)
    assert claude.begin("Write", {"file_path": name.format(place)}).refused


def test_the_same_call_is_refused_again(claude: Agent, tree: Path) -> None:
    """What is delivered twice is one call, and its answers agree."""
    undo(tree)
    call = claude.begin("Bash", {"command": "make"})
    again = call.tell("PreToolUse")
    assert again == call.answer
    assert call.refused
    assert reasons(tree) == ["restored"]


def test_a_refused_call_that_reports_its_failure_is_no_step(claude: Agent, tree: Path) -> None:
    """Kimi Code does."""
    undo(tree)
    call = claude.begin("Bash", {"command": "make"})
    (tree / "mine.txt").write_text("mine\n")
    call.failed()
    claude.stop()
    with takeback.open(tree) as project:
        found = [change.path for turn in project.log(all=True).turns for change in turn.changes]
        assert "mine.txt" not in found


def test_who_is_between_turns_is_told_with_its_prompt(tree: Path, home: Path) -> None:
    """Only a turn in the middle of which a restore came is refused anything."""
    del home
    claude = Agent(tree)
    claude.prompt("write two")
    claude.edit("two.txt", "two\n")
    claude.stop()
    undo(tree)
    assert "write two" in str(claude.prompt("go on"))
    assert shell(claude) == ""


def test_who_works_elsewhere_is_not_refused(claude: Agent, tree: Path) -> None:
    """An undo of another session's files concerns nobody else."""
    other = Codex(tree, "S2")
    other.prompt("write three")
    other.edit("three.txt", "3\n")
    with takeback.open(tree) as project:
        (turn,) = [turn for turn in project.log().turns if turn.agent == "codex"]
        report = project.undo(turn.id, yes=True)
        assert [each.agent for each in report.plan.running] == ["codex"]
    assert shell(claude) == ""
    assert "what you did" in shell(other)


def test_what_was_put_back_at_once_refuses_nothing(claude: Agent, tree: Path) -> None:
    """The net effect counts, and the preview of the redo says so."""
    undo(tree)
    shown = run(["redo", "--dry-run"], tree, os.environ)
    said = (shown.stdout + shown.stderr).decode()
    assert "refused once, and it is told why, if it heard of the undo" in said
    with takeback.open(tree) as project:
        project.redo(yes=True)
    assert shell(claude) == ""


def test_who_asks_is_exempt(claude: Agent, tree: Path) -> None:
    """By a command of its own, or by a prompt that is handled for it."""
    call = claude.begin("Bash", {"command": "takeback undo --yes"})
    with takeback.open(tree) as project:
        assert project.undo(yes=True).plan.running == ()
    call.over()
    assert shell(claude) == ""
    with takeback.open(tree) as project:
        session = project.sessions()[0].id
        project.redo(yes=True, asker=session)
    assert shell(claude) == ""


@pytest.mark.parametrize(
    "running",
    [
        ("Bash", {"command": "cd ~/src/takeback && make test"}),
        ("Bash", {"command": "make -C /srv/tb"}),
        ("Task", {"description": "Explain takeback undo", "prompt": "takeback undo"}),
    ],
    ids=["folder", "short", "sub-agent"],
)
def test_a_name_alone_asks_for_nothing(
    running: tuple[str, dict[str, str]], claude: Agent, tree: Path
) -> None:
    """What runs in a folder of that name, or a sub-agent that is told of it, is not the asker."""
    claude.begin(*running)
    undo(tree)
    assert shell(claude)


def test_a_sub_agent_is_refused_by_itself(claude: Agent, tree: Path) -> None:
    """It reads nothing of what its session is told."""
    undo(tree)
    inner = {"agent_id": "A1"}
    assert claude.begin("Bash", {"command": "make"}, **inner).refused
    assert claude.begin("Bash", {"command": "make"}, **inner).refused == ""
    assert shell(claude)
    assert shell(claude) == ""


def test_calls_at_once_are_refused_once(claude: Agent, tree: Path) -> None:
    """Of several hooks that run at the same time, one refuses, where no conversation is known."""
    undo(tree)
    payloads = [
        {
            **claude.common(),
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_use_id": f"at-once-{n}",
        }
        for n in range(3)
    ]
    with ThreadPoolExecutor() as pool:
        answers = list(
            pool.map(lambda payload: hook(json.dumps(payload).encode()).stdout, payloads)
        )
    assert sum(b'"deny"' in answer for answer in answers) == 1
    assert reasons(tree) == ["restored"]


def answers(claude: Claude, message: str, *numbers: int) -> None:
    """The model answers with calls, each of which is a line of the conversation."""
    for number in numbers:
        use = {"type": "tool_use", "id": f"S1-T{number}", "name": "Bash", "input": {}}
        said = {"role": "assistant", "id": message, "content": [use]}
        claude.talk.add("assistant", message=said)


@pytest.fixture
def talking(tree: Path, home: Path, tmp_path: Path) -> Claude:
    """Claude Code in a turn that wrote `two.txt` by its first call."""
    del home
    claude = Claude(tree, tmp_path / "talks")
    claude.asks("write two")
    answers(claude, "msg_1", 1)
    claude.edit("two.txt", "two\n")
    return claude


def test_the_rest_of_an_answer_is_refused_too(talking: Claude, tree: Path) -> None:
    """The model made those calls before it read why; what touches nothing of it is made."""
    undo(tree, because="wrong way")
    answers(talking, "msg_2", 2, 3, 4, 5)
    assert "wrong way" in shell(talking)
    assert write(talking, "three.txt") == ""
    assert "wrong way" in write(talking, "two.txt")
    assert "wrong way" in shell(talking)
    answers(talking, "msg_3", 6, 7)
    assert (shell(talking), write(talking, "two.txt")) == ("", "")
    assert reasons(tree) == ["restored"] * 3


@pytest.mark.parametrize(
    ("message", "is_refused"), [("msg_2", True), ("msg_3", False), ("", False)]
)
def test_a_call_that_is_written_late(
    message: str, is_refused: bool, talking: Claude, tree: Path
) -> None:
    """Claude Code writes its conversation a little later; without the line the call is made."""
    undo(tree)
    answers(talking, "msg_2", 2)
    assert shell(talking)
    writing = threading.Timer(0.2, answers, (talking, message, 3)) if message else None
    if writing is not None:
        writing.start()
    began = time.monotonic()
    assert (shell(talking) != "") == is_refused
    assert time.monotonic() - began < 5
    if writing is not None:
        writing.join()


def test_a_call_waits_for_a_restore(
    claude: Agent, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beyond the patience that other events have; then it is refused."""
    held = Workspace.held
    monkeypatch.setattr(
        Workspace, "held", lambda work, patience=0.1: held(work, min(patience, 0.1))
    )
    swapped, go_on = threading.Event(), threading.Event()

    def restore() -> None:
        with takeback.open(tree) as project:
            project.on_restore(lambda _: None)
            project.undo(yes=True)

    def slowly(*given: Any, **more: Any) -> None:  # noqa: ANN401
        apply(*given, **more)
        swapped.set()
        go_on.wait(20)

    apply = PathSwapper.apply
    monkeypatch.setattr(PathSwapper, "apply", slowly)
    thread = threading.Thread(target=restore)
    thread.start()
    assert swapped.wait(20)
    threading.Timer(0.5, go_on.set).start()
    call = claude.begin("Bash", {"command": "make"})
    thread.join()
    assert "write two" in call.refused, call.answer


OF_ITS_OWN = {"cline": 120, "goose": 30, "windsurf": 60}
"""Seconds, for those whose settings have no time limit; that of Windsurf is not known."""


def limit_in_settings(agent: kinds.Agent) -> float:
    """Seconds that an agent gives the hook before a call."""
    name = agent.event_of(kinds.BEFORE_TOOL)
    if agent.form != kinds.FILES:
        text = json.dumps(agent.groups("", "")[name])
    else:
        text = next(iter(agent.files("", "").values()))
        text = json.dumps(json.loads(text)["hooks"][name]) if text.startswith("{") else text
    found = re.search(r'(?:"timeout(?:Sec)?": |\bLOOK = )([\d_]+)', text)
    limit = int(found[1]) if found else OF_ITS_OWN[agent.name]
    return limit / 1000 if limit > 1000 else limit


@pytest.mark.parametrize("agent", registry.installable().values(), ids=registry.installable())
def test_a_call_waits_until_shortly_before_its_agent_gives_up(agent: kinds.Agent) -> None:
    """Two seconds before the time limit of the hook, counted from when the agent started it."""
    event = kinds.HookEvent(agent, agent.event_of(kinds.BEFORE_TOOL), kinds.BEFORE_TOOL)
    waits = hearing._deadline(event) - time.monotonic()
    assert 20 < waits <= limit_in_settings(agent) - 2


def test_the_page_says_how_each_agent_is_told() -> None:
    """By what each agent can do; `UPDATE_SCREENS=1` writes the table."""
    path = pages.ROOT / "docs" / "agents.md"
    page = path.read_text()
    known = [agent for agent in registry.REGISTERED if agent.name != "unknown"]
    for how, head, also in (
        (refusals.REFUSED, "| its next call is refused |", ""),
        (refusals.AFTERWARDS, "| with its next prompt or tool,", ""),
        (refusals.NEVER, "| not at all |", ", `takeback run`"),
    ):
        (row,) = [line for line in page.splitlines() if line.startswith(head)]
        names = ", ".join(sorted(a.title for a in known if refusals.told(a.name) == how))
        wanted = f"{row.rsplit('|', 2)[0]}| {(names + also).removeprefix(', ')} |"
        if pages.UPDATE:
            path.write_text(page := page.replace(row, wanted))
        else:
            assert row == wanted


def test_a_pause_lasts_until_it_is_resumed(claude: Agent, tree: Path) -> None:
    """All sessions or one: calls are refused, prompts are let through; commands show it."""
    other = Codex(tree, "S2")
    other.prompt("beside")
    with takeback.open(tree) as project:
        (own,) = [each.id for each in project.sessions() if each.agent == "claude-code"]
    assert told(tree, "pause", own[:8])["paused"] == [own]
    assert "paused by the user" in shell(claude)
    assert "paused by the user" in claude.begin("Read", {"file_path": "one.txt"}).refused
    assert shell(other) == ""
    claude.stop()
    assert "paused by the user" in str(claude.prompt("go on"))
    assert told(tree, "")["paused"] == [own]
    assert told(tree, "pause")["all_paused"]
    assert "paused by the user" in shell(other)
    assert run(["resume", own], tree, os.environ).returncode == 2
    assert [each["paused"] is None for each in told(tree, "sessions")["sessions"]] == [False, False]
    assert b"all agents are paused" in run(["doctor"], tree, os.environ).stdout
    assert told(tree, "resume") == {**told(tree, "resume"), "changed": True}
    assert (shell(claude), shell(other)) == ("", "")
    assert set(reasons(tree)) == {"paused"}


def test_whose_process_is_unknown_is_silent(claude: Agent, tree: Path) -> None:
    """In the middle of a turn: it may run, so a preview names it; between turns it is idle."""
    (session,) = told(tree, "sessions")["sessions"]
    assert (session["status"], session["now"]["alive"]) == ("silent", None)
    assert " silent since " in run(["sessions"], tree, os.environ).stdout.decode()
    assert [each["alive"] for each in told(tree, "undo", "--dry-run")["running"]] == [None]
    claude.stop()
    (session,) = told(tree, "sessions")["sessions"]
    assert (session["status"], session["now"]) == ("idle", None)


def test_who_runs_is_shown(tree: Path, home: Path) -> None:
    """By the process that had the hook run: gone, it is silent, and no preview names it."""
    del home
    given = {"session_id": "S1", "cwd": str(tree), "prompt_id": "P1"}
    prompt = {**given, "hook_event_name": "UserPromptSubmit", "prompt": "Fix it\nplease"}
    call = {
        **given,
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "npm test"},
        "tool_use_id": "T1",
    }
    line = f"exec {sys.executable} -I -S {MAIN} hook {tree}"
    agent = (
        "import subprocess, sys\n"
        "for payload in sys.argv[2:]:\n"
        "    subprocess.run(['/bin/sh', '-c', sys.argv[1]], input=payload.encode(), check=True)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", agent, line, json.dumps(prompt), json.dumps(call)]
    env = {**os.environ, "TAKEBACK_HELPER": "0"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (session,) = told(tree, "sessions")["sessions"]
        now = session["now"]
        assert (session["status"], now["alive"], now["label"]) == (
            "running",
            True,
            "Fix it\nplease",
        )
        assert (now["tool"], now["doing"]) == ("Bash", "npm test")
        shown = run(["sessions"], tree, os.environ).stdout.decode()
        assert ' on "Fix it": Bash npm test' in shown
        (tree / "made.txt").write_text("made\n")
        (running,) = told(tree, "undo", "--dry-run")["running"]
        assert (running["agent"], running["told"]) == ("claude-code", "refused")
        process.kill()
    assert told(tree, "undo", "--dry-run")["running"] == []
    (session,) = told(tree, "sessions")["sessions"]
    assert (session["status"], session["now"]["alive"]) == ("interrupted", False)
    assert "silent since" in run(["sessions"], tree, os.environ).stdout.decode()
