"""The text that pg_dump writes, as content of the store and as parts that can be loaded."""

import json
import re
import zlib

from takeback.errors import ParticipantError
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_SMALLEST, _LARGEST = 16 * 1024, 256 * 1024
_CUT = 0xFF
"""One line in so many may end a piece: the same lines, wherever they stand, make the same cuts."""

_TOKEN = re.compile(rb"'[^']*'|\"[^\"]*\"|\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$|--[^\n]*|/\*|;")
_COPY = re.compile(rb"COPY [^\n]* FROM stdin;\Z")
_NAME = rb'(?:"(?:[^"]|"")*"|[^\s".(]+)'
_TABLE = re.compile(rb"COPY (" + _NAME + rb"(?:\." + _NAME + rb")?) ")
_OURS = re.compile(
    rb"^SET (?:statement_timeout|lock_timeout|idle_in_transaction_session_timeout"
    rb"|transaction_timeout) = 0;\n",
    re.MULTILINE,
)
_SETVAL = re.compile(
    rb"(?<=; Type: SEQUENCE SET; )([^\n]*\n--\n\n)SELECT pg_catalog\.setval\(('(?:[^']|'')*'),"
    rb" (-?\d+), (true|false)\);\n"
)
_REFRESH = re.compile(rb"^REFRESH MATERIALIZED VIEW [^\n]*;\n", re.MULTILINE)
_NOT_KEPT = (b"\\restrict ", b"\\unrestrict ", b"-- Dumped from ", b"-- Dumped by ")
"""Lines that differ between two dumps of one state: keys made by chance, versions."""


class Rows(Value):
    """The rows of one table."""

    copy: bytes
    data: bytes

    @property
    def table(self) -> bytes:
        """Its name, quoted where it has to be."""
        found = _TABLE.match(self.copy)
        assert found is not None
        return found[1]


class Dump(Value):
    """A database: what pg_dump does not say of it, and statements and rows in their order."""

    head: "dict[str, Any]"
    parts: "tuple[bytes | Rows, ...]"

    @property
    def rows(self) -> "dict[bytes, Rows]":
        """The rows by table."""
        return {part.table: part for part in self.parts if isinstance(part, Rows)}

    @property
    def text(self) -> "tuple[bytes, ...]":
        """The statements."""
        return tuple(part for part in self.parts if isinstance(part, bytes))

    @property
    def frame(self) -> "tuple[object, ...]":
        """All but the rows, and where sequences stand."""
        return (
            self.head,
            *(_SETVAL.sub(rb"\1\2", part) for part in self.text),
            *(rows.copy for rows in self.rows.values()),
        )

    @property
    def sequences(self) -> "dict[bytes, tuple[bytes, bytes]]":
        """Where each sequence stands: its name as a string, its value, whether it was given out."""
        found = (match for part in self.text for match in _SETVAL.finditer(part))
        return {match[2]: (match[3], match[4]) for match in found}

    @property
    def refreshes(self) -> "list[bytes]":
        """The statements that fill materialized views."""
        return [found for part in self.text for found in _REFRESH.findall(part)]


def pieces(head: "dict[str, Any]", lines: "Iterable[bytes]") -> "Iterator[bytes]":
    """A dump in pieces, so that what did not change is stored once."""
    yield json.dumps(head, sort_keys=True).encode() + b"\n"
    piece: list[bytes] = []
    size = 0
    for line in lines:
        if line.startswith(_NOT_KEPT):
            continue
        piece.append(line)
        size += len(line)
        is_cut = size >= _SMALLEST and not zlib.crc32(line) & _CUT
        if is_cut or size >= _LARGEST:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


def parsed(content: bytes) -> Dump:
    """A dump as it was stored."""
    head, _, text = content.partition(b"\n")
    parts = tuple(_parts(text))
    first = parts[0] if parts else b""
    assert isinstance(first, bytes)
    # How long we wait is our own decision.
    return Dump(json.loads(head), (_OURS.sub(b"", first), *parts[1:]))


def _parts(text: bytes) -> "Iterator[bytes | Rows]":
    begin = statement = at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        if found[0] != b";":
            at = _end_of(text, found)
            continue
        line = text.rfind(b"\n", statement, at) + 1
        if text.startswith(b"COPY ", line) and _COPY.match(text, line, at):
            yield text[begin:line]
            end = _end_of_rows(text, at + 1)
            yield Rows(text[line : at - 1], text[at + 1 : end])
            begin = at = end + 3
        statement = at
    yield text[begin:]


def _end_of(text: bytes, found: "re.Match[bytes]") -> int:
    """Where a quoted string or a comment ends."""
    closing = b"*/" if found[0] == b"/*" else found[0] if found[0].startswith(b"$") else b""
    if not closing:
        return found.end()
    end = text.find(closing, found.end())
    if end < 0:
        raise ParticipantError("the dump ends within a string")
    return end + len(closing)


def _end_of_rows(text: bytes, start: int) -> int:
    if text.startswith(b"\\.\n", start):
        return start
    end = text.find(b"\n\\.\n", start)
    if end < 0:
        raise ParticipantError("the dump ends within a table")
    return end + 1
