"""The interactive preview as a machine: a model and a key make the next model; nothing is drawn.

What somebody chose (`Choice`) is turned into a plan elsewhere; the rows are made of that plan, so
that what one sees is what would be done.
"""

from typing import NamedTuple

from takeback.cli import screen
from takeback.cli.restore_flow import can_decide
from takeback.cli.screens.terminal import END_OF_INPUT
from takeback.cli.text.reason_text import of_remark, sentence
from takeback.cli.text.restores import loss_text
from takeback.cli.text.restores.plan_text import own_edits
from takeback.model.plan import Conflict, Dependent, Plan, PlannedChange
from takeback.model.text.safe_text import safe
from takeback.model.value import path_text
from takeback.model.words import KEEP_MINE, MARKERS, ROLLBACK, SKIP, TAKE_BACK, YOU

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from takeback.model.plan import Hunk

    Key = bytes | tuple[bytes, int]

LIST, TEXT, HELP = "list", "text", "help"
"""What is on the screen."""
APPLY, QUIT = "apply", "quit"
"""How it ends."""
KEYS = {"m": KEEP_MINE, "t": TAKE_BACK, "b": MARKERS, "s": SKIP}
"""The keys that decide a conflict; with Shift, all that are left."""
WORDS = {KEEP_MINE: "mine", TAKE_BACK: "back", MARKERS: "both", SKIP: "skip"}
"""What a row says of a conflict that was decided."""
_LONGEST_TITLE = 40
_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES = {"pgup": -1, "pgdn": 1}
_ENDS = {"home": 0, "g": 0, "end": 1 << 30, "G": 1 << 30}


class Choice(NamedTuple):
    """What somebody chose: paths that are left out, paths and hunks decided, other turns.

    What is decided is a path, or a path and the index of one of its hunks.
    """

    off: "frozenset[bytes]" = frozenset()
    decided: "tuple[tuple[Key, str], ...]" = ()
    turns: "tuple[str, ...]" = ()

    @property
    def wanted(self) -> "dict[Key, str]":
        """What a plan has to know: what is left out stays, also as the other name of a file."""
        return {**dict.fromkeys(self.off, SKIP), **self.decisions}

    @property
    def decisions(self) -> "dict[Key, str]":
        return {key: choice for key, choice in self.decided if path_of(key) not in self.off}

    def decide(self, found: "Mapping[Key, str]") -> "Choice":
        """With more decisions; what is decided for a path counts for all of its hunks."""
        known = {k: c for k, c in self.decided if isinstance(k, bytes) or path_of(k) not in found}
        off = self.off - {path_of(key) for key in found}
        return self._replace(decided=tuple({**known, **found}.items()), off=off)


def path_of(key: "Key") -> bytes:
    return key if isinstance(key, bytes) else key[0]


class Item(NamedTuple):
    """One row: a path that can be chosen, a hunk of it, or something that is only said (`path` is
    None). A path whose hunks have rows `has_hunks`.
    """

    verb: str
    path: "bytes | None"
    said: str = ""
    mark: str = ""
    change: "PlannedChange | None" = None
    conflict: "Conflict | None" = None
    hunk: "Hunk | None" = None
    has_hunks: bool = False

    @property
    def key(self) -> "Key | None":
        """What is decided here."""
        return self.path if self.hunk is None or self.path is None else (self.path, self.hunk.index)

    @property
    def can_be_chosen(self) -> bool:
        return bool(self.mark)


class Model(NamedTuple):
    """Everything that is to be known to draw the screen, and to press a key."""

    plan: Plan
    items: "tuple[Item, ...]" = ()
    choice: Choice = Choice()
    cursor: int = 0
    top: int = 0
    page: int = 10
    view: str = LIST
    scroll: int = 0
    length: int = 0
    message: str = ""
    outcome: str = ""

    @property
    def here(self) -> "Item | None":
        return self.items[self.cursor] if self.items else None

    @property
    def undecided(self) -> "list[int]":
        waiting = enumerate(self.items)
        return [number for number, item in waiting if item.mark == "?" and not item.has_hunks]


# -- rows --------------------------------------------------------------------------------------


def begin(plan: Plan, of: "Callable[[PlannedChange], str]", decide: str = "") -> Model:
    """The model of a plan of which nothing was chosen yet, but perhaps decided for all."""
    decided = tuple((each.raw_path, decide) for each in plan.conflicts if can(plan, each, decide))
    model = renewed(Model(plan, choice=Choice(decided=decided)), plan, of)
    first = next((n for n, item in enumerate(model.items) if item.can_be_chosen), 0)
    return model._replace(cursor=first)


def renewed(model: Model, plan: Plan, of: "Callable[[PlannedChange], str]") -> Model:
    """The same for another plan; rows that can be chosen stay where they are."""
    known = {i.path: i for i in model.items if i.mark and i.path is not None and not i.hunk}
    yours_first = sorted(plan.changes, key=lambda c: not _goes_over_yours(plan, c))
    changes = {change.raw_path: change for change in yours_first}
    conflicts = {conflict.raw_path: conflict for conflict in plan.conflicts}
    remarks = (*plan.kept, *plan.skipped, *plan.shared)
    said_of = {remark.raw_path: of_remark(remark, plan.verb) for remark in remarks}
    rows, decisions = [], model.choice.decisions
    for path in dict.fromkeys((*known, *conflicts, *changes)):
        old = known.get(path)
        conflict = conflicts.get(path) or (old.conflict if old is not None else None)
        change = changes.get(path)
        said = said_of.get(path, "")
        if path in conflicts:
            said = of_remark(conflicts[path], plan.verb)
        if change is not None:
            said = f"{'outside the project  ' if change.outside else ''}{of(change)}".rstrip()
        decision = "?" if path in conflicts else decisions.get(path, "")
        row = _row(path, change, conflict, decision, said, is_off=path in model.choice.off)
        row = row if change or old is None else row._replace(change=old.change)
        hunks = list(_hunk_rows(model, row, is_open=path in conflicts))
        rows += [row._replace(has_hunks=bool(hunks)), *hunks]
    shown, lost = {row.path for row in rows}, {loss.raw_path for loss in plan.losses}
    items = (
        *(Item("!", None, said) for said in filter(None, [own_edits(plan)])),
        *(Item("!", None, sentence(reason)) for reason in plan.doubts),
        *(Item("!", None, f"`{safe(path)}` still holds conflict markers") for path in plan.marked),
        *rows,
        *(
            Item(word, each.raw_path, of_remark(each, plan.verb))
            for word, part in (
                ("keep", plan.kept),
                ("leave", plan.skipped),
                ("shared", plan.shared),
            )
            for each in part
            if each.raw_path not in shown and each.raw_path not in lost
        ),
        *(Item("lost", each.raw_path, loss_text.sentence(each)) for each in plan.losses),
        *(Item("later", None, _builds_on(each)) for each in plan.dependents),
        *(Item("note", None, sentence(reason)) for reason in plan.stays),
    )
    cursor = _where(model, items)
    return _scrolled(model._replace(plan=plan, items=items, cursor=cursor))


def _where(model: Model, items: "tuple[Item, ...]") -> int:
    """Where the row is that the cursor was on: those above it may have become more or fewer."""
    here = model.here
    if here is not None and here.can_be_chosen:
        rows = [number for number, item in enumerate(items) if item.path == here.path]
        return next((number for number in rows if items[number].key == here.key), rows[0])
    return min(model.cursor, max(len(items) - 1, 0))


def _builds_on(later: "Dependent") -> str:
    paths = ", ".join(path_text(path) for path in later.raw_paths)
    title = screen.cut(screen.title(later.title), _LONGEST_TITLE)
    return f'"{title}" of {later.agent} builds on this and is kept; `+` includes it: {paths}'


def _row(
    path: bytes,
    change: "PlannedChange | None",
    conflict: "Conflict | None",
    decision: str,
    said: str,
    *,
    is_off: bool,
) -> Item:
    """The row of a path; the decision is `?` if it is still open."""
    if is_off and change is None:
        mark, verb, said = " ", "leave", "left as it is"
    elif decision == "?":
        mark, verb = "?", "conflict"
    elif decision and conflict is not None:
        mark, verb = "x", WORDS[decision]
    elif change is None:
        mark, verb = "-", "keep"
    else:
        mark, verb = "x", change.verb
    return Item(verb, path, said, mark, change, conflict)


def _goes_over_yours(plan: Plan, change: PlannedChange) -> bool:
    return plan.verb == ROLLBACK and YOU in change.whose


def _hunk_rows(model: Model, row: Item, *, is_open: bool) -> "Iterator[Item]":
    """The hunks of a path, if there are several to choose from; decided ones stay."""
    if row.path is None or row.mark == " ":
        return
    path = row.path
    hunks = {i.hunk.index: i.hunk for i in model.items if i.path == path and i.hunk is not None}
    hunks |= {hunk.index: hunk for hunk in (row.change.hunks if row.change else ())}
    hunks |= {hunk.index: hunk for hunk in (row.conflict.hunks if row.conflict else ())}
    decisions = model.choice.decisions
    for index in sorted(hunks) if len(hunks) > 1 else ():
        hunk = hunks[index]
        choice = decisions.get((path, index), decisions.get(path, "") if hunk.clashes else "")
        if hunk.clashes and not choice and is_open:
            mark, verb = "?", "conflict"
        elif choice == SKIP and not hunk.clashes:
            mark, verb = " ", "leave"
        else:
            mark, verb = "x", WORDS.get(choice, "take")
        yield Item(verb, path, "", mark, row.change, row.conflict, hunk)


def can(plan: Plan, conflict: Conflict, decision: str) -> bool:
    return plan.verb != ROLLBACK and can_decide(conflict, decision)


def chosen(model: Model) -> "list[bytes] | None":
    """The paths to be named for what is chosen; None if that is everything.

    Whole folders are named where nothing below them is left out.
    """
    off = model.choice.off
    if not off:
        return None
    blocked = {above for path in off for above in _ways(path)}
    paths = [item.path for item in model.items if item.can_be_chosen and item.path is not None]
    named = {}
    for path in paths:
        free = next((above for above in _ways(path) if above not in blocked), None)
        if free is not None and path not in off:
            named[free] = True
    return list(named)


def _ways(path: bytes) -> "list[bytes]":
    """What one can name to mean a path; a file outside the project only by itself."""
    if path.startswith(b"/"):
        return [b"", path]
    return [*_above(path), path]


def _above(path: bytes) -> "list[bytes]":
    """The folders above a path, from the top, the root first."""
    if not path:
        return []
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(len(parts))]


# -- keys --------------------------------------------------------------------------------------


def press(model: Model, key: str) -> Model:
    model = model._replace(message="")
    if key == END_OF_INPUT:
        return model._replace(outcome=QUIT)
    if model.view != LIST:
        return _press_in_text(model, key)
    moved = _moved(model.cursor, model.page, key)
    if moved is not None:
        last = max(len(model.items) - 1, 0)
        return _scrolled(model._replace(cursor=min(max(moved, 0), last)))
    if key in KEYS:
        return _decide(model, KEYS[key])
    if key.lower() in KEYS:
        return _decide_all(model, KEYS[key.lower()])
    act = _ACTS.get(key)
    return act(model) if act is not None else model._replace(message="`?` shows the keys")


def _press_in_text(model: Model, key: str) -> Model:
    moved = _moved(model.scroll, model.page, "pgdn" if key == " " else key)
    if moved is not None:
        return model._replace(scroll=min(max(moved, 0), max(model.length - model.page, 0)))
    return model._replace(view=LIST, scroll=0)


def _moved(at: int, page: int, key: str) -> "int | None":
    if key in _MOVES:
        return at + _MOVES[key]
    if key in _PAGES:
        return at + _PAGES[key] * max(page - 1, 1)
    return _ENDS.get(key)


def resized(model: Model, page: int, length: int) -> Model:
    """The same on a screen of another size, with so many lines of text."""
    page = max(page, 1)
    scroll = min(model.scroll, max(length - page, 0))
    return _scrolled(model._replace(page=page, length=length, scroll=scroll))


def _scrolled(model: Model) -> Model:
    """Let the cursor be on the screen, and no line of it be wasted."""
    most = max(len(model.items) - model.page, 0)
    top = min(model.top, model.cursor, most)
    return model._replace(top=max(top, model.cursor - model.page + 1))


def _open(model: Model) -> Model:
    return model._replace(view=TEXT, scroll=0) if model.items else model


def _toggle(model: Model) -> Model:
    """Switch a path on or off; a folder with everything below it."""
    here = model.here
    if here is None or not here.can_be_chosen or here.path is None:
        return model._replace(message="nothing to turn on or off here")
    if here.hunk is not None:
        return _toggle_hunk(model, (here.path, here.hunk.index))
    below = {
        item.path
        for item in model.items
        if item.can_be_chosen and item.path is not None and _covers(here.path, item.path)
    }
    off = model.choice.off - below if here.path in model.choice.off else model.choice.off | below
    return model._replace(choice=model.choice._replace(off=off))


def _toggle_hunk(model: Model, key: "tuple[bytes, int]") -> Model:
    """Leave a hunk as it is, or do not."""
    if model.choice.decisions.get(key) != SKIP:
        return model._replace(choice=model.choice.decide({key: SKIP}))
    decided = tuple((known, choice) for known, choice in model.choice.decided if known != key)
    return model._replace(choice=model.choice._replace(decided=decided))


def _covers(path: bytes, other: bytes) -> bool:
    return not path or other == path or other.startswith(path + b"/")


def _decide(model: Model, decision: str) -> Model:
    here = model.here
    is_clean = here is not None and here.hunk is not None and not here.hunk.clashes
    if here is None or here.conflict is None or here.path is None or is_clean:
        return model._replace(message="there is no conflict here to decide")
    if not can(model.plan, here.conflict, decision):
        return model._replace(message=_why_not(model.plan, decision))
    return _decided(model, {here.key or here.path: decision})


def _why_not(plan: Plan, decision: str) -> str:
    if plan.verb == ROLLBACK:
        return "in a rollback only space decides"
    if decision == MARKERS:
        return "markers are for text: `m`, `t` or `s`"
    return "it is in the way: `m` or `s` keeps it"


def _decide_all(model: Model, decision: str) -> Model:
    """Decide all conflicts that are left and can be decided so."""
    waiting = [model.items[number] for number in model.undecided]
    able = [
        item.key
        for item in waiting
        if item.key is not None and item.conflict and can(model.plan, item.conflict, decision)
    ]
    if not able:
        return model._replace(message="no remaining conflict can be decided that way")
    return _decided(model, dict.fromkeys(able, decision))


def _decided(model: Model, found: "Mapping[Key, str]") -> Model:
    return model._replace(choice=model.choice.decide(found))


def _add_dependents(model: Model) -> Model:
    """Take the later turns along that build on what is taken back."""
    later = tuple(each.id for each in model.plan.dependents)
    if not later:
        return model._replace(message="no later turn builds on this")
    return model._replace(choice=model.choice._replace(turns=(*model.plan.turns, *later)))


def _apply(model: Model) -> Model:
    waiting = model.undecided
    if waiting:
        left = f"{len(waiting):,} conflicts" if len(waiting) > 1 else "1 conflict"
        said = f"{left} left: {_keys_for(model.plan, model.items[waiting[0]])}"
        return _scrolled(model._replace(cursor=waiting[0], message=said))
    if chosen(model) == []:
        return model._replace(message="nothing is chosen; space chooses")
    return model._replace(outcome=APPLY)


def _keys_for(plan: Plan, item: Item) -> str:
    keys = [key for key in KEYS if item.conflict and can(plan, item.conflict, KEYS[key])]
    return f"{', '.join(keys)} or space" if keys else "space skips it"


def _next_conflict(model: Model) -> Model:
    waiting = model.undecided
    if not waiting:
        return model._replace(message="no conflict is left to decide")
    after = [number for number in waiting if number > model.cursor]
    return _scrolled(model._replace(cursor=(after or waiting)[0]))


_ACTS: "Mapping[str, Callable[[Model], Model]]" = {
    " ": _toggle,
    "enter": _open,
    "right": _open,
    "d": _open,
    "a": _apply,
    "y": _apply,
    "tab": _next_conflict,
    "+": _add_dependents,
    "?": lambda model: model._replace(view=HELP, scroll=0),
    "q": lambda model: model._replace(outcome=QUIT),
    "esc": lambda model: model._replace(outcome=QUIT),
}
