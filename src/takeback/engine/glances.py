"""Looks at a tree that is watched: at all of it, or only at the folders where something happened.

A look at everything is the truth. Those inside a turn may be glances, for what one overlooks is
found by the next look at everything, and belongs to whoever worked since the last of these.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.statcache import StatCache
    from takeback.store.watch import Watch

LONGEST = 60_000_000_000
"""Nanoseconds: however long a turn is, everything is looked at so often."""


class Glances:
    """What a watch spares one project's looks.

    `whole` is the last look at everything: the newest event by then, and when it began.
    """

    __slots__ = ("_changed", "_is_whole", "_now", "_watch", "whole")

    def __init__(self, watch: "Watch") -> None:
        self.whole = (0, 0)
        self._watch = watch
        self._changed: set[bytes] | None = None
        self._is_whole = True
        self._now = (0, 0)

    def close(self) -> None:
        """Watch no more."""
        self._watch.close()

    def settle(self) -> None:
        """Let the watch catch up with the last look. Takes time, so nobody should wait for it."""
        self._watch.settle()

    def intend(self, event: int, at: int, *, whole: bool) -> "Glances":
        """Say which look comes next: the newest event by then, and the time."""
        self._now, self._changed = (event, at), None
        is_fresh = 0 <= at - self.whole[1] <= LONGEST
        self._is_whole = whole or not is_fresh
        return self

    def folders(self, cache: "StatCache") -> "set[bytes] | None":
        """The folders to look at; None for all."""
        self._changed = self._watch.changed(cache)
        if self._is_whole or self._changed is None:
            self._is_whole = True
            return None
        return self._changed

    def overlooked(self, path: bytes) -> bool:
        """Whether something that this look found happened before the last glance already."""
        return self._changed is not None and path.rpartition(b"/")[0] not in self._changed

    def done(self, cache: "StatCache") -> None:
        """The look was taken, and the stat cache says what was found."""
        self._watch.looked(cache)
        if self._is_whole:
            self.whole = self._now
