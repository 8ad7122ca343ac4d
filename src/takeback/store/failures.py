"""Turn what the system and SQLite complain about into errors of ours."""

import errno
import os

from takeback.errors import DamagedStoreError
from takeback.store import sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.errors import TakebackError


_HINTS = {
    errno.EACCES: "see to its permissions, and try again",
    errno.EPERM: "see to its owner and its attributes (`lsattr`), and try again",
    errno.EROFS: "that disk is read-only; make it writable, and try again",
    errno.ENOSPC: "free some space, and try again",
    errno.EDQUOT: "free some space, and try again",
}


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
            where = f" (`{os.fsdecode(problem.filename)}`)" if problem.filename else ""
            hint = _HINTS.get(problem.errno or 0, "")
            raise self._kind(f"{self._meaning}: {problem.strerror}{where}", hint=hint) from problem
        if isinstance(problem, ValueError) and "null" in str(problem):
            raise self._kind(f"{self._meaning}: a path cannot hold a NUL byte") from problem
        if isinstance(problem, sqlite.OperationalError):
            raise self._kind(f"{self._meaning}: the ledger said: {problem}") from problem
        if isinstance(problem, sqlite.DatabaseError):
            raise DamagedStoreError(
                f"{self._meaning}: the ledger is damaged: {problem}",
                hint="run `takeback verify` to see what is damaged",
            ) from problem
