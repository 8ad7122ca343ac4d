"""A turn that does everything, through the real command, taken back and put back exactly."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
import program
import torture
from torture import git
from torture_checks import (
    Git,
    assert_every_row_did_something,
    merged,
    stamps_of_bystanders,
    with_edits,
)

NEEDS_A_DECISION = 3


def takeback(where: Path, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run the real command in a folder, which must end with this code."""
    done = program.text(words, where)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def run(where: Path, script: str) -> None:
    """Let a turn run a script."""
    takeback(where, "run", "-q", "--", "/bin/sh", "-c", script)


# -- surroundings ------------------------------------------------------------------------------


def plain_folder(folder: Path) -> Path:
    """A folder without version control."""
    tree = folder / "tree"
    tree.mkdir()
    torture.make(tree)
    return tree


def repository(folder: Path) -> Path:
    """The top of a git repository with a commit, a stash, staged and untracked files."""
    tree = plain_folder(folder)
    git(tree, "init", "-q")
    torture.commit(tree)
    return tree


def without_a_commit(folder: Path) -> Path:
    """A git repository in which nothing was committed yet."""
    tree = plain_folder(folder)
    git(tree, "init", "-q")
    git(tree, "add", "staged.txt", "a.txt")
    return tree


def linked_worktree(folder: Path) -> Path:
    """A work tree that shares the repository of another one."""
    main = folder / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "nothing yet")
    git(main, "worktree", "add", "-q", "-b", "side", "../tree")
    tree = folder / "tree"
    torture.make(tree)
    torture.commit(tree)
    return tree


SURROUNDINGS = (plain_folder, repository, without_a_commit, linked_worktree)


@pytest.fixture(autouse=True)
def _private_store(home: Path) -> None:
    """Every test has a store of its own."""
    assert home.is_dir()


@pytest.fixture(
    params=[(make, inside) for make in SURROUNDINGS for inside in ("", "sub/folder")],
    ids=lambda param: f"{param[0].__name__}-{'subfolder' if param[1] else 'top'}",
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A filled folder, and where in it commands are run."""
    make, inside = request.param
    tree = make(tmp_path)
    return tree, tree / inside


# -- the torture turn --------------------------------------------------------------------------


def test_everything_comes_back_and_goes_again(place: tuple[Path, Path], tmp_path: Path) -> None:
    """All rows are undone and redone exactly, and nothing else is touched, not even a stamp.

    Both edits of the user stay: the new file, and the line in a file that the turn edited, too.
    """
    tree, here = place
    run(tree, "echo warm > warm.txt")
    before = oracle.picture(tree)
    users = Git(tree)
    run(here, f"cd '{tree}'\n{torture.SCRIPT}")
    after = oracle.picture(tree)
    assert users.changes() == []
    assert_every_row_did_something(before, after)

    torture.edit_afterwards(tree)
    edited = oracle.picture(tree)
    bystanders = stamps_of_bystanders(tree)
    undone = {**with_edits(before, after, edited), b"k1.txt": merged(tmp_path)}
    for verb, expected in (("undo", undone), ("redo", edited), ("undo", undone)):
        takeback(here, verb)
        assert oracle.differences(expected, oracle.picture(tree)) == []
        assert users.changes() == []
        assert oracle.differences(bystanders, stamps_of_bystanders(tree)) == []
    assert (tree / "warm.txt").read_text() == "warm\n"
    takeback(here, "verify")


def test_two_turns_come_back_one_after_the_other(tmp_path: Path) -> None:
    """A second undo takes back the turn before, and two redos put both back."""
    tree = repository(tmp_path)
    states = [oracle.picture(tree)]
    run(tree, "echo warm > warm.txt; rm d.txt; chmod 600 c.txt")
    states.append(oracle.picture(tree))
    run(tree, "mv warm.txt d.txt; echo again > c.txt")
    states.append(oracle.picture(tree))
    for verb, expected in (("undo", 1), ("undo", 0), ("redo", 1), ("redo", 2)):
        takeback(tree, verb)
        assert oracle.differences(states[expected], oracle.picture(tree)) == []


def test_single_paths_come_back_from_a_subfolder(tmp_path: Path) -> None:
    """`-- PATH` counts from where one stands; the rest of the turn stays."""
    tree = plain_folder(tmp_path)
    run(tree, "echo two > a.txt; echo two > sub/folder/x; echo two > c.txt")
    takeback(tree / "sub", "undo", "--yes", "--", "folder/x", "../a.txt")
    assert (tree / "sub/folder/x").read_text() == "one\n"
    assert (tree / "a.txt").read_text() == "one\n"
    assert (tree / "c.txt").read_text() == "two\n"


# -- the user's edits --------------------------------------------------------------------------


Edit = tuple[str, str, Callable[[Path], object]]
"""A path, what the turn does to it, and what the user does then."""

CONFLICTS: dict[str, Edit] = {
    "edited what was edited": ("a.txt", "echo agent > a.txt", lambda path: append(path, "user\n")),
    "made again what was deleted": ("a.txt", "rm a.txt", lambda path: path.write_text("user\n")),
}
KEPT: dict[str, Edit] = {
    "edited what was made": ("new", "echo agent > new", lambda path: append(path, "user\n")),
    "deleted what was edited": ("a.txt", "echo agent > a.txt", lambda path: path.unlink()),
}


def append(path: Path, text: str) -> None:
    """Add to a file."""
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("what", CONFLICTS)
def test_a_later_edit_of_the_same_lines_is_never_lost(what: str, tmp_path: Path) -> None:
    """What the user did in the same place is a conflict: nothing is written, code 3."""
    tree = plain_folder(tmp_path)
    path, script, edit = CONFLICTS[what]
    run(tree, script + "; echo agent > c.txt")
    edit(tree / path)
    edited = oracle.picture(tree)
    for words in (["undo"], ["undo", "--yes"]):
        done = takeback(tree, *words, code=NEEDS_A_DECISION)
        assert path in done.stdout + done.stderr
        assert oracle.differences(edited, oracle.picture(tree)) == []


@pytest.mark.parametrize("what", KEPT)
def test_what_the_user_made_of_it_stays(what: str, tmp_path: Path) -> None:
    """The user's version stays and is named; the rest of the turn is taken back, and comes back."""
    tree = plain_folder(tmp_path)
    path, script, edit = KEPT[what]
    run(tree, script + "; echo agent > c.txt")
    edit(tree / path)
    edited = oracle.picture(tree)
    told = takeback(tree, "undo", "--json").stdout
    assert path in [kept["path"] for kept in json.loads(told)["kept"]]
    assert oracle.differences(edited, oracle.picture(tree), [b"c.txt"]) == []
    assert (tree / "c.txt").read_text() == "one\n"
    takeback(tree, "redo")
    assert oracle.differences(edited, oracle.picture(tree)) == []


def test_a_users_file_in_a_folder_of_the_turn_keeps_the_folder(tmp_path: Path) -> None:
    """A folder that the turn made stays when the user put something into it, and it says so."""
    tree = plain_folder(tmp_path)
    run(tree, "mkdir made; echo agent > made/agents")
    (tree / "made/users").write_text("user\n")
    told = takeback(tree, "undo", "--json").stdout
    assert (tree / "made/users").read_text() == "user\n"
    assert not (tree / "made/agents").exists()
    assert "made" in [kept["path"] for kept in json.loads(told)["kept"]]


# -- the user's git ----------------------------------------------------------------------------


def test_a_commit_of_the_turn_stays_and_is_named(tmp_path: Path) -> None:
    """Files go back, the commit and the index stay; the report says how git takes them back."""
    tree = repository(tmp_path)
    before = git(tree, "rev-parse", "HEAD")
    run(tree, f"echo two > a.txt; {commit_command('agents')}")
    made = git(tree, "rev-parse", "HEAD")
    users = Git(tree)
    told = takeback(tree, "undo")
    assert (tree / "a.txt").read_text() == "one\n"
    assert users.changes() == []
    assert made[:7] in told.stderr
    assert f"git reset --soft {before[:7]}" in told.stderr


def test_a_branch_that_the_turn_made_stays(tmp_path: Path) -> None:
    """A turn that ended on a branch of its own is taken back there without a question."""
    tree = repository(tmp_path)
    run(tree, f"git checkout -qb agents; echo two > a.txt; {commit_command('agents')}")
    users = Git(tree)
    takeback(tree, "undo")
    assert (tree / "a.txt").read_text() == "one\n"
    assert users.changes() == []


def test_what_the_turn_staged_stays_staged(tmp_path: Path) -> None:
    """The index is the user's also when the agent wrote to it."""
    tree = repository(tmp_path)
    run(tree, "echo two > a.txt; git add a.txt")
    users = Git(tree)
    takeback(tree, "undo")
    assert (tree / "a.txt").read_text() == "one\n"
    assert users.changes() == []
    assert git(tree, "show", ":a.txt") == "two"


@pytest.mark.parametrize("make", [repository, linked_worktree])
def test_another_branch_needs_consent(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """On another branch than the turn ended on, undo stops with 3; `--yes` goes on."""
    tree = make(tmp_path)
    ended_on = git(tree, "branch", "--show-current")
    run(tree, "echo two > a.txt")
    git(tree, "checkout", "-qb", "elsewhere")
    users, now = Git(tree), oracle.picture(tree)
    done = takeback(tree, "undo", code=NEEDS_A_DECISION)
    assert ended_on in done.stdout + done.stderr
    assert "elsewhere" in done.stdout + done.stderr
    assert oracle.differences(now, oracle.picture(tree)) == []
    takeback(tree, "undo", "--yes")
    assert (tree / "a.txt").read_text() == "one\n"
    assert users.changes() == []


def test_commits_of_the_user_on_the_same_branch_are_no_obstacle(tmp_path: Path) -> None:
    """New commits on the same branch are reported, and undo goes on without a question."""
    tree = repository(tmp_path)
    run(tree, "echo two > a.txt")
    git(tree, "commit", "-qam", "by the user")
    made, users = git(tree, "rev-parse", "HEAD"), Git(tree)
    told = takeback(tree, "undo")
    assert (tree / "a.txt").read_text() == "one\n"
    assert made[:7] in told.stderr
    assert users.changes() == []


def commit_command(message: str) -> str:
    """A commit of everything that git tracks, as the agent makes it."""
    who = "-c user.name=Agent -c user.email=agent@example.org"
    return f"git {who} commit -qam {message}"
