"""Names that differ in case only, on a disk that does not tell them apart."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.errors import BlockedError
from takeback.project import Project


def _one_name(real: "Callable[..., Any]") -> "Callable[..., Any]":
    """A system call that finds an entry of a folder also by a name in other letters."""

    def call(name: bytes | str, *args: object, dir_fd: int | None = None, **more: object) -> object:
        try:
            return real(name, *args, dir_fd=dir_fd, **more)
        except FileNotFoundError:
            for other in map(os.fsencode, os.listdir(dir_fd)) if dir_fd is not None else ():
                if isinstance(name, bytes) and other.lower() == name.lower():
                    return real(other, *args, dir_fd=dir_fd, **more)
            raise

    return call


@pytest.fixture
def project(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Project]]:
    """A project; once it is called for, its disk does not tell upper from lower case."""
    with takeback.open(tree, home=home) as project:

        def on_such_a_disk() -> Project:
            for name in ("stat", "open", "readlink"):
                monkeypatch.setattr(os, name, _one_name(getattr(os, name)))
            return project

        yield on_such_a_disk


def _turn(project: Project) -> takeback.Turn:
    return project.session("agent").turn("rename it")


def test_a_name_in_other_letters_is_named(tree: Path, project: "Callable[[], Project]") -> None:
    """An undo of a rename from `README` to `readme` says that both are one file there."""
    (tree / "docs").mkdir()
    (tree / "docs/README").write_text("1\n")
    first = takeback.open(tree)
    first.checkpoint()
    with _turn(first):
        os.rename(tree / "docs/README", tree / "docs/readme")
    with pytest.raises(BlockedError) as told:
        project().undo()
    assert "`docs/readme` and `docs/README`" in str(told.value)
    assert "writing" not in str(told.value)
    assert os.listdir(tree / "docs") == ["readme"]


def test_two_names_that_would_be_one_are_named(
    tree: Path, project: "Callable[[], Project]"
) -> None:
    """A state with both names does not come back there, and the message names both."""
    (tree / "Makefile").write_text("1\n")
    (tree / "makefile").write_text("2\n")
    first = takeback.open(tree)
    state = first.checkpoint().id
    (tree / "Makefile").unlink()
    (tree / "makefile").unlink()
    first.checkpoint()
    with pytest.raises(BlockedError, match="`Makefile` and `makefile` are one file"):
        project().rollback(state, yes=True)
    assert os.listdir(tree) == []


def test_case_is_told_apart_where_the_disk_does(tree: Path, home: Path) -> None:
    """On other disks both are files of their own, and come back."""
    (tree / "Makefile").write_text("1\n")
    (tree / "makefile").write_text("2\n")
    if len(os.listdir(tree)) == 1:
        pytest.skip("this disk does not tell them apart")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with _turn(project):
            (tree / "Makefile").unlink()
            os.rename(tree / "makefile", tree / "MAKEFILE")
        project.undo()
    assert sorted(os.listdir(tree)) == ["Makefile", "makefile"]
