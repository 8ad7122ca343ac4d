"""Take a checkpoint: look, read, describe, commit.

look      what changed since the stat cache was written (everything, if there is none)
read      new and changed files into a pack
describe  manifests and git trees of the folders that changed, deepest first
commit    the pack is synced, then one transaction in the ledger: now the checkpoint exists
publish   the git view and the stat cache follow; losing them loses nothing

What a checkpoint is taken of, and where in the log it belongs.
"""

import os
from struct import error as struct_error

from takeback.disk import machine
from takeback.ledger.log.events import CHECKPOINT_NAMED, LOSSES_SEEN, CheckpointRow, NewEvent
from takeback.model import ids, words
from takeback.model.results import Checkpoint, LeftOut
from takeback.model.tree import KIND, REASON, REGULAR, SETUID, UNSTABLE
from takeback.model.value import Value, path_text
from takeback.model.words import OMIT, YOU
from takeback.worktree import stat_cache
from takeback.worktree.folders import mark_racy
from takeback.worktree.scan import Scan, StrangeRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from typing import Any, Self

    from takeback.capture.deltas import Delta
    from takeback.capture.manifests import Previous
    from takeback.capture.project_rules import LimitRules
    from takeback.capture.safe_points import LateTurn
    from takeback.model.history import Author
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import PackWriter
    from takeback.ports import Progress
    from takeback.store import Store
    from takeback.undo.apply import Finish
    from takeback.worktree.folders import Folder
    from takeback.worktree.stat_cache import Pieces, StatCache
    from takeback.worktree.watch import PartialScan

    Attribute = Callable[[list[Delta], int], list[Author]]


class Place(Value):
    """Where in the log a checkpoint is taken: the ids of session, turn and step, if any.

    `title` is what the git view calls it. Prompts are kept out of it: `forget` has to find
    every copy of them.
    """

    session: "str | None" = None
    turn: "str | None" = None
    step: "str | None" = None
    parents: "tuple[int, ...]" = ()
    title: str = ""


NOTHING: "Mapping[Any, int]" = {}


class Request(Value):
    """What somebody wants of a checkpoint: when, where in the log, and how it is made.

    `closing` are the ids of what ends with it, each with its time. A `silent` one leaves no event
    when nothing changed, and does not list what was left out: the caller records what it was for.
    A retry with the same `request` gets the first result. `wanted` files are captured whatever
    their size; `again` are paths whose stamps are not trusted. `modes` are the real modes of paths
    that are open for this look only. `finish` is the restore that is committed with the checkpoint;
    it looks at the folders that it changed only, so everything was last `looked` at before it.
    `late` are turns that begin with this look if it finds something of theirs. Unless `whole`,
    a watch may tell where looking can be spared.
    """

    at: int
    place: Place
    closing: "Mapping[str, int]" = NOTHING
    label: str = ""
    silent: bool = True
    request: "str | None" = None
    rehash: bool = False
    progress: "Progress | None" = None
    wanted: "frozenset[bytes]" = frozenset()
    again: "frozenset[bytes]" = frozenset()
    modes: "Mapping[bytes, int]" = NOTHING
    finish: "Finish | None" = None
    looked: int = 0
    late: "tuple[LateTurn, ...]" = ()
    whole: bool = True

    def coordinate(self) -> "dict[str, Json]":
        """Where in the log this is, as events say it."""
        return {
            "session": self.place.session,
            "turn": self.place.turn,
            "step": self.place.step,
            "looked": self.looked or self.at,
        }

    def tell(self, doing: str, done: int, total: int) -> None:
        """Report progress, if anybody listens."""
        if self.progress is not None:
            self.progress(doing, done, total)


class Site:
    """The project's folder, open, and what a look at it has to respect."""

    __slots__ = ("device", "mounts", "root", "rules", "secret_names", "strangers")

    def __init__(
        self,
        root: int,
        rules: "Callable[[Callable[[bytes], bool]], LimitRules]",
        mounts: "frozenset[bytes] | None",
        strangers: "Mapping[tuple[int, int], int]",
        secret_names: "tuple[str, ...]" = (),
    ) -> None:
        self.root = root
        self.device = os.fstat(root).st_dev
        self.rules = rules
        self.mounts = mounts
        self.strangers = strangers
        self.secret_names = secret_names

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.root)


def take(
    store: "Store",
    cache: "StatCache",
    site: Site,
    request: Request,
    attribute: "Attribute | None" = None,
    partial_scan: "PartialScan | None" = None,
) -> Checkpoint:
    """Make a checkpoint of the tree as it is, or name the newest one if it holds just that.

    `attribute` finds the authors of what changed; `partial_scan` may know where nothing did.
    """
    capture = _Capture(store, cache, site, request, attribute, partial_scan)
    try:
        taken = capture.run()
    finally:
        capture.close()
    if partial_scan is not None:
        partial_scan.done(cache)
    return taken


class _Capture:
    """One checkpoint in the making."""

    def __init__(
        self,
        store: "Store",
        cache: "StatCache",
        site: Site,
        request: Request,
        attribute: "Attribute | None",
        partial_scan: "PartialScan | None",
    ) -> None:
        self._store = store
        self._cache = cache
        self._site = site
        self._request = request
        self._attribute = attribute
        self._partial_scan = partial_scan
        self._newest = newest = store.ledger.checkpoints.newest()
        known = newest is not None and cache.load(newest.number, newest.tree)
        self._incremental = known and not request.rehash
        if self._incremental and request.again:
            cache.distrust(request.again)
        self._previous = None if self._incremental else _previous(store, newest)
        self._clock = machine.read_clock(store.clock_path, site.device)
        self._scan = self._new_scan()
        self._pieces: Pieces | None = None
        if not self._incremental:
            cache.forget()

    def _new_scan(self) -> Scan:
        request, site = self._request, self._site
        known = self._previous.was_captured if self._previous else _never
        wanted = request.wanted | (request.finish.wanted if request.finish is not None else set())
        rules = site.rules((lambda path: path in wanted or known(path)) if wanted else known)
        return Scan(site.root, rules, site.strangers, site.mounts)

    def close(self) -> None:
        """Close what the scan opened."""
        self._scan.close()

    def run(self) -> Checkpoint:
        """Look; then read, describe and commit if there is anything new."""
        self._request.tell(words.LOOKING, 0, 0)
        root = self._look()
        if root is None and self._newest is not None:
            return self._name_again(self._newest)
        assert root is not None, "a scan of everything always finds the root"
        writer = self._store.pack_writer(self._holds)
        self._store.ledger.commit_sent = False
        try:
            return self._capture(root, writer)
        except BaseException:
            self._give_up(writer)
            raise

    def _look(self) -> "Folder | None":
        if not self._incremental:
            return self._scan.whole()
        try:
            return self._scan.changes(self._cache.records, self._within())
        except (StrangeRoot, ValueError):
            # What the cache says cannot be about this tree: it is worth nothing, look anew.
            self._cache.forget()
            self._incremental = False
            self._previous = _previous(self._store, self._newest)
            self._scan.close()
            self._scan = self._new_scan()
            return self._scan.whole()

    def _within(self) -> "AbstractSet[bytes] | None":
        """The folders to look at; None for all."""
        if self._request.finish is not None:
            # A restore was preceded by a look at everything: what somebody changed elsewhere
            # meanwhile is found by the next one, and is not of the restore.
            return self._request.finish.folders
        return self._partial_scan.folders(self._cache) if self._partial_scan is not None else None

    def _give_up(self, writer: "PackWriter") -> None:
        """Leave nothing behind of a checkpoint that was not committed."""
        self._store.ledger.abandon()
        if self._store.ledger.commit_sent:
            # It exists, or only the ledger knows whether it does: the next start looks there.
            self._store.lock.leave_unclean()
        else:
            writer.abort()

    def _capture(self, root: "Folder", writer: "PackWriter") -> Checkpoint:
        # Imported only when something changed: most checkpoints of a hook find nothing new.
        from takeback.capture.manifests import describe

        self._read(writer)
        for path, mode in self._request.modes.items():
            _set_mode(root, path, mode)
        stored = self._previous.stored() if self._previous else {}
        describe(root, writer, self._clock, stored)
        newest = self._newest
        sound = self._previous is None or not self._previous.damaged
        if newest is not None and newest.tree == root.strong and sound:
            self._record_losses(root)
            self._remember_same(root, newest, writer)
            return self._name_again(newest)
        row = self._commit(root, writer)
        self._follow(root, row)
        return self._as_value(row, new=True)

    # -- read ------------------------------------------------------------------------------

    def _read(self, writer: "PackWriter") -> None:
        from takeback.capture.reading import Reading

        # Restored files are stored already, and all are that a scan without a stat cache finds.
        is_new = self._incremental and self._request.finish is None
        reading = Reading(
            self._scan,
            writer,
            self._clock,
            knows_some=self._newest is not None and not is_new,
            alone=self._request.rehash,
        )
        total = len(self._scan.pending)
        reading.run(lambda done: self._request.tell(words.READING, done, total))

    def _holds(self, oid: bytes) -> bool:
        """Whether an object need not be stored again."""
        objects, previous = self._store.objects, self._previous
        if not objects.holds(oid):
            return False
        if previous is None or not (self._request.rehash or previous.damaged):
            return True
        if objects.is_sound(oid):
            return True
        # The file is still there, so what was damaged is stored again.
        previous.damaged = True
        return False

    # -- commit ----------------------------------------------------------------------------

    def _commit(self, root: "Folder", writer: "PackWriter") -> CheckpointRow:
        from takeback.objects import git_view

        request, newest = self._request, self._newest
        id, seconds = ids.from_entropy(os.urandom(8)), request.at // 1_000_000_000
        title = request.label or request.place.title or f"checkpoint {id}"
        message = title.encode("utf-8", "replace").replace(b"\0", b" ")
        above = newest or self._store.ledger.checkpoints.start()
        commit = git_view.add_commit(
            writer, root.view, above.view if above else None, seconds, message
        )
        entries, (found, lost) = self._count_entries(root), self._deltas(root)
        row = CheckpointRow(
            number=0,
            id=id,
            event=0,
            tree=root.strong,
            root=root.oid,
            view=commit,
            created=request.at,
            label=request.label,
            entries=entries,
            changed=entries if found is None else sum(d.verb != OMIT for d in found),
            parent=above.number if above else None,
        )
        first, told = self._told(found, lost)
        told |= self._owners(root) | self._secrets(root)
        parents = (above.event,) if above else ()
        return self._store.ledger.add_checkpoint(
            row,
            writer.finish(),
            told,
            first=first,
            parents=(*parents, *request.place.parents),
            request=request.request,
            finish=request.finish,
        )

    def _deltas(self, root: "Folder") -> "tuple[list[Delta] | None, list[Delta]]":
        """What changed since the checkpoint before, and what was lost that is not covered.

        None if there is no checkpoint before, or none to read.
        """
        from takeback.capture import deltas

        if self._newest is None or (self._previous is not None and self._previous.damaged):
            return None, []
        if self._previous is not None:
            return deltas.find(root, deltas.InManifests(self._previous))
        return deltas.find(root, deltas.InRecords(self._cache.records))

    def _told(
        self, found: "list[Delta] | None", lost: "list[Delta]"
    ) -> "tuple[list[NewEvent], dict[str, Json]]":
        """The turns that begin with it, and what the event says besides the row.

        That is where in the log it is, and who changed what.
        """
        told, first = self._request.coordinate(), []
        if found is not None and self._attribute is not None:
            from takeback.capture import deltas

            authors = self._attribute(found, self._clock.slack)
            # Apart from the others: a path that is lost may be written as well.
            authors += self._attribute(lost, self._clock.slack) if lost else []
            both = [*found, *lost]
            told |= deltas.facts(both, authors)
            for turn in self._request.late:
                own = [d for d, by in zip(both, authors, strict=True) if by.turn == turn.id]
                first += [turn.begin(own, self._newest)] if own else []
        return first, told

    def _record_losses(self, root: "Folder") -> None:
        """Record what changed of what is left out when that makes no other tree.

        A log may grow all the time: of each path only the first change in a turn is recorded.
        """
        if not self._incremental or self._attribute is None or self._request.finish is not None:
            return
        from takeback.capture import deltas

        _, lost = deltas.find(root, deltas.InRecords(self._cache.records))
        if not lost:
            return
        pairs = list(zip(lost, self._attribute(lost, self._clock.slack), strict=True))
        known = self._store.ledger.losses.is_known
        # No turn begins with what is not covered.
        none = {turn.id for turn in self._request.late}
        pairs = [(d, by) for d, by in pairs if by.who != YOU and by.turn not in none]
        new = [(d, by) for d, by in pairs if d.loss and not known(d.loss, by)]
        if new:
            told = deltas.facts([delta for delta, _ in new], [by for _, by in new])
            told["line"] = self._store.ledger.line
            self._store.ledger.record(NewEvent(LOSSES_SEEN, told, self._request.at))

    def _owners(self, root: "Folder") -> "dict[str, Json]":
        """Whose the setuid programs are that were captured, if there are any."""
        from takeback.capture.manifests import everything

        changed = [folder for folder in everything(root) if folder.changed]
        nodes = (node for folder in changed for node in folder.nodes.values())
        if not any(node.mode & SETUID and node.mode & KIND == REGULAR for node in nodes):
            return {}
        from takeback.capture import deltas

        found = deltas.owner_facts(changed, self._scan.descent)
        return {"owners": found} if found else {}

    def _secrets(self, root: "Folder") -> "dict[str, Json]":
        """The secret files in folders that changed: their values are masked in what tools say."""
        from takeback.capture.manifests import everything
        from takeback.model.text import secrets

        names = self._site.secret_names
        found: list[Json] = []
        for folder in everything(root):
            for name in secrets.among(folder.nodes, names) if folder.changed else ():
                node = folder.nodes[name]
                if node.mode & KIND == REGULAR and not node.reason:
                    found.append(path_text(folder.path_of(name)))
        return {"secrets": found} if found else {}

    def _count_entries(self, root: "Folder") -> int:
        from takeback.capture.manifests import everything

        if not self._incremental:
            nodes = (node for folder in everything(root) for node in folder.nodes.values())
            return sum(1 for node in nodes if not node.reason)
        added = stat_cache.entries_added(self._cache.records, self._edits(root))
        return self._cache.entries + added

    def _edits(self, root: "Folder") -> "Pieces":
        if self._pieces is None:
            self._pieces = stat_cache.edits(self._cache.records, root, self._scan.removed)
        return self._pieces

    def _name_again(self, row: CheckpointRow) -> Checkpoint:
        request = self._request
        if request.finish is not None:
            finish = request.finish
            over = finish.event(row.id, row.event)
            (cursor,) = self._store.ledger.record(over, closing=finish.journal, late=finish.late)
            return self._as_value(row, new=False, cursor=cursor)
        if request.silent:
            return self._as_value(row, new=False)
        said: dict[str, Json] = {"checkpoint": row.id, "label": request.label}
        said |= request.coordinate()
        parents = (row.event, *request.place.parents)
        named = NewEvent(
            CHECKPOINT_NAMED, said, request.at, parents=parents, request=request.request
        )
        (cursor,) = self._store.ledger.record(named)
        return self._as_value(row, new=False, cursor=cursor)

    # -- follow ----------------------------------------------------------------------------

    def _follow(self, root: "Folder", row: CheckpointRow) -> None:
        """Let the git view and the stat cache catch up with a committed checkpoint."""
        try:
            self._store.publish(row, self._newest)
        except OSError:
            # The next start brings the view up to date; see Store.recover.
            self._store.lock.leave_unclean()
        if self._newest is None:
            self._store.keep_reserve()
        self._remember(root, row)

    def _remember(self, root: "Folder", row: CheckpointRow) -> None:
        cache = self._cache
        try:
            if self._incremental:
                cache.patch(self._edits(root), row.number, row.tree)
            else:
                cache.replace(b"".join(stat_cache.whole(root)), row.number, row.tree)
        except (OSError, struct_error):
            # No room, or folders deeper than a record can say. Without a cache the next
            # checkpoint only takes longer.
            cache.forget()

    def _remember_same(self, root: "Folder", newest: CheckpointRow, writer: "PackWriter") -> None:
        """The tree is what the newest checkpoint holds; remember the stamps it has now."""
        if writer.is_empty():
            self._remember(root, newest)
            return
        # Something was made anew just as it had been. What we know of it now points into a pack
        # that will never be, so what was known before has to do; it is still true.
        writer.abort()
        if not self._incremental:
            self._cache.discard()

    def _as_value(self, row: CheckpointRow, *, new: bool, cursor: int = 0) -> Checkpoint:
        told = () if self._request.silent else self._noted(row)
        return as_value(row, new=new, cursor=cursor, told=told, place=self._request.place)

    def _noted(self, row: CheckpointRow) -> "Iterable[tuple[bytes, int]]":
        if self._cache.records:
            return self._cache.flagged()
        # The stat cache could not be written, so ask the checkpoint itself.
        from takeback.capture.manifests import told

        return told(self._store.objects, row)


def _previous(store: "Store", newest: "CheckpointRow | None") -> "Previous":
    from takeback.capture.manifests import Previous

    return Previous(store.objects, newest)


def _set_mode(root: "Folder", path: bytes, mode: int) -> None:
    """Let an entry that is open for this look have the mode that it has otherwise."""
    *way, name = path.split(b"/")
    folder: Folder | None = root
    for step in way:
        folder = folder.children.get(step) if folder is not None else None
    node = folder.nodes.get(name) if folder is not None else None
    if folder is None or node is None or node.reason:
        return
    node.mode = node.mode & KIND | mode
    folder.changed = folder.touched = True
    child = folder.children.get(name)
    if child is not None:
        child.mode, child.changed = node.mode, True
    mark_racy(child or node, True)


def _never(path: bytes) -> bool:
    """With a stat cache, only what is new to it is asked about."""
    del path
    return False


def as_value(
    row: CheckpointRow,
    *,
    new: bool,
    cursor: int = 0,
    told: "Iterable[tuple[bytes, int]]" = (),
    place: "Place | None" = None,
) -> Checkpoint:
    """A ledger row as the value that callers get."""
    noted = list(told)
    left_out = [LeftOut(path, words.word(f & REASON)) for path, f in noted if f & REASON]
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
        raw_unstable=tuple(path for path, f in noted if f & UNSTABLE),
        session=place.session if place else None,
        turn=place.turn if place else None,
        step=place.step if place else None,
    )
