"""The file that the ledger is in: opened safely, and its complaints put into our words."""

import os
import stat
from _thread import _local

from takeback.errors import DamagedStoreError, UnsafeStoreError, UsageError
from takeback.store import fsops, sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ends = False
"""Whether this process ends at once when its databases are closed."""
_SHORT_LOG = 1 << 19
"""Bytes of SQLite's log that may wait for the next process, which has to read them."""
_left: "list[sqlite.Connection]" = []


def require_file(path: bytes, *, create: bool) -> None:
    """An error unless the ledger is a plain file of ours; made here when it is not there yet.

    It is made by us so that SQLite never makes it readable to others. One that exists is only
    looked at: closing any descriptor of it would drop the locks that another connection of this
    process holds, and the next process would then remove the log it is writing to.
    """
    is_there = _is_plain(path)
    for suffix in (b"-wal", b"-shm", b"-journal"):
        # SQLite opens these as it finds them, and would wait for ever at a FIFO.
        _is_plain(path + suffix)
    if create and not is_there:
        try:
            os.close(fsops.create(path))
        except FileExistsError:
            # Another first use was quicker.
            return


def _is_plain(path: bytes) -> bool:
    """Whether a file is there; an error if it is not a plain one of ours."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafeStoreError(
            f"the ledger `{os.fsdecode(path)}` is not a plain file of yours",
            hint="look at it before anything else; a ledger is never a link",
        )
    return True


def connect(path: bytes) -> sqlite.Connection:
    """The database at a path, set up so that what is committed is durable."""
    with AsDamage("opened"):
        db = sqlite.connect(
            os.fsdecode(path), timeout=10, isolation_level=None, check_same_thread=False
        )
        for setting in (
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            db.execute(f"PRAGMA {setting}")
        return db


def close(db: sqlite.Connection, path: bytes) -> None:
    """Close a database, or leave that to the end of this process.

    To close it for good, SQLite takes its log into the file and removes it, and the next process
    makes another: four of the five times that a short life waits for the disk. What is committed
    is as durable in the log, and a process that ends without a word leaves it, too.
    """
    if ends and not db.in_transaction and _size_of(path + b"-wal") < _SHORT_LOG:
        _left.append(db)
    else:
        db.close()


def _size_of(path: bytes) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


class Connections:
    """A connection to one database for each thread that asks.

    On a shared one a thread would read, and roll back, what another has not committed yet. Each
    is closed when its thread ends; SQLite's own connections must not be closed in a forked copy.
    """

    __slots__ = ("_is_closed", "_of_thread", "_open", "_path")

    def __init__(self, path: bytes, open: "Callable[[], sqlite.Connection]") -> None:
        self._path = path
        self._open = open
        self._of_thread = _local()
        self._is_closed = False

    def mine(self) -> sqlite.Connection:
        """The connection of this thread."""
        own: _Own | None = getattr(self._of_thread, "own", None)
        if own is None:
            # Nothing may be opened, and perhaps made again, once the project is closed.
            db = sqlite.connect(":memory:") if self._is_closed else self._open()
            own = self._of_thread.own = _Own(db)
        if self._is_closed:
            own.db.close()
        return own.db

    def use(self, db: sqlite.Connection) -> None:
        """Give this thread a connection that is open already."""
        self._of_thread.own = _Own(db)

    def close(self) -> None:
        """Close that of this thread, and those of others when they ask again or end."""
        self._is_closed = True
        own: _Own | None = getattr(self._of_thread, "own", None)
        if own is not None:
            close(own.db, self._path)


class _Own:
    """The connection of one thread."""

    __slots__ = ("_process", "db")

    def __init__(self, db: sqlite.Connection) -> None:
        self.db = db
        self._process = os.getpid()

    def __del__(self) -> None:
        if self._process != os.getpid():
            _left.append(self.db)
        elif self.db not in _left:
            self.db.close()


class AsDamage:
    """Turns SQLite's complaints about a broken file into ours."""

    __slots__ = ("doing",)

    def __init__(self, doing: str) -> None:
        self.doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, sqlite.ProgrammingError) and "closed" in str(problem):
            raise UsageError(
                "the project was closed", hint="open it again with `takeback.open`"
            ) from None
        if isinstance(problem, sqlite.DatabaseError | UnicodeDecodeError) and _is_damage(problem):
            can_verify = self.doing != "opened"
            raise DamagedStoreError(
                f"the ledger cannot be {self.doing}: {problem}",
                hint="run `takeback verify` to see what is damaged"
                if can_verify
                else "`takeback doctor` explains what can be done",
            ) from None


def _is_damage(problem: "sqlite.DatabaseError | UnicodeDecodeError") -> bool:
    # SQLITE_ERROR comes from a schema that no longer fits our statements, and a text that is no
    # UTF-8 from a flipped bit; SQLite's own message may quote it.
    if isinstance(problem, sqlite.OperationalError):
        code = getattr(problem, "sqlite_errorcode", 0)
        return code == sqlite.SQLITE_ERROR or "decode" in str(problem)
    return True
