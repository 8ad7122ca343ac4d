"""A project as one works with it: takes the lock, looks at the tree, recovers what was left."""

import os
import time

from takeback.capture import checkpoint
from takeback.capture.checkpoint import Place, Request
from takeback.disk.failures import FailingAs
from takeback.disk.lock import PATIENCE, Held
from takeback.errors import CaptureError, TakebackError
from takeback.looking import Looking
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.capture.checkpoint import Attribute
    from takeback.capture.deltas import Delta
    from takeback.capture.outside import Outside
    from takeback.disk.home import Home, Root
    from takeback.model.history import Author
    from takeback.model.json_text import Json
    from takeback.model.plan import Report
    from takeback.model.results import Checkpoint
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress
    from takeback.recorder import Recorder
    from takeback.undo.apply import Finish
    from takeback.undo.restorer import Restorer
    from takeback.upkeep.forget import Forgetting
    from takeback.worktree.watch import Glances


class Capturing(Looking):
    """A work tree and its store, with the lock. `recovered` tells what was mended."""

    def __init__(self, root: "Root", home: "Home") -> None:
        super().__init__(root, home)
        self.recovered: tuple[Reason, ...] = ()
        self._listeners: list[Callable[[Report], None]] = []
        self._glances: Glances | None = None

    def close(self) -> None:
        """Close the store."""
        super().close()
        if self._glances is not None:
            self._glances.close()

    def watch_tree(self) -> None:
        """Watch the tree from now on, so that looks inside a turn need not look everywhere."""
        from takeback.worktree.watch import Glances, Watch

        if self._glances is None:
            self._glances = Glances(Watch(self.root))

    def settle_watch(self) -> None:
        """Let the watch, if there is one, catch up with the last look."""
        if self._glances is not None:
            self._glances.settle()

    @property
    def objects(self) -> "ObjectStore":
        """What the project's packs hold; only with the lock held."""
        return self._store.objects

    def held(self, patience: float = PATIENCE) -> Held:
        """The lock of the project, for a `with` block."""
        store = self._store
        if self._is_cut_off:
            raise TakebackError(
                "this process was forked while another thread wrote to the project, so it cannot "
                "write to it",
                hint="fork before threads use the project, or let `multiprocessing` spawn",
            )
        store.ledger.require_writable()
        return Held(store.lock, self._recover, store.anchor, patience)

    def look(
        self,
        place: Place,
        closing: "Mapping[str, int]",
        at: int,
        *,
        rehash: bool = False,
        wanted: "frozenset[bytes]" = frozenset(),
        again: "frozenset[bytes]" = frozenset(),
        modes: "Mapping[bytes, int] | None" = None,
        finish: "Finish | None" = None,
        whole: bool = True,
    ) -> "Checkpoint":
        """Look at the tree, and make a checkpoint if it changed. With the lock held.

        Unless all of it has to be looked at, a watch may tell where that can be spared. The paths
        `again` are read again, whatever their stamps say; those of `modes` are open for this only.
        """
        meaning = "no checkpoint was made" if finish is None else "nothing was changed"
        with FailingAs(CaptureError, meaning):
            return self._capture(
                place,
                closing,
                at,
                silent=True,
                rehash=rehash,
                wanted=wanted,
                again=again,
                modes=modes,
                finish=finish,
                whole=whole,
            )

    def open_root(self) -> int:
        """The project's folder, open; it is the caller's to close."""
        return self._around.open_root()

    def git_state(self) -> "Json":
        """What the user's git looks like; None without one."""
        return self._around.git_state()

    def outside(self) -> "Outside":
        """What looks at files outside the project; only with the lock held."""
        from takeback.capture.outside import Outside

        return Outside(self._store, self._home.path, self._around.largest_file())

    def tend_later(self) -> bool:
        """Put the store in order behind the scenes, if it is time; whether that began."""
        return False

    def recorder(self, safe_points: "str | None" = None) -> "Recorder":
        """What writes sessions, turns and steps into the log."""
        from takeback.recorder import Recorder

        return Recorder(
            self, safe_points or str(self._around.setting("recording", "safe_points", "step"))
        )

    def restorer(self, inside: bytes = b"") -> "Restorer":
        """What plans restores and carries them out; paths are counted from `inside`."""
        from takeback.history.lookup import Place as Folder
        from takeback.undo.restorer import Restorer

        return Restorer(self, self._store, Folder(self.root, inside))

    def recover_early(self) -> None:
        """Take back a restore that somebody left unfinished, unless somebody is at it.

        Also after one that never began, or had ended: its folder may be left in the tree.
        Who only wants to look should not fail because that does: the next one to write will.
        """
        from takeback.errors import BusyError

        is_open = True
        try:
            with FailingAs(TakebackError, "it could not be taken back yet"):
                is_open = self.ledger.has_journal()
                if is_open or self._store.lock.is_marked:
                    with self.held(patience=0):
                        pass
        except BusyError:
            return
        except TakebackError as problem:
            if is_open:
                self.recovered += (Reason(reasons.RESTORE_OPEN, problem=str(problem)),)

    def mend(self) -> "list[Reason]":
        """Make again what can be made again without loss; what that was."""
        from takeback.errors import TakebackError
        from takeback.upkeep import doctor

        with FailingAs(TakebackError, "nothing was repaired"), self.held():
            told: list[Reason] = [*self.recovered, *doctor.mend(self._store)]
            before = doctor.stages(self.root)
            told += self.restorer().recover(died=True)
            gone = sorted(before - doctor.stages(self.root))
            told += [Reason(reasons.STAGE_REMOVED, name=os.fsdecode(name)) for name in gone]
            return told + self._mend_cache()

    def _mend_cache(self) -> "list[Reason]":
        """Let go of a stat cache that is of no use; the next checkpoint makes another."""
        asked, newest = self._around.request(time.time_ns()), self.ledger.checkpoints.newest()
        try:
            cache = self._stat_cache(asked)
            if newest is None or not os.path.lexists(self._store.index_path):
                return []
            if cache.load(newest.number, newest.tree):
                return []
            cache.discard()
        finally:
            os.close(asked.root)
        return [Reason(reasons.CACHE_REMOVED)]

    # -- wiring ----------------------------------------------------------------------------

    def _capture(
        self,
        place: Place,
        closing: "Mapping[str, int]",
        at: int,
        *,
        label: str = "",
        silent: bool = False,
        rehash: bool = False,
        progress: "Progress | None" = None,
        request: "str | None" = None,
        wanted: "frozenset[bytes]" = frozenset(),
        again: "frozenset[bytes]" = frozenset(),
        modes: "Mapping[bytes, int] | None" = None,
        finish: "Finish | None" = None,
        whole: bool = True,
    ) -> "Checkpoint":
        glances = self._glances if finish is None else None
        if glances is not None:
            whole = whole or rehash or bool(wanted or again or modes)
            glances.intend(self.ledger.last_event(), at, whole=whole)
        asked = self._around.request(
            at,
            label=label,
            attribute=self._attributor(closing, finish),
            place=place,
            silent=silent,
            request=request,
            rehash=rehash,
            progress=progress,
            wanted=wanted,
            again=again,
            modes=modes,
            finish=finish,
            glances=glances,
        )
        try:
            return checkpoint.take(self._store, self._stat_cache(asked), asked)
        finally:
            os.close(asked.root)

    def _attributor(self, closing: "Mapping[str, int]", finish: "Finish | None") -> "Attribute":
        def attribute(deltas: "list[Delta]", slack: int) -> "list[Author]":
            # Imported only when something changed.
            from takeback.capture import attribution

            asked = attribution.Asked(closing, time.time_ns(), slack, self._around.is_remote)
            if finish is None:
                return attribution.authors(self.ledger, deltas, asked, self._glances)
            found = attribution.authors(self.ledger, deltas, asked)
            return [finish.author(delta, by) for delta, by in zip(deltas, found, strict=True)]

        return attribute

    def _stat_cache(self, request: Request) -> StatCache:
        mark = self._around.mark(request)
        if self._cache is None or self._cache.identity != mark:
            self._cache = StatCache(self._store.index_path, mark)
        return self._cache

    def _recover(self, died: bool) -> None:
        """Mend what the last holder of the lock left, if it died."""
        self.ledger.refuse_newer()
        self._store.require_packs()
        if died:
            self._let_go_of_forgotten()
            self._store.recover()
        if died or self.ledger.has_journal():
            told = self.restorer().recover(died=died)
            # What cannot be mended is met whenever the lock is taken, and told once.
            self.recovered += tuple(each for each in told if each not in self.recovered)
        if died:
            self._go_on_forgetting()

    def _forgetter(self, progress: "Progress | None" = None) -> "Forgetting":
        """What forgets; only with the lock held."""
        from takeback.undo import apply
        from takeback.upkeep.forget import Forgetting

        def sweep() -> None:
            root = self.open_root()
            try:
                apply.sweep(self._store, root)
            finally:
                os.close(root)

        return Forgetting(self._store, time.time_ns(), sweep, progress)

    def _let_go_of_forgotten(self) -> None:
        """See that nobody takes the packs of a history that was forgotten for lost ones."""
        if self.ledger.forgets.is_committed():
            self._forgetter().publish()

    def _go_on_forgetting(self) -> None:
        """Go on with a forget whose process died. Nobody else has to fail if that does."""
        if not self._store.is_forgetting():
            return
        if self._store.upkeep.depth:
            # Whoever puts packs in order has some that nothing refers to yet; so not now.
            self._store.lock.leave_unclean()
            return
        self._cache = None
        try:
            with (
                FailingAs(TakebackError, "forgetting is not finished"),
                self._store.tending(patience=0),
            ):
                done = self._forgetter().go_on()
        except TakebackError as problem:
            self._store.lock.leave_unclean()
            self.recovered += (Reason(reasons.FORGETTING, problem=str(problem)),)
        else:
            if done is not None:
                self.recovered += (Reason(reasons.FORGOT),)
