"""Where each object of a pack begins: git's index files (version 2), and how to make them.

An index is derived from its pack, so it is written without a sync, checked when it is read,
and made again from the pack when it is missing or damaged.

`Ids` and `Entries` hold hundreds of thousands of objects in 32 bytes each: Python's own
containers take 150 bytes for an id alone.
"""

import os
import struct
from array import array
from itertools import accumulate

from takeback.errors import DamagedStoreError
from takeback.objects import git_objects
from takeback.objects.git_objects import OID_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Entry = tuple[bytes, int, int]

    """(id, crc32 of the packed bytes, offset in the pack)"""


PACK_HEAD = 12
CHECKSUM = 20
SMALLEST_ENTRY = 9
"""Bytes of the smallest entry that a pack can hold: one of head, eight of an empty stream."""

_MAGIC = b"\xfftOc\0\0\0\x02"
_FANOUT = 256 * 4
_NAMES = len(_MAGIC) + _FANOUT
_LARGE = 1 << 31
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def build(entries: "Iterable[Entry]", checksum: bytes) -> bytes:
    ordered = sorted(entries)
    return assemble(
        b"".join([oid for oid, _, _ in ordered]),
        [crc for _, crc, _ in ordered],
        [offset for _, _, offset in ordered],
        checksum,
    )


def assemble(
    names: "bytes | bytearray", crcs: "Sequence[int]", offsets: "Sequence[int]", checksum: bytes
) -> bytes:
    """Return the index of a pack whose objects have these ids, one behind the other, in order."""
    counts = [0] * 256
    for first in names[:: git_objects.OID_LENGTH]:
        counts[first] += 1
    large = [offset for offset in offsets if offset >= _LARGE]
    if large:
        places = iter(range(_LARGE, _LARGE + len(large)))
        offsets = [offset if offset < _LARGE else next(places) for offset in offsets]
    numbers = f">{len(offsets)}I"
    body = b"".join(
        (
            _MAGIC,
            struct.pack(">256I", *accumulate(counts)),
            names,
            struct.pack(numbers, *crcs),
            struct.pack(numbers, *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return body + git_objects.sha1(body).digest()


def largest_index(pack_size: int) -> int:
    return _NAMES + 2 * CHECKSUM + (pack_size // SMALLEST_ENTRY + 1) * 36


def read(base: bytes) -> "PackIndex":
    """The index file beside a pack; a DamagedStoreError if it is not of the pack of that name.

    The pack itself is not opened, only looked at: it must be there, and large enough.
    """
    try:
        largest = largest_index(os.lstat(base + b".pack").st_size)
        fd = os.open(base + b".idx", _OPEN)
        try:
            data = os.read(fd, min(os.fstat(fd).st_size, largest))
        finally:
            os.close(fd)
    except OSError as error:
        raise DamagedStoreError(f"there is no usable index: {error.strerror}") from error
    index = PackIndex(data)
    if not base.endswith(index.checksum.hex().encode()):
        raise DamagedStoreError("it is the index of another pack")
    return index


class PackIndex:
    """A parsed index; a DamagedStoreError if `data` is not one."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _NAMES + 2 * CHECKSUM or not data.startswith(_MAGIC):
            raise DamagedStoreError("the file is not a pack index")
        if git_objects.sha1(memoryview(data)[:-CHECKSUM]).digest() != data[-CHECKSUM:]:
            raise DamagedStoreError("the checksum of the pack index does not match")
        fanout: tuple[int, ...] = struct.unpack_from(">256I", data, len(_MAGIC))
        count = fanout[-1]
        large_bytes = len(data) - _NAMES - count * 28 - 2 * CHECKSUM
        if list(fanout) != sorted(fanout) or not 0 <= large_bytes <= count * 8 or large_bytes % 8:
            raise DamagedStoreError("the parts of the pack index do not fit together")
        self._data = data
        self._fanout = (0, *fanout)
        self._crcs = _NAMES + count * git_objects.OID_LENGTH
        self._offsets = self._crcs + count * 4
        self._large = self._offsets + count * 4
        self._large_count = large_bytes // 8
        self.count: int = count
        self.checksum = data[-2 * CHECKSUM : -CHECKSUM]

    def find(self, oid: bytes) -> "int | None":
        place = self._find_place(oid)
        return None if place is None else self._offset(place)

    def find_entry(self, oid: bytes) -> "tuple[int, int] | None":
        place = self._find_place(oid)
        return None if place is None else (self._number(self._crcs, place), self._offset(place))

    def __iter__(self) -> "Iterator[Entry]":
        for place in range(self.count):
            start = _NAMES + place * git_objects.OID_LENGTH
            oid = self._data[start : start + git_objects.OID_LENGTH]
            yield oid, self._number(self._crcs, place), self._offset(place)

    def __len__(self) -> int:
        return self.count

    def ids(self) -> "list[bytes]":
        return [self._data[at : at + 20] for at in range(_NAMES, self._crcs, 20)]

    def _find_place(self, oid: bytes) -> "int | None":
        low, high = self._fanout[oid[0]], self._fanout[oid[0] + 1]
        data = self._data
        while low < high:
            middle = (low + high) // 2
            start = _NAMES + middle * git_objects.OID_LENGTH
            there = data[start : start + git_objects.OID_LENGTH]
            if there == oid:
                return middle
            if there < oid:
                low = middle + 1
            else:
                high = middle
        return None

    def _number(self, table: int, place: int) -> int:
        start = table + place * 4
        return int.from_bytes(self._data[start : start + 4], "big")

    def _offset(self, place: int) -> int:
        offset = self._number(self._offsets, place)
        if offset < _LARGE:
            return offset
        row = offset - _LARGE
        if row >= self._large_count:
            raise DamagedStoreError("the pack index points outside itself")
        start = self._large + row * 8
        return int.from_bytes(self._data[start : start + 8], "big")


_FEWEST = 1 << 10
_EMPTY = -1


class Ids:
    """Ids of objects, each with a number: the first is 0, the next 1, and so on.

    They are found by a table of numbers, at most half full, in which an id stands at the place
    that its last bytes say, or behind it. Ids are hashes, so their bytes are as good as any.
    """

    def __init__(self) -> None:
        self._ids = bytearray()
        self._slots = array("i", [_EMPTY]) * _FEWEST
        self._mask = _FEWEST - 1

    def __len__(self) -> int:
        return len(self._ids) // OID_LENGTH

    def __getitem__(self, number: int) -> bytes:
        return bytes(self._ids[number * OID_LENGTH : (number + 1) * OID_LENGTH])

    def find(self, oid: bytes) -> int:
        """The number of an id, -1 if it is not there."""
        slots, mask, ids = self._slots, self._mask, self._ids
        at = int.from_bytes(oid, "big") & mask
        number = slots[at]
        while number >= 0 and not ids.startswith(oid, number * OID_LENGTH):
            at = (at + 1) & mask
            number = slots[at]
        return number

    def add(self, oid: bytes) -> int:
        """The number of an id, which is added if it is not there."""
        number = self.find(oid)
        if number >= 0:
            return number
        number = len(self)
        self._ids += oid
        if 2 * number > self._mask:
            self._mask = 2 * self._mask + 1
            self._slots = array("i", [_EMPTY]) * (self._mask + 1)
            self._place(range(number + 1))
        else:
            self._place((number,))
        return number

    def _place(self, numbers: "Iterable[int]") -> None:
        slots, mask, ids = self._slots, self._mask, self._ids
        for number in numbers:
            oid = ids[number * OID_LENGTH : (number + 1) * OID_LENGTH]
            at = int.from_bytes(oid, "big") & mask
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = number


class Entries:
    """The entries of a pack, as its index has them, in the order in which they stand in it."""

    def __init__(self) -> None:
        self._ids = bytearray()
        self._crcs = array("I")
        self._offsets = array("Q")

    def __len__(self) -> int:
        return len(self._crcs)

    def __iter__(self) -> "Iterator[Entry]":
        for place, (crc, offset) in enumerate(zip(self._crcs, self._offsets, strict=True)):
            yield self._id(place), crc, offset

    def append(self, entry: "Entry") -> None:
        oid, crc, offset = entry
        self._ids += oid
        self._crcs.append(crc)
        self._offsets.append(offset)

    def index(self, checksum: bytes) -> bytes:
        order = array("I", sorted(range(len(self)), key=self._id))
        names = bytearray()
        for place in order:
            names += self._id(place)
        crcs = array("I", (self._crcs[place] for place in order))
        offsets = array("Q", (self._offsets[place] for place in order))
        return assemble(names, crcs, offsets, checksum)

    def _id(self, place: int) -> bytes:
        return bytes(self._ids[place * OID_LENGTH : (place + 1) * OID_LENGTH])
