"""Pages that run: README, start and howto from the wheel, in an empty home, on a terminal.

`UPDATE_SCREENS=1 ./check tests/house/test_pages.py` writes what is printed into the pages.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pages
import wheels
from pages import ROOT, Stage

PYTHON = ("docs/python.md", "docs/plans.md", "docs/log.md", "docs/undo.md")
RUN = ("README.md", "docs/start.md", "docs/howto.md")


@pytest.fixture(scope="session")
def tools(wheel: Path) -> Iterator[Path]:
    """The programs of an environment with the wheel, installed as `uv tool install` does."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        (Path(folder) / pages.TOOL).parent.mkdir(parents=True)
        yield wheels.install(wheel, Path(folder) / pages.TOOL)


@pytest.fixture
def stage(tools: Path) -> Iterator[Stage]:
    """An empty home folder with a name of the length that documents show."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        assert len(folder) == len(pages.HOME)
        yield Stage(Path(folder), tools)


@pytest.mark.parametrize("name", RUN)
def test_the_page_prints_what_it_says(name: str, stage: Stage) -> None:
    """Each command of the page, in its order, prints what the page says."""
    compare(ROOT / name, pages.play(ROOT / name, stage))


@pytest.mark.parametrize("name", PYTHON)
def test_the_python_of_the_page_prints_what_it_says(name: str, tree: Path, home: Path) -> None:
    """Each program of the page, one after the other, prints what stands below it."""
    text = (ROOT / name).read_text()
    assert text.count("```python") == len(pages.PROGRAMS.findall(text)) > 0
    compare(ROOT / name, pages.play_python(ROOT / name, tree, home))


def compare(page: Path, made: str) -> None:
    """Compare a page with what was printed, or write it (UPDATE_SCREENS=1)."""
    if pages.UPDATE:
        page.write_text(made)
    assert made == page.read_text(), pages.difference(page, made)


def test_every_picture_is_made_and_shown() -> None:
    """Each picture is made by a page that runs, and the page of pictures shows all of them."""
    folder = ROOT / "docs/pictures"
    there = {path.name for path in folder.glob("*.svg")}
    made = [
        re.findall(r"^<!-- picture \S*?([\w-]+\.svg)", text_of(name), re.MULTILINE) for name in RUN
    ]
    shown = re.findall(r"\]\(([\w-]+\.svg)\)", (folder / "README.md").read_text())
    assert {name for names in made for name in names} == there == set(shown)
    assert len(there) >= 10


def text_of(name: str) -> str:
    """What a page says."""
    return (ROOT / name).read_text()
