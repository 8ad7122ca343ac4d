"""The tables of docs/agents.md are made from the agents themselves (UPDATE_SCREENS=1)."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from takeback.agents import registry
from takeback.agents.agent import (
    AFTER_TOOL,
    ASK,
    BEFORE_TOOL,
    DENY,
    PROMPT,
    SESSION_STARTS,
    Agent,
    Answer,
    HookEvent,
)
from takeback.agents.registry import installable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/agents.md"
PAYLOADS = ROOT / "tests/support/payloads"
NO = "no"
WHEN = {
    PROMPT: "with a prompt",
    AFTER_TOOL: "after a tool",
    BEFORE_TOOL: "before a tool",
    SESSION_STARTS: "at the start",
}
WHAT = {PROMPT: "prompts", BEFORE_TOOL: "tools"}
AGENTS = sorted(
    (each for each in registry.REGISTERED if each.name != "unknown"),
    key=lambda agent: (not agent.proven, agent.title.lower()),
)


def listed(words: list[str]) -> str:
    """Some words, or none."""
    return ", ".join(words) or NO


def proven(agent: Agent) -> str:
    """How much is known about an agent."""
    if agent.proven:
        return agent.proven
    names = [
        path.name for path in PAYLOADS.iterdir() if re.split(r"-\d", path.name)[0] == agent.name
    ]
    versions = {re.search(r"-(\d[\d.]*)", name) for name in names}
    found = sorted({version[1] for version in versions if version})
    return f"no; payloads of {found[-1]}" if found else "no; documented fields"


def heeds(agent: Agent, verdict: str) -> set[str]:
    """The kinds of events at which an agent gets a verdict in words that it understands."""
    each = [HookEvent(agent, name, kind) for name, kind in agent.kinds.items()]
    return {
        event.kind
        for event in each
        if agent.understood(event, verdict) == verdict
        and agent.answer(event, Answer(verdict, "x")) != agent.answer(event, Answer())
    }


def table() -> str:
    """What each agent shows."""
    rows = [
        ["agent", "proven", "seen", "not seen", "conversation trimmed", "note", "can refuse",
         "can ask"],
        ["---"] * 8,
    ]  # fmt: skip
    for agent in AGENTS:
        if not agent.kinds:
            rows.append([agent.title, proven(agent), "known by name; not recorded", *["-"] * 5])
            continue
        hooked = set(agent.kinds.values())
        rows.append(
            [
                agent.title,
                proven(agent),
                listed([*agent.seen]),
                listed([*agent.not_seen]),
                "yes" if agent.conversations is not None and agent.conversations.trims else NO,
                listed([WHEN[kind] for kind in WHEN if kind in agent.told_at and kind in hooked]),
                listed([name for kind, name in WHAT.items() if kind in heeds(agent, DENY)]),
                "yes" if BEFORE_TOOL in heeds(agent, ASK) else NO,
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def settings() -> str:
    """Where each agent has its settings."""
    rows = [
        ["name", "agent", "your settings", "those of a project"],
        ["---"] * 4,
    ]
    for agent in installable().values():
        first = agent.file_names()[0]
        own = f"`~/{agent.folder}/{first}`"
        if agent.variable:
            own = f"`${agent.variable}/{first}`, else {own}"
        inside = agent.project_folder or agent.folder
        theirs = f"`{inside}/{agent.local_file or first}`"
        rows.append(
            [f"`{agent.name}`", agent.title, own, NO if agent.project_folder is None else theirs]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@pytest.mark.parametrize("made", [table, settings], ids=["agents", "settings"])
def test_the_table_is_made_from_the_agents(made: Callable[[], str]) -> None:
    """UPDATE_SCREENS=1 writes it anew."""
    text, wanted = PAGE.read_text(), made()
    head = wanted.partition("\n")[0]
    assert text.count(head) == 1
    start = text.index(head)
    end = text.index("\n\n", start)
    if os.environ.get("UPDATE_SCREENS"):
        PAGE.write_text(text[:start] + wanted + text[end:])
        return
    assert text[start:end] == wanted, "UPDATE_SCREENS=1 ./check tests/house/test_agents_page.py"


def test_an_agent_that_is_recorded_says_what_is_seen() -> None:
    """The table has no empty cells."""
    for agent in AGENTS:
        assert bool(agent.seen) == bool(agent.kinds), agent.name
        assert not agent.proven or agent.folder, agent.name
