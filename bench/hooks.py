"""What hooks cost: whole turns of the real clients, and single events of the installed command.

`bench/run --only hooks` measures it and writes docs/contributing/benchmarks-hooks.md.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import trees
from footprint import MAIN
from hookturns import ALONE, EVENTS, HELPED, NOTHING, WAYS, WITHOUT
from report import machine, table
from timing import Series
from yardstick import Yardstick

from takeback.hooks.command import SCRIPT, line, script

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs/contributing/benchmarks-hooks.md"
SIZES = (1_000, 10_000)
LONGEST_HELPED = 0.025
STARTS = 3
SKIPPED = 77
ABOUT = """\
Written by `bench/run --only hooks`; do not edit. Times are milliseconds, medians (90th
percentile in brackets)."""
TURNS = """\
A real client, offline, whose model answers at once: {calls} shell calls in one turn, each writes
one file. Timed from the first answer of the model to the last, {rounds} turns each, in turns. An
event is one hook: three for each call in Claude Code (before, after, batch), two in Codex. What is
added includes what the client itself takes to call a hook and to start its shell: hooks whose
command is `true` show how much that is."""
PROMISED = """\
Turns of the real clients, as below. A hook that only starts Python, and the scan of the tree, are
measured between them, for the machine is not as fast in each minute."""
SINGLE = """\
The installed command line, one event at a time, by `sh` as agents run it, with and without the
resident helper; and what bounds it: a hook
that only starts Python and imports `json` and `sqlite3`. The scan of the tree that each safe
point needs is beside it."""


def main(command: str, work: Path, *, quick: bool) -> str:
    """Measure, and write the page."""
    began = time.monotonic()
    rounds, calls = (2, 4) if quick else (7, 20)
    parts = ["# What hooks cost", ABOUT]
    single = []
    for files in SIZES:
        single += events(work / str(files), files, 5 if quick else 25)
    turns = real_turns(rounds, calls)
    parts += [machine(command, time.monotonic() - began)]
    parts += ["## Promised and measured", PROMISED, verdicts(turns)]
    parts += ["## Turns of the real clients", TURNS.format(calls=calls, rounds=rounds)]
    parts += [turn_table(turns) if turns else "The clients could not be run here."]
    head = ["", "1 event alone", "with the helper", "a hook that only starts", "scan"]
    parts += ["## Single events", SINGLE, table(head, single)]
    return "\n\n".join(parts) + "\n"


# -- turns of the real clients -------------------------------------------------------------------


def real_turns(rounds: int, calls: int) -> list[dict[str, object]]:
    """What `hookturns.py` measured, offline."""
    run = [str(HERE.parent / "scripts/run_clients.py"), "claude-code", "codex"]
    program = [*run, "--program", str(HERE / "hookturns.py")]
    sizes = [str(size) for size in SIZES]
    command = [sys.executable, "-I", *program, str(rounds), str(calls), *sizes]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == SKIPPED:
        return []
    if done.returncode:
        sys.exit("bench: the turns of the real clients failed")
    return [json.loads(line) for line in done.stdout.splitlines()]


def added(turn: dict, name: str) -> float:
    """Seconds that one event adds."""
    took = turn["took"]
    events = EVENTS[turn["client"]] * turn["calls"]
    return (statistics.median(took[name]) - statistics.median(took[WITHOUT])) / events


def turn_table(turns: list[dict]) -> str:
    """Whole turns, and what one event adds to them."""
    head = ["", *(f"{name}, a turn" for name in WAYS)]
    head += [f"one event adds {name}" for name in WAYS[1:]]
    rows = []
    for turn in turns:
        whole = [shown(Series(turn["took"][name])) for name in WAYS]
        adds = [f"{1000 * added(turn, name):.1f}" for name in WAYS[1:]]
        rows.append([f"{turn['client']}, {turn['files']:,} files", *whole, *adds])
    return table(head, rows)


def verdicts(turns: list[dict]) -> str:
    """The promises."""
    rows = []
    for turn in turns:
        most = {ALONE: STARTS * turn["start"], HELPED: LONGEST_HELPED}
        said = {ALONE: f"{STARTS} x a hook that only starts", HELPED: "25 ms"}
        for name, limit in most.items():
            took = added(turn, name)
            what = f"{turn['client']}, {turn['files']:,} files, {name}: ≤ {said[name]}"
            verdict = "yes" if took <= limit else "NO"
            seconds = (took, added(turn, NOTHING), turn["start"], turn["scan"], limit)
            rows.append([what, *(f"{1000 * each:.1f}" for each in seconds), verdict])
    head = [
        "one event adds",
        "measured",
        "of it the client's own",
        "a hook that only starts",
        "scan",
    ]
    return table([*head, "at most", "holds"], rows)


# -- single events -------------------------------------------------------------------------------


def events(work: Path, files: int, rounds: int) -> list[list[str]]:
    """One row for each kind of event."""
    tree = trees.make(work / "tree", files)
    yardstick = Yardstick(tree.path, work / "warm")
    took = {helper: one_way(tree, work, helper, rounds, yardstick) for helper in ("0", "1")}
    yardstick.close()
    rows = []
    for name, alone in took["0"].items():
        compared = (alone, took["1"][name], yardstick.starts, yardstick.scans)
        rows.append([f"{files:,} files, {name}", *map(shown, compared)])
    return rows


def one_way(
    tree: trees.Tree, work: Path, helper: str, rounds: int, yardstick: Yardstick
) -> dict[str, Series]:
    """Turns with one call of a tool each, told by the command itself."""
    took: dict[str, Series] = {}
    environment = {
        **os.environ,
        "TAKEBACK_HOME": str(work / f"home{helper}"),
        "TAKEBACK_HELPER": helper,
    }
    for number in range(rounds + 1):
        yardstick.measure()
        call = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": f"T{number}"}
        said = {"session_id": "S", "cwd": str(tree.path), "prompt_id": f"P{number}"}
        for event, more in (
            ("UserPromptSubmit", {"prompt": "go"}),
            ("PreToolUse", call),
            ("PostToolUse", {**call, "tool_response": ""}),
            ("PostToolBatch", {"tool_calls": []}),
            ("Stop", {}),
        ):
            if event == "PostToolUse":
                tree.edit(1)
            seconds = tell({**said, "hook_event_name": event, **more}, environment)
            if number:
                took.setdefault(event, Series()).seconds.append(seconds)
    return took


def tell(payload: dict[str, object], environment: dict[str, str]) -> float:
    """One event, by the command line that is installed."""
    file = Path(environment["TAKEBACK_HOME"]).with_name(SCRIPT)
    if not file.exists():
        file.write_text(script(sys.executable, str(MAIN)))
    program = ["/bin/sh", "-c", line(str(file))]
    data = json.dumps(payload).encode()
    began = time.perf_counter()
    subprocess.run(program, input=data, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


def shown(series: Series) -> str:
    """A median, and the 90th percentile."""
    return f"{1000 * series.median:.1f} ({1000 * series.p90:.1f})"
