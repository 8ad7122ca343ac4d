"""The file of the stat cache: what is read from it is what was known, or nothing."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from takeback.disk import operations
from takeback.worktree import stat_cache
from takeback.worktree.stat_cache import StatCache


def grow(tree: Path) -> None:
    """More entries than before, and longer names."""
    (tree / "new/deep").mkdir(parents=True)
    (tree / "new/deep/a file with a long name").write_text("new\n")


def shrink(tree: Path) -> None:
    """Fewer entries than before."""
    shutil.rmtree(tree / "d")


def exchange(tree: Path) -> None:
    """A folder that is gone, and another one that is there."""
    (tree / "d").rename(tree / "e")


def edit(tree: Path) -> None:
    """As many entries as before, with names as long."""
    (tree / "d/file").write_text("other\n")


CHANGES = (grow, shrink, exchange, edit)


@pytest.fixture
def project(tree: Path, home: Path) -> takeback.Project:
    """A project with a stat cache."""
    (tree / "d").mkdir()
    (tree / "d/file").write_text("one\n")
    (tree / "z").write_text("last\n")
    opened = takeback.open(tree, home=home)
    opened.checkpoint()
    return opened


def on_disk(project: takeback.Project) -> tuple[bool, StatCache]:
    """Whether the file is about the newest checkpoint, and what another process reads from it."""
    mine, newest = project.workspace._cache, project.workspace.ledger.checkpoints.newest()
    assert mine is not None
    assert newest is not None
    found = StatCache(mine._path, mine.identity)
    return found.load(newest.number, newest.tree), found


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_written_is_what_is_known(
    project: takeback.Project, tree: Path, change: Callable[[Path], None]
) -> None:
    """Whether records grew, shrank or stayed as long, the file holds what this process knows."""
    change(tree)
    inode = os.stat(project.workspace.store.index_path).st_ino
    project.checkpoint()
    is_valid, found = on_disk(project)
    assert is_valid
    assert project.workspace._cache is not None
    assert found.records == project.workspace._cache.records
    assert (
        found.entries == project.workspace._cache.entries == stat_cache.count_entries(found.records)
    )
    assert os.stat(project.workspace.store.index_path).st_ino == inode, (
        "it was not changed in place"
    )
    assert not project.checkpoint().new
    project.close()


@pytest.mark.parametrize("change", CHANGES)
def test_a_disk_that_is_full_costs_time_only(
    project: takeback.Project,
    tree: Path,
    home: Path,
    change: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the file cannot be written, at whichever step, checkpoints stay right."""
    patch, left = StatCache.patch, 0

    def strike(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def patched(self: StatCache, *given: object) -> None:
        operations.hook = strike
        try:
            patch(self, *given)  # type: ignore[arg-type]
        finally:
            operations.hook = None

    monkeypatch.setattr(StatCache, "patch", patched)
    reached = 0
    for number in range(20):
        begin_again(tree, number)
        left = number
        change(tree)
        taken = project.checkpoint()
        with takeback.open(tree, home=home) as other:
            assert other.checkpoint(rehash=True).tree == taken.tree
        if left >= 0:
            break
        reached += 1
    assert reached >= 3
    assert on_disk(project)[0]
    project.close()


def begin_again(tree: Path, number: int) -> None:
    """The tree as it was at first, but for what its files hold."""
    for name in ("d", "e", "new"):
        shutil.rmtree(tree / name, ignore_errors=True)
    (tree / "d").mkdir()
    (tree / "d/file").write_text(f"one {number}\n")
    (tree / "z").write_text(f"{number}\n")
