"""A SQLite database anywhere on the disk, as a participant.

Its token names a copy that SQLite made online. A restore goes into the live file in one
transaction, so whoever has it open goes on, and reads the restored rows.
"""

import os
import re

from takeback.disk import operations
from takeback.disk.sqlite import DatabaseError, connect
from takeback.errors import ParticipantError, UsageError
from takeback.model.beyond.participants import DATABASES, Difference
from takeback.participants.sqlite import copy as sqlite_copy
from takeback.participants.sqlite import files as sqlite_files
from takeback.participants.sqlite.copy import HeldRestore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from takeback.disk.sqlite import Connection
    from takeback.ports import Shelf

    T = TypeVar("T")

PATIENCE = 3.0
"""Seconds to wait for the locks of others."""

_NONE = "sqlite none"
_TOKEN = re.compile(r"sqlite (wal|rollback) (\S+)")
_UP_TO = 200_000
"""Rows of a table that are compared one by one."""


class SqliteDatabase:
    """One database file. Where there is none, the state is an empty database."""

    kind = DATABASES
    can_prepare = True
    each_step = True

    def __init__(self, name: str, path: "str | os.PathLike[str]", *, patience: float = PATIENCE):
        self.name = name
        self._path = os.path.abspath(path)
        self._patience = patience
        self._held: dict[str, HeldRestore] = {}
        self._shelf: Shelf | None = None

    @property
    def files(self) -> "tuple[str, ...]":
        """The files of the database; restores of files leave them to us."""
        return tuple(self._path + end for end in sqlite_files.ENDS)

    def attach(self, shelf: "Shelf", /) -> None:
        self._shelf = shelf

    def capture(self) -> str:
        shelf = self._attached()
        before = sqlite_files.stamps(self._path)
        if shelf.last and shelf.mark == before:
            return shelf.last
        token = self._stored(shelf)
        is_known = sqlite_files.is_settled(self._path)
        # Stamps that moved while we copied, or could hide the next write, are worth nothing.
        is_known = is_known and sqlite_files.stamps(self._path) == before
        shelf.note(before if is_known else "")
        return token

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        shelf = self._attached()
        if token == shelf.last and self._is_last():
            return ()

        def compare(now: str) -> "tuple[Difference, ...]":
            self._copy_out(now)
            return self._in_file(lambda then: self._compared(token, now, then))

        return self._in_file(compare)

    def prepare(self, restore: str, token: str, /) -> None:
        self.abort(restore)
        copy = self._new_file()
        try:
            self._write(token, copy)
            held = self._hold(token, copy)
        finally:
            operations.discard(copy)  # SQLite has it open
        operations.elsewhere("sqlite prepared", self._path)
        self._held[restore] = held

    def commit(self, restore: str, /) -> None:
        held = self._held.pop(restore, None)
        if held is not None:
            operations.elsewhere("sqlite commit", self._path)
            held.commit()
            operations.elsewhere("sqlite committed", self._path)

    def abort(self, restore: str, /) -> None:
        held = self._held.pop(restore, None)
        if held is not None:
            held.give_up()

    def _hold(self, token: str, copy: str) -> HeldRestore:
        """Write the copy into the live file, in a transaction that waits."""
        last = self._attached().last
        # After a crash the newest token is the one that was decided: whatever is there now goes.
        is_decided = not last or last == token
        before = sqlite_files.stamps(self._path, committed=True)
        if not (is_decided or self._is_last() or self._equals(last)):
            raise self._written()
        was_absent = self._make_file(token)
        held = HeldRestore(copy, self._path, self._patience)
        held.hold()
        now = sqlite_files.stamps(self._path, committed=True)
        if not (is_decided or was_absent or now == before):
            held.give_up()
            raise self._written()
        return held

    def _written(self) -> ParticipantError:
        return ParticipantError(
            f"`{self._path}` was written while its restore was prepared",
            hint="run the command again",
        )

    # -- content ---------------------------------------------------------------------------

    def _attached(self) -> "Shelf":
        if self._shelf is None:
            raise ParticipantError(f"`{self.name}` is not registered in a project")
        return self._shelf

    def _new_file(self) -> str:
        folder = os.fsdecode(self._attached().folder())
        return os.path.join(folder, f"sqlite-{os.urandom(8).hex()}")

    def _in_file(self, work: "Callable[[str], T]") -> "T":
        path = self._new_file()
        try:
            return work(path)
        finally:
            operations.discard(path)

    def _copy_out(self, copy: str) -> None:
        if sqlite_files.is_absent(self._path):
            os.close(operations.create(copy))
        else:
            sqlite_copy.copy_out(self._path, copy, self._patience)

    def _stored(self, shelf: "Shelf") -> str:
        def store(copy: str) -> str:
            self._copy_out(copy)
            if sqlite_copy.is_blank(copy):
                return _NONE
            how = "wal" if sqlite_copy.uses_wal(copy) else "rollback"
            return f"sqlite {how} {shelf.put(sqlite_copy.pieces(copy))}"

        return self._in_file(store)

    def _write(self, token: str, copy: str) -> None:
        """Make a file of what a token names; an empty one for no database."""
        found = _TOKEN.fullmatch(token)
        if found is None and token != _NONE:
            raise ParticipantError(f"`{self.name}`: `{token}` is no copy of a SQLite database")
        content = self._attached().read(found[2]) if found else ()
        # A live file keeps how it logs; the header of the copy tells a new file.
        sqlite_copy.write_copy(copy, content, wal=found is not None and found[1] == "wal")

    def _make_file(self, token: str) -> bool:
        """Make an empty database where the file is gone; whether that was so."""
        if os.path.exists(self._path) or token == _NONE:
            return False
        try:
            os.close(operations.create(self._path))
        except OSError as problem:
            raise ParticipantError(
                f"`{self._path}` cannot be made: {problem.strerror}"
            ) from problem
        return True

    def _is_last(self) -> bool:
        """Whether nothing was written since the newest capture."""
        shelf = self._attached()
        return bool(shelf.last) and shelf.mark == sqlite_files.stamps(self._path)

    def _equals(self, token: str) -> bool:
        """Whether the database is as it was at a capture, whoever wrote what since."""

        def compare(now: str) -> bool:
            self._copy_out(now)
            return self._in_file(lambda then: self._is_copy(token, now, then))

        return self._in_file(compare)

    def _is_copy(self, token: str, now: str, then: str) -> bool:
        self._write(token, then)
        if token == _NONE:
            return sqlite_copy.is_blank(now)
        return _are_equal(now, then)

    # -- comparison ------------------------------------------------------------------------

    def _compared(self, token: str, now: str, then: str) -> "tuple[Difference, ...]":
        if self._is_copy(token, now, then):
            return ()
        db = connect(now, isolation_level=None)
        try:
            operations.sql(db, "ATTACH ? AS then_", (then,))
            return tuple(_differences(db))
        except DatabaseError as problem:
            raise ParticipantError(f"`{self.name}` cannot be compared: {problem}") from problem
        finally:
            db.close()


def _are_equal(one: str, other: str) -> bool:
    pairs = zip(sqlite_copy.pieces(one), sqlite_copy.pieces(other), strict=False)
    return os.path.getsize(one) == os.path.getsize(other) and all(a == b for a, b in pairs)


def _differences(db: "Connection") -> "list[Difference]":
    made = (
        "SELECT name, type, sql FROM {}.sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    now, then = (
        {str(name): (kind, sql) for name, kind, sql in db.execute(made.format(schema))}
        for schema in ("main", "then_")
    )
    found = [Difference(name, 1, 0, 0) for name in sorted(then.keys() - now.keys())]
    found += [Difference(name, 0, 1, 0) for name in sorted(now.keys() - then.keys())]
    for name in sorted(now.keys() & then.keys()):
        if now[name] != then[name]:
            found.append(Difference(name, 0, 0, 1))
        elif now[name][0] == "table" and not str(now[name][1]).startswith("CREATE VIRTUAL"):
            found += _rows(db, name)
    return found or [Difference("pages")]


def _rows(db: "Connection", table: str) -> "list[Difference]":
    quoted = '"' + table.replace('"', '""') + '"'
    rows = [
        int(db.execute(f"SELECT count(*) FROM {schema}.{quoted}").fetchone()[0])  # noqa: S608
        for schema in ("main", "then_")
    ]
    if max(rows) > _UP_TO:
        return [Difference(table)] if rows[0] != rows[1] else []
    added, removed = (
        int(
            db.execute(
                f"SELECT count(*) FROM (SELECT * FROM {one}.{quoted}"  # noqa: S608
                f" EXCEPT SELECT * FROM {other}.{quoted})"
            ).fetchone()[0]
        )
        for one, other in (("then_", "main"), ("main", "then_"))
    )
    return [Difference(table, added, removed)] if added or removed else []


def configured(name: str, options: "Mapping[str, object]") -> SqliteDatabase:
    """The database that the settings name: `path`, from the top of the disk."""
    path = options.get("path")
    if not isinstance(path, str) or not os.path.isabs(path):
        raise UsageError(
            f"`participants.{name}` needs the whole path of its database",
            hint=f'set `path = "/…/{name}.db"`',
        )
    unknown = sorted(options.keys() - {"type", "path"})
    if unknown:
        raise UsageError(f"`participants.{name}` has the unknown setting `{unknown[0]}`")
    return SqliteDatabase(name, path)
