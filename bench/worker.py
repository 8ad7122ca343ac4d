"""A process that stays warm and takes Takeback checkpoints when told.

    worker.py TREE HOME [twin]

It reads one word per line and answers each with one line: `take` with the nanoseconds that a
checkpoint took, `scan` with those of the stat loop alone. `twin` runs without the C loop.
"""

import os
import sys
import time

import takeback
from takeback.store import statloop


def main() -> None:
    """Serve until the pipe is closed."""
    tree, home = sys.argv[1:3]
    if sys.argv[3:] == ["twin"]:
        statloop.scan_native = None
    project = takeback.open(tree, home=home)
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for line in sys.stdin:
        before = time.perf_counter_ns()
        if line == "take\n":
            project.checkpoint()
        else:
            statloop.scan(project._stat_cache().records, root)
        print(time.perf_counter_ns() - before, flush=True)


if __name__ == "__main__":
    main()
