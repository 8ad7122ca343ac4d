"""A project as it is worked with: its store, its lock, its rules, and looks at its tree."""

import os
import time

from takeback.capture import checkpoint
from takeback.capture.project_rules import ProjectRules
from takeback.disk.failures import FailingAs
from takeback.disk.lock import PATIENCE, Held
from takeback.errors import CaptureError, TakebackError
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.participants.coordinator import Participants
from takeback.store import Store
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.capture.checkpoint import Attribute, Request, Site
    from takeback.capture.deltas import Delta
    from takeback.capture.outside import Outside
    from takeback.disk.home import Home, Root
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.history import Author
    from takeback.model.results import Checkpoint
    from takeback.model.text.json_text import Json
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress
    from takeback.worktree.watch import PartialScan, Watch

_left_alone: "list[Store]" = []
"""Stores of the process that this one was forked from; never closed here."""


class Workspace:
    """What all verbs of one project share. `recovered` lists what was mended.

    `recover` mends what the last holder of the lock left; it is called when that one died, or left
    a restore unfinished.
    """

    def __init__(
        self,
        root: "Root",
        home: "Home",
        recover: "Callable[[bool], None]",
        instead_of: str = "",
    ) -> None:
        self._root = root
        self.instead_of = instead_of
        """The project whose history the folder had until this one took its place just now."""
        self.home = home
        self.rules = ProjectRules(root, home)
        self.recovered: tuple[Reason, ...] = ()
        self.progress: Progress | None = None
        """Whom a restore tells how far it has come."""
        self.participants = Participants(lambda: self.store, self.rules.participants)
        """State beside the files that moves with them."""
        self._recover = recover
        self._store = Store(home.store_path(root.id), root.id, root.line)
        self._cache: StatCache | None = None
        self._partial_scan: PartialScan | None = None
        self._process = os.getpid()
        self._is_cut_off = False
        """Whether SQLite believes for ever that a thread writes which only the original has."""

    def close(self) -> None:
        """Close the store."""
        if self._process == os.getpid():
            self._store.close()
        if self._partial_scan is not None:
            self._partial_scan.close()

    @property
    def id(self) -> str:
        """The project's own id."""
        return self._root.id

    @property
    def root(self) -> bytes:
        """The folder of the project."""
        return self._root.path

    @property
    def store(self) -> Store:
        """The store as this process opened it.

        A connection to SQLite must not be carried over a fork: used or closed in the copy, it
        would break what the original writes. So a copy leaves it alone and opens its own.
        """
        if self._process != os.getpid():
            _left_alone.append(self._store)
            self._is_cut_off |= self._store.ledger.writer != 0
            self._store.lock.drop()
            self._store.gc_lock.drop()
            self._store = Store(self.home.store_path(self.id), self.id, self._root.line)
            self._cache = None
            self._process = os.getpid()
        return self._store

    @property
    def ledger(self) -> "Ledger":
        """The project's ledger."""
        return self.store.ledger

    @property
    def objects(self) -> "ObjectStore":
        """What the project's packs hold; only with the lock held."""
        return self.store.objects

    def outside(self) -> "Outside":
        """Looks at files outside the project; only with the lock held."""
        from takeback.capture.outside import Outside

        return Outside(self.store, self.home.path, self.rules.largest_file())

    # -- the lock --------------------------------------------------------------------------

    def held(self, patience: float = PATIENCE) -> Held:
        """The lock of the project, for a `with` block."""
        store = self.store
        if self._is_cut_off:
            raise TakebackError(
                "this process was forked while another thread wrote to the project, so it cannot "
                "write to it",
                hint="fork before threads use the project, or let `multiprocessing` spawn",
            )
        store.ledger.require_writable()
        return Held(store.lock, self._begin, store.anchor, patience)

    def _begin(self, died: bool) -> None:
        # Others may have written since: only who writes now says where the ledger ends.
        self.ledger.end = None
        self.ledger.refuse_newer()
        self.store.require_packs()
        if died or self.ledger.has_journal():
            self._recover(died)

    def add_recovered(self, *mended: Reason) -> None:
        """Remember what was mended; what is met at every lock is reported once."""
        self.recovered += tuple(each for each in mended if each not in self.recovered)

    def recover_early(self) -> None:
        """Undo a restore that a process left unfinished, unless somebody is at work.

        A reader should not fail because this does: the next one to write will.
        """
        from takeback.errors import BusyError

        is_open = True
        try:
            with FailingAs(TakebackError, "it could not be taken back yet"):
                is_open = self.ledger.has_journal()
                # A restore that never began, or had ended, may have left its folder in the tree.
                if is_open or self.store.lock.is_marked:
                    with self.held(patience=0):
                        pass
        except BusyError:
            return
        except TakebackError as problem:
            if is_open:
                self.recovered += (Reason(reasons.RESTORE_OPEN, problem=str(problem)),)

    # -- the tree --------------------------------------------------------------------------

    def watch_tree(self) -> None:
        """Watch the tree from now on, so that looks inside a turn need not look everywhere."""
        from takeback.worktree.watch import PartialScan, Watch

        if self._partial_scan is None:
            self._partial_scan = PartialScan(Watch(self.root))

    @property
    def watch(self) -> "Watch | None":
        """The watch on the tree, if there is one."""
        return None if self._partial_scan is None else self._partial_scan.watch

    def settle_watch(self) -> None:
        """Let the watch, if there is one, catch up with the last look."""
        if self._partial_scan is not None:
            self._partial_scan.settle()

    def checkpoint_if_changed(self, request: "Request") -> "Checkpoint":
        """Look at the tree, and make a checkpoint if it changed. With the lock held."""
        is_restore = request.finish is not None
        meaning = "nothing was changed" if is_restore else "no checkpoint was made"
        with FailingAs(CaptureError, meaning):
            return self.capture(request)

    def capture(self, request: "Request") -> "Checkpoint":
        """Make a checkpoint, or name the newest one. With the lock held."""
        partial_scan = self._partial_scan if request.finish is None else None
        if partial_scan is not None:
            whole = request.whole or request.rehash
            whole = whole or bool(request.wanted or request.again or request.modes)
            partial_scan.intend(self.ledger.last_event(), request.at, whole=whole)
        with self.rules.site() as site:
            return checkpoint.take(
                self.store,
                self.stat_cache(site),
                site,
                request,
                self._attributor(request),
                partial_scan,
            )

    def _attributor(self, request: "Request") -> "Attribute":
        finish = request.finish

        def attribute(deltas: "list[Delta]", slack: int) -> "list[Author]":
            # Imported only when something changed.
            from takeback.capture import attribution

            now = time.time_ns()
            late = tuple(turn.window() for turn in request.late)
            asked = attribution.Asked(request.closing, now, slack, self.rules.is_remote, late)
            if finish is None:
                return attribution.authors(self.ledger, deltas, asked, self._partial_scan)
            found = attribution.authors(self.ledger, deltas, asked)
            return [finish.author(delta, by) for delta, by in zip(deltas, found, strict=True)]

        return attribute

    def stat_cache(self, site: "Site") -> StatCache:
        """The stat cache that fits a look at the tree."""
        mark = self.rules.mark(site)
        if self._cache is None or self._cache.identity != mark:
            self._cache = StatCache(self.store.index_path, mark)
        return self._cache

    def drop_stat_cache(self) -> None:
        """Read the stat cache from disk again next time: something may have replaced it."""
        self._cache = None

    def left_out(self, row: "CheckpointRow") -> "list[tuple[bytes, int]]":
        """The paths that a checkpoint left out or could not read in peace, each with its flags."""
        from takeback.capture.manifests import told

        if row.gone is not None:
            return []
        objects = self.store.reader()
        try:
            return list(told(objects, row))
        finally:
            objects.close()

    def git_state(self) -> "dict[str, str]":
        """What the user's git looks like, by name; nothing without one."""
        return self.rules.git_state()

    def git_facts(self) -> "dict[str, Json]":
        """What an event says of the user's git, and of what moved since the last look at it.

        While no stamp changed, that is nothing new. With the lock held.
        """
        seen, known = self.rules.git_stamps(), self.ledger.git.seen()
        if seen and seen == known:
            return {"git": self._git_in_short(self.ledger.git.head())}
        from takeback.model.beyond import git_changes

        now = self.rules.git_state()
        facts: dict[str, Json] = {"git": self._git_in_short(now), "git_seen": seen}
        before = self.ledger.git.state()
        moves = [] if known is None else git_changes.moved(before, now)
        if moves:
            facts["git_moved"] = [list(move) for move in moves]
        if known is None or git_changes.is_new_ground(before, now):
            facts["git_whole"] = [[name, value] for name, value in now.items()]
        return facts

    def git_known(self) -> "Json":
        """What the user's git looked like when it was last looked at. With the lock held."""
        return self._git_in_short(self.ledger.git.head())

    def _git_in_short(self, state: "Mapping[str, str]") -> "Json":
        return [state.get(name) for name in ("branch", "head", "index", "refs")] if state else None
