"""What `undo`, `redo` and `rollback` show is what docs/screens shows, to the letter."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_day import Clock, replaced
from shop import Shop
from takeback.cli.app import main

SCREENS = Path(__file__).parent.parent / "docs/screens"


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


def test_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing left to undo."""
    main(["undo"])
    compare("undo-nothing", shown(capsys, shop, "undo"))
