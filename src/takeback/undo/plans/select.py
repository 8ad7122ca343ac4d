"""What an undo or a redo is about: found by references, sessions, or as the newest on the stack.

The undo stack: what a bare undo or redo means. Drawn in `ledger/undo_stack`.

Entries are turns that changed something, and rollbacks; those neither undone nor covered by a
rollback are live, and make up the current line. Undo and redo are never entries themselves, and
neither is what you do by hand.
"""

import os

from takeback.errors import (
    DecisionNeededError,
    NothingToTakeBackError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.history import references, retention
from takeback.history.references import CHECKPOINT, RESTORE
from takeback.history.shared import SharedChanges
from takeback.model import plan
from takeback.model.history import NextUndo
from takeback.model.reasons import Action
from takeback.model.value import Value
from takeback.model.words import ROLLBACK, UNDO, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.history import Unrecorded

    Read = Callable[[str | None, bytes, bytes], Iterator[bytes]]


class Item(Value):
    """One entry of the stack: a turn, or a rollback if `restore` is there.

    `opened` is the event with which it began: that is what the stack is ordered by.
    """

    number: int
    id: str
    opened: int
    title: str
    session: str
    agent: str
    undone: "int | None"
    covered: "int | None"
    git_before: "str | None"
    git_after: "str | None"
    before: int
    after: "int | None"
    restore: "RestoreRow | None" = None

    @property
    def called(self) -> str:
        """What one calls it in a sentence."""
        return plan.called(self.title, is_turn=self.restore is None)


def turn(ledger: "Ledger", number: int) -> Item:
    """A turn as an entry."""
    row = ledger.turns.numbered(number)
    assert row is not None, "what names a turn names one that is there"
    return _of_turn(ledger, row)


def _of_turn(ledger: "Ledger", row: "TurnRow") -> Item:
    session = ledger.sessions.of(row)
    return Item(
        row.number,
        row.id,
        row.opened,
        row.label,
        session.id,
        session.agent,
        row.undone,
        row.covered,
        row.git_before,
        row.git_after,
        row.before,
        row.after,
    )


def rollback(ledger: "Ledger", row: "RestoreRow") -> Item:
    """A rollback as an entry."""
    states = (row.undone, row.covered, None, None, row.before, row.after)
    return Item(row.number, row.id, row.event, references.of(ledger, row), "", "", *states, row)


def newest_entry(ledger: "Ledger", session: "int | None" = None) -> "Item | None":
    """The newest live entry: of the project, or the newest turn of one session."""
    turn = ledger.turns.newest_changed(session)
    found = [_of_turn(ledger, turn)] if turn is not None else []
    row = ledger.stack.newest_rollback() if session is None else None
    found += [rollback(ledger, row)] if row is not None else []
    return max(found, key=lambda item: item.opened, default=None)


def newest(ledger: "Ledger", session: "int | None" = None) -> "Item | None":
    """What a bare `undo` means: the newest entry, or a newer turn that shares all it did."""
    entry = newest_entry(ledger, session)
    shared = SharedChanges(ledger)
    for number in ledger.stack.sharing(session, 0 if entry is None else entry.opened):
        item = turn(ledger, number)
        if shared.standing([(item.session, item.before, item.after)]):
            return item
    return entry


def with_next_undo(
    ledger: "Ledger", seen: "Unrecorded", read: "Read", session: "int | None" = None
) -> "Unrecorded":
    """What changed just now, and what a bare undo takes back; it would look first, too."""
    seen = seen.replace(raw_marked=_still_marked(ledger, read))
    if any(change.author.how == UNKNOWN for change in seen.changes):
        return seen  # undo makes a turn of it first, which has no id yet
    working = {change.author.turn for change in seen.changes} - {""}
    rows = [row for id in working if (row := ledger.turns.find(id)) is not None]
    found = [_of_turn(ledger, row) for row in rows if session in (None, row.session)]
    latest = newest(ledger, session)
    item = max([*found, latest] if latest else found, key=lambda item: item.opened, default=None)
    if item is None:
        return seen
    kept, entry = retention.is_whole(ledger, item.before), newest_entry(ledger, session)
    is_shared = item is latest and (entry is None or entry.opened != item.opened)
    return seen.replace(undo=NextUndo(item.id, item.title, item.agent, kept, is_shared))


def written_with_markers(ledger: "Ledger") -> "set[bytes]":
    """The files into which restores wrote both versions, with conflict markers."""
    paths: set[bytes] = set()
    for row in ledger.stack.with_markers():
        event = ledger.event(row.event)
        said: Any = (event.payload or {}).get("marked", ()) if event is not None else ()
        paths |= {os.fsencode(path) for (path,) in said}
    return paths


def _still_marked(ledger: "Ledger", read: "Read") -> "tuple[bytes, ...]":
    written, found = sorted(written_with_markers(ledger)), []
    if not written:
        return ()
    from takeback.undo.plans.merge import has_markers

    for path in written:
        try:
            if has_markers(b"".join(read(None, path, b""))):
                found.append(path)
        except TakebackError:
            continue  # it was deleted, or cannot be read
    return tuple(found)


def undo_of(ledger: "Ledger", item: Item) -> "RestoreRow | None":
    """The newest undo of an entry, or of paths of it, that still stands."""
    if item.restore is None:
        return ledger.stack.undo_of_turn(item.number)
    return ledger.stack.undo_of_rollback(item.number)


def undone_by(ledger: "Ledger", undo: "RestoreRow") -> "list[Item]":
    """What an undo took back: a rollback, or one turn or several, the newest first."""
    if undo.turns:
        items = [turn(ledger, number) for number in undo.turns]
        return sorted(items, key=lambda item: -item.opened)
    row = ledger.stack.numbered(undo.entry or 0)
    assert row is not None, "an undo names what it took back"
    return [rollback(ledger, row)]


class Selection:
    """What is taken back or put back together: one entry of the stack, or several turns of it.

    `items` are the newest first. `undo` is what is put back; `passed` tells how many newer turns
    changed nothing, `within` the session that was looked at, if it was one. `is_newest` tells that
    it is what a bare `undo` or `redo` means.
    """

    __slots__ = ("is_newest", "items", "passed", "undo", "within")

    def __init__(
        self,
        items: "Sequence[Item]",
        *,
        undo: "RestoreRow | None" = None,
        is_newest: bool = False,
        passed: int = 0,
        within: "int | None" = None,
    ) -> None:
        self.items = tuple(sorted(items, key=lambda item: -item.opened))
        self.undo = undo
        self.is_newest = is_newest
        self.passed = passed
        self.within = within

    @property
    def newest(self) -> "Item":
        """The newest of them, after which several are called."""
        return self.items[0]

    @property
    def turns(self) -> "tuple[int, ...]":
        """The numbers of the turns; none, if it is a rollback."""
        return tuple(item.number for item in self.items if item.restore is None)

    @property
    def before(self) -> int:
        """The checkpoint before the first of them."""
        return min(item.before for item in self.items)

    @property
    def is_a_part(self) -> bool:
        """Whether more was taken back together than is put back now."""
        return self.undo is not None and not set(self.turns) >= set(self.undo.turns)

    def one(self, name: str) -> str:
        """What all of them have in common: their session, or their agent; else nothing."""
        found = {str(getattr(item, name)) for item in self.items}
        return found.pop() if len(found) == 1 else ""


class Selector:
    """Finds what is meant, and says why it cannot be."""

    def __init__(self, ledger: "Ledger", time: float) -> None:
        self._ledger = ledger
        self._time = time

    # -- undo ------------------------------------------------------------------------------

    def to_undo(
        self,
        refs: "Sequence[str]",
        session: "str | None",
        *,
        shared: bool = False,
        anew: bool = False,
    ) -> Selection:
        """The newest live entry, or those that are named; `shared` takes along what is shared.

        What was decided to stay can be decided `anew`, although the turn counts as undone.
        """
        within = self.session(session)
        latest = newest(self._ledger, within)
        if not refs:
            if latest is None:
                return self._only_git(session, within)
            self.require_kept(latest)
            passed = self._ledger.turns.count_unchanged(within, latest.opened)
            passed -= len(self._ledger.stack.sharing(within, latest.opened))
            return Selection([latest], is_newest=True, passed=passed, within=within)
        items = list({(i.restore is None, i.number): i for i in self._items(refs, within)}.values())
        for item in items:
            self.require_remembered(item)
            if not ((shared and self._shares(item)) or (anew and self._has_settled(item))):
                self.require_live(item)
            self.require_uncovered(item)
            self.require_kept(item)
        if len(items) > 1 and any(item.restore is not None for item in items):
            raise UsageError(
                "a rollback cannot be taken back together with other turns",
                hint="name only the rollback, or only turns",
            )
        is_newest = latest is not None and [i.opened for i in items] == [latest.opened]
        return Selection(items, is_newest=is_newest)

    def of_session(self, session: str, *, shared: bool = False) -> Selection:
        """All live turns of a session that changed something of their own, or shared."""
        number = references.session(self._ledger, session, self._time)
        items = [_of_turn(self._ledger, row) for row in self._ledger.turns.changed(number)]
        if shared or not items:
            sharing = (turn(self._ledger, x) for x in self._ledger.stack.sharing(number, 0))
            items += [item for item in sharing if self._shares(item)]
        for item in items:
            self.require_kept(item)
        latest = newest(self._ledger)
        is_newest = latest is not None and [i.opened for i in items] == [latest.opened]
        return Selection(items, is_newest=is_newest)

    def _shares(self, item: "Item") -> bool:
        """Whether a turn shares something that was not taken back."""
        span = (item.session, item.before, item.after)
        return item.restore is None and bool(SharedChanges(self._ledger).standing([span]))

    def _items(self, refs: "Sequence[str]", within: "int | None") -> "list[Item]":
        return [self.item(ref, within) for ref in refs]

    def _only_git(self, session: "str | None", within: "int | None") -> Selection:
        """The newest turn that changed git alone: the plan moves no file, and says what stays."""
        found = self._ledger.git.turns_without_files(within, 0)
        if not found:
            raise self._nothing_to_undo(session, within)
        return Selection([turn(self._ledger, found[0])], is_newest=True, within=within)

    def _nothing_to_undo(
        self, session: "str | None", within: "int | None"
    ) -> NothingToTakeBackError:
        if self._ledger.stack.newest_undo(within) is None:
            return NothingToTakeBackError(
                _nothing("undo", session), hint=(Action("log"), Action("rollback-anywhere"))
            )
        return NothingToTakeBackError(
            _nothing("undo", session).replace("nothing", "nothing left"),
            hint=(Action("redo-newest"), Action("rollback-anywhere")),
        )

    def require_remembered(self, item: "Item") -> None:
        """An error if a turn was forgotten: its states are gone, with what it did."""
        if item.restore is not None:
            return
        event = self._ledger.event(item.opened)
        if event is not None and (event.payload or {}).get("forgotten"):
            raise NothingToTakeBackError(
                f"`{item.id}` was forgotten, so it cannot be taken back or put back",
                hint=Action("rollback-anywhere"),
            )

    def require_live(self, item: "Item") -> None:
        """An error if something is undone already, or gone back over."""
        if item.undone is not None:
            raise NothingToTakeBackError(
                f"`{item.id}` is undone already", hint=Action("redo", turn=item.id)
            )
        self.require_uncovered(item)

    def require_kept(self, item: "Item") -> None:
        """An error if the files that it takes to take something back are no longer kept."""
        retention.require_whole(self._ledger, item.before, f"{item.called} (`{item.id[:8]}`)")

    def require_kept_undo(self, undo: "RestoreRow", items: "Sequence[Item]") -> None:
        """The same of what an undo took, and is to be put back."""
        whole = Selection(items, undo=undo)
        before = whole.before if whole.is_a_part else undo.before
        name = f"the undo of {whole.newest.called} (`{undo.id[:8]}`)"
        retention.require_whole(self._ledger, before, name)

    def _has_settled(self, item: "Item") -> bool:
        """Whether somebody decided to keep something of a turn when it was undone."""
        undo = self._ledger.stack.numbered(item.undone) if item.undone is not None else None
        if undo is None or item.restore is not None or item.covered is not None:
            return False
        event = self._ledger.event(undo.event)
        left: Any = (event.payload or {}).get("left", ()) if event is not None else ()
        kept = (plan.SETTLED, plan.EARLIER)
        return any(turn == item.id and why in kept for _, turn, _, why, _ in left)

    def require_uncovered(self, item: "Item") -> None:
        """An error if a rollback went back over something."""
        if item.covered is not None:
            over = self._ledger.stack.numbered(item.covered)
            name = over.id if over is not None else ""
            raise NothingToTakeBackError(
                f"the rollback `{name}` already took back `{item.id}`",
                hint=Action("undo-rollback", rollback=name),
            )

    # -- redo ------------------------------------------------------------------------------

    def to_redo(self, ref: "str | None", session: "str | None") -> Selection:
        """What the newest undo took, or what is named."""
        within = self.session(session)
        newest = self._ledger.stack.newest_undo(within)
        named = self.item(ref, within) if ref is not None else None
        if named is not None:
            self.require_uncovered(named)
        undo = newest if named is None else self._undo_of(named)
        if undo is None:
            what = f"`{ref}` is not undone" if ref is not None else _nothing("redo", session)
            raise NothingToTakeBackError(what, hint=Action("log-all"))
        if named is None:
            self._require_unblocked(undo, within)
        items = [named] if named is not None else self._left_of(undo)
        for item in items:
            self.require_remembered(item)
            self.require_uncovered(item)
        self.require_kept_undo(undo, items)
        is_newest = newest is not None and newest.number == undo.number
        return Selection(items, undo=undo, is_newest=is_newest)

    def _left_of(self, undo: "RestoreRow") -> "list[Item]":
        """What an undo took that was not put back without the others."""
        items = undone_by(self._ledger, undo)
        back = self._ledger.stack.put_back(undo)
        left = [item for item in items if self._is_undone_by(item, undo, back)]
        return left if left and not undo.partial else items

    def _undo_of(self, item: "Item") -> "RestoreRow | None":
        undo = undo_of(self._ledger, item)
        if undo is None or len(undo.turns) < 2 or undo.partial:
            return undo
        back = self._ledger.stack.put_back(undo)
        return undo if self._is_undone_by(item, undo, back) else None

    def _is_undone_by(self, item: "Item", undo: "RestoreRow", back: "set[int]") -> bool:
        """Whether an undo still stands for an entry, all of it or a part."""
        if item.number in undo.partly:
            return item.number not in back
        return item.undone == undo.number

    def _require_unblocked(self, undo: "RestoreRow", within: "int | None") -> None:
        """After an undo and new work, putting it back is a decision, not a reflex."""
        newest = newest_entry(self._ledger, within)
        if newest is None or newest.opened < undo.event:
            return
        item = undone_by(self._ledger, undo)[0]
        raise DecisionNeededError(
            f"{newest.called} (`{newest.id[:8]}`) came after the undo of {item.called}",
            hint=Action("redo", turn=item.id[:8]),
        )

    # -- what is meant ---------------------------------------------------------------------

    def item(self, ref: str, session: "int | None" = None) -> "Item":
        """The entry of the stack that a reference means."""
        meant = references.find(self._ledger, ref, self._time, session)
        number = references.turn_of(self._ledger, meant)
        if number is not None:
            return turn(self._ledger, number)
        if meant.kind == RESTORE and not meant.before:
            row = self._ledger.stack.numbered(meant.number)
            if row is not None and row.verb == ROLLBACK:
                return rollback(self._ledger, row)
            if row is not None:
                undo = row if row.verb == UNDO else self._undo(row)
                return undone_by(self._ledger, undo)[0]
        hint = Action("log")
        if references.is_now(ref):
            hint = Action("undo-newest")
        elif meant.kind == CHECKPOINT or meant.before:
            hint = Action("rollback", ref=meant.ref)
        raise UnknownReferenceError(f"`{meant.ref}` is neither a turn nor a rollback", hint=hint)

    def _undo(self, redo: "RestoreRow") -> "RestoreRow":
        row = self._ledger.stack.numbered(redo.entry or 0)
        assert row is not None, "a redo names the undo that it put back"
        return row

    def session(self, session: "str | None") -> "int | None":
        """The number of a session that is named."""
        if session is None:
            return None
        return references.session(self._ledger, session, self._time)


def _nothing(verb: str, session: "str | None") -> str:
    where = f" in the session `{session}`" if session is not None else ""
    return f"there is nothing to {verb}{where}"
