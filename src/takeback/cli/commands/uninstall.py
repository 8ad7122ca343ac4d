"""`takeback uninstall [AGENT…]`: take out of an agent's settings what `install` put in."""

import os

from takeback import environment
from takeback.agents.registry import installable
from takeback.cli.commands import install
from takeback.cli.parser import AGENTS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.errors import TakebackError, UsageError
from takeback.hooks import install as steps
from takeback.hooks.settings import receipts
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.agents.agent import Agent
    from takeback.hooks.install import Removal
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "uninstall",
    "remove Takeback from agents' settings",
    text=(
        "If the settings did not change since, they become what they were, to the byte. If they\n"
        "did, Takeback removes only its own hooks. Checkpoints and the log stay, and recorded\n"
        "turns can still be taken back."
    ),
    operands=(install.OPERAND,),
    options=(Option(("--all",), "from the settings of all agents"), *install.OPTIONS),
    examples=(
        ("takeback uninstall claude-code", "out of your own settings"),
        ("takeback uninstall codex --project", "out of those of this project"),
        ("takeback uninstall --all", "out of your own settings of all agents"),
    ),
    group=AGENTS,
    warning="changes the agent's settings",
)


def run(given: "Arguments", screen: "Screen") -> int:
    scope, agents = install.scope_of(given), install.named(given)
    if len(agents) == 1:
        answer = _uninstall(agents[0], scope, given, screen)
        if screen.json:
            screen.data(answer)
        return 0
    agents = agents or [agent for agent in installable().values() if _is_there(agent, scope, given)]
    if not given.operands and not given.has("all"):
        raise UsageError("`uninstall` needs AGENT, or --all", hint=_meant(agents, scope))
    if not agents and not screen.json:
        screen.say("No agent calls Takeback; nothing to remove.")
    return install.Tally(screen).each(agents, lambda agent: _uninstall(agent, scope, given, screen))


def _meant(agents: "list[Agent]", scope: str) -> str:
    if not agents:
        return "no agent calls Takeback"
    return ", ".join(f"`{install.opposite('uninstall', agent, scope)}`" for agent in agents)


def _is_there(agent: "Agent", scope: str, given: "Arguments") -> bool:
    """Whether the settings have hooks of ours, or had some and cannot be read now."""
    if scope == steps.PROJECT and agent.project_folder is None:
        return False
    home = environment.default_home()
    path = install.path_of(agent, scope, given)
    try:
        shared = install.shared_removal(agent, scope, path, home)
        return shared is not None or _changes(steps.removals(agent, path, home))
    except TakebackError:
        return os.fsdecode(path) in receipts.read(home)


def _uninstall(
    agent: "Agent", scope: str, given: "Arguments", screen: "Screen"
) -> "dict[str, Json]":
    home = environment.default_home()
    path = install.path_of(agent, scope, given)
    made = steps.removals(agent, path, home)
    shared = install.shared_removal(agent, scope, path, home)
    is_trial = given.has("dry-run")
    if not is_trial:
        steps.uninstall([*made, shared] if shared is not None else made, home)
    if shared is not None and not _changes(made):
        made = [shared]
    if screen.json:
        pass
    elif not _changes(made):
        screen.say(f"Takeback is not in {safe_line(os.fsdecode(path))}; nothing to remove.")
        for file, words in _elsewhere(agent, made, home):
            screen.note(f"it is in {safe_line(file)}: `{safe_line(words)}` removes it")
    elif is_trial:
        for each in (one for one in made if one.changes):
            install.show_diff(each.file, each.data, screen)
        screen.note("nothing was written; the same command without --dry-run writes this")
    else:
        _tell(agent, made, screen)
        if len(given.operands) == 1:
            screen.note("open sessions may call it until they end")
            screen.note(f"`{install.opposite('install', agent, scope)}` installs it again")
    return _as_json(agent, scope, made, is_trial=is_trial)


def _changes(made: "list[Removal]") -> bool:
    return any(each.changes for each in made)


def _elsewhere(agent: "Agent", made: "list[Removal]", home: bytes) -> "Iterator[tuple[str, str]]":
    """Other settings of the agent that `install` put hooks in, and the command for each."""
    import shlex

    shown = {each.file.shown for each in made}
    for receipt in receipts.read(home).values():
        path = os.fsencode(receipt.file)
        if receipt.agent != agent.name or receipt.file in shown:
            continue
        try:
            found = steps.removals(agent, path, home)
        except TakebackError:
            continue  # the doctor tells of files that cannot be read
        words = install.opposite("uninstall", agent, receipt.scope)
        if receipt.scope == steps.PROJECT:
            inside = f"/{agent.project_folder or agent.folder}/"
            words += f" -C {shlex.quote(receipt.file.rpartition(inside)[0])}"
        shown.update(each.file.shown for each in found)
        if _changes(found):
            yield receipt.file, words


def _as_json(
    agent: "Agent", scope: str, made: "list[Removal]", *, is_trial: bool
) -> "dict[str, Json]":
    kept = [each.backup for each in made if each.backup and os.path.exists(each.backup)]
    files = [each.file.shown for each in made]
    return {
        "agent": agent.name,
        "scope": scope,
        "file": files[0],
        "files": files,
        "changed": _changes(made) and not is_trial,
        "events": list(dict.fromkeys(event for each in made for event in each.events)),
        "as_before": all(each.is_exact for each in made),
        "backup": os.fsdecode(kept[0]) if kept else None,
        "diff": [
            line for each in made if each.changes for line in install.diff(each.file, each.data)
        ],
        "inverse": install.opposite("install", agent, scope),
    }


def _tell(agent: "Agent", made: "list[Removal]", screen: "Screen") -> None:
    screen.say(f"{screen.style(agent.title, 'bold')} no longer calls Takeback.")
    for each in made:
        if each.changes:
            _tell_file(each, screen)


def _tell_file(made: "Removal", screen: "Screen") -> None:
    shown, backup = safe_line(made.file.shown), safe_line(os.fsdecode(made.backup))
    if made.data is None:
        screen.say(f"  removed {shown}, which Takeback had created")
    elif made.is_exact:
        screen.say(f"  {shown} is as it was before")
    else:
        hooks = count(len(made.events), "hook")
        screen.say(f"  removed {hooks} from {shown}; the rest is unchanged")
    if made.is_kept:
        screen.note(f"you changed that file since; a copy is kept: {backup}")
    elif made.data is not None and not made.is_exact and os.path.exists(made.backup):
        screen.note(f"the backup from before the install is kept: {backup}")
