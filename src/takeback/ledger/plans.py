"""Plans that were shown, each with its description: any process can make it again and apply it.

They are no events, and nothing follows from them: a preview changes nothing, is valid for minutes,
and would only make the log grow. What comes of one is in the event of its restore.
"""

import os

from takeback.disk import operations
from takeback.errors import StalePlanError, UnknownReferenceError
from takeback.model import ids, json_text
from takeback.model.plan import MINUTES, Description, Preview, entry_ids, path_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from takeback.ledger.database import Reader
    from takeback.ledger.ledger import Transaction
    from takeback.model.json_text import Json
    from takeback.model.plan import Plan

_VALID = MINUTES * 60 * 10**9


class Plans:
    """The plans of one project that were shown."""

    __slots__ = ("_read", "_transaction")

    def __init__(self, read: "Reader", transaction: "Callable[[], Transaction]") -> None:
        self._read = read
        self._transaction = transaction

    def add(self, plan: "Plan", description: Description, now: int) -> str:
        """Keep what a plan is made of and bound to; its new id. Expired ones are deleted."""
        id = ids.from_entropy(os.urandom(8))
        said = _facts(plan, description.resolved(plan))
        with self._transaction() as db:
            operations.sql(db, "DELETE FROM plans WHERE expires <= ?", (now,))
            values = (id, now + _VALID, json_text.dumps(said))
            operations.sql(db, "INSERT INTO plans VALUES (?, ?, ?)", values)
        return id

    def find(self, id: str) -> "Preview | None":
        """A plan that was shown, also an expired one; None if there is none."""
        row = self._read.one("SELECT expires, said FROM plans WHERE id = ?", (id,))
        try:
            return _preview(id, row[0], json_text.loads(row[1])) if row is not None else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # damaged; it can be made again

    def get(self, id: str, now: int) -> Preview:
        """A plan that can still be applied."""
        found = self.find(id)
        if found is None:
            raise UnknownReferenceError(
                f"there is no plan `{id}` in this project",
                hint=f"a plan is valid for {MINUTES} minutes; `takeback undo --dry-run` makes one",
            )
        if found.expires <= now:
            raise StalePlanError(
                f"the plan `{id}` is more than {MINUTES} minutes old",
                hint=f"`{found.description.command}` plans it again",
            )
        return found

    def delete_expired(self, now: int) -> None:
        """Delete what can no longer be applied."""
        if self._read.has("SELECT 1 FROM plans WHERE expires <= ?", (now,)):
            with self._transaction() as db:
                operations.sql(db, "DELETE FROM plans WHERE expires <= ?", (now,))


def _facts(plan: "Plan", what: Description) -> "dict[str, Json]":
    decide: Json = what.decide if isinstance(what.decide, str) else _by_path(what.decide)
    return {
        "verb": what.verb,
        "refs": list(what.refs),
        "session": what.session,
        "whole_session": what.whole_session,
        "paths": [_text(path) for path in what.paths],
        "decide": decide,
        "shared": what.shared,
        "entry": list(entry_ids(plan)),
        "states": _by_path(path_states(plan)),
    }


def _preview(id: str, expires: int, said: "Any") -> Preview:  # noqa: ANN401 - as it was written
    decide = said["decide"]
    description = Description(
        said["verb"],
        tuple(said["refs"]),
        session=said["session"],
        whole_session=said["whole_session"],
        paths=tuple(map(_bytes, said["paths"])),
        decide=decide if isinstance(decide, str) else _from_paths(decide),
        shared=said["shared"],
    )
    return Preview(id, description, tuple(said["entry"]), _from_paths(said["states"]), expires)


def _by_path(values: "Mapping[bytes, str]") -> "dict[str, Json]":
    return {_text(path): value for path, value in values.items()}


def _from_paths(said: "Mapping[str, str]") -> "dict[bytes, str]":
    return {_bytes(path): value for path, value in said.items()}


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
