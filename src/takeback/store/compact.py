"""Hundreds of thousands of objects in little memory: 32 bytes each instead of ten times as many.

Python's own containers take 150 bytes for an id alone. Here ids stand one behind the other, and
what is known of them in arrays, by number.
"""

from array import array

from takeback.store import packindex
from takeback.store.gitobjects import OID_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.store.packindex import Entry

_FEWEST = 1 << 10
_EMPTY = -1


class Ids:
    """Ids of objects, each with a number: the first is 0, the next 1, and so on.

    They are found by a table of numbers, at most half full, in which an id stands at the place
    that its last bytes say, or behind it. Ids are hashes, so their bytes are as good as any.
    """

    __slots__ = ("_ids", "_mask", "_slots")

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

    __slots__ = ("_crcs", "_ids", "_offsets")

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
        """Add the entry that comes next."""
        oid, crc, offset = entry
        self._ids += oid
        self._crcs.append(crc)
        self._offsets.append(offset)

    def index(self, checksum: bytes) -> bytes:
        """The index of the pack, which has this checksum at its end."""
        order = array("I", sorted(range(len(self)), key=self._id))
        names = bytearray()
        for place in order:
            names += self._id(place)
        crcs = array("I", (self._crcs[place] for place in order))
        offsets = array("Q", (self._offsets[place] for place in order))
        return packindex.assemble(names, crcs, offsets, checksum)

    def _id(self, place: int) -> bytes:
        return bytes(self._ids[place * OID_LENGTH : (place + 1) * OID_LENGTH])
