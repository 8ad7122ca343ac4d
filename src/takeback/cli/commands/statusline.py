"""`takeback statusline`: one short line for agents that show one."""

import contextlib
import os
import sys

from takeback.cli import screen as layout
from takeback.cli.app import folder
from takeback.cli.parser import BEYOND, Arguments, Command
from takeback.model.text import json_text
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen
    from takeback.project import Project

COMMAND = Command(
    "statusline",
    "print one line about a session, for agents",
    text=(
        "Prints how many turns can be undone, and which one `takeback undo` takes back. An agent\n"
        "may pass JSON on stdin; `session_id`, `cwd` and `workspace` in it are used. It does not\n"
        "look at the files, and never fails: where there is no history, it prints nothing."
    ),
    examples=(("takeback statusline", "set it as `statusLine` in the settings of Claude Code"),),
    group=BEYOND,
)
_MOST_READ = 1 << 20
_LONGEST = 40


def run(given: "Arguments", screen: "Screen") -> int:
    with contextlib.suppress(Exception):  # no line is better than one that is in the way
        _show(given, screen)
    return 0


def _show(given: "Arguments", screen: "Screen") -> None:
    from takeback import environment
    from takeback.project import Project

    said = _said()
    place = folder(given) if given.get("C") else os.fsencode(_place(said))
    found = Project.find(place, home=environment.default_home())
    if found is not None:
        with found as project:
            screen.say(_line(project, _session(project, said), screen))


def _said() -> "dict[str, object]":
    """What the agent says on stdin; nothing, if a person calls this or it is no JSON."""
    if sys.stdin.isatty():
        return {}
    said = None
    with contextlib.suppress(Exception):  # whatever is wrong with it
        said = json_text.loads(os.read(0, _MOST_READ).decode("utf-8", "replace"))
    return said if isinstance(said, dict) else {}


def _place(said: "dict[str, object]") -> str:
    workspace = said.get("workspace")
    named = workspace.get("project_dir") if isinstance(workspace, dict) else None
    place = named or said.get("cwd")
    return place if isinstance(place, str) and "\0" not in place and place else "."


def _session(project: "Project", said: "dict[str, object]") -> "str | None":
    """The session that the agent names, if it was recorded."""
    own_id = said.get("session_id")
    found = (each.id for each in project.sessions() if own_id and each.own_id == own_id)
    return next(found, None)


def _line(project: "Project", session: "str | None", screen: "Screen") -> str:
    title, turns = project.undoable(session)
    if title is None:
        return "tb  no turns"
    label = layout.cut(screen.title(title), _LONGEST, layout.marks(screen).cut)
    return f'tb  {count(turns, "turn")}  undo: "{label}"'
