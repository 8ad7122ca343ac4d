"""Deflate and inflate: the fastest compressor at hand that makes valid zlib streams.

ISA-L compresses several times as fast as zlib at the same ratio, but importing it costs
milliseconds that a checkpoint of ten small files does not have. So a process begins with zlib
and changes over once it has compressed enough to win that time back.
"""

import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    Data = bytes | bytearray | memoryview

    class Compressor(Protocol):
        """A zlib stream in the making."""

        def compress(self, data: Data, /) -> bytes:
            """Take more input; return what output there is already."""

        def flush(self) -> bytes:
            """Return the rest of the stream."""


_LEVEL = 1
_WORTH_AN_IMPORT = 256 * 1024
"""So many bytes must have come by before the faster compressor is imported."""

_SMALL, _SMALL_WINDOW, _SMALL_MEMORY = 3584, 12, 5
"""Up to so many bytes a window of 4 KiB sees all, and to clear the usual 256 KiB takes longer."""
_FEED = 256 * 1024
_PIECE = 1024 * 1024
MOST_INFLATION = 1032
"""No deflate stream inflates to more than so many times its own length."""


class BadStreamError(ValueError):
    """Bytes that are not the zlib stream they should be."""


class _Choice:
    """Which compressor this process uses by now."""

    compress: "Callable[[Data, int], bytes] | None" = None
    compressor: "Callable[[int], Compressor] | None" = None
    slow_bytes = 0


_choice = _Choice()


def compress(data: "Data") -> bytes:
    if _choice.compress is not None:
        return _choice.compress(data, _LEVEL)
    _count(len(data))
    if len(data) <= _SMALL:
        small = zlib.compressobj(_LEVEL, zlib.DEFLATED, _SMALL_WINDOW, _SMALL_MEMORY)
        return small.compress(data) + small.flush()
    return zlib.compress(data, _LEVEL)


def expect(length: int) -> None:
    """Get ready for so many bytes. Before a fork, this is done once for all copies."""
    if _choice.compress is None:
        _count(length)


def compressor(expected: int = 0) -> "Compressor":
    if _choice.compressor is None:
        _count(expected)
    if _choice.compressor is not None:
        return _choice.compressor(_LEVEL)
    return zlib.compressobj(_LEVEL)


def _count(length: int) -> None:
    _choice.slow_bytes += length
    if _choice.slow_bytes > _WORTH_AN_IMPORT or "isal.isal_zlib" in sys.modules:
        _change_over()


def _change_over() -> None:
    try:
        from isal import isal_zlib
    except ImportError:
        _choice.compress, _choice.compressor = zlib.compress, zlib.compressobj
    else:
        _choice.compress, _choice.compressor = isal_zlib.compress, isal_zlib.compressobj


def is_plausible(size: int, stored: int) -> bool:
    """Whether a stream of at most `stored` bytes can inflate to `size` bytes."""
    return size <= stored * MOST_INFLATION


class Inflation:
    """One zlib stream being inflated; iterate over it for pieces of at most 1 MiB.

    `fetch(offset, length)` gives up to `length` bytes, none at the end. Never more than `size`
    bytes come out, whatever the stream holds; anything but exactly `size` is a BadStreamError.
    Afterwards `end` is the offset behind the stream.
    """

    def __init__(self, fetch: "Callable[[int, int], bytes]", offset: int, size: int) -> None:
        self._fetch = fetch
        self._left = size
        self.end = offset

    def __iter__(self) -> "Iterator[bytes]":
        stream = zlib.decompressobj()
        pending = b""
        while not stream.eof:
            pending = pending or self._more()
            try:
                piece = stream.decompress(pending, min(self._left + 1, _PIECE))
            except zlib.error:
                raise BadStreamError("cannot be inflated") from None
            pending = stream.unconsumed_tail
            self._left -= len(piece)
            if self._left < 0:
                raise BadStreamError("is longer than declared")
            if piece:
                yield piece
        if self._left:
            raise BadStreamError("is shorter than declared")
        self.end -= len(stream.unused_data)

    def _more(self) -> bytes:
        data = self._fetch(self.end, min(self._left + self._left // 1000 + 64, _FEED))
        if not data:
            raise BadStreamError("breaks off")
        self.end += len(data)
        return data
