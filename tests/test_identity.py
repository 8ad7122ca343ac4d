"""Which history belongs to which folder."""

import os
import shutil
from pathlib import Path

import pytest

import takeback
from takeback.project import Project


def _fill(folder: Path, *names: str) -> None:
    for name in names or ("a.py", "b.py", "c.py", "d.py"):
        (folder / name).write_text(f"{name}\n")


def _open(folder: Path, home: Path) -> takeback.Project:
    return takeback.open(folder, home=home)


def test_the_same_folder_is_the_same_project(tree: Path, home: Path) -> None:
    """A folder that is opened again has the history it had."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    with _open(tree, home) as again:
        assert again.id == project.id
        assert again.checkpoint().id == made.id


def test_a_subfolder_joins_the_project_above(tree: Path, home: Path) -> None:
    """No two projects cover one file: a folder inside a project belongs to it."""
    (tree / "src" / "deep").mkdir(parents=True)
    with _open(tree, home) as project, _open(tree / "src" / "deep", home) as inside:
        assert (inside.id, inside.root) == (project.id, os.fsencode(tree))


def test_a_new_project_begins_at_the_top_of_the_repository(tree: Path, home: Path) -> None:
    """Opened somewhere in a repository, a new project covers all of it."""
    (tree / ".git").mkdir()
    (tree / "src").mkdir()
    with _open(tree / "src", home) as project:
        assert project.root == os.fsencode(tree)


def test_a_moved_folder_finds_its_history(tree: Path, home: Path) -> None:
    """A folder that was renamed goes on where it was, and its old place is free for another."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    elsewhere = tree.with_name("elsewhere")
    tree.rename(elsewhere)
    with _open(elsewhere, home) as moved:
        assert moved.id == project.id
        assert moved.root == os.fsencode(elsewhere)
        assert moved.checkpoint().id == made.id
    tree.mkdir()
    with _open(tree, home) as another:
        assert another.id != project.id


def test_a_moved_folder_of_folders_finds_its_history(tree: Path, home: Path) -> None:
    """A project with nothing but folders at its top is known by those."""
    (tree / "src").mkdir()
    (tree / "src" / "x").write_text("x")
    with _open(tree, home) as project:
        project.checkpoint()
    elsewhere = tree.with_name("elsewhere")
    tree.rename(elsewhere)
    with _open(elsewhere, home) as moved:
        assert moved.id == project.id


def test_a_copy_beside_the_original_has_a_history_of_its_own(tree: Path, home: Path) -> None:
    """Two folders never share a history by accident."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    copy = tree.with_name("copy")
    shutil.copytree(tree, copy)
    with _open(copy, home) as other:
        assert other.id != project.id
        assert other.status().checkpoints == 0


def test_a_folder_made_anew_at_the_same_place_asks(tree: Path, home: Path) -> None:
    """Another folder at a known path is not joined to the old history without being asked."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    tree.rename(tree.with_name("kept so that its inode stays taken"))
    tree.mkdir()
    _fill(tree)
    with pytest.raises(takeback.ProjectIdentityError, match=project.id) as asked:
        _open(tree, home)
    assert f"takeback relocate --join {project.id}" in asked.value.hint


def test_a_copy_whose_original_is_gone_asks(tree: Path, home: Path) -> None:
    """Moved to another disk is copied and removed: whose history it is, the user says."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    copy = tree.with_name("copy")
    shutil.copytree(tree, copy)
    shutil.rmtree(tree)
    with pytest.raises(takeback.ProjectIdentityError, match=project.id):
        _open(copy, home)


def test_a_reused_inode_is_not_enough(tree: Path, home: Path) -> None:
    """A folder with a known inode, but nothing in it that we know, is a new project."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    elsewhere = tree.with_name("elsewhere")
    tree.rename(elsewhere)
    for name in os.listdir(elsewhere):
        (elsewhere / name).unlink()
    _fill(elsewhere, "quite", "different", "names")
    with _open(elsewhere, home) as other:
        assert other.id != project.id


@pytest.mark.parametrize("join", [True, False], ids=["join", "new"])
def test_the_user_decides(tree: Path, home: Path, join: bool) -> None:
    """`relocate` joins the old history or begins a new one, and the old one stays."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint("old")
    tree.rename(tree.with_name("kept"))
    tree.mkdir()
    _fill(tree)
    chosen = project.id if join else None
    with Project.relocate(os.fsencode(tree), home=os.fsencode(home), join=chosen) as decided:
        assert (decided.id == project.id) is join
    with _open(tree, home) as after:
        assert after.id == decided.id
        assert after.checkpoint().new is not join
    if not join:
        assert (home / "projects" / project.id / "ledger.db").exists()
    assert made.new


def test_joining_an_unknown_project_is_refused(tree: Path, home: Path) -> None:
    """A project that does not exist cannot be joined."""
    with pytest.raises(takeback.UnknownReferenceError):
        Project.relocate(os.fsencode(tree), home=os.fsencode(home), join="kkkkkkkk")


def test_a_lost_registry_is_made_again(tree: Path, home: Path) -> None:
    """The registry is only a copy of what the stores say about themselves."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    (home / "registry").unlink()
    with _open(tree, home) as again:
        assert again.id == project.id
    (home / "registry").write_bytes(b"\0garbage\nmore garbage\n")
    with _open(tree, home) as again:
        assert again.id == project.id


def test_odd_paths_are_remembered_exactly(tmp_path: Path, home: Path) -> None:
    """A root whose path holds newlines, percent signs and no UTF-8 is found again."""
    odd = os.fsencode(tmp_path) + b"/odd %0A \n \xff name"
    os.mkdir(odd)
    with takeback.open(odd, home=home) as project:
        assert project.root == odd
    with takeback.open(odd, home=home) as again:
        assert again.id == project.id


def test_a_home_that_is_a_repository_does_not_swallow_everything(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dotfiles in git make the home folder a repository; projects in it are still their own."""
    person = tmp_path / "person"
    (person / ".git").mkdir(parents=True)
    (person / "work").mkdir()
    monkeypatch.setenv("HOME", str(person))
    with takeback.open(person / "work", home=home) as project:
        assert project.root == os.fsencode(person / "work")
    with pytest.raises(takeback.UnsafeRootError):
        takeback.open(person, home=home)
