"""Long output on a terminal goes through a pager; nothing else does."""

import os
import shlex
from pathlib import Path

import pytest

import program
from history import command
from shop import Shop
from takeback.disk import programs

SIZE = (80, 10)


@pytest.fixture
def shop(tree: Path, home: Path) -> Shop:
    """A project with a diff and a log that are longer than the terminal."""
    assert home.is_dir()
    shop = Shop(tree)
    for number in range(8):
        shop.turn(f"Turn {number}", {"src/pay.py": f"x = {number}\n" * 40})
    shop.project.close()
    return shop


def seen(shop: Shop, *words: str, **more: str) -> tuple[int, str]:
    """What is on the terminal; how it ended."""
    env = {**os.environ, "TERM": "xterm", **more}
    return program.on_terminal(words, shop.tree, env, SIZE)


def pager(folder: Path, script: str) -> str:
    """A program that notes that it was called, and does something."""
    path = folder / "my pager"
    path.write_text(f"#!/bin/sh\necho called >> {shlex.quote(str(folder / 'calls'))}\n{script}\n")
    path.chmod(0o755)
    return shlex.quote(str(path))


@pytest.mark.parametrize("words", [["log"], ["diff", "start", "@"], ["show", "@~0", "src/pay.py"]])
def test_long_output_goes_through_the_pager(shop: Shop, tmp_path: Path, words: list[str]) -> None:
    """`log`, `show` and `diff`, with their colours, results and hints in order."""
    own = pager(tmp_path, "sed 's/^/> /'")
    code, text = seen(shop, *words, TAKEBACK_PAGER=own, PAGER="false")
    assert code == 0
    assert (tmp_path / "calls").read_text() == "called\n"
    assert all(line.startswith("> ") for line in text.splitlines())
    assert text.count("\n") > SIZE[1]


def test_no_pager_where_nobody_wants_one(shop: Shop, tmp_path: Path) -> None:
    """Not for short output, with --no-pager or --json, in a pipe, on a dumb terminal, as `cat`."""
    own = pager(tmp_path, "cat")
    quiet: list[tuple[list[str], dict[str, str]]] = [
        (["log", "--no-pager"], {}),
        (["--no-pager", "log"], {}),
        (["log", "--json"], {}),
        (["show", "@~0"], {"TERM": "dumb"}),
        (["log"], {"TERM": "dumb"}),
        (["log"], {"TAKEBACK_PAGER": ""}),
        (["log"], {"TAKEBACK_PAGER": "cat"}),
        (["sessions"], {}),
        (["log", "--limit", "1"], {}),
    ]
    for words, more in quiet:
        code, text = seen(shop, *words, **{"PAGER": own, **more})
        assert code == 0, (words, text)
    assert command(shop.tree, "log", PAGER=own).code == 0
    assert not (tmp_path / "calls").exists()
    assert seen(shop, "log", PAGER=own)[0] == 0
    assert (tmp_path / "calls").exists()


def test_without_a_pager_the_text_is_plain(shop: Shop) -> None:
    """A pager that is not there, or cannot be started, costs nothing but itself."""
    usual = seen(shop, "log", "--no-pager")[1]
    for missing in ("/nowhere/pager", "no-such-pager -x", "/dev/null"):
        code, text = seen(shop, "log", TAKEBACK_PAGER=missing)
        assert code == 0
        assert [line[:8] for line in text.splitlines()] == [x[:8] for x in usual.splitlines()]


def test_whoever_quits_the_pager_early_made_no_mistake(shop: Shop, tmp_path: Path) -> None:
    """The exit code is 0, and nobody complains about the pipe."""
    (shop.tree / "big.txt").write_text("line\n" * 200_000)
    own = pager(tmp_path, "head -n 3")
    code, text = seen(shop, "diff", "start", "@", TAKEBACK_PAGER=own)
    assert code == 0
    assert len(text.splitlines()) == 3
    assert "rror" not in text


def test_a_pager_is_never_taken_from_the_folder(tree: Path) -> None:
    """With `.` in the PATH an agent could have put a `less` there."""
    (tree / "less").write_text("#!/bin/sh\necho > stolen\n")
    (tree / "less").chmod(0o755)
    before = os.getcwd()
    os.chdir(tree)
    try:
        assert programs.start_viewer(["less"], {"PATH": ".:"}) is None
    finally:
        os.chdir(before)
    assert not (tree / "stolen").exists()
