"""`takeback pause`: refuse the calls of agents until `takeback resume`."""

import os

from takeback.agents import refusals
from takeback.cli.app import find_project, open_project
from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen, safe_line
from takeback.errors import UnknownReferenceError
from takeback.ledger.journal import ALL_SESSIONS
from takeback.model.reasons import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.history import RecordedSession
    from takeback.model.text.json_text import Json
    from takeback.project import Project

COMMAND = Command(
    "pause",
    "refuse the calls of agents until `resume`",
    text=(
        'Each tool call is refused with "paused by the user" before it runs: of one session, or\n'
        "without SESSION of all agents in this project, also of those that start later. A command\n"
        "that runs already is not stopped. Prompts still reach the agent. The pause lasts until\n"
        "`takeback resume`. Calls that only read go on where the agent does not report them."
    ),
    operands=("[SESSION]",),
    examples=(
        ("takeback pause", "stop all agents here before their next call"),
        ("takeback pause mvkr", "only this session"),
        ("takeback resume", "let all of them go on"),
    ),
    group=AGENTS,
    inverse="resume",
    warning="stops agents before their next call",
)


def run(given: "Arguments", screen: "Screen") -> int:
    session = given.operands[0] if given.operands else None
    with _project(session, given, screen) as project:
        is_new = project.recorder().pause(session)
        found = paused(project)
        where = safe_line(os.fsdecode(project.root))
        if screen.json:
            screen.data(as_json(project, changed=is_new))
            return 0
    already = "" if is_new else " already"
    if session is None:
        screen.say(f"All agents in {where} are{already} paused: their calls are refused.")
    else:
        screen.say(f"Session {safe_line(session)} is{already} paused: its calls are refused.")
    for each in found:
        if each.now is not None and not refusals.can_pause(each.agent):
            agent = safe_line(each.agent)
            screen.note(f"{agent} (session {each.id[:8]}) cannot refuse calls: it goes on")
    named = f" {safe_line(session)}" if session is not None else ""
    screen.note(f"`takeback resume{named}` lets {'it' if session else 'them'} go on")
    return 0


def _project(session: "str | None", given: "Arguments", screen: "Screen") -> "Project":
    """The project; where there is none yet, no session can be named."""
    if session is not None:
        found = find_project(given, screen)
        if found is None:
            raise UnknownReferenceError(f"no session matches `{session}`", hint=Action("sessions"))
        return found
    return open_project(given, screen)


def paused(project: "Project") -> "list[RecordedSession]":
    """The sessions that have not ended and are paused."""
    every = project.sessions(all=True)
    return [each for each in every if each.paused is not None and each.ended is None]


def as_json(project: "Project", *, changed: bool) -> "dict[str, Json]":
    """Who is paused now."""
    everyone = project.workspace.ledger.sessions.paused()
    return {
        "project": project.id,
        "changed": changed,
        "all_paused": ALL_SESSIONS in everyone,
        "paused": [each.id for each in paused(project)],
    }
