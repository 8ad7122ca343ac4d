"""The real Claude Code and the real Codex at once, in one project."""

import threading

import oracle
from clients.model import Until
from clients.place import Place
from clients.real import ClaudeCode, Client, Codex


def test_prompts_that_interleave(place: Place) -> None:
    """Undo of one keeps the other's work, whichever is taken back, and redo brings it back."""
    claude, codex, tree = ClaudeCode(place), Codex(place), place.tree
    for client in (claude, codex):
        client.install()
    before = oracle.picture(tree)
    first, second = threading.Event(), threading.Event()
    top, end = [(tree / "a.txt", "one", "CLAUDE")], [(tree / "a.txt", "seven", "CODEX")]
    place.model.plays(
        "the top",
        claude.create(tree / "claude.txt", "claude\n"),
        [Until(first), *claude.edits(top)[0]],
        *claude.edits(top)[1:],
        claude.shell("echo claude > claude-shell.txt"),
    )
    place.model.plays(
        "the end",
        codex.create(tree / "codex.txt", "codex\n"),
        [Until(second), codex.shell("rm b.txt")],
        *codex.edits(end),
    )
    running = claude.start("the top"), codex.start("the end")
    # Both have made their file and wait; then one after the other goes on.
    place.model.wait_for("the top", 1)
    place.model.wait_for("the end", 1)
    first.set()
    running[0].over()
    second.set()
    running[1].over()
    assert (tree / "a.txt").read_text() == "CLAUDE\ntwo\nthree\nfour\nfive\nsix\nCODEX\n"
    told = {turn["agent"]: {change["path"] for change in turn["changes"]} for turn in place.turns()}
    assert told == {
        "claude-code": {"claude.txt", "a.txt", "claude-shell.txt"},
        "codex": {"codex.txt", "b.txt", "a.txt"},
    }
    done = oracle.picture(tree)

    for client, other in ((claude, codex), (codex, claude)):
        place.takeback("undo", turn_of(place, client), "--yes")
        left = oracle.picture(tree)
        assert oracle.differences(left, done, paths_of(place, client)) == []
        text = (tree / "a.txt").read_text()
        assert (name_of(client) in text, name_of(other) in text) == (False, True)
        place.takeback("redo", "--yes")
        assert oracle.differences(done, oracle.picture(tree)) == []
    for client in (claude, codex):
        place.takeback("undo", turn_of(place, client), "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


def name_of(client: Client) -> str:
    """What this client wrote into the file that both edit."""
    return {"claude-code": "CLAUDE", "codex": "CODEX"}[client.NAME]


def turn_of(place: Place, client: Client) -> str:
    """The id of the turn of a client."""
    return str(next(turn["id"] for turn in place.turns() if turn["agent"] == client.NAME))


def paths_of(place: Place, client: Client) -> list[bytes]:
    """What the turn of a client changed."""
    (turn,) = [turn for turn in place.turns() if turn["agent"] == client.NAME]
    return [change["path"].encode() for change in turn["changes"]]


def test_turns_one_after_the_other(place: Place) -> None:
    """Prompts of both follow each other; each `undo` takes back the newest, whoever's it is."""
    claude, codex, tree = ClaudeCode(place), Codex(place), place.tree
    clients: list[Client] = [claude, codex]
    states = [oracle.picture(tree)]
    for client in clients:
        client.install()
    for number in range(4):
        client = clients[number % 2]
        words = f"echo {number} >> both.txt; echo {number} > own-{number}.txt"
        client.prompt(place.model.plays(f"prompt {number}", client.shell(words)))
        states.append(oracle.picture(tree))
    for state in reversed(states[:-1]):
        place.takeback("undo")
        assert oracle.differences(state, oracle.picture(tree)) == []
    for state in states[1:]:
        place.takeback("redo")
        assert oracle.differences(state, oracle.picture(tree)) == []
