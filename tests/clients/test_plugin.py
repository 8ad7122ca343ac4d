"""The plugin in the real Claude Code: it validates and installs; its commands and server work."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import takeback
from clients.model import PATIENCE, Then, Use
from clients.place import Place
from clients.real import ClaudeCode

PLUGIN = Path(takeback.__file__).parent / "plugin/claude-code"
TOOL = "mcp__plugin_takeback_takeback__"
PLAN = re.compile(r"plan\W{3,9}([k-z]{12})\b")


def own(client: ClaudeCode, *words: str) -> str:
    """What a command of the client prints that asks no model."""
    done = subprocess.run(
        [*client.program, *words],
        cwd=client.place.tree,
        env=client.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture
def client(place: Place) -> ClaudeCode:
    """Claude Code with the plugin, installed from a marketplace in a folder; no other hooks."""
    place.put_on_path()
    client = ClaudeCode(place)
    market = place.scratch / "market"
    shutil.copytree(PLUGIN, market / "takeback")
    (market / ".claude-plugin").mkdir()
    listed = {"name": "takeback", "source": "./takeback", "description": "Undo for agents"}
    about = {"name": "local", "owner": {"name": "a test"}, "plugins": [listed]}
    (market / ".claude-plugin/marketplace.json").write_text(json.dumps(about))
    own(client, "plugin", "validate", str(market / "takeback"))
    own(client, "plugin", "marketplace", "add", str(market))
    own(client, "plugin", "install", "takeback@local")
    return client


def test_the_plugin_brings_hooks_server_and_commands(client: ClaudeCode, place: Place) -> None:
    """Recorded by its hooks, taken back by its server, asked for by its commands."""
    model = place.model
    client.prompt(model.plays("first", client.shell("echo 1 > 1.txt")))
    last = Then(lambda asked: Use(f"{TOOL}apply", {"plan": [*PLAN.findall(asked.text), "none"][0]}))
    client.prompt(
        model.plays("second", client.shell("echo 2 > 2.txt"), Use(f"{TOOL}preview_undo", {}), last)
    )
    assert (place.tree / "1.txt").exists()
    assert not (place.tree / "2.txt").exists()
    asked = len(model.requests)
    for command in ("log", "why", "undo"):
        client.prompt(f"/takeback:{command}", code=None)
        assert len(model.requests) == asked, command
    assert not (place.tree / "1.txt").exists()
    assert [turn["label"] for turn in place.turns()] == ["first", "second"]
