"""Forty hostile inputs for each tool: clear errors or plain answers, and nothing changes."""

import json
from pathlib import Path
from typing import Any

import pytest

import oracle
import takeback
from agents import Agent
from served import Served
from takeback.disk import operations
from takeback.mcp.arguments import COUNT, FLAG, TEXTS
from takeback.mcp.tools import ASKING, TOOLS

TEXTS_OF_ENEMIES: tuple[Any, ...] = (
    "", " ", "\0", "a\0b", "\x1b[2J\x1b]0;x\x07", "\r\n\r\n", "../../../etc/passwd", "/etc/passwd",
    "file:///etc/passwd", "~/.ssh/id_rsa", "--help", "-rf", "--yes", "--", "-", "@", "@~", "@~-1",
    "@~999999999999999999999", "kkkkkkkkkkkk", "zzzzzzzzzzzz-", "' OR 1=1 --", "%s%n%d",
    "{0.__class__}", "$(touch pwned)", "`touch pwned`", "; rm -rf .",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt", "\ud800", "💥" * 50,
    "a" * 100_000, "\\" * 399, '"}],"isError":false', "null", "1" * 400, "yesterday 99:99", "١٢٣",
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, 1.5, float("inf"), [], {}, [[]], [None], ["\0"], [0] * 1000,
    {"path": "a"}, ["../.."], ["a"] * 101, b"bytes".hex(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def served(tree: Path, home: Path) -> Served:
    """A server of a project with a turn."""
    del home
    agent = Agent(tree)
    agent.prompt("write one")
    agent.edit("one.txt", "one\n")
    agent.stop()
    return Served(tree, "2026-07-28")


def inputs(name: str) -> list[dict[str, Any]]:
    """What nobody would give a tool, for each of its arguments, and names that it does not have."""
    parameters = TOOLS[name].parameters
    right: dict[str, Any] = {COUNT: 1, FLAG: True, TEXTS: ["one.txt"]}
    usual = {each.name: right.get(each.kind, "x") for each in parameters if each.required}
    found: list[dict[str, Any]] = [{**usual, key: 1} for key in ("x", "self", "\0", "a" * 10_000)]
    for parameter in parameters:
        values = TEXTS_OF_ENEMIES + OTHERS
        if parameter.kind == TEXTS:
            values += tuple([value] for value in TEXTS_OF_ENEMIES)
        found += [{**usual, parameter.name: value} for value in values]
    found += [{f"x{number}": value} for number, value in enumerate(TEXTS_OF_ENEMIES)]
    return found


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_hostile_inputs(name: str, served: Served, tree: Path) -> None:
    """Through the door, which is all that both servers hand calls to."""
    before = oracle.picture(tree)
    given = inputs(name)
    assert len(given) >= 40
    door = served.door()
    for each in given:
        answer = door.call(name, each) if name != ASKING else door.unasked(each)
        text = json.dumps(answer.fields, ensure_ascii=False)
        text.encode()
        assert len(text) < 45_000
        assert "Traceback" not in text
        assert answer.fields.get("error") != "InternalError", (each, text)
        if answer.is_error:
            assert len(str(answer.fields["message"])) < 800, each
    assert oracle.picture(tree) == before
    with takeback.open(tree) as project:
        assert [turn.undone for turn in project.log(all=True).turns] == [""]


@pytest.mark.parametrize("given", [{"limit": "ten"}, {"paths": "a"}, {"x": 1}, {"session": "\0"}])
def test_errors_are_sentences_on_the_wire(given: dict[str, Any], served: Served) -> None:
    """Not those of the SDK or of pydantic, with types and addresses of web pages."""
    fields, is_error = served.raw("log", given)
    assert is_error
    assert set(fields) == {"error", "message", "hint"}
    assert "pydantic" not in json.dumps(fields)


def test_a_tool_that_is_not_there(served: Served) -> None:
    """Also one with a name of a hundred thousand letters."""
    for name in ("rm", "Apply", "apply ", "x" * 100_000):
        assert "there is no tool" in served.error(name)


def test_a_bug_is_said_in_a_sentence(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a traceback, and without what was in the call."""
    monkeypatch.setattr("takeback.project.Project.log", lambda *_, **__: 1 // 0)
    fields, is_error = served.raw("log", {"grep": "secret"})
    assert is_error
    assert "bug in Takeback; your files are safe (ZeroDivisionError)" in fields["message"]
    assert "secret" not in json.dumps(fields)
