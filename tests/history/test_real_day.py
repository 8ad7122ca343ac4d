"""A day of three agents and a person: the log tells who did what, and its screens are in docs/."""

import os
import random
import re
import shlex
import time
from pathlib import Path

import pytest

import takeback
from oracle import differences, picture
from real_day import SECOND, YOU, Clock, Day, replaced
from takeback.cli.app import main

TURNS = 300


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """The day, played once."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "shop").mkdir()
    played = Day(folder / "shop", folder / "home")
    played.play(TURNS)
    return played


def authors(day: Day) -> dict[tuple[int, bytes], str]:
    """Who the log says wrote each path between two checkpoints, folders left aside."""
    with takeback.open(day.root, home=day.home) as project:
        rows = project.workspace.ledger._reader.rows(
            "SELECT d.checkpoint, d.path, d.who, t.id FROM deltas d"
            " LEFT JOIN turns t ON t.number = d.turn WHERE d.verb NOT IN ('mkdir', 'rmdir')"
        )
    return {(number, path): turn if who == "step" else who for number, path, who, turn in rows}


def test_the_log_tells_who_did_what(day: Day) -> None:
    """Every path that changed in 300 turns has the author that really wrote it."""
    told = authors(day)
    wrong = {key: (told.get(key), day.truth.get(key)) for key in told.keys() | day.truth.keys()}
    wrong = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
    assert not wrong
    assert sum(author == YOU for author in told.values()) > 50
    assert len(set(told.values())) > 200


def test_the_tables_follow_from_the_log(day: Day) -> None:
    """After a whole day the tables are what a replay of the events gives."""
    with takeback.open(day.root, home=day.home) as project:
        assert project.upkeep.examine()[0] == ()


def test_the_tree_of_the_day_is_kept(day: Day, tmp_path: Path) -> None:
    """The newest checkpoint is the tree as the day left it."""
    with takeback.open(day.root, home=day.home) as project:
        project.extract("@", tmp_path / "evening")
    assert not differences(picture(day.root), picture(tmp_path / "evening"))


SCREENS = Path(__file__).parents[2] / "docs/screens"


def screens(day: Day) -> dict[str, list[str]]:
    """The commands whose screens are shown, by the name of the file."""
    with takeback.open(day.root, home=day.home) as project:
        turns = project.log(all=True).turns
    busy = max((t for t in turns if t.agent == "claude-code"), key=lambda t: (t.files, t.added))
    moved = next(t for t in turns if any(c.verb == "rename" for c in t.changes))
    env = next(t for t in turns if any(c.raw_path == b".env" for c in t.changes))
    return {
        "status": [],
        "log": ["log"],
        "log-of-a-session": ["log", "--session", turns[-1].session, "--limit", "8"],
        "sessions": ["sessions"],
        "show": ["show", busy.id],
        "show-with-a-rename": ["show", moved.id],
        "diff-stat": ["diff", f"{busy.id}-", busy.id, "--stat"],
        "diff-with-a-secret": ["diff", f"{env.id}-", env.id, "--", ".env"],
    }


NAMES = (
    "status",
    "log",
    "log-of-a-session",
    "sessions",
    "show",
    "show-with-a-rename",
    "diff-stat",
    "diff-with-a-secret",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_screens_are_those_in_the_docs(
    day: Day, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the commands show of the day is what docs/screens shows (UPDATE_SCREENS=1 writes it)."""
    words = screens(day)[name]
    monkeypatch.chdir(day.root)
    monkeypatch.setenv("TAKEBACK_HOME", str(day.home))
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    evening = Clock()
    evening.now = day.clock.now + 600 * SECOND
    with replaced(random.Random(2), evening):
        assert main(words) == 0
    shown = capsys.readouterr()
    text = f"$ takeback {shlex.join(words)}".rstrip() + f"\n{shown.out}{shown.err}"
    text = text.replace(str(day.root.parent), "/srv/ana")
    # How well content is compressed depends on the library that is there.
    text = re.sub(r"[0-9.]+ [kM]B in ", "5.9 MB in ", text)
    path = SCREENS / f"{name}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
