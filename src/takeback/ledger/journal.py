"""The journal: one row in the ledger while a restore is under way, and nothing otherwise.

From its commit on, whoever takes the lock next brings every path back. Both states of each are
in the store, so the row is all it takes. It goes with the commit that makes the restore true, or
with the one that says it was taken back. A row in the phase `late` is of a restore that is done
while some process still writes to a file that it displaced, while our folders outside the project
are still there, or while participants are not yet where it was decided; one in the phase `staging`
is of a restore that has made these folders, or let participants prepare, and nothing else. In the
project they are found without a row.

A row that cannot be read is `Damaged`: nobody acts on it, and it stays until it is set aside.

Plans that were shown are rows beside the log, too: any process can make one again and apply it.
They are no events, and nothing follows from them: a preview changes nothing, is valid for minutes,
and would only make the log grow. What comes of one is in the event of its restore.

Which process an agent is, and who is paused, follows from events, and is true for now, too.
"""

import os

from takeback.disk import operations
from takeback.disk.descent import is_whole
from takeback.errors import (
    DamagedStoreError,
    StalePlanError,
    UnfinishedError,
    UnknownReferenceError,
)
from takeback.ledger.database import Group
from takeback.ledger.log.events import entry_facts, entry_from
from takeback.model import ids
from takeback.model.plan import (
    Description,
    Preview,
    entry_ids,
    move_states,
    path_states,
)
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.tree import Op, is_safe_name
from takeback.model.value import path_bytes, path_text
from takeback.model.words import MINUTES, ROLLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Reader
    from takeback.ledger.ledger import Transaction
    from takeback.ledger.log.events import Event
    from takeback.ledger.outside import Outside
    from takeback.ledger.schema import Tables
    from takeback.model.plan import Decisions, Plan
    from takeback.model.text.json_text import Json

    Facts = list[int | str] | None
    Said = Mapping[str, object]

APPLYING, LATE, STAGING = "applying", "late", "staging"
_COLUMNS = ", ".join(f"CAST({name} AS BLOB)" for name in ("id", "phase", "said"))
"""As bytes: text that is not UTF-8 any more could not be read at all."""
_MINUTE = 60 * 10**9


class Away:
    """A folder outside the project in which files are restored, and what is done there."""

    __slots__ = ("folder", "ops")

    def __init__(self, folder: bytes, ops: "Sequence[Op]") -> None:
        self.folder = folder
        self.ops = list(ops)

    def path(self, op: "Op") -> bytes:
        """The whole path of one of its files."""
        return self.folder.rstrip(b"/") + b"/" + op.path


class Journal:
    """What a restore under way is about; `parents` are the events of the states around it.

    `ops` are those in the project, `away` those outside of it. `together` are the participants
    that prepare for it.
    """

    __slots__ = ("away", "id", "ops", "parents", "phase", "stage", "title", "together", "verb")

    def __init__(
        self,
        id: str,
        verb: str,
        title: str,
        ops: "Sequence[Op]",
        parents: "tuple[int, ...]",
        phase: str = APPLYING,
        away: "Sequence[Away]" = (),
        together: "Sequence[str]" = (),
    ) -> None:
        self.id = id
        self.away = list(away)
        self.together = list(together)
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


class Journals(Group):
    """The rows of the journal; `names` are the files outside the project that the log knows."""

    __slots__ = ("_names", "_transaction")

    def __init__(
        self, reader: "Reader", transaction: "Callable[[], Transaction]", names: "Outside"
    ) -> None:
        super().__init__(reader)
        self._transaction = transaction
        self._names = names

    def write(self, journal: Journal, phase: str = APPLYING) -> None:
        """Commit a row: from here on recovery acts.

        In the phase `staging` nothing was touched yet; only what was staged has to go.
        """
        values = (journal.id, phase, json_text.dumps(_facts(journal)), self._reader.line)
        with self._transaction() as db:
            operations.sql(db, "INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?)", values)
        journal.phase = phase

    def close(self, db: "Connection", id: str, *, late: bool) -> None:
        """Delete the row of a restore that is done, or leave it as `late`."""
        if late:
            operations.sql(db, "UPDATE journal SET phase = ? WHERE id = ?", (LATE, id))
        else:
            operations.sql(db, "DELETE FROM journal WHERE id = ?", (id,))

    def set_aside(self, db: "Connection", number: int) -> None:
        """Delete a row that cannot be read, by its place in the table."""
        operations.sql(db, "DELETE FROM journal WHERE rowid = ?", (number,))

    def read(self) -> "list[Journal]":
        """The restores of the line that were left under way, those to be taken back first."""
        return [row for row in self._rows(self._here) if isinstance(row, Journal)]

    def of_all_lines(self) -> "list[Journal]":
        """The restores that were left under way in any line."""
        return [row for row in self._rows("1") if isinstance(row, Journal)]

    def damaged(self) -> "list[Damaged]":
        """The rows that nobody can act on."""
        return [row for row in self._rows("1") if isinstance(row, Damaged)]

    def unfinished(self) -> "list[Damaged]":
        """The rows, as they are, of restores that could not be taken back. With the lock held.

        Whoever takes the lock tries that first.
        """
        unread = {row.number for row in self.damaged()}
        query = (
            f"SELECT rowid, {_COLUMNS} FROM journal WHERE phase = ? AND {self._here} ORDER BY id"
        )
        rows = self._reader.rows(query, (APPLYING,))
        return [Damaged(*row) for row in rows if row[0] not in unread]

    def is_open(self, id: str) -> bool:
        """Whether a restore may have changed something and is not done, as far as its row tells."""
        query = "SELECT 1 FROM journal WHERE id = ? AND phase NOT IN (?, ?)"
        return self._reader.has(query, (id, LATE, STAGING))

    def is_staging(self, id: str) -> bool:
        """Whether a restore has touched nothing yet, as far as its row tells."""
        query = "SELECT 1 FROM journal WHERE id = ? AND phase = ?"
        return self._reader.has(query, (id, STAGING))

    def require_sound(self, *, in_all_lines: bool = False) -> None:
        """An error while there is a row that cannot be read: where a restore stopped is unknown."""
        for row in self.damaged():
            raise DamagedStoreError(
                "the journal of a restore that was interrupted cannot be read",
                hint=(
                    f"what it displaced is in {row.stage} in the project",
                    Action("set-aside"),
                    "nothing was changed",
                ),
            )
        for open_row in self.of_all_lines() if in_all_lines else self.read():
            if open_row.phase == APPLYING:
                raise UnfinishedError(
                    f"{open_row.called} was interrupted and could not be taken back yet",
                    hint=(Action("verify-paths"), Action("set-aside"), "nothing was changed"),
                )

    def _rows(self, these: str) -> "Iterator[Journal | Damaged]":
        query = f"SELECT rowid, {_COLUMNS} FROM journal WHERE {these} ORDER BY phase, id"
        for number, id, phase, said in self._reader.rows(query):
            try:
                row = _journal(id.decode(), phase.decode(), json_text.loads(said.decode()))
                self._require_named(row)
                yield row
            except (KeyError, TypeError, ValueError, IndexError, AttributeError):
                yield Damaged(number, id, phase, said)

    def _require_named(self, row: Journal) -> None:
        """Outside the project, a row may only speak of what an edit tool named, or was rescued."""
        if not row.away:
            return
        from takeback.ledger.beyond.rescues import Rescues

        is_rescued = Rescues(self._reader).is_known
        for away in row.away:
            for op in away.ops:
                path = away.path(op)
                if not ((not op.way and self._names.is_known(path)) or is_rescued(path)):
                    raise ValueError(path)


def _facts(journal: Journal) -> "Json":
    said: dict[str, Json] = {
        "verb": journal.verb,
        "title": journal.title,
        "parents": list(journal.parents),
        "ops": [_op_facts(op) for op in journal.ops],
    }
    if journal.together:
        said["together"] = list(journal.together)
    if journal.away:
        said["away"] = [
            [path_text(a.folder), [_op_facts(op) for op in a.ops]] for a in journal.away
        ]
    settled = [number for number, op in enumerate(_every(journal)) if op.is_settled]
    if settled:
        said["settled"] = settled
    return said


def _journal(id: str, phase: str, told: "dict[str, Any]") -> Journal:
    ops = [_op(*facts) for facts in told["ops"]]
    away = [Away(_folder(at), [_op(*f) for f in facts]) for at, facts in told.get("away", ())]
    parents = tuple(map(int, told["parents"]))
    if not id.isalpha() or phase not in (APPLYING, LATE, STAGING):
        raise ValueError(id)
    if any(not op.name for each in away for op in each.ops):
        raise ValueError("a file outside is not in its folder")
    together = [str(name) for name in told.get("together", ())]
    row = Journal(id, str(told["verb"]), str(told["title"]), ops, parents, phase, away, together)
    every = _every(row)
    for number in told.get("settled", ()):
        every[number].is_settled = True
    return row


def _every(row: Journal) -> "list[Op]":
    """All that a restore is about, in the project and outside."""
    return [*row.ops, *(op for away in row.away for op in away.ops)]


def _op_facts(op: Op) -> "Json":
    facts: list[Json] = [path_text(op.path), entry_facts(op.before), entry_facts(op.after)]
    return [*facts, list(op.owner)] if op.owner is not None else facts


def _op(path: str, before: "Facts", after: "Facts", owner: "list[int] | None" = None) -> Op:
    op = Op(_path(path), entry_from(before), entry_from(after))
    if owner is not None:
        uid, gid = map(int, owner)
        op.owner = uid, gid
    return op


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


# -- plans ---------------------------------------------------------------------------------


class Plans(Group):
    """The plans of one project that were shown."""

    __slots__ = ("_transaction",)

    def __init__(self, reader: "Reader", transaction: "Callable[[], Transaction]") -> None:
        super().__init__(reader)
        self._transaction = transaction

    def add(self, plan: "Plan", description: Description, now: int) -> str:
        """Keep what a plan is made of and bound to; its new id. Expired ones are deleted."""
        id = ids.from_entropy(os.urandom(8))
        said = _plan_facts(plan, description.resolved(plan))
        with self._transaction() as db:
            operations.sql(db, "DELETE FROM plans WHERE expires <= ?", (now,))
            values = (
                id,
                now + description.minutes * _MINUTE,
                json_text.dumps(said),
                self._reader.line,
            )
            operations.sql(db, "INSERT INTO plans VALUES (?, ?, ?, ?)", values)
        return id

    def find(self, id: str) -> "Preview | None":
        """A plan that was shown, also an expired one; None if there is none."""
        query = f"SELECT expires, said FROM plans WHERE id = ? AND {self._here}"
        row = self._reader.one(query, (id,))
        try:
            return _preview(id, row[0], json_text.loads(row[1])) if row is not None else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # damaged; it can be made again

    def valid(self, now: int) -> "list[Preview]":
        """The plans that can still be applied, the newest first."""
        query = f"SELECT id FROM plans WHERE expires > ? AND {self._here} ORDER BY expires DESC"
        return [found for id in self._reader.column(query, (now,)) if (found := self.find(id))]

    def count(self) -> int:
        """How many there are, of all lines."""
        return int(self._reader.value("SELECT count(*) FROM plans"))

    def damaged(self) -> "list[str]":
        """The ids of those that cannot be read, as text whatever is there."""
        every = self._reader.column("SELECT CAST(id AS TEXT) FROM plans ORDER BY id")
        return [str(id) for id in every if self.find(id) is None and self._is_here(id)]

    def _is_here(self, id: str) -> bool:
        return self._reader.has(f"SELECT 1 FROM plans WHERE id = ? AND {self._here}", (id,))

    def get(self, id: str, now: int) -> Preview:
        """A plan that can still be applied."""
        found = self.find(id)
        if found is None:
            raise UnknownReferenceError(
                f"there is no plan `{id}` in this project",
                hint=(f"a plan is valid for {MINUTES} minutes", Action("plan")),
            )
        if found.expires <= now:
            raise StalePlanError(
                f"the plan `{id}` is more than {found.description.minutes} minutes old",
                hint=found.description.again,
            )
        return found

    def delete_expired(self, now: int) -> None:
        """Delete what can no longer be applied."""
        if self._reader.has("SELECT 1 FROM plans WHERE expires <= ?", (now,)):
            with self._transaction() as db:
                operations.sql(db, "DELETE FROM plans WHERE expires <= ?", (now,))


def _plan_facts(plan: "Plan", what: Description) -> "dict[str, Json]":
    decide: Json = what.decide if isinstance(what.decide, str) else _decisions(what.decide)
    return {
        "verb": what.verb,
        "refs": list(what.refs),
        "session": what.session,
        "whole_session": what.whole_session,
        "paths": [path_text(path) for path in what.paths],
        "decide": decide,
        "shared": what.shared,
        "minutes": what.minutes,
        "entry": list(entry_ids(plan)),
        "states": _by_path(path_states(plan)),
        "only": list(what.only),
        "cursor": what.cursor,
        "moves": list(move_states(plan)),
    }


def _preview(id: str, expires: int, said: "Any") -> Preview:  # noqa: ANN401 - as it was written
    decide = said["decide"]
    description = Description(
        said["verb"],
        tuple(said["refs"]),
        session=said["session"],
        whole_session=said["whole_session"],
        paths=tuple(map(path_bytes, said["paths"])),
        decide=decide if isinstance(decide, str) else _from_decisions(decide),
        shared=said["shared"],
        only=tuple(said["only"]),
        cursor=said["cursor"],
        minutes=said["minutes"],
    )
    states = _from_paths(said["states"])
    return Preview(id, description, tuple(said["entry"]), states, expires, _pairs(said["moves"]))


def _pairs(said: "Iterable[Any]") -> "tuple[tuple[str, str], ...]":
    return tuple((str(name), str(state)) for name, state in said)


def _decisions(decide: "Decisions") -> "list[Json]":
    """Each decision with its path, and the hunk if it is for one."""
    keys = [key if isinstance(key, tuple) else (key, None) for key in decide]
    values = decide.values()
    return [
        [path_text(path), hunk, value] for (path, hunk), value in zip(keys, values, strict=True)
    ]


def _from_decisions(said: "Iterable[Any]") -> "Decisions":
    return {
        path_bytes(path) if hunk is None else (path_bytes(path), hunk): value
        for path, hunk, value in said
    }


def _by_path(values: "Mapping[bytes, str]") -> "dict[str, Json]":
    return {path_text(path): value for path, value in values.items()}


def _from_paths(said: "Mapping[str, str]") -> "dict[bytes, str]":
    return {path_bytes(path): value for path, value in said.items()}


# -- agents that run now ---------------------------------------------------------------------

ALL_SESSIONS = 0
"""Stands for all sessions, also those to come, in the table of pauses."""


def follow_pause(to: "Tables", event: "Event", said: "Said") -> None:
    """A session is paused; without a name, all of them are."""
    session = to.number("sessions", said.get("session")) or ALL_SESSIONS
    add = "INSERT OR IGNORE INTO pauses VALUES (?, ?, ?)"
    operations.sql(to.db, add, (session, event.seq, event.at))


def follow_release(to: "Tables", event: "Event", said: "Said") -> None:
    """A session goes on; without a name, all of them do."""
    del event
    session = to.number("sessions", said.get("session"))
    if session is None:
        operations.sql(to.db, "DELETE FROM pauses")
    else:
        operations.sql(to.db, "DELETE FROM pauses WHERE session = ?", (session,))


def follow_report(to: "Tables", event: "Event", said: "Said") -> None:
    """A tool was reported of which there is no step: so the agent reports its tools."""
    del event
    if said.get("tool"):
        change = "UPDATE sessions SET reports = 1 WHERE id = ?"
        operations.sql(to.db, change, (str(said.get("session")),))


def follow_process(to: "Tables", said: "Said", session: "int | None") -> None:
    """The process that an agent is, as far as its hook could tell."""
    if said.get("process"):
        change = "UPDATE sessions SET process = ? WHERE number = ?"
        operations.sql(to.db, change, (str(said["process"]), session))
