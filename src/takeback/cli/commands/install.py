"""`takeback install AGENT`: let an agent call Takeback at each prompt and around each tool.

What `install` and `uninstall` have in common: which agent, and which of its settings.
"""

import os
import sys

from takeback import environment, location
from takeback.agents.registry import installable
from takeback.cli.app import find_project, folder, open_project
from takeback.cli.parser import AGENTS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_content, safe_line
from takeback.errors import RefusedError, TakebackError, UsageError
from takeback.hooks import install
from takeback.model.words import TRYING_HOOKS, count, either

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Agent
    from takeback.hooks.install import Installation, Removal
    from takeback.hooks.settings.settings_file import SettingsFile
    from takeback.hooks.trial import TrialResult
    from takeback.model.text.json_text import Json


OPERAND = "AGENT"
OPTIONS = (
    Option(("--user",), "in your own settings, for all projects (the default)"),
    Option(("--project",), "in your own settings for this project only"),
    Option(("--dry-run",), "show what would be written, and write nothing"),
)


def chosen(given: "Arguments") -> "tuple[Agent, str]":
    name, known = given.operands[0], installable()
    if name not in known:
        import difflib

        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        raise UsageError(
            f"`{name}` is not an agent that Takeback can be installed for",
            hint=f"did you mean `{close[0]}`?"
            if close
            else f"use one of {', '.join(known)}; `takeback run -- COMMAND…` works for any agent",
        )
    if given.has("user") and given.has("project"):
        raise UsageError(
            "`--user` and `--project` exclude each other", hint="--user is the default"
        )
    return known[name], install.PROJECT if given.has("project") else install.USER


def path_of(agent: "Agent", scope: str, given: "Arguments") -> bytes:
    if scope == install.PROJECT:
        if agent.project_folder is None:
            raise UsageError(
                f"{agent.title} has no settings of a project",
                hint=f"`takeback install {agent.name}` records it in all your projects",
            )
        root = location.root_of(
            folder(given), home=environment.default_home(), user_home=environment.user_home()
        )
        own = agent.project_folder or agent.folder
        return install.settings_path(agent, os.path.join(root, own.encode()), scope)
    place = folders()[agent.name]
    if not place:
        raise UsageError(
            f"there is no home folder, so Takeback cannot find the settings of {agent.title}",
            hint=f"name the folder: {agent.variable or 'HOME'}=DIR takeback install {agent.name}",
        )
    return install.settings_path(agent, place)


def shared_removal(agent: "Agent", scope: str, path: bytes, home: bytes) -> "Removal | None":
    """What takes hooks out of the shared settings beside one's own; None if none are there.

    Older versions put them there. A file that cannot be read is not ours to judge here.
    """
    if scope != install.PROJECT or not agent.local_file:
        return None
    try:
        (made,) = install.removals(agent, install.settings_path(agent, os.path.dirname(path)), home)
    except RefusedError:
        return None
    return made if made.changes else None


def folders() -> "dict[str, bytes]":
    """Where each agent has the user's own settings; empty where that is not known."""
    return {
        agent.name: environment.settings_folder(agent.variable, agent.folder)
        for agent in installable().values()
    }


def opposite(verb: str, agent: "Agent", scope: str) -> str:
    return f"takeback {verb} {agent.name}{' --project' if scope == install.PROJECT else ''}"


def show_diff(file: "SettingsFile", data: "bytes | None", screen: "Screen") -> None:
    for line in diff(file, data):
        name = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        shown = safe_content(line.encode("utf-8", "surrogateescape"))
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


_PLACES = "; ".join(
    f"{agent.variable} or ~/{agent.folder}" if agent.variable else f"~/{agent.folder}"
    for agent in installable().values()
)
COMMAND = Command(
    "install",
    "record an agent from its next prompt on",
    text=(
        f"AGENT is {either(installable())}.\n"
        "Its settings get one hook for each event that matters. Everything else in them stays as\n"
        "it is, to the byte, and Takeback keeps a copy beside them.\n"
        "First, Takeback tries the hooks in a throw-away project: a prompt, a change, its undo.\n"
        "In a project it also makes the first checkpoint, so that the first prompt does not wait.\n"
        f"Settings are in {_PLACES}."
    ),
    operands=(OPERAND,),
    options=OPTIONS,
    examples=(
        ("takeback install claude-code", "for all your projects"),
        ("takeback install codex --dry-run", "what would be written?"),
        ("takeback install claude-code --project", "for you, in this project only"),
    ),
    group=AGENTS,
    warning="changes the agent's settings",
)

_MAIN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "__main__.py"
)
_PLUGINS = os.path.join(os.path.dirname(_MAIN), "plugin")


def run(given: "Arguments", screen: "Screen") -> int:
    from takeback.hooks import trial as canary

    agent, scope = chosen(given)
    home = environment.default_home()
    path = path_of(agent, scope, given)
    version = agent.find_version(folders()[agent.name], os.get_exec_path())
    events = agent.known_events(version)
    made = install.installation(agent, scope, path, home=home, script=_script(), events=events)
    if given.has("dry-run"):
        return _show(made, screen)
    if not made.script:
        _require_in_path()
    screen.progress(TRYING_HOOKS, 0, 0)
    trial = canary.try_install(made, dict(os.environ))
    is_here = is_on_machine(agent)
    backup = install.install(made, home)
    shared = shared_removal(agent, scope, path, home)
    if shared is not None:
        install.uninstall([shared], home)
    checkpoint = _first_checkpoint(given, screen, is_meant=scope == install.PROJECT)
    if screen.json:
        screen.data(
            _as_json(made, backup=backup, trial=trial, checkpoint=checkpoint, is_here=is_here)
        )
    else:
        _tell(made, screen, backup=backup, trial=trial, checkpoint=checkpoint)
        if not is_here:
            screen.note(
                f"{agent.title} does not seem to be installed: no `{agent.program}` is in"
                f" your PATH. It will call Takeback once it is installed"
            )
    return 0


def is_on_machine(agent: "Agent") -> bool:
    return agent.is_here(folders()[agent.name], os.get_exec_path())


def _script() -> str:
    """What hooks run: this Takeback by this Python, else the command `takeback` of later."""
    from takeback.hooks import command

    if not sys.executable:
        raise TakebackError(
            "Python does not report its own path, so no hook can be written",
            hint="`python3 -I -m takeback install` reports it",
        )
    main = command.lasting(_MAIN)
    beside = os.path.join(os.path.dirname(sys.executable), "takeback")
    found = beside if os.access(beside, os.X_OK) else environment.find_command("takeback")
    return command.script(command.python_for(sys.executable, main), main, found)


def _require_in_path() -> None:
    """An error if colleagues' settings would find no `takeback` here, either."""
    if not environment.find_command("takeback"):
        raise RefusedError(
            "shared settings find Takeback by the PATH, and your PATH has no `takeback`",
            hint="add its folder to your PATH, or install it without --project",
        )


def _first_checkpoint(given: "Arguments", screen: "Screen", *, is_meant: bool) -> "str | None":
    """Make it if this is a project, or is to be one; a failure is told and harms nothing."""
    try:
        if not is_meant:
            known = find_project(given, screen)
            if known is not None:
                known.close()
            elif not _is_in_repository(folder(given)):
                return None
        with open_project(given, screen) as project:
            return project.checkpoint(progress=screen.progress).id
    except TakebackError as problem:
        screen.note(f"no first checkpoint was made here: {safe_line(str(problem))}")
        return None


def _is_in_repository(path: bytes) -> bool:
    from takeback.worktree import user_git

    top = user_git.top_of_repository(os.path.realpath(path))
    return top not in {None, b"/", os.path.realpath(environment.user_home())}


def _show(made: "Installation", screen: "Screen") -> int:
    if screen.json:
        screen.data(_as_json(made, is_trial=True, is_here=is_on_machine(made.agent)))
    elif made.changes:
        for edit in made.edits:
            show_diff(edit.file, edit.data, screen)
        screen.note("nothing was written; the same command without --dry-run writes this")
    else:
        screen.say(f"{made.agent.title} already calls Takeback; nothing would be written.")
    return 0


def _as_json(
    made: "Installation",
    *,
    is_here: bool,
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
        "files": [edit.file.shown for edit in made.edits],
        "changed": made.changes and not is_trial,
        "events": list(made.commands),
        "command": made.command,
        "backup": os.fsdecode(backup) if backup is not None else None,
        "diff": [line for edit in made.edits for line in diff(edit.file, edit.data)],
        "canary": times,
        "checkpoint": checkpoint,
        "plugin": plugin if os.path.isdir(plugin) else None,
        "agent_found": is_here,
        "inverse": opposite("uninstall", made.agent, made.scope),
    }


def _tell(
    made: "Installation",
    screen: "Screen",
    *,
    backup: "bytes | None",
    trial: "TrialResult",
    checkpoint: "str | None",
) -> None:
    title, events = made.agent.title, count(len(made.commands), "event")
    how = "now" if made.changes else "already"
    screen.say(f"{screen.style(title, 'bold')} {how} calls Takeback, at {events}.")
    rows = [("settings", safe_line(edit.file.shown)) for edit in made.edits]
    if backup is not None:
        rows.append(("backup", safe_line(os.fsdecode(backup))))
    times = f"{count(trial.events, 'event')}, {trial.milliseconds:.0f} ms each"
    rows.append(("tried out", f"a prompt, a change and its undo: {times}"))
    rows += [("your version", safe_line(os.fsdecode(x.kept))) for x in made.edits if x.kept]
    if checkpoint is not None:
        rows.append(("checkpoint", checkpoint))
    screen.table(rows)
    for line in _remarks(made):
        screen.note(line)
    screen.note(f"`{opposite('uninstall', made.agent, made.scope)}` removes exactly this")


def _remarks(made: "Installation") -> "list[str]":
    lines = [f"open sessions are recorded once you restart {made.agent.title}"]
    if made.agent.install_note:
        lines.append(made.agent.install_note)
    if made.scope == install.PROJECT and made.agent.local_file:
        lines.append(
            f"`{made.agent.folder}/{made.agent.local_file}` is your own file: keep it out of git"
        )
    elif made.scope == install.PROJECT:
        lines.append(
            "colleagues who get this file use their own `takeback`, or are not affected;"
            f"\n{made.agent.title} may ask each of them once to allow the hooks"
        )
    left_out = [event for event in made.agent.kinds if event not in made.commands]
    if left_out:
        lines.append(
            f"your {made.agent.title} is too old for {', '.join(left_out)}, which were left out;"
            "\nundo works without them. To get them, upgrade it and install again"
        )
    lines += made.agent.settings_problems(made.file.text)
    return lines
