"""Droid: turns without an event for the prompt, and what it is answered."""

import json
from pathlib import Path

from recorded import Played, client
from takeback.agents.dialects.droid import AGENT

DROID = "droid-0.225.2"


def message(id: str, *texts: str, **more: object) -> str:
    """A line of a conversation: what the user typed, or a reminder for the model."""
    content = [{"type": "text", "text": text} for text in texts]
    said = {"role": "user", "content": content, **more}
    return json.dumps({"type": "message", "id": id, "message": said}, separators=(",", ":"))


def result(id: str) -> str:
    """A line with the result of a tool."""
    content = [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]
    said = {"role": "user", "content": content}
    return json.dumps({"type": "message", "id": id, "message": said}, separators=(",", ":"))


HOOK = message("h", hookEventName="PreToolUse", hookMatcher="Create")


class Conversation:
    """A conversation file that grows."""

    def __init__(self, played: Played) -> None:
        self._played = played
        folder = played.tree.parent / ".factory/sessions"
        folder.mkdir(parents=True)
        self.path = folder / "s.jsonl"

    def grow(self, *lines: str) -> None:
        """Add lines."""
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def tell(self, name: str, **more: object) -> dict[str, object]:
        """One recorded event."""
        return self._played.tell(name, transcript_path=str(self.path), **more)

    def create(self, name: str) -> None:
        """A tool that makes a file."""
        path = self._played.tree / name
        given = {"tool_input": {"file_path": str(path), "content": "new\n"}}
        self.tell("PreToolUse.Create", **given)
        path.write_text("new\n")
        self.tell("PostToolUse.Create", **given)


@client(DROID)
def test_the_first_tool_begins_a_turn_named_by_its_prompt(played: Played) -> None:
    """Two prompts in one session are two turns; edits by hand between them stay."""
    said = Conversation(played)
    said.tell("SessionStart.startup")
    said.grow(message("r", "<system-reminder>x"), message("p1", "the first"), result("x"), HOOK)
    said.create("new.txt")
    said.tell("Stop")
    (played.tree / "a.txt").write_text("by hand\n")
    said.grow(message("p2", "the second"), HOOK)
    said.create("more.txt")
    said.tell("Stop")
    first, second = played.turns()
    assert [(turn.label, turn.status) for turn in (first, second)] == [
        ("the first", "done"),
        ("the second", "done"),
    ]
    assert [change.path for change in first.changes] == ["new.txt"]
    assert [change.path for change in second.changes] == ["more.txt"]


@client(DROID)
def test_an_interrupted_turn_ends_with_the_next_prompt(played: Played) -> None:
    """No event tells of it; the conversation has another prompt then."""
    said = Conversation(played)
    said.grow(message("p1", "the first"))
    said.create("new.txt")
    said.grow(message("p2", "the second"))
    said.create("more.txt")
    assert [turn.status for turn in played.turns()] == ["interrupted", "running"]


@client(DROID)
def test_a_conversation_that_cannot_be_read_still_has_turns(played: Played) -> None:
    """One until the stop, then the next."""
    said = Conversation(played)
    for name in ("new.txt", "more.txt"):
        said.create(name)
        said.create("a.txt")
        said.tell("Stop")
    first, second = played.turns()
    assert (first.agent, first.status, first.label) == (
        "droid",
        "done",
        "(the prompt was not seen)",
    )
    assert [change.path for change in second.changes] == ["more.txt"]


@client(DROID)
def test_a_failed_command_has_no_end_and_comes_back(played: Played) -> None:
    """It reports nothing after the beginning; what the user does after the stop stays."""
    said = Conversation(played)
    said.grow(message("p1", "the first"))
    said.tell("PreToolUse.Execute")
    (played.tree / "half.txt").write_text("half\n")
    said.tell("Stop")
    (played.tree / "a.txt").write_text("by hand\n")
    played.project.undo()
    assert sorted(path.name for path in played.tree.iterdir()) == ["a.txt"]
    assert (played.tree / "a.txt").read_text() == "by hand\n"


@client(DROID)
def test_a_note_comes_at_the_start_of_the_session(played: Played) -> None:
    """`droid exec` starts one for each prompt."""
    said = Conversation(played)
    said.grow(message("p1", "the first"))
    said.create("new.txt")
    said.tell("Stop")
    played.project.undo()
    told = said.tell("SessionStart.startup")
    own = told["hookSpecificOutput"]
    assert isinstance(own, dict)
    assert '"new.txt" (removed)' in own["additionalContext"]


def test_a_prompt_is_found_whatever_the_file_holds(tmp_path: Path) -> None:
    """Torn lines and lines of other kinds are passed over."""
    file = tmp_path / "s.jsonl"
    assert AGENT.newest_prompt(str(file)) == ("", "")
    torn = message("p", "torn")[:-5]
    odd = ['{"message":{"role":"user"}}', '{"message":{"role":"user","content":[1]}}', "[]"]
    file.write_text("\n".join([message("p1", "one", "two"), *odd, torn]))
    assert AGENT.newest_prompt(str(file)) == ("p1", "one\ntwo")
