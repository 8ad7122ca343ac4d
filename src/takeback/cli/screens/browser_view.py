"""The interactive log drawn to a size: beside each other, below each other, or one at a time."""

from collections.abc import Generator
from typing import NamedTuple

from takeback.cli import screen as layout
from takeback.cli.screen import safe_line
from takeback.cli.screens import browser, styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.cli.screen import Screen
    from takeback.cli.screens.browser import Model, Overlay, Row

ALL = 1 << 30
MARGIN = 3
"""Lines that belong to neither pane: the title, a message, the keys."""
_BESIDE = 80
"""Columns from which both panes have room beside each other."""
_BELOW = 20
"""Rows from which both have room below each other."""
_WHEN = 6
_AGENT = 11
HELP = """\
up, down, j, k   move; PgUp, PgDn, g, G
                 pages, top and end
Enter, Tab       to the diff; Tab, left
                 or Esc go back
J, K             scroll the diff from
                 the list
]  [             next, previous file
z                one pane, or both

u   undo the turn that is chosen; on
    `now`, the newest
r   redo it if it is undone, else what
    was undone last
p   pick files and hunks to undo
    All three show first what would
    be done, and `y` does it.

/   search prompts, agents, ids and
    paths; in the diff, its lines
n N next and previous match
R   read the list again
?   these keys
q   quit; Ctrl-Z stops, `fg` goes on
"""
_VERBS = {browser.UNDO: "take back", browser.REDO: "put back"}


class Panes(NamedTuple):
    """How the screen is divided: columns and lines of the list and of the text; 0 if hidden."""

    list_width: int
    list_rows: int
    text_width: int
    text_rows: int

    @property
    def is_beside(self) -> bool:
        return bool(self.list_rows) and self.list_rows == self.text_rows


def panes(model: "Model", columns: int, rows: int) -> Panes:
    room = max(rows - MARGIN, 1)
    shows_text = model.focus == browser.TEXT or model.overlay is not None
    if not model.is_zoomed and columns >= _BESIDE:
        wide = min(max(columns * 2 // 5, 30), 72)
        return Panes(wide, room, columns - wide - 2, room)
    if not model.is_zoomed and rows >= _BELOW:
        high = max(room // 3, 4)
        return Panes(columns, high, columns, room - high - 1)
    return Panes(0, 0, columns, room) if shows_text else Panes(columns, room, columns, 0)


class Text:
    """The lines of a text, read and broken as far as somebody looked."""

    def __init__(self, lines: "Iterable[str]", most: int = 20_000) -> None:
        self._rest: Iterator[str] | None = iter(lines)
        self._most = most
        self._raw: list[str] = []
        self._room = 0
        self._pieces: list[str] = []
        self._starts: list[int] = []

    def fill(self, room: int, upto: int) -> int:
        """Break lines for so many columns, until there are enough; how many there are."""
        if room != self._room:
            self._room, self._pieces, self._starts = room, [], []
            for line in self._raw:
                self._break(line)
        while len(self._pieces) < upto and self._rest is not None:
            self._read(next(self._rest, None))
        return len(self._pieces)

    def _read(self, line: "str | None") -> None:
        if line is not None and len(self._raw) == self._most:
            line = f"(only the first {self._most:,} lines are shown)"
        if line is None or len(self._raw) == self._most:
            self.close()
        if line is not None:
            self._raw.append(line)
            self._break(line)

    def _break(self, line: str) -> None:
        self._starts.append(len(self._pieces))
        self._pieces += styled.wrap(line, max(self._room, 2))

    @property
    def is_open(self) -> bool:
        """Whether there may be more lines than were read."""
        return self._rest is not None

    def lines(self, first: int, number: int) -> "list[str]":
        return self._pieces[first : first + number]

    def find(self, word: str, after: int, *, down: bool) -> "int | None":
        """The next line with a word, below or above another, of what was read."""
        found = [
            start
            for start, line in zip(self._starts, self._raw, strict=True)
            if word in styled.plain(line).lower() and (start > after if down else start < after)
        ]
        return found[0 if down else -1] if found else None

    def close(self) -> None:
        """Read nothing more."""
        rest, self._rest = self._rest, None
        if isinstance(rest, Generator):
            rest.close()


class BrowserView:
    """Draws a model; what it draws fits."""

    def __init__(self, screen: "Screen", name: str) -> None:
        self._style = screen.style
        self._name = name
        self._marks = layout.marks(screen)

    def draw(self, model: "Model", text: Text, columns: int, rows: int) -> "list[str]":
        """The lines of the whole screen, each as wide as it or narrower."""
        columns = max(columns, 1)
        found = panes(model, columns, rows)
        listed, shown = self._list(model, found), self._text(model, text, found)
        head = self._style(self._fit(self._title(model), columns), "bold")
        if found.is_beside:
            bar = self._style(self._marks.bar, "dim") + " "
            body = [left + bar + right for left, right in zip(listed, shown, strict=True)]
            left = self._fit(self._title(model), found.list_width)
            right = self._fit(self._text_title(model), found.text_width)
            head = self._style(left, "bold") + bar + self._style(right, "bold")
        elif found.list_rows and found.text_rows:
            line = self._fit(f"{self._marks.line} {self._text_title(model)}", columns)
            body = [*listed, self._style(line, "bold"), *shown]
        elif found.text_rows:
            body = shown
            head = self._style(self._fit(self._text_title(model), columns), "bold")
        else:
            body = listed
        lines = [head, *body, self._status(model, text, columns), self._keys(model, columns)]
        # Of a very small window the last lines are what one needs: the question, and the keys.
        return lines if len(lines) <= rows else lines[: max(rows - 2, 0)] + lines[-min(rows, 2) :]

    def _fit(self, line: str, room: int) -> str:
        return styled.fit(line, room, self._marks.cut)

    # -- the list ----------------------------------------------------------------------------

    def _title(self, model: "Model") -> str:
        turns = sum(row.kind == browser.TURN for row in model.rows)
        more = "+" if model.more else ""
        return f"{self._name}  {turns:,}{more} {'turn' if turns == 1 and not more else 'turns'}"

    def _list(self, model: "Model", found: Panes) -> "list[str]":
        shown = model.rows[model.top : model.top + found.list_rows]
        lines = [
            self._row(model, row, found.list_width, is_here=number == model.cursor)
            for number, row in enumerate(shown, start=model.top)
        ]
        if not model.rows:
            lines = [self._fit("  no turns yet", found.list_width)]
        return lines[: found.list_rows] + [" " * found.list_width] * (found.list_rows - len(lines))

    def _row(self, model: "Model", row: "Row", width: int, *, is_here: bool) -> str:
        cursor = ">" if is_here else " "
        head = f"{cursor} {row.mark} {row.when:>{_WHEN}}  "
        agents = any(each.agent for each in model.rows)
        if width >= 56 and agents:
            head += layout.pad(layout.cut(row.agent, _AGENT, self._marks.cut), _AGENT) + "  "
        numbers = f"  {row.numbers}" if width >= 48 and row.numbers else ""
        room = width - layout.columns(head) - layout.columns(numbers)
        line = self._fit(
            head + layout.pad(layout.cut(row.title, room, self._marks.cut), room) + numbers, width
        )
        if is_here:
            names = ("reverse",) if model.focus == browser.LIST else ("reverse", "dim")
            return self._style(line, *names)
        line = self._style(line, row.style) if row.style else line
        return self._marked(line, model) if model.focus == browser.LIST else line

    def _marked(self, line: str, model: "Model") -> str:
        """A line with what was searched, where there are colours."""
        has_colours = bool(self._style("x", "bold") != "x")
        return styled.highlight(line, model.word) if model.word and has_colours else line

    # -- the text ----------------------------------------------------------------------------

    def _text_title(self, model: "Model") -> str:
        focus = "> " if model.focus == browser.TEXT or model.overlay is not None else ""
        if model.overlay is not None:
            return focus + model.overlay.title
        here = model.here
        if here is None or here.kind == browser.NOW:
            return focus + ("now" if here else "")
        return focus + "  ".join(filter(None, (here.short, here.title)))

    def _text(self, model: "Model", text: Text, found: Panes) -> "list[str]":
        shown = text.lines(model.at, found.text_rows)
        shown += [""] * (found.text_rows - len(shown))
        searched = model.focus == browser.TEXT and model.overlay is None
        return [
            self._fit(self._marked(line, model) if searched else line, found.text_width)
            for line in shown
        ]

    # -- the last two lines ------------------------------------------------------------------

    def _status(self, model: "Model", text: Text, columns: int) -> str:
        if model.typing is not None:
            # The end of what is typed is what one looks at.
            typed = layout.cut_left(safe_line(model.typing), columns - 2, self._marks.cut)
            return self._style(self._fit(f"/{typed}_", columns), "bold")
        if model.message:
            return self._style(self._fit(f"! {model.message}", columns), "bold")
        if model.goal is not None:
            return self._style(self._fit(self._reading(model), columns), "bold")
        if model.overlay is not None or model.focus == browser.TEXT:
            last = min(model.at + model.text_page, model.length)
            more = "+" if text.is_open else ""
            said = f"lines {min(model.at + 1, last):,} to {last:,} of {model.length:,}{more}"
            if model.match is not None and model.overlay is None:
                said = f"line {model.match + 1:,} of {model.length:,}"
            return self._style(self._fit(said, columns), "dim")
        more = "+" if model.more else ""
        place = f"{min(model.cursor + 1, len(model.rows)):,} of {len(model.rows):,}{more}"
        command = self._command(model)
        room = columns - len(place) - 2
        said = layout.pad(command, room) + "  " + place if len(command) <= room else place
        return self._style(self._fit(said, columns), "dim")

    def _reading(self, model: "Model") -> str:
        what = "searching" if model.goal is not None and model.goal.word else "reading"
        return f"{what}, {len(model.rows):,} so far; any key stops"

    def _command(self, model: "Model") -> str:
        """What one would type for the row."""
        here = model.here
        if here is None or here.kind == browser.NOW:
            return "takeback undo"
        if here.kind == browser.NAME:
            return f"takeback rollback {here.short}"
        return f"takeback {'redo' if here.is_undone else 'undo'} {here.short}"

    def _keys(self, model: "Model", columns: int) -> str:
        """The keys that matter here, as many as there is room for, and the one that tells all."""
        keys = self._keys_for(model)
        last = keys.pop()
        while keys and len("  ".join((*keys, last))) > columns:
            keys.pop()
        return self._style(self._fit("  ".join((*keys, last)), columns), "reverse")

    def _keys_for(self, model: "Model") -> "list[str]":
        if model.typing is not None:
            return ["Enter search", "Esc cancel"]
        if model.overlay is not None:
            return _keys_over(model.overlay)
        acts = ["u undo", "r redo", "p pick"]
        if model.focus == browser.TEXT:
            return ["Tab list", *acts, "] next file", "/ search", "q quit", "? keys"]
        return ["Enter diff", *acts, "/ search", "q quit", "? keys"]


def _keys_over(over: "Overlay") -> "list[str]":
    if over.kind == browser.HELP:
        return ["up/down scroll", "Esc back"]
    if over.kind == browser.REPORT:
        return ["q quit", "Enter back"]
    verb = _VERBS[over.verb]
    does = [f"y {verb}"] if not over.is_open else []
    return [*does, "p pick" if does else "p decide", "up/down scroll", "n cancel"]
