"""What paths shall become, and what follows from it: folders have to be there, or empty.

Pure, as all of planning. A path becomes what is wished, conflicts, is kept, or is skipped because
nobody knows what it held; each is said. What a state left out is unknown, which is not absent.
"""

import os

from takeback.engine.entries import (
    can_be_captured,
    folders_above,
    joined,
    named,
    no_folder,
    verb_of,
)
from takeback.model import reasons, terms
from takeback.model.plan import Conflict, PlannedChange, Remark
from takeback.model.tree import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from takeback.engine.merging import Merging
    from takeback.model.difference import Difference
    from takeback.model.tree import Entry

    class View(Protocol):
        """A state of the tree, path by path."""

        def at(self, path: bytes) -> Entry | None:
            """What is at a path; an entry with a reason if nobody knows."""

        def below(self, path: bytes) -> list[Entry]:
            """What a folder holds."""

    FolderAt = Callable[[bytes], Entry | None]


class Wish:
    """What a path shall become, where its folder would come from, and whose change that is.

    `along` says with what it goes, if nobody named it; `merged` with whose changes it is put
    together.
    """

    __slots__ = ("along", "folder_at", "how", "merged", "target")

    def __init__(
        self, target: "Entry | None", folder_at: "FolderAt | None" = None, how: str = ""
    ) -> None:
        self.target = target
        self.folder_at = folder_at
        self.how = how
        self.along = self.merged = ""


class Wishes:
    """What shall be done at which path, and what is said of others."""

    def __init__(self, now: "View", merging: "Merging") -> None:
        self._now = now
        self._merging = merging
        self.wishes: dict[bytes, Wish] = {}
        self.conflicts: dict[bytes, Conflict] = {}
        self.kept: dict[bytes, str] = {}
        self.skipped: dict[bytes, str] = {}
        self._there: set[bytes] = set()

    def exactly(self, found: "Difference", folder_at: "FolderAt") -> None:
        """Let a path become what it was, whoever changed it."""
        now, then = found.before, found.after
        if then is not None and then.reason:
            self.skipped[found.path] = f"not covered then ({reasons.word(then.reason)})"
        elif now is None or not now.reason or can_be_captured(now, then):
            self.wishes[found.path] = Wish(then, folder_at)
        elif then is None or (now.kind in (FOLDER, 0) and then.kind == FOLDER):
            self.skipped[found.path] = f"not covered ({reasons.word(now.reason)})"
        else:
            word = reasons.word(now.reason)
            self._object(found.path, f"in the way, and not covered ({word}): move it away")

    # -- what follows from it --------------------------------------------------------------

    def finish(self) -> None:
        """See that folders are there for what is put into them, and empty when they go."""
        for path in sorted(self.wishes):
            self._require_folders(path)
        for path in sorted(self.wishes, reverse=True):
            self._require_empty(path)
        # Of a folder that is left alone nobody needs to hear what is in it.
        known = self.skipped.keys()
        self.skipped = {p: self.skipped[p] for p in known if known.isdisjoint(folders_above(p))}

    def _require_folders(self, path: bytes) -> None:
        wish = self.wishes.get(path)
        if wish is None or wish.target is None:
            return
        for above in folders_above(path):
            if above in self._there:
                continue
            problem = self._require_folder(above, wish)
            if not problem:
                self._there.add(above)
            else:
                del self.wishes[path]
                self._object(path, problem)
                return

    def _require_folder(self, path: bytes, wish: Wish) -> str:
        """Let a folder be there, in which something shall be; why it cannot, if so."""
        shown = os.fsdecode(path)
        if path in self.conflicts:
            return f"its folder `{shown}` conflicts"
        wanted = self.wishes.get(path)
        if wanted is not None and wanted.target is not None:
            return "" if wanted.target.kind == FOLDER else f"`{shown}` will be no folder"
        now = self._now.at(path)
        if now is not None and now.kind == FOLDER and not now.reason:
            self.wishes.pop(path, None)
            return ""
        if now is not None and (wanted is None or now.reason):
            return f"`{shown}` is {no_folder(now)}"
        folder = wish.folder_at(path) if wish.folder_at is not None else None
        if folder is None or folder.kind != FOLDER or folder.reason:
            return f"its folder `{shown}` is gone"
        self.wishes[path] = Wish(folder, wish.folder_at, wish.how)
        return ""

    def _require_empty(self, path: bytes) -> None:
        """A folder goes, or becomes something else, only if nothing stays in it."""
        wish, now = self.wishes.get(path), self._now.at(path)
        if wish is None or now is None or now.kind != FOLDER or now.reason:
            return
        if wish.target is not None and wish.target.kind == FOLDER:
            return
        stays = [e for e in self._now.below(path) if not self._goes(joined(path, e.name))]
        if not stays:
            return
        del self.wishes[path]
        if wish.target is None:
            self.kept[path] = f"not empty: it holds {named(stays)}"
        else:
            self._object(path, f"it holds {named(stays)}, which would have to go: move it away")

    def _goes(self, path: bytes) -> bool:
        wish = self.wishes.get(path)
        return wish is not None and wish.target is None

    def _object(self, path: bytes, reason: str) -> None:
        if not self._is_left(path, reason):
            self.conflicts[path] = Conflict(path, reason)

    def _is_left(self, path: bytes, reason: str) -> bool:
        """Leave a path as it is, if that was decided."""
        decision = self._merging.decision(path)
        if decision == terms.KEEP_MINE:
            self.kept[path] = f"{reason}; stays, as decided"
        elif decision == terms.SKIP:
            self.skipped[path] = f"{reason}; left as it is"
        return decision in (terms.KEEP_MINE, terms.SKIP)

    # -- what comes of it ------------------------------------------------------------------

    def changes(self, whose: "Callable[[bytes], tuple[str, ...]]") -> "tuple[PlannedChange, ...]":
        """What would be done, in the order of the paths."""
        found = []
        for path in sorted(self.wishes):
            wish, now = self.wishes[path], self._now.at(path)
            verb = verb_of(path, now, wish.target)
            if verb:
                change = PlannedChange(
                    path, verb, now, wish.target, whose=whose(path), how=wish.how
                )
                change.along, change.merged = wish.along, wish.merged
                found.append(change)
        return tuple(found)


def in_order(conflicts: "dict[bytes, Conflict]") -> "tuple[Conflict, ...]":
    """Conflicts in the order of their paths."""
    return tuple(conflicts[path] for path in sorted(conflicts))


def remarks(said: "dict[bytes, str]") -> "tuple[Remark, ...]":
    """What is said of paths, in their order."""
    return tuple(Remark(path, said[path]) for path in sorted(said))
