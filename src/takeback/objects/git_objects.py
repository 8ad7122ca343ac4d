"""Git's objects as bytes: ids, trees, commits, the heads of pack entries, safe names.

Names in the view are escaped so that nothing captured from a work tree can steer git
(`.gitattributes`, `.gitmodules`, `.mailmap`) or make `git fsck` object (`.git` in any of the
spellings that some file system takes for it). `%` marks an escaped byte, as in a URL.
"""

import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Data = bytes | bytearray | memoryview

COMMIT = 1
TREE = 2
BLOB = 3

MODE_TREE = 0o40000
MODE_FILE = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_LINK = 0o120000

OID_LENGTH = 20
LONGEST_ENTRY_HEAD = 10
"""Bytes that the head of a pack entry can have when the size is below 2**67."""

_WORDS = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}

_HIGH_BYTES = bytes(range(0x80, 0x100))
_SPECIAL_STARTS = (b".git", b"git~", b".mailmap")
_SPECIAL_SHORT_NAMES = (
    b"gitmod", b"gi7eba", b"gitatt", b"gi7d29", b"gitign", b"gi250a", b"mailma", b"maba30",
)  # fmt: skip
"""What NTFS makes of `.gitmodules` and its kin: these six letters or fewer, `~`, digits."""
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. +@()"
"""What most names are made of; a name of nothing else is shown as it is, unless it is hidden."""
_DOT, _FIRST_HIGH = 0x2E, 0x80


def sha1(data: "Data" = b"") -> "hashlib._Hash":
    """Git's hash of ids and checksums, also where SHA-1 is forbidden for security."""
    return hashlib.sha1(data, usedforsecurity=False)


def object_head(kind: int, size: int) -> bytes:
    return b"%s %d\0" % (_WORDS[kind], size)


def object_id(kind: int, data: "Data") -> bytes:
    return sha1(b"%s %d\0%s" % (_WORDS[kind], len(data), data)).digest()


def encode_tree(entries: "Iterable[tuple[int, bytes, bytes]]") -> bytes:
    # Git sorts a folder as if its name ended in a slash; names are unique, so no tie is broken.
    ordered = [
        (name + b"/" if mode == MODE_TREE else name, b"%o %s\0%s" % (mode, name, oid))
        for mode, name, oid in entries
    ]
    ordered.sort()
    return b"".join([line for _, line in ordered])


def encode_commit(
    tree: bytes, parents: "Iterable[bytes]", when_seconds: int, message: bytes
) -> bytes:
    """Return the content of a commit; author and committer are the same."""
    who = b"Takeback <takeback@localhost> %d +0000" % max(0, when_seconds)
    lines = [b"tree " + tree.hex().encode()]
    lines += [b"parent " + parent.hex().encode() for parent in parents]
    lines += [b"author " + who, b"committer " + who, b""]
    return b"\n".join(lines) + b"\n" + message.replace(b"\0", b" ").rstrip(b"\n") + b"\n"


def entry_head(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 0x0F
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)


def parse_entry_head(data: bytes) -> tuple[int, int, int]:
    """Return (kind, size, length of the head) of the pack entry that `data` begins with.

    A ValueError says that the head breaks off or gives a size that no file can have.
    """
    size, shift = 0, 0
    for position, byte in enumerate(data[:LONGEST_ENTRY_HEAD]):
        if position == 0:
            size, shift = byte & 0x0F, 4
        else:
            size |= (byte & 0x7F) << shift
            shift += 7
        if not byte & 0x80:
            if size >= 1 << 63:
                break
            return data[0] >> 4 & 7, size, position + 1
    raise ValueError("not the head of a pack entry")


def escape_name(raw: bytes) -> bytes:
    if not raw:
        raise ValueError("an entry has a name")
    if raw[0] != _DOT and not raw.translate(None, _PLAIN):
        return raw
    name = raw.replace(b"%", b"%25") if b"%" in raw else raw
    if b"\\" in name:
        name = name.replace(b"\\", b"%5C")
    if b"/" in name or b"\0" in name:
        name = name.replace(b"/", b"%2F").replace(b"\0", b"%00")
    if (name[0] == _DOT or name[0] >= _FIRST_HIGH or b"~" in name) and _is_special(name):
        name = b"%%%02X%s" % (name[0], name[1:])
    return name


def _is_special(name: bytes) -> bool:
    """Whether git, or a file system git knows of, takes `name` for one of git's own files."""
    if name in (b".", b".."):
        return True
    plain = name.translate(None, _HIGH_BYTES).lower()
    if plain.startswith(_SPECIAL_STARTS):
        return True
    start, tilde, rest = plain.partition(b"~")
    if not tilde or not rest[:1].isdigit():
        return False
    return any(short.startswith(start) for short in _SPECIAL_SHORT_NAMES)
