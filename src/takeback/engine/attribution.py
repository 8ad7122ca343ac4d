"""Whose change is whose. Pure: windows and stamps in, authors out.

    last observation                     now
          ├──────── the interval ─────────┤
          │     ┌── a step's window ──┐   │      open at some moment of the interval
          │   ──┴──── p changed ──────┴── │      p's time lies in the window: the step's

1. The windows in question are those open at any moment since the last observation. Which they
   are follows from the order of events, never from a clock.
2. Where the stamps of a path tell when it was changed, a window that had closed by then or had
   not opened yet is out of the question.
3. A step that names the path goes first: edit tools own what they name, and nothing else.
4. Else a window that claims anything: a shell, a tool nobody told us about, a turn that reports
   no steps. None of them: *you*. Several sessions: *shared*.
"""

from takeback.model.history import Author
from takeback.model.terms import (
    BY_SHELL,
    BY_TURN,
    EDIT,
    MKDIR,
    NAMED,
    OTHER,
    SHARED,
    SHELL,
    STEP,
    YOU,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.engine.deltas import Delta

TURN = "turn"
"""The kind of the window that a turn without steps is."""
_CLAIMS_ANYTHING = (SHELL, OTHER, TURN)
_MAY_WRITE = (EDIT, *_CLAIMS_ANYTHING)
_NOBODY = Author(YOU)


class Window:
    """The time in which a step, or a turn that reports no steps, may change files.

    `names` are the paths that it names. `ended` is None while it is open.
    """

    __slots__ = ("ended", "kind", "names", "opened", "session", "started", "step", "turn")

    def __init__(
        self,
        *,
        session: str,
        turn: str,
        step: str = "",
        kind: str = TURN,
        names: "frozenset[bytes]" = frozenset(),
        opened: int,
        started: int,
        ended: "int | None" = None,
    ) -> None:
        self.session = session
        self.turn = turn
        self.step = step
        self.kind = kind
        self.names = names
        self.opened = opened
        self.started = started
        self.ended = ended

    def is_named(self, path: bytes, verb: str) -> bool:
        """Whether it names the path, or a folder that the path is in.

        Who names a file that is to be in a new folder has named the folder, too.
        """
        if not self.names:
            return False
        if path in self.names or b"" in self.names:
            return True
        if verb == MKDIR and any(name.startswith(path + b"/") for name in self.names):
            return True
        end = path.rfind(b"/")
        while end > 0:
            if path[:end] in self.names:
                return True
            end = path.rfind(b"/", 0, end)
        return False


class Interval:
    """The time since the last observation, and how far stamps in it can be believed.

    `slack` is how coarse the stamps are; None if they cannot be believed at all.
    """

    __slots__ = ("now", "since", "slack")

    def __init__(self, since: int, now: int, slack: "int | None") -> None:
        self.since = since
        self.now = now
        self.slack = slack

    def moment(self, stamps: "tuple[int, int] | None") -> "int | None":
        """When something with these stamps (mtime, ctime) was last changed, if they tell.

        The time of the last write counts; but anybody can set that one to anything, and then
        the time of the last change to the entry itself, which only the kernel sets.
        """
        if stamps is None or self.slack is None:
            return None
        first, last = self.since - self.slack, self.now + self.slack
        mtime, ctime = stamps
        if first <= mtime <= ctime <= last:
            return mtime
        return ctime if first <= ctime <= last else None

    def bound(self, stamp: "int | None") -> "int | None":
        """By when something was over, if a stamp that says so can be believed."""
        if stamp is None or self.slack is None:
            return None
        return stamp if self.since - self.slack <= stamp <= self.now + self.slack else None


def attribute(
    deltas: "Sequence[Delta]", windows: "Sequence[Window]", interval: Interval
) -> "list[Author]":
    """The author of each delta, in their order."""
    if not windows:
        return [_NOBODY] * len(deltas)
    moments = _moments(deltas, interval)
    return [
        _author(delta, _possible(windows, *moments[delta.path], interval.slack or 0))
        for delta in deltas
    ]


def _moments(
    deltas: "Sequence[Delta]", interval: Interval
) -> "dict[bytes, tuple[int | None, int | None]]":
    """For each path when it was changed, and by when it must have been."""
    told: dict[bytes, tuple[int | None, int | None]] = {}
    earliest: dict[bytes, int] = {}
    # A folder is stamped by what is put into it; it was made before the first of that. What
    # was moved here with its folder has old stamps: then the folder's own tell.
    for delta in reversed(deltas):
        moment = interval.moment(delta.time)
        if delta.verb == MKDIR:
            known = [m for m in (moment, earliest.get(delta.path)) if m is not None]
            moment = min(known, default=None)
        told[delta.path] = (moment, interval.bound(delta.latest))
        folder = delta.path.rpartition(b"/")[0]
        if moment is not None:
            earliest[folder] = min(moment, earliest.get(folder, moment))
    for delta in deltas:
        moment, latest = told[delta.path]
        if moment is None and delta.time is not None:
            above = told.get(delta.path.rpartition(b"/")[0])
            if above is not None:
                told[delta.path] = (above[0], latest)
    return told


def _possible(
    windows: "Sequence[Window]", moment: "int | None", latest: "int | None", slack: int
) -> "list[Window]":
    """The windows in which a change can have happened."""
    if moment is not None:
        return [w for w in windows if w.started - slack <= moment and _open_at(w, moment, slack)]
    if latest is not None:
        return [w for w in windows if w.started - slack <= latest]
    return list(windows)


def _open_at(window: Window, moment: int, slack: int) -> bool:
    # Stamps lag behind the clock and never run ahead of it, so the end needs slack only where
    # they are coarse.
    return window.ended is None or moment <= window.ended + (slack if slack > _TICKS else 0)


_TICKS = 20_000_000
"""How far the stamps of a file system with fine ones lag behind the clock."""


def _author(delta: "Delta", windows: "list[Window]") -> Author:
    path, verb = delta.path, delta.verb
    naming = [w for w in windows if w.kind in _MAY_WRITE and w.is_named(path, verb)]
    if naming:
        return _of_sessions(naming, NAMED)
    return _of_sessions([w for w in windows if w.kind in _CLAIMS_ANYTHING], BY_SHELL)


def _of_sessions(windows: "list[Window]", how: str) -> Author:
    sessions = _distinct(w.session for w in windows)
    if not sessions:
        return _NOBODY
    if len(sessions) > 1:
        return Author(SHARED, sessions=sessions)
    latest = max(windows, key=lambda window: window.opened)
    how = BY_TURN if latest.kind == TURN else how
    return Author(STEP, session=latest.session, turn=latest.turn, step=latest.step, how=how)


def _distinct(names: "Iterable[str]") -> "tuple[str, ...]":
    return tuple(sorted(set(names)))
