"""Every event of an agent counts once, whoever handles it, how often, how late and how large."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import MAIN, Agent, heard, hook, surroundings
from askers import built
from residents import NEEDS_PROC, helpers, until
from takeback.disk import operations
from takeback.hooks import helper
from takeback.hooks import hook as hearing

Event = dict[str, Any]
START = {"hook_event_name": "SessionStart", "source": "resume"}
END = {"hook_event_name": "SessionEnd", "reason": "other"}
STOP = {"hook_event_name": "Stop"}
SHELL = {"tool_name": "Bash", "tool_input": {"command": "make"}}


class Old:
    """Claude Code up to 2.1.112, or up to 1.0.128: no ids of prompts, nor of tool calls."""

    def __init__(self, tree: Path, *, calls: bool = True) -> None:
        self.tree = tree
        self._calls = calls
        self._number = 0

    def event(self, said: Event) -> Event:
        """An event as it is sent."""
        return {"session_id": "S1", "cwd": str(self.tree), **said}

    def tell(self, said: Event) -> bytes:
        """Tell an event; what is answered."""
        return hearing.hear(surroundings(), json.dumps(self.event(said)).encode())

    def prompt(self, text: str) -> None:
        """Somebody asks for something."""
        self.tell(asks(text))

    def before(self, command: str = "make") -> Event:
        """A shell command begins; how it ends."""
        self._number += 1
        id = {"tool_use_id": f"T{self._number}"} if self._calls else {}
        call = {"tool_name": "Bash", "tool_input": {"command": command}, **id}
        self.tell({"hook_event_name": "PreToolUse", **call})
        return {"hook_event_name": "PostToolUse", **call, "tool_response": "ok"}

    def shell(self, name: str, command: str = "make") -> None:
        """A shell command that makes a file."""
        after = self.before(command)
        (self.tree / name).write_text("by the agent\n")
        self.tell(after)

    def turn(self, text: str, *names: str) -> None:
        """A whole turn."""
        self.prompt(text)
        for name in names:
            self.shell(name)
        self.tell(STOP)


def asks(text: str) -> Event:
    """A prompt."""
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def takeback(tree: Path, *words: str) -> str:
    """What a command of the user says."""
    command = [sys.executable, "-I", "-S", str(MAIN), "-C", str(tree), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def logged(tree: Path) -> list[tuple[str, str]]:
    """The prompts in the log and how they ended, the oldest first."""
    turns = json.loads(takeback(tree, "log", "--all", "--json"))["turns"]
    return [(turn["label"], turn["status"]) for turn in reversed(turns)]


def names(tree: Path) -> set[str]:
    """The files in the tree."""
    return {path.name for path in tree.iterdir()}


@pytest.fixture
def project(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project."""
    monkeypatch.setattr(operations, "sync", False)  # nothing waits for the disk
    assert home.is_dir()
    (tree / "a").write_text("a\n")
    return tree


# -- told late -----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["after the prompt", "while a command runs"])
def test_an_end_that_waited_for_the_lock_ends_no_later_turn(when: str, project: Path) -> None:
    """It tells for which prompt it is: after the next one, the session goes on."""
    agent = Agent(project)
    agent.prompt("one")
    agent.shell(one="by the agent\n")
    agent.stop()
    late = {**agent.common(), **END}
    agent.tell("SessionStart", source="resume")
    agent.prompt("two")
    if when == "after the prompt":
        heard(late)
    call = agent.begin("Bash", {"command": "make"})
    if when == "while a command runs":
        heard(late)
    (project / "two").write_text("by the agent\n")
    call.over()
    agent.stop()
    assert logged(project) == [("one", "done"), ("two", "done")]
    takeback(project, "undo")
    assert names(project) == {"a", "one"}
    agent.tell("SessionEnd", reason="other")
    assert "ended" in takeback(project, "sessions")


class Slept:
    """A helper that sleeps while hooks ask it, and wakes up much later."""

    def __init__(self, tree: Path, home: Path, client: list[str]) -> None:
        self._home = home
        self._client = client
        said = json.dumps({"session_id": "S0", "cwd": str(tree), **START}).encode()
        hook(said, TAKEBACK_HELPER="1")
        until(lambda: helpers(home) and (home / "helper.sock").exists(), "a helper")
        self._signal(signal.SIGSTOP)

    def asked(self, said: Event) -> None:
        """Ask it; the hook gives up soon, and handles the event itself."""
        env = {**os.environ, "TAKEBACK_HELPER": "1"}
        data = json.dumps(said).encode()
        done = subprocess.run(self._client, input=data, env=env, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")

    def wakes(self) -> None:
        """It goes on, and does what it can."""
        self._signal(signal.SIGCONT)
        said = json.dumps({"session_id": "S0", "hook_event_name": "Notification"}).encode()
        until(lambda: helper.ask(os.fsencode(self._home), surroundings(), said) is not None, "it")
        time.sleep(0.3)  # until it is done with what was asked before

    def ends(self) -> None:
        """It is gone."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for pid in helpers(self._home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def c_client(folder: Path) -> list[str]:
    """The client in C, with little patience."""
    python = [sys.executable, "-I", "-S", str(MAIN), "hook"]
    return [str(built(folder, "-DPATIENCE_MS=100")), *python]


def python_client(_folder: Path) -> list[str]:
    """The client in Python, with little patience."""
    source = f"""import sys
sys.path.insert(0, {str(MAIN.parents[1])!r})
from takeback.hooks import helper, hook
helper.PATIENCE = 0.1
hook.finish()
"""
    return [sys.executable, "-I", "-S", "-c", source]


@pytest.fixture(params=[c_client, python_client])
def slept(
    request: pytest.FixtureRequest, project: Path, home: Path, tmp_path: Path
) -> Iterator[Slept]:
    """A helper that sleeps."""
    make: Callable[[Path], list[str]] = request.param
    found = Slept(project, home, make(tmp_path))
    yield found
    found.ends()


@NEEDS_PROC
def test_a_helper_that_slept_ends_nothing(slept: Slept, project: Path) -> None:
    """The session went on; what its shell makes after the helper woke is still the agent's."""
    agent = Old(project)
    agent.turn("one", "b")
    slept.asked(agent.event(STOP))
    slept.asked(agent.event(END))
    agent.tell(START)
    agent.prompt("two")
    after = agent.before()
    slept.wakes()
    (project / "c").write_text("by the agent\n")
    agent.tell(after)
    agent.tell(STOP)
    assert logged(project) == [("one", "done"), ("two", "done")]
    takeback(project, "undo")
    assert names(project) == {"a", "b"}


@NEEDS_PROC
def test_a_helper_that_slept_begins_nothing(slept: Slept, project: Path) -> None:
    """A prompt that the hook recorded meanwhile is no second turn, also without an id."""
    agent = Old(project)
    slept.asked(agent.event(asks("one")))
    agent.shell("b")
    slept.wakes()
    agent.shell("c")
    agent.tell(STOP)
    assert logged(project) == [("one", "done")]
    takeback(project, "undo")
    assert names(project) == {"a"}


class Heard:
    """Events that are handled here, each of which can be handled once more at any time."""

    def __init__(self, tree: Path) -> None:
        self._agent = Old(tree, calls=False)

    def tell(self, said: Event) -> Callable[[], bytes]:
        """Handle an event; how to handle it again."""
        words, data = surroundings(), json.dumps(self._agent.event(said)).encode()
        hearing.hear(words, data)
        return lambda: hearing.hear(words, data)


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "late"])
def test_no_event_counts_twice(project: Path, at_once: bool) -> None:
    """Each event of a session without ids, handled again at once, or when others went on."""
    agent, again = Heard(project), []

    def tell(name: str, **more: object) -> None:
        again.append(agent.tell({"hook_event_name": name, **more}))
        if at_once or name == "Stop" or "make install" in str(more):
            for each in again[-1:] if at_once else again:
                assert each() == b""

    for number in "12":
        tell("SessionStart", source="startup")
        tell("UserPromptSubmit", prompt="the same")
        for command in ("make", "make", "make install"):
            tell("PreToolUse", tool_name="Bash", tool_input={"command": command})
            with (project / f"b{number}").open("a") as file:
                file.write("by the agent\n")
            call = {"tool_name": "Bash", "tool_input": {"command": command}}
            tell("PostToolUse", **call, tool_response="ok")
            (project / "mine").write_text(f"{time.monotonic_ns()}\n")
        tell("Stop")
        done = "<task-notification><task-id>t</task-id></task-notification>"
        tell("UserPromptSubmit", prompt=done)
        tell("Stop")
        tell("SessionEnd", reason="other")
    assert logged(project) == [("the same", "done")] * 2
    mine = (project / "mine").read_text()
    takeback(project, "undo")
    assert names(project) == {"a", "b1", "mine"}
    takeback(project, "undo")
    assert names(project) == {"a", "mine"}
    assert (project / "mine").read_text() == mine


# -- without ids ---------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [True, False], ids=["2.1.112", "1.0.128"])
def test_each_prompt_is_a_turn_of_its_own(project: Path, calls: bool) -> None:
    """Without `prompt_id`, and with the same words, `undo` takes back one prompt."""
    agent = Old(project, calls=calls)
    for name in "bcd":
        agent.turn("go on", name)
    takeback(project, "undo")
    assert names(project) == {"a", "b", "c"}
    assert logged(project) == [("go on", "done")] * 3


def test_a_tool_without_an_id_ends_when_it_says_so(project: Path) -> None:
    """What the user does between two calls stays when the turn is taken back."""
    agent = Old(project, calls=False)
    agent.prompt("go")
    agent.shell("b")
    (project / "mine").write_text("mine\n")
    agent.shell("c")
    agent.tell(STOP)
    takeback(project, "undo")
    assert names(project) == {"a", "mine"}


def test_tools_without_an_id_that_run_at_once(project: Path) -> None:
    """Each call ends with its own answer, told by tool and input."""
    agent = Old(project, calls=False)
    agent.prompt("go")
    first, second = agent.before("make b"), agent.before("make c")
    agent.tell(first)
    (project / "c").write_text("by the agent\n")
    agent.tell(second)
    (project / "mine").write_text("mine\n")
    agent.tell(STOP)
    takeback(project, "undo")
    assert names(project) == {"a", "mine"}


def test_hooks_that_are_there_twice(project: Path) -> None:
    """The plugin and the settings both tell each event; one prompt is one turn all the same."""
    agent = Old(project, calls=False)

    def twice(said: Event) -> None:
        command = [sys.executable, "-I", "-S", str(MAIN), "hook"]
        data = json.dumps(agent.event(said)).encode()
        env = {**os.environ, "TAKEBACK_HELPER": "0"}
        both = [subprocess.Popen(command, stdin=subprocess.PIPE, env=env) for _ in range(2)]
        for each in both:
            each.communicate(data)
            assert each.returncode == 0

    for name in "bc":
        twice(asks("go"))
        twice({"hook_event_name": "PreToolUse", **SHELL})
        (project / name).write_text("by the agent\n")
        twice({"hook_event_name": "PostToolUse", **SHELL, "tool_response": "ok"})
        (project / f"mine {name}").write_text("mine\n")
        twice(STOP)
    assert logged(project) == [("go", "done")] * 2
    takeback(project, "undo")
    assert names(project) == {"a", "b", "mine b", "mine c"}


def test_an_interruption_of_an_earlier_prompt(project: Path, tmp_path: Path) -> None:
    """A record without ids of prompts still ends with an old Esc; a later turn lasted longer."""
    record = tmp_path / "S1.jsonl"
    block = {"type": "text", "text": "[Request interrupted by user]"}
    line = {"type": "user", "message": {"role": "user", "content": [block]}, "uuid": "1"}
    record.write_text(json.dumps({**line, "timestamp": "2026-01-01T10:00:00Z"}) + "\n")
    agent = Old(project)

    def prompt(text: str) -> None:
        agent.tell({**asks(text), "transcript_path": str(record)})

    prompt("one")
    agent.before()
    (project / "b").write_text("by the agent\n")
    prompt("two")
    takeback(project, "undo", "one")
    assert names(project) == {"a"}


# -- large ---------------------------------------------------------------------------------------

LARGE = 65 << 20


def wide(said: Event, field: str, value: str) -> Iterator[bytes]:
    """An event with one field that is large, in front of all others, as the client sends it."""
    yield b'\n {"' + field.encode() + b'": '
    yield value.encode()
    yield b", " + json.dumps(said).encode()[1:]


def written() -> str:
    """What an edit tool was given: the name of the file stands behind its content."""
    content = ("line \\\\ \\u00e9\\n" + "x" * 1000) * (LARGE // 1000)
    return json.dumps({"content": "", "file_path": "b"}).replace('""', f'"{content}"', 1)


def patched() -> str:
    """A patch that names one file where it begins, and another where it ends."""
    middle = ("+" + "x" * 1000 + "\\n") * (LARGE // 1000)
    return f'{{"command": "*** Begin Patch\\n*** Add File: z\\n{middle}*** Add File: b\\n"}}'


def listed() -> str:
    """What a tool answers in many small pieces."""
    lines = '{"lines": ["' + ("+" + "x" * 500 + '", "') * 30 + '"]},'
    return '{"structuredPatch": [' + lines * (LARGE // len(lines) + 1) + "0]}"


def tell_large(client: list[str], pieces: Iterator[bytes], **more: str) -> None:
    """One event to a client."""
    with tempfile.TemporaryFile() as file:
        file.writelines(pieces)
        file.seek(0)
        env = {**os.environ, "TAKEBACK_HELPER": "0", **more}
        done = subprocess.run(client, stdin=file, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_event_that_is_too_large_counts(project: Path, home: Path, tmp_path: Path) -> None:
    """A prompt, an input and an output of more than 64 MiB: what the tool wrote is the agent's.

    Also without a stdout: the pipe of the payload may get its number.
    """
    client = [sys.executable, "-I", "-S", str(MAIN), "hook"]
    if shutil.which("cc"):
        client = [str(built(tmp_path)), *client]
    agent = Old(project)
    hook(json.dumps(agent.event(START)).encode(), TAKEBACK_HELPER="1")
    until((home / "helper.sock").exists, "a helper")
    call = {**agent.event({}), "tool_name": "Write", "tool_use_id": "T1"}
    before, after = ({**call, "hook_event_name": f"{when}ToolUse"} for when in ("Pre", "Post"))
    prompt = agent.event({"hook_event_name": "UserPromptSubmit"})
    try:
        words = "read this: " + "x" * LARGE
        silent = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *client]
        tell_large(silent, wide(prompt, "prompt", json.dumps(words)), TAKEBACK_HELPER="1")
        tell_large(client, wide(before, "tool_input", written()), TAKEBACK_HELPER="1")
        (project / "b").write_text("by the agent\n")
        (project / "beside").write_text("mine\n")
        tell_large(client, wide(after, "tool_response", listed()))
    finally:
        for pid in helpers(home):
            os.kill(pid, signal.SIGKILL)
    (project / "mine").write_text("mine\n")
    agent.tell(STOP)
    ((label, status),) = logged(project)
    assert (label[:12], status) == ("read this: x", "done")
    takeback(project, "undo")
    assert names(project) == {"a", "beside", "mine"}


def test_a_patch_that_is_too_large_may_write_anything(project: Path) -> None:
    """Nobody knows all files that it names, so what changes meanwhile is the agent's."""
    client = [sys.executable, "-I", "-S", str(MAIN), "hook"]
    agent = Old(project)
    agent.prompt("go")
    call = {"tool_name": "apply_patch", "tool_use_id": "T1"}
    before = agent.event({**call, "hook_event_name": "PreToolUse"})
    tell_large(client, wide(before, "tool_input", patched()))
    (project / "b").write_text("by the agent\n")
    agent.tell({**call, "hook_event_name": "PostToolUse"})
    (project / "mine").write_text("mine\n")
    agent.tell(STOP)
    takeback(project, "undo")
    assert names(project) == {"a", "mine"}


def test_what_cannot_be_read_is_told(project: Path, home: Path) -> None:
    """A large payload that is no object is not recorded, and `doctor` says so."""
    takeback(project, "checkpoint")
    assert hook(b'["' + b"x" * LARGE).stdout == b""
    command = [sys.executable, "-I", "-S", str(MAIN), "-C", str(project), "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "too large" in done.stdout
    assert "too large" in (home / "hooks.log").read_text()


def test_what_is_nested_too_deeply_is_given_up_at_once(home: Path) -> None:
    """Nobody waits for minutes until it is known that a payload cannot be read."""
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-I", "-S", str(MAIN), "hook"]
    env = {**os.environ, "TAKEBACK_HELPER": "0"}
    data = b'{"x": ' + b"[" * LARGE
    done = subprocess.run(
        command, input=data, env=env, capture_output=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "too large" in (home / "hooks.log").read_text()
