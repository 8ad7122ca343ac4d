"""A later turn that brings back what was taken back: seen, told to the agent and to the user."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import Agent
from takeback.disk import operations
from takeback.lessons import likeness
from takeback.lessons.relapses import asks_again

BEFORE = "import db\n\n\ndef price(sku):\n    return db.fetch(sku).price\n"
CACHED = """import db

known = {}


def price(sku):
    if sku not in known:
        known[sku] = db.fetch(sku).price
    return known[sku]
"""
OTHER = """import functools

import db


@functools.lru_cache
def price(sku):
    return db.fetch(sku).price
"""


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def agent(tree: Path, home: Path) -> Agent:
    """An agent whose cache was taken back."""
    del home
    (tree / "pay.py").write_text(BEFORE)
    agent = Agent(tree)
    agent.prompt("Cache the prices")
    agent.edit("pay.py", CACHED)
    agent.stop()
    with takeback.open(tree) as project:
        project.undo(because="stale prices")
    return agent


def edit(agent: Agent, name: str, content: str) -> str:
    """An edit by the agent; what it reads with the result."""
    call = agent.begin("Write", {"file_path": str(agent.tree / name), "content": content})
    if call.refused:
        return edit(agent, name, content)
    (agent.tree / name).write_text(content)
    answer = call.over()
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def relapses(tree: Path) -> list[takeback.Relapse]:
    """All that are known."""
    with takeback.open(tree) as project:
        turns = [turn.id for turn in project.log(all=True).turns]
        return list(project.lessons.relapses(turns))


def test_a_relapse_is_told_once_to_each(agent: Agent, tree: Path) -> None:
    """To the agent with the result of its edit; to the user at the end, with the way out."""
    agent.prompt("Make price faster")
    said = edit(agent, "pay.py", CACHED.replace("known", "store"))
    assert '4 of 4 lines of "Cache the prices" that were taken back in "pay.py"' in said
    assert 'Reason given: "stale prices"' in said
    assert edit(agent, "notes.txt", "faster\n") == ""
    answer = agent.stop()
    (found,) = relapses(tree)
    with takeback.open(tree) as project:
        assert project.turn(found.turn).relapses == (found,)
    assert f"`takeback undo {found.turn[:8]}` takes the turn back" in answer["systemMessage"]
    assert (found.paths, found.because) == (("pay.py",), "stale prices")
    assert agent.stop() == {}
    assert agent.prompt("go on") == {}
    with takeback.open(tree) as project:
        project.rebuild()
        assert project.verify().damage == ()
    assert relapses(tree) == [found]


def test_another_way_is_none(agent: Agent, tree: Path) -> None:
    """Neither is an edit elsewhere."""
    agent.prompt("Make price faster")
    assert edit(agent, "pay.py", OTHER) == ""
    assert edit(agent, "other.py", "import db\n\nprint(db.fetch(1).price)\n") == ""
    assert "systemMessage" not in agent.stop()
    assert relapses(tree) == []


@pytest.mark.parametrize(
    "prompt", ["Cache the prices", "please cache the prices again", "bring that back", "redo it"]
)
def test_what_the_user_asks_for_again_is_none(agent: Agent, tree: Path, prompt: str) -> None:
    """The same prompt, nearly the same one, or one that says so."""
    agent.prompt(prompt)
    assert edit(agent, "pay.py", CACHED) == ""
    agent.stop()
    assert relapses(tree) == []


def test_a_redo_is_none(agent: Agent, tree: Path) -> None:
    """And neither is what later turns do with the lines that it put back."""
    with takeback.open(tree) as project:
        project.redo()
    agent.prompt("Tidy up")
    assert "brought back" not in edit(agent, "pay.py", f"# prices\n{CACHED}")
    agent.stop()
    assert relapses(tree) == []


def test_what_the_user_brought_back_by_hand_is_none(agent: Agent, tree: Path) -> None:
    """A turn that only moves it, also to another file, brings nothing back."""
    (tree / "pay.py").write_text(CACHED)
    agent.prompt("Move price")
    edit(agent, "pay.py", "")
    assert "brought back" not in edit(agent, "prices.py", CACHED)
    agent.stop()
    assert relapses(tree) == []


def test_what_the_turn_removed_again_is_none(agent: Agent, tree: Path) -> None:
    """The agent heard it in time: the user is not bothered."""
    agent.prompt("Make price faster")
    assert "brought back" in edit(agent, "pay.py", CACHED)
    edit(agent, "pay.py", OTHER)
    assert agent.stop() == {}
    assert relapses(tree) == []


def test_by_a_shell_and_in_another_file(agent: Agent, tree: Path) -> None:
    """Whoever writes it, and wherever."""
    agent.prompt("Make price faster")
    call = agent.begin("Bash", {"command": "python make.py"})
    if call.refused:
        call = agent.begin("Bash", {"command": "python make.py"})
    (tree / "fast.py").write_text(CACHED)
    call.failed()
    answer = agent.stop()
    assert answer["decision"] == "block"
    assert "you brought back" in answer["reason"]
    answer = agent.stop(stop_hook_active=True)
    assert "decision" not in answer
    assert "fast.py" in str(answer["systemMessage"])
    assert agent.stop() == {}


def test_an_agent_that_mends_it_after_its_stop(agent: Agent, tree: Path) -> None:
    """It was told when it wanted to stop: then the user is not bothered."""
    agent.prompt("Make price faster")
    call = agent.begin("Bash", {"command": "python make.py"})
    if call.refused:
        call = agent.begin("Bash", {"command": "python make.py"})
    (tree / "fast.py").write_text(CACHED)
    call.failed()
    assert agent.stop()["decision"] == "block"
    assert edit(agent, "fast.py", OTHER) == ""
    assert agent.stop() == {}
    assert relapses(tree) == []


def test_after_a_rollback_and_in_the_running_turn(agent: Agent, tree: Path) -> None:
    """Taken back in the middle of a turn, and written again by the same turn."""
    agent.prompt("Make price faster")
    edit(agent, "pay.py", OTHER)
    lines = "".join(f"rate_{n} = fetch_rate('{n}', region=eu)\n" for n in range(5))
    edit(agent, "rates.py", lines)
    with takeback.open(tree) as project:
        project.rollback(project.log().turns[0].before, yes=True, because="no rates")
    assert "no rates" in edit(agent, "rates.py", lines)
    assert [each.because for each in relapses(tree)] == ["no rates"]


def test_python_sees_it_at_the_end_of_a_turn(agent: Agent, tree: Path) -> None:
    """A harness has the same values as hooks."""
    del agent
    with takeback.open(tree) as project, project.session("test") as session:
        with session.turn("Make it fast") as turn:
            (tree / "pay.py").write_text(CACHED)
        (found,) = project.lessons.relapses([turn.id])
        assert (found.turn, found.lines, found.taken) == (turn.id, 4, 4)


def test_large_and_binary_files_are_passed_over(agent: Agent, tree: Path) -> None:
    """What is compared is bounded."""
    agent.prompt("Write data")
    edit(agent, "data.bin", "\0" + CACHED)
    edit(agent, "data.txt", CACHED + "x\n" * 200_000)
    agent.stop()
    assert relapses(tree) == []


@pytest.mark.parametrize(
    ("prompt", "taken", "is_same"),
    [
        ("Cache the prices", "cache  the Prices", True),
        ("please cache prices again", "Cache the prices", True),
        ("Cache the prices of one day, and let them expire", "Cache the prices", False),
        ("continue", "continue", False),
        ("(the prompt was not seen)", "(the prompt was not seen)", False),
        ("bring the cache of prices back", "Cache the prices", True),
        ("add a back button to the login page", "Cache the prices", False),
        ("do it again", "Cache the prices", True),
    ],
)
def test_what_asks_for_the_same(prompt: str, taken: str, *, is_same: bool) -> None:
    """By its words; what asks for nothing by itself asks for nothing again."""
    assert asks_again(prompt, taken) == is_same


# -- on labelled pairs -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["own", "blind"])
def test_labelled_pairs_are_judged_well(name: str) -> None:
    """Precision at least 0.9, recall at least 0.7; `scripts/relapse_figures.py` prints more.

    The blind ones were written by somebody who had not seen the code, and measured once.
    """
    lines = Path(__file__).with_name(f"pairs_{name}.jsonl").read_text().splitlines()
    pairs: list[dict[str, Any]] = [json.loads(line) for line in lines]
    right = said = wanted = 0
    for pair in pairs:
        texts = (str(pair[each]).encode() for each in ("before", "taken", "later"))
        is_seen = likeness.relapse(*texts).is_relapse
        said += is_seen
        wanted += pair["relapse"]
        right += is_seen and pair["relapse"]
    assert len(pairs) == 100
    assert right >= 0.9 * said
    assert right >= 0.7 * wanted
