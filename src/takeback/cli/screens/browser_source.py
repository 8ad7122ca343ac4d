"""What the interactive log shows: rows of the list, page by page, and the text of one row."""

import time

from takeback.cli import diff_view
from takeback.cli import screen as layout
from takeback.cli.screen import Screen, safe_line
from takeback.cli.screens import browser
from takeback.cli.screens.browser import Row
from takeback.cli.text import action_text, now_text, show_text, state_text, turn_text
from takeback.errors import TakebackError
from takeback.model import words as terms
from takeback.model.history import RecordedCheckpoint
from takeback.model.text.safe_text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.history.compare import Comparison, OwnChanges
    from takeback.model.history import (
        Log,
        NamedCheckpoint,
        RecordedRestore,
        RecordedTurn,
        Unrecorded,
    )
    from takeback.model.text.masking import Masker
    from takeback.project import Project

    Load = Callable[[int, str | None], Log]
    """Reads so many turns; those before a turn, if one is named."""

_PAGE = 100
_MOST_PATHS = 200
_STYLES = {terms.FAILED: "red", terms.INTERRUPTED: "yellow", terms.RUNNING: "green"}


class Sheet(Screen):
    """Collects what is said, as lines, instead of printing it.

    `outcome` and `way_on` are whole: they are printed where there is more room than in a pane.
    """

    def __init__(self, screen: "Screen", columns: int) -> None:
        super().__init__()
        self._screen = screen
        self._columns = columns
        self.lines: list[str] = []
        self.notes: list[str] = []
        self.outcome = ""
        self.way_on = ""
        """The first line and the last note, not broken."""

    @property
    def masker(self) -> "Masker":
        """The one of the screen."""
        return self._screen.masker

    @property
    def size(self) -> "tuple[int, int]":
        """Columns of the pane; lines do not matter."""
        return self._columns, 24

    @property
    def has_colour(self) -> bool:
        return self._screen.has_colour

    def style(self, text: str, *names: str) -> str:
        return self._screen.style(text, *names)

    def id(self, shown: str, room: int = 0, of: str = "") -> str:
        return self._screen.id(shown, room, of)

    def counted(self, text: str) -> str:
        return self._screen.counted(text)

    def say(self, line: str = "", hang: "int | None" = None) -> None:
        self.outcome = self.outcome or line
        self.lines += self._broken(line, hang)

    def verbatim(self, line: str) -> None:
        self.lines.append(line.replace("\t", "    "))

    def note(self, line: str) -> None:
        self.way_on = line
        self.notes += self._broken(line)

    def _broken(self, text: str, hang: "int | None" = None) -> "list[str]":
        lines = text.replace("\t", "    ").split("\n")
        return "\n".join(layout.wrap(line, self._columns, hang) for line in lines).split("\n")

    @property
    def everything(self) -> "tuple[str, ...]":
        """What was said, and below it what was noted."""
        return (*self.lines, *(("", *self.notes) if self.notes else ()))


class Source:
    """Reads the project for the interactive log."""

    def __init__(self, project: "Project", screen: "Screen", load: "Load") -> None:
        self._project = project
        self._screen = screen
        self._load = load
        self._marks = layout.marks(screen)
        self._newest: Log | None = None
        self._seen: Unrecorded | None = None

    # -- rows --------------------------------------------------------------------------------

    def page(self, before: "str | None") -> "tuple[list[Row], bool]":
        """The next rows, and whether there are more: turns, and rollbacks and names among them."""
        log = self._load(_PAGE, before)
        self._newest = log if before is None else self._newest
        now = time.time()
        short = self._project.reader.shortened(turn_text.ids(log, None))
        rollbacks = (each for each in log.restores if each.verb == terms.ROLLBACK)
        both = [(each.at, self._rollback(each, short[each.id], now)) for each in rollbacks]
        both += [(each.at, self._name(each, short[each.checkpoint], now)) for each in log.names]
        beside, rows = sorted(both, key=lambda each: -each[0]), list[Row]()
        for turn in log.turns:  # in the order of the log, whatever the clock said
            while beside and beside[0][0] >= turn.started:
                rows.append(beside.pop(0)[1])
            rows.append(self._turn(turn, short[turn.id], now))
        return [*rows, *(row for _, row in beside)], log.more

    def now(self, *, look: bool) -> Row:
        """The files as they are; to `look` at them may take a moment."""
        said = "the files as they are"
        if look and self._newest is not None:
            self._seen = self._project.now()
            said = now_text.state(self._newest, self._seen, time.time())
        return Row(browser.NOW, "", safe_line(said), "@", "now", style="bold", words="@ now")

    def _turn(self, turn: "RecordedTurn", short: str, now: float) -> Row:
        state, agent = state_text.state(turn), safe_line(turn.agent)
        lines, files = turn_text.amount(turn, self._marks)
        paths = " ".join(safe(change.path) for change in turn.changes[:_MOST_PATHS])
        is_idle = not turn.files and turn.status == terms.DONE
        words = f"{self._screen.words(turn.label)} {agent} {state} {paths}"
        return Row(
            browser.TURN,
            turn.id,
            self._screen.title(turn.label) + (f" ({state})" if state else ""),
            mark=self._marks.undone if turn.undone else self._marks.of(turn.status),
            when=_when(turn.started, now),
            agent=agent,
            numbers=lines or files,
            short=short,
            style="dim" if turn.undone or is_idle else _STYLES.get(turn.status, ""),
            is_undone=bool(turn.undone),
            words=words.lower(),
        )

    def _rollback(self, restore: "RecordedRestore", short: str, now: float) -> Row:
        undone = " (undone)" if restore.undone else ""
        title = f"rollback to {self._screen.title(restore.title)}{undone}"
        return Row(
            browser.ROLLBACK,
            restore.id,
            title,
            mark=self._marks.back,
            when=_when(restore.at, now),
            short=short,
            style="dim" if restore.undone else "",
            is_undone=bool(restore.undone),
            words=title.lower(),
        )

    def _name(self, named: "NamedCheckpoint", short: str, now: float) -> Row:
        title = safe_line(self._screen.words(named.name))
        return Row(
            browser.NAME,
            named.checkpoint,
            title,
            mark=self._marks.name,
            when=_when(named.at, now),
            short=short,
            words=title.lower(),
        )

    # -- texts -------------------------------------------------------------------------------

    def lines(self, row: "Row", columns: int) -> "Iterator[str]":
        """What is known of a row, then its diff, as far as somebody reads it."""
        try:
            yield from self._lines(row, Sheet(self._screen, columns))
        except TakebackError as problem:
            yield from ("", *self.why(problem))

    def _lines(self, row: "Row", sheet: Sheet) -> "Iterator[str]":
        if row.kind == browser.NOW:
            yield from self._present(sheet)
        elif row.kind == browser.TURN:
            turn = self._project.turn(row.id)
            show_text.turn(turn, sheet, time.time())
            yield from sheet.lines
            if turn.changes:
                with self._project.reader.own_changes(row.id, (), b"") as own:
                    yield from self._diff(own, sheet)
        else:
            found = self._project.recorded(row.id)
            assert isinstance(found, RecordedCheckpoint)
            show_text.checkpoint(found, sheet, time.time())
            yield from sheet.lines
            if row.kind == browser.ROLLBACK:
                with self._project.compare(f"{row.id}-", row.id) as comparison:
                    yield from self._diff(comparison, sheet)

    def _present(self, sheet: Sheet) -> "Iterator[str]":
        if self._newest is None or self._seen is None:
            return
        yield f"Now  {now_text.state(self._newest, self._seen, time.time())}"
        now_text.show_changes(self._newest, self._seen, sheet, _MOST_PATHS)
        short = self._project.reader.shortened([self._seen.undo.id] if self._seen.undo else ())
        now_text.note_undo(self._seen.undo, short, sheet)
        if not self._newest.turns:
            sheet.note("no turns yet: `takeback run -- COMMAND` makes one of a command")
        yield from sheet.everything
        if self._seen.changes and self._newest.here:
            with self._project.compare(self._newest.here, "@") as comparison:
                yield from self._diff(comparison, sheet)

    def _diff(self, comparison: "Comparison | OwnChanges", sheet: Sheet) -> "Iterator[str]":
        for one in diff_view.made_ready(comparison, self._screen.masker):
            yield ""
            for line in diff_view.for_people(one.diff(), sheet):
                yield line.replace("\t", "    ").rstrip("\r")

    def why(self, problem: TakebackError) -> "tuple[str, ...]":
        """An error and its hint."""
        words, style = self._screen.masker.words, self._screen.style
        lines = [f"{style('error:', 'red', 'bold')} {safe_line(words(str(problem)))}"]
        hint = words(action_text.hint(problem.actions))
        if hint:
            first, *rest = map(safe_line, hint.split("\n"))
            lines += ["", f"{style('hint:', 'cyan')} {first}", *rest]
        return tuple(lines)


def _when(then: float, now: float) -> str:
    """How long ago it was today, else the day."""
    day, today = time.localtime(then), time.localtime(now)
    if day[:3] == today[:3]:
        return turn_text.age(then, now)
    is_old = now - then > 300 * 86400
    return time.strftime("%Y-%m" if is_old else "%m-%d", day)
