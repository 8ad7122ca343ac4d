"""What the guard costs: the same event with it and without, in alternated pairs, by the helper.

`bench/run --only guard` measures it and writes docs/contributing/benchmarks-guard.md.
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
from report import machine, table
from timing import Series

from takeback.hooks.command import SCRIPT, line, script

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs/contributing/benchmarks-guard.md"
FILES = 1_000
MOST = 1.5
MODES = ("off", "watch", "autopilot")
ABOUT = """\
Written by `bench/run --only guard`; do not edit. Times are milliseconds, medians (90th percentile
in brackets) of events before a tool, through the resident helper, by the installed command line.
Each round measures the same event with the guard off, in `watch` and in `autopilot`, one after the
other, in another order each time. The tree has {files:,} files. *times* is the median of the
quotients of a round and the event with the guard off; promised: at most {most}."""
CALLS = (
    ("read a file", "Read", {"file_path": "a"}),
    ("edit a file", "Write", {"file_path": "a", "content": "x"}),
    ("ls", "Bash", {"command": "ls -la src"}),
    ("make", "Bash", {"command": "make test"}),
    ("a pipeline", "Bash", {"command": "grep -rn todo src | sort | uniq -c | head -20"}),
    ("git status && git diff", "Bash", {"command": "git status && git diff HEAD~1 -- src"}),
    ("python -c", "Bash", {"command": "python3 -c 'print(1)' > out.txt"}),
    ("rm in the tree", "Bash", {"command": "rm -f no-such-file.txt"}),
)


def main(command: str, work: Path, *, quick: bool) -> str:
    """Measure, and write the page."""
    began = time.monotonic()
    tree = trees.make(work / "tree", FILES)
    ways = {mode: _Way(work, mode, tree.path) for mode in MODES}
    rounds = 9 if quick else 41
    rows = []
    for name, tool, given in CALLS:
        took = _pairs(ways, tool, given, rounds)
        off = took["off"].seconds
        times = {
            mode: statistics.median(s / o for s, o in zip(took[mode].seconds, off, strict=True))
            for mode in MODES[1:]
        }
        cells = [f"{1000 * took[mode].median:.1f} ({1000 * took[mode].p90:.1f})" for mode in MODES]
        verdict = "yes" if max(times.values()) <= MOST else "NO"
        rows.append([name, *cells, *(f"{each:.2f}" for each in times.values()), verdict])
    head = ["", *(f"guard `{mode}`" for mode in MODES)]
    head += [f"times, `{mode}`" for mode in MODES[1:]] + ["holds"]
    parts = ["# What the guard costs", ABOUT.format(files=FILES, most=MOST)]
    parts += [machine(command, time.monotonic() - began), table(head, rows)]
    return "\n\n".join(parts) + "\n"


class _Way:
    """A store with a mode of the guard, an agent's turn in it, and a warm helper."""

    def __init__(self, work: Path, mode: str, tree: Path) -> None:
        self._tree = tree
        self._calls = 0
        home = work / f"home-{mode}"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(f'[guard]\nmode = "{mode}"\n')
        self._environment = {
            **os.environ, "TAKEBACK_HOME": str(home), "TAKEBACK_HELPER": "1",
        }  # fmt: skip
        file = home / SCRIPT
        file.write_text(script(sys.executable, str(MAIN)))
        self._program = ["/bin/sh", "-c", line(str(file))]
        self._tell("UserPromptSubmit", prompt="go")

    def call(self, tool: str, given: dict[str, str]) -> float:
        """One call of a tool; the seconds of the event before it."""
        self._calls += 1
        said = {"tool_name": tool, "tool_input": given, "tool_use_id": f"T{self._calls}"}
        took = self._tell("PreToolUse", **said)
        self._tell("PostToolUse", **said, tool_response="")
        return took

    def _tell(self, event: str, **more: object) -> float:
        said = {"session_id": "S", "cwd": str(self._tree), "prompt_id": "P"}
        data = json.dumps({**said, "hook_event_name": event, **more}).encode()
        began = time.perf_counter()
        subprocess.run(
            self._program, input=data, env=self._environment, check=True, capture_output=True
        )
        return time.perf_counter() - began


def _pairs(
    ways: dict[str, _Way], tool: str, given: dict[str, str], rounds: int
) -> dict[str, Series]:
    """The same event in each way, again and again; the first rounds only warm up."""
    took = {mode: Series() for mode in ways}
    modes = list(ways)
    for number in range(rounds + 3):
        for place in range(len(modes)):
            mode = modes[(place + number) % len(modes)]
            seconds = ways[mode].call(tool, given)
            if number >= 3:
                took[mode].seconds.append(seconds)
    return took
