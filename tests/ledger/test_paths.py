"""Paths stand in the ledger once, and tables name them by number."""

from itertools import count
from pathlib import Path
from zlib import crc32

import pytest

import takeback
from takeback.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with an empty tree."""
    root = tmp_path / "tree"
    root.mkdir()
    return takeback.open(root, home=tmp_path / "home")


def _alike() -> tuple[str, str]:
    """Two names that the ledger looks up by the same number."""
    seen: dict[int, str] = {}
    for number in count():
        name = f"file{number}"
        short = crc32(name.encode()) & 0x7FFFFF
        if short in seen:
            return seen[short], name
        seen[short] = name
    raise AssertionError


def test_paths_that_look_alike_are_told_apart(project: Project) -> None:
    """Two paths with the same short hash are two paths, when they come together and later."""
    one, other = _alike()
    root = Path(project.root)
    with project.session("test") as session:
        for names, text in (((one,), "1"), ((one, other), "2"), ((other,), "3")):
            with session.turn("turn"):
                for name in names:
                    (root / name).write_text(text)
    told = [[change.raw_path.decode() for change in turn.changes] for turn in project.log().turns]
    assert told == [[other], sorted([one, other]), [one]]
    short = "SELECT count(DISTINCT hash), count(*) FROM paths"
    assert project.workspace.ledger._reader.rows(short) == [(1, 2)]
    assert project.verify().damage == ()
    project.close()


def test_each_path_stands_once_in_the_order_of_the_events(project: Project) -> None:
    """Changed, renamed and removed: a path is written once, and a rebuild numbers it the same."""
    root = Path(project.root)
    with project.session("test") as session:
        for number in range(3):
            with session.turn("turn"):
                for name in ("z.txt", "a.txt"):
                    (root / name).write_text(f"{name} {number}\n" * 20)
        with session.turn("turn"):
            (root / "z.txt").rename(root / "m.txt")
        with session.turn("turn"):
            (root / "a.txt").unlink()
    query = "SELECT number, path FROM paths ORDER BY number"
    before = project.workspace.ledger._reader.rows(query)
    assert before == [(1, b"a.txt"), (2, b"z.txt"), (3, b"m.txt")]
    renamed = "SELECT path, origin FROM {} WHERE origin IS NOT NULL"
    for view in ("deltas", "changes"):
        assert project.workspace.ledger._reader.rows(renamed.format(view)) == [(b"m.txt", b"z.txt")]
    project.rebuild()
    assert project.workspace.ledger._reader.rows(query) == before
    project.close()


def test_packs_that_were_merged_are_named_no_more(project: Project) -> None:
    """After packs were merged, the table knows the new one alone."""
    root = Path(project.root)
    for number in range(12):
        (root / "file.txt").write_text(f"{number}\n")
        project.checkpoint()
    project.gc(full=True)
    assert len(project.workspace.ledger.packs()) == 1
    assert project.verify().damage == ()
    project.close()
