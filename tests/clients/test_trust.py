"""Codex asks at its start whether hooks may run; what is answered, and what comes of it."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clients.place import Place, wait_until
from clients.real import Codex
from clients.screen import ENTER, ESCAPE, UP, Screen

TRUST, REFUSE, REVIEW = "Trust all and continue", "Continue without trusting", "Review hooks"


@pytest.fixture
def codex(place: Place) -> Codex:
    """Codex with hooks that nobody has trusted yet."""
    client = Codex(place)
    client.more = []
    client.install()
    for name in ("first", "second", "third"):
        place.model.plays(f"the {name}", client.shell(f"echo {name} > {name}.txt"))
    return client


@contextmanager
def asked(client: Codex, prompt: str) -> Iterator[Screen]:
    """It is started with a prompt, and asks before it begins."""
    screen = client.sit_down(prompt)
    try:
        for choice in (REVIEW, TRUST, REFUSE):
            screen.shows(choice)
        yield screen
    finally:
        screen.close()


def accept(screen: Screen) -> None:
    """`2` marks the second choice, and Enter takes it."""
    mark_second(screen)
    screen.press(ENTER)


def mark_second(screen: Screen) -> None:
    """Go to the second choice; from then on no key is lost."""
    before = len(screen.text())
    wanted = "".join(TRUST.split())

    def is_marked() -> bool:
        return wanted in "".join(screen.text()[before:].split())

    screen.press_until(b"2", "the second choice is marked", is_marked)


def is_asked(place: Place, prompt: str) -> bool:
    """Whether the model was asked for something."""
    return any(request.prompt == prompt for request in place.model.requests)


def refuse(screen: Screen, place: Place, prompt: str) -> None:
    """`3` takes the third choice at once."""
    screen.press_until(b"3", "it goes on without hooks", lambda: is_asked(place, prompt))


def labels(place: Place, status: str = "done") -> list[str]:
    """The prompts of the turns that are over, the oldest first."""
    return [turn["label"] for turn in place.turns() if turn["status"] == status]


def trusted(client: Codex) -> dict[str, str]:
    """What Codex keeps of hooks that are trusted: a hash for each."""
    config = tomllib.loads((client.folder / "config.toml").read_text())
    state = config.get("hooks", {}).get("state", {})
    return {name: told["trusted_hash"] for name, told in state.items()}


def test_trust_is_asked_for_once(codex: Codex, place: Place) -> None:
    """Accepted by keys it records at once, and after an upgrade nobody is asked again."""
    hooks = codex.folder / "hooks.json"
    installed = hooks.read_bytes()
    assert "does not seem to trust them yet" in place.hooks_by_doctor()
    with asked(codex, "the first") as screen:
        assert not is_asked(place, "the first")
        accept(screen)
        wait_until("the turn is over", lambda: labels(place) == ["the first"])
    kept = trusted(codex)
    assert {name.rpartition(":")[0].rpartition(":")[0] for name in kept} == {
        f"{hooks}:{event}"
        for event in (
            "session_start", "user_prompt_submit", "pre_tool_use", "permission_request",
            "post_tool_use", "subagent_stop", "stop", "session_end",
        )
    }  # fmt: skip
    assert "last event in this project" in place.hooks_by_doctor()

    place.takeback("uninstall", codex.NAME)  # a new version may do that, or only install
    for _ in range(2):
        codex.install()
    assert hooks.read_bytes() == installed
    screen = codex.sit_down("the second")
    try:
        wait_until("the turn is over", lambda: labels(place) == ["the first", "the second"])
        assert "".join(TRUST.split()) not in "".join(screen.text().split())
    finally:
        screen.close()
    codex.prompt("the third")  # headless nobody can be asked
    assert labels(place) == ["the first", "the second", "the third"]
    assert trusted(codex) == kept


def test_without_trust_nothing_is_recorded(codex: Codex, place: Place) -> None:
    """It works without hooks then, says so at the terminal only, and asks again; `doctor` tells."""
    with asked(codex, "the first") as screen:
        refuse(screen, place, "the first")
        wait_until("the work is done", (place.tree / "first.txt").exists)
    assert "hook" not in codex.prompt("the second").lower()
    assert (place.tree / "second.txt").exists()
    with asked(codex, "the third"):
        assert not is_asked(place, "the third")
    assert place.turns() == []
    assert trusted(codex) == {}
    said = place.hooks_by_doctor()
    assert "warning" in said
    assert "does not seem to trust them yet" in said
    assert "`/hooks`" in said


def test_hooks_of_a_project_are_trusted_too(codex: Codex, place: Place) -> None:
    """With `install --project` it asks in the same way, and `doctor` finds what it keeps."""
    place.put_on_path(codex.environment)
    place.takeback("uninstall", codex.NAME)
    place.takeback("install", codex.NAME, "--project")
    assert "does not seem to trust them yet" in place.hooks_by_doctor()
    with asked(codex, "the first") as screen:
        accept(screen)
        wait_until("the turn is over", lambda: labels(place) == ["the first"])
    assert all(name.startswith(f"{place.tree}/.codex/hooks.json:") for name in trusted(codex))
    assert "last event in this project" in place.hooks_by_doctor()


def test_a_hook_that_was_changed_is_not_trusted(codex: Codex, place: Place) -> None:
    """Codex trusts what it was shown: with another time limit it asks again, and `doctor` tells."""
    with asked(codex, "the first") as screen:
        accept(screen)
        wait_until("the turn is over", lambda: labels(place) == ["the first"])
    hooks = codex.folder / "hooks.json"
    hooks.write_text(hooks.read_text().replace('"timeout": 60', '"timeout": 61'))
    assert "does not seem to trust them yet" in place.hooks_by_doctor()
    with asked(codex, "the second"):
        assert not is_asked(place, "the second")


def test_a_prompt_does_not_wait_for_a_review(codex: Codex, place: Place) -> None:
    """The first choice shows the hooks while the prompt runs uncovered; the next one is covered."""
    with asked(codex, "the first") as screen:
        mark_second(screen)
        screen.play((UP, REVIEW), (ENTER, "t trust all"))
        wait_until("the work is done", (place.tree / "first.txt").exists)
        screen.play((b"t", "enter details"), (ESCAPE, "Ask Codex to do anything"))
        assert len(trusted(codex)) == 8
        screen.type("the second")
        wait_until("the turn is over", lambda: labels(place) == ["the second"])
    assert [change["path"] for change in place.turns()[0]["changes"]] == ["second.txt"]
