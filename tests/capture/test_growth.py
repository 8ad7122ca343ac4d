"""A checkpoint late in a long row costs what an early one did."""

import json
import re
import shutil
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "bench/growth.py"
CHECKPOINTS = 400
EARLY = slice(10, 60)
LATE = slice(CHECKPOINTS - 50, CHECKPOINTS)
WITHIN = 0.02
ON_AVERAGE = 1.25
"""Only the late ones meet the emptying of SQLite's log, which one of them pays for all."""
CALLS_WITHIN = 0.05
"""How often somebody asks for the time again depends on how busy the machine is."""

MEMORY = re.compile(r"^\d+ +(brk|mmap|munmap|mremap|madvise|futex)\(")
"""The allocator's own business, which is done once the heap has grown."""
MARK = re.compile(r"/takeback-growth-(begin|end)-(\d+)")


class Row:
    """What each checkpoint of a long row cost, by what was counted."""

    def __init__(self, counts: dict[str, list[int]]) -> None:
        self.counts = counts

    def early_and_late(self, what: str) -> tuple[float, float]:
        """What a checkpoint costs alone: of fifty after number 10, and of the last fifty.

        Up to half of them pay for others, by the chance of their ids: SQLite begins a new page
        every third time, and empties its log every so often. So it is the lower quartile.
        """
        counted = self.counts[what]
        early, late = (statistics.quantiles(counted[part], n=4)[0] for part in (EARLY, LATE))
        return early, late

    def means(self, what: str) -> tuple[float, float]:
        """What they cost on average, with what some pay for others."""
        counted = self.counts[what]
        return statistics.mean(counted[EARLY]), statistics.mean(counted[LATE])


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Row:
    """A long row of checkpoints, with its system calls where they can be traced."""
    folder = tmp_path_factory.mktemp("growth")
    tree, home, trace = folder / "tree", folder / "home", folder / "trace"
    for number in range(60):
        path = tree / f"part{number % 6}" / f"file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a line of text\n" * 100)
    command = [sys.executable, "-I", str(PROGRAM), str(tree), str(home), str(CHECKPOINTS)]
    tracer = ["strace", "-f", "-qq", "-o", str(trace)]
    if shutil.which("strace"):
        done = subprocess.run([*tracer, *command], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            counts = as_counts(done.stdout)
            return Row({**counts, "calls": calls_per_checkpoint(trace)})
        shutil.rmtree(home, ignore_errors=True)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Row(as_counts(done.stdout))


def as_counts(lines: str) -> dict[str, list[int]]:
    """What the program printed, by what was counted; files as how many each checkpoint added."""
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row["number"] for row in rows] == list(range(1, CHECKPOINTS + 1))
    counts = {key: [row[key] for row in rows] for key in rows[0]}
    files = [0, *counts["files"]]
    counts["files"] = [now - before for before, now in pairwise(files)]
    return counts


def calls_per_checkpoint(trace: Path) -> list[int]:
    """How many system calls lie between the marks around each checkpoint."""
    counts, inside = [], False
    with trace.open(errors="replace") as lines:
        for line in lines:
            mark = MARK.search(line)
            if mark:
                inside = mark[1] == "begin"
                if inside:
                    counts.append(0)
            elif inside and not MEMORY.match(line):
                counts[-1] += 1
    return counts


@pytest.mark.parametrize("what", ["syscr", "syscw", "rchar", "wchar", "steps", "files"])
def test_checkpoints_do_not_grow(row: Row, what: str) -> None:
    """Calls, bytes, steps and files of a late checkpoint are those of an early one within 2 %."""
    early, late = row.early_and_late(what)
    assert early > 0
    assert late == pytest.approx(early, rel=WITHIN)


@pytest.mark.parametrize("what", ["syscr", "syscw", "rchar", "wchar", "steps", "files"])
def test_what_checkpoints_pay_for_others_does_not_grow(row: Row, what: str) -> None:
    """On average, with new pages and an emptied log, a late one costs at most a quarter more."""
    early, late = row.means(what)
    assert 0 < late <= ON_AVERAGE * early


def test_system_calls_do_not_grow(row: Row) -> None:
    """A late checkpoint makes as many system calls as an early one within 5 %."""
    if "calls" not in row.counts:
        pytest.skip("system calls cannot be traced here")
    assert len(row.counts["calls"]) == CHECKPOINTS
    early, late = row.early_and_late("calls")
    assert early > 0
    assert late == pytest.approx(early, rel=CALLS_WITHIN)
