"""Edits that a stat cache could miss: same size, same stamps as far as anybody can set them."""

import mmap
import os
import random
from pathlib import Path

import pytest

import takeback
from takeback.worktree import stat_loop


@pytest.mark.parametrize("native", [True, False], ids=["native", "twin"])
def test_no_edit_is_missed(
    tree: Path, home: Path, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 edits of the same size, most with the time stamp put back, right after a checkpoint."""
    if not native:
        monkeypatch.setattr(stat_loop, "scan_native", None)
    chance = random.Random(7)
    files = [tree / f"f{number}" for number in range(20)]
    for file in files:
        file.write_bytes(b"0" * 64)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        for number in range(300):
            file = chance.choice(files)
            before = file.stat()
            _edit(file, b"%064d" % (number + 1), chance)
            if chance.random() < 0.7:
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            made = project.checkpoint()
            assert made.new, f"edit {number} was missed"
            assert made.changed == 1


def _edit(file: Path, content: bytes, chance: random.Random) -> None:
    how = chance.choice(("in place", "by rename", "by mmap", "through a hard link"))
    if how == "by rename":
        fresh = file.parent.parent / "fresh"
        fresh.write_bytes(content)
        fresh.rename(file)
    elif how == "through a hard link":
        link = file.parent.parent / "link"
        os.link(file, link)
        link.write_bytes(content)
        link.unlink()
    elif how == "by mmap":
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 64) as view:
            view[:] = content
            view.flush()
    else:
        with file.open("r+b") as opened:
            opened.write(content)


def test_a_date_in_the_future_hides_nothing(tree: Path, home: Path) -> None:
    """A file dated ahead of the clock is read again each time, so no edit of it is missed."""
    file = tree / "file"
    file.write_bytes(b"one")
    ahead = 4_000_000_000 * 10**9
    os.utime(file, ns=(ahead, ahead))
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        for content in (b"two", b"six"):
            file.write_bytes(content)
            os.utime(file, ns=(ahead, ahead))
            assert project.checkpoint().new


def test_names_that_come_and_go_within_a_tick_are_seen(tree: Path, home: Path) -> None:
    """A folder that was just listed is listed again: a new name may not have moved its stamp."""
    with takeback.open(tree, home=home) as project:
        for number in range(50):
            (tree / f"f{number}").write_bytes(b"")
            assert project.checkpoint().changed == 1
            (tree / f"f{number}").unlink()
            assert project.checkpoint().changed == 1


def test_rehash_sees_what_no_stamp_tells(tree: Path, home: Path) -> None:
    """`rehash` reads every file, whatever the stat cache says."""
    (tree / "file").write_bytes(b"content")
    with takeback.open(tree, home=home) as project:
        first = project.checkpoint()
        again = project.checkpoint(rehash=True)
        assert (again.id, again.new) == (first.id, False)
        (tree / "file").write_bytes(b"CONTENT")
        assert project.checkpoint(rehash=True).new
        assert project.verify().ok
