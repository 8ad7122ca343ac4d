"""Files that change while they are read: no checkpoint mixes two states of one."""

import errno
import fcntl
import os
import signal
from pathlib import Path

import pytest

import takeback
from takeback.worktree import content


def _extracted(project: takeback.Project, beside: Path, ref: str = "@") -> Path:
    out = beside.with_name(f"out-{len(os.listdir(beside.parent))}")
    project.extract(ref, out)
    return out


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
