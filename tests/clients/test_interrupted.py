"""Esc and `kill -9` in the middle of a turn of the real clients."""

import time

import pytest

import oracle
from clients.place import Place, wait_until
from clients.real import DEEP, ClaudeCode, Client
from clients.screen import Screen

BY_HAND = "by hand\n"


def half_a_job(place: Place, client: Client) -> None:
    """A prompt whose shell has done some of its work and waits before it does the rest."""
    rest = f"until [ -e {place.scratch}/go ]; do sleep 0.05; done; echo late > late.txt"
    job = f"echo half > half.txt; rm b.txt; touch {place.scratch}/begun; {rest}"
    place.model.plays("do the job", client.shell(job))


def wait_for_half_of_it(place: Place) -> None:
    """Wait until the shell is in the middle."""
    wait_until("the shell is in the middle", (place.scratch / "begun").exists)


def press_escape(screen: Screen, client: Client) -> None:
    """Interrupt it, and wait until that is in its conversation."""
    client.interrupt(screen)
    wait_until("it is interrupted", client.is_interrupted)
    time.sleep(0.05)  # the clock of a file system is some milliseconds late


def edit_by_hand(place: Place) -> None:
    """The user works on: a file that exists, and a new one."""
    (place.tree / "a.txt").write_text(BY_HAND)
    (place.tree / "mine.txt").write_text(BY_HAND)


def assert_only_hands_work_is_left(place: Place, before: oracle.Picture) -> None:
    """All is as before, but for what the user did."""
    now = oracle.picture(place.tree)
    assert oracle.differences(before, now, [b"a.txt", b"mine.txt"]) == []
    for name in ("a.txt", "mine.txt"):
        assert (place.tree / name).read_text() == BY_HAND


@pytest.mark.parametrize("kind", DEEP)
def test_after_escape_hand_edits_stay(kind: type[Client], place: Place) -> None:
    """The interrupted turn is taken back at once, and what was done by hand since stays."""
    client = kind(place)
    client.install()
    before = oracle.picture(place.tree)
    half_a_job(place, client)
    screen = client.sit_down("do the job")
    try:
        wait_for_half_of_it(place)
        press_escape(screen, client)
        edit_by_hand(place)
        place.takeback("undo")
    finally:
        screen.close()
    assert_only_hands_work_is_left(place, before)
    assert [turn["status"] for turn in place.turns()] == ["interrupted"]
    place.takeback("redo")
    assert (place.tree / "half.txt").read_text() == "half\n"
    assert (place.tree / "mine.txt").read_text() == BY_HAND


@pytest.mark.parametrize("kind", DEEP)
def test_after_escape_and_another_prompt(kind: type[Client], place: Place) -> None:
    """A prompt that follows closes the interrupted turn where it was; both are taken back."""
    client = kind(place)
    client.install()
    before = oracle.picture(place.tree)
    half_a_job(place, client)
    place.model.plays("another one", client.shell("echo another > another.txt"))
    screen = client.sit_down("do the job")
    try:
        wait_for_half_of_it(place)
        press_escape(screen, client)
        edit_by_hand(place)
        screen.type("another one")
        wait_until("the next turn is over", lambda: place.turns()[-1]["status"] == "done")
    finally:
        screen.close()
    assert [(turn["label"], turn["status"]) for turn in place.turns()] == [
        ("do the job", "interrupted"),
        ("another one", "done"),
    ]
    place.takeback("undo")
    assert not (place.tree / "another.txt").exists()
    assert (place.tree / "half.txt").exists()
    place.takeback("undo")
    assert_only_hands_work_is_left(place, before)


@pytest.mark.parametrize("kind", DEEP)
def test_after_kill_the_turn_comes_back(kind: type[Client], place: Place) -> None:
    """`kill -9` of the client in the middle: its turn is taken back all the same."""
    client = kind(place)
    client.install()
    before = oracle.picture(place.tree)
    half_a_job(place, client)
    running = client.start("do the job")
    wait_for_half_of_it(place)
    running.kill()
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(place.tree)) == []
    place.takeback("redo")
    assert (place.tree / "half.txt").exists()
    assert not (place.tree / "b.txt").exists()


def test_after_kill_and_another_prompt(place: Place) -> None:
    """The conversation goes on after `kill -9`, and both turns are taken back."""
    client = ClaudeCode(place)
    client.install()
    before = oracle.picture(place.tree)
    half_a_job(place, client)
    place.model.plays("another one", client.shell("echo another > another.txt"))
    running = client.start("do the job")
    wait_for_half_of_it(place)
    running.kill()
    (place.scratch / "go").touch()  # its shell lives on, and ends its work
    wait_until("the shell ended its work", (place.tree / "late.txt").exists)
    client.prompt("another one")
    assert [(turn["label"], turn["status"]) for turn in place.turns()] == [
        ("do the job", "interrupted"),
        ("another one", "done"),
    ]
    place.takeback("undo")
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(place.tree)) == []
