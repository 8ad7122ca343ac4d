"""`takeback uninstall AGENT`: take out of an agent's settings what `install` put in."""

import os

from takeback import environment
from takeback.cli.commands import install
from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen, safe_line
from takeback.errors import TakebackError
from takeback.hooks import install as steps
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.agents.agent import Agent
    from takeback.hooks.install import Removal
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "uninstall",
    "remove Takeback from an agent's settings",
    text=(
        "If the settings did not change since, they become what they were, to the byte. If they\n"
        "did, Takeback removes only its own hooks. Checkpoints and the log stay, and recorded\n"
        "turns can still be taken back."
    ),
    operands=(install.OPERAND,),
    options=install.OPTIONS,
    examples=(
        ("takeback uninstall claude-code", "out of your own settings"),
        ("takeback uninstall codex --project", "out of those of this project"),
    ),
    group=AGENTS,
    warning="changes the agent's settings",
)


def run(given: "Arguments", screen: "Screen") -> int:
    agent, scope = install.chosen(given)
    home = environment.default_home()
    path = install.path_of(agent, scope, given)
    made = steps.removal(path, home)
    shared = install.shared_removal(agent, scope, path, home)
    is_trial = given.has("dry-run")
    if not is_trial:
        steps.uninstall(made, home)
        if shared is not None:
            steps.uninstall(shared, home)
    if shared is not None and not made.changes:
        made = shared
    if screen.json:
        screen.data(_as_json(agent, scope, made, is_trial=is_trial))
    elif not made.changes:
        screen.say(f"Takeback is not in {safe_line(made.file.shown)}; nothing to remove.")
        for file, words in _elsewhere(agent, made, home):
            screen.note(f"it is in {safe_line(file)}: `{safe_line(words)}` removes it")
    elif is_trial:
        install.show_diff(made.file, made.data, screen)
        screen.note("nothing was written; the same command without --dry-run writes this")
    else:
        _tell(agent, scope, made, screen)
    return 0


def _elsewhere(agent: "Agent", made: "Removal", home: bytes) -> "Iterator[tuple[str, str]]":
    """Other settings of the agent that `install` put hooks in, and the command for each."""
    import shlex

    for receipt in steps.read(home).values():
        if receipt.agent != agent.name or receipt.file == made.file.shown:
            continue
        try:
            is_there = steps.removal(os.fsencode(receipt.file), home).changes
        except TakebackError:
            continue  # the doctor tells of files that cannot be read
        words = install.opposite("uninstall", agent, receipt.scope)
        if receipt.scope == steps.PROJECT:
            root = os.path.dirname(receipt.file).removesuffix(f"/{agent.folder}")
            words += f" -C {shlex.quote(root)}"
        if is_there:
            yield receipt.file, words


def _as_json(agent: "Agent", scope: str, made: "Removal", *, is_trial: bool) -> "dict[str, Json]":
    has_backup = made.backup and os.path.exists(made.backup)
    return {
        "agent": agent.name,
        "scope": scope,
        "file": made.file.shown,
        "changed": made.changes and not is_trial,
        "events": list(dict.fromkeys(made.events)),
        "as_before": made.is_exact,
        "backup": os.fsdecode(made.backup) if has_backup else None,
        "diff": install.diff(made.file, made.data) if made.changes else [],
        "inverse": install.opposite("install", agent, scope),
    }


def _tell(agent: "Agent", scope: str, made: "Removal", screen: "Screen") -> None:
    shown = safe_line(made.file.shown)
    screen.say(f"{screen.style(agent.title, 'bold')} no longer calls Takeback.")
    if made.data is None:
        screen.say(f"  removed {shown}, which Takeback had created")
    elif made.is_exact:
        screen.say(f"  {shown} is as it was before")
    else:
        hooks = count(len(made.events), "hook")
        screen.say(f"  removed {hooks} from {shown}; the rest is unchanged")
        if made.backup:
            screen.note(f"the backup from before the install is kept: {os.fsdecode(made.backup)}")
    screen.note("open sessions may call it until they end")
    screen.note(f"`{install.opposite('install', agent, scope)}` installs it again")
