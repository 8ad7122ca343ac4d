"""Edits of a small tree in which all collides: any path may be a file, a folder or a link."""

import os
import shutil
from typing import NamedTuple

IS_ROOT = os.geteuid() == 0

PATHS = (b"a", b"d", b"d/a", b"d/b", b"d/e", b"d/e/a", b"f/a", b"\xff l")


class Parts(NamedTuple):
    """Two places of a long text, far from each other: each says one of two things."""

    top: bool
    end: bool


def joined(parts: Parts) -> bytes:
    """The text with these parts."""
    lines = [b"line %d\n" % number for number in range(300)]
    lines[0] = b"top\n" if parts.top else lines[0]
    lines[-1] = b"end\n" if parts.end else lines[-1]
    return b"".join(lines)


_ALL_PARTS = [Parts(top, end) for top in (False, True) for end in (False, True)]
PARTS = {joined(parts): parts for parts in _ALL_PARTS}
"""The texts that can be merged, whatever was made of them: each part was changed once at most."""
CONTENTS = (b"", b"1", b"22", *PARTS)
# Only root gets into what it closed to itself, and so can the model.
FILE_MODES = (0o644, 0o600, 0o755, *((0o000, 0o4711) if IS_ROOT else ()))
FOLDER_MODES = (0o755, 0o700, 0o2775, *((0o555, 0o000) if IS_ROOT else ()))

Edit = tuple[str, bytes, int]
"""What is done, where, and a number that decides the rest."""


def perform(root: bytes, edit: Edit) -> None:
    """Let somebody do something to the tree, whatever it holds."""
    what, path, pick = edit
    {"write": _write, "remove": _remove, "move": _move, "chmod": _chmod, "link": _link}.get(
        what, _mkdir
    )(root, path, pick)


def _place(root: bytes, path: bytes) -> bytes:
    """Make room for an entry: folders above it, and nothing where it shall be."""
    above = path.rpartition(b"/")[0]
    if above and not _is_folder(os.path.join(root, above)):
        os.mkdir(_place(root, above))
    place = os.path.join(root, path)
    _clear(place)
    return place


def _is_folder(place: bytes) -> bool:
    return os.path.isdir(place) and not os.path.islink(place)


def _clear(place: bytes) -> None:
    if _is_folder(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)


def _write(root: bytes, path: bytes, pick: int) -> None:
    place = os.path.join(root, path)
    is_file = os.path.isfile(place) and not os.path.islink(place)
    if pick % 3 or not is_file:
        place = _place(root, path)
    with open(place, "wb") as file:
        file.write(CONTENTS[pick % len(CONTENTS)])


def _remove(root: bytes, path: bytes, _pick: int) -> None:
    _clear(os.path.join(root, path))


def _move(root: bytes, path: bytes, pick: int) -> None:
    to = PATHS[pick % len(PATHS)]
    is_inside = (to + b"/").startswith(path + b"/") or (path + b"/").startswith(to + b"/")
    if not is_inside and os.path.lexists(os.path.join(root, path)):
        aside = root + b"-aside"
        os.rename(os.path.join(root, path), aside)
        os.rename(aside, _place(root, to))


def _chmod(root: bytes, path: bytes, pick: int) -> None:
    place = os.path.join(root, path)
    if os.path.lexists(place) and not os.path.islink(place):
        modes = FOLDER_MODES if os.path.isdir(place) else FILE_MODES
        os.chmod(place, modes[pick % len(modes)])


def _link(root: bytes, path: bytes, pick: int) -> None:
    os.symlink((b"a", b"d", b"/nowhere/at all", b"..")[pick % 4], _place(root, path))


def _mkdir(root: bytes, path: bytes, _pick: int) -> None:
    if not _is_folder(os.path.join(root, path)):
        os.mkdir(_place(root, path))
