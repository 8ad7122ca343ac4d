"""What a checkpoint takes that is alone in its process: memory, and the start."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from timing import Series
from trees import Tree

ROOT = Path(__file__).resolve().parent.parent
MAIN = ROOT / "src/takeback/__main__.py"
ONCE = """
import sys, takeback
takeback.open(sys.argv[1], home=sys.argv[2]).checkpoint()
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
"""Prints its peak in KiB. What `wait4` says would be at least what the benchmark itself uses."""
MIB = 1 << 20


class Memory:
    """The peak of one process, and of it together with the copies it forked, in bytes."""

    def __init__(self, largest: int, together: int) -> None:
        self.largest = largest
        self.together = together


def memory_of_checkpoint(tree: Path, home: Path) -> Memory:
    """Take one checkpoint in a process of its own and watch its memory."""
    home.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-I", "-c", ONCE, str(tree), str(home)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = _Watch(process.pid)
    watch.start()
    said, _ = process.communicate()
    watch.join()
    if process.returncode:
        raise RuntimeError(f"a checkpoint of {tree} ended with {process.returncode}")
    largest = int(said) * 1024
    return Memory(largest, max(largest, watch.peak))


class _Watch(threading.Thread):
    """Adds up the memory of a process and its children; pages they share count once."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid
        self.peak = 0

    def run(self) -> None:
        """Look every now and then."""
        while (now := proportional(self._pid)) is not None:
            self.peak = max(self.peak, now)
            time.sleep(0.02)


def proportional(pid: int) -> int | None:
    """The memory of a process and its children; None when it has ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        total = 0
        for each in (str(pid), *children):
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, IndexError):
        return None if not Path(f"/proc/{pid}/smaps_rollup").exists() or is_zombie(pid) else 0
    return total * 1024


def is_zombie(pid: int) -> bool:
    """Whether a process has ended and waits for its parent."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def memory_of_large_file(work: Path, size: int, *, sparse: bool) -> Memory:
    """Capture one large file, with limits raised to let it in."""
    tree, home = work / "large", work / "home"
    tree.mkdir(parents=True)
    home.mkdir(mode=0o700)
    try:
        (home / "config.toml").write_text(f"[limits]\nfile = {2 * size}\n")
        with (tree / "file").open("wb") as file:
            if sparse:
                file.truncate(size)
            else:
                block = os.urandom(MIB)
                for _ in range(size // MIB):
                    file.write(block)
        return memory_of_checkpoint(tree, home)
    finally:
        shutil.rmtree(work)


class ColdStart:
    """Seconds from the start of a process to its end."""

    def __init__(self) -> None:
        self.python = Series()
        self.same = Series()
        self.changed = Series()


def cold_start(tree: Tree, work: Path, rounds: int) -> ColdStart:
    """Time `takeback checkpoint` as `./takeback` starts it, beside a Python that only imports."""
    times = ColdStart()
    work.mkdir(mode=0o700)
    python = str(Path(sys.executable).resolve())
    nothing = [python, "-I", "-S", "-c", "import json, sqlite3"]
    checkpoint = [python, "-I", "-S", str(MAIN), "-C", str(tree.path), "checkpoint"]
    environment = {**os.environ, "TAKEBACK_HOME": str(work)}
    try:
        for _ in range(2):
            timed(checkpoint, environment)
            tree.edit(0)
        for _ in range(rounds):
            times.python.seconds.append(timed(nothing, environment))
            times.same.seconds.append(timed(checkpoint, environment))
            tree.edit(10)
            times.changed.seconds.append(timed(checkpoint, environment))
            tree.edit(0)
            timed(checkpoint, environment)
    finally:
        shutil.rmtree(work)
    return times


def timed(command: list[str], environment: dict[str, str]) -> float:
    """How long a command takes, which must succeed."""
    before = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - before
