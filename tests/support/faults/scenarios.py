"""The checkpoints that faults are tried on: a tree, its history, and what changed since.

A checkpoint never writes to the tree, so one tree serves all faults of a scenario and only the
store is put back between them. What `later` changes afterwards is undone in place, and lies where
`edit` has been already: so the stat cache of the prepared store says of each fault's tree what it
said of the first one's.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

Later = Sequence[tuple[str, bytes | None]]


class Scenario(NamedTuple):
    """One kind of checkpoint."""

    name: str
    history: Sequence[Callable[[Path], None]]
    """Each makes a tree that is captured before; the first one finds an empty folder."""
    edit: Callable[[Path], None]
    later: Later
    """What changes after the fault: a path and its new content, or None to remove it."""
    heavy: bool = False
    """So much to write that `./check` tries a few faults only."""
    must_be_still: bool = False
    """The tree has to be known to the stat cache when the fault comes."""


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Make or change a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _twenty(tree: Path) -> None:
    """Twenty files in five folders, of which two are nested, with a link and an empty folder."""
    for number in range(20):
        folder = tree / ("a", "a/deep", "b", "c", "c/deep")[number % 5]
        write(folder / f"file{number:02}", b"first %02d\n" % number * (number + 1))
    write(tree / "tool.sh", b"#!/bin/sh\n", 0o755)
    write(tree / "secret", b"0600\n", 0o600)
    (tree / "link").symlink_to("a/deep")
    (tree / "empty").mkdir()


def _grown(tree: Path) -> None:
    """A second state: two files more, one changed."""
    write(tree / "a/file00", b"second\n")
    write(tree / "b/more", b"more\n" * 100)
    write(tree / "more", b"first 07\n" * 8)


def _nothing(_tree: Path) -> None:
    """No change at all."""


def _ten(tree: Path) -> None:
    """Ten files changed, some at the same size, one new, one made runnable."""
    for number in range(10):
        folder = tree / ("a", "a/deep", "b", "c", "c/deep")[number % 5]
        write(folder / f"file{number:02}", b"third %02d\n" % number * (number + 1))
    write(tree / "new", b"new\n")
    (tree / "secret").chmod(0o700)


def _thousand(tree: Path) -> None:
    """A thousand new files, a tenth of them with content that is there already."""
    for number in range(1000):
        data = b"first 00\n" if number % 10 == 0 else b"%d " % number * (number % 50 + 1)
        write(tree / f"many{number % 20:02}" / f"{number:03}", data)


def _deletes(tree: Path) -> None:
    """A folder gone, a folder emptied, a link and a file gone."""
    for path in (*(tree / "c/deep").iterdir(), *(tree / "b").iterdir()):
        path.unlink()
    (tree / "c/deep").rmdir()
    (tree / "link").unlink()
    (tree / "more").unlink()
    (tree / "empty").rmdir()


def _renames(tree: Path) -> None:
    """Folders and files under new names, two swapped, a file where a folder was and reverse."""
    os.rename(tree / "a", tree / "moved")
    os.rename(tree / "b/file02", tree / "c/file02")
    os.rename(tree / "b/file07", tree / "swap")
    os.rename(tree / "b/file12", tree / "b/file07")
    os.rename(tree / "swap", tree / "b/file12")
    os.rename(tree / "b/more", tree / "b/MORE")
    os.rename(tree / "empty", tree / "gone")
    write(tree / "empty", b"now a file\n")
    os.rename(tree / "tool.sh", tree / "gone/tool.sh")
    (tree / "tool.sh").mkdir()


def _large(tree: Path) -> None:
    """One file that is streamed into a pack of its own, and more than fits in one pack."""
    chance = Random(9)
    write(tree / "big", chance.randbytes(9 << 20))
    for number in range(3):
        write(tree / f"large{number}", chance.randbytes(7 << 20))
    write(tree / "new", b"new\n")


_HISTORY = (_twenty, _grown)
_IN_NEW: Later = [("new", b"NEW\n"), ("later", b"later\n" * 9), ("a/file00", None)]

SMALL = Scenario("small", _HISTORY, _ten, _IN_NEW)
FIRST = Scenario("first", (), _twenty, [("later", b"later\n"), ("b/file02", b"FIRST 02\n" * 3)])
NO_CHANGE = Scenario(
    "no-change", _HISTORY, _nothing, [("a/file00", b"SECOND\n")], must_be_still=True
)
THOUSAND = Scenario(
    "thousand", (_twenty,), _thousand, [("many00/000", b"FIRST 00\n"), ("many01/001", None)], True
)
DELETES = Scenario("deletes", _HISTORY, _deletes, [("b/file02", b"back"), ("more", b"back too")])
RENAMES = Scenario("renames", _HISTORY, _renames, [("empty", b"NOW A FILE\n"), ("b/MORE", None)])
LARGE = Scenario("large", (_twenty,), _large, [("new", b"NEW\n"), ("large0", b"small\n")], True)
WAITING = SMALL._replace(name="second-process-waiting")
FILLING = SMALL._replace(name="disk-filling")

SCENARIOS = (FIRST, NO_CHANGE, SMALL, THOUSAND, DELETES, RENAMES, WAITING, FILLING, LARGE)
