"""Read what a scan found new or changed, and put it into a pack.

Forked copies of this process that read while this one writes.

A copy changes nothing on disk: it sends what it made through a pipe. Whatever goes wrong in it
(it is killed, there is no memory, nobody may fork), the caller does that share itself. So a crash
has the same few forms as with one process. Nothing is started: a copy never executes a program.

Share the reading of many files among forked copies of this process.

Blocks of files are dealt out in turn and taken back in that order, so the packs are the same
whoever read what. Only this process writes.
"""

import errno
import fcntl
import marshal
import os
from hashlib import sha256

from takeback.disk import operations
from takeback.disk.descent import Descent
from takeback.model import words
from takeback.model.tree import KIND, LINK, NO_OBJECT, UNSTABLE
from takeback.objects import deflate
from takeback.objects.git_objects import BLOB, object_head, object_id, sha1
from takeback.worktree.content import LARGE, Content, NotRegular, Patience, Torn
from takeback.worktree.folders import mark_racy
from takeback.worktree.scan import GONE_ERRORS, SHORTAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterable, Iterator
    from typing import NoReturn, Protocol

    from takeback.disk.descent import Descent
    from takeback.disk.machine import FsClock
    from takeback.ports import ObjectWriter
    from takeback.worktree.folders import Folder, Node
    from takeback.worktree.scan import Scan

    Row = tuple[int, int, int, int, int, int, bytes, bytes, bytes]

    Rows = list[Row | None]

    Pending = list[tuple[Folder, Node]]

    class Writer(Protocol):
        """Who takes the objects: a pack, or in a copy of this process, the one who sends them."""

        def add_hashed(self, oid: bytes, kind: int, data: bytes) -> None:
            """Take an object whose id is known."""


_MOST_COPIES = 4
_PIPE = 1 << 20
_KILL = 9
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


def how_many() -> int:
    """How many copies can share the work; 0 where forking is not safe or does not pay.

    A fork takes only the calling thread along, and a lock that another one held stays locked in
    the copy for ever. On macOS the system's own libraries do not survive a fork.
    """
    try:
        if len(os.listdir(b"/proc/self/task")) != 1:
            return 0
        cores = len(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return 0
    return min(cores, _MOST_COPIES) if cores > 1 else 0


class Copy:
    """A forked copy of this process that does `work`, with `keep` as its only open file."""

    __slots__ = ("_pid", "_pipe")

    def __init__(self, work: "Callable[[], Iterable[Rows]]", keep: int) -> None:
        self._pipe, sink = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._pipe)
            os.close(sink)
            raise
        if self._pid == 0:
            _serve(work, sink, keep)
        os.close(sink)
        if _SET_PIPE_SIZE is not None:
            try:
                fcntl.fcntl(self._pipe, _SET_PIPE_SIZE, _PIPE)
            except OSError:
                # A smaller pipe only makes the copy wait more often.
                return

    def next(self) -> "Rows | None":
        """The next rows; None when the copy is gone."""
        head = self._read(4)
        body = self._read(int.from_bytes(head, "little")) if head else b""
        rows: Rows | None = marshal.loads(body) if body else None  # noqa: S302 -- our own copy's
        return rows

    def end(self) -> None:
        """End the copy, whatever it is doing."""
        os.close(self._pipe)
        try:
            os.kill(self._pid, _KILL)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            # The program that we are part of collects its children itself.
            return

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            part = os.read(self._pipe, min(length, _PIPE))
            if not part:
                return b""
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def _serve(work: "Callable[[], Iterable[Rows]]", sink: int, keep: int) -> "NoReturn":
    """Work, send and end; never return into the caller's code."""
    status = 1
    try:
        operations.hook = None
        # Above all the project's lock: it must not outlive the process that took it.
        low, high = sorted((sink, keep))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        for rows in work():
            body = marshal.dumps(rows)
            operations.write(sink, len(body).to_bytes(4, "little") + body)
        status = 0
    finally:
        os._exit(status)


_TRIES = 3
_WORTH_SHARING = 1000
"""Files to be read above which forking (some milliseconds) is won back."""
_COMPANIONS = (b"-wal", b"-journal")


class DiskError(Exception):
    """An error of the system, with a note of whose file it was about."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class OurDiskError(DiskError):
    """The store could not be written; that is no reason to call the user's file unreadable."""


class TheirDiskError(DiskError):
    """The user's file could not be read while it was being stored."""


class Reading:
    """Reads the pending files and links of one scan into one writer."""

    def __init__(
        self,
        scan: "Scan",
        writer: "ObjectWriter",
        clock: "FsClock",
        *,
        knows_some: bool,
        alone: bool,
    ) -> None:
        self._scan = scan
        self._writer: Writer = writer
        self._large = writer
        self._clock = clock
        self._knows_some = knows_some
        self._alone = alone
        self._patience = Patience()
        self.changed: Pending = []
        self._folder: Folder | None = None
        self._fd = -1
        self._held_open = False

    def run(self, told: "Callable[[int], None]") -> None:
        """Read everything; `told` hears now and then how many files are done.

        What turned into something else meanwhile is looked at again, a few times.
        """
        scan, done = self._scan, 0
        for turn in range(_TRIES):
            pending, scan.pending = scan.pending, []
            for unit in self._units(pending, told):
                if len(unit) == 1:
                    self.read(*unit[0])
                else:
                    self._read_together(unit)
                done += len(unit)
                if done % 256 == 0:
                    told(done)
            self._look_once_more(last=turn == _TRIES - 1)
            if not scan.pending:
                return

    def _units(self, pending: "Pending", told: "Callable[[int], None]") -> "Iterable[Pending]":
        if self._alone or len(pending) <= _WORTH_SHARING:
            return group(pending)

        return read_shared(self, pending, self._large, told)

    def root(self) -> int:
        """The descriptor of the tree's root."""
        return self._scan.descent.root

    def become_copy(self, writer: "Writer", descent: "Descent") -> None:
        """Go on in a forked copy of the process, which may not write."""
        self._writer = writer
        self._scan.descent = descent
        self._folder = None

    def _look_once_more(self, *, last: bool) -> None:
        """Find out what the entries are by now that were not as the scan saw them."""
        changed, self.changed = self.changed, []
        self._folder = None  # the scan opens and closes folders now
        for folder, node in changed:
            if not last:
                self._scan.look_once_more(folder, node.name)
            else:
                self._cannot_read(node)
                folder.touched = folder.changed = True
        if not last:
            self._scan.settle()

    def _read_together(self, unit: "Pending") -> None:
        """Read a database and its journal as of one instant: nothing may change in between."""
        for _ in range(_TRIES):
            for folder, node in unit:
                self.read(folder, node)
            if not any(self._moved(folder, node) for folder, node in unit):
                return
            if not self._patience.wait():
                break
        for folder, node in unit:
            if folder.nodes.get(node.name) is node and not node.reason:
                node.flags |= UNSTABLE
                mark_racy(node, True)

    def _moved(self, folder: "Folder", node: "Node") -> bool:
        if folder.nodes.get(node.name) is not node or node.reason:
            return False
        try:
            fd = self._open(folder)
            now = os.stat(node.name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return True
        was = (node.inode, node.size, node.mtime, node.ctime)
        return was != (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)

    def read(self, folder: "Folder", node: "Node") -> None:
        """Read one file or link; what cannot be read is noted with the reason."""
        before = (node.mode, node.strong, node.flags & UNSTABLE)
        self._held_open = False
        try:
            fd = self._open(folder)
            if node.mode & KIND == LINK:
                self._read_link(fd, node)
            else:
                self._read_file(fd, node)
        except NotRegular:
            self.changed.append((folder, node))
        except Torn:
            self._cannot_read(node)
        except OurDiskError as problem:
            raise problem.error from None
        except OSError as problem:
            if problem.errno in SHORTAGES:
                raise
            if problem.errno in (*GONE_ERRORS, errno.EINVAL, errno.ENXIO):
                self.changed.append((folder, node))
            else:
                self._cannot_read(node)
        else:
            racy = self._clock.is_racy(node.mtime, node.ctime)
            mark_racy(node, racy or self._held_open or bool(node.flags & UNSTABLE))
        folder.touched = True
        if before != (node.mode, node.strong, node.flags & UNSTABLE) or node.reason:
            folder.changed = True

    def _open(self, folder: "Folder") -> int:
        # Files come folder by folder; finding the way anew for each would cost more than lstat.
        if folder is not self._folder:
            self._folder = None
            self._fd = self._scan.descent.open(folder.way())
            self._folder = folder
        return self._fd

    def _read_link(self, fd: int, node: "Node") -> None:
        before = os.stat(node.name, dir_fd=fd, follow_symlinks=False)
        target = os.readlink(node.name, dir_fd=fd)
        after = os.stat(node.name, dir_fd=fd, follow_symlinks=False)
        if (before.st_ino, before.st_ctime_ns) != (after.st_ino, after.st_ctime_ns):
            raise NotRegular("the link was replaced while it was read")
        node.stamp(after)
        node.size = len(target)
        self._keep(node, target)

    def _read_file(self, fd: int, node: "Node") -> None:
        content = self._open_file(fd, node.name)
        try:
            if content.stat.st_size > LARGE:
                self._stream(content, node)
            else:
                data = content.whole(self._patience)
                node.stamp(content.stat)
                node.size = len(data)
                self._keep(node, data)
        finally:
            content.close()
        self._held_open = content.held_open
        node.flags = node.flags & ~UNSTABLE | (UNSTABLE if content.unstable else 0)

    def _open_file(self, fd: int, name: bytes) -> Content:
        while True:
            try:
                return Content(fd, name, self._clock)
            except BlockingIOError:
                # Somebody holds a lease on it and has to give that up first.
                if not self._patience.wait():
                    raise

    def _keep(self, node: "Node", data: bytes) -> None:
        oid, strong = object_id(BLOB, data), sha256(data).digest()
        if oid == node.oid and strong == node.strong:
            return
        node.strong, node.oid = strong, oid
        try:
            self._writer.add_hashed(oid, BLOB, data)
        except OSError as problem:
            raise OurDiskError(problem) from problem

    def _stream(self, content: Content, node: "Node") -> None:
        if (node.oid != NO_OBJECT or self._knows_some) and self._is_stored(content, node):
            return
        for turn in range(_TRIES):
            size = content.size()
            strong = sha256()
            pieces = content.chunks(size, last_try=turn == _TRIES - 1)
            try:
                oid = self._large.add_large(size, hashed(pieces, strong))
            except TheirDiskError as problem:
                raise problem.error from None
            except OSError as problem:
                raise OurDiskError(problem) from problem
            except (Torn, ValueError):
                if turn == _TRIES - 1:
                    raise Torn from None
                self._patience.wait()
                continue
            node.stamp(content.stat)
            node.size = size
            node.strong, node.oid = strong.digest(), oid
            return

    def _is_stored(self, content: Content, node: "Node") -> bool:
        """Whether a large file holds what is in the store already; hashing is the cheap part."""
        size = content.size()
        weak, strong = sha1(object_head(BLOB, size)), sha256()
        try:
            for piece in content.chunks(size, last_try=False):
                weak.update(piece)
                strong.update(piece)
        except Torn:
            return False
        oid = weak.digest()
        if oid != node.oid and not self._large.contains(oid):
            return False
        node.stamp(content.stat)
        node.strong, node.oid = strong.digest(), oid
        return True

    @staticmethod
    def _cannot_read(node: "Node") -> None:
        node.flags, node.oid = words.UNREADABLE, NO_OBJECT
        # What could not be read this time may be readable the next, without any stamp changing.
        mark_racy(node, True)


def group(pending: "Pending") -> "Iterable[Pending]":
    """Pending entries one by one, except databases, which come with their journals."""
    taken: set[int] = set()
    last, has_journals = None, False
    for folder, node in pending:
        if folder is not last:
            last, has_journals = folder, any(name.endswith(_COMPANIONS) for name in folder.nodes)
        if not has_journals:
            yield [(folder, node)]
            continue
        if id(node) in taken:
            continue
        unit = _unit(folder, node)
        taken.update(id(member) for _, member in unit)
        yield unit


def _unit(folder: "Folder", node: "Node") -> "Pending":
    base = node.name
    for ending in _COMPANIONS:
        if base.endswith(ending) and base[: -len(ending)] in folder.nodes:
            base = base[: -len(ending)]
    names = [base, *(base + ending for ending in _COMPANIONS)]
    members = [folder.nodes[name] for name in names if name in folder.nodes]
    unit = [(folder, m) for m in members if not m.reason and m.mode & KIND == node.mode & KIND]
    return unit if len(unit) > 1 and any(m is node for _, m in unit) else [(folder, node)]


def hashed(pieces: "Iterable[bytes | memoryview]", strong: "hashlib._Hash") -> "Iterator[bytes]":
    """Pass pieces on, hashing them on the way."""
    try:
        for piece in pieces:
            strong.update(piece)
            yield piece  # type: ignore[misc]
    except OSError as problem:
        raise TheirDiskError(problem) from problem


_FILES_PER_BLOCK = 128
_BYTES_PER_BLOCK = 4 << 20


def read_shared(
    reading: "Reading", pending: "Pending", writer: "ObjectWriter", told: "Callable[[int], None]"
) -> "Iterator[Pending]":
    """Let copies read what they can; yield the units that the caller must read itself."""
    count = how_many()
    if not count:
        yield from group(pending)
        return
    blocks, alone = deal(pending)
    deflate.expect(sum(node.size for _, node in pending))
    copies = _start(reading, blocks, count, writer)
    done = 0
    try:
        for number, block in enumerate(blocks):
            copy = copies[number % count]
            rows = copy.next() if copy is not None else None
            if rows is None:
                if copy is not None:
                    copy.end()
                copies[number % count] = None
                yield from ([todo] for todo in block)
                continue
            for (folder, node), row in zip(block, rows, strict=True):
                _accept(reading, writer, folder, node, row)
            done += len(block)
            told(done)
    finally:
        for copy in copies:
            if copy is not None:
                copy.end()
    yield from alone


def deal(pending: "Pending") -> "tuple[list[Pending], list[Pending]]":
    """Blocks that can be read anywhere, and units that this process reads itself."""
    blocks: list[Pending] = []
    alone: list[Pending] = []
    room = 0
    for unit in group(pending):
        size = unit[0][1].size
        if len(unit) > 1 or size > LARGE:
            alone.append(unit)
            continue
        if not blocks or len(blocks[-1]) >= _FILES_PER_BLOCK or size > room:
            blocks.append([])
            room = _BYTES_PER_BLOCK
        blocks[-1] += unit
        room -= size
    return blocks, alone


def _start(
    reading: "Reading", blocks: "list[Pending]", count: int, writer: "ObjectWriter"
) -> "list[Copy | None]":
    copies: list[Copy | None] = [None] * count
    try:
        for turn in range(count):
            share = _Share(reading, blocks[turn::count], writer)
            copies[turn] = Copy(share.rows, reading.root())
    except OSError:
        # No more processes to be had; what has no copy is read here.
        pass
    return copies


def _accept(
    reading: "Reading", writer: "ObjectWriter", folder: "Folder", node: "Node", row: "Row | None"
) -> None:
    """Note what a copy read of one file."""
    if row is None:
        reading.changed.append((folder, node))
        return
    before = (node.mode, node.strong, node.flags & UNSTABLE)
    (node.inode, node.size, node.mtime, node.ctime, node.mode, node.flags) = row[:6]
    (node.strong, node.oid, packed) = row[6:]
    if packed:
        writer.add_known(node.oid, BLOB, node.size, packed)
    folder.touched = True
    if before != (node.mode, node.strong, node.flags & UNSTABLE) or node.reason:
        folder.changed = True


class _Share:
    """In a copy: reads its blocks and compresses them, as a writer that only sends."""

    def __init__(self, reading: "Reading", blocks: "list[Pending]", writer: "ObjectWriter") -> None:
        self._reading = reading
        self._blocks = blocks
        self.contains = writer.contains
        self._sent: set[bytes] = set()
        self._packed = b""

    def add_hashed(self, oid: bytes, kind: int, data: bytes) -> None:
        """Compress an object, once, unless the store has it."""
        del kind
        if oid not in self._sent and not self.contains(oid):
            self._sent.add(oid)
            self._packed = deflate.compress(data)

    def rows(self) -> "Iterator[Rows]":
        """What each file turned out to be, block by block."""
        self._reading.become_copy(self, Descent(self._reading.root()))
        for block in self._blocks:
            yield [self._row(folder, node) for folder, node in block]

    def _row(self, folder: "Folder", node: "Node") -> "Row | None":
        self._packed = b""
        self._reading.read(folder, node)
        if self._reading.changed:
            self._reading.changed.clear()
            return None
        stamps = (node.inode, node.size, node.mtime, node.ctime, node.mode, node.flags)
        return *stamps, node.strong, node.oid, self._packed
