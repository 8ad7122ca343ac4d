"""The resident helper and its copies, as the system sees them."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 20.0


def helpers(home: Path) -> list[int]:
    """The helper of a home."""
    lock = os.path.realpath(home / "hooks.sock.lock")
    return [pid for pid in processes() if lock in files_of(pid)]


def copies_of(home: Path) -> list[int]:
    """The copies of the helper of a home: they have its ledgers open."""
    start = os.path.realpath(home / "projects") + "/"
    return [pid for pid in processes() if any(name.startswith(start) for name in files_of(pid))]


def processes() -> list[int]:
    """All but this one."""
    found = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in found if pid != os.getpid()]


def files_of(pid: int) -> list[str]:
    """What a process has open; one that is closed just now is left out."""
    found = []
    with contextlib.suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(os.readlink(fd))
    return found


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that must come soon."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)
