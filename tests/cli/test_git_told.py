"""What a turn does to git is said by every command, and never "nothing changed"."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import program
from cases import Work

LOSSES = {
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
    assert "skipped 1 newer turn that changed only git" in told
    assert "changed nothing" not in told


def test_a_deleted_repository_is_rescued(repository: Path) -> None:
    """No command says that it is lost, and undo brings it back."""
    told = takeback(repository, "run", "--", "rm", "-rf", ".git").stderr
    assert "1 rescued" in told
    assert "brings back what was rescued" in told
    assert "1 rescued" in takeback(repository, "log").stdout
    assert "Rescued before" in takeback(repository, "show", "rm -rf").stdout
    assert ".git was rescued: `takeback undo" in takeback(repository).stdout
    (found,) = json.loads(takeback(repository, "log", "--json").stdout)["turns"][0]["git"]
    assert found["code"] == "git-gone"
    undone = takeback(repository, "undo")
    assert "stays" not in undone.stdout + undone.stderr
    assert (repository / ".git/HEAD").exists()


def test_a_deleted_repository_is_lost_and_not_covered(repository: Path) -> None:
    """Bare `takeback` says that `.git` is gone, if a program that nobody could read deleted it."""
    script = repository.with_name("script.py")
    script.write_text("import shutil\nshutil.rmtree('.git')\n")
    takeback(repository, "run", "--", sys.executable, str(script))
    assert "Lost      .git" in takeback(repository).stdout
    assert "`.git` stays deleted" in takeback(repository, "undo", "--dry-run").stdout
    made = takeback(repository, "run", "--", "git", "init", "-q").stderr
    assert "created a git repository" in made
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
    # Away, not removed: a new folder could get the inode of a removed one.
    (repository / ".git").rename(repository.with_name("away"))
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


def test_what_a_turn_staged_stays_staged(repository: Path) -> None:
    """An undo says that the index keeps the turn's version, and the command takes it out."""
    run = "echo BAD > a; echo BAD > new; git add a new"
    takeback(repository, "run", "-m", "stage", "--", "sh", "-c", run)
    told = takeback(repository, "undo").stderr
    (call,) = [word for word in told.split("`") if word.startswith("git restore --staged ")]
    subprocess.run(["/bin/sh", "-c", call], cwd=repository, check=True)
    shown = ["git", "diff", "--cached", "--name-only"]
    staged = subprocess.run(shown, cwd=repository, check=True, capture_output=True, text=True)
    assert staged.stdout == ""
    takeback(repository, "run", "-m", "plain", "--", "sh", "-c", "echo 5 > a")
    assert "the index still has" not in takeback(repository, "undo").stderr


def test_undo_goes_on_after_a_turn_that_lost_something(repository: Path) -> None:
    """Git moved, and what was lost was not covered: said once, and the next undo goes on."""
    (repository / "node_modules").mkdir()
    for number in range(300):
        (repository / "node_modules" / str(number)).touch()
    takeback(repository, "checkpoint")
    takeback(repository, "run", "-m", "lose", "--", "sh", "-c", "rm -r node_modules; git tag z")
    assert "node_modules  rescued" in takeback(repository, "undo").stdout
    assert (repository / "b").exists()
    takeback(repository, "undo")
    assert not (repository / "b").exists()


def test_a_time_means_the_last_turn_before_it(repository: Path) -> None:
    """`undo now` is about the newest turn."""
    takeback(repository, "undo", "now", "--yes")
    assert not (repository / "b").exists()
