"""How text is fitted to a screen: columns, not characters, and marks that every screen can show."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.render import Screen

_NARROWEST = 20
_WIDEST = 500


class Marks:
    """The signs that we use; plain ones where the others cannot be shown."""

    __slots__ = ("_plain", "arrow", "back", "cut", "line", "minus")

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self.minus = "-" if plain else "\N{MINUS SIGN}"
        self.arrow = "->" if plain else "→"
        self.back = "<" if plain else "↶"
        self.cut = "..." if plain else "…"
        self.line = "--" if plain else "──"

    def of(self, status: str) -> str:
        """The sign of how something ended, or that it has not."""
        signs = {"done": "○o", "failed": "✗x", "interrupted": "!!", "running": "▶>"}
        return signs.get(status, "??")[self._plain]


def marks(screen: "Screen") -> Marks:
    """The signs for a screen: plain ones if its encoding or its locale knows only ASCII."""
    return Marks(plain=not screen.can_show("○✗▶→…─↶\N{MINUS SIGN}") or _is_posix())


def _is_posix() -> bool:
    """Whether the user insists on the POSIX locale; Python writes UTF-8 there all the same."""
    return os.environ.get("LC_ALL") in ("C", "POSIX")


def width(screen: "Screen") -> int:
    """How many columns may be used: COLUMNS if it is set, else what the terminal has."""
    told = os.environ.get("COLUMNS", "")
    found = int(told) if told.isascii() and told.isdigit() and len(told) < 5 else screen.width
    return min(max(found, _NARROWEST), _WIDEST)


def columns(text: str) -> int:
    """How many columns a text takes: two for wide characters, none for marks on others."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def cut(text: str, room: int, mark: str = "…") -> str:
    """A text that takes at most so many columns; a mark says that something is missing."""
    if len(text) * 2 <= room or columns(text) <= room:
        return text
    left = room - len(mark)
    kept = []
    for char in text:
        left -= _columns_of(char)
        if left < 0:
            break
        kept.append(char)
    return ("".join(kept).rstrip() + mark)[: max(room, 0)]


def pad(text: str, room: int) -> str:
    """A text with blanks behind it, so that it takes at least so many columns."""
    return text + " " * (room - columns(text))


def _columns_of(char: str) -> int:
    if char.isascii():
        return 1
    from unicodedata import category, east_asian_width

    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1
