"""Files that were renamed: by what is taken back, or by somebody since.

A rename is two changes, one at each name, and they belong together: without its other side a
file would be in two places, or in none. What somebody renamed since is found when it is needed:
by what the log says, by the same content, or by content that is similar enough.
"""

from takeback.engine.entries import is_same
from takeback.model import jsontext
from takeback.model.tree import LINK, REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

    from takeback.engine.plans import View
    from takeback.engine.reverts import Taken
    from takeback.model.tree import Entry
    from takeback.store.ledger import Ledger

    Renames = dict[bytes, set[bytes]]
    Read = Callable[[Entry], bytes]

    class Renamed(Protocol):
        """Finds files that somebody renamed."""

        def find(self, path: bytes, left: Entry | None) -> bytes | None:
            """Where a file is now that was left at a path; None if it is nowhere."""


SIMILAR = 60
"""How much of a file must be there under another name, in percent, to take it for the same."""
_LARGEST = 1 << 20
_MOST_COMPARED = 100
_MADE_SINCE = (
    "SELECT path, origin FROM deltas WHERE checkpoint > ?1 AND verb IN ('create', 'rename', 'link')"
    " AND (who <> 'restore' OR origin IS NOT NULL)"
    " AND (turn IS NULL OR turn NOT IN (SELECT value FROM json_each(?2)))"
    " ORDER BY checkpoint"
)


class Move:
    """A rename that is taken back: the file went from `old` to `new`."""

    __slots__ = ("new", "old")

    def __init__(self, old: "Taken", new: "Taken") -> None:
        self.old = old
        self.new = new


def renamed(taken: "Iterable[Taken]") -> "Renames":
    """For each path of a rename, or of a chain of them, all names that the file had."""
    each_path = list(taken)
    paths = {each.path for each in each_path}
    found: Renames = {}
    for each in each_path:
        for origin in each.origins & paths:
            joined = found.get(each.path, {each.path}) | found.get(origin, {origin})
            found |= dict.fromkeys(joined, joined)
    return found


def other_sides(renames: "Renames", is_chosen: "Callable[[bytes], bool]") -> "dict[bytes, bytes]":
    """The paths that go with chosen ones because of a rename, and each with which."""
    found: dict[bytes, bytes] = {}
    for path in sorted(filter(is_chosen, renames)):
        for other in renames[path]:
            if not is_chosen(other):
                found.setdefault(other, path)
    return found


def moves(taken: "Iterable[Taken]", renames: "Renames", now: "View", read: "Read") -> "list[Move]":
    """The renames of which both ends are plain: one name went in the end, one came first of all.

    If a file was renamed and edited at once, nobody noted it. It is looked for only if what came
    was changed since, or the old name was given anew: otherwise both are right without that.
    """
    each_path = list(taken)
    old = {e.path: e for e in each_path if _is_file(e.runs[0][0]) and not e.runs[0][1]}
    new = {e.path: e for e in each_path if _is_file(e.runs[-1][1]) and not e.runs[-1][0]}
    found = []
    for names in sorted({tuple(sorted(each)) for each in renames.values()}):
        ends = [old[n] for n in names if n in old], [new[n] for n in names if n in new]
        if len(ends[0]) == len(ends[1]) == 1:
            found.append(Move(ends[0].pop(), ends[1].pop()))
    for path in sorted(new.keys() - renames.keys()):
        is_changed = not is_same(now.at(path), new[path].runs[0][1])
        left = {
            name: old[name].runs[0][0]
            for name in sorted(old.keys() - renames.keys())
            if is_changed or now.at(name) is not None
        }
        if left:
            name = most_like(new[path].runs[0][1], left, read)
            if name is not None:
                found.append(Move(old.pop(name), new[path]))
    return found


def most_like(
    wanted: "Entry | None", among: "Mapping[bytes, Entry | None]", read: "Read"
) -> "bytes | None":
    """The name of the file that is most like another, if one is like it enough."""
    if wanted is None or wanted.kind != REGULAR or not 0 < wanted.size <= _LARGEST:
        return None
    like = [
        (name, entry)
        for name, entry in among.items()
        if entry is not None and entry.kind == REGULAR and not entry.reason
        if wanted.size // 3 <= entry.size <= wanted.size * 3
    ]
    if not like:
        return None
    from takeback.store.mergefile import similarity

    text = read(wanted)
    likeness = [(similarity(text, read(e)), name) for name, e in like[:_MOST_COMPARED]]
    best, name = max(likeness)
    return name if best >= SIMILAR else None


def _is_file(entry: "Entry | None") -> bool:
    return entry is not None and not entry.reason and entry.kind in (REGULAR, LINK)


class RenamedSince:
    """Finds under which name somebody keeps a file that was renamed after it was left."""

    def __init__(
        self, ledger: "Ledger", now: "View", read: "Read", last: int, turns: "tuple[int, ...]"
    ) -> None:
        self._ledger = ledger
        self._now = now
        self._read = read
        self._span = (last, jsontext.dumps(turns))
        self._made: dict[bytes, bytes | None] | None = None

    def find(self, path: bytes, left: "Entry | None") -> "bytes | None":
        """Where a file is now that was left at a path; None if it is nowhere."""
        if left is None or left.reason or left.kind not in (REGULAR, LINK):
            return None
        return (
            self._by_log(path)
            or self._by_content(left)
            or most_like(
                left, {name: self._now.at(name) for name in self._candidates()}, self._read
            )
        )

    def _candidates(self) -> "dict[bytes, bytes | None]":
        """What others made since, and from what, as far as the log tells."""
        if self._made is None:
            self._made = dict(self._ledger.rows(_MADE_SINCE, self._span))
        return self._made

    def _by_log(self, path: bytes) -> "bytes | None":
        seen, name = {path}, path
        while True:
            names = [new for new, origin in self._candidates().items() if origin == name]
            for new in names:
                if _is_file(self._now.at(new)):
                    return new
            unseen = [new for new in names if new not in seen]
            if not unseen:
                return None
            name = unseen[0]
            seen.add(name)

    def _by_content(self, left: "Entry") -> "bytes | None":
        for name in self._candidates():
            entry = self._now.at(name)
            if entry is None or entry.reason or entry.kind != left.kind or not entry.size:
                continue
            if entry.strong == left.strong:
                return name
        return None
