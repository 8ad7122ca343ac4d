"""What happened to paths after what is taken back had left them: who did it, in which turns."""

from takeback.engine import reverts
from takeback.model import jsontext
from takeback.model.plan import Dependent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.engine.reverts import Changed, Taken
    from takeback.engine.trees import Trees
    from takeback.model.plan import Conflict
    from takeback.model.tree import Entry
    from takeback.store.ledger import Ledger
    from takeback.store.rows import CheckpointRow

    ClashAt = Callable[[Conflict, int], object]
    """What of a conflict there was at a checkpoint; None if nothing."""

_LATER_TURNS = (
    "SELECT d.path, d.checkpoint, t.id, t.label, z.agent"
    " FROM deltas d JOIN turns t ON t.number = d.turn"
    " JOIN sessions z ON z.number = t.session"
    " WHERE d.checkpoint > ?1 AND d.who = 'step' AND t.undone IS NULL AND t.covered IS NULL"
    " AND d.turn NOT IN (SELECT value FROM json_each(?2)) ORDER BY t.number"
)


class View:
    """The tree of one checkpoint, path by path; the root has the empty path."""

    __slots__ = ("_row", "_trees")

    def __init__(self, trees: "Trees", row: "CheckpointRow") -> None:
        self._trees = trees
        self._row = row

    def at(self, path: bytes) -> "Entry | None":
        """What is at a path; an entry with a reason if nobody knows."""
        return self._trees.at(self._row, path)

    def below(self, path: bytes) -> "list[Entry]":
        """What a folder holds."""
        return self._trees.below(self._row, path)


class Since:
    """Who changed a path after it was left; looked up when somebody did."""

    def __init__(self, ledger: "Ledger", taken: "list[Taken]", turns: "tuple[int, ...]") -> None:
        self._ledger = ledger
        self._turns = turns
        self.last = min((each.last for each in taken), default=0)
        self._found: dict[bytes, Changed] | None = None

    def of(self, path: bytes) -> "list[str]":
        """Who changed it, in words."""
        if self._found is None:
            self._found = reverts.changed_since(self._ledger, self.last, self._turns)
        return self._found[path].names if path in self._found else []

    def dependents(
        self, conflicts: "Mapping[bytes, Conflict]", taken: "list[Taken]", clash: "ClashAt"
    ) -> "tuple[Dependent, ...]":
        """The later turns that build on what is taken back.

        They changed a path that was made by what is taken back, or a place that conflicts.
        """
        made = {each.path for each in taken if each.runs[-1][0] is None}
        if not made and not conflicts:
            return ()
        found: dict[str, Dependent] = {}
        rows = self._ledger.rows(_LATER_TURNS, (self.last, jsontext.dumps(self._turns)))
        for path, checkpoint, id, label, agent in rows:
            conflict = conflicts.get(path)
            if path in made or (conflict is not None and _is_of(conflict, checkpoint, clash)):
                known = found.setdefault(id, Dependent(id, str(label), str(agent)))
                known.paths = tuple(sorted({*known.paths, path}))
        return tuple(found.values())


def _is_of(conflict: "Conflict", checkpoint: int, clash: "ClashAt") -> bool:
    """Whether a change has to do with a conflict: without it, there would be less of it."""
    if conflict.base is None and conflict.theirs is None:
        return True
    after = clash(conflict, checkpoint)
    return after is not None and after != clash(conflict, checkpoint - 1)
