"""Conversations of the real clients after something was taken back."""

import shlex

import pytest

from clients.place import Place
from clients.real import TOLD, TRIMMED, Client


def two_turns(place: Place, client: Client) -> None:
    """Two prompts, each of which makes a file; and a third one that is to come."""
    client.install()
    for name in ("first", "second"):
        made = client.create(place.tree / f"{name}.txt", f"CONTENT OF THE {name}\n")
        client.prompt(place.model.plays(f"make the {name} file", made))
    place.model.plays("go on now", client.shell("echo third > third.txt"))


@pytest.mark.parametrize("kind", TRIMMED)
def test_the_model_goes_on_from_before(kind: type[Client], place: Place) -> None:
    """After `undo --resume` the model hears of the first turn, not of the second, and the note."""
    client = kind(place)
    two_turns(place, client)
    source = client.transcript()
    original = source.read_bytes()
    (copy,) = place.told("undo", "--resume", "--because", "a wrong turning")["conversations"]
    assert copy["problem"] is None
    assert any(copy["id"] in word for word in shlex.split(copy["command"]))

    client.session = copy["id"]
    client.prompt("go on now")
    heard = place.model.wait_for("go on now")
    lines = [line for text in heard.texts for line in text.splitlines()]
    assert [line for line in lines if line.endswith(("file", "now"))] == [
        "make the first file",
        "go on now",
    ]
    assert "CONTENT OF THE first" in heard.text
    assert "CONTENT OF THE second" not in heard.text
    assert "make the second file" not in heard.text
    (note,) = [text for text in heard.texts if "a wrong turning" in text]
    assert "second.txt" in note
    assert source.read_bytes() == original
    assert not (place.tree / "second.txt").exists()
    assert (place.tree / "third.txt").exists()


@pytest.mark.parametrize("kind", TOLD)
def test_the_agent_is_told_once(kind: type[Client], place: Place) -> None:
    """Without `--resume` the conversation goes on, and the model hears of the undo, once."""
    client = kind(place)
    two_turns(place, client)
    place.takeback("undo", "--because", "a wrong turning")
    client.prompt("go on now")
    heard = place.model.wait_for("go on now").text
    assert heard.count("a wrong turning") == 1
    assert "make the second file" in heard
    client.prompt(place.model.plays("and now"))
    assert place.model.wait_for("and now").text.count("a wrong turning") == 1
