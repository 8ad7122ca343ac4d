"""Who we are, and whether a process that we once knew is still the same and alive."""

import os

_START_FIELD = 19
"""Where `/proc/PID/stat` says when the process started, counted after the program's name."""


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
    """A process by host, number and start: a later one may get the same number."""
    pid = os.getpid() if pid is None else pid
    return f"{os.uname().nodename} {pid} {_started(pid)}"


def is_alive(holder: str) -> "bool | None":
    """Whether that process is still there; None if nobody can tell from here."""
    host, *rest = holder.rsplit(" ", 2)
    if len(rest) != 2 or host != os.uname().nodename or not rest[0].isdecimal():
        return None
    pid, started = int(rest[0]), rest[1]
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        # Gone; or somebody else's by now, which ours never was.
        return False
    return _started(pid) == started


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
