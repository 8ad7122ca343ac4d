r"""The one way in which names, labels and other text from outside are shown.

A file name may hold anything but `/` and NUL: escape sequences that repaint the terminal,
marks that reverse the reading direction, half a character. `safe` turns every such thing into
a visible escape, so that what is printed is one line, is what the name says, and can be told
apart from the text of every other name.

Escapes are `\xNN` for a byte that is not UTF-8 or an ASCII control (and for the backslash
itself, so that nobody can write a fake escape), `\uNNNN` and `\UNNNNNNNN` for the rest.
"""

_RAW_BYTES = range(0xDC80, 0xDD00)  # how `surrogateescape` spells the bytes 0x80 to 0xFF
_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
_ELLIPSIS = "…"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")
"""What means itself to every shell."""


def safe(text: str | bytes, limit: int = 0) -> str:
    """Show untrusted text on one line; `limit` caps its length, 0 means no cap.

    With no cap, two different names never give the same text.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if not text.isprintable() or "\\" in text:
        return _escape_all(text, limit)
    if 0 < limit < len(text):
        return text[: limit - 1] + _ELLIPSIS
    return text


def _escape_all(text: str, limit: int) -> str:
    pieces: list[str] = []
    length = 0
    for char in text:
        piece = char if _is_harmless(char) else _escape(char)
        pieces.append(piece)
        length += len(piece)
        if 0 < limit < length:
            return _cut(pieces, length, limit)
    return "".join(pieces)


def _is_harmless(char: str) -> bool:
    # `isprintable` is false for exactly the categories Cc, Cf, Cs, Co, Cn, Zl, Zp and Zs.
    # Of these the spaces (Zs) stay: they are ordinary in French and Japanese text.
    return (char.isprintable() or char in _SPACES) and char != "\\"


def _escape(char: str) -> str:
    code = ord(char)
    if code in _RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cut(pieces: list[str], length: int, limit: int) -> str:
    """Drop whole pieces, never half an escape, until an ellipsis fits."""
    while pieces and length > limit - len(_ELLIPSIS):
        length -= len(pieces.pop())
    return "".join(pieces) + _ELLIPSIS


def shell_word(text: str) -> str:
    """Text as one would type it, so that a shell reads it as one word.

    As `shlex.quote`, whose import costs more than a preview of a restore may.
    """
    # `@~1`, our own word for a state, needs no quotes: a tilde is only special where words begin.
    if text and _PLAIN.issuperset(text.replace("@~", "@", 1)):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
