"""The interactive preview of a plan: look, choose, decide, apply; by keys, colour or not."""

from takeback.cli import screen as layout
from takeback.cli.restore_flow import Wanted
from takeback.cli.screen import safe_line
from takeback.cli.screens import picker
from takeback.cli.screens.terminal import RESIZED, full_screen, wrap
from takeback.cli.text.restores import conflict_text
from takeback.cli.text.restores.plan_text import STYLES, Page, amount
from takeback.errors import TakebackError
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.restore_flow import Contents, Make
    from takeback.cli.screen import Screen
    from takeback.cli.screens.picker import Item, Model
    from takeback.cli.screens.terminal import Keyboard
    from takeback.cli.text.restores.conflict_text import Styled
    from takeback.model.plan import Plan


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
        return full_screen(self._screen, lambda terminal: self.choose(plan, terminal))

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
