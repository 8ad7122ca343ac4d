"""Look at the work tree without writing anything and without the lock.

What changed since the newest checkpoint is found as a checkpoint finds it: by the stat cache where
it fits, else by looking at everything. Its authors are those that a checkpoint would record at this
moment. Most looks find nothing, so what reads, compares and attributes is imported when it is
needed.
"""

import os
import time

from takeback.disk.failures import FailingAs
from takeback.disk.machine import COARSE, FINE, FsClock
from takeback.errors import TakebackError
from takeback.model import reasons
from takeback.model.history import Change, Unrecorded
from takeback.model.reasons import Reason
from takeback.model.words import OMIT, UNKNOWN
from takeback.worktree.content import Patience
from takeback.worktree.scan import Scan, StrangeRoot
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from takeback.capture.checkpoint import Site
    from takeback.capture.deltas import Delta
    from takeback.capture.workspace import Workspace
    from takeback.history.worktree_state import Nowhere
    from takeback.ledger.log.events import CheckpointRow
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress
    from takeback.store import Store
    from takeback.worktree.folders import Folder, Node

_TRIES = 3
_MOST_FILES, _MOST_BYTES = 2_000, 32 << 20
"""What can be read at a glance."""


class TooMuch(Exception):
    """More seems to have changed than can be read at a glance: so many files."""

    def __init__(self, files: int) -> None:
        super().__init__(files)
        self.files = files


def newest_known(store: "Store", cache: "StatCache") -> "tuple[CheckpointRow | None, bool]":
    """The newest checkpoint, and whether the stat cache is about it.

    Somebody may be in the middle of a checkpoint: the ledger has it, the cache follows.
    """
    patience, newest = Patience(), store.ledger.checkpoints.newest()
    for _ in range(_TRIES):
        if newest is None or not os.path.lexists(store.index_path):
            break
        if cache.load(newest.number, newest.tree):
            return newest, True
        patience.wait()
        newest = store.ledger.checkpoints.newest()
    return newest, False


class Look:
    """One look at the tree, which reads what changed and keeps nothing of it.

    Without a `nowhere` that takes what is read, it is a glance: it reads little, or raises TooMuch.
    """

    def __init__(
        self,
        site: "Site",
        clock: FsClock,
        nowhere: "Nowhere | None",
        progress: "Progress | None",
    ) -> None:
        self._site = site
        self._clock = clock
        self._nowhere = nowhere
        self._progress = progress

    def folders(
        self,
        newest: "CheckpointRow | None",
        cache: "StatCache | None",
        objects: "Callable[[], ObjectStore]",
    ) -> "list[Folder]":
        """The folders in which something may have changed, described; none if nothing did."""
        if cache is not None:
            scan = self.scan(_never)
            try:
                root = scan.changes(cache.records)
                return [] if root is None else self._described(scan, root)
            except (StrangeRoot, ValueError):
                # What the cache says cannot be about this tree: look at everything instead.
                pass
            finally:
                scan.close()
        from takeback.capture.manifests import Previous

        scan = self.scan(Previous(objects(), newest).was_captured)
        try:
            return self._described(scan, scan.whole())
        finally:
            scan.close()

    def scan(self, was_captured: "Callable[[bytes], bool]") -> Scan:
        """A scan that respects what a look has to."""
        site = self._site
        return Scan(site.root, site.rules(was_captured), site.strangers, site.mounts)

    def _described(self, scan: Scan, root: "Folder") -> "list[Folder]":
        total = len(scan.pending)
        size = sum(node.size for _, node in scan.pending)
        if self._nowhere is None and (total > _MOST_FILES or size > _MOST_BYTES):
            raise TooMuch(total)
        from takeback.capture.manifests import describe, everything
        from takeback.capture.reading import Reading
        from takeback.history.worktree_state import Nowhere

        nowhere = self._nowhere or Nowhere()
        reading = Reading(scan, nowhere, self._clock, knows_some=True, alone=True)
        reading.run(lambda done: self._tell(done, total))
        describe(root, nowhere, self._clock, {})
        return everything(root)

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress("reading", done, total)


def _never(path: bytes) -> bool:
    """With a stat cache, only what is new to it is asked about."""
    del path
    return False


def unrecorded(work: "Workspace") -> Unrecorded:
    """What is not in the newest checkpoint; or why nobody could look."""
    if work.ledger.has_journal():
        return Unrecorded(problem=Reason(reasons.RESTORE_RUNS))
    at = time.time_ns()
    try:
        with (
            FailingAs(TakebackError, "the files could not be looked at"),
            work.rules.site() as site,
        ):
            return Unrecorded(_changes(work, site, at))
    except TooMuch as problem:
        return Unrecorded(problem=Reason(reasons.TOO_MUCH_TO_READ, files=problem.files))
    except TakebackError as problem:
        return Unrecorded(problem=Reason(reasons.NOT_LOOKED_AT, problem=str(problem)))


def stamps(work: "Workspace") -> "tuple[int, int]":
    """A mark of what differs from the newest checkpoint, and when the last of it was changed.

    The mark is another one whenever something was changed since. Nothing is read but stamps.
    """
    with FailingAs(TakebackError, "the files could not be looked at"), work.rules.site() as site:
        cache = StatCache(work.store.index_path, work.rules.mark(site))
        _, is_known = newest_known(work.store, cache)
        if not is_known or work.ledger.has_journal():
            return 0, 0
        scan = Look(site, FsClock(0, COARSE), None, None).scan(_never)
        try:
            root = scan.changes(cache.records)
            if root is None:
                return 0, 0
            from takeback.capture.manifests import everything

            found = [(folder.path(), *_stamps(node)) for folder, node in scan.pending]
            # What was deleted is told by what is left.
            sizes = [(folder.path(), len(folder.nodes)) for folder in everything(root)]
            newest = max((node.ctime for _, node in scan.pending), default=0)
            return hash((tuple(found), tuple(sizes), len(scan.removed))), newest
        except StrangeRoot:
            return -1, 0
        finally:
            scan.close()


def _stamps(node: "Node") -> "tuple[bytes, int, int, int, int]":
    return node.name, node.size, node.mtime, node.ctime, node.mode


def _changes(work: "Workspace", site: "Site", at: int) -> "tuple[Change, ...]":
    cache = StatCache(work.store.index_path, work.rules.mark(site))
    newest, is_known = newest_known(work.store, cache)
    if newest is None:
        return ()
    glance = Look(site, FsClock(at, COARSE), None, None)
    with _Objects(work.store) as objects:
        found = glance.folders(newest, cache if is_known else None, objects)
        if not found:
            return ()
        from takeback.capture import deltas

        before: deltas.Before = deltas.InRecords(cache.records)
        if not is_known:
            from takeback.capture.manifests import Previous

            before = deltas.InManifests(Previous(objects(), newest))
        changed, _ = deltas.find(found[0], before)
    return _attributed(work, site, [delta for delta in changed if delta.verb != OMIT], at)


class _Objects:
    """The packs, opened only by who reads one."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._opened: ObjectStore | None = None

    def __call__(self) -> "ObjectStore":
        if self._opened is None:
            self._opened = self._store.reader()
        return self._opened

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()


def _attributed(
    work: "Workspace", site: "Site", changed: "list[Delta]", at: int
) -> "tuple[Change, ...]":
    if not changed:
        return ()
    from takeback.capture import attribution
    from takeback.capture.safe_points import SafePoints
    from takeback.history.timeline import fold

    points, has_open = SafePoints(work), work.ledger.sessions.has_open()
    dead, late = (points.dead_sessions(at), points.late_turns()) if has_open else ([], ())
    ends, unknown = {row.id: ended for row, ended in dead}, tuple(turn.window() for turn in late)
    slack, is_remote = _slack(work, site), work.rules.is_remote
    asked = attribution.Asked(ends, time.time_ns(), slack, is_remote, unknown)
    authors = [
        author.replace(turn="") if author.how == UNKNOWN else author  # it is made by the next look
        for author in attribution.authors(work.ledger, changed, asked)
    ]
    return fold(
        Change(delta.path, delta.verb, author=author, raw_origin=delta.origin)
        for delta, author in zip(changed, authors, strict=True)
    )


def _slack(work: "Workspace", site: "Site") -> int:
    """How coarse the stamps of files are, as the last checkpoint saw it; see `read_clock`."""
    try:
        found = os.stat(work.store.clock_path)
    except OSError:
        return COARSE
    return FINE if found.st_dev == site.device and found.st_ctime_ns % 10**9 else COARSE
