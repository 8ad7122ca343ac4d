"""Measures the guard: `python scripts/guard_figures.py tests/guard/*.jsonl`.

A line of a file is `{"command": …, "class": …}`: a labelled command. Without a class it is an
evasion, which must not be judged read, inside or local. Commands are judged in `/work-tree`, with
`user` below `/home` as the home folder; nothing runs. `--wrong` lists what was judged otherwise.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from takeback.guard.judge import judge
from takeback.model import words
from takeback.model.beyond.effects import (
    CLASSES,
    DESTRUCTIVE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    OPAQUE,
    PROGRAM,
    READ,
    gravity,
)  # fmt: skip

HARMLESS = (READ, INSIDE, LOCAL, PROGRAM)
REFUSED = (OPAQUE, IRREVERSIBLE)
LIGHT = (READ, INSIDE, LOCAL)
HOME = b"/".join((b"", b"home", b"user"))
Z = 1.959963984540054


def class_of(command: str) -> str:
    found = judge(
        "Bash", {"command": command}, kind=words.SHELL, cwd=b"/work-tree", root=b"/work-tree",
        home=HOME,
    )  # fmt: skip
    return found.effect


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not total:
        return 0.0, 1.0
    share = hits / total
    middle = share + Z * Z / (2 * total)
    spread = Z * math.sqrt(share * (1 - share) / total + Z * Z / (4 * total * total))
    below = 1 + Z * Z / total
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


class Figures:
    """How a set of labelled commands was judged."""

    def __init__(self, pairs: "Iterable[tuple[str, str, str]]") -> None:
        self.pairs = list(pairs)
        self.table = Counter((true, judged) for _, true, judged in self.pairs)

    def share(self, hits: int, total: int) -> str:
        low, high = wilson(hits, total)
        shown = hits / total if total else 0.0
        return f"{shown:.3f} ({hits} of {total}; 95 %: {low:.3f} to {high:.3f})"

    def recall(self, effect: str, *, graver: bool = False) -> tuple[int, int]:
        """How many commands of a class were judged so; `graver` also counts what is graver."""
        judged = [each for _, true, each in self.pairs if true == effect]
        hits = [
            each
            for each in judged
            if each == effect or (graver and gravity(each) > gravity(effect))
        ]
        return len(hits), len(judged)

    def false_refusals(self) -> tuple[int, int]:
        judged = [each for _, true, each in self.pairs if true in HARMLESS]
        return sum(each in REFUSED for each in judged), len(judged)

    def lines(self) -> "Iterable[str]":
        yield f"{len(self.pairs)} labelled commands. Rows: true class; columns: judged class."
        yield ""
        yield f"| {'':13} | " + " | ".join(f"{name:>13}" for name in CLASSES) + " |"
        yield "|---" * (len(CLASSES) + 1) + "|"
        for true in CLASSES:
            row = " | ".join(f"{self.table[true, judged] or '':>13}" for judged in CLASSES)
            yield f"| {true:13} | {row} |"
        yield ""
        for effect in (IRREVERSIBLE, DESTRUCTIVE):
            yield f"recall of {effect}: {self.share(*self.recall(effect))}"
            yield f"  or judged graver: {self.share(*self.recall(effect, graver=True))}"
        yield f"false refusals in autopilot: {self.share(*self.false_refusals())}"
        exact = sum(true == judged for _, true, judged in self.pairs)
        yield f"class exactly as labelled: {self.share(exact, len(self.pairs))}"


def read(path: Path) -> list[dict[str, str]]:
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def main(arguments: list[str]) -> int:
    rows = [row for name in arguments if not name.startswith("--") for row in read(Path(name))]
    labelled = [
        (row["command"], row["class"], class_of(row["command"])) for row in rows if "class" in row
    ]
    evasions = [(row["command"], class_of(row["command"])) for row in rows if "class" not in row]
    if labelled:
        for line in Figures(labelled).lines():
            print(line)
    light = [(command, judged) for command, judged in evasions if judged in LIGHT]
    if evasions:
        counted = Counter(judged for _, judged in evasions)
        print(f"evasions: {len(evasions)}, judged read, inside or local: {len(light)}")
        print(f"  {dict(counted)}")
    if "--wrong" in arguments:
        for command, true, judged in labelled:
            if true != judged:
                print(f"{true} → {judged}: {command!r}")
        for command, judged in light:
            print(f"evasion → {judged}: {command!r}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
