"""What single checkpoints of a long row cost.

    growth.py TREE HOME COUNT

Edits ten files to other content of the same size before each of COUNT checkpoints in one process,
and prints a line of JSON for each checkpoint: read and write calls and bytes as the kernel counts
them, the steps that changed the disk, and the files in the store afterwards. Around each
checkpoint it looks for a file that is not there, by which a trace of its system calls can be cut.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import takeback
from takeback.disk import operations

MARK = "/takeback-growth-"
EDITED = 10


def main() -> None:
    """Take the checkpoints."""
    tree, home, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    files = sorted(path for path in tree.rglob("*") if path.is_file())[:EDITED]
    steps: Counter[str] = Counter()
    operations.hook = lambda step, _: steps.update([step])
    with takeback.open(tree, home=home) as project:
        for number in range(1, count + 1):
            for path in files:
                text = f"{number:09d} {path.name}\n".encode()
                path.write_bytes((text * 100)[: path.stat().st_size])
            steps.clear()
            before = kernel_counts()
            Path(f"{MARK}begin-{number}").exists()
            made = project.checkpoint()
            Path(f"{MARK}end-{number}").exists()
            after = kernel_counts()
            assert made.new
            said = {key: after[key] - before[key] for key in after}
            said |= {"number": number, "steps": sum(steps.values())}
            said["files"] = count_files(home)
            print(json.dumps(said))


def kernel_counts() -> dict[str, int]:
    """The read and write calls of this process so far, and their bytes."""
    lines = Path("/proc/self/io").read_text().splitlines()
    counts = {key: int(value) for key, value in (line.split(": ") for line in lines)}
    return {key: counts[key] for key in ("syscr", "syscw", "rchar", "wchar")}


def count_files(home: Path) -> int:
    """How many files the stores have."""
    return sum(len(names) for _, _, names in os.walk(home))


if __name__ == "__main__":
    main()
