"""What an agent is told once after something was taken back, put back or rolled back.

A restore is told to each session that had begun before it: its own turns went, or files changed
under it. Who did it itself knows. What was taken back and put back before it was told is not told:
the net effect is. That it was told is in the log, so several hooks at once tell it
once. The hook makes the sentences.

A session in the middle of a turn would hear it after its next command has overwritten the files
again; what is done about that is in `refusals`.
"""

import time

from takeback.agents import requests
from takeback.capture.safe_points import asks_itself
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import words as terms
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.disk.lock import Held
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.beyond.losses import Loss

MOST_ASKED = 50
_MOST_TOLD = 4


class ToldRestore(Value):
    """A restore as an agent is told of it.

    `turns` counts what it was about, none if that was a rollback; `label` is the prompt of the
    newest. `is_before` the point at which a copy of the conversation goes on: its prompts are gone.
    `goal` is what a rollback went back to, if that was a turn: its side and its prompt. `losses`
    were not covered, so they did not come back.
    `changed_git`: its turns changed git, too, which stays as it is. `left_some`: it skipped hunks
    in conflict, which stay as they are.
    """

    verb: str
    is_partial: bool
    is_before: bool
    is_own: bool
    turns: int
    label: str
    goal: "tuple[str, str] | None"
    because: str
    files: "tuple[tuple[bytes, str], ...]"
    losses: "tuple[Loss, ...]" = ()
    changed_git: bool = False
    left_some: bool = False
    id: str = ""


class Note(Value):
    """What a session is told: that it `is_copy`, and restores; `earlier` ones are only counted."""

    is_copy: bool
    earlier: int
    restores: "tuple[ToldRestore, ...]"


class _Copy(Value):
    """Where a conversation comes from that is a trimmed copy of another."""

    event: int
    session: str
    restore: str


def pending(ledger: "Ledger", held: "Callable[[], Held]", session: str) -> "Note | None":
    """What a session has to be told, recorded as told with this; None if nothing."""
    found = ledger.sessions.find_by_id(session)
    if found is None:
        return None
    copy = _copied(ledger, found)
    waiting = _waiting(ledger, found, copy)
    if not waiting and not _begins_anew(ledger, found, copy):
        return None
    with held():
        waiting = [row for row in waiting if not is_told(ledger, found, row.id)]
        is_new = _begins_anew(ledger, found, copy)
        ledger.record(*told_facts(found, waiting, copy if is_new else None))
    waiting = net(waiting)
    if not waiting and not is_new:
        return None
    return note_of(ledger, found, waiting, copy, is_new=is_new)


def _copied(ledger: "Ledger", session: "SessionRow") -> "_Copy | None":
    if not session.own_id:
        return None
    known = ledger.requested(requests.copied(session.agent, session.own_id))
    if known is None or not known.payload:
        return None
    said = known.payload
    return _Copy(known.seq, str(said.get("session") or ""), str(said.get("restore") or ""))


def _begins_anew(ledger: "Ledger", session: "SessionRow", copy: "_Copy | None") -> bool:
    """Whether a copy has not been told yet that it is one."""
    return copy is not None and not is_told(ledger, session, "copy")


def is_told(ledger: "Ledger", session: "SessionRow", restore: str) -> bool:
    return ledger.requested(requests.told(session.id, restore)) is not None


def told_facts(
    session: "SessionRow", waiting: "list[RestoreRow]", copy: "_Copy | None"
) -> "list[NewEvent]":
    """That all this was told; some only as a number, or as a part of the net effect."""
    now = time.time_ns()
    said = {row.id for row in net(waiting)[-_MOST_TOLD:]} | {"copy"}
    about = [(row.id, row.event) for row in waiting]
    about += [("copy", copy.event)] if copy is not None else []
    return [
        NewEvent(
            events.SESSION_TOLD,
            {
                "session": session.id,
                "restore": id if id != "copy" else "",
                **({} if id in said else {"unsaid": True}),
            },
            now,
            parents=(event,),
            request=requests.told(session.id, id),
        )
        for id, event in about
    ]


# -- what there is to tell -----------------------------------------------------------------


def _waiting(ledger: "Ledger", session: "SessionRow", copy: "_Copy | None") -> "list[RestoreRow]":
    """The restores that a session was not told of yet, the oldest first."""
    found = _since(ledger, session, session, 1 << 62)
    origin = ledger.sessions.find_by_id(copy.session) if copy is not None else None
    if copy is not None and origin is not None:
        found += [
            row
            for row in _since(ledger, origin, session, session.opened)
            if row.event > copy.event
            or row.id == copy.restore
            or not is_told(ledger, origin, row.id)
        ]
    return sorted(found, key=lambda row: row.number)


def _since(
    ledger: "Ledger", session: "SessionRow", to: "SessionRow", last: int
) -> "list[RestoreRow]":
    """What concerns a session since it began, and was not told to one: itself, or its copy."""
    rows = ledger.stack.between(session.opened, last, MOST_ASKED)
    untold = (row for row in rows if not is_told(ledger, to, row.id))
    return [row for row in untold if _concerns(ledger, session, row)]


def net(waiting: "list[RestoreRow]") -> "list[RestoreRow]":
    """Without restores that a later one reversed whole, and without those that did."""
    left: list[RestoreRow] = []
    for row in waiting:
        known = next((each for each in reversed(left) if _reverses(row, each)), None)
        if known is not None:
            left.remove(known)
        else:
            left.append(row)
    return left


def _reverses(row: "RestoreRow", earlier: "RestoreRow") -> bool:
    """Whether a restore made as if another had never been; a redo that was told is not among them.

    Nobody is told of an undo and its redo, nor of a redo and the next undo of the same turns.
    """
    if row.partial or earlier.partial or row.turns != earlier.turns or row.verb == terms.ROLLBACK:
        return False
    if row.verb == terms.UNDO and earlier.verb == terms.REDO:
        return bool(row.turns) and not row.partly
    return row.entry == earlier.number


def _concerns(ledger: "Ledger", session: "SessionRow", row: "RestoreRow") -> bool:
    if not ledger.stack.is_about(row, session.number) and not files_of(ledger, row):
        return False
    return not did_it(ledger, session, row)


def did_it(ledger: "Ledger", session: "SessionRow", row: "RestoreRow") -> bool:
    """Whether a session made a restore itself: by a command of its own that ran meanwhile."""
    return asks_itself(ledger.steps.open_at(session.number, row.event))


def files_of(ledger: "Ledger", row: "RestoreRow") -> "list[tuple[bytes, str]]":
    """What a restore changed: path and verb."""
    rows = ledger.deltas.restored(row.after) if row.after != row.before else []
    inside = [
        (each.path, each.verb) for each in rows if each.verb not in (terms.MKDIR, terms.RMDIR)
    ]
    outside = sorted(each.path for each in ledger.outside.of_restore(row.number))
    return inside + [(path, terms.WRITE) for path in outside]


# -- as facts --------------------------------------------------------------------------------


def note_of(
    ledger: "Ledger",
    session: "SessionRow",
    waiting: "list[RestoreRow]",
    copy: "_Copy | None",
    *,
    is_new: bool,
) -> Note:
    shown = waiting[-_MOST_TOLD:]
    restores = tuple(_restore(ledger, session, row, copy) for row in shown)
    return Note(is_new, len(waiting) - len(shown), restores)


def _restore(
    ledger: "Ledger", session: "SessionRow", row: "RestoreRow", copy: "_Copy | None"
) -> ToldRestore:
    """One restore: what was done, why, and the files."""
    origin = ledger.sessions.find_by_id(copy.session) if copy is not None else None
    sessions = [each for each in (session, origin) if each is not None]
    side, _, id = row.goal.partition(" ")
    goal = ledger.turns.find(id) if row.verb == terms.ROLLBACK else None
    turn = ledger.turns.numbered(row.turn) if row.turn is not None else None
    return ToldRestore(
        verb=row.verb,
        is_partial=bool(row.partial),
        is_before=copy is not None and row.event < copy.event,
        is_own=any(ledger.stack.is_about(row, each.number) for each in sessions),
        turns=len(row.turns) if row.turn is not None else 0,
        label=turn.label if turn is not None else "",
        goal=(side, goal.label) if goal is not None else None,
        because=row.because,
        files=tuple(files_of(ledger, row)),
        losses=_losses(ledger, row),
        changed_git=row.verb == terms.UNDO and _changed_git(ledger, row),
        left_some=row.verb == terms.UNDO and bool(row.partly),
        id=row.id,
    )


def _losses(ledger: "Ledger", row: "RestoreRow") -> "tuple[Loss, ...]":
    """What a restore could not bring back."""
    if row.verb == terms.UNDO:
        found = ledger.losses.of_turns(row.turns)
    elif row.verb == terms.ROLLBACK:
        target = ledger.checkpoints.numbered(row.target or 0)
        found = ledger.losses.between(target.event, row.event) if target is not None else ()
    else:
        return ()
    return tuple(loss for loss in found if loss.is_grave)


def _changed_git(ledger: "Ledger", row: "RestoreRow") -> bool:
    turns = (ledger.turns.numbered(number) for number in row.turns)
    return any(ledger.git.has_moves(turn.opened, turn.closed) for turn in turns if turn is not None)
