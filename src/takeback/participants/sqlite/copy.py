"""Copies of SQLite databases: online into a file, and back into a live database.

SQLite writes a copy into its target in one transaction. A restore stops that before the last page,
holds the transaction as long as nobody has decided, and then lets it end or gives it up.
"""

import os
import time
from threading import Event, Thread

from takeback.disk import operations
from takeback.disk.sqlite import DatabaseError, connect
from takeback.errors import ParticipantError
from takeback.participants.sqlite.files import holders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from takeback.disk.sqlite import Connection

PIECE = 64 * 1024
"""A multiple of every page size: equal pages of two copies are in equal pieces."""

_HEADER = 100
_WAL = b"\x02\x02"
_ROLLBACK = b"\x01\x01"
_WAITS = (5, 6)
"""What SQLite says where another connection holds a lock: busy, locked."""
_PAUSE = 0.02


class Locked(Exception):
    """Another connection kept its lock for too long."""


class _GivenUp(Exception):
    """Ends a copy in the middle; SQLite rolls its transaction back."""


def opened(path: str, mode: str, seconds: float = 0.0) -> "Connection":
    """A connection to a database that is there, in mode `ro` or `rw`."""
    return connect(
        f"file:{_quoted(path)}?mode={mode}", uri=True, timeout=seconds, isolation_level=None
    )


def copy_out(path: str, copy: str, patience: float) -> None:
    """Copy a live database into a new file, as it is at one instant."""
    os.close(operations.create(copy))
    target = connect(copy, isolation_level=None)
    try:
        target.execute("PRAGMA synchronous = OFF")
        target.execute("PRAGMA journal_mode = OFF")
        has_log = os.path.exists(path + "-wal")
        try:
            # Who only reads leaves an empty log behind if there was none, and no log to repair.
            _copy(opened(path, "ro" if has_log else "rw", patience), target, patience)
        except DatabaseError:
            _copy(opened(path, "rw" if has_log else "ro", patience), target, patience)
    except Locked:
        raise locked(path) from None
    except DatabaseError as problem:
        raise ParticipantError(f"`{path}` cannot be read: {problem}") from problem
    finally:
        target.close()


def _copy(source: "Connection", target: "Connection", patience: float) -> None:
    until = time.monotonic() + patience

    def wait(status: int, _left: int, _pages: int) -> None:
        if status in _WAITS and time.monotonic() > until:
            raise Locked

    try:
        source.backup(target, pages=-1, progress=wait, sleep=_PAUSE)
    finally:
        source.close()


def pieces(copy: str) -> "Iterator[bytes]":
    """A copy piece by piece, the same for the same content.

    Three counters in its header, and how its transactions are logged, belong to the file.
    """
    with open(copy, "rb") as file:
        first = bytearray(file.read(PIECE))
        if len(first) >= _HEADER:
            first[18:20] = _ROLLBACK
            first[24:28] = first[92:96] = bytes(4)  # how often it was changed
            first[40:44] = (1).to_bytes(4, "big")  # how often its schema was
            first[96:100] = bytes(4)  # which SQLite wrote last
        yield bytes(first)
        while piece := file.read(PIECE):
            yield piece


def is_blank(copy: str) -> bool:
    """Whether nothing was ever made in the database: no schema, no numbers set."""
    with open(copy, "rb") as file:
        head = file.read(_HEADER + 8)
    if not head:
        return True
    size = int.from_bytes(head[16:18], "big")
    is_one_page = os.path.getsize(copy) == (65536 if size == 1 else size)
    return is_one_page and not any(head[60:64] + head[68:72] + head[103:105])


def uses_wal(copy: str) -> bool:
    """Whether the database that was copied logs its transactions ahead."""
    with open(copy, "rb") as file:
        return file.read(20)[18:] == _WAL


def write_copy(copy: str, content: "Iterable[bytes]", *, wal: bool) -> None:
    """Make a file of what was stored, from which a restore copies."""
    fd = operations.create(copy)
    try:
        for number, piece in enumerate(content):
            if number == 0 and wal:
                piece = piece[:18] + _WAL + piece[20:]
            operations.write(fd, piece)
    finally:
        os.close(fd)


class HeldRestore:
    """A copy that is in a live database but for its last page, in a transaction that waits.

    SQLite makes a copy in one call, so that call is in a thread of its own.
    """

    def __init__(self, copy: str, path: str, patience: float) -> None:
        self._copy = copy
        self._path = path
        self._patience = patience
        self._until = time.monotonic() + patience
        self._held = Event()
        self._decided = Event()
        self._is_committed = False
        self._problem: BaseException | None = None
        self._thread = Thread(target=self._work, name="takeback-sqlite", daemon=True)

    def hold(self) -> None:
        """Take the locks, write all but the last page, and wait."""
        self._thread.start()
        self._held.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._told(self._problem) from self._problem

    def commit(self) -> None:
        self._is_committed = True
        self._end()
        if self._problem is not None:
            raise self._told(self._problem) from self._problem

    def give_up(self) -> None:
        self._end()

    def _end(self) -> None:
        self._decided.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._restore()
        except BaseException as problem:  # noqa: BLE001 -- the thread that waits for us raises it
            if self._is_committed or not self._decided.is_set():
                self._problem = problem
        finally:
            self._held.set()

    def _restore(self) -> None:
        # The source is our own, and read once: without locks, and without a log beside it.
        source = connect(f"file:{_quoted(self._copy)}?immutable=1", uri=True)
        try:
            target = connect(self._path, timeout=0, isolation_level=None)
            try:
                # Nothing reaches the file before the commit: who looks sees who else wrote.
                target.execute("PRAGMA cache_spill = OFF")
                self._copy_back(source, target)
            finally:
                target.close()
        finally:
            source.close()

    def _copy_back(self, source: "Connection", target: "Connection") -> None:
        size = int(source.execute("PRAGMA page_count").fetchone()[0])
        if size < 2:
            # There is no page to wait before: the lock waits instead, and all is copied at once.
            self._repeat(lambda: operations.sql(target, "BEGIN EXCLUSIVE"))
            self._wait_for_decision()
            operations.sql(target, "ROLLBACK")
            source.backup(target)
            return

        def progress(status: int, left: int, _size: int) -> None:
            if status in _WAITS and time.monotonic() > self._until:
                raise Locked
            if status not in _WAITS and left:
                self._wait_for_decision()

        source.backup(target, pages=size - 1, progress=progress, sleep=_PAUSE)

    def _wait_for_decision(self) -> None:
        self._held.set()
        self._decided.wait()
        if not self._is_committed:
            raise _GivenUp
        self._until = time.monotonic() + self._patience

    def _repeat(self, work: "Callable[[], object]") -> None:
        while True:
            try:
                work()
                return
            except DatabaseError as problem:
                if "locked" not in str(problem):
                    raise
                if time.monotonic() > self._until:
                    raise Locked from problem
            time.sleep(_PAUSE)

    def _told(self, problem: BaseException) -> ParticipantError:
        if isinstance(problem, Locked):
            return locked(self._path)
        if "readonly" in str(problem) and os.access(self._path, os.W_OK):
            problem = Exception("its page size changed while it logs ahead; leave WAL mode first")
        return ParticipantError(f"`{self._path}` cannot be restored: {problem}")


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def locked(path: str) -> ParticipantError:
    """The error that names who holds the lock, as far as the system tells."""
    found = ", ".join(holders(path)) or "another connection"
    return ParticipantError(
        f"`{path}` is locked by {found}",
        hint="end its transaction, or go on without databases",
    )
