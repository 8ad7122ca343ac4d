"""A model of who may have changed what, which knows the truth because it plays the history.

It is told of each window, of each change with the moments between which it was made, and of each
look. From that it says which authors of a path can be right. Where stamps tell two moments apart
there is just one; within the coarseness of stamps, and for what they do not tell (when a file was
deleted), there may be several. It shares no code with the product.
"""

import itertools
import time
from collections.abc import Collection, Iterator

LAG, SLACK = 15_000_000, 40_000_000
"""Nanoseconds by which stamps may lag behind the clock, and by which ours are rounded."""
_CLAIMING = ("shell", "other", "turn")

Span = tuple[int, int]
"""A time after which, and a time before which, something happened."""


def now() -> int:
    """The present time."""
    return time.time_ns()


class Window:
    """A step, or a turn without steps, as the model sees it."""

    def __init__(
        self, name: str, session: str, kind: str, names: Collection[str], started: Span
    ) -> None:
        self.name = name
        self.session = session
        self.kind = kind
        self.names = tuple(names)
        self.started = started
        self.ended: Span | None = None
        self.parent: Window | None = None
        self.turn = 0
        self.detached = False
        self.background = False

    def __repr__(self) -> str:
        return f"{self.name}({self.kind} {' '.join(self.names)}) {self.started} {self.ended}"

    def close(self, when: Span) -> None:
        """End it, if nothing has."""
        if self.ended is None:
            self.ended = when

    def claims(self, path: str, verb: str) -> str:
        """How it may claim a path: `named`, `shell` or `turn`; empty if not at all."""
        if self.kind in {"read", "agent"}:
            return ""
        for name in self.names:
            is_made_for_it = verb == "mkdir" and name.startswith(path + "/")
            if path == name or path.startswith(name + "/") or is_made_for_it:
                return "named"
        return {"turn": "turn", "edit": ""}.get(self.kind, "shell")

    def is_inside(self, above: "Window") -> bool:
        """Whether it ends with a step around it."""
        step = self
        while step.parent is not None and not (step.detached and step.ended is None):
            if step.parent is above:
                return True
            step = step.parent
        return False


class Change:
    """Whatever was done to a path since the last look: when, and by whom last."""

    def __init__(self, when: Span, by: Window | None) -> None:
        self.when = when
        self.by = by
        self.is_plain = True

    def again(self, when: Span, by: Window | None) -> None:
        """Somebody did something to it once more."""
        self.when = (min(self.when[0], when[0]), max(self.when[1], when[1]))
        self.is_plain = self.is_plain and self.by is by
        self.by = by


class Truth:
    """The windows of the interval since the last look, and what was changed in it."""

    def __init__(self) -> None:
        self.windows: list[Window] = []
        self.changes: dict[str, Change] = {}
        self.looked: Span = (0, 0)

    def changed(self, path: str, when: Span, by: Window | None) -> None:
        """A path, and so every folder above it, was changed."""
        while path:
            if path in self.changes:
                self.changes[path].again(when, by)
            else:
                self.changes[path] = Change(when, by)
            path = path.rpartition("/")[0]

    def look(self, when: Span) -> None:
        """Somebody looked: what was closed by then is history."""
        self.windows = [window for window in self.windows if window.ended is None]
        self.changes = {}
        self.looked = when

    def authors(self, path: str, verb: str) -> set[str]:
        """Everybody who may be said to have changed a path."""
        certain, possible = self._windows(path, verb)
        return {
            _author([*certain, *some], path, verb)
            for count in range(len(possible) + 1)
            for some in itertools.combinations(possible, count)
        }

    def _windows(self, path: str, verb: str) -> tuple[list[Window], list[Window]]:
        """The windows that were open when a path was changed: certainly, and perhaps."""
        first, last = self.changes[path].when
        certain, possible = [], []
        for window in self.windows:
            if not window.claims(path, verb) or self._was_over(window):
                continue
            if window.started[1] <= first and (window.ended is None or last <= window.ended[0]):
                certain.append(window)
            elif window.started[0] - SLACK <= last and self._may_be_open(window, first, verb):
                possible.append(window)
        return certain, possible

    def _was_over(self, window: Window) -> bool:
        return window.ended is not None and window.ended[1] < self.looked[0]

    def _may_be_open(self, window: Window, first: int, verb: str) -> bool:
        # When a file was deleted no stamp tells.
        is_untold = verb in {"delete", "rmdir"}
        return is_untold or window.ended is None or first - LAG <= window.ended[1]

    def told_apart(self, path: str, verb: str) -> Iterator[str]:
        """The agents' names that must not be said of what you changed: nothing of theirs fits."""
        change = self.changes[path]
        if change.by is None and change.is_plain:
            certain, possible = self._windows(path, verb)
            for window in self.windows:
                if window not in certain and window not in possible:
                    yield window.name


def _author(windows: list[Window], path: str, verb: str) -> str:
    """Rule 1: who names a path goes first, then who may do anything; two sessions share."""
    naming = [window for window in windows if window.claims(path, verb) == "named"]
    claiming = naming or [window for window in windows if window.kind in _CLAIMING]
    sessions = sorted({window.session for window in claiming})
    if not claiming:
        return "you"
    if len(sessions) > 1:
        return " ".join(["shared", *sessions])
    latest = max(claiming, key=lambda window: window.started)
    return f"{latest.name} {'named' if naming else latest.claims(path, verb)}"
