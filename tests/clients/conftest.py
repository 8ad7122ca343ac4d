"""What tests with the real clients get; without `./check --clients`, none of them runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import torture
from clients import real
from clients.model import Model
from clients.place import Place


@pytest.fixture(autouse=True)
def _clients_are_here() -> None:
    why = real.missing()
    if why:
        pytest.skip(why)


@pytest.fixture
def model() -> Iterator[Model]:
    """A scripted model."""
    ours = Model()
    yield ours
    ours.close()


@pytest.fixture
def make_place(tmp_path: Path, model: Model) -> Iterator[Callable[..., Place]]:
    """Makes a project in which clients can work."""
    made = []

    def make(*, git: bool = True, full: bool = False) -> Place:
        tree = tmp_path / "tree"
        tree.mkdir()
        if full:
            torture.make(tree)
        else:
            (tree / "sub/folder").mkdir(parents=True)
            for name in ("a.txt", "b.txt", "sub/folder/x"):
                (tree / name).write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
        if git:
            torture.git(tree, "init", "-q")
            if full:
                torture.commit(tree)
        made.append(Place(tmp_path, tree, model))
        return made[-1]

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """A small git repository."""
    return make_place()
