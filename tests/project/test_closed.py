"""A closed project."""

from pathlib import Path

import pytest

import takeback


def test_a_closed_project_says_that_it_is_closed(tree: Path, home: Path) -> None:
    """Using a project after `close` is a mistake of the caller, not damage."""
    project = takeback.open(tree, home=home)
    project.checkpoint()
    project.close()
    with pytest.raises(takeback.UsageError, match="closed"):
        project.status()
