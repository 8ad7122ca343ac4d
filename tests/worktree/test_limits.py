"""What is left out, and that limits bind discovery only."""

import os
import subprocess
from pathlib import Path

import pytest

import takeback
from takeback.capture.project_rules import Limits


def _left_out(checkpoint: takeback.Checkpoint) -> dict[str, str]:
    return {os.fsdecode(left.path): left.reason for left in checkpoint.left_out}


def _files(folder: Path, count: int, size: int = 10) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"f{number}").write_bytes(b"x" * size)


def _git(tree: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("count", "size", "out"),
    [(150, 10, False), (201, 10, True), (11, 1 << 20, True)],
    ids=["small", "many entries", "many bytes"],
)
def test_rebuildable_folders_are_left_out_when_big(
    tree: Path, home: Path, count: int, size: int, out: bool
) -> None:
    """A folder like node_modules is captured while it is small."""
    _files(tree / "web" / "node_modules", count, size)
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
    assert _left_out(made) == ({"web/node_modules": "rebuildable"} if out else {})


def test_other_ignored_folders_are_left_out_when_big(tree: Path, home: Path) -> None:
    """An ignored folder with many entries is left out; small ignored ones and files are not."""
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / ".gitignore").write_text("/data/\n/few/\n.env\n")
    _files(tree / "data", 201)
    _files(tree / "few", 20)
    _files(tree / "source", 300)
    (tree / ".env").write_text("SECRET=1\n")
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
        project.extract("@", tree.with_name("out"))
    assert _left_out(made) == {".git": "version control", "data": "ignored"}
    assert (tree.with_name("out") / ".env").read_text() == "SECRET=1\n"
    assert len(os.listdir(tree.with_name("out") / "few")) == 20
    assert len(os.listdir(tree.with_name("out") / "source")) == 300


def test_large_files_are_left_out_unless_git_tracks_them(tree: Path, home: Path) -> None:
    """The size limit spares what is in the user's index."""
    _git(tree, "init", "-q")
    for name in ("tracked.bin", "loose.bin"):
        with (tree / name).open("wb") as file:
            file.truncate(17 << 20)
    _git(tree, "add", "tracked.bin")
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
    assert _left_out(made) == {".git": "version control", "loose.bin": "too large"}


def test_folders_that_git_tracks_are_captured_whatever_their_name(tree: Path, home: Path) -> None:
    """A `build` folder under version control is source, however big."""
    _git(tree, "init", "-q")
    _files(tree / "build", 300)
    _git(tree, "add", "build/f1")
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {".git": "version control"}


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "without stat cache"])
def test_what_was_captured_once_stays_captured(tree: Path, home: Path, warm: bool) -> None:
    """A file or folder that outgrows a limit later is still captured."""
    (tree / "log").write_bytes(b"small")
    _files(tree / "dist", 100)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with (tree / "log").open("wb") as file:
            file.truncate(17 << 20)
        for number in range(100):
            (tree / "dist" / f"f{number}").write_bytes(b"y" * 200_000)
        if not warm:
            (home / "projects" / project.id / "index").unlink()
        made = project.checkpoint()
        project.extract("@", tree.with_name("out"))
    assert _left_out(made) == {}
    assert (tree.with_name("out") / "log").stat().st_size == 17 << 20
    assert (tree.with_name("out") / "dist" / "f99").read_bytes() == b"y" * 200_000


def test_a_captured_rebuildable_folder_does_not_grow_without_end(tree: Path, home: Path) -> None:
    """An install that was caught half-way is not captured whole afterwards; the half stays."""
    _files(tree / "node_modules" / "first", 150)
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {}
        _files(tree / "node_modules" / "second", 190)
        assert _left_out(project.checkpoint()) == {}
        _files(tree / "node_modules" / "third", 190)
        made = project.checkpoint()
    assert _left_out(made) == {"node_modules/third": "rebuildable"}


def test_a_left_out_folder_that_is_made_anew_is_judged_anew(tree: Path, home: Path) -> None:
    """Once node_modules is small again, it is captured."""
    _files(tree / "node_modules", 201)
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {"node_modules": "rebuildable"}
        (tree / "node_modules").rename(tree.parent / "away")
        _files(tree / "node_modules", 3)
        assert _left_out(project.checkpoint()) == {}


def test_limits_come_from_settings_outside_the_tree(tree: Path, home: Path) -> None:
    """The user's settings hold everywhere, a project's own for that one, the tree's never."""
    _files(tree / "node_modules", 50)
    (tree / "config.toml").write_text("[limits]\nentries = 1\n")
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {}
    (home / "config.toml").write_text("[limits]\nfile = 5\n")
    with takeback.open(tree, home=home) as project:
        sticky = project.checkpoint()
    assert _left_out(sticky) == {}, "captured before, so it stays"
    (tree / "fresh").write_bytes(b"six6!!")
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {"fresh": "too large"}
        (home / "projects" / project.id / "config.toml").write_text("[limits]\nfile = 1000\n")
    with takeback.open(tree, home=home) as project:
        assert _left_out(project.checkpoint()) == {}


@pytest.mark.parametrize(
    "text",
    ["[limits]\nfile = -1\n", "[limits\n", '[limits]\nfile = "x"\n'],
    ids=["negative", "not TOML", "not a number"],
)
def test_wrong_settings_are_told_and_defaults_count(tree: Path, home: Path, text: str) -> None:
    """A setting that cannot be meant ends no protection: it is told, and the default counts."""
    (home / "config.toml").write_text(text)
    (tree / "file").write_text("x")
    with takeback.open(tree, home=home) as project:
        assert project.checkpoint().entries == 1
        assert len(project.workspace.rules.unread_settings) == 1
        assert project.workspace.rules.largest_file() == Limits().file


def test_an_agent_that_edits_gitignore_makes_nothing_vanish(tree: Path, home: Path) -> None:
    """Ignoring a captured folder later does not drop it from the next checkpoint."""
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    _files(tree / "work", 300)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        (tree / ".gitignore").write_text("*\n")
        (home / "projects" / project.id / "index").unlink()
        made = project.checkpoint()
    assert _left_out(made) == {".git": "version control"}
    assert made.entries == 300 + 2
