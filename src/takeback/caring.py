"""A project as one takes care of its history: what is kept, and how long."""

import os
import time

from takeback.capturing import Capturing
from takeback.disk.failures import FailingAs
from takeback.disk.lock import Held
from takeback.errors import TakebackError
from takeback.ledger import events
from takeback.ledger.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.history.retention import Rules
    from takeback.ledger.events import CheckpointRow
    from takeback.model.results import Cleanup, KeptState, Share
    from takeback.ports import Progress

_LONGEST_LABEL = 1000
_PAUSE = 600.0
"""So many seconds are between two runs that nobody asked for."""
_ROOM, _FILES = 1 << 20, 8
"""Bytes and files that SQLite and a lock may need."""


class Caring(Capturing):
    """A work tree and its store, with what keeps the store small, private and healthy."""

    # -- what is kept ----------------------------------------------------------------------

    def retention(self) -> "Rules":
        """How long files are kept, as the settings say."""
        from takeback.history import retention

        return retention.from_settings(lambda n, d: self._around.setting("retention", n, d))

    def usage_by(self, by: str, *, progress: "Progress | None" = None) -> "tuple[Share, ...]":
        """What each `session`, `agent` or `path` (a folder at the top) added to the packs.

        The largest comes first. What is left of `Usage.objects` is in nobody's account: indexes,
        and what nothing needs any more.
        """
        from takeback.errors import UsageError
        from takeback.upkeep import usage

        if by not in (usage.SESSION, usage.AGENT, usage.PATH):
            raise UsageError(
                f"`{by}` is nothing to count by", hint="`session`, `agent`, `path` are"
            )
        with FailingAs(TakebackError, "the store could not be read"), self._store.reading():
            objects = self._store.reader()
            try:
                with self.ledger.snapshot() as ledger:
                    packs = self._store.packs_dir
                    return tuple(usage.shares(ledger, objects, packs, by, progress))
            finally:
                objects.close()

    def gc(
        self,
        *,
        max_age: "str | float | None" = None,
        to_size: "str | int | None" = None,
        full: bool = False,
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> "Cleanup":
        """Let files go that are older than the settings, or `max_age`, say; put packs together.

        `to_size` lets more of them go, the oldest first, until the history fits. Pins, running
        work and the newest turns stay in any case. `full` writes all packs anew. With `dry_run`
        nothing changes, and what would go is told.
        """
        from takeback.history import retention
        from takeback.upkeep import gc

        with FailingAs(TakebackError, "nothing needed was removed"):
            rules, why = self.retention(), retention.AGE
            if max_age is not None:
                rules, why = rules.replace(days=retention.age(max_age)), retention.ASKED
            limit = retention.size(to_size) if to_size is not None else 0
            if not limit and rules.size_cap_trims:
                limit = rules.size_cap
            wish = gc.Wish(rules, why=why, to_size=limit, full=full, dry_run=dry_run)
            if not dry_run:
                self._make_room()
            self.ledger.require_writable()
            with self._store.tending():
                return gc.run(self._store, self.held, wish, time.time_ns, progress)

    def _make_room(self) -> None:
        """Delete what can be made again, if the disk is so full that SQLite cannot work."""
        found = os.statvfs(self._store.path)
        is_full = found.f_bavail * found.f_frsize < _ROOM
        if not is_full and (not found.f_files or found.f_favail > _FILES):
            return
        lock = self._store.lock
        with Held(lock, lambda died: lock.leave_unclean() if died else None):
            self._cache = None
            self._store.make_room()

    def tend_later(self) -> bool:
        """Run `gc` in a process that nobody waits for, if it is time; whether that began.

        Whatever goes wrong, nobody hears of it: the next time comes.
        """
        from takeback.history import retention

        try:
            with FailingAs(TakebackError, "it can be done later"):
                if self._around.setting("gc", "auto", True) is not True or self._is_tended():
                    return False
                if not retention.is_due(self.ledger, self.retention(), time.time_ns()):
                    return False
        except TakebackError:
            return False
        from takeback import tending

        return tending.start(self.root, self._home.path)

    def _is_tended(self) -> bool:
        """Whether somebody has tried a moment ago: what failed then would fail again."""
        try:
            last = os.stat(self._store.upkeep.path).st_mtime
        except FileNotFoundError:
            return False
        return 0 <= time.time() - last < _PAUSE

    def keep(self, ref: str, label: str = "") -> "KeptState":
        """Keep the state that a reference means, whatever its age."""
        from takeback.history import retention

        with FailingAs(TakebackError, "nothing was kept"), self.held():
            row = retention.require(self.ledger, self._resolve(ref))
            said: dict[str, str] = {"checkpoint": row.id, "label": _clean(label)}
            self._record_care(events.CHECKPOINT_KEPT, said)
            return self._kept_state(row)

    def release(self, ref: str) -> "KeptState":
        """Let a state that was kept be like any other again; its files go when they are old."""
        from takeback.errors import UnknownReferenceError

        with FailingAs(TakebackError, "nothing was released"), self.held():
            row = self._resolve(ref)
            if not self.ledger.care.is_kept(row.number):
                raise UnknownReferenceError(
                    f"`{row.id}` is not kept by anybody", hint="`takeback keep` lists what is"
                )
            found = self._kept_state(row)
            self._record_care(events.CHECKPOINT_RELEASED, {"checkpoint": row.id})
            return found

    def kept(self) -> "tuple[KeptState, ...]":
        """The states that somebody keeps, newest first."""
        from takeback.model.results import KeptState

        with FailingAs(TakebackError, "the store could not be read"):
            return tuple(
                KeptState(row.id, row.created / 1e9, row.label, row.at / 1e9, row.entries)
                for row in self.ledger.care.kept()
            )

    def _kept_state(self, row: "CheckpointRow") -> "KeptState":
        return next(each for each in self.kept() if each.checkpoint == row.id)

    def _record_care(self, kind: str, said: "dict[str, str]") -> None:
        """Commit an event about a state that is kept, and let the git view follow."""
        self.ledger.record(NewEvent(kind, said, time.time_ns()))
        try:
            for _ in self._store.mend_view():
                pass
        except OSError:
            # The next start brings the view up to date.
            self._store.lock.leave_unclean()


def _clean(label: str) -> str:
    """A label as one line that can be stored and shown."""
    text = " ".join(label.split())[:_LONGEST_LABEL]
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text)
