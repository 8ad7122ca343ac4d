"""The interactive preview of a plan: look, choose, decide, apply; by keys, colour or not.

A few escape sequences that every terminal knows draw it. Whatever happens, the terminal is left as
it was found.
"""

import os
import select
import signal
import sys
import termios
from contextlib import suppress

from takeback.cli import picker
from takeback.cli import screen as layout
from takeback.cli.restore_flow import Wanted
from takeback.cli.screen import safe_line
from takeback.cli.text import conflict_text
from takeback.cli.text.plan_text import STYLES, Page, amount
from takeback.errors import TakebackError
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType
    from typing import Any, Protocol, Self

    from takeback.cli.picker import Item, Model
    from takeback.cli.restore_flow import Contents, Make
    from takeback.cli.screen import Screen
    from takeback.cli.text.conflict_text import Styled
    from takeback.model.plan import Plan

    Handler = Callable[[int, FrameType | None], Any] | int | None

    class Keyboard(Protocol):
        """What shows a screen, and where keys come from."""

        def draw(self, lines: Sequence[Styled]) -> None: ...

        def key(self) -> str: ...


_MARGIN = 3
"""Lines that are not of the list: the title, what would be done, the keys."""
_VERB = 8
_FEWEST = 20
"""Columns in which a remark is worth to be begun."""
_HELP = """\
[x] is applied when you press `a`, [ ]
is left as it is. [?] is a conflict
that you have to decide. [-] cannot be
applied; the line shows why.

up, down, j, k  move; also PgUp, PgDn,
                Home, End
enter, d        show what would change
space           on or off; a folder
                with all below it, or
                one hunk of a file
tab             the next conflict
+               include later turns
                that build on this
a, y            apply what is chosen
q, Esc, Ctrl-C  quit, change nothing

In a conflict, you or others changed
the lines that the turn had changed:
m  mine: keep your lines; undo does
   not ask again
t  back: as undo, or redo, wants it;
   your lines there are removed, too
b  both: write both versions into the
   file, with markers, for you to edit
s  skip: decide later; undo asks again
M, T, B, S decide all that are left.
"""

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_PATIENCE = 0.05
"""Seconds after which an escape is the key, and not the beginning of another one."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HEARD = (*_ENDING, signal.SIGTSTP, signal.SIGWINCH)
_SEQUENCES = {
    b"A": "up", b"B": "down", b"C": "right", b"D": "left", b"H": "home", b"F": "end",
    b"1~": "home", b"4~": "end", b"5~": "pgup", b"6~": "pgdn", b"7~": "home", b"8~": "end",
}  # fmt: skip
_NAMES = {b"\r": "enter", b"\n": "enter", b"\t": "tab", b"\x04": picker.END_OF_INPUT}
RESIZED = "resized"


class PickerView:
    """One interactive preview."""

    def __init__(
        self, screen: "Screen", contents: "Contents", make: "Make", wanted: Wanted
    ) -> None:
        self._screen = screen
        self._contents = contents
        self._make = make
        self._wanted = wanted
        self._marks = layout.marks(screen)
        self.shown: Model | None = None
        """What is on the screen."""
        self._open: tuple[tuple[str, int, int], list[Styled]] | None = None

    def run(self, plan: "Plan") -> "Plan | None":
        try:
            with RawTerminal(self._screen) as terminal:
                return self.choose(plan, terminal)
        except EndedError as ended:
            signal.signal(ended.number, signal.SIG_DFL)
            os.kill(os.getpid(), ended.number)
            return None

    def choose(self, plan: "Plan", terminal: "Keyboard") -> "Plan | None":
        """The same, by the keys of a terminal that is ready."""
        whose, decide = self._page(plan).whose, self._wanted.decide
        undecided = picker.begin(plan, whose)
        decided = picker.begin(plan, whose, decide if isinstance(decide, str) else "")
        model = self._planned(undecided, decided)
        while not model.outcome:
            columns, rows = self._screen.size
            text = self._text(model, columns)
            self.shown = model = picker.resized(model, rows - _MARGIN, len(text))
            terminal.draw(self._lines(model, text, columns, rows))
            key = terminal.key()
            if key != RESIZED:
                model = self._planned(model, picker.press(model, key))
        return model.plan if model.outcome == picker.APPLY else None

    # -- plans -------------------------------------------------------------------------------

    def _planned(self, old: "Model", new: "Model") -> "Model":
        """With the plan of what was chosen; as it was before, if that cannot be planned."""
        if new.choice == old.choice:
            return new
        paths, wanted = picker.chosen(new), self._wanted
        wanted = wanted.replace(decide=new.choice.wanted, turns=new.choice.turns)
        if paths is not None:
            wanted = wanted.replace(paths=[path or b"." for path in paths], inside=b"")
        try:
            plan = _nothing_of(new.plan) if paths == [] else self._make(wanted)
        except TakebackError as problem:
            return old._replace(message=str(problem))
        return picker.renewed(new, plan, self._page(plan).whose)

    def _page(self, plan: "Plan") -> Page:
        return Page(plan, self._screen, self._contents)

    # -- what is on the screen ---------------------------------------------------------------

    def _lines(
        self, model: "Model", text: "list[Styled]", columns: int, rows: int
    ) -> "list[Styled]":
        if model.view == picker.LIST:
            shown = self._rows(model, columns)
        else:
            shown = text[model.scroll : model.scroll + model.page]
        shown += [("", "")] * (rows - _MARGIN - len(shown))
        return [
            ("bold", self._title(model)),
            *shown,
            self._status(model),
            self._keys(model, columns),
        ]

    def _title(self, model: "Model") -> str:
        here = model.here
        if model.view == picker.HELP:
            return "Keys"
        if model.view == picker.TEXT and here is not None:
            at = f", line {here.hunk.line:,}" if here.hunk is not None else ""
            return safe(here.path or b".") + at if here.path is not None else "Note"
        doing = self._page(model.plan).doing()
        return doing[0].upper() + doing[1:]

    def _status(self, model: "Model") -> "Styled":
        if model.message:
            return "bold", f"! {safe_line(self._screen.masker.words(model.message))}"
        if model.view != picker.LIST:
            last = min(model.scroll + model.page, model.length)
            return "dim", f"lines {min(model.scroll + 1, last)} to {last} of {model.length:,}"
        waiting = len(model.undecided)
        parts = [f"{count(waiting, 'conflict')} to decide"] if waiting else []
        parts.append(f"would {amount(model.plan, done=False)}")
        if len(model.items) > model.page:
            parts.append(f"row {model.cursor + 1:,} of {len(model.items):,}")
        said = "; ".join(parts)
        return "dim", said[0].upper() + said[1:]

    def _keys(self, model: "Model", columns: int) -> "Styled":
        """The keys that matter here, as many as there is room for, and the one that tells all."""
        if model.view != picker.LIST:
            keys = ["up/down scroll", "space next page", "q back"]
        else:
            here = model.here
            more = ["+ later turns"] if model.plan.dependents else []
            keys = ["a apply", "space on/off", "d diff", *more, "q quit", "? help"]
            if here is not None and here.mark == "?" and here.conflict is not None:
                named = {"m": "m mine", "t": "t back", "b": "b both", "s": "s skip"}
                able = [k for k in named if picker.can(model.plan, here.conflict, picker.KEYS[k])]
                keys = [*(named[key] for key in able), *keys]
        last = keys.pop()
        while keys and len("  ".join((*keys, last))) > columns:
            keys.pop()
        return "reverse", layout.pad("  ".join((*keys, last)), columns)

    def _rows(self, model: "Model", columns: int) -> "list[Styled]":
        shown = model.items[model.top : model.top + model.page]
        counts = [self._counted(item) for item in shown]
        wide = max(map(len, counts), default=0)
        room = columns - _VERB - 8
        most = max(room - wide - 2, 12) if columns < 60 else room * 3 // 5
        names = [self._name(item, most) for item in shown]
        width = max((layout.columns(name) for name in names), default=0)
        found = []
        for number, item in enumerate(shown, start=model.top):
            at = number - model.top
            mark = f"[{item.mark}]" if item.mark else "   "
            cursor = ">" if number == model.cursor else " "
            head = f"{cursor} {mark} {item.verb:<{_VERB}} "
            if item.path is None:
                text = head + safe_line(self._screen.masker.words(item.said))
            else:
                parts = [layout.pad(names[at], width), counts[at].ljust(wide)]
                # A few letters of a sentence tell nothing; Enter shows all of it.
                if room - width - wide >= _FEWEST:
                    parts.append(safe_line(self._screen.masker.words(item.said)))
                text = (head + "  ".join(filter(None, parts))).rstrip()
            found.append((self._style(item, is_here=number == model.cursor), text))
        return found

    def _style(self, item: "Item", *, is_here: bool) -> str:
        if item.path is None:
            colour = "yellow" if item.verb == "!" else "dim"
        else:
            colour = STYLES.get(item.verb, "") if item.mark in ("x", "?") else "dim"
        return f"{colour} {'reverse' if is_here else ''}".strip()

    def _counted(self, item: "Item") -> str:
        if item.hunk is not None:
            sides = item.hunk.theirs, item.hunk.ours
            return f"+{len(sides[0]):,} {self._marks.minus}{len(sides[1]):,}"
        is_done = item.mark == "x" and item.change is not None
        return self._contents.lines(item.change, self._marks) if is_done and item.change else ""

    def _name(self, item: "Item", most: int) -> str:
        """A path, of which the end is what tells it from others."""
        if item.path is None:
            return ""
        if item.hunk is not None:
            return f"  line {item.hunk.line:,}"
        name = safe(item.path or b".")
        if layout.columns(name) <= most:
            return name
        left = most - len(self._marks.cut)
        while layout.columns(name) > left:
            name = name[1:]
        return self._marks.cut + name

    # -- one path ----------------------------------------------------------------------------

    def _text(self, model: "Model", columns: int) -> "list[Styled]":
        """What is shown of a path, or the help; read once, as long as it stays on the screen."""
        if model.view == picker.LIST:
            self._open = None
            return []
        key = (model.view, model.cursor, columns)
        if self._open is None or self._open[0] != key:
            told = (
                self._told(model)
                if model.view == picker.TEXT
                else [("", line) for line in _HELP.splitlines()]
            )
            self._open = (key, wrap(told, columns))
        return self._open[1]

    def _told(self, model: "Model") -> "list[Styled]":
        item = model.here
        if item is None:
            return []
        said = (
            [("", safe_line(self._screen.masker.words(item.said))), ("", "")] if item.said else []
        )
        if item.conflict is not None:
            conflict = item.conflict
            if item.hunk is not None and item.hunk in conflict.hunks:
                conflict = conflict.replace(hunks=(item.hunk,))
            said += [
                *conflict_text.sides(
                    conflict, model.plan.verb, self._contents.target, self._screen.masker
                ),
                ("", ""),
            ]
        if item.change is None:
            return said
        try:
            return said + self._contents.diff(item.change)
        except TakebackError as problem:
            return [*said, ("", safe_line(self._screen.masker.words(str(problem))))]


def _nothing_of(plan: "Plan") -> "Plan":
    return plan.replace(changes=(), conflicts=())


# -- the terminal -------------------------------------------------------------------------------


class EndedError(BaseException):
    """A signal asked us to end; the terminal is in order again."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class RawTerminal:
    """The terminal while it belongs to us."""

    def __init__(self, screen: "Screen") -> None:
        self._screen = screen
        self._input = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._input)
        self._handlers: dict[int, Handler] = {}
        self._woken = (-1, -1)
        self._wakeup = -1
        self._read = b""

    def __enter__(self) -> "Self":
        self._woken = os.pipe()
        for end in self._woken:
            os.set_blocking(end, False)
        # Signals only write their number into a pipe, which is read where we wait for keys.
        self._wakeup = signal.set_wakeup_fd(self._woken[1], warn_on_full_buffer=False)
        try:
            for number in _HEARD:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, _hear)
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        for end in self._woken:
            os.close(end)

    def _take(self) -> None:
        """Keys one by one and without an echo; Ctrl-C and Ctrl-Z still are signals."""
        raw = termios.tcgetattr(self._input)
        raw[3] &= ~(termios.ICANON | termios.ECHO)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        # What was typed before anything was shown cannot have been meant for it.
        termios.tcsetattr(self._input, termios.TCSAFLUSH, raw)
        self._screen.paint(_ENTER)

    def _give_back(self) -> None:
        # Where the terminal is gone, neither can be done, and neither matters.
        with suppress(TakebackError, OSError):
            self._screen.paint(_LEAVE)
        with suppress(termios.error):
            termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)

    # -- keys --------------------------------------------------------------------------------

    def key(self) -> str:
        """Wait for a key; `resized` if the window has another size."""
        while True:
            name, self._read = first_key(self._read)
            if name:
                return name
            patience = _PATIENCE if self._read else None
            ready = select.select([self._input, self._woken[0]], [], [], patience)[0]
            if self._woken[0] in ready and self._heard():
                return RESIZED
            if self._input in ready:
                self._read += self._typed()
            elif not ready and self._read:
                name, self._read = first_key(self._read, is_all=True)
                return name

    def _typed(self) -> bytes:
        try:
            return os.read(self._input, 1024) or b"\x04"
        except OSError:
            return b"\x04"  # the window was closed

    def _heard(self) -> bool:
        """Obey signals; whether the screen has to be drawn again."""
        heard = set(os.read(self._woken[0], 1024))
        for number in _ENDING:
            if number in heard:
                raise EndedError(number)
        if signal.SIGTSTP in heard:
            self._stop()
        return bool(heard & {signal.SIGTSTP, signal.SIGWINCH})

    def _stop(self) -> None:
        """Stop as Ctrl-Z asks for, with the terminal in order; go on when that is over."""
        self._give_back()
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._take()

    # -- drawing -----------------------------------------------------------------------------

    def draw(self, lines: "Sequence[Styled]") -> None:
        columns, rows = self._screen.size
        painted, mark = [], layout.marks(self._screen).cut
        for style, text in lines[: rows or 1]:
            cut = layout.cut(text, max(columns, 1), mark)
            painted.append(self._screen.style(cut, *style.split()) if style else cut)
        # Each line is emptied first: after one that fills it, that would take its last sign.
        self._screen.paint("\x1b[H" + "\r\n".join(f"\x1b[K{line}" for line in painted))


def _hear(_number: int, _frame: "FrameType | None") -> None:
    """The wake-up pipe has it."""


def first_key(typed: bytes, *, is_all: bool = False) -> "tuple[str, bytes]":
    """The first key of what was typed, and what is left; no key if more has to come.

    `is_all` tells that nothing more comes: an escape is the key then.
    """
    if not typed:
        return "", b""
    first, rest = typed[:1], typed[1:]
    if first != b"\x1b":
        return _NAMES.get(first) or _letter(first), rest
    if rest[:1] not in (b"[", b"O"):
        return ("esc", rest) if rest or is_all else ("", typed)
    for end in range(1, len(rest)):
        if 0x40 <= rest[end] <= 0x7E:
            return _SEQUENCES.get(rest[1 : end + 1], "unknown"), rest[end + 1 :]
    return ("esc", b"") if is_all else ("", typed)


def _letter(byte: bytes) -> str:
    return byte.decode() if b" " <= byte < b"\x7f" else "unknown"


def wrap(lines: "Sequence[Styled]", columns: int) -> "list[Styled]":
    """Lines broken so that each fits on the screen."""
    return [(style, piece) for style, text in lines for piece in _pieces(text, max(columns, 2))]


def _pieces(text: str, room: int) -> "Iterator[str]":
    while layout.columns(text) > room:
        end = min(len(text), room)
        while layout.columns(text[:end]) > room:
            end -= 1
        blank = text.rfind(" ", end // 2, end)  # between two words, if the line is not wasted
        end = blank + 1 if blank > 0 else end
        yield text[:end]
        text = text[end:]
    yield text
