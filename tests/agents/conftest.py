"""What tests of agents get."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from recorded import Played


@pytest.fixture
def played(tree: Path, home: Path, request: pytest.FixtureRequest) -> Iterator[Played]:
    """A project in which a client plays (`recorded.client`)."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\ntwo\n")
    with takeback.open(tree) as project:
        yield Played(project, tree, request.param)
