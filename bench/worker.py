"""A process that stays warm and does with Takeback what it is told.

    worker.py TREE HOME [twin]

It reads one word per line and answers each with one line, the nanoseconds that it took: `take` a
checkpoint, `scan` with the stat loop alone, `begin` and `end` a turn of an agent, `undo` the newest
one. `twin` runs without the C loop.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import takeback
from takeback.session import Session, Turn
from takeback.worktree import stat_loop

HEADER_BYTES = 128


class Worker:
    """A project that is open, and the agent that works in it."""

    def __init__(self, tree: str, home: str) -> None:
        self._project = takeback.open(tree, home=home)
        self._root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
        self._session: Session | None = None
        self._turn: Turn | None = None

    def ready(self, word: str) -> Callable[[], object]:
        """What a word tells to do, with all that need not be timed done."""
        match word:
            case "take":
                return self._project.checkpoint
            case "scan":
                records = self._records()
                return lambda: stat_loop.scan(records, self._root)
            case "begin":
                return self._begin
            case "end":
                assert self._turn is not None
                return self._turn.end
            case "undo":
                return self._project.undo
        raise ValueError(word)

    def _begin(self) -> None:
        self._session = self._session or self._project.session("bench")
        self._turn = self._session.turn("edit files")

    def _records(self) -> bytes:
        """What the stat cache on disk holds behind its header."""
        return Path(os.fsdecode(self._project.status().store), "index").read_bytes()[HEADER_BYTES:]


def main() -> None:
    """Serve until the pipe is closed."""
    if sys.argv[3:] == ["twin"]:
        stat_loop.scan_native = None
    worker = Worker(*sys.argv[1:3])
    for line in sys.stdin:
        work = worker.ready(line.strip())
        before = time.perf_counter_ns()
        work()
        print(time.perf_counter_ns() - before, flush=True)


if __name__ == "__main__":
    main()
