"""Progress: one line with the time left, once work takes longer than a second."""

import subprocess
import sys
from pathlib import Path

import pytest

from shop import Shop
from takeback.cli.progress import FIRST_SHOWN_AFTER, Progress, time_left
from takeback.cli.screen import bare
from takeback.model import words
from terminal import Terminal

ROOMS = range(8, 200)
FILES = 150
SLOW = """
import time
from takeback.cli import app
from takeback.disk import operations

exchange = operations.exchange

def slowly(*words):
    time.sleep(0.012)
    return exchange(*words)

operations.exchange = slowly
app.entry()
"""
"""The command line on a disk that takes 12 ms for each file."""


def test_nothing_is_shown_below_a_second() -> None:
    """Then a line now and then, with percent, count and the time that is left."""
    progress = Progress(0.0, plain=False)
    assert progress.line(words.CHANGING, 10, 100, 80, 0.0) == ""
    assert progress.line(words.CHANGING, 20, 100, 80, 0.9) == ""
    line = progress.line(words.CHANGING, 50, 100, 80, 2.0)
    assert line.startswith("changing files  ━━━━━━━━━━━━╌╌╌")
    assert line.endswith("50%  50 of 100  3 s left")
    assert progress.line(words.CHANGING, 51, 100, 80, 2.05) == ""
    assert progress.line(words.CHECKING, 0, 100, 80, 3.0).endswith("0%  0 of 100")
    assert progress.line(words.LOOKING, 5, 0, 80, 4.0) == "looking at the files…"
    assert [time_left(n) for n in (4.2, 130, 7300)] == ["5 s left", "2 min left", "2 h left"]
    assert FIRST_SHOWN_AFTER == 1.0


@pytest.mark.parametrize("plain", [False, True])
def test_the_line_fits_every_terminal(plain: bool) -> None:
    """However narrow, it is shorter than a line, and percent go last."""
    for room in ROOMS:
        progress = Progress(0.0, plain=plain)
        progress.line(words.CHANGING, 0, 4_000, room, 0.0)
        line = progress.line(words.CHANGING, 1_000, 4_000, room, 5.0)
        assert 0 < len(line) < room
        assert "25%" in line
        assert line.isascii() or not plain


def test_a_long_restore_shows_how_far_it_is(tree: Path, home: Path) -> None:
    """On a terminal, and gone in the end; in a pipe there is none of it."""
    assert home.is_dir()
    shop = Shop(tree)
    for text in ("one", "two"):
        shop.turn(text, {}, {f"many/{n}.txt": f"{text} {n}\n" for n in range(FILES)})
    shop.project.close()
    words = [sys.executable, "-c", SLOW, "-C", str(tree), "undo"]
    terminal = Terminal(words, columns=60)
    text = (terminal.expect(b"puts it back") + b"puts it back").decode()
    terminal.expect(b"Why?")
    terminal.type(b"\r")
    assert terminal.status() == 0
    terminal.close()
    shown = [part for part in text.split("\r\x1b[K") if " left" in part]
    assert any(part.startswith("changing files") for part in shown), text
    assert all(f"of {FILES}" in part and len(part) < 60 for part in shown)
    assert bare(text.rpartition("\r\x1b[K")[2]).startswith('Took back "two"')
    piped = subprocess.run([*words[:-1], "redo"], capture_output=True, text=True, check=True)
    assert "left" not in piped.stdout + piped.stderr
