"""The terminal while it belongs to us: raw mode, keys, signals, drawing.

A few escape sequences that every terminal knows draw it. Whatever happens, the terminal is left as
it was found.
"""

import os
import select
import signal
import sys
import termios
from contextlib import suppress

from takeback.cli import screen as layout
from takeback.cli.screens import styled
from takeback.errors import TakebackError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any, Protocol, Self, TypeVar

    from takeback.cli.screen import Screen
    from takeback.cli.text.restores.conflict_text import Styled

    Handler = Callable[[int, FrameType | None], Any] | int | None
    Result = TypeVar("Result")

    class Keyboard(Protocol):
        """What shows a screen, and where keys come from."""

        def draw(self, lines: Sequence[Styled]) -> None: ...

        def key(self) -> str: ...


END_OF_INPUT = "end of input"
BACKSPACE, ERASE = "backspace", "erase"
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
_NAMES = {b"\r": "enter", b"\n": "enter", b"\t": "tab", b"\x04": END_OF_INPUT}
_NAMES |= {b"\x7f": BACKSPACE, b"\x08": BACKSPACE, b"\x15": ERASE}
RESIZED = "resized"


def full_screen(screen: "Screen", work: "Callable[[RawTerminal], Result]") -> "Result | None":
    """Do something on the whole terminal; a signal that ends us is obeyed when it is in order."""
    try:
        with RawTerminal(screen) as terminal:
            return work(terminal)
    except EndedError as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        return None


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

    def is_waiting(self) -> bool:
        """Whether a key was pressed that nobody has asked for yet."""
        return bool(self._read or select.select([self._input], [], [], 0)[0])

    def drop_typed(self) -> None:
        """Forget keys that nobody has asked for yet."""
        self._read = b""
        with suppress(termios.error):  # the window was closed
            termios.tcflush(self._input, termios.TCIFLUSH)

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
        self.paint(painted)

    def paint(self, painted: "Sequence[str]") -> None:
        """Show lines that have their colours, and fit."""
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
        return _letter(typed, is_all=is_all)
    if rest[:1] not in (b"[", b"O"):
        return ("esc", rest) if rest or is_all else ("", typed)
    for end in range(1, len(rest)):
        if 0x40 <= rest[end] <= 0x7E:
            return _SEQUENCES.get(rest[1 : end + 1], "unknown"), rest[end + 1 :]
    return ("esc", b"") if is_all else ("", typed)


def _letter(typed: bytes, *, is_all: bool) -> "tuple[str, bytes]":
    """A letter, which may be made of several bytes, or a key that has a name."""
    first = typed[0]
    size = 1 + (first >= 0xC2) + (first >= 0xE0) + (first >= 0xF0)
    if len(typed) < size and not is_all:
        return "", typed
    name = _NAMES.get(typed[:1]) or typed[:size].decode("utf-8", "replace")
    is_letter = name.isprintable() and "\ufffd" not in name
    return (name, typed[size:]) if is_letter else ("unknown", typed[1:])


def wrap(lines: "Sequence[Styled]", columns: int) -> "list[Styled]":
    """Lines broken so that each fits on the screen."""
    room = max(columns, 2)
    return [(style, piece) for style, text in lines for piece in styled.wrap(text, room)]
