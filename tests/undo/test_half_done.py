"""Restores that cannot be finished: what is left half done is named, and work goes on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import history
import takeback
from faults.children import Tell, in_child
from faults.injection import die
from hostile.stage import in_child as in_own_world
from moments import Moments
from takeback.disk import operations
from takeback.errors import TakebackError, UnfinishedError


def _turn(tree: Path, home: Path, *names: str) -> None:
    """A project with a turn that changed some files; each in a folder of its own."""
    for name in names:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("old\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            for name in names:
                (tree / name).write_text("new\n")


def _undo_and_die(tree: Path, home: Path) -> None:
    """Undo, and die when two paths have changed."""
    steps = []

    def strike(step: str, _args: tuple[object, ...]) -> None:
        steps.append(step)
        if steps.count("exchange") == 2:
            operations.hook = Moments(1, die).step

    def undo(_tell: Tell) -> None:
        with takeback.open(tree, home=home) as project:
            operations.hook = strike
            project.undo()

    in_child(undo)


@contextmanager
def frozen(path: Path) -> Iterator[None]:
    """Let nobody change a file, not even root."""
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("no file can be made immutable here: needs root and `chattr`")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


# -- moved away ------------------------------------------------------------------------------


class _MovesAndFails:
    """Moves a folder out of the project after the first exchange; the second one fails."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._count = 0

    def __call__(self, step: str, _args: tuple[object, ...]) -> None:
        if step != "exchange":
            return
        self._count += 1
        if self._count == 2:
            os.rename(self._tree / "a", self._tree.parent / "moved")
            raise OSError(5, "Input/output error")


def test_what_cannot_be_brought_back_is_named(tree: Path, home: Path) -> None:
    """A failing undo whose first folder was moved away does not say that nothing changed."""
    _turn(tree, home, "a/one", "b/two")
    with takeback.open(tree, home=home) as project:
        operations.hook = _MovesAndFails(tree)
        try:
            with pytest.raises(UnfinishedError) as told:
                project.undo()
        finally:
            operations.hook = None
    assert "`a/one`" in str(told.value)
    assert "nothing was changed" not in str(told.value)
    assert told.value.exit_code not in (0, 1)
    assert (tree.parent / "moved/one").read_text() == "old\n", "as the undo left it"
    assert (tree / "b/two").read_text() == "new\n"


def test_a_full_disk_at_the_last_look_is_told_as_what_it_is(tree: Path, home: Path) -> None:
    """The same if the look after all changes fails: no part of the message says the opposite."""
    _turn(tree, home, "a/one", "b/two")

    def fail(step: str, _args: tuple[object, ...]) -> None:
        if step == "exchange":
            operations.hook = late

    def late(step: str, args: tuple[object, ...]) -> None:
        if step == "create" and str(home) in os.fsdecode(args[0]):  # type: ignore[arg-type]
            operations.hook = None
            os.rename(tree / "a", tree.parent / "moved")
            raise OSError(28, "No space left on device", args[0])

    with takeback.open(tree, home=home) as project:
        operations.hook = fail
        try:
            with pytest.raises(UnfinishedError, match="No space left on device") as told:
                project.undo()
        finally:
            operations.hook = None
    assert "`a/one`" in str(told.value)
    assert "nothing was changed" not in str(told.value)
    assert "Errno" not in str(told.value)


def test_a_new_file_in_a_folder_that_was_moved_is_named(tree: Path, home: Path) -> None:
    """So it is with a file that the undo had made there."""
    (tree / "a").mkdir()
    (tree / "a/one").write_text("old\n")
    (tree / "a/other").write_text("stays\n")
    (tree / "two").write_text("old\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            (tree / "a/one").unlink()
            (tree / "two").write_text("new\n")

        def fail(step: str, _args: tuple[object, ...]) -> None:
            if step == "exchange":
                os.rename(tree / "a", tree.parent / "moved")
                raise OSError(5, "Input/output error")

        operations.hook = fail
        try:
            with pytest.raises(UnfinishedError, match="`a/one`"):
                project.undo()
        finally:
            operations.hook = None
    assert (tree.parent / "moved/one").exists()


def test_an_error_that_was_taken_back_whole_changes_nothing(tree: Path, home: Path) -> None:
    """An error after which everything is as before still says so."""
    _turn(tree, home, "a/one", "b/two")
    with takeback.open(tree, home=home) as project:
        count = []

        def fail(step: str, _args: tuple[object, ...]) -> None:
            if step == "exchange":
                count.append(step)
                if len(count) == 2:
                    raise OSError(5, "Input/output error")

        operations.hook = fail
        try:
            with pytest.raises(TakebackError, match="nothing was changed") as told:
                project.undo()
        finally:
            operations.hook = None
    assert told.value.exit_code == 1
    assert (tree / "a/one").read_text() == (tree / "b/two").read_text() == "new\n"


# -- stuck -----------------------------------------------------------------------------------


def test_a_frozen_file_stops_no_checkpoint(tree: Path, home: Path) -> None:
    """A restore that cannot be taken back is named with its path; checkpoints and hooks go on."""
    _turn(tree, home, "a/one", "b/two")
    _undo_and_die(tree, home)
    with frozen(tree / "a/one"):
        (tree / "mine").write_text("1\n")
        said = history.command(tree, "checkpoint")
        assert said.code == 0, said.err
        assert "`a/one`" in said.err
        assert "--set-aside" in said.err
        assert ".takeback-stage" not in said.err
        assert (tree / "b/two").read_text() == "new\n", "what can be brought back is"
        undo = history.command(tree, "undo", "--yes")
        assert undo.code == UnfinishedError.exit_code, undo.err
        assert "could not be taken back" in undo.err
        verify = history.command(tree, "verify")
        assert verify.code == 4
        assert "`a/one`" in verify.out
    # As soon as it can be done, it is.
    said = history.command(tree, "checkpoint")
    assert "everything is as it was before" in said.err
    assert (tree / "a/one").read_text() == (tree / "b/two").read_text() == "new\n"
    assert history.command(tree, "verify").code == 0


def test_what_is_done_beside_a_frozen_file_stays(tree: Path, home: Path) -> None:
    """What is back is not brought back again: neither deleting it nor the undone state is taken."""
    _turn(tree, home, "a", "b", "c", "d")
    _undo_and_die(tree, home)
    here = {"TAKEBACK_HOME": str(home)}
    first = next(name for name in "abcd" if (tree / name).read_text() == "old\n")
    one, two, three = sorted(set("abcd") - {first})
    with frozen(tree / first):
        assert history.command(tree, "checkpoint", **here).code == 0
        assert (tree / one).read_text() == "new\n"
        change = f"rm {one}; echo old > {two}; echo mine > {three}"
        ran = history.command(tree, "run", "--", "sh", "-c", change, **here)
        assert f"delete  {one}" in ran.err, ran.err
        history.command(tree, "checkpoint", **here)
        assert not (tree / one).exists()
        assert (tree / two).read_text() == "old\n"
    said = history.command(tree, "checkpoint", **here)
    assert "left as found" in said.err, said.err
    assert all(f"`{name}`" in said.err for name in (one, two, three))
    assert (tree / first).read_text() == "new\n"
    assert not (tree / one).exists()
    assert (tree / two).read_text() == "old\n"
    assert (tree / three).read_text() == "mine\n"
    assert not list(tree.glob(".takeback*"))
    undone = history.command(tree, "undo", **here)
    assert undone.code == 0, undone.err
    assert (tree / one).read_text() == "new\n"


def test_hooks_go_on_beside_a_frozen_file(tree: Path, home: Path) -> None:
    """An agent's hooks record its turn while a restore cannot be taken back."""
    _turn(tree, home, "a/one", "b/two")
    _undo_and_die(tree, home)
    with frozen(tree / "a/one"):
        for name, text in (("UserPromptSubmit", "1"), ("Stop", "2")):
            (tree / "mine").write_text(text)
            event = {"hook_event_name": name, "session_id": "s", "cwd": str(tree), "prompt": "go"}
            done = subprocess.run(
                [sys.executable, "-m", "takeback", "hook"],
                input=json.dumps(event).encode(),
                cwd=tree,
                check=True,
            )
            assert done.returncode == 0
        log = json.loads(history.command(tree, "log", "--json").out)
        assert log["turns"][0]["label"] == "go"
        assert log["turns"][0]["status"] == "done"


def test_a_stuck_restore_can_be_set_aside(tree: Path, home: Path) -> None:
    """`verify --set-aside` lets undo work again, and keeps what was displaced."""
    _turn(tree, home, "a/one", "b/two")
    _undo_and_die(tree, home)
    with frozen(tree / "a/one"):
        aside = history.command(tree, "verify", "--set-aside")
        assert "takeback-found-" in aside.out
        assert history.command(tree, "verify").code == 0
        assert [path.read_text() for path in tree.glob("takeback-found-*/n0")] == ["new\n"]
        (tree / "mine").write_text("1\n")
        assert history.command(tree, "checkpoint").code == 0
        undo = history.command(tree, "undo", "--yes", "--", "b")
        assert undo.code == 0, undo.err
    assert (tree / "b/two").read_text() == "old\n"


def test_a_tree_that_became_read_only_stops_no_checkpoint(tree: Path, home: Path) -> None:
    """So it is if the whole tree is mounted read-only; setting aside keeps what is nowhere else."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    _turn(tree, home, "a/one", "b/two")
    _undo_and_die(tree, home)
    (tree / "b/two").write_text("mine\n")

    def play() -> None:
        for options in (["--bind"], ["-o", "remount,ro,bind"]):
            subprocess.run(["mount", *options, tree, tree], check=True)
        said = history.command(tree, "checkpoint")
        assert said.code == 0, said.err
        assert "`a/one`" in said.err
        aside = history.command(tree, "verify", "--set-aside")
        assert "could not be taken back" in aside.out, aside.err
        assert history.command(tree, "verify").code == 0

    in_own_world(play, mounts=True)
    said = history.command(tree, "checkpoint")
    assert said.code == 0, said.err
    assert (tree / "b/two").read_text() == "mine\n"
