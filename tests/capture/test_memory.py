"""Memory stays bounded, whatever is in the tree: large files pass through, they are never held."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MIB = 1 << 20
ADDRESS_SPACE = 256 * MIB
SMALL = 16 * MIB
LIMITS = "[limits]\nfile = 1073741824\n"

PROGRAM = """
import resource, sys
import takeback

def peak():
    try:
        # What getrusage says includes the process that started this one.
        return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

small, large, out, home = sys.argv[1:]
with takeback.open(small, home=home) as project:
    project.checkpoint()
    project.extract("@", out + "-small")
before = peak()
with takeback.open(large, home=home) as project:
    project.checkpoint()
    captured = peak()
    project.extract("@", out)
print(captured - before, peak() - before)
"""
"""Prints by how much capturing, and extracting too, raised the peak of a process that did both."""


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on a disk, because what is large does not belong into memory."""
    place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def grown(disk: Path, large: Path) -> tuple[int, int]:
    """Capture and extract `large` with little address space; return how much the peak rose."""
    small, home = disk / "small", disk / "home"
    small.mkdir()
    (small / "file").write_bytes(os.urandom(300_000))
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(LIMITS)
    arguments = [str(small), str(large), str(disk / "out"), str(home)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    captured, extracted = map(int, done.stdout.split())
    return captured, extracted


def test_a_sparse_file_larger_than_the_memory(disk: Path) -> None:
    """A sparse file larger than the address space is captured and comes back, in little memory."""
    large = disk / "large"
    large.mkdir()
    with (large / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(300 * MIB)
        file.seek(300 * MIB - 3)
        file.write(b"end")
    assert max(grown(disk, large)) < SMALL
    with (disk / "out/sparse").open("rb") as back:
        assert back.read(6) == b"begin\0"
        back.seek(-4, os.SEEK_END)
        assert back.read() == b"\0end"
        assert back.tell() == 300 * MIB


def test_a_large_random_file(disk: Path) -> None:
    """A large file that does not compress is captured and comes back whole, in little memory."""
    large = disk / "large"
    large.mkdir()
    content = os.urandom(64 * MIB)
    (large / "random").write_bytes(content)
    assert max(grown(disk, large)) < SMALL
    assert (disk / "out/random").read_bytes() == content


def test_a_folder_of_many_entries(disk: Path) -> None:
    """A folder of 20,000 entries is captured and comes back, in memory that fits their number."""
    large = disk / "large"
    large.mkdir()
    for number in range(20_000):
        (large / f"file{number}").symlink_to("target")
    captured, _ = grown(disk, large)
    assert captured < 20_000 * 2000
    assert len(os.listdir(disk / "out")) == 20_000
