"""Keeps the store of a project small and healthy: gc, kept states, verify, repair, recovery."""

import os
import time

from takeback.disk.failures import FailingAs
from takeback.disk.home import size_of
from takeback.disk.lock import Held
from takeback.effects.saved import care
from takeback.errors import DamagedStoreError, TakebackError, UnknownReferenceError, UsageError
from takeback.history import references, retention
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids, reasons
from takeback.model.reasons import Action, Reason
from takeback.model.results import KeptState, Usage
from takeback.undo.restorer import Restorer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.capture.workspace import Workspace
    from takeback.history.retention import Rules
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.results import Cleanup, Share, Verification
    from takeback.model.text.json_text import Json
    from takeback.ports import Progress
    from takeback.upkeep.settings import Settings

_PAUSE = 600.0
"""Seconds between two automatic runs of gc."""
_ROOM, _FILES = 1 << 20, 8
"""Bytes and files that SQLite and a lock may need."""


class Upkeep:
    """The upkeep of one project's store."""

    def __init__(self, work: "Workspace") -> None:
        self._work = work

    @property
    def _ledger(self) -> "Ledger":
        return self._work.ledger

    # -- size ------------------------------------------------------------------------------

    def retention(self) -> "Rules":
        """How long files are kept, as the settings say."""
        setting = self._work.rules.setting
        return retention.from_settings(lambda name, default: setting("retention", name, default))

    def usage(self) -> Usage:
        """What the history takes on disk."""
        store, ledger = self._work.store, self._ledger
        with FailingAs(TakebackError, "the store could not be read"):
            count, rescued = ledger.checkpoints.count(), care.taken(store)
            taught, waiting, relapses = ledger.lessons.counts()
            return Usage(
                packs=len(ledger.packs()),
                objects=store.objects.size(),
                ledger=size_of(ledger.path) + size_of(ledger.path + b"-wal"),
                index=size_of(store.index_path),
                checkpoints=count,
                gone=count - ledger.care.count_with_files(),
                pinned=len(ledger.care.kept()),
                rescues=rescued[0],
                rescued=rescued[1],
                lessons=taught + waiting,
                relapses=relapses,
                effects=ledger.effects.count(),
                plans=ledger.plans.count(),
                captures=ledger.participants.count(),
                memory=ledger.memory.size()[0],
                mutations=ledger.mutations.count(),
            )

    # -- participants ------------------------------------------------------------------------

    def participants(self) -> "list[dict[str, str]]":
        """Each participant: of the settings, registered here, or known from the log."""
        work = self._work
        with FailingAs(TakebackError, "the participants could not be listed"), work.held():
            known, found = self._ledger.participants.at(), work.participants.all()
            owed = {row.name: row for row in self._ledger.participants.owed()}
            tables, told = work.rules.participants(), []
            for name in sorted({*found, *work.participants.problems, *known}):
                row, table = known.get(name), tables.get(name)
                kind = found[name].kind if name in found else row.kind if row is not None else ""
                problem = work.participants.problems.get(name, row.problem if row else "")
                is_here = name in found or name in work.participants.problems
                by = "registered" if is_here else "absent"
                told.append(
                    {
                        "name": name,
                        "type": str(table.get("type")) if isinstance(table, dict) else by,
                        "kind": kind,
                        "token": row.token if row is not None else "",
                        "problem": problem,
                        "owed": owed[name].problem or owed[name].state if name in owed else "",
                    }
                )
            return told

    def add_participant(
        self, name: str, options: "dict[str, object]", *, user: bool
    ) -> "dict[str, str]":
        """Write a participant into the user's settings, and capture it for the first time."""
        from takeback.participants import coordinator, registry

        coordinator.require_name(name)
        if name in self._work.rules.participants():
            raise UsageError(
                f"there is a participant `{name}` already",
                hint=Action("remove-participant", name=name),
            )
        stored = registry.without_secrets(options)
        registry.configured(name, stored)
        self._settings().set_participant(name, stored, user=user)
        with self._work.held():
            self._work.participants.reload()
            self._work.rules.reload_participants()
            self._work.participants.capture()
        return next(each for each in self.participants() if each["name"] == name)

    def remove_participant(self, name: str, *, user: bool) -> None:
        """Take a participant out of the user's settings; nothing is owed to it any more."""
        known = name in self._work.rules.participants()
        if not known and name not in self._ledger.participants.at():
            raise UsageError(f"there is no participant `{name}`", hint=Action("participants"))
        if known:
            self._settings().set_participant(name, None, user=user)
        with self._work.held():
            self._work.participants.drop(name)
            self._work.participants.reload()
            self._work.rules.reload_participants()
            if name in self._work.rules.participants():
                raise UsageError(
                    f"`{name}` is in the settings of all your projects",
                    hint=Action("remove-for-all", name=name),
                )

    def _settings(self) -> "Settings":
        from takeback.upkeep.settings import Settings

        return Settings(self._work.home.path, self._work.id)

    def usage_by(self, by: str, progress: "Progress | None") -> "tuple[Share, ...]":
        """What each session, agent or folder added to the packs, the largest first."""
        from takeback.upkeep import usage

        if by not in (usage.SESSION, usage.AGENT, usage.PATH):
            raise UsageError(f"cannot group by `{by}`", hint="use `session`, `agent` or `path`")
        store = self._work.store
        with FailingAs(TakebackError, "the store could not be read"), store.reading():
            objects = store.reader()
            try:
                with self._ledger.snapshot() as ledger:
                    return tuple(usage.shares(ledger, objects, by, progress))
            finally:
                objects.close()

    def gc(
        self,
        max_age: "str | float | None",
        to_size: "str | int | None",
        *,
        full: bool,
        dry_run: bool,
        progress: "Progress | None",
    ) -> "Cleanup":
        """Delete expired files and merge packs."""
        from takeback.upkeep import gc

        store = self._work.store
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
            self._ledger.require_writable()
            with store.hold_gc():
                done = gc.run(store, self._work.held, wish, time.time_ns, progress)
            if not dry_run and self._ledger.rescues.has_any():
                with self._work.held():
                    row = self._ledger.checkpoints.numbered(retention.floor(self._ledger) + 1)
                    done.rescues = care.tend(self._work, row.event if row is not None else 0)
            return done

    def _make_room(self) -> None:
        """Delete what can be made again, if the disk is so full that SQLite cannot work."""
        store = self._work.store
        found = os.statvfs(store.path)
        is_full = found.f_bavail * found.f_frsize < _ROOM
        if not is_full and (not found.f_files or found.f_favail > _FILES):
            return
        lock = store.lock
        with Held(lock, lambda died: lock.leave_unclean() if died else None):
            self._work.drop_stat_cache()
            store.make_room()

    def schedule_gc(self) -> bool:
        """Start gc in a process that nobody waits for, if it is due; whether it was started.

        Failures are not reported: there will be a next time.
        """
        work = self._work
        try:
            with FailingAs(TakebackError, "it can be done later"):
                is_on = work.rules.setting("gc", "auto", True) is True
                if not is_on or self._ran_lately():
                    return False
                if not retention.is_due(self._ledger, self.retention(), time.time_ns()):
                    return False
        except TakebackError:
            return False
        from takeback.disk import programs

        return programs.start_ourselves("-C", work.root, "gc", home=work.home.path)

    def _ran_lately(self) -> bool:
        """Whether gc was tried a moment ago: what failed then would fail again."""
        try:
            last = os.stat(self._work.store.gc_lock.path).st_mtime
        except FileNotFoundError:
            return False
        return 0 <= time.time() - last < _PAUSE

    # -- kept states -----------------------------------------------------------------------

    def keep(self, ref: str, label: str) -> KeptState:
        """Keep the state that a reference means, whatever its age. With the lock held."""
        row, name = self._meant(ref)
        was = None
        if label.strip():
            name = ids.as_name(label)
            was = references.require_name(self._ledger, name, time.time())
        elif not name:
            known = self._ledger.names.of(row.number)
            name = next(
                (e.label for e in self.kept() if e.checkpoint == row.id and e.label in known), ""
            )
        retention.require(self._ledger, row)
        self._record(events.CHECKPOINT_KEPT, {"checkpoint": row.id, "label": name})
        moved = was.checkpoint if was is not None and was.number != row.number else ""
        return self._kept_state(row).replace(name=name, moved=moved)

    def release(self, ref: str) -> KeptState:
        """Treat a kept state like any other again, or take a name away. With the lock held.

        A state that is kept under another name than the one that goes stays.
        """
        row, name = self._meant(ref)
        kept = next((each for each in self.kept() if each.checkpoint == row.id), None)
        pin = kept is not None and name in ("", kept.label)
        if not pin and not name:
            names = self._ledger.names.of(row.number)
            remove = (Action("release-name", name=names[0]),) if names else ()
            raise UnknownReferenceError(f"`{row.id}` is not kept", hint=(*remove, Action("kept")))
        said: dict[str, Json] = {"checkpoint": row.id, "pin": pin, "name": name}
        self._record(events.CHECKPOINT_RELEASED, said)
        found = kept or KeptState(row.id, row.created / 1e9, "", time.time(), row.entries)
        return found.replace(name=name, released=pin)

    def _meant(self, ref: str) -> "tuple[CheckpointRow, str]":
        """The state that a reference means, and the name that the reference is."""
        now, name = time.time(), ids.as_name(ref)
        meant = references.find(self._ledger, ref, now)
        row = references.state_of(self._ledger, meant, now)
        known = self._ledger.names.find(name)
        is_name = known is not None and known.number == row.number and not meant.before
        return row, name if is_name else ""

    def kept(self) -> "tuple[KeptState, ...]":
        """The states that somebody keeps, newest first."""
        with FailingAs(TakebackError, "the store could not be read"):
            return tuple(
                KeptState(row.id, row.created / 1e9, row.label, row.at / 1e9, row.entries)
                for row in self._ledger.care.kept()
            )

    def _kept_state(self, row: "CheckpointRow") -> KeptState:
        return next(each for each in self.kept() if each.checkpoint == row.id)

    def _record(self, kind: str, said: "dict[str, Json]") -> None:
        """Commit an event about a kept state, and let the git view follow."""
        self._ledger.record(NewEvent(kind, said, time.time_ns()))
        try:
            for _ in self._work.store.mend_view():
                pass
        except OSError:
            # The next start brings the view up to date.
            self._work.store.lock.leave_unclean()

    # -- health ----------------------------------------------------------------------------

    def verify(self, progress: "Progress | None", *, set_aside: bool) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised."""
        from takeback.upkeep.verify import verify

        with FailingAs(TakebackError, "the store could not be verified"):
            mend = Restorer(self._work).set_aside if set_aside else None
            return verify(self._work.store, self._work.held, progress, mend)

    def examine(self) -> "tuple[tuple[Reason, ...], int]":
        """What is wrong with the log, and how many events it has."""
        with FailingAs(TakebackError, "the log could not be read"):
            # Read before the snapshot, which then holds at least what the anchor names.
            lost = tuple(self._work.store.check_anchor())
            with self._ledger.snapshot() as log:
                return (*log.check(), *lost), log.last_event()

    def rebuild(self) -> None:
        """Make everything that follows from the log again."""
        with FailingAs(TakebackError, "nothing was rebuilt"), self._work.held():
            if any(self._work.store.check_anchor()):
                # The tables are all that still knows of the events that are gone.
                raise DamagedStoreError("nothing was rebuilt: the ledger lost its end")
            self._ledger.rebuild()

    def repair(self) -> "list[Reason]":
        """Make again what can be made again without loss; what that was."""
        from takeback.upkeep import doctor

        work = self._work
        with FailingAs(TakebackError, "nothing was repaired"), work.held():
            told: list[Reason] = [*work.recovered, *doctor.mend(work.store)]
            before = doctor.stages(work.root)
            told += Restorer(work).recover(died=True)
            care.sweep(work)
            gone = sorted(before - doctor.stages(work.root))
            told += [Reason(reasons.STAGE_REMOVED, name=os.fsdecode(name)) for name in gone]
            return told + self._repair_cache()

    def _repair_cache(self) -> "list[Reason]":
        """Delete a stat cache that is of no use; the next checkpoint makes another."""
        work, newest = self._work, self._ledger.checkpoints.newest()
        with work.rules.site() as site:
            cache = work.stat_cache(site)
            if newest is None or not os.path.lexists(work.store.index_path):
                return []
            if cache.load(newest.number, newest.tree):
                return []
            cache.discard()
        return [Reason(reasons.CACHE_REMOVED)]

    def recover(self, died: bool) -> None:
        """Mend what the last holder of the lock left. With the lock held."""
        from takeback.upkeep.forget import Forgetter

        work, forgetter = self._work, Forgetter(self._work)
        if died:
            forgetter.publish()
            work.store.recover()
            care.sweep(work)
        work.add_recovered(*Restorer(work).recover(died=died))
        if died:
            forgetter.resume_after_crash()
