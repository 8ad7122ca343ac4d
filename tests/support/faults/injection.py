"""The faults, and the hook that strikes with one of them at a chosen step.

kill       SIGKILL before the step
torn       half of the bytes are written, then SIGKILL
ENOSPC     the step fails because the disk is full, once
full       from this step on the disk is full: nothing can grow, everything else works
EIO        the step fails because the disk is broken, once
broken     from this step on everything fails, but giving up a transaction
EACCES     the step is not allowed, once
half       half of the bytes are written, then ENOSPC
short      the kernel takes one byte first, which is no error
interrupt  control-C
"""

import errno
import os
import signal
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from faults.children import Tell

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

KILLS = ("kill", "torn")
ERRORS = ("ENOSPC", "EIO", "EACCES", "half", "full")
OTHERS = ("short", "interrupt")
ALL = (*KILLS, *ERRORS, *OTHERS)
LASTING = ("full", "broken")
"""From the step on; what failed cannot be put right by the same process."""
WRITES_ONLY = ("torn", "half", "short")

_GROWS = ("create", "open_or_create", "write", "truncate", "mkdir", "symlink")
_SQLITE_SAYS = {
    "ENOSPC": ("database or disk is full", sqlite3.SQLITE_FULL),
    "EIO": ("disk I/O error", sqlite3.SQLITE_IOERR),
    "EACCES": ("attempt to write a readonly database", sqlite3.SQLITE_READONLY),
}

Hook = Callable[[str, tuple[object, ...]], int | None]


class Strike:
    """A hook that counts the steps and strikes at one of them."""

    def __init__(self, kind: str, at: int, tell: Tell, moment: Callable[[int], None]) -> None:
        self._kind = kind
        self._at = at
        self._tell = tell
        self._moment = moment
        self.steps = 0

    def __call__(self, step: str, args: tuple[object, ...]) -> int | None:
        """Count the step, and strike if it is the one."""
        self.steps += 1
        self._moment(self.steps)
        if self.steps == self._at and self._fits(step):
            self._tell({"fired": f"{step} {_shown(args)}"})
            return self._strike(step)
        if self.steps > self._at:
            self._go_on_striking(step, args)
        return None

    def _go_on_striking(self, step: str, args: tuple[object, ...]) -> None:
        if self._kind == "full":
            self._refuse_growth(step, args)
        elif self._kind == "broken" and args[:1] != ("ROLLBACK",):
            _fail("EIO", step)

    def _fits(self, step: str) -> bool:
        return step == "write" if self._kind in WRITES_ONLY else True

    def _strike(self, step: str) -> int | None:
        if self._kind == "kill":
            die()
        elif self._kind in ("torn", "half"):
            _write_half(self._kind)
        elif self._kind == "short":
            return 1
        elif self._kind == "interrupt":
            raise KeyboardInterrupt
        elif self._kind == "full":
            self._refuse_growth(step, ())
        else:
            _fail("EIO" if self._kind == "broken" else self._kind, step)
        return None

    def _refuse_growth(self, step: str, args: tuple[object, ...]) -> None:
        # Even on a full disk SQLite can give up a transaction.
        if step in _GROWS or (step == "sql" and args[:1] != ("ROLLBACK",)):
            _fail("ENOSPC", step)


class Recorder:
    """A hook that only notes the steps."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[object, ...]]] = []

    def __call__(self, step: str, args: tuple[object, ...]) -> None:
        """Note the step."""
        self.steps.append((step, args))


def die() -> NoReturn:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def _fail(kind: str, step: str) -> NoReturn:
    if step == "sql":
        text, code = _SQLITE_SAYS[kind]
        problem = sqlite3.OperationalError(text)
        problem.sqlite_errorcode = code
        raise problem
    number = getattr(errno, kind)
    raise OSError(number, os.strerror(number))


def _write_half(kind: str) -> None:
    """Let the next write stop half-way. Only ever in a child, which is thrown away."""
    write, pwrite = os.write, os.pwrite

    def stop() -> NoReturn:
        os.write, os.pwrite = write, pwrite
        if kind == "torn":
            die()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_half(fd: int, data: "Buffer", /) -> NoReturn:
        write(fd, _half(data))
        stop()

    def pwrite_half(fd: int, data: "Buffer", offset: int, /) -> NoReturn:
        pwrite(fd, _half(data), offset)
        stop()

    os.write, os.pwrite = write_half, pwrite_half


def _half(data: "Buffer") -> memoryview:
    view = memoryview(data)
    return view[: len(view) // 2]


def _shown(args: tuple[object, ...]) -> str:
    parts = [os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in args]
    return " ".join(part.rpartition("/")[2] for part in parts)
