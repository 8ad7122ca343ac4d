"""The interactive log as a machine: a model and a key make the next model; nothing is drawn.

What a key asks of the project stands in `request`. Whoever reads the keys does it and tells the
model what came of it: rows, a preview, a report.
"""

from typing import NamedTuple

from takeback.cli.screens.terminal import BACKSPACE, END_OF_INPUT, ERASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NOW, TURN, ROLLBACK, NAME = "now", "turn", "rollback", "name"
"""What a row is about."""
LIST, TEXT = "list", "text"
"""Where keys go."""
PREVIEW, REPORT, HELP = "preview", "report", "help"
"""What may lie over the text of a row."""
QUIT, MORE, UNDO, REDO, PICK, APPLY, RELOAD, SEEK = (
    "quit", "more", "undo", "redo", "pick", "apply", "reload", "seek",
)  # fmt: skip
"""What may be asked for."""
FILE = "diff --git "
"""How the diff of a file begins, which `]` and `[` look for."""
_END = 1 << 30
_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES = {"pgup": -1, "b": -1, "pgdn": 1, " ": 1}
_ENDS = {"home": 0, "g": 0, "end": _END, "G": _END}
_CHANGED_NOTHING = "nothing was changed"


class Row(NamedTuple):
    """One line of the list. `words` is what a search looks through, in lower case."""

    kind: str
    id: str
    title: str
    mark: str = " "
    when: str = ""
    agent: str = ""
    numbers: str = ""
    short: str = ""
    style: str = ""
    is_undone: bool = False
    words: str = ""

    def matches(self, word: str) -> bool:
        # An id is letters, among which a word may stand by chance; somebody types its beginning.
        return word in self.words or (len(word) > 2 and self.id.startswith(word))


class Overlay(NamedTuple):
    """A preview, a report or the keys, in the place of the text; `title` says what it is.

    Of a preview, `verb` is what is asked, and `is_open` tells that a conflict has to be decided.
    """

    kind: str
    title: str
    lines: "tuple[str, ...]"
    verb: str = ""
    is_open: bool = False


class Goal(NamedTuple):
    """A move that has to wait for rows that are not read yet: to a word, or to the end."""

    word: str = ""
    start: int = 0


class Seek(NamedTuple):
    """A line of the text that is looked for: with a word, downwards or up; without one, the last.

    The text is read only as far as somebody scrolled, so a key alone cannot go there.
    """

    word: str = ""
    down: bool = True


class Model(NamedTuple):
    """Everything that is to be known to draw the screen, and to press a key.

    `more` tells that older rows are not read yet. `page` and `text_page` are the lines of both
    panes, `length` those that the text has so far. `match` is the line that a search found.
    """

    rows: "tuple[Row, ...]" = ()
    more: bool = False
    cursor: int = 0
    top: int = 0
    page: int = 10
    focus: str = LIST
    is_zoomed: bool = False
    scroll: int = 0
    match: "int | None" = None
    text_page: int = 10
    length: int = 0
    overlay: "Overlay | None" = None
    over_scroll: int = 0
    typing: "str | None" = None
    word: str = ""
    goal: "Goal | None" = None
    seek: "Seek | None" = None
    message: str = ""
    request: str = ""

    @property
    def here(self) -> "Row | None":
        return self.rows[self.cursor] if self.rows else None

    @property
    def at(self) -> int:
        """How far the text on the screen is scrolled."""
        return self.scroll if self.overlay is None else self.over_scroll


# -- what came of a request --------------------------------------------------------------------


def loaded(model: Model, rows: "Sequence[Row]", *, more: bool) -> Model:
    """With older rows; a move that waited for them goes on."""
    model = model._replace(rows=(*model.rows, *rows), more=more, request="")
    if model.goal is None:
        return _scrolled(model)
    return _sought(model) if model.goal.word else _to_end(model)


def reloaded(model: Model, rows: "Sequence[Row]", *, more: bool) -> Model:
    """With other rows, on the row that it was on."""
    here = model.here
    known = {(row.kind, row.id): number for number, row in enumerate(rows)}
    cursor = known.get((here.kind, here.id), -1) if here is not None else 0
    if cursor < 0:
        cursor = min(model.cursor, max(len(rows) - 1, 0))
    return _scrolled(model._replace(rows=tuple(rows), more=more, cursor=cursor, request=""))


def replaced(model: Model, row: Row) -> Model:
    """With another text for a row that is there."""
    rows = (row if (each.kind, each.id) == (row.kind, row.id) else each for each in model.rows)
    return model._replace(rows=tuple(rows))


def covered(model: Model, overlay: Overlay) -> Model:
    """With a preview, a report or the keys over the text."""
    return model._replace(overlay=overlay, over_scroll=0, request="")


def told(model: Model, message: str) -> Model:
    """With a sentence at the bottom, and nothing over the text."""
    return model._replace(overlay=None, over_scroll=0, message=message, request="", goal=None)


def stopped(model: Model) -> Model:
    """Without the move that waited for rows."""
    return model._replace(goal=None, request="", message="stopped")


def found(model: Model, line: "int | None") -> Model:
    """Scrolled to a line that was looked for, if there is one."""
    seek = model.seek
    model = model._replace(seek=None, request="")
    if line is not None:
        return _scroll_to(model, line)._replace(match=line if seek and seek.word else None)
    missing = f"`{seek.word}`" if seek is not None and seek.word != FILE else "another file"
    where = "below" if seek is None or seek.down else "above"
    return model._replace(message=f"{missing} is not {where}")


def resized(model: Model, page: int, text_page: int, length: int) -> Model:
    """The same on a screen of another size, with so many lines of text."""
    model = model._replace(page=max(page, 1), text_page=max(text_page, 1), length=length)
    return _scrolled(_scroll_to(model, model.at))


# -- keys --------------------------------------------------------------------------------------


def press(model: Model, key: str) -> Model:
    model = model._replace(message="", request="", goal=None, seek=None)
    if key == END_OF_INPUT:
        return model._replace(request=QUIT)
    if model.typing is not None:
        return _type(model, model.typing, key)
    if model.overlay is not None:
        return _press_over(model, model.overlay, key)
    if model.focus == LIST:
        moved = _moved(model.cursor, model.page, key)
        if moved is not None:
            return _to_end(model) if moved >= _END else _go(model, moved)
    else:
        moved = _moved(model.scroll, model.text_page, key)
        if moved is not None:
            return _scroll_by_key(model, moved)
    act = _ACTS.get(key)
    return act(model) if act is not None else model._replace(message="`?` shows the keys")


def _press_over(model: Model, over: Overlay, key: str) -> Model:
    moved = _moved(model.over_scroll, model.text_page, key)
    if moved is not None and (over.kind != REPORT or model.length > model.text_page):
        return _scroll_by_key(model, moved)
    bare = model._replace(overlay=None, over_scroll=0)
    if over.kind == HELP:
        return bare
    if over.kind == REPORT:
        return bare if key in ("esc", "enter", "left") else press(bare, key)
    return _answer(model, over, key)


def _answer(model: Model, over: Overlay, key: str) -> Model:
    """Answer the question of a preview."""
    if key in ("n", "N", "q", "esc", "left"):
        return told(model, _CHANGED_NOTHING)
    if key in ("y", "Y"):
        if over.is_open:
            return model._replace(message="a conflict has to be decided first: `p`")
        return model._replace(request=APPLY)
    if key == "p":
        return model._replace(request=PICK)
    return model._replace(message="`y` does it, `n` does not")


def _type(model: Model, text: str, key: str) -> Model:
    """Put a word together that is searched."""
    if key == "enter":
        return _search(model._replace(typing=None, word=text.lower() or model.word), down=True)
    if key == "esc" or (key == BACKSPACE and not text):
        return model._replace(typing=None)
    if key == BACKSPACE:
        return model._replace(typing=text[:-1])
    if key == ERASE:
        return model._replace(typing="")
    return model._replace(typing=text + key) if len(key) == 1 else model


def _moved(at: int, page: int, key: str) -> "int | None":
    if key in _MOVES:
        return at + _MOVES[key]
    if key in _PAGES:
        return at + _PAGES[key] * max(page - 1, 1)
    return _ENDS.get(key)


def _go(model: Model, row: int) -> Model:
    """Put the cursor on a row; older rows are asked for in time."""
    last = max(len(model.rows) - 1, 0)
    cursor = min(max(row, 0), last)
    if cursor != model.cursor:
        model = model._replace(cursor=cursor, scroll=0, match=None)
    model = _scrolled(model)
    is_near = model.more and cursor + model.page > last
    return model._replace(request=MORE) if is_near else model


def _to_end(model: Model) -> Model:
    if model.more:
        return model._replace(goal=Goal(), request=MORE)
    return _go(model._replace(goal=None), len(model.rows) - 1)


def _scrolled(model: Model) -> Model:
    """Let the cursor be on the screen, and no line of it be wasted."""
    most = max(len(model.rows) - model.page, 0)
    top = min(model.top, model.cursor, most)
    return model._replace(top=max(top, model.cursor - model.page + 1))


def _scroll_to(model: Model, line: int) -> Model:
    line = min(max(line, 0), max(model.length - model.text_page, 0))
    return (
        model._replace(scroll=line) if model.overlay is None else model._replace(over_scroll=line)
    )


def _scroll_by_key(model: Model, line: int) -> Model:
    if line >= _END:
        return model._replace(seek=Seek(), request=SEEK)
    return _scroll_to(model._replace(match=None), line)


def _scroll_text(model: Model, lines: int) -> Model:
    return _scroll_by_key(model, model.scroll + lines)


# -- search ------------------------------------------------------------------------------------


def _search(model: Model, *, down: bool) -> Model:
    if not model.word:
        return model._replace(message="`/` searches")
    if model.focus == TEXT:
        return model._replace(seek=Seek(model.word, down), request=SEEK)
    if down:
        return _sought(model._replace(goal=Goal(model.word, model.cursor + 1)))
    return _above(model)


def _sought(model: Model) -> Model:
    """Go on looking for a word: further down, in rows not read yet, then from the top."""
    goal = model.goal
    assert goal is not None
    for number in range(goal.start, len(model.rows)):
        if model.rows[number].matches(goal.word):
            return _go(model._replace(goal=None, request=""), number)
    if model.more:
        return model._replace(goal=goal._replace(start=len(model.rows)), request=MORE)
    model = model._replace(goal=None, request="")
    for number, row in enumerate(model.rows):
        if row.matches(goal.word):
            return _go(model, number)._replace(message="from the top again")
    return model._replace(message=f"nothing matches `{goal.word}`")


def _above(model: Model) -> Model:
    numbers = [n for n, row in enumerate(model.rows) if row.matches(model.word)]
    above = [n for n in numbers if n < model.cursor]
    if above:
        return _go(model, above[-1])
    return model._replace(message=f"`{model.word}` is not above")


# -- acts --------------------------------------------------------------------------------------


def _ask(model: Model, request: str) -> Model:
    here = model.here
    if here is not None and here.kind == NAME and request != REDO:
        return model._replace(message="a name is not a turn; choose one to undo")
    return model._replace(request=request)


def _seek_file(model: Model, *, down: bool) -> Model:
    return model._replace(seek=Seek(FILE, down), request=SEEK)


def _open_text(model: Model) -> Model:
    if model.focus == TEXT:
        return _scroll_text(model, 1)
    return model._replace(focus=TEXT)


def _close_text(model: Model) -> Model:
    if model.focus == LIST:
        return model._replace(message="`q` quits")
    return model._replace(focus=LIST)


def _help(model: Model) -> Model:
    return covered(model, Overlay(HELP, "Keys", ()))


_ACTS: "Mapping[str, Callable[[Model], Model]]" = {
    "tab": lambda model: model._replace(focus=TEXT if model.focus == LIST else LIST),
    "enter": _open_text,
    "right": _open_text,
    "l": _open_text,
    "left": _close_text,
    "h": _close_text,
    "esc": _close_text,
    "J": lambda model: _scroll_text(model, 1),
    "K": lambda model: _scroll_text(model, -1),
    "]": lambda model: _seek_file(model, down=True),
    "[": lambda model: _seek_file(model, down=False),
    "z": lambda model: model._replace(is_zoomed=not model.is_zoomed),
    "/": lambda model: model._replace(typing=""),
    "n": lambda model: _search(model, down=True),
    "N": lambda model: _search(model, down=False),
    "u": lambda model: _ask(model, UNDO),
    "r": lambda model: _ask(model, REDO),
    "p": lambda model: _ask(model, PICK),
    "R": lambda model: model._replace(request=RELOAD),
    "?": _help,
    "q": lambda model: model._replace(request=QUIT),
}
