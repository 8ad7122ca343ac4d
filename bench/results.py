"""All figures of one run, and whether they are what was promised."""

import statistics

from footprint import ColdStart, Memory
from log import FEW, MANY, LogTimes
from merges import EXACT, MERGED
from restorers import ColdPreview, Restorer, WarmUndo
from restores import GIT as GIT_BACK
from restores import Restores
from speed import Speed
from timing import Times

GIT = "git add + write-tree"
LISTER = "C: list + lstat only"
NATIVE = "Takeback"
TWIN = "Takeback, pure Python"

MIB = 1 << 20


class Results:
    """What one run measured; what was left out is None or empty."""

    def __init__(self) -> None:
        self.speeds: list[Speed] = []
        self.memory: dict[str, Memory] = {}
        self.cold: ColdStart | None = None
        self.cold_scan = 0.0
        self.growth: list[dict[str, int]] = []
        self.log: LogTimes | None = None
        self.restores: list[Restores] = []


class Verdict:
    """One promise, what was measured, and whether it holds."""

    def __init__(self, promise: str, measured: str, *, holds: bool) -> None:
        self.promise = promise
        self.measured = measured
        self.holds = holds


def ratio(times: Times, one: str, other: str) -> float:
    """The ratio of two medians."""
    return times[one].median / times[other].median


def verdicts(results: Results) -> list[Verdict]:
    """All promises, in the order of the report."""
    found: list[Verdict] = []
    for speed in results.speeds:
        for case, times in speed.warm.items():
            where = f"{speed.files:,} files, {case}"
            if not case.startswith("1,000"):
                found += warm_verdicts(where, times)
        if speed.first_new and speed.files >= 10_000:
            value = ratio(speed.first_new, NATIVE, GIT)
            found.append(at_most(f"{speed.files:,} files, first: ≤ 0.33 x git", value, 0.33))
        if speed.turns:
            found.append(disk_verdict(speed))
    found += memory_verdicts(results.memory)
    if results.cold is not None:
        found.append(cold_verdict(results))
    if results.log is not None:
        found += log_verdicts(results.log)
    if results.growth:
        found += growth_verdicts(results.growth)
    for restores in results.restores:
        found += restore_verdicts(restores)
    return found


def warm_verdicts(where: str, times: Times) -> list[Verdict]:
    """What is promised of a checkpoint in a warm process."""
    others = {name: s.median for name, s in times.items() if not is_reference(name)}
    best = min(others, key=lambda name: others[name])
    return [
        at_most(f"{where}: ≤ 0.5 x git", ratio(times, NATIVE, GIT), 0.5),
        at_most(f"{where}: ≤ 1.5 x C program", ratio(times, NATIVE, LISTER), 1.5),
        at_most(f"{where}: faster than {best}, the best agent", ratio(times, NATIVE, best), 1.0),
        at_most(f"{where}: pure Python ≤ 1.3 x git", ratio(times, TWIN, GIT), 1.3),
    ]


def is_reference(name: str) -> bool:
    """Whether a contender is not an agent's way."""
    return name in (GIT, LISTER, NATIVE, TWIN)


def at_most(promise: str, value: float, limit: float) -> Verdict:
    """A promise that a ratio stays below a limit."""
    return Verdict(promise, f"{value:.2f} x", holds=value <= limit)


def disk_verdict(speed: Speed) -> Verdict:
    """What is promised of the disk."""
    ours = speed.disk[NATIVE]
    best = min(added for name, added in speed.disk.items() if name != NATIVE)
    promise = f"{speed.files:,} files, disk after {speed.turns} turns: ≤ the best other"
    measured = f"{ours / MIB:.1f} MiB, best other {best / MIB:.1f}"
    return Verdict(promise, measured, holds=ours <= best)


def memory_verdicts(memory: dict[str, Memory]) -> list[Verdict]:
    """What is promised of memory."""
    return [
        Verdict(
            f"peak memory, {what}: ≤ 200 MB",
            f"{peak.largest / 1e6:.0f} MB (with forked copies {peak.together / 1e6:.0f})",
            holds=peak.largest <= 200e6,
        )
        for what, peak in memory.items()
    ]


def cold_verdict(results: Results) -> Verdict:
    """What is promised of a start."""
    assert results.cold is not None
    bound = 3 * results.cold.python.median
    value = results.cold.same.median
    promise = (
        "cold `takeback checkpoint`, 1,000 files: ≤ 3 x `python -I -S -c 'import json, sqlite3'`"
    )
    return Verdict(promise, f"{1e3 * value:.1f} ms, bound {1e3 * bound:.1f}", holds=value <= bound)


def log_verdicts(log: LogTimes) -> list[Verdict]:
    """What is promised of looking at the log."""
    few, many = (log.looks["takeback log"][turns].median for turns in (FEW, MANY))
    cold = f"cold `takeback log` with {MANY:,} turns: ≤ 150 ms"
    same = f"`takeback log` with {MANY:,} turns: as with {FEW}, ≤ 1.2 x"
    return [
        Verdict(cold, f"{1e3 * many:.0f} ms", holds=many <= 0.150),
        at_most(same, many / few, 1.2),
    ]


def growth_verdicts(growth: list[dict[str, int]]) -> list[Verdict]:
    """What is promised of a long row of checkpoints; see `tests/capture/test_growth.py`."""
    names = {
        "syscr": "read calls",
        "syscw": "write calls",
        "wchar": "bytes written",
        "steps": "steps",
    }
    found = []
    for key, name in names.items():
        early, late = (
            statistics.median(row[key] for row in rows) for rows in (growth[10:60], growth[-50:])
        )
        change = late / early - 1
        promise = f"{name} of checkpoint {len(growth):,}: as of number 10, ± 2 %"
        found.append(Verdict(promise, f"{early:,} → {late:,}", holds=abs(change) <= 0.02))
    return found


def restore_verdicts(restores: Restores) -> list[Verdict]:
    """What is promised of going back: ahead of all who look at the tree, near those who do not."""
    found = []
    for count, times in restores.times.items():
        where = f"{restores.files:,} files, {count:,} taken back"
        peers = {n: times[n].median for n, way in restores.ways.items() if is_peer(way, times)}
        looking = [name for name in peers if restores.ways[name].scans]
        best = min(looking, key=lambda name: peers[name])
        value = times[WarmUndo.name].median
        promise = f"{where}: faster than {best}, the best agent that scans"
        found.append(at_most(promise, value / peers[best], 1.0))
        found += [
            at_most(f"{where}: ≤ 2 x {name}, which does not scan", value / peers[name], 2.0)
            for name in peers
            if name not in looking
        ]
        if (restores.files, count) == (10_000, 10):
            found.append(preview_verdict(times))
    if restores.recovery.seconds:
        found.append(recovery_verdict(restores))
    if restores.merges:
        value = restores.merges[MERGED].median / restores.merges[EXACT].median
        promise = "undo of 10 files that you edited since: ≤ 2 x the undo if you did not"
        found.append(at_most(promise, value, 2.0))
    return found


def is_peer(way: Restorer, times: Times) -> bool:
    """Whether a way back is an agent's, and was measured; git alone is only the measure."""
    is_agents = not isinstance(way, WarmUndo) and not way.syncs and way.name != GIT_BACK
    return is_agents and way.name in times


def preview_verdict(times: Times) -> Verdict:
    """What is promised of a preview."""
    value = times[ColdPreview.name].median
    promise = "cold `takeback undo --dry-run` of 10 files, 10,000 files: < 150 ms"
    return Verdict(promise, f"{1e3 * value:.0f} ms", holds=value < 0.150)


def recovery_verdict(restores: Restores) -> Verdict:
    """What is promised after a crash."""
    value = max(restores.recovery.seconds)
    promise = "recovery of 1,000 files, killed half-way, the slowest: ≤ 2 s"
    return Verdict(promise, f"{value:.2f} s", holds=value <= 2)
