"""When stamps prove that nothing changed, with stamps made up: no kernel here makes the race."""

from pathlib import Path

import pytest

import takeback
from takeback.disk import machine
from takeback.disk.machine import COARSE, FINE, FsClock
from takeback.worktree import folders

NOW = 1_800_000_000 * 10**9


@pytest.mark.parametrize(
    ("mtime", "ctime", "racy"),
    [
        (NOW - 10 * FINE, NOW - 10 * FINE, False),
        (NOW - FINE - 1, NOW - FINE - 1, False),
        (NOW - FINE, NOW - 10 * FINE, True),
        (NOW - 10 * FINE, NOW - FINE, True),
        (NOW, NOW, True),
        (NOW + COARSE, NOW - 10 * FINE, True),
        (NOW - 10 * FINE, NOW + COARSE, True),
    ],
)
def test_young_and_future_stamps_are_racy(mtime: int, ctime: int, racy: bool) -> None:
    """A stamp within the slack of the scan's beginning, or after it, proves nothing."""
    assert FsClock(NOW, FINE).is_racy(mtime, ctime) is racy


def test_the_slack_is_coarse_where_stamps_are_or_may_be(tmp_path: Path) -> None:
    """On another file system than the store's, whole seconds of doubt are assumed."""
    probe = bytes(tmp_path / "clock")
    here = tmp_path.stat().st_dev
    same, other = machine.read_clock(probe, here), machine.read_clock(probe, here + 1)
    assert same.start - same.trusted_before in (FINE, COARSE)
    assert other.start - other.trusted_before == COARSE


@pytest.mark.parametrize("age", [0, 10 * COARSE], ids=["young", "old"])
def test_what_is_young_when_captured_is_read_again(
    tree: Path, home: Path, age: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file and folder captured within the slack are marked, so the next scan looks again."""
    (tree / "file").write_bytes(b"content")
    start = (tree / "file").stat().st_ctime_ns + age
    monkeypatch.setattr(machine, "read_clock", lambda _probe, _device: FsClock(start, FINE))
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        (index,) = home.glob("projects/*/index")
        header, _, entries = folders.unpack_record(index.read_bytes(), 128)
        marked = [bool(flags & folders.RACY) for flags in (header[4], entries[0][0][5])]
        assert marked == [age == 0, age == 0]
        monkeypatch.undo()
        assert project.verify().ok
