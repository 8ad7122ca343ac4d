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

    from takeback.engine.reverts import Fold, Taken
    from takeback.engine.wishes import View
    from takeback.model.tree import Entry
    from takeback.store.ledger import Ledger

    Renames = dict[bytes, set[bytes]]
    At = Callable[[bytes], Entry | None]
    Read = Callable[[Entry], bytes]
    Was = Callable[[int, bytes], Entry | None]
    """What a path was at a checkpoint."""

    class Renamed(Protocol):
        """Finds files that somebody renamed."""

        def find(self, path: bytes, left: Entry | None, at: At) -> bytes | None:
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
_MADE_INSTEAD = (
    "SELECT made.path FROM deltas gone JOIN deltas made ON made.checkpoint = gone.checkpoint"
    " WHERE gone.checkpoint > ?1 AND gone.path = ?2 AND gone.verb = 'delete'"
    " AND gone.who = 'restore' AND made.who = 'restore' AND made.verb = 'create'"
)


class Move:
    """A rename that is taken back, or several in a row: the file went from `old` to `new`."""

    __slots__ = ("names", "new", "old")

    def __init__(self, *names: "Taken") -> None:
        self.names = names
        self.old = names[0]
        self.new = names[-1]

    @property
    def is_plain(self) -> bool:
        """Whether nobody else changed the file while it got its names."""
        return all(len(each.runs) == 1 for each in self.names[1:])

    @property
    def is_made(self) -> bool:
        """Whether the file was not there before."""
        return self.old.runs[-1][0] is None

    @property
    def runs(self) -> "Fold":
        """What was done to the file under all its names, the newest first."""
        newest = self.new.runs
        found, left = list(newest[:-1]), newest[-1][1]
        for each in reversed(self.names[1:-1]):
            if len(each.runs) > 1:
                found += [(each.runs[0][0], left), *each.runs[1:-1]]
                left = each.runs[-1][1]
        return [*found, (self.old.runs[0][0], left), *self.old.runs[1:]]


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


def moves(
    taken: "Iterable[Taken]", renames: "Renames", now: "View", was: "Was", read: "Read"
) -> "list[Move]":
    """The renames of which both ends are plain: one name went in the end, one came first of all.

    If a file was renamed and edited at once, nobody noted it. It is looked for only if what came
    was changed since, or the old name was given anew: otherwise both are right without that. What
    was not there yet when the new name came cannot be its old one.
    """
    known = {each.path: each for each in taken}
    old = {p: e for p, e in known.items() if _is_file(e.runs[0][0]) and not e.runs[0][1]}
    new = {p: e for p, e in known.items() if _is_file(e.runs[-1][1]) and not e.runs[-1][0]}
    chains = [_chain([known[n] for n in names]) for names in _distinct(renames)]
    found = [Move(*chain) for chain in chains if chain]
    for path in sorted(new.keys() - renames.keys()):
        is_changed = not is_same(now.at(path), new[path].runs[0][1])
        left = {
            name: old[name].runs[0][0]
            for name in sorted(old.keys() - renames.keys())
            if is_changed or now.at(name) is not None
            if new[path].is_forward or was(new[path].first - 1, name) is not None
        }
        if left:
            name = most_like(new[path].runs[0][1], left, read)
            if name is not None:
                found.append(Move(old.pop(name), new[path]))
    return found


def _distinct(renames: "Renames") -> "list[tuple[bytes, ...]]":
    return sorted({tuple(sorted(each)) for each in renames.values()})


def _chain(group: "list[Taken]") -> "list[Taken]":
    """The names that a file had, in their order; empty if they do not follow one another."""
    paths = {each.path for each in group}
    next_of = {origin: each for each in group for origin in each.origins & paths}
    begin = [each for each in group if not each.origins & paths]
    if len(begin) != 1 or len(next_of) != len(group) - 1:
        return []
    chain = begin
    while chain[-1].path in next_of:
        chain.append(next_of[chain[-1].path])
    first, *middle, last = chain
    went = all(each.runs[0][1] is None for each in (first, *middle))
    came = all(each.runs[-1][0] is None for each in (*middle, last))
    is_whole = len(chain) == len(group)
    is_file = _is_file(first.runs[0][0]) and _is_file(last.runs[-1][1])
    return chain if went and came and is_whole and is_file else []


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
        self, ledger: "Ledger", read: "Read", first: int, turns: "tuple[int, ...]"
    ) -> None:
        self._ledger = ledger
        self._read = read
        self._span = (first, jsontext.dumps(turns))
        self._made: dict[bytes, bytes | None] | None = None

    def find(self, path: bytes, left: "Entry | None", at: "At") -> "bytes | None":
        """Where a file is that was left at a path, `at` tells what is where; None if nowhere."""
        if left is None or left.reason or left.kind not in (REGULAR, LINK):
            return None
        return (
            self._by_log(path, at)
            or self._by_content(left, at)
            or most_like(left, {name: at(name) for name in self._made_instead(path)}, self._read)
            or most_like(left, {name: at(name) for name in self._candidates()}, self._read)
        )

    def _candidates(self) -> "dict[bytes, bytes | None]":
        """What others made since, and from what, as far as the log tells."""
        if self._made is None:
            self._made = dict(self._ledger.rows(_MADE_SINCE, self._span))
        return self._made

    def _made_instead(self, path: bytes) -> "list[bytes]":
        """What restores made when they removed a path: an old name with another content."""
        return [name for (name,) in self._ledger.rows(_MADE_INSTEAD, (self._span[0], path))]

    def _by_log(self, path: bytes, at: "At") -> "bytes | None":
        seen, name = {path}, path
        while True:
            names = [new for new, origin in self._candidates().items() if origin == name]
            for new in names:
                if _is_file(at(new)):
                    return new
            unseen = [new for new in names if new not in seen]
            if not unseen:
                return None
            name = unseen[0]
            seen.add(name)

    def _by_content(self, left: "Entry", at: "At") -> "bytes | None":
        for name in self._candidates():
            entry = at(name)
            if entry is None or entry.reason or entry.kind != left.kind or not entry.size:
                continue
            if entry.strong == left.strong:
                return name
        return None
