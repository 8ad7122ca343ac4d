"""Starts `takeback gc` behind the scenes: a process of its own, which nobody waits for.

It is a new process and no copy of this one, whose open ledger and threads no copy could use. Its
parent, a shell, ends at once, so that the program that we are part of never hears of it; it has
none of our files open, a session of its own, and others go before it.
"""

import sys

_START = (
    'TAKEBACK_HOME=$1; export TAKEBACK_HOME; shift; nice -n 10 "$@" </dev/null >/dev/null 2>&1 &'
)
_LONGEST = 5.0


def start(root: bytes, home: bytes) -> bool:
    """Begin to put the store of a project in order; whether that began."""
    if not sys.executable:
        return False
    from subprocess import DEVNULL, Popen, TimeoutExpired

    command: list[str | bytes] = [sys.executable, "-I", *_ours(), "-C", root, "gc"]
    try:
        shell = Popen(  # noqa: S603 -- our own program
            ["/bin/sh", "-c", _START, "takeback", home, *command],
            cwd="/",
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
        return shell.wait(_LONGEST) == 0
    except (OSError, TimeoutExpired):
        return False


def _ours() -> "list[str]":
    """How Python finds this program: as it found it this time."""
    if sys.flags.no_site:
        return ["-S", __file__.removesuffix("tending.py") + "__main__.py"]
    return ["-m", "takeback"]
