"""What only OpenCode, Kilo and pi do: sub-agents that are sessions, `/undo`, and what is told."""

import time

import pytest

import oracle
from clients.model import Say, Use
from clients.place import Place, wait_until
from clients.real import Client, Kilo, OpenCode, Pi
from clients.screen import CLEAR, ENTER


@pytest.mark.parametrize("kind", [OpenCode, Kilo])
def test_what_a_subagent_edits_is_in_the_turn(kind: type[Client], place: Place) -> None:
    """It is a session of its own, and no turn of its own."""
    client, tree = kind(place), place.tree
    client.install()
    before = oracle.picture(tree)
    job = {"description": "a job", "prompt": "the job", "subagent_type": "general"}
    place.model.plays("send somebody", Use("task", job), client.shell("echo after > after.txt"))
    edits = client.edits([(tree / "a.txt", "one", "ONE")])
    place.model.plays("the job", *edits, client.shell("rm b.txt"))
    client.prompt("send somebody")
    (turn,) = place.turns()
    assert (turn["label"], turn["status"]) == ("send somebody", "done")
    assert {change["path"]: change["how"] for change in turn["changes"]} == {
        "a.txt": "named",
        "after.txt": "shell",
        "b.txt": "shell",
    }
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree)) == []


@pytest.mark.parametrize("kind", [OpenCode, Kilo, Pi])
def test_the_model_reads_what_was_taken_back(kind: type[Client], place: Place) -> None:
    """Between two prompts: with the next prompt, once, and the user's words are still theirs."""
    client = kind(place)
    client.install()
    client.prompt(place.model.plays("make it", client.create(place.tree / "new.txt", "new\n")))
    place.takeback("undo", "--because", "it was too new")
    client.prompt(place.model.plays("and now", client.shell("echo 1 > 1.txt")))
    first, last = place.model.wait_for("and now"), place.model.wait_for("and now", 1)
    assert first.text.count("it was too new") == last.text.count("it was too new") == 1
    assert place.turns()[-1]["label"] == "and now"


def are_done(place: Place, count: int) -> None:
    """Wait until there are so many turns, and all are done."""
    statuses = count * ["done"]
    wait_until(f"{count} are done", lambda: [t["status"] for t in place.turns()] == statuses)


def test_undo_inside_opencode_is_noticed(place: Place) -> None:
    """`/undo` brings back files by itself; with the next prompt, the log shows where it went."""
    client, tree = OpenCode(place), place.tree
    client.install()
    for number, name in enumerate(("first", "second", "third")):
        made = client.shell(f"echo {number} > {name}.txt")
        place.model.plays(f"make the {name}", made, Say(f"The {name} is made."))
    screen = client.sit_down("make the first")
    try:
        are_done(place, 1)
        screen.shows("The first is made.")
        screen.type("make the second")
        are_done(place, 2)
        screen.shows("The second is made.")
        screen.press(b"/undo")
        screen.shows("undo")
        time.sleep(1)  # once: another Enter would send the prompt that it puts into the line
        screen.press(ENTER)
        wait_until("it is undone", lambda: not (tree / "second.txt").exists())
        time.sleep(1)
        screen.play((CLEAR, ""))  # else it draws what differs from the words that were there
        screen.type("make the third")
        are_done(place, 3)
    finally:
        screen.close()
    _, second, third = place.turns()
    assert place.told("show", third["id"])["turn"]["went_back"] == second["id"]
