"""`tb undo` typed into a real client: files back, no model request, no turn."""

import threading
import time

import pytest

import oracle
import takeback
from clients.kimi_code import KimiCode
from clients.model import Say, Use
from clients.place import Place, wait_until
from clients.real import ClaudeCode, Client, Codex, Copilot, GeminiCli, QwenCode

TYPING = (ClaudeCode, Codex, GeminiCli, Copilot, QwenCode, KimiCode)
"""Those that can drop a prompt, and report it headless."""
DRAWING = (ClaudeCode, Codex, GeminiCli)
"""Those of them that draw what a hook says."""
pytestmark = pytest.mark.timeout(300)


def prompts(place: Place) -> list[tuple[str, str]]:
    """The turns in the log, the oldest first."""
    return [(turn["label"], turn["status"]) for turn in place.turns()]


@pytest.mark.parametrize("helper", ["1", "0"], ids=["helper", "alone"])
@pytest.mark.parametrize("kind", TYPING)
def test_undo_is_typed(kind: type[Client], helper: str, place: Place) -> None:
    """Undo, redo and undo again; then the model hears of it with the next prompt."""
    place.environment["TAKEBACK_HELPER"] = helper
    client, tree = kind(place), place.tree
    client.install()
    before = oracle.picture(tree)
    edits = client.edits([(tree / "a.txt", "one", "ONE")])
    client.prompt(place.model.plays("change it", *edits, client.shell("echo new > n; rm b.txt")))
    after = oracle.picture(tree)
    asked = len(place.model.requests)
    for command, wanted in (("undo", before), ("redo", after), ("undo", before)):
        client.prompt(f"tb {command}", code=None)
        assert oracle.differences(wanted, oracle.picture(tree)) == []
    assert len(place.model.requests) == asked
    assert prompts(place) == [("change it", "done")]
    client.prompt("please do not type tb undo")
    assert "took back what you did for the prompt" in place.model.requests[-1].text
    assert [label for label, _ in prompts(place)] == ["change it", "please do not type tb undo"]
    assert oracle.differences(before, oracle.picture(tree)) == []


@pytest.mark.parametrize("kind", DRAWING)
def test_it_is_shown_in_the_terminal(kind: type[Client], place: Place) -> None:
    """In the client's own terminal the report is drawn, soon, and the model is not asked."""
    client, tree = kind(place), place.tree
    client.install()
    screen = client.sit_down(place.model.plays("change it", client.shell("echo new > n; rm b.txt")))
    try:
        wait_until("the turn is over", lambda: prompts(place) == [("change it", "done")])
        time.sleep(1)
        asked, began = len(place.model.requests), time.monotonic()
        screen.type("tb undo")
        wait_until("the file is back", (tree / "b.txt").exists)
        took = time.monotonic() - began
        screen.shows('Took back "change it": restored 1 file, removed 1')
        print(f"{client.NAME}: {took:.2f} s")  # noqa: T201 -- `./check --clients -s` shows it
    finally:
        screen.close()
    assert not [each for each in place.model.requests[asked:] if each.prompt]
    assert prompts(place) == [("change it", "done")]


@pytest.mark.parametrize("kind", DRAWING)
def test_the_client_waits_no_longer_than_it_must(kind: type[Client], place: Place) -> None:
    """While another process holds the store the prompt is dropped; the undo comes once, later."""
    client, tree = kind(place), place.tree
    client.install()
    client.prompt(place.model.plays("change it", client.shell("echo new > n")))
    client.prompt(place.model.plays("again", client.shell("echo more > m")))
    asked = len(place.model.requests)
    with takeback.open(tree, home=place.scratch / "store") as project:
        with project.workspace.held():
            client.prompt("tb undo", code=None)
            assert (tree / "m").exists()
        assert len(place.model.requests) == asked
        wait_until("the undo is done", lambda: not (tree / "m").exists())
    client.prompt("go on")
    assert (tree / "n").exists()
    assert [turn["undone"] is None for turn in place.turns()] == [True, False, True]


def test_a_subagent_cannot_type(place: Place) -> None:
    """A sub-agent is asked for `tb undo` by the model: that is a prompt like any other."""
    client, tree = ClaudeCode(place), place.tree
    client.install()
    job = {"description": "a job", "prompt": "tb undo", "subagent_type": "general-purpose"}
    place.model.plays("tb undo", Say("No."))
    client.prompt(place.model.plays("change it", client.shell("rm b.txt"), Use("Agent", job)))
    assert not (tree / "b.txt").exists()
    assert [label for label, _ in prompts(place)] == ["change it"]
    assert "tb undo" in [each.prompt for each in place.model.requests]


def test_after_esc(place: Place) -> None:
    """What an interrupted turn did so far goes back, and it ends where it was interrupted."""
    client, tree = ClaudeCode(place), place.tree
    client.install()
    gate = threading.Event()
    slow = client.shell("rm b.txt; sleep 60")
    screen = client.sit_down(place.model.plays("change it", slow))
    try:
        wait_until("it works", lambda: not (tree / "b.txt").exists())
        client.interrupt(screen)  # once: twice opens its list of prompts
        wait_until("it stops", lambda: "Interrupted" in screen.text())
        time.sleep(1)
        screen.press(b"\x15")
        screen.type("tb undo")
        wait_until("the file is back", (tree / "b.txt").exists)
    finally:
        gate.set()
        screen.close()
    assert prompts(place) == [("change it", "interrupted")]
