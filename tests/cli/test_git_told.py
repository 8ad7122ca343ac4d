"""What a turn does to git is said by every command, and never "nothing changed"."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import program
from cases import Work

LOSSES = {
    "rm -rf .git": "deleted `.git`",
    "git stash drop -q": "dropped a stash",
    "git branch -D users": "deleted the branch `users`",
    "rm .git/index": "deleted the index",
    "git switch -qc its": "switched from the branch `main` to the branch `its`",
}


@pytest.fixture
def repository(work: Work) -> Path:
    """A repository with a branch and a stash, and a turn that changed a file."""
    work.repository(a="0\n")
    work.git("branch", "users")
    work.write(a="1\n")
    work.git("stash", "-q")
    takeback(work.tree, "run", "--", "sh", "-c", "echo 2 > b")
    return work.tree


def takeback(tree: Path, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = program.text(words, tree, {**os.environ, "COLUMNS": "120"})
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("command", LOSSES)
def test_a_turn_that_changed_only_git(repository: Path, command: str) -> None:
    """Run, log, show, bare takeback, undo and JSON tell it, and undo passes it over with that."""
    said = LOSSES[command]
    told = takeback(repository, "run", "--", *command.split()).stderr
    assert "only git changed" in told
    assert said in told
    for words in (["log"], ["show", command], []):
        shown = takeback(repository, *words).stdout
        assert said in shown
        assert "nothing changed" not in shown.replace("nothing changed since checkpoint", "")
    assert "only git" in takeback(repository, "log").stdout
    turn = json.loads(takeback(repository, "log", "--json").stdout)["turns"][0]
    (found, *_) = turn["git"]
    assert said in found["text"]
    assert (turn["files"], turn["changes"]) == (0, [])
    doubt = 3 if command.startswith("git switch") else 0
    undone = takeback(repository, "undo", code=doubt)
    told = undone.stdout + undone.stderr
    if command == "rm -rf .git":
        assert "`.git` stays deleted" in told
        assert (repository / "b").exists()
    else:
        assert "passed over 1 newer turn that changed only git" in told
    assert "changed nothing" not in told


def test_a_deleted_repository_is_lost_and_not_covered(repository: Path) -> None:
    """Bare `takeback` says that `.git` is gone until there is one again."""
    takeback(repository, "run", "--", "rm", "-rf", ".git")
    assert "Lost      .git" in takeback(repository).stdout
    made = takeback(repository, "run", "--", "git", "init", "-q").stderr
    assert "made a git repository" in made
    assert "Lost" not in takeback(repository).stdout
    told = takeback(repository, "run", "--", "git", "switch", "-qc", "other").stderr
    assert told.count("  git     ") == 1
    takeback(repository, "verify")


def test_nothing_is_left_but_git(repository: Path) -> None:
    """When no turn changed a file, undo says so, each time, and names the command for git."""
    takeback(repository, "undo")
    takeback(repository, "run", "--", "git", "branch", "-D", "users")
    for _ in range(2):
        done = takeback(repository, "undo")
        assert "Nothing to do" in done.stdout
        assert "`git branch users " in done.stderr
    takeback(repository, "redo")
    assert (repository / "b").exists()


def test_a_repository_that_is_gone_or_another_has_no_commands(repository: Path) -> None:
    """What a turn did in a repository that is not there any more is told without a command."""
    takeback(repository, "run", "--", "git", "branch", "-D", "users")
    shutil.rmtree(repository / ".git")
    gone = takeback(repository, "undo", "git branch -D users")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=repository, check=True)
    another = takeback(repository, "undo", "git branch -D users")
    for done in (gone, another):
        assert "the branch `users` stays deleted" in done.stderr
        assert "git branch" not in done.stderr.replace("git branch -D users", "")


def test_the_status_is_no_change(repository: Path) -> None:
    """To read git, which may write its index, is no change of git."""
    (repository / "a").touch()
    told = takeback(repository, "run", "--", "git", "status")
    assert "nothing changed" in told.stderr
