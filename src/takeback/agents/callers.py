"""Which session a call of a tool of ours is from: our own hook reported that call just before.

A server for tools is told nothing about who calls. The hook of the same call is, so there is one
step that runs with this tool and this input. None, or several, is no answer.
"""

from takeback.model import tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ledger.ledger import Ledger

_OURS = "takeback"


def find_caller(ledger: "Ledger", tool: str, summary: str = "") -> str:
    """The id of the session that calls a tool of ours now; empty if that is not certain.

    `summary` is what the log has of the input, if it takes part in the answer.
    """
    said = tools.one_line(summary)
    found = [
        session
        for session, name, has in ledger.steps.open_calls(_OURS)
        if tools.our_tool(name) == tool and (not said or has == said)
    ]
    return found[0] if len(found) == 1 else ""


def find_turn(ledger: "Ledger", tool: str) -> "str | None":
    """The running turn of the session that calls a tool of ours now, if that is certain."""
    caller = find_caller(ledger, tool)
    row = ledger.sessions.find_by_id(caller) if caller else None
    running = ledger.turns.running(row.number) if row is not None else []
    return running[-1].id if running else None
