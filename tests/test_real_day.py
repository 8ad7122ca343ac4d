"""A day of three agents and a person: the log tells who did what, and its screens are in docs/."""

from pathlib import Path

import pytest

import takeback
from oracle import differences, picture
from real_day import YOU, Day

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
        rows = project.ledger.rows(
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
        assert project.examine()[0] == ()


def test_the_tree_of_the_day_is_kept(day: Day, tmp_path: Path) -> None:
    """The newest checkpoint is the tree as the day left it."""
    with takeback.open(day.root, home=day.home) as project:
        project.extract("@", tmp_path / "evening")
    assert not differences(picture(day.root), picture(tmp_path / "evening"))
