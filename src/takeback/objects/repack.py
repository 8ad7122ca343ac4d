"""Decides for each object of a merge how it is packed: as it stands, as a delta, or anew.

A delta is made on the version before, so that what is new costs what is new. After so many deltas
on each other the next is made on the whole version that they all rest on, if that is still worth
it; else the object is whole again. So no reading has to follow more than a few.
"""

import os
import zlib
from array import array

from takeback.errors import DamagedStoreError
from takeback.objects import delta, git_objects
from takeback.objects.pack_entry import DELTA, encode_distance, parse_distance
from takeback.objects.pack_read import PackFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

DEEPEST = 32
"""No object of ours rests on more deltas than this."""
LARGEST = 1024 * 1024
"""Nothing larger is told by a delta, so that it can be streamed."""
_LEVEL = 9
_WITH_CARE = b"\x78\xda"
"""How a stream begins that was compressed at this level."""
_WORTH = 0.75
"""A delta is worth following if it takes so much of the whole, or less."""
_OPEN_AT_ONCE = 64
_AT_ONCE = 1024 * 1024
_LONGEST_HEAD = 24
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Row:
    """Where one object stands now; `number` is its own among all that are merged, `base` that of
    the one whose delta it is, if it comes along, else -1.
    """

    __slots__ = ("base", "length", "number", "offset", "oid", "series", "source")

    def __init__(
        self, number: int, oid: bytes, series: int, place: "tuple[int, int, int]", base: int
    ) -> None:
        self.number = number
        self.oid = oid
        self.series = series
        self.source, self.offset, self.length = place
        self.base = base


class Sources:
    """The packs that are copied from, a few of them open at a time."""

    def __init__(self, directory: bytes, names: "list[bytes]") -> None:
        self._directory = directory
        self._names = names
        self._open: dict[int, int] = {}
        self._packs: dict[int, PackFile] = {}

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._open.values():
            os.close(fd)
        for pack in self._packs.values():
            pack.close()
        self._open.clear()
        self._packs.clear()

    def start(self, row: Row) -> bytes:
        if row.length <= LARGEST:
            return b"".join(self.pieces(row))
        return next(self.pieces(row))[:_LONGEST_HEAD]

    def pieces(self, row: Row) -> "Iterator[bytes]":
        fd, offset, end = self._descriptor(row.source), row.offset, row.offset + row.length
        while offset < end:
            data = os.pread(fd, min(end - offset, _AT_ONCE), offset)
            if not data:
                raise self._damaged(row.source, "is cut short")
            yield data
            offset += len(data)

    def content(self, row: Row) -> "tuple[int, bytes]":
        pack = self._packs.get(row.source)
        if pack is None:
            while len(self._packs) >= _OPEN_AT_ONCE // 8:
                self._packs.pop(next(iter(self._packs))).close()
            pack = self._packs[row.source] = PackFile(self._path(row.source))
        return pack.read(row.oid)

    def _descriptor(self, source: int) -> int:
        fd = self._open.pop(source, -1)
        if fd < 0:
            if len(self._open) >= _OPEN_AT_ONCE:
                os.close(self._open.pop(next(iter(self._open))))
            try:
                fd = os.open(self._path(source) + b".pack", _READ)
            except FileNotFoundError as error:
                raise self._damaged(source, "is gone") from error
        self._open[source] = fd
        return fd

    def _path(self, source: int) -> bytes:
        return os.path.join(self._directory, self._names[source])

    def _damaged(self, source: int, what: str) -> DamagedStoreError:
        name = self._names[source].decode("ascii", "backslashreplace")
        return DamagedStoreError(f"pack `{name}` {what}")


class _Version:
    """One object of the series at hand, packed already; what it holds is read when it is needed."""

    __slots__ = ("_data", "depth", "kind", "offset", "row")

    def __init__(
        self, row: Row, kind: int, offset: int, depth: int, data: "bytes | None" = None
    ) -> None:
        self.row = row
        self.kind = kind
        self.offset = offset
        self.depth = depth
        self._data = data

    def data(self, sources: Sources) -> bytes:
        if self._data is None:
            self._data = sources.content(self.row)[1]
        return self._data


class Repacking:
    """Says how each object is packed, one after the other, in the order of their series."""

    def __init__(self, sources: Sources, objects: int) -> None:
        self._sources = sources
        self._offsets = array("Q", bytes(8 * objects))
        self._kinds, self._depths = bytearray(objects), bytearray(objects)
        """Of what was packed: its place, its kind, and how many deltas it rests on."""
        self._series = -1
        self._whole: _Version | None = None
        self._last: _Version | None = None

    def packed(self, row: Row, offset: int) -> "Iterable[bytes]":
        if row.series != self._series:
            self._series, self._whole, self._last = row.series, None, None
        raw = self._sources.start(row)
        try:
            kind, size, start = git_objects.parse_entry_head(raw)
            if kind == DELTA:
                return (self._delta_again(row, offset, raw, size, start),)
            if row.length > LARGEST or size > LARGEST:
                self._keep(row, kind, offset, 0)
                return self._sources.pieces(row)
            return (self._whole_again(row, offset, raw, kind, size, start),)
        except (ValueError, zlib.error):
            raise _damaged(row) from None

    def _delta_again(self, row: Row, offset: int, raw: bytes, size: int, start: int) -> bytes:
        """Pack what is a delta: the same delta, if its base is here already."""
        base, kind = row.base, self._kinds[row.base] if row.base >= 0 else 0
        if kind and self._depths[base] < DEEPEST and row.length <= LARGEST:
            behind = parse_distance(raw, start)[1]
            self._note(_Version(row, kind, offset, self._depths[base] + 1))
            return _delta_head(size, offset - self._offsets[base]) + raw[behind:]
        kind, data = self._sources.content(row)
        return self._anew(
            row, offset, kind, data, git_objects.entry_head(kind, len(data)) + _deflate(data)
        )

    def _whole_again(
        self, row: Row, offset: int, raw: bytes, kind: int, size: int, start: int
    ) -> bytes:
        """Pack what is whole: as it is, if it was done with care already."""
        last, is_done = self._last, raw.startswith(_WITH_CARE, start)
        if is_done and (last is None or last.row.source == row.source):
            self._note(_Version(row, kind, offset, 0))
            return raw
        data = zlib.decompressobj().decompress(raw[start:], size + 1)
        if len(data) != size:
            raise _damaged(row)
        return self._anew(row, offset, kind, data, raw)

    def _anew(self, row: Row, offset: int, kind: int, data: bytes, whole: bytes) -> bytes:
        """Pack an object as a delta on another version, or whole and with care."""
        base = self._last
        if base is not None and base.depth >= DEEPEST:
            base = self._whole
        if base is not None and base.kind == kind and len(data) <= LARGEST:
            told = delta.encode(base.data(self._sources), data, len(whole))
            if told is not None:
                packed = _delta_head(len(told), offset - base.offset) + _deflate(told)
                if len(packed) < len(whole) * _WORTH:
                    self._note(_Version(row, kind, offset, base.depth + 1, data))
                    return packed
        self._note(_Version(row, kind, offset, 0, data))
        again = git_objects.entry_head(kind, len(data)) + _deflate(data)
        return again if len(again) <= len(whole) else whole

    def _keep(self, row: Row, kind: int, offset: int, depth: int) -> None:
        self._offsets[row.number] = offset
        self._kinds[row.number], self._depths[row.number] = kind, depth

    def _note(self, version: _Version) -> None:
        self._keep(version.row, version.kind, version.offset, version.depth)
        self._last = version
        if not version.depth:
            self._whole = version


def _delta_head(size: int, distance: int) -> bytes:
    return git_objects.entry_head(DELTA, size) + encode_distance(distance)


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL)


def _damaged(row: Row) -> DamagedStoreError:
    return DamagedStoreError(f"the object `{row.oid.hex()}` is damaged and cannot be merged")
