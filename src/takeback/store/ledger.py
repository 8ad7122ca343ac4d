"""The ledger: an append-only log of events and what follows from them, in SQLite.

Its commit is the commit point of everything: a checkpoint exists when, and only when, its row
is committed. Each event is chained to the one before over a *commitment* to its payload, so
that a payload can be forgotten later without breaking the chain.
"""

import os
import stat

from takeback.errors import DamagedStoreError, UnsafeStoreError
from takeback.model import jsontext
from takeback.model.hashing import short_sha256
from takeback.store import fsops, schema, sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from takeback.model.jsontext import Json
    from takeback.store.packwrite import SealedPack

NO_CHAIN = bytes(32)
CHECKPOINT_TAKEN = "CheckpointTaken"
CHECKPOINT_NAMED = "CheckpointNamed"

_SELECT = (
    "SELECT number, id, event, tree, root, pack, view, keep, created, label, entries, changed"
    " FROM checkpoints "
)
_INSERT = "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class CheckpointRow:
    """One committed checkpoint as the ledger holds it."""

    __slots__ = (
        "changed",
        "created",
        "entries",
        "event",
        "id",
        "keep",
        "label",
        "number",
        "pack",
        "root",
        "tree",
        "view",
    )

    def __init__(
        self,
        number: int,
        id: str,
        event: int,
        tree: bytes,
        root: bytes,
        pack: int,
        view: bytes,
        keep: bytes,
        created: int,
        label: str,
        entries: int,
        changed: int,
    ) -> None:
        self.number = number
        self.id = id
        self.event = event
        self.tree = tree
        self.root = root
        self.pack = pack
        self.view = view
        self.keep = keep
        self.created = created
        self.label = label
        self.entries = entries
        self.changed = changed

    def values(self) -> "tuple[bytes | str | int, ...]":
        """What the row holds, in the order of the table's columns."""
        place = (self.number, self.id, self.event, self.tree, self.root, self.pack)
        shown = (self.view, self.keep, self.created, self.label)
        return *place, *shown, self.entries, self.changed


class Ledger:
    """The ledger of one project."""

    def __init__(self, path: bytes, *, writable: bool = True) -> None:
        self.path = path
        self._writable = writable
        _require_file(path, create=writable)
        self._db = _connect(path)
        self._appended: tuple[int, bytes] | None = None
        self.end: tuple[int, bytes] | None = None
        """Number and link of the event that this process wrote last."""
        self.commit_sent = False
        """Whether the last checkpoint's COMMIT was sent: from then on it may exist."""
        try:
            with _AsDamage("opened"):
                if writable:
                    fsops.sql(self._db, "PRAGMA journal_mode = WAL")
                schema.prepare(self._db, writable)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # -- reading ---------------------------------------------------------------------------

    def newest(self, back: int = 0) -> "CheckpointRow | None":
        """The newest checkpoint, or the one `back` steps before it."""
        where = "ORDER BY number DESC LIMIT 1 OFFSET ?"
        return next(self._checkpoints(where, (back,)), None)

    def with_prefix(self, prefix: str) -> "list[CheckpointRow]":
        """The checkpoints whose id begins with `prefix`."""
        upper = prefix + "{"  # the character after `z`
        return list(self._checkpoints("WHERE id >= ? AND id < ? LIMIT 20", (prefix, upper)))

    def checkpoints(self) -> "Iterator[CheckpointRow]":
        """All checkpoints, newest first."""
        return self._checkpoints("ORDER BY number DESC", ())

    def count(self) -> int:
        """How many checkpoints there are."""
        return self._number("SELECT count(*) FROM checkpoints")

    def packs(self) -> "dict[int, str]":
        """The name of each pack by its number."""
        with _AsDamage("read"):
            return dict(self._db.execute("SELECT number, name FROM packs"))

    def pack_name(self, number: int) -> "str | None":
        """The name of one pack."""
        with _AsDamage("read"):
            row = self._db.execute("SELECT name FROM packs WHERE number = ?", (number,)).fetchone()
        return row[0] if row else None

    def made_with(self, number: int) -> "tuple[str, ...]":
        """The checkpoint that a pack was written for."""
        import json

        with _AsDamage("read"):
            query = "SELECT payload FROM events WHERE kind = ?"
            for (text,) in self._db.execute(query, (CHECKPOINT_TAKEN,)):
                said = json.loads(text)
                if any(pack[0] == number for pack in said["packs"]):
                    return (said["checkpoint"],)
        return ()

    def next_pack(self) -> int:
        """The number that the next pack gets."""
        return self._number("SELECT coalesce(max(number), 0) + 1 FROM packs")

    def cursor(self) -> int:
        """The sequence number of the newest event."""
        return self._number("SELECT coalesce(max(seq), 0) FROM events")

    def meta(self, key: str) -> "str | None":
        """A fact about the store itself."""
        with _AsDamage("read"):
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def link_of(self, seq: int) -> "bytes | None":
        """The link of one event; None if there is no such event."""
        with _AsDamage("read"):
            row = self._db.execute("SELECT chain FROM events WHERE seq = ?", (seq,)).fetchone()
        return row[0] if row else None

    def knows_view(self, commit: bytes) -> bool:
        """Whether a commit of the git view belongs to a checkpoint."""
        with _AsDamage("read"):
            query = "SELECT 1 FROM checkpoints WHERE view = ? LIMIT 1"
            return self._db.execute(query, (commit,)).fetchone() is not None

    # -- writing ---------------------------------------------------------------------------

    def set_meta(self, values: "Mapping[str, str]") -> None:
        """Record facts about the store itself."""
        self._begin()
        for key, value in values.items():
            fsops.sql(self._db, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        self._commit()

    def name_again(self, payload: "Mapping[str, Json]", at: int) -> int:
        """Record that a checkpoint was asked for and the newest one already holds the tree."""
        self._begin()
        seq = self._append(CHECKPOINT_NAMED, payload, at)
        self._commit()
        return seq

    def add_checkpoint(self, row: CheckpointRow, packs: "list[SealedPack]") -> CheckpointRow:
        """Commit a checkpoint with its packs and its event. After this it exists."""
        self.commit_sent = False
        self._begin()
        payload = {**row_facts(row), "packs": pack_facts(packs)}
        row.event = self._append(CHECKPOINT_TAKEN, payload, row.created)
        for pack in packs:
            values = (pack.number, pack.name.decode(), pack.size, pack.objects)
            fsops.sql(self._db, "INSERT INTO packs VALUES (?, ?, ?, ?)", values)
        row.number = self._number("SELECT coalesce(max(number), 0) + 1 FROM checkpoints")
        fsops.sql(self._db, _INSERT, row.values())
        self.commit_sent = True
        self._commit()
        return row

    def _append(self, kind: str, payload: "Mapping[str, Json]", at: int) -> int:
        last = self._db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")
        seq, chain = last.fetchone() or (0, NO_CHAIN)
        seq += 1
        text, salt = jsontext.dumps(payload), os.urandom(16)
        commitment = commit_to(salt, text)
        link = chain_over(chain, seq, kind, at, commitment)
        values = (seq, kind, at, salt, commitment, link, text)
        fsops.sql(self._db, "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        self._appended = (int(seq), link)
        return int(seq)

    def _begin(self) -> None:
        fsops.sql(self._db, "BEGIN IMMEDIATE")

    def _commit(self) -> None:
        fsops.sql(self._db, "COMMIT")
        self.end = self._appended

    def abandon(self) -> None:
        """Give up a transaction that failed on the way."""
        if self._db.in_transaction:
            fsops.sql(self._db, "ROLLBACK")

    # -- checking --------------------------------------------------------------------------

    def check(self) -> "Iterator[str]":
        """What is wrong with the ledger itself, in words."""
        try:
            yield from self._check_pages()
            yield from self._check_chain()
            yield from self._check_tables()
        except (sqlite.DatabaseError, DamagedStoreError) as problem:
            yield f"the ledger cannot be read: {problem}"
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            yield f"the ledger holds values of the wrong kind: {problem!r}"

    def _check_pages(self) -> "Iterator[str]":
        for (said,) in self._db.execute("PRAGMA integrity_check(20)"):
            if said != "ok":
                yield f"the ledger is damaged: {said}"

    def _check_chain(self) -> "Iterator[str]":
        expected, chain = 1, NO_CHAIN
        for seq, kind, at, salt, commitment, link, text in self._db.execute(
            "SELECT seq, kind, at, salt, commitment, chain, payload FROM events ORDER BY seq"
        ):
            if seq != expected:
                yield f"event {expected} of the ledger is missing"
            if text is not None and commit_to(salt, text) != commitment:
                yield f"event {seq} of the ledger was changed after it was written"
            if chain_over(chain, seq, kind, at, commitment) != link:
                yield f"event {seq} of the ledger does not follow from the one before"
            expected, chain = seq + 1, link

    def _check_tables(self) -> "Iterator[str]":
        """The tables say nothing but what the events say."""
        import json

        taken = "SELECT seq, at, payload FROM events WHERE kind = ? ORDER BY seq"
        rows = {row.event: row for row in self.checkpoints()}
        packs = {p[0]: list(p) for p in self._db.execute("SELECT * FROM packs")}
        for seq, at, text in self._db.execute(taken, (CHECKPOINT_TAKEN,)):
            said = json.loads(text)
            row = rows.pop(seq, None)
            if row is None or row_facts(row) != {k: said[k] for k in row_facts(row)}:
                yield f"the row of checkpoint `{said['checkpoint']}` is not what event {seq} says"
            elif row.created != at:
                yield f"the time of checkpoint `{row.id}` is not what event {seq} says"
            for pack in said["packs"]:
                if packs.pop(pack[0], None) != pack:
                    yield f"the row of pack {pack[0]} is not what event {seq} says"
        for number in packs:
            yield f"no event speaks of pack {number}"
        for row in rows.values():
            yield f"no event speaks of checkpoint `{row.id}`"

    # -- small pieces ----------------------------------------------------------------------

    def _checkpoints(
        self, where: str, values: "tuple[str | int, ...]"
    ) -> "Iterator[CheckpointRow]":
        with _AsDamage("read"):
            for row in self._db.execute(_SELECT + where, values):
                yield CheckpointRow(*row)

    def _number(self, query: str) -> int:
        with _AsDamage("read"):
            return int(self._db.execute(query).fetchone()[0])


def row_facts(row: CheckpointRow) -> "dict[str, Json]":
    """What the event of a checkpoint says about its row."""
    return {
        "checkpoint": row.id,
        "label": row.label,
        "tree": row.tree.hex(),
        "root": row.root.hex(),
        "pack": row.pack,
        "view": row.view.hex(),
        "keep": row.keep.hex(),
        "entries": row.entries,
        "changed": row.changed,
    }


def pack_facts(packs: "Iterable[SealedPack]") -> "Json":
    """What the event of a checkpoint says about its packs."""
    return [[p.number, p.name.decode(), p.size, p.objects] for p in packs]


def commit_to(salt: bytes, text: str) -> bytes:
    """The commitment to a payload; without the salt it says nothing about the text."""
    return short_sha256(salt + text.encode("utf-8", "surrogatepass"))


def chain_over(before: bytes, seq: int, kind: str, at: int, commitment: bytes) -> bytes:
    """The link that ties an event to all events before it."""
    said = b"%d %s %d " % (seq, kind.encode(), at)
    return short_sha256(before + said + commitment)


def _require_file(path: bytes, *, create: bool) -> None:
    """An error unless the ledger is a plain file of ours; made here when it is not there yet.

    It is made by us so that SQLite never makes it readable to others. One that exists is only
    looked at: closing any descriptor of it would drop the locks that another connection of this
    process holds, and the next process would then remove the log it is writing to.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if create:
            try:
                os.close(fsops.create(path))
            except FileExistsError:
                # Another first use was quicker.
                return
        return
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafeStoreError(
            f"the ledger `{os.fsdecode(path)}` is not a plain file of yours",
            hint="look at it before anything else; a ledger is never a link",
        )


def _connect(path: bytes) -> sqlite.Connection:
    with _AsDamage("opened"):
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


class _AsDamage:
    """Turns SQLite's complaints about a broken file into ours."""

    __slots__ = ("doing",)

    def __init__(self, doing: str) -> None:
        self.doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, sqlite.DatabaseError) and _is_damage(problem):
            raise DamagedStoreError(
                f"the ledger cannot be {self.doing}: {problem}",
                hint="run `takeback verify` to see what is damaged",
            ) from None


def _is_damage(problem: sqlite.DatabaseError) -> bool:
    # SQLITE_ERROR comes from a schema that no longer fits our statements.
    if isinstance(problem, sqlite.OperationalError):
        return getattr(problem, "sqlite_errorcode", 0) == sqlite.SQLITE_ERROR
    return True
