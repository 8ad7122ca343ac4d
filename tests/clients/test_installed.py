"""Hooks come and go: `install`, `uninstall`, the plugin, and what `doctor` says of them."""

from pathlib import Path

import pytest

import takeback
from clients.place import Place
from clients.real import DEEP, ClaudeCode, Client

PLUGIN = Path(takeback.__file__).parent / "plugin/claude-code"


@pytest.mark.parametrize("kind", DEEP)
def test_hooks_come_and_go(kind: type[Client], place: Place) -> None:
    """Installed they record, and `doctor` tells so; uninstalled nothing of them is left."""
    client = kind(place)
    client.install()
    client.prompt(place.model.plays("the first", client.shell("echo 1 > 1.txt")))
    assert client.HEALTHY in place.hooks_by_doctor()
    place.takeback("uninstall", client.NAME)
    for name in ("settings.json", "hooks.json"):
        file = client.folder / name  # Claude Code adds something of its own to what is there
        assert not file.exists() or "hooks" not in file.read_text()
    client.prompt(place.model.plays("the second", client.shell("echo 2 > 2.txt")))
    assert [turn["label"] for turn in place.turns()] == ["the first"]


def test_a_project_of_its_own_settings(place: Place) -> None:
    """`install --project` covers this project, by the settings in it."""
    client = ClaudeCode(place)
    place.takeback("install", client.NAME, "--project")
    client.prompt(place.model.plays("go", client.shell("echo 1 > 1.txt")))
    (turn,) = place.turns()
    assert [change["path"] for change in turn["changes"]] == ["1.txt"]


def test_the_plugin_does_the_same(place: Place) -> None:
    """Claude Code with the plugin of the package records as with installed hooks."""
    place.put_on_path()
    client = ClaudeCode(place)
    client.more = ["--plugin-dir", str(PLUGIN)]
    edits = client.edits([(place.tree / "a.txt", "one", "ONE")])
    client.prompt(place.model.plays("go", *edits, client.shell("rm b.txt")))
    (turn,) = place.turns()
    assert {change["path"]: change["how"] for change in turn["changes"]} == {
        "a.txt": "named",
        "b.txt": "shell",
    }
    place.takeback("undo")
    assert (place.tree / "b.txt").exists()
