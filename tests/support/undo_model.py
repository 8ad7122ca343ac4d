"""A plain model of taking back: whole copies of the tree, lists, and nothing of the product.

It keeps what the tree held at each look, who changed which path between two looks, and a stack of
turns and rollbacks. From these it tells what an undo, a redo or a rollback has to do, or why it
has to be refused. It is slow and simple on purpose. What others changed since is the matter of
`undo_merges`.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from takeback.disk.libgit2 import Signature
from undo_merges import Doubt, Entry, Refused, Renamed, Reverting, Run, Taken, Tree, Wanted, moves

__all__ = (
    "REDO",
    "ROLLBACK",
    "TURN",
    "UNDO",
    "Act",
    "Model",
    "Outlook",
    "Refused",
    "Tree",
    "copy_of",
    "differing",
)

TURN, ROLLBACK, UNDO, REDO = "turn", "rollback", "undo", "redo"


def similarity(one: bytes, other: bytes) -> int:
    """How much two texts have in common, in percent, as libgit2 measures it for renames."""
    return 100 if one == other else Signature(one).similarity(Signature(other))


def copy_of(root: bytes) -> Tree:
    """Everything below a folder, with all bytes."""
    return dict(_below(root, b""))


def _below(folder: bytes, above: bytes) -> Iterator[tuple[bytes, Entry]]:
    for found in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path, status = above + found.name, found.stat(follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode)
        if found.is_symlink():
            yield path, ("link", 0, os.readlink(found.path))
        elif found.is_dir():
            yield path, ("folder", mode, b"")
            yield from _below(found.path, path + b"/")
        else:
            with open(found.path, "rb") as file:
                yield path, ("file", mode, file.read())


def differing(one: Tree, other: Tree) -> set[bytes]:
    """The paths at which two trees are not the same."""
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def is_in(path: bytes, scope: Iterable[bytes]) -> bool:
    """Whether a path is chosen: by its own name or by that of a folder above it."""
    return any(path == chosen or path.startswith(chosen + b"/") for chosen in scope)


class Act:
    """A turn, or a restore: what changes are by, and what the stack holds."""

    def __init__(self, kind: str, order: int, began: int, name: str = "") -> None:
        self.kind = kind
        self.order = order
        self.began = began
        """The number of the state in which it began."""
        self.name = name
        self.session = ""
        """Whose turn it is; of an undo or redo, whose turn it is about."""
        self.of: Act | None = None
        """What an undo took back; the undo that a redo put back."""
        self.to = 0
        """The state that a rollback went back to."""
        self.after = 0
        """The state that a restore left."""
        self.is_partial = False
        self.line: Line = {}
        """What was live before an undo."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.order} {self.name}>"


Line = dict[Act, bool]
"""Which entries are live."""
Outlook = Callable[[], Tree]
"""What the tree has to become, or `Refused`."""


class Change:
    """What one look found at one path, and by whom: None is you, or nobody alone."""

    def __init__(self, path: bytes, was: Tree, became: Tree, by: Act | None, state: int) -> None:
        self.path = path
        self.origin = _origin(path, was, became)
        self.state = state
        """The number of the state that it led to."""
        self.was = was
        self.before = was.get(path)
        self.after = became.get(path)
        self.by = by
        self.sharers: tuple[Act, ...] = ()
        """The turns that ran, if there were several: nobody knows whose it is."""
        made_of = "" if self.before is None else self.before[0]
        kind = "" if self.after is None else self.after[0]
        self.makes_a_file = kind == "link" or (kind == "file" and not made_of)
        """Whether there is a file, where there was none, or another link."""


def _origin(path: bytes, was: Tree, became: Tree) -> bytes | None:
    """Where a new file came from: just one went with these bytes, and just one came."""
    content = became.get(path, ("", 0, b""))[2]
    if path in was or became.get(path, ("",))[0] != "file" or not content:
        return None
    gone, came = _without(was, became, content), _without(became, was, content)
    return gone[0] if len(gone) == len(came) == 1 else None


def _without(one: Tree, other: Tree, content: bytes) -> list[bytes]:
    """The files with this content that only the one tree has."""
    return [p for p, e in one.items() if p not in other and (e[0], e[2]) == ("file", content)]


class Model:
    """The history of one tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.states = [tree]
        self.changes: list[Change] = []
        self.running: list[Act] = []
        self.turns: list[Act] = []
        self.restores: list[Act] = []
        self.lines: list[Line] = []
        """Which entries were live at the end of each state that is over."""
        self.says = Says(self)
        self.doubt = Doubt(tree)
        """Where the newest prediction is in doubt."""
        self._order = 0

    # -- what happens ----------------------------------------------------------------------

    def look(self, tree: Tree) -> None:
        """Somebody looked: what changed since is by the only turn that runs, or yours."""
        by = self.running[0] if len(self.running) == 1 else None
        known = len(self.changes)
        self._note(tree, by)
        for change in self.changes[known:] if len(self.running) > 1 else ():
            change.sharers = tuple(self.running)

    def begin(self, name: str, session: str) -> Act:
        """A turn begins, right after a look."""
        turn = self._act(TURN, name)
        turn.session = session
        self.turns.append(turn)
        self.running.append(turn)
        return turn

    def go_on(self, turn: Act) -> None:
        """A turn that had ended goes on, right after a look."""
        self.running.append(turn)

    def end(self, turn: Act) -> None:
        """A turn ends, right after a look."""
        self.running.remove(turn)

    def done(self, act: Act, tree: Tree) -> None:
        """A restore happened; one that changes nothing counts only if it takes back an entry."""
        if tree == self.tree and (act.kind == ROLLBACK or act.is_partial):
            return
        act.line = self.line()
        is_undone_last = bool(self.restores) and act.of is self.restores[-1]
        self._note(tree, act)
        self.restores.append(act)
        act.after = len(self.states) - 1
        self._check_line(act, is_undone_last=is_undone_last)

    def _check_line(self, act: Act, *, is_undone_last: bool) -> None:
        """A rollback brings the line back as well; so do an undo and a redo together."""
        if act.is_partial:
            return
        if act.kind == ROLLBACK:
            self._require_same(
                {e: was for e, was in self.lines[act.to].items() if e.began < act.to}
            )
        elif act.kind == REDO and is_undone_last and act.of and act.of.after == act.began:
            self._require_same(act.of.line)

    def _require_same(self, line: Line) -> None:
        now = self.line()
        assert {entry: now[entry] for entry in line} == line

    def line(self) -> Line:
        """Which entries are live, whether they changed anything or not."""
        return {entry: self.says.is_live(entry) for entry in self.entries()}

    def _note(self, tree: Tree, by: Act | None) -> None:
        paths = differing(self.tree, tree)
        if paths:
            self.lines.append(self.line())
            self.tree = tree
            self.states.append(tree)
        for path in sorted(paths):
            was = self.states[-2]
            self.changes.append(Change(path, was, tree, by, len(self.states) - 1))

    def _act(self, kind: str, name: str = "") -> Act:
        self._order += 1
        return Act(kind, self._order, len(self.states) - 1, name)

    def entries(self) -> list[Act]:
        """What can be on the stack: turns and rollbacks."""
        return [*self.turns, *(act for act in self.restores if act.kind == ROLLBACK)]

    # -- what is meant ---------------------------------------------------------------------

    def newest_live(self, session: str = "") -> Act:
        """What a bare undo takes back, of the project or of one session."""
        live = self._live(session)
        newest = max(live, key=lambda entry: entry.order) if live else None
        for turn in self.turns:
            is_newer = newest is None or turn.order > newest.order
            if is_newer and session in ("", turn.session) and self._is_only_shared(turn):
                raise Refused("decision")
        if newest is None:
            raise Refused("nothing")
        return newest

    def _is_only_shared(self, turn: Act) -> bool:
        """Whether a live turn did nothing of its own, and something that others may have done."""
        if not self.says.is_live(turn) or self.has_changed(turn):
            return False
        shared = {change.state for change in self.changes if turn in change.sharers}
        back = [a for a in self.restores if a.kind == ROLLBACK and not a.is_partial]
        over = [(act.to, act.began) for act in back if self.says.is_live(act)]
        return any(not any(to < state <= began for to, began in over) for state in shared)

    def _live(self, session: str) -> list[Act]:
        live = [entry for entry in self.entries() if self.says.is_live(entry)]
        live = [entry for entry in live if self.has_changed(entry)]
        return [entry for entry in live if session in ("", entry.session)]

    def can_redo(self, session: str = "") -> bool:
        """Whether there is an undo that was not put back."""
        return bool(self._undos(session))

    def newest_undone(self, session: str = "") -> Act:
        """The undo that a bare redo puts back, of the project or of one session."""
        if not self.can_redo(session):
            raise Refused("nothing")
        newest = max(self._undos(session), key=lambda act: act.order)
        if any(entry.order > newest.order for entry in self._live(session)):
            raise Refused("decision")
        assert newest.of is not None
        self._require_uncovered(newest.of)
        return newest

    def _undos(self, session: str) -> list[Act]:
        undos = [act for act in self.restores if act.kind == UNDO and self.says.is_live(act)]
        return [act for act in undos if session in ("", act.session)]

    def undo_of(self, entry: Act) -> Act:
        """The undo that took back a certain entry."""
        self._require_uncovered(entry)
        undos = [act for act in self._undos("") if act.of is entry]
        if not undos:
            raise Refused("nothing")
        return max(undos, key=lambda act: act.order)

    def _require_uncovered(self, entry: Act) -> None:
        if ROLLBACK in self.says.against(entry):
            raise Refused("nothing")

    def undoable(self, entry: Act) -> Act:
        """A turn or a rollback, if it is on the current line."""
        if not self.says.is_live(entry):
            raise Refused("nothing")
        if entry.kind == TURN and not self._taken(entry) and self._is_only_shared(entry):
            raise Refused("decision")
        return entry

    def has_changed(self, entry: Act) -> bool:
        """Whether anything is by it: of a turn that is over, more than came to nothing."""
        if entry.kind == ROLLBACK:
            return True
        if entry in self.running:
            return any(change.by is entry for change in self.changes)
        paths = {change.path for change in self.changes if change.by is entry}
        runs = [run for path in paths for run in self._runs(path, lambda c: c.by is entry)]
        return any(before != after for before, after in runs)

    # -- what has to come of it ------------------------------------------------------------

    def undo(self, entry: Act, scope: list[bytes]) -> tuple[Act, Outlook]:
        """Take back a turn or a rollback."""
        act = self._act(UNDO)
        act.of, act.is_partial, act.session = entry, bool(scope), entry.session
        return act, lambda: self._reverted(entry, entry, scope)

    def redo(self, undo: Act, scope: list[bytes]) -> tuple[Act, Outlook]:
        """Put back what an undo took."""
        act = self._act(REDO)
        act.of, act.is_partial = undo, bool(scope)
        return act, lambda: self._reverted(undo, undo.of, scope)

    def rollback(self, state: int, scope: list[bytes]) -> tuple[Act, Outlook]:
        """Go back to a state."""
        act = self._act(ROLLBACK)
        act.to, act.is_partial = state, bool(scope)
        return act, lambda: self._rolled_back(self.states[state], scope)

    def _rolled_back(self, then: Tree, scope: list[bytes]) -> Tree:
        self.doubt = Doubt(self.tree)
        if not scope:
            return then
        _require_known(scope, self.tree.keys() | then.keys())
        paths = [path for path in differing(self.tree, then) if is_in(path, scope)]
        return settled(self.tree, {path: (then.get(path), then) for path in paths})

    def _reverted(self, by: Act, entry: Act | None, scope: list[bytes]) -> Tree:
        """The tree without what somebody changed, be it the entry itself or an undo of it."""
        taken = self._taken(by)
        _require_known(scope, {change.path for change in self.changes if change.by is by})
        groups = _renames(taken.values())
        chosen = {path for path in taken if is_in(path, scope)} if scope else set(taken)
        chosen |= {path for group in groups if group & chosen for path in group}
        made = self._made_since(taken.values(), entry)
        self.doubt = Doubt(self.tree, taken.values(), {*made, *self._made_instead(taken)})
        reverting = Reverting(self.tree, Renamed(self.tree, made, similarity))
        done: set[bytes] = set()
        for old, new in moves(taken.values(), groups, self.tree, similarity):
            if old.path in chosen and reverting.move(old, new):
                done |= {old.path, new.path}
        for path in sorted(chosen - done):
            try:
                reverting.path(taken[path])
            except Refused:
                if scope and not is_in(path, scope) and taken[path].before is None:
                    continue  # it would have gone, and nobody named it: it stays
                raise
        return settled(self.tree, reverting.wanted)

    def _taken(self, by: Act) -> dict[bytes, Taken]:
        """What stands of a turn, or what a restore did."""

        def stands(change: Change) -> bool:
            return change.by is by and not self._is_undone(change)

        found: dict[bytes, list[Change]] = {}
        for change in filter(stands, self.changes):
            found.setdefault(change.path, []).append(change)
        return {
            path: Taken(
                path,
                self._runs(path, stands),
                {change.origin for change in changes if change.origin is not None},
                changes[0].state,
                changes[0].was,
            )
            for path, changes in sorted(found.items())
        }

    def _is_undone(self, change: Change) -> bool:
        """Whether an undo took back a change of a turn; what others write there is no conflict."""
        if change.by is None or change.by.kind != TURN:
            return False
        later = [c for c in self.changes if c.path == change.path and c.state > change.state]
        acts = [c.by for c in later if c.by is not None and self.says.is_live(c.by)]
        back = {act.of for act in acts if act.kind == REDO}
        return any(act.kind == UNDO and act.of is change.by and act not in back for act in acts)

    def _made_since(self, taken: Iterable[Taken], entry: Act | None) -> dict[bytes, bytes | None]:
        """What others made since the first of these paths was changed."""
        since = min((each.since for each in taken), default=0)
        made: dict[bytes, bytes | None] = {}
        for change in self.changes:
            is_by_others = change.by is None or change.by is not entry
            if change.by is not None and change.by.kind != TURN:
                is_by_others = change.origin is not None
            if change.state > since and is_by_others and change.makes_a_file:
                made[change.path] = change.origin
        return made

    def _made_instead(self, taken: Iterable[bytes]) -> set[bytes]:
        """What restores made when they removed one of these paths: it may be its old name."""
        restored = [c for c in self.changes if c.by is not None and c.by.kind != TURN]
        paths = set(taken)
        states = {c.state for c in restored if c.path in paths and c.after is None}
        return {c.path for c in restored if c.state in states and c.makes_a_file}

    def _runs(self, path: bytes, is_taken: Callable[[Change], bool]) -> list[Run]:
        """Changes of a path that follow each other as one, the newest first."""
        chain = [change for change in self.changes if change.path == path]
        found: list[Run] = []
        for taken, run in groupby(reversed(chain), is_taken):
            newest_first = list(run)
            before, after = newest_first[-1].before, newest_first[0].after
            if taken:
                found.append((before, after))
        return found


class Says:
    """What restores say about turns and about each other.

    Nothing is remembered: it is asked anew each time, from all that happened.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[tuple[int, int, Act], set[str]] = {}

    def is_live(self, act: Act) -> bool:
        """Whether an entry is on the current line; whether a restore still has a say."""
        return not self.against(act)

    def against(self, act: Act) -> set[str]:
        """By which kinds of restores that have a say something is out."""
        key = len(self._model.restores), len(self._model.states), act
        if key not in self._known:
            later = [by for by in self._model.restores if by.order > act.order]
            found = [by for by in later if self._is_against(by, act) and self.is_live(by)]
            self._known[key] = {by.kind for by in found if not self._went_on(act, by)}
        return self._known[key]

    def _is_against(self, by: Act, about: Act) -> bool:
        if by.is_partial:
            return False
        if by.kind == ROLLBACK:
            return (about.began if about.kind == TURN else about.after - 1) >= by.to
        return by.of is about and not self._is_put_back_in_part(by)

    def _is_put_back_in_part(self, undo: Act) -> bool:
        redos = [act for act in self._model.restores if act.of is undo and act.is_partial]
        return any(self.is_live(redo) for redo in redos)

    def _went_on(self, turn: Act, restore: Act) -> bool:
        """Whether a turn did something after a restore that no rollback went back over."""
        states = {c.state for c in self._model.changes if c.by is turn and turn.kind == TURN}
        return any(
            not any(r.to < state <= r.began for r in self._rollbacks_after(restore))
            for state in states
            if state > restore.after
        )

    def _rollbacks_after(self, restore: Act) -> list[Act]:
        later = [act for act in self._model.restores if act.order > restore.order]
        whole = [act for act in later if act.kind == ROLLBACK and not act.is_partial]
        return [act for act in whole if self.is_live(act)]


def _renames(taken: Iterable[Taken]) -> list[set[bytes]]:
    """The names that belong together, for a file went from one to another."""
    each_path = list(taken)
    paths = {each.path for each in each_path}
    groups: list[set[bytes]] = []
    for each in each_path:
        for origin in each.origins & paths:
            pair = {each.path, origin}
            together = [group for group in groups if group & pair]
            groups = [group for group in groups if not group & pair]
            groups.append(pair.union(*together))
    return groups


def _require_known(scope: list[bytes], paths: Iterable[bytes]) -> None:
    known = set(paths)
    if any(not any(is_in(path, [chosen]) for path in known) for chosen in scope):
        raise Refused("unknown")


def settled(now: Tree, wanted: Wanted) -> Tree:
    """A tree with some paths as wanted, and with the folders that these need."""
    result = dict(now)
    for path in sorted(wanted, key=lambda path: path.count(b"/"), reverse=True):
        entry = wanted[path][0]
        if entry is not None:
            result[path] = entry
        elif now[path][0] != "folder" or not _is_used(result, path):
            # A folder in which something stays cannot go.
            del result[path]
    for path in sorted(wanted):
        if wanted[path][0] is not None:
            _make_folders(result, path, *wanted[path])
    if any(result[above][0] != "folder" for path in result for above in _above(path)):
        raise Refused("conflict")
    return result


def _make_folders(result: Tree, path: bytes, _entry: Entry | None, then: Tree) -> None:
    for above in _above(path):
        if above not in result:
            if then.get(above, ("", 0, b""))[0] != "folder":
                raise Refused("conflict")
            result[above] = then[above]


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


def _is_used(tree: Tree, folder: bytes) -> bool:
    return any(path.startswith(folder + b"/") for path in tree)
