"""Read what a scan found new or changed, and put it into a pack."""

import errno
import os
from hashlib import sha256

from takeback.model import reasons
from takeback.model.tree import KIND, LINK, NO_OBJECT, UNSTABLE
from takeback.store.content import LARGE, Content, NotRegular, Patience, Torn
from takeback.store.folders import mark_racy
from takeback.store.gitobjects import BLOB, object_head, object_id, sha1
from takeback.store.scan import GONE_ERRORS, SHORTAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from takeback.ports import ObjectWriter
    from takeback.store.descent import Descent
    from takeback.store.folders import Folder, Node
    from takeback.store.fsclock import FsClock
    from takeback.store.scan import Scan

    Pending = list[tuple[Folder, Node]]

    class Writer(Protocol):
        """Who takes the objects: a pack, or in a copy of this process, the one who sends them."""

        def add_hashed(self, oid: bytes, kind: int, data: bytes) -> None:
            """Take an object whose id is known."""


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
        from takeback.engine.sharing import read_shared

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
        node.flags, node.oid = reasons.UNREADABLE, NO_OBJECT
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
