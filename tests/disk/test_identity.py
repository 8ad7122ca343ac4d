"""Which history belongs to which folder."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import takeback
from hostile.stage import in_child as in_own_world
from registry_lines import rewrite
from takeback.project import Project
from takeback.upkeep.stores import Housekeeping

CAN_MOUNT = os.geteuid() == 0
NOW = 10**18 * 2


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
        assert (inside.id, inside.root) == (project.id, str(tree))


def test_a_new_project_begins_at_the_top_of_the_repository(tree: Path, home: Path) -> None:
    """Opened somewhere in a repository, a new project covers all of it."""
    (tree / ".git").mkdir()
    (tree / "src").mkdir()
    with _open(tree / "src", home) as project:
        assert project.root == str(tree)


def test_a_moved_folder_finds_its_history(tree: Path, home: Path) -> None:
    """A folder that was renamed goes on where it was, and its old place is free for another."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    elsewhere = tree.with_name("elsewhere")
    tree.rename(elsewhere)
    with _open(elsewhere, home) as moved:
        assert moved.id == project.id
        assert moved.root == str(elsewhere)
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
    """A folder with a known inode, but nothing in it that we know, is a new project.

    Here nobody can tell when a folder was made.
    """
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    (home / "projects" / project.id / "birth").unlink(missing_ok=True)
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
        assert project.root == os.fsdecode(odd)
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
        assert project.root == str(person / "work")
    with pytest.raises(takeback.UnsafeRootError):
        takeback.open(person, home=home)


# -- copies, backups, links, disks -------------------------------------------------------------


def test_a_true_copy_beside_the_original_has_a_history_of_its_own(tree: Path, home: Path) -> None:
    """`cp -a` keeps names, modes and times; it is another folder all the same."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    copy = tree.with_name("copy")
    subprocess.run(["cp", "-a", tree, copy], check=True)
    with _open(copy, home) as other:
        assert (other.id != project.id, other.checkpoint().new) == (True, True)
    with _open(tree, home) as again:
        assert (again.id, again.root) == (project.id, str(tree))


def test_a_restored_backup_at_the_same_place_asks_and_joins(tree: Path, home: Path) -> None:
    """What a backup brought back is another folder at a known place; joined, nothing is lost."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    backup = tree.with_name("backup")
    subprocess.run(["cp", "-a", tree, backup], check=True)
    inode = tree.stat().st_ino
    shutil.rmtree(tree)
    holder = tree.with_name("holder")
    holder.mkdir()  # so that the inode is not given to the folder that comes back
    subprocess.run(["cp", "-a", backup, tree], check=True)
    if tree.stat().st_ino != inode:
        with pytest.raises(takeback.ProjectIdentityError, match=project.id):
            _open(tree, home)
    home_path = os.fsencode(home)
    with Project.relocate(os.fsencode(tree), home=home_path, join=project.id) as joined:
        assert joined.checkpoint().id == made.id
        assert joined.verify().ok


def test_a_link_to_a_project_is_that_project(tree: Path, home: Path) -> None:
    """A symbolic link to the root, or above it, leads to the same history."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    link = tree.with_name("link")
    link.symlink_to(tree)
    above = tree.parent.with_name(tree.parent.name + "-link")
    above.symlink_to(tree.parent)
    for way in (link, above / "tree", link / "."):
        with _open(way, home) as same:
            assert (same.id, same.root) == (project.id, str(tree))
    above.unlink()


def test_a_moved_folder_with_a_link_at_its_old_place(tree: Path, home: Path) -> None:
    """Moved away and linked to from where it was: both ways lead to its history."""
    _fill(tree)
    with _open(tree, home) as project:
        project.checkpoint()
    moved = tree.with_name("moved")
    tree.rename(moved)
    tree.symlink_to(moved)
    for way in (tree, moved):
        with _open(way, home) as same:
            assert (same.id, same.root) == (project.id, str(moved))


@pytest.mark.parametrize("name", ["Tree", "TREE"])
def test_a_rename_of_letters_only_is_a_move(tree: Path, home: Path, name: str) -> None:
    """`tree` renamed to `Tree` goes on, and its root is written as it is now."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    renamed = tree.with_name(name)
    tree.rename(renamed)
    with _open(renamed, home) as same:
        assert (same.id, same.root) == (project.id, str(renamed))
        assert same.checkpoint().id == made.id
    assert name.encode() in (home / "registry").read_bytes()


def test_two_that_changed_places_are_each_their_own(tree: Path, home: Path) -> None:
    """Where both folders exist and each is at the other's place, each keeps its history."""
    other = tree.with_name("other")
    other.mkdir()
    _fill(tree)
    _fill(other, "x", "y", "z")
    ids = []
    for folder in (tree, other):
        with _open(folder, home) as project:
            ids.append(project.id)
            project.checkpoint()
    aside = tree.with_name("aside")
    tree.rename(aside)
    other.rename(tree)
    aside.rename(other)
    for folder, id in ((tree, ids[1]), (other, ids[0])) * 2:
        with _open(folder, home) as project:
            assert (project.id, project.root) == (id, str(folder))
            assert not project.checkpoint().new


def test_the_same_disk_with_another_number_is_the_same_folder(tree: Path, home: Path) -> None:
    """A disk may get another device number when it is mounted again; the folder is known."""
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    for place in (home / "projects" / project.id / "root", home / "registry"):
        rewrite(place, lambda line: re.sub(r"^(\w+) \d+", r"\1 999999", line))
    with _open(tree, home) as same:
        assert (same.id, same.checkpoint().id) == (project.id, made.id)
    assert str(tree.stat().st_dev) in (home / "registry").read_text()


@pytest.mark.skipif(not CAN_MOUNT, reason="needs root to mount")
def test_an_empty_mount_point_is_not_taken_for_the_project(tmp_path: Path, home: Path) -> None:
    """While its disk is not mounted nothing is taken for it, and its store is not called deleted;
    mounted again, it goes on.
    """
    in_own_world(lambda: _mount_and_unmount(tmp_path, home), mounts=True)


def _mount_and_unmount(folder: Path, home: Path) -> None:
    disk, place = folder / ".disk", folder / "place"
    disk.mkdir()
    place.mkdir()
    _run("mount", "-t", "tmpfs", "tmpfs", disk)
    (disk / "work/inner").mkdir(parents=True)
    _fill(disk / "work")
    _run("mount", "--bind", disk / "work", place)
    with _open(place, home) as project:
        made = project.checkpoint()
    _run("umount", place)
    with pytest.raises(takeback.ProjectIdentityError, match=project.id):
        _open(place, home)
    keeping = Housekeeping(os.fsencode(home))
    (known,) = keeping.projects(NOW)
    assert known.state == "not mounted"
    with pytest.raises(takeback.DecisionNeededError, match="mounted"):
        keeping.remove(project.id, NOW, even_if_in_use=True)
    _run("mount", "--bind", disk / "work", place)
    assert [each.state for each in keeping.projects(NOW)] == ["here"]
    with _open(place / "inner", home) as same:
        assert (same.id, same.checkpoint().id) == (project.id, made.id)


def _run(*words: "str | Path") -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.mark.skipif(not CAN_MOUNT, reason="needs root to mount")
def test_moved_to_another_disk_asks(tmp_path: Path, home: Path) -> None:
    """`mv` to another disk copies and deletes: that may be a move, so the user says."""
    in_own_world(lambda: _to_another_disk(tmp_path, home), mounts=True)


def _to_another_disk(folder: Path, home: Path) -> None:
    disk, tree = folder / "disk", folder / "tree"
    disk.mkdir()
    tree.mkdir()
    _fill(tree)
    with _open(tree, home) as project:
        made = project.checkpoint()
    _run("mount", "-t", "tmpfs", "tmpfs", disk)
    _run("mv", tree, disk / "tree")
    with pytest.raises(takeback.ProjectIdentityError, match=project.id) as asked:
        _open(disk / "tree", home)
    assert f"--join {project.id}" in asked.value.hint
    path = os.fsencode(disk / "tree")
    with Project.relocate(path, home=os.fsencode(home), join=project.id) as joined:
        assert (joined.id, joined.checkpoint().id) == (project.id, made.id)
