"""What comes back from the rescue with what is taken back: it was destroyed, and no state holds it.

Nothing is overwritten: what is there again stays, unless it is what the command itself left in the
place of what it destroyed. A rescued file is checked before it is used.
"""

import hashlib
import os

from takeback.effects.saved import area, git_rescue
from takeback.errors import DamagedStoreError
from takeback.model import reasons, words
from takeback.model.plan import PlannedChange, Remark
from takeback.model.reasons import Reason
from takeback.model.tree import FOLDER, KIND, LINK, RescuedEntry
from takeback.worktree.scan import VERSION_CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.capture.workspace import Workspace
    from takeback.effects.saved.area import Held
    from takeback.ledger.beyond.rescues import RescueRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.plan import Plan
    from takeback.model.tree import Entry
    from takeback.undo.plans.planner import Planner

_LONGEST = 1 << 26
_MADE = {FOLDER: words.MKDIR, LINK: words.RELINK}


def with_rescued(work: "Workspace", planner: "Planner", plan: "Plan") -> "Plan":
    """A plan with what was rescued while the turns ran that it takes back or goes back over."""
    rows = _rows(work.ledger, plan) if work.ledger.rescues.has_any() else []
    if not rows:
        return plan
    if plan.verb == words.REDO:
        is_there = any(os.path.lexists(top) for row in rows for top in row.tops)
        stays = (Reason(reasons.RESCUED_STAYS),) if is_there else ()
        return plan.replace(stays=(*plan.stays, *stays))
    found = _Returning(work, planner, plan)
    for row in rows:
        found.add(row)
    return found.plan()


def _rows(ledger: "Ledger", plan: "Plan") -> "list[RescueRow]":
    """The rescues that a plan is about, the oldest first: what was there first comes back."""
    if plan.verb == words.ROLLBACK:
        (row,) = ledger.checkpoints.with_prefix(plan.target)
        return ledger.rescues.since(row.event)
    numbers = [number for id in plan.turns if (number := ledger.turns.number_of(id)) is not None]
    return ledger.rescues.of_turns(numbers)


class _Returning:
    """Adds to one plan what comes back."""

    def __init__(self, work: "Workspace", planner: "Planner", plan: "Plan") -> None:
        self._work = work
        self._planner = planner
        self._plan = plan
        self._root = os.path.realpath(work.root)
        self._changes: dict[bytes, PlannedChange] = {}
        self._known = {self._whole(change.raw_path): change for change in plan.changes}
        self._kept: dict[bytes, Reason] = {}
        self._skipped: dict[bytes, Reason] = {}
        self._stays: list[Reason] = []
        self._stash_log: list[str] = []
        self._stash_place = "", ""
        self._straight: dict[bytes, bool] = {}
        """Folders, and whether no link is on the way to them."""
        self._refused: dict[bytes, bool] = {}
        """Paths named by commands below which nothing is written, because git is there."""

    def add(self, row: "RescueRow") -> None:
        """Add what one rescue holds."""
        try:
            listing = area.read(self._work.store, row)
        except DamagedStoreError:
            for top in row.tops:
                self._skipped.setdefault(self._named(top), Reason(reasons.RESCUED_LOST))
            return
        self._stays += _of_git(row, listing)
        self._read_stashes(row, listing)
        for held in sorted(listing.held, key=lambda held: held.path):
            if held.top < 0 or not self._is_meant(held.path) or held.path in self._changes:
                continue
            self._add(row, held)

    def plan(self) -> "Plan":
        """The plan with all that was added."""
        plan = self._plan
        changes = self._known | self._changes
        done = {change.raw_path for change in self._changes.values()}
        skipped = {each.raw_path: each for each in plan.skipped if each.raw_path not in done}
        skipped |= {path: Remark(path, why) for path, why in self._skipped.items()}
        kept = {each.raw_path: each for each in plan.kept if each.raw_path not in done}
        kept |= {path: Remark(path, why) for path, why in self._kept.items()}
        return plan.replace(
            changes=tuple(changes[path] for path in sorted(changes)),
            skipped=tuple(skipped[path] for path in sorted(skipped)),
            kept=tuple(kept[path] for path in sorted(kept)),
            losses=tuple(each for each in plan.losses if each.raw_path not in done),
            stays=self._all_that_stays(),
        )

    def _all_that_stays(self) -> "tuple[Reason, ...]":
        """What stays, in the order in which its commands have to run: objects first."""
        own = list(dict.fromkeys(self._stays))
        first = [each for each in own if each.code == reasons.OBJECTS_SAVED]
        rest = [each for each in own if each not in first]
        return (*first, *filter(self._stays_so, self._with_stashes()), *rest)

    def _with_stashes(self) -> "Iterator[Reason]":
        """What stays; with one command for the list of stashes, if each alone would mix it up."""
        gone = [each for each in self._plan.stays if each.code == reasons.STASH_GONE]
        ids = [str(dict(each.facts).get("commit")) for each in gone]
        if not gone or self._stash_log[-1:] == ids or not {*ids} <= {*self._stash_log}:
            yield from self._plan.stays
            return
        for each in self._plan.stays:
            if each is gone[0]:
                source, target = self._stash_place
                yield Reason(reasons.STASHES_SAVED, count=len(gone), source=source, target=target)
            elif each not in gone:
                yield each

    def _read_stashes(self, row: "RescueRow", listing: "area.Listing") -> None:
        """The list of stashes as it was before the first command, the oldest first."""
        for folder, number in listing.git:
            own = git_rescue.folder_of(number)
            names = {each.name: each for each in listing.held}
            log, ref = names.get(own + b"/logs/refs/stash"), names.get(own + b"/refs/stash")
            if self._stash_log or log is None or ref is None:
                continue
            lines = area.content(row.areas, log, row.id, _LONGEST).splitlines()
            place = os.path.join(row.areas[log.area], row.id.encode(), own)
            self._stash_log = [os.fsdecode(line.split(b" ")[1]) for line in lines if b" " in line]
            self._stash_place = os.fsdecode(place), os.fsdecode(folder)

    def _stays_so(self, stays: Reason) -> bool:
        """Whether something of git stays: not if `.git` comes back, or its index is there whole."""
        if stays.code == reasons.GIT_GONE:
            return self._whole(b".git") not in self._changes
        is_whole = any(each.code == reasons.INDEX_SAVED for each in self._stays)
        return not (is_whole and stays.code in (reasons.STAGED_STAYS, reasons.INDEX_GONE))

    # -- one path ------------------------------------------------------------------------------

    def _add(self, row: "RescueRow", held: "Held") -> None:
        if self._is_in_git(held.path):
            self._kept.setdefault(self._git_of(held.path), Reason(reasons.GIT_STAYS))
            return
        name = self._named(held.path)
        try:
            found = self._there(held.path)
        except OSError:
            self._kept[name] = Reason(reasons.THERE_AGAIN)
            return
        if found is not None and held.kind == FOLDER == found.st_mode & KIND:
            return
        entry = self._entry(row, held, name)
        if entry is None:
            return
        before = self._before(held, found, entry) if found is not None else None
        if found is not None and before is None:
            return
        self._make_way(held.path)
        verb = words.WRITE if before is not None else _MADE.get(held.kind, words.CREATE)
        self._change(held.path, verb, before, entry)

    def _there(self, path: bytes) -> "os.stat_result | None":
        """What is at a path, or will be when the folders above it are back.

        OSError if the way to it leads through something else by now, a file or a link.
        """
        above = os.path.dirname(path)
        while above != b"/":
            change = self._changes.get(above) or self._known.get(above)
            if change is not None and _becomes_folder(change):
                return None
            above = os.path.dirname(above)
        folder = os.path.dirname(path)
        if folder not in self._straight:
            self._straight[folder] = os.path.realpath(folder) == folder
        if not self._straight[folder]:
            raise NotADirectoryError(folder)
        try:
            return os.lstat(path)
        except FileNotFoundError:
            return None

    def _change(self, path: bytes, verb: str, before: "Entry | None", after: "Entry") -> None:
        whose = (self._plan.agent,) if self._plan.agent else ()
        is_outside = not _is_at_or_below(path, self._root)
        self._changes[path] = PlannedChange(
            self._named(path), verb, before, after, whose, words.RESCUED, outside=is_outside
        )

    def _before(self, held: "Held", found: os.stat_result, entry: "Entry") -> "Entry | None":
        """What the command left in the place of what it destroyed; None if it stays.

        The store holds it, or will before anything is done.
        """
        name = self._named(held.path)
        if held.left != area.stamp(found):
            self._kept[name] = Reason(reasons.THERE_AGAIN)
            return None
        if _is_at_or_below(held.path, self._root):
            return self._planner.now.at(name)
        seen = self._planner.look_outside(held.path)
        if seen is None:
            self._kept[name] = Reason(reasons.THERE_AGAIN)
            return None
        del entry
        return seen

    def _make_way(self, path: bytes) -> None:
        """See that the folders above a path are there when it comes back."""
        above = os.path.dirname(path)
        missing = []
        while not os.path.lexists(above) and above not in self._changes:
            known = self._known.get(above)
            if known is not None and known.after is not None:
                break
            missing.append(above)
            above = os.path.dirname(above)
        for each in reversed(missing):
            made = RescuedEntry(FOLDER | 0o700, 0, b"", 0, (os.geteuid(), os.getegid()))
            self._change(each, words.MKDIR, None, made)

    def _entry(self, row: "RescueRow", held: "Held", name: bytes) -> "RescuedEntry | None":
        """What comes back; None if it is not what was saved any more."""
        owner = held.uid, held.gid
        if held.kind == FOLDER:
            return RescuedEntry(held.mode, 0, b"", held.mtime, owner)
        if held.kind == LINK:
            strong = hashlib.sha256(held.target).digest()
            size = len(held.target)
            return RescuedEntry(held.mode, size, strong, held.mtime, owner, target=held.target)
        try:
            source, strong = area.checked(row.areas, held, row.id)
        except FileNotFoundError:
            self._skipped[name] = Reason(reasons.RESCUED_LOST)
        except (OSError, DamagedStoreError):
            self._skipped[name] = Reason(reasons.RESCUED_CHANGED)
        else:
            return RescuedEntry(held.mode, held.size, strong, held.mtime, owner, source=source)
        return None

    # -- names ---------------------------------------------------------------------------------

    def _named(self, whole: bytes) -> bytes:
        """A path as plans name it: below the root, or whole."""
        return whole[len(self._root) + 1 :] if _is_at_or_below(whole, self._root) else whole

    def _whole(self, path: bytes) -> bytes:
        return os.path.join(self._root, path) if path else self._root

    def _is_meant(self, path: bytes) -> bool:
        wanted: Iterable[bytes] = self._plan.raw_paths
        return not wanted or any(_is_at_or_below(path, self._whole(each)) for each in wanted)

    def _git_of(self, path: bytes) -> bytes:
        """The `.git` that a path is in; empty if it is in none."""
        names = path.split(b"/")
        places = [at for at, name in enumerate(names) if name in VERSION_CONTROL]
        return b"/".join(names[: places[0] + 1]) if places else b""

    def _is_in_git(self, path: bytes) -> bool:
        """Whether a path is in a `.git` that is there: nothing is ever written to one."""
        folder = self._git_of(path)
        if not folder:
            return False
        if folder not in self._refused:
            self._refused[folder] = os.path.lexists(folder)
        return self._refused[folder]


def _becomes_folder(change: "PlannedChange") -> bool:
    """Whether there will be a folder where none is now."""
    before, after = change.before, change.after
    is_folder = after is not None and after.mode & KIND == FOLDER
    return is_folder and not (before is not None and before.mode & KIND == FOLDER)


def _of_git(row: "RescueRow", listing: "area.Listing") -> "Iterator[Reason]":
    """What was copied of a repository and is not there any more: where it is, and where it was."""
    for folder, number in listing.git:
        if not os.path.lexists(folder):
            continue
        own = git_rescue.folder_of(number)
        held = [each for each in listing.held if each.name.startswith(own + b"/")]
        for name, code in (
            (git_rescue.OBJECTS, reasons.OBJECTS_SAVED),
            (git_rescue.INDEX, reasons.INDEX_SAVED),
            (git_rescue.LOGS, reasons.LOGS_SAVED),
        ):
            some = [each for each in held if each.name.split(b"/")[1] == name]
            if code == reasons.LOGS_SAVED and not _is_shorter(row, some):
                continue
            if not any(_is_other(row, each) for each in some):
                continue
            area_of = os.path.join(row.areas[some[0].area], row.id.encode())
            source, target = (
                os.fsdecode(os.path.join(above, name)) for above in (area_of + b"/" + own, folder)
            )
            yield Reason(code, source=source, target=target, folder=int(name != git_rescue.INDEX))


def _is_other(row: "RescueRow", held: "Held") -> bool:
    """Whether what was copied is not what is there now."""
    try:
        with open(held.path, "rb") as now:
            there = now.read(_LONGEST)
    except OSError:
        return True
    return there != area.content(row.areas, held, row.id, _LONGEST)


def _is_shorter(row: "RescueRow", some: "list[Held]") -> bool:
    """Whether a log lost lines: it only grows, unless somebody expires it."""
    for held in some:
        try:
            if os.lstat(held.path).st_size < held.size:
                return True
        except OSError:
            continue  # its branch is gone, and the branch's own command makes another
    del row
    return False


def _is_at_or_below(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")
