"""What `install` and `uninstall` have in common: which agent, and which of its settings."""

import os

from takeback import environment, opening
from takeback.agents import installable
from takeback.cli.app import folder
from takeback.cli.arguments import Option
from takeback.cli.render import safe_line
from takeback.errors import UsageError
from takeback.hooks.installing import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Agent
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen
    from takeback.hooks.installing.settingsfile import SettingsFile

OPERAND = "AGENT"
OPTIONS = (
    Option(("--user",), "in your own settings, for all projects (the default)"),
    Option(("--project",), "in the settings of this project only"),
    Option(("--dry-run",), "show what would be written, and write nothing"),
)


def chosen(given: "Arguments") -> "tuple[Agent, str]":
    """The agent and the scope that were asked for."""
    name, known = given.operands[0], installable()
    if name not in known:
        raise UsageError(
            f"`{name}` is not an agent that Takeback can be installed for",
            hint=f"known are: {', '.join(known)}; `takeback run -- COMMAND…` works for any",
        )
    if given.has("user") and given.has("project"):
        raise UsageError("either --user or --project, not both", hint="--user is the default")
    return known[name], steps.PROJECT if given.has("project") else steps.USER


def path_of(agent: "Agent", scope: str, given: "Arguments") -> bytes:
    """The settings file that is meant."""
    if scope == steps.PROJECT:
        root = opening.root_of(
            folder(given), home=environment.default_home(), user_home=environment.user_home()
        )
        return steps.settings_path(agent, os.path.join(root, agent.folder.encode()))
    place = folders()[agent.name]
    if not place:
        raise UsageError(
            f"there is no home folder, so it is not known where {agent.title} has its settings",
            hint=f"name the folder: {agent.variable}=DIR takeback install {agent.name}",
        )
    return steps.settings_path(agent, place)


def folders() -> "dict[str, bytes]":
    """Where each agent has the user's own settings; empty where that is not known."""
    return {
        agent.name: environment.settings_folder(agent.variable, agent.folder)
        for agent in installable().values()
    }


def events(agent: "Agent") -> "tuple[str, ...]":
    """The events that the agent which is installed here knows."""
    version = agent.find_version(folders()[agent.name], os.get_exec_path())
    return agent.known_events(version)


def opposite(verb: str, agent: "Agent", scope: str) -> str:
    """The command that takes back what a command did."""
    return f"takeback {verb} {agent.name}{' --project' if scope == steps.PROJECT else ''}"


def show_diff(file: "SettingsFile", data: "bytes | None", screen: "Screen") -> None:
    """What would change in a file, as a unified diff."""
    for line in diff(file, data):
        name = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        shown = safe_line(line)
        screen.say(screen.style(shown, name) if name else shown)


def diff(file: "SettingsFile", data: "bytes | None") -> "list[str]":
    """The lines of a unified diff; line ends are not shown, and one that is missing is told."""
    import difflib

    old, new = file.text, (data or b"").decode()
    before = "/dev/null" if file.data is None else file.shown
    after = "/dev/null" if data is None else file.shown
    made = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), before, after
    )
    lines = []
    for line in made:
        lines.append(line.rstrip("\r\n"))
        if not line.endswith(("\n", "\r")):
            lines.append("\\ No newline at end of file")
    return lines
