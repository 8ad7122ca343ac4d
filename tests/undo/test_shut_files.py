"""Files and folders that an agent made unreadable, for an ordinary user: undo gives them back."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from faults.report import stage
from hostile.ground import PLAIN_USER
from hostile.stage import in_child
from takeback.disk import operations
from takeback.errors import ConflictError, TakebackError
from takeback.project import Project


@pytest.fixture(name="play")
def _play() -> "Callable[[Callable[[Path, Project], None]], None]":
    """Plays something as an ordinary user, to whom a mode of 000 means something."""

    def play(scene: "Callable[[Path, Project], None]") -> None:
        with stage() as folder:
            folder.chmod(0o755)
            (folder / "user").mkdir()
            if os.geteuid() == 0:
                os.chown(folder / "user", PLAIN_USER, PLAIN_USER)

            def played() -> None:
                tree = folder / "user/tree"
                (tree / "sub").mkdir(parents=True)
                for name in ("a", "b", "sub/c"):
                    (tree / name).write_text("old\n")
                    (tree / name).chmod(0o644)
                with takeback.open(tree, home=folder / "user/home") as project:
                    project.checkpoint()
                    scene(tree, project)

            in_child(played, plain=os.geteuid() == 0)

    return play


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


Play = Callable[[Callable[[Path, Project], None]], None]


def _turn(project: Project) -> takeback.Turn:
    return project.session("agent").turn("shut it")


def test_a_mode_that_shuts_a_file_is_taken_back(play: Play) -> None:
    """`chmod 000` of a file, also of one that was edited before, is undone and redone."""

    def scene(tree: Path, project: Project) -> None:
        with _turn(project):
            (tree / "a").chmod(0)
            (tree / "b").write_text("new\n")
            (tree / "b").chmod(0)
        project.undo()
        assert [_mode(tree / name) for name in ("a", "b")] == [0o644, 0o644]
        assert [(tree / name).read_text() for name in ("a", "b")] == ["old\n", "old\n"]
        project.redo()
        assert [_mode(tree / name) for name in ("a", "b")] == [0, 0]
        project.undo()
        assert (tree / "b").read_text() == "old\n"
        assert project.verify().ok

    play(scene)


def test_a_mode_that_shuts_a_folder_is_taken_back(play: Play) -> None:
    """So is that of a folder, with what an earlier step had changed in it."""

    def scene(tree: Path, project: Project) -> None:
        with project.session("agent").turn("shut it", whole=False) as turn:
            with turn.step("Write", {"file_path": "sub/c"}):
                (tree / "sub/c").write_text("new\n")
            with turn.step("Bash", {"command": "chmod 000 sub"}):
                (tree / "sub").chmod(0)
        plan = project.plan_undo()
        assert _mode(tree / "sub") == 0, "a plan leaves everything as it is"
        assert not plan.conflicts
        project.apply(plan)
        assert _mode(tree / "sub") == 0o755
        assert (tree / "sub/c").read_text() == "old\n"
        project.redo()
        assert _mode(tree / "sub") == 0
        project.undo()
        assert _mode(tree / "sub") == 0o755

    play(scene)


def test_a_rollback_opens_what_is_shut(play: Play) -> None:
    """A rollback brings back what nobody could read, and can be undone."""

    def scene(tree: Path, project: Project) -> None:
        first = next(iter(project.checkpoints())).id
        (tree / "a").write_text("mine\n")
        (tree / "a").chmod(0)
        (tree / "sub/c").unlink()
        (tree / "sub").chmod(0)
        project.rollback(first, yes=True)
        assert (tree / "a").read_text() == (tree / "sub/c").read_text() == "old\n"
        assert [_mode(tree / name) for name in ("a", "sub")] == [0o644, 0o755]
        project.undo()
        assert [_mode(tree / name) for name in ("a", "sub")] == [0, 0]
        (tree / "a").chmod(0o600)
        assert (tree / "a").read_text() == "mine\n"

    play(scene)


def test_what_you_wrote_into_it_since_is_not_taken(play: Play) -> None:
    """A file that you wrote to after the turn had shut it is a conflict, and stays as it is."""

    def scene(tree: Path, project: Project) -> None:
        with _turn(project):
            (tree / "a").write_text("new\n")
            (tree / "a").chmod(0)
        (tree / "a").chmod(0o600)
        (tree / "a").write_text("mine\n")
        (tree / "a").chmod(0)
        try:
            report = project.undo()
        except ConflictError:
            pass
        else:
            assert b"a" not in {change.raw_path for change in report.plan.changes}
        assert _mode(tree / "a") == 0
        (tree / "a").chmod(0o600)
        assert (tree / "a").read_text() == "mine\n"

    play(scene)


def test_an_error_leaves_it_shut(play: Play) -> None:
    """An undo that fails leaves what nobody may read as it was, file and folder."""

    def scene(tree: Path, project: Project) -> None:
        with _turn(project):
            (tree / "a").write_text("new\n")
            (tree / "a").chmod(0)
            (tree / "sub").chmod(0)

        def fail(step: str, _args: tuple[object, ...]) -> None:
            if step == "exchange":
                operations.hook = None
                raise OSError(5, "Input/output error")

        operations.hook = fail
        with pytest.raises(TakebackError, match="nothing was changed"):
            project.undo()
        assert [_mode(tree / name) for name in ("a", "sub")] == [0, 0]
        project.undo()
        assert [_mode(tree / name) for name in ("a", "sub")] == [0o644, 0o755]

    play(scene)
