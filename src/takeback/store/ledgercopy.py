"""A copy of the ledger in memory, for reading it where SQLite cannot open the file.

SQLite must write to read a database with a log: it makes a file of shared memory beside it. On a
disk that is full, has no inodes left or is read-only, that fails, but the history can be read all
the same. The log is applied as SQLite does it: whole transactions, up to the first frame whose
salt or checksum is wrong.
"""

import os
from array import array

from takeback.store import sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.sqlite import Connection

_FULL = 13
_UNWRITABLE = frozenset((8, 10, _FULL, 14))
"""SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN."""
_MAGIC = 0x377F0682
_HEAD, _FRAME = 32, 24
_MAIN, _LOG = b"", b"-wal"
_TRIES = 5
_LITTLE = 1 << 16
"""Bytes: with less free, SQLite cannot begin."""


def is_unwritable(problem: Exception) -> bool:
    """Whether SQLite could not write what it needs to open or change a database."""
    code = getattr(problem, "sqlite_errorcode", None) or 0
    return isinstance(problem, sqlite.OperationalError) and code & 0xFF in _UNWRITABLE


def reason(path: bytes, problem: Exception) -> OSError:
    """Why the disk of the ledger takes no writes, as the system would say it."""
    import errno

    shown, folder = os.fsdecode(path), os.path.dirname(path)
    found = os.statvfs(folder)
    if found.f_flag & os.ST_RDONLY:
        return OSError(errno.EROFS, "the disk is read-only", shown)
    if found.f_files and not found.f_favail:
        return OSError(errno.ENOSPC, "the disk has no inodes left", shown)
    is_full = (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF == _FULL
    if is_full or found.f_bavail * found.f_frsize < _LITTLE:
        return OSError(errno.ENOSPC, "the disk is full", shown)
    if not os.access(folder, os.W_OK) or not os.access(path, os.W_OK):
        return OSError(errno.EACCES, "you may not write there", shown)
    return OSError(errno.EIO, str(problem), shown)


def load(path: bytes) -> "Connection":
    """A connection to a copy that nobody can change; an OSError if the files cannot be read."""
    pages = _stable(path)
    # The copy has no log, so it must not say that there is one.
    pages[18:20] = b"\1\1"
    db = sqlite.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.deserialize(bytes(pages))
    for setting in ("foreign_keys = ON", "trusted_schema = OFF", "query_only = ON"):
        db.execute(f"PRAGMA {setting}")
    return db


def _stable(path: bytes) -> bytearray:
    """The database with its log applied, read while neither of them changed."""
    for _ in range(_TRIES):
        before = [_stamp(path + each) for each in (_MAIN, _LOG)]
        pages, log = bytearray(_read(path)), _read(path + _LOG) if before[1] else b""
        if [_stamp(path + each) for each in (_MAIN, _LOG)] == before:
            break
    else:
        raise OSError(11, "another process is writing it", os.fsdecode(path))
    _apply(pages, log)
    return pages


def _stamp(path: bytes) -> "tuple[int, ...]":
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: bytes) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _apply(pages: bytearray, log: bytes) -> None:
    """Put the pages of all committed transactions of a log in their place."""
    magic, size = (int.from_bytes(log[at : at + 4], "big") for at in (0, 8))
    if len(log) < _HEAD or magic | 1 != _MAGIC | 1 or size < 512:
        return
    order = "big" if magic & 1 else "little"
    known = _checksum(log[:24], order, (0, 0))
    if known != _pair(log, 24):
        return
    waiting: dict[int, bytes] = {}
    for at in range(_HEAD, len(log) - _FRAME - size + 1, _FRAME + size):
        page = log[at + _FRAME : at + _FRAME + size]
        known = _checksum(log[at : at + 8] + page, order, known)
        if log[at + 8 : at + 16] != log[16:24] or known != _pair(log, at + 16):
            return
        number, count = _pair(log, at)
        waiting[number] = page
        if count:
            _commit(pages, waiting, size, count)
            waiting = {}


def _commit(pages: bytearray, changed: "dict[int, bytes]", size: int, count: int) -> None:
    pages.extend(bytes(max(0, count * size - len(pages))))
    for number, page in changed.items():
        pages[(number - 1) * size : number * size] = page
    del pages[count * size :]


def _pair(data: bytes, at: int) -> "tuple[int, int]":
    return int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 8], "big")


def _checksum(data: bytes, order: str, start: "tuple[int, int]") -> "tuple[int, int]":
    words = array("I", data)
    import sys

    if sys.byteorder != order:
        words.byteswap()
    one, other = start
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return one, other
