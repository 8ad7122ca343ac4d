"""Record what agents do: sessions, turns and steps, with a safe point at each boundary.

A safe point is one look at the tree under the lock, and then the events that say what it was
for. What changed is attributed while the windows are still open, and the caller goes on
only when both are committed.
"""

import os
import time

from takeback.engine import changes, windows
from takeback.engine.request import Place
from takeback.errors import UsageError
from takeback.model import ids, terms, tools
from takeback.store import events, processes
from takeback.store import history as rows
from takeback.store.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

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


BY_TURN, BY_STEP, BY_CALL = "turn", "step", "call"
SAFE_POINTS = (BY_TURN, BY_STEP, BY_CALL)
"""How often: at turns only; also around steps that may write; around every step."""

_LONGEST_LABEL = 4000


class Recorder:
    """Writes what agents do into the log of one project."""

    def __init__(self, host: "Host", safe_points: str = BY_STEP) -> None:
        self._host = host
        self._safe_points = _one_of(safe_points, SAFE_POINTS, "a choice of safe points")

    # -- sessions --------------------------------------------------------------------------

    def start_session(
        self,
        agent: str,
        own_id: str,
        title: str,
        *,
        held: bool,
        inside: "str | None" = None,
        request: "str | None" = None,
    ) -> str:
        """The id of a session: a new one, or the one that the agent's own id means."""
        agent, own_id = tools.one_line(agent), tools.one_line(own_id)
        if not agent:
            raise UsageError("a session needs to know which agent it is of", hint="agent='NAME'")
        holder = processes.holder() if held else ""
        with self._host.held():
            known = self._requested(request, events.SESSION_STARTED, "session")
            found = rows.find_session(self._ledger, agent, own_id) if own_id else None
            if known is None and found is not None:
                self._resume_session(found, holder, inside, request)
                known = found.id
            if known is not None:
                return known
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
        if found.ended is not None or (holder and found.holder != holder):
            said: dict[str, Json] = {"session": found.id, "holder": holder, "inside": inside}
            self._record(events.SESSION_RESUMED, said, (found.opened,), request)

    def end_session(self, session: str, *, request: "str | None" = None) -> None:
        """A session is over; turns that still run were interrupted."""
        at = time.time_ns()
        with self._host.held():
            row = rows.get_session(self._ledger, session)
            if row.ended is not None:
                return
            running = rows.running_turns(self._ledger, row.number)
            place = Place(session, parents=(row.opened,), title=f"end of session {session}")
            seen = self._look(place, {session: at}, at)
            facts = self._turns_ended(running, terms.INTERRUPTED, at, seen, at)
            said: dict[str, Json] = {"session": session, "ended": at, **_seen(seen, at)}
            parents = (row.opened, seen.cursor)
            over = NewEvent(events.SESSION_ENDED, said, at, parents=parents, request=request)
            self._ledger.record(*facts, over)

    # -- turns -----------------------------------------------------------------------------

    def start_turn(
        self,
        session: str,
        label: str,
        *,
        whole: bool,
        interrupted: "int | None" = None,
        request: "str | None" = None,
    ) -> str:
        """A prompt was submitted. A turn of the session that still runs was interrupted."""
        at = time.time_ns()
        with self._host.held():
            known = self._requested(request, events.TURN_STARTED, "turn")
            if known is not None:
                return known
            row = rows.get_session(self._ledger, session)
            running = rows.running_turns(self._ledger, row.number)
            over = min(interrupted, at) if interrupted is not None else at
            closing = {old.id: over for old in running}
            turn = _new_id()
            place = Place(session, parents=(row.opened,), title=f"before turn {turn}")
            seen = self._look(place, closing, at)
            facts = self._turns_ended(running, terms.INTERRUPTED, over, seen, at)
            said: dict[str, Json] = {
                "turn": turn,
                "session": session,
                "label": _label(label),
                "whole": whole,
                **_seen(seen, at),
                "git": self._host.git_state(),
            }
            parents = (row.opened, seen.cursor)
            now = time.time_ns()
            started = NewEvent(events.TURN_STARTED, said, now, parents=parents, request=request)
            self._ledger.record(*facts, started)
            return turn

    def resume_turn(self, session: str, *, request: "str | None" = None) -> "str | None":
        """Go on with the newest turn of a session: a prompt came that no human wrote."""
        at = time.time_ns()
        with self._host.held():
            known = self._requested(request, events.TURN_RESUMED, "turn")
            number = rows.get_session(self._ledger, session).number
            turn = rows.newest_turn(self._ledger, number)
            if known is not None or turn is None:
                return known
            title = f"turn {turn.id} goes on"
            seen = self._look(Place(session, turn.id, None, (turn.opened,), title), {}, at)
            said: dict[str, Json] = {"turn": turn.id, **_seen(seen, at)}
            self._record(events.TURN_RESUMED, said, (turn.opened, seen.cursor), request)
            return turn.id

    def end_turn(
        self, turn: str, status: str, *, ended: "int | None" = None, request: "str | None" = None
    ) -> None:
        """The agent stopped. A turn that is over already stays as it is."""
        _require_end(status)
        at = time.time_ns()
        over = min(ended, at) if ended is not None else at
        with self._host.held():
            row = rows.get_turn(self._ledger, turn)
            if row.status != terms.RUNNING:
                return
            place = Place(turn=turn, parents=(row.opened,), title=f"after turn {turn}")
            seen = self._look(place, {turn: over}, at)
            self._ledger.record(*self._turns_ended([row], status, over, seen, at, request))

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
                **_seen(seen, at),
                "git": self._host.git_state(),
                "changes": changes.of_turn(self._ledger, self._host.objects, row.number),
            }
            parents = (row.opened, seen.cursor)
            facts.append(
                NewEvent(events.TURN_ENDED, said, time.time_ns(), parents=parents, request=request)
            )
        return facts

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
        request: "str | None" = None,
    ) -> str:
        """A tool is about to be called. It may start when this returns."""
        chosen, named = tools.claim_of(tool, given)
        if kind is not None:
            chosen = _one_of(kind, terms.KINDS, "a kind of step")
        at = time.time_ns()
        with self._host.held():
            known = self._requested(request, events.STEP_STARTED, "step")
            if known is not None:
                return known
            row = rows.get_turn(self._ledger, turn)
            above = rows.get_step(self._ledger, parent).opened if parent else row.opened
            said: dict[str, Json] = {
                "step": _new_id(),
                "turn": turn,
                "parent": parent,
                "tool": tools.one_line(tool),
                "kind": chosen,
                "summary": tools.summary_of(tool, given),
                "paths": self._inside(named if paths is None else paths, cwd),
            }
            parents = [above]
            # The first step ends the time in which the turn was its own window.
            if self._is_safe_point(chosen) or (row.whole and not row.steps):
                title = f"before {said['tool']} in turn {turn}"
                seen = self._look(Place(None, turn, None, (row.opened,), title), {}, at)
                said |= _seen(seen, at)
                parents.append(seen.cursor)
            self._record(events.STEP_STARTED, said, tuple(parents), request)
            return str(said["step"])

    def detach_step(self, step: str, *, request: "str | None" = None) -> None:
        """The tool returned, but what it started goes on in the background."""
        self._close_step(step, events.STEP_DETACHED, {"step": step}, {}, request)

    def end_step(
        self, step: str, status: str, *, ended: "int | None" = None, request: "str | None" = None
    ) -> None:
        """The tool is done. A step that is over already stays as it is."""
        _require_end(status)
        at = time.time_ns()
        over = min(ended, at) if ended is not None else at
        said: dict[str, Json] = {"step": step, "status": status, "ended": over}
        self._close_step(step, events.STEP_ENDED, said, {step: over}, request)

    def _close_step(
        self,
        step: str,
        kind: str,
        said: "dict[str, Json]",
        closing: "dict[str, int]",
        request: "str | None",
    ) -> None:
        at = time.time_ns()
        with self._host.held():
            row = rows.get_step(self._ledger, step)
            if row.closed is not None:
                return
            parents = [row.opened]
            if self._is_safe_point(row.kind):
                title = f"after {row.tool}, step {step}"
                seen = self._look(Place(None, None, step, (row.opened,), title), closing, at)
                said |= _seen(seen, at)
                parents.append(seen.cursor)
            self._record(kind, said, tuple(parents), request)

    def _is_safe_point(self, kind: str) -> bool:
        if self._safe_points == BY_TURN:
            return False
        return self._safe_points == BY_CALL or kind != terms.READ

    def _inside(self, paths: "Iterable[bytes]", cwd: "bytes | None") -> "list[str]":
        """The named paths as the tree has them; a link on the way leads where the tool writes."""
        root = self._host.root
        found: dict[bytes, None] = {}
        for path in paths:
            whole = os.path.join(cwd or root, path)
            real = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
            for way in (whole, real):
                inner = tools.inside(root, root, way)
                if inner is not None:
                    found[inner] = None
        return [path.decode("utf-8", "surrogateescape") for path in found]

    # -- safe points -----------------------------------------------------------------------

    @property
    def _ledger(self) -> "Ledger":
        return self._host.ledger

    def _look(self, place: Place, closing: "Mapping[str, int]", at: int) -> "Checkpoint":
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

    def _requested(self, request: "str | None", kind: str, key: str) -> "str | None":
        """What an earlier call with the same request made, so that a retry makes no second one."""
        event = self._ledger.requested(request)
        if event is None or event.payload is None:
            return None
        if event.kind != kind and key not in event.payload:
            raise UsageError(
                f"the request `{request}` was already used for something else ({event.kind})",
                hint="give each request an id of its own",
            )
        return str(event.payload[key])


def _seen(seen: "Checkpoint", at: int) -> "dict[str, Json]":
    return {"checkpoint": seen.id, "looked": at}


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
    _one_of(status, terms.STATUSES[1:], "a way to end")
