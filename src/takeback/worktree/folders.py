"""Folders and their entries in memory while a scan works on them.

Only folders that a scan has to look at are held like this; all others stay bytes in the stat
cache: one record per directory, its entries inside.

Little-endian. Records follow each other in pre-order, the root first (depth 0, empty name). A
record is a header, then `count` entries, then the directory's own name and each entry's name,
every name ended by a NUL, then zeros up to a multiple of eight.

A header holds length, depth, namelen, count, flags, mtime, ctime, dev, ino, strong, oid, seq,
view and mode; an entry ino, size, mtime, ctime, mode, flags, namelen, seq, strong and oid. A stamp
that does not fit its field (files can be dated past the year 2262) is clamped by the writer, so
it never equals the real one: such a file is looked at each time.
"""

import struct
from struct import Struct

from takeback.model.tree import FOLDER, KIND, NO_HASH, NO_OBJECT, REASON

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    Header = tuple[int, int, int, int, int, int, int, int, int, bytes, bytes, bytes, int]

    Entry = tuple[int, int, int, int, int, int, int, bytes, bytes]
    Stamps = tuple[int, int, int, bytes]
    """Inode, size, mtime, and what `seen` reads."""
    Before = tuple[int, int, bytes, Stamps | None]
    """Mode, flags and strong hash of an entry; the stamps of one that is left out."""

RECORD = struct.Struct("<IHHIIqqQQ32s20s4x20sI")
ENTRY = struct.Struct("<QQqqIHH4x32s20s")

RACY = 0x8000
"""Flag of a directory or entry whose stamps are too young to trust."""

REASON_FIELD = 0xFF
"""The part of an entry's flags that says why it was left out; 0 when it was captured."""
REASON_VCS = 1
REASON_MOUNT = 2

SAME, CHANGED, GONE, DENIED = range(4)
"""What the stat loop says about a directory."""


def unpack_record(
    buffer: "bytes | bytearray | memoryview", offset: int
) -> "tuple[Header, bytes, list[tuple[Entry, bytes]]]":
    """Read one directory back: its header, its name, and each entry with its name.

    Only for buffers that passed the stat loop, which is what checks them.
    """
    fields: Header = RECORD.unpack_from(buffer, offset)
    first = offset + RECORD.size
    names_at = first + fields[3] * ENTRY.size
    view = memoryview(buffer)
    names = bytes(view[names_at : offset + fields[0]]).split(b"\0")
    entries = ENTRY.iter_unpack(view[first:names_at])
    return fields, names[0], list(zip(entries, names[1:], strict=False))


_VIEW = Struct("<QQI")
_SEEN = Struct("<QQ4x")
_KEPT_WAY = 256
_LATEST = (1 << 63) - 1
_ALL_64 = (1 << 64) - 1


class Node:
    """One entry of a folder: its stamps, and what the store holds of it."""

    __slots__ = ("ctime", "flags", "inode", "mode", "mtime", "name", "oid", "size", "strong")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.inode = self.size = self.mtime = self.ctime = self.mode = 0
        self.flags = 0
        self.strong = NO_HASH
        self.oid = NO_OBJECT

    def stamp(self, found: "os.stat_result") -> None:
        self.inode = found.st_ino
        self.size = found.st_size
        mtime, ctime = found.st_mtime_ns, found.st_ctime_ns
        self.mtime = mtime if mtime.bit_length() < 64 else _fitting(mtime)
        self.ctime = ctime if ctime.bit_length() < 64 else _fitting(ctime)
        self.mode = found.st_mode

    @property
    def reason(self) -> int:
        return self.flags & REASON

    def view(self) -> bytes:
        """The git tree of a captured folder.

        The stamps of a folder are in its own record, so their place here is free for this.
        """
        return _VIEW.pack(self.inode, self.size, self.ctime)

    def set_view(self, oid: bytes) -> None:
        self.inode, self.size, self.ctime = _VIEW.unpack(oid)

    def set_seen(self, entries: int, size: int) -> None:
        """Note how much of a folder was counted before it was left out.

        No object holds it, so the place of the object's id is free for this.
        """
        self.oid = _SEEN.pack(entries, size)

    @property
    def is_folder(self) -> bool:
        """Whether this is a captured folder, which has a record of its own."""
        return self.mode & KIND == FOLDER and not self.flags & REASON


class Folder:
    """One folder that a scan looks at."""

    __slots__ = (
        "_way", "before", "bytes_below", "changed", "children", "ctime", "device", "entries_below",
        "flags", "inode", "judged", "mark", "mode", "mtime", "name", "nodes", "offset", "oid",
        "parent", "rebuildable", "strong", "touched", "unsure", "view",
    )  # fmt: skip

    def __init__(self, name: bytes, parent: "Folder | None") -> None:
        self.name = name
        self.parent = parent
        self._way = _way_below(parent, name) if parent is not None else ()
        self.nodes: dict[bytes, Node] = {}
        self.children: dict[bytes, Folder] = {}
        self.before: dict[bytes, Before] = {}
        self.offset = -1
        self.mode = 0
        self.flags = 0
        self.strong = NO_HASH
        self.oid = NO_OBJECT
        self.view = NO_OBJECT
        self.touched = True
        self.changed = True
        self.unsure = False
        self.entries_below = 0
        self.bytes_below = 0
        self.judged = False
        self.rebuildable = False
        self.mark = 0

    def stamp(self, found: "os.stat_result") -> None:
        """Take over the stamps of a stat; another mode is another manifest."""
        if self.offset >= 0 and self.mode != found.st_mode:
            self.changed = True
        self.device = found.st_dev & _ALL_64
        self.inode = found.st_ino
        self.mtime = _fitting(found.st_mtime_ns)
        self.ctime = _fitting(found.st_ctime_ns)
        self.mode = found.st_mode
        self.touched = True

    def way(self) -> "tuple[bytes, ...]":
        if self._way is not None:
            return self._way
        names, above = [], self
        while above._way is None and above.parent is not None:
            names.append(above.name)
            above = above.parent
        return *above.way(), *reversed(names)

    def path(self) -> bytes:
        return b"/".join(self.way())

    def path_of(self, name: bytes) -> bytes:
        return b"/".join((*self.way(), name))

    def depth(self) -> int:
        return len(self.way())

    def sorted_nodes(self) -> "list[Node]":
        nodes = self.nodes
        return [nodes[name] for name in sorted(nodes)]


def _way_below(parent: Folder, name: bytes) -> "tuple[bytes, ...] | None":
    # Kept where it is short; for a chain of thousands of folders that would add up.
    above = parent._way
    return (*above, name) if above is not None and len(above) < _KEPT_WAY else None


def load(records: "bytes | bytearray", offset: int, parent: "Folder | None") -> Folder:
    header, name, entries = unpack_record(records, offset)
    folder = Folder(name, parent)
    folder.offset = offset
    folder.touched = folder.changed = False
    folder.judged = True
    (_, _, _, _, folder.flags, folder.mtime, folder.ctime, folder.device, folder.inode) = header[:9]
    (folder.strong, folder.oid, folder.view, folder.mode) = header[9:]
    for fields, entry_name in entries:
        node = Node(entry_name)
        (node.inode, node.size, node.mtime, node.ctime, node.mode, node.flags) = fields[:6]
        (node.strong, node.oid) = fields[7:]
        folder.nodes[entry_name] = node
        is_out = node.flags & REASON and node.mode
        stamps = (node.inode, node.size, node.mtime, node.oid) if is_out else None
        folder.before[entry_name] = (node.mode, node.flags & ~RACY, node.strong, stamps)
    return folder


def before(entry: "Entry") -> "Before":
    """What a record says of an entry, as far as it is compared with what is there now."""
    inode, size, mtime, _, mode, flags, _, strong, oid = entry
    stamps = (inode, size, mtime, oid) if flags & REASON and mode else None
    return mode, flags & ~RACY, strong, stamps


def seen(oid: bytes) -> "tuple[int, int]":
    """Entries and bytes that were counted in a folder before it was left out."""
    entries, size = _SEEN.unpack(oid)
    return entries, size


def record(folder: Folder, depth: int) -> bytes:
    fixed, names = [], [folder.name]
    for n in folder.sorted_nodes():
        stamps = (n.inode, n.size, n.mtime, n.ctime, n.mode, n.flags)
        fixed.append(ENTRY.pack(*stamps, len(n.name), n.strong, n.oid))
        names.append(n.name)
    tail = b"\0".join(names) + b"\0"
    size = RECORD.size + len(fixed) * ENTRY.size + len(tail)
    padding = -size % 8
    head = RECORD.pack(
        size + padding, depth, len(folder.name), len(fixed), folder.flags,
        folder.mtime, folder.ctime, folder.device, folder.inode,
        folder.strong, folder.oid, folder.view, folder.mode,
    )  # fmt: skip
    return b"".join((head, *fixed, tail, bytes(padding)))


def mark_racy(thing: "Node | Folder", racy: bool) -> None:
    thing.flags = thing.flags | RACY if racy else thing.flags & ~RACY


def _fitting(stamp: int) -> int:
    # Files can be dated outside of what 64 bits of nanoseconds hold.
    return max(-_LATEST, min(stamp, _LATEST))
