"""Plan a restore. Pure: states in, a draft out.

Taking back what a turn did folds its changes path by path, the newest first:

    now is as the change left it       → as it was before
    now is as it was before            → nothing to do
    now is something else              → somebody changed it since: both are merged

A rollback is simpler: every path becomes what it was, whoever changed it. For both, a folder
goes only if nothing stays in it, and what a state left out is unknown, which is not absent.

A path becomes what is wished, conflicts, is kept, or is skipped because nobody knows what it held.
"""

import os

from takeback.model import reasons, words
from takeback.model.plan import FORCED, GONE, OPEN, SETTLED, Conflict
from takeback.model.reasons import Reason, not_covered
from takeback.model.tree import (
    REGULAR,
    UnstoredFile,
    can_return,
    goes_as_folder,
    is_as_left,
    is_same,
    is_unknown,
)
from takeback.undo.plans.merge import LEAVING, Clash, Kept, TextMerge
from takeback.undo.plans.wishes import Wish, Wishes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.model.plan import Hunk
    from takeback.model.text.lines import Block
    from takeback.model.tree import Entry
    from takeback.undo.plans.merge import Merging
    from takeback.undo.plans.renames import Move, Renamed, Renames
    from takeback.undo.plans.reverts import Taken
    from takeback.undo.plans.wishes import FolderAt, View

    Since = Callable[[bytes], list[str]]

    Fold = list[tuple[Entry | None, Entry | None]]

    Sides = tuple[Entry | None, Entry | None, Entry | None]

    Rest = tuple[str, tuple[Block, ...] | None]
    """What is left of a change, and why: some blocks of it, or all."""


class _Spot:
    """Where something is taken back: `at`, which may be another name by now; `goes` is one that
    goes with it.

    `hunks` are the places of its text so far, `decided` what was decided about some of them, with
    the reason; `conflict` is the first about which nobody did.
    """

    __slots__ = ("at", "by_hunk", "conflict", "decided", "folder_at", "goes", "hunks", "merged",
                 "taken")  # fmt: skip

    def __init__(self, taken: "Taken", at: bytes, folder_at: "FolderAt", goes: bytes = b"") -> None:
        self.taken = taken
        self.at = at
        self.folder_at = folder_at
        self.goes = goes
        self.merged: Reason | None = None
        self.hunks: list[Hunk] = []
        self.decided: dict[str, Reason] = {}
        self.conflict: Conflict | None = None
        self.by_hunk = False

    @property
    def seen(self) -> bytes:
        """Under which name somebody sees it now."""
        return self.goes or self.at


class Draft(Wishes):
    """A plan in the making: what is taken back, and what stays of it because of others."""

    def __init__(
        self, now: "View", merging: "Merging", renamed: "Renamed", *, by_hunk: bool = False
    ) -> None:
        super().__init__(now, merging)
        self._renamed = renamed
        self._by_hunk = by_hunk
        self.old_names: set[bytes] = set()
        """Names under which somebody found a file, and gave it another."""
        self._left: set[bytes] = set()  # by decision
        self._older: list[tuple[int, _Spot, Fold, Since]] = []  # what is put off, in order
        self.places: dict[bytes, bytes | None] = {}
        """Where each path was found, if it is taken back."""
        self.idle: set[bytes] = set()
        """Paths that stay as they are; `rest` says why."""
        self.covered: set[bytes] = set()  # what was meant
        self.moved: dict[bytes, set[bytes]] = {}
        """Of renames that were taken back as such, all names of each name."""
        self.rest: dict[tuple[bytes, int], list[Rest]] = {}
        """What is left of changes, by path and place among its runs."""
        self.hunks: dict[bytes, int] = {}
        """How many hunks there are in each text."""

    # -- what shall be ---------------------------------------------------------------------

    def revert(self, taken: "Taken", folder_at: "FolderAt", since: "Since") -> None:
        """Take back what was changed at one path, and keep what others changed since."""
        at = self.places[taken.path] = self._place_of(taken)
        if at is not None:
            self._revert_at(_Spot(taken, at, folder_at), taken.runs, since)

    def _revert_at(self, spot: "_Spot", runs: "Fold", since: "Since") -> None:
        """Take back changes at one place, the newest first."""
        now = self._now.at(spot.at)
        folded = self._fold(spot, self.planned(spot.at), runs, since)
        if folded is None:
            return
        state, older = folded
        self._put_off(spot, older, since)
        if self._is_undecided(self._counted(spot, self.planned(spot.at), runs, since)):
            return
        if not is_same(now, state):
            self._wish(spot, state)
        else:
            # What was done under another name may have been wished for already.
            self.wishes.pop(spot.at, None)
            self.idle.add(spot.taken.path)
            if spot.at not in self.skipped:
                self.kept.setdefault(spot.at, Reason(reasons.ALREADY))

    def _put_off(self, spot: "_Spot", runs: "Fold", since: "Since") -> None:
        """Leave older changes for later: what was done under other names may come first."""
        if runs:
            order = spot.taken.order_of(len(spot.taken.runs) - len(runs))
            self._older.append((order, spot, runs, since))
            self._older.sort(key=lambda each: each[0])

    def revert_older(self, order: "int | None" = None) -> None:
        """Take back what was done to files before another got their name: all, or up to an order.

        Such a file is under another name by now, or nowhere.
        """
        while self._older and (order is None or self._older[0][0] <= order):
            _, spot, runs, since = self._older.pop(0)
            moved = self._moved(spot, runs)
            if moved is not None:
                self._revert_at(moved, runs, since)
            else:
                self._fold(spot, None, runs, since)

    def _counted(
        self, spot: "_Spot", state: "Entry | None", runs: "Fold", since: "Since"
    ) -> "_Spot":
        """The same with all hunks counted, if one conflicts: their indexes stay once decided."""
        if spot.conflict is None or spot.by_hunk:
            return spot
        counted = _Spot(spot.taken, spot.at, spot.folder_at, spot.goes)
        counted.by_hunk = True
        self._fold(counted, state, runs, since)
        return counted

    def fold(self, taken: "Taken") -> "Entry | None":
        """What is left at a path without its changes, one by one; `rest` says what is left."""
        spot = _Spot(taken, taken.path, lambda _: None)
        folded = self._fold(spot, self._now.at(taken.path), taken.runs, lambda _: [])
        return folded[0] if folded is not None and not folded[1] else None

    def _fold(
        self, spot: "_Spot", state: "Entry | None", runs: "Fold", since: "Since"
    ) -> "tuple[Entry | None, Fold] | None":
        """What is left without these changes, and those of a file that had the name before.

        None if somebody has to decide, or if that is said already.
        """
        first = len(spot.taken.runs) - len(runs)
        for number, (before, after) in enumerate(runs):
            key = (spot.taken.path, first + number)
            if number and state is None and before is not None and after is not None:
                return state, runs[number:]
            if is_unknown(before):
                self.skipped[spot.at] = not_covered(before)
                return None
            if is_as_left(state, after) or (is_unknown(after) and can_return(state, before)):
                state = before
                continue
            is_back = is_same(state, before) and not self._is_by_hunk(spot, state, before, after)
            if is_same(before, after) or is_back:
                # What was put back again is no change, whatever came later.
                self.rest[key] = [(GONE, None)]
                continue
            if self._goes_whole(spot, state, before, after):
                state = before
                continue
            merged = self._merge(spot, key, (after, state, before), since)
            if merged is None:
                return None
            if isinstance(merged, Kept):
                # What was done later is taken back all the same.
                self.rest |= {
                    (key[0], at): [(GONE, None)] for at in range(key[1], first + len(runs))
                }
                break
            state = merged
        return state, []

    def _goes_whole(
        self, spot: "_Spot", state: "Entry | None", before: "Entry | None", after: "Entry | None"
    ) -> bool:
        """Whether nothing came since, and nobody chooses among the hunks."""
        is_left = is_same(state, after) and not self._is_by_hunk(spot, before, after)
        return is_left or goes_as_folder(state, after, before)

    def _is_by_hunk(self, spot: "_Spot", *sides: "Entry | None") -> bool:
        """Whether somebody chooses among the hunks of a text."""
        is_wanted = self._by_hunk or spot.by_hunk or self._merging.is_by_hunk(spot.seen)
        return is_wanted and all(side is not None and side.kind == REGULAR for side in sides)

    def planned(self, path: bytes) -> "Entry | None":
        """What will be at a path, as far as it is known."""
        return self.wishes[path].target if path in self.wishes else self._now.at(path)

    def _moved(self, spot: "_Spot", runs: "Fold") -> "_Spot | None":
        """Where a file is now that is not at its place any more, if it is anywhere."""
        after = runs[0][1]
        if after is None or any(before is None for before, _ in runs):
            return None
        found = self._renamed.find(spot.taken.path, after, self.planned)
        if found is None or self._goes(found) or found == spot.at:
            return None
        return _Spot(spot.taken, found, spot.folder_at)

    def _place_of(self, taken: "Taken") -> "bytes | None":
        """Where the file is now: somebody may have renamed it. None if all is said already."""
        left = taken.runs[0][1]
        if left is None or self._now.at(taken.path) is not None:
            return taken.path
        found = self._renamed.find(taken.path, left, self.planned)
        if found is None or self._goes(found):
            return taken.path
        self.old_names.add(taken.path)
        if any(before is None for before, _ in taken.runs):
            name = os.fsdecode(taken.path)
            self.kept[found] = Reason(reasons.MADE_AND_RENAMED, name=name)
            return None
        return found

    def revert_move(self, move: "Move", folder_at: "FolderAt", since: "Since") -> bool:
        """Take back a rename of a file that was changed since; False if it was not.

        What was changed goes with it to the old name. If it was renamed once more, it stays where
        it is, and only its content goes back; if it was deleted, it stays deleted.
        """
        old, new, left = move.old, move.new, move.new.runs[0][1]
        # Under a later name it may have been edited, too; that is taken back already.
        now = self.planned(new.path) if left is not None else None
        if self._now.at(old.path) is not None or is_unknown(now):
            return False
        if move.is_plain and not move.is_made and is_same(now, left):
            return False
        for each in move.names:
            self._put_off(_Spot(each, each.path, folder_at), each.older, since)
        at, goes = (new.path, b"") if move.is_made else (old.path, new.path if now else b"")
        if now is None and left is not None:
            found = self._renamed.find(new.path, left, self.planned)
            if found is None:
                self.kept[old.path] = Reason(reasons.RENAMED_AND_DELETED)
                return True
            at, now = found, self.planned(found)
            self.old_names.add(new.path)
            self.places |= dict.fromkeys((each.path for each in move.names), at)
        spot = _Spot(old, at, folder_at, goes)
        folded = self._fold(spot, now, move.runs, since)
        if folded is None or self._is_undecided(self._counted(spot, now, move.runs, since)):
            return True
        state = folded[0]
        if at != old.path and is_same(state, now):
            if at not in self.wishes:
                name = os.fsdecode(new.path)
                self.kept.setdefault(at, Reason(reasons.RENAMED_AGAIN, name=name))
        else:
            self._wish(spot, state)
        return True

    def _wish(self, spot: "_Spot", state: "Entry | None") -> None:
        taken, at = spot.taken, spot.at
        wish = self.wishes[at] = Wish(state, spot.folder_at, taken.how)
        wish.merged = spot.merged if isinstance(state, UnstoredFile) else None
        if self._by_hunk:
            wish.hunks = tuple(hunk for hunk in spot.hunks if hunk.ours != hunk.theirs)
        if spot.goes:
            self.wishes[spot.goes] = Wish(None, spot.folder_at, taken.how)
            wish.along = Reason(reasons.CARRIES_CHANGES, path=os.fsdecode(spot.goes))
        elif at != taken.path:
            wish.along = Reason(reasons.WAS_RENAMED, path=os.fsdecode(taken.path))
        if words.TAKE_BACK in spot.decided:
            wish.along = spot.decided[words.TAKE_BACK]

    def _merge(
        self, spot: "_Spot", key: "tuple[bytes, int]", sides: "Sides", since: "Since"
    ) -> "Entry | Kept | None":
        """What comes of both changes; None if somebody has to decide, or has decided."""
        base, ours, theirs = sides
        seen = spot.seen
        if is_unknown(ours):
            self._object(seen, not_covered(ours, reasons.UNCOVERED_SINCE))
            return None
        if is_unknown(base):
            self.skipped[seen] = not_covered(base)
            return None
        found = self._merging.outcome(base, theirs, ours, by_hunk=self._is_by_hunk(spot, *sides))
        if isinstance(found, Kept):
            self.kept[seen] = _by(since(seen), found.reason)
            return found
        if isinstance(found, Clash):
            conflict = _conflict(seen, found.reason, sides, since)
            if not self._is_decided(spot, conflict):
                self.conflicts[seen] = conflict
            return None
        if isinstance(found, TextMerge):
            return self._choose(spot, key, found, sides, since)
        if is_same(found, ours):
            self.rest[key] = [(GONE, None)]
        return found

    def _choose(
        self,
        spot: "_Spot",
        key: "tuple[bytes, int]",
        found: TextMerge,
        sides: "Sides",
        since: "Since",
    ) -> "Entry | None":
        """What becomes of a text with what was decided about each of its hunks.

        As long as one is not decided it stays, so that those of earlier changes are found, too.
        """
        hunks = list(found.told(len(spot.hunks)))
        choices = [self._merging.choice(spot.seen, hunk) for hunk in hunks]
        is_first = spot.conflict is None
        conflict = _conflict(spot.seen, found.reason, sides, since)
        for hunk, choice in zip(hunks, choices, strict=True):
            if hunk.ours == hunk.theirs:
                continue
            if choice and (hunk.clashes or choice in LEAVING):
                why = conflict.reason if hunk.clashes else Reason(reasons.HUNKS_LEFT)
                spot.decided.setdefault(choice, why.with_facts(decision=choice))
            elif hunk.clashes and spot.conflict is None:
                spot.conflict = conflict.replace(marked=found.marked(self._merging.labels))
        if spot.conflict is None or not is_first:
            hunks = [hunk.replace(marker=-1) for hunk in hunks]
        spot.hunks += hunks
        self.hunks[spot.seen] = len(spot.hunks)
        leaving = next((choice for choice in LEAVING if choice in spot.decided), "")
        if spot.goes and leaving and not spot.conflict:
            # A name cannot be kept in part.
            self._leave(spot, conflict.reason, leaving)
            return None
        self.rest[key] = list(found.rest(choices))
        is_marked = words.MARKERS in spot.decided
        by = Reason(reasons.MERGED, by=tuple(since(spot.seen)))
        spot.merged = Reason(reasons.WITH_MARKERS) if is_marked else by
        text = found.text([choice or words.KEEP_MINE for choice in choices], self._merging.labels)
        made = UnstoredFile(text, found.mode)
        return next((side for side in sides if side is not None and is_same(side, made)), made)

    def _is_undecided(self, spot: "_Spot") -> bool:
        """Tell what was decided about hunks; whether somebody still has to decide about some."""
        if spot.conflict is not None:
            hunks = tuple(hunk for hunk in spot.hunks if hunk.clashes)
            self.conflicts[spot.seen] = spot.conflict.replace(hunks=hunks)
            return True
        for decision in LEAVING:
            if decision in spot.decided:
                self._is_left(spot.seen, spot.decided[decision], decision)
        return False

    def _leave(self, spot: "_Spot", reason: Reason, decision: str) -> bool:
        """Leave a path as it is, with all that was changed there, if that was decided."""
        if not self._is_left(spot.seen, reason, decision):
            return False
        self._left.add(spot.seen)
        return True

    def _is_decided(self, spot: "_Spot", conflict: Conflict) -> bool:
        """Do what was decided for a path that cannot be merged, if something was."""
        decision = self._merging.decision(conflict.raw_path)
        if self._leave(spot, conflict.reason, decision):
            return True
        if decision != words.TAKE_BACK:
            return False
        self._wish(spot, spot.taken.runs[-1][0])
        for place in range(len(spot.taken.runs)):
            self.rest[spot.taken.path, place] = [(FORCED, None)]
        self.wishes[spot.at].along = conflict.reason.with_facts(decision=decision)
        return True

    def why_left(self, paths: "Iterable[bytes]") -> str:
        """Why nothing was done at some paths."""
        for why, said in ((OPEN, self.skipped), (SETTLED, self.kept)):
            if any("decision" in dict(said[path].facts) for path in paths if path in said):
                return why
        return GONE

    def take_along(
        self, taken: "Taken", other: bytes, folder_at: "FolderAt", since: "Since"
    ) -> None:
        """Take back the other side of a rename, of which only one side was named.

        What would go and was changed since stays: what was named comes back beside it.
        """
        self.revert(taken, folder_at, since)
        if taken.path in self.wishes:
            along = Reason(reasons.WITH_RENAME, path=os.fsdecode(other))
            self.wishes[taken.path].along = along
        elif taken.path in self.conflicts and taken.runs[-1][0] is None:
            self.kept[taken.path] = self.conflicts.pop(taken.path).reason

    def hold_back(self, renames: "Renames", taken: "Iterable[Taken]") -> None:
        """Let no file go whose old name cannot come back: its content would be out of sight."""
        returning = {each.path for each in taken if each.runs[-1][0] is not None}
        stuck = returning & (self.conflicts.keys() | self._left)
        for path in filter(self._goes, list(renames)):
            for other in sorted(renames[path] & stuck):
                self.wishes.pop(path, None)
                old = Reason(reasons.OLD_NAME_CONFLICTS, path=os.fsdecode(other))
                self._object(path, old)


def _conflict(path: bytes, code: str, sides: "Sides", since: "Since") -> Conflict:
    base, ours, theirs = sides
    return Conflict(path, _by(since(path), code), base=base, ours=ours, theirs=theirs)


def _by(since: "list[str]", code: str) -> Reason:
    return Reason(code, by=tuple(since)) if since else Reason(code)
