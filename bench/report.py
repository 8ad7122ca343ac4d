"""Writes the results as a page of Markdown."""

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path

from log import FEW, MANY, LogTimes
from restores import GIT as GIT_BACK
from restores import Restores
from results import GIT, Results, verdicts
from speed import Speed
from timing import Series, Times

ABOUT = """\
Written by `bench/run`; do not edit. Times are wall clock, in milliseconds: median (90th percentile)
x git, the ratio of the medians. In each round all contenders take one checkpoint of the same tree
with the same edits, in changing order, each with a store of its own. Takeback runs in a warm
process and is timed there; the agents are their git commands, started from a warm process,
without what their own programs cost. The C program lists and `lstat`s the tree and remembers
nothing. Trees are source-like: median 3 KB, about ten files to a folder, and an ignored
`node_modules` beside them which nobody has to enter.

Pages of their own: [taking back](benchmarks-restores.md), [a year of turns](benchmarks-year.md),
[hooks](benchmarks-hooks.md)."""

FIRST = """\
First checkpoint of {:,} files, into a new store; in brackets how often it was taken. Left: the
packs of the user's repository do not hold the content. Right: they do; those marked * do not copy
it but lean on the user's repository, and lose it when that is cleaned up."""

TURNS = """\
Disk that {} turns of an agent added to the stores; in each turn a few lines changed in files of
together 22 KiB."""

LOG = """\
Safe points of an agent in a warm process, each a look at the tree and what is recorded with it;
and whole processes that look at a log of few and of many turns."""

RESTORES = """\
An agent edits 1, 10 or 1,000 files, and what it did is taken back: only that is timed, and that the
old content is there again is checked. Takeback's undo is `project.undo()` in a warm process and the
whole process of `takeback undo`; both scan, leave a checkpoint of what was there, sync, and verify.
The agents are the git commands of their undo (Codex: `status`, `restore --source`; OpenCode: a
checkpoint, `ls-tree` and `checkout` of the files, and its `checkout` alone; Cline: `clean`,
`reset --hard`; Gemini CLI: `restore --source`, `clean`). Scans: it looks at the whole tree, and so
knows what else changed. Syncs: what it wrote survives a power cut. Git syncs no file of a work
tree. Claude Code's way, copying back what an edit tool named, is played by a warm Python."""


def render(results: Results, command: str, seconds: float) -> str:
    """The whole page."""
    parts = ["# Benchmarks", ABOUT, machine(command, seconds), "## Promised and measured"]
    parts.append(verdict_table(results))
    for speed in results.speeds:
        parts += speed_parts(speed)
    if results.cold is not None:
        parts += ["## Start of a process, 1,000 files", cold_table(results)]
    if results.log is not None:
        parts += ["## The log, 1,000 files", LOG, *log_tables(results.log)]
    if results.restores:
        parts += ["## Taking back", RESTORES]
    for restores in results.restores:
        parts += restore_parts(restores)
    return "\n\n".join(parts) + "\n"


def machine(command: str, seconds: float) -> str:
    """What this was measured on, and how."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return (
        f"`{command}` on {today}, {seconds / 60:.0f} minutes: "
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, "
        f"{git.stdout.strip()}; load at the end {load} (of which the benchmark itself is about 1)."
    )


def processor() -> str:
    """The name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict_table(results: Results) -> str:
    """Every promise with what was measured."""
    rows = [[v.promise, v.measured, "yes" if v.holds else "**no**"] for v in verdicts(results)]
    return table(["promise", "measured", "holds"], rows)


def speed_parts(speed: Speed) -> list[str]:
    """The tables of one size of tree."""
    cases = list(speed.warm)
    names = list(next(iter(speed.warm.values())))
    rows = [[name, *(cell(speed.warm[case], name) for case in cases)] for name in names]
    rounds = len(next(iter(speed.warm[cases[0]].values())).seconds)
    parts = [
        f"## {speed.files:,} files",
        table([f"{rounds} rounds", *cases], rows),
    ]
    if speed.first_new:
        parts += [
            FIRST.format(speed.files),
            first_table(speed),
        ]
    if speed.turns:
        parts += [TURNS.format(speed.turns), disk_table(speed)]
    return parts


def cell(times: Times, name: str, git: str = GIT) -> str:
    """One contender in one case."""
    series = times[name]
    return f"{ms(series.median)} ({ms(series.p90)}) {series.median / times[git].median:.2f} x"


def ms(seconds: float) -> str:
    """Milliseconds with a sensible number of digits."""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def first_table(speed: Speed) -> str:
    """First checkpoints, against git's."""
    git = speed.first_new[GIT].median
    names = dict.fromkeys([*speed.first_new, *speed.first_held])
    rows = []
    for name in names:
        borrows = name in speed.first_held and name not in speed.first_new
        row = [name + (" *" if borrows else "")]
        row += [first_cell(times.get(name), git) for times in (speed.first_new, speed.first_held)]
        rows.append(row)
    return table(["first", "not held", "held by the user's packs"], rows)


def first_cell(series: Series | None, git: float) -> str:
    """One contender's first checkpoints."""
    if series is None:
        return "-"
    worst, count = ms(series.p90), len(series.seconds)
    return f"{ms(series.median)} ({worst}) {series.median / git:.2f} x [{count}]"


def disk_table(speed: Speed) -> str:
    """What all turns together added to each store."""
    ordered = sorted(speed.disk.items(), key=lambda item: item[1])
    rows = [
        [name, f"{added / (1 << 20):.1f} MiB", f"{added / 1024 / speed.turns:.0f} KiB"]
        for name, added in ordered
    ]
    return table(["store", "added", "per turn"], rows)


def cold_table(results: Results) -> str:
    """Whole processes."""
    cold = results.cold
    assert cold is not None
    rows = [
        [name, f"{ms(series.median)} ({ms(series.p90)})"]
        for name, series in (
            ("`python -I -S`, `json` and `sqlite3` imported", cold.python),
            ("`takeback checkpoint`, nothing changed", cold.same),
            ("`takeback checkpoint`, 10 files changed", cold.changed),
        )
    ]
    rows.append(["the stat loop alone, in a warm process", ms(results.cold_scan)])
    return table(["process", "ms"], rows)


def log_tables(log: LogTimes) -> list[str]:
    """Safe points, and looks at the log."""
    points = [[what, f"{ms(s.median)} ({ms(s.p90)})"] for what, s in log.safe_points.items()]
    looks = [
        [f"`{command}`", *(f"{ms(s.median)} ({ms(s.p90)})" for s in by_turns.values())]
        for command, by_turns in log.looks.items()
    ]
    rebuilt = f"`takeback doctor --rebuild` with {MANY:,} turns took {log.rebuild:.1f} s."
    heads = [f"{turns:,} turns" for turns in (FEW, MANY)]
    return [table(["safe point", "ms"], points), table(["process", *heads], looks), rebuilt]


def restore_parts(restores: Restores) -> list[str]:
    """All ways back at one size of tree."""
    head = ["scans", "syncs"]
    for count, times in restores.times.items():
        rounds = len(times[GIT_BACK].seconds)
        head.append(f"{count:,} file{'s' * (count > 1)} [{rounds}]")
    rows = [
        [name, yes(way.scans), yes(way.syncs), *restore_cells(restores, name)]
        for name, way in restores.ways.items()
    ]
    parts = [f"### {restores.files:,} files", table(["", *head], rows)]
    if restores.recovery.seconds:
        series = restores.recovery
        parts.append(
            f"A process that finds 1,000 files half taken back by one that was killed needs "
            f"{ms(series.median)} ({ms(max(series.seconds))}) ms to bring back what was before."
        )
    if restores.merges:
        rows = [[what, f"{ms(s.median)} ({ms(s.p90)})"] for what, s in restores.merges.items()]
        parts.append(table(["undo of 10 files, warm", "ms"], rows))
    return parts


def restore_cells(restores: Restores, name: str) -> list[str]:
    """One contender with each number of files."""
    return [
        cell(times, name, GIT_BACK) if name in times else "-" for times in restores.times.values()
    ]


def yes(is_so: bool) -> str:
    """A word for a table."""
    return "yes" if is_so else "no"
