"""Take a checkpoint: look, read, describe, commit.

    look      what changed since the stat cache was written (everything, if there is none)
    read      new and changed files into a pack
    describe  manifests and git trees of the folders that changed, deepest first
    commit    the pack is synced, then one transaction in the ledger: now the checkpoint exists
    publish   the git view and the stat cache follow; losing them loses nothing
"""

from takeback.engine.previous import Previous, count_changes
from takeback.engine.reading import Reading
from takeback.model import reasons, tree
from takeback.model.tree import INCOMPLETE_BELOW, REASON, UNSTABLE
from takeback.model.values import Checkpoint, LeftOut
from takeback.store import fsclock, records, view
from takeback.store.folders import mark_racy
from takeback.store.gitobjects import BLOB
from takeback.store.ledger import CheckpointRow
from takeback.store.scan import Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.model.jsontext import Json
    from takeback.ports import Progress, Rules
    from takeback.store.folders import Folder
    from takeback.store.packwrite import PackWriter
    from takeback.store.statcache import StatCache
    from takeback.store.store import Store

_MANY = 64
"""With more files than this to read, it pays to know which objects are stored already."""


class Request:
    """What a checkpoint is taken of, when, and what it will be called."""

    __slots__ = ("at", "device", "id", "label", "progress", "rehash", "root", "rules")

    def __init__(
        self,
        *,
        root: int,
        device: int,
        rules: "Callable[[Callable[[bytes], bool]], Rules]",
        at: int,
        id: str,
        label: str,
        rehash: bool = False,
        progress: "Progress | None" = None,
    ) -> None:
        self.root = root
        self.device = device
        self.rules = rules
        self.at = at
        self.id = id
        self.label = label
        self.rehash = rehash
        self.progress = progress

    def tell(self, doing: str, done: int, total: int) -> None:
        """Say how far it has come, if anybody listens."""
        if self.progress is not None:
            self.progress(doing, done, total)


def take(store: "Store", cache: "StatCache", request: Request) -> Checkpoint:
    """Make a checkpoint of the tree as it is, or name the newest one if it holds just that."""
    capture = _Capture(store, cache, request)
    try:
        return capture.run()
    finally:
        capture.close()


class _Capture:
    """One checkpoint in the making."""

    def __init__(self, store: "Store", cache: "StatCache", request: Request) -> None:
        self._store = store
        self._cache = cache
        self._request = request
        self._newest = newest = store.ledger.newest()
        known = newest is not None and cache.load(newest.number, newest.tree)
        self._incremental = known and not request.rehash
        self._previous = Previous(store.objects, None if self._incremental else newest)
        self._clock = fsclock.read(store.clock_path, request.device)
        rules = request.rules(self._previous.was_captured)
        self._scan = Scan(request.root, rules, store.identity())
        self._known: dict[bytes, int] | None = None
        if not self._incremental:
            cache.forget()

    def close(self) -> None:
        """Close what the scan opened."""
        self._scan.close()

    def run(self) -> Checkpoint:
        """Look; then read, describe and commit if there is anything new."""
        self._request.tell("looking", 0, 0)
        scan = self._scan
        root = scan.changes(self._cache.records) if self._incremental else scan.whole()
        if root is None and self._newest is not None:
            return self._name_again(self._newest)
        assert root is not None, "a scan of everything always finds the root"
        writer = self._store.pack_writer()
        try:
            return self._capture(root, writer)
        except BaseException:
            self._store.ledger.abandon()
            writer.abort()
            raise

    def _capture(self, root: "Folder", writer: "PackWriter") -> Checkpoint:
        self._read(writer)
        manifests = describe(root, writer, self._clock)
        newest = self._newest
        if newest is not None and newest.tree == root.strong:
            writer.abort()
            self._remember(root, newest)
            return self._name_again(newest)
        row = self._commit(root, writer, manifests)
        self._follow(root, row)
        return self._as_value(row, new=True)

    # -- read ------------------------------------------------------------------------------

    def _read(self, writer: "PackWriter") -> None:
        pending = self._scan.pending
        if len(pending) > _MANY:
            self._known = (
                records.objects(self._cache.records)
                if self._incremental
                else self._previous.objects()
            )
        reading = Reading(self._scan, writer, self._clock, self._number_of)
        total = len(pending)
        reading.run(pending, lambda done: self._request.tell("reading", done, total))

    def _number_of(self, oid: bytes) -> int:
        return self._known.get(oid, 0) if self._known is not None else 0

    # -- commit ----------------------------------------------------------------------------

    def _commit(
        self, root: "Folder", writer: "PackWriter", manifests: "list[bytes]"
    ) -> CheckpointRow:
        request, newest = self._request, self._newest
        seconds = request.at // 1_000_000_000
        message = (request.label or f"checkpoint {request.id}").encode("utf-8", "replace")
        above = newest.view if newest else None
        commit = view.add_commit(writer, root.view, above, seconds, message)
        keep_above = newest.keep if newest else None
        keep = view.add_manifest_commit(writer, manifests, keep_above, seconds)
        row = CheckpointRow(
            number=0,
            id=request.id,
            event=0,
            tree=root.strong,
            root=root.oid,
            pack=root.number,
            view=commit,
            keep=keep,
            created=request.at,
            label=request.label,
            entries=self._count_entries(root),
            changed=count_changes(root, self._cache.records, self._scan.removed, self._previous),
        )
        return self._store.ledger.add_checkpoint(row, writer.finish())

    def _count_entries(self, root: "Folder") -> int:
        if not self._incremental:
            return sum(len(folder.nodes) for folder in everything(root))
        pieces = records.edits(self._cache.records, root, self._scan.removed)
        return self._cache.entries + records.entries_added(self._cache.records, pieces)

    def _name_again(self, row: CheckpointRow) -> Checkpoint:
        said: dict[str, Json] = {"checkpoint": row.id, "label": self._request.label}
        try:
            cursor = self._store.ledger.name_again(said, self._request.at)
        except BaseException:
            self._store.ledger.abandon()
            raise
        return self._as_value(row, new=False, cursor=cursor)

    # -- follow ----------------------------------------------------------------------------

    def _follow(self, root: "Folder", row: CheckpointRow) -> None:
        """Let the git view and the stat cache catch up with a committed checkpoint."""
        try:
            self._store.publish(row.view, row.keep)
        except OSError:
            # The next start brings the view up to date; see Store.recover.
            self._store.lock.leave_unclean()
        self._remember(root, row)

    def _remember(self, root: "Folder", row: CheckpointRow) -> None:
        cache = self._cache
        try:
            if self._incremental:
                pieces = records.edits(cache.records, root, self._scan.removed)
                cache.patch(pieces, row.number, row.tree)
            else:
                cache.replace(b"".join(records.whole(root)), row.number, row.tree)
        except OSError:
            # Without a cache the next checkpoint only takes longer.
            cache.forget()

    def _as_value(self, row: CheckpointRow, *, new: bool, cursor: int = 0) -> Checkpoint:
        return as_value(row, new=new, cursor=cursor, told=records.told(self._cache.records))


def everything(root: "Folder") -> "list[Folder]":
    """A folder and all folders in memory below it, each before those below it."""
    order, stack = [], [root]
    while stack:
        folder = stack.pop()
        order.append(folder)
        stack += folder.children.values()
    return order


def describe(root: "Folder", writer: "PackWriter", clock: "fsclock.FsClock") -> "list[bytes]":
    """Write the manifest and git tree of every folder that changed; return the manifests."""
    made: list[bytes] = []
    for folder in reversed(everything(root)):
        if folder.changed:
            _describe_one(folder, writer, made)
        if folder.touched:
            mark_racy(folder, clock.is_racy(folder.mtime, folder.ctime))
        if folder.parent is not None:
            _tell_parent(folder, folder.parent)
    return made


def _describe_one(folder: "Folder", writer: "PackWriter", made: "list[bytes]") -> None:
    nodes = folder.sorted_nodes()
    folder.flags &= ~records.TELLS
    if any(node.flags & (REASON | UNSTABLE) for node in nodes):
        folder.flags |= records.TELLS
    folder.touched = True
    strong, data = tree.encode(folder.mode, nodes)
    if strong == folder.strong:
        return
    folder.strong = strong
    folder.oid, folder.number = writer.add(BLOB, data)
    folder.view = view.add_tree(writer, folder)
    made.append(folder.oid)


def _tell_parent(folder: "Folder", parent: "Folder") -> None:
    """Let the parent's entry say what the folder is now."""
    node = parent.nodes[folder.name]
    incomplete = any(n.flags & (REASON | INCOMPLETE_BELOW) for n in folder.nodes.values())
    flags = node.flags & ~INCOMPLETE_BELOW | (INCOMPLETE_BELOW if incomplete else 0)
    now = (folder.strong, folder.mode, flags, folder.view)
    if (node.strong, node.mode, node.flags) != now[:3] or node.view() != folder.view:
        node.strong, node.mode, node.flags = folder.strong, folder.mode, flags
        node.oid, node.number, node.mtime = folder.oid, folder.number, folder.mtime
        node.set_view(folder.view)
        parent.changed = parent.touched = True


def as_value(
    row: CheckpointRow, *, new: bool, cursor: int = 0, told: "Iterable[tuple[bytes, int]]" = ()
) -> Checkpoint:
    """A ledger row as the value that callers get."""
    noted = list(told)
    left_out = [LeftOut(path, reasons.word(f & REASON)) for path, f in noted if f & REASON]
    return Checkpoint(
        id=row.id,
        tree=row.tree.hex(),
        cursor=cursor or row.event,
        created=row.created / 1e9,
        label=row.label,
        entries=row.entries,
        changed=row.changed if new else 0,
        new=new,
        left_out=tuple(left_out),
        unstable=tuple(path for path, f in noted if f & UNSTABLE),
    )
