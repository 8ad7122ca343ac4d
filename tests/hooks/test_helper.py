"""The resident helper: as if it were not there, only faster."""

import contextlib
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from agents import Agent, hook, surroundings
from residents import NEEDS_PROC, PATIENCE, helpers, until
from takeback.hooks import helper
from takeback.hooks import hook as hearing

pytestmark = NEEDS_PROC


@pytest.fixture
def project(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[takeback.Project]:
    """A small project, where hooks may leave a helper behind."""
    monkeypatch.setenv("TAKEBACK_HELPER", "1")
    (tree / "a").write_text("a\n")
    with takeback.open(tree) as opened:
        yield opened
    for pid in helpers(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def payload(tree: Path, **more: str) -> bytes:
    """An event of an agent."""
    said = {"session_id": "S", "cwd": str(tree), "prompt_id": "P", **more}
    return json.dumps(said).encode()


def begun(tree: Path, home: Path) -> int:
    """A helper that one hook left behind; its process."""
    done = hook(payload(tree, hook_event_name="SessionStart"), TAKEBACK_HELPER="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    until(lambda: helpers(home) and (home / "helper.sock").exists(), "a helper")
    (pid,) = helpers(home)
    return pid


def is_answered(home: Path, tree: Path) -> bool:
    """Whether a helper answers."""
    said = payload(tree, hook_event_name="Notification")
    return helper.ask(os.fsencode(home), surroundings(), said) is not None


def test_the_first_hook_leaves_a_helper_behind(
    project: takeback.Project, tree: Path, home: Path
) -> None:
    """Later events are heard by it, with the same result; one helper is enough."""
    assert project.id
    begun(tree, home)
    assert is_answered(home, tree)
    for event in ("UserPromptSubmit", "Stop"):
        said = payload(tree, hook_event_name=event, prompt="go")
        assert helper.ask(os.fsencode(home), surroundings(), said) == b""
    (turn,) = project.log().turns
    assert (turn.label, turn.status) == ("go", "done")
    hook(payload(tree, hook_event_name="SessionStart"), TAKEBACK_HELPER="1")
    assert len(helpers(home)) == 1


def test_only_its_owner_reaches_it(project: takeback.Project, tree: Path, home: Path) -> None:
    """The socket is its owner's alone."""
    assert project.id
    begun(tree, home)
    found = (home / "helper.sock").stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert found.st_mode & 0o077 == 0


def test_it_may_be_killed(project: takeback.Project, tree: Path, home: Path) -> None:
    """The next hook hears its event itself, and leaves another helper behind."""
    killed = begun(tree, home)
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in helpers(home), "its end")
    assert not is_answered(home, tree)
    done = hook(payload(tree, hook_event_name="UserPromptSubmit", prompt="go"), TAKEBACK_HELPER="1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [turn.label for turn in project.log().turns] == ["go"]
    until(lambda: is_answered(home, tree), "another helper")


def test_another_program_is_not_asked(
    project: takeback.Project, tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade the old helper gives no answer to the new program."""
    assert project.id
    begun(tree, home)
    monkeypatch.setattr(helper, "program_stamp", lambda: b"another program")
    assert not is_answered(home, tree)


@pytest.mark.parametrize("said", [b"", b"\n", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000])
def test_whoever_says_something_else_gets_no_answer(
    project: takeback.Project, tree: Path, home: Path, said: bytes
) -> None:
    """What is no event of ours ends the connection, and not the helper."""
    assert project.id
    begun(tree, home)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(home / "helper.sock"))
        stranger.settimeout(PATIENCE)
        answer = b""
        with contextlib.suppress(ConnectionError):  # it may break off before all is said
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            answer = stranger.recv(10)
        assert answer == b""
    assert is_answered(home, tree)


def test_it_ends_when_nobody_asks(project: takeback.Project, tree: Path, home: Path) -> None:
    """A helper without work goes by itself, and takes its socket along."""
    assert project.id
    assert helper.leave_behind(os.fsencode(home), hearing.HookListener(), idle=0.2)
    until(lambda: (home / "helper.sock").exists() or not helpers(home), "its start")
    until(lambda: not helpers(home) and not (home / "helper.sock").exists(), "its end")
    assert not is_answered(home, tree)


def test_without_it_everything_is_the_same(
    project: takeback.Project, tree: Path, home: Path
) -> None:
    """With `TAKEBACK_HELPER=0` nobody is asked, and nobody is left behind."""
    agent = Agent(tree)
    agent.prompt("go")
    hook(payload(tree, hook_event_name="SessionStart"), TAKEBACK_HELPER="0")
    assert helpers(home) == []
    assert len(project.log().turns) == 1
