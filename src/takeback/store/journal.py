"""The journal: one row in the ledger while a restore is under way, and nothing otherwise.

From its commit on, whoever takes the lock next brings every path back. Both states of each are
in the store, so the row is all it takes. It goes with the commit that makes the restore true, or
with the one that says it was taken back. A row in the phase `late` is of a restore that is done
while some process still writes to a file that it displaced.

A row that cannot be read is `Damaged`: nobody acts on it, and it stays until it is set aside.
"""

from takeback.errors import DamagedStoreError
from takeback.model import jsontext, staging
from takeback.model.tree import Entry, is_safe_name
from takeback.store import fsops
from takeback.store.states import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from takeback.model.jsontext import Json
    from takeback.store.ledger import Ledger

APPLYING, LATE = "applying", "late"


class Journal:
    """What a restore under way is about; `parents` are the events of the states around it."""

    __slots__ = ("id", "ops", "parents", "phase", "stage", "title", "verb")

    def __init__(
        self,
        id: str,
        verb: str,
        title: str,
        ops: "Sequence[Op]",
        parents: "tuple[int, ...]",
        phase: str = APPLYING,
    ) -> None:
        self.id = id
        self.verb = verb
        self.title = title
        self.ops = list(ops)
        self.parents = parents
        self.phase = phase
        self.stage = staging.name_of(id)


class Damaged:
    """A row that cannot be read: its bytes as they are, and its place in the table."""

    __slots__ = ("id", "number", "phase", "said")

    def __init__(self, number: int, id: "bytes | None", phase: "bytes | None", said: bytes) -> None:
        self.number = number
        self.id = id or b""
        self.phase = phase or b""
        self.said = said

    @property
    def stage(self) -> str:
        """The folder with what the restore displaced, as far as the row still tells."""
        found = staging.PREFIX + self.id
        return f"`{found.decode()}`" if staging.is_stage(found) else "`.takeback-stage-…`"


def write(ledger: "Ledger", journal: Journal) -> None:
    """Commit the row: from here on recovery acts."""
    text = jsontext.dumps(
        {
            "verb": journal.verb,
            "title": journal.title,
            "parents": list(journal.parents),
            "ops": [[_text(op.path), _facts(op.before), _facts(op.after)] for op in journal.ops],
        }
    )
    with ledger.transaction() as db:
        statement = "INSERT OR REPLACE INTO journal VALUES (?, ?, ?)"
        fsops.sql(db, statement, (journal.id, journal.phase, text))


def read(ledger: "Ledger") -> "list[Journal]":
    """The restores that somebody left under way, those to be taken back first."""
    return [row for row in _rows(ledger) if isinstance(row, Journal)]


def damaged(ledger: "Ledger") -> "list[Damaged]":
    """The rows that nobody can act on."""
    return [row for row in _rows(ledger) if isinstance(row, Damaged)]


def is_open(ledger: "Ledger", id: str) -> bool:
    """Whether the row of a restore is still there, readable or not."""
    return bool(ledger.rows("SELECT 1 FROM journal WHERE id = ?", (id,)))


def require_sound(ledger: "Ledger") -> None:
    """An error while there is a row that cannot be read: where a restore stopped is unknown."""
    for row in damaged(ledger):
        raise DamagedStoreError(
            "the journal of a restore that was interrupted cannot be read",
            hint=(
                f"what it displaced is in {row.stage} in the project; `takeback verify"
                " --set-aside` keeps both, and work goes on; nothing was changed"
            ),
        )


def _rows(ledger: "Ledger") -> "Iterator[Journal | Damaged]":
    # As bytes: text that is not UTF-8 any more could not be read at all.
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in ("id", "phase", "said"))
    query = f"SELECT rowid, {columns} FROM journal ORDER BY phase, id"  # noqa: S608
    for number, id, phase, said in ledger.rows(query):
        try:
            yield _journal(id.decode(), phase.decode(), jsontext.loads(said.decode()))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            yield Damaged(number, id, phase, said)


def _journal(id: str, phase: str, told: "dict[str, Any]") -> Journal:
    ops = [Op(_path(path), _entry(b), _entry(a)) for path, b, a in told["ops"]]
    parents = tuple(map(int, told["parents"]))
    if not id.isalpha() or phase not in (APPLYING, LATE):
        raise ValueError(id)
    return Journal(id, str(told["verb"]), str(told["title"]), ops, parents, phase)


def _facts(entry: "Entry | None") -> "Json":
    if entry is None:
        return None
    hashes = (entry.strong.hex(), entry.oid.hex())
    return [entry.mode, entry.flags, entry.size, *hashes, entry.mtime, entry.number]


def _entry(facts: "list[int | str] | None") -> "Entry | None":
    if facts is None:
        return None
    mode, flags, size, strong, oid, mtime, number = facts
    hashes = bytes.fromhex(str(strong)), bytes.fromhex(str(oid))
    sizes = int(mtime), int(number)
    return Entry(b"", int(mode), int(flags), int(size), hashes[0], *sizes, hashes[1])


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _path(text: str) -> bytes:
    """A path as the row says it; a forged one must not lead out of the tree."""
    path = text.encode("utf-8", "surrogateescape")
    if path and not all(map(is_safe_name, path.split(b"/"))):
        raise ValueError(text)
    return path
