"""New files beside those of other programs: trimmed copies of conversations, and nothing else.

A file that is there is never opened for writing, let alone replaced.
"""

import os

from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_AT_ONCE = 1 << 20


def write_new(path: str, lines: "Iterable[bytes]") -> int:
    """Write lines into a file that must not exist; it is on the disk when this returns.

    Return how many. If anything goes wrong, the file is gone again.
    """
    folder = os.path.dirname(path)
    _make_folders(folder)
    fd = fsops.create(path)
    try:
        written = _write(fd, lines)
        fsops.fsync(fd)
    except BaseException:
        os.close(fd)
        fsops.discard(path)
        raise
    os.close(fd)
    fsops.fsync_dir(folder)
    return written


def _write(fd: int, lines: "Iterable[bytes]") -> int:
    waiting, size, count = [], 0, 0
    for line in lines:
        waiting.append(line + b"\n")
        size, count = size + len(line), count + 1
        if size >= _AT_ONCE:
            fsops.write(fd, b"".join(waiting))
            waiting, size = [], 0
    fsops.write(fd, b"".join(waiting))
    return count


def _make_folders(folder: str) -> None:
    """Make the folders that are missing, each for its owner alone."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        fsops.mkdir(each)
        fsops.fsync_dir(os.path.dirname(each))
