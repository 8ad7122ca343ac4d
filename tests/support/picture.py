"""Pictures of terminals: rows of styled characters in, an SVG out that can be read as text."""

import re
from itertools import groupby
from xml.sax.saxutils import escape

from grid import Cell, columns

_WIDE, _HIGH, _EDGE, _BAR = 8.4, 20, 16, 34
_COLOURS = {
    "": "#e6edf3",
    "30": "#0d1117",
    "31": "#ff7b72",
    "32": "#7ee787",
    "33": "#e3b341",
    "34": "#79c0ff",
    "35": "#d2a8ff",
    "36": "#76e3ea",
    "37": "#b1bac4",
    "90": "#8b949e",
    "91": "#ffa198",
    "92": "#aff5b4",
    "93": "#f8e3a1",
    "94": "#a5d6ff",
    "95": "#e2c5ff",
    "96": "#b3f0ff",
    "97": "#ffffff",
}
_BACK = "#0d1117"
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" \
width="{width:.0f}" height="{height}" role="img" aria-label="{title}">
<style>
text {{ font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; \
white-space: pre; fill: {plain}; }}
.bold {{ font-weight: 700; }} .dim {{ opacity: .62; }} .italic {{ font-style: italic; }}
.underline {{ text-decoration: underline; }}
{colours}
</style>
<rect width="100%" height="100%" rx="8" fill="{back}"/>
<circle cx="18" cy="17" r="5.5" fill="#ff5f57"/><circle cx="36" cy="17" r="5.5" fill="#febc2e"/>\
<circle cx="54" cy="17" r="5.5" fill="#28c840"/>
"""


def drawn(rows: list[list[Cell]], width: int, title: str) -> str:
    """A picture of some rows, as wide as the terminal."""
    made = [
        _HEAD.format(
            width=width * _WIDE + 2 * _EDGE,
            height=_BAR + len(rows) * _HIGH + _EDGE,
            title=escape(title, {'"': "&quot;"}),
            plain=_COLOURS[""],
            back=_BACK,
            colours=" ".join(
                f".c{name} {{ fill: {hue}; }}" for name, hue in _COLOURS.items() if name
            ),
        )
    ]
    for number, row in enumerate(rows):
        made += _row(row, _BAR + number * _HIGH)
    return "".join(made) + "</svg>\n"


def _row(row: list[Cell], top: int) -> list[str]:
    made, column = [], 0
    for (colour, flags, _), group in groupby(row, _look):
        cells = list(group)
        text, left, width = "".join(cell.char for cell in cells), column, len(cells)
        column += width
        if "reverse" in flags:
            back, colour, flags = colour or "37", "30", flags - {"dim"}
            made.append(
                f'<rect x="{_EDGE + left * _WIDE:.1f}" y="{top}" width="{width * _WIDE:.1f}" '
                f'height="{_HIGH}" fill="{_COLOURS[back]}"/>\n'
            )
        looks = [f"c{colour}"] if colour else []
        kind = " ".join([*looks, *sorted(flags - {"reverse"})])
        # Not every viewer keeps blanks that follow each other.
        made += [
            _text(piece[0], left + columns(text[: piece.start()]), top, kind)
            for piece in re.finditer(r"\S+(?: \S+)*", text)
        ]
    return made


def _text(text: str, left: int, top: int, kind: str) -> str:
    looks = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{_EDGE + left * _WIDE:.1f}" y="{top + 15}"{looks} '
        f'textLength="{columns(text) * _WIDE:.1f}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(text)}</text>\n"
    )


def _look(cell: Cell) -> tuple[str, frozenset[str], bool]:
    """What is drawn as one piece: signs that fonts lack, or draw wider, each by itself."""
    return cell.colour, cell.flags, not cell.char.isascii() and not cell.char.isalpha()
