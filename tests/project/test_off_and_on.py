"""`takeback off` and `on`: no agent is recorded in between, and all else works."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from takeback.cli import app
from takeback.hooks import hook

MAIN = str(Path(takeback.__file__).parent / "__main__.py")
Say = Callable[..., str]


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in the project, with a store of their own."""
    assert home.is_dir()
    monkeypatch.chdir(tree)
    (tree / "a.txt").write_text("1\n")


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command; what it printed."""

    def call(*words: str, code: int = 0) -> str:
        assert app.main(list(words)) == code
        captured = capfd.readouterr()
        return captured.out + captured.err

    return call


class Agent:
    """Claude Code, whose events the resident helper hears: it keeps the project open."""

    def __init__(self, home: Path) -> None:
        self._words = (os.fsencode(home), b"/nowhere", b"", os.getcwdb())
        self._listener = hook.HookListener()

    def tell(self, event: str, prompt: str = "", **more: object) -> bytes:
        """The answer to an event."""
        told = {"hook_event_name": event, "session_id": "S", "cwd": os.getcwd(), **more}
        told |= {"prompt_id": prompt, "prompt": prompt} if prompt else {}
        return self._listener.hear(self._words, json.dumps(told).encode())

    def call(self, event: str, prompt: str, id: str) -> bytes:
        """The answer to an event of a shell."""
        given = {"command": "x"}
        return self.tell(
            event, prompt, tool_name="Bash", tool_use_id=id, tool_input=given, tool_response={}
        )

    def works(self, prompt: str, path: Path) -> list[bytes]:
        """The answers to the events of a turn that writes a file."""
        before = [self.tell("UserPromptSubmit", prompt), self.call("PreToolUse", prompt, prompt)]
        path.write_text(prompt)
        return [*before, self.call("PostToolUse", prompt, prompt), self.tell("Stop", prompt)]


@pytest.fixture
def agent(home: Path) -> Agent:
    """An agent that works here."""
    return Agent(home)


def changes(home: Path) -> dict[str, list[str]]:
    """What each turn changed, by its prompt."""
    with takeback.open(".", home=home) as project:
        turns = project.log(all=True).turns
        return {turn.label: sorted(os.fsdecode(c.path) for c in turn.changes) for turn in turns}


def test_hooks_record_nothing_while_it_is_off(
    say: Say, agent: Agent, home: Path, tree: Path
) -> None:
    """They answer without a word, and the log has nothing of it; before and after it has all."""
    agent.works("before", tree / "a.txt")
    assert "now off" in say("off")
    with takeback.open(".", home=home) as project:
        before = project.status(), project.log(all=True)
    assert agent.tell("SessionStart") == b""
    assert set(agent.works("between", tree / "b.txt")) == {b""}
    with takeback.open(".", home=home) as project:
        assert (project.status(), project.log(all=True)) == before
    assert "now on" in say("on")
    agent.works("after", tree / "c.txt")
    assert changes(home) == {"before": ["a.txt"], "after": ["c.txt"]}
    assert hook.read(os.fsencode(home)) == []


def test_what_changed_in_between_is_yours(say: Say, agent: Agent, home: Path, tree: Path) -> None:
    """Also in the middle of a turn and of a command: an undo takes back the rest, and keeps it."""
    agent.tell("UserPromptSubmit", "go")
    agent.call("PreToolUse", "go", "T1")
    (tree / "a.txt").write_text("agent\n")
    assert "1 running turn ended here" in say("off")
    (tree / "mine.txt").write_text("mine")
    say("on")
    agent.call("PostToolUse", "go", "T1")
    agent.call("PreToolUse", "go", "T2")
    (tree / "late.txt").write_text("agent")
    agent.call("PostToolUse", "go", "T2")
    agent.tell("Stop", "go")
    assert changes(home) == {"go": ["a.txt", "late.txt"]}
    say("undo", "--yes")
    files = {path.name: path.read_text() for path in tree.iterdir()}
    assert files == {"a.txt": "1\n", "mine.txt": "mine"}


def test_what_you_ask_for_works(say: Say, tree: Path, home: Path) -> None:
    """A checkpoint, undo and log; nothing is written into the project."""
    say("run", "-q", "--", "sh", "-c", "echo 2 > a.txt")
    say("off")
    (tree / "b.txt").write_text("b")
    assert "1 changed" in say("checkpoint", "-m", "by hand")
    say("undo", "--yes")
    assert (tree / "a.txt").read_text() == "1\n"
    assert "a.txt" in say("log", "--all")
    assert sorted(path.name for path in tree.iterdir()) == ["a.txt", "b.txt"]
    assert "on = false" in next(home.glob("projects/*/config.toml")).read_text()


def test_a_run_of_the_user_is_covered_while_agents_are_paused(say: Say, tree: Path) -> None:
    """A pause is about the calls of agents; what the user starts can be taken back."""
    say("pause")
    say("run", "-q", "--", "sh", "-c", "echo 2 > a.txt")
    say("undo", "--yes")
    assert (tree / "a.txt").read_text() == "1\n"


def test_run_says_that_it_is_off(say: Say, home: Path, tree: Path) -> None:
    """In one line; the command runs, and its exit code is ours."""
    say("off")
    command = ["--", sys.executable, "-c", "open('b', 'w'); raise SystemExit(3)"]
    said = say("run", *command, code=3)
    assert said == (
        "takeback: off in this project, so nothing is recorded; `takeback on` turns it on\n"
    )
    assert say("run", "-q", *command, code=3) == ""
    told = json.loads(say("run", "--json", *command, code=3))
    assert told == {"covered": False, "recording": False, "exit_code": 3, "signal": None}
    (tree / "b").unlink()
    assert "off in this project" in say("run", "--only-covered", *command, code=1)
    assert not (tree / "b").exists()
    assert changes(home) == {}


def test_a_run_that_goes_on_is_ended(say: Say, home: Path, tree: Path) -> None:
    """Turned off while it runs, what it did until then is its turn, and nothing else."""
    script = "open('one', 'w'); print(flush=True); input(); open('two', 'w')"
    words = [sys.executable, "-I", MAIN, "run", "--", sys.executable, "-c", script]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"\n"
        say("off")
        process.communicate(b"\n")
    assert process.returncode == 0
    say("on")
    assert list(changes(home).values()) == [["one"]]
    assert (tree / "two").exists()


def test_it_is_shown(say: Say, home: Path) -> None:
    """By bare `takeback`, by `doctor`, by `config`, and by the commands themselves."""
    say("checkpoint")
    assert json.loads(say("--json"))["recording"] is True
    assert "already on" in say("on")
    told = json.loads(say("off", "--json"))
    assert (told["recording"], told["changed"], told["turns_ended"]) == (False, True, 0)
    assert "already off" in say("off")
    assert "Recording  off" in say()
    assert json.loads(say("--json"))["recording"] is False
    assert "Takeback is off here" in say("doctor")
    assert "recording.on" in say("config")
    told = json.loads(say("on", "--json"))
    assert (told["recording"], told["changed"]) == (True, True)
    assert told["checkpoint"]["new"] is False
    assert "off" not in say("doctor").replace("offers", "")
    (home / "config.toml").write_text("[recording]\non = false\n")
    assert "Recording  off" in say()
    say("on")
    assert json.loads(say("--json"))["recording"] is True


def test_a_folder_that_is_no_project_yet_can_be_off(
    say: Say, agent: Agent, home: Path, tree: Path
) -> None:
    """The first prompt there records nothing, either."""
    say("off")
    agent.works("go", tree / "b.txt")
    assert changes(home) == {}
