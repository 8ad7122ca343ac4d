"""Lines with colours in them: measured, cut and broken by what one sees.

`Screen.style` puts escape sequences around a text; nothing else in a line may hold any.
"""

import re

from takeback.cli import screen as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Span = tuple[str, str]
    """The sequences that are in force, and a text."""

_SEQUENCE = re.compile(r"(\x1b\[[0-9;]*m)")
_RESET = "\x1b[0m"
_REVERSE = "\x1b[7m"


def plain(line: str) -> str:
    return _SEQUENCE.sub("", line) if "\x1b" in line else line


def fit(line: str, room: int, mark: str = "…") -> str:
    """A line of exactly so many columns: cut, with a mark, or filled with blanks."""
    room = max(room, 0)
    text = plain(line)
    if layout.columns(text) > room:
        text = layout.cut(text, room, mark[:room])
        kept = len(text) - len(mark[:room])
        line = _joined([*_first(line, kept), ("", text[kept:])])
    return line + " " * (room - layout.columns(text))


def wrap(line: str, room: int) -> "list[str]":
    """A line broken so that each piece fits, between two words where that wastes little."""
    text, room = plain(line), max(room, 2)
    if _fits(text, room):
        return [line]
    found, spans, number, at = [], _spans(line), 0, 0
    for piece in _pieces(text, room):
        taken, left = list[tuple[str, str]](), len(piece)
        while left:
            codes, span = spans[number]
            part = span[at : at + left]
            taken.append((codes, part))
            left, at = left - len(part), at + len(part)
            if at == len(span):
                number, at = number + 1, 0
        found.append(_joined(taken))
    return found


def highlight(line: str, word: str) -> str:
    """A line in which a word is shown in reverse, wherever it stands."""
    text = plain(line).lower()
    starts, at = [], text.find(word) if word else -1
    while at >= 0:
        starts.append(at)
        at = text.find(word, at + len(word))
    if not starts or len(text) != len(plain(line)):  # the capital of some letters is longer
        return line
    done, spans, at = list[tuple[str, str]](), _spans(line), 0
    for start in starts:
        before, spans = _taken(spans, start - at)
        inside, spans = _taken(spans, len(word))
        done += [*before, *((codes + _REVERSE, part) for codes, part in inside)]
        at = start + len(word)
    return _joined([*done, *spans])


def _spans(line: str) -> "list[Span]":
    codes, found = "", []
    for number, part in enumerate(_SEQUENCE.split(line)):
        if number % 2:
            codes = "" if part == _RESET else codes + part
        elif part:
            found.append((codes, part))
    return found


def _joined(spans: "Iterable[Span]") -> str:
    return "".join(f"{codes}{text}{_RESET}" if codes else text for codes, text in spans)


def _first(line: str, length: int) -> "list[Span]":
    return _taken(_spans(line), length)[0]


def _taken(spans: "list[Span]", length: int) -> "tuple[list[Span], list[Span]]":
    """The first so many characters, and the rest."""
    taken: list[Span] = []
    for number, (codes, text) in enumerate(spans):
        if length <= len(text):
            rest = [(codes, text[length:])] if length < len(text) else []
            return [*taken, (codes, text[:length])], [*rest, *spans[number + 1 :]]
        taken.append((codes, text))
        length -= len(text)
    return taken, []


def _pieces(text: str, room: int) -> "Iterator[str]":
    start = 0
    while not _fits(text, room, start):
        end = min(len(text), start + room)
        while layout.columns(text[start:end]) > room:
            end -= 1
        blank = text.rfind(" ", (start + end) // 2, end)
        end = blank + 1 if blank > start else end
        yield text[start:end]
        start = end
    yield text[start:]


def _fits(text: str, room: int, start: int = 0) -> bool:
    """Whether the rest of a text fits; a file of one long line is not counted to its end."""
    return len(text) - start <= 2 * room and layout.columns(text[start:]) <= room
