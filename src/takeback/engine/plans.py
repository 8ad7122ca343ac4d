"""Plan a restore. Pure: states in, a draft out; nothing is read from disk and nothing written.

Taking back what a turn did folds its changes path by path, the newest first:

    now is as the change left it       → as it was before
    now is as it was before            → nothing to do
    now is something else              → somebody changed it since: both are merged

A rollback is simpler: every path becomes what it was, whoever changed it. For both, a folder
goes only if nothing stays in it, and what a state left out is unknown, which is not absent.
"""

import os

from takeback.engine.entries import (
    can_return,
    goes_as_folder,
    is_as_left,
    is_same,
    is_unknown,
    not_covered,
)
from takeback.engine.merging import Clash, Kept, merged_with
from takeback.engine.wishes import Wish, Wishes
from takeback.model import reasons, terms
from takeback.model.made import Made
from takeback.model.plan import WITH_MARKERS, Conflict
from takeback.model.tree import REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.engine.merging import Merging
    from takeback.engine.moves import Move, Renamed, Renames
    from takeback.engine.reverts import Taken
    from takeback.engine.wishes import FolderAt, View
    from takeback.model.tree import Entry

    Since = Callable[[bytes], list[str]]
    Fold = list[tuple[Entry | None, Entry | None]]
    Sides = tuple[Entry | None, Entry | None, Entry | None]


_WAY_OUT = {
    reasons.SPECIAL: ": move it away",
    reasons.TOO_LARGE: ": move it away",
    reasons.UNREADABLE: ": `chmod u+rwX` it",
    reasons.OTHER_MOUNT: ": unmount it",
}


class _Spot:
    """Where something is taken back: `at`, which may be another name by now; `goes` is one that
    goes with it.
    """

    __slots__ = ("at", "folder_at", "goes", "merged", "taken")

    def __init__(self, taken: "Taken", at: bytes, folder_at: "FolderAt", goes: bytes = b"") -> None:
        self.taken = taken
        self.at = at
        self.folder_at = folder_at
        self.goes = goes
        self.merged = ""


class Draft(Wishes):
    """A plan in the making: what is taken back, and what stays of it because of others."""

    def __init__(self, now: "View", merging: "Merging", renamed: "Renamed") -> None:
        super().__init__(now, merging)
        self._renamed = renamed
        self.old_names: set[bytes] = set()
        """Names under which somebody found a file, and gave it another."""
        self._left: set[bytes] = set()
        """What was decided to stay as it is."""

    # -- what shall be ---------------------------------------------------------------------

    def revert(self, taken: "Taken", folder_at: "FolderAt", since: "Since") -> None:
        """Take back what was changed at one path, and keep what others changed since."""
        at = self._place_of(taken)
        if at is not None:
            self._revert_at(_Spot(taken, at, folder_at), taken.runs, since)

    def _revert_at(self, spot: "_Spot", runs: "Fold", since: "Since") -> None:
        """Take back changes at one place, the newest first."""
        now = self._now.at(spot.at)
        folded = self._fold(spot, self._planned(spot.at), runs, since)
        if folded is None:
            return
        state, older = folded
        moved = self._moved(spot, older) if older else None
        if moved is not None:
            # The name was given anew; what had it before is somewhere else now.
            self._revert_at(moved, older, since)
        elif older:
            self._fold(spot, state, older, since)
        if not is_same(now, state):
            self._wish(spot, state)
        else:
            # What was done under another name may have been wished for already.
            self.wishes.pop(spot.at, None)
            self.kept.setdefault(spot.at, "already as it was")

    def _fold(
        self, spot: "_Spot", state: "Entry | None", runs: "Fold", since: "Since"
    ) -> "tuple[Entry | None, Fold] | None":
        """What is left without these changes, and those of a file that had the name before.

        None if somebody has to decide, or if that is said already.
        """
        for number, (before, after) in enumerate(runs):
            if number and state is None and before is not None and after is not None:
                return state, runs[number:]
            if is_unknown(before):
                self.skipped[spot.at] = not_covered(before)
                return None
            if is_as_left(state, after) or (is_unknown(after) and can_return(state, before)):
                state = before
                continue
            if is_same(before, after) or is_same(state, before):
                continue  # what was put back again is no change, whatever came later
            if is_same(state, after) or goes_as_folder(state, after, before):
                state = before
                continue
            merged = self._merge(spot, (after, state, before), since)
            if merged is None:
                return None
            if isinstance(merged, Kept):
                break  # what was done later is taken back all the same
            state = merged
        return state, []

    def _planned(self, path: bytes) -> "Entry | None":
        """What will be at a path, as far as it is known."""
        return self.wishes[path].target if path in self.wishes else self._now.at(path)

    def _moved(self, spot: "_Spot", runs: "Fold") -> "_Spot | None":
        """Where a file is now that is not at its place any more, if it is anywhere."""
        after = runs[0][1]
        if after is None or any(before is None for before, _ in runs):
            return None
        found = self._renamed.find(spot.taken.path, after, self._planned)
        if found is None or self._goes(found) or found == spot.at:
            return None
        return _Spot(spot.taken, found, spot.folder_at)

    def _place_of(self, taken: "Taken") -> "bytes | None":
        """Where the file is now: somebody may have renamed it. None if all is said already."""
        left = taken.runs[0][1]
        if left is None or self._now.at(taken.path) is not None:
            return taken.path
        found = self._renamed.find(taken.path, left, self._planned)
        if found is None or self._goes(found):
            return taken.path
        self.old_names.add(taken.path)
        if any(before is None for before, _ in taken.runs):
            self.kept[found] = (
                f"made by this turn as `{os.fsdecode(taken.path)}`, and renamed since"
            )
            return None
        return found

    def revert_move(self, move: "Move", folder_at: "FolderAt", since: "Since") -> bool:
        """Take back a rename of a file that was changed since; False if it was not.

        What was changed goes with it to the old name. If it was renamed once more, it stays where
        it is, and only its content goes back; if it was deleted, it stays deleted.
        """
        old, new, left = move.old, move.new, move.new.runs[0][1]
        # Under a later name it may have been edited, too; that is taken back already.
        now = self._planned(new.path)
        if self._now.at(old.path) is not None or is_unknown(now):
            return False
        if move.is_plain and not move.is_made and is_same(now, left):
            return False
        at, goes = old.path, new.path if now is not None else b""
        if move.is_made:
            at, goes = new.path, b""
        if now is None and left is not None:
            found = self._renamed.find(new.path, left, self._planned)
            if found is not None and found in self.wishes:
                self._object(old.path, "renamed by this turn, and changed by others in between")
                return True
            if found is None:
                self.kept[old.path] = "renamed by this turn and deleted since"
                return True
            self.old_names.add(new.path)
            at, now = found, self._now.at(found)
        spot = _Spot(old, at, folder_at, goes)
        folded = self._fold(spot, now, move.runs, since)
        if folded is None:
            return True
        state = folded[0]
        if at != old.path and is_same(state, now):
            said = f"renamed by this turn to `{os.fsdecode(new.path)}`, and since to this"
            self.kept.setdefault(at, said)
        else:
            self._wish(spot, state)
        return True

    def _wish(self, spot: "_Spot", state: "Entry | None") -> None:
        taken, at = spot.taken, spot.at
        wish = self.wishes[at] = Wish(state, spot.folder_at, taken.how)
        wish.merged = spot.merged if isinstance(state, Made) else ""
        if spot.goes:
            self.wishes[spot.goes] = Wish(None, spot.folder_at, taken.how)
            wish.along = f"with what was changed since in `{os.fsdecode(spot.goes)}`"
        elif at != taken.path:
            wish.along = f"was `{os.fsdecode(taken.path)}`, and was renamed since"

    def _merge(self, spot: "_Spot", sides: "Sides", since: "Since") -> "Entry | Kept | None":
        """What comes of both changes; None if somebody has to decide, or has decided."""
        base, ours, theirs = sides
        seen = spot.goes or spot.at
        if is_unknown(ours):
            way_out = _WAY_OUT.get(ours.reason, "") if ours is not None else ""
            self._object(seen, not_covered(ours) + way_out)
            return None
        if is_unknown(base):
            self.skipped[seen] = not_covered(base)
            return None
        found = self._merging.outcome(base, theirs, ours)
        if isinstance(found, Kept):
            self.kept[seen] = _why(since(seen), found.reason)
            return found
        if isinstance(found, Clash):
            conflict = _conflict(seen, found, sides, since)
            if not self._is_decided(spot, conflict):
                self.conflicts[seen] = conflict
            return None
        spot.merged = merged_with(since(seen)) if isinstance(found, Made) else spot.merged
        return found

    def _is_decided(self, spot: "_Spot", conflict: Conflict) -> bool:
        """Do what was decided for a conflict, if something was."""
        decision = self._merging.decision(conflict.path)
        if self._is_left(conflict.path, conflict.reason):
            self._left.add(conflict.path)
        elif decision == terms.TAKE_BACK:
            self._wish(spot, spot.taken.runs[-1][0])
            self.wishes[spot.at].along = f"{conflict.reason}; that goes, too"
        elif decision == terms.MARKERS and conflict.marked is not None:
            ours = conflict.ours
            mode = ours.mode if ours is not None else REGULAR | 0o644
            spot.merged = WITH_MARKERS
            self._wish(spot, Made(conflict.marked, mode))
        else:
            return False
        return True

    def take_along(
        self, taken: "Taken", other: bytes, folder_at: "FolderAt", since: "Since"
    ) -> None:
        """Take back the other side of a rename, of which only one side was named.

        What would go and was changed since stays: what was named comes back beside it.
        """
        self.revert(taken, folder_at, since)
        if taken.path in self.wishes:
            self.wishes[taken.path].along = f"together with `{os.fsdecode(other)}` (a rename)"
        elif taken.path in self.conflicts and taken.runs[-1][0] is None:
            self.kept[taken.path] = self.conflicts.pop(taken.path).reason

    def hold_back(self, renames: "Renames", taken: "Iterable[Taken]") -> None:
        """Let no file go whose old name cannot come back: its content would be out of sight."""
        returning = {each.path for each in taken if each.runs[-1][0] is not None}
        stuck = returning & (self.conflicts.keys() | self._left)
        for path in filter(self._goes, list(renames)):
            for other in sorted(renames[path] & stuck):
                self.wishes.pop(path, None)
                self._object(path, f"its old name `{os.fsdecode(other)}` conflicts")


def _conflict(
    path: bytes,
    clash: Clash,
    sides: "Sides",
    since: "Since",
) -> Conflict:
    base, ours, theirs = sides
    reason = _why(since(path), clash.reason)
    return Conflict(path, reason, base=base, ours=ours, theirs=theirs, marked=clash.marked)


def _why(since: "list[str]", reason: str) -> str:
    return f"{reason} by {' and '.join(since)}" if since else reason
