"""What the user does while the real clients are in the middle of a turn."""

import os
import threading

import pytest

import oracle
from clients.model import Request, Until
from clients.place import Place
from clients.real import CLIENTS, ClaudeCode, Client, Cline, Goose
from takeback.agents import refusals as known

REFUSING = [kind for kind in CLIENTS if known.told(kind.NAME) == known.REFUSED]
PAUSING = [kind for kind in CLIENTS if known.can_pause(kind.NAME) and kind is not Cline]


def times_read(place: Place, prompt: str, words: str) -> int:
    """How often the model read some words, in the last request of a prompt."""
    asked: list[Request] = [each for each in place.model.requests if each.prompt == prompt]
    return asked[-1].text.count(words)


def rolled_back(client: Client, place: Place, told: str) -> str:
    """Roll back under an agent, which then overwrites the file and goes on; its prompt."""
    tree, gate = place.tree, threading.Event()
    client.install()
    prompt = place.model.plays(
        "work on it",
        client.create(tree / "made.txt", "made by the agent\n"),
        [Until(gate), client.shell("echo overwritten > made.txt")],
        client.shell("echo later > later.txt"),
    )
    running = client.start(prompt)
    place.model.wait_for(prompt, 1)
    turn = place.turns()[-1]["id"]
    plan = place.told("rollback", f"{turn}-", "--dry-run")
    assert [(each["agent"], each["told"]) for each in plan["running"]] == [(client.NAME, told)]
    place.takeback("rollback", f"{turn}-", "--yes", "--because", "a wrong turning")
    gate.set()
    running.over()
    assert (tree / "later.txt").read_text() == "later\n"
    return prompt


def test_one_whose_model_reads_no_refusal_is_told_after_its_next_call(place: Place) -> None:
    """As the preview says: Cline would end the whole run, so the call is made, and it is told."""
    prompt = rolled_back(Cline(place), place, known.AFTERWARDS)
    assert (place.tree / "made.txt").read_text() == "overwritten\n"
    assert times_read(place, prompt, "a wrong turning") == 1


def test_one_that_only_reports_is_not_told(place: Place) -> None:
    """As the preview says: Goose can neither refuse a call nor read a note."""
    prompt = rolled_back(Goose(place), place, known.NEVER)
    assert (place.tree / "made.txt").read_text() == "overwritten\n"
    assert times_read(place, prompt, "a wrong turning") == 0


@pytest.mark.parametrize("kind", REFUSING)
def test_a_live_rollback_refuses_the_next_call(kind: type[Client], place: Place) -> None:
    """Once, with the reason; nothing is overwritten, and the turn goes on from there."""
    client, tree, gate = kind(place), place.tree, threading.Event()
    client.install()
    before = oracle.picture(tree)
    prompt = place.model.plays(
        "work on it",
        client.create(tree / "made.txt", "made by the agent\n"),
        [Until(gate), client.shell("echo overwritten > made.txt")],
        client.shell("echo later > later.txt"),
    )
    running = client.start(prompt)
    place.model.wait_for(prompt, 1)
    (now,) = [each for each in place.told("sessions")["sessions"] if each["now"]]
    assert (now["agent"], now["status"]) == (client.NAME, "running")
    assert now["now"]["label"] == prompt

    turn = place.turns()[-1]["id"]
    plan = place.told("rollback", f"{turn}-", "--dry-run")
    assert [(each["agent"], each["told"]) for each in plan["running"]] == [(client.NAME, "refused")]
    place.takeback("rollback", f"{turn}-", "--yes", "--because", "a wrong turning")
    its_own = [os.fsencode(mark.rstrip("/")) for mark in client.MARKS_IN_GIT]
    assert oracle.differences(before, oracle.picture(tree), its_own) == []
    gate.set()

    heard = place.model.wait_for(prompt, 2).text
    assert not (tree / "made.txt").exists(), "the call was made all the same"
    assert heard.count("a wrong turning") == 1
    assert heard.count("made.txt") >= 2, "the reason names the file"
    running.over()
    assert (tree / "later.txt").read_text() == "later\n"
    assert times_read(place, prompt, "a wrong turning") == 1
    assert place.told("sessions")["sessions"][0]["status"] != "running"


def test_calls_of_one_answer_are_refused_together(place: Place) -> None:
    """Claude Code's model made both before it could read why the first one is refused."""
    client, tree, gate = ClaudeCode(place), place.tree, threading.Event()
    client.install()
    made = tree / "made.txt"
    prompt = place.model.plays(
        "work on it",
        client.create(made, "made by the agent\n"),
        [Until(gate), client.shell("echo one > made.txt"), client.shell("echo two >> made.txt")],
        client.shell("echo later > later.txt"),
    )
    running = client.start(prompt)
    place.model.wait_for(prompt, 1)
    place.takeback("rollback", f"{place.turns()[-1]['id']}-", "--yes", "--because", "too early")
    gate.set()
    place.model.wait_for(prompt, 2)
    assert not made.exists()
    running.over()
    assert not made.exists()
    assert (tree / "later.txt").read_text() == "later\n"


@pytest.mark.parametrize("kind", PAUSING)
def test_a_live_agent_is_paused(kind: type[Client], place: Place) -> None:
    """Its calls are refused until it is resumed; its prompts are not."""
    client, tree = kind(place), place.tree
    client.install()
    place.takeback("checkpoint")
    place.takeback("pause")
    first = client.shell("echo paused > paused.txt")
    client.prompt(place.model.plays("work on it", first))
    assert "paused by the user" in place.model.wait_for("work on it", 1).text
    assert not (tree / "paused.txt").exists()
    place.takeback("resume")
    client.prompt(place.model.plays("and now", client.shell("echo on > on.txt")))
    assert (tree / "on.txt").read_text() == "on\n"


def test_one_whose_run_ends_by_a_refusal_is_paused_too(place: Place) -> None:
    """Cline makes no call while it is paused; its model does not learn why."""
    client, tree = Cline(place), place.tree
    client.install()
    place.takeback("checkpoint")
    place.takeback("pause")
    client.prompt(place.model.plays("work on it", client.shell("echo no > paused.txt")), code=None)
    assert not (tree / "paused.txt").exists()
    place.takeback("resume")
    client.prompt(place.model.plays("and now", client.shell("echo on > on.txt")))
    assert (tree / "on.txt").read_text() == "on\n"
