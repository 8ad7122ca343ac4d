"""The line differ against `difflib`, and what it costs to import either of them, or pygit2.

    .venv/bin/python bench/lines.py [FOLDER WITH PYGIT2]

Prints the rows of the tables in docs/design/0008-line-differ.md.
"""

import difflib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from takeback.model import lines

SOURCE = Path(lines.__file__).parents[2]
STARTS = 15

Text = list[bytes]
Counts = tuple[int, int]


def started(code: str) -> float:
    """Seconds that a Python needs for some code, without its own start."""
    times: list[float] = []
    for program in (code, "pass"):
        taken = []
        for _ in range(STARTS):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
            taken.append(time.perf_counter() - start)
        times.append(statistics.median(taken))
    return times[0] - times[1]


def ours(old: Text, new: Text) -> Counts:
    """Lines added and removed, by our differ."""
    found = lines.blocks(old, new)
    return sum(d - c for _, _, c, d in found), sum(b - a for a, b, _, _ in found)


def by_difflib(old: Text, new: Text) -> Counts:
    """Lines added and removed, by the standard library as it is."""
    matcher = difflib.SequenceMatcher(None, old, new)
    found = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    return sum(op[4] - op[3] for op in found), sum(op[2] - op[1] for op in found)


def shortest(work: Callable[[Text, Text], Counts], old: Text, new: Text) -> float:
    """The best of five runs, in milliseconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work(old, new)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def edited(text: Text, edits: int) -> Text:
    """A text with lines changed, added and removed here and there."""
    made = text[:]
    for _ in range(edits):
        at = random.randrange(len(made))
        made[at : at + random.randrange(2)] = [b"edit %d\n" % at] * random.randrange(2)
    return made


def cases() -> dict[str, tuple[Text, Text]]:
    """The texts that are compared."""
    random.seed(7)
    code = lines.split((SOURCE / "takeback/store/scan.py").read_bytes())
    long = [b"%s %d\n" % (code[n % len(code)].rstrip(), n) for n in range(10_000)]
    objects = [
        line
        for n in range(1200)
        for line in (b"  {\n", b'    "id": %d,\n' % n, b'    "ok": true\n', b"  },\n")
    ]
    table = [b"%d,%d\n" % (random.randrange(5), random.randrange(3)) for _ in range(4000)]
    numbers = [b"%d\n" % n for n in range(100_000)]
    return {
        f"{len(code)} lines of code, 2 edits": (code, edited(code, 2)),
        f"{len(code)} lines of code, 30 edits": (code, edited(code, 30)),
        "10,000 lines, 5 edits": (long, edited(long, 5)),
        "10,000 lines, 500 edits": (long, edited(long, 500)),
        "4,800 lines of JSON, 60 edits": (objects, edited(objects, 60)),
        "4,000 lines of 15 kinds, 100 edits": (table, edited(table, 100)),
        "100,000 lines, all replaced": (numbers, [b"x" + line for line in numbers]),
        "100,000 lines, reversed": (numbers, numbers[::-1]),
    }


def main() -> None:
    """Measure and print."""
    for name, path in (
        ("takeback.model.lines", str(SOURCE)),
        ("difflib", ""),
        *(("pygit2", path) for path in sys.argv[1:]),
    ):
        taken = started(f"import sys; sys.path[:0] = {[path] if path else []!r}; import {name}")
        print(f"| `{name}` | {1000 * taken:.1f} ms |")
    for name, (old, new) in cases().items():
        mine, theirs = ours(old, new), by_difflib(old, new)
        speed = f"{shortest(ours, old, new):.2f} ms | {shortest(by_difflib, old, new):.2f} ms"
        print(f"| {name} | {speed} | +{mine[0]} -{mine[1]} | +{theirs[0]} -{theirs[1]} |")


if __name__ == "__main__":
    main()
