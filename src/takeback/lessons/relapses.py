"""Find out whether a turn brought back lines that a restore had taken back.

      restore R                      turn T
    before ──► after            before ──► now
         took these lines            added these lines       the same, or nearly: T relapses into R

Only restores that still stand count. Lines that were there when the turn began are not brought back
by it, whoever put them there, and if the user asks for the same thing again, nothing is a relapse.
All that is read is bounded.
"""

import time

from takeback.capture.changes import Trees, runs
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.lessons import choice, likeness
from takeback.model import words
from takeback.model.text import lines as texts
from takeback.model.tree import REGULAR
from takeback.model.value import path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.capture.workspace import Workspace
    from takeback.ledger.sessions import TurnRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.lessons.likeness import Likeness, Taken
    from takeback.model.text.json_text import Json
    from takeback.model.tree import Entry

    Texts = dict[bytes, list[str]]

_MOST_RESTORES, _MOST_FILES = 20, 20
_LARGEST = 256 << 10
"""Bytes of a file that is compared; what is larger is data, or made by a program."""
_MOST_BYTES = 2 << 20
_NEWEST = 1 << 62
_ALIKE = 0.7
"""Of the telling words of two prompts, so many are in both: then the same is asked for."""
_MOST_REMEMBERED = 64
_remembered: "dict[tuple[bytes, str], tuple[Taken, Texts]]" = {}
"""What restores took, in a process that handles many events."""
_AGAIN = frozenset("again back bring redo reapply repeat restore retry revert undo".split())
_GENERIC = frozenset("continue further next okay proceed resume start yes".split())
"""Words that ask for nothing by themselves."""


def find(work: "Workspace", turn: str, *, is_over: bool = False) -> int:
    """Record into which restores a turn relapsed; how many that are new.

    When it is over, what it removed again itself is no relapse any more.
    """
    try:
        found = work.ledger.lessons.has_taken()
        return _Search(work, turn).run(is_over=is_over) if found else 0
    except Exception:  # noqa: BLE001 -- recording goes on, also where nothing can be compared
        return 0


class _Search:
    """One look at what a turn changed so far."""

    def __init__(self, work: "Workspace", turn: str) -> None:
        self._work = work
        self._ledger = work.ledger
        self._turn = self._ledger.turns.find(turn)
        self._left = _MOST_BYTES
        self._since: dict[int, tuple[Texts, set[str]]] = {}
        self._read: dict[tuple[bytes, bytes], list[str]] = {}

    def run(self, *, is_over: bool) -> int:
        turn = self._turn
        if turn is None or self._ledger.sessions.of(turn).agent == words.UNKNOWN:
            return 0  # what a watch sees may be by the user's own hand
        if not is_over and not self._has_changed(turn):
            return 0
        known = self._ledger.lessons.relapsed_into(turn.number)
        numbers = self._ledger.lessons.taken_before(_NEWEST, _MOST_RESTORES)
        again = [number for number in numbers if is_over or number not in known]
        rows = filter(None, map(self._ledger.stack.numbered, again))
        restores = [row for row in rows if self._is_kept(row) and not self._is_asked_for(row)]
        if not restores:
            return 0
        objects = self._work.store.reader()
        try:
            self._trees = Trees(objects)
            found = [(row, self._compare(turn, row)) for row in restores]
        finally:
            objects.close()
        new = [(row, like) for row, like in found if row.number not in known and like.is_relapse]
        over = [row for row, like in found if row.number in known and not like.is_relapse]
        return self._record(turn, new, over) if new or over else 0

    def _has_changed(self, turn: "TurnRow") -> bool:
        """Whether anything changed during the step that ended last."""
        newest = self._ledger.checkpoints.newest()
        steps = [step for step in self._ledger.steps.of_turn(turn.number) if step.closed]
        last = max(steps, key=lambda step: step.closed or 0, default=None)
        return newest is None or last is None or newest.event > last.opened

    def _is_kept(self, restore: "RestoreRow") -> bool:
        """Whether the files around a restore are kept; what is remembered of others goes, too."""
        rows = map(self._ledger.checkpoints.numbered, (restore.before, restore.after))
        return all(row is not None and row.gone is None for row in rows)

    def _is_asked_for(self, restore: "RestoreRow") -> bool:
        """Whether the prompt asks for what was taken back."""
        assert self._turn is not None
        ids = self._ledger.lessons.turns_of(restore.number)
        rows = filter(None, map(self._ledger.turns.find, ids))
        return any(asks_again(self._turn.label, row.label) for row in rows)

    def _compare(self, turn: "TurnRow", restore: "RestoreRow") -> "Likeness":
        added, common = self._added(turn, restore.after)
        if not added:
            return likeness.Likeness()
        taken, left = self._taken(restore)
        found = taken.without(common).compare(added)
        if not found.is_relapse:
            return found
        begin = max(turn.before, restore.after)
        began = {path: self._lines(begin, path) for path in left}
        was_there = taken.compare(likeness.new_lines(left, began)).is_relapse
        return likeness.Likeness() if was_there else found

    def _added(self, turn: "TurnRow", after: int) -> "tuple[Texts, set[str]]":
        """The lines that the turn added, and what the files held before; since a restore, if the
        turn runs longer than that.
        """
        since = 0 if turn.before >= after else after
        if since not in self._since:
            old: Texts = {}
            new: Texts = {}
            for run in runs(self._ledger, turn.number):
                begin = max(run.before, since)
                if begin >= run.last or len(old) >= _MOST_FILES:
                    continue
                for side, checkpoint in ((old, begin), (new, run.last)):
                    side[run.path] = [*side.get(run.path, ()), *self._lines(checkpoint, run.path)]
            self._since[since] = likeness.new_lines(old, new), likeness.common_lines(old)
        return self._since[since]

    def _taken(self, restore: "RestoreRow") -> "tuple[Taken, Texts]":
        """What a restore took, and what it left; that never changes, so it is remembered."""
        key = (self._work.store.path, restore.id)
        if key not in _remembered:
            rows = self._ledger.deltas.restored(restore.after)[:_MOST_FILES]
            before = {row.path: self._lines(restore.before, row.path) for row in rows}
            left = {row.path: self._lines(restore.after, row.path) for row in rows}
            gone = likeness.new_lines(left, before)
            found = likeness.Taken(gone, likeness.common_lines(left)), left
            if self._left <= 0:
                return found
            if len(_remembered) >= _MOST_REMEMBERED:
                _remembered.clear()
            _remembered[key] = found
        return _remembered[key]

    def _lines(self, checkpoint: int, path: bytes) -> "list[str]":
        row = self._ledger.checkpoints.numbered(checkpoint)
        if row is None or row.gone is not None:
            return []
        entry = self._trees.find(row, path)
        if entry is None or entry.kind != REGULAR or entry.reason or entry.size > _LARGEST:
            return []
        key = (entry.oid, entry.strong)
        if key not in self._read:
            self._read[key] = self._content(entry)
        return self._read[key]

    def _content(self, entry: "Entry") -> "list[str]":
        if entry.size > self._left:
            self._left = 0
            return []
        self._left -= entry.size
        content = self._trees.content(entry)
        return [] if texts.is_binary(content) else likeness.text_lines(content)

    def _record(
        self,
        turn: "TurnRow",
        new: "Iterable[tuple[RestoreRow, Likeness]]",
        over: "Iterable[RestoreRow]",
    ) -> int:
        facts = [_fact(turn, row, like) for row, like in new]
        ended = [_fact(turn, row, likeness.Likeness()) for row in over]
        with self._work.held():
            facts = [fact for fact in facts if self._ledger.requested(fact.request) is None]
            self._ledger.record(*facts, *ended)
        return len(facts)


def _fact(turn: "TurnRow", restore: "RestoreRow", like: "Likeness") -> NewEvent:
    """That a turn relapsed; without lines, that it did not after all."""
    paths: list[Json] = [path_text(path) for path in like.paths]
    said: dict[str, Json] = {"turn": turn.id, "restore": restore.id, "paths": paths}
    said |= {"lines": like.lines, "taken": like.taken}
    request = f"relapse {turn.id} {restore.id}" if like.lines else None
    parents = (turn.opened, restore.event)
    return NewEvent(events.RELAPSE_SEEN, said, time.time_ns(), parents=parents, request=request)


def asks_again(prompt: str, taken: str) -> bool:
    """Whether a prompt asks for what another one had asked for."""
    new, old = choice.words_of(prompt) - _GENERIC, choice.words_of(taken) - _GENERIC
    if not old or taken.startswith("("):
        return False  # it asked for nothing by itself, or nobody knows what it was
    if " ".join(prompt.split()).lower() == " ".join(taken.split()).lower():
        return True
    wanted = set(prompt.lower().replace(",", " ").replace(".", " ").split())
    if wanted & _AGAIN:
        new -= _AGAIN
        return not new or 2 * len(new & old) >= min(len(new), len(old))
    return len(new & old) >= _ALIKE * len(new | old)
