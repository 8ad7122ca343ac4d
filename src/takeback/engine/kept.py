"""What is still kept: the one place that every reader of a checkpoint's files passes."""

import time

from takeback.engine import retention
from takeback.errors import DamagedStoreError, NoLongerKeptError
from takeback.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from takeback.store.ledger import Ledger
    from takeback.store.rows import CheckpointRow

    T = TypeVar("T")

_LAST_FORGOTTEN = "SELECT max(event) FROM care WHERE kind = 'forget'"
_CARE = "SELECT at, said FROM care WHERE event = ?"
_FIRST_GONE = "SELECT gone FROM checkpoints WHERE number >= ? AND gone IS NOT NULL LIMIT 1"
_HINT = "`takeback log` still tells what was done; `takeback keep REF` keeps a state in time"


def require(ledger: "Ledger", row: "CheckpointRow") -> "CheckpointRow":
    """A checkpoint whose files can be read; an error that says since when they cannot."""
    if row.gone is not None:
        raise NoLongerKeptError(
            f"the files of `{row.id}` are no longer kept{_since(ledger, row.gone)}", hint=_HINT
        )
    return row


def refuse(row: "CheckpointRow") -> None:
    """The same where nobody can say more."""
    if row.gone is not None:
        raise NoLongerKeptError(f"the files of `{row.id}` are no longer kept", hint=_HINT)


def is_whole(ledger: "Ledger", before: int) -> bool:
    """Whether all states from a number on are kept, so that what began there can be taken back."""
    return before > retention.floor(ledger)


def require_whole(ledger: "Ledger", before: int, what: str) -> None:
    """An error unless what began at a state can still be taken back or put back."""
    if not is_whole(ledger, before):
        gone = ledger.rows(_FIRST_GONE, (before,))[0][0]
        raise NoLongerKeptError(
            f"the files of {what} are no longer kept{_since(ledger, gone)}", hint=_HINT
        )


def _since(ledger: "Ledger", event: int) -> str:
    """Since when, and why, as far as the log tells."""
    for at, said in ledger.rows(_CARE, (event,)):
        told: Any = jsontext.loads(said)
        day = time.strftime("%d %b %Y", time.localtime(at / 1e9)).lstrip("0")
        days = told.get("days")
        if told.get("why") == retention.TO_SIZE:
            return f" (since {day}, to make the history smaller)"
        return f" (since {day}, older than {days:g} days)" if days else f" (since {day})"
    return ""


class Reading:
    """While a checkpoint is read without the lock: if its files go meanwhile, it says so.

    What is missing then is no damage.
    """

    __slots__ = ("_ledger", "_row")

    def __init__(self, ledger: "Ledger", row: "CheckpointRow") -> None:
        self._ledger = ledger
        self._row = require(ledger, row)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, DamagedStoreError):
            now = self._ledger.checkpoint(self._row.number)
            if now is not None:
                require(self._ledger, now)


def again(ledger: "Ledger", read: "Callable[[], T]") -> "T":
    """What `read` returns; if something is forgotten while it reads without the lock, once more.

    Then states are others than they were looked up, and what they named is not there any more.
    """
    while True:
        before = ledger.rows(_LAST_FORGOTTEN)
        try:
            return read()
        except DamagedStoreError:
            if ledger.rows(_LAST_FORGOTTEN) == before:
                raise
