"""What is needed: every object that a kept checkpoint, undo, redo or running work can ask for.

Checkpoints are walked from the newest to the oldest, and what they share is visited once. So each
object comes with the newest checkpoint that needs it: that tells how large the history would be
with another horizon. Versions of one thing (a file, a folder's manifest, a folder's git tree)
are told as one series. Objects have numbers here, those of the catalog, and what is known of them
stands in arrays: a large store has hundreds of thousands.
"""

from takeback.errors import DamagedStoreError
from takeback.ledger.log import events
from takeback.ledger.log.events import entry_from
from takeback.model.reasons import Action
from takeback.model.tree import FOLDER
from takeback.model.words import FINDING_NEEDED
from takeback.objects.git_objects import MODE_TREE
from takeback.objects.pack_merge import Marks
from takeback.undo import rescue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow, Event
    from takeback.model.tree import Entry
    from takeback.objects.object_store import ObjectStore
    from takeback.objects.pack_read import PackFile
    from takeback.ports import Progress

ALWAYS = 1 << 62
"""The number of what is needed whatever the horizon is."""
_TELL_EVERY = 64
_OPEN_AT_ONCE = 16
_SAVED = (events.OUTSIDE_SEEN, events.RESTORE_APPLIED, events.SAVES_RESCUED)


class Reach:
    """Everything that is needed, in `marks`."""

    def __init__(self, objects: "ObjectStore") -> None:
        self.catalog = objects.catalog()
        self._objects = objects
        self._packs: dict[int, PackFile] = {}
        self.marks = Marks()
        self._marked, self._visited = bytearray(), bytearray()
        """Which objects are needed, and of which it is known what they need."""
        self._checkpoint = 0
        self._event = 0

    # -- what to begin with ----------------------------------------------------------------

    def everything(self, ledger: "Ledger", floor: int, progress: "Progress | None" = None) -> None:
        """Mark what is needed, in a ledger that stands still; what began at or below the floor is
        no longer kept.
        """
        self._event = ledger.last_event()
        self.catalog.follow(ledger.packs())
        self._foreign(ledger.foreign_packs())
        rows = [row for row in ledger.checkpoints.of_all_lines() if row.gone is None]
        self._checkpoint = rows[0].number if rows else 0
        for done, row in enumerate(rows):
            if progress is not None and done % _TELL_EVERY == 0:
                progress(FINDING_NEEDED, done, len(rows))
            self.checkpoint(row)
        for path, entry in ledger.care.outside_above(floor):
            self._entry(entry, b"o" + path)
        horizon = ledger.care.event_of(floor)
        for event in ledger.events_of(events.SAVES_RESCUED, after=horizon):
            self._saved(event)
        self._named(ledger, 0)
        self._journal(ledger)

    def follow(self, ledger: "Ledger") -> None:
        """Mark what came since; with the lock held, or in a ledger that stands still."""
        self.catalog.follow(ledger.packs())
        self._foreign(ledger.foreign_packs(self._event))
        self._named(ledger, self._event)
        for event in ledger.events(self._event):
            self._event = event.seq
            if event.kind in _SAVED:
                self._saved(event)
        for number in range(self._checkpoint + 1, ledger.care.newest() + 1):
            row = ledger.checkpoints.numbered(number)
            if row is not None:
                self.checkpoint(row)
            self._checkpoint = number
        self._journal(ledger)

    def _foreign(self, packs: "set[str]") -> None:
        """Note the packs that events of unknown kinds name."""
        names = enumerate(self.catalog.names)
        self.marks.foreign |= {place for place, name in names if name.decode() in packs}

    def _named(self, ledger: "Ledger", since: int) -> None:
        """What events name in their envelope."""
        for _, oid in ledger.objects_named(since):
            self._mark(oid, b"e" + oid, ALWAYS)

    def _saved(self, event: "Event") -> None:
        """What an event names that no checkpoint holds."""
        said: Any = event.payload or {}
        if event.kind == events.SAVES_RESCUED:
            for save in said.get("saves", ()):
                path, entry = rescue.as_entry(*save)
                self._entry(entry, b"o" + path)
        elif event.kind == events.OUTSIDE_SEEN:
            for _, path, facts, _ in said.get("files", ()):
                self._entry(entry_from(facts), b"o" + _bytes(path))
        else:
            for path, before, after in said.get("outside", ()):
                for facts in (before, after):
                    self._entry(entry_from(facts), b"o" + _bytes(path))

    def _journal(self, ledger: "Ledger") -> None:
        """Both states of what a restore under way changes."""
        for row in ledger.journal.of_all_lines():
            for op in (*row.ops, *(op for away in row.away for op in away.ops)):
                for entry in (op.before, op.after):
                    if entry is not None and entry.kind != FOLDER and not entry.reason:
                        self._entry(entry, b"f" + op.path)

    # -- what follows from that ------------------------------------------------------------

    def checkpoint(self, row: "CheckpointRow") -> None:
        """The tree of a checkpoint, and what the git view shows of it."""
        self._folders(row)
        self._commit(row.view, row.number)

    def _folders(self, row: "CheckpointRow") -> None:
        stack = [(b"", row.root, row.tree)]
        while stack:
            path, oid, strong = stack.pop()
            if not self._visit(self._mark(oid, b"m" + path, row.number)):
                continue
            for entry in self._objects.manifest(oid, strong).entries:
                if entry.reason:
                    continue
                below = path + b"/" + entry.name if path else entry.name
                if entry.kind == FOLDER:
                    stack.append((below, entry.oid, entry.strong))
                else:
                    self._mark(entry.oid, b"f" + below, row.number)

    def _commit(self, oid: bytes, number: int) -> None:
        """A commit of the git view without its parents."""
        self._mark(oid, b"c", number)
        stack = [(b"", self._tree_of(oid))]
        while stack:
            path, oid = stack.pop()
            if not self._visit(self._mark(oid, b"tc" + path, number)):
                continue
            for mode, name, inner in _tree(self._read(oid)):
                if mode == b"%o" % MODE_TREE:
                    stack.append((path + b"/" + name if path else name, inner))
                else:
                    self._mark(inner, b"f" + name, number)

    def _visit(self, found: int) -> bool:
        """Whether an object is met for the first time."""
        is_new = not self._visited[found]
        self._visited[found] = True
        return is_new

    def _tree_of(self, commit: bytes) -> bytes:
        first = self._read(commit).partition(b"\n")[0]
        return bytes.fromhex(first.removeprefix(b"tree ").decode())

    def _entry(self, entry: "Entry | None", series: bytes) -> None:
        if entry is not None:
            self._mark(entry.oid, series, ALWAYS)

    def _mark(self, oid: bytes, series: bytes, checkpoint: int) -> int:
        """Note that an object is needed; return its number."""
        found = self._number(oid)
        if not self._marked[found]:
            self._marked[found] = True
            self.marks.add(found, self.catalog.places[found], series, checkpoint)
        return found

    def _number(self, oid: bytes) -> int:
        """The number of an object, which must be there."""
        found = self.catalog.ids.find(oid)
        if found < 0:
            raise DamagedStoreError(
                f"the object `{oid.hex()}` is missing, so Takeback cannot determine what is needed",
                hint=(Action("verify"), "nothing was removed"),
            )
        if found >= len(self._marked):
            more = len(self.catalog.ids) - len(self._marked)
            self._marked.extend(bytes(more))
            self._visited.extend(bytes(more))
        return found

    def _read(self, oid: bytes) -> bytes:
        """A commit or a tree, wherever it is."""
        place = self.catalog.places[self._number(oid)]
        pack = self._packs.get(place)
        if pack is None:
            if len(self._packs) >= _OPEN_AT_ONCE:
                self._packs.pop(next(iter(self._packs))).close()
            pack = self._packs[place] = self.catalog.open(place)
        return pack.read(oid)[1]

    def close(self) -> None:
        """Close the packs, with their indexes; what is read after all opens them again."""
        for pack in self._packs.values():
            pack.close()
        self._packs.clear()
        self._objects.close()


def _tree(data: bytes) -> "Iterator[tuple[bytes, bytes, bytes]]":
    """(mode, name, id) of each entry of a git tree."""
    at = 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        yield data[at:space], data[space + 1 : end], data[end + 1 : end + 21]
        at = end + 21


def _bytes(path: object) -> bytes:
    return str(path).encode("utf-8", "surrogateescape")
