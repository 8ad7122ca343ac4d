"""The journal: one row in the ledger while a restore is under way, and nothing otherwise.

From its commit on, whoever takes the lock next brings every path back. Both states of each are
in the store, so the row is all it takes. It goes with the commit that makes the restore true, or
with the one that says it was taken back. A row in the phase `late` is of a restore that is done
while some process still writes to a file that it displaced, or while our folders outside the
project are still there; one in the phase `staging` is of a restore that has made these folders
and nothing else. In the project they are found without a row.

A row that cannot be read is `Damaged`: nobody acts on it, and it stays until it is set aside.
"""

from takeback.disk import operations
from takeback.disk.descent import is_whole
from takeback.errors import DamagedStoreError, UnfinishedError
from takeback.ledger.events import entry_facts, entry_from
from takeback.model import ids, json_text
from takeback.model.entries import Op
from takeback.model.tree import is_safe_name
from takeback.model.words import ROLLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json

    Facts = list[int | str] | None

APPLYING, LATE, STAGING = "applying", "late", "staging"
_COLUMNS = ", ".join(f"CAST({name} AS BLOB)" for name in ("id", "phase", "said"))
"""As bytes: text that is not UTF-8 any more could not be read at all."""


class Away:
    """A folder outside the project in which single files are restored, and what is done there."""

    __slots__ = ("folder", "ops")

    def __init__(self, folder: bytes, ops: "Sequence[Op]") -> None:
        self.folder = folder
        self.ops = list(ops)

    def path(self, op: "Op") -> bytes:
        """The whole path of one of its files."""
        return self.folder.rstrip(b"/") + b"/" + op.path


class Journal:
    """What a restore under way is about; `parents` are the events of the states around it.

    `ops` are those in the project, `away` those outside of it.
    """

    __slots__ = ("away", "id", "ops", "parents", "phase", "stage", "title", "verb")

    def __init__(
        self,
        id: str,
        verb: str,
        title: str,
        ops: "Sequence[Op]",
        parents: "tuple[int, ...]",
        phase: str = APPLYING,
        away: "Sequence[Away]" = (),
    ) -> None:
        self.id = id
        self.away = list(away)
        self.verb = verb
        self.title = title
        self.ops = list(ops)
        self.parents = parents
        self.phase = phase
        self.stage = ids.name_of(id)

    @property
    def called(self) -> str:
        """The restore, as one calls it in a sentence."""
        return f"the {self.verb} {'to' if self.verb == ROLLBACK else 'of'} {self.title}"

    @property
    def paths(self) -> "list[bytes]":
        """The paths that it is about; those outside the project are whole."""
        away = [each.path(op) for each in self.away for op in each.ops]
        return [op.path for op in self.ops] + away


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
        found = ids.PREFIX + self.id
        return f"`{found.decode()}`" if ids.is_stage(found) else "`.takeback-stage-…`"


def write(ledger: "Ledger", journal: Journal, phase: str = APPLYING) -> None:
    """Commit the row: from here on recovery acts.

    In the phase `staging` nothing was touched yet; only what was staged has to go.
    """
    said: dict[str, Json] = {
        "verb": journal.verb,
        "title": journal.title,
        "parents": list(journal.parents),
        "ops": [_op_facts(op) for op in journal.ops],
    }
    if journal.away:
        said["away"] = [[_text(a.folder), [_op_facts(op) for op in a.ops]] for a in journal.away]
    settled = [number for number, op in enumerate(_every(journal)) if op.is_settled]
    if settled:
        said["settled"] = settled
    with ledger.transaction() as db:
        statement = "INSERT OR REPLACE INTO journal VALUES (?, ?, ?)"
        operations.sql(db, statement, (journal.id, phase, json_text.dumps(said)))
    journal.phase = phase


def read(ledger: "Ledger") -> "list[Journal]":
    """The restores that somebody left under way, those to be taken back first."""
    return [row for row in _rows(ledger) if isinstance(row, Journal)]


def damaged(ledger: "Ledger") -> "list[Damaged]":
    """The rows that nobody can act on."""
    return [row for row in _rows(ledger) if isinstance(row, Damaged)]


def unfinished(ledger: "Ledger") -> "list[Damaged]":
    """The rows, as they are, of restores that could not be taken back. With the lock held.

    Whoever takes the lock tries that first.
    """
    unread = {row.number for row in damaged(ledger)}
    query = f"SELECT rowid, {_COLUMNS} FROM journal WHERE phase = ? ORDER BY id"
    rows = ledger.rows(query, (APPLYING,))
    return [Damaged(*row) for row in rows if row[0] not in unread]


def is_open(ledger: "Ledger", id: str) -> bool:
    """Whether a restore may have changed something and is not done, as far as its row tells."""
    query = "SELECT 1 FROM journal WHERE id = ? AND phase NOT IN (?, ?)"
    return bool(ledger.rows(query, (id, LATE, STAGING)))


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
    for open_row in read(ledger):
        if open_row.phase == APPLYING:
            raise UnfinishedError(
                f"{open_row.called} was interrupted and could not be taken back yet",
                hint=(
                    "`takeback verify` names its paths; see to them, or let work go on with"
                    " `takeback verify --set-aside`; nothing was changed"
                ),
            )


def _rows(ledger: "Ledger") -> "Iterator[Journal | Damaged]":
    query = f"SELECT rowid, {_COLUMNS} FROM journal ORDER BY phase, id"
    for number, id, phase, said in ledger.rows(query):
        try:
            row = _journal(id.decode(), phase.decode(), json_text.loads(said.decode()))
            _require_named(ledger, row)
            yield row
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            yield Damaged(number, id, phase, said)


def _journal(id: str, phase: str, told: "dict[str, Any]") -> Journal:
    ops = [_op(*facts) for facts in told["ops"]]
    away = [Away(_folder(at), [_op(*f) for f in facts]) for at, facts in told.get("away", ())]
    parents = tuple(map(int, told["parents"]))
    if not id.isalpha() or phase not in (APPLYING, LATE, STAGING):
        raise ValueError(id)
    if any(op.way or not op.name for each in away for op in each.ops):
        raise ValueError("a file outside is not in its folder")
    row = Journal(id, str(told["verb"]), str(told["title"]), ops, parents, phase, away)
    every = _every(row)
    for number in told.get("settled", ()):
        every[number].is_settled = True
    return row


def _every(row: Journal) -> "list[Op]":
    """All that a restore is about, in the project and outside."""
    return [*row.ops, *(op for away in row.away for op in away.ops)]


def _require_named(ledger: "Ledger", row: Journal) -> None:
    """Outside the project, a row may only speak of what an edit tool named: the log knows that."""
    for away in row.away:
        for op in away.ops:
            if not ledger.outside.is_known(away.path(op)):
                raise ValueError(away.path(op))


def _op_facts(op: Op) -> "Json":
    facts: list[Json] = [_text(op.path), entry_facts(op.before), entry_facts(op.after)]
    return [*facts, list(op.owner)] if op.owner is not None else facts


def _op(path: str, before: "Facts", after: "Facts", owner: "list[int] | None" = None) -> Op:
    op = Op(_path(path), entry_from(before), entry_from(after))
    if owner is not None:
        uid, gid = map(int, owner)
        op.owner = uid, gid
    return op


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _path(text: str) -> bytes:
    """A path as the row says it; a forged one must not lead out of the tree."""
    path = text.encode("utf-8", "surrogateescape")
    if path and not all(map(is_safe_name, path.split(b"/"))):
        raise ValueError(text)
    return path


def _folder(text: str) -> bytes:
    path = text.encode("utf-8", "surrogateescape")
    if path != b"/" and not is_whole(path):
        raise ValueError(text)
    return path
