"""One project's store on disk.

projects/ID/        0700
  root              where the project is
  birth             when that folder was made
  lock              held by whoever changes the store
  upkeep            held by whoever puts packs in order, while others go on
  ledger.db         events, checkpoints, packs; its commit is the commit point
  index, index-LINE the stat cache of each line, disposable
  reserve           room for `gc` on a full disk, disposable
  clock             touched to read the file system's time
  git/              the packs, as a bare git repository
  config.toml       the project's own settings, if any
  typed-SESSION     what came of a command typed into an agent, until its next prompt
"""

import os
import time
import zlib

from takeback.disk import home, operations
from takeback.disk.lock import PATIENCE, Held, Lock, read_anchor
from takeback.disk.sqlite import DatabaseError
from takeback.errors import BusyError, DamagedStoreError, TakebackError
from takeback.ledger.ledger import Ledger
from takeback.ledger.schema import MAIN
from takeback.model import reasons
from takeback.model.reasons import Action, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from takeback.ledger.log.events import CheckpointRow
    from takeback.objects.object_store import ObjectStore
    from takeback.objects.pack_write import PackWriter

_RESERVE = 1 << 17
"""Bytes: `gc` needs 96 KiB to record the first thing that it deletes."""


class Store:
    """Everything that is kept about one project, opened for one of its lines."""

    def __init__(self, path: bytes, id: str, line: str = MAIN) -> None:
        for folder in (b"", b"/git", b"/git/objects", b"/git/objects/pack"):
            home.require_private(path + folder)
        self.path = path
        self.id = id
        self.git_dir = path + b"/git"
        self.packs_dir = self.git_dir + b"/objects/pack"
        self.index_path = path + (b"/index" if line == MAIN else b"/index-" + line.encode())
        self.clock_path = path + b"/clock"
        self._reserve_path = path + b"/reserve"
        self.lock = Lock(path + b"/lock")
        self.gc_lock = Lock(path + b"/upkeep")
        self.ledger = Ledger(path + b"/ledger.db", line=line)
        self._objects: ObjectStore | None = None

    def close(self) -> None:
        """Close the ledger and all packs, when no other thread is at work.

        A lock that an interrupt left with us goes, too.
        """
        with self.gc_lock.mutex, self.lock.mutex:
            if self._objects is not None:
                self._objects.close()
            self.ledger.close()
            self.lock.drop()
            self.gc_lock.drop()

    @property
    def objects(self) -> "ObjectStore":
        """What the packs hold. A checkpoint that finds nothing new never asks."""
        if self._objects is None:
            self._objects = self.reader()
        return self._objects

    def hold_gc(self, patience: float = PATIENCE) -> Held:
        """The right to write and to remove packs without the project's lock, for a `with` block.

        It is taken before the project's lock, never after it. Whoever has it may leave new packs
        that nothing refers to yet: nobody takes them for litter meanwhile.
        """
        return Held(self.gc_lock, patience=patience)

    def reading(self, patience: float = PATIENCE) -> "AbstractContextManager[object]":
        """For a `with` block in which nobody puts packs in order; nothing of ours is written.

        Nobody does so on a disk that takes no writes, so there it needs no lock.
        """
        from contextlib import ExitStack

        from takeback.disk.failures import is_no_writes

        held = ExitStack()
        try:
            held.enter_context(self.hold_gc(patience))
        except OSError as problem:
            if not is_no_writes(problem):
                raise
        return held

    def reader(self) -> "ObjectStore":
        """Objects of one's own, so that threads do not close each other's packs."""
        from takeback.objects.object_store import ObjectStore

        return ObjectStore(self.packs_dir, self.ledger)

    def pack_writer(self, holds: "Callable[[bytes], bool] | None" = None) -> "PackWriter":
        """A writer that leaves out what the store holds; with the lock held."""
        return self.objects.writer(holds)

    def make_room(self) -> None:
        """Delete what can be made again, for a disk that is full. With the lock held."""
        for path in (*self.stat_caches(), self._reserve_path, *self.litter()):
            operations.discard(path)
        try:
            with self.hold_gc(patience=0):
                for path in self.objects.half_written():
                    operations.discard(path)
        except (BusyError, OSError):
            pass  # somebody is writing a pack, or there is no room for a lock
        self.ledger.require_writable()

    def stat_caches(self) -> "list[bytes]":
        """The stat caches of all lines."""
        names = (n for n in os.listdir(self.path) if n == b"index" or n.startswith(b"index-"))
        return [self.path + b"/" + name for name in names]

    def add_line(self, parent: "str | None") -> str:
        """Begin a line at a checkpoint; its id, which `Store` takes. With the lock held.

        Its first checkpoint is the whole of its tree, and has no deltas.
        """
        from takeback.model import ids

        id = ids.from_entropy(os.urandom(8))
        self.ledger.add_line(id, parent, time.time_ns())
        return id

    def keep_reserve(self) -> None:
        """Hold some room for `gc` on a full disk. With the lock held; no failure matters."""
        if home.size_of(self._reserve_path) >= _RESERVE:
            return
        try:
            fd = operations.open_or_create(self._reserve_path)
            try:
                operations.write(fd, _ballast())
            finally:
                os.close(fd)
        except OSError:
            operations.discard(self._reserve_path)

    def publish(self, row: "CheckpointRow", before: "CheckpointRow | None") -> None:
        """Let the git view show a committed checkpoint. It follows the ledger, never leads."""
        from takeback.objects import git_view

        branch = git_view.branch(self.ledger.line)
        shown = git_view.read_ref(self.git_dir, branch)
        expected = before is not None and shown == before.view
        if shown is not None and not expected and self._is_lost(shown):
            git_view.keep_lost(self.git_dir, shown)
        git_view.write_ref(self.git_dir, branch, row.view)

    def recover(self) -> None:
        """Clean up after a process that died: remove what was never committed."""
        from takeback.objects import git_view

        git_view.create(self.git_dir)
        shown = git_view.read_ref(self.git_dir, git_view.BRANCH)
        if shown is not None and self._is_lost(shown):
            git_view.keep_lost(self.git_dir, shown)
        # Before packs go: git shall know by then which commits are gone.
        for name, content in self._unlike(git_view.wanted_files(self.ledger)):
            if name not in git_view.FILES:
                self._write_view(name, content)
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove litter, unless somebody puts packs in order, who does that in the end."""
        for path in self.litter():
            operations.unlink(path)
        if self.gc_lock.is_held:
            return
        try:
            with self.hold_gc(patience=0):
                while self.sweep():
                    pass
        except BusyError:
            return

    def sweep(self, most: int = 1000) -> bool:
        """Remove packs that nothing refers to; whether some are left, because they are many.

        With the project's lock held, and with the right to tend: no pack is being written.
        """
        self.ledger.refuse_newer()
        return self.objects.sweep(most, with_strays=self.knows_its_packs())

    def knows_its_packs(self) -> bool:
        """Whether a pack that no event names is litter.

        When the ledger lost its end, the packs it does not know are all that is left of it.
        """
        from takeback.objects import git_view

        return (
            not git_view.lost(self.git_dir)
            and not any(self.check_anchor())
            and self.objects.has_all_packs()
        )

    def require_packs(self) -> None:
        """An error if the folder of the packs is gone, and packs were in it."""
        if not os.path.isdir(self.packs_dir) and self.ledger.packs():
            raise DamagedStoreError(
                f"the packs of this project are gone: there is no `{os.fsdecode(self.packs_dir)}`",
                hint=(
                    "restore the store from a backup, with all its files",
                    Action("new-history"),
                ),
            )

    def is_forgetting(self) -> bool:
        """Whether something is being forgotten, or was when a process died."""
        noted = os.path.lexists(self.path + b"/forgetting")
        return noted or self.ledger.forgets.is_under_way()

    def anchor(self) -> bytes:
        """Where the ledger ends, as this process left it; written into the lock file."""
        end = self.ledger.end
        if end is None or self._is_anchor_needed():
            return b""
        end_text = b"%020d %s" % (end[0], end[1].hex().encode())
        return b"%s %08x\n" % (end_text, zlib.crc32(end_text))

    def _is_anchor_needed(self) -> bool:
        """Whether the anchor that is there proves that the ledger lost what some packs are of."""
        try:
            return any(self.check_anchor()) and bool(self.objects.stray_packs())
        except (TakebackError, DatabaseError, OSError):
            # Whoever gives the lock back has done what it came for; others tell of damage.
            return True

    def check_anchor(self) -> "Iterator[Reason]":
        """Whether the ledger still reaches as far as it did when the lock was last given back."""
        end_text, _, checksum = read_anchor(self.lock.path).strip().rpartition(b" ")
        if checksum != b"%08x" % zlib.crc32(end_text):
            # Never written, or a crash cut it short: no anchor, no verdict.
            return
        seq, link = end_text.split(b" ")
        found = self.ledger.link_of(int(seq))
        if found is None or found.hex().encode() != link:
            yield Reason(reasons.LEDGER_CUT, event=int(seq))

    def require_whole(self, meaning: str) -> None:
        """An error if the ledger lost its end: then nobody can tell what is needed."""
        from takeback.objects import git_view

        is_cut = any(self.check_anchor()) or any(self.check_view()) or git_view.lost(self.git_dir)
        if is_cut:
            what = "the ledger lost its end, so Takeback cannot determine what is needed"
            raise DamagedStoreError(what, hint=(Action("verify"), meaning))

    def check_view(self) -> "Iterator[Reason]":
        """Whether the git view shows more than the ledger knows."""
        from takeback.objects import git_view

        shown = git_view.read_ref(self.git_dir, git_view.BRANCH)
        if shown is not None and self._is_lost(shown):
            yield Reason(reasons.VIEW_AHEAD, commit=shown.hex())

    def _is_lost(self, commit: bytes) -> bool:
        """Whether a commit is there that the ledger should know and does not.

        A ref that a crash cut short names a commit that never was.
        """
        if self.ledger.checkpoints.has_commit(commit):
            return False
        return self.objects.is_stray(commit)

    def mend_view(self) -> "Iterator[Reason]":
        """Write again what is not as the ledger wants it in the git view.

        The view is not synced, so a crash may cut it short or take it back, and `git pack-refs`
        moves files away. Only what shows a lost part of the ledger is left as it is.
        """
        from takeback.objects import git_view

        wanted = git_view.wanted_files(self.ledger)
        for name, content in self._unlike(wanted):
            is_branch = name.startswith(b"/refs/heads/")
            shown = git_view.read_ref(self.git_dir, name[1:]) if is_branch else None
            if shown is None or not self._is_lost(shown):
                how = "changed" if os.path.lexists(self.git_dir + name) else "missing"
                self._write_view(name, content)
                yield Reason(reasons.VIEW_REMADE, file=name[1:].decode(), how=how)
        git_view.remove_others(self.git_dir, wanted)

    def _unlike(self, wanted: "dict[bytes, bytes]") -> "Iterator[tuple[bytes, bytes]]":
        for name, content in wanted.items():
            if home.read_small(self.git_dir + name, limit=len(content) + 1) != content:
                yield name, content

    def _write_view(self, name: bytes, content: bytes) -> None:
        from takeback.objects import git_view

        if name.startswith(b"/" + git_view.KEPT + b"/") and not os.path.lexists(
            self.git_dir + b"/" + git_view.KEPT
        ):
            operations.mkdir(self.git_dir + b"/" + git_view.KEPT)
        home.replace_file(self.git_dir + name, content, durable=False)

    def results(self) -> "list[bytes]":
        """What came of commands typed into agents, and was not told yet."""
        names = os.listdir(self.path)
        return [self.path + b"/" + name for name in names if name.startswith(b"typed-")]

    def litter(self) -> "Iterator[bytes]":
        folders = [b"", b"/git", b"/git/refs/heads", b"/git/refs/takeback"]
        kept = b"/git/refs/takeback/kept"
        for folder in [*folders, kept] if os.path.isdir(self.path + kept) else folders:
            for name in os.listdir(self.path + folder):
                if name.endswith(b".tmp"):
                    yield self.path + folder + b"/" + name
        # What participants had on the way: copies and dumps of databases.
        on_the_way = self.path + b"/participants"
        if os.path.isdir(on_the_way):
            yield from (each.path for each in os.scandir(on_the_way) if not each.is_dir())


def _ballast() -> bytes:
    """Bytes that take their room also on a disk that compresses."""
    golden, most = 0x9E3779B97F4A7C15, (1 << 64) - 1
    return b"".join((n * golden & most).to_bytes(8, "big") for n in range(_RESERVE // 8))


def create(path: bytes) -> None:
    """Make the folders of a new store; what a died first use left is used again."""
    if not home.require_private(path):
        home.make_folder(path)
    from takeback.objects import git_view

    git_view.create(path + b"/git")


def counts(path: bytes) -> "tuple[int, int]":
    """How many checkpoints and turns a store has; an error if it cannot be used. Makes nothing."""
    packs = path + b"/git/objects/pack"
    if not os.path.isdir(packs):
        raise DamagedStoreError(f"there is no `{os.fsdecode(packs)}`")
    ledger = Ledger(path + b"/ledger.db", writable=False)
    try:
        return (ledger.checkpoints.count(), ledger.turns.count()) if ledger.is_made else (0, 0)
    finally:
        ledger.close()


def counts_if_usable(path: bytes) -> "tuple[int, int] | None":
    """The same; None if it cannot be used."""
    try:
        return counts(path)
    except (TakebackError, OSError, DatabaseError, TypeError, ValueError):
        return None
