"""What happens within one prompt of a real client: who changed what, and whether it comes back."""

import threading
from pathlib import Path

import pytest

import oracle
from clients.model import Fail, Say, Until, Use
from clients.place import Place, wait_until
from clients.real import DEEP, ClaudeCode, Client, Codex


def changes(place: Place, number: int = -1) -> dict[str, str]:
    """What a turn changed, and how that is known."""
    return {change["path"]: change["how"] for change in place.turns()[number]["changes"]}


def append(path: Path, text: str) -> None:
    """Add to a file by hand."""
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("helper", ["1", "0"], ids=["helper", "alone"])
@pytest.mark.parametrize("kind", DEEP)
def test_each_change_has_its_author(kind: type[Client], helper: str, place: Place) -> None:
    """Edit tools name their files, shells are told as such, and what is between is the user's."""
    place.environment["TAKEBACK_HELPER"] = helper
    client, tree = kind(place), place.tree
    client.install()
    edits = client.edits([(tree / "a.txt", "one", "ONE")])
    client.prompt(place.model.plays("make it new", client.create(tree / "new.txt", "new\n")))
    append(tree / "b.txt", "by hand\n")
    client.prompt(
        place.model.plays("change it", *edits, client.shell("echo more >> new.txt; rm b.txt"))
    )
    assert [(turn["label"], turn["status"], turn["agent"]) for turn in place.turns()] == [
        ("make it new", "done", client.NAME),
        ("change it", "done", client.NAME),
    ]
    assert changes(place, 0) == {"new.txt": "named"}
    assert changes(place, 1) == {"a.txt": "named", "b.txt": "shell", "new.txt": "shell"}
    place.takeback("undo")
    assert (tree / "b.txt").read_text().endswith("seven\nby hand\n")
    assert (tree / "a.txt").read_text().startswith("one\n")
    assert (tree / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize("kind", DEEP)
def test_calls_at_once_and_calls_that_fail(kind: type[Client], place: Place) -> None:
    """Several calls in one answer, some of which fail half way or are refused, come back whole."""
    client, tree = kind(place), place.tree
    client.install()
    before = oracle.picture(tree)
    refused = client.wrong_edit(tree / "a.txt")
    at_once = [client.shell(f"echo {n} > at-once-{n}.txt; exit {n}") for n in range(3)]
    client.prompt(place.model.plays("do it at once", [*at_once, refused], client.shell("rm b.txt")))
    assert set(changes(place)) == {"at-once-0.txt", "at-once-1.txt", "at-once-2.txt", "b.txt"}
    assert place.turns()[-1]["status"] == "done"
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_a_denied_tool_leaves_no_window_open(place: Place) -> None:
    """What the user does after a call was denied is the user's, within the same turn, too."""
    client, tree = ClaudeCode(place), place.tree
    (client.folder / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    client.install()
    gate = threading.Event()
    place.model.plays(
        "remove it", client.shell("rm a.txt"), [Until(gate), client.shell("touch made.txt")]
    )
    running = client.start("remove it")
    place.model.wait_for("remove it", 1)
    append(tree / "a.txt", "by hand\n")
    gate.set()
    running.over()
    assert changes(place) == {"made.txt": "shell"}
    place.takeback("undo")
    assert (tree / "a.txt").read_text().endswith("by hand\n")
    assert not (tree / "made.txt").exists()


@pytest.mark.parametrize("kind", DEEP)
def test_an_error_of_the_model_ends_the_turn(kind: type[Client], place: Place) -> None:
    """What was done before the error comes back, and what the user did after it stays."""
    client, tree = kind(place), place.tree
    client.install()
    before = oracle.picture(tree)
    place.model.plays("break", client.shell("echo half > half.txt; rm b.txt"), Fail())
    client.prompt("break", code=None)
    append(tree / "a.txt", "by hand\n")
    assert set(changes(place)) == {"half.txt", "b.txt"}
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree), [b"a.txt"]) == []
    assert (tree / "a.txt").read_text().endswith("by hand\n")


@pytest.mark.parametrize("kind", DEEP)
def test_the_models_cd_does_not_move_the_project(kind: type[Client], place: Place) -> None:
    """One project, whatever folder the shell is in; names count from where the client started."""
    client, tree = kind(place), place.tree
    client.install()
    steps = [
        client.shell("cd sub/folder && echo here > made-here.txt"),
        client.create(tree / "sub/made.txt", "new\n"),
        client.shell("cd / && echo top > " + str(tree / "top.txt")),
    ]
    client.prompt(place.model.plays("wander", *steps))
    assert set(changes(place)) == {"sub/folder/made-here.txt", "sub/made.txt", "top.txt"}
    assert len(list((place.scratch / "store/projects").iterdir())) == 1
    place.takeback("undo", where=tree / "sub")
    assert not (tree / "top.txt").exists()


@pytest.mark.parametrize("kind", DEEP)
def test_a_file_outside_comes_back(kind: type[Client], place: Place) -> None:
    """What an edit tool names outside of the project was kept before, and comes back on request."""
    client = kind(place)
    client.install()
    outside = place.scratch / "elsewhere/outside.txt"
    outside.parent.mkdir()
    outside.write_text("one\ntwo\n")
    client.may_edit(outside.parent)
    client.prompt(place.model.plays("edit outside", *client.edits([(outside, "one", "ONE")])))
    assert outside.read_text() == "ONE\ntwo\n"
    assert [str(outside)] == [each["path"] for each in place.turns()[-1]["outside"]]
    place.takeback("undo", "--yes")
    assert outside.read_text() == "one\ntwo\n"


def test_what_a_subagent_edits_is_in_the_turn(place: Place) -> None:
    """A sub-agent that goes on behind the stop of its turn edits for this turn."""
    client, tree = ClaudeCode(place), place.tree
    client.install()
    before = oracle.picture(tree)
    gate = threading.Event()
    model = place.model
    job = {"description": "a job", "prompt": "the job", "subagent_type": "general-purpose"}
    model.plays("send somebody", Use("Agent", job), Say("Somebody is on it."))
    edits = client.edits([(tree / "a.txt", "one", "ONE")])
    model.plays("the job", [Until(gate), *edits[0]], *edits[1:], client.shell("rm b.txt"))
    running = client.start("send somebody")
    model.wait_for("send somebody", 1)
    gate.set()
    running.over()
    assert changes(place) == {"a.txt": "named", "b.txt": "shell"}
    assert [turn["label"] for turn in place.turns()] == ["send somebody"]
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_a_shell_in_the_background_keeps_its_window(place: Place) -> None:
    """What it writes after the stop is the turn's, and no prompt of its own is made of its end."""
    client, tree = ClaudeCode(place), place.tree
    client.install()
    before = oracle.picture(tree)
    late = f"until [ -e {place.scratch}/go ]; do sleep 0.05; done; echo late > late.txt"
    background = {"command": late, "description": "late", "run_in_background": True}
    place.model.plays("later", Use("Bash", background), Say("It runs."))
    screen = client.sit_down("later")
    try:
        wait_until("the turn is over", lambda: [t["status"] for t in place.turns()] == ["done"])
        (place.scratch / "go").touch()
        wait_until("it wrote", (tree / "late.txt").exists)
        place.model.wait_for("later", 2)
    finally:
        screen.close()
    assert set(changes(place)) == {"late.txt"}
    assert [turn["label"] for turn in place.turns()] == ["later"]
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_codex_goes_on_behind_its_stop(place: Place) -> None:
    """A command that yielded writes after the stop, and that is the turn's."""
    client, tree = Codex(place), place.tree
    client.install()
    before = oracle.picture(tree)
    late = f"until [ -e {place.scratch}/go ]; do sleep 0.05; done; echo late > late.txt"
    place.model.plays("later", Use("exec_command", {"cmd": late, "yield_time_ms": 250}))
    screen = client.sit_down("later")
    try:
        wait_until("the turn is over", lambda: [t["status"] for t in place.turns()] == ["done"])
        (place.scratch / "go").touch()
        wait_until("it wrote", (tree / "late.txt").exists)
    finally:
        screen.close()
    # The user may have written it as well, for all that anybody knows.
    place.takeback("undo", code=3)
    assert (tree / "late.txt").exists()
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []
