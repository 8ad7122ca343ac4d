"""How much is tried, where, and what is noted about it.

`FAULTS=full` in the environment asks for everything, as `scripts/faults` does; without it a share
is tried that fits into `./check`, always the same. `FAULTS_REPORT` names a file for the figures.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = os.environ.get("FAULTS") == "full"
SECONDS = 7200 if FULL else 120

_MEMORY = Path("/dev/shm")
_ROOM = 64 << 20


@contextmanager
def stage(on_disk: Path | None = None) -> Iterator[Path]:
    """A folder for one scenario: in memory, where there is some, unless a place is given.

    Only for trees and stores of a few megabytes, which cannot fill the memory.
    """
    where = on_disk or (_MEMORY if _has_room(_MEMORY) else None)
    folder = Path(tempfile.mkdtemp(prefix="takeback-faults-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _has_room(folder: Path) -> bool:
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >= _ROOM


@contextmanager
def noted(**facts: str | int | bool) -> Iterator[dict[str, str | int | bool]]:
    """Note what was tried; the caller adds the figures. Nothing is noted when it failed."""
    start = time.monotonic()
    yield facts
    path = os.environ.get("FAULTS_REPORT")
    if path:
        line = json.dumps({**facts, "seconds": round(time.monotonic() - start, 1)})
        with open(path, "a") as report:
            report.write(line + "\n")
