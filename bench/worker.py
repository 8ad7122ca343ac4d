"""A process that stays warm and takes Takeback checkpoints when told.

    worker.py TREE HOME [twin]

It reads one word per line and answers each with one line: `take` with the nanoseconds that a
checkpoint took, `scan` with those of the stat loop alone. `twin` runs without the C loop.
"""

import os
import sys
import time
from pathlib import Path

import takeback
from takeback.store import statloop

HEADER_BYTES = 128


def main() -> None:
    """Serve until the pipe is closed."""
    tree, home = sys.argv[1:3]
    if sys.argv[3:] == ["twin"]:
        statloop.scan_native = None
    project = takeback.open(tree, home=home)
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for line in sys.stdin:
        records = b"" if line == "take\n" else read_records(project)
        before = time.perf_counter_ns()
        if records:
            statloop.scan(records, root)
        else:
            project.checkpoint()
        print(time.perf_counter_ns() - before, flush=True)


def read_records(project: takeback.Project) -> bytes:
    """What the stat cache on disk holds behind its header."""
    return Path(os.fsdecode(project.status().store), "index").read_bytes()[HEADER_BYTES:]


if __name__ == "__main__":
    main()
