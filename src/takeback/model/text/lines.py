"""Texts as lines, split and told from binary files as in `git diff`.

Where two texts differ is found by libgit2 (`disk/libgit2`). What both begin and end with is set
aside here first, as bytes, so that a small edit in a large file costs little.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Block = tuple[int, int, int, int]
    """From and up to a line of the old text, and of the new one."""

BINARY_WITHIN = 8000
"""A NUL among so many bytes at the beginning makes a file binary, as in git."""

_PIECE = 4096
_ROOM = 4096
"""Equal bytes that stay on both sides: a block may be moved there, where it reads better."""


def is_binary(data: bytes) -> bool:
    """Whether a file is no text, as git tells it."""
    return 0 in data[:BINARY_WITHIN]


def split(data: bytes) -> "list[bytes]":
    """The lines of a text, each with its newline; only the last may lack one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def hunks(changed: "Sequence[Block]", context: int = 3) -> "list[list[Block]]":
    """Blocks in groups that are shown together: those whose surroundings would touch."""
    grouped: list[list[Block]] = []
    for block in changed:
        if grouped and block[0] - grouped[-1][-1][1] <= 2 * context:
            grouped[-1].append(block)
        else:
            grouped.append([block])
    return grouped


# -- what both begin and end with --------------------------------------------------------------


def middle(old: bytes, new: bytes) -> "tuple[int, int, int]":
    """What has to be compared: whole lines, from where, and up to where in each text."""
    beginning = _same_beginning(old, new)
    start = old.rfind(b"\n", 0, max(0, beginning - _ROOM)) + 1
    same = _same_end(old, new, min(len(old), len(new)) - beginning) - _ROOM
    end = old.find(b"\n", len(old) - same) + 1 if same > 0 else 0
    tail = len(old) - end if end else 0
    return start, len(old) - tail, len(new) - tail


def _same_beginning(old: bytes, new: bytes) -> int:
    """How many bytes are the same from the start; the piece that differs is halved."""
    at, end, step = 0, min(len(old), len(new)), _PIECE
    while step and at < end:
        if old[at : at + step] == new[at : at + step]:
            at += step
        else:
            step //= 2
    return min(at, end)


def _same_end(old: bytes, new: bytes, most: int) -> int:
    """How many bytes, `most` at most, are the same up to the end."""
    a, b, same, step = len(old), len(new), 0, _PIECE
    while step:
        if (
            same + step <= most
            and old[a - same - step : a - same] == new[b - same - step : b - same]
        ):
            same += step
        else:
            step //= 2
    return same


# -- inside of lines ---------------------------------------------------------------------------


def words(line: bytes) -> "list[bytes]":
    import re

    return re.findall(rb"[0-9A-Za-z_\x80-\xff]+|[ \t]+|[^0-9A-Za-z_\x80-\xff \t]", line)
