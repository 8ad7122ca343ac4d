"""`takeback sessions`: the conversations of agents in a project."""

import time

from takeback.cli import screen as layout
from takeback.cli.app import get_project
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_content, timestamp
from takeback.cli.text import turn_text
from takeback.cli.text.restores.plan_text import running_json
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.history import RecordedSession, RunningSession
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

_USUAL = 20
_AGENT = 12
_TITLE = 16
"""With fewer columns left for its title, a session gets a second line."""

COMMAND = Command(
    "sessions",
    "list the conversations of agents",
    text=(
        "One line per session, the last active first: its id, the agent, its title or last\n"
        "prompt, how many turns, when it was last active, and whether it works now. An agent is\n"
        "running in the middle of a turn while its process is alive; where Takeback cannot tell,\n"
        "it is silent since its last event. A second line says since when it works, on which\n"
        "prompt, and which tool runs."
    ),
    options=(Option(("--all",), f"all of them, not only {_USUAL}"), SHOW_SECRETS),
    examples=(
        ("takeback sessions", "list the last sessions"),
        ("takeback log --session mvkr", "what one of them did"),
        ("takeback pause mvkr", "stop one of them before its next call"),
    ),
    group=LOOK,
)


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        found = project.sessions(_USUAL + 1, all=given.has("all"))
    shown = found if given.has("all") else found[:_USUAL]
    if screen.json:
        screen.data({"sessions": [as_json(session, screen.masker) for session in shown]})
        return 0
    _show(shown, screen, time.time())
    if len(found) > len(shown):
        screen.note("`takeback sessions --all` shows more")
    elif shown:
        screen.note(f"`takeback log --session {shown[0].id[:8]}` shows what one of them did")
    return 0


def as_json(session: "RecordedSession", masker: "Masker") -> "dict[str, Json]":
    return {
        "id": session.id,
        "agent": session.agent,
        "own_id": session.own_id,
        "title": masker.words(session.title),
        "label": masker.words(session.label),
        "account": session.author,
        "started": timestamp(session.started),
        "seen": timestamp(session.seen),
        "ended": timestamp(session.ended) if session.ended is not None else None,
        "turns": session.turns,
        "status": status(session),
        "paused": timestamp(session.paused) if session.paused is not None else None,
        "now": running_json(session.now, masker) if session.now is not None else None,
    }


def status(session: "RecordedSession") -> str:
    """Whether it works now. One whose process went away without a word was interrupted."""
    if session.ended is not None:
        return "ended"
    if session.running or session.is_gone:
        return "running" if session.running else "interrupted"
    return "idle" if session.now is None else "silent"


def _state(session: "RecordedSession", now: float) -> str:
    state = status(session)
    if session.now is not None and not session.running:
        since = turn_text.clock(session.seen, now)
        gone = "interrupted, " if state == "interrupted" else ""
        state = f"{gone}silent since {since}"
    return f"{state}, paused" if session.paused is not None and session.ended is None else state


def _show(found: "tuple[RecordedSession, ...]", screen: "Screen", now: float) -> None:
    if not found:
        screen.say("No sessions yet.")
        screen.note("`takeback run -- COMMAND` records a command in one")
        return
    marks, room = layout.marks(screen), layout.width(screen)
    rows = [
        (
            session.id,
            layout.cut(safe_content(session.agent.encode()), _AGENT, marks.cut),
            screen.title(session.title or session.label),
            count(session.turns, "turn"),
            turn_text.age(session.seen, now),
            _state(session, now),
        )
        for session in found
    ]
    widths = [max(layout.columns(row[at]) for row in rows) for at in range(6)]
    widths[0] = 8
    others = sum(widths) - widths[2]
    title = min(widths[2], room - others - 10)
    for session, (id, agent, called, turns, seen, state) in zip(found, rows, strict=True):
        left = f"{screen.id(id[:8], of=id)}  {layout.pad(agent, widths[1])}"
        right = f"{turns:>{widths[3]}}  {seen:>{widths[4]}}  {state}"
        if title < min(widths[2], _TITLE):
            screen.say(f"{left}  {right}")
            if session.now is None or session.title:
                screen.say(f"          {layout.cut(called, room - 10, marks.cut)}".rstrip())
        else:
            screen.say(
                f"{left}  {layout.pad(layout.cut(called, title, marks.cut), title)}  {right}"
            )
        if session.now is not None:
            line = _doing(session.now, screen, now, room - 10)
            screen.say(screen.style(f"          {line}", "dim"))


def _doing(running: "RunningSession", screen: "Screen", now: float, room: int) -> str:
    """What an agent does: since when, for which prompt, with which tool."""
    mark, age = layout.marks(screen).cut, turn_text.age(running.since, now)
    tool, label = safe_content(running.tool.encode()), screen.title(running.label)
    doing = f"{tool} {screen.title(running.doing)}".rstrip() if tool else ""
    left = room - layout.columns(age) - len(' on ""')
    if doing:
        least = min(layout.columns(label), left // 2)
        doing = f": {layout.cut(doing, left - least - 2, mark)}"
    label = layout.cut(label, left - layout.columns(doing), mark)
    return f'{age} on "{label}"{doing}'
