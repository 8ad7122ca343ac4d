"""`takeback install [AGENT…]`: let agents call Takeback at each prompt and around each tool.

What `install` and `uninstall` have in common: which agents, and which of their settings.
"""

import os
import sys

from takeback import environment, location
from takeback.agents.dialects import aider
from takeback.agents.registry import REGISTERED, installable
from takeback.cli.app import find_project, folder, open_project
from takeback.cli.parser import AGENTS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_content, safe_line
from takeback.cli.text import action_text
from takeback.disk import programs
from takeback.errors import (
    DecisionNeededError,
    RefusedError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.hooks import install
from takeback.model.value import Value
from takeback.model.words import TRYING_HOOKS, count, either

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.agents.agent import Agent
    from takeback.hooks.install import Installation, Removal
    from takeback.hooks.settings.settings_file import SettingsFile
    from takeback.hooks.trial import TrialResult
    from takeback.model.text.json_text import Json


OPERAND = "[AGENT…]"
OPTIONS = (
    Option(("--user",), "in your own settings, for all projects (the default)"),
    Option(("--project",), "in your own settings for this project only"),
    Option(("--dry-run",), "show what would be written, and write nothing"),
)


def scope_of(given: "Arguments") -> str:
    if given.has("user") and given.has("project"):
        raise UsageError(
            "`--user` and `--project` exclude each other", hint="--user is the default"
        )
    return install.PROJECT if given.has("project") else install.USER


def named(given: "Arguments") -> "list[Agent]":
    """The agents that were named; none with `--all`."""
    if given.operands and given.has("all"):
        raise UsageError(
            "`--all` takes no names", hint=f"leave out `{given.operands[0]}`, or --all"
        )
    return [_agent_of(name) for name in dict.fromkeys(given.operands)]


def _agent_of(name: str) -> "Agent":
    known = installable()
    if name not in known:
        problem = f"`{name}` is not an agent that Takeback can be installed for"
        raise UsageError(problem, hint=_hint_at(name.lower().replace(" ", "-"), tuple(known)))
    return known[name]


def _hint_at(name: str, known: "tuple[str, ...]") -> str:
    """What to type instead of a name that is none of an agent with settings."""
    for agent in REGISTERED:
        if agent.hooks_of and agent.name.replace("-", "") == name.replace("-", ""):
            return (
                f"`takeback install {agent.hooks_of}`: {agent.title} has no hooks of its own"
                " and runs these"
            )
    if name == aider.NAME:
        return f"`takeback run -- {name}` records each of its prompts as a turn"
    import difflib

    close = [each for each in known if name and name in each]
    close += difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"use one of {', '.join(known)}; `takeback run -- COMMAND…` works for any agent"


class Tally:
    """Several agents, one after the other: one that fails does not stop the rest."""

    def __init__(self, screen: "Screen") -> None:
        self._screen = screen
        self._failed = 0
        self.answers: list[Json] = []
        """What each is for programs."""

    def each(self, agents: "Iterable[Agent]", act: "Callable[[Agent], dict[str, Json]]") -> int:
        """Act for each; the exit code says if all, some or none failed."""
        for agent in agents:
            try:
                self.answers.append(act(agent))
            except TakebackError as problem:
                self._fail(agent, problem)
        if self._screen.json:
            self._screen.data({"agents": self.answers})
        if not self._failed:
            return 0
        return _HALF_DONE if self._failed < len(self.answers) else TakebackError.exit_code

    def _fail(self, agent: "Agent", problem: TakebackError) -> None:
        self._failed += 1
        failed = type(problem)(f"{agent.title}: {problem}", hint=problem.actions)
        if not self._screen.json:
            self._screen.error(failed)
        said: dict[str, Json] = {"error": type(problem).__name__, "message": str(problem)}
        hint = action_text.hint(problem.actions)
        self.answers.append({"agent": agent.name, **said, "hint": hint})


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


COMMAND = Command(
    "install",
    "record agents from their next prompt on",
    text=(
        "Without AGENT, Takeback looks which agents are on this machine and offers them.\n"
        f"AGENT is {either(installable())}.\n"
        "Its settings get one hook for each event that matters. Everything else in them stays as\n"
        "it is, to the byte, and Takeback keeps a copy beside them.\n"
        "First, Takeback tries the hooks in a throw-away project: a prompt, a change, its undo.\n"
        "In a project it also makes the first checkpoint, so that the first prompt does not wait."
    ),
    operands=(OPERAND,),
    options=(Option(("--all",), "for all agents that are found on this machine"), *OPTIONS),
    examples=(
        ("takeback install", "which agents are here?"),
        ("takeback install claude-code", "for all your projects"),
        ("takeback install --all", "for every agent that is found"),
        ("takeback install codex --dry-run", "what would be written?"),
        ("takeback install claude-code --project", "for you, in this project only"),
    ),
    group=AGENTS,
    inverse="uninstall",
    warning="changes the agent's settings",
)

_HALF_DONE = 5
_MAIN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "__main__.py"
)
_PLUGINS = os.path.join(os.path.dirname(_MAIN), "plugin")


def run(given: "Arguments", screen: "Screen") -> int:
    scope, agents = scope_of(given), named(given)
    where = folder(given)
    if not os.path.isdir(where):
        shown = safe_line(os.fsdecode(where))
        raise UnknownReferenceError(f"there is no folder `{shown}`", hint="name an existing folder")
    if len(agents) == 1:
        return _install_one(agents[0], scope, given, screen)
    if not agents and not given.has("all"):
        return _offer(scope, given, screen)
    return _install_several(agents or _found(scope), scope, given, screen)


def _install_one(agent: "Agent", scope: str, given: "Arguments", screen: "Screen") -> int:
    if given.has("dry-run"):
        made = _planned(agent, scope, given)
        if screen.json:
            screen.data(_as_json(made, is_trial=True))
        else:
            _show(made, screen)
        return 0
    done = _install(agent, scope, given, screen)
    checkpoint = _first_checkpoint(given, screen, is_meant=scope == install.PROJECT)
    if screen.json:
        screen.data(_as_json(done.made, done, checkpoint=checkpoint))
        return 0
    _tell(done, screen, checkpoint)
    for line in (*_remarks(done.made), f"`{_inverse(agent, scope)}` removes exactly this"):
        screen.note(line)
    return 0


def _install_several(
    agents: "list[Agent]", scope: str, given: "Arguments", screen: "Screen"
) -> int:
    is_trial = given.has("dry-run")
    checkpoint = None
    if not is_trial:
        checkpoint = _first_checkpoint(given, screen, is_meant=scope == install.PROJECT)

    def act(agent: "Agent") -> "dict[str, Json]":
        if is_trial:
            made = _planned(agent, scope, given)
            if not screen.json:
                _show(made, screen)
            return _as_json(made, is_trial=True)
        done = _install(agent, scope, given, screen)
        if not screen.json:
            _tell(done, screen)
            for line in _own_remarks(done.made):
                screen.note(line)
        return _as_json(done.made, done, checkpoint=checkpoint)

    code = Tally(screen).each(agents, act)
    if not screen.json and not is_trial and code != TakebackError.exit_code:
        flag = " --project" if scope == install.PROJECT else ""
        screen.note("open sessions are recorded once you restart the agent")
        screen.note(f"`takeback uninstall --all{flag}` takes Takeback out of all agents again")
    return code


# -- which agents ------------------------------------------------------------------------------


def _found(scope: str) -> "list[Agent]":
    """The agents of this machine; an error if there are none."""
    found = [agent for agent in installable().values() if is_on_machine(agent)]
    if scope == install.PROJECT:
        found = [agent for agent in found if agent.project_folder is not None]
    if not found:
        raise TakebackError(
            "no agent that Takeback knows was found on this machine",
            hint=f"name one that you are about to install: {', '.join(installable())};"
            " `takeback run -- COMMAND…` works for any other",
        )
    return found


def _offer(scope: str, given: "Arguments", screen: "Screen") -> int:
    """Show the agents of this machine, and install for those that the user chooses."""
    found = _found(scope)
    missing = [agent for agent in found if _is_missing(agent, scope, given)]
    flag = " --project" if scope == install.PROJECT else ""
    if not screen.json:
        calls = "calls Takeback already"
        screen.say("Found on this machine:")
        screen.table(
            (agent.title, f"`takeback install {agent.name}{flag}`" if agent in missing else calls)
            for agent in found
        )
    known: Json = [
        {"agent": agent.name, "title": agent.title, "installed": agent not in missing}
        for agent in found
    ]
    if not missing:
        if screen.json:
            screen.data({"agents": known})
        return 0
    if not screen.can_ask:
        problem = DecisionNeededError(
            "not a terminal, so Takeback cannot ask which agents to record",
            hint=f"`takeback install{flag} --all` records all that were found",
        )
        screen.error(problem, {"agents": known})
        return problem.exit_code
    agents = [agent for agent in missing if screen.ask(f"Record {agent.title}?")]
    if not agents:
        screen.note("nothing was installed")
        return DecisionNeededError.exit_code
    if len(agents) == 1:
        return _install_one(agents[0], scope, given, screen)
    return _install_several(agents, scope, given, screen)


def _is_missing(agent: "Agent", scope: str, given: "Arguments") -> bool:
    """Whether its settings lack a hook, or cannot be read: then the install says why."""
    try:
        return _planned(agent, scope, given).changes
    except TakebackError:
        return True


# -- one agent ---------------------------------------------------------------------------------


class _Done(Value):
    """An install that was made."""

    made: "Installation"
    backup: "bytes | None"
    trial: "TrialResult"
    is_here: bool


def _planned(agent: "Agent", scope: str, given: "Arguments") -> "Installation":
    version = agent.find_version(folders()[agent.name], os.get_exec_path())
    events = agent.known_events(version)
    return install.installation(
        agent,
        scope,
        path_of(agent, scope, given),
        home=environment.default_home(),
        script=_script(),
        events=events,
    )


def _install(agent: "Agent", scope: str, given: "Arguments", screen: "Screen") -> _Done:
    from takeback.hooks import trial as canary

    home = environment.default_home()
    made = _planned(agent, scope, given)
    install.require_writable(made)
    if not made.script:
        _require_in_path()
    screen.progress(TRYING_HOOKS, 0, 0)
    trial = canary.try_install(made, dict(os.environ))
    is_here = is_on_machine(agent)
    backup = install.install(made, home)
    shared = shared_removal(agent, scope, made.file.path, home)
    if shared is not None:
        install.uninstall([shared], home)
    return _Done(made, backup, trial, is_here)


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
    found = beside if os.access(beside, os.X_OK) else programs.find("takeback")
    return command.script(command.python_for(sys.executable, main), main, found)


def _require_in_path() -> None:
    """An error if colleagues' settings would find no `takeback` here, either."""
    if not programs.find("takeback"):
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
    from takeback.worktree.git import user_git

    top = user_git.top_of_repository(os.path.realpath(path))
    return top not in {None, b"/", os.path.realpath(environment.user_home())}


def _show(made: "Installation", screen: "Screen") -> None:
    if not made.changes:
        screen.say(f"{made.agent.title} already calls Takeback; nothing would be written.")
        return
    for edit in made.edits:
        show_diff(edit.file, edit.data, screen)
    screen.note("nothing was written; the same command without --dry-run writes this")


def _as_json(
    made: "Installation",
    done: "_Done | None" = None,
    *,
    is_trial: bool = False,
    checkpoint: "str | None" = None,
) -> "dict[str, Json]":
    plugin = os.path.join(_PLUGINS, made.agent.name)
    backup = done.backup if done is not None else None
    times = done.trial if done is not None else None
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
        "canary": {"events": times.events, "milliseconds": times.milliseconds} if times else None,
        "checkpoint": checkpoint,
        "plugin": plugin if os.path.isdir(plugin) else None,
        "agent_found": done.is_here if done is not None else is_on_machine(made.agent),
        "inverse": _inverse(made.agent, made.scope),
    }


def _inverse(agent: "Agent", scope: str) -> str:
    return opposite("uninstall", agent, scope)


def _tell(done: _Done, screen: "Screen", checkpoint: "str | None" = None) -> None:
    made, trial = done.made, done.trial
    title, events = made.agent.title, count(len(made.commands), "event")
    how = "now" if made.changes else "already"
    screen.say(f"{screen.style(title, 'bold')} {how} calls Takeback, at {events}.")
    rows = [("settings", safe_line(edit.file.shown)) for edit in made.edits]
    if done.backup is not None:
        rows.append(("backup", safe_line(os.fsdecode(done.backup))))
    times = f"{count(trial.events, 'event')}, {trial.milliseconds:.0f} ms each"
    rows.append(("tried out", f"a prompt, a change and its undo: {times}"))
    rows += [("your version", safe_line(os.fsdecode(x.kept))) for x in made.edits if x.kept]
    if checkpoint is not None:
        rows.append(("checkpoint", checkpoint))
    screen.table(rows)
    if not done.is_here:
        screen.note(
            f"{title} does not seem to be installed: no `{made.agent.program}` is in"
            f" your PATH. It will call Takeback once it is installed"
        )


def _remarks(made: "Installation") -> "list[str]":
    return [f"open sessions are recorded once you restart {made.agent.title}", *_own_remarks(made)]


def _own_remarks(made: "Installation") -> "list[str]":
    """What is to be said of one agent only."""
    lines = []
    if made.agent.install_note:
        lines.append(made.agent.install_note)
    if made.scope == install.PROJECT and made.agent.local_file:
        own = f"{made.agent.project_folder or made.agent.folder}/{made.agent.local_file}"
        lines.append(f"`{own}` is your own file: keep it out of git")
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
