"""Turns as lines of a list, newest first."""

import time

from takeback.cli import layout
from takeback.cli.render import safe_content
from takeback.model.counting import count
from takeback.model.masking import CLOSED
from takeback.model.terms import DONE, FAILED, INTERRUPTED, REDO, ROLLBACK, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.cli.layout import Marks
    from takeback.cli.render import Screen
    from takeback.model.history import Log, RecordedRestore, RecordedTurn
    from takeback.model.masking import Masker

    Short = Mapping[str, str]

_AGENT = 12
_LABEL = 24
"""With fewer columns left for what a turn is called, it gets a line of its own."""
_STYLES = {FAILED: "red", INTERRUPTED: "yellow", RUNNING: "green"}


def show(log: "Log", short: "Short", screen: "Screen", now: float) -> None:
    """Print where one is, and then the turns; `short` has what is shown of each id."""
    marks, room = layout.marks(screen), layout.width(screen)
    said = layout.cut(f"@  now  {_here(log, now)}", room, marks.cut)
    screen.say(screen.style(said[:6], "bold") + said[6:])
    show_turns(log, short, screen, now)


def show_turns(log: "Log", short: "Short", screen: "Screen", now: float) -> None:
    """Print the turns, a line or two for each."""
    marks, room = layout.marks(screen), layout.width(screen)
    rows = [_Row(turn, short[turn.id], screen, now) for turn in log.turns]
    sizes = _Sizes(rows, room)
    day = time.localtime(now)[:3]
    restores = list(log.restores)
    for row in rows:
        while restores and restores[0].at >= row.turn.started:
            screen.say(_restore(restores.pop(0), short, sizes, screen, now))
        if row.day != day:
            day = row.day
            screen.say(screen.style(f"{marks.line} {_day(row.turn.started, now)}", "dim"))
        for line in row.lines(sizes, screen):
            screen.say(line)
    for restore in restores:
        screen.say(_restore(restore, short, sizes, screen, now))


def _restore(
    restore: "RecordedRestore", short: "Short", sizes: "_Sizes", screen: "Screen", now: float
) -> str:
    """An undo, a redo or a rollback on one line."""
    marks, room = layout.marks(screen), layout.width(screen)
    is_today = time.localtime(restore.at)[:3] == time.localtime(now)[:3]
    clock = time.strftime("%H:%M", time.localtime(restore.at))
    when = age(restore.at, now) if is_today else clock
    of = "of" if restore.turn else "of the rollback to"
    called = title(restore.title, screen.masker)
    said = f"{restore.verb} {'to' if restore.verb == ROLLBACK else of} {called}"
    said += " (some paths)" if restore.partial else ""
    said += " (undone)" if restore.undone and restore.verb != REDO else ""
    head = f"{layout.pad(short[restore.id], sizes.short)}  {when:>{sizes.when}}"
    line = f"{marks.back}  {head}  {said}"
    return screen.style(layout.cut(line, room, marks.cut), "dim" if restore.undone else "")


def title(label: str, masker: "Masker" = CLOSED) -> str:
    """What a turn is called on one line: the first one that says anything."""
    shown = masker.words(label).splitlines()
    first = next((line for line in shown if line.strip()), "(no prompt)")
    return safe_content(" ".join(first.split()).encode("utf-8", "surrogateescape"))


def age(then: float, now: float) -> str:
    """How long ago something was, in a few letters."""
    seconds = max(0, int(now - then))
    for length, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {name}"
    return f"{seconds} s"


def amount(turn: "RecordedTurn", marks: "Marks") -> "tuple[str, str]":
    """How many lines a turn changed, and how many files."""
    if not turn.files:
        return "", "no changes yet" if turn.status == RUNNING else "no changes"
    files = count(turn.files, "file")
    if turn.uncounted == turn.files:
        return "", files
    return f"+{turn.added:,} {marks.minus}{turn.removed:,}", files


def remarks(turn: "RecordedTurn") -> "list[str]":
    """What else is to be said about a turn, in a few words each."""
    said = []
    if not turn.kept and turn.files:
        said.append("files no longer kept")
    if turn.went_back is not None:
        before = f" to before {turn.went_back[:6]}" if turn.went_back else ""
        said.append(f"after going back{before}")
    if turn.shared:
        said.append(f"{len(turn.shared):,} shared")
    if turn.left_out:
        said.append(f"{len(turn.left_out):,} not covered")
    changed = sum(1 for file in turn.outside if file.verb)
    if changed:
        said.append(f"{changed:,} outside")
    return said


def _here(log: "Log", now: float) -> str:
    if log.made is None:
        return "no checkpoint yet"
    if log.yours:
        return f"{count(log.yours, 'path')} changed by you since the last turn"
    return f"checkpoint {log.here[:6]}, {age(log.made, now)} old"


def _day(then: float, now: float) -> str:
    day = time.localtime(then)
    if time.localtime(now - 86400)[:3] == day[:3]:
        return "yesterday"
    return time.strftime("%Y-%m-%d", day)


class _Row:
    """One turn, and what its line is made of."""

    def __init__(self, turn: "RecordedTurn", short: str, screen: "Screen", now: float) -> None:
        self.turn = turn
        self.short = short
        self.marks = marks = layout.marks(screen)
        self.title = title(turn.label, screen.masker)
        when = time.localtime(turn.started)
        self.day = when[:3]
        today = self.day == time.localtime(now)[:3]
        self.when = age(turn.started, now) if today else time.strftime("%H:%M", when)
        self.agent = layout.cut(safe_content(turn.agent.encode()), _AGENT, marks.cut)
        self.lines_changed, self.files = amount(turn, marks)
        self.numbers = f"{self.lines_changed}  {self.files}".strip()
        status = "undone" if turn.undone else turn.status
        self.status = "" if status == DONE else f" ({status})"

    def lines(self, sizes: "_Sizes", screen: "Screen") -> "Iterator[str]":
        """The turn on one line, or two where there is not much room."""
        turn = self.turn
        is_dim = bool(turn.undone) or (not turn.files and turn.status != RUNNING)
        style = _STYLES.get(turn.status, "dim" if is_dim else "")
        mark = self.marks.of(turn.status)
        head = screen.style(mark, style) if style else mark
        head += f"  {screen.style(layout.pad(self.short, sizes.short), 'bold')}"
        agent = layout.cut(self.agent, sizes.agent, self.marks.cut)
        head += f"  {self.when:>{sizes.when}}  {layout.pad(agent, sizes.agent)}"
        label = layout.cut(self.title, sizes.label - len(self.status), self.marks.cut)
        said = label + self.status
        if sizes.is_narrow:
            yield f"{head}  {self.numbers}"
            yield screen.style(f"   {said}", "dim") if is_dim else f"   {said}"
        else:
            numbers = f"{self.lines_changed:>{sizes.lines}}  {self.files}"
            rest = f"{layout.pad(said, sizes.label)}  {numbers}"
            yield f"{head}  {screen.style(rest, 'dim') if is_dim else rest}".rstrip()
        extra = ", ".join(remarks(turn))
        if extra:
            yield screen.style(" " * (3 if sizes.is_narrow else sizes.left) + extra, "yellow")


class _Sizes:
    """How many columns each part of a line gets."""

    __slots__ = ("agent", "is_narrow", "label", "left", "lines", "short", "when")

    def __init__(self, rows: "list[_Row]", room: int) -> None:
        self.short = max((len(row.short) for row in rows), default=0)
        self.when = max((len(row.when) for row in rows), default=0)
        self.agent = max((layout.columns(row.agent) for row in rows), default=0)
        self.lines = max((len(row.lines_changed) for row in rows), default=0)
        files = max((len(row.files) for row in rows), default=0)
        self.left = 3 + self.short + 2 + self.when + 2 + self.agent + 2
        right = 2 + self.lines + 2 + files
        self.is_narrow = room - self.left - right < _LABEL
        if self.is_narrow:
            longest = max((len(row.numbers) for row in rows), default=0)
            self.agent = max(0, min(self.agent, room - (self.left - self.agent) - longest))
        label = room - self.left - right
        wanted = (layout.columns(row.title) + len(row.status) for row in rows)
        self.label = room - 3 if self.is_narrow else min(label, max(wanted, default=0))
