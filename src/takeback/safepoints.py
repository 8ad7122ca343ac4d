"""Safe points: one look at the tree under the lock, then the events that say what it was for.

What changed is attributed while the windows are still open, and the caller goes on only when
both are committed.
"""

import time

from takeback.engine import changes, windows
from takeback.model import terms
from takeback.store import events, processes
from takeback.store import history as rows
from takeback.store.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from takeback.engine.request import Place
    from takeback.model.jsontext import Json
    from takeback.model.values import Checkpoint
    from takeback.store.history import SessionRow, TurnRow
    from takeback.store.ledger import Ledger
    from takeback.store.lock import Held
    from takeback.store.objects import Objects

    class Host(Protocol):
        """What recording needs of a project."""

        @property
        def root(self) -> bytes:
            """The folder of the project."""

        @property
        def ledger(self) -> Ledger:
            """The project's ledger."""

        @property
        def objects(self) -> Objects:
            """What the project's packs hold."""

        def held(self) -> Held:
            """The project's lock."""

        def look(self, place: Place, closing: "Mapping[str, int]", at: int) -> Checkpoint:
            """Look at the tree, and make a checkpoint if it changed."""

        def git_state(self) -> "Json":
            """What the user's git looks like."""


class SafePoints:
    """Looks at the tree of one project, and closes what somebody left open."""

    def __init__(self, host: "Host") -> None:
        self._host = host

    @property
    def _ledger(self) -> "Ledger":
        return self._host.ledger

    def _look(self, place: "Place", closing: "Mapping[str, int]", at: int) -> "Checkpoint":
        """Look at the tree; sessions whose process died without a word are closed with it."""
        dead = self.dead_sessions(at)
        ends = {row.id: ended for row, ended in dead}
        seen = self._host.look(place, {**ends, **closing}, at)
        self.bury(dead, seen, at)
        return seen

    def dead_sessions(self, at: int) -> "list[tuple[SessionRow, int]]":
        """Sessions whose process is gone, each with the time at which it is taken to have ended."""
        held = rows.held_sessions(self._ledger)
        gone = [row for row in held if processes.is_alive(row.holder) is False]
        return [(row, min(at, row.seen + windows.LONGEST_SILENCE)) for row in gone]

    def bury(self, dead: "list[tuple[SessionRow, int]]", seen: "Checkpoint", at: int) -> None:
        """Close what dead sessions left open, as interrupted."""
        for row, ended in dead:
            running = rows.running_turns(self._ledger, row.number)
            facts = self._turns_ended(running, terms.INTERRUPTED, ended, seen, at)
            said: dict[str, Json] = {"session": row.id, "ended": ended}
            parents = (row.opened,)
            over = NewEvent(events.SESSION_ENDED, said, time.time_ns(), parents=parents)
            self._ledger.record(*facts, over)

    def _record(
        self, kind: str, said: "dict[str, Json]", parents: "tuple[int, ...]", request: "str | None"
    ) -> None:
        now = time.time_ns()
        self._ledger.record(NewEvent(kind, said, now, parents=parents, request=request))

    def _turns_ended(
        self,
        running: "list[TurnRow]",
        status: str,
        ended: int,
        seen: "Checkpoint",
        at: int,
        request: "str | None" = None,
    ) -> "list[NewEvent]":
        """What is recorded of turns that end; their last changes are in the ledger by now."""
        facts = []
        for row in running:
            said: dict[str, Json] = {
                "turn": row.id,
                "status": status,
                "ended": ended,
                **facts_of(seen, at),
                "git": self._host.git_state(),
                "changes": changes.of_turn(self._ledger, self._host.objects, row.number),
            }
            parents = (row.opened, seen.cursor)
            facts.append(
                NewEvent(events.TURN_ENDED, said, time.time_ns(), parents=parents, request=request)
            )
        return facts


def facts_of(seen: "Checkpoint", at: int) -> "dict[str, Json]":
    """What an event says of the look that it was recorded with."""
    return {"checkpoint": seen.id, "looked": at}
