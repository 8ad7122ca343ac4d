"""Record what agents do: sessions, turns and steps, with a safe point at each boundary."""

import os
import time

from takeback.agents import rewinds
from takeback.agents.pausing import RUN_BY_US, Pausing
from takeback.capture.checkpoint import Place
from takeback.capture.safe_points import facts_of
from takeback.disk import machine
from takeback.disk.failures import FailingAs
from takeback.errors import RefusedError, TakebackError, UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids, tools, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from takeback.capture.safe_points import LateTurn
    from takeback.capture.workspace import Workspace
    from takeback.disk.lock import Held
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow
    from takeback.ledger.steps import StepRow
    from takeback.model.text.json_text import Json
    from takeback.upkeep.settings import Settings

BY_TURN, BY_STEP, BY_CALL = "turn", "step", "call"
SAFE_POINTS = (BY_TURN, BY_STEP, BY_CALL)
"""How often: at turns only; also around steps that may write; around every step."""

_GUARDS = ("off", "watch", "ask", "autopilot")
_SWITCH, _WATCH = "recording.on", "watch"
_LONGEST_LABEL = 4000
_JUMP = 1_000_000_000
"""Nanoseconds by which a clock that nobody sets stays behind or runs ahead, at the most."""
_SAFELY = FailingAs(TakebackError, "it could not be recorded")


class Recorder(Pausing):
    """Writes what agents do into the log of one project."""

    def __init__(
        self,
        work: "Workspace",
        safe_points: str = BY_STEP,
        schedule_gc: "Callable[[], object]" = bool,
        guard: str = "",
    ) -> None:
        super().__init__(work)
        self.guard = _one_of(guard, ("", *_GUARDS), "a mode of the guard")
        self._schedule_gc = schedule_gc
        self._safe_points = _one_of(safe_points, SAFE_POINTS, "a choice of safe points")

    # -- sessions --------------------------------------------------------------------------

    def start_session(
        self,
        agent: str,
        own_id: str,
        title: str,
        *,
        held: bool,
        beside: bool = False,
        inside: "str | None" = None,
        request: "str | None" = None,
    ) -> str:
        """The id of a session: a new one, or the one that the agent's own id means.

        With `beside`, one that another process holds is left to it, and a new one begins.
        """
        agent, own_id = tools.one_line(agent), tools.one_line(own_id)
        if not agent:
            raise UsageError("a session needs the name of its agent", hint="agent='NAME'")
        holder = machine.holder() if held else ""
        with _SAFELY, self._work.held():
            kinds = (events.SESSION_STARTED, events.SESSION_RESUMED)
            known = _requested(self._ledger, request, *kinds)
            if known is not None:
                row = self._ledger.sessions.get(str(known["session"]))
                if row.agent != agent:
                    raise _used_elsewhere(request, events.SESSION_STARTED)
                return row.id
            found = self._ledger.sessions.find(agent, own_id) if own_id else None
            if beside and found is not None and _is_held_by_another(found, holder):
                found, title, own_id = None, title or own_id, ""
            if found is not None:
                self._resume_session(found, holder, inside, request)
                return found.id
            said: dict[str, Json] = {
                "session": _new_id(),
                "agent": agent,
                "own_id": own_id,
                "title": tools.one_line(title),
                "holder": holder,
                "inside": inside,
            }
            self._record(events.SESSION_STARTED, said, (), request)
            return str(said["session"])

    def _resume_session(
        self, found: "SessionRow", holder: str, inside: "str | None", request: "str | None"
    ) -> None:
        is_ours = found.ended is None and holder in ("", found.holder)
        if not is_ours or self._ledger.sessions.is_elsewhere(found, inside):
            holder = found.holder if is_ours else holder
            said: dict[str, Json] = {"session": found.id, "holder": holder, "inside": inside}
            self._record(events.SESSION_RESUMED, said, (found.opened,), request)

    def end_session(self, session: str, *, request: "str | None" = None) -> None:
        """A session is over; turns that still run were interrupted."""
        at = time.time_ns()
        with _SAFELY, self._work.held():
            row = self._ledger.sessions.get(session)
            known = _requested(self._ledger, request, events.SESSION_ENDED, session=session)
            if row.ended is not None or known is not None:
                return
            self._reopen_session(row)
            place = Place(session, parents=(row.opened,), title=f"end of session {session}")
            seen = self._look(place, {session: at}, at, boundary=True)
            facts = self._all_ended(row, at, seen, at)
            said: dict[str, Json] = {"session": session, "ended": at, **facts_of(seen, at)}
            parents = (row.opened, seen.cursor)
            over = NewEvent(events.SESSION_ENDED, said, at, parents=parents, request=request)
            self._conclude([*facts, over], at, sessions=[(row.number, at)])
        self._schedule_gc()

    def start_watch(self) -> str:
        """What nobody claims is of an unknown author from now on; what changed before is yours."""
        with _SAFELY, self._work.held():
            row = self._ledger.sessions.find(words.UNKNOWN, _WATCH)
            if row is not None and _is_held_by_another(row, machine.holder()):
                raise RefusedError(
                    f"process {row.holder.split(' ')[-2]} watches this project already",
                    hint="one watch is enough; end that one first to start another",
                )
            if row is None or row.ended is not None or row.holder != machine.holder():
                self.now()
            return self.start_session(words.UNKNOWN, _WATCH, "", held=True)

    def turn_off(self) -> int:
        """Record no agent here until `turn_on`; how many turns that ran were ended.

        Their windows are closed, so that what changes from now on is the user's. Sessions that
        another program holds go on: it asked for them.
        """
        with self._work.held():
            if self.late_turns():
                self.now()
        self._settings().set(_SWITCH, "false")
        running = 0
        for session in self._ledger.sessions.open():
            if not session.holder or session.agent in RUN_BY_US:
                running += len(self._ledger.turns.running(session.number))
                self.end_session(session.id)
        return running

    def turn_on(self) -> None:
        """Record agents again. A checkpoint made before it says that what changed is the user's."""
        if self._settings().unset(_SWITCH).value is False:
            self._settings().set(_SWITCH, "true")  # the user turned it off in all projects

    def _settings(self) -> "Settings":
        from takeback.upkeep.settings import Settings

        return Settings(self._work.home.path, self._work.id)

    def together(self) -> "Held":
        """Hold the log while several things are recorded that belong together."""
        return self._work.held()

    # -- turns -----------------------------------------------------------------------------

    def start_turn(
        self,
        session: str,
        label: str,
        *,
        whole: bool,
        interrupted: "int | None" = None,
        began: "int | None" = None,
        git: "Mapping[str, Json] | None" = None,
        conversation: "Mapping[str, str] | None" = None,
        process: str = "",
        request: "str | None" = None,
    ) -> str:
        """A prompt was submitted. A turn of the session that still runs was interrupted.

        `process` is the agent, as `machine.holder` names it, where that is not this one.
        It `began` some time ago if the agent did not wait for us: what changed since is its work,
        and `git` is what `git_facts` said by then.
        """
        at = time.time_ns()
        with _SAFELY, self._work.held():
            known = _requested(self._ledger, request, events.TURN_STARTED, session=session)
            if known is not None:
                return str(known["turn"])
            row = self._ledger.sessions.get(session)
            self._reopen_session(row)
            running = self._ledger.turns.running(row.number)
            over = min(interrupted, at) if interrupted is not None else at
            late = self._ledger.steps.late(row.number)
            closing = {old.id: over for old in running} | {old.id: over for old in late}
            early: tuple[LateTurn, ...] = ()
            if began is not None:
                early = (self._late_turn(row, label=_label(label), began=began, git=git),)
            turn = early[0].id if early else _new_id()
            place = Place(session, parents=(row.opened,), title=f"before turn {turn}")
            seen = self._look(place, closing, at, late=early, boundary=True)
            ending, git = self._ending(over, seen, at), self._work.git_facts()
            facts = ending.of_turns(running, words.INTERRUPTED, git) + ending.of_steps(late)
            if early and self._ledger.turns.find(turn) is not None:
                self._conclude(facts, at, over)  # the look found work of it, so it has begun
                return turn
            said: dict[str, Json] = {
                "turn": turn,
                "session": session,
                "label": _label(label),
                "whole": whole,
                **facts_of(seen, at),
                **({"git": git["git"]} if running else git),
            }
            if process:
                said["process"] = process
            if conversation:
                said["conversation"] = {key: conversation[key] for key in sorted(conversation)}
            parents = (row.opened, seen.cursor)
            now = time.time_ns()
            started = NewEvent(events.TURN_STARTED, said, now, parents=parents, request=request)
            turns, steps = [old.number for old in running], [old.number for old in late]
            self._conclude([*facts, started], at, over, turns=turns, steps=steps)
            return turn

    def resume_turn(
        self, session: str, *, process: str = "", request: "str | None" = None
    ) -> "str | None":
        """Go on with the newest turn of a session: a prompt came that no human wrote."""
        at = time.time_ns()
        with _SAFELY, self._work.held():
            known = _requested(self._ledger, request, events.TURN_RESUMED)
            row = self._ledger.sessions.get(session)
            if known is not None:
                before = self._ledger.turns.get(str(known["turn"]))
                if before.session != row.number:
                    raise _used_elsewhere(request, events.TURN_RESUMED)
                return before.id
            turn = self._ledger.turns.newest_of(row.number)
            if turn is None:
                return None
            self._reopen_session(row)
            title = f"turn {turn.id} goes on"
            place = Place(session, turn.id, None, (turn.opened,), title)
            seen = self._look(place, {}, at, boundary=True)
            git = self._work.git_facts()
            del git["git"]
            said: dict[str, Json] = {"turn": turn.id, **facts_of(seen, at), **git}
            if process:
                said["process"] = process
            self._record(events.TURN_RESUMED, said, (turn.opened, seen.cursor), request)
            return turn.id

    def end_turn(
        self,
        turn: str,
        status: str,
        *,
        ended: "int | None" = None,
        request: "str | None" = None,
        also: "tuple[NewEvent, ...]" = (),
    ) -> None:
        """The agent stopped. A turn that is over already stays as it is.

        What `also` happened with its end is recorded together with it.
        """
        _require_end(status)
        at = time.time_ns()
        over = min(ended, at) if ended is not None else at
        with _SAFELY, self._work.held():
            row = self._ledger.turns.get(turn)
            known = _requested(self._ledger, request, events.TURN_ENDED, turn=turn)
            if row.status != words.RUNNING or known is not None:
                return
            self._reopen_session(self._ledger.sessions.of(row))
            place = Place(turn=turn, parents=(row.opened,), title=f"after turn {turn}")
            seen = self._look(place, {turn: over}, at, boundary=True)
            ending, git = self._ending(over, seen, at), self._work.git_facts()
            facts = [*ending.of_turns([row], status, git, request), *also]
            self._conclude(facts, at, over, turns=[row.number])
        if self._ledger.lessons.has_taken():
            from takeback.lessons import relapses

            relapses.find(self._work, turn, is_over=True)

    def end_interrupted(self, but: str = "") -> None:
        """End the turns that were interrupted inside an agent, except in one session."""
        for found in rewinds.find_interruptions(self._ledger, but):
            try:
                if not found.was_at_work:
                    self.refuse_waiting(turn=found.turn)
                self.end_turn(found.turn, words.INTERRUPTED, ended=found.at)
            except TakebackError:
                continue  # the caller does without, or fails for the same reason

    # -- steps -----------------------------------------------------------------------------

    def start_step(
        self,
        turn: str,
        tool: str,
        given: "Mapping[str, object]",
        *,
        kind: "str | None" = None,
        paths: "Iterable[bytes] | None" = None,
        cwd: "bytes | None" = None,
        parent: "str | None" = None,
        missed: bool = False,
        began: "int | None" = None,
        about: "Mapping[str, str] | None" = None,
        effects: "Mapping[str, Json] | None" = None,
        captures: bool = False,
        request: "str | None" = None,
    ) -> str:
        """A tool is about to be called. It may start when this returns.

        `about` may tell the `model`, the `permission_mode` and the `agent_version`; `effects` what
        it would do outside. With `captures`, a checkpoint comes first in any case. One that was
        `missed` has run by now, and `began` then, if known; its end finds what it did.
        """
        chosen, named = tools.claim_of(tool, given)
        if kind is not None:
            chosen = _one_of(kind, words.KINDS, "a kind of step")
        at = time.time_ns()
        with _SAFELY, self._work.held():
            known = _requested(self._ledger, request, events.STEP_STARTED, turn=turn)
            if known is not None:
                return str(known["step"])
            row = self._ledger.turns.get(turn)
            self._reopen_session(self._ledger.sessions.of(row))
            above = self._ledger.steps.get(parent).opened if parent else row.opened
            inside, outside = self._named(named if paths is None else paths, cwd)
            step = _new_id()
            said: dict[str, Json] = {
                "step": step,
                "turn": turn,
                "parent": parent,
                "tool": tools.one_line(tool),
                "kind": chosen,
                "summary": "",
                "paths": inside,
                **{key: tools.one_line(value) for key, value in (about or {}).items() if value},
                **(effects or {}),
            }
            if cwd is not None:
                said["cwd"] = cwd.decode("utf-8", "surrogateescape")
            parents = [above]
            if missed:
                said |= {"missed": True} if began is None else {"began": began}
            # The first step ends the time in which the turn was its own window.
            elif captures or self._is_safe_point(chosen) or (row.whole and not row.steps):
                title = f"before {said['tool']} in turn {turn}"
                place = Place(None, turn, None, (row.opened,), title)
                seen = self._look(place, {}, at, whole=row.status != words.RUNNING)
                said |= facts_of(seen, at)
                parents.append(seen.cursor)
            # After the look: it knows of secrets that were deleted or changed until now.
            from takeback.capture import step_details

            summary, detail = step_details.of_input(self._work, tool, chosen, given, row.before)
            said["summary"] = summary
            led = tuple(parents)
            now = time.time_ns()
            started = NewEvent(
                events.STEP_STARTED, said, now, parents=led, request=request, detail=detail
            )
            if outside and chosen == words.EDIT:
                self._work.outside().begin(started, turn, step, outside)
            else:
                self._ledger.record(started)
            return step

    def ask_step(self, step: str) -> None:
        """A dialog asks whether the tool may run: until it has begun, others may work."""
        at = time.time_ns()
        with _SAFELY, self._work.held():
            row = self._to_close(step, events.STEP_ASKED, None)
            if row is None or row.status != words.RUNNING:
                return
            said: dict[str, Json] = {"step": step, "clock": machine.clock_offset()}
            parents = [row.opened]
            if self._is_safe_point(row.kind):
                title = f"a dialog before {row.tool}, step {row.id}"
                place = Place(None, None, row.id, (row.opened,), title)
                # It had not begun, so nothing that changed until now is its own.
                seen = self._look(place, {step: 0}, at, whole=self._ledger.turns.is_over(row.turn))
                said |= facts_of(seen, at)
                parents.append(seen.cursor)
            self._record(events.STEP_ASKED, said, tuple(parents), f"asked {step}")

    def begin_step(self, step: str, began: int) -> None:
        """It is known by now when a step began of which that was not known."""
        with _SAFELY, self._work.held():
            row = self._to_close(step, events.STEP_BEGAN, None)
            if row is None or row.status != words.WAITING:
                return
            asked = self._ledger.requested(f"asked {step}")
            clock = asked.payload.get("clock") if asked is not None and asked.payload else None
            # Of a clock that was set since nothing follows: it stays a doubt.
            if isinstance(clock, int) and abs(machine.clock_offset() - clock) < _JUMP:
                said: dict[str, Json] = {"step": step, "began": began}
                self._record(events.STEP_BEGAN, said, (row.opened,), None)

    def summary_of(self, tool: str, given: "Mapping[str, object]") -> str:
        """One line about a call, as the log has it."""
        from takeback.capture import step_details

        return step_details.of_input(self._work, tool, tools.kind_of(tool), given)[0]

    def refuse_step(self, step: str, *, is_ours: bool = False) -> None:
        """A step never began: what changed since a dialog came, or the guard, is not its own."""
        with _SAFELY, self._work.held():
            row = self._to_close(step, events.STEP_ENDED, None)
            if row is not None and (is_ours or row.status == words.WAITING):
                at = time.time_ns()
                over = self._ending(at, None, at).of_steps([row], words.REFUSED)
                self._conclude(over, at, at, steps=[row.number])

    def refuse_waiting(self, *, session: str = "", turn: str = "", inside: str = "") -> None:
        """A dialog that no end followed was answered with no: its step never began."""
        for step in self._ledger.steps.waiting(session=session, turn=turn, inside=inside):
            self.refuse_step(step)

    def detach_step(self, step: str, *, request: "str | None" = None) -> None:
        """The tool returned, but what it started goes on in the background."""
        at = time.time_ns()
        with _SAFELY, self._work.held():
            row = self._to_close(step, events.STEP_DETACHED, request)
            if row is None:
                return
            inside = self._ledger.steps.open_inside(row)
            said: dict[str, Json] = {"step": step, "inside": [each.id for each in inside]}
            parents = [row.opened]
            if self._is_safe_point(row.kind):
                is_late = self._ledger.turns.is_over(row.turn)
                seen = self._look(_after(row), {}, at, whole=is_late)
                said |= facts_of(seen, at)
                parents.append(seen.cursor)
            self._record(events.STEP_DETACHED, said, tuple(parents), request)

    def end_step(
        self,
        step: str,
        status: str,
        *,
        ended: "int | None" = None,
        output: str = "",
        exit_code: "int | None" = None,
        interactive: bool = False,
        given: "Mapping[str, object] | None" = None,
        request: "str | None" = None,
    ) -> None:
        """The tool is done, and with it the steps inside it that were not detached.

        A step that is over already stays as it is. `given` is what the tool was called with.
        It was `interactive` if somebody sat at its terminal, who may have edited files meanwhile.
        """
        _require_end(status)
        at = time.time_ns()
        over = min(ended, at) if ended is not None else at
        with _SAFELY, self._work.held():
            row = self._to_close(step, events.STEP_ENDED, request)
            if row is None:
                return
            inside, seen = self._ledger.steps.open_inside(row), None
            # Once its turn is over, nobody else looks for what it did.
            is_late = self._ledger.turns.is_over(row.turn)
            if is_late or self._is_safe_point(row.kind):
                closing = {each.id: over for each in (row, *inside)}
                seen = self._look(_after(row), closing, at, whole=is_late)
            ending = self._ending(over, seen, at)
            (own,) = ending.of_steps([row], status, request)
            from takeback.capture import step_details

            detail, envelope = step_details.of_output(self._work, row, given, output)
            code: dict[str, Json] = {} if exit_code is None else {"exit_code": exit_code}
            code |= {"interactive": True} if interactive else {}
            own = own.replace(payload={**own.payload, **code, **envelope}, detail=detail)
            facts = [*ending.of_steps(inside), own]
            self._conclude(facts, at, over, steps=[each.number for each in (row, *inside)])
            from takeback.effects import rescue

            rescue.after(self._work, step)

    def _to_close(self, step: str, kind: str, request: "str | None") -> "StepRow | None":
        """The step, if it is still open and this is no retry."""
        row = self._ledger.steps.get(step)
        known = _requested(self._ledger, request, kind, step=step)
        if row.closed is not None or known is not None:
            return None
        self._reopen_session(self._ledger.sessions.of(row))
        return row

    def _is_safe_point(self, kind: str) -> bool:
        if self._safe_points == BY_TURN:
            return False
        return self._safe_points == BY_CALL or kind != words.READ

    def named(self, paths: "Iterable[bytes]", cwd: "bytes | None") -> "tuple[bytes, ...]":
        """The named paths: relative to the root where they are in the tree, else whole."""
        inside, outside = self._named(paths, cwd)
        return (*(path.encode("utf-8", "surrogateescape") for path in inside), *outside)

    def _named(
        self, paths: "Iterable[bytes]", cwd: "bytes | None"
    ) -> "tuple[list[str], list[bytes]]":
        """The named paths as the tree has them, and those outside of it, without links on the way.

        Both with where links lead a tool that writes.
        """
        root = self._work.root
        found: dict[bytes, None] = {}
        away: dict[bytes, None] = {}
        for path in paths:
            whole = os.path.join(cwd or root, path)
            real = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
            for way in (whole, real, os.path.realpath(whole)):
                inner = tools.inside(root, root, way)
                if inner is not None:
                    found[inner] = None
                elif way is not whole and os.path.basename(way) not in (b"", b".", b".."):
                    away[way] = None
        return [path.decode("utf-8", "surrogateescape") for path in found], list(away)


def _is_held_by_another(row: "SessionRow", holder: str) -> bool:
    if not holder or row.ended is not None or row.holder in ("", holder):
        return False
    return machine.is_alive(row.holder) is True


def _after(row: "StepRow") -> Place:
    title = f"after {row.tool}, step {row.id}"
    return Place(None, None, row.id, (row.opened,), title)


def _new_id() -> str:
    return ids.from_entropy(os.urandom(8))


def _label(text: str) -> str:
    """A prompt as text that can be stored and shown."""
    text = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _one_of(word: str, known: "tuple[str, ...]", what: str) -> str:
    if word not in known:
        listed = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"`{word}` is not {what}", hint=f"one of {listed}")
    return word


def _require_end(status: str) -> None:
    _one_of(status, words.STATUSES[1:], "a way to end")


def _requested(
    ledger: "Ledger", request: "str | None", *kinds: str, **about: str
) -> "Mapping[str, Json] | None":
    """What an earlier call with the same request said, so that a retry makes no second event.

    A request that was used for another kind of event, or for something other than what this one
    is `about`, is a mistake of the caller.
    """
    event = ledger.requested(request)
    if event is None:
        return None
    said = event.payload
    if said is None or event.kind not in kinds or any(said.get(k) != about[k] for k in about):
        raise _used_elsewhere(request, event.kind)
    return said


def _used_elsewhere(request: "str | None", kind: str) -> UsageError:
    """What to tell somebody who uses the id of a request for two things."""
    return UsageError(
        f"the request id `{request}` was already used ({kind})",
        hint="give each request an id of its own",
    )
