"""Files in which agents keep their conversations, line by line; read leniently, never written.

Such a file grows by whole requests, and somebody may be writing to it right now. A hook looks at
its end, and only as far back as it must; what is no JSON object there is passed over.
"""

import os

from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Line = dict[str, Any]

MOST = 16 << 20
"""Bytes at the end of a file beyond which no hook looks."""
_AT_ONCE = 256 << 10
_HEAD, _LONGEST_TEXT = 64 << 10, 100
_HOW = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def backwards(path: str, most: int = MOST, end: "int | None" = None) -> "Iterator[bytes]":
    """The lines at the end of a file, or before a place in it, the last one first.

    None if it cannot be read.
    """
    try:
        fd = os.open(path, _HOW)
    except (OSError, ValueError):
        return
    try:
        size = os.fstat(fd).st_size
        last = size if end is None else min(end, size)
        yield from _backwards(fd, last, max(0, last - most))
    except OSError:
        return
    finally:
        os.close(fd)


def text_behind(path: str, mark: bytes) -> str:
    """The text behind the first mark near the beginning of a file, up to a quote; empty if none."""
    try:
        fd = os.open(path, _HOW)
    except (OSError, ValueError):
        return ""
    try:
        head = os.pread(fd, _HEAD, 0)
    except OSError:
        return ""
    finally:
        os.close(fd)
    _, _, rest = head.partition(mark)
    text, quote, _ = rest[:_LONGEST_TEXT].partition(b'"')
    return text.decode("utf-8", "replace") if quote else ""


def _backwards(fd: int, end: int, least: int) -> "Iterator[bytes]":
    """Piece by piece; a line that goes on in the piece before waits for its beginning."""
    rest: list[bytes] = []
    while end > least:
        start = max(least, end - _AT_ONCE)
        first, *others = os.pread(fd, end - start, start).split(b"\n")
        if others:
            rest.insert(0, others.pop())
            yield b"".join(rest)
            yield from reversed(others)
            rest = [first]
        else:
            rest.insert(0, first)
        end = start
    if end == 0 and rest:
        yield b"".join(rest)


def forwards(path: str, end: "int | None" = None) -> "Iterator[bytes]":
    """All lines of a file, as far as it goes by now or up to a place; OSError as it comes."""
    # Never in a hook: this reads the file as a whole.
    with open(os.open(path, _HOW | os.O_NOFOLLOW), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        left = size if end is None else min(end, size)
        while left > 0:
            line = file.readline()
            if not line:
                return
            left -= len(line)
            yield line.removesuffix(b"\n")


def read(line: bytes) -> "Line | None":
    """What a line says; None if it is torn or no JSON object."""
    try:
        said = json_text.loads(line.decode("utf-8", "replace").strip())
    except (ValueError, TypeError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def renamed(line: bytes, names: "tuple[str, ...]", old: str, new: str) -> bytes:
    """A line with another value of some fields, at any depth, and else as it stands.

    As bytes: what stands in a line's texts has its quotes escaped, and cannot look like a field.
    """
    for name in names:
        for blank in ("", " "):
            was, will = (_field(name, blank, value) for value in (old, new))
            line = line.replace(was, will)
    return line


def _field(name: str, blank: str, value: str) -> bytes:
    return f'"{name}":{blank}"{value}"'.encode("utf-8", "surrogatepass")


def text(line: "Line", name: str) -> str:
    """A field that is a text; empty if it is something else."""
    value = line.get(name)
    return value if isinstance(value, str) else ""


def inner(line: "Line", name: str) -> "Line":
    """A field that holds fields; empty if it does not."""
    value = line.get(name)
    return value if isinstance(value, dict) else {}


def seconds(line: "Line") -> "float | None":
    """When a line was written, in seconds since 1970."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text(line, "timestamp")).timestamp()
    except (ValueError, OverflowError):
        return None


def as_uuid(data: bytes) -> str:
    """Sixteen bytes as ids are written."""
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def uuid4() -> str:
    """A new id."""
    data = bytearray(os.urandom(16))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    return as_uuid(bytes(data))
