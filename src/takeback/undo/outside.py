"""Plan what becomes of files outside the project when turns are taken back or put back.

The same rules hold as inside: what is as the turn left it goes back, what somebody changed since is
merged, and what cannot be merged is a conflict. No folder is made or removed.
"""

import os

from takeback.capture.changes import Run
from takeback.history.references import quoted
from takeback.ledger import outside
from takeback.model import reasons
from takeback.model.plan import Conflict
from takeback.model.reasons import Reason
from takeback.model.words import KEEP_MINE, NAMED, SKIP
from takeback.undo.plans import reverts
from takeback.undo.plans.draft import Draft
from takeback.undo.plans.renames import Unmoved
from takeback.undo.plans.reverts import Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from takeback.capture.outside import Seen
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.outside import Run as Fold
    from takeback.model.plan import PlannedChange
    from takeback.model.tree import Entry
    from takeback.undo.plans.merge import Merging
    from takeback.undo.plans.select import Selection

    Look = Callable[[Iterable[bytes]], dict[bytes, Seen]]

_MOST_NAMED = 3


class Elsewhere:
    """The files outside of some turns: what was done to them, and what is to be done now."""

    def __init__(self, ledger: "Ledger", chosen: "Selection") -> None:
        self._ledger = ledger
        if chosen.undo is None:
            self._rows = reverts.rows_outside(ledger, chosen.turns)
        elif chosen.is_a_part:
            self._rows = ledger.outside.of_turns(chosen.turns)
        else:
            self._rows = ledger.outside.of_restore(chosen.undo.number)
        self.runs = outside.runs(self._rows)
        if chosen.is_a_part:
            self.runs = {path: _forward(fold) for path, fold in self.runs.items()}

    def plan(self, merging: "Merging", look: "Look", is_chosen: "Callable[[bytes], bool]") -> Draft:
        """What becomes of each file; what somebody changed since is kept."""
        paths = list(filter(is_chosen, self.runs))
        seen = look(paths) if paths else {}
        draft = Draft(_Found(seen), merging, Unmoved())
        for path in paths:
            if seen[path].reason:
                _object(
                    draft, merging, path, Reason(reasons.NOT_COVERED_NOW, why=seen[path].reason)
                )
                continue
            draft.revert(_taken(path, self.runs[path]), _no_folder, self._since)
            draft.revert_older()
            if path in draft.skipped:
                # What is left of a file outside is known only as a whole, for the next undo.
                draft.wishes.pop(path, None)
            wish = draft.wishes.get(path)
            if wish is not None and wish.target is not None and not seen[path].has_folder:
                del draft.wishes[path]
                _object(draft, merging, path, Reason(reasons.FOLDER_GONE))
        for row in self._rows:
            if is_chosen(row.path) and row.path not in self.runs and not row.knows_after:
                why = Reason(reasons.STEP_OPEN)
                if row.reason:
                    why = Reason(reasons.NOT_COVERED, why=row.reason)
                draft.skipped.setdefault(row.path, why)
        return draft

    def _since(self, path: bytes) -> "list[str]":
        """Who changed a file after it was left, in words."""
        last = max(row.number for row in self._rows if row.path == path)
        names = self._ledger.outside.turns_since(path, last)
        return [f'"{quoted(label)}" ({agent})' for label, agent in names] or ["you"]


class _Found:
    """What is outside now, path by path."""

    def __init__(self, seen: "dict[bytes, Seen]") -> None:
        self._seen = seen

    def at(self, path: bytes) -> "Entry | None":
        """What is at a path."""
        return self._seen[path].entry

    def below(self, path: bytes) -> "list[Entry]":
        """What a folder holds: nothing that is known."""
        del path
        return []


def changes(draft: Draft, agent: str) -> "tuple[PlannedChange, ...]":
    """What would be done outside."""
    found = draft.changes(lambda _: (agent,) if agent else ())
    return tuple(change.replace(outside=True) for change in found)


def doubts(changes: "Iterable[PlannedChange]") -> "tuple[Reason, ...]":
    """What needs consent because it is outside."""
    paths = tuple(os.fsdecode(change.path) for change in changes if change.outside)
    return (Reason(reasons.OUTSIDE_CHANGES, paths=paths),) if paths else ()


def staying(ledger: "Ledger", turns: "Sequence[str]") -> "tuple[Reason, ...]":
    """What a rollback over turns says of the files outside that they changed."""
    numbers = [number for id in turns if (number := ledger.turns.number_of(id)) is not None]
    count = len(outside.runs(ledger.outside.of_turns(numbers))) if numbers else 0
    return (Reason(reasons.OUTSIDE_STAYS, count=count),) if count else ()


def _taken(path: bytes, fold: "list[Fold]") -> Taken:
    taken = Taken(Run(path, -1, 0, NAMED, None), fold[0])
    taken.runs, taken.lasts = fold, [0] * len(fold)
    return taken


def _forward(fold: "list[Fold]") -> "list[Fold]":
    return [(after, before) for before, after in reversed(fold)]


def _no_folder(path: bytes) -> None:
    """No folder comes back outside."""
    del path


def _object(draft: Draft, merging: "Merging", path: bytes, reason: Reason) -> None:
    """Let somebody decide; only to leave it alone can be decided."""
    if merging.decision(path) in (KEEP_MINE, SKIP):
        draft.skipped[path] = reason.with_facts(decision=SKIP)
    else:
        draft.conflicts[path] = Conflict(path, reason)
