"""What is committed with the checkpoint after a restore: its event, and whose changes it has."""

from takeback.model import terms
from takeback.model.tree import FOLDER
from takeback.store import events
from takeback.store.events import NewEvent
from takeback.store.outside import file_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.engine.deltas import Delta
    from takeback.model.history import Author
    from takeback.model.jsontext import Json
    from takeback.model.plan import Remark
    from takeback.store.journal import Journal


class Finish:
    """What is committed together with the checkpoint after a restore."""

    def __init__(self, row: "Journal", said: "dict[str, Json]", at: int, request: "str | None"):
        self.journal = row.id
        self.late = False
        self.dropped: list[bytes] = []
        """The paths that are not setuid again."""
        self.kept: dict[bytes, str] = {}
        self.rescued: list[Remark] = []
        self._row = row
        self._said = said
        self._at = at
        self._request = request
        self._targets = {op.path: op.after for op in row.ops}

    @property
    def wanted(self) -> "set[bytes]":
        """What was brought back is captured, whatever the limits say by now: it can go again."""
        return {path for path, entry in self._targets.items() if entry is not None}

    @property
    def folders(self) -> "set[bytes]":
        """Where something changed: the folders of all paths, and those among them."""
        return {path.rpartition(b"/")[0] for path in self._targets} | set(self._targets)

    def author(self, delta: "Delta", other: "Author") -> "Author":
        """Who made a change: the restore, or who would have made it without one."""
        from takeback.model.history import Author

        return Author(terms.RESTORE) if self._is_ours(delta) else other

    def _is_ours(self, delta: "Delta") -> bool:
        """Whether the restore made a change; somebody may have changed the path once more."""
        if delta.path not in self._targets or delta.path in self.kept:
            return False
        target = self._targets[delta.path]
        if target is None:
            return delta.verb in (terms.DELETE, terms.RMDIR)
        return target.kind == FOLDER or delta.verb == terms.MODE or delta.strong == target.strong

    def event(self, checkpoint: str, cursor: int) -> NewEvent:
        """The event of the restore."""
        kept = [[_text(path), reason] for path, reason in sorted(self.kept.items())]
        rescued = [[_text(save.path), save.reason] for save in self.rescued]
        said: dict[str, Json] = {
            **self._said,
            "after": checkpoint,
            "kept": kept,
            "rescued": rescued,
        }
        if kept:
            said.pop("exact", None)
        files = self._done_outside()
        if files:
            said["outside"] = files
        parents = (*self._row.parents, cursor)
        kind = events.RESTORE_APPLIED
        return NewEvent(kind, said, self._at, parents=parents, request=self._request)

    def _done_outside(self) -> "list[Json]":
        """What was done outside the project: path, before, after."""
        ops = [(away.path(op), op) for away in self._row.away for op in away.ops]
        return [
            [*file_facts(path, op.before), file_facts(path, op.after)[1]]
            for path, op in ops
            if path not in self.kept
        ]


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
