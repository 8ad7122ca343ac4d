"""`takeback statusline`: one line, whatever stands on stdin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from agents import Agent


def line(tree: Path, said: bytes, *words: str) -> str:
    """What is printed; it always ends well, and says nothing on stderr."""
    command = [sys.executable, "-I", "-m", "takeback", *words, "statusline"]
    done = subprocess.run(command, cwd=tree, input=said, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.fixture
def agents(tree: Path, home: Path) -> tuple[Agent, Agent]:
    """Two sessions: the first has two turns, the second one."""
    del home
    first, second = Agent(tree, session="S1"), Agent(tree, session="S2")
    for agent, name in ((first, "one"), (first, "two"), (second, "three")):
        agent.prompt(f"write {name}\nand more of it " + "x" * 100)
        agent.edit(f"{name}.txt", name)
        agent.stop()
    return first, second


def test_the_line_is_about_the_session(tree: Path, agents: tuple[Agent, Agent]) -> None:
    """Its turns that can be undone, and the newest; the folder comes from what the agent says."""
    assert agents
    said = {"session_id": "S1", "workspace": {"project_dir": str(tree)}}
    assert line(Path("/"), json.dumps(said).encode()) == 'tb  2 turns  undo: "write two"\n'
    with takeback.open(tree) as project:
        project.undo()
        project.undo()
    assert line(tree, json.dumps({"session_id": "S1"}).encode()) == (
        'tb  1 turn  undo: "write one"\n'
    )
    assert line(tree, b"") == 'tb  1 turn  undo: "write one"\n'


def test_a_turn_that_changed_nothing_is_not_what_undo_takes_back(
    tree: Path, agents: tuple[Agent, Agent]
) -> None:
    """The line names what a bare `undo` takes back."""
    agents[0].prompt("look around")
    agents[0].stop()
    assert line(tree, b"") == 'tb  3 turns  undo: "write three"\n'


@pytest.mark.parametrize(
    "said", [b"", b"{", b"[1]", b"\xff\0", b'{"cwd": 1}', b'{"cwd": "a\\u0000b"}', b"[" * 100_000]
)
def test_nothing_on_stdin_makes_it_fail(said: bytes, tree: Path, home: Path) -> None:
    """In a folder without a history it prints nothing."""
    assert home.is_dir()
    assert line(tree, said) == ""


def test_a_damaged_store_says_nothing(tree: Path, agents: tuple[Agent, Agent]) -> None:
    """It is no place to report that."""
    assert agents
    with takeback.open(tree) as project:
        ledger = os.fsdecode(project.workspace.ledger.path)
    Path(ledger).write_bytes(b"no ledger")
    assert line(tree, b"") == ""
