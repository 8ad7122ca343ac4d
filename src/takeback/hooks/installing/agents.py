"""Which events of which agent we hear, and where its settings are.

Time limits are those of a bad day. A hook that is cut off leaves its turn uncovered, and what it
had begun is taken up by the next one; whoever waits can always press Esc.
"""

from takeback.hooks.dialects import claude_code, codex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# A project that nobody has made a checkpoint of is read whole before the first prompt goes on.
_FIRST_LOOK = 300
_LOOK = 60
# Agents end soon after they told it. Codex grants no more than three seconds.
_START, _END, _END_OF_CODEX = 10, 10, 3

_TELLS = "UserPromptSubmit"
"""The event at which the user hears if Takeback is gone: once for each prompt."""
_OF_TOOLS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure")

READERS = (
    "Read", "Glob", "Grep", "LS", "NotebookRead", "LSP", "ToolSearch", "WebFetch", "WebSearch",
    "TodoRead", "TodoWrite", "AskUserQuestion", "ExitPlanMode", "BashOutput", "TaskOutput",
    "ListMcpResourcesTool", "ReadMcpResourceTool",
)  # fmt: skip
"""Tools of Claude Code that change no file. Those that nobody knows, and those of servers, may."""


class Agent:
    """An agent that hooks can be installed for.

    `folder` is where its settings are, in the user's home or in a project; `variable` names
    another place for the user's. `matcher` is for the events of tools; without one, all tools
    count. `kinds` are the events, `ends` the seconds that the last one may take.
    """

    __slots__ = ("ends", "file", "folder", "kinds", "matcher", "name", "title", "variable")

    def __init__(
        self,
        name: str,
        title: str,
        *,
        folder: str,
        file: str,
        variable: str,
        kinds: "tuple[str, ...]",
        matcher: str = "",
        ends: int = _END,
    ) -> None:
        self.name = name
        self.title = title
        self.folder = folder
        self.file = file
        self.variable = variable
        self.kinds = kinds
        self.matcher = matcher
        self.ends = ends

    def groups(
        self, command: str, telling: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, dict[str, Any]]":
        """What has to be in the settings, event by event; by default for all of them."""
        limits = {_TELLS: _FIRST_LOOK, "SessionStart": _START, "SessionEnd": self.ends}
        return {
            event: {
                **({"matcher": self.matcher} if self.matcher and event in _OF_TOOLS else {}),
                "hooks": [
                    {
                        "type": "command",
                        "command": telling if event == _TELLS else command,
                        "timeout": limits.get(event, _LOOK),
                    }
                ],
            }
            for event in (self.kinds if events is None else events)
        }


CLAUDE_CODE = Agent(
    claude_code.AGENT,
    "Claude Code",
    folder=".claude",
    file="settings.json",
    variable="CLAUDE_CONFIG_DIR",
    kinds=tuple(claude_code.KINDS),
    # A regular expression of JavaScript: whatever is called otherwise.
    matcher=f"^(?!(?:{'|'.join(READERS)})$)",
)
CODEX = Agent(
    codex.AGENT,
    "Codex",
    folder=".codex",
    file="hooks.json",
    variable="CODEX_HOME",
    kinds=tuple(codex.KINDS),
    ends=_END_OF_CODEX,
    # Its regular expressions cannot say "not", and hardly any tool of it only reads.
)
AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX)}


def switched_off(agent: Agent, text: str) -> "list[str]":
    """What in an agent's settings keeps it from running hooks, a sentence each."""
    from takeback.hooks.installing import jsonspans

    root = jsonspans.parse(text)
    if agent is not CLAUDE_CODE or root is None or root.kind != jsonspans.OBJECT:
        return []
    said = root.get("disableAllHooks")
    if said is None or jsonspans.decoded(text, said) is not True:
        return []
    return ["`disableAllHooks` is set in these settings: Claude Code runs no hook while it is"]
