"""Time as the file system tells it, because its stamps are what we compare with.

A file is *racy* when it could still be changed without its stamps changing: its stamps are as
young as the look we took at it. How young is measured against a file of our own that is
touched when a scan begins, so that no jump of the machine's clock can fool the rule.
"""

import os
import time

from takeback.disk import operations

FINE = 20_000_000
"""Slack in nanoseconds where stamps have nanoseconds and the store is on the same disk."""
COARSE = 2_000_000_000
"""Slack for stamps in whole seconds, and for trees on another file system than the store."""
RECENT = 2_000_000_000
SETTLED = 25_000_000
WRITTEN_BACK = 60_000_000_000
"""After so long the kernel has written a dirty page back; the next write moves the stamps."""


class FsClock:
    """The file system's time since a scan began."""

    __slots__ = ("_began", "slack", "start", "trusted_before")

    def __init__(self, start: int, slack: int) -> None:
        self.start = start
        self.slack = slack
        self.trusted_before = start - slack
        self._began = time.monotonic_ns()

    def now(self) -> int:
        return self.start + time.monotonic_ns() - self._began

    def is_racy(self, mtime: int, ctime: int) -> bool:
        """Whether stamps are too young, or in the future, to prove that nothing changed."""
        return max(mtime, ctime) >= self.trusted_before

    def is_recent(self, mtime: int, ctime: int) -> bool:
        return max(mtime, ctime) > self.now() - RECENT

    def is_unsettled(self, mtime: int, ctime: int) -> bool:
        """Whether pages that were written then may still wait to be written back."""
        return max(mtime, ctime) > self.now() - WRITTEN_BACK

    def is_settled(self, mtime: int, ctime: int) -> bool:
        """Whether the last write is long enough ago for a read to be whole."""
        return max(mtime, ctime) < self.now() - SETTLED


def read(probe: bytes, tree_device: int) -> FsClock:
    """Touch the file `probe` in the store and read the clock off it."""
    fd = operations.open_or_create(probe)
    try:
        operations.touch(fd)
        stat = os.fstat(fd)
    finally:
        os.close(fd)
    fine = stat.st_dev == tree_device and stat.st_ctime_ns % 1_000_000_000 != 0
    return FsClock(stat.st_ctime_ns, FINE if fine else COARSE)
