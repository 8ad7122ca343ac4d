"""What a terminal shows: bytes in, rows of styled characters out.

It knows what programs here send: text, colours, cursor moves, erasing, and the second screen of
full-screen programs. The first screen grows instead of scrolling, so that nothing is lost.
"""

import re
import unicodedata
from typing import NamedTuple

_PIECE = re.compile(
    r"\x1b\[(?P<private>[?>=]?)(?P<numbers>[0-9;]*)(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b.|[\r\n\b\t\x07]|[^\x1b\r\n\b\t\x07]+"
)
_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",)}


class Cell(NamedTuple):
    """One character with its colour and what else it looks like."""

    char: str = " "
    colour: str = ""
    flags: frozenset[str] = frozenset()


BLANK = Cell()


class Grid:
    """The screen of a terminal; `full` is the last screen of a full-screen program."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.full: list[list[Cell]] = []
        self.is_full = False
        self._lines: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._kept: tuple[list[list[Cell]], int, int] = ([[]], 0, 0)
        self._style = BLANK
        self._rest = ""

    def feed(self, data: bytes) -> None:
        """Show what a program wrote."""
        text = self._rest + data.decode("utf-8", "replace")
        cut = re.search(r"\x1b[^a-zA-Z@~\x07]*$", text[-40:])
        start = len(text) - len(cut[0]) if cut else len(text)
        text, self._rest = text[:start], text[start:]
        for piece in _PIECE.finditer(text):
            if piece["final"]:
                self._control(piece["private"], piece["numbers"], piece["final"])
            elif not piece[0].startswith("\x1b"):
                self._write(piece[0])

    def lines(self) -> list[list[Cell]]:
        """The rows of the screen that is shown, without blanks at the end."""
        rows = [list(line) for line in self._lines]
        for row in rows:
            while row and row[-1] == BLANK:
                row.pop()
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def text(self) -> str:
        """The same without colours."""
        return "".join(as_text(row) + "\n" for row in self.lines())

    def _write(self, text: str) -> None:
        for char in text:
            if char == "\r":
                self._column = 0
            elif char == "\n":
                self._row += 1
                if self.is_full and self._row >= self.rows:
                    self._lines.pop(0)
                    self._row -= 1
            elif char == "\b":
                self._column = max(0, self._column - 1)
            elif char == "\t":
                self._column = min(self.columns - 1, self._column // 8 * 8 + 8)
            elif char != "\x07":
                self._put(char)

    def _put(self, char: str) -> None:
        if unicodedata.combining(char):
            return
        wide = columns(char)
        if self._column + wide > self.columns:
            self._row, self._column = self._row + 1, 0
        row = self._line()
        while len(row) < self._column + wide:
            row.append(BLANK)
        row[self._column] = self._style._replace(char=char)
        if wide == 2:
            row[self._column + 1] = self._style._replace(char="")
        self._column += wide

    def _line(self) -> list[Cell]:
        while len(self._lines) <= self._row:
            self._lines.append([])
        return self._lines[self._row]

    def _control(self, private: str, text: str, final: str) -> None:
        numbers = [int(number or 0) for number in text.split(";")]
        if private == "?" and 1049 in numbers:
            self._switch(final == "h")
        elif private:
            return
        elif final == "m":
            self._paint(numbers)
        elif final in "Hf":
            row, column, *_ = [*numbers, 1, 1]
            self._row, self._column = max(row, 1) - 1, max(column, 1) - 1
        elif final in "ABCDGd":
            self._move(max(numbers[0], 1), final)
        elif final == "K":
            self._erase_line(numbers[0])
        elif final == "J":
            self._erase(numbers[0])

    def _move(self, number: int, final: str) -> None:
        moved = {"A": (-number, 0), "B": (number, 0), "C": (0, number), "D": (0, -number)}
        down, right = moved.get(final, (0, 0))
        self._row, self._column = max(0, self._row + down), max(0, self._column + right)
        if final == "G":
            self._column = number - 1
        elif final == "d":
            self._row = number - 1

    def _erase_line(self, how: int) -> None:
        row = self._line()
        if how == 0:
            del row[self._column :]
        else:
            row[:] = [] if how == 2 else [BLANK] * self._column + row[self._column :]

    def _erase(self, how: int) -> None:
        if how == 0:
            self._erase_line(0)
            del self._lines[self._row + 1 :]
        elif how >= 2:
            self._lines = [[]]

    def _switch(self, on: bool) -> None:
        if on and not self.is_full:
            self._kept = self._lines, self._row, self._column
            self._lines, self._row, self._column = [[]], 0, 0
        elif not on and self.is_full:
            self.full = self.lines()
            self._lines, self._row, self._column = self._kept
        self.is_full = on

    def _paint(self, numbers: list[int]) -> None:
        waiting = iter(numbers)
        for number in waiting:
            if number == 0:
                self._style = BLANK
            elif number in _FLAGS:
                self._style = self._style._replace(flags=self._style.flags | {_FLAGS[number]})
            elif number in _OFF:
                self._style = self._style._replace(flags=self._style.flags - {*_OFF[number]})
            elif number == 39:
                self._style = self._style._replace(colour="")
            elif 30 <= number <= 37 or 90 <= number <= 97:
                self._style = self._style._replace(colour=str(number))
            elif number == 38 and next(waiting, 0) == 5:
                self._style = self._style._replace(colour=_of_256(next(waiting, 0)))


def _of_256(number: int) -> str:
    """One of the sixteen colours that every terminal has; the others are shown as plain text."""
    return str(30 + number if number < 8 else 82 + number) if number < 16 else ""


def columns(text: str) -> int:
    """How many columns a text takes."""
    return sum(2 if unicodedata.east_asian_width(char) in ("W", "F") else 1 for char in text)


def as_text(row: list[Cell]) -> str:
    """A row without colours."""
    return "".join(cell.char for cell in row).rstrip()
