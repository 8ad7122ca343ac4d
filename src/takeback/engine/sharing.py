"""Share the reading of many files among forked copies of this process.

Blocks of files are dealt out in turn and taken back in that order, so the packs are the same
whoever read what. Only this process writes.
"""

from takeback.engine.reading import group
from takeback.model.tree import UNSTABLE
from takeback.store import deflate
from takeback.store.content import LARGE
from takeback.store.copies import Copy, how_many
from takeback.store.descent import Descent
from takeback.store.gitobjects import BLOB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.engine.reading import Pending, Reading
    from takeback.ports import ObjectWriter
    from takeback.store.copies import Row, Rows
    from takeback.store.folders import Folder, Node

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
