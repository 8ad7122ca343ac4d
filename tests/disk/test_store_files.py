"""Something else in the place of a file of the store: no command hangs, and errors name it."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback

SECONDS = 30
"""A command that takes longer hangs."""


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the whole path may be too long for the address of a socket
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _folder(path: Path) -> None:
    path.mkdir(0o700)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def run(tree: Path, *words: str) -> tuple[int, str]:
    """Run `takeback`: its exit code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "takeback", *words],
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


@pytest.fixture
def store(tree: Path, home: Path) -> Path:
    """The store of a project with two checkpoints."""
    with takeback.open(tree, home=home) as project:
        for text in ("one\n", "two\n"):
            (tree / "file").write_text(text)
            project.checkpoint()
        project.gc()
        return home / "projects" / project.id


NEEDED = {
    "lock": ("checkpoint",),
    "upkeep": ("gc",),
    "ledger.db": ("log",),
    "ledger.db-journal": ("checkpoint",),
    "clock": ("checkpoint",),
    "config.toml": ("gc",),
}
"""Files that cannot be done without, and commands that say so."""
CASES = [
    *((name, word, _fifo) for name, words in NEEDED.items() for word in words),
    ("lock", "checkpoint", _socket),
    ("lock", "checkpoint", _link),
    ("ledger.db-wal", "log", _folder),
]


@pytest.mark.parametrize(("name", "word", "put"), CASES)
def test_what_took_the_place_of_a_file_is_named(
    tree: Path, store: Path, name: str, word: str, put: Callable[[Path], None]
) -> None:
    """The error names the path and says what to do; when it is gone, all is well."""
    path, aside = store / name, tree.parent / "aside"
    if path.exists():
        path.rename(aside)
    put(path)
    code, said = run(tree, word)
    assert code != 0
    assert str(path) in said
    assert "hint: " in said
    assert "Traceback" not in said
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    if aside.exists():
        aside.rename(path)
    with takeback.open(tree) as project:
        (tree / "file").write_text("three\n")
        assert project.checkpoint().new
        assert project.verify().ok


@pytest.mark.parametrize("name", ["index", "git/refs/heads/checkpoints"])
def test_what_can_be_made_again_stops_nobody(tree: Path, store: Path, name: str) -> None:
    """A FIFO in the place of a file that follows from others is no reason to fail, or to wait."""
    (store / name).unlink(missing_ok=True)
    _fifo(store / name)
    (tree / "file").write_text("three\n")
    for words in (("checkpoint",), ("doctor", "--repair")):
        code, said = run(tree, *words)
        assert code == 0, said
    with takeback.open(tree) as project:
        assert project.verify().ok
    assert (store / name).is_file()


@pytest.mark.parametrize("word", ["doctor", "gc"])
def test_a_fifo_is_no_pack(tree: Path, store: Path, word: str) -> None:
    """A pack that is a FIFO is found, named, and never waited for."""
    pack = next(store.glob("git/objects/pack/*.pack"))
    pack.unlink()
    _fifo(pack)
    code, said = run(tree, word)
    assert code == 4, said
    assert pack.stem in said


def test_a_home_with_a_name_like_our_own_is_named(tree: Path, tmp_path: Path) -> None:
    """An error names the file, also if the store is in a folder such as `.takeback-home`."""
    home = tmp_path / ".takeback-home"
    (home / "registry").mkdir(parents=True)
    home.chmod(0o700)
    with pytest.raises(takeback.TakebackError) as error:
        takeback.open(tree, home=home)
    assert f"`{home / 'registry'}`" in str(error.value)
