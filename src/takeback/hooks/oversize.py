"""Payloads that are too large to be held: all of their fields, but for what makes them large.

A tool's input and output may be of any size, and fields that say what the event is stand behind
them. So the text is read to its end, piece by piece, and only its shape is looked at:

- a long text inside a field is emptied; an edit tool then names what it named, or nothing,
  and who names nothing may have changed everything
- a long text that is a field, such as a prompt, is cut
- a field that is large all the same becomes `null`
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_TEXT = 64 << 10
_LARGEST_FIELD = 1 << 20
_MOST = 16 << 20
"""Bytes of all fields together: nobody sends so many."""
_DEEPEST = 1000
"""Brackets around each other: nobody sends so many, and to go through them takes minutes."""
_MARK = re.compile(rb'["{}\[\],]')
_TEXT = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_FLAT = rb'[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WHOLE = _FLAT
for _ in range(6):
    _WHOLE = _FLAT + rb"|[{\[](?:" + _WHOLE + rb")*+[}\]]"
_PASSED_OVER = re.compile(rb"(?:" + _WHOLE + rb")*+", re.DOTALL)
"""What stands in a field that is too large anyway, as far as it is not nested deeply: at once."""
_NAME = re.compile(rb'\s*"[^"\\]*"\s*:')
_ESCAPE = 6
"""Bytes of the longest escape in a text."""


def shortened(pieces: "Iterable[bytes]") -> bytes:
    """An object with the same fields, as JSON; empty if this is none, or cannot be made small."""
    reader = _Reader()
    for piece in pieces:
        if not reader.is_too_deep:
            reader.read(piece)
    return bytes(reader.made) if reader.is_complete else b""


class _Reader:
    """Goes through one JSON object."""

    def __init__(self) -> None:
        self.made = bytearray()
        self._field = bytearray()
        self._depth = 0
        self._rest = b""
        self._in_text = False
        self._text_at = 0
        self._is_cut = False

    @property
    def is_complete(self) -> bool:
        """Whether the object began, ended and is small."""
        return self._depth == 0 and self.made.lstrip()[:1] == b"{" and len(self.made) <= _MOST

    @property
    def is_too_deep(self) -> bool:
        """Whether the rest does not matter: this cannot be read."""
        return self._depth > _DEEPEST

    def read(self, piece: bytes) -> None:
        """The next piece."""
        piece, at, self._rest = self._rest + piece, 0, b""
        while at < len(piece) and not self.is_too_deep:
            at = self._text(piece, at) if self._in_text else self._shape(piece, at)

    def _shape(self, piece: bytes, at: int) -> int:
        if self._depth > 1 and len(self._field) > _LARGEST_FIELD:
            passed = _PASSED_OVER.match(piece, at)
            at = passed.end() if passed is not None else at
        found = _MARK.search(piece, at)
        if found is None:
            self._keep(piece[at:])
            return len(piece)
        self._keep(piece[at : found.start()])
        mark = found[0]
        if mark in b"}]":
            self._depth -= 1
        if (mark == b"," and self._depth == 1) or (mark in b"{}" and self._depth == 0):
            self._end_field(mark)
        else:
            self._keep(mark)
        if mark in b"{[":
            self._depth += 1
        if mark == b'"':
            self._in_text, self._is_cut, self._text_at = True, False, len(self._field)
        return found.end()

    def _text(self, piece: bytes, at: int) -> int:
        found = _TEXT.match(piece, at)
        end = found.end() if found is not None else at
        self._keep_text(piece[at:end])
        if piece[end : end + 1] == b'"':
            self._in_text = False
            self._keep(b'"')
            return end + 1
        self._rest = piece[end:]  # an escape that goes on in the next piece
        return len(piece)

    def _keep_text(self, said: bytes) -> None:
        if self._is_cut:
            return
        room = _LONGEST_TEXT - (len(self._field) - self._text_at)
        if len(said) <= room:
            self._keep(said)
            return
        self._is_cut = True
        if self._depth > 1:
            del self._field[self._text_at :]
            return
        self._keep(said[:room])
        escape = self._field.rfind(b"\\", max(self._text_at, len(self._field) - _ESCAPE))
        if escape >= 0:
            del self._field[escape:]
        while self._field.endswith(b"\\"):
            del self._field[-1]

    def _keep(self, said: bytes) -> None:
        if len(self._field) <= _LARGEST_FIELD:
            self._field += said

    def _end_field(self, mark: bytes) -> None:
        if len(self._field) > _LARGEST_FIELD:
            name = _NAME.match(self._field)
            self._field = bytearray(name[0] + b"null" if name is not None else b'"":null')
        if len(self.made) <= _MOST:
            self.made += self._field + mark
        self._field = bytearray()
