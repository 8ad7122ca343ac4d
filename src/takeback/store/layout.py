"""The bytes of the stat cache: one record per directory, its entries inside.

Little-endian. Records follow each other in pre-order, the root first (depth 0, empty name). A
record is a header, then `count` entries, then the directory's own name and each entry's name,
every name ended by a NUL, then zeros up to a multiple of eight.

A header holds length, depth, namelen, count, flags, mtime, ctime, dev, ino, strong, oid, seq,
view and mode; an entry ino, size, mtime, ctime, mode, flags, namelen, seq, strong and oid. A stamp
that does not fit its field (files can be dated past the year 2262) is clamped by the writer, so
it never equals the real one: such a file is looked at each time.
"""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    Header = tuple[int, int, int, int, int, int, int, int, int, bytes, bytes, bytes, int]
    Entry = tuple[int, int, int, int, int, int, int, bytes, bytes]

RECORD = struct.Struct("<IHHIIqqQQ32s20s4x20sI")
ENTRY = struct.Struct("<QQqqIHH4x32s20s")

RACY = 0x8000
"""Flag of a directory or entry whose stamps are too young to trust."""

REASON = 0xFF
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
