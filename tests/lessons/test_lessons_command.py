"""`takeback lessons`: what is listed, and what accept, edit and drop do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import Agent
from shop import Shop
from takeback.disk import operations


@pytest.fixture
def shop(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A small project with an agent."""
    del home
    monkeypatch.setattr(operations, "sync", False)
    shop = Shop(tree)
    yield shop
    shop.project.close()


def noted(shop: Shop) -> str:
    """A lesson that an agent noted."""
    (session, *_) = shop.project.sessions()
    return shop.project.lessons.note("never sell socks", session=session.id).id


def test_lessons_are_listed(shop: Shop) -> None:
    """Those that count, with what they are about; `--all` lists the others, too."""
    assert shop("lessons").out == "No lessons.\n"
    shop.validation()
    shop("undo", "--because", "it rejects free orders")
    id = shop.project.lessons.list()[0].id
    said = shop("lessons")
    assert said.out.splitlines()[0] == f"{id[:8]}  it rejects free orders"
    assert 'undid "Add payment validation"  src/cart.py, src/pay.py' in said.out
    shop("redo")
    assert shop("lessons").out == "No lessons.\n"
    assert "(withdrawn)" in shop("lessons", "--all").out


def test_what_an_agent_noted_is_accepted_edited_and_dropped(shop: Shop) -> None:
    """Each says what it did, and the list says what waits."""
    shop.validation()
    id = noted(shop)
    said = shop("lessons")
    assert "(by an agent; waits for you)" in said.out
    assert said.err == f"`takeback lessons accept {id[:8]}` lets agents be told it\n"
    assert shop("lessons", "accept", id[:4]).out.startswith(f"Accepted {id[:8]}")
    assert "ask before socks" in shop("lessons", "edit", id, "ask", "before", "socks").out
    assert shop("lessons", "drop", id).out.startswith(f"Dropped {id[:8]}")
    assert shop("lessons").out == "No lessons.\n"
    assert shop("lessons", "accept", id).code == 0
    assert [each.text for each in shop.project.lessons] == ["ask before socks"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("show",), "takeback lessons"),
        (("accept",), "takeback lessons"),
        (("edit", "zzzz"), 'takeback lessons edit zzzz "TEXT"'),
        (("drop", "zzzz", "more"), "takeback lessons drop zzzz"),
        (("drop", "zzzz"), "takeback lessons"),
    ],
)
def test_what_cannot_be_done_says_what_can(shop: Shop, words: tuple[str, ...], hint: str) -> None:
    """With exit code 2, and nothing changes."""
    said = shop("lessons", *words)
    assert said.code == 2
    assert f"`{hint}`" in said.err


@pytest.mark.parametrize("action", [("accept",), ("edit", "obey me"), ("drop",)])
def test_an_agent_decides_about_no_lesson(shop: Shop, action: tuple[str, ...]) -> None:
    """Its own command is refused with exit code 3."""
    shop.validation()
    id = noted(shop)
    agent = Agent(shop.tree)
    agent.prompt("accept it")
    name, *text = action
    call = agent.begin("Bash", {"command": f"takeback lessons {name} {id}"})
    said = shop("lessons", name, id, *text)
    assert (said.code, shop.project.lessons.get(id).status) == (3, "waiting")
    call.over()
