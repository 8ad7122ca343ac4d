"""Faults below the one door: at every system call, also those that SQLite makes by itself.

`strace` kills the program when it is about to make its n-th call of a kind, or lets that call fail.
The program is a fresh interpreter. It ends without tidying up, as a killed one would, so that also
a ledger is judged whose last write failed and which nobody closed.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import takeback
from faults.children import Ended
from faults.harness import Theatre

TRACER = shutil.which("strace")

KILLED_AT = (
    "write pwrite64 fsync fdatasync ftruncate rename unlink mkdir fchmod utimensat flock "
    "renameat2 unlinkat mkdirat symlinkat fchmodat syncfs"
).split()
FAILING = {
    "write": ("ENOSPC", "EIO"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fsync": ("EIO",),
    "fdatasync": ("EIO",),
    "ftruncate": ("EIO",),
    "rename": ("ENOSPC", "EACCES"),
    "renameat2": ("ENOSPC", "EACCES"),
    "unlinkat": ("EIO",),
    "mkdirat": ("ENOSPC",),
    "symlinkat": ("ENOSPC",),
    "syncfs": ("EIO",),
}

_PROGRAM = """
import json, os, sys
sys.dont_write_bytecode = True  # else the calls differ the first time
sys.path[:0] = [{source!r}, {tests!r}]
sys.path.append({packages!r})
from takeback.errors import TakebackError
from takeback.project import Project

def tell(**word):
    try:
        os.write(1, json.dumps(word).encode() + b"\\n")
    except OSError:
        pass

try:
    project = Project.open({tree!r}, home={home!r})
    {work}
    if {close}:
        project.close()
except TakebackError as problem:
    tell(refused=str(problem))
except BaseException as problem:
    tell(broken="not one of our errors: " + repr(problem))
os._exit(0)
"""


class Call(NamedTuple):
    """The n-th system call of a kind, and what happens to it."""

    name: str
    number: int
    fate: str
    """`KILL` or the name of an error."""

    def __str__(self) -> str:
        return f"{self.name} number {self.number}: {self.fate}"

    @property
    def injection(self) -> str:
        """What to tell strace."""
        how = "signal=KILL" if self.fate == "KILL" else f"error={self.fate}"
        return f"inject={self.name}:{how}:when={self.number}"


def calls(theatre: Theatre) -> Iterator[Call]:
    """Every system call that changes something, with each of its fates."""
    counted = _count(theatre)
    for name in KILLED_AT:
        for number in range(1, counted[name] + 1):
            yield Call(name, number, "KILL")
    for name, errors in FAILING.items():
        for number in range(1, counted[name] + 1):
            for error in errors:
                yield Call(name, number, error)


def play(theatre: Theatre, call: Call, *, close: bool) -> list[str]:
    """Let one system call meet its fate; return what is wrong afterwards."""
    theatre.reset()
    trace = ["-o", os.devnull, "-e", f"trace={call.name}", "-e", call.injection]
    done = _run(theatre, trace, close=close)
    said = [json.loads(line) for line in done.stdout.splitlines(keepends=True) if _whole(line)]
    killed = done.returncode == -signal.SIGKILL
    said += [{"fired": str(call)}]
    if done.returncode and not killed:
        said += [{"broken": f"exit {done.returncode}: {done.stderr}"}]
    # What failed after the commit may be told as a failure or not at all: the error is SQLite's.
    return theatre.judged([Ended(said, 0)], "kill" if killed else "syscall")


def _count(theatre: Theatre) -> Counter[str]:
    theatre.reset()
    trace = theatre.tree.parent / "trace"
    names = ",".join(KILLED_AT)
    _run(theatre, ["-o", str(trace), "-e", f"trace={names}"], close=True)
    return Counter(re.findall(r"(\w+)\(", line)[0] for line in trace.read_text().splitlines())


def _run(theatre: Theatre, trace: list[str], *, close: bool) -> subprocess.CompletedProcess[str]:
    source = str(Path(takeback.__file__).parent.parent)
    home, tree = os.fsencode(theatre.home), os.fsencode(theatre.tree)
    given = {"source": source, "tests": str(Path(__file__).parent.parent), "work": theatre.work}
    packages = sysconfig.get_path("platlib")  # libgit2 is there
    program = _PROGRAM.format(**given, packages=packages, tree=tree, home=home, close=close)
    assert TRACER
    command = [TRACER, "-f", "-qq", *trace, os.path.realpath(sys.executable), "-I", "-S", "-B"]
    return subprocess.run([*command, "-c", program], capture_output=True, text=True, check=False)


def _whole(line: str) -> bool:
    return line.endswith("\n")
