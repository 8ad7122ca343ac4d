"""The tree: a hierarchy of directory manifests, each addressed by what it says.

A manifest lists one folder: every name in raw bytes with kind and mode, size, strong hash,
and for what was left out, the reason. Its *identity* is the SHA-256 of that list. Beside the
identity it carries, per entry, what does not make a tree another tree: the modification time and
the git object id. Where an object lies is no part of it: the same tree is the same everywhere.

    object   = "TBM2" + length of identity (u32) + identity + beside
    identity = mode (u16) flags (u16) count (u32)
               + count x ( mode u16, flags u16, size u64, length of name u16, strong 32, name )
    beside   = count x ( mtime_ns i64, object id 20 )

Entries are in the order of their raw names. Everything is little-endian.

An entry whose content no checkpoint holds yet: what came of a merge.
"""

from hashlib import sha256
from struct import Struct, error

from takeback.errors import DamagedStoreError
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Protocol

    class Fields(Protocol):
        """What `encode` needs of an entry; `Entry` and the scanner's nodes both have it."""

        flags: int
        mode: int
        mtime: int
        name: bytes
        oid: bytes
        size: int
        strong: bytes


KIND = 0o170000
FOLDER = 0o040000
REGULAR = 0o100000
LINK = 0o120000

SETUID = 0o6000
"""The bits by which a program runs as its owner or its group."""

REASON = 0x00FF
UNSTABLE = 0x0100
"""The file never held still while it was read."""
INCOMPLETE_BELOW = 0x0200
"""Something below this folder was left out."""

NO_HASH = bytes(32)
NO_OBJECT = bytes(20)

NAMELESS = b"(forgotten "
"""How the name of an entry begins whose own name was forgotten, too."""

_MAGIC = b"TBM2"
_PREAMBLE = Struct("<4sI")
_HEAD = Struct("<HHI")
_ENTRY = Struct("<HHQH32s")
_BESIDE = Struct("<q20s")


class Entry:
    """One name in a folder, as a manifest records it."""

    __slots__ = ("flags", "mode", "mtime", "name", "oid", "size", "strong")

    def __init__(
        self,
        name: bytes,
        mode: int,
        flags: int,
        size: int,
        strong: bytes,
        mtime: int,
        oid: bytes,
    ) -> None:
        self.name = name
        self.mode = mode
        self.flags = flags
        self.size = size
        self.strong = strong
        self.mtime = mtime
        self.oid = oid

    @property
    def kind(self) -> int:
        return self.mode & KIND

    @property
    def reason(self) -> int:
        """Why this entry was left out; 0 when it was captured."""
        return self.flags & REASON


class Manifest(Value):
    """One folder: its own mode and its entries in the order of their names."""

    mode: int
    entries: "list[Entry]"
    strong: bytes

    def find(self, name: bytes) -> "Entry | None":
        for entry in self.entries:
            if entry.name == name:
                return entry
        return None

    def folders(self) -> "Iterator[Entry]":
        return (e for e in self.entries if e.kind == FOLDER and not e.reason)


def nameless(entries: "Iterable[Entry]") -> "Entry | None":
    """What stands for all names that a folder does not list, if some were forgotten in it.

    Nobody knows any more which; so whatever is not listed may have been there.
    """
    from takeback.model.words import FORGOTTEN

    for entry in entries:
        if entry.reason == FORGOTTEN and entry.name.startswith(NAMELESS):
            return Entry(b"", 0, FORGOTTEN, 0, NO_HASH, 0, NO_OBJECT)
    return None


def as_entry(root: Manifest) -> Entry:
    """The folder at the top as if it had an entry somewhere; its name and path are empty."""
    return Entry(b"", FOLDER | root.mode, 0, 0, root.strong, 0, NO_OBJECT)


def with_mode(entry: Entry, mode: int) -> Entry:
    e = entry
    return Entry(e.name, mode, e.flags, e.size, e.strong, e.mtime, e.oid)


def encode(mode: int, entries: "Sequence[Fields]") -> "tuple[bytes, bytes]":
    """The manifest of a folder as (strong hash, object bytes). `entries` are sorted by name."""
    identity = [_HEAD.pack(mode & 0o7777, 0, len(entries))]
    beside = []
    for e in entries:
        reason = e.flags & REASON
        if reason:
            row = _ENTRY.pack(e.mode & KIND, reason, 0, len(e.name), NO_HASH)
        else:
            flags = e.flags & (UNSTABLE | INCOMPLETE_BELOW)
            size = 0 if e.mode & KIND == FOLDER else e.size
            row = _ENTRY.pack(e.mode & 0xFFFF, flags, size, len(e.name), e.strong)
        identity += (row, e.name)
        beside.append(_BESIDE.pack(e.mtime, e.oid))
    said = b"".join(identity)
    preamble = _PREAMBLE.pack(_MAGIC, len(said))
    return sha256(said).digest(), b"".join((preamble, said, *beside))


def decode(data: bytes) -> Manifest:
    """Read a manifest object; `DamagedStoreError` on anything that `encode` would not write."""
    try:
        return _decode(data)
    except (error, ValueError, IndexError) as problem:
        raise DamagedStoreError(f"a folder's manifest cannot be read ({problem})") from None


def _decode(data: bytes) -> Manifest:
    magic, length = _PREAMBLE.unpack_from(data)
    start = _PREAMBLE.size
    if magic != _MAGIC or start + length > len(data):
        raise ValueError("not a manifest")
    mode, _, count = _HEAD.unpack_from(data, start)
    if len(data) != start + length + count * _BESIDE.size:
        raise ValueError("wrong length")
    at, side = start + _HEAD.size, start + length
    entries: list[Entry] = []
    for _ in range(count):
        entry_mode, flags, size, name_length, strong = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        name = data[at : at + name_length]
        at += name_length
        if not is_safe_name(name) or (entries and entries[-1].name >= name):
            raise ValueError("unsafe or unsorted name")
        mtime, oid = _BESIDE.unpack_from(data, side)
        side += _BESIDE.size
        entries.append(Entry(name, entry_mode, flags, size, strong, mtime, oid))
    if at != start + length:
        raise ValueError("wrong length of names")
    return Manifest(mode, entries, sha256(data[start : start + length]).digest())


def is_safe_name(name: bytes) -> bool:
    """Whether `name` can be one component of a path and nothing else."""
    return bool(name) and name not in (b".", b"..") and b"/" not in name and 0 not in name


class Made(Entry):
    """A file as it shall be; its `content` is stored before anything is touched."""

    __slots__ = ("content",)

    def __init__(self, content: bytes, mode: int) -> None:
        strong = sha256(content).digest()
        super().__init__(b"", mode, 0, len(content), strong, 0, NO_OBJECT)
        self.content = content

    def stored(self, oid: bytes) -> Entry:
        """The same, once its content is in a pack."""
        return Entry(b"", self.mode, 0, self.size, self.strong, 0, oid)
