"""Inside a turn a copy of the helper only looks where something happened, and misses nothing."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from residents import Place, copies_of, files_of, heard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a tree is watched on Linux only")


@pytest.fixture
def place(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A project that a copy of the helper watches."""
    monkeypatch.setenv("TAKEBACK_HELPER", "1")
    (tree / "a").write_text("a\n")
    with heard(tree, home) as found:
        found.turn()
        (copy,) = copies_of(home)
        assert "anon_inode:inotify" in files_of(copy)
        yield found


def checkpoints(place: Place) -> int:
    """How many checkpoints there are."""
    with takeback.open(place.tree, home=place.home) as project:
        return project.status().checkpoints


def test_what_a_glance_overlooks_belongs_to_its_turn(place: Place) -> None:
    """A file that a command wrote under a name elsewhere is seen at the stop, as its work."""
    elsewhere = place.home.with_name("elsewhere")
    for name in ("c", "d"):
        (place.tree / name).mkdir()
    (place.tree / "c/file").write_text("before\n")
    os.link(place.tree / "c/file", elsewhere)
    place.turn()
    place.prompt()
    with place.shell("first"):
        pass
    before = checkpoints(place)
    with place.shell("second"):
        elsewhere.write_text("by the command\n")
    with place.shell("third"):
        (place.tree / "d/b").write_text("b\n")
    assert checkpoints(place) == before + 1, "the glances saw it, so they looked at everything"
    place.tell("Stop")
    assert checkpoints(place) == before + 2
    with takeback.open(place.tree, home=place.home) as project:
        turn = project.turn("@~0")
    assert {change.raw_path for change in turn.changes} == {b"c/file", b"d/b"}
    place.command("undo", "--yes")
    assert (place.tree / "c/file").read_text() == "before\n"
    assert list((place.tree / "d").iterdir()) == []


def test_what_the_user_does_between_two_steps_stays(place: Place) -> None:
    """Edits by hand inside a turn, between the agent's commands, are the user's."""
    place.prompt()
    for number in range(3):
        with place.shell(f"call {number}"):
            (place.tree / "a").write_text(f"agent {number}\n")
        (place.tree / f"mine{number}").write_text("mine\n")
    place.tell("Stop")
    place.command("undo", "--yes")
    assert (place.tree / "a").read_text() == "a\n"
    assert sorted(path.name for path in place.tree.iterdir()) == ["a", "mine0", "mine1", "mine2"]


def test_each_step_is_told_apart(place: Place) -> None:
    """What each of several commands did is known, also with new folders."""
    place.prompt()
    for number in range(3):
        with place.shell(f"call {number}"):
            (place.tree / f"d{number}/e").mkdir(parents=True)
            (place.tree / f"d{number}/e/f").write_text(f"{number}\n")
    place.tell("Stop")
    with takeback.open(place.tree, home=place.home) as project:
        steps = project.turn("@~0").steps
    for number, step in enumerate(steps):
        made = [f"d{number}", f"d{number}/e", f"d{number}/e/f"]
        assert sorted(os.fsdecode(change.path) for change in step.changes) == made
    place.command("undo", "--yes")
    assert [path.name for path in place.tree.iterdir()] == ["a"]
