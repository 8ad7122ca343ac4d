"""Turn what the system and SQLite complain about into errors of ours."""

import errno
import os

from takeback.disk import sqlite
from takeback.errors import DamagedStoreError
from takeback.model.ids import is_stage
from takeback.model.reasons import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.errors import TakebackError


_REPLACED = "something else took its place: check it and move it away"
_HINTS = {
    errno.ENXIO: _REPLACED,
    errno.EISDIR: _REPLACED,
    errno.ELOOP: _REPLACED,
    errno.ENOTDIR: _REPLACED,
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its owner and its attributes (`lsattr`)",
    errno.EROFS: "that disk is read-only; make it writable",
}


_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_WRITES = (*_FULL, errno.EROFS)


def is_no_writes(problem: OSError) -> bool:
    """Whether the disk takes no writes; reading goes on."""
    return problem.errno in _NO_WRITES


def hint(problem: OSError) -> "tuple[str | Action, ...]":
    """What to do about it, before one tries again."""
    if problem.errno in _FULL:
        return _of_full_disk(problem.filename2 or problem.filename)
    found = _HINTS.get(problem.errno or 0)
    return (found,) if found else ()


def _of_full_disk(path: "str | bytes | None") -> "tuple[str | Action, ...]":
    """Which disk is full, how much is left, and what frees some."""
    place = os.path.realpath(os.fsencode(path)) if path else b""
    while place != b"/" and place and not os.path.ismount(place):
        place = os.path.dirname(place)
    which = "that disk"
    try:
        found = os.statvfs(place)
        left = f"{found.f_bavail * found.f_frsize / 1e6:,.1f} MB"
        if found.f_files and not found.f_favail:
            left = "no inodes"
        which = f"the disk at `{os.fsdecode(place)}`, which has {left} left"
    except OSError:
        pass  # then its name has to do
    return f"delete some files on {which}", Action("gc-to-size")


def named(path: "str | bytes") -> str:
    """A path as users know it: without names that only exist while something is written."""
    parts = os.fsdecode(path).split("/")
    ours = (at for at, part in enumerate(parts) if _is_ours(part))
    shown = "/".join(parts[: next(ours, len(parts))])
    folder, _, name = shown.rpartition("/")
    if name.startswith("tmp-"):
        return folder
    return shown.rsplit(".", 2)[0] if name.endswith(".tmp") else shown


def _is_ours(name: str) -> bool:
    """Whether only we make such folders, while we write; a store may be in `.takeback-home`."""
    is_extracted = name.startswith(".takeback-") and name.endswith(".tmp")
    return is_extracted or is_stage(name.encode("utf-8", "surrogateescape"))


class FailingAs:
    """Turns the system's errors into ours, with what they mean for the user."""

    __slots__ = ("_kind", "_meaning")

    def __init__(self, kind: "type[TakebackError]", meaning: str) -> None:
        self._kind = kind
        self._meaning = meaning

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, OSError):
            # Of a rename, the second is the name that a user knows.
            path = problem.filename2 or problem.filename
            where = f" (`{named(path)}`)" if path else ""
            raise self._kind(
                f"{self._meaning}: {problem.strerror}{where}", hint=hint(problem)
            ) from problem
        if isinstance(problem, ValueError) and "null" in str(problem):
            raise self._kind(f"{self._meaning}: a path cannot hold a NUL byte") from problem
        if isinstance(problem, sqlite.OperationalError):
            notes = getattr(problem, "__notes__", ())[:1]
            advice = _of_full_disk(next(iter(notes), None)) if "full" in str(problem) else ()
            where = "".join(f" (`{note}`)" for note in notes)
            raise self._kind(
                f"{self._meaning}: SQLite reported: {problem}{where}", hint=advice
            ) from problem
        if isinstance(problem, sqlite.DatabaseError):
            raise DamagedStoreError(
                f"{self._meaning}: the ledger is damaged: {problem}",
                hint=Action("verify"),
            ) from problem
