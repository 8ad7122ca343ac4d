"""What has to become of paths that somebody changed since, from plain copies of the tree.

`undo_model` asks this of all that a turn or a restore changed. What is neither as it was left nor
as it was before has an outcome of the table in `docs/undo.md`: it stays, it is both changes
together, or nothing happens at all. Texts are merged by their parts (see `tree_edits`), not line
by line. How similar two texts are is libgit2's measure, and asked of it; all else is in here.

What is open: where somebody changed a path since, and files may have been renamed, by what is
taken back or by others, the few contents of these trees leave it open which file is which. There
`Doubt` tells what may come of it: a conflict, or other outcomes of just those paths, made of texts
that were there. All other paths are as predicted, and without renames everything is.
"""

from collections.abc import Callable, Iterable, Mapping

from tree_edits import PARTS, Parts, joined

Entry = tuple[str, int, bytes]
"""A file with its mode and bytes, a folder with its mode, or a link and where it leads."""
Tree = dict[bytes, Entry]
Wanted = dict[bytes, tuple[Entry | None, Tree]]
"""What paths shall become, and a tree that knows the folders which they need."""
Run = tuple[Entry | None, Entry | None]
OPEN = 0o6066
"""What lets others read or write a file, or run it in somebody's name."""
Similar = Callable[[bytes, bytes], int]


class Refused(Exception):
    """The restore must not happen; `why` is which error tells so."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Stays(Exception):
    """A path stays as it is by now."""


def both(left: Entry | None, was: Entry | None, now: Entry | None) -> Entry:
    """What was taken back and what was changed since, in one; or it stays; or a conflict."""
    if now is None or was is None:
        raise Stays  # deleted since; or made, and then changed
    if left is None or not left[0] == was[0] == now[0] or now[0] == "link":
        raise Refused("conflict")
    if now[0] == "folder":
        raise Stays
    mode = was[1] if now[1] == left[1] else now[1]
    if now[2] not in (left[2], was[2]) and mode & ~now[1] & OPEN:
        raise Refused("conflict")  # what was written while it was closed would be open
    return ("file", mode, _both_texts(left[2], was[2], now[2]))


def _both_texts(left: bytes, was: bytes, now: bytes) -> bytes:
    """A text that nobody changed since is what it was; one that was not changed before stays."""
    if left in (was, now):
        return was if now == left else now
    if was == now:
        return now
    if not all(text in PARTS for text in (left, was, now)):
        raise Refused("conflict")
    parts = [
        before if since == after else since
        for after, before, since in zip(PARTS[left], PARTS[was], PARTS[now], strict=True)
    ]
    return joined(Parts(*parts))


class Taken:
    """What is taken back at one path.

    `runs` are (before, after), the newest first. `origins` are the names that it was renamed from.
    `since` is the number of the state in which it was changed first, `was` the tree before.
    """

    def __init__(
        self, path: bytes, runs: list[Run], origins: set[bytes], since: int, was: Tree
    ) -> None:
        self.path = path
        self.runs = runs
        self.origins = origins
        self.since = since
        self.was = was

    @property
    def left(self) -> Entry | None:
        """How it was left."""
        return self.runs[0][1]

    @property
    def before(self) -> Entry | None:
        """How it was before all."""
        return self.runs[-1][0]


class Renamed:
    """Under which names others keep files by now; `made` are what they made, and of what."""

    def __init__(self, now: Tree, made: dict[bytes, bytes | None], similar: Similar) -> None:
        self._now = now
        self._made = made
        self._similar = similar

    def find(self, path: bytes, left: Entry) -> bytes | None:
        """The name that a file has which was left at a path."""
        found = self._by_its_way(path) or self._by_bytes(left)
        return found or most_like(left, dict(self._made_now()), self._similar)

    def _by_its_way(self, path: bytes) -> bytes | None:
        names = [path]
        for name in names:
            after = [new for new, origin in self._made.items() if origin == name]
            there = [new for new in after if _is_file(self._now.get(new))]
            if there:
                return there[0]
            names += [new for new in after if new not in names][:1]
        return None

    def _by_bytes(self, left: Entry) -> bytes | None:
        kind, _, content = left
        same = [p for p, e in self._made_now() if (e[0], e[2]) == (kind, content) and content]
        return same[0] if same else None

    def _made_now(self) -> list[tuple[bytes, Entry]]:
        return [(path, self._now[path]) for path in self._made if path in self._now]


class Reverting:
    """Takes back path by path; `wanted` is what has to come of it."""

    def __init__(self, now: Tree, renamed: Renamed) -> None:
        self._now = now
        self._renamed = renamed
        self.wanted: Wanted = {}

    def path(self, taken: Taken) -> None:
        """Take back what was changed at one path, at the name that it has now."""
        at = self._place(taken)
        if at is not None:
            self._revert(taken, at, taken.runs)

    def _revert(self, taken: Taken, at: bytes, runs: list[Run]) -> None:
        state = self._now.get(at)
        try:
            for number, (before, after) in enumerate(runs):
                if number and state is None and self._is_moved(taken, at, runs[number:]):
                    break
                state = _without(before, after, state)
        except Stays:
            pass
        if state != self._now.get(at):
            self.wanted[at] = state, taken.was

    def _is_moved(self, taken: Taken, at: bytes, runs: list[Run]) -> bool:
        """Take back the rest of it where it is, if the name was given anew; tell whether it was."""
        left = runs[0][1]
        if left is None or left[0] == "folder" or any(before is None for before, _ in runs):
            return False
        found = self._renamed.find(taken.path, left)
        if found is None or found in self.wanted or found == at:
            return False
        self._revert(taken, found, runs)
        return True

    def _place(self, taken: Taken) -> bytes | None:
        left = taken.left
        if left is None or taken.path in self._now or left[0] == "folder":
            return taken.path
        found = self._renamed.find(taken.path, left)
        if found is None or found in self.wanted:
            return taken.path
        # What was made, and was renamed since, stays: whatever was there before it is another.
        return None if any(before is None for before, _ in taken.runs) else found

    def move(self, old: Taken, new: Taken) -> bool:
        """Take back a rename of what was changed since; False if it was not."""
        first, left, now = old.before, new.left, self._now.get(new.path)
        if now == left or old.path in self._now:
            return False
        assert left is not None
        at = old.path
        if now is None:
            found = self._renamed.find(new.path, left)
            if found is None or found in self.wanted:
                return True  # deleted since: it stays deleted
            at, now = found, self._now[found]
        state = first if now == left else both(left, first, now)
        if at == old.path or state != now:
            self.wanted[at] = state, old.was
        if at == old.path:
            self.wanted[new.path] = None, old.was
        return True


def _without(before: Entry | None, after: Entry | None, state: Entry | None) -> Entry | None:
    """What was made of a path, without one change of it."""
    if before in (state, after):
        return state
    # A folder that was made goes, if it is empty, whatever its permissions became.
    is_folder = state and after and state[0] == after[0] == "folder"
    if state == after or (is_folder and before is None):
        return before
    return both(after, before, state)


class Doubt:
    """Where it is open what has to come of a restore; nowhere, if no `paths` are in doubt."""

    def __init__(self, now: Tree, taken: Iterable[Taken] = (), made: Iterable[bytes] = ()) -> None:
        self._now = now
        each_path = list(taken)
        contested = {e.path for e in each_path if len(e.runs) > 1 or now.get(e.path) != e.left}
        went = {e.path for e in each_path if _is_file(e.before) and e.left is None}
        came = {e.path for e in each_path if _is_file(e.left) and e.before is None}
        found = {path for path in made if _is_file(now.get(path))}
        is_open = bool(contested and (found or (went and came)))
        self.paths = contested | went | came | found if is_open else set()
        self._before = {each.path: each.before for each in each_path}
        sides = [side for each in each_path for run in each.runs for side in run]
        self._left = {run[1][2] for each in each_path for run in each.runs if run[1]}
        self._texts = {e[2] for e in (*now.values(), *sides) if e and e[0] != "folder"} | {*PARTS}
        self._found = found - {each.path for each in each_path}

    def require(self, predicted: Tree | None, found: Tree) -> None:
        """What came of it differs from what was predicted only where that is in doubt.

        If a conflict was predicted, what is not in doubt is as it was before, or as it is now.
        """
        expected = self._now if predicted is None else predicted
        for path in expected.keys() | found.keys():
            entry = found.get(path)
            if entry == expected.get(path):
                continue
            if predicted is None and path in self._before and entry == self._before[path]:
                continue
            near = self.paths if predicted is not None else self.paths | self._before.keys()
            is_above = any(each.startswith(path + b"/") for each in near)
            assert path in self.paths or is_above, path
            assert entry is None or entry[0] == "folder" or entry[2] in self._texts, path
        texts = {entry[2] for entry in found.values()}
        for path in self._found:
            text = self._now[path][2]
            assert text in texts or text in self._left or text in PARTS, f"{path!r} is gone"


def moves(
    taken: Iterable[Taken], groups: Iterable[set[bytes]], now: Tree, similar: Similar
) -> list[tuple[Taken, Taken]]:
    """Of each rename, what went and what came, if that is all that happened.

    What was changed since, or whose old name was given anew, may also have been edited when it was
    renamed, so that only likeness tells where it came from.
    """
    plain = [each for each in taken if len(each.runs) == 1]
    went = [each for each in plain if each.left is None and _is_file(each.before)]
    came = [each for each in plain if each.before is None and _is_file(each.left)]
    found = []
    for names in sorted(groups, key=sorted):
        ends = [[e for e in side if e.path in names] for side in (went, came)]
        if [len(side) for side in ends] == [1, 1]:
            found.append((ends[0][0], ends[1][0]))
    known: set[bytes] = set().union(*groups)
    for new in (each for each in came if each.path not in known):
        left = {each.path: each for each in went if each.path not in known}
        is_changed = now.get(new.path) != new.left
        before = {path: e.before for path, e in left.items() if is_changed or path in now}
        path = most_like(new.left, before, similar)
        if path is not None:
            known.add(path)
            found.append((left[path], new))
    return found


def most_like(
    one: Entry | None, among: Mapping[bytes, Entry | None], similar: Similar
) -> bytes | None:
    """Which of some files is like another, and the most: the last of them, if they are equal."""
    if one is None or one[0] != "file" or not one[2]:
        return None
    files = [(path, e[2]) for path, e in among.items() if e is not None and e[0] == "file"]
    best, path = max(((similar(one[2], text), path) for path, text in files), default=(0, b""))
    return path if best >= 60 else None


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and entry[0] in ("file", "link")
