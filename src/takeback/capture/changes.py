"""What a turn changed in the end: its deltas folded path by path, with lines counted.

    delta 1   delta 2   delta 3        of one path, in the order of their checkpoints
    ├─ the turn's ──┤   ├─ yours ─┤
    before ──► after                   a run of the turn's own deltas counts as one change

What was made and removed again within a run, or put back, is no change.

Find single paths in the trees of checkpoints, reading only the folders on the way.
"""

from takeback.errors import NoLongerKeptError, TakebackError
from takeback.model import words
from takeback.model.beyond.losses import SHRUNK
from takeback.model.reasons import Action
from takeback.model.tree import (
    FOLDER,
    NO_HASH,
    NO_OBJECT,
    REGULAR,
    Entry,
    UnstoredFile,
    as_entry,
    judge,
    nameless,
)
from takeback.model.value import path_bytes, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.sessions import ChangeRow
    from takeback.model.text.json_text import Json
    from takeback.model.text.lines import Block
    from takeback.model.tree import Entry, Manifest
    from takeback.objects.object_store import ObjectStore

    Entries = dict[bytes, Entry]

    Lines = tuple[int, int] | None

_EVERYTHING = b""
"""No entry is called that: it stands for all that is below a folder that was left out."""
_UNLISTED = b"/"
"""Nor that: it stands for all that a folder does not list, if names in it were forgotten."""
_NOTHING: "Entries" = {}


class Trees:
    """The trees of several checkpoints; what they share is read once."""

    def __init__(self, objects: "ObjectStore") -> None:
        self.objects = objects
        self._manifests: dict[tuple[bytes, bytes], Manifest] = {}
        self._known: dict[tuple[bytes, bytes], Entries] = {}
        self._folders: dict[tuple[bytes, bytes], Entries] = {}

    def find(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; None if it was not there, or below something left out."""
        entry = self.at(row, path)
        return None if entry is not None and entry.reason and not entry.name else entry

    def at(self, row: "CheckpointRow", path: bytes) -> "Entry | None":
        """What a path was; below something left out it is an entry with a reason, too.

        Unknown is not absent.
        """
        if not path:
            return as_entry(self.root(row))
        folder, _, name = path.rpartition(b"/")
        entries = self._folders.get((row.root, folder))
        if entries is None:
            entries = self._folders[row.root, folder] = self._descend(row, folder)
        return entries.get(_EVERYTHING) or entries.get(name) or entries.get(_UNLISTED)

    def _descend(self, row: "CheckpointRow", folder: bytes) -> "Entries":
        """What a folder held: nothing if it was none, something unknown if nobody knows."""
        _require_kept(row)
        entries = self._entries(row.root, row.tree)
        for name in folder.split(b"/") if folder else ():
            entry = entries.get(name) or entries.get(_UNLISTED)
            if entry is None:
                return _NOTHING
            if entry.reason and entry.kind in (FOLDER, 0):
                return {_EVERYTHING: Entry(b"", 0, entry.reason, 0, NO_HASH, 0, NO_OBJECT)}
            if entry.kind != FOLDER:
                return _NOTHING
            entries = self._entries(entry.oid, entry.strong)
        return entries

    def root(self, row: "CheckpointRow") -> "Manifest":
        """The folder at the top."""
        _require_kept(row)
        return self._manifest(row.root, row.tree)

    def below(self, row: "CheckpointRow", path: bytes) -> "list[Entry]":
        """What a captured folder held."""
        entry = self.at(row, path)
        if entry is None or entry.kind != FOLDER or entry.reason:
            return []
        return self._manifest(entry.oid, entry.strong).entries

    def content(self, entry: "Entry") -> bytes:
        """The bytes of a file, or the target of a link."""
        return entry.content if isinstance(entry, UnstoredFile) else self.objects.content(entry)

    def _entries(self, oid: bytes, strong: bytes) -> "Entries":
        known = self._known.get((oid, strong))
        if known is None:
            manifest = self._manifest(oid, strong)
            known = self._known[oid, strong] = {entry.name: entry for entry in manifest.entries}
            unknown = nameless(manifest.entries)
            if unknown is not None:
                known[_UNLISTED] = unknown
        return known

    def _manifest(self, oid: bytes, strong: bytes) -> "Manifest":
        # By both: one strong hash may come with several times of its files.
        known = self._manifests.get((oid, strong))
        if known is None:
            known = self._manifests[oid, strong] = self.objects.manifest(oid, strong)
        return known


_HINT = (Action("log-tells"), Action("keep"))


def _require_kept(row: "CheckpointRow") -> None:
    if row.gone is not None:
        raise NoLongerKeptError(f"the files of `{row.id}` are no longer kept", hint=_HINT)


_LARGEST_COUNTED = 1 << 20
_MOST_COUNTED = 16 << 20
"""Bytes of one file, and of all files of a turn, in which lines are counted at its end."""
_LEAST_COST = 8 << 10


class Run:
    """Consecutive deltas of one path by some turns; `left` is the checkpoint with its origin.

    `before` is the state before its first delta, `last` the one with its last. `origins`
    are those of all its deltas. `states` are what it leads from and to, if that is not what the
    checkpoints around it hold; `blocks` those of its blocks that stand, if not all of them do.
    `is_restored` tells that a restore did it.
    """

    __slots__ = ("before", "blocks", "first", "how", "is_restored", "last", "left", "origin",
                 "origins", "path", "states")  # fmt: skip

    def __init__(
        self, path: bytes, before: int, checkpoint: int, how: str, origin: "bytes | None"
    ) -> None:
        self.path = path
        self.before = self.left = before
        self.first = self.last = checkpoint
        self.how = how
        self.origin = origin
        self.origins: set[bytes] = set() if origin is None else {origin}
        self.states: tuple[Entry | None, Entry | None] | None = None
        self.blocks: frozenset[Block] | None = None
        self.is_restored = False


def of_turn(ledger: "Ledger", objects: "ObjectStore", turn: int) -> "Json":
    """The changes as the end of a turn tells them: [path, verb, added, removed, how, origin?]."""
    folding = _Folding(ledger, Trees(objects), turn)
    told: dict[bytes, list[Any]] = {}
    for run in folding.with_true_origins(list(runs(ledger, turn))):
        found = folding.change(run)
        if found is None:
            continue
        before = told.get(run.path)
        told[run.path] = found if before is None else _joined(before, found)
    for change in list(told.values()):
        # A renamed file is one change, not two.
        origin = path_bytes(change[5]) if len(change) > 5 else b""
        if origin and told.get(origin, ("", ""))[1] == words.DELETE:
            del told[origin]
    return list(told.values())


def runs(ledger: "Ledger", *turns: int, shared: "Sequence[DeltaRow]" = ()) -> "Iterator[Run]":
    """The runs of one turn or several, by path and in the order in which they were made.

    What is `shared`, and may be theirs, counts as well.
    """
    rows = ledger.deltas.of_turns(turns)
    if shared:
        rows = sorted({*rows, *shared}, key=lambda row: (row.path, row.checkpoint))
    others = _by_others(ledger, turns, rows)
    run: Run | None = None
    for row in rows:
        known = others.get(row.path, ())
        if (
            run is not None
            and run.path == row.path
            and not _is_between(known, run.last, row.checkpoint)
        ):
            run.last, run.how = row.checkpoint, row.how
            run.origins |= set() if row.origin is None else {row.origin}
            continue
        if run is not None:
            yield run
        before = ledger.checkpoints.parent_of(row.checkpoint)
        run = Run(row.path, before, row.checkpoint, row.how, row.origin)
    if run is not None:
        yield run


def _by_others(
    ledger: "Ledger", turns: "Sequence[int]", rows: "list[DeltaRow]"
) -> "dict[bytes, list[int]]":
    """Where others changed what these turns changed more than once; one walk over their time."""
    from itertools import pairwise

    gaps = [
        (one, other)
        for one, other in pairwise(rows)
        if one.path == other.path
        and one.checkpoint < ledger.checkpoints.parent_of(other.checkpoint)
    ]
    if not gaps:
        return {}
    others: dict[bytes, list[int]] = {other.path: [] for _, other in gaps}
    span = min(one.checkpoint for one, _ in gaps), max(other.checkpoint for _, other in gaps)
    ours = {(row.path, row.checkpoint) for row in rows}
    for path, checkpoint in ledger.deltas.places_between(*span, turns):
        if path in others and (path, checkpoint) not in ours:
            others[path].append(checkpoint)
    return others


def _is_between(known: "Sequence[int]", first: int, last: int) -> bool:
    return any(first < checkpoint < last for checkpoint in known)


class _Folding:
    """Looks up what the paths of a turn were before and after it."""

    def __init__(self, ledger: "Ledger", trees: Trees, turn: int) -> None:
        self._ledger = ledger
        self._turn = turn
        self._trees = trees
        self._rows: dict[int, CheckpointRow | None] = {}
        self._left = _MOST_COUNTED
        self._told: dict[bytes, ChangeRow] | None = None
        self._small: tuple[bytes, ...] | None = None

    def with_true_origins(self, runs: "list[Run]") -> "list[Run]":
        """The runs; what was moved several times, or made and then moved, came from where it was
        before the turn, if it was anywhere.
        """
        origins = {run.origin for run in runs}
        passed = {run.path: run for run in runs if run.path in origins and self._is_passing(run)}
        for run in runs:
            seen: set[bytes] = set()
            while run.origin is not None and run.origin in passed and run.origin not in seen:
                seen.add(run.origin)
                on_the_way = passed[run.origin]
                run.origin, run.left = on_the_way.origin, on_the_way.left
        return runs

    def _is_passing(self, run: Run) -> bool:
        """Whether a path was there neither before nor after."""
        return self._is_kept(run) and all(
            self._entry(at, run.path) is None for at in (run.before, run.last)
        )

    def change(self, run: Run) -> "list[Json] | None":
        """One run as a change; None if the path ended as it began."""
        if not self._is_kept(run):
            return self._told_before(run)
        before = self._entry(run.before, run.path)
        after = self._entry(run.last, run.path)
        difference = judge(run.path, before, after)
        if difference is None:
            return None
        verb = difference.verb
        if verb in (words.DELETE, words.RMDIR) and self._is_shut(run):
            return [path_text(run.path), words.MODE, None, None, run.how]
        if verb in (words.CREATE, words.MKDIR) and self._is_below(run.path, self._shrunk()):
            return None  # it was there, and is only covered from now on
        if verb == words.CREATE and self._was_unknown(run):
            return [path_text(run.path), words.WRITE, None, None, run.how]
        source = before
        if run.origin is not None and before is None:
            source = self._entry(run.left, run.origin)
            verb = words.RENAME if source is not None else verb
        counted = self._count(source, after)
        added, removed = counted if counted is not None else (None, None)
        told: list[Json] = [path_text(run.path), verb, added, removed, run.how]
        if verb == words.RENAME and run.origin is not None:
            told.append(path_text(run.origin))
        return told

    def _is_kept(self, run: Run) -> bool:
        rows = [self._row(at) for at in (run.before, run.last)]
        return all(row is None or row.gone is None for row in rows)

    def _told_before(self, run: Run) -> "list[Json]":
        """A change of a turn that goes on after its first files went: as it was told then."""
        if self._told is None:
            self._told = {row.path: row for row in self._ledger.turns.changes(self._turn)}
        told = self._told.get(run.path)
        if told is None:
            return [path_text(run.path), words.WRITE, None, None, run.how]
        came = [path_text(told.origin)] if told.origin is not None else []
        return [path_text(run.path), told.verb, told.added, told.removed, run.how, *came]

    def _is_shut(self, run: Run) -> bool:
        """Whether a path is still there, and nobody may read it any more."""
        entry = self._found(run.last, run.path)
        return entry is not None and entry.reason == words.UNREADABLE

    def _was_unknown(self, run: Run) -> bool:
        """Whether something was there that was not covered: unknown is not absent."""
        row = self._row(run.before)
        entry = self._trees.at(row, run.path) if row is not None else None
        return entry is not None and entry.reason not in (words.CAPTURED, words.FORGOTTEN)

    def _shrunk(self) -> "tuple[bytes, ...]":
        """Folders that were left out as big ones, and are covered since they are small."""
        if self._small is None:
            lost = self._ledger.losses.of_turns((self._turn,))
            self._small = tuple(loss.raw_path for loss in lost if loss.what == SHRUNK)
        return self._small

    @staticmethod
    def _is_below(path: bytes, folders: "Sequence[bytes]") -> bool:
        return any(path == folder or path.startswith(folder + b"/") for folder in folders)

    def _entry(self, checkpoint: int, path: bytes) -> "Entry | None":
        entry = self._found(checkpoint, path)
        return None if entry is None or entry.reason else entry

    def _found(self, checkpoint: int, path: bytes) -> "Entry | None":
        row = self._row(checkpoint)
        return self._trees.find(row, path) if row is not None else None

    def _row(self, checkpoint: int) -> "CheckpointRow | None":
        if checkpoint not in self._rows:
            self._rows[checkpoint] = self._ledger.checkpoints.numbered(checkpoint)
        return self._rows[checkpoint]

    def _count(self, before: "Entry | None", after: "Entry | None") -> "Lines":
        files = [e for e in (before, after) if e is not None]
        if any(e.kind != REGULAR for e in files):
            return None
        size = sum(e.size for e in files)
        if any(e.size > _LARGEST_COUNTED for e in files) or size > self._left:
            return None
        # Small files cost their time, too: some two thousand are counted.
        self._left -= max(size, _LEAST_COST)
        if before is not None and after is not None and before.strong == after.strong:
            return 0, 0
        old, new = (self._trees.content(e) if e is not None else b"" for e in (before, after))
        from takeback.disk import libgit2

        try:
            return libgit2.count(old, new)
        except TakebackError:
            return None  # a turn is recorded with or without its numbers


def _joined(first: "list[Json]", second: "list[Json]") -> "list[Json]":
    """Two runs of one path with somebody else's change between them."""
    counts = [_sum(first[at], second[at]) for at in (2, 3)]
    came = first[1] in (words.CREATE, words.RENAME) and second[1] in (words.WRITE, words.MODE)
    told, origin = (first, first[5:]) if came else (second, second[5:])
    return [first[0], told[1], *counts, second[4], *origin]


def _sum(one: "Json", other: "Json") -> "int | None":
    return one + other if isinstance(one, int) and isinstance(other, int) else None
