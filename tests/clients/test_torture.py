"""The turn that does everything, by the real clients: edit tools and shell, undo and redo."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
import torture
from clients.model import Action, Answer, Say
from clients.place import Place, wait_until
from clients.real import CLIENTS, Client
from torture_checks import (
    Git,
    assert_every_row_did_something,
    merged,
    stamps_of_bystanders,
    with_edits,
)

CREATED = {"b1": ("b1.txt",), "b2": ("new/dir/b2.txt",)}
"""Rows in which the edit tool makes files."""


def answers(client: Client, tree: Path) -> list[Action | Answer]:
    """The torture turn, as a model asks for it: with edit tools what is theirs, the rest by shell.

    All files are edited at once, and made at once, and the shell comes last.
    """
    edits, shell = [], []
    created: Answer = []
    for letter, row in torture.ROWS.items():
        if row.turn.startswith("tool "):
            _, name, old, new = row.turn.split(" ")
            edits.append((tree / name, old, new))
        elif letter in CREATED:
            created += [client.create(tree / name, "new\n") for name in CREATED[letter]]
        else:
            shell.append(row.turn)
    script = f"cd {shlex.quote(str(tree))}; set -e\n" + "\n".join(shell)
    return [*client.edits(edits), created, client.shell(f"bash -c {shlex.quote(script)}")]


@pytest.mark.parametrize("inside", ["", "sub/folder"], ids=["top", "subfolder"])
@pytest.mark.parametrize("git", [True, False], ids=["git", "plain"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_everything_comes_back_and_goes_again(
    kind: type[Client], git: bool, inside: str, make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """All rows are undone and redone exactly, nothing of the user's is lost, git is not touched."""
    place = make_place(git=git, full=True)
    tree, here = place.tree, place.tree / inside
    client = kind(place)
    client.install()
    client.prompt(place.model.plays("warm up", client.shell("echo warm > warm.txt")))
    before, users = oracle.picture(tree), Git(tree)
    client.prompt(place.model.plays("do everything", *answers(client, tree)), where=here)
    require_exact_ways_back(place, here, before, users, tmp_path)


@pytest.mark.parametrize("kind", CLIENTS)
def test_everything_comes_back_in_a_terminal(
    kind: type[Client], make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """The same, with both prompts at a terminal, while the client still sits there."""
    place = make_place(full=True)
    tree = place.tree
    client = kind(place)
    client.install()
    screen = client.sit_down(
        place.model.plays("warm up", client.shell("echo warm > warm.txt"), Say("It is warm."))
    )
    try:
        wait_until("it is warm", lambda: statuses(place) == ["done"])
        before, users = oracle.picture(tree), Git(tree)
        place.model.plays("do everything", *answers(client, tree))
        screen.type("do everything")
        wait_until("everything is done", lambda: statuses(place) == ["done", "done"])
        require_exact_ways_back(place, tree, before, users, tmp_path)
    finally:
        screen.close()


def statuses(place: Place) -> list[str]:
    """How the turns ended, the oldest first."""
    return [turn["status"] for turn in place.turns()]


def require_exact_ways_back(
    place: Place, here: Path, before: oracle.Picture, users: Git, scratch: Path
) -> None:
    """The turn did everything; undo, redo and undo again are exact, with the user's edits."""
    tree = place.tree
    after = oracle.picture(tree)
    assert_every_row_did_something(before, after)
    assert [turn["label"] for turn in place.turns()] == ["warm up", "do everything"]

    torture.edit_afterwards(tree)
    edited = oracle.picture(tree)
    bystanders = stamps_of_bystanders(tree)
    undone = {**with_edits(before, after, edited), b"k1.txt": merged(scratch)}
    for verb, expected in (("undo", undone), ("redo", edited), ("undo", undone)):
        place.takeback(verb, where=here)
        assert oracle.differences(expected, oracle.picture(tree)) == []
        assert users.changes() == []
        assert oracle.differences(bystanders, stamps_of_bystanders(tree)) == []
    assert (tree / "warm.txt").read_text() == "warm\n"
    place.takeback("verify")
