"""What can be known of a SQLite database without opening it: whether it was written, who holds it.

Its files are only looked at, never opened: closing a file drops all locks that its process holds on
it, also those of a connection that the harness has open.
"""

import os
import time

from takeback.disk import machine

ENDS = ("", "-wal", "-shm", "-journal")
"""How the names of its files end."""
_BESIDE = ("-wal", "-journal")
_SETTLED = 100_000_000
"""Nanoseconds: no file system that can be trusted has coarser stamps."""


def stamps(path: str, *, committed: bool = False) -> str:
    """What changes when the database is written: sizes, times and numbers of its files.

    What is `committed` shows in the database and in its log, not in a journal of what is not.
    """
    return " ".join(_stamp(path + end) for end in ("", *_BESIDE[: 1 if committed else None]))


def is_settled(path: str) -> bool:
    """Whether a write from now on will change the stamps, and no writer died in the middle."""
    now = time.time_ns()
    for end in ("", *_BESIDE):
        try:
            found = os.stat(path + end)
        except OSError:
            continue
        if end and not found.st_size:
            continue  # its first byte changes the stamps
        newest = found.st_mtime_ns if end else max(found.st_mtime_ns, found.st_ctime_ns)
        if not newest < now - _SETTLED or (end == "-journal" and found.st_size):
            return False
    return True


def is_absent(path: str) -> bool:
    """Whether there is no database, or an empty file where one may be made."""
    try:
        return os.stat(path).st_size == 0 and not os.path.exists(path + "-wal")
    except FileNotFoundError:
        return True


def holders(path: str) -> "list[str]":
    """The programs that hold a lock on a database, as far as Linux tells: name and process."""
    inodes = {_inode(path + end) for end in ("", "-shm", "-wal")}
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    words = [row for row in rows if len(row) >= 8 and row[1] != "->"]
    pids = {int(row[4]) for row in words if _inode_of(row[5]) in inodes and row[4].isdecimal()}
    return [_program(pid) for pid in sorted(pids)]


def _program(pid: int) -> str:
    if pid == os.getpid():
        return f"this process ({pid})"
    words = machine.command_line(pid)
    name = os.path.basename(os.fsdecode(words[0])) if words else "a process"
    return f"{name} ({pid})"


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    if not found.st_size:
        return "-"  # a log that is opened and not written to is made anew
    stamp = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"
    # SQLite gives a log that root opens to the owner of the database, and its ctime moves.
    return stamp if path.endswith(_BESIDE) else f"{stamp}:{found.st_ctime_ns}"


def _inode(path: str) -> "tuple[int, int, int] | None":
    try:
        found = os.stat(path)
    except OSError:
        return None
    return os.major(found.st_dev), os.minor(found.st_dev), found.st_ino


def _inode_of(word: str) -> "tuple[int, int, int] | None":
    """`fe:01:1234`, as the system lists it: two numbers of the disk, and one of the file."""
    parts = word.split(":")
    try:
        return int(parts[0], 16), int(parts[1], 16), int(parts[2])
    except (IndexError, ValueError):
        return None
