"""What the log holds of one plan of work: read, and written."""

import os
import time

from takeback.errors import BusyError, PausedError, RolledBack
from takeback.ledger.beyond.work_plans import as_step
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.words import DONE, NAMED, RUNNING, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.beyond.work_plans import PlanRow, PlanStepRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow
    from takeback.model.history import RecordedPlanStep
    from takeback.model.text.json_text import Json
    from takeback.project import Project

FAILING, FAILED = "failing", "failed"
"""A step that failed, and is about to be undone; that failed and stays."""


class Records:
    """The rows of one plan. Every call reads what is in the log now."""

    def __init__(self, project: "Project", id: str) -> None:
        self._project = project
        self.id = id

    @property
    def ledger(self) -> "Ledger":
        return self._project.workspace.ledger

    def row(self) -> "PlanRow":
        found = self.ledger.turns.plans.get(self.id)
        if found is None:
            raise LookupError(self.id)
        return found

    def steps(self) -> "list[PlanStepRow]":
        return self.ledger.turns.plans.steps(self.row().number)

    def standing(self) -> "list[PlanStepRow]":
        """The steps that are done and were not taken back, the oldest first."""
        return [row for row in self.steps() if row.status == DONE and not row.is_back]

    def as_step(self, row: "PlanStepRow") -> "RecordedPlanStep":
        return as_step(self.id, row)

    def turn(self, id: str) -> "TurnRow":
        return self.ledger.turns.get(id)

    # -- writing ---------------------------------------------------------------------------

    def start(self, session: str, own_id: str, label: str) -> None:
        said: dict[str, Json] = {"plan": self.id, "session": session, "own_id": own_id}
        self._record(events.WORK_PLAN_STARTED, {**said, "label": label, "line": self.ledger.line})

    def resume(self, session: str) -> None:
        self._record(events.WORK_PLAN_RESUMED, {"plan": self.id, "session": session})

    def end(self, status: str) -> None:
        self._record(events.WORK_PLAN_ENDED, {"plan": self.id, "status": status})

    def start_step(self, turn: str, key: str, *, databases: bool) -> None:
        said: dict[str, Json] = {"plan": self.id, "turn": turn, "key": key, "databases": databases}
        self._record(events.PLAN_STEP_STARTED, said, self.turn(turn).opened)

    def step_ended(
        self, turn: str, status: str, *, lesson: str = "", result: "Json" = None
    ) -> NewEvent:
        """The event that says how a step ended; the caller records it."""
        said: dict[str, Json] = {"plan": self.id, "turn": turn, "status": status}
        said |= {"lesson": lesson} if lesson else {}
        said |= {"result": result} if result is not None else {}
        parents = (self.turn(turn).opened,)
        return NewEvent(events.PLAN_STEP_ENDED, said, time.time_ns(), parents=parents)

    def end_step(self, turn: str, status: str, lesson: str) -> None:
        with self._project.workspace.held():
            self.ledger.record(self.step_ended(turn, status, lesson=lesson))

    def take_back(self, rows: "Iterable[PlanStepRow]") -> None:
        """Steps that changed nothing are not done any more; of the others their turns tell that."""
        turns: list[Json] = [row.id for row in rows if not row.is_entry]
        if turns:
            self._record(events.PLAN_STEPS_TAKEN_BACK, {"plan": self.id, "turns": turns})

    def _record(self, kind: str, said: "dict[str, Json]", *parents: int) -> None:
        with self._project.workspace.held():
            self.ledger.record(NewEvent(kind, said, time.time_ns(), parents=parents))

    # -- others at work --------------------------------------------------------------------

    def require_going_on(self, session: str) -> None:
        """An error if the user paused the session."""
        sessions = self.ledger.sessions
        if sessions.is_paused(sessions.get(session).number):
            raise PausedError("paused by the user", hint=Action("resume-all"))

    def require_ours(self, turn: "TurnRow") -> None:
        """An error if another process is in the middle of a step."""
        from takeback.disk import machine

        holder = self.ledger.sessions.of(turn).holder
        is_theirs = holder not in ("", machine.holder()) and machine.is_alive(holder)
        if turn.status == RUNNING and is_theirs:
            raise BusyError(
                f"process {holder.split(' ')[-2]} is in the middle of a step of this plan",
                hint="wait until it ends, or give this run a plan of its own (`id=`)",
            )

    def unsure(self, turn: "TurnRow") -> "tuple[str, ...]":
        """The paths of a turn whose program died that may have changed after its death.

        A path that a tool named is not among them.
        """
        after = self.ledger.checkpoints.numbered(turn.after) if turn.after is not None else None
        steps = self.ledger.steps.of_turn(turn.number)
        ended = [step.last for step in steps if step.last is not None]
        last = max([turn.opened, *(step.opened for step in steps), *ended])
        if after is None or after.event < last:
            return ()  # all was seen before it died
        rows = self.ledger.deltas.of_turns((turn.number,))
        late = {row.path for row in rows if row.checkpoint == after.number and row.how != NAMED}
        return tuple(os.fsdecode(path) for path in sorted(late))

    def rolled_back(self, row: "PlanStepRow") -> RolledBack:
        """What to raise because others took a step back."""
        from takeback.agents import notes

        restore = self.ledger.stack.numbered(row.taken)
        files = notes.files_of(self.ledger, restore) if restore is not None else []
        return RolledBack(
            f"{restore.verb if restore is not None else 'undo'} took back the step `{row.label}`"
            f" and changed {count(len(files), 'file')}",
            restore=restore.id if restore is not None else "",
            verb=restore.verb if restore is not None else "",
            because=restore.because if restore is not None else "",
            paths=tuple(os.fsdecode(path) for path, _ in files),
        )


def new_id() -> str:
    return ids.from_entropy(os.urandom(8))
