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
_FEW_DESCRIPTORS = 200
_LONGEST_FILE = 6 << 30


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
    """Break off what takes too long or hangs; few descriptors, and no file without end."""

    def too_late(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"not done within {seconds} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, _FEW_DESCRIPTORS), hard))
    size_soft, size_hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LONGEST_FILE, size_hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_soft, size_hard))
