"""The file that the ledger is in: opened safely, and its complaints put into our words.

A copy of the ledger in memory, for reading it where SQLite cannot open the file.

SQLite must write to read a database with a log: it makes a file of shared memory beside it. On a
disk that is full, has no inodes left or is read-only, that fails, but the history can be read all
the same. The log is applied as SQLite does it: whole transactions, up to the first frame whose
salt or checksum is wrong.
"""

import os
import stat
from _thread import _local
from array import array
from itertools import count

from takeback.disk import operations, sqlite
from takeback.errors import DamagedStoreError, UnsafeStoreError, UsageError
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from takeback.disk.sqlite import Connection

    Values = tuple[bytes | str | int | None, ...]

ends = False
"""Whether this process ends at once when its databases are closed."""
_SHORT_LOG = 1 << 19
"""Bytes of SQLite's log that may wait for the next process, which has to read them."""
_MEMORY = b"file:/ledger-in-memory-"
_numbers = count()
_left: "list[sqlite.Connection]" = []


class _Connection(sqlite.Connection):
    """A connection that knows the name of its file, for errors."""

    path = ""


def require_file(path: bytes, *, create: bool) -> None:
    """An error unless the ledger is a plain file of ours; made here when it is not there yet.

    It is made by us so that SQLite never makes it readable to others. One that exists is only
    looked at: closing any descriptor of it would drop the locks that another connection of this
    process holds, and the next process would then remove the log it is writing to.
    """
    if path.startswith(_MEMORY):
        return
    is_there = _is_plain(path)
    for suffix in (b"-wal", b"-shm", b"-journal"):
        # SQLite opens these as it finds them, and would wait for ever at a FIFO.
        _is_plain(path + suffix)
    if create and not is_there:
        try:
            os.close(operations.create(path))
        except FileExistsError:
            # Another first use was quicker.
            return


def memory_path() -> bytes:
    """The name of a new database in memory, which all threads of this process can open."""
    return _MEMORY + b"%d?vfs=memdb" % next(_numbers)


def _is_plain(path: bytes) -> bool:
    """Whether a file is there; an error if it is not a plain one of ours."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafeStoreError(
            f"the ledger `{os.fsdecode(path)}` is not a plain file of yours",
            hint="check it first; a ledger is never a link",
        )
    return True


def connect(path: bytes) -> sqlite.Connection:
    """The database at a path, set up so that what is committed is durable."""
    with AsDamage("opened"):
        db = sqlite.connect(
            os.fsdecode(path),
            timeout=10,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            uri=path.startswith(_MEMORY),
        )
        db.path = os.fsdecode(path)
        for setting in (
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            db.execute(f"PRAGMA {setting}")
        return db


_PLAIN = frozenset(b"/.-_" + bytes(n for n in range(128) if chr(n).isalnum()))


def glance(path: bytes) -> sqlite.Connection:
    """The database for one short read that writes nothing: no log, no shared memory, no lock.

    Without a log there is nothing to share. A writer that begins meanwhile writes to its log; if it
    gets as far as the file itself, the read may fail.
    """
    has_log = os.path.lexists(path + b"-wal")
    how = "mode=ro&readonly_shm=1" if has_log else "mode=ro&immutable=1"
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in path)
    return sqlite.connect(f"file:{name}?{how}", timeout=0, isolation_level=None, uri=True)


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


class Reader:
    """Reads the database for the groups of named queries, on the connection of this thread."""

    __slots__ = ("_connection", "line")

    def __init__(self, connection: "Callable[[], Connection]", line: int = 1) -> None:
        self._connection = connection
        self.line = line
        """The number of the line that is read: the states of one tree."""

    def rows(self, query: str, values: "Values" = ()) -> "list[tuple[Any, ...]]":
        """All rows that a query gives."""
        with AsDamage("read"):
            return self._connection().execute(query, values).fetchall()

    def one(self, query: str, values: "Values" = ()) -> "tuple[Any, ...] | None":
        """The first row that a query gives."""
        with AsDamage("read"):
            row: tuple[Any, ...] | None = self._connection().execute(query, values).fetchone()
            return row

    def column(self, query: str, values: "Values" = ()) -> "list[Any]":
        """The first column of all rows."""
        return [row[0] for row in self.rows(query, values)]

    def value(self, query: str, values: "Values" = ()) -> "Any":  # noqa: ANN401 - as SQLite gives it
        """The first column of the first row; None without a row."""
        row = self.one(query, values)
        return None if row is None else row[0]

    def has(self, query: str, values: "Values" = ()) -> bool:
        """Whether a query gives any row."""
        return self.one(query, values) is not None


class Group:
    """A group of named queries."""

    __slots__ = ("_reader",)

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def _here(self) -> str:
        """The condition that a row is of the line that is read."""
        return f"line = {self._reader.line}"


class Description(Value):
    """A row in words: `what` it is, when it was, and its label."""

    id: str
    what: str
    at: int
    label: str


_NEWEST = 1 << 62


class Chosen(Value):
    """Which turns are meant: from one number to another, of a session, live ones, among some."""

    session: "int | None" = None
    first: int = 0
    last: int = _NEWEST
    live: bool = False
    among: "tuple[int, ...] | None" = None

    @property
    def condition(self) -> str:
        """The same in SQL; its one value is `among`."""
        if self.among is None:
            parts = [f"?1 IS NULL AND t.number BETWEEN {self.first} AND {self.last}"]
        else:
            # Without the range, SQLite looks up these turns, and does not walk over all.
            parts = ["t.number IN (SELECT value FROM json_each(?1))"]
        parts += [f"t.session = {self.session}"] if self.session is not None else []
        parts += ["t.undone IS NULL AND t.covered IS NULL"] if self.live else []
        return " AND ".join(parts)

    @property
    def values(self) -> "Values":
        """What `condition` has a place for."""
        if self.among is None:
            return (None,)
        return (json_text.dumps([n for n in self.among if self.first <= n <= self.last]),)


class Table(Group):
    """The queries about one table whose rows have numbers and ids."""

    __slots__ = ()
    table = ""
    what, time, label = "''", "started", "''"
    """What a row is in words, when it was and what it says: columns, for `described`."""

    def count(self) -> int:
        """How many rows the line has."""
        query = f"SELECT count(*) FROM {self.table} WHERE {self._in_line}"
        return int(self._reader.value(query))

    @property
    def _in_line(self) -> str:
        """The same, found by another index than that of lines, which `+` hides."""
        return "+" + self._here

    def id_of(self, number: int) -> str:
        """The id of a row; empty if there is no such row."""
        return str(
            self._reader.value(f"SELECT id FROM {self.table} WHERE number = ?", (number,)) or ""
        )

    def number_of(self, id: str) -> "int | None":
        """The number of the row with an id."""
        number: int | None = self._reader.value(
            f"SELECT number FROM {self.table} WHERE id = ?", (id,)
        )
        return number

    def numbers_with_prefix(self, prefix: str, limit: int) -> "list[int]":
        """The rows of this line whose ids begin so."""
        upper = prefix + "{"  # the character after `z`
        these = f"id >= ? AND id < ? AND {self._in_line}"
        query = f"SELECT number FROM {self.table} WHERE {these} LIMIT ?"
        return self._reader.column(query, (prefix, upper, limit))

    def neighbours(self, id: str) -> "list[str]":
        """The ids before and after one, in their order."""
        below = f"SELECT max(id) FROM {self.table} WHERE id < ?"
        above = f"SELECT min(id) FROM {self.table} WHERE id > ?"
        found = [self._reader.value(query, (id,)) for query in (below, above)]
        return [str(other) for other in found if other is not None]

    def described(self, number: int) -> "Description | None":
        """What one needs to know of a row to choose it among others."""
        columns = f"id, {self.what}, {self.time}, {self.label}"
        row = self._reader.one(f"SELECT {columns} FROM {self.table} WHERE number = ?", (number,))
        return Description(*row) if row else None

    def last_by(self, moment: int) -> "int | None":
        """The newest row that is not younger than a moment, found by halving.

        Rows are in the order in which things happened, and so are their times, unless the clock
        was set; then one of the moments at which it showed this time is found.
        """
        newest = (
            f"SELECT number, {self.time} FROM {self.table} WHERE number <= ?"
            f" AND {self._in_line} ORDER BY number DESC LIMIT 1"
        )
        low, high = 0, int(self._reader.value(f"SELECT max(number) FROM {self.table}") or 0)
        while low < high:
            middle = (low + high + 1) // 2
            row = self._reader.one(newest, (middle,))
            if row is None:
                high = middle - 1
            elif int(row[1]) <= moment:
                low = middle
            else:
                high = int(row[0]) - 1
        number: int | None = self._reader.value(newest, (low,))
        return number


class AsDamage(Value):
    """Turns SQLite's complaints about a broken file into ours."""

    doing: str

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
                hint=Action("verify") if can_verify else Action("doctor"),
            ) from None


def _is_damage(problem: "sqlite.DatabaseError | UnicodeDecodeError") -> bool:
    # SQLITE_ERROR comes from a schema that no longer fits our statements, and a text that is no
    # UTF-8 from a flipped bit; SQLite's own message may quote it.
    if isinstance(problem, sqlite.OperationalError):
        code = getattr(problem, "sqlite_errorcode", 0)
        return code == sqlite.SQLITE_ERROR or "decode" in str(problem)
    return True


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
