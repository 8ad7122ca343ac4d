"""The ledger: an append-only log of events and what follows from them, in SQLite.

A checkpoint exists if and only if its row is committed. Each event is chained to the one before
over a *commitment* to its payload, which can be forgotten later without breaking the chain.
"""

from _thread import get_ident
from functools import cached_property

from takeback.disk import operations, sqlite
from takeback.errors import DamagedStoreError, UnknownReferenceError, UsageError
from takeback.ledger import schema
from takeback.ledger.beyond.groups import Beyond
from takeback.ledger.beyond.tables import SOURCES
from takeback.ledger.database import AsDamage, Connections, Reader, connect, require_file
from takeback.ledger.log import events, projections
from takeback.ledger.log.events import (
    CHECKPOINT_TAKEN,
    LINE_STARTED,
    CheckpointRow,
    NewEvent,
    pack_facts,
    row_facts,
)
from takeback.ledger.schema import Tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Protocol

    from takeback.disk.sqlite import Connection
    from takeback.ledger.checkpoints import Checkpoints, Deltas, Losses, Names
    from takeback.ledger.journal import Journals, Plans
    from takeback.ledger.log.audit import Snapshot
    from takeback.ledger.log.events import Event
    from takeback.ledger.outside import GitLooks, Outside
    from takeback.ledger.retention import Care, Forgets
    from takeback.ledger.sessions import Sessions, Turns
    from takeback.ledger.steps import Steps
    from takeback.ledger.undo_stack import UndoStack
    from takeback.model.reasons import Reason
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import SealedPack

    class Finish(Protocol):
        """What is committed together with a checkpoint."""

        @property
        def journal(self) -> str:
            """The row of the journal that goes with it."""

        @property
        def late(self) -> bool:
            """Whether that row stays, for something that somebody still writes to."""

        def event(self, checkpoint: str, cursor: int) -> NewEvent:
            """The event, given the checkpoint's id and the number of its own event."""


_NEEDED = (
    "SELECT event, object FROM needs, (SELECT coalesce(max(event), 0) AS horizon FROM checkpoints"
    " WHERE number <= (SELECT max(number) FROM checkpoints WHERE gone NOT NULL))"
    f" WHERE event > ?1 AND (event > horizon OR event IN ({SOURCES}))"
)


class Ledger(Beyond):
    """The ledger of one project, as one of its lines sees it."""

    def __init__(
        self,
        path: bytes,
        *,
        writable: bool = True,
        line: str = schema.MAIN,
        connect: "Callable[[bytes], Connection]" = connect,
    ) -> None:
        self.path = path
        self._new_connection = connect
        self.line = line
        """The id of the line whose states, turns and restores are asked for."""
        self._account = ""
        self._appended: tuple[int, bytes] | None = None
        self.end: tuple[int, bytes] | None = None
        """Number and link of the event that this process wrote last, since it took the lock."""
        self.commit_sent = False
        """Whether the last checkpoint's COMMIT was sent: from then on it may exist."""
        self.writer = 0
        """The thread of this process that is inside a transaction that writes; 0 is none."""
        self._unwritable: OSError | None = None
        self._connections = Connections(path, self._connect)
        self._reader = Reader(lambda: self._db)
        try:
            require_file(path, create=writable)
            self._connections.use(self._open(writable))
        except sqlite.OperationalError as problem:
            self._connections.use(self._copy(problem))
        if line != schema.MAIN:
            self._reader.line = self._line_number(line)

    def _line_number(self, line: str) -> int:
        number = self._reader.value("SELECT number FROM lines WHERE id = ?", (line,))
        if number is None:
            raise UnknownReferenceError(f"the history has no line `{line}`")
        return int(number)

    def _connect(self) -> "Connection":
        from takeback.ledger import database

        return connect(self.path) if self._unwritable is None else database.load(self.path)

    def _open(self, writable: bool) -> "Connection":
        db = self._new_connection(self.path)
        try:
            with AsDamage("opened"):
                if writable:
                    schema.require_format(db)
                    operations.sql(db, "PRAGMA journal_mode = WAL")
                schema.prepare(db, writable)
        except BaseException:
            db.close()
            raise
        return db

    def _copy(self, problem: "sqlite.OperationalError") -> "Connection":
        from takeback.ledger import database

        if not database.is_unwritable(problem):
            raise problem
        self._unwritable = database.reason(self.path, problem)
        with AsDamage("opened"):
            db = database.load(self.path)
            if schema.require_format(db) != schema.VERSION:
                raise self._unwritable  # there is no ledger yet, and only a writer makes one
        return db

    @classmethod
    def in_memory(cls) -> "Ledger":
        """A ledger without a file, for as long as it is open."""
        from takeback.ledger import database

        return cls(database.memory_path())

    @classmethod
    def glance(cls, path: bytes, line: str) -> "Ledger":
        """A ledger for one short read, which makes no file beside it and waits for nobody."""
        from takeback.ledger import database

        return cls(path, writable=False, line=line, connect=database.glance)

    @property
    def is_made(self) -> bool:
        """Whether its tables are there: a reader does not make them."""
        return schema.require_format(self._db) != 0

    def require_writable(self) -> None:
        """An OSError that says why, if the disk still takes no writes and this is a copy to read.

        What was in the way may be gone: a process that lives long tries again each time.
        """
        if self._unwritable is None:
            return
        try:
            db = self._open(writable=True)
        except sqlite.OperationalError:
            raise self._unwritable from None
        self._unwritable = None
        # Other threads that read a copy get a connection of their own, too.
        self._connections = Connections(self.path, self._connect)
        self._connections.use(db)

    @property
    def _db(self) -> "Connection":
        """The connection of this thread."""
        return self._connections.mine()

    def close(self) -> None:
        """Close the database."""
        self._connections.close()

    def require_chain(self) -> None:
        """An error if the log is not as it was written."""
        from takeback.ledger.log import audit

        audit.refuse_broken_chain(self._db)

    # -- the groups of named queries; each is imported on its first use ----------------------

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        from takeback.ledger.checkpoints import Checkpoints

        return Checkpoints(self._reader)

    @cached_property
    def names(self) -> "Names":
        from takeback.ledger.checkpoints import Names

        return Names(self._reader)

    @cached_property
    def deltas(self) -> "Deltas":
        from takeback.ledger.checkpoints import Deltas

        return Deltas(self._reader)

    @cached_property
    def losses(self) -> "Losses":
        from takeback.ledger.checkpoints import Losses

        return Losses(self._reader)

    @cached_property
    def sessions(self) -> "Sessions":
        from takeback.ledger.sessions import Sessions

        return Sessions(self._reader)

    @cached_property
    def turns(self) -> "Turns":
        from takeback.ledger.sessions import Turns

        return Turns(self._reader)

    @cached_property
    def steps(self) -> "Steps":
        from takeback.ledger.steps import Steps

        return Steps(self._reader)

    @cached_property
    def stack(self) -> "UndoStack":
        from takeback.ledger.undo_stack import UndoStack

        return UndoStack(self._reader)

    @cached_property
    def outside(self) -> "Outside":
        from takeback.ledger.outside import Outside

        return Outside(self._reader)

    @cached_property
    def git(self) -> "GitLooks":
        from takeback.ledger.outside import GitLooks

        return GitLooks(self._reader)

    @cached_property
    def plans(self) -> "Plans":
        """The plans that were shown."""
        from takeback.ledger.journal import Plans

        return Plans(self._reader, self._transaction)

    @cached_property
    def journal(self) -> "Journals":
        """The rows of restores under way."""
        from takeback.ledger.journal import Journals

        return Journals(self._reader, self._transaction, self.outside)

    @cached_property
    def care(self) -> "Care":
        from takeback.ledger.retention import Care

        return Care(self._reader)

    @cached_property
    def forgets(self) -> "Forgets":
        from takeback.ledger.retention import Forgets

        return Forgets(self._reader, self._transaction)

    # -- reading ---------------------------------------------------------------------------

    def has_journal(self) -> bool:
        """Whether a restore of the line is under way, or was; each checkpoint asks."""
        query = "SELECT 1 FROM journal WHERE line = ? LIMIT 1"
        return self._reader.has(query, (self._reader.line,))

    def packs(self) -> "list[str]":
        """The names of all packs, the newest last."""
        rows = self._reader.rows("SELECT name FROM packs ORDER BY event, name")
        if not all(isinstance(name, str) for (name,) in rows):
            raise DamagedStoreError("a row of the ledger holds values of the wrong kind")
        return [name for (name,) in rows]

    def packs_now(self) -> "list[str]":
        """The same at this moment, whichever moment this connection reads as of."""
        live = Ledger(self.path, writable=False)
        try:
            return live.packs()
        finally:
            live.close()

    def pack_sizes(self) -> "dict[str, int]":
        """The bytes that each pack should have, by its name."""
        return dict(self._reader.rows("SELECT name, bytes FROM packs"))

    def made_with(self, pack: str) -> "tuple[str, ...]":
        """The checkpoint that a pack was written for."""
        query = "SELECT c.id FROM packs p JOIN checkpoints c ON c.event = p.event WHERE p.name = ?"
        return tuple(str(id) for (id,) in self._reader.rows(query, (pack,)))

    def foreign_packs(self, since: int = 0) -> "set[str]":
        """The packs that events of unknown kinds name, which only a newer program understands."""
        with AsDamage("read"):
            found = [events.packs_in(event.payload) for event in events.unknown(self._db, since)]
        return {name for packs in found for name, _, _ in packs}

    def objects_named(self, since: int = 0) -> "list[tuple[int, bytes]]":
        """(event, id) of the objects that events after `since` need, besides trees.

        An event that is older than all kept files needs them no longer. Only a newer program
        knows how long events of unknown kinds do.
        """
        found = {(int(event), bytes(oid)) for event, oid in self._reader.rows(_NEEDED, (since,))}
        with AsDamage("read"):
            for event in events.unknown(self._db, since):
                found |= {(event.seq, oid) for oid in events.objects_in(event.payload)}
        return sorted(found)

    def refuse_newer(self) -> None:
        """An error if a newer program changed the format since this was opened."""
        with AsDamage("read"):
            schema.require_format(self._db)

    def link_of(self, seq: int) -> "bytes | None":
        """The link of one event; None if there is no such event."""
        with AsDamage("read"):
            row = self._db.execute("SELECT chain FROM events WHERE seq = ?", (seq,)).fetchone()
        return events.as_link(row[0]) if row else None

    def events(self, after: int = 0) -> "Iterator[Event]":
        """All events, archived and live, after one."""
        from takeback.ledger.log import archive

        with AsDamage("read"):
            yield from archive.read_all(self._db, after)

    def event(self, seq: int) -> "Event | None":
        """The event with this number."""
        from takeback.ledger.log import archive

        with AsDamage("read"):
            live = next(events.read(self._db, "WHERE seq = ?", (seq,)), None)
            return live or archive.find(self._db, seq)

    def events_of(
        self, kind: str, *, after: int = 0, newest_first: bool = False
    ) -> "Iterator[Event]":
        """The events of one kind, after one."""
        from takeback.ledger.log import archive

        with AsDamage("read"):
            found = archive.read_kind(self._db, kind, after)
            yield from reversed(list(found)) if newest_first else found

    def detail(self, event: int) -> "dict[str, Any] | None":
        """What an event says at length; None if that is nothing, or deleted."""
        with AsDamage("read"):
            return events.detail(self._db, event)

    def requested(self, request: "str | None") -> "Event | None":
        """The event that was appended for a request, if it was."""
        if request is None:
            return None
        if not request or not request.isprintable():
            raise UsageError(
                "a request id must be printable text",
                hint="such as the agent's id of the call",
            )
        with AsDamage("read"):
            return events.with_request(self._db, request)

    @property
    def origin(self) -> str:
        """The random id of this store: (origin, number) names an event on all machines."""
        with AsDamage("read"):
            return events.origin(self._db)

    def last_event(self) -> int:
        """The number of the newest event; 0 if there is none."""
        return self._number("SELECT coalesce(max(seq), 0) FROM events")

    def last_event_at(self) -> "int | None":
        """When the newest event was written."""
        found = self._reader.value("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        return None if found is None else int(found)

    # -- writing ---------------------------------------------------------------------------

    def record(
        self, *facts: NewEvent, closing: str = "", late: bool = False, setting_aside: int = 0
    ) -> "list[int]":
        """Commit events, all or none; return their numbers.

        `closing` is the row of the journal that goes with them, or stays as `late`;
        `setting_aside` is the place of one that cannot be read.
        """
        with self._transaction():
            numbers = [self._append(fact) for fact in facts]
            if closing:
                self.journal.close(self._db, closing, late=late)
            if setting_aside:
                self.journal.set_aside(self._db, setting_aside)
        return numbers

    def add_checkpoint(
        self,
        row: CheckpointRow,
        packs: "list[SealedPack]",
        told: "Mapping[str, Json]",
        *,
        first: "list[NewEvent] | None" = None,
        parents: "tuple[int, ...]" = (),
        request: "str | None" = None,
        finish: "Finish | None" = None,
    ) -> CheckpointRow:
        """Commit a checkpoint with its packs, its deltas and its event. After this it exists.

        `first` are events that it needs. `finish` is the restore that made the tree what it is.
        """
        self.commit_sent = False
        self._begin()
        for fact in first or ():
            self._append(fact)
        place = {"line": self.line, "parent": self.checkpoints.id_of(row.parent or 0) or None}
        payload = {**row_facts(row), **place, "packs": pack_facts(packs), **told}
        taken = NewEvent(CHECKPOINT_TAKEN, payload, row.created, parents=parents, request=request)
        event = self._append(taken)
        number = self._number("SELECT max(number) FROM checkpoints")
        row = row.replace(event=event, number=number, line=self._reader.line)
        if finish is not None:
            self._append(finish.event(row.id, row.event))
            self.journal.close(self._db, finish.journal, late=finish.late)
        self.commit_sent = True
        self._commit()
        return row

    def add_line(self, id: str, parent: "str | None", at: int) -> None:
        """Begin a line, at a checkpoint of another one."""
        self.record(NewEvent(LINE_STARTED, {"line": id, "parent": parent}, at))

    def _transaction(self) -> "Transaction":
        """All of a `with` block, or nothing of it."""
        return Transaction(self)

    def _append(self, fact: NewEvent) -> int:
        event, link = events.append(self._db, fact, self._author())
        projections.apply(Tables(self._db), event)
        self._appended = (event.seq, link)
        return event.seq

    def _author(self) -> str:
        if not self._account:
            from takeback.disk import machine

            self._account = machine.account()
        return self._account

    def rebuild(self) -> None:
        """Make every table but the events again, from the events, if these are as written."""
        from takeback.ledger.log import audit

        with self._transaction():
            audit.refuse_broken_chain(self._db)
            projections.follow_anew(self._db)

    def redact(
        self,
        fact: NewEvent,
        said: "Mapping[int, Mapping[str, Json]]",
        details: "Mapping[int, Mapping[str, Json] | None]",
        forgetting: str,
    ) -> int:
        """Let events say something else from now on, and let all tables follow; one transaction.

        `fact` is the event that tells so; it lists the commitments to what they say now.
        """
        from takeback.ledger.log import audit

        with self._transaction() as db:
            self._appended = audit.redact(db, fact, said, details, self._author(), forgetting)
        return self._appended[0]

    def archive(self) -> int:
        """Move events that nothing can undo to a new segment of the archive; how many."""
        from takeback.ledger.log import archive

        with self._transaction() as db:
            return archive.add(db)

    def shrink(self) -> "str":
        """Leave nothing in the file but what the tables hold; who is in the way, if somebody is."""
        from takeback.ledger.log import audit

        return audit.shrink(self._db, self.path)

    def _begin_reading(self) -> None:
        operations.sql(self._db, "BEGIN")

    def _begin(self) -> None:
        self.require_writable()
        self.writer = get_ident()
        try:
            operations.sql(self._db, "BEGIN IMMEDIATE")
            # What a transaction appended that failed is not where the ledger ends.
            self._appended = self.end
            # A newer program may have changed the format since it was opened here.
            schema.require_format(self._db)
        except BaseException:
            self.abandon()
            raise

    def _commit(self) -> None:
        try:
            operations.sql(self._db, "COMMIT")
        finally:
            self.writer = 0
        self.end = self._appended

    def abandon(self) -> None:
        """Give up a transaction that failed on the way."""
        try:
            if self._db.in_transaction:
                operations.sql(self._db, "ROLLBACK")
        finally:
            if self.writer == get_ident():
                self.writer = 0

    def snapshot(self) -> "Snapshot":
        """The ledger as it is at this moment, on a connection of its own."""
        from takeback.ledger.log.audit import Snapshot

        return Snapshot(self.path, self.line)

    def check(self) -> "Iterator[Reason]":
        """What is wrong with the ledger itself."""
        from takeback.ledger.log import audit

        return audit.check(self._db)

    # -- small pieces ----------------------------------------------------------------------

    def _number(self, query: str) -> int:
        with AsDamage("read"):
            return int(self._db.execute(query).fetchone()[0])


class Transaction:
    """Commits what a `with` block did to the ledger, or none of it."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> "Connection":
        self._ledger._begin()
        return self._ledger._db

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            try:
                self._ledger._commit()
            except BaseException:
                self._ledger.abandon()
                raise
        else:
            self._ledger.abandon()
