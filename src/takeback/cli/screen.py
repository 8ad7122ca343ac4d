"""The only place that prints. Data goes to stdout, everything else to stderr.

How text is fitted to a screen: columns, not characters, and marks that every screen can show.
"""

import os
import sys
import time

from takeback.cli.progress import Progress
from takeback.errors import TakebackError
from takeback.model.ids import ShortId
from takeback.model.text import json_text
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TextIO

    from takeback.cli.pager import Pager
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker


class Marks:
    """The signs that we use; plain ones where the others cannot be shown."""

    __slots__ = ("_plain", "arrow", "back", "bar", "cut", "line", "minus", "name", "undone")

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self.minus = "-" if plain else "\N{MINUS SIGN}"
        self.arrow = "->" if plain else "→"
        self.back = "<" if plain else "↶"
        self.name = "*" if plain else "◆"
        self.cut = "..." if plain else "…"
        self.line = "--" if plain else "──"
        self.undone = "-" if plain else "◌"
        self.bar = "|" if plain else "│"

    def of(self, status: str) -> str:
        """The sign of how something ended, or that it has not."""
        signs = {"done": "○o", "failed": "✗x", "interrupted": "!!", "running": "▶>"}
        return signs.get(status, "??")[self._plain]


def marks(screen: "Screen") -> Marks:
    """The signs for a screen: plain ones if its encoding or its locale knows only ASCII."""
    # In the POSIX locale Python writes UTF-8 all the same, and the user insists on ASCII.
    is_posix = os.environ.get("LC_ALL") in ("C", "POSIX")
    return Marks(plain=is_posix or not screen.can_show("○◌✗▶→…─│↶◆\N{MINUS SIGN}"))


def width(screen: "Screen") -> int:
    chosen = os.environ.get("COLUMNS", "")
    is_number = chosen.isascii() and chosen.isdigit() and len(chosen) < 5
    return min(max(int(chosen) if is_number else screen.width, 20), 500)


def columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def cut(text: str, room: int, mark: str = "…") -> str:
    """A text that takes at most so many columns; a mark says that something is missing.

    No word is cut, unless that would leave little else: then it is a path, or something like it.
    """
    if len(text) * 2 <= room or columns(text) <= room:
        return text
    left = room - len(mark)
    at = 0
    for char in text:
        left -= _columns_of(char)
        if left < 0:
            break
        at += 1
    kept = text[:at]
    if not text[at : at + 1].isspace() and kept.rfind(" ") * 3 >= at:
        kept = kept[: kept.rfind(" ")]
    return (kept.rstrip() + mark)[: max(room, 0)]


def cut_left(text: str, room: int, mark: str = "…") -> str:
    """The end of a text, if all of it does not fit: of a path that is what one looks for."""
    if columns(text) <= room:
        return text
    while text and columns(text) > room - len(mark):
        text = text[1:]
    return mark + text


def pad(text: str, room: int) -> str:
    return text + " " * (room - columns(text))


_COUNTS = r"\+[\d,]+(?:\x1b\[[0-9;]*m)* (?:\x1b\[[0-9;]*m)*[\u2212-][\d,]+"
"""Lines added and removed, perhaps in colour: they belong together."""


def wrap(text: str, room: int, hang: "int | None" = None) -> str:
    """Text on as many lines as it needs; the second and later ones begin in column `hang`.

    Lines break between words. A command in backticks, and lines added with lines removed, stay on
    one line if they fit there. What is longer than a line, such as a path, sticks out.
    """
    if len(text) * 2 <= room or columns(bare(text)) <= room:
        return text
    import re

    begin = len(text) - len(text.lstrip(" ")) if hang is None else hang
    begin = min(begin, room // 2)
    lines, used = [""], 0
    for gap, word in re.findall(rf"( *)((?:`[^`]*`|{_COUNTS}|[^ ])+)", text):
        is_long = " " in word and columns(bare(word)) > room - begin
        for number, part in enumerate(word.split(" ") if is_long else [word]):
            space, taken = (" " if number else gap), columns(bare(part))
            if used + len(space) + taken > room and lines[-1].strip(" "):
                lines.append(" " * begin)
                space, used = "", begin
            lines[-1] += space + part
            used += len(space) + taken
    return _painted(lines, begin)


def _painted(lines: "list[str]", begin: int) -> str:
    """Lines of which each ends without colour, and the next goes on with the one that was on."""
    done, colour = [], ""
    for number, line in enumerate(lines):
        at = begin if number else 0
        line = line[:at] + colour + line[at:]
        last = line.rfind("\x1b[")
        colour = line[last : line.index("m", last) + 1] if last >= 0 else ""
        colour = "" if colour == _PLAIN else colour
        done.append(line + (_PLAIN if colour else ""))
    return "\n".join(done)


def bare(text: str) -> str:
    """Text without the escapes that colour it."""
    if "\x1b" not in text:
        return text
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


_JOINED = frozenset(map(chr, range(0x1160, 0x1200)))
"""Vowels and final consonants of Hangul, which are drawn into the consonant before them."""


def _columns_of(char: str) -> int:
    if char.isascii():
        return 1
    from unicodedata import category, east_asian_width

    if category(char) in ("Mn", "Me") or char in _JOINED:
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


_STYLES = {"bold": "1", "dim": "2", "reverse": "7"}
_STYLES |= {"red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
_PLAIN = "\x1b[0m"
_SIGNS = {"+": "green", "-": "red", "\N{MINUS SIGN}": "red"}
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
AUTO, ALWAYS = "auto", "always"
_SMALLEST = (40, 10)
_WIDEST_TEXT = 100
"""Columns. Longer lines of prose are hard to read, however wide the terminal is."""
_NARROWEST = 24
"""Columns that the right side of a table needs at least beside the left one."""


class Screen:
    """Where a command shows what it has to say: as text or, if asked, as one JSON object."""

    def __init__(self, *, json: bool = False, color: str = AUTO) -> None:
        self.json = json
        self.show_secrets = False
        self.secret_names: Callable[[], Iterable[str]] = tuple
        self.needed: Callable[[str], int] = len
        """How many letters of an id tell it from all others."""
        self.no_pager = False
        self._colour = _wants_colour(sys.stdout, color)
        self._colour_error = _wants_colour(sys.stderr, color)
        self._progress: Progress | None = None
        if _is_terminal(sys.stderr) and not json:
            self._progress = Progress(time.monotonic(), plain=not _can_show(sys.stderr, "━╌…"))
        self._is_in_line = False
        """Whether a line of progress is on the terminal."""
        self._pager: Pager | None = None
        self._is_aside = False
        self._news: Callable[[], Sequence[str]] | None = None
        self._reported = 0

    @property
    def masker(self) -> "Masker":
        """What says what may be shown; loaded when there are words to show."""
        from takeback.model.text.masking import Masker

        return Masker(is_open=self.show_secrets, names=self.secret_names)

    def words(self, text: str) -> str:
        """A label, or whatever else somebody wrote, as it may be shown."""
        return self.masker.words(text) if text else ""

    def quoted(self, label: str) -> str:
        """A label in quotes, to stand at the end of a line; nothing if there is none."""
        return f'  "{safe_line(self.words(label))}"' if label else ""

    def title(self, label: str) -> str:
        """What a turn is called on one line: the first line of its label that is not blank."""
        return title(self.words(label))

    def listen(self, news: "Callable[[], Sequence[str]]") -> None:
        """Note whatever this has to tell, each sentence once, before anything else is printed."""
        self._news, self._reported = news, 0

    def finish(self) -> None:
        """Show what is still held back, and wait for whoever reads it."""
        try:
            self._make_way()
        finally:
            if self._pager is not None:
                self._pager.close()

    def leave(self) -> None:
        """Take the terminal back from a pager, if there is one, whatever became of it."""
        if self._pager is not None:
            try:
                self._pager.close()
            except (OSError, TakebackError):
                return  # another error is about to be shown, or nobody is there to see one

    def page(self) -> None:
        """Let a pager show what follows, if somebody at a terminal wants one and it is long."""
        columns, rows = self.size
        is_seen = _is_terminal(sys.stdin) and _is_terminal(sys.stdout) and _is_terminal(sys.stderr)
        if self.json or self.no_pager or self._is_aside or not is_seen or not rows:
            return
        from takeback.cli import pager

        if self._pager is None and pager.is_wanted():
            self._pager = pager.Pager(rows, columns, _put)

    def step_aside(self) -> None:
        """Leave stdout to somebody else: from now on results go to stderr, too."""
        self._is_aside = True
        self._colour = self._colour_error

    def say(self, line: str = "", hang: "int | None" = None) -> None:
        """Print a line of the result; on a terminal, wrapped to its width."""
        self._make_way()
        self._print(self._results, line, hang)

    def verbatim(self, line: str) -> None:
        """Print a line of somebody's file, however long it is."""
        self._make_way()
        self._write(self._results, line + "\n", columns(bare(line)))

    def prose(self, text: str) -> None:
        """Print a paragraph; on a terminal its lines are made anew."""
        if _is_terminal(self._results):
            text = wrap(" ".join(text.split("\n")), min(width(self), _WIDEST_TEXT))
        self.say(text)

    def note(self, line: str) -> None:
        """Print a remark to stderr; one that names a command of ours is a hint, and dim."""
        self._make_way()
        if line.startswith("note: "):
            line = self._mark("note:", "yellow") + line[5:]
        elif "`takeback" in line and self._colour_error:
            # What one may want to type stands out from what it does.
            parts = line.split("`")
            line = "`".join(part if n % 2 else _dimmed(part) for n, part in enumerate(parts))
        self._print(sys.stderr, line)

    def raw(self, data: bytes) -> None:
        """Print bytes of the result just as they are; not meant for a terminal."""
        self._make_way()
        if sys.stdout is not None:  # the caller may have closed it
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    @property
    def has_colour(self) -> bool:
        return self._colour

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at the result, so that nothing in it may act on a terminal."""
        return _is_terminal(sys.stdout)

    @property
    def can_ask(self) -> bool:
        """Whether somebody sees what is shown and can answer."""
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return not self.json and all(_is_terminal(stream) for stream in streams)

    @property
    def can_pick(self) -> bool:
        """Whether somebody can be shown a screen full of things to choose from."""
        size = self.size
        is_large_enough = size[0] >= _SMALLEST[0] and size[1] >= _SMALLEST[1]
        return not self.json and self.has_keys and is_large_enough and not self.is_dumb

    @property
    def why_no_picks(self) -> str:
        """What is missing where `can_pick` does not hold."""
        if self.json:
            return "`-i` and `--json` exclude each other"
        if not self.has_keys:
            return "`-i` needs a terminal"
        if self.is_dumb:
            return "`-i` cannot draw on this terminal: `TERM` is `dumb`, or not set"
        least, here = (f"{columns}x{rows}" for columns, rows in (_SMALLEST, self.size))
        return f"`-i` needs a larger terminal: at least {least}, this one has {here}"

    @property
    def has_keys(self) -> bool:
        """Whether somebody sees the results and can type."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stdout)

    @property
    def is_dumb(self) -> bool:
        """Whether the terminal cannot place what is drawn."""
        return os.environ.get("TERM", "dumb") in ("", "dumb")

    @property
    def size(self) -> "tuple[int, int]":
        """Columns and rows of the terminal; (0, 0) if there is none."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError, AttributeError):
            return 0, 0
        return found.columns, found.lines

    def paint(self, text: str) -> None:
        """Print what draws on the whole terminal; notes wait until that is over."""
        _put(sys.stdout, text)

    def ask(self, question: str) -> bool:
        """Ask, and wait for the answer; anything but a clear yes is a no."""
        self._make_way()
        _put(sys.stderr, f"{self._mark(question, 'bold')} [y/N] ")
        try:
            answer = sys.stdin.readline()
        except (OSError, UnicodeDecodeError):
            return False
        if not answer.endswith("\n"):
            _put(sys.stderr, "\n")
        return answer.strip().lower() in ("y", "yes")

    def ask_for(self, what: str) -> str:
        """Ask for a line of words; empty if the user skips."""
        self._make_way()
        _put(sys.stderr, f"{self._mark(what, 'bold')} ")
        try:
            answer = sys.stdin.readline()
        except (OSError, UnicodeDecodeError):
            return ""
        if not answer.endswith("\n"):
            _put(sys.stderr, "\n")
        return " ".join(answer.split())

    @property
    def width(self) -> int:
        return self.size[0] or 80

    def can_show(self, text: str) -> bool:
        """Whether the encoding of the results has all characters of a text."""
        return _can_show(self._results, text)

    def data(self, value: "Mapping[str, Json]") -> None:
        self._make_way()
        _put(self._results, json_text.dumps(value) + "\n")

    def style(self, text: str, *names: str) -> str:
        return _styled(text, names) if self._colour else text

    def id(self, shown: str, room: int = 0, of: str = "") -> str:
        """An id, or the beginning `of` one; the letters that are enough to type stand out."""
        if not self._colour:
            return pad(shown, room)
        needed = shown.needed if isinstance(shown, ShortId) else self.needed(of or shown)
        rest = _dimmed(shown[needed:])
        return _styled(shown[:needed], ("bold", "magenta")) + rest + " " * (room - len(shown))

    def counted(self, text: str) -> str:
        """Lines added and removed, such as `+3 -1` amid spaces, in green and red."""
        if not self._colour:
            return text
        return " ".join(_styled(word, [_SIGNS.get(word[:1], "")]) for word in text.split(" "))

    def table(self, rows: "Iterable[tuple[str, str]]", indent: str = "  ") -> None:
        """Two columns; on a narrow terminal the right one stands below the left one."""
        listed = list(rows)
        widest = min(max((columns(bare(left)) for left, _ in listed), default=0), 40)
        begin = len(indent) + widest + 2
        is_narrow = _is_terminal(self._results) and width(self) - begin < _NARROWEST
        for left, right in listed:
            if is_narrow and right:
                self.say(f"{indent}{left}")
                self.say(f"{indent}    {right}")
                continue
            space = " " * (widest - columns(bare(left)))
            self.say(f"{indent}{left}{space}  {right}".rstrip(), begin)

    def error(self, problem: "TakebackError", more: "Mapping[str, Json] | None" = None) -> None:
        """Show what went wrong and what to do next; `more` is for programs only."""
        from takeback.cli.text import action_text

        self._make_way()
        hint = action_text.hint(problem.actions, "\n")
        if self.json:
            said: dict[str, Json] = {
                "error": type(problem).__name__,
                "message": _as_unicode(self.masker.words(str(problem))),
                "hint": _as_unicode(self.masker.words(hint)),
                "exit_code": problem.exit_code,
            }
            try:
                self.data({**said, **(more or {})})
                return
            except BrokenPipeError:
                return  # whoever read our output has gone; the exit code still tells
            except TakebackError:
                pass  # it is told to people, then
        mark = self._mark("error:", "red", "bold")
        self._print(sys.stderr, f"{mark} {safe_line(self.masker.words(str(problem)))}", 7)
        if hint:
            lines = "\n      ".join(map(safe_line, self.masker.words(hint).split("\n")))
            self._print(sys.stderr, f"\n{self._mark('hint:', 'cyan')} {lines}", 6)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Show how far long work has come, on a terminal, once it turns out to be long."""
        if self._progress is None or (self._pager is not None and self._pager.is_running):
            return
        line = self._progress.line(phase, done, total, _room(sys.stderr), time.monotonic())
        if line:
            self._is_in_line = True
            _put(sys.stderr, f"\r\x1b[K{line}")

    def _print(self, stream: "TextIO | None", text: str, hang: "int | None" = None) -> None:
        """Print lines, wrapped where a person reads them."""
        lines = text.split("\n")
        if _is_terminal(stream):
            room = width(self) if stream is self._results else _room(stream)
            lines = "\n".join(wrap(line, room, hang) for line in lines).split("\n")
        for line in lines:
            self._write(stream, line + "\n", columns(bare(line)))

    def _write(self, stream: "TextIO | None", text: str, taken: int) -> None:
        if self._pager is None:
            _put(stream, text)
        else:
            self._pager.write(stream, text, taken)

    @property
    def _results(self) -> "TextIO | None":
        return sys.stderr if self._is_aside else sys.stdout

    def _make_way(self) -> None:
        """Remove the line of progress, and tell what has to be told first."""
        if self._is_in_line:
            _put(sys.stderr, "\r\x1b[K")
            self._is_in_line = False
        if self._news is not None:
            news = self._news()[self._reported :]
            self._reported += len(news)
            for sentence in news:
                self._print(sys.stderr, f"{self._mark('note:', 'yellow')} {safe_line(sentence)}", 6)

    def _mark(self, word: str, *names: str) -> str:
        return _styled(word, names) if self._colour_error else word


def safe_line(text: str) -> str:
    """A sentence of ours that may quote untrusted names; what could act on a terminal cannot."""
    return text if text.isascii() and text.isprintable() else safe(text).replace("\\\\", "\\")


def safe_content(line: bytes) -> str:
    """A line of a file; what could act on a terminal is escaped, backslashes and tabs stay."""
    text = line.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text
    parts = (part.split("\\") for part in text.split("\t"))
    return "\t".join("\\".join(map(safe, part)) for part in parts)


def title(label: str) -> str:
    first = next((line for line in label.splitlines() if line.strip()), "(no prompt)")
    return safe_content(" ".join(first.split()).encode("utf-8", "surrogateescape"))


def size(number: int) -> str:
    """Bytes for people."""
    value, units = float(number), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{number} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def ago(then: float, now: float) -> str:
    seconds = max(0, int(now - then))
    for length, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return count(seconds // length, name) + " ago"
    return "just now" if seconds < 5 else f"{seconds} seconds ago"


def timestamp(seconds: float) -> str:
    """A time for JSON: UTC, to the millisecond."""
    whole = int(seconds)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{text}.{int((seconds - whole) * 1000):03d}Z"


def _as_unicode(text: str) -> str:
    """Text that every JSON parser accepts, whatever bytes the command line held."""
    return text.encode("utf-8", "backslashreplace").decode()


def _styled(text: str, names: "Iterable[str]") -> str:
    codes = ";".join(_STYLES[name] for name in names if name)
    return f"\x1b[{codes}m{text}{_PLAIN}" if codes else text


def _dimmed(text: str) -> str:
    return _styled(text, ["dim"]) if text else ""


def _is_terminal(stream: "TextIO | None") -> bool:
    """Whether a person reads it; there is no stream at all where the caller closed it."""
    return stream is not None and stream.isatty()


def _can_show(stream: "TextIO | None", text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _room(stream: "TextIO | None") -> int:
    """Columns of the terminal that a stream is."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80 if stream is not None else 80
    except (OSError, ValueError, AttributeError):
        return 80


def _wants_colour(stream: "TextIO | None", chosen: str) -> bool:
    """What the command line says; else what the environment says; else whether a person reads it.

    Where the variables disagree, `NO_COLOR` holds.
    """
    if chosen != AUTO:
        return chosen == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in _FORCING):
        return True
    return _is_terminal(stream) and os.environ.get("TERM") != "dumb"


def _put(stream: "TextIO | None", text: str) -> None:
    if stream is None:
        return
    # The encoding of the terminal may lack a character; that must never fail a command.
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as problem:
        if stream is sys.stderr:
            return  # there is nowhere left to say so
        if isinstance(problem, BrokenPipeError):
            raise
        raise TakebackError(
            f"the output could not be written: {problem.strerror}",
            hint="the command may have finished nevertheless; `takeback` shows the current state",
        ) from None
