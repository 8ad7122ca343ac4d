"""Who we are, and whether a process that we once knew is still the same and alive."""

import os
import time

_START_FIELD = 19
"""Where `/proc/PID/stat` says when the process started, counted after the program's name."""
_OLDEST = 60 * 1_000_000_000
"""A hook does not wait longer to hear an event: nanoseconds."""


def account() -> str:
    """The account and the host that events are signed with, as `ana@laptop`."""
    import pwd

    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        # Containers run with numbers that no account has.
        name = str(uid)
    return f"{name}@{os.uname().nodename}"


def holder(pid: "int | None" = None) -> str:
    """A process by place, number and start: a later one may get the same number."""
    pid = os.getpid() if pid is None else pid
    return f"{_place()} {pid} {_started(pid)}"


def is_alive(holder: str) -> "bool | None":
    """Whether that process is still there; None if nobody can tell from here."""
    place, *rest = holder.rsplit(" ", 2)
    if len(rest) != 2 or place != _place() or not rest[0].isdecimal():
        return None
    pid, started = int(rest[0]), rest[1]
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        # Gone; or somebody else's by now, which ours never was.
        return False
    return _started(pid) == started


def born(pid: int) -> int:
    """When a process was started, in nanoseconds since 1970; now, where nobody can tell."""
    now, ticks = time.time_ns(), _started(pid)
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None or not ticks.isdecimal():
        return now
    age = time.clock_gettime_ns(clock) - int(ticks) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return now - age if 0 < age < _OLDEST else now


def words(pid: int) -> "list[bytes]":
    """The command line of a process; nothing where the system does not tell."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(1 << 16).split(b"\0")[:-1]
    except OSError:
        return []


def clock_offset() -> int:
    """What the clock shows beyond what has passed since the machine started, in nanoseconds.

    It changes when somebody sets the clock.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.time_ns() - time.clock_gettime_ns(clock)


def _place() -> str:
    """Where the numbers of processes mean what they mean here: the host, and the container.

    A container may have the name of its host, and the same store, but counts its own processes.
    """
    try:
        inside = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return os.uname().nodename
    return f"{os.uname().nodename}:{inside}"


def _started(pid: int) -> str:
    """When a process started, in ticks since the machine did; `dead` if it only waits to be
    buried, `-` where the system does not tell.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read(4096).rpartition(b") ")[2].split(b" ")
    except OSError:
        return "-"
    if after_name[0] in (b"Z", b"X"):
        return "dead"
    return after_name[_START_FIELD].decode() if len(after_name) > _START_FIELD else "-"
