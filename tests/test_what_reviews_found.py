"""Each of these was a way to lose or miss something, found by a reviewer who proved it."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from takeback.cli import app
from takeback.project import Project
from takeback.store import content

MAIN = Path(app.__file__).parent.parent / "__main__.py"


def _extracted(project: takeback.Project, beside: Path, ref: str = "@") -> Path:
    out = beside.with_name(f"out-{len(os.listdir(beside.parent))}")
    project.extract(ref, out)
    return out


def _command(tree: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-I", MAIN, *words], cwd=tree, check=True, capture_output=True)


def test_a_second_open_does_not_drop_the_locks_of_the_first(tree: Path, home: Path) -> None:
    """Two Projects in one process and a third in another: no acknowledged checkpoint vanishes."""
    (tree / "a").write_text("0")
    with takeback.open(tree, home=home) as first:
        made = [first.checkpoint().id]
        with takeback.open(tree, home=home):
            _command(tree, "checkpoint")
            for number in range(3):
                (tree / "a").write_text(f"{number + 1}")
                made.append(first.checkpoint().id)
    with takeback.open(tree, home=home) as later:
        assert [c.id for c in later.checkpoints()] == made[::-1]
        assert later.verify().problems == ()


def test_a_project_may_be_carried_over_a_fork(tree: Path, home: Path) -> None:
    """What a forked child checkpoints stays, whatever its parent does with the same Project."""
    (tree / "a").write_text("parent")
    project = takeback.open(tree, home=home)
    project.checkpoint("parent")
    go, told = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.read(go[0], 1)
            (tree / "a").write_text("child")
            os.write(told[1], project.checkpoint("child").id.encode())
            status = 0
        finally:
            os._exit(status)
    project.close()
    os.write(go[1], b"!")
    assert os.waitpid(child, 0)[1] == 0
    made = os.read(told[0], 99).decode()
    for end in (*go, *told):
        os.close(end)
    with takeback.open(tree, home=home) as later:
        assert next(c.id for c in later.checkpoints()) == made
        assert later.verify().problems == ()


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


def test_a_mode_that_changes_while_a_file_is_read_is_captured(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chmod between the look and the read is in this checkpoint or in the next."""
    file = tree / "a"
    file.write_text("1")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        os.utime(file)
        monkeypatch.setattr(content, "hook", lambda _step, _name: file.chmod(0o755))
        project.checkpoint()
        monkeypatch.setattr(content, "hook", None)
        project.checkpoint()
        assert (_extracted(project, tree) / "a").stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="needs leases (Linux)")
def test_a_file_that_was_leased_to_another_is_read_the_next_time(tree: Path, home: Path) -> None:
    """Unreadable for a moment is not unreadable for good."""
    (tree / "a").write_text("precious")
    ready, done = os.pipe(), os.pipe()
    holder = os.fork()
    if holder == 0:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fd = os.open(tree / "a", os.O_RDWR)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(ready[1], b"!")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    with takeback.open(tree, home=home) as project:
        during = project.checkpoint()
        os.write(done[1], b"!")
        os.waitpid(holder, 0)
        after = project.checkpoint()
        assert [left.reason for left in during.left_out] == ["unreadable"]
        assert after.left_out == ()
        assert (_extracted(project, tree) / "a").read_text() == "precious"
    for end in (*ready, *done):
        os.close(end)


def test_a_link_replaced_while_it_is_read_is_not_mixed_with_its_successor(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that takes a link's place never gets the link's target as its content."""
    link = tree / "l"
    link.symlink_to("target")
    real = os.readlink

    def readlink(path: bytes, *, dir_fd: int | None = None) -> bytes:
        found = real(path, dir_fd=dir_fd)
        if link.is_symlink():
            link.unlink()
            link.write_text("a file now")
        return found

    monkeypatch.setattr(os, "readlink", readlink)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        monkeypatch.undo()
        out = _extracted(project, tree)
    assert (out / "l").read_text() == "a file now"


def test_a_seek_that_fails_does_not_turn_data_into_zeros(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a hole is a hole: an error while looking for data means reading it."""
    with (tree / "s").open("wb") as file:
        file.truncate(9 << 20)
        file.seek(4 << 20)
        file.write(b"DATA" * 1000)
    real = os.lseek

    def lseek(fd: int, at: int, how: int) -> int:
        if how == os.SEEK_DATA:
            raise OSError(errno.EIO, "cannot tell")
        return real(fd, at, how)

    monkeypatch.setattr(os, "lseek", lseek)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        monkeypatch.undo()
        assert (_extracted(project, tree) / "s").read_bytes() == (tree / "s").read_bytes()


def test_extract_removes_nothing_that_it_did_not_write(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears in the target meanwhile stays, and the extraction fails whole."""
    (tree / "a").write_text("a")
    target = tree.with_name("target")
    target.mkdir()
    with takeback.open(tree, home=home) as project:
        project.checkpoint()

        def appear(doing: str, _done: int, _total: int) -> None:
            if doing == "writing":
                (target / "mine").write_text("mine")

        with pytest.raises(takeback.TargetError):
            project.extract("@", target, progress=appear)
        assert os.listdir(target) == ["mine"]
        assert sorted(os.listdir(tree.parent)) == sorted(["home", "target", "tree"])
    monkeypatch.undo()


def test_extract_does_not_write_into_the_store(tree: Path, home: Path) -> None:
    """The folder of all stores is no place for a tree."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with pytest.raises(takeback.UnsafeRootError):
            project.extract("@", home / "projects" / "abc")


def test_what_a_lost_end_of_the_ledger_left_is_kept(tree: Path, home: Path) -> None:
    """Packs that only a lost part of the ledger knew survive crashes and later checkpoints."""
    (tree / "a").write_text("1")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    store = home / "projects" / project.id
    shutil.copy(store / "ledger.db", home / "backup.db")
    with takeback.open(tree, home=home) as project:
        (tree / "a").write_text("2")
        project.checkpoint()
    packs = set(os.listdir(store / "git" / "objects" / "pack"))
    shutil.copy(home / "backup.db", store / "ledger.db")
    for number in (3, 4):
        with (store / "lock").open("r+b") as lock:
            lock.write(b"%-10d" % 99999)
        with takeback.open(tree, home=home) as project:
            (tree / "a").write_text(f"{number}")
            project.checkpoint()
            assert packs <= set(os.listdir(store / "git" / "objects" / "pack"))
            assert any("lost its end" in what for what in project.verify().problems)


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
        assert [left.path for left in project.checkpoint().left_out] == [b"build"]
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
