"""What a reviewer of restores found: each was a wrong plan, a lost way back or a dead end."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import takeback
from cases import Work, paths_of
from faults.report import stage
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world
from takeback.errors import (
    BlockedError,
    ConflictError,
    DecisionNeededError,
    TakebackError,
    UsageError,
)
from takeback.store import fsops, renames
from takeback.store.lock import PATIENCE, Held, Lock


@contextmanager
def hooked(hook: Callable[[str, tuple[object, ...]], None]) -> Iterator[None]:
    """Let somebody act before each step."""
    before, fsops.hook = fsops.hook, hook
    try:
        yield
    finally:
        fsops.hook = before


def as_plain_user(play: Callable[[Work], None], prepare: Callable[[Path], None]) -> None:
    """Let an ordinary user work in a tree of his that somebody with all rights prepared."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of somebody else's")
    with stage() as folder:
        folder.chmod(0o755)
        for name in ("tree", "home"):
            (folder / name).mkdir(mode=0o700)
            os.chown(folder / name, PLAIN_USER, PLAIN_USER)
        prepare(folder / "tree")

        def played() -> None:
            work = Work(folder / "tree", folder / "home")
            play(work)
            work.close()

        in_own_world(played, plain=True)


# -- what is put back ----------------------------------------------------------------------


def test_a_redo_of_some_paths_leaves_the_others_to_the_next(work: Work) -> None:
    """After `redo -- a` a bare redo puts back the rest, and a bare undo takes `a` back again."""
    work.write(a="0", b="0")
    with work.turn():
        work.write(a="1", b="1")
    work.undo()
    work.redo("a")
    work.undo()
    assert (work.text("a"), work.text("b")) == ("0", "0")
    work.redo()
    last = work.redo()
    assert (work.text("a"), work.text("b")) == ("1", "1")
    assert last.undo == f"takeback rollback {last.before[:8]}", "an undo would take more"


def test_a_retry_tells_how_to_reverse_what_was_done(work: Work) -> None:
    """A call that is made again after its answer was lost gets all of that answer."""
    work.write(a="0")
    with work.turn():
        work.write(a="1")
    first = work.project.undo(request="once")
    again = work.project.undo(request="once")
    assert (again.id, again.undo) == (first.id, first.undo)
    assert first.undo


def test_a_retry_of_nothing_does_nothing(work: Work) -> None:
    """A rollback that had nothing to do has still nothing to do when it is asked for again."""
    work.write(a="0")
    first = work.checkpoint()
    told: list[takeback.Report] = []
    work.project.on_restore(told.append)
    assert not work.project.rollback(first, request="once").id
    work.write(a="mine")
    assert not work.project.rollback(first, request="once").id
    assert work.text("a") == "mine"
    for _ in range(2):
        work.project.rollback(first, request="twice")
    assert len(told) == 1, "nobody is told a second time of what was done once"


def test_a_request_is_for_one_verb(work: Work) -> None:
    """An undo with the id of a rollback is refused, and not answered with its report."""
    work.write(a="0")
    first = work.checkpoint()
    with work.turn():
        work.write(a="1")
    work.project.rollback(first, request="mine")
    with pytest.raises(UsageError, match="something else"):
        work.project.undo(request="mine")
    assert work.text("a") == "0"


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


# -- which turn ----------------------------------------------------------------------------


def test_what_a_step_in_the_background_did_is_taken_back(work: Work) -> None:
    """A turn that ended while a step of it still writes is the newest that changed something."""
    work.write(a="0")
    with work.turn("before"):
        work.write(a="1")
    first = work.checkpoint()
    turn = work.session.turn("serve", whole=False)
    turn.step("Bash", {"command": "serve &"}, kind="shell").detach()
    turn.end()
    work.write(log="written by the server")
    plan = work.project.plan_undo()
    assert (plan.turn, plan.passed_over, paths_of(plan)) == (turn.id, 0, {"log": "delete"})
    assert work.project.plan_rollback(first).covers == (turn.id,)


def test_a_file_that_became_a_pipe_is_not_passed_over(work: Work) -> None:
    """A turn that put a FIFO in the place of a file has deleted that; the FIFO is in the way."""
    work.write(a="0", d__b="0")
    with work.turn("before"):
        work.write(c="0")
    with work.turn() as turn:
        work.remove("a", "d")
        os.mkfifo(work.tree / "a")
        os.mkfifo(work.tree / "d")
    with pytest.raises(ConflictError, match="move it away"):
        work.undo()
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
        assert changes == {b"a": "mode", b"d": "mode"}, "what cannot be seen is not deleted"
        assert work.undo().plan.turn == turn.id
        assert (work.mode("a"), work.mode("d")) == (0o644, 0o755)

    as_plain_user(play, lambda _: None)


# -- plans ---------------------------------------------------------------------------------


def test_another_branch_after_the_plan_is_a_doubt(work: Work) -> None:
    """Who switches the branch between the preview and the yes is asked once more."""
    work.repository(a="0")
    with work.turn():
        work.write(a="1")
    plan = work.project.plan_undo()
    work.git("switch", "-q", "-c", "other")
    with pytest.raises(DecisionNeededError, match="other"):
        work.project.apply(plan)
    assert work.text("a") == "1"
    work.project.apply(plan, yes=True)
    assert work.text("a") == "0"


def test_a_plan_of_another_project_is_refused(work: Work, tmp_path: Path) -> None:
    """A plan is for one project, also if another one has just the same files."""
    (tmp_path / "twin").mkdir()
    twin = Work(tmp_path / "twin", work.home)
    plans = []
    for each in (work, twin):
        each.write(a="0")
        first = each.checkpoint()
        each.write(a="1")
        plans.append(each.project.plan_rollback(first))
    assert plans[0].base == plans[1].base
    with pytest.raises(TakebackError, match="in this project"):
        work.project.apply(plans[1])
    assert work.text("a") == "1"
    twin.close()


def test_a_reset_or_amended_commit_has_its_command(work: Work) -> None:
    """Whatever the turn did to HEAD, the command that brings it back is told."""
    work.repository(a="0")
    first = work.git("rev-parse", "HEAD").strip()
    with work.turn():
        work.write(a="1")
        work.git("commit", "-q", "-a", "--amend", "-m", "better")
    (stays,) = work.undo().plan.stays
    assert f"`git reset --soft {first[:10]}`" in stays


def test_no_command_for_a_commit_on_another_branch(work: Work) -> None:
    """A commit on the branch that the turn made is named, and not reverted on this one."""
    work.repository(a="0")
    with work.turn():
        work.git("switch", "-q", "-c", "its")
        work.write(a="1")
        work.git("commit", "-q", "-a", "-m", "more")
    work.git("switch", "-q", "main")
    (stays,) = work.project.plan_undo().stays
    assert "on the branch `its`" in stays
    assert "git revert" not in stays


def test_the_first_commit_has_its_command(work: Work) -> None:
    """The command that takes back the first commit of a repository works."""
    work.git("init", "-q")
    work.write(a="0")
    with work.turn():
        work.git("add", "-A")
        work.write(a="1")
        work.git("commit", "-q", "-m", "first")
    (stays,) = work.undo().plan.stays
    command = stays.split("`")[1]
    assert command.startswith("git ")
    work.git(*command.split()[1:])
    assert not work.git("log", "--all", "--format=%H")


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


# -- saves in between, without exchange ----------------------------------------------------


@pytest.fixture
def _no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some FUSE file systems: nothing can change places with something else."""

    def cannot(_from: int, _name: bytes, _to: int, name: bytes) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)

    monkeypatch.setattr(renames, "exchange", cannot)


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
    assert [remark.path for remark in report.kept] == [b"a"]


# -- interrupts ----------------------------------------------------------------------------


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
        patch.setattr(fsops, "mkdir", failing)
        with pytest.raises((KeyboardInterrupt, TakebackError)):
            work.undo()
    work.checkpoint()
    assert os.listdir(work.tree) == ["a"]


class _Interrupted(Lock):
    """A lock that is interrupted when it was just taken, or is about to be given back."""

    def acquire(self, patience: float = PATIENCE) -> bool:
        """Take it, and be interrupted."""
        super().acquire(patience)
        raise KeyboardInterrupt

    def release(self, anchor: bytes = b"") -> None:
        """Be interrupted."""
        del anchor
        raise KeyboardInterrupt


def test_an_interrupt_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Ctrl-C in the moment in which the lock is taken or given back leaves it to others."""
    path = os.fsencode(tmp_path / "lock")
    with pytest.raises(KeyboardInterrupt), Held(_Interrupted(path)):
        pass
    held = Held(_Interrupted(path))
    with contextlib.suppress(KeyboardInterrupt):
        held.__enter__()
    with pytest.raises(KeyboardInterrupt):
        held.__exit__()
    Lock(path).acquire(patience=0)


# -- what is not allowed -------------------------------------------------------------------


def test_files_of_others_in_a_sticky_folder_are_seen_before() -> None:
    """What only its owner may move is named before anything is touched."""

    def prepare(tree: Path) -> None:
        (tree / "d").mkdir()
        (tree / "d").chmod(0o1777)
        (tree / "d" / "a").write_text("0")
        (tree / "d" / "a").chmod(0o666)

    def play(work: Work) -> None:
        with work.turn():
            work.write(d__a="1", b="1")
        steps: list[str] = []
        with hooked(lambda step, _: steps.append(step)), pytest.raises(BlockedError, match="d/a"):
            work.undo()
        assert "create" not in steps, "something was staged"
        work.undo("b")
        assert work.has_none("b")

    as_plain_user(play, prepare)


def test_the_mode_of_a_file_of_others_is_seen_before() -> None:
    """A mode that only the owner may change is named before anything is touched."""

    def play(work: Work) -> None:
        first = work.checkpoint()
        (work.tree / "open").rename(work.tree / "other")
        (work.tree / "shut").rename(work.tree / "open")
        with pytest.raises(BlockedError, match="`open`"):
            work.rollback(first)
        assert work.mode("open") == 0o644

    def prepare(tree: Path) -> None:
        for name, mode in (("open", 0o666), ("shut", 0o644)):
            (tree / name).write_text("the same")
            (tree / name).chmod(mode)

    as_plain_user(play, prepare)


def test_a_closed_root_is_told_with_what_to_do() -> None:
    """In a root that forbids to make anything in it nothing is done, and the way out is told."""

    def play(work: Work) -> None:
        work.write(d__a="0")
        work.tree.chmod(0o555)
        with work.turn():
            work.write(d__a="1")
        with pytest.raises(BlockedError) as told:
            work.undo()
        assert "chmod u+wx" in told.value.hint
        work.tree.chmod(0o755)
        work.undo()
        assert work.text("d/a") == "0"

    as_plain_user(play, lambda _: None)


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
