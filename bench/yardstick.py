"""What bounds a hook: an empty interpreter, and the scan of the tree that each safe point needs.

Measured again and again between what is compared with it: a machine that is shared with others is
twice as fast in one minute as in the next.
"""

import os
import sys
from pathlib import Path

from contenders import Takeback
from footprint import timed
from timing import Series

PLAIN_HOOK = [sys.executable, "-I", "-S", "-c", "import json, sqlite3"]
"""What a hook costs that does nothing but start."""


class Yardstick:
    """Both, for one tree."""

    def __init__(self, tree: Path, store: Path) -> None:
        self._warm = Takeback(tree, store)
        self._warm.first()
        self.starts = Series()
        self.scans = Series()

    def measure(self, times: int = 1) -> None:
        """Take both once more."""
        for _ in range(times):
            self.starts.seconds.append(timed(PLAIN_HOOK, dict(os.environ)))
            self.scans.seconds.append(self._warm.scan())

    def close(self) -> None:
        """End the process that scans."""
        self._warm.close()
