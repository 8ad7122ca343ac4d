"""The clients beyond the deep matrix: install, two prompts, the user's edits, undo, redo."""

from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
from clients.place import Place
from clients.real import OTHERS, Client
from clients.torture_turn import answers, require_exact_ways_back
from torture_checks import Git


@pytest.mark.parametrize("git", [True, False], ids=["git", "plain"])
@pytest.mark.parametrize("kind", OTHERS)
def test_everything_comes_back_and_goes_again(
    kind: type[Client], git: bool, make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """All rows that it can play are undone and redone exactly; nothing of the user's is lost."""
    place = make_place(git=git, full=True)
    client = kind(place)
    client.install()
    client.prompt(place.model.plays("warm up", client.shell("echo warm > warm.txt")))
    before, users = oracle.picture(place.tree), Git(place.tree)
    client.prompt(place.model.plays("do everything", *answers(client, place.tree)))
    require_exact_ways_back(client, place.tree, before, users, tmp_path)


@pytest.mark.parametrize("kind", OTHERS)
def test_each_change_has_its_author(kind: type[Client], place: Place) -> None:
    """Edits by hand between two prompts stay, and each prompt is taken back by itself."""
    client, tree = kind(place), place.tree
    client.install()
    edits = client.edits([(tree / "a.txt", "one", "ONE")])
    client.prompt(place.model.plays("make it new", client.create(tree / "new.txt", "new\n")))
    with (tree / "b.txt").open("a") as file:
        file.write("by hand\n")
    more = client.shell("echo more >> new.txt; rm b.txt")
    client.prompt(place.model.plays("change it", *edits, more))
    first, second = place.turns()
    assert [(turn["agent"], turn["status"]) for turn in (first, second)] == [
        (client.NAME, "done"),
        (client.NAME, "done"),
    ]
    assert [change["path"] for change in first["changes"]] == ["new.txt"]
    assert {change["path"]: change["how"] for change in second["changes"]} == {
        "a.txt": "named",
        "b.txt": "shell",
        "new.txt": "shell",
    }
    place.takeback("undo")
    assert (tree / "b.txt").read_text().endswith("seven\nby hand\n")
    assert (tree / "a.txt").read_text().startswith("one\n")
    assert (tree / "new.txt").read_text() == "new\n"
    place.takeback("redo")
    assert (tree / "a.txt").read_text().startswith("ONE\n")
    assert not (tree / "b.txt").exists()


@pytest.mark.parametrize("kind", OTHERS)
def test_hooks_come_and_go(kind: type[Client], place: Place) -> None:
    """Installed they record, and `doctor` tells so; uninstalled, nothing is recorded."""
    client = kind(place)
    client.install()
    client.prompt(place.model.plays("the first", client.shell("echo 1 > 1.txt")))
    assert client.HEALTHY in place.hooks_by_doctor()
    place.takeback("uninstall", client.NAME)
    client.prompt(place.model.plays("the second", client.shell("echo 2 > 2.txt")))
    assert len(place.turns()) == 1
