"""Measures Takeback beside git and the agents.

Everything is made in a temporary folder (TMPDIR chooses the disk, of which about 6 GiB are
needed) and removed. `--quick` leaves out what takes long, `--only` all but one part; both write to
no file unless told. `--only year` plays a year of turns and writes a page of its own. `--only
copies` compares an undo of 4,000 files with `cp -a && sync -f`; `--only databases` measures
databases that move with the files. `--against CHECKOUT` compares this Takeback with another one.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import against
import copies
import databases
import footprint
import guard
import hooks
import log
import merges
import report
import restores
import speed
import trees
import year
import yearpage
from contenders import Takeback
from results import Results

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs/contributing/benchmarks.md"
GIB = 1 << 30
NEEDED = 6 * GIB
FULL = {
    1_000: speed.Plan(rounds=21, firsts=5, changes=(10,)),
    10_000: speed.Plan(rounds=11, firsts=5, changes=(10, 1_000), turns=200),
    100_000: speed.Plan(rounds=9, firsts=3, changes=(10,)),
}
QUICK = {
    1_000: speed.Plan(rounds=9, firsts=1, changes=(10,)),
    10_000: speed.Plan(rounds=9, firsts=1, changes=(10,), turns=20),
}
RESTORES = {1_000: (9, 3), 10_000: (7, 3), 100_000: (4, 2)}
"""Rounds with few files taken back and with many, by the number of files in the tree."""
QUICK_RESTORES = {1_000: (5, 1), 10_000: (5, 1)}
RECOVERIES = 3
PARTS = ("checkpoints", "log", "memory", "growth", "restores")
HOOKS = "hooks"
"""On a page of its own, as it needs the real clients; not with the other parts."""
GUARD = "guard"
"""On a page of its own: the same event with the guard and without."""
COPIES = "copies"
"""An undo of thousands of files beside `cp -a && sync -f`; printed, and on no page."""
DATABASES = "databases"
"""Databases that move with the files beside `SELECT 1`; printed, and on no page."""
YEAR = "year"
"""A part with a page of its own, which takes as long as all others together."""
YEAR_PAGE = HERE.parent / "docs/contributing/benchmarks-year.md"


def main() -> int:
    """Measure, print and write the page."""
    arguments = parse()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="takeback-bench-") as folder:
        work = Path(folder)
        if shutil.disk_usage(work).free < NEEDED:
            print(f"bench: {work} has less than 6 GiB free; TMPDIR names another place")
            return 1
        if arguments.only == [YEAR]:
            return measure_year(work, arguments, began)
        for name, part in ((HOOKS, hooks), (GUARD, guard)):
            if arguments.only == [name]:
                return measure_page(work, arguments, part)
        if arguments.against is not None or arguments.only in ([COPIES], [DATABASES]):
            return measure_printed(work, arguments, began)
        results = measure(work, quick=arguments.quick, parts=arguments.only or PARTS)
    command = " ".join(["bench/run", *sys.argv[1:]])
    page = report.render(results, command, time.monotonic() - began)
    print(page)
    is_whole = not (arguments.quick or arguments.only)
    output = arguments.output or (PAGE if is_whole else None)
    if output is not None:
        output.write_text(page)
    return 0


def measure_year(work: Path, arguments: argparse.Namespace, began: float) -> int:
    """Play a year of turns, print and write its page."""
    plans = year.QUICK if arguments.quick else year.FULL
    years = [year.measure(work / f"year{n}", plan, say) for n, plan in enumerate(plans)]
    command = " ".join(["bench/run", *sys.argv[1:]])
    page = yearpage.render(years, report.machine(command, time.monotonic() - began))
    print(page)
    output = arguments.output or (None if arguments.quick else YEAR_PAGE)
    if output is not None:
        output.write_text(page)
    return 0


def measure_printed(work: Path, arguments: argparse.Namespace, began: float) -> int:
    """Measure what is only printed."""
    if arguments.against is not None:
        found = measure_against(work, arguments)
    elif arguments.only == [COPIES]:
        tree = trees.make(work / "tree", copies.FILES)
        found = copies.render(copies.measure(tree, work / "copies", 3 if arguments.quick else 9))
    else:
        found = databases.render(databases.measure(work / "databases", quick=arguments.quick))
    command = " ".join(["bench/run", *sys.argv[1:]])
    page = "\n\n".join((report.machine(command, time.monotonic() - began), found))
    print(page)
    if arguments.output is not None:
        arguments.output.write_text(page + "\n")
    return 0


def measure_against(work: Path, arguments: argparse.Namespace) -> str:
    """Compare this checkout with another one."""
    cases = {}
    for files, plan in (QUICK if arguments.quick else FULL).items():
        say(f"{files:,} files")
        tree = trees.make(work / f"tree{files}", files)
        cases[files] = against.measure(tree, arguments.against, work / "against", plan.rounds)
        shutil.rmtree(tree.path)
    return against.render(cases)


def measure_page(work: Path, arguments: argparse.Namespace, part: ModuleType) -> int:
    """Measure a part that has a page of its own, and write that."""
    command = " ".join(["bench/run", *sys.argv[1:]])
    page = part.main(command, work, quick=arguments.quick)
    print(page)
    output = arguments.output or (None if arguments.quick else part.PAGE)
    if output is not None:
        output.write_text(page)
    return 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 and 10,000 files only")
    parser.add_argument(
        "--only",
        action="append",
        choices=(*PARTS, YEAR, HOOKS, GUARD, COPIES, DATABASES),
        help="this part; may be repeated",
    )
    parser.add_argument("--against", type=Path, help="another checkout that is set up")
    parser.add_argument("--output", type=Path, help="where the page is written")
    return parser.parse_args()


def measure(work: Path, *, quick: bool, parts: Sequence[str]) -> Results:
    """Take all measurements."""
    results = Results()
    for files, plan in (QUICK if quick else FULL).items():
        say(f"{files:,} files: making the tree")
        tree = trees.make(work / f"tree{files}", files)
        if "restores" in parts:
            # First, as they leave the tree as it was.
            measure_restores(results, tree, work, quick=quick)
        if "checkpoints" in parts:
            say(f"{files:,} files: speed")
            lister = compile_lister(work)
            results.speeds.append(speed.measure(tree, work / "stores", lister, plan))
            if files == 1_000:
                measure_start(results, tree, work)
        if "log" in parts and files == 1_000:
            say("the log")
            results.log = log.measure(tree, work / "log", 9 if quick else 21)
        if "memory" in parts and files == 100_000:
            measure_memory(results, tree, work)
        shutil.rmtree(tree.path)
    if "growth" in parts:
        measure_growth(results, work, 100 if quick else 2000)
    return results


def measure_restores(results: Results, tree: trees.Tree, work: Path, *, quick: bool) -> None:
    """Time the ways back, and what comes after a crash on one of them."""
    files = len(tree.files)
    say(f"{files:,} files: taking back")
    few, many = (QUICK_RESTORES if quick else RESTORES)[files]
    found = restores.measure(tree, work / "restores", few, many)
    if files == 10_000:
        say("recovery")
        found.recovery = restores.measure_recovery(tree, work / "recovery", RECOVERIES)
        say("merging")
        found.merges = merges.measure(tree, work / "merges", few)
    results.restores.append(found)


def measure_start(results: Results, tree: trees.Tree, work: Path) -> None:
    """Time whole processes, and the scan that each of them has to do."""
    say("start of a process")
    results.cold = footprint.cold_start(tree, work / "cold", 15)
    warm = Takeback(tree.path, work / "warm")
    warm.first()
    results.cold_scan = statistics.median(warm.scan() for _ in range(15))
    warm.close()
    shutil.rmtree(work / "warm")


def measure_memory(results: Results, tree: trees.Tree, work: Path) -> None:
    """Watch the memory of single checkpoints."""
    say("memory")
    home, memory = work / "home", results.memory
    memory["100,000 files, first"] = footprint.memory_of_checkpoint(tree.path, home)
    memory["100,000 files, nothing changed"] = footprint.memory_of_checkpoint(tree.path, home)
    shutil.rmtree(home)
    sparse = footprint.memory_of_large_file(work / "big", 4 * GIB, sparse=True)
    memory["one sparse file of 4 GiB"] = sparse
    memory["one file of 1 GiB"] = footprint.memory_of_large_file(work / "big", GIB, sparse=False)


def measure_growth(results: Results, work: Path, count: int) -> None:
    """Count what each checkpoint of a long row costs."""
    say(f"{count:,} checkpoints in a row")
    tree = work / "row"
    for number in range(200):
        trees.write_file(tree / f"part{number % 20}/file{number}.txt", b"a line of text\n" * 200)
    command = [
        sys.executable,
        "-I",
        str(HERE / "growth.py"),
        str(tree),
        str(work / "rows"),
        str(count),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results.growth = [json.loads(line) for line in done.stdout.splitlines()]


def compile_lister(work: Path) -> Path:
    """Compile the C program."""
    program = work / "lister"
    subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "lister.c")], check=True)
    return program


def say(what: str) -> None:
    """Tell the person who waits."""
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
