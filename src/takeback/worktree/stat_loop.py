"""The stat loop: which recorded directories and entries are no longer as recorded.

`scan` compares the records of the stat cache (see `layout`) with the disk, through directory
descriptors, following no link and opening nothing but directories. `scan_native` is the loop in
C where that was built, `scan_python` its twin with the same result, byte for byte. Both check
every byte that they rely on and raise ValueError on nonsense. The loop in C takes one of several
shares of the records, so that threads can divide the work.

A raw report is an array of native 64-bit words. For each directory with something to tell:
offset of its record, status, depth, number of entries, the offsets of its ancestors from the
root down, the indices of the entries to look at again.
"""

import _thread
import os
import struct
from errno import ELOOP

from takeback.worktree.folders import (
    CHANGED,
    DENIED,
    ENTRY,
    GONE,
    RACY,
    REASON_FIELD,
    REASON_MOUNT,
    REASON_VCS,
    RECORD,
    SAME,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Buffer = bytes | bytearray | memoryview
    Report = tuple[int, int, tuple[int, ...], list[int]]
    Header = tuple[int, int, int, int, int, int, int, int, int, int]

scan_native: "Callable[[Buffer, int, int, int], bytes] | None"
"""The loop in C, or None where the package was built without a compiler."""
try:
    from takeback.worktree import _statloop

    scan_native = _statloop.scan
except ImportError:
    scan_native = None

MAX_OPEN = 64
"""Directories that one loop keeps open at once."""
MAX_PARTS = 256

THREADED_BYTES = 1 << 20
"""Size of the records (about 8,000 entries) above which a second thread pays.

With a core to spare it pays from 1,000 entries on, with none it costs a tenth up to 5,000.
"""
SHARES_PER_THREAD = 2
"""More than one, so that the thread on the busier core does not keep the other waiting."""

_OPEN_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FLAGS |= getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_ALL_64 = (1 << 64) - 1
_NEVER_STATTED = (REASON_VCS, REASON_MOUNT)
_KIND, _DIRECTORY = 0o170000, 0o040000
_NOT_NAMES = (b"", b".", b"..")
_DEEPER_THAN_ALL = 1 << 16

# Views of the two structs that hold only what the loop compares.
_HEADER = struct.Struct("<IHHIIqqQQ76xI")
_STAMPS = struct.Struct("<QQqqIH58x")
_LENGTHS = struct.Struct("<38xH56x")


def scan(records: "Buffer", root_fd: int, threads: "int | None" = None) -> "list[Report]":
    """Compare all records with the disk; return the directories with something to tell."""
    if scan_native is None:
        return reports(scan_python(records, root_fd))
    size = memoryview(records).nbytes
    if threads is None:
        threads = 2 if size > THREADED_BYTES else 1
    if threads > 1:
        shares = _scan_in_threads(scan_native, records, root_fd, threads)
        joined = _joined([reports(share) for share in shares], size) if shares else None
        if joined is not None:
            return joined
    return reports(scan_native(records, root_fd, 0, 1))


def reports(raw: bytes) -> "list[Report]":
    """Decode a raw report: (offset, status, ancestors' offsets, indices of entries) each."""
    words = memoryview(raw).cast("Q").tolist()
    found, at = [], 0
    while at < len(words):
        offset, status, depth, count = words[at : at + 4]
        middle = at + 4 + depth
        end = middle + count
        found.append((offset, status, tuple(words[at + 4 : middle]), words[middle:end]))
        at = end
    return found


def _scan_in_threads(
    loop: "Callable[[Buffer, int, int, int], bytes]", records: "Buffer", root_fd: int, threads: int
) -> list[bytes]:
    """Scan the records in shares that this and other threads take; nothing when one failed."""
    parts = min(threads * SHARES_PER_THREAD, MAX_PARTS)
    todo = list(range(parts))
    shares: dict[int, bytes] = {}
    running = []

    def work(done: "_thread.LockType") -> None:
        try:
            while todo:
                part = todo.pop()
                shares[part] = loop(records, root_fd, part, parts)
        except (IndexError, ValueError, MemoryError):
            pass  # another took the last share; or the caller scans in one piece, and that raises
        finally:
            done.release()

    try:
        for left in range(threads - 1, -1, -1):
            done = _thread.allocate_lock()
            done.acquire()
            if left:
                _thread.start_new_thread(work, (done,))
                running.append(done)
            else:
                work(done)
    except RuntimeError:  # no more threads to be had
        pass
    finally:
        for done in running:  # they use `root_fd`, which is the caller's to close
            done.acquire()
    return [shares[part] for part in range(parts)] if len(shares) == parts else []


def _joined(shares: "list[list[Report]]", size: int) -> "list[Report] | None":
    """Put the reports of all shares together, as if one loop had made them.

    A share that begins below a lost directory reports that directory, which is another share's.
    None when that share saw it still there: the tree moved between the two, look again.
    """
    joined: list[Report] = []
    lost: set[int] = set()
    for part, share in enumerate(shares):
        start = size * part // len(shares)
        for report in share:
            offset, status, ancestors, _ = report
            if offset >= start:
                joined.append(report)
                if status >= GONE:
                    lost.add(offset)
            elif offset not in lost and lost.isdisjoint(ancestors):
                return None
    return joined


def scan_python(records: "Buffer", root_fd: int) -> bytes:
    """Do what `scan_native` does, without C and in one piece."""
    words: list[int] = []
    lost = _DEEPER_THAN_ALL
    way = _WayDown(root_fd)
    try:
        for offset, fields, entries, names in _headers(memoryview(records).cast("B")):
            depth = fields[1]
            way.follow(depth, offset, fields[7], names[0])
            if not _are_names(names, entries):
                raise _nonsense(offset)
            if depth > lost:
                continue
            st, status = way.enter(depth)
            if st is None:
                lost = depth
                words += way.report(depth, status, ())
                continue
            lost = _DEEPER_THAN_ALL
            indices = _changed_entries(way.fd, st.st_dev, entries, names)
            if _is_changed(st, fields):
                status = CHANGED
            if status or indices:
                words += way.report(depth, status, indices)
    finally:
        way.leave(1)
    return struct.pack(f"={len(words)}Q", *words)


def _nonsense(offset: int) -> ValueError:
    return ValueError(f"no directory record at byte {offset}")


def _headers(view: memoryview) -> "Iterator[tuple[int, Header, memoryview, list[bytes]]]":
    """Check and yield each record: offset, header, entries, what NULs divide."""
    if not view:
        raise _nonsense(0)
    size, offset, deepest = len(view), 0, 0
    while offset < size:
        if size - offset < RECORD.size:
            raise _nonsense(offset)
        fields: Header = _HEADER.unpack_from(view, offset)
        length, depth, namelen, count = fields[:4]
        fixed = RECORD.size + count * ENTRY.size
        if length % 8 or not fixed <= length <= size - offset:
            raise _nonsense(offset)
        record = view[offset : offset + length]
        names = bytes(record[fixed:]).split(b"\0")
        name = names[0]
        if len(name) != namelen or len(names) == 1:
            raise _nonsense(offset)
        if offset:
            if not 0 < depth <= deepest or name in _NOT_NAMES or b"/" in name:
                raise _nonsense(offset)
        elif depth or name:
            raise _nonsense(0)
        yield offset, fields, record[RECORD.size : fixed], names
        deepest = depth + 1
        offset += length


def _are_names(names: list[bytes], entries: memoryview) -> bool:
    """Whether each entry has a name of its length, with only the padding after the last."""
    lengths = list(_LENGTHS.iter_unpack(entries))
    after = len(lengths) + 1
    named = names[1:after]
    return (
        list(zip(map(len, named), strict=True)) == lengths
        and b"" not in named
        and b"." not in named
        and b".." not in named
        and b"/" not in b"".join(named)
        and 1 <= len(names) - after <= 8
        and not any(names[after:])
    )


def _is_changed(st: os.stat_result, fields: "Header") -> bool:
    _, _, _, _, flags, mtime, ctime, _, ino, mode = fields
    return (
        flags & RACY != 0
        or st.st_mtime_ns != mtime
        or st.st_ctime_ns != ctime
        or st.st_ino != ino
        or st.st_mode != mode
    )


def _changed_entries(fd: int, device: int, entries: memoryview, names: list[bytes]) -> list[int]:
    """Stat the entries of the directory open as `fd`; return the places of the changed ones."""
    changed, stat, place = [], os.stat, -1
    for ino, size, mtime, ctime, mode, flags in _STAMPS.iter_unpack(entries):
        place += 1
        if flags or mode & _KIND == _DIRECTORY:
            reason = flags & REASON_FIELD
            if reason in _NEVER_STATTED or (mode & _KIND == _DIRECTORY and not reason):
                continue
            if flags & RACY:
                changed.append(place)
                continue
        try:
            st = stat(names[place + 1], dir_fd=fd, follow_symlinks=False)
        except OSError:
            changed.append(place)
            continue
        if (
            st.st_mtime_ns != mtime
            or st.st_ctime_ns != ctime
            or st.st_size != size
            or st.st_ino != ino
            or st.st_mode != mode
            or st.st_dev != device
        ):
            changed.append(place)
    return changed


class _WayDown:
    """The directories from the root to the current record, the deepest of them open."""

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._levels: list[tuple[int, int, bytes]] = []
        self._fds: list[int] = []
        self._low = 1  # the level of the first open directory

    @property
    def fd(self) -> int:
        """The deepest open directory."""
        return self._fds[-1] if self._fds else self._root_fd

    def follow(self, depth: int, offset: int, device: int, name: bytes) -> None:
        """Make the directory of the current record the last level."""
        del self._levels[depth:]
        self._levels.append((offset, device, name))

    def leave(self, depth: int) -> None:
        """Close the open directories from `depth` on."""
        fds = self._fds
        while fds and self._low + len(fds) > depth:
            os.close(fds.pop())
        if not fds:
            self._low = 1

    def enter(self, depth: int) -> "tuple[os.stat_result | None, int]":
        """Open and stat the last level, and those above it that had to be closed."""
        self.leave(depth)
        at = self._low + len(self._fds) if depth else 0
        while True:
            try:
                st = self._open_level(at)
            except (FileNotFoundError, NotADirectoryError):
                st, status = None, GONE
            except OSError as error:
                st, status = None, GONE if error.errno == ELOOP else DENIED
            else:
                status = SAME if st else GONE
            if st is None or at == depth:
                return st, status
            at += 1

    def _open_level(self, at: int) -> "os.stat_result | None":
        """Open and stat one level below the deepest open one; None on another device."""
        _, device, name = self._levels[at]
        if at == 0:
            st = os.stat(self._root_fd)
            return st if st.st_dev & _ALL_64 == device else None
        if len(self._fds) == MAX_OPEN:
            os.close(self._fds.pop(0))
            self._low += 1
        fd = os.open(name, _OPEN_FLAGS, dir_fd=self.fd)
        try:
            st = os.stat(fd)
            if st.st_dev & _ALL_64 == device:
                self._fds.append(fd)
                fd = -1
                return st
            return None
        finally:
            if fd >= 0:
                os.close(fd)

    def report(self, depth: int, status: int, indices: "Sequence[int]") -> list[int]:
        """Make the words that report the directory at `depth` on the way down."""
        above = [level[0] for level in self._levels[:depth]]
        return [self._levels[depth][0], status, depth, len(indices), *above, *indices]
