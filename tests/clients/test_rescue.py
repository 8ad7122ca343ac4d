"""A real client destroys what no checkpoint holds; undo and the printed commands bring it back."""

import os
import subprocess
from pathlib import Path

import pytest

import torture
from clients.place import Place
from clients.real import ClaudeCode

BIG = 300_000_000


def state(tree: Path) -> dict[str, object]:
    """What git and the files of a tree look like."""
    files = {
        str(path.relative_to(tree)): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }
    told = {
        "status": torture.git(tree, "status", "--porcelain=v2", "--branch"),
        "stash": torture.git(tree, "stash", "list"),
        "branch": torture.git(tree, "branch", "-v"),
        "fsck": torture.git(tree, "fsck", "--no-dangling", "--no-progress"),
    }
    return {"files": files, **told}


def work_in(tree: Path) -> None:
    """Staged, unstaged, untracked, ignored and stashed work, and a branch that is not merged."""
    (tree / ".gitignore").write_text("ignored\n")
    torture.git(tree, "add", ".")
    torture.git(tree, "commit", "-qm", "one")
    torture.git(tree, "branch", "-M", "main")
    for text in ("first", "second"):
        (tree / "a.txt").write_text(f"{text}\n")
        torture.git(tree, "stash", "push", "-qm", text)
    torture.git(tree, "switch", "-qc", "feature")
    (tree / "more").write_text("more\n")
    torture.git(tree, "add", ".")
    torture.git(tree, "commit", "-qm", "two")
    torture.git(tree, "switch", "-q", "main")
    (tree / "a.txt").write_text("staged\n")
    torture.git(tree, "add", "a.txt")
    (tree / "b.txt").write_text("unstaged\n")
    (tree / "untracked").write_text("untracked\n")
    (tree / "ignored").write_text("ignored\n")


def undo(place: Place) -> None:
    """Undo, then run each command that it prints."""
    for stays in place.told("undo", "--yes")["stays"]:
        for command in stays["text"].split("`")[1::2]:
            if command.split()[0] in ("git", "cp", "mkdir"):
                run = ["sh", "-ec", command]
                subprocess.run(run, cwd=place.tree, check=True, capture_output=True)


def test_what_find_deletes_comes_back(place: Place) -> None:
    """A large untracked file, a folder beside the project, and `.git` with all that is in it."""
    tree, client = place.tree, ClaudeCode(place)
    work_in(tree)
    client.install()
    notes = place.scratch / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "deep" / "a").write_bytes(b"a note\n")
    with (tree / "big.bin").open("wb") as file:
        file.write(os.urandom(1000))
        file.truncate(BIG)
    before = state(tree)
    client.prompt(
        place.model.plays(
            "clean up",
            client.shell("find big.bin -delete"),
            client.shell(f"find {notes} -delete"),
            client.shell("find .git -delete"),
        )
    )
    assert not (tree / "big.bin").exists()
    assert not (tree / ".git").exists()
    assert not notes.exists()
    undo(place)
    assert (notes / "deep" / "a").read_bytes() == b"a note\n"
    assert state(tree) == before


def test_a_project_folder_that_find_deletes_comes_back(place: Place) -> None:
    """With its `.git` and the large file that no checkpoint held."""
    tree, client = place.tree, ClaudeCode(place)
    work_in(tree)
    (tree / "big.bin").touch()
    os.truncate(tree / "big.bin", BIG)
    client.install()
    before = state(tree)
    client.prompt(place.model.plays("start over", client.shell(f"find {tree} -delete")))
    place.takeback("undo", "--yes", "-C", str(tree), where=place.scratch)
    assert state(tree) == before


@pytest.mark.parametrize(
    "command",
    ["git reset --hard -q", "git clean -fdxq", "git stash drop -q", "git branch -qD feature"],
)
def test_what_git_destroys_comes_back(command: str, place: Place) -> None:
    """Files with undo; index, stash and branch with the commands that it prints."""
    tree, client = place.tree, ClaudeCode(place)
    work_in(tree)
    client.install()
    before = state(tree)
    client.prompt(place.model.plays("tidy up", client.shell(command)))
    assert state(tree) != before
    undo(place)
    assert state(tree) == before
