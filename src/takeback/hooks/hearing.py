"""Hear one event: what it tells is recorded, and what has to be said is answered.

    payload ──► dialect ──► Call ──► Witness ──► the project's log
                              │
    answer ◄── dialect ◄── Answer: what the agent, or its user, has to hear

Whatever goes wrong here is ours, not the agent's: it is noted (`troubles`), the user hears once in
each conversation that the turn is not covered, and the agent goes on.
"""

import os
import time

from takeback.hooks import calls, dialects
from takeback.hooks.calls import Answer, Call
from takeback.hooks.opened import Opened
from takeback.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.project import Project


class Surroundings:
    """Where a hook was called: the store's home, the user's, the agent's folder, the current one.

    The helper hears events for others, so these come with the event, and so does its id.
    """

    __slots__ = ("cwd", "event", "folder", "home", "user_home")

    def __init__(
        self, home: bytes, user_home: bytes, folder: bytes, cwd: bytes, event: bytes = b""
    ) -> None:
        self.home = home
        self.user_home = user_home
        self.folder = folder
        self.cwd = cwd
        self.event = event


class Ear:
    """Hears one event after the other. The project of the last one stays open for the next.

    Who hears many also watches the tree of the project.
    """

    __slots__ = ("_opened",)

    def __init__(self, *, watches: bool = False) -> None:
        self._opened = Opened(watches=watches)

    def hear(self, words: "tuple[bytes, ...]", data: bytes, at: int = 0) -> bytes:
        """The answer to a payload, as the agent wants to read it; `at` is when it was sent."""
        at = at or time.time_ns()
        around = Surroundings(*words)
        payload = parse(data)
        dialect = dialects.of(payload)
        call = dialect.read(payload)
        call.folder, call.heard = os.fsdecode(around.folder), at
        call.event = os.fsdecode(around.event) or os.urandom(16).hex()
        told = dialect.answer(call, heard(call, around, self._opened))
        self._opened.rest()
        return jsontext.dumps(told).encode() + b"\n" if told else b""

    def settle(self) -> None:
        """Do what the next event is faster with, once this one was answered."""
        self._opened.settle()

    def close(self) -> None:
        """Close what is open."""
        self._opened.close()


def hear(words: "tuple[bytes, ...]", data: bytes, at: int = 0) -> bytes:
    """The answer to one payload, with nothing left open."""
    ear = Ear()
    try:
        return ear.hear(words, data, at)
    finally:
        ear.close()


def parse(data: bytes) -> "Mapping[str, object]":
    """A payload, whatever was sent: what is no JSON object is an empty one."""
    text = data.decode("utf-8", "replace").strip()
    try:
        payload = jsontext.loads(text)
    except (ValueError, TypeError, RecursionError):
        payload = _leniently(text)
    return payload if isinstance(payload, dict) else {}


def _leniently(text: str) -> object:
    """Some hosts send control characters within strings."""
    import json

    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}


def heard(call: Call, around: Surroundings, opened: Opened) -> Answer:
    """Record a call; what has to be said about it."""
    if call.kind == calls.OTHER or not call.session:
        return Answer()
    try:
        return _recorded(call, around, opened)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, it is not the agent's
        return _trouble(call, around, problem)


def _recorded(call: Call, around: Surroundings, opened: Opened) -> Answer:
    from takeback.errors import BusyError

    where = os.path.join(around.cwd, os.fsencode(call.folder or call.cwd or "."))
    project, is_fresh = opened.project(where, around.home, around.user_home)
    try:
        return _written(project, call, around)
    except Exception as problem:
        opened.close()
        if is_fresh or isinstance(problem, BusyError):
            raise
    # What was open for a while may be outdated in a way that only shows by now. What of the call
    # is in the log already counts once.
    project, _ = opened.project(where, around.home, around.user_home)
    return _written(project, call, around)


def _written(project: "Project", call: Call, around: Surroundings) -> Answer:
    from takeback.hooks import conversations
    from takeback.hooks.witness import Witness

    session = Witness(project, conversations.interrupted_at, conversations.was_at_work).hear(call)
    return _said(project, session, call, around) if session else Answer()


def _said(project: "Project", session: str, call: Call, around: Surroundings) -> Answer:
    """What the log has to tell about it. The turn is covered, also if this fails."""
    try:
        to_agent = to_user = ""
        if call.can_be_told():
            from takeback.hooks import notes

            to_agent = notes.pending(project, session)
        if call.tells_of_prompts():
            from takeback.hooks import rewinds

            to_user = rewinds.noticed(project, session, call)
        return Answer(to_agent, to_user)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, it is not the agent's
        _noted(call, around, problem)
        return Answer()


def _noted(call: Call, around: Surroundings, problem: Exception) -> "tuple[str, bool]":
    """What went wrong, in words, and whether this conversation hears of it for the first time."""
    from takeback.errors import TakebackError
    from takeback.hooks import troubles

    what = str(problem) if isinstance(problem, TakebackError) else repr(problem)
    now = time.time_ns()
    return what, troubles.note(around.home, now, call.agent, call.name, call.session, what)


def _trouble(call: Call, around: Surroundings, problem: Exception) -> Answer:
    what, is_new = _noted(call, around, problem)
    if not is_new:
        return Answer()
    return Answer(
        to_user=f"Takeback does not cover this turn: {what} (`takeback doctor` tells more)"
    )
