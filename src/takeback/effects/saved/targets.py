"""What a call would destroy that no checkpoint holds, path by path.

In the project that is what the newest checkpoint left out, and `.git`; outside it is everything.
Globs are expanded as a shell does. Nothing is followed through a link.
"""

import os
import time
from itertools import islice

from takeback.model import ids, reasons, words
from takeback.model.beyond import effects, losses
from takeback.model.beyond.rescued import Missed, Rebuildable
from takeback.model.reasons import Reason
from takeback.model.value import Value
from takeback.worktree.scan import VERSION_CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.capture.workspace import Workspace
    from takeback.model.beyond.effects import Judgement, Target

_MOST_NAMED = 10_000
_PATIENCE = 2.0
"""Seconds in which all names have to be found."""
_DEEP = b"/**/"
_NO_CONTENT = (words.SPECIAL, words.STORE)


class Wanted(Value):
    """A path to be saved, with all that is below it if `is_deep`; but what is at `spared`."""

    path: bytes
    loss: str
    is_deep: bool
    spared: "tuple[bytes, ...]" = ()


class Finder:
    """Finds what is to be saved, but what is `kept` already.

    `missed` and `rebuildable` say what is not.
    """

    def __init__(self, work: "Workspace", kept: "frozenset[bytes]" = frozenset()) -> None:
        self._work = work
        self._kept = kept
        self._deadline = time.monotonic() + _PATIENCE
        self._root = os.path.realpath(work.root)
        self._home = os.path.realpath(work.home.path)
        self._left_out: list[tuple[bytes, int]] | None = None
        self._spares_git = False
        """Whether git itself changes the tree: it does not delete its own `.git`."""
        self.missed: list[Missed] = []
        self.rebuildable: list[Rebuildable] = []
        self.doomed: list[bytes] = []
        """What goes as a whole: no rescue may lie in there."""

    def find(self, judgement: "Judgement") -> "list[Wanted]":
        """What is to be saved, each path once."""
        found: dict[bytes, Wanted] = {}
        self._spares_git = bool(judgement.git) and effects.WHOLE_GIT not in judgement.git
        for target in judgement.targets:
            if target.loss == effects.MODE:
                continue
            for path in self._named(target):
                for wanted in self._of(path, target):
                    known = found.get(wanted.path)
                    if known is None or _is_graver(wanted, known):
                        found[wanted.path] = wanted
        return _outermost(found)

    def _named(self, target: "Target") -> "Iterator[bytes]":
        """The paths that a target means, without links on the way, as far as they are there."""
        if not target.is_known:
            self.missed.append(Missed(b"", Reason(reasons.UNKNOWN_TARGET, text=target.text)))
            return
        paths: Iterable[bytes] = [target.path]
        if target.is_glob:
            found = _expanded(target.path, self._deadline, is_deep=target.is_recursive)
            paths = islice(found, _MOST_NAMED + 1)
        for count, path in enumerate(paths):
            if count == _MOST_NAMED or time.monotonic() > self._deadline:
                why = Reason(reasons.TOO_MANY_TO_SAVE, count=count)
                self.missed.append(Missed(target.path, why))
                return
            whole = _whole(path)
            if whole and whole not in self._kept and os.path.lexists(whole):
                yield whole

    def _of(self, path: bytes, target: "Target") -> "Iterator[Wanted]":
        is_deep = target.is_recursive and os.path.isdir(path) and not os.path.islink(path)
        if is_deep and target.loss == effects.DELETE:
            self.doomed.append(path)
        if _is_at_or_below(self._home, path) and is_deep:
            self.missed.append(Missed(path, Reason(reasons.HOLDS_STORE)))
        if _is_at_or_below(path, self._root):
            yield from self._inside(path[len(self._root) + 1 :], target.loss, is_deep)
            return
        spared: tuple[bytes, ...] = (self._home,)
        if is_deep and _is_at_or_below(self._root, path):
            yield from self._inside(b"", target.loss, True)
            spared = (self._home, self._root)
        if not _is_at_or_below(path, self._home):
            yield Wanted(path, target.loss, is_deep, spared)

    def _inside(self, path: bytes, loss: str, is_deep: bool) -> "Iterator[Wanted]":
        """What of a path in the project the newest checkpoint does not hold."""
        if any(name in VERSION_CONTROL for name in path.split(b"/")):
            yield Wanted(self._whole(path), loss, is_deep)
            return
        if self._spares_git and needs_copy(loss):
            return  # git writes over what it tracks, and that is always captured
        for known, flags in self._uncovered():
            reason = flags & 0xFF
            if not reason or reason in _NO_CONTENT:
                continue
            is_git = known in VERSION_CONTROL
            if is_git and not path and (self._spares_git or needs_copy(loss)):
                continue
            if _is_at_or_below(path, known):
                # Something in a folder that was left out.
                if not self._is_rebuildable(known, reason, at=path):
                    yield Wanted(self._whole(path), loss, is_deep)
            elif (
                is_deep and _is_at_or_below(known, path) and not self._is_rebuildable(known, reason)
            ):
                yield Wanted(self._whole(known), loss, True)

    def _is_rebuildable(self, known: bytes, reason: int, at: bytes = b"") -> bool:
        """Whether a folder that was left out can be made again; that is reported then."""
        if reason != words.REBUILDABLE:
            return False
        found = rebuildable(self._whole(known))
        if found is None:
            return False
        self.rebuildable.append(found if not at else found.replace(raw_path=self._whole(at)))
        return True

    def _uncovered(self) -> "list[tuple[bytes, int]]":
        if self._left_out is None:
            row = self._work.ledger.checkpoints.newest()
            self._left_out = self._work.left_out(row) if row is not None else []
        return self._left_out

    def _whole(self, path: bytes) -> bytes:
        return os.path.join(self._root, path) if path else self._root


def rebuildable(path: bytes) -> "Rebuildable | None":
    """The command that makes a folder again, if the files beside it tell one."""
    folder, name = os.path.split(path)
    try:
        beside = [os.fsencode(each) for each in os.listdir(folder)]
    except OSError:
        return None
    source = losses.find_source(name, [(folder, beside)])
    return Rebuildable(path, losses.recipe(name, source), folder) if source else None


def _expanded(pattern: bytes, deadline: float, *, is_deep: bool) -> "Iterator[bytes]":
    """The paths that a pattern names; in it `**` stands for any number of folders.

    What is below a path that is named is not, if that is meant anyway (`is_deep`). When the time
    is over, it ends with a folder that was not looked into.
    """
    from fnmatch import fnmatchcase
    from glob import escape, iglob

    pattern = pattern.replace(b"[^", b"[!")
    above, deep, below = pattern.partition(_DEEP)
    if not deep:
        yield from iglob(pattern)
        return
    waiting = list(iglob(above or b"/"))
    while waiting:
        folder = waiting.pop()
        if time.monotonic() > deadline:
            yield folder
            return
        try:
            with os.scandir(folder) as found:
                entries = [(os.fsencode(each.name), _is_folder(each)) for each in found]
        except OSError:
            continue
        if b"/" in below:
            inner = os.path.join(escape(folder), below)
            yield from _expanded(inner, deadline, is_deep=is_deep)
        for name, is_folder in entries:
            path = os.path.join(folder, name)
            is_named = b"/" not in below and fnmatchcase(name, below)
            if is_named and not ids.is_area(name):
                yield path
            if is_folder and not ids.is_area(name) and not (is_named and is_deep):
                waiting.append(path)


def _is_folder(entry: "os.DirEntry[bytes]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _whole(path: bytes) -> bytes:
    """A path without links on the way, and without `.` and `..`; the last name may be a link."""
    path = os.path.normpath(path)
    if not path.startswith(b"/") or b"\0" in path:
        return b""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_graver(one: Wanted, other: Wanted) -> bool:
    """Whether one needs more to be saved: a link does not keep what is written over in place."""
    return (needs_copy(one.loss), one.is_deep) > (needs_copy(other.loss), other.is_deep)


def needs_copy(loss: str) -> bool:
    """Whether the bytes themselves are lost, and not only a name of them."""
    return loss in (effects.OVERWRITE, effects.TRUNCATE)


def _outermost(found: "dict[bytes, Wanted]") -> "list[Wanted]":
    """Without what a folder above it takes along."""
    kept: list[Wanted] = []
    deep: dict[bytes, Wanted] = {}
    for path in sorted(found):
        above = next((deep[each] for each in _folders_above(path) if each in deep), None)
        if above is None or path in above.spared or needs_copy(found[path].loss):
            kept.append(found[path])
            if found[path].is_deep:
                deep[path] = found[path]
    return kept


def _folders_above(path: bytes) -> "Iterator[bytes]":
    while path not in (b"/", b""):
        path = os.path.dirname(path)
        yield path


def is_in(path: bytes, folders: "Iterable[bytes]") -> bool:
    """Whether a path is one of some folders, or below one."""
    return any(_is_at_or_below(path, each) for each in folders)


def _is_at_or_below(path: bytes, folder: bytes) -> bool:
    return path == folder or not folder or _is_below(path, folder)


def _is_below(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder.rstrip(b"/") + b"/")
