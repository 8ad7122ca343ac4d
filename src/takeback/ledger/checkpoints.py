"""Checkpoints and their deltas: what is asked about them."""

from takeback.errors import DamagedStoreError
from takeback.ledger.database import Group
from takeback.ledger.events import CheckpointRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.ledger.database import Values

_MOST_PASSED_OVER = 100
_SELECT = (
    "SELECT number, id, event, tree, root, view, created, label, entries, changed, gone"
    " FROM checkpoints "
)


class Checkpoints(Group):
    """What is asked about checkpoints."""

    def newest(self, back: int = 0) -> "CheckpointRow | None":
        """The newest checkpoint, or the one `back` steps before it.

        A damaged row is passed over, so that it does not end the protection; `verify` tells.
        """
        where = "ORDER BY number DESC LIMIT 1 OFFSET ?"
        while True:
            try:
                return next(iter(self._some(where, (back,))), None)
            except DamagedStoreError:
                back += 1
                if back > _MOST_PASSED_OVER:
                    raise

    def numbered(self, number: int) -> "CheckpointRow | None":
        """The checkpoint with this number."""
        return next(iter(self._some("WHERE number = ?", (number,))), None)

    def parent_of(self, number: int) -> int:
        """The number of the state before a checkpoint; 0 if it is the first."""
        return number - 1

    def with_prefix(self, prefix: str) -> "list[CheckpointRow]":
        """The checkpoints whose id begins with `prefix`."""
        upper = prefix + "{"  # the character after `z`
        return self._some("WHERE id >= ? AND id < ? LIMIT 20", (prefix, upper))

    def all(self) -> "Iterator[CheckpointRow]":
        """All checkpoints, newest first; no cursor stays open while the caller thinks."""
        before = 1 << 62
        while True:
            rows = self._some("WHERE number < ? ORDER BY number DESC LIMIT 200", (before,))
            if not rows:
                return
            yield from rows
            before = rows[-1].number

    def count(self) -> int:
        """How many checkpoints there are."""
        return int(self._reader.value("SELECT count(*) FROM checkpoints"))

    def has_commit(self, commit: bytes) -> bool:
        """Whether a commit of the git view belongs to a checkpoint."""
        return self._reader.has("SELECT 1 FROM checkpoints WHERE view = ? LIMIT 1", (commit,))

    def _some(self, where: str, values: "Values" = ()) -> "list[CheckpointRow]":
        return [CheckpointRow.checked(row) for row in self._reader.rows(_SELECT + where, values)]


class Deltas(Group):
    """What is asked about the changes between two checkpoints."""
