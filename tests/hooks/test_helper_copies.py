"""Copies of the resident helper keep a project open, and see all that others do to it meanwhile."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from residents import NEEDS_PROC, PATIENCE, Place, copies_of, files_of, heard, helpers, until
from takeback.hooks import helper as copies

pytestmark = NEEDS_PROC


@pytest.fixture
def place(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A project whose helper is there."""
    monkeypatch.setenv("TAKEBACK_HELPER", "1")
    (tree / "a").write_text("a\n")
    with heard(tree, home) as found:
        yield found


def test_one_copy_hears_all_events_of_a_place(place: Place) -> None:
    """Turns are recorded as without a helper, by one process that stays."""
    place.turn(a="1\n")
    (first,) = copies_of(place.home)
    place.turn(a="2\n")
    assert copies_of(place.home) == [first]
    assert place.labels() == ["prompt 1", "prompt 2"]
    place.command("undo", "--yes")
    assert (place.tree / "a").read_text() == "1\n"


def test_what_was_taken_back_meanwhile_is_told(place: Place) -> None:
    """A command of the user between two events is seen by the next one."""
    place.turn(a="1\n")
    place.command("undo", "--yes", "--because", "wrong file")
    told = place.turn(b="2\n")
    assert "wrong file" in json.dumps(told)
    place.command("undo", "--yes")
    assert sorted(path.name for path in place.tree.iterdir()) == ["a"]
    assert (place.tree / "a").read_text() == "a\n"


def test_settings_that_change_are_followed(place: Place) -> None:
    """A limit that the user sets holds from the next event on."""
    place.turn(a="1\n")
    (place.home / "config.toml").write_text("[limits]\nfile = 10\n")
    place.turn(large="x" * 1000)
    with takeback.open(place.tree, home=place.home) as project:
        left_out = project.status().left_out
    assert [os.fsdecode(each.path) for each in left_out] == ["large"]


def test_another_folder_under_the_same_name_is_another_project(place: Place) -> None:
    """What is done in a new folder is not written into the history of the old one, and told."""
    place.turn(a="1\n")
    place.tree.rename(place.tree.with_name("moved"))
    place.tree.mkdir()
    assert "a new history begins here" in json.dumps(place.turn(b="2\n"))
    moved = Place(place.tree.with_name("moved"), place.home)
    assert (moved.labels(), place.labels()) == (["prompt 1"], ["prompt 2"])


def test_a_store_that_was_removed_is_made_anew(place: Place) -> None:
    """Nothing is written into a ledger that nobody can read any more."""
    place.turn(a="1\n")
    place.tell("SessionEnd")
    (store,) = (place.home / "projects").iterdir()
    place.command("projects", "--remove", store.name, "--yes", "--even-if-in-use")
    place.turn(a="2\n")
    assert place.labels() == ["prompt 2"]


def test_a_store_that_was_replaced_is_read_anew(place: Place) -> None:
    """After a backup of the store was put back, the log goes on from there."""
    place.turn(a="1\n")
    (store,) = (place.home / "projects").iterdir()
    (copy,) = copies_of(place.home)
    os.kill(copy, signal.SIGSTOP)
    shutil.copytree(store, store.with_suffix(".backup"))
    os.kill(copy, signal.SIGCONT)
    place.turn(a="2\n")
    shutil.rmtree(store)
    store.with_suffix(".backup").rename(store)
    place.turn(a="3\n")
    assert place.labels() == ["prompt 1", "prompt 3"]


def test_what_was_forgotten_is_not_held_open(place: Place) -> None:
    """A copy keeps no file of the store alive that was removed from it."""
    place.turn(a="secret\n")
    place.turn(a="2\n")
    place.command("forget", "a", "--yes")
    place.command("gc", "--full")
    (copy,) = copies_of(place.home)
    assert [name for name in files_of(copy) if name.endswith("(deleted)") or "/pack/" in name] == []
    place.turn(a="3\n")
    assert place.labels() == ["prompt 1", "prompt 2", "prompt 3"]


def test_a_copy_may_be_killed(place: Place) -> None:
    """Another one takes its place; what it had recorded stays."""
    place.turn(a="1\n")
    (copy,) = copies_of(place.home)
    os.kill(copy, signal.SIGKILL)
    until(lambda: copy not in copies_of(place.home), "its end")
    place.is_heard()  # who was to be asked is dead; a hook would hear this event itself
    place.turn(a="2\n")
    assert place.labels() == ["prompt 1", "prompt 2"]


def test_copies_end_with_their_helper(place: Place) -> None:
    """Nobody is left who waits for work that nobody gives."""
    place.turn(a="1\n")
    (copy,) = copies_of(place.home)
    (helper,) = helpers(place.home)
    os.kill(helper, signal.SIGKILL)
    until(lambda: copy not in copies_of(place.home), "its end")


def test_nobody_waits_for_another_place(place: Place, tmp_path: Path) -> None:
    """While an event waits for the lock of its project, those of others are heard."""
    other = Place(tmp_path / "other", place.home)
    other.tree.mkdir()
    place.turn(a="1\n")
    with takeback.open(place.tree, home=place.home) as project, project.workspace.held():
        waiting = threading.Thread(target=place.turn)
        waiting.start()
        other.turn(b="2\n")
        assert waiting.is_alive()
        assert other.labels() == ["prompt 1"]
    waiting.join(PATIENCE)
    assert place.labels() == ["prompt 1", "prompt 2"]


def test_events_at_once_in_one_place_are_all_heard(place: Place) -> None:
    """Each of several events gets its answer, and each counts."""
    place.turn(a="1\n")
    places = [Place(place.tree, place.home) for _ in range(6)]
    for number, each in enumerate(places):
        each.number = 100 + number
    threads = [threading.Thread(target=each.turn) for each in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(place.labels()[1:]) == [f"prompt {101 + number}" for number in range(6)]


def test_copies_that_wait_are_few(place: Place, tmp_path: Path) -> None:
    """Of many places, those of the last events stay open."""
    others = [Place(tmp_path / f"other{number}", place.home) for number in range(copies.MOST + 3)]
    for other in others:
        other.tree.mkdir()
        other.turn(b="2\n")
    until(lambda: len(copies_of(place.home)) <= copies.MOST, "the end of the others")
    assert {tuple(other.labels()) for other in others} == {("prompt 1",)}
