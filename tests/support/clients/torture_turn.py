"""The torture turn as the model of a real client asks for it, and what must hold afterwards."""

import os
import shlex
from pathlib import Path

import oracle
import torture
from clients.client import Client
from clients.model import Action, Answer
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
        if letter in client.cannot_play:
            continue
        if row.turn.startswith("tool "):
            _, name, old, new = row.turn.split(" ")
            edits.append((tree / name, old, new))
        elif letter in CREATED:
            created += [client.create(tree / name, "new\n") for name in CREATED[letter]]
        else:
            shell.append(row.turn)
    script = f"cd {shlex.quote(str(tree))}; set -e\n" + "\n".join(shell)
    made: list[Action | Answer] = [created] if client.AT_ONCE else [*created]
    return [*client.edits(edits), *made, client.script(script)]


def require_exact_ways_back(
    client: Client, here: Path, before: oracle.Picture, users: Git, scratch: Path
) -> None:
    """The turn did everything; undo, redo and undo again are exact, with the user's edits."""
    place, tree = client.place, client.place.tree
    after = oracle.picture(tree)
    begin = tuple(map(os.fsencode, client.MARKS_IN_GIT))
    if begin:
        marks = {path: what for path, what in after.items() if path.startswith(begin)}
        others = {path: what for path, what in before.items() if not path.startswith(begin)}
        before, users = {**others, **marks}, Git(tree)
    assert_every_row_did_something(before, after, client.cannot_play)
    labels = [turn["label"] for turn in place.turns()]
    assert labels == ["warm up", "do everything"], labels

    torture.edit_afterwards(tree)
    edited = oracle.picture(tree)
    bystanders = stamps_of_bystanders(tree)
    undone = {**with_edits(before, after, edited), b"k1.txt": merged(scratch)}
    for verb, expected in (("undo", undone), ("redo", edited), ("undo", undone)):
        place.takeback(verb, where=here)
        left = oracle.differences(expected, oracle.picture(tree))
        assert left == [], left
        assert users.changes() == []
        assert oracle.differences(bystanders, stamps_of_bystanders(tree)) == []
    assert (tree / "warm.txt").read_text() == "warm\n"
    place.takeback("verify")
