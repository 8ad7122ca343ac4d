"""Turns that were interrupted inside an agent, which tells nobody: its conversation has it.

Until such a turn is closed, its last command seems to run, and what the user does by hand would
count as done by it. So whoever comes next closes it where it was interrupted: a command of the
user, another agent, the end of the session. The next prompt of the session does so by itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.project import Project

_RUNNING = (
    "SELECT t.id, t.opened, t.started, z.agent FROM turns t JOIN sessions z ON z.number = t.session"
    " WHERE t.closed IS NULL AND z.id <> ? ORDER BY t.number"
)
_SECOND = 1_000_000_000


def settle(project: "Project", but: str = "") -> None:
    """Close the turns that were interrupted, except in one session."""
    running = project.ledger.rows(_RUNNING, (but,))
    found = [(id, _interrupted(project, opened, agent), at) for id, opened, at, agent in running]
    for id, over, started in found:
        # Before the agent writes down a prompt, its conversation ends with what came before.
        if over is not None and over * _SECOND > started:
            _close(project, id, over)


def _interrupted(project: "Project", opened: int, agent: str) -> "float | None":
    from takeback.hooks import conversations
    from takeback.hooks.rewinds import conversation_of

    known = conversations.of(agent)
    transcript = conversation_of(project.ledger, opened)[0] if known is not None else ""
    return known.interrupted_at(transcript, "") if known is not None and transcript else None


def _close(project: "Project", id: str, over: float) -> None:
    from takeback.errors import TakebackError
    from takeback.model import terms
    from takeback.session import Turn

    try:
        Turn(project.notes(project.recorder()), id).end(terms.INTERRUPTED, ended_at=over)
    except TakebackError:
        return  # whoever wants to know the project has to do without, or fails for the same reason
