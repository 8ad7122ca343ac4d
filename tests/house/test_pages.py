"""README, start.md and howto.md: from the wheel, in an empty home, on a terminal, word for word.

`UPDATE_SCREENS=1 ./check tests/house/test_pages.py` writes what is printed into the pages.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pages
import wheels
from pages import ROOT, Stage

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
    page = ROOT / name
    made = pages.play(page, stage)
    if os.environ.get("UPDATE_SCREENS"):
        page.write_text(made)
    assert made == page.read_text(), pages.difference(page, made)
