"""Whose files are after a restore by root: those of who had them, and setuid only if that is so."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import history
import takeback
from faults.children import Tell, in_child
from faults.injection import die
from faults.report import stage
from hostile.stage import in_child as in_own_world
from moments import Moments
from spoken import spoken
from takeback.disk import operations
from takeback.project import Project

USER = 65534
Owned = tuple[int, int, int]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A user's tree, and a project of root over it."""
    (tree / "sub").mkdir()
    for name in ("file", "sub/deep"):
        (tree / name).write_text("old\n")
    os.symlink("file", tree / "link")
    (tree / "tool").write_text("#!\n")
    for path in (tree, *tree.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)
    (tree / "tool").chmod(0o4755)
    with takeback.open(tree, home=home) as project:
        project.checkpoint("first")
        yield project


def _owned(path: Path) -> Owned:
    """Owner, group and mode."""
    found = path.lstat()
    return found.st_uid, found.st_gid, found.st_mode & 0o7777


def _turn(project: Project) -> "takeback.Turn":
    return project.session("agent").turn("change it")


def test_what_is_displaced_keeps_its_owner(tree: Path, project: Project) -> None:
    """A file that a turn rewrote is still its owner's after undo, and again after redo."""
    with _turn(project):
        (tree / "file").write_text("new\n")
        (tree / "link").unlink()
        os.symlink("sub", tree / "link")
        os.chown(tree / "link", USER, 1, follow_symlinks=False)
    project.undo()
    assert (tree / "file").read_text() == "old\n"
    assert _owned(tree / "file") == (USER, USER, 0o644)
    assert _owned(tree / "link")[:2] == (USER, 1)
    project.redo()
    assert _owned(tree / "file") == (USER, USER, 0o644)


def test_what_is_of_root_stays_so_in_a_folder_of_a_user(tree: Path, project: Project) -> None:
    """A file, a link and a folder of root in a user's folder are not given to that user."""
    (tree / "secret").write_text("old\n")
    (tree / "secret").chmod(0o600)
    os.symlink("old", tree / "pointer")
    (tree / "kind").write_text("old\n")
    project.checkpoint()
    with _turn(project):
        (tree / "secret").write_text("new\n")
        (tree / "pointer").unlink()
        os.symlink("new", tree / "pointer")
        (tree / "kind").unlink()
        (tree / "kind").mkdir()
    project.undo()
    for name, mode in (("secret", 0o600), ("pointer", 0o777), ("kind", 0o644)):
        assert _owned(tree / name) == (0, 0, mode), name
    project.redo()
    assert _owned(tree / "secret") == (0, 0, 0o600)
    assert _owned(tree / "kind")[:2] == (0, 0)


def test_what_comes_back_belongs_to_who_has_the_folder(tree: Path, project: Project) -> None:
    """Files, links and folders that were deleted are made for the owner of their folder."""
    with _turn(project):
        for name in ("file", "link", "sub/deep"):
            (tree / name).unlink()
        (tree / "sub").rmdir()
    project.undo()
    for name in ("file", "link", "sub", "sub/deep"):
        assert _owned(tree / name)[:2] == (USER, USER), name


def test_setuid_comes_back_with_its_owner(tree: Path, project: Project) -> None:
    """A user's setuid program is the user's afterwards, with all its bits."""
    with _turn(project):
        (tree / "tool").write_text("#!new\n")
    assert _owned(tree / "tool") == (USER, USER, 0o4755)
    with _turn(project):
        (tree / "tool").unlink()
    assert not project.undo().problems
    assert _owned(tree / "tool") == (USER, USER, 0o4755)
    project.undo()
    assert (tree / "tool").read_text() == "#!\n"
    assert _owned(tree / "tool") == (USER, USER, 0o4755)


def test_setuid_does_not_come_back_for_another_owner(tree: Path, project: Project) -> None:
    """What would be setuid for somebody else loses that, and the report says so."""
    with _turn(project):
        (tree / "tool").unlink()
        os.chown(tree, 0, 0)
    report = project.undo()
    assert _owned(tree / "tool") == (0, 0, 0o755)
    assert "`tool`" in " ".join(spoken(report.problems))
    assert project.verify().ok


def test_a_mode_in_place_makes_nobody_root(tree: Path, project: Project) -> None:
    """A file that is root's by now does not become setuid by getting its old mode back."""
    with _turn(project):
        os.chown(tree / "tool", 0, 0)
        (tree / "tool").chmod(0o755)
        (tree / "file").write_text("new\n")
    said = history.command(tree, "undo")
    assert said.code == 0, said.err
    assert _owned(tree / "tool") == (0, 0, 0o755)
    assert "`tool`" in said.err
    assert "setuid" in said.err


def test_a_state_that_knows_no_owner_gives_no_setuid(
    tree: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nobody recorded whose a program was, as older versions did not, it is not setuid."""
    (tree / "old").write_text("#!\n")
    os.chown(tree / "old", USER, USER)
    (tree / "old").chmod(0o4755)
    with monkeypatch.context() as patch:
        patch.setattr("takeback.capture.deltas.owner_facts", lambda *_: [])
        project.checkpoint()
    with _turn(project):
        (tree / "old").unlink()
    report = project.undo()
    assert _owned(tree / "old") == (USER, USER, 0o755)
    assert "`old`" in " ".join(spoken(report.problems))


def test_recovery_keeps_owners(tree: Path, home: Path, project: Project) -> None:
    """After a kill everything is whose it was, also if our folder was removed meanwhile."""
    with _turn(project):
        (tree / "file").write_text("new\n")
        (tree / "sub/deep").write_text("new\n")
        (tree / "tool").write_text("#!new\n")
    before = {name: _owned(tree / name) for name in ("file", "sub/deep", "tool")}
    project.close()
    for is_removed in (False, True):
        _undo_and_die(tree, home)
        for left in tree.glob(".takeback-stage-*/*") if is_removed else ():
            left.unlink()
        with takeback.open(tree, home=home) as again:
            assert "as it was before" in " ".join(spoken(again.recovered))
        assert {name: _owned(tree / name) for name in before} == before
        assert (tree / "tool").read_text() == "#!new\n"


def _undo_and_die(tree: Path, home: Path) -> None:
    """Undo, and die when everything has changed."""

    def undo(_tell: Tell) -> None:
        with takeback.open(tree, home=home) as project:
            count: list[str] = []

            def strike(step: str, _args: tuple[object, ...]) -> None:
                count.append(step)
                if count.count("exchange") == 3:
                    operations.hook = Moments(1, die).step

            operations.hook = strike
            project.undo()

    in_child(undo)


def test_extract_gives_files_to_who_has_the_folder(
    tree: Path, project: Project, tmp_path: Path
) -> None:
    """What root extracts belongs to the owner of the folder; setuid only if it was that one's."""
    (tmp_path / "his").mkdir()
    os.chown(tmp_path / "his", USER, USER)
    project.extract("@", tmp_path / "his/new")
    for name in ("", "file", "link", "sub", "sub/deep"):
        assert _owned(tmp_path / "his/new" / name)[:2] == (USER, USER), name
    assert _owned(tmp_path / "his/new/tool") == (USER, USER, 0o4755)
    said = history.command(tree, "extract", "@", str(tmp_path / "roots"))
    assert _owned(tmp_path / "roots/tool") == (0, 0, 0o755)
    assert "`tool`" in said.err
    assert "setuid" in said.err


def test_roots_own_setuid_program_comes_back(tree: Path, project: Project) -> None:
    """Root's own program in root's own folder is what it was."""
    os.chown(tree, 0, 0)
    (tree / "su").write_text("#!\n")
    (tree / "su").chmod(0o6711)
    with _turn(project):
        (tree / "file").write_text("new\n")
    with _turn(project):
        (tree / "su").unlink()
    project.undo()
    assert _owned(tree / "su") == (0, 0, 0o6711)


def test_setuid_is_for_the_owner_and_setgid_for_the_group(tree: Path, project: Project) -> None:
    """A program in another group is setuid again, as its owner is the same, but not setgid."""
    (tree / "both").write_text("#!\n")
    os.chown(tree / "both", USER, 1)
    (tree / "both").chmod(0o6755)
    project.checkpoint()
    with _turn(project):
        (tree / "both").unlink()
    report = project.undo()
    assert _owned(tree / "both") == (USER, USER, 0o4755)
    assert "`both`" in " ".join(spoken(report.problems))


def test_root_leaves_nothing_of_its_own_in_a_users_store() -> None:
    """`sudo takeback` with the user's store is refused, and the user goes on."""
    with stage() as folder:
        folder.chmod(0o755)
        home, tree = folder / "home", folder / "tree"
        for path in (home, tree):
            path.mkdir()
            os.chown(path, USER, USER)

        def checkpoint() -> None:
            with takeback.open(tree, home=home / "store") as project:
                project.checkpoint()

        in_own_world(checkpoint, plain=True)
        said = history.command(tree, "undo", TAKEBACK_HOME=str(home / "store"))
        assert said.code == 1, said.err
        assert {path.stat().st_uid for path in (home, *home.rglob("*"))} == {USER}
        (tree / "file").write_text("1\n")
        in_own_world(checkpoint, plain=True)


def test_root_makes_no_store_in_a_users_home() -> None:
    """`sudo takeback` with the user's home and no store yet is refused; the user can make one."""
    with stage() as folder:
        folder.chmod(0o755)
        home, tree = folder / "home", folder / "tree"
        for path in (home, tree):
            path.mkdir()
            os.chown(path, USER, USER)
        place = home / ".local/share/takeback"
        for words in (("checkpoint",), ("install", "claude-code")):
            said = history.command(tree, *words, TAKEBACK_HOME=str(place), HOME=str(home))
            assert said.code == 1, said.err
            assert "TAKEBACK_HOME" in said.err
        assert not list(home.iterdir())

        def checkpoint() -> None:
            with takeback.open(tree, home=place) as project:
                project.checkpoint()

        in_own_world(checkpoint, plain=True)
        assert place.stat().st_uid == USER
