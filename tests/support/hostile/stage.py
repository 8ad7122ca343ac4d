"""Where a case is played: with whose rights, in which world, and for how long."""

import ctypes
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from hostile.ground import PLAIN_USER

_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
_PRIVATE = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC
_PATIENCE = 6
_LIMITS = ((resource.RLIMIT_NOFILE, 200), (resource.RLIMIT_FSIZE, 6 << 30))


def in_child(play: Callable[[], None], *, plain: bool = False, mounts: bool = False) -> int:
    """Run `play` in a process of its own; return the growth of its memory in bytes.

    With `plain` it has no rights but those of an ordinary user; with `mounts` its mounts are
    its own and end with it. What it raises is raised here again, as text.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = _play(play, writer, plain, mounts)
        os._exit(status)
    os.close(writer)
    with open(reader, "rb") as report:
        words = report.read().decode("utf-8", "replace")
    _, status, used = os.wait4(child, 0)
    if status:
        raise AssertionError(f"in a child process (status {status}):\n{words}")
    return max(0, used.ru_maxrss - before) * 1024


def _play(play: Callable[[], None], writer: int, plain: bool, mounts: bool) -> int:
    try:
        if mounts:
            _own_mounts()
        if plain:
            os.setgroups([])
            os.setgid(PLAIN_USER)
            os.setuid(PLAIN_USER)
        play()
    except BaseException:
        os.write(writer, traceback.format_exc().encode("utf-8", "backslashreplace"))
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _own_mounts() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        raise OSError(ctypes.get_errno(), "a mount namespace of its own")


class TooSlow(BaseException):
    """Time is up. No error that anybody catches on the way."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Let something take so many seconds of work, and wait for the disk a few times as long.

    Meanwhile it has few descriptors, and can write no file without end.
    """

    def too_late(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"not done within {seconds} s")

    before = [(which, signal.signal(which, too_late)) for which in (signal.SIGPROF, signal.SIGALRM)]
    limits = [(which, resource.getrlimit(which)) for which, _ in _LIMITS]
    already = len(os.listdir("/dev/fd"))  # by tests before this one
    for which, most in _LIMITS:
        more = already if which == resource.RLIMIT_NOFILE else 0
        resource.setrlimit(which, (most + more, resource.getrlimit(which)[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for which, handler in before:
            signal.signal(which, handler)
        for which, limit in limits:
            resource.setrlimit(which, limit)
