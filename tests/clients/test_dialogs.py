"""Permission dialogs of the real clients: what you save while one waits is yours."""

import time

import pytest

from clients.model import Use
from clients.place import Place, wait_until
from clients.real import ASKING, ClaudeCode, Client, Codex
from clients.screen import ENTER, ESCAPE, Screen

BY_HAND = "by hand\n"
ASKS = {"claude-code": "Do you want to proceed?", "codex": "Would you like to run"}
ANSWERED = 0.5
"""Seconds from the save to the answer."""


def in_default_mode(client: Client) -> None:
    """Let it ask before it runs a command."""
    client.asks = True
    if isinstance(client, Codex):
        config = client.folder / "config.toml"
        text = config.read_text().replace('"never"', '"on-request"')
        config.write_text(text.replace("danger-full-access", "workspace-write"))


def shell(client: Client, command: str) -> Use:
    """A command for which it has to ask."""
    if isinstance(client, Codex):
        asks = {"sandbox_permissions": "require_escalated", "justification": "need it"}
        return Use("exec_command", {"cmd": command, **asks})
    return Use("Bash", {"command": command, "description": "as the script says"})


def ask(place: Place, kind: type[Client], command: str) -> tuple[Client, Screen]:
    """A client whose dialog waits, while a file is saved by hand."""
    client = kind(place)
    in_default_mode(client)
    client.install()
    place.model.plays("do the job", shell(client, command))
    screen = client.sit_down("do the job")
    screen.shows(ASKS[client.NAME])
    (place.tree / "a.txt").write_text(BY_HAND)
    time.sleep(ANSWERED)
    return client, screen


@pytest.mark.parametrize("kind", ASKING)
def test_after_a_yes(kind: type[Client], place: Place) -> None:
    """Claude Code tells when the command began; Codex does not, and undo asks."""
    before = (place.tree / "b.txt").read_text()
    client, screen = ask(place, kind, "echo done > b.txt")
    try:
        screen.press(ENTER if kind is ClaudeCode else b"y")
        wait_until("the turn is over", lambda: place.turns()[-1]["status"] == "done")
    finally:
        screen.close()
    if kind is ClaudeCode:
        place.takeback("undo")
    else:
        place.takeback("undo", code=3)
        place.takeback("undo", "--yes", "--", "b.txt")
    assert (place.tree / "a.txt").read_text() == BY_HAND
    assert (place.tree / "b.txt").read_text() == before
    assert client.NAME in {session["agent"] for session in place.told("sessions")["sessions"]}


@pytest.mark.parametrize("kind", ASKING)
def test_after_a_no(kind: type[Client], place: Place) -> None:
    """Nothing ran: there is nothing to take back, and what was saved stays."""
    client, screen = ask(place, kind, "echo done > b.txt")
    try:
        screen.press(ESCAPE)
        wait_until("it is interrupted", client.is_interrupted)
        place.takeback("undo", code=1)
    finally:
        screen.close()
    assert (place.tree / "a.txt").read_text() == BY_HAND
    assert [turn["status"] for turn in place.turns()] == ["interrupted"]


def test_escape_after_a_yes(place: Place) -> None:
    """When the command began nobody tells, so what it did goes back with a question."""
    client, screen = ask(place, ClaudeCode, "echo done > b.txt; touch begun.txt; sleep 60")
    try:
        screen.press(ENTER)
        wait_until("it runs", (place.tree / "begun.txt").exists)
        screen.press(ESCAPE)
        wait_until("it is interrupted", client.is_interrupted)
        place.takeback("undo", code=3)
        place.takeback("undo", "--yes", "--", "b.txt", "begun.txt")
    finally:
        screen.close()
    assert (place.tree / "a.txt").read_text() == BY_HAND
    assert not (place.tree / "begun.txt").exists()
