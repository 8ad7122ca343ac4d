"""What several sessions share: it changed while commands of each ran, and nobody can tell whose.

    A   ├── shell ──┤            p changed in both windows: shared by A and B
    B      ├── shell ──┤         `undo A B` takes it, `undo B` alone leaves it
               p

It stands until an undo takes it along, or a rollback goes back over it.
"""

import os

from takeback.ledger.undo_stack import ALL_SHARED
from takeback.model.history import Partner
from takeback.model.plan import EARLIER, OPEN, SETTLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow
    from takeback.ledger.undo_stack import RestoreRow

    Span = tuple[str, int, int | None]
    """A session, and the checkpoints before and after a turn of it; open, if it still runs."""

_OPEN_END = 1 << 62


class SharedChanges:
    """Looks up what turns share, as it stands, and with whom."""

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self._undos: list[_Undo] | None = None
        self._rolled: list[tuple[int, int]] = []

    def standing(self, spans: "Sequence[Span]", *, anew: bool = False) -> "list[DeltaRow]":
        """What some turns share and nobody took back since, in the order of the log.

        What somebody decided to keep is among it only if that is decided `anew`.
        """
        return [row for row in self.ever(spans) if not self._is_taken(row, anew=anew)]

    def ever(self, spans: "Sequence[Span]") -> "list[DeltaRow]":
        """The same with what was taken back since."""
        found = {row: None for span in spans for row in self._ledger.deltas.shared(*span)}
        return sorted(found, key=lambda row: (row.checkpoint, row.path))

    def partners(self, rows: "Iterable[DeltaRow]", spans: "Sequence[Span]") -> "list[Partner]":
        """The other turns that share these changes, the newest first."""
        wanted = dict.fromkeys(
            (session, row.checkpoint)
            for row in rows
            for session in row.sessions.split()
            if not _is_in(session, row.checkpoint, spans)
        )
        numbers = {self._ledger.stack.turn_during(*each) or 0 for each in wanted}
        turns = map(self._ledger.turns.numbered, sorted(numbers, reverse=True))
        return [self._partner(turn) for turn in turns if turn is not None]

    def span(self, turn: "TurnRow") -> "Span":
        return self._ledger.sessions.of(turn).id, turn.before, turn.after

    def _partner(self, turn: "TurnRow") -> Partner:
        return Partner(turn.id, turn.label, self._ledger.sessions.of(turn).agent)

    def _is_taken(self, row: "DeltaRow", *, anew: bool) -> bool:
        if self._undos is None:
            self._undos = [_Undo(self, undo) for undo in self._ledger.stack.with_shared()]
            live = self._ledger.stack.rollbacks_since(0)
            self._rolled = [(act.target or 0, act.before) for act in live if not act.partial]
        if any(target < row.checkpoint <= before for target, before in self._rolled):
            return True
        return any(undo.took(row, anew=anew) for undo in self._undos)

    def spans(self, undo: "RestoreRow") -> "list[Span]":
        """The turns that an undo took back."""
        turns = map(self._ledger.turns.numbered, undo.turns)
        return [self.span(turn) for turn in turns if turn is not None]

    def restored(self, undo: "RestoreRow") -> "set[bytes]":
        """The paths that an undo changed."""
        return {row.path for row in self._ledger.deltas.restored(undo.after)}

    def left(self, undo: "RestoreRow") -> "dict[tuple[bytes, int], str]":
        """What an undo left, and why: the path, and the checkpoint with which the change ends."""
        event = self._ledger.event(undo.event)
        said: Any = (event.payload or {}).get("left", ()) if event is not None else ()
        said = [row for row in said if row[3] != EARLIER]
        number = {id: self._ledger.checkpoints.with_prefix(id)[0].number for _, _, id, *_ in said}
        return {(os.fsencode(path), number[id]): why for path, _, id, why, _ in said}


class _Undo:
    """What an undo took along of what its turns share."""

    __slots__ = ("_before", "_is_all", "_left", "_paths", "_spans")

    def __init__(self, shared: SharedChanges, undo: "RestoreRow") -> None:
        self._before = undo.before
        self._is_all = undo.shared == ALL_SHARED
        self._spans = shared.spans(undo)
        self._paths = shared.restored(undo) if undo.partial else None
        self._left = shared.left(undo)

    def took(self, row: "DeltaRow", *, anew: bool) -> bool:
        """Whether a change was taken back, or somebody decided to keep it."""
        why = self._left.get((row.path, row.checkpoint))
        if why == OPEN or (why == SETTLED and anew) or row.checkpoint > self._before:
            return False
        is_meant = self._paths is None or row.path in self._paths or why is not None
        is_own = any(is_of(row, span) for span in self._spans)
        return is_meant and is_own and (self._is_all or is_among(row, self._spans))


def is_among(row: "DeltaRow", spans: "Sequence[Span]") -> bool:
    """Whether all that share a change are among these turns."""
    return all(_is_in(session, row.checkpoint, spans) for session in row.sessions.split())


def is_of(row: "DeltaRow", span: "Span") -> bool:
    """Whether a turn is among those that share a change."""
    return any(_is_in(session, row.checkpoint, [span]) for session in row.sessions.split())


def _is_in(session: str, checkpoint: int, spans: "Sequence[Span]") -> bool:
    return any(
        own == session and before < checkpoint <= (_OPEN_END if after is None else after)
        for own, before, after in spans
    )
