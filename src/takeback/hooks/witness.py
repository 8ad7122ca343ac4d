"""Record what an agent's hooks tell: sessions, turns and steps, with a safe point at each.

Each hook is a process of its own and remembers nothing. What was begun by one and is ended by
another is found by requests: names that are made of the agent's own ids, and that the log holds
with the events. So an event that several hosts deliver, or one host twice, counts once.
"""

import os

from takeback.hooks import calls, interruptions
from takeback.model import terms, tools
from takeback.session import Session, Step, Turn
from takeback.store import history
from takeback.store.schema import DETACHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.hooks.calls import Call
    from takeback.project import Project
    from takeback.store.events import Event

_OPEN_SHELLS = (
    "SELECT s.id, t.id FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND s.kind = ? AND "
)
_TELLS_NO_END = ("codex",)
"""Agents that do not tell when a command that went on in the background is done."""
_OPEN = (
    "SELECT s.id, s.summary, s.status FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL"
    " AND s.background <> ? AND s.tool = ? AND z.id = ? ORDER BY s.number"
)
PROMPT_NOT_SEEN = "(the prompt was not seen)"
_LONGEST_ID = 200


class Witness:
    """Writes one call into the log of a project."""

    def __init__(
        self,
        project: "Project",
        interrupted_at: "Callable[[Call], float | None]",
        was_at_work: "Callable[[Call], bool]",
    ) -> None:
        self._project = project
        self._was_at_work = was_at_work
        self._ledger = project.ledger
        self._notes = project.notes(project.recorder())
        self._interrupted_at = interrupted_at

    def hear(self, call: "Call") -> "str | None":
        """Record a call; the id of its session, None if it tells nothing."""
        hear = _HEAR.get(call.kind)
        if hear is None or not call.session:
            return None
        session = self._project.session(call.agent, id=_clean(call.session), held=False)
        # At its end, also its own turn may have been interrupted.
        is_end = call.kind == calls.SESSION_ENDS
        interruptions.settle(self._project, but="" if is_end else session.id)
        hear(self, session, call)
        return session.id

    # -- turns -----------------------------------------------------------------------------

    def _session_starts(self, session: Session, call: "Call") -> None:
        """The session is known now; its first prompt makes the first checkpoint."""

    def _prompt(self, session: Session, call: "Call") -> None:
        if call.agent in _TELLS_NO_END:
            for step in self._open_shells("z.id = ? AND s.background", session.id):
                step.end()
        request = _request(call, call.turn, "prompt")
        if self._ledger.requested(request) is None:
            self._refuse_waiting(call, "z.id = ?", session.id)
        session.turn(
            call.prompt,
            whole=False,
            interrupted_at=self._interrupted_at(call),
            conversation={"transcript": call.transcript, "prompt": call.turn},
            request=request,
        )

    def _goes_on(self, session: Session, call: "Call") -> None:
        """What ran in the background is done; what the agent does now belongs to its turn."""
        self._end(self._step_of(call) or self._task_of(call), terms.DONE)
        if session.resume(request=_request(call, call.turn, "goes on")) is None:
            session.turn(PROMPT_NOT_SEEN, whole=False)

    def _stops(self, session: Session, call: "Call") -> None:
        turn = self._turn_of(session, call)
        if turn is not None:
            if call.agent in _TELLS_NO_END:
                for step in self._open_shells("t.id = ? AND NOT s.background", turn.id):
                    step.detach()
            else:
                # What began would have told its end.
                waiting = "t.id = ? AND NOT s.background"
                interruptions.refuse_waiting(self._project, waiting, turn.id)
            turn.end(terms.DONE if call.kind == calls.STOPS else terms.FAILED)

    def _open_shells(self, where: str, id: str) -> "list[Step]":
        """Commands that went on behind the stop: nobody will tell when they are done.

        What they do until the next prompt is theirs.
        """
        rows = self._ledger.rows(_OPEN_SHELLS + where, (terms.SHELL, id))
        return [Step(self._notes, step, turn) for step, turn in rows]

    def _session_ends(self, session: Session, call: "Call") -> None:
        self._refuse_waiting(call, "z.id = ?", session.id)
        session.end()

    def _refuse_waiting(self, call: "Call", where: str, id: str) -> None:
        """A dialog that was never followed by an end was answered with no."""
        if not self._was_at_work(call):
            where += " AND NOT s.background"
            interruptions.refuse_waiting(self._project, where, id)

    def _turn_of(self, session: Session, call: "Call") -> "Turn | None":
        """The turn of the prompt that all this is for, else the newest one of the session."""
        known = self._ledger.requested(_request(call, call.turn, "prompt")) if call.turn else None
        if known is not None and known.payload:
            return Turn(self._notes, str(known.payload["turn"]))
        number = history.get_session(self._ledger, session.id).number
        newest = history.newest_turn(self._ledger, number)
        return Turn(self._notes, newest.id) if newest is not None else None

    # -- steps -----------------------------------------------------------------------------

    def _before_tool(self, session: Session, call: "Call") -> None:
        if tools.kind_of(call.tool) == terms.READ:
            return
        self._begin(session, call)

    def _begin(self, session: Session, call: "Call", *, missed: bool = False) -> None:
        turn = self._turn_of(session, call) or session.turn(PROMPT_NOT_SEEN, whole=False)
        inside = self._task_of(call) if call.subagent else None
        self._notes.recorder.start_step(
            turn.id,
            call.tool,
            call.given,
            cwd=os.fsencode(call.cwd) if call.cwd else None,
            parent=inside.id if inside else None,
            missed=missed,
            began=call.began() if missed else None,
            request=_request(call, call.call, "before") if call.call else None,
        )

    def _asks(self, session: Session, call: "Call") -> None:
        """Which call a dialog is about is told by what it is to do only."""
        found = self._ledger.rows(_OPEN, (DETACHED, tools.one_line(call.tool), session.id))
        summary = tools.summary_of(call.tool, call.given)
        # Another hook may have changed what it is to do; then it is the latest one.
        alike = [row for row in found if row[1] == summary] or found[-1:]
        asked = next((step for step, _, status in alike if status == terms.RUNNING), None)
        if asked is not None:
            self._notes.recorder.ask_step(asked)

    def _after_tool(self, session: Session, call: "Call") -> None:
        step = self._step_of(call)
        if step is None and call.call and tools.kind_of(call.tool) != terms.READ:
            # The event before it was lost: somebody else had the lock for too long.
            self._begin(session, call, missed=True)
            step = self._step_of(call)
        began = call.began()
        if step is not None and began is not None:
            self._notes.recorder.begin_step(step.id, began)
        if step is not None and call.background:
            # Under this name it is found when the agent tells that it is done.
            step.detach(request=_request(call, call.task, "task") if call.task else None)
        else:
            self._end(step, terms.FAILED if call.failed else terms.DONE)

    def _batch_over(self, session: Session, call: "Call") -> None:
        """Calls that were refused tell no end of their own."""
        del session
        for id in call.calls:
            step = self._begun(_request(call, id, "before"))
            if step is not None and id in call.refused:
                self._notes.recorder.refuse_step(step.id)
            if step is not None and not self._is_in_background(step):
                self._end(step, terms.FAILED)

    def _subagent_stops(self, session: Session, call: "Call") -> None:
        del session
        task = self._task_of(call)
        if task is not None:
            inside = "s.parent = (SELECT number FROM steps WHERE id = ?)"
            interruptions.refuse_waiting(self._project, inside, task.id)
        self._end(task, terms.DONE)

    def _end(self, step: "Step | None", status: str) -> None:
        if step is not None and history.get_step(self._ledger, step.id).closed is None:
            step.end(status)

    def _is_in_background(self, step: Step) -> bool:
        return bool(history.get_step(self._ledger, step.id).background)

    def _step_of(self, call: "Call") -> "Step | None":
        return self._begun(_request(call, call.call, "before")) if call.call else None

    def _task_of(self, call: "Call") -> "Step | None":
        """The step that started a sub-agent, or a shell in the background."""
        task = call.subagent or call.task
        return self._begun(_request(call, task, "task")) if task else None

    def _begun(self, request: str) -> "Step | None":
        known: Event | None = self._ledger.requested(request)
        if known is None or not known.payload:
            return None
        row = history.get_step(self._ledger, str(known.payload["step"]))
        ((turn,),) = self._ledger.rows("SELECT id FROM turns WHERE number = ?", (row.turn,))
        return Step(self._notes, row.id, turn)


def _request(call: "Call", id: str, what: str) -> str:
    """The name of what happens once: who, in which conversation, which call, which part of it."""
    return " ".join((call.agent, _clean(call.session), _clean(id), what))


request_of = _request


def _clean(id: str) -> str:
    """An id as the log can hold it; a long one, or a strange one, by what it hashes to."""
    if len(id) <= _LONGEST_ID and id.isprintable() and " " not in id:
        return id
    from takeback.model.hashing import short_sha256

    return short_sha256(id.encode("utf-8", "surrogatepass")).hex()


_HEAR = {
    calls.SESSION_STARTS: Witness._session_starts,
    calls.PROMPT: Witness._prompt,
    calls.GOES_ON: Witness._goes_on,
    calls.BEFORE_TOOL: Witness._before_tool,
    calls.ASKS: Witness._asks,
    calls.AFTER_TOOL: Witness._after_tool,
    calls.BATCH_OVER: Witness._batch_over,
    calls.STOPS: Witness._stops,
    calls.FAILS: Witness._stops,
    calls.SUBAGENT_STOPS: Witness._subagent_stops,
    calls.SESSION_ENDS: Witness._session_ends,
}
