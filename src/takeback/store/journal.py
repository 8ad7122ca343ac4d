"""The journal: one row in the ledger while a restore is under way, and nothing otherwise.

From its commit on, whoever takes the lock next brings every path back. Both states of each are
in the store, so the row is all it takes. It goes with the commit that makes the restore true, or
with the one that says it was taken back. A row in the phase `late` is of a restore that is done
while some process still writes to a file that it displaced.
"""

from takeback.errors import DamagedStoreError
from takeback.model import jsontext, staging
from takeback.model.tree import Entry, is_safe_name
from takeback.store import fsops
from takeback.store.states import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
    found = []
    for id, phase, text in ledger.rows("SELECT id, phase, said FROM journal ORDER BY phase, id"):
        try:
            found.append(_journal(id, phase, jsontext.loads(text)))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise DamagedStoreError(
                "the journal of a restore that was interrupted cannot be read",
                hint="`takeback verify` shows what is damaged; nothing was changed",
            ) from None
    return found


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
