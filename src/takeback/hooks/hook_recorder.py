"""Record the events of hooks: sessions, turns and steps, with a safe point at each.

What one hook began and another ends is found by requests (`agents/requests`), so an event that
several hosts deliver, or one host twice, counts once. The last fact of an event in the log has the
id of its delivery for a request, unless it has one of the agent's ids; an event that left no such
fact leaves a mark.
"""

import os
import time

from takeback.agents import agent as kinds
from takeback.agents import requests, rewinds
from takeback.agents.agent import ASK, DENY
from takeback.disk.failures import FailingAs
from takeback.errors import NothingToTakeBackError, TakebackError
from takeback.hooks.guarded import Guarding
from takeback.model import tools, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent
    from takeback.agents.refusals import Refusal
    from takeback.effects.guarding import Blocked, Decision
    from takeback.ledger.sessions import Beginning
    from takeback.model.beyond.rescued import Rescued
    from takeback.project import Project

_MOMENT = 5_000_000_000
"""Nanoseconds within which the same prompt, without an id, is the same event sent twice."""
_BLINK = 2_000_000_000
"""Nanoseconds within which nobody types a command, reads what came of it, and types it again."""
_WAIT = 310_000_000_000
"""Nanoseconds that a command may wait before it is done: it was typed so long before."""
_SAFELY = FailingAs(TakebackError, "it could not be recorded")
_BEGINS = (kinds.SESSION_STARTS, kinds.PROMPT, kinds.GOES_ON, kinds.BEFORE_TOOL)
"""What a session that ended goes on with; all else only matters if something is still open."""
_OF_TURNS = (kinds.PROMPT, kinds.STOPS, kinds.FAILS, kinds.SESSION_ENDS)
"""What says nothing about the turn if a sub-agent reports it."""
_LEAVES_NO_MARK = (kinds.BEFORE_TOOL, kinds.BATCH_OVER)
"""Events that have the agent's ids, or a fact of their own: a second delivery changes nothing."""
PROMPT_NOT_SEEN = "(the prompt was not seen)"
_STATUS = {
    kinds.STOPS: words.DONE,
    kinds.FAILS: words.FAILED,
    kinds.INTERRUPTS: words.INTERRUPTED,
}


class HookRecorder:
    """Writes one event into the log of a project."""

    def __init__(self, project: "Project", user_home: bytes = b"") -> None:
        self._ledger = project.workspace.ledger
        self._recorder = project.recorder()
        self._guard = Guarding(project.workspace, user_home)
        self._user_home = user_home
        self.refusal: Refusal | None = None
        """Why the call that the last event announces is not to be made."""

    @property
    def asked(self) -> "Blocked | None":
        """The call that the last event announces, if the user has to decide about it."""
        return self._guard.asked

    @property
    def rescued(self) -> "Rescued | None":
        """What was saved before the call that the last event announces."""
        return self._guard.rescued

    def record(self, event: "HookEvent") -> "str | None":
        """Record an event; the id of its session, None if it means nothing, or was recorded."""
        record = _RECORD.get(event.kind)
        if record is None or not event.session:
            return None
        with _SAFELY, self._recorder.together():
            if self._was_refused(event) or self._is_known(event):
                return None
            session = self._session_of(event)
            if event.subagent and event.kind in _OF_TURNS:
                return None
            # At its end, also its own turn may have been interrupted.
            is_end = event.kind == kinds.SESSION_ENDS
            self._recorder.end_interrupted(but="" if is_end else session)
            if self._is_refused(session, event):
                return session  # what is never made is no step
            record(self, session, event)
            self._mark(session, event)
        return session

    def _is_known(self, event: "HookEvent") -> bool:
        """Whether this very event, or what the agent calls the same, is in the log."""
        ids = {
            kinds.PROMPT: (event.turn, requests.PROMPT),
            kinds.BEFORE_TOOL: (event.call, requests.BEFORE),
        }
        id, part = ids.get(event.kind, ("", ""))
        known = self._ledger.requested(requests.part_of(event, id, part)) if id else None
        known = known or self._ledger.requested(requests.delivery(event))
        if known is not None and event.kind == kinds.BEFORE_TOOL:
            self._guard.ask_again(event)
        return known is not None

    def _mark(self, session: str, event: "HookEvent") -> None:
        request = requests.delivery(event)
        if event.kind not in _LEAVES_NO_MARK and self._ledger.requested(request) is None:
            is_tool = event.kind == kinds.AFTER_TOOL
            self._recorder.mark_handled(session, event.name, request, tool=is_tool)

    def _was_refused(self, event: "HookEvent") -> bool:
        """Whether this very call was refused before: then it is again."""
        if event.can_be_refused():
            from takeback.agents import refusals

            self.refusal = refusals.again(self._ledger, event)
        return self.refusal is not None

    def _is_refused(self, session: str, event: "HookEvent") -> bool:
        if event.can_be_refused():
            from takeback.agents import refusals

            kind, paths = self._claim(event, event.tool_kind)
            cwd = os.fsencode(event.cwd) if event.cwd else None
            call = refusals.Call(kind, self._recorder.named(paths, cwd), event.subagent)
            id = self._turn_of(session, event)
            turn = self._ledger.turns.find(id) if id is not None else None
            self.refusal = refusals.refuse(self._ledger, session, turn, event, call)
        return self.refusal is not None

    def _session_of(self, event: "HookEvent") -> str:
        agent, own_id = event.agent.name, requests.clean(event.session)
        if event.agent.subagents_start_silently and event.kind != kinds.SESSION_STARTS:
            known = self._ledger.sessions.find(agent, own_id)
            asker = self._with_subagent(agent) if known is None else ""
            if asker:
                event.subagent = own_id
                return asker
        reads = event.kind == kinds.BEFORE_TOOL and event.tool_kind == words.READ
        if reads or event.kind not in _BEGINS:
            known = self._ledger.sessions.find(agent, own_id)
            if known is not None:
                return known.id
        return self._recorder.start_session(agent, own_id, "", held=False)

    def _with_subagent(self, agent: str) -> str:
        """The session of an agent in which a sub-agent works; empty if there is none."""
        for row in reversed(self._ledger.sessions.open()):
            turn = self._ledger.turns.newest_of(row.number) if row.agent == agent else None
            if turn is not None and self._ledger.steps.running(turn.id, words.AGENT):
                return row.id
        return ""

    # -- turns -----------------------------------------------------------------------------

    def _session_starts(self, session: str, event: "HookEvent") -> None:
        """The session is known now; its first prompt makes the first checkpoint."""

    def _prompt(self, session: str, event: "HookEvent") -> None:
        newest = self._ledger.turns.newest_beginning(session)
        if newest is not None and not event.turn and _is_the_same(event, newest):
            return
        self._recorder.start_turn(
            session,
            event.prompt,
            whole=False,
            interrupted=self._end_before(session, event, newest),
            conversation={"transcript": event.transcript, "prompt": event.turn},
            process=event.process(),
            request=_request(event, event.turn, requests.PROMPT),
        )

    def _end_before(
        self, session: str, event: "HookEvent", newest: "Beginning | None"
    ) -> "int | None":
        """End what a prompt shows to be over; when the turn before was interrupted, if it was."""
        interrupted = rewinds.nanoseconds(event.interrupted_at())
        if newest is not None and not event.turn and (interrupted or 0) < newest.started:
            interrupted = None  # of an earlier turn: not every record says where turns begin
        if not event.agent.reports_background_ends:
            for step in self._ledger.steps.in_background(session, words.SHELL):
                if not self._is_of_running(step):
                    self._recorder.end_step(step, words.DONE)
        self._refuse_waiting(session, event)
        return interrupted

    def _is_of_running(self, step: str) -> bool:
        """Whether a step is that of a sub-agent that goes on, which no prompt ends."""
        parent = self._ledger.steps.get(step).parent
        above = self._ledger.steps.numbered(parent) if parent is not None else None
        return above is not None and above.closed is None

    def known_session(self, event: "HookEvent") -> str:
        """The id of the session that an event is from; empty if nothing was recorded of it."""
        row = self._ledger.sessions.find(event.agent.name, requests.clean(event.session))
        return row.id if row is not None else ""

    def end_before(self, session: str, event: "HookEvent") -> None:
        """Record what a prompt says of the turns before it, without beginning one."""
        with _SAFELY, self._recorder.together():
            newest = self._ledger.turns.newest_beginning(session)
            # What seems to have begun longer after it than it can wait shows a clock set back.
            if newest is not None and 0 < newest.started - event.received < _WAIT:
                raise NothingToTakeBackError("a later prompt began before this could be done")
            self._recorder.end_interrupted(but=session)
            over = self._end_before(session, event, newest)
            row = self._ledger.sessions.get(session)
            for turn in self._ledger.turns.running(row.number):
                self._recorder.end_turn(turn.id, words.INTERRUPTED, ended=over)

    def typed_request(self, event: "HookEvent") -> str:
        """The request of a prompt that is a command of ours.

        One without an id of its own that was sent twice has that of the restore that was made.
        """
        newest = self._ledger.stack.between(0, 1 << 62, 1)
        made = self._ledger.event(newest[0].event) if newest else None
        if made is None or requests.has_own_id(event):
            return requests.typed(event)
        request = made.request or ""
        is_like = request.startswith("hook ") and request.endswith(" " + requests.wording(event))
        is_same = is_like and -_WAIT < event.received - made.at < _BLINK
        return request if is_same else requests.typed(event)

    def _goes_on(self, session: str, event: "HookEvent") -> None:
        """What ran in the background is done; what the agent does now belongs to its turn."""
        self._end(self._step_of(event) or self._task_of(event), words.DONE)
        request = _request(event, event.turn, requests.GOES_ON)
        process = event.process()
        if self._recorder.resume_turn(session, process=process, request=request) is None:
            self._begin_unseen(session, event, requests.delivery(event))

    def _begin_unseen(self, session: str, event: "HookEvent", request: "str | None" = None) -> str:
        return self._recorder.start_turn(
            session, PROMPT_NOT_SEEN, whole=False, process=event.process(), request=request
        )

    def _stops(self, session: str, event: "HookEvent") -> None:
        turn = self._turn_of(session, event)
        if turn is None or self._is_of_subagent(turn, event):
            return
        if event.agent.reports_background_ends:
            # What began would have reported its end.
            self._recorder.refuse_waiting(turn=turn)
        else:
            # What they do until the next prompt is theirs.
            for step in self._ledger.steps.running(turn, words.SHELL):
                self._recorder.detach_step(step)
        self._recorder.end_turn(turn, _STATUS[event.kind], request=requests.delivery(event))

    def _is_of_subagent(self, turn: str, event: "HookEvent") -> bool:
        """Whether a sub-agent stopped, and not the turn; an interruption stops all of them."""
        if not event.agent.subagents_stop_alike or event.kind == kinds.INTERRUPTS:
            return False
        return bool(self._ledger.steps.running(turn, words.AGENT))

    def _session_ends(self, session: str, event: "HookEvent") -> None:
        goes_on = event.agent.ends_before_background
        if goes_on and self._ledger.steps.in_background(session):
            return
        if self._is_outdated(session, event):
            return
        self._refuse_waiting(session, event)
        if event.agent.hides_stops:
            for turn in self._ledger.turns.running(self._ledger.sessions.get(session).number):
                self._recorder.end_turn(turn.id, words.DONE)
        self._recorder.end_session(session, request=requests.delivery(event))

    def _is_outdated(self, session: str, event: "HookEvent") -> bool:
        """Whether a later prompt is known: the hook was late, and the session goes on by now."""
        own = requests.part_of(event, event.turn, requests.PROMPT)
        if not event.turn or self._ledger.requested(own) is None:
            return False
        newest = self._ledger.turns.newest_beginning(session)
        return newest is not None and newest.request.endswith(" prompt") and newest.request != own

    def _refuse_waiting(self, session: str, event: "HookEvent") -> None:
        if not event.was_at_work():
            self._recorder.refuse_waiting(session=session)

    def _turn_of(self, session: str, event: "HookEvent") -> "str | None":
        """The turn of the prompt that all this is for, else the newest one of the session."""
        request = requests.part_of(event, event.turn, requests.PROMPT)
        known = self._ledger.requested(request) if event.turn else None
        if known is not None and known.payload:
            return str(known.payload["turn"])
        task = self._task_of(event) if event.subagent else None
        step = self._ledger.steps.get(task) if task is not None else None
        if step is not None and step.closed is None:
            # One that is started again works for whoever did that.
            sent = self._ledger.turns.numbered(step.turn)
            if sent is not None:
                return sent.id
        number = self._ledger.sessions.get(session).number
        newest = self._ledger.turns.newest_of(number)
        return newest.id if newest is not None else None

    # -- steps -----------------------------------------------------------------------------

    def _before_tool(self, session: str, event: "HookEvent") -> None:
        if event.tool_kind == words.READ:
            return
        if event.agent.hides_prompts and not event.subagent:
            self._begin_hidden(session, event)
        decision = self._guard.decide(event, session)
        if self._guard.is_refused(decision):
            self._refuse(session, event, decision)
            return
        step = self._begin(session, event, decision=decision)
        answer = self._guard.save(decision, step)
        if answer == DENY:
            self._recorder.refuse_step(step, is_ours=True)
            self._refuse(session, event, decision)
        elif answer == ASK:
            self._guard.ask(decision, (session, self._turn_of(session, event)), event)
            self._recorder.ask_step(step)

    def _refuse(self, session: str, event: "HookEvent", decision: "Decision | None") -> None:
        from takeback.agents import refusals

        place = (session, self._turn_of(session, event))
        blocked = self._guard.refuse(decision, place, requests.refused(event))
        self.refusal = refusals.Refusal(refusals.GUARD, blocked=blocked)

    def _begin_hidden(self, session: str, event: "HookEvent") -> None:
        """Begin the turn of a prompt that no event reported, unless it is known by now."""
        event.turn, prompt = event.agent.newest_prompt(event.transcript)
        event.prompt = prompt or PROMPT_NOT_SEEN
        if event.turn:
            request = requests.part_of(event, event.turn, requests.PROMPT)
            if self._ledger.requested(request) is None:
                self._prompt(session, event)
        elif not self._ledger.turns.running(self._ledger.sessions.get(session).number):
            self._begin_unseen(session, event)

    def _begin(
        self,
        session: str,
        event: "HookEvent",
        *,
        missed: bool = False,
        decision: "Decision | None" = None,
    ) -> str:
        own_kind = words.READ if tools.acts_for_us(event.tool) else event.tool_kind
        kind, paths = self._claim(event, own_kind)
        return self._recorder.start_step(
            self._turn_of(session, event) or self._begin_unseen(session, event),
            event.tool,
            event.given,
            kind=kind,
            paths=paths,
            cwd=os.fsencode(event.cwd) if event.cwd else None,
            parent=self._task_of(event) if event.subagent else None,
            missed=missed,
            began=event.began() if missed else None,
            about={
                "model": event.model,
                "permission_mode": event.permission_mode,
                "agent_version": event.agent_version(),
            },
            effects=self._guard.step_facts(decision),
            captures=decision is not None and decision.verdict.captures,
            request=_request(event, event.call, requests.BEFORE),
        )

    def _claim(self, event: "HookEvent", kind: str) -> "tuple[str, tuple[bytes, ...]]":
        kind, paths = tools.claim_of(event.tool, event.given, kind)
        return kind, tools.spelled_out(paths, self._user_home)

    def _asks(self, session: str, event: "HookEvent") -> None:
        """Where the call has no id, only what the tool is to do says which one a dialog is about.

        Another hook may have changed that; then it is the latest call.
        """
        step = self._step_of(event)
        if step is not None:
            self._recorder.ask_step(step)
            return
        summary = self._recorder.summary_of(event.tool, event.given)
        tool = tools.one_line(event.tool)
        step = self._ledger.steps.find_running(session, tool, summary)
        if step is not None:
            self._recorder.ask_step(step)

    def _after_tool(self, session: str, event: "HookEvent") -> None:
        step = self._step_of(event) if event.call else self._step_like(session, event)
        step = step or self._missed(session, event)
        began = event.began()
        if step is not None and began is not None:
            self._recorder.begin_step(step, began)
        if step is not None and event.background:
            # Under this name it is found when the agent reports that it is done. An agent that is
            # started again may use a name again.
            named = _request(event, event.task, requests.TASK)
            is_new = self._ledger.requested(named) is None
            request = named if is_new else requests.delivery(event)
            self._recorder.detach_step(step, request=request)
        else:
            status = words.FAILED if event.failed else words.DONE
            self._end(step, status, requests.delivery(event), event)

    def _step_like(self, session: str, event: "HookEvent") -> "str | None":
        """The oldest call that runs with the same tool and input: it was reported without an id."""
        turn = self._turn_of(session, event)
        if turn is None:
            return None
        return self._ledger.steps.find_like(turn, requests.likeness(event))

    def _missed(self, session: str, event: "HookEvent") -> "str | None":
        """A call whose first event was lost, because another process had the lock for too long.

        Without a turn the agent was never heard of, and nothing is known of what was there.
        """
        if not event.call or event.tool_kind == words.READ:
            return None
        if self._ledger.requested(requests.refused(event)) is not None:
            return None  # we refused it, and some agents report that it failed
        if self._turn_of(session, event) is None:
            return None
        decision = self._guard.decide(event, session, missed=True)
        return self._begin(session, event, missed=True, decision=decision)

    def _batch_over(self, session: str, event: "HookEvent") -> None:
        """Calls that were refused report no end of their own."""
        del session
        for id in event.calls:
            step = self._begun(requests.part_of(event, id, requests.BEFORE))
            if step is None:
                continue
            if id in event.refused:
                self._recorder.refuse_step(step)
            if not self._ledger.steps.get(step).background:
                self._end(step, words.FAILED)

    def _subagent_stops(self, session: str, event: "HookEvent") -> None:
        del session
        task = self._task_of(event)
        if task is not None:
            self._recorder.refuse_waiting(inside=task)
            if not event.agent.reports_background_ends:
                # As with the turn: what they do until the next prompt is theirs.
                for step in self._ledger.steps.open_inside(self._ledger.steps.get(task)):
                    if step.kind == words.SHELL:
                        self._recorder.detach_step(step.id)
        self._end(task, words.DONE, requests.delivery(event))

    def _end(
        self,
        step: "str | None",
        status: str,
        request: "str | None" = None,
        event: "HookEvent | None" = None,
    ) -> None:
        """End a step; `event` reports its end, and what the tool said."""
        if step is None or self._ledger.steps.get(step).closed is not None:
            return
        if event is None:
            self._recorder.end_step(step, status, request=request)
        else:
            # What is killed may take a while to go; the user is at work by then.
            over = rewinds.nanoseconds(event.interrupted_at()) if event.cancelled else None
            self._recorder.end_step(
                step,
                status,
                ended=over,
                output=event.output,
                exit_code=event.exit_code,
                given=event.given,
                request=request,
            )

    def _step_of(self, event: "HookEvent") -> "str | None":
        if not event.call:
            return None
        return self._begun(requests.part_of(event, event.call, requests.BEFORE))

    def _task_of(self, event: "HookEvent") -> "str | None":
        """The step that started a sub-agent, or a shell in the background."""
        task = event.subagent or event.task
        return self._begun(requests.part_of(event, task, requests.TASK)) if task else None

    def _begun(self, request: str) -> "str | None":
        known = self._ledger.requested(request)
        return str(known.payload["step"]) if known is not None and known.payload else None


def _request(event: "HookEvent", id: str, part: str) -> str:
    return requests.part_of(event, id, part) if id else requests.delivery(event)


def _is_the_same(event: "HookEvent", newest: "Beginning") -> bool:
    """Whether a prompt without an id was sent twice: as the newest turn, which did nothing yet."""
    request = newest.request
    is_like = request.startswith("hook ") and request.endswith(" " + requests.likeness(event))
    is_new = abs(time.time_ns() - newest.at) < _MOMENT
    return is_like and is_new and not newest.steps and newest.closed is None


_RECORD = {
    kinds.SESSION_STARTS: HookRecorder._session_starts,
    kinds.PROMPT: HookRecorder._prompt,
    kinds.GOES_ON: HookRecorder._goes_on,
    kinds.BEFORE_TOOL: HookRecorder._before_tool,
    kinds.ASKS: HookRecorder._asks,
    kinds.AFTER_TOOL: HookRecorder._after_tool,
    kinds.BATCH_OVER: HookRecorder._batch_over,
    kinds.STOPS: HookRecorder._stops,
    kinds.FAILS: HookRecorder._stops,
    kinds.INTERRUPTS: HookRecorder._stops,
    kinds.SUBAGENT_STOPS: HookRecorder._subagent_stops,
    kinds.SESSION_ENDS: HookRecorder._session_ends,
}
