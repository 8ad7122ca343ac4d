"""`takeback install AGENT`: let an agent call Takeback at each prompt and around each tool."""

import os
import sys

from takeback import environment
from takeback.agents import installable
from takeback.cli import agents
from takeback.cli.app import folder
from takeback.cli.arguments import Command
from takeback.cli.projects import find, opened
from takeback.cli.render import safe_line
from takeback.errors import TakebackError
from takeback.model.counting import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen
    from takeback.hooks.installing.canary import TrialResult
    from takeback.hooks.installing.steps import Installation
    from takeback.model.jsontext import Json

_PLACES = ", and in ".join(
    f"{agent.variable} or ~/{agent.folder}" for agent in installable().values()
)
COMMAND = Command(
    "install",
    "let an agent call Takeback, so that each of its prompts can be taken back",
    text=(
        f"AGENT is {' or '.join(installable())}.\n"
        "Its settings get one hook for each event that matters;\n"
        "everything else in them stays as it is, to the byte, and a copy is kept beside them.\n"
        "Before anything is written, the hooks are tried out in a throw-away project: a prompt, a\n"
        "change, its undo. In a project, the first checkpoint is made, so that the first prompt\n"
        "does not wait for it.\n"
        f"Settings are looked for in {_PLACES}."
    ),
    operands=(agents.OPERAND,),
    options=agents.OPTIONS,
    examples=(
        ("takeback install claude-code", "for all your projects"),
        ("takeback install codex --dry-run", "what would be written?"),
        ("takeback install claude-code --project", "for this project only"),
    ),
)

_MAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
_PLUGINS = os.path.join(os.path.dirname(_MAIN), "plugin")


def run(given: "Arguments", screen: "Screen") -> int:
    """Try it out, write it, make the first checkpoint, and tell."""
    from takeback.hooks.installing import canary, steps

    agent, scope = agents.chosen(given)
    python, main = _program()
    path = agents.path_of(agent, scope, given)
    events = agents.events(agent)
    made = steps.installation(agent, scope, path, python=python, main=main, events=events)
    if given.has("dry-run"):
        return _show(made, screen)
    screen.progress("trying the hooks out", 0, 0)
    trial = canary.try_hooks(agent, made.commands, dict(os.environ))
    backup = steps.install(made, environment.default_home())
    checkpoint = _first_checkpoint(given, screen, is_meant=scope == steps.PROJECT)
    if screen.json:
        screen.data(_as_json(made, backup=backup, trial=trial, checkpoint=checkpoint))
    else:
        _tell(made, screen, backup=backup, trial=trial, checkpoint=checkpoint)
    return 0


def _program() -> "tuple[str, str]":
    """The interpreter and the file that agents shall run."""
    from takeback.hooks.installing import command

    if not sys.executable:
        raise TakebackError("Python does not say where it is, so no agent can be told")
    main = command.lasting(_MAIN)
    return command.python_for(sys.executable, main), main


def _first_checkpoint(given: "Arguments", screen: "Screen", *, is_meant: bool) -> "str | None":
    """Make it if this is a project, or is to be one; a failure is told and harms nothing."""
    here = folder(given)
    try:
        if not is_meant:
            known = find(here, screen)
            if known is not None:
                known.close()
            elif not _is_in_repository(here):
                return None
        with opened(here, screen) as project:
            return project.checkpoint(progress=screen.progress).id
    except TakebackError as problem:
        screen.note(f"no first checkpoint was made here: {safe_line(str(problem))}")
        return None


def _is_in_repository(path: bytes) -> bool:
    from takeback.store import usergit

    top = usergit.top_of_repository(os.path.realpath(path))
    return top not in {None, b"/", os.path.realpath(environment.user_home())}


def _show(made: "Installation", screen: "Screen") -> int:
    """What would be written."""
    if screen.json:
        screen.data(_as_json(made, is_trial=True))
    elif made.changes:
        agents.show_diff(made.file, made.data, screen)
        screen.note("nothing was written; the same without --dry-run writes it")
    else:
        screen.say(f"{made.agent.title} calls Takeback already; nothing would be written.")
    return 0


def _as_json(
    made: "Installation",
    *,
    is_trial: bool = False,
    backup: "bytes | None" = None,
    trial: "TrialResult | None" = None,
    checkpoint: "str | None" = None,
) -> "dict[str, Json]":
    plugin = os.path.join(_PLUGINS, made.agent.name)
    times = {"events": trial.events, "milliseconds": trial.milliseconds} if trial else None
    return {
        "agent": made.agent.name,
        "scope": made.scope,
        "file": made.file.shown,
        "changed": made.changes and not is_trial,
        "events": list(made.commands),
        "command": made.command,
        "backup": os.fsdecode(backup) if backup is not None else None,
        "diff": agents.diff(made.file, made.data),
        "canary": times,
        "checkpoint": checkpoint,
        "plugin": plugin if os.path.isdir(plugin) else None,
        "inverse": agents.opposite("uninstall", made.agent, made.scope),
    }


def _tell(
    made: "Installation",
    screen: "Screen",
    *,
    backup: "bytes | None",
    trial: "TrialResult",
    checkpoint: "str | None",
) -> None:
    """What was done, what is left to do, and how to take it back."""
    from takeback.hooks.installing.command import paths

    title, events = made.agent.title, count(len(made.commands), "event")
    how = "now" if made.changes else "already"
    screen.say(f"{screen.style(title, 'bold')} {how} calls Takeback, at {events}.")
    rows = [("settings", safe_line(made.file.shown))]
    if backup is not None:
        rows.append(("backup", safe_line(os.fsdecode(backup))))
    rows.append(("events", ", ".join(made.commands)))
    python, main = paths(made.command)
    rows.append(("command", safe_line(f"{python} -I -S {main} hook")))
    times = f"{count(trial.events, 'event')}, {trial.milliseconds:.0f} ms each"
    rows.append(("tried out", f"prompt, change, diff, undo in a throw-away project: {times}"))
    if checkpoint is not None:
        rows.append(("checkpoint", checkpoint))
    screen.table(rows)
    for line in _remarks(made):
        screen.note(line)
    screen.note(f"`{agents.opposite('uninstall', made.agent, made.scope)}` takes exactly this out")


def _remarks(made: "Installation") -> "list[str]":
    from takeback.hooks.installing import steps

    lines = [f"sessions that are open already hear of it when {made.agent.title} starts again"]
    if made.agent.install_note:
        lines.append(made.agent.install_note)
    if made.scope == steps.PROJECT:
        lines.append(
            "these settings name paths of this machine; for others who get the file they do nothing"
        )
    left_out = [event for event in made.agent.kinds if event not in made.commands]
    if left_out:
        lines.append(
            f"your {made.agent.title} is too old for {', '.join(left_out)}, and they are left out;"
            "\nall can be taken back without them. Upgrade it and install again to have them"
        )
    lines += made.agent.settings_problems(made.file.text)
    return lines
