"""What several sessions share: it changed while commands of each ran, and nobody can tell whose.

    A   ├── shell ──┤            p changed in both windows: shared by A and B
    B      ├── shell ──┤         `undo A B` takes it, `undo B` alone leaves it
               p

It stands until an undo takes it along, or a rollback goes back over it.
"""

from takeback.ledger.undo_stack import ALL_SHARED
from takeback.model.history import Partner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        self._undos: list[tuple[RestoreRow, list[Span], set[bytes] | None]] | None = None
        self._rolled: list[tuple[int, int]] = []

    def standing(self, spans: "Sequence[Span]") -> "list[DeltaRow]":
        """What some turns share and nobody took back since, in the order of the log."""
        return [row for row in self.ever(spans) if not self._is_taken(row)]

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

    def _is_taken(self, row: "DeltaRow") -> bool:
        if self._undos is None:
            self._undos = [self._of_undo(undo) for undo in self._ledger.stack.with_shared()]
            live = self._ledger.stack.rollbacks_since(0)
            self._rolled = [(act.target or 0, act.before) for act in live if not act.partial]
        if any(target < row.checkpoint <= before for target, before in self._rolled):
            return True
        return any(
            row.checkpoint <= undo.before
            and (paths is None or row.path in paths)
            and (undo.shared == ALL_SHARED or is_among(row, spans))
            and any(_is_in(session, row.checkpoint, spans) for session in row.sessions.split())
            for undo, spans, paths in self._undos
        )

    def _of_undo(self, undo: "RestoreRow") -> "tuple[RestoreRow, list[Span], set[bytes] | None]":
        turns = map(self._ledger.turns.numbered, undo.turns)
        spans = [self.span(turn) for turn in turns if turn is not None]
        restored = self._ledger.deltas.restored(undo.after) if undo.partial else None
        return undo, spans, None if restored is None else {row.path for row in restored}


def is_among(row: "DeltaRow", spans: "Sequence[Span]") -> bool:
    """Whether all that share a change are among these turns."""
    return all(_is_in(session, row.checkpoint, spans) for session in row.sessions.split())


def _is_in(session: str, checkpoint: int, spans: "Sequence[Span]") -> bool:
    return any(
        own == session and before < checkpoint <= (_OPEN_END if after is None else after)
        for own, before, after in spans
    )
