"""Record what an agent's hooks tell: sessions, turns and steps, with a safe point at each.

Each hook is a process of its own and remembers nothing. What was begun by one and is ended by
another is found by requests: names that are made of the agent's own ids, and that the log holds
with the events. So an event that several hosts deliver, or one host twice, counts once.

Not every event has such an id, and one event may reach us twice: by the helper, and by the hook
that did not wait for it. So each event has an id of ours, too. Its last fact in the log has that
for a request, unless it has one of the agent's ids; what left no such fact leaves a mark.
"""

import os
import time
from hashlib import sha256

from takeback.errors import TakebackError
from takeback.hooks import calls, interruptions
from takeback.model import jsontext, terms, tools
from takeback.session import Session, Step, Turn
from takeback.store import events, history
from takeback.store.failures import FailingAs
from takeback.store.schema import DETACHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from takeback.hooks.calls import Call
    from takeback.project import Project
    from takeback.store.events import Event

_OPEN_SHELLS = (
    "SELECT s.id, t.id FROM steps s JOIN turns t ON t.number = s.turn"
    " JOIN sessions z ON z.number = t.session WHERE s.closed IS NULL AND s.kind = ? AND "
)
_OPENED_FOR = (
    "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn JOIN events e ON e.seq = s.opened"
    " WHERE s.closed IS NULL AND NOT s.background AND t.id = ? AND e.request LIKE 'hook % ' || ?"
    " ORDER BY s.number LIMIT 1"
)
_NEWEST = (
    "SELECT t.started, t.steps, t.closed, e.at, e.request FROM turns t"
    " JOIN sessions z ON z.number = t.session JOIN events e ON e.seq = t.opened"
    " WHERE z.id = ? ORDER BY t.number DESC LIMIT 1"
)
_MOMENT = 5_000_000_000
"""Nanoseconds within which the same prompt, without an id, is the same event told twice."""
_SECOND = 1_000_000_000
_OF_LIKENESS = 4
_SAFELY = FailingAs(TakebackError, "it could not be recorded")
_BEGINS = (calls.SESSION_STARTS, calls.PROMPT, calls.GOES_ON, calls.BEFORE_TOOL)
"""What a session that ended goes on with; all else only matters if something is still open."""
_LEAVES_NO_MARK = (calls.BEFORE_TOOL, calls.BATCH_OVER)
"""Events that have the agent's ids, or a fact of their own: to hear them again changes nothing."""
_GOES_ON = "goes on"
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
        """Record a call; the id of its session, None if it tells nothing, or was recorded."""
        hear = _HEAR.get(call.kind)
        if hear is None or not call.session:
            return None
        with _SAFELY, self._project.held():
            if self._is_known(call):
                return None
            session = self._session_of(call)
            # At its end, also its own turn may have been interrupted.
            is_end = call.kind == calls.SESSION_ENDS
            interruptions.settle(self._project, but="" if is_end else session.id)
            hear(self, session, call)
            self._mark(session, call)
        return session.id

    def _is_known(self, call: "Call") -> bool:
        """Whether this very event, or what the agent calls the same, is in the log."""
        named = {
            calls.PROMPT: (call.turn, "prompt"),
            calls.BEFORE_TOOL: (call.call, "before"),
        }
        id, what = named.get(call.kind, ("", ""))
        if id and self._ledger.requested(_request(call, id, what)) is not None:
            return True
        return self._ledger.requested(_delivery(call)) is not None

    def _mark(self, session: Session, call: "Call") -> None:
        request = _delivery(call)
        if call.kind in _LEAVES_NO_MARK or self._ledger.requested(request) is not None:
            return
        said = {"session": session.id, "event": call.name}
        now = time.time_ns()
        self._ledger.record(events.NewEvent(events.HOOK_HANDLED, said, now, request=request))

    def _session_of(self, call: "Call") -> Session:
        own_id = _clean(call.session)
        reads = call.kind == calls.BEFORE_TOOL and tools.kind_of(call.tool) == terms.READ
        if reads or call.kind not in _BEGINS:
            known = history.find_session(self._ledger, call.agent, own_id)
            if known is not None:
                return Session(self._notes, known.id)
        return self._project.session(call.agent, id=own_id, held=False)

    # -- turns -----------------------------------------------------------------------------

    def _session_starts(self, session: Session, call: "Call") -> None:
        """The session is known now; its first prompt makes the first checkpoint."""

    def _prompt(self, session: Session, call: "Call") -> None:
        interrupted_at = self._interrupted_at(call)
        newest = self._ledger.rows(_NEWEST, (session.id,))
        if newest and not call.turn and _is_the_same(call, *newest[0]):
            return
        if newest and not call.turn and (interrupted_at or 0) * _SECOND < newest[0][0]:
            interrupted_at = None  # of an earlier turn: not every record tells where turns begin
        if call.agent in _TELLS_NO_END:
            for step in self._open_shells("z.id = ? AND s.background", session.id):
                step.end()
        self._refuse_waiting(call, "z.id = ?", session.id)
        session.turn(
            call.prompt,
            whole=False,
            interrupted_at=interrupted_at,
            conversation={"transcript": call.transcript, "prompt": call.turn},
            request=_request(call, call.turn, "prompt") if call.turn else _delivery(call),
        )

    def _goes_on(self, session: Session, call: "Call") -> None:
        """What ran in the background is done; what the agent does now belongs to its turn."""
        self._end(self._step_of(call) or self._task_of(call), terms.DONE)
        request = _request(call, call.turn, _GOES_ON) if call.turn else _delivery(call)
        if session.resume(request=request) is None:
            session.turn(PROMPT_NOT_SEEN, whole=False, request=_delivery(call))

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
            status = terms.DONE if call.kind == calls.STOPS else terms.FAILED
            turn.end(status, request=_delivery(call))

    def _open_shells(self, where: str, id: str) -> "list[Step]":
        """Commands that went on behind the stop: nobody will tell when they are done.

        What they do until the next prompt is theirs.
        """
        rows = self._ledger.rows(_OPEN_SHELLS + where, (terms.SHELL, id))
        return [Step(self._notes, step, turn) for step, turn in rows]

    def _session_ends(self, session: Session, call: "Call") -> None:
        if self._is_outdated(session, call):
            return
        self._refuse_waiting(call, "z.id = ?", session.id)
        session.end(request=_delivery(call))

    def _is_outdated(self, session: Session, call: "Call") -> bool:
        """Whether a later prompt is known: the hook was late, and the session goes on by now."""
        own = _request(call, call.turn, "prompt")
        if not call.turn or self._ledger.requested(own) is None:
            return False
        newest = str(self._ledger.rows(_NEWEST, (session.id,))[0][-1])
        return newest.endswith(" prompt") and newest != own

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
            request=_request(call, call.call, "before") if call.call else _delivery(call),
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
        step = self._step_of(call) if call.call else self._step_like(session, call)
        step = step or self._missed(session, call)
        began = call.began()
        if step is not None and began is not None:
            self._notes.recorder.begin_step(step.id, began)
        if step is not None and call.background:
            # Under this name it is found when the agent tells that it is done.
            task = _request(call, call.task, "task") if call.task else _delivery(call)
            step.detach(request=task)
        else:
            status = terms.FAILED if call.failed else terms.DONE
            self._end(step, status, _delivery(call))

    def _step_like(self, session: Session, call: "Call") -> "Step | None":
        """The oldest call that runs with the same tool and input: it was told without an id."""
        turn = self._turn_of(session, call)
        found = self._ledger.rows(_OPENED_FOR, (turn.id, _likeness(call))) if turn else []
        return Step(self._notes, found[0][0], turn.id) if turn and found else None

    def _missed(self, session: Session, call: "Call") -> "Step | None":
        """A call whose first event was lost, because somebody else had the lock for too long.

        Without a turn nobody heard of this agent before, and nothing is known of what was there.
        """
        if not call.call or tools.kind_of(call.tool) == terms.READ:
            return None
        if self._turn_of(session, call) is None:
            return None
        self._begin(session, call, missed=True)
        return self._step_of(call)

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
        self._end(task, terms.DONE, _delivery(call))

    def _end(self, step: "Step | None", status: str, request: "str | None" = None) -> None:
        if step is not None and history.get_step(self._ledger, step.id).closed is None:
            step.end(status, request=request)

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


def resumed_by(agent: str, session: str, prompt: str) -> str:
    """The request of the event that a turn goes on with; `session` is as the log has it."""
    return " ".join((agent, session, _clean(prompt), _GOES_ON))


request_of = _request


def _delivery(call: "Call") -> str:
    """The name of this very event, whoever handles it."""
    return " ".join(filter(None, ("hook", call.event, _likeness(call))))


def _likeness(call: "Call") -> str:
    """What is the same in events that belong together and have no id of the agent; else empty.

    Short, since it stays in the log when the words are forgotten: nobody can guess them by it.
    """
    if call.kind == calls.PROMPT and not call.turn:
        said: Any = (call.prompt, call.cwd, call.transcript)
    elif call.kind in (calls.BEFORE_TOOL, calls.AFTER_TOOL) and not call.call:
        said = (call.tool, sorted(call.given.items()))
    else:
        return ""
    return sha256(jsontext.dumps(said).encode()).hexdigest()[:_OF_LIKENESS]


def _is_the_same(
    call: "Call", started: int, steps: int, closed: "int | None", at: int, request: "str | None"
) -> bool:
    """Whether a prompt without an id was told twice: as the newest turn, which did nothing yet."""
    del started
    is_like = str(request).startswith("hook ") and str(request).endswith(" " + _likeness(call))
    return is_like and not steps and closed is None and abs(time.time_ns() - at) < _MOMENT


def _clean(id: str) -> str:
    """An id as the log can hold it; a long one, or a strange one, by what it hashes to."""
    if len(id) <= _LONGEST_ID and id.isprintable() and " " not in id:
        return id
    return sha256(id.encode("utf-8", "surrogatepass")).hexdigest()


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
