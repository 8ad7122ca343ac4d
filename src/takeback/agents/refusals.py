"""Calls that are refused: because of a restore under a running turn, once; or while it is paused.
What the guard refuses is recorded by `effects/guarding`.

An agent in the middle of a turn would hear of a restore after its next command has overwritten the
files again. So the first call that may do so is refused, and the note is why. That is recorded: for
the call, so that a second delivery of it is answered alike; and for the restore, so that the next
call is made. Calls that the model made in the same answer are refused, too, if its conversation
says so. A sub-agent reads nothing of what its session is told, so it is refused by itself.
"""

import time

from takeback.agents import notes, registry, requests
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import tools, words
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent
    from takeback.agents.notes import Note
    from takeback.effects.guarding import Blocked
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow, TurnRow
    from takeback.ledger.undo_stack import RestoreRow

RESTORED, PAUSED, GUARD = "restored", "paused", "guard"
"""Why a call is refused."""
REFUSED, RAISED, AFTERWARDS, NEVER = "refused", "raised", "afterwards", "never"
"""How a running agent hears of a restore: its next call is refused; its next step raises; with its
next event; not at all."""
_RUN = "run"
_NEWEST = 1 << 62
_ONE_ANSWER = 15_000_000_000
"""Nanoseconds after a refusal in which it is asked whether a call is of the same answer."""
_UNTIL_WRITTEN, _A_MOMENT = 0.5, 0.02
"""Seconds that an agent needs at most to write a call into its conversation, and between looks."""


class Refusal(Value):
    """Why a call is refused; after a restore, what is told with it; what the guard says of it."""

    why: str
    note: "Note | None" = None
    blocked: "Blocked | None" = None


class Call(Value):
    """A call that is about to be made: its kind, and the paths that it names.

    Those in the project are relative to its root, others are whole.
    """

    kind: str
    paths: "tuple[bytes, ...]"
    subagent: str = ""

    def may_touch(self, changed: "set[bytes]") -> bool:
        """Whether it may write one of some paths: it names it, or nobody knows what it does."""
        if self.kind in (words.READ, words.AGENT):
            return False
        if self.kind == words.SHELL or not self.paths:
            return True
        # Where case makes no difference, another spelling names the same file.
        named = [path.lower() for path in self.paths]
        return any(_meet(path, other.lower()) for path in named for other in changed)


def _meet(path: bytes, other: bytes) -> bool:
    """Whether two paths are the same, or one is a folder above the other."""
    return path == other or other.startswith(path + b"/") or path.startswith(other + b"/")


def told(name: str) -> str:
    """How an agent that runs hears of a restore, by its name."""
    agent = registry.find_agent(name)
    if agent is not None and agent.refuses_calls and not agent.loses_reason:
        return REFUSED
    if agent is not None:
        return AFTERWARDS if agent.told_at else NEVER
    return NEVER if name == _RUN else RAISED


def can_pause(name: str) -> bool:
    """Whether the calls of an agent can be refused, by its name."""
    agent = registry.find_agent(name)
    return agent.refuses_calls if agent is not None else name != _RUN


def again(ledger: "Ledger", event: "HookEvent") -> "Refusal | None":
    """The refusal of a call that was refused before, and is delivered a second time."""
    if not event.can_be_refused():
        return None
    known = ledger.requested(requests.refused(event))
    if known is None or not known.payload:
        return None
    if known.payload["why"] == GUARD:
        from takeback.effects import guarding

        return Refusal(GUARD, blocked=guarding.blocked_of(known.payload))
    session = ledger.sessions.find_by_id(str(known.payload["session"]))
    rows = _restores(ledger, known.payload["restores"])
    note = notes.note_of(ledger, session, rows, None, is_new=False) if session and rows else None
    return Refusal(str(known.payload["why"]), note)


def refuse(
    ledger: "Ledger", session: str, turn: "TurnRow | None", event: "HookEvent", call: Call
) -> "Refusal | None":
    """Why a call is refused, recorded with this; None if it may be made. With the lock held."""
    row = ledger.sessions.get(session)
    rows: list[RestoreRow] = []
    unread: list[RestoreRow] = []
    if ledger.sessions.is_paused(row.number):
        refusal = Refusal(PAUSED)
    else:
        if turn is not None and not event.agent.loses_reason:
            rows = _unheard(ledger, row, turn, call)
            unread = rows or _unread(ledger, row, turn, event, call)
        if not unread:
            return None
        refusal = Refusal(RESTORED, notes.note_of(ledger, row, unread, None, is_new=False))
    ledger.record(
        *_facts(ledger, row, rows, call.subagent),
        NewEvent(
            events.CALL_REFUSED,
            {
                "session": row.id,
                "turn": turn.id if turn is not None else None,
                "tool": tools.one_line(event.tool),
                "why": refusal.why,
                "restores": [each.id for each in unread],
            },
            time.time_ns(),
            parents=tuple(each.event for each in unread) or (row.opened,),
            request=requests.refused(event),
        ),
    )
    return refusal


def rolled_back(ledger: "Ledger", turn: "TurnRow") -> "Note | None":
    """What a harness hears, once, of restores by others in the middle of its turn.

    Recorded with this. With the lock held.
    """
    session = ledger.sessions.of(turn)
    rows = _unheard(ledger, session, turn, Call(words.SHELL, ()))
    if not rows:
        return None
    ledger.record(*_facts(ledger, session, rows, ""))
    return notes.note_of(ledger, session, rows, None, is_new=False)


def _unheard(
    ledger: "Ledger", session: "SessionRow", turn: "TurnRow", call: Call
) -> "list[RestoreRow]":
    """The restores that a call is refused for: of others, in its turn, of files of its session."""
    if turn.closed is not None:
        return []
    waiting = [
        row
        for row in _under(ledger, session, turn)
        if ledger.requested(requests.refused_for(session.id, call.subagent, row.id)) is None
        and not notes.did_it(ledger, session, row)
    ]
    return _touched(ledger, notes.net(waiting), call)


def _unread(
    ledger: "Ledger", session: "SessionRow", turn: "TurnRow", event: "HookEvent", call: Call
) -> "list[RestoreRow]":
    """The restores for which another call of the same answer was just refused.

    The model made both before it could read why.
    """
    files = event.agent.conversations
    if files is None or event.subagent or not event.call or turn.closed is not None:
        return []
    names = (requests.refused_for(session.id, "", x.id) for x in _under(ledger, session, turn))
    known = [each for each in map(ledger.requested, names) if each is not None]
    if not known or time.time_ns() - max(each.at for each in known) > _ONE_ANSWER:
        return []
    until = time.monotonic() + _UNTIL_WRITTEN
    while (beside := files.calls_beside(event.transcript, event.call)) is None:
        if time.monotonic() > until:
            return []
        time.sleep(_A_MOMENT)
    for other in beside:
        refused = ledger.requested(requests.refused_call(event, other))
        if refused is not None and refused.payload and refused.payload["why"] == RESTORED:
            return _touched(ledger, _restores(ledger, refused.payload["restores"]), call)
    return []


def _under(ledger: "Ledger", session: "SessionRow", turn: "TurnRow") -> "list[RestoreRow]":
    """The restores that name a session as running, since a turn of it began; the oldest first."""
    rows = ledger.stack.between(turn.opened, _NEWEST, notes.MOST_ASKED)
    return [row for row in reversed(rows) if session.number in row.running]


def _touched(ledger: "Ledger", rows: "list[RestoreRow]", call: Call) -> "list[RestoreRow]":
    """Restores, if a call may write a path that they changed."""
    changed = {path for row in rows for path, _ in notes.files_of(ledger, row)}
    return rows if rows and call.may_touch(changed) else []


def _restores(ledger: "Ledger", ids: object) -> "list[RestoreRow]":
    """The restores of some ids, as an event has them."""
    found = map(ledger.stack.find, map(str, ids) if isinstance(ids, list) else ())
    return [row for row in found if row is not None]


def _facts(
    ledger: "Ledger", session: "SessionRow", rows: "list[RestoreRow]", subagent: str
) -> "list[NewEvent]":
    """That a session, or a sub-agent of it, was refused a call because of restores, and told so."""
    found = [
        NewEvent(
            events.SESSION_TOLD,
            {"session": session.id, "restore": row.id, "refused": True, "subagent": subagent},
            time.time_ns(),
            parents=(row.event,),
            request=requests.refused_for(session.id, subagent, row.id),
        )
        for row in rows
    ]
    if not subagent:
        untold = [row for row in rows if not notes.is_told(ledger, session, row.id)]
        found += notes.told_facts(session, untold, None)
    return found
