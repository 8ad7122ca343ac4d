"""What the machine tells: processes and who we are, mounted file systems, the clock of a disk.

A ledger is not safe on a network file system. SQLite's write-ahead log needs memory shared by
everyone who has the database open, and locks that everyone sees. So every file system that several
hosts can mount at once counts: also cluster file systems on a shared disk (ocfs2, gfs2). Folders
that a virtual machine gets from its host count where they lack working shared maps (9p, vboxsf,
vmhgfs, prl_fs); virtiofs does not, because it has them and is the root disk of many sandboxes.

A file is *racy* when it could still be changed without its stamps changing: its stamps are as
young as the look we took at it. How young is measured against a file of our own that is
touched when a scan begins, so that no jump of the machine's clock can fool the rule.
"""

import os
import time

from takeback.disk import operations
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_START_FIELD = 19
"""Where `/proc/PID/stat` says when the process started, counted after the program's name."""
_SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"fish", b"ksh", b"ash", b"busybox"))
_MOST_SHELLS = 8
_MOST_ABOVE = 100
_OLDEST = 60 * 1_000_000_000
"""A hook does not wait longer to hear an event: nanoseconds."""
_STATX_BTIME, _HERE, _NO_FOLLOW = 0x800, -100, 0x100


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


def caller(pid: int) -> str:
    """The process that had a hook run, as `holder` names it; empty where nobody can tell.

    That is the nearest one above which is not a shell of the hook's own command line.
    """
    for _ in range(_MOST_SHELLS):
        pid = _parent(pid)
        if pid <= 0:
            return ""
        words = command_line(pid)
        is_shell = bool(words) and os.path.basename(words[0]).lstrip(b"-") in _SHELLS
        if not (is_shell and any(b"takeback" in word for word in words[1:])):
            return holder(pid)
    return ""


def born(pid: int) -> int:
    """When a process was started, in nanoseconds since 1970; now, where nobody can tell."""
    now, ticks = time.time_ns(), _started(pid)
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None or not ticks.isdecimal():
        return now
    age = time.clock_gettime_ns(clock) - int(ticks) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return now - age if 0 < age < _OLDEST else now


def command_line(pid: int) -> "list[bytes]":
    """The command line of a process; nothing where the system does not tell."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(1 << 16).split(b"\0")[:-1]
    except OSError:
        return []


class Ancestor(Value):
    """A process above another one: its command line, and the names of its variables."""

    pid: int
    holder: str
    words: "tuple[bytes, ...]" = ()
    variables: "frozenset[bytes]" = frozenset()


def ancestors(pid: int) -> "Iterator[Ancestor]":
    """A process and those above it, the nearest first, as far as the system tells."""
    for _ in range(_MOST_ABOVE):
        if pid <= 0:
            return
        variables = frozenset(line.partition(b"=")[0] for line in _environment(pid))
        yield Ancestor(pid, holder(pid), tuple(command_line(pid)), variables)
        pid = _parent(pid)


def _environment(pid: int) -> "list[bytes]":
    """What it was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(1 << 20).split(b"\0")
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
    stat = _stat(pid)
    if stat[:1] in ([b"Z"], [b"X"]):
        return "dead"
    return stat[_START_FIELD].decode() if len(stat) > _START_FIELD else "-"


def _parent(pid: int) -> int:
    """The parent of a process; 0 where the system does not tell."""
    stat = _stat(pid)
    if len(stat) > 1 and stat[1].isdigit():
        return int(stat[1])
    return os.getppid() if pid == os.getpid() else 0


def _stat(pid: int) -> "list[bytes]":
    """What `/proc/PID/stat` says after the program's name; nothing without one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b") ")[2].split(b" ")
    except OSError:
        return []


# -- mounted file systems ------------------------------------------------------------------------

_OWN = frozenset(b"ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs overlay".split())
"""File systems of which nobody but this kernel changes anything."""
_NETWORK = frozenset(
    b"nfs nfs4 cifs smb3 smbfs smb2 ncpfs ncp afs coda davfs 9p ceph glusterfs lustre beegfs "
    b"orangefs pvfs2 gpfs panfs ocfs2 gfs2 vboxsf vmhgfs prl_fs".split()
)
_NETWORK_BY_FUSE = frozenset(
    b"sshfs s3fs gcsfuse rclone goofys mount-s3 mountpoint-s3 blobfuse blobfuse2 juicefs davfs "
    b"davfs2 wdfs curlftpfs ftpfs smbnetfs fusesmb glusterfs ceph ceph-fuse cephfs mfs moosefs "
    b"lizardfs seaweedfs weed hdfs fuse_dfs cvmfs2 afp afpfs onedriver google-drive-ocamlfuse "
    b"vmhgfs-fuse grpcfuse osxfs nfs fuse-nfs orangefs".split()
)
_FUSE_PREFIXES = (b"fuse.", b"fuseblk.")
_MOUNTINFO = b"/proc/self/mountinfo"
_MOST_BYTES = 16 << 20
_FIELDS_BEFORE_OPTIONAL = 6


def is_network(mountinfo: bytes, device: int) -> str | None:
    """Name the network file system that `device` is, given the text of a mountinfo file.

    `device` is an `st_dev`. None means a local file system, or one the text does not list.
    """
    for kind in _types_on(mountinfo, device):
        if kind in _NETWORK or _fuse_program(kind) in _NETWORK_BY_FUSE:
            return kind.decode("utf-8", "backslashreplace")
    return None


def network_file_system(path: bytes) -> str | None:
    """Name the network file system that `path` is on, or None.

    A path that does not exist yet is judged by the nearest folder above it that does. Where
    there is no /proc (macOS) nothing is known and the answer is None.
    """
    text = _read_mountinfo()
    device = _device_of(os.path.abspath(path))
    return is_network(text, device) if text and device is not None else None


def copies_up(path: bytes) -> bool:
    """Whether a folder at a path is made anew, above the old one, when something in it changes."""
    text, device = _read_mountinfo(), _device_of(path)
    return device is not None and any(b"overlay" in kind for kind in _types_on(text, device))


def birth_of(path: bytes, here: os.stat_result) -> int:
    """When a folder was made, in nanoseconds; 0 where nobody can tell."""
    told = getattr(here, "st_birthtime", None)
    if told is not None:
        return max(0, int(told * 1_000_000_000))
    return 0 if copies_up(path) else max(0, _statx_birth(path))


def _statx_birth(path: bytes) -> int:
    # Only when a project is made, moved or in doubt: `ctypes` takes milliseconds to import.
    try:
        import ctypes

        statx = ctypes.CDLL(None).statx
    except (ImportError, OSError, AttributeError):
        return 0
    told = ctypes.create_string_buffer(256)
    if statx(_HERE, path, _NO_FOLLOW, _STATX_BTIME, told):
        return 0
    from struct import unpack_from

    mask, seconds, nanoseconds = unpack_from("=I76xqI", told)
    return int(seconds * 1_000_000_000 + nanoseconds) if mask & _STATX_BTIME else 0


def is_watchable(path: bytes) -> bool:
    """Whether the kernel notes all that happens to the files at a path: they are its own."""
    text, device = _read_mountinfo(), _device_of(path)
    kinds = set(_types_on(text, device)) if device is not None else set()
    return bool(kinds) and kinds <= _OWN


class Mounts:
    """Where other file systems, or other parts of this one, are mounted below a folder.

    The table of mounts knows. Device numbers are only a makeshift where there is none: they are
    the same for a folder that is mounted a second time, and differ inside an overlay.
    """

    __slots__ = ("_device", "places")

    def __init__(self, places: "frozenset[bytes] | None", device: int) -> None:
        self.places = places
        self._device = device

    def cover(self, path: bytes) -> bool:
        """Whether something is mounted at a path, as far as the table knows."""
        return self.places is not None and path in self.places

    def hold(self, folder: bytes, name: bytes, found: os.stat_result) -> bool:
        """Whether something is mounted at an entry of a folder."""
        if self.places is None:
            return found.st_dev != self._device
        if not self.places:
            return False
        return (folder + b"/" + name if folder else name) in self.places


def mounts_below(root: bytes) -> "frozenset[bytes] | None":
    """The places below a folder, relative to it, where something is mounted.

    None where the system keeps no such table (macOS).
    """
    text = _read_mountinfo()
    if not text:
        return None
    inside = b"/" if root == b"/" else root + b"/"
    found = (_unescape(line.split(b" ", 5)[4]) for line in text.splitlines() if b" - " in line)
    return frozenset(place[len(inside) :] for place in found if place.startswith(inside))


def _types_on(mountinfo: bytes, device: int) -> "Iterator[bytes]":
    """The type of the file system on a device, once for each place where it is mounted."""
    wanted = b"%d:%d" % (os.major(device), os.minor(device))
    for line in mountinfo.split(b"\n"):
        fields = line.split(b" ")
        if len(fields) > _FIELDS_BEFORE_OPTIONAL and fields[2] == wanted:
            yield _type_of(fields)


def _type_of(fields: list[bytes]) -> bytes:
    """Find the type: the first field after the lone `-` that ends the optional ones."""
    try:
        dash = fields.index(b"-", _FIELDS_BEFORE_OPTIONAL)
        return _unescape(fields[dash + 1])
    except (ValueError, IndexError):
        return b""


def _fuse_program(kind: bytes) -> bytes:
    for prefix in _FUSE_PREFIXES:
        if kind.startswith(prefix):
            return kind[len(prefix) :]
    return b""


def _unescape(field: bytes) -> bytes:
    r"""Undo the kernel's `\ooo` for space, tab, newline and backslash."""
    head, *rest = field.split(b"\\")
    pieces = [head]
    for piece in rest:
        digits = piece[:3]
        if len(digits) == 3 and not digits.strip(b"01234567") and digits < b"400":
            pieces.append(bytes((int(digits, 8),)) + piece[3:])
        else:
            pieces.append(b"\\" + piece)
    return b"".join(pieces)


def _device_of(path: bytes) -> int | None:
    while True:
        try:
            return os.stat(path).st_dev
        except (OSError, ValueError):
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent


def _read_mountinfo() -> bytes:
    pieces = []
    left = _MOST_BYTES
    try:
        fd = os.open(_MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while left > 0 and (piece := os.read(fd, 1 << 16)):
            pieces.append(piece)
            left -= len(piece)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(pieces)


# -- the file system's time ----------------------------------------------------------------------

FINE = 20_000_000
"""Slack in nanoseconds where stamps have nanoseconds and the store is on the same disk."""
COARSE = 2_000_000_000
"""Slack for stamps in whole seconds, and for trees on another file system than the store."""
RECENT = 2_000_000_000
SETTLED = 25_000_000
WRITTEN_BACK = 60_000_000_000
"""After so long the kernel has written a dirty page back; the next write moves the stamps."""


class FsClock:
    """The file system's time since a scan began."""

    __slots__ = ("_began", "slack", "start", "trusted_before")

    def __init__(self, start: int, slack: int) -> None:
        self.start = start
        self.slack = slack
        self.trusted_before = start - slack
        self._began = time.monotonic_ns()

    def now(self) -> int:
        return self.start + time.monotonic_ns() - self._began

    def is_racy(self, mtime: int, ctime: int) -> bool:
        """Whether stamps are too young, or in the future, to prove that nothing changed."""
        return max(mtime, ctime) >= self.trusted_before

    def is_recent(self, mtime: int, ctime: int) -> bool:
        return max(mtime, ctime) > self.now() - RECENT

    def is_unsettled(self, mtime: int, ctime: int) -> bool:
        """Whether pages that were written then may still wait to be written back."""
        return max(mtime, ctime) > self.now() - WRITTEN_BACK

    def is_settled(self, mtime: int, ctime: int) -> bool:
        """Whether the last write is long enough ago for a read to be whole."""
        return max(mtime, ctime) < self.now() - SETTLED


def read_clock(probe: bytes, tree_device: int) -> FsClock:
    """Touch the file `probe` in the store and read the clock off it."""
    fd = operations.open_or_create(probe)
    try:
        operations.touch(fd)
        stat = os.fstat(fd)
    finally:
        os.close(fd)
    fine = stat.st_dev == tree_device and stat.st_ctime_ns % 1_000_000_000 != 0
    return FsClock(stat.st_ctime_ns, FINE if fine else COARSE)
