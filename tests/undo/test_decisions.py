"""What a decision about a conflict means where it is no clash of two texts."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle import differences
from shop import Shop

LEAVING = ("keep-mine", "skip-conflicts")


@pytest.fixture
def shop(tree: Path, home: Path) -> Iterator[Shop]:
    """A project with nothing to undo yet."""
    assert home.is_dir()
    made = Shop(tree)
    with made.project:
        yield made


def renamed(shop: Shop) -> None:
    """The turn renames a file and edits another; you make a new one under the old name."""
    with shop.session.turn("Rename") as turn:
        with turn.step("Bash", {"command": "mv"}):
            (shop.tree / "notes.md").rename(shop.tree / "NOTES.md")
        with turn.step("Write", {"file_path": "src/cart.py"}):
            shop.write({"src/cart.py": "items = [1]\n"})
    shop.write({"notes.md": "mine\n"})


@pytest.mark.parametrize("decision", LEAVING)
def test_a_rename_stays_whole(shop: Shop, decision: str) -> None:
    """If your file keeps the old name, the turn's stays under the new one, in sight."""
    renamed(shop)
    assert shop("undo").code == 3
    said = shop("undo", f"--{decision}")
    assert said.code == 0, said.err
    assert (shop.tree / "notes.md").read_text() == "mine\n"
    assert (shop.tree / "NOTES.md").read_text() == "# Notes\n"
    assert (shop.tree / "src/cart.py").read_text() == "items = []\n"


def test_a_rename_is_taken_back_over_yours(shop: Shop) -> None:
    """With `--take-back` the old name has the old content again; `redo` brings yours back."""
    renamed(shop)
    before = shop.picture()
    assert shop("undo", "--take-back").code == 0
    assert (shop.tree / "notes.md").read_text() == "# Notes\n"
    assert not (shop.tree / "NOTES.md").exists()
    assert shop("redo").code == 0
    assert not differences(before, shop.picture())


@pytest.mark.parametrize("decision", LEAVING)
def test_what_is_below_something_that_stays(shop: Shop, decision: str) -> None:
    """A file of yours where a folder was stays, and so nothing can come back below it."""
    shop.turn("Clean up", {"src/pay.py": "x\n"}, {"tests/test_cart.py": None})
    (shop.tree / "tests").rmdir()
    shop.write({"tests": "mine\n"})
    said = shop("undo")
    assert said.code == 3
    said = shop("undo", f"--{decision}")
    assert said.code == 0, said.err
    assert (shop.tree / "tests").read_text() == "mine\n"
    assert (shop.tree / "src/pay.py").read_text() == "def pay():\n    return 1\n"


@pytest.mark.parametrize("decision", ["take-back", "markers"])
def test_what_nobody_knows_is_not_replaced(shop: Shop, decision: str) -> None:
    """Something unknown in the way still conflicts; only leaving it alone goes on."""
    shop.turn("Clean up", {"src/pay.py": "x\n"}, {"notes.md": None})
    os.mkfifo(shop.tree / "notes.md")
    before = shop.picture()
    said = shop("undo", f"--{decision}")
    assert said.code == 3
    assert f"`--{decision}` cannot settle that" in said.err
    assert f"undo --{decision}" not in said.err
    assert not differences(before, shop.picture())
    assert shop("undo", "--skip-conflicts").code == 0
    assert (shop.tree / "notes.md").is_fifo()
    assert (shop.tree / "src/pay.py").read_text() == "def pay():\n    return 1\n"


def test_a_redo_speaks_of_the_undo(shop: Shop) -> None:
    """What is in the way of a redo was deleted by the undo, not by the turn."""
    shop.turn("Make it", {"made.py": "turn\n"})
    assert shop("undo").code == 0
    shop.write({"made.py": "mine\n"})
    said = shop("redo")
    assert said.code == 3
    assert "  conflict  made.py  deleted by the undo, and you created it again since\n" in said.out
    assert shop("redo", "--take-back").code == 0
    assert (shop.tree / "made.py").read_text() == "turn\n"
