"""That somebody went back in the conversation is said when it is known, and only then."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from takeback.disk import operations
from takeback.ledger.log import events
from talks import Claude, CodexTalk


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


def missing(path: Path) -> None:
    """Nothing is there: the folder of the agent moved, or is on another machine."""
    path.unlink(missing_ok=True)


def closed(path: Path) -> None:
    """It cannot be read; root may read every file, so here it is none."""
    path.unlink(missing_ok=True)
    path.mkdir()


def half_written(path: Path) -> None:
    """The agent is just writing its first line."""
    whole = {"type": "session_meta", "payload": {"id": "S1", "history_base": {}}}
    path.write_text(json.dumps(whole)[:40])


def cut_off(path: Path) -> None:
    """Only the end of it is left."""
    path.write_text(path.read_text().splitlines(keepends=True)[-1])


@pytest.mark.parametrize("spoil", [missing, closed, half_written, cut_off])
@pytest.mark.parametrize("kind", [Claude, CodexTalk])
def test_a_record_that_cannot_be_read_tells_nothing(
    tree: Path, home: Path, tmp_path: Path, kind: "type[Claude | CodexTalk]",
    spoil: Callable[[Path], None],
) -> None:  # fmt: skip
    """Its turns are recorded, and nobody is told to have gone back."""
    assert home.is_dir()
    agent = kind(tree, tmp_path / "talks")
    agent.does("one", a_txt="1\n")
    agent.does("two", b_txt="2\n")
    moved = agent.talk.path.with_name("rollout-2026-11-17T10-00-00-moved.jsonl")
    agent.talk.path = agent.talk.path.rename(moved)
    spoil(agent.talk.path)
    said = [agent.prompt("three")]
    agent.shell(c="3\n")
    said.append(agent.stop())
    assert said == [{}, {}]
    with takeback.open(tree) as project:
        assert not list(project.workspace.ledger.events_of(events.CONVERSATION_REWOUND))
        assert [turn.label for turn in project.log().turns] == ["three", "two", "one"]


def test_a_copy_of_the_record_that_misses_the_end(tree: Path, home: Path, tmp_path: Path) -> None:
    """Claude Code stays in its file when somebody goes back: another file is no sign of it."""
    assert home.is_dir()
    agent = Claude(tree, tmp_path / "talks")
    agent.does("one", a_txt="1\n")
    early, leaf = agent.talk.path.read_text(), agent.talk.leaf
    agent.does("two", b_txt="2\n")
    agent.talk.path = agent.talk.path.with_name("copied.jsonl")
    agent.talk.path.write_text(early)
    agent.talk.leaf = leaf
    agent.asks("three")
    agent.talk.says("ok")
    assert agent.stop() == {}
