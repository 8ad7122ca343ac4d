"""A scan looks at every folder that may have changed, and costs what changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import takeback
from takeback.cli import app
from takeback.project import Project

MAIN = Path(app.__file__).parent.parent / "__main__.py"


def _extracted(project: takeback.Project, beside: Path, ref: str = "@") -> Path:
    out = beside.with_name(f"out-{len(os.listdir(beside.parent))}")
    project.extract(ref, out)
    return out


def _command(tree: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-I", MAIN, *words], cwd=tree, check=True, capture_output=True)


def test_a_folder_that_was_copied_and_joined_is_looked_at_anew(tree: Path, home: Path) -> None:
    """The stat cache of another folder never says that nothing changed in this one."""
    for name in ("a", "b", "c"):
        (tree / name).write_text("1")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    copy = tree.with_name("copy")
    shutil.copytree(tree, copy)
    shutil.rmtree(tree)
    (copy / "a").write_text("changed")
    (copy / "b").unlink()
    here, there = os.fsencode(copy), os.fsencode(home)
    with Project.relocate(here, home=there, join=project.id) as joined:
        assert joined.checkpoint().changed == 2
        assert (_extracted(joined, copy) / "a").read_text() == "changed"


def test_a_large_file_does_not_keep_the_stat_cache_away(tree: Path, home: Path) -> None:
    """After a reboot, one full look is enough, also with a file too large for memory."""
    with (tree / "large").open("wb") as file:
        file.truncate(9 << 20)
    with takeback.open(tree, home=home) as project:
        made = project.checkpoint()
        before = project.usage().objects
    index = home / "projects" / project.id / "index"
    index.unlink()
    with takeback.open(tree, home=home) as project:
        assert project.checkpoint().id == made.id
        assert index.exists()
        os.utime(tree / "large")
        assert project.checkpoint().id == made.id
        assert project.usage().objects == before


def test_an_unfinished_listing_does_not_block_a_checkpoint(tree: Path, home: Path) -> None:
    """A caller who stops half-way through `checkpoints()` can still make one."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        listing = project.checkpoints()
        next(listing)
        (tree / "a").write_text("a")
        _command(tree, "checkpoint")
        (tree / "b").write_text("b")
        assert project.checkpoint().new


def test_a_left_out_folder_that_became_small_is_captured(tree: Path, home: Path) -> None:
    """Left out is judged by what is there now, also without a new inode; so is its kind."""
    build = tree / "build"
    build.mkdir()
    for number in range(201):
        (build / f"{number}").touch()
    with takeback.open(tree, home=home) as project:
        assert [left.raw_path for left in project.checkpoint().left_out] == [b"build"]
        for number in range(200):
            (build / f"{number}").unlink()
        assert project.checkpoint().left_out == ()
        shutil.rmtree(build)
        build.write_text("a file now")
        assert project.checkpoint().changed == 2


def test_many_removed_folders_cost_what_they_are(tree: Path, home: Path) -> None:
    """Removing thousands of sibling folders is not quadratic."""
    for number in range(3000):
        (tree / f"d{number}").mkdir()
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        for number in range(2500):
            (tree / f"d{number}").rmdir()
        calls = _count_calls(project.checkpoint)
    assert calls < 3000 * 200


def _count_calls(work: object) -> int:
    count = 0

    def tick(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    assert callable(work)
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
