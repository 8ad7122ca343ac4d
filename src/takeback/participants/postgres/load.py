"""A restore of a PostgreSQL database that is loaded and waits: one transaction, not yet committed.

Where only rows differ, the tables stay: rows are loaded into those that differ, and into those that
refer to them. Else all is dropped and made again. Nobody is disconnected either way.
"""

from threading import Event, Thread

from takeback.disk import operations
from takeback.errors import ParticipantError
from takeback.model.value import Value
from takeback.participants.postgres import wipe as postgres_wipe
from takeback.participants.postgres.dump import Dump, Rows
from takeback.participants.postgres.server import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from takeback.participants.postgres.server import Server, Warm

_LOOK_EACH = 0.1
_SETTINGS = (
    b"SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;"
    b" SET synchronous_commit = on; SET client_min_messages = warning; SET lock_timeout = %d"
)
_IS_SUPERUSER = b"SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
_TOGETHER = b"""
WITH RECURSIVE reached AS (
  SELECT unnest(%s::regclass[])::oid AS oid
  UNION
  SELECT next FROM reached, LATERAL (
    SELECT conrelid AS next FROM pg_constraint WHERE contype = 'f' AND confrelid = reached.oid
    UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = reached.oid
    UNION SELECT inhparent FROM pg_inherits WHERE inhrelid = reached.oid) n)
SELECT format('%%I.%%I', nspname, relname) FROM reached JOIN pg_class c USING (oid)
JOIN pg_namespace n ON n.oid = relnamespace ORDER BY 1
"""
"""The tables that can only be emptied together: those that refer to one, and parts of one."""


class RowsOnly(Value):
    """What differs between two dumps of the same tables: rows, and where sequences stand."""

    tables: "tuple[bytes, ...]"
    sequences: "dict[bytes, tuple[bytes, bytes]]"


class LoadedRestore:
    """A transaction that holds a restored database, and the locks that it needs."""

    def __init__(self, server: "Server", patience: float) -> None:
        self._server = server
        self._patience = patience
        self._session = server.connect(autocommit=False)

    def load(self, target: Dump, present: "Dump | None", check: "Callable[[], None]") -> None:
        """Do everything that can fail. `check` is called when nobody else can write any more."""
        driver = psycopg()
        with _Watch(self._server, self._session.info.backend_pid, self._patience) as watch:
            try:
                self._load(target, present, check)
            except (driver.errors.LockNotAvailable, driver.errors.DeadlockDetected) as problem:
                self.give_up()
                raise ParticipantError(
                    f"the database is locked by {watch.told()}",
                    hint="end its transaction, or go on without databases",
                ) from problem
            except driver.Error as problem:
                self.give_up()
                told = " ".join(str(problem).split())
                raise ParticipantError(f"the database cannot be restored: {told}") from problem
            except BaseException:
                self.give_up()
                raise

    def commit(self) -> None:
        driver = psycopg()
        try:
            self._session.commit()
        except driver.Error as problem:
            told = " ".join(str(problem).split())
            raise ParticipantError(f"the restored database was not committed: {told}") from problem
        finally:
            self._session.close()

    def give_up(self) -> None:
        # The server rolls back what nobody committed.
        self._session.close()

    def _load(self, target: Dump, present: "Dump | None", check: "Callable[[], None]") -> None:
        session = self._session
        session.execute(_SETTINGS % int(self._patience * 1000))
        (transaction,) = _one(session, b"SELECT pg_current_xact_id()::text")
        differing = rows_only(target, present) if present is not None else None
        if differing is not None and self._may_skip_triggers():
            self._load_rows(target, differing, check)
        else:
            self._load_all(target, check)
        session.execute(b"SET CONSTRAINTS ALL IMMEDIATE")
        if _one(session, b"SELECT pg_current_xact_id()::text") != (transaction,):
            raise ParticipantError("the dump ended our transaction")

    def _may_skip_triggers(self) -> bool:
        return bool(_one(self._session, _IS_SUPERUSER)[0])

    # -- all of it -------------------------------------------------------------------------

    def _load_all(self, target: Dump, check: "Callable[[], None]") -> None:
        session = self._session
        self._lock(postgres_wipe.tables(session), check)
        drops = postgres_wipe.statements(session, target.head)
        if drops:
            session.execute(";\n".join(drops).encode())
        for part in target.parts:
            if isinstance(part, Rows):
                self._copy(part)
            elif part.strip():
                session.execute(part)
        lacking = postgres_wipe.missing(session, target.head)
        if lacking:
            raise ParticipantError(f"the extension `{lacking[0]}` cannot be made again as it was")

    # -- rows only -------------------------------------------------------------------------

    def _load_rows(self, target: Dump, differing: RowsOnly, check: "Callable[[], None]") -> None:
        session = self._session
        names = [name.decode() for name in differing.tables]
        rows = session.execute(_TOGETHER, (names,)).fetchall()
        together = [str(name) for (name,) in rows]
        self._lock(together, check)
        session.execute(b"SET session_replication_role = replica")
        if together:
            session.execute(b"TRUNCATE " + ", ".join(together).encode())
        wanted = self._same_names(target.rows, together)
        for part in target.parts:
            if isinstance(part, Rows) and part.table in wanted:
                self._copy(part)
        for name, (value, is_given) in differing.sequences.items():
            # A sequence that begins anew is a new one until the commit; else others would see it.
            session.execute(b"SELECT 1; ALTER SEQUENCE %s RESTART" % _unquoted(name))
            session.execute(b"SELECT pg_catalog.setval(%s, %s, %s)" % (name, value, is_given))
        for refresh in target.refreshes if together else ():
            session.execute(refresh)

    def _same_names(self, rows: "Iterable[bytes]", together: "list[str]") -> "set[bytes]":
        """The tables of a dump that are among others, however each of both is quoted."""
        tables = list(rows)
        query = b"SELECT %s::regclass[]::oid[], %s::regclass[]::oid[]"
        ours, theirs = _one(self._session, query, [each.decode() for each in tables], together)
        return {table for table, oid in zip(tables, ours, strict=True) if oid in set(theirs)}

    # -- both ------------------------------------------------------------------------------

    def _lock(self, tables: "list[str]", check: "Callable[[], None]") -> None:
        """Lock tables against writers, check, and then against all.

        The second lock is written to the log of the server, and would look like a write.
        """
        names = ", ".join(tables).encode()
        if tables:
            self._session.execute(b"LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE" % names)
        check()
        if tables:
            self._session.execute(b"LOCK TABLE %s IN ACCESS EXCLUSIVE MODE" % names)

    def _copy(self, rows: Rows) -> None:
        operations.elsewhere("postgres rows", rows.table)
        with self._session.cursor() as cursor, cursor.copy(rows.copy) as copy:
            copy.write(rows.data)


def rows_only(target: Dump, present: Dump) -> "RowsOnly | None":
    """What differs where tables, types and all else are the same; None where they are not."""
    if target.frame != present.frame or any(b"\nCREATE RULE " in part for part in target.text):
        return None
    old, new = present.rows, target.rows
    tables = tuple(name for name in new if new[name].data != old[name].data)
    stands = {
        name: stand for name, stand in target.sequences.items() if present.sequences[name] != stand
    }
    return RowsOnly(tables, stands)


def _unquoted(name: bytes) -> bytes:
    """The name of a sequence, which stands in a string."""
    return name[1:-1].replace(b"''", b"'")


def _one(session: "Warm", query: bytes, *values: object) -> "tuple[Any, ...]":
    row = session.execute(query, values or None).fetchone()
    assert row is not None
    return row


class _Watch:
    """Looks from outside whom a session waits for: when its wait has failed, nobody knows."""

    def __init__(self, server: "Server", pid: int, patience: float) -> None:
        self._server = server
        self._pid = pid
        self._over = Event()
        self._seen: list[str] = []
        self._first_look = min(_LOOK_EACH, patience / 4)
        self._thread = Thread(target=self._look, name="takeback-postgres", daemon=True)

    def told(self) -> str:
        return ", ".join(self._seen) or "another session"

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        if self._over.wait(self._first_look):
            return
        try:
            # The connection that stays open is the main thread's: two threads cannot share it.
            with self._server.connect(autocommit=True) as session:
                while not self._over.is_set():
                    self._seen = self._server.blockers(session, self._pid) or self._seen
                    self._over.wait(self._first_look)
        except (ParticipantError, psycopg().Error):
            return  # nobody can be named then
