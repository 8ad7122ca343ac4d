"""Swapping paths into place: modes, pipes, large files, errors on the way."""

import errno
import os

import pytest

from cases import Work, paths_of
from disturbed import as_plain_user, hooked
from spoken import sentence
from takeback.disk import operations
from takeback.errors import ConflictError, TakebackError


def test_the_mode_of_the_root_comes_back_and_goes_again(work: Work) -> None:
    """Also a change of the root itself is a turn's, and a rollback over it can be undone."""
    work.write(a="0")
    with work.turn() as turn:
        work.tree.chmod(0o700)
    work.undo()
    assert (turn.id, work.mode("")) == (work.project.plan_redo().turn, 0o755)
    work.redo()
    work.rollback(f"{turn.id}-")
    assert work.mode("") == 0o755
    work.undo()
    assert work.mode("") == 0o700


def test_a_file_that_became_a_pipe_is_not_passed_over(work: Work) -> None:
    """A turn that put a FIFO in the place of a file has deleted that; the FIFO is in the way."""
    work.write(a="0", d__b="0")
    with work.turn("before"):
        work.write(c="0")
    with work.turn() as turn:
        work.remove("a", "d")
        os.mkfifo(work.tree / "a")
        os.mkfifo(work.tree / "d")
    with pytest.raises(ConflictError) as refusal:
        work.undo()
    assert all("move it away" in sentence(reason) for _, reason in refusal.value.conflicts[:1])
    work.remove("a", "d")
    report = work.undo()
    assert report.plan.turn == turn.id
    assert (work.text("a"), work.text("d/b"), work.text("c")) == ("0", "0", "0")


def test_what_was_shut_is_not_passed_over() -> None:
    """A turn that took away the right to read has changed something, and that is taken back."""

    def play(work: Work) -> None:
        work.write(a="0", d__b="0")
        with work.turn("before"):
            work.write(c="0")
        with work.turn() as turn:
            (work.tree / "a").chmod(0)
            (work.tree / "d").chmod(0)
        changes = {change.path: change.verb for change in work.project.turn(turn.id).changes}
        assert changes == {"a": "mode", "d": "mode"}, "what cannot be seen is not deleted"
        assert work.undo().plan.turn == turn.id
        assert (work.mode("a"), work.mode("d")) == (0o644, 0o755)

    as_plain_user(play, lambda _: None)


def test_a_large_file_gives_way_to_a_folder(work: Work) -> None:
    """What is too large to be covered is captured when a rollback puts a folder in its place."""
    work.write(a__b="0")
    first = work.checkpoint()
    work.remove("a")
    work.checkpoint()
    with (work.tree / "a").open("wb") as file:
        file.truncate(300 << 20)
        file.write(b"large")
    assert paths_of(work.rollback(first).plan) == {"a": "mkdir", "a/b": "create"}
    work.undo()
    with (work.tree / "a").open("rb") as file:
        assert file.read(5) == b"large"


@pytest.fixture
def _no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some FUSE file systems: nothing can change places with something else."""
    rename = operations._rename

    def cannot(source_dir: int, source: bytes, target_dir: int, target: bytes, flag: int) -> None:
        if flag == operations._EXCHANGE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), target)
        rename(source_dir, source, target_dir, target, flag)

    monkeypatch.setattr(operations, "_rename", cannot)


@pytest.mark.usefixtures("_no_exchange")
@pytest.mark.parametrize("step", ["exchange", "move"])
def test_a_save_stays_where_nothing_can_be_exchanged(work: Work, step: str) -> None:
    """Also there a save before the old file goes, or before the new one comes, has the path."""
    work.write(a="0", b="0")
    with work.turn():
        work.write(a="1", b="1")
    todo = [b"n0", b"a"]

    def save(name: str, args: tuple[object, ...]) -> None:
        if name == step and args[0] in todo and (step == "exchange" or args[0] == b"n0"):
            todo.clear()
            (work.tree / "a").write_text("saved")

    with hooked(save):
        report = work.undo()
    assert not todo
    assert (work.text("a"), work.text("b")) == ("saved", "0")
    assert [remark.raw_path for remark in report.kept] == [b"a"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(errno.EMFILE, "too many")])
def test_our_folder_that_could_not_be_opened_goes(
    work: Work, problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails between making our folder and opening it leaves nothing in the tree."""
    work.write(a="0")
    with work.turn():
        work.write(a="1")

    def failing(name: bytes, *, dir_fd: int) -> None:
        os.mkdir(name, 0o700, dir_fd=dir_fd)
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(operations, "mkdir", failing)
        with pytest.raises((KeyboardInterrupt, TakebackError)):
            work.undo()
    work.checkpoint()
    assert os.listdir(work.tree) == ["a"]


def test_an_error_names_the_whole_path(work: Work) -> None:
    """What cannot be changed is told by its path in the project, with what to look at."""
    work.write(d__a="0")
    with work.turn():
        work.write(d__a="1")

    def refuse(step: str, args: tuple[object, ...]) -> None:
        if step == "exchange" and args[1] == b"a":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), b"a")

    with hooked(refuse), pytest.raises(TakebackError, match="`d/a`") as told:
        work.undo()
    assert "lsattr" in told.value.hint
    assert paths_of(work.project.plan_undo()) == {"d/a": "write"}
