"""Find a path in a state of the tree, as people name it, and read what it held there.

Write a checkpoint's tree into a folder of its own.
"""

import os

from takeback.errors import UnknownReferenceError, UsageError
from takeback.history.retention import Reading
from takeback.model import reasons, words
from takeback.model.history import PathHistory
from takeback.model.reasons import Action, Reason
from takeback.model.tree import FOLDER, LARGEST, LINK, Entry, UnstoredFile, as_entry, nameless
from takeback.model.value import Value
from takeback.worktree.export import Extraction, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from takeback.history.compare import State
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress
    from takeback.store import Store


class Found(Value):
    """An entry and its path; of something below a left-out folder, that folder's."""

    path: bytes
    entry: Entry


class Place(Value):
    """Where a path may be meant from: the project's root, and a folder inside of it."""

    root: bytes
    inside: bytes = b""

    def candidates(self, path: bytes) -> "list[bytes]":
        """What a path can mean, counted from the root; the most likely first."""
        if path.startswith(b"/"):
            below = _below(self.root, os.path.normpath(path))
            found = [] if below is None else [below]
        else:
            from_here = os.path.normpath(b"/" + self.inside + b"/" + path)
            found = [from_here.strip(b"/"), os.path.normpath(b"/" + path).strip(b"/")]
            if _climbs_out(self.inside, path):
                del found[0]
            if _climbs_out(b"", path):
                found.pop()
        if not found:
            raise UsageError(
                f"`{os.fsdecode(path)}` is outside the project",
                hint=f"paths are those below `{os.fsdecode(self.root)}`",
            )
        return list(dict.fromkeys(found))


def _below(root: bytes, path: bytes) -> "bytes | None":
    if path == root:
        return b""
    return path[len(root) + 1 :] if path.startswith(root.rstrip(b"/") + b"/") else None


def _climbs_out(inside: bytes, path: bytes) -> bool:
    """Whether a relative path leads out of the tree by `..`."""
    depth = len(inside.split(b"/")) if inside else 0
    for name in path.split(b"/"):
        depth += -1 if name == b".." else name not in (b"", b".")
        if depth < 0:
            return True
    return False


def find(state: "State", path: bytes) -> "Found | None":
    """The entry at a path, or the left-out one above it; None if the state has neither."""
    manifest = state.root()
    found = Found(b"", as_entry(manifest))
    for name in path.split(b"/") if path else ():
        if found.entry.reason:
            return found
        if found.entry.kind != FOLDER:
            return None
        if found.path:
            manifest = state.manifest(found.path, found.entry)
        entry = manifest.find(name) or nameless(manifest.entries)
        if entry is None:
            return None
        found = Found(found.path + b"/" + name if found.path else name, entry)
    return found


def choose(
    states: "Sequence[State]", paths: "Iterable[bytes]", place: Place
) -> "tuple[bytes, ...]":
    """The paths that were meant, counted from the root; an error if no state has one of them."""
    chosen = []
    for path in paths:
        meant = [p for p in place.candidates(path) if any(find(s, p) for s in states)]
        if not meant:
            raise UnknownReferenceError(
                f"`{os.fsdecode(path)}` is in none of these states",
                hint=(
                    "give a path from the current folder or from the project's root",
                    Action("diff"),
                ),
            )
        chosen.append(meant[0])
    return tuple(chosen)


_MOST_NAMES = 50
"""Names that a file may have had: a longer way back is not followed."""
_NEWEST = 1 << 62


class Past(Value):
    """Who changed a path: turns by their numbers, restores by the checkpoints they made."""

    told: PathHistory
    turns: "frozenset[int]"
    restored: "frozenset[int]"


def past(ledger: "Ledger", path: bytes, *, is_folder: bool) -> "Past | None":
    """Who changed a file, by all names that it had, or what is below a folder.

    None if nothing ever changed there.
    """
    number = ledger.deltas.number_of_path(path)
    asked = [] if number is None else [number]
    below = ledger.deltas.numbers_below(path) if is_folder or number is None else []
    until = dict.fromkeys([*asked, *below], _NEWEST)
    if not until:
        return None
    names = _follow(ledger, until)
    turns, restored, yours = set(ledger.losses.turns_at(until)), set(), 0
    for row in ledger.deltas.touched(until):
        turns |= {row.turn} if row.turn is not None else set()
        if row.who == words.SHARED:
            found = (
                ledger.stack.turn_during(id, row.checkpoint or 0) for id in row.sessions.split()
            )
            turns |= {turn for turn in found if turn is not None}
        restored |= {row.checkpoint or 0} if row.who == words.RESTORE else set()
        yours += row.who == words.YOU
    told = PathHistory(
        path,
        is_folder=bool(below),
        raw_names=() if below else tuple(names),
        raw_renamed_to=None if below or number is None else ledger.deltas.renamed_to(number),
        yours=yours,
    )
    return Past(told, frozenset(turns), frozenset(restored))


def _follow(ledger: "Ledger", until: "dict[int, int]") -> "list[bytes]":
    """Add the older names of renamed files, each up to the checkpoint of the rename."""
    new = dict(until)
    names: list[bytes] = []
    while new and len(names) < _MOST_NAMES:
        came = {}
        for path, checkpoint, origin, name in ledger.deltas.origins(new):
            if checkpoint <= new[path] and origin not in until:
                came[origin] = checkpoint
                names.append(name)
        until.update(came)
        new = came
    return list(dict.fromkeys(names))


def read_file(state: "State", ref: str, path: bytes, place: Place) -> "Iterator[bytes]":
    """What a file held, or where a link led, piece by piece; each byte checked by the end."""
    candidates = place.candidates(path)
    found = next(filter(None, (find(state, candidate) for candidate in candidates)), None)
    name = os.fsdecode(path)
    if found is None:
        raise UnknownReferenceError(
            f"`{name}` is not in `{ref}`",
            hint=Action("diff-since", ref=ref),
        )
    entry = found.entry
    if entry.reason:
        raise UnknownReferenceError(
            f"`{os.fsdecode(found.path)}` was left out of `{ref}` ({words.word(entry.reason)})",
            hint=f"{words.EXPLAINED.get(entry.reason, 'the reason is unknown')}; "
            "there is nothing to show",
        )
    if entry.kind == FOLDER:
        raise UsageError(
            f"`{name}` is a folder in `{ref}`",
            hint=(Action("extract", ref=ref), "name a file in it"),
        )
    if entry.kind == LINK:
        target = state.content(found.path, entry)
        return iter(() if target is None else (target,))
    return state.stream(found.path, entry)


def content_of(objects: "ObjectStore", entry: "Entry | None") -> "bytes | None":
    """What a file holds, or where a link leads; None if nobody knows, or it is very large."""
    if entry is None or entry.kind == FOLDER:
        return b""
    if isinstance(entry, UnstoredFile):
        return entry.content
    return None if entry.reason or entry.size > LARGEST else objects.content(entry)


def extract(
    store: "Store",
    row: "CheckpointRow",
    directory: bytes,
    progress: "Progress | None" = None,
    told: "Callable[[Reason], None] | None" = None,
    claim: "Callable[[bytes], None] | None" = None,
) -> int:
    """Write the tree of a checkpoint into a new or empty folder; return how many entries.

    `claim` hears which folder it is before the tree appears, see `Target.finish`.
    """
    from takeback.capture import deltas

    reading = Reading(store.ledger, row)
    target = Target(directory)
    objects = store.reader()
    extraction = Extraction(target.begin(), objects, lambda: deltas.captured(store.ledger))
    try:
        done = 0
        with reading:
            for path, manifest in objects.walk(row.root, row.tree):
                way = tuple(path.split(b"/")) if path else ()
                done += extraction.write_folder(way, manifest)
                if progress is not None:
                    progress(words.WRITING, done, row.entries)
        extraction.close_folders()
        extraction.close()
        target.finish(claim)
    except BaseException:
        extraction.close()
        target.abandon()
        raise
    finally:
        objects.close()
    if told is not None:
        for path in extraction.dropped:
            told(Reason(reasons.SETUID_DROPPED, path=os.fsdecode(path)))
    return done
