"""The PostgreSQL server of a participant: connections, whether anything was written, pg_dump.

The connection that stays open is to the database `postgres` of the same server, where the account
may use it: nobody who wants to drop or copy the participant's own database finds us connected.
"""

import ipaddress
import os
import re

from takeback.disk import operations, programs
from takeback.errors import ParticipantError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from psycopg import Connection as Session

    Warm = Session[tuple[Any, ...]]
    T = TypeVar("T")

APPLICATION = "takeback"
PATIENCE = 3.0
"""Seconds to wait for the locks of others."""
SECONDS = 5.0
"""How long a dump may take."""
LARGEST = 200 * 1024 * 1024
"""Bytes of a database that is dumped."""

_HOSTS = re.compile(r"://(?:[^/@]*@)?([^/?]*)|\bhost(?:addr)?\s*=\s*([^\s&]+)")
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|\bpassword\s*=")
_MAINTENANCE = "postgres"
_CONNECT_SECONDS = 5
_SIGNS = (
    b"SELECT pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_insert_lsn(),"
    b" pg_postmaster_start_time()"
)
_SIGNS_NAME = b"takeback signs"
_warm: "dict[tuple[int, str], Warm]" = {}
"""The connections that stay open, by process and by what they are to."""


def psycopg() -> "Any":  # noqa: ANN401 -- a module that need not be installed
    """The driver, which is loaded here only: that takes as long as three checkpoints."""
    try:
        import psycopg as driver
    except ImportError as problem:
        raise ParticipantError(
            "PostgreSQL needs the extra `postgres`",
            hint="pip install 'takeback[postgres]'",
        ) from problem
    return driver


class Server:
    """How to reach one database, and what may be asked of it."""

    def __init__(
        self,
        url: str,
        *,
        variable: str = "",
        remote: bool = False,
        pg_dump: str = "pg_dump",
    ) -> None:
        self._url = url
        self._variable = variable
        self._remote = remote
        self._pg_dump = pg_dump
        self._options: dict[str, str] | None = None
        self._is_new_enough = False
        self._stays: str | None = None

    # -- connections -----------------------------------------------------------------------

    def connect(self, *, autocommit: bool, database: "str | None" = None) -> "Warm":
        """A new connection, to this database or to another of the server."""
        driver = psycopg()
        options = self._given()
        secret = self._secret()
        try:
            session: Warm = driver.connect(
                **{**options, "dbname": database} if database else options,
                **{"password": secret} if secret is not None else {},
                autocommit=autocommit,
            )
        except driver.Error as problem:
            raise ParticipantError(f"no connection to PostgreSQL: {_line(problem)}") from problem
        if not self._remote and not is_near(session.info.host, session.info.hostaddr):
            session.close()
            raise _far(session.info.host)
        return session

    def _secret(self) -> "str | None":
        """The password, from the one variable that the settings name."""
        if not self._variable:
            return None
        secret = os.environ.get(self._variable)
        if secret is None:
            raise ParticipantError(f"the variable `{self._variable}` with the password is not set")
        return secret

    def require_near(self) -> None:
        """Refuse an address on another machine that nobody allowed."""
        require_near(self._url, remote=self._remote)

    def _given(self) -> "dict[str, str]":
        if self._options is None:
            self.require_near()
            self._options = {
                **psycopg().conninfo.conninfo_to_dict(self._url),
                "application_name": APPLICATION,
                "connect_timeout": str(_CONNECT_SECONDS),
            }
        return self._options

    def ask(self, query: bytes, *values: object) -> "list[tuple[Any, ...]]":
        """What the server says, on a connection that stays open as long as this process."""
        return self._ask(lambda session: session.execute(query, values, prepare=True).fetchall())

    def _ask(self, read: "Callable[[Warm], T]") -> "T":
        driver = psycopg()
        for is_last in (False, True):
            session = self._warm_session()
            try:
                return read(session)
            except driver.OperationalError as problem:
                self.forget()
                if is_last:
                    raise ParticipantError(f"PostgreSQL failed: {_line(problem)}") from problem
        raise AssertionError

    def _key(self) -> "tuple[int, str]":
        return os.getpid(), f"{self._url} {self._variable}"

    def _warm_session(self) -> "Warm":
        session = _warm.get(self._key())
        if session is None or session.closed:
            try:
                session = self.connect(autocommit=True, database=_MAINTENANCE)
            except ParticipantError:
                session = self.connect(autocommit=True)
            # Each boundary asks this, so what a cursor does for it counts.
            session.pgconn.prepare(_SIGNS_NAME, _SIGNS)
            _warm[self._key()] = session
        return session

    def forget(self) -> None:
        """Close the connection that stays open."""
        session = _warm.pop(self._key(), None)
        if session is not None:
            session.close()

    # -- what may be asked -----------------------------------------------------------------

    @property
    def database(self) -> str:
        """The name of the database, as libpq finds it."""
        if self._stays is None:
            options = self._given()
            if options.get("dbname") and not options.get("service"):
                self._stays = options["dbname"]
            else:
                session = self.connect(autocommit=True)
                self._stays = session.info.dbname
                session.close()
        return self._stays

    def signs(self) -> str:
        """Text that is the same only if no transaction of the whole server wrote meanwhile.

        Two signs have to agree: the next transaction that may be seen, and the end of the log. A
        restart counts as a write: another server may be at the same address.
        """
        return self._ask(_signs)

    def blockers(self, session: "Warm", pid: int) -> "list[str]":
        """The sessions that one waits for: process, program, client, state; asked in `session`."""
        query = (
            b"SELECT pid, application_name, coalesce(host(client_addr), 'local'), state, usename"
            b" FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids(%s))"
        )
        return [
            f"process {other} (`{name or 'unnamed'}`, {user} from {client}, {state})"
            for other, name, client, state, user in session.execute(query, (pid,)).fetchall()
        ]

    def require_small(self) -> None:
        """Refuse a database that is too large to be dumped at each boundary."""
        query = b"SELECT pg_database_size(oid) FROM pg_database WHERE datname = %s"
        rows = self.ask(query, self.database)
        if not rows:
            raise ParticipantError(
                f"the database `{self.database}` is not there",
                hint=f"createdb {self.database}",
            )
        ((size,),) = rows
        if size > LARGEST:
            raise ParticipantError(
                f"the database `{self.database}` has {size >> 20} MB, and is left out above"
                f" {LARGEST >> 20} MB"
            )

    # -- pg_dump ---------------------------------------------------------------------------

    def dump(self, path: str, *, seconds: float) -> None:
        """Write a consistent dump of the database into a new file."""
        self._require_new_enough()
        os.close(operations.create(path))
        options = {**self._given(), "dbname": self.database}
        secret = self._secret()
        # Not on the disk, where it would stay after a crash, and not in the list of processes.
        environment = {**os.environ, "PGPASSWORD": secret} if secret is not None else None
        words = [
            self._pg_dump,
            "--format=plain",
            "--no-password",
            "--no-large-objects" if self._takes_long_name else "--no-blobs",
            "--no-subscriptions",
            f"--lock-wait-timeout={int(PATIENCE * 1000)}",
            f"--file={path}",
            f"--dbname={psycopg().conninfo.make_conninfo(**options)}",
        ]
        try:
            self._run(words, seconds, environment)
        except TimeoutError as problem:
            raise ParticipantError(
                f"the dump of `{self.database}` took longer than {seconds:g} s, and is left out"
            ) from problem

    _takes_long_name = True

    def _require_new_enough(self) -> None:
        if self._is_new_enough:
            return
        said = self._run([self._pg_dump, "--version"], 10.0)
        found = re.search(rb"(\d+)(?:\.|devel|beta|rc|$|\s)", said)
        ours = int(found[1]) if found else 0
        (theirs,) = self.ask(b"SELECT current_setting('server_version_num')::int / 10000")[0]
        if ours < theirs:
            raise ParticipantError(
                f"`{self._pg_dump}` is of version {ours}, and PostgreSQL {theirs} needs pg_dump"
                f" {theirs} or newer",
                hint="install it, and name its whole path in the setting `pg_dump`",
            )
        self._takes_long_name = ours >= 16
        self._is_new_enough = True

    def _run(
        self, words: "list[str]", seconds: float, environment: "dict[str, str] | None" = None
    ) -> bytes:
        try:
            ended = programs.run_limited(
                words, b"", cwd="/", seconds=seconds, environment=environment, capture=True
            )
        except OSError as problem:
            if isinstance(problem, TimeoutError):
                raise
            raise ParticipantError(
                f"`{self._pg_dump}` cannot be run: {problem.strerror}",
                hint="install PostgreSQL's client, or name its whole path in `pg_dump`",
            ) from problem
        if ended.code:
            told = ended.errors.decode(errors="replace").strip().splitlines()
            raise ParticipantError(f"pg_dump failed: {' '.join(told) or ended.code}")
        return ended.output


def _signs(session: "Warm") -> str:
    result = session.pgconn.exec_prepared(_SIGNS_NAME, None)
    values = [result.get_value(0, column) for column in range(result.nfields)]
    if None in values or not values:
        raise psycopg().OperationalError(result.error_message.decode(errors="replace"))
    return b" ".join(value or b"" for value in values).decode()


def require_near(url: str, *, remote: bool) -> None:
    """Refuse an address with a password, or one on another machine that nobody allowed."""
    driver = psycopg()
    try:
        options = driver.conninfo.conninfo_to_dict(url)
    except driver.Error as problem:
        # What it quotes may be a password.
        said = _line(problem).partition('"')[0].strip(" :")
        raise UsageError(f"the address of the database cannot be read: {said}") from None
    if options.get("password"):
        raise _secret()
    if remote:
        return
    for key in ("host", "hostaddr"):
        for host in str(options.get(key) or "").split(","):
            if host and not is_near(host, ""):
                raise _far(host)


def glance(url: str, *, remote: bool) -> None:
    """Refuse what an address shows without the driver; that reads it all when it connects."""
    if _PASSWORD.search(url):
        raise _secret()
    if remote:
        return
    for match in _HOSTS.finditer(url):
        for host in (match[1] or match[2] or "").split(","):
            name = host if host.startswith("[") else host.partition(":")[0]
            if name and not is_near(name.strip("[]").replace("%2F", "/"), ""):
                raise _far(name)


def _secret() -> UsageError:
    return UsageError(
        "the address holds a password, which Takeback does not store",
        hint="use a service, `passfile=…` in the address, or the setting `variable`",
    )


def is_near(host: str, address: str) -> bool:
    """Whether a host is this machine: a socket, or its loopback."""
    if not address and (not host or host.startswith(("/", "@")) or host == "localhost"):
        return True
    try:
        return ipaddress.ip_address(address or host).is_loopback
    except ValueError:
        return False


def _far(host: str) -> UsageError:
    return UsageError(
        f"the database is on another machine, `{host}`",
        hint="allow that with the setting `remote`, if nobody else works with it",
    )


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
