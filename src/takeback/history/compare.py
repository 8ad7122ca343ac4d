"""Compare two states of a tree, folder by folder from the top.

Folders with the same strong hash hold the same, so they are not read: the cost follows the
difference. A state is a checkpoint (`Saved`) or the work tree as it is (`history/worktree_state`).
"""

from takeback.capture.changes import Trees, runs
from takeback.disk.failures import FailingAs
from takeback.errors import TakebackError
from takeback.history.retention import Reading
from takeback.model.tree import (
    FOLDER,
    LARGEST,
    NAMELESS,
    NO_HASH,
    Difference,
    Entry,
    Manifest,
    as_entry,
    judge,
    nameless,
    with_renames,
)
from takeback.model.value import Value
from takeback.model.words import MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol, Self

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.objects.object_store import ObjectStore

    class State(Protocol):
        """What a tree held at some moment."""

        def root(self) -> Manifest:
            """The folder at the top."""

        def manifest(self, path: bytes, entry: Entry) -> Manifest:
            """The captured folder `entry` at `path`."""

        def content(self, path: bytes, entry: Entry) -> bytes | None:
            """What a file that fits in memory holds, or a link's target; None if gone by now."""

        def stream(self, path: bytes, entry: Entry) -> Iterator[bytes]:
            """What a file of any size holds, piece by piece."""

        def close(self) -> None:
            """Close what was opened."""


_NOTHING = Manifest(0, [], NO_HASH)


class Saved:
    """The tree of a checkpoint."""

    __slots__ = ("_objects", "_reading", "_row")

    def __init__(self, objects: "ObjectStore", row: "CheckpointRow", ledger: "Ledger") -> None:
        self._objects = objects
        self._row = row
        self._reading = Reading(ledger, row)

    def root(self) -> Manifest:
        """The folder at the top."""
        with self._reading:
            return self._objects.manifest(self._row.root, self._row.tree)

    def manifest(self, path: bytes, entry: Entry) -> Manifest:
        """The captured folder `entry` at `path`."""
        del path
        with self._reading:
            return self._objects.manifest(entry.oid, entry.strong)

    def content(self, path: bytes, entry: Entry) -> "bytes | None":
        """What a file that fits in memory holds, or a link's target."""
        del path
        with self._reading:
            return self._objects.content(entry)

    def stream(self, path: bytes, entry: Entry) -> "Iterator[bytes]":
        """What a file holds, piece by piece; checked against its hash at the end."""
        del path
        with self._reading:
            yield from self._objects.stream(entry)

    def close(self) -> None:
        """Close the packs."""
        self._objects.close()


class Comparison:
    """Two states and where they differ."""

    __slots__ = ("_after", "_before", "differences")

    def __init__(self, before: "State", after: "State", paths: "tuple[bytes, ...]" = ()) -> None:
        self._before = before
        self._after = after
        self.differences = tuple(with_renames(list(differences(before, after, paths))))

    def contents(self, found: Difference) -> "tuple[bytes | None, bytes | None]":
        """What a file or link holds in both states: empty where it is none, None if unknown.

        Unknown is what was left out, is too large to be held, or went away meanwhile.
        """
        origin = found.raw_path if found.raw_origin is None else found.raw_origin
        with FailingAs(TakebackError, "the contents could not be read"):
            return (
                _content(self._before, origin, found.before),
                _content(self._after, found.raw_path, found.after),
            )

    def close(self) -> None:
        """Close both states."""
        self._before.close()
        self._after.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OwnChanges:
    """What one turn changed itself: its own runs of changes, each from before it to after it.

    What others changed in the same files meanwhile is not in it.
    """

    __slots__ = ("_objects", "differences")

    def __init__(
        self, ledger: "Ledger", objects: "ObjectStore", turn: int, paths: "tuple[bytes, ...]" = ()
    ) -> None:
        self._objects = objects
        trees, chosen = Trees(objects), Chosen(paths)

        def at(checkpoint: int, path: bytes) -> "Entry | None":
            row = ledger.checkpoints.numbered(checkpoint)
            return trees.find(row, path) if row is not None else None

        found = (
            judge(run.path, at(run.before, run.path), at(run.last, run.path))
            for run in runs(ledger, turn)
            if chosen.cover(run.path)
        )
        self.differences = tuple(with_renames([each for each in found if each is not None]))

    def contents(self, found: Difference) -> "tuple[bytes | None, bytes | None]":
        """What a file or link held before and after: empty where it was none, None if unknown."""
        with FailingAs(TakebackError, "the contents could not be read"):
            return self._content(found.before), self._content(found.after)

    def _content(self, entry: "Entry | None") -> "bytes | None":
        if entry is None or (entry.kind == FOLDER and not entry.reason):
            return b""
        return None if entry.reason or entry.size > LARGEST else self._objects.content(entry)

    def close(self) -> None:
        """Close the packs."""
        self._objects.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _content(state: "State", path: bytes, entry: "Entry | None") -> "bytes | None":
    if entry is None or (entry.kind == FOLDER and not entry.reason):
        return b""
    if entry.reason or entry.size > LARGEST:
        return None
    return state.content(path, entry)


def differences(
    before: "State", after: "State", paths: "tuple[bytes, ...]" = ()
) -> "Iterator[Difference]":
    """Every difference at or below the given paths (everywhere, if there are none), in order."""
    chosen = Chosen(paths)
    old, new = before.root(), after.root()
    if old.strong == new.strong:
        return
    if old.mode != new.mode and chosen.cover(b""):
        yield Difference(b"", MODE, as_entry(old), as_entry(new))
    stack = [_pairs(b"", old, new)]
    while stack:
        pair = next(stack[-1], None)
        if pair is None:
            stack.pop()
            continue
        path, was, now = pair
        if not chosen.concern(path):
            continue
        found = judge(path, was, now)
        if found is not None and chosen.cover(path):
            yield found
        if _is_worth_entering(was, now):
            stack.append(_pairs(path, _folder(before, path, was), _folder(after, path, now)))


def _is_worth_entering(was: "Entry | None", now: "Entry | None") -> bool:
    """Whether something below may differ, as far as both states know what was there."""
    if _hides(was) or _hides(now):
        return False
    if was is not None and now is not None and was.kind == now.kind == FOLDER:
        return was.strong != now.strong
    return any(entry is not None and entry.kind == FOLDER for entry in (was, now))


def _hides(entry: "Entry | None") -> bool:
    """Whether a state left out what may be a folder, so that nobody knows what is below."""
    return entry is not None and entry.reason != 0 and entry.kind in (FOLDER, 0)


def _folder(state: "State", path: bytes, entry: "Entry | None") -> Manifest:
    if entry is None or entry.kind != FOLDER:
        return _NOTHING
    return state.manifest(path, entry)


def _pairs(
    path: bytes, old: Manifest, new: Manifest
) -> "Iterator[tuple[bytes, Entry | None, Entry | None]]":
    """The entries of a folder in both states, by path, in the order of their names."""
    were = {entry.name: entry for entry in old.entries}
    are = {entry.name: entry for entry in new.entries}
    # What a folder does not list in which names were forgotten is unknown, not absent.
    old_rest, new_rest = nameless(old.entries), nameless(new.entries)
    for name in sorted(were.keys() | are.keys()):
        if (old_rest or new_rest) and name.startswith(NAMELESS):
            continue
        was, now = were.get(name, old_rest), are.get(name, new_rest)
        yield path + b"/" + name if path else name, was, now


class Chosen(Value):
    """Some paths, each with everything below it; or everything."""

    paths: "tuple[bytes, ...]"

    def cover(self, path: bytes) -> bool:
        """Whether a path is one of these or lies below one."""
        return not self.paths or any(
            not chosen or path == chosen or path.startswith(chosen + b"/") for chosen in self.paths
        )

    def concern(self, path: bytes) -> bool:
        """Whether a path, or something below it, is covered."""
        return self.cover(path) or any(p.startswith(path + b"/") for p in self.paths)
