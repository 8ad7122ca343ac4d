"""A PostgreSQL database for development, as a participant.

Its token names what pg_dump wrote. A restore loads that in one transaction, which commits when the
files have moved. Nobody is disconnected: other sessions go on and read the restored rows.
"""

import os
from contextlib import contextmanager

from takeback.disk import operations
from takeback.errors import ParticipantError, UsageError
from takeback.model.beyond.participants import DATABASES, Difference
from takeback.participants.postgres import dump as postgres_dump
from takeback.participants.postgres import wipe as postgres_wipe
from takeback.participants.postgres.load import LoadedRestore
from takeback.participants.postgres.server import PATIENCE, SECONDS, Server, glance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from takeback.participants.postgres.dump import Dump
    from takeback.ports import Shelf

_PREFIX = "postgres "
_SETTINGS = frozenset(("type", "url", "variable", "remote", "pg_dump", "seconds"))


class PostgresDatabase:
    """One database of a server that only its developer uses."""

    kind = DATABASES
    can_prepare = True
    each_step = False

    def __init__(
        self,
        name: str,
        url: str,
        *,
        variable: str = "",
        remote: bool = False,
        pg_dump: str = "pg_dump",
        seconds: float = SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        self.name = name
        self._server = Server(url, variable=variable, remote=remote, pg_dump=pg_dump)
        self._seconds = seconds
        self._patience = patience
        self._held: dict[str, LoadedRestore] = {}
        self._shelf: Shelf | None = None
        self._seen = ("", "")
        """The signs under which this process saw a token stand, and the token."""

    def require_usable(self) -> None:
        """Refuse an address on another machine, or one that cannot be read; connects nowhere."""
        self._server.require_near()

    def attach(self, shelf: "Shelf", /) -> None:
        self._shelf = shelf

    def capture(self) -> str:
        shelf = self._attached()
        # Signs from before the dump: what is written meanwhile counts as written since.
        signs = self._server.signs()
        last = shelf.last
        if last and (self._seen == (signs, last) or shelf.mark == signs):
            self._seen = signs, last
            return last
        token = self._stored(shelf)
        shelf.note(signs)
        return token

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        shelf = self._attached()
        if token == shelf.last and self._is_last():
            return ()
        now, then = b"".join(self._present()), b"".join(self._read(token))
        if now == then:
            return ()
        return tuple(_differences(postgres_dump.parsed(now), postgres_dump.parsed(then)))

    def prepare(self, restore: str, token: str, /) -> None:
        self.abort(restore)
        target = postgres_dump.parsed(b"".join(self._read(token)))
        last = self._attached().last
        # After a crash the newest token is the one that was decided: whatever is there now goes.
        is_decided = not last or last == token
        present = None if is_decided else postgres_dump.parsed(b"".join(self._read(last)))
        held = LoadedRestore(self._server, self._patience)
        held.load(target, present, lambda: None if is_decided else self._require(last))
        operations.elsewhere("postgres prepared", self.name)
        self._held[restore] = held

    def commit(self, restore: str, /) -> None:
        held = self._held.pop(restore, None)
        if held is not None:
            operations.elsewhere("postgres commit", self.name)
            held.commit()
            operations.elsewhere("postgres committed", self.name)

    def abort(self, restore: str, /) -> None:
        held = self._held.pop(restore, None)
        if held is not None:
            held.give_up()

    # -- content ---------------------------------------------------------------------------

    def _attached(self) -> "Shelf":
        if self._shelf is None:
            raise ParticipantError(f"`{self.name}` is not registered in a project")
        return self._shelf

    def _stored(self, shelf: "Shelf") -> str:
        with self._dumped() as (head, path), open(path, "rb") as file:
            return _PREFIX + shelf.put(postgres_dump.pieces(head, file))

    @contextmanager
    def _dumped(self) -> "Iterator[tuple[dict[str, object], str]]":
        self._server.require_small()
        folder = os.fsdecode(self._attached().folder())
        path = os.path.join(folder, f"postgres-{os.urandom(8).hex()}")
        session = self._server.connect(autocommit=True)
        try:
            head = postgres_wipe.head(session)
        finally:
            session.close()
        try:
            self._server.dump(path, seconds=self._seconds)
            yield head, path
        finally:
            operations.discard(path)

    def _is_last(self) -> bool:
        """Whether nothing was written since the newest capture."""
        shelf = self._attached()
        return bool(shelf.last) and shelf.mark == self._server.signs()

    def _present(self) -> "Iterable[bytes]":
        """The content of the present, as the store holds it or would hold it."""
        if self._is_last():
            yield from self._read(self._attached().last)
            return
        with self._dumped() as (head, path), open(path, "rb") as file:
            yield from postgres_dump.pieces(head, file)

    def _require(self, token: str) -> None:
        """Refuse to restore over what was written behind the capture of this restore."""
        if not self._is_last() and b"".join(self._present()) != b"".join(self._read(token)):
            raise ParticipantError(
                f"the database of `{self.name}` was written while its restore was prepared",
                hint="run the command again",
            )

    def _read(self, token: str) -> "Iterable[bytes]":
        if not token.startswith(_PREFIX):
            raise ParticipantError(f"`{self.name}`: `{token}` is no dump of a PostgreSQL database")
        return self._attached().read(token.removeprefix(_PREFIX))


def _differences(now: "Dump", then: "Dump") -> "list[Difference]":
    found = []
    old, new = now.rows, then.rows
    for table in sorted(old.keys() | new.keys()):
        here = old[table].data if table in old else b""
        there = new[table].data if table in new else b""
        name = table.decode(errors="replace")
        if here != there:
            lines, wanted = set(here.splitlines()), set(there.splitlines())
            found.append(Difference(name, len(wanted - lines), len(lines - wanted)))
        elif (table in old) != (table in new):
            found.append(Difference(name, int(table in new), int(table in old)))
    if now.text != then.text or now.head != then.head:
        found.append(Difference("schema"))
    return found or [Difference("order of rows")]


def configured(name: str, options: "Mapping[str, object]") -> PostgresDatabase:
    """The database that the settings name by `url`, which holds no password."""
    unknown = sorted(options.keys() - _SETTINGS)
    if unknown:
        raise UsageError(f"`participants.{name}` has the unknown setting `{unknown[0]}`")
    url = options.get("url")
    if not isinstance(url, str) or not url:
        raise UsageError(
            f"`participants.{name}` needs the address of its database",
            hint='set `url = "postgresql:///name"`, or `url = "service=name"`',
        )
    remote = options.get("remote", False)
    seconds = options.get("seconds", SECONDS)
    if not isinstance(remote, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise UsageError(f"`participants.{name}`: `remote` is true or false, `seconds` a number")
    glance(url, remote=remote)
    return PostgresDatabase(
        name,
        url,
        variable=str(options.get("variable", "")),
        remote=remote,
        pg_dump=str(options.get("pg_dump", "pg_dump")),
        seconds=float(seconds),
    )
