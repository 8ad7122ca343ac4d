"""What could not be looked at is looked at next time: no later checkpoint lacks a file."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import takeback
from hostile.ground import PLAIN_USER, give_away, new_ground
from hostile.stage import in_child
from oracle import differences, picture
from takeback.disk import operations
from takeback.worktree import content, scan

AS_ROOT = os.geteuid() == 0
LAST = "0"
"""Folders are explored from the last name to the first; this one is listed when all others are."""
FIRST = "0"
"""And of those that are known, the first name comes first."""


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about a loss of power, so nothing waits for the disk."""
    monkeypatch.setattr(operations, "sync", False)


def _plant(tree: Path) -> None:
    """Folders in folders, with files at every depth, and stamps old enough to be trusted."""
    for folder in ("a/b/c", "a/b/d", "z"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "one").write_text(f"one of {folder}\n")
        (tree / folder / "two").write_text(f"two of {folder}\n")
    (tree / "a/b/db").write_text("a database\n")
    (tree / "a/b/db-wal").write_text("its journal\n")
    (tree / "a/b/link").symlink_to("db")
    (tree / "a/empty").mkdir()
    (tree / LAST).mkdir()
    time.sleep(0.03)


def _rename(tree: Path) -> None:
    (tree / "a").rename(tree / "renamed")


def _rename_back(tree: Path) -> None:
    (tree / "renamed").rename(tree / "a")


def _put_away(tree: Path) -> None:
    (tree / "a").rename(tree.with_name("away"))


def _put_back(tree: Path) -> None:
    place = tree / "a"
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    tree.with_name("away").rename(place)


def _leave_a_file(tree: Path) -> None:
    _put_away(tree)
    (tree / "a").write_text("a file\n")


def _leave_a_link(tree: Path) -> None:
    _put_away(tree)
    (tree / "a").symlink_to("z")


def _leave_a_loop(tree: Path) -> None:
    _put_away(tree)
    (tree / "a").symlink_to("a")


def _leave_a_twin(tree: Path) -> None:
    _put_away(tree)
    (tree / "a/b/c").mkdir(parents=True)


def _leave_half(tree: Path) -> None:
    _put_away(tree)
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/c").write_text("a file\n")


PLAIN = {
    "renamed": (_rename, _rename_back),
    "gone": (_put_away, _put_back),
    "a file": (_leave_a_file, _put_back),
    "a link": (_leave_a_link, _put_back),
    "a loop": (_leave_a_loop, _put_back),
}
MIXED = {"an empty twin": (_leave_a_twin, _put_back), "half of it": (_leave_half, _put_back)}
MOVES = PLAIN | MIXED


@contextmanager
def _once(act: Callable[[], None], *, listed: str = "", opened: str = "") -> Iterator[None]:
    """Do something once: when a folder was just listed, or a file of this name was opened."""
    left = [act]

    def pass_by(step: str, name: bytes) -> None:
        wanted = {"listed": listed, "opened": opened}.get(step, "").encode()
        if wanted and name == wanted and left:
            left.pop()()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "hook", pass_by)
        patch.setattr(content, "hook", pass_by)
        yield
    assert not left, "the moment never came"


def _holds_all(project: takeback.Project, tree: Path) -> None:
    """A checkpoint taken now comes back as the tree is, and leaves nothing out."""
    made = project.checkpoint()
    assert made.left_out == ()
    assert _comes_back_as(project, made, tree) == []


def _comes_back_as(project: takeback.Project, made: takeback.Checkpoint, tree: Path) -> list[str]:
    out = Path(tempfile.mkdtemp(prefix="out-", dir=tree.parent))
    project.extract(made.id, out)
    return differences(picture(tree), picture(out))


@pytest.mark.parametrize(
    ("move", "moment"), [*((move, "listed") for move in MOVES), ("renamed", "opened")]
)
def test_a_folder_away_during_the_first_look(
    tree: Path, home: Path, move: str, moment: str
) -> None:
    """A folder that is away while a checkpoint reads it, and comes back, is in the next one."""
    away, back = MOVES[move]
    _plant(tree)
    at = {"listed": LAST} if moment == "listed" else {"opened": "one"}
    with takeback.open(tree, home=home) as project:
        with _once(lambda: away(tree), **at):
            between = project.checkpoint()
        if move in PLAIN:
            assert _comes_back_as(project, between, tree) == []
        back(tree)
        _holds_all(project, tree)
        _holds_all(project, tree)


@pytest.mark.parametrize("move", MOVES)
def test_a_folder_away_during_a_later_look(tree: Path, home: Path, move: str) -> None:
    """The same where only what changed is looked at: an edited file, a new one, a new folder."""
    away, back = MOVES[move]
    _plant(tree)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        time.sleep(0.03)
        project.checkpoint()  # now every stamp is trusted
        (tree / "a/b/c/one").write_text("edited\n")
        (tree / "a/b/d/three").write_text("new\n")
        (tree / "a/b/e").mkdir()
        (tree / "a/b/e/one").write_text("new, too\n")
        (tree / FIRST / "new").write_text("so that this folder is listed\n")
        time.sleep(0.03)
        with _once(lambda: away(tree), listed=FIRST):
            between = project.checkpoint()
        if move in PLAIN:
            assert _comes_back_as(project, between, tree) == []
        back(tree)
        _holds_all(project, tree)
        _holds_all(project, tree)


def test_a_folder_away_for_a_moment_only(tree: Path, home: Path) -> None:
    """One that is back before the checkpoint is done is in that very checkpoint."""
    _plant(tree)

    def come_back(step: str, path: bytes) -> None:
        if (step, path) == ("listed", b"0"):
            _put_away(tree)
        elif (step, path) == ("opened", b"two") and tree.with_name("away").exists():
            _put_back(tree)

    with takeback.open(tree, home=home) as project, pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "hook", come_back)
        patch.setattr(content, "hook", come_back)
        made = project.checkpoint()
        assert _comes_back_as(project, made, tree) == []


def test_a_folder_made_anew_is_looked_at_anew(tree: Path, home: Path) -> None:
    """A folder that is deleted and made again while it is read is captured as it is now."""
    _plant(tree)

    def make_anew() -> None:
        shutil.rmtree(tree / "a")
        (tree / "a/new").mkdir(parents=True)
        (tree / "a/new/file").write_text("new\n")

    with takeback.open(tree, home=home) as project:
        with _once(make_anew, listed="a/b"):
            made = project.checkpoint()
        assert made.left_out == ()
        assert _comes_back_as(project, made, tree) == []


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become a plain user")
@pytest.mark.parametrize(
    ("closed", "mode"), [("a", 0o000), ("a/b", 0o000), ("a/b", 0o600), ("a/b/c", 0o000)]
)
def test_a_folder_closed_for_a_while(closed: str, mode: int) -> None:
    """A folder that may not be entered for a while is listed as unreadable, not as deleted."""
    with new_ground() as ground:
        tree, home = Path(os.fsdecode(ground.root)), Path(os.fsdecode(ground.home))
        _plant(tree)
        give_away(ground)
        for path in tree.rglob("*"):
            os.chown(path, PLAIN_USER, PLAIN_USER, follow_symlinks=False)
        in_child(lambda: _close_for_a_while(tree, home, tree / closed, mode), plain=True)


def _close_for_a_while(tree: Path, home: Path, closed: Path, mode: int) -> None:
    usual = closed.stat().st_mode
    with takeback.open(tree, home=home) as project:
        with _once(lambda: closed.chmod(mode), listed="a/b/d"):
            between = project.checkpoint()
        closed.chmod(usual)
        out = Path(tempfile.mkdtemp(prefix="out-", dir=tree.parent))
        project.extract(between.id, out)
        listed = [each.raw_path for each in between.left_out]
        for path in picture(tree).keys() - picture(out).keys():
            assert any(path == each or path.startswith(each + b"/") for each in listed), path
        _holds_all(project, tree)
