"""How well relapses are recognized, on labelled pairs: precision, recall, and per kind.

    scripts/relapse_figures.py tests/lessons/pairs_own.jsonl [MORE.jsonl …]

Each line of a file is a JSON object: `language`, `before` (a file before a turn), `taken` (after
it; the turn was taken back), `later` (after a later turn), `relapse` and `kind`.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from takeback.lessons import likeness

Z = 1.96
"""For 95 %."""


def interval(right: int, total: int) -> str:
    """A share with its Wilson interval."""
    if not total:
        return "none"
    share = right / total
    middle = (share + Z * Z / (2 * total)) / (1 + Z * Z / total)
    spread = share * (1 - share) / total + Z * Z / (4 * total * total)
    half = Z / (1 + Z * Z / total) * math.sqrt(spread)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return f"{share:.3f}  ({right} of {total}; 95 %: {low:.3f} to {high:.3f})"


def measured(pair: "dict[str, Any]") -> likeness.Likeness:
    """What is made of a pair."""
    texts = (str(pair[name]).encode() for name in ("before", "taken", "later"))
    return likeness.relapse(*texts)


def figures(pairs: "list[dict[str, Any]]") -> "dict[str, tuple[int, int]]":
    """(right, total) of precision, of recall, and of each kind and language."""
    found: dict[str, list[bool]] = defaultdict(list)
    for pair in pairs:
        is_relapse, said = bool(pair["relapse"]), measured(pair).is_relapse
        if said:
            found["precision"].append(is_relapse)
        if is_relapse:
            found["recall"].append(said)
        label = "relapse" if is_relapse else "none"
        found[f"kind: {pair['kind']} ({label})"].append(said == is_relapse)
        found[f"language: {pair['language']}"].append(said == is_relapse)
    return {name: (sum(each), len(each)) for name, each in sorted(found.items())}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--wrong", action="store_true", help="print what is judged wrongly")
    given = parser.parse_args()
    pairs = [json.loads(line) for file in given.files for line in file.read_text().splitlines()]
    found = figures(pairs)
    width = max(map(len, found))
    for name in ("precision", "recall", *(name for name in found if ":" in name)):
        print(f"{name:<{width}}  {interval(*found.get(name, (0, 0)))}")
    for number, pair in enumerate(pairs if given.wrong else ()):
        said = measured(pair)
        if said.is_relapse != bool(pair["relapse"]):
            print(f"\n{number}: {pair['kind']}, {pair['language']}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
