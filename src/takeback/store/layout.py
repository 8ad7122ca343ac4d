"""The bytes of the stat cache: one record per directory, its entries inside.

Little-endian. Records follow each other in pre-order, the root first (depth 0, empty name). A
record is a header, then `count` entries, then the directory's own name and each entry's name,
every name ended by a NUL, then zeros up to a multiple of eight.

Headers and entries travel as plain tuples in the order of the structs; `HEADER_FIELDS` and
`ENTRY_FIELDS` name their places. A stamp that does not fit its field (files can be dated past
the year 2262) is clamped, so it never equals the real one: such a file is looked at each time.
"""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    Header = tuple[int, int, int, int, int, int, int, int, int, bytes, bytes, int, bytes, int]
    Entry = tuple[int, int, int, int, int, int, int, int, bytes, bytes]

RECORD = struct.Struct("<IHHIIqqQQ32s20sI20sI")
ENTRY = struct.Struct("<QQqqIHHI32s20s")

HEADER_FIELDS = (
    "length", "depth", "namelen", "count", "flags", "mtime", "ctime", "dev", "ino",
    "strong", "oid", "seq", "view", "mode",
)  # fmt: skip
ENTRY_FIELDS = (
    "ino", "size", "mtime", "ctime", "mode", "flags", "namelen", "seq", "strong", "oid",
)  # fmt: skip

RACY = 0x8000
"""Flag of a directory or entry whose stamps are too young to trust."""

REASON = 0xFF
"""The part of an entry's flags that says why it was left out; 0 when it was captured."""
REASON_VCS = 1
REASON_MOUNT = 2

SAME, CHANGED, GONE, DENIED = range(4)
"""What the stat loop says about a directory."""

_NO_STRONG = bytes(32)
_NO_OID = bytes(20)
_STAMP_MIN, _STAMP_MAX = -(1 << 63), (1 << 63) - 1
_ALL_64 = (1 << 64) - 1


def header(
    st: "os.stat_result",
    depth: int,
    flags: int = 0,
    strong: bytes = _NO_STRONG,
    oid: bytes = _NO_OID,
    seq: int = 0,
    view: bytes = _NO_OID,
) -> "Header":
    """Say what a directory looks like now; `pack_record` fills in the lengths."""
    mtime, ctime = _clamped(st.st_mtime_ns), _clamped(st.st_ctime_ns)
    device, inode = st.st_dev & _ALL_64, st.st_ino
    return (0, depth, 0, 0, flags, mtime, ctime, device, inode, strong, oid, seq, view, st.st_mode)


def entry(
    st: "os.stat_result",
    flags: int = 0,
    seq: int = 0,
    strong: bytes = _NO_STRONG,
    oid: bytes = _NO_OID,
) -> "Entry":
    """Say what an entry of a directory looks like now; `pack_record` fills in the length."""
    mtime, ctime = _clamped(st.st_mtime_ns), _clamped(st.st_ctime_ns)
    return (st.st_ino, st.st_size, mtime, ctime, st.st_mode, flags, 0, seq, strong, oid)


def pack_record(header: "Header", name: bytes, entries: "Iterable[tuple[Entry, bytes]]") -> bytes:
    """Make the bytes of one directory; the lengths and the count are taken from the arguments."""
    pack, fixed, names = ENTRY.pack, [], [name]
    for fields, entry_name in entries:
        fixed.append(pack(*fields[:6], len(entry_name), *fields[7:]))
        names.append(entry_name)
    tail = b"\0".join(names) + b"\0"
    size = RECORD.size + len(fixed) * ENTRY.size + len(tail)
    padding = -size % 8
    head = RECORD.pack(size + padding, header[1], len(name), len(fixed), *header[4:])
    return b"".join((head, *fixed, tail, bytes(padding)))


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


def _clamped(stamp: int) -> int:
    if _STAMP_MIN <= stamp <= _STAMP_MAX:
        return stamp
    return _STAMP_MAX if stamp > 0 else _STAMP_MIN
