"""A disk that is really full: a small file system of its own, filled up to a few pages."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from faults.children import in_child
from faults.harness import Theatre
from faults.scenarios import Scenario

PAGE = 4096
_SIZE = 4 << 20
_STEP = 2 * PAGE


def fill_more_and_more(
    scenario: Scenario, folder: Path, every: int, note: Callable[[int], None]
) -> list[str]:
    """Try with no room at all, then with ever more, until the checkpoint succeeds twice."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", disk], check=True)
    try:
        theatre = Theatre(scenario, folder, disk / "home")
        return _fill(theatre, disk, every, note)
    finally:
        subprocess.run(["umount", disk], check=True)


def _fill(theatre: Theatre, disk: Path, every: int, note: Callable[[int], None]) -> list[str]:
    wrong: list[str] = []
    room, successes, tried = 0, 0, 0
    while successes < 2:
        theatre.reset()
        filler = _fill_up(disk, room)
        attempt = in_child(theatre.try_once)
        filler.unlink()
        successes += bool(attempt.every("acked"))
        wrong += [f"{room} bytes left: {what}" for what in theatre.judged([attempt], "ENOSPC")]
        room += _STEP * every
        tried += 1
        assert room < _SIZE, "the checkpoint never succeeded"
    note(tried)
    return wrong


def _fill_up(disk: Path, room: int) -> Path:
    """Take all but `room` bytes of the free space."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
    return filler
