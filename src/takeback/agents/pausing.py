"""Who may go on: sessions that the user paused, turns that others took back while they ran."""

import os
import time

from takeback.capture.safe_points import SafePoints
from takeback.disk.failures import FailingAs
from takeback.errors import PausedError, RolledBack, TakebackError, UsageError
from takeback.ledger.journal import ALL_SESSIONS
from takeback.ledger.log import events
from takeback.model import words
from takeback.model.reasons import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.text.json_text import Json

RUN_BY_US = ("run", "aider")
"""The agents of sessions that `takeback run` holds: the user starts them, so nothing is refused."""
_SAFELY = FailingAs(TakebackError, "it could not be recorded")


class Pausing(SafePoints):
    """The part of a recorder that holds sessions back."""

    def pause(self, session: "str | None" = None) -> bool:
        """Refuse the calls of a session until `release`, or those of all; whether that is new."""
        with _SAFELY, self._work.held():
            number, id = self._named_session(session)
            if number in self._ledger.sessions.paused():
                return False
            self._record(events.SESSION_PAUSED, {"session": id}, (), None)
        return True

    def release(self, session: "str | None" = None) -> bool:
        """Refuse no more calls of a session, or of any; whether any were refused."""
        with _SAFELY, self._work.held():
            number, id = self._named_session(session)
            paused = self._ledger.sessions.paused()
            if session is not None and ALL_SESSIONS in paused:
                raise UsageError("all sessions are paused together", hint=Action("resume-all"))
            if not paused or (session is not None and number not in paused):
                return False
            self._record(events.SESSION_RELEASED, {"session": id}, (), None)
        return True

    def mark_handled(self, session: str, event: str, request: str, *, tool: bool) -> None:
        """An event of a hook, perhaps of a `tool`, left nothing else by which it counts once."""
        said: dict[str, Json] = {"session": session, "event": event}
        said |= {"tool": True} if tool else {}
        self._record(events.HOOK_HANDLED, said, (), request)

    def _named_session(self, session: "str | None") -> "tuple[int, str | None]":
        from takeback.history import references

        if session is None:
            return ALL_SESSIONS, None
        number = references.session(self._ledger, session, time.time())
        return number, self._ledger.sessions.numbered(number).id

    def require_going_on(self, turn: str) -> None:
        """An error if the user paused the session of a turn, or others took back what it did."""
        from takeback.agents import refusals

        row = self._ledger.turns.get(turn)
        is_ours = self._ledger.sessions.of(row).agent in RUN_BY_US
        if not is_ours and self._ledger.sessions.is_paused(row.session):
            raise PausedError("paused by the user", hint=Action("resume-all"))
        note = refusals.rolled_back(self._ledger, row)
        if note is not None:
            newest = note.restores[-1]
            paths = {path: None for each in note.restores for path, _ in each.files}
            raise RolledBack(
                f"{newest.verb} changed {words.count(len(paths), 'file')} under this turn",
                restore=newest.id,
                verb=newest.verb,
                because=newest.because,
                paths=tuple(os.fsdecode(path) for path in paths),
            )
