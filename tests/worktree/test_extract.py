"""Extract writes only what it was asked for, and only where nothing is."""

import os
from pathlib import Path

import pytest

import takeback


def test_extract_removes_nothing_that_it_did_not_write(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears in the target meanwhile stays, and the extraction fails whole."""
    (tree / "a").write_text("a")
    target = tree.with_name("target")
    target.mkdir()
    with takeback.open(tree, home=home) as project:
        project.checkpoint()

        def appear(doing: str, _done: int, _total: int) -> None:
            if doing == "writing":
                (target / "mine").write_text("mine")

        with pytest.raises(takeback.TargetError):
            project.extract("@", target, progress=appear)
        assert os.listdir(target) == ["mine"]
        assert sorted(os.listdir(tree.parent)) == sorted(["home", "target", "tree"])
    monkeypatch.undo()


def test_extract_does_not_write_into_the_store(tree: Path, home: Path) -> None:
    """The folder of all stores is no place for a tree."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with pytest.raises(takeback.UnsafeRootError):
            project.extract("@", home / "projects" / "abc")
