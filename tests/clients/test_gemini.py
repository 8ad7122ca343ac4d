"""What only Gemini CLI does: sub-agents that it waits for, and `/rewind`."""

import time
from collections.abc import Callable

import oracle
from clients.model import Use
from clients.place import Place, wait_until
from clients.real import GeminiCli
from clients.rewinds import asked_before, done, offered, script
from clients.screen import CLEAR, ENTER, UP, Screen


def test_what_a_subagent_edits_is_in_the_turn(place: Place) -> None:
    """A sub-agent works within the call that started it, and its prompt is nobody's."""
    client, tree = GeminiCli(place), place.tree
    client.install()
    before = oracle.picture(tree)
    place.model.plays(
        "send somebody", Use("invoke_agent", {"agent_name": "generalist", "prompt": "the job"})
    )
    place.model.plays(
        "the job",
        *client.edits([(tree / "a.txt", "one", "ONE")]),
        client.shell("rm b.txt"),
        Use("complete_task", {"result": {"response": "It is done."}}),
    )
    client.prompt("send somebody")
    (turn,) = place.turns()
    assert turn["label"] == "send somebody"
    assert {change["path"]: change["how"] for change in turn["changes"]} == {
        "a.txt": "named",
        "b.txt": "shell",
    }
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_rewind(place: Place) -> None:
    """`/rewind` of the conversation tells nobody; at the next prompt it is noticed and offered."""
    client = GeminiCli(place)
    client.install()
    script(place, client)
    client.prompt("make the first file")
    before = oracle.picture(place.tree)
    screen = client.sit_down("make the second file")
    try:
        wait_until("the second turn is over", lambda: len(done(place)) == 2)
        screen.shows("Type your message")
        rewind(screen, client)
        screen.type("make the third file")
        wait_until("the third turn is over", lambda: len(done(place)) == 3)
        ref = offered(client.transcript().read_text())  # where it notes what it tells the user
    finally:
        screen.close()
    assert asked_before(place, "make the third file") == [
        "make the first file",
        "make the third file",
    ]
    first, second, third = place.turns()
    assert second["id"].startswith(ref.rstrip("-"))
    assert place.told("show", third["id"])["turn"]["went_back"] == second["id"]
    place.takeback("rollback", ref, "--yes")
    assert oracle.differences(before, oracle.picture(place.tree)) == []
    assert [turn["id"] for turn in place.told("log")["turns"]] == [first["id"]]


def rewind(screen: Screen, client: GeminiCli) -> None:
    """Go back to before the second prompt; each result of a tool has a line in the list, too."""
    screen.play((b"/rewind", "Jump back"), (ENTER, "Stay at current position"))
    press_until(screen, UP, lambda: "●makethesecondfile" in newest(screen, "Rewind"))
    press_until(screen, ENTER, lambda: "Selectanaction" in newest(screen, "Confirm"))
    press_until(screen, ENTER, lambda: "$rewindTo" in client.transcript().read_text())
    press_until(screen, CLEAR, lambda: "Type your message" in screen.text()[-2000:])


def newest(screen: Screen, title: str) -> str:
    """What was drawn last, from a title on, without blanks."""
    return "".join(screen.text().rpartition(title)[2].split())


def press_until(screen: Screen, key: bytes, holds: Callable[[], object]) -> None:
    """Press a key again only if nothing came of it: another dialog may be there then."""
    for _ in range(30):
        screen.press(key)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.05)
    raise AssertionError(screen.text()[-3000:])
