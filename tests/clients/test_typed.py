"""`tb undo` typed into a real client: files back, no model request, no turn."""

import pytest

import oracle
from clients.place import Place
from clients.real import CLIENTS, Client


@pytest.mark.parametrize("helper", ["1", "0"], ids=["helper", "alone"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_undo_is_typed(kind: type[Client], helper: str, place: Place) -> None:
    """Undo, redo and undo again, headless; then the model hears of it with the next prompt."""
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
    assert [request.prompt for request in place.model.requests[asked:]] == []
    assert [(turn["label"], turn["status"]) for turn in place.turns()] == [("change it", "done")]
    client.prompt("go on")
    told = place.model.requests[-1].text
    assert "took back what you did for the prompt" in told
    assert [turn["label"] for turn in place.turns()] == ["change it", "go on"]
    assert "tb undo" not in [turn["label"] for turn in place.turns()]
