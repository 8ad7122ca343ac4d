"""`takeback mcp`: the server that agents call; see `takeback.mcp`."""

import os

from takeback.cli.app import folder
from takeback.cli.parser import AGENTS, Arguments, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

COMMAND = Command(
    "mcp",
    "serve the history to an agent as tools",
    text=(
        "A server of the Model Context Protocol on stdin and stdout; an agent starts it, not you.\n"
        "It serves the project of the folder that it is started in, or of -C DIR. The agent can\n"
        "look at the history, make checkpoints, preview an undo, and take back its own changes.\n"
        "For anything else it gets a command for you. It needs `pip install 'takeback[mcp]'`."
    ),
    examples=(
        ("claude mcp add takeback -- takeback mcp", "let Claude Code start it"),
        ("codex mcp add takeback -- takeback mcp", "let Codex start it"),
    ),
    group=AGENTS,
)


def run(given: "Arguments", screen: "Screen") -> int:
    from takeback import environment
    from takeback.cli.text import agent_text
    from takeback.mcp import serve
    from takeback.mcp.door import Door

    del screen
    place = os.path.abspath(folder(given))
    door = Door(place, environment.default_home(), environment.user_home(), agent_text)
    serve.server(door)()
    return 0
