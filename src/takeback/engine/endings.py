"""What is recorded when turns and steps end: how, when, and what they changed in the end.

Their last changes are in the ledger by then. A step may outlive its turn; then what the turn
changed is told again with the step's end.
"""

from takeback.model.terms import INTERRUPTED
from takeback.store import events
from takeback.store import history as rows
from takeback.store.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.jsontext import Json
    from takeback.model.values import Checkpoint
    from takeback.store.history import StepRow, TurnRow
    from takeback.store.ledger import Ledger
    from takeback.store.objects import ObjectStore


class Ending:
    """One end of several things: when it was, and the look at the tree that came with it, if any.

    `at` is when that look began, `now` when its end is recorded.
    """

    __slots__ = ("at", "ended", "ledger", "now", "objects", "seen")

    def __init__(
        self,
        ledger: "Ledger",
        objects: "ObjectStore",
        *,
        ended: int,
        seen: "Checkpoint | None",
        at: int,
        now: int,
    ) -> None:
        self.now = now
        self.ledger = ledger
        self.objects = objects
        self.ended = ended
        self.seen = seen
        self.at = at

    def of_turns(
        self, turns: "Iterable[TurnRow]", status: str, git: "Json", request: "str | None" = None
    ) -> "list[NewEvent]":
        """The ends of turns."""
        facts = []
        for row in turns:
            said: dict[str, Json] = {"turn": row.id, "status": status, "git": git}
            said["changes"] = self._changes(row.number)
            facts.append(self._event(events.TURN_ENDED, said, row.opened, request))
        return facts

    def of_steps(
        self,
        steps: "Iterable[StepRow]",
        status: str = INTERRUPTED,
        request: "str | None" = None,
    ) -> "list[NewEvent]":
        """The ends of steps: as interrupted, if their own end never came."""
        facts = []
        for row in steps:
            said: dict[str, Json] = {"step": row.id, "status": status}
            if self.seen is not None and rows.is_over(self.ledger, row.turn):
                said["changes"] = self._changes(row.turn)
            facts.append(self._event(events.STEP_ENDED, said, row.opened, request))
        return facts

    def _changes(self, turn: int) -> "Json":
        from takeback.engine import changes  # most steps end while their turn goes on

        return changes.of_turn(self.ledger, self.objects, turn)

    def _event(
        self, kind: str, said: "dict[str, Json]", opened: int, request: "str | None"
    ) -> NewEvent:
        said["ended"] = self.ended
        parents: tuple[int, ...] = (opened,)
        if self.seen is not None:
            said |= {"checkpoint": self.seen.id, "looked": self.at}
            parents = (opened, self.seen.cursor)
        return NewEvent(kind, said, self.now, parents=parents, request=request)
