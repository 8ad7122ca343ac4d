"""What shall be done at which path: with the folders that it needs, and what is said of others."""

import os

from takeback.model import reasons, words
from takeback.model.plan import Conflict, PlannedChange, Remark
from takeback.model.reasons import Reason, not_covered
from takeback.model.tree import FOLDER, can_be_captured, folders_above, joined, verb_of
from takeback.undo.plans.merge import LEAVING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from takeback.model.plan import Hunk
    from takeback.model.tree import Difference, Entry
    from takeback.undo.plans.merge import Merging

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
    together. `hunks` are its places, if somebody wants to choose among them.
    """

    __slots__ = ("along", "folder_at", "how", "hunks", "merged", "target")

    def __init__(
        self, target: "Entry | None", folder_at: "FolderAt | None" = None, how: str = ""
    ) -> None:
        self.target = target
        self.folder_at = folder_at
        self.how = how
        self.along: Reason | None = None
        self.merged: Reason | None = None
        self.hunks: tuple[Hunk, ...] = ()


class Wishes:
    """What shall be done at which path, and what is said of others."""

    def __init__(self, now: "View", merging: "Merging") -> None:
        self._now = now
        self._merging = merging
        self.wishes: dict[bytes, Wish] = {}
        self.conflicts: dict[bytes, Conflict] = {}
        self.kept: dict[bytes, Reason] = {}
        self.skipped: dict[bytes, Reason] = {}
        self._there: set[bytes] = set()

    def exactly(self, found: "Difference", folder_at: "FolderAt") -> None:
        """Let a path become what it was, whoever changed it."""
        now, then = found.before, found.after
        if then is not None and then.reason:
            self.skipped[found.raw_path] = not_covered(then, reasons.NOT_COVERED_THEN)
        elif now is None or not now.reason or can_be_captured(now, then):
            self.wishes[found.raw_path] = Wish(then, folder_at)
        elif then is None or (now.kind in (FOLDER, 0) and then.kind == FOLDER):
            self.skipped[found.raw_path] = not_covered(now)
        else:
            self._object(found.raw_path, not_covered(now, reasons.IN_THE_WAY))

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
            if problem is None:
                self._there.add(above)
            else:
                del self.wishes[path]
                self._object(path, problem)
                return

    def _require_folder(self, path: bytes, wish: Wish) -> "Reason | None":
        """Let a folder be there, in which something shall be; why it cannot, if so."""
        shown = os.fsdecode(path)
        if path in self.conflicts:
            return Reason(reasons.FOLDER_CONFLICTS, folder=shown)
        wanted = self.wishes.get(path)
        if wanted is not None and wanted.target is not None:
            is_folder = wanted.target.kind == FOLDER
            return None if is_folder else Reason(reasons.NO_FOLDER_THEN, folder=shown)
        now = self._now.at(path)
        if now is not None and now.kind == FOLDER and not now.reason:
            self.wishes.pop(path, None)
            return None
        if now is not None and (wanted is None or now.reason):
            why = words.word(now.reason) if now.reason else ""
            return Reason(reasons.NO_FOLDER, folder=shown, why=why)
        folder = wish.folder_at(path) if wish.folder_at is not None else None
        if folder is None or folder.kind != FOLDER or folder.reason:
            return Reason(reasons.FOLDER_GONE, folder=shown)
        self.wishes[path] = Wish(folder, wish.folder_at, wish.how)
        return None

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
        first = os.fsdecode(min(entry.name for entry in stays))
        if wish.target is None:
            self.kept[path] = Reason(reasons.NOT_EMPTY, name=first, count=len(stays))
        else:
            self._object(path, Reason(reasons.HOLDS_OTHERS, name=first, count=len(stays)))

    def _goes(self, path: bytes) -> bool:
        wish = self.wishes.get(path)
        return wish is not None and wish.target is None

    def _object(self, path: bytes, reason: Reason) -> None:
        if not self._is_left(path, reason):
            self.conflicts[path] = Conflict(path, reason)

    def _is_left(self, path: bytes, reason: Reason, decision: str = "") -> bool:
        """Leave a path as it is, if that was decided."""
        decision = decision or self._merging.decision(path)
        if decision == words.KEEP_MINE:
            self.kept[path] = reason.with_facts(decision=decision)
        elif decision == words.SKIP:
            self.skipped[path] = reason.with_facts(decision=decision)
        return decision in LEAVING

    # -- what comes of it ------------------------------------------------------------------

    def changes(self, whose: "Callable[[bytes], tuple[str, ...]]") -> "tuple[PlannedChange, ...]":
        """What would be done, in the order of the paths."""
        found = []
        for path in sorted(self.wishes):
            wish, now = self.wishes[path], self._now.at(path)
            verb = verb_of(path, now, wish.target)
            if verb:
                found.append(
                    PlannedChange(
                        path,
                        verb,
                        now,
                        wish.target,
                        whose=whose(path),
                        how=wish.how,
                        along=wish.along,
                        merged=wish.merged,
                        hunks=wish.hunks,
                    )
                )
        return tuple(found)


def in_order(conflicts: "dict[bytes, Conflict]") -> "tuple[Conflict, ...]":
    """Conflicts in the order of their paths."""
    return tuple(conflicts[path] for path in sorted(conflicts))


def remarks(said: "dict[bytes, Reason]") -> "tuple[Remark, ...]":
    """What is said of paths, in their order."""
    return tuple(Remark(path, said[path]) for path in sorted(said))
