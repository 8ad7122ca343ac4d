"""Check that every byte in the store is what was written, and say what any damage touches.

Packs never change, and the ledger is read as of one moment, so most of it needs no lock:
checkpoints go on meanwhile. Only what is compared with files that change, and what can be put
right, is done with the lock held, at the end. On a disk that takes no writes there is no lock to
be had: then everything is looked at, and nothing put right.
"""

from contextlib import suppress

from takeback.disk.failures import is_no_writes
from takeback.effects.saved import care
from takeback.errors import DamagedStoreError, TakebackError, UnfinishedError
from takeback.ledger import journal
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.model.results import Damage, Verification
from takeback.model.tree import FOLDER
from takeback.model.words import FOLLOWING, HASHING
from takeback.objects import git_view
from takeback.objects.git_objects import BLOB
from takeback.undo import rescue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.disk.lock import Held
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.tree import Entry
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress
    from takeback.store import Store

    Key = tuple[bytes, bytes]
_PATIENCE = 600.0
"""How many seconds are waited for somebody who puts packs in order."""


def verify(
    store: "Store",
    held: "Callable[[], Held]",
    progress: "Progress | None" = None,
    mend: "Callable[[], list[Reason]] | None" = None,
) -> Verification:
    """Re-hash everything; damage is collected, never raised.

    `mend` sets aside what cannot be put right, with the lock held, and says what.
    """
    check = _Check(store, progress)
    # Whatever a process that died left is cleaned up first.
    check.with_lock(held, lambda: check.mend(mend), is_needed=mend is not None)
    # Who puts packs in order waits until all have been read, and the other way round.
    with store.reading(_PATIENCE):
        return check.run(held)


class _Check:
    """One run over everything in a store."""

    def __init__(self, store: "Store", progress: "Progress | None") -> None:
        self._store = store
        self._progress = progress
        self.damage: list[Damage] = []
        self.strong: dict[bytes, bytes | None] = {}
        """The SHA-256 of every sound blob; None for trees and commits."""
        self.repaired: list[Reason] = []
        self.can_mend = True
        self._below: dict[Key, list[Key]] = {}
        self._sound: list[str] = []

    def run(self, held: "Callable[[], Held]") -> Verification:
        """Look at everything, with the lock only in the end."""
        store = self._store
        every, packs, named = self.ledger()
        rows = [row for row in every if row.gone is None]
        objects = store.reader()
        try:
            self.packs(packs)
            self.trees(rows, objects)
        finally:
            objects.close()
        self.commits(rows)
        self.named(named)
        self.rescues()
        self.with_lock(held, self.settle)
        return Verification(
            checkpoints=len(rows),
            gone=len(every) - len(rows),
            packs=len(packs),
            objects=len(self.strong),
            bytes=store.objects.size(),
            damage=tuple(self.damage),
            repaired=tuple(self.repaired),
        )

    def note(self, what: "Reason | str", checkpoints: "tuple[str, ...]" = ()) -> None:
        """Add one damage to the list."""
        found = Reason(reasons.DAMAGED, problem=what) if isinstance(what, str) else what
        self.damage.append(Damage(found, checkpoints))

    def with_lock(
        self, held: "Callable[[], Held]", act: "Callable[[], None]", *, is_needed: bool = False
    ) -> None:
        """Do something with the lock held; a restore that cannot be taken back yet is damage."""
        try:
            with held():
                act()
        except OSError as problem:
            if is_needed or not is_no_writes(problem):
                raise
            self.can_mend = False
            act()
        except UnfinishedError as problem:
            found = Reason(reasons.DAMAGED, problem=str(problem))
            if all(found != damage.what for damage in self.damage):
                self.note(found)

    def mend(self, mend: "Callable[[], list[Reason]] | None") -> None:
        """Set aside what cannot be put right, if somebody said so."""
        self.repaired += mend() if mend is not None else ()
        with suppress(DamagedStoreError):  # a look at the whole ledger finds it, too
            # Only with the lock: a restore that somebody is at is not stuck.
            for open_row in self._store.ledger.journal.read():
                if open_row.phase == journal.APPLYING:
                    self.note(rescue.stuck(open_row))
            if self._store.is_forgetting():
                self.note(Reason(reasons.FORGETTING_OPEN))

    def ledger(self) -> "tuple[list[CheckpointRow], list[str], list[tuple[int, bytes]]]":
        """The ledger's pages, chain and tables, as of one moment.

        Return its checkpoints, its packs, and the objects that events name.
        """
        try:
            with self._store.ledger.snapshot() as ledger:
                for what in ledger.check():
                    self.note(what)
                for row in ledger.journal.damaged():
                    self.note(rescue.left_alone(row))
                for id in ledger.plans.damaged():
                    self.note(Reason(reasons.PLAN_UNREAD, id=id))
                return (
                    list(ledger.checkpoints.of_all_lines()),
                    ledger.packs(),
                    ledger.objects_named(),
                )
        except TakebackError as problem:
            self.note(str(problem))
            return [], [], []

    def rescues(self) -> None:
        """What was saved before commands that destroy."""
        with suppress(DamagedStoreError):  # a look at the whole ledger finds it, too
            for what in care.damage(self._store):
                self.note(what)

    def packs(self, packs: "list[str]") -> None:
        """Every pack: each byte and each object."""
        waiting, known = list(reversed(packs)), set(packs)
        objects = self._store.objects
        total, done = sum(map(objects.pack_size, packs)), 0
        while waiting:
            name = waiting.pop()
            reach = self._reached(done, total)
            done += objects.pack_size(name)
            with objects.pack(name) as pack:
                if pack.is_gone():
                    now = self._store.ledger.packs()
                    if name not in now:
                        # It was merged into another meanwhile, or nobody needs it any more.
                        waiting += [other for other in now if other not in known]
                        known.update(now)
                        continue
                problems = pack.check(self._on_object, reach)
            made_with = self._store.ledger.made_with(name) if problems else ()
            for what in problems:
                self.note(what, made_with)
            if not problems:
                self._sound.append(name)

    def _reached(self, before: int, total: int) -> "Callable[[int], None] | None":
        """What tells how many bytes are done, also in the middle of a pack."""
        progress = self._progress
        if progress is None:
            return None
        progress(HASHING, before, total)
        return lambda place: progress(HASHING, min(before + place, total), total)

    def _on_object(self, oid: bytes, kind: int, strong: "bytes | None") -> None:
        self.strong[oid] = strong if kind == BLOB else None

    def settle(self) -> None:
        """With the lock held: mend what can be made again, compare what may have moved."""
        for name in self._sound:
            with self._store.objects.pack(name) as pack:
                what = "" if pack.is_gone() else pack.index_problem()
                if what and not self.can_mend:
                    self.note(what)
                elif what:
                    pack.rewrite_index()
                    self.repaired.append(Reason(reasons.INDEX_REMADE, problem=what))
        try:
            self.repaired += self._store.mend_view() if self.can_mend else ()
            for lost in (*self._store.check_view(), *self._store.check_anchor()):
                self.note(lost)
        except TakebackError as problem:
            self.note(str(problem))
        for commit in git_view.lost(self._store.git_dir):
            self.note(Reason(reasons.COMMIT_LOST, commit=commit.hex()))

    # -- trees -----------------------------------------------------------------------------

    def trees(self, rows: "list[CheckpointRow]", objects: "ObjectStore") -> None:
        """Every manifest of every checkpoint, and that all it names is there and sound."""
        bad: dict[Key, list[Reason]] = {}
        for done, row in enumerate(rows):
            if self._progress is not None:
                self._progress(FOLLOWING, done, len(rows))
            self._check_tree((row.root, row.tree), objects, bad)
        if bad:
            self._name_checkpoints(rows, bad)

    def _check_tree(
        self, root: "Key", objects: "ObjectStore", bad: "dict[Key, list[Reason]]"
    ) -> None:
        stack = [root]
        while stack:
            key = stack.pop()
            if key in self._below:
                continue
            below = self._below[key] = []
            try:
                manifest = objects.manifest(*key)
            except DamagedStoreError as problem:
                bad.setdefault(key, []).append(Reason(reasons.DAMAGED, problem=str(problem)))
                continue
            for entry in manifest.entries:
                if entry.reason:
                    continue
                if entry.kind == FOLDER:
                    below.append((entry.oid, entry.strong))
                elif self.strong.get(entry.oid) != entry.strong:
                    bad.setdefault(key, []).append(self._missing(entry))
            stack += below

    def _missing(self, entry: "Entry") -> Reason:
        name = entry.name.decode("utf-8", "backslashreplace")
        is_there = entry.oid in self.strong
        code = reasons.CONTENT_DAMAGED if is_there else reasons.CONTENT_MISSING
        return Reason(code, name=name, object=entry.oid.hex())

    def _name_checkpoints(
        self, rows: "list[CheckpointRow]", bad: "dict[Key, list[Reason]]"
    ) -> None:
        touched: dict[Reason, list[str]] = {}
        for row in rows:
            for key in self._reachable((row.root, row.tree)):
                for what in bad.get(key, ()):
                    named = touched.setdefault(what, [])
                    if row.id not in named:
                        named.append(row.id)
        for what, named in touched.items():
            self.note(what, tuple(named))

    def _reachable(self, root: "Key") -> "Iterator[Key]":
        stack, seen = [root], set()
        while stack:
            key = stack.pop()
            if key not in seen:
                seen.add(key)
                yield key
                stack += self._below.get(key, ())

    def commits(self, rows: "list[CheckpointRow]") -> None:
        """That the git view holds the commits of every checkpoint."""
        for row in rows:
            if row.view not in self.strong:
                self.note(Reason(reasons.COMMIT_MISSING, commit=row.view.hex()), (row.id,))

    def named(self, named: "list[tuple[int, bytes]]") -> None:
        """That what events name is there."""
        for event, oid in named:
            if oid not in self.strong:
                self.note(Reason(reasons.OBJECT_MISSING, object=oid.hex(), event=event))
