"""A new agent takes one file and its registration: nothing else, the client in C included."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import goblin
import takeback
from askers import built
from residents import NEEDS_PROC, copies_of, helpers, until
from takeback.agents.agent import ASK, DENY, HOLD, Answer

PACKAGE = Path(takeback.__file__).parent
BEFORE, AFTER = "    unknown,\n", "    unknown.AGENT,\n"


class Cave:
    """A copy of the package that knows the agent, and a place where it works."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.tree = place / "cave"
        self.home = place / "home"
        self.main = place / "takeback" / "__main__.py"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "TAKEBACK_HOME": str(self.home),
            "GOBLIN_CAVE": str(self.tree),
        }
        self.tree.mkdir()
        self.home.mkdir(mode=0o700)

    def command(self, *words: str, **env: str) -> dict[str, Any]:
        """A command of the user, and what it says."""
        done = subprocess.run(
            [sys.executable, "-I", str(self.main), *words, "--json"],
            cwd=self.tree,
            env={**self.env, **env},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def tell(self, does: str, **more: object) -> bytes:
        """One event, by the command line in the agent's settings; what is answered."""
        settings = json.loads((self.place / ".goblin" / "goblin.json").read_text())
        line = settings["hooks"][does][0]["hooks"][0]["command"]
        said = {"species": "goblin", "goblin": "Grik", "wish": "w1", "where": "/", "does": does}
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            input=json.dumps({**said, **more}).encode(),
            cwd=self.place,
            env=self.env,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout


@pytest.fixture
def cave() -> Iterator[Cave]:
    """One, with a short name, as the path of a socket must be short."""
    place = Path(tempfile.mkdtemp(prefix="goblin-", dir="/tmp"))
    shutil.copytree(
        PACKAGE, place / "takeback", ignore=shutil.ignore_patterns("__pycache__", "ask")
    )
    rooms = place / "takeback" / "agents"
    shutil.copy(goblin.__file__, rooms / "dialects")
    registry = (rooms / "registry.py").read_text()
    assert registry.count(BEFORE) == registry.count(AFTER) == 1
    known = registry.replace(BEFORE, "    goblin,\n" + BEFORE)
    (rooms / "registry.py").write_text(known.replace(AFTER, "    goblin.AGENT,\n" + AFTER))
    made = Cave(place)
    yield made
    for pid in helpers(made.home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not copies_of(made.home), "its end")
    shutil.rmtree(place)


@NEEDS_PROC
@pytest.mark.parametrize("client", ["C", "Python"])
def test_one_file_and_its_registration_are_enough(cave: Cave, client: str) -> None:
    """It is installed, tried out, recorded through the helper, attributed and taken back."""
    if client == "C":
        built(cave.place / "takeback" / "hooks")
    (cave.tree / "kept").write_text("mine\n")
    made = cave.command("install", "goblin", TAKEBACK_HELPER="0")
    assert (made["events"], made["canary"]["events"]) == (["wish", "grab", "drop", "nap"], 4)
    assert cave.tell("wish", words="Dig a hole") == b""
    until(lambda: helpers(cave.home), "a helper")
    scratch = {"claw": "scratch", "grip": "g1", "what": {"path": str(cave.tree / "hole")}}
    assert cave.tell("grab", **scratch) == b""
    (cave.tree / "hole").write_text("deep\n")
    (cave.tree / "kept").write_text("mine, meanwhile\n")
    assert cave.tell("drop", **scratch) == b""
    assert cave.tell("nap") == b""
    (turn,) = cave.command("log")["turns"]
    assert (turn["agent"], turn["label"], turn["status"]) == ("goblin", "Dig a hole", "done")
    cave.command("undo")
    assert {path.name: path.read_text() for path in cave.tree.iterdir()} == {
        "kept": "mine, meanwhile\n"
    }
    told = json.loads(cave.tell("wish", wish="w2", words="Dig on"))
    assert "Dig a hole" in told["whisper"]


def test_a_verdict_that_it_lacks_is_a_stricter_one() -> None:
    """It cannot ask, so what should be asked is denied where it can deny; elsewhere it goes on."""
    agent = goblin.AGENT
    for verdict in (ASK, DENY, HOLD):
        grab = agent.read({"does": "grab"})
        assert agent.answer(grab, Answer(verdict, "risky", to_user="no")) == {
            "hiss": True,
            "shout": "no",
        }
        assert agent.answer(agent.read({"does": "drop"}), Answer(verdict)) == {}
    assert agent.answer(agent.read({"does": "grab"}), Answer()) == {}
