"""Files that were renamed: by what is taken back, or by somebody since.

A rename is two changes, one at each name, and they belong together: without its other side a
file would be in two places, or in none. What somebody renamed since is found when it is needed:
by what the log says, by the same content, or by content that is similar enough.
"""

from takeback.model.tree import LINK, REGULAR, is_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol

    from takeback.disk.libgit2 import Signature
    from takeback.ledger.ledger import Ledger
    from takeback.model.tree import Entry
    from takeback.undo.plans.reverts import Fold, Taken
    from takeback.undo.plans.wishes import View

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
_LIMIT = 400
"""As git's rename limit: files are compared if there are at most so many times so many pairs."""
_MOST_READ = 10 * _LIMIT


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
        return all(len(each.newest) == 1 for each in self.names[1:])

    @property
    def is_made(self) -> bool:
        """Whether the file was not there before."""
        return self.old.newest[-1][0] is None

    @property
    def runs(self) -> "Fold":
        """What was done to the file under all its names, the newest first."""
        newest, first = self.new.newest, self.old.newest
        found, left = list(newest[:-1]), newest[-1][1]
        for runs in (each.newest for each in reversed(self.names[1:-1])):
            if len(runs) > 1:
                found += [(runs[0][0], left), *runs[1:-1]]
                left = runs[-1][1]
        return [*found, (first[0][0], left), *first[1:]]


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
    taken: "Iterable[Taken]",
    renames: "Renames",
    now: "View",
    was: "Was",
    read: "Read",
    *,
    in_part: bool,
) -> "list[Move]":
    """The renames of which both ends are plain: one name went in the end, one came first of all.

    If a file was renamed and edited at once, nobody noted it. It is looked for only if what came
    was changed since, or meanwhile, if the old name was given anew, or if only a part is taken
    back, perhaps one of the names: otherwise both are right without that. What was not there yet
    when the new name came cannot be its old one.
    """
    known = {each.path: each for each in taken}
    old = {p: e for p, e in known.items() if _is_file(e.runs[0][0]) and not e.runs[0][1]}
    new = {p: [e] for p, e in known.items() if _is_made(e) and p not in renames}
    noted = [_chain([known[n] for n in names]) for names in _distinct(renames)]
    found = [Move(*chain) for chain in noted if chain and not _is_made(chain[0])]
    new |= {chain[0].path: chain for chain in noted if chain and _is_made(chain[0])}
    went = {name: old[name].runs[0][0] for name in sorted(old.keys() - renames.keys())}
    returned = [name for name in went if now.at(name) is not None]
    changed = {p for p, chain in new.items() if in_part or not _is_as_left(chain, now)}
    search = Search(
        read, went, len(changed) * len(went) + (len(new) - len(changed)) * len(returned)
    )
    for path, chain in sorted(new.items()):
        first, made = chain[0], chain[0].newest[-1][1]
        left = {
            name: went[name]
            for name in search.candidates(made, went if path in changed else returned)
            if name in old and (first.is_forward or was(first.before, name) is not None)
        }
        name = search.most_like(made, left)
        names = [old.pop(name), *chain] if name is not None else chain
        if len(names) > 1:
            found.append(Move(*names))
    return found


def _is_made(taken: "Taken") -> bool:
    """Whether a file was not there before."""
    before, after = taken.newest[-1]
    return before is None and _is_file(after)


def _is_as_left(chain: "list[Taken]", now: "View") -> bool:
    """Whether nobody else changed a file under any of its names."""
    last = chain[-1]
    return all(len(each.newest) == 1 for each in chain) and is_same(
        now.at(last.path), last.runs[0][1]
    )


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
    came = all(each.newest[-1][0] is None for each in (*middle, last))
    is_whole = len(chain) == len(group)
    is_gone = last.runs[0][1] is None  # it was deleted in the end
    is_file = _is_file(first.runs[0][0]) and (is_gone or _is_file(last.newest[-1][1]))
    return chain if went and came and is_whole and is_file else []


class Search:
    """Finds the file that is most like another, among those that `known` names.

    The same content is found by its hash, however many files there are. Others are compared one by
    one, so only as long as there are not too many `pairs` of files.
    """

    def __init__(self, read: "Read", known: "Mapping[bytes, Entry | None]", pairs: int) -> None:
        self._read = read
        self._signatures: dict[bytes, Signature] = {}
        self._by_hash: dict[bytes, list[bytes]] = {}
        self.is_limited = pairs > _LIMIT * _LIMIT or len(known) > _MOST_READ
        if self.is_limited:
            for name, entry in known.items():
                if _is_file(entry) and entry is not None:
                    self._by_hash.setdefault(entry.strong, []).append(name)

    def candidates(self, wanted: "Entry | None", names: "Collection[bytes]") -> "Collection[bytes]":
        """The names among which it is worth looking."""
        if not self.is_limited or not names:
            return names
        return self._by_hash.get(wanted.strong, ()) if wanted is not None else ()

    def most_like(
        self, wanted: "Entry | None", among: "Mapping[bytes, Entry | None]"
    ) -> "bytes | None":
        """The name of the file that is most like another, if one is like it enough."""
        if wanted is None or wanted.kind != REGULAR or not wanted.size:
            return None
        likeness = [
            (self._similarity(wanted, entry), name)
            for name, entry in among.items()
            if entry is not None and entry.kind == REGULAR and not entry.reason
            if wanted.size // 3 <= entry.size <= wanted.size * 3
        ]
        best, name = max(likeness, default=(0, b""))
        return name if best >= SIMILAR else None

    def _similarity(self, one: "Entry", other: "Entry") -> int:
        if one.strong == other.strong:
            return 100
        if self.is_limited or one.size > _LARGEST:
            return 0
        return self._signature(one).similarity(self._signature(other))

    def _signature(self, entry: "Entry") -> "Signature":
        known = self._signatures.get(entry.strong)
        if known is None:
            from takeback.disk.libgit2 import Signature

            known = self._signatures[entry.strong] = Signature(self._read(entry))
        return known


def _is_file(entry: "Entry | None") -> bool:
    return entry is not None and not entry.reason and entry.kind in (REGULAR, LINK)


class Unmoved:
    """Nobody looks for another name."""

    def find(self, path: bytes, left: "Entry | None", at: "At") -> "bytes | None":
        """Nowhere."""
        del path, left, at
        return None


class RenamedSince:
    """Finds under which name somebody keeps a file that was renamed after it was left."""

    def __init__(
        self,
        ledger: "Ledger",
        read: "Read",
        first: int,
        turns: "tuple[int, ...]",
        now: "At",
        lost: int,
    ) -> None:
        self._ledger = ledger
        self._read = read
        self._first = first
        self._turns = turns
        self._now = now
        self._lost = lost
        """How many files may be looked for."""
        self._made: dict[bytes, bytes | None] | None = None
        self._made_from: dict[bytes, list[bytes]] = {}
        self._search: Search | None = None
        self._old_names: dict[bytes, list[bytes]] | None = None

    def find(self, path: bytes, left: "Entry | None", at: "At") -> "bytes | None":
        """Where a file is that was left at a path, `at` tells what is where; None if nowhere."""
        if left is None or left.reason or left.kind not in (REGULAR, LINK):
            return None
        made = self._candidates()
        found = self._by_log(path, at)
        if found is not None:
            return found
        search = self._searching(made)
        same = self._by_content(left, search.candidates(left, made), at)
        same = same or self._by_content(left, self._old_names_of(path), at)
        if same is not None or search.is_limited:
            return same
        instead = {
            name: at(name) for old in self._names_of(path) for name in self._made_instead(old)
        }
        return search.most_like(left, instead) or search.most_like(
            left, {name: at(name) for name in made}
        )

    def _candidates(self) -> "dict[bytes, bytes | None]":
        """What others made since, and from what, as far as the log tells."""
        if self._made is None:
            self._made = self._ledger.deltas.made_since(self._first, self._turns)
            for name, origin in self._made.items():
                if origin is not None:
                    self._made_from.setdefault(origin, []).append(name)
        return self._made

    def _searching(self, made: "dict[bytes, bytes | None]") -> Search:
        if self._search is None:
            instead = len(self._ledger.deltas.brought_back_since(self._first))
            pairs = (len(made) + instead) * self._lost
            self._search = Search(self._read, {name: self._now(name) for name in made}, pairs)
        return self._search

    def _old_names_of(self, path: bytes) -> "list[bytes]":
        """Earlier names of a file that restores brought back when it had been deleted."""
        if self._old_names is None:
            back = self._ledger.deltas.brought_back_since(self._first)
            self._old_names = {}
            for name, origin in self._ledger.deltas.renames() if back else ():
                if origin in back:
                    self._old_names.setdefault(name, []).append(origin)
        return self._old_names.get(path, [])

    def _names_of(self, path: bytes) -> "list[bytes]":
        """The names that a file had since, as far as the log tells."""
        names = [path]
        for name in names:
            names += [new for new in self._made_from.get(name, ()) if new not in names]
        return names

    def _made_instead(self, path: bytes) -> "list[bytes]":
        """What restores made when they removed a path: an old name with another content."""
        return self._ledger.deltas.made_instead(path, self._first)

    def _by_log(self, path: bytes, at: "At") -> "bytes | None":
        seen, name = {path}, path
        while True:
            names = self._made_from.get(name, [])
            for new in names:
                if _is_file(at(new)):
                    return new
            unseen = [new for new in names if new not in seen]
            if not unseen:
                return None
            name = unseen[0]
            seen.add(name)

    def _by_content(self, left: "Entry", names: "Collection[bytes]", at: "At") -> "bytes | None":
        for name in names:
            entry = at(name)
            if entry is None or entry.reason or entry.kind != left.kind or not entry.size:
                continue
            if entry.strong == left.strong:
                return name
        return None
