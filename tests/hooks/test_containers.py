"""Containers that share a home: a path is another folder in each, so each does its own work."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import MAIN
from askers import built
from residents import helpers, until


def may_mount() -> bool:
    """Whether mount namespaces can be made here."""
    tools = shutil.which("unshare") and shutil.which("nsenter")
    if sys.platform != "linux" or not tools or os.geteuid() != 0:
        return False
    tried = ["unshare", "-m", "true"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not may_mount(), reason="no mount namespaces (root on Linux): containers are NOT TESTED"
)
PYTHON = [sys.executable, "-I", "-S", str(MAIN)]
BEGIN = 'mount --bind "$1" "$2" && echo ready && exec cat'
INSIDE = 'cd "$1" && shift && exec "$@"'


class Container:
    """A place with folders of its own, where `app` is what only it sees."""

    def __init__(self, real: Path, app: Path, client: list[str]) -> None:
        self.real = real
        self._app = app
        self._client = client
        begin = ["unshare", "-m", "sh", "-c", BEGIN, "sh", str(real), str(app)]
        self._first = subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == b"ready\n"
        enter = ["nsenter", f"--mount=/proc/{self._first.pid}/ns/mnt"]
        self._inside = [*enter, "sh", "-c", INSIDE, "sh", str(app)]

    def run(self, command: list[str], data: bytes = b"") -> str:
        """What a command in it says."""
        env = {**os.environ, "TAKEBACK_HELPER": "1"}
        done = subprocess.run(
            [*self._inside, *command], input=data, env=env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def ends(self) -> None:
        """Nothing runs in it any more."""
        self._first.communicate()

    def tell(self, event: str, **more: object) -> str:
        """One event of the agent in it; what is answered."""
        said = {"session_id": self.real.name, "cwd": str(self._app), "prompt_id": "P"}
        payload = {**said, "hook_event_name": event, **more}
        return self.run(self._client, json.dumps(payload).encode())

    def takeback(self, *words: str) -> str:
        """A command of the user in it."""
        return self.run([*PYTHON, *words])

    def turn(self, prompt: str) -> str:
        """A turn that makes a file; what is answered."""
        call = {"tool_name": "Bash", "tool_input": {"command": "…"}, "tool_use_id": "T"}
        said = self.tell("UserPromptSubmit", prompt=prompt) + self.tell("PreToolUse", **call)
        (self.real / "made").write_text("by the agent\n")
        return said + self.tell("PostToolUse", **call, tool_response="") + self.tell("Stop")


@pytest.fixture
def two(home: Path, tmp_path: Path) -> Iterator[tuple[Container, Container]]:
    """Two containers; the helper is in the first."""
    client = [*PYTHON, "hook"]
    if shutil.which("cc"):
        client = [str(built(tmp_path)), *client]
    made = []
    (tmp_path / "app").mkdir()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(f"{name}\n")
        made.append(Container(tmp_path / name, tmp_path / "app", client))
    (tmp_path / "elsewhere").mkdir()
    made[0].tell("SessionStart", source="startup", cwd=str(tmp_path / "elsewhere"))
    until(lambda: helpers(home) and (home / "helper.sock").exists(), "a helper")
    yield made[0], made[1]
    for pid in helpers(home):
        os.kill(pid, signal.SIGKILL)
    for container in made:
        container.ends()


def test_nothing_is_recorded_in_the_project_of_another(two: tuple[Container, Container]) -> None:
    """The same path is another project there: its agent is told, and the log of the first stays."""
    one, other = two
    one.turn("in one")
    assert "a new history begins here" in other.turn("in two")
    assert "in two" not in one.takeback("log")
    one.takeback("undo")
    assert sorted(path.name for path in one.real.iterdir()) == ["a"]
    assert sorted(path.name for path in other.real.iterdir()) == ["a", "made"]
    assert "in one" not in other.takeback("log")
    other.takeback("undo")
    assert sorted(path.name for path in other.real.iterdir()) == ["a"]


def test_a_turn_is_recorded_where_it_is(two: tuple[Container, Container]) -> None:
    """A project in one container is covered while the helper of another is there."""
    one, other = two
    other.turn("in two")
    assert "in two" in other.takeback("log")
    other.takeback("undo")
    assert sorted(path.name for path in other.real.iterdir()) == ["a"]
    assert sorted(path.name for path in one.real.iterdir()) == ["a"]
