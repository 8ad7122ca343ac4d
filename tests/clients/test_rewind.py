"""Going back inside the real clients: Esc Esc in Codex, `/rewind` in Claude Code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oracle
from clients.place import Place, wait_until
from clients.real import ClaudeCode, Client, Codex
from clients.rewinds import asked_before, done, offered, script
from clients.screen import CLEAR, ENTER, ESCAPE, LEFT, UP, Screen

INTERRUPTED = "Conversation interrupted"


class Talk:
    """Codex at a terminal, where somebody asks for files and goes back."""

    def __init__(self, place: Place, client: Client, screen: Screen) -> None:
        self.place = place
        self.client = client
        self.screen = screen
        self.pictures: list[oracle.Picture] = []
        """What the folder held after each prompt."""

    def is_over(self, number: int, after: int) -> None:
        """Wait until a turn is over, for Takeback and for Codex, which would hear Esc before."""
        wait_until("the turn is over", lambda: len(done(self.place)) == number)
        self.screen.shows("Worked for", after)
        self.pictures.append(oracle.picture(self.place.tree))

    def ask(self, prompt: str) -> str:
        """Ask for something, and wait for it; what is to be seen from then on."""
        number, before = len(done(self.place)) + 1, len(self.screen.text())
        self.screen.type(prompt)
        self.is_over(number, before)
        return self.screen.text()[before:]

    def go_back(self, *keys: tuple[bytes, str]) -> None:
        """Esc Esc: to before the newest prompt, or further back by more keys."""
        files = len(rollouts(self.client))
        self.screen.play((ESCAPE, "esc again"), (ESCAPE, "Browsing transcript"), *keys)
        self.screen.press(ENTER)
        wait_until("it goes on in a new file", lambda: len(rollouts(self.client)) > files)
        self.screen.shows("Conversation reverted")
        # The prompt that one went back to stands there to be changed.
        self.screen.press_until(CLEAR, "an empty line", lambda: is_empty(self.screen))


def is_empty(screen: Screen) -> bool:
    """Whether nothing is typed: the newest that was drawn there is what Codex writes then."""
    drawn = screen.text()
    return drawn.rfind("Ask Codex to do anything") > drawn.rfind("Conversation reverted")


def rollouts(client: Client) -> list[Path]:
    """The files that Codex keeps conversations in."""
    return list((client.folder / "sessions").glob("*/*/*/rollout-*.jsonl"))


@contextmanager
def talking(place: Place) -> Iterator[Talk]:
    """Codex at a terminal, with the first prompt done."""
    client = Codex(place)
    client.install()
    script(place, client)
    screen = client.sit_down("make the first file")
    try:
        talk = Talk(place, client, screen)
        talk.is_over(1, 0)
        yield talk
    finally:
        screen.close()


def test_escape_escape_in_codex(place: Place) -> None:
    """It is said at the next prompt, recorded, and the offered command is exact; so is its undo."""
    with talking(place) as talk:
        talk.ask("make the second file")
        talk.go_back()
        ref = offered(talk.ask("make the third file"))
    assert asked_before(place, "make the third file") == [
        "make the first file",
        "make the third file",
    ]
    first, second, third = place.turns()
    assert second["id"].startswith(ref.rstrip("-"))
    assert place.told("show", third["id"])["turn"]["went_back"] == second["id"]
    assert f"after a rewind to before {second['id'][:6]}" in place.takeback("log")

    place.takeback("rollback", ref, code=3)  # over the third turn, too: somebody has to say so
    assert oracle.differences(talk.pictures[2], oracle.picture(place.tree)) == []
    place.takeback("rollback", ref, "--yes")
    assert oracle.differences(talk.pictures[0], oracle.picture(place.tree)) == []
    assert [turn["id"] for turn in place.told("log")["turns"]] == [first["id"]]
    place.takeback("undo")
    assert oracle.differences(talk.pictures[2], oracle.picture(place.tree)) == []


def test_what_was_asked_for_since_can_stay(place: Place) -> None:
    """Instead of what is offered, only the turn that was left behind can be taken back."""
    with talking(place) as talk:
        place.model.plays("something else", talk.client.shell("echo else > else.txt"))
        talk.ask("make the second file")
        talk.go_back()
        ref = offered(talk.ask("something else"))
    place.takeback("undo", ref.rstrip("-"), "--yes")
    now = oracle.picture(place.tree)
    assert oracle.differences(talk.pictures[0], now, [b"else.txt"]) == []
    assert (place.tree / "else.txt").read_text() == "else\n"


def test_going_back_again_and_to_the_beginning(place: Place) -> None:
    """Each time it is told how far: the files of all that the conversation no longer holds."""
    with talking(place) as talk:
        talk.ask("make the second file")
        talk.go_back()
        first, second = (f"{turn['id'][:8]}-" for turn in place.turns())
        assert offered(talk.ask("make the third file")) == second
        talk.go_back((LEFT, "make the first file"))
        assert offered(talk.ask("make the fourth file")) == first
    assert asked_before(place, "make the fourth file") == ["make the fourth file"]
    went = [place.told("show", turn["id"])["turn"]["went_back"] for turn in place.turns()]
    ids = [turn["id"] for turn in place.turns()]
    assert went == [None, None, ids[1], ids[0]]
    place.takeback("rollback", first, "--yes")
    assert (place.tree / "a.txt").read_text().splitlines()[-1] == "seven"
    assert sorted(path.name for path in place.tree.glob("*.txt")) == ["a.txt", "b.txt"]


def test_a_copy_of_a_conversation_that_went_back(place: Place) -> None:
    """What `undo --resume` copies out of several files goes on in Codex as one."""
    with talking(place) as talk:
        talk.ask("make the second file")
        talk.go_back()
        talk.ask("make the third file")
    (copy,) = place.told("undo", "--resume")["conversations"]
    assert copy["problem"] is None
    talk.client.session = copy["id"]
    talk.client.prompt("make the fourth file")
    assert asked_before(place, "make the fourth file") == [
        "make the first file",
        "make the fourth file",
    ]
    heard = place.model.wait_for("make the fourth file")
    assert "CONTENT OF THE first" in heard.text
    assert "CONTENT OF THE second" not in heard.text
    assert any("The user took back" in text for text in heard.texts)


def test_interrupted_and_then_back(place: Place) -> None:
    """Esc in the middle of a shell, edits by hand, Esc Esc: these stay the user's."""
    with talking(place) as talk:
        rest = f"until [ -e {place.scratch}/go ]; do sleep 0.05; done"
        job = f"echo half > half.txt; rm b.txt; touch {place.scratch}/begun; {rest}"
        before = len(talk.screen.text())
        talk.screen.type(place.model.plays("do the job", talk.client.shell(job)))
        wait_until("the shell is in the middle", (place.scratch / "begun").exists)
        talk.screen.press(ESCAPE)
        talk.screen.shows(INTERRUPTED, before)
        (place.tree / "mine.txt").write_text("by hand\n")
        talk.go_back()
        ref = offered(talk.ask("make the third file"))
    assert [(turn["label"], turn["status"]) for turn in place.turns()] == [
        ("make the first file", "done"),
        ("do the job", "interrupted"),
        ("make the third file", "done"),
    ]
    assert place.turns()[1]["id"].startswith(ref.rstrip("-"))
    place.takeback("undo")
    place.takeback("undo")
    now = oracle.picture(place.tree)
    assert oracle.differences(talk.pictures[0], now, [b"mine.txt"]) == []
    assert (place.tree / "mine.txt").read_text() == "by hand\n"


def test_rewind_in_claude_code(place: Place) -> None:
    """`/rewind` of the conversation tells nobody; at the next prompt it is noticed and offered."""
    client = ClaudeCode(place)
    client.install()
    script(place, client)
    for name in ("first", "second"):
        client.prompt(f"make the {name} file")
    screen = client.sit_down(place.model.plays("say something"))
    try:
        wait_until("the third turn is over", lambda: len(done(place)) == 3)
        rewind(screen)
        before = len(screen.text())
        screen.type("make the fourth file")
        wait_until("the next turn is over", lambda: len(done(place)) == 4)
        screen.shows("restores them", before)
        ref = offered(screen.text()[before:])
    finally:
        screen.close()
    assert asked_before(place, "make the fourth file") == [
        "make the first file",
        "make the fourth file",
    ]
    first, second, _, last = place.turns()
    assert second["id"].startswith(ref.rstrip("-"))
    assert place.told("show", last["id"])["turn"]["went_back"] == second["id"]
    place.takeback("rollback", ref, "--yes")
    assert not (place.tree / "second.txt").exists()
    assert not (place.tree / "fourth.txt").exists()
    assert (place.tree / "a.txt").read_text().endswith("seven\nfirst\n")
    assert [turn["id"] for turn in place.told("log")["turns"]] == [first["id"]]


def rewind(screen: Screen) -> None:
    """Go back to before the prompt before the last one, in Claude Code's own dialog."""
    screen.play(
        (b"/rewind", "Restore the code and/or conversation to a previous point"),
        (ENTER, "Enter to continue"),
        (UP, ""),
        (UP, ""),
        (ENTER, "Never mind"),
        (ENTER, "Claude Code v"),
        (CLEAR, ""),
    )
