"""`takeback log -i`: the loop that draws, reads keys and does what they ask for.

`browser` decides what a key means, `browser_view` draws, `browser_source` reads; undo and redo are
the project's.
"""

import os
import time

from takeback.cli import screen as layout
from takeback.cli.app import INTERRUPTED
from takeback.cli.progress import Progress
from takeback.cli.restore_flow import Contents, Wanted, interrupted
from takeback.cli.screens import browser
from takeback.cli.screens.browser import Model, Overlay
from takeback.cli.screens.browser_source import Sheet, Source
from takeback.cli.screens.browser_view import ALL, HELP, BrowserView, Text, panes
from takeback.cli.screens.terminal import RESIZED, full_screen
from takeback.cli.text.restores import plan_text
from takeback.errors import TakebackError, UnfinishedError, UsageError
from takeback.model.reasons import Action
from takeback.model.text.safe_text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from takeback.cli.parser import Arguments
    from takeback.cli.screen import Screen
    from takeback.cli.screens.browser import Row
    from takeback.cli.screens.browser_source import Load
    from takeback.cli.screens.terminal import Keyboard
    from takeback.model.plan import Plan
    from takeback.project import Project

    class Keys(Keyboard, Protocol):
        """A terminal that belongs to us."""

        def paint(self, painted: Sequence[str]) -> None: ...

        def is_waiting(self) -> bool: ...

        def drop_typed(self) -> None: ...


_USUAL = (80, 24)
_QUESTIONS = {browser.UNDO: "Take this back?", browser.REDO: "Put this back?"}


def require(given: "Arguments", screen: "Screen") -> None:
    """An error that says what to do instead, where the screen cannot be filled."""
    for name in ("json", "checkpoints", "limit"):
        if given.has(name):
            raise UsageError(f"`-i` and `--{name}` exclude each other", hint=Action("log"))
    if not screen.has_keys:
        raise UsageError("`-i` needs a terminal", hint=Action("log"))
    if screen.is_dumb:
        raise UsageError(
            "`-i` cannot draw on this terminal: `TERM` is `dumb`, or not set",
            hint=(Action("log"), "`TERM=xterm takeback log -i` tries all the same"),
        )


class Browser:
    """One interactive log."""

    def __init__(self, project: "Project", screen: "Screen", load: "Load") -> None:
        self._project = project
        self._screen = screen
        self._source = Source(project, screen, load)
        self._view = BrowserView(screen, safe(os.path.basename(project.root) or "/"))
        self._contents = Contents(project, screen.masker)
        self._plan: Plan | None = None
        self._text: tuple[Row | None, Text] | None = None
        self._over: tuple[Overlay, Text] | None = None
        self._restored = project.reader.restored()
        self._is_applying = False
        self._done: list[str] = []
        self._way_back: list[str] = []

    def run(self) -> int:
        """Show it; what was done is told once more when the terminal is as it was."""
        self._project.workspace.progress = None
        try:
            full_screen(self._screen, self.loop)
        except KeyboardInterrupt as problem:
            if not self._is_applying:
                return INTERRUPTED
            return interrupted(problem, self._project, self._screen, self._restored)
        finally:
            self._close_text()
            for line in (*self._done, *self._way_back):
                self._screen.note(line)
        return 0

    def loop(self, terminal: "Keys") -> None:
        """Read keys until somebody quits."""
        rows, more = self._source.page(None)
        model = Model(rows=(self._source.now(look=False), *rows), more=more)
        has_looked = False
        while model.request != browser.QUIT:
            if model.request:
                model = self._answer(model, terminal)
                continue
            # Whoever holds a key down shall not wait for every text in between.
            if not terminal.is_waiting():
                model = self._draw(model, terminal)
                if not has_looked:
                    has_looked, model = True, self._looked(model)
                    continue
            key = terminal.key()
            model = browser.press(model, key) if key != RESIZED else model

    def _looked(self, model: "Model") -> "Model":
        """With what the files are like now, which is found out after the list is shown."""
        self._close_text()
        try:
            return browser.replaced(model, self._source.now(look=True))
        except TakebackError as problem:
            return browser.told(model, layout.safe_line(self._screen.words(str(problem))))

    def _draw(self, model: "Model", terminal: "Keys") -> "Model":
        columns, rows = self._size()
        found = panes(model, columns, rows)
        text = self._shown(model, found.text_width)
        length = text.fill(found.text_width, model.at + 2 * max(found.text_rows, 1))
        pages = found.list_rows or model.page, found.text_rows or model.text_page
        model = browser.resized(model, *pages, length)
        terminal.paint(self._view.draw(model, text, columns, rows))
        return model

    def _size(self) -> "tuple[int, int]":
        columns, rows = self._screen.size
        return columns or _USUAL[0], rows or _USUAL[1]

    # -- texts -------------------------------------------------------------------------------

    def _shown(self, model: "Model", columns: int) -> Text:
        """The text on the screen; that of a row is read when it is looked at, and only then."""
        over = model.overlay
        if over is not None:
            if self._over is None or self._over[0] is not over:
                lines = HELP.splitlines() if over.kind == browser.HELP else over.lines
                self._over = over, Text(lines)
            return self._over[1]
        here = model.here
        if self._text is None or self._text[0] != here:
            self._close_text()
            self._text = here, Text(self._source.lines(here, columns) if here is not None else ())
        return self._text[1]

    def _close_text(self) -> None:
        if self._text is not None:
            self._text[1].close()
            self._text = None

    def _sheet(self, model: "Model") -> Sheet:
        # Whatever is told is shown over the text, which has room then.
        over = model._replace(overlay=Overlay(browser.REPORT, "", ()))
        return Sheet(self._screen, panes(over, *self._size()).text_width)

    # -- what is asked for -------------------------------------------------------------------

    def _answer(self, model: "Model", terminal: "Keys") -> "Model":
        acts = {
            browser.MORE: self._more,
            browser.RELOAD: self._reload,
            browser.SEEK: self._seek,
            browser.UNDO: self._preview,
            browser.REDO: self._preview,
            browser.PICK: self._pick,
            browser.APPLY: self._apply,
        }
        try:
            return acts[model.request](model, terminal)
        except TakebackError as problem:
            why = self._source.why(problem)
            title = "Half done" if isinstance(problem, UnfinishedError) else "Nothing was changed"
            return browser.covered(model, Overlay(browser.REPORT, title, why))
        finally:
            self._project.workspace.progress = None

    def _more(self, model: "Model", terminal: "Keys") -> "Model":
        rows, more = self._source.page(_last_turn(model.rows))
        model = browser.loaded(model, rows, more=more)
        if model.goal is not None:
            self._draw(model, terminal)
            if terminal.is_waiting():
                terminal.key()
                return browser.stopped(model)
        return model

    def _reload(self, model: "Model", _terminal: "Keys") -> "Model":
        """Read the list again, as far as the row that is chosen."""
        here = model.here
        self._close_text()
        rows, more = self._source.page(None)
        found = [self._source.now(look=True), *rows]
        while more and here is not None and here.id not in {row.id for row in found}:
            rows, more = self._source.page(_last_turn(found))
            found += rows
        return browser.reloaded(model, found, more=more)

    def _seek(self, model: "Model", _terminal: "Keys") -> "Model":
        seek = model.seek
        assert seek is not None
        width = panes(model, *self._size()).text_width
        text = self._shown(model, width)
        length = text.fill(width, ALL)
        line: int | None = length
        if seek.word:
            above = model.scroll - 1 if seek.down else model.scroll
            after = above if model.match is None else model.match
            line = text.find(seek.word, after, down=seek.down)
        return browser.found(model._replace(length=length), line)

    def _preview(self, model: "Model", terminal: "Keys") -> "Model":
        """Show what an undo or a redo would do, and ask."""
        verb = model.request
        self._say(model, "planning", terminal)
        plan = self._maker(model, verb)(Wanted([], b""))
        sheet = self._sheet(model)
        plan_text.preview(plan, sheet, self._contents)
        told = sheet.everything
        if not plan.changes and not plan.conflicts:
            return browser.covered(model, Overlay(browser.REPORT, "Nothing to do", told))
        self._plan, is_open = plan, bool(plan.conflicts)
        title = "`p` decides the conflict" if is_open else _QUESTIONS[verb]
        terminal.drop_typed()  # an answer is to what was seen, and not typed ahead, or pasted
        return browser.covered(model, Overlay(browser.PREVIEW, title, told, verb, is_open))

    def _pick(self, model: "Model", terminal: "Keys") -> "Model":
        """Choose files and hunks; what is chosen and confirmed there is done."""
        from takeback.cli.screens.picker_view import PickerView

        self._say(model, "planning", terminal)
        here, over = model.here, model.overlay
        verb = browser.REDO if here is not None and here.is_undone else browser.UNDO
        make = self._maker(model, over.verb if over is not None else verb)
        wanted = Wanted([], b"", by_hunk=True)
        plan = make(wanted)
        if not plan.changes and not plan.conflicts:
            return browser.told(model, "there is nothing to pick")
        terminal.drop_typed()
        chosen = PickerView(self._screen, self._contents, make, wanted).choose(plan, terminal)
        if chosen is None:
            return browser.told(model, "nothing was changed")
        self._plan = chosen
        return self._apply(model, terminal)

    def _apply(self, model: "Model", terminal: "Keys") -> "Model":
        """Do what the preview showed, and report it over a list that is read again."""
        plan, self._plan = self._plan, None
        assert plan is not None
        self._say(model, "working", terminal)
        self._restored, self._is_applying = self._project.reader.restored(), True
        try:
            made = self._project.apply(plan, yes=True)
        except TakebackError:
            self._is_applying = False
            raise
        self._is_applying = False
        sheet = self._sheet(model)
        plan_text.report(made, sheet, self._contents, was_previewed=False)
        self._done.append(sheet.outcome)
        self._way_back = [sheet.way_on] if sheet.way_on else []
        told = sheet.everything
        try:
            model = self._reload(model, terminal)
        except TakebackError as problem:  # it is done all the same
            told += ("", *self._source.why(problem))
        return browser.covered(model, Overlay(browser.REPORT, "Done", told))

    def _maker(self, model: "Model", verb: str) -> "Callable[[Wanted], Plan]":
        """Makes plans for the row that is chosen; for what is newest, if it is no turn."""
        here, project = model.here, self._project
        is_entry = here is not None and here.kind in (browser.TURN, browser.ROLLBACK)
        ref = here.id if here is not None and is_entry else None
        if verb == browser.UNDO:
            return lambda wanted: project.plan_undo(
                wanted.turns or ref,
                paths=wanted.paths,
                decide=wanted.decide,
                by_hunk=wanted.by_hunk,
                inside=wanted.inside,
            )
        undone = ref if here is not None and here.is_undone else None
        return lambda wanted: project.plan_redo(
            undone,
            paths=wanted.paths,
            decide=wanted.decide,
            by_hunk=wanted.by_hunk,
            inside=wanted.inside,
        )

    def _say(self, model: "Model", doing: str, terminal: "Keys") -> None:
        """Say what is done, and how far it has come, if it takes long."""
        said = f"{doing}{layout.marks(self._screen).cut}"
        self._draw(model._replace(message=said), terminal)
        bar = Progress(time.monotonic(), plain=not self._screen.can_show("━╌…"))

        def show(phase: str, done: int, total: int) -> None:
            line = bar.line(phase, done, total, self._size()[0] - 2, time.monotonic())
            if line:
                self._draw(model._replace(message=line), terminal)

        self._project.workspace.progress = show


def _last_turn(rows: "Sequence[Row]") -> "str | None":
    """The oldest turn that was read: the next page begins after it."""
    return next((row.id for row in reversed(rows) if row.kind == browser.TURN), None)
