"""How much is tried, where, and what is noted about it.

`FAULTS=full` in the environment asks for everything, as `scripts/faults` does; without it a share
is tried that fits into `./check`, always the same. `FAULTS_REPORT` names a file for the figures.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Facts = dict[str, str | int | bool]

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
def noted(**facts: str | int | bool) -> Iterator[Facts]:
    """Note what was tried; the caller adds the figures. Nothing is noted when it failed."""
    start = time.monotonic()
    yield facts
    path = os.environ.get("FAULTS_REPORT")
    if path:
        line = json.dumps({**facts, "seconds": round(time.monotonic() - start, 1)})
        with open(path, "a") as report:
            report.write(line + "\n")


def summary(lines: list[Facts]) -> Iterator[str]:
    """The figures of a whole run, as tables in Markdown."""
    played = [line for line in lines if "scenario" in line]
    yield from _table(
        ["scenario", "steps", "faults", "wrong", "seconds"],
        [
            [
                name,
                max(_sum([line], "steps") for line in of),
                _sum(of, "faults"),
                _sum(of, "wrong"),
                _seconds(of),
            ]
            for name, of in _by(played, "scenario")
        ],
    )
    yield from _table(
        ["fault", "sync on", "sync off"],
        [
            [
                kind,
                *(_sum([x for x in of if x["sync"] is sync], "faults") for sync in (True, False)),
            ]
            for kind, of in _by(played, "fault")
        ],
    )
    others = (
        ("killed_twice", "killed, and killed again:", "faults"),
        ("system_calls", "system calls of", "faults"),
        ("full_disk", "fillings of a small disk,", "fillings"),
        ("concurrency", "processes at once, acked checkpoints with", "acked"),
        ("events", "processes at once, acked requests with", "acked"),
        ("damage", "damage,", "injuries"),
        ("saves", "saves during restores,", "tried"),
        ("swaps", "swaps during restores,", "tried"),
    )
    yield from _table(
        ["what", "tried", "seconds", "more"],
        [
            [f"{words} {name}", _sum(of, figure), _seconds(of), _rest(of)]
            for key, words, figure in others
            for name, of in _by([line for line in lines if key in line], key)
        ],
    )
    yield f"In all: {_sum(lines, 'faults') + _sum(lines, 'fillings')} faults"


def _by(lines: list[Facts], key: str) -> list[tuple[str, list[Facts]]]:
    names = dict.fromkeys(str(line[key]) for line in lines)
    return [(name, [line for line in lines if str(line[key]) == name]) for name in names]


def _sum(lines: list[Facts], key: str) -> int:
    return sum(int(line.get(key, 0)) for line in lines)


def _seconds(lines: list[Facts]) -> int:
    return round(sum(float(line["seconds"]) for line in lines))


def _rest(lines: list[Facts]) -> str:
    kinds = ("found by verify", "repaired by verify", "error on use", "harmless", "no change")
    told = [f"{_sum(lines, kind)} {kind}" for kind in kinds if _sum(lines, kind)]
    if any("killed" in line for line in lines):
        longest = max(int(line["longest_wait_ms"]) for line in lines)
        told += [f"{_sum(lines, 'killed')} killed", f"longest wait {longest} ms"]
    for figure in ("written", "retried", "per_second", "restores", "during"):
        told += [f"{line[figure]} {figure.replace('_', ' ')}" for line in lines if figure in line]
    return ", ".join(told)


def _table(heads: list[str], rows: list[list[str | int]]) -> Iterator[str]:
    yield " | ".join(heads).join(["| ", " |"])
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield " | ".join(str(cell) for cell in row).join(["| ", " |"])
    yield ""


if __name__ == "__main__":
    noted_lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    sys.stdout.write("\n".join(summary(noted_lines)) + "\n")
