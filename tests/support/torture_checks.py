"""What must hold after the torture turn was taken back, told by the plain-copy oracle."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import oracle
import torture


class Git:
    """The user's git, wherever its folders are: bytes, modes, inodes and stamps."""

    def __init__(self, tree: Path) -> None:
        self._folders = [tree / "nested/.git"]
        if (tree / ".git").is_dir():
            self._folders.append(tree / ".git")
        elif (tree / ".git").exists():
            self._folders.append(tree.parent / "main")
        self._known = list(self._look())

    def _look(self) -> Iterator[tuple[oracle.Picture, oracle.Picture]]:
        for folder in self._folders:
            yield oracle.picture(folder), oracle.stamps(folder)

    def changes(self) -> list[str]:
        """What is not as it was."""
        found = []
        for (bytes_then, stamps_then), (bytes_now, stamps_now) in zip(
            self._known, self._look(), strict=True
        ):
            found += oracle.differences(bytes_then, bytes_now)
            found += oracle.differences(stamps_then, stamps_now)
        return found


def assert_every_row_did_something(
    before: oracle.Picture, after: oracle.Picture, left_out: Collection[str] = ()
) -> None:
    """A row that changes nothing would be taken back by doing nothing; some may be left out."""
    paths = (row.paths for letter, row in torture.ROWS.items() if letter not in left_out)
    played = {os.fsencode(path) for each in paths for path in each}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not played - changed, sorted(played - changed)


def with_edits(
    state: oracle.Picture, after: oracle.Picture, edited: oracle.Picture
) -> oracle.Picture:
    """A state with what the user changed since the turn ended."""
    expected = dict(state)
    for path in after.keys() | edited.keys():
        if after.get(path) == edited.get(path):
            continue
        if path in edited:
            expected[path] = edited[path]
        else:
            del expected[path]
    return expected


def merged(folder: Path) -> oracle.Entry:
    """The file that both edited, with the user's edit alone."""
    alone = folder / "alone"
    alone.mkdir()
    (alone / "k1.txt").write_bytes(torture.edit_elsewhere(torture.SHARED))
    return oracle.picture(alone)[b"k1.txt"]


def stamps_of_bystanders(tree: Path) -> oracle.Picture:
    """Inodes and stamps of the files that no row names; folders get new stamps from what is in."""
    picture, stamps = oracle.picture(tree), oracle.stamps(tree)
    return {
        path: stamp
        for path, stamp in stamps.items()
        if picture[path][0] != "folder" and path not in torture.PATHS
    }
