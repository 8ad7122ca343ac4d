"""Gemini CLI: what its settings get, what it is answered, and how its conversations are read."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from takeback.agents.agent import (
    ABOVE,
    ALLOW,
    ASK,
    BEGINNING,
    DENY,
    PASSED,
    Answer,
    HookEvent,
)
from takeback.agents.dialects import gemini_cli

AGENT = gemini_cli.AGENT
CONVERSATIONS = gemini_cli.GeminiConversations()
WORDS = ("one", "two", "three")


def event(name: str, **more: object) -> HookEvent:
    """One of its events."""
    said = {"hook_event_name": name, "timestamp": "2026-11-15T18:19:30Z", "session_id": "s"}
    return AGENT.read({**said, **more})


def test_time_limits_are_in_milliseconds() -> None:
    """Each event has one hook, the prompt one that reports if Takeback is gone."""
    made = AGENT.groups("usual", "reporting")
    hooks = {name: group["hooks"][0] for name, group in made.items()}
    assert set(hooks) == set(gemini_cli.KINDS)
    assert all(hook["timeout"] >= 10_000 for hook in hooks.values())
    told = {name for name, hook in hooks.items() if hook["command"] == "reporting"}
    assert told == {"BeforeAgent"}


@pytest.mark.parametrize(
    ("settings", "is_off"),
    [
        ({"hooksConfig": {"enabled": False}}, True),
        ({"hooksConfig": {"enabled": True}}, False),
        ({"hooksConfig": []}, False),
        ({}, False),
        ([], False),
    ],
)
def test_hooks_that_are_switched_off_are_reported(settings: object, *, is_off: bool) -> None:
    """Whatever the settings hold."""
    assert bool(AGENT.settings_problems(json.dumps(settings))) == is_off


def test_verdicts_and_notes_as_it_reads_them() -> None:
    """A tool or a prompt is denied with a reason; it cannot ask; to allow is to say nothing."""
    denied = {"decision": "deny", "reason": "no"}
    for verdict in (DENY, ASK):
        for name in ("BeforeTool", "BeforeAgent"):
            assert AGENT.answer(event(name), Answer(verdict, to_agent="no")) == denied
        assert AGENT.answer(event("AfterAgent"), Answer(verdict, to_agent="no")) == {}
    assert AGENT.answer(event("BeforeTool"), Answer(ALLOW)) == {}
    said = AGENT.answer(event("AfterTool"), Answer(to_agent="read again", to_user="hello"))
    assert said == {
        "systemMessage": "hello",
        "hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "read again"},
    }


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("go", "go"),
        ("<hook_context>a</hook_context>\n\ngo", "go"),
        ("<hook_context>a</hook_context><hook_context>b</hook_context> go", "go"),
        ("<hook_context> is a tag", "<hook_context> is a tag"),
        ("what is <hook_context>a</hook_context>?", "what is <hook_context>a</hook_context>?"),
    ],
)
def test_a_prompt_is_what_the_user_typed(sent: str, typed: str) -> None:
    """What hooks put before it is not part of it."""
    assert event("BeforeAgent", prompt=sent).prompt == typed


# -- conversations -----------------------------------------------------------------------------

Record = dict[str, object]
NOTED = "<hook_context>A note.</hook_context>"


def user(id: str, *texts: str) -> Record:
    """A prompt, as it is written down."""
    return {"id": id, "type": "user", "content": [{"text": text} for text in texts]}


def result(id: str) -> Record:
    """What a tool returned."""
    return {"id": id, "type": "user", "content": [{"functionResponse": {"name": "x"}}]}


def cancelled(at: str) -> Record:
    """Esc."""
    return {"id": "i", "timestamp": at, "type": "info", "content": "Request cancelled."}


def written(folder: Path, *records: Record) -> str:
    """The file of a conversation."""
    file = folder / "session.jsonl"
    lines = [{"sessionId": "s", "kind": "main"}, *records]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"torn')
    return str(file)


def prompt_event(path: str, prompt: str) -> HookEvent:
    """The event of a prompt, which comes before its record."""
    return event("BeforeAgent", transcript_path=path, prompt=prompt)


def test_a_prompt_has_the_name_of_the_record_to_come(tmp_path: Path) -> None:
    """Also with a note in it, and with a tool's result or a second prompt behind it."""
    first = prompt_event(written(tmp_path), "one").turn
    path = written(tmp_path, user("1", "one", NOTED), result("2"))
    second = prompt_event(path, "two").turn
    assert list(CONVERSATIONS.before(path, second)) == [(ABOVE, first), (BEGINNING, "")]
    assert prompt_event(path, "two").turn == second
    assert prompt_event(path, "other").turn != second


def test_a_file_that_cannot_be_read_gives_no_name(tmp_path: Path) -> None:
    """Else all prompts would be the first one."""
    for path in ("", str(tmp_path / "none"), "a\0b"):
        assert prompt_event(path, "one").turn == ""
        assert CONVERSATIONS.interrupted_at(path, "") is None


def test_prompts_that_were_taken_back_stand_beside_the_line(tmp_path: Path) -> None:
    """All from a message on; all of them if that is not there; not what a summary stands for."""
    records = [user("1", "one"), user("2", "two"), user("3", "three")]
    names = [prompt_event(written(tmp_path, *records[:n]), t).turn for n, t in enumerate(WORDS)]

    def before(*more: Record) -> list[tuple[str, str]]:
        path = written(tmp_path, *records, *more)
        return list(CONVERSATIONS.before(path, prompt_event(path, "four").turn))

    assert before({"$rewindTo": "2"}) == [
        (PASSED, names[2]),
        (PASSED, names[1]),
        (ABOVE, names[0]),
        (BEGINNING, ""),
    ]
    assert [kind for kind, _ in before({"$rewindTo": "unknown"})] == [PASSED] * 3 + [BEGINNING]
    assert before({"$set": {"messages": [user("9", "in short"), records[2]]}}) == [
        (ABOVE, names[2])
    ]
    assert before({"$set": {"lastUpdated": "now"}})[0] == (ABOVE, names[2])
    again: list[Record] = [
        {"$set": {"messages": []}},
        {"$set": {"messages": records}},
        {"$rewindTo": "3"},
    ]
    assert before(*again)[:2] == [(PASSED, names[2]), (ABOVE, names[1])]


def test_when_the_newest_turn_was_interrupted(tmp_path: Path) -> None:
    """Until the next prompt is written down."""
    at = "2026-11-18T07:19:05.193Z"
    path = written(tmp_path, user("1", "one"), cancelled(at), result("2"))
    assert CONVERSATIONS.interrupted_at(path, "") == datetime.fromisoformat(at).timestamp()
    path = written(tmp_path, user("1", "one"), cancelled(at), user("2", "two"))
    assert CONVERSATIONS.interrupted_at(path, "") is None


def test_a_command_that_was_interrupted(tmp_path: Path) -> None:
    """It reports its end, and says so."""
    path = written(tmp_path)
    ended = {"llmContent": "", "returnDisplay": "Command cancelled by user."}
    assert event("AfterTool", transcript_path=path, tool_response=ended).cancelled
    assert not event("AfterTool", tool_response={"returnDisplay": ""}).cancelled
