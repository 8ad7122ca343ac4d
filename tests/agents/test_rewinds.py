"""Going back inside an agent is noticed, recorded once, and the files are offered; never taken."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.disk import operations
from takeback.ledger.log import events
from takeback.upkeep.settings import Settings
from talks import Claude, CodexTalk


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def claude(tree: Path, home: Path, tmp_path: Path) -> Claude:
    """Claude Code in a project."""
    del home
    return Claude(tree, tmp_path / "talks")


@pytest.fixture
def codex(tree: Path, home: Path, tmp_path: Path) -> CodexTalk:
    """Codex in a project."""
    del home
    return CodexTalk(tree, tmp_path / "talks")


def rewinds(tree: Path) -> list[dict[str, Any]]:
    """What the log knows of going back."""
    with takeback.open(tree) as project:
        found = project.workspace.ledger.events_of(events.CONVERSATION_REWOUND)
        return [dict(event.payload or {}) for event in found]


def labelled(tree: Path) -> dict[str, str]:
    """The ids of all turns, by what was asked for."""
    with takeback.open(tree) as project:
        return {turn.label: turn.id for turn in project.log(99, all=True).turns}


def test_going_on_is_not_going_back(claude: Claude, tree: Path) -> None:
    """As long as each prompt follows on the one before, nothing is said."""
    said = []
    for number in range(4):
        said.append(claude.asks(f"number {number}"))
        claude.edit("a.txt", f"{number}\n")
        claude.talk.call(claude.prompt_id)
        claude.talk.says("done")
        said.append(claude.stop())
    assert said == [{}] * 8
    assert rewinds(tree) == []


def test_listeners_hear_of_it(claude: Claude, tree: Path, tmp_path: Path) -> None:
    """A program of the user's gets one line; the agent does not wait for it."""
    heard, program = tmp_path / "heard", tmp_path / "listener"
    program.write_text(f"#!/bin/sh\nsleep 0.2\ncat > {heard}.part\nmv {heard}.part {heard}\n")
    program.chmod(0o700)
    with takeback.open(tree) as project:
        settings = Settings(project.workspace.home.path, project.id)
        settings.set("restore.listeners", json.dumps([[str(program)]]))
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = end
    claude.asks("instead of two")
    claude.begin("Bash", {"command": "ls"})
    assert not heard.exists()
    for _ in range(500):
        if heard.exists():
            break
        time.sleep(0.02)
    said, turns = json.loads(heard.read_text()), labelled(tree)
    assert (said["event"], said["agent"], said["moves_files"]) == ("rewind", "claude-code", True)
    assert (said["to"], said["turn"]) == (turns["two"], turns["instead of two"])


def test_going_back_is_told_once_at_the_first_tool(claude: Claude, tree: Path) -> None:
    """The new prompt is in the file when its first tool is called: that is when it is seen."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.does("three", c_txt="3\n")
    claude.talk.leaf = end
    assert claude.asks("instead of two") == {}
    first = claude.begin("Bash", {"command": "ls"})
    again = first.tell("PreToolUse")
    first.over()
    later = [claude.begin("Bash", {"command": "ls"}).over(), claude.stop()]
    ids = labelled(tree)
    assert rewinds(tree) == [
        {
            "session": rewinds(tree)[0]["session"],
            "turn": ids["instead of two"],
            "to": ids["two"],
            "transcript": str(claude.talk.path),
        }
    ]
    assert again == {}
    assert later == [{}, {}]


@pytest.mark.parametrize(("steps", "said_at"), [(1, "tool"), (2, "tool"), (3, "end"), (9, "end")])
def test_a_prompt_that_is_written_late(
    claude: Claude, tree: Path, steps: int, said_at: str
) -> None:
    """If the file is written some steps later, another of the first ones finds it, or the end."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = end
    claude.prompt("instead of two")
    for number in range(steps):
        claude.edit("c.txt", f"{number}\n")
    assert rewinds(tree) == []
    claude.talk.prompt(claude.prompt_id, "instead of two")
    for _ in range(steps):
        claude.talk.call(claude.prompt_id)
    claude.edit("c.txt", "done\n")
    assert len(rewinds(tree)) == (said_at == "tool")
    claude.talk.call(claude.prompt_id)
    claude.talk.says("ok")
    assert bool(claude.stop()) == (said_at == "end")
    assert [each["to"] for each in rewinds(tree)] == [labelled(tree)["two"]]


def test_what_is_said(claude: Claude, tree: Path) -> None:
    """The message names the prompt and the command, and the command does what it says."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two \x1b[31m" + "x" * 100, a_txt="2\n", b_txt="2\n")
    claude.talk.leaf = end
    claude.asks("instead of two")
    claude.talk.says("ok")
    said = claude.stop()["systemMessage"]
    assert said.startswith('Takeback: you rewound the conversation to before "two \\x1b[31mxxx')
    assert len(said) < 250
    assert (tree / "b.txt").exists()
    ref = said.partition("takeback rollback ")[2].partition("`")[0]
    with takeback.open(tree) as project:
        project.rollback(ref, yes=True)
    assert (tree / "a.txt").read_text() == "1\n"
    assert not (tree / "b.txt").exists()


def test_a_prompt_that_is_written_early(claude: Claude, tree: Path) -> None:
    """If the new prompt is in the file before its hook, the hook of the prompt tells it."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = end
    claude.talk.prompt(f"{claude.session}-P3", "instead")
    assert "systemMessage" in claude.prompt("instead")
    assert len(rewinds(tree)) == 1


def test_going_back_to_the_beginning(claude: Claude, tree: Path) -> None:
    """Before the first prompt nothing stands; the first turn is what one went back to."""
    claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = None
    claude.asks("all anew")
    claude.talk.says("ok")
    claude.stop()
    assert [each["to"] for each in rewinds(tree)] == [labelled(tree)["one"]]


def test_files_that_are_back_already_are_not_offered(claude: Claude, tree: Path) -> None:
    """Who took back the files first, or whose turns changed none, reads nothing."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    with takeback.open(tree) as project:
        project.undo()
    claude.talk.leaf = end
    claude.asks("instead of two")
    claude.talk.says("ok")
    assert claude.stop() == {}
    assert len(rewinds(tree)) == 1


def test_a_prompt_that_never_came_into_the_conversation(claude: Claude, tree: Path) -> None:
    """What waited, or was taken back before it was sent, does not look like going back."""
    claude.does("one", a_txt="1\n")
    claude.prompt("waits, and comes in otherwise")
    (tree / "b.txt").write_text("mine\n")
    claude.asks("two")
    claude.talk.says("ok")
    assert claude.stop() == {}
    assert rewinds(tree) == []


def test_a_task_that_is_done_is_on_the_line(claude: Claude, tree: Path) -> None:
    """A prompt that no human wrote belongs to the turn before it."""
    claude.does("one", a_txt="1\n")
    claude.asks("<task-notification><task-id>t</task-id></task-notification>")
    claude.talk.says("ok")
    claude.stop()
    claude.asks("two")
    claude.talk.says("ok")
    assert claude.stop() == {}
    assert rewinds(tree) == []


def test_a_sub_agent_tells_nothing(claude: Claude, tree: Path) -> None:
    """Its events carry the prompt of the whole, and are passed over."""
    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = end
    claude.asks("instead")
    claude.begin("Bash", {"command": "ls"}, agent_id="A1")
    assert rewinds(tree) == []


def test_a_new_file_of_codex(codex: CodexTalk, tree: Path) -> None:
    """Codex goes on in a new file, which tells up to where the old one counts."""
    codex.does("one", a_txt="1\n")
    codex.does("two", b_txt="2\n")
    codex.talk = codex.talk.gone_back("S1-P2", "S2")
    codex.tell("SessionEnd", reason="other")
    codex.tell("SessionStart", source="resume")
    said = codex.asks("instead of two")
    assert '"two"' in said["systemMessage"]
    assert [each["to"] for each in rewinds(tree)] == [labelled(tree)["two"]]
    assert codex.stop() == {}


def test_a_new_file_of_codex_that_tells_nothing(codex: CodexTalk, tree: Path) -> None:
    """If the new file names another that is gone, nobody can tell how far: so it says that."""
    codex.does("one", a_txt="1\n")
    codex.does("two", a_txt="2\n")
    old = codex.talk.path
    codex.talk = codex.talk.gone_back("S1-P2", "NEW")
    old.unlink()
    assert codex.prompt("instead") == {}
    assert "takeback log" in codex.stop()["systemMessage"]
    assert [each["to"] for each in rewinds(tree)] == [""]


def test_a_file_of_codex_that_moved(codex: CodexTalk, tree: Path) -> None:
    """A new name alone is not going back."""
    codex.does("one", a_txt="1\n")
    moved = codex.talk.path.with_name("rollout-moved-S1.jsonl")
    codex.talk.path = codex.talk.path.rename(moved)
    assert codex.asks("two") == {}
    assert codex.stop() == {}
    assert rewinds(tree) == []


def test_the_log_shows_it(claude: Claude, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`log` and `show` say that somebody went back, and to where."""
    from takeback.cli.app import main

    end = claude.does("one", a_txt="1\n")
    claude.does("two", b_txt="2\n")
    claude.talk.leaf = end
    claude.does("instead", c_txt="3\n")
    two = labelled(tree)["two"]
    assert main(["-C", str(tree), "log"]) == 0
    assert f"after a rewind to before {two[:6]}" in capsys.readouterr().out
    assert main(["-C", str(tree), "show", "instead"]) == 0
    assert f"after a rewind to before turn {two[:8]}" in capsys.readouterr().out


def test_a_broken_record_costs_no_coverage(claude: Claude, tree: Path) -> None:
    """Whatever is in the file, the turn is recorded and nothing is said."""
    claude.does("one", a_txt="1\n")
    claude.talk.path.write_bytes(b'{"promptId":"S1-P2"}\n\xff\n{"uuid":1,"promptId":"S1-P2"}\n[')
    claude.prompt("two")
    claude.edit("b.txt", "2\n")
    assert claude.stop() == {}
    assert "two" in labelled(tree)
    assert heard({"hook_event_name": "Stop", "session_id": "S1"}) == {}
