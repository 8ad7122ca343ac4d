"""Turns that were interrupted inside an agent, which tells nobody: its conversation has it.

Until such a turn is closed, its last command seems to run, and what the user does by hand would
count as done by it. So whoever comes next closes it where it was interrupted: a command of the
user, another agent, the end of the session. The next prompt of the session does so by itself.
"""

from takeback.model import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.project import Project

_RUNNING = (
    "SELECT t.id, t.opened, t.started, z.agent, z.own_id FROM turns t"
    " JOIN sessions z ON z.number = t.session"
    " WHERE t.closed IS NULL AND z.id <> ? ORDER BY t.number"
)
_WAITING = (
    "SELECT s.id FROM steps s JOIN turns t ON t.number = s.turn JOIN sessions z"
    " ON z.number = t.session WHERE s.closed IS NULL AND s.status = ? AND "
)
_SECOND = 1_000_000_000


def settle(project: "Project", but: str = "") -> None:
    """Close the turns that were interrupted, except in one session."""
    running = project.ledger.rows(_RUNNING, (but,))
    found = [(row[0], _interrupted(project, *row)) for row in running]
    for id, interruption in found:
        if interruption is not None:
            _close(project, id, *interruption)


def refuse_waiting(project: "Project", where: str, *given: str) -> None:
    """Let the steps of which nobody knows whether they began be such that never did."""
    for (step,) in project.ledger.rows(_WAITING + where, (terms.WAITING, *given)):
        project.recorder().refuse_step(step)


def _interrupted(
    project: "Project", id: str, opened: int, started: int, agent: str, session: str
) -> "tuple[float, bool] | None":
    """When a turn was interrupted, and whether a tool ran then; None if it was not."""
    from takeback.hooks import conversations
    from takeback.hooks.rewinds import conversation_of

    known = conversations.of(agent)
    transcript, prompt = conversation_of(project.ledger, opened) if known is not None else ("", "")
    over = known.interrupted_at(transcript, "") if known is not None and transcript else None
    if known is None or over is None:
        return None
    # Before the agent writes down a prompt, its conversation ends with what came before.
    of = known.interrupted_prompt(transcript) if prompt else ""
    if of and of != prompt:
        is_own = _goes_on_in(project, agent, session, of) == id
    else:
        is_own = bool(of) or over * _SECOND > started
    return (over, known.was_at_work(transcript, "")) if is_own else None


def _goes_on_in(project: "Project", agent: str, session: str, prompt: str) -> str:
    """The turn that went on with a prompt which no human wrote; empty if none did."""
    from takeback.hooks.witness import resumed_by

    event = project.ledger.requested(resumed_by(agent, session, prompt))
    return str((event.payload or {}).get("turn", "")) if event is not None else ""


def _close(project: "Project", id: str, over: float, was_at_work: bool) -> None:
    from takeback.errors import TakebackError
    from takeback.session import Turn

    try:
        if not was_at_work:
            refuse_waiting(project, "t.id = ? AND NOT s.background", id)
        Turn(project.notes(project.recorder()), id).end(terms.INTERRUPTED, ended_at=over)
    except TakebackError:
        return  # whoever wants to know the project has to do without, or fails for the same reason
