"""What `undo`, `redo` and `rollback` show is what docs/screens shows, to the letter."""

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_day import Clock, replaced
from shop import Shop
from takeback.cli.app import main
from terminal import Terminal

SCREENS = Path(__file__).parents[2] / "docs/screens"


@pytest.fixture
def shop(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop in which every id and every time is the same in each run."""
    assert home.is_dir()
    monkeypatch.chdir(tree)
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with replaced(random.Random(4), Clock()):
        made = Shop(tree)
        made.validation()
        with made.project:
            yield made


def shown(capsys: pytest.CaptureFixture[str], shop: Shop, *words: str) -> str:
    """A command and what it prints, results first."""
    capsys.readouterr()
    main(list(words))
    said = capsys.readouterr()
    text = f"$ takeback {' '.join(words)}\n{said.out}{said.err}"
    return text.replace(str(shop.tree.parent), "/srv/ana")


def compare(name: str, text: str) -> None:
    """Compare with the file, or write it (UPDATE_SCREENS=1)."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        path.write_text(text)
    assert text == path.read_text()


def test_undo(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest turn, taken back."""
    compare("undo", shown(capsys, shop, "undo"))


def test_redo(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """And put back."""
    main(["undo"])
    compare("redo", shown(capsys, shop, "redo"))


def test_rollback(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A rollback over a turn and over your own edits, previewed; nobody is there to agree."""
    shop.write({"notes.md": "# Notes\n\nCall Ben.\n"})
    compare("rollback-preview", shown(capsys, shop, "rollback", "@~1"))


def test_conflict(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """You changed a file that the turn had changed."""
    shop.write({"src/pay.py": "def pay():\n    return 3\n"})
    compare("undo-conflict", shown(capsys, shop, "undo"))


def test_merge(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """You changed other lines of a file that the turn had changed: both are put together."""
    text = "".join(f"step {number}\n" for number in range(9))
    shop.write({"steps.txt": text})
    shop.turn("Number the steps", {"steps.txt": text.replace("step 1\n", "1. step\n")})
    shop.write({"steps.txt": text.replace("step 1\n", "1. step\n") + "and rest\n"})
    compare("undo-merge", shown(capsys, shop, "undo"))


def test_pick(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interactive preview of a conflict, after one path was switched off."""
    shop.write({"src/pay.py": "def pay():\n    return 3\n"})
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS")
    monkeypatch.delenv("LC_ALL", raising=False)
    screen = Terminal([sys.executable, "-I", "-m", "takeback", "undo"], rows=12, columns=88)
    try:
        screen.shows("> [?] conflict src/pay.py")
        screen.type(b"jj ")
        screen.shows("> [ ] leave    src/validate.py")
        screen.type(b"kk")
        shown = screen.shows("> [?] conflict src/pay.py")
    finally:
        screen.close()
    compare("undo-pick", "\n".join(["$ takeback undo", *shown, ""]))


def test_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing left to undo."""
    main(["undo"])
    compare("undo-nothing", shown(capsys, shop, "undo"))
