"""Whether agents call us: what is in their settings, whether it works, and when it was last heard.

`look` reads what there is to read, and `part` says what that means. Nothing is changed.
"""

import os

from takeback.agents import registry
from takeback.agents.agent import FILES
from takeback.disk import programs
from takeback.errors import TakebackError
from takeback.hooks import command, install, trial
from takeback.hooks.install import PROJECT, USER, settings_path
from takeback.hooks.settings import forms, receipts, settings_file
from takeback.model.reasons import Reason
from takeback.model.results import WARNING, Finding, Part
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from takeback.agents.agent import Agent, Version
    from takeback.ledger.sessions import ToollessTurn
    from takeback.model.text.json_text import Json
    from takeback.project import Project

    Place = tuple[Agent, str, bytes]

NAME = "hooks"
_LATELY = 7 * 86400
"""Seconds for which a hook that failed is worth a word."""
_SHOWN_TROUBLES = 3


class Hooked:
    """The hooks of ours in one settings file, by event.

    `problem` is why they do not work, `missing` the events that have none, `outdated` those whose
    hooks are of another version; `is_fast` whether they ask the helper without the start of Python.
    `is_clear` is false for a file that `install` leaves as it is, too.
    """

    __slots__ = (
        "agent", "commands", "file", "groups", "is_clear", "is_fast", "missing", "outdated",
        "problem", "remarks", "scope"
    )  # fmt: skip

    def __init__(self, agent: "Agent", scope: str, file: str) -> None:
        self.agent = agent
        self.scope = scope
        self.file = file
        self.commands: dict[str, str] = {}
        self.groups: dict[str, Any] = {}
        self.is_clear = True
        self.is_fast = False
        self.problem = ""
        self.missing: list[str] = []
        self.outdated: list[str] = []
        self.remarks: list[str] = []


class Survey(Value):
    """What there is: the hooks, when each agent was last heard, and the agents of this machine.

    `toolless` are turns that changed something while their agent reported no tool.
    """

    hooked: "tuple[Hooked, ...]"
    heard: "Mapping[str, float]"
    here: "tuple[Agent, ...]" = ()
    toolless: "tuple[ToollessTurn, ...]" = ()


def places(
    home: bytes, folders: "Mapping[str, bytes]", project: "Project | None" = None
) -> "list[Place]":
    """Where hooks may be: the user's settings, this project's, and wherever we put some.

    `folders` are the user's own settings folders, by agent.
    """
    known = registry.installable()
    found = {
        settings_path(known[name], folder): (known[name], "user")
        for name, folder in folders.items()
        if folder
    }
    for receipt in receipts.read(home).values():
        agent = known.get(receipt.agent)
        if agent is not None and receipt.file.endswith(_first_names(agent)):
            found.setdefault(os.fsencode(receipt.file), (agent, receipt.scope))
    for agent in known.values() if project is not None else ():
        assert project is not None  # or there is nothing to go through
        if agent.project_folder is None:
            continue
        own = agent.project_folder or agent.folder
        folder = os.path.join(project.workspace.root, own.encode())
        for scope in (USER, PROJECT):  # one's own file in it, and the shared one
            found.setdefault(settings_path(agent, folder, scope), (agent, PROJECT))
    return [(agent, scope, path) for path, (agent, scope) in found.items()]


def _first_names(agent: "Agent") -> "tuple[str, ...]":
    """Of several files that belong together, the first stands for all."""
    return agent.file_names()[:1] if agent.form == FILES else ("",)


def look(
    places: "Iterable[Place]",
    home: bytes,
    folders: "Mapping[str, bytes]",
    surroundings: "Mapping[str, str] | None" = None,
) -> "list[Hooked]":
    """What is in settings files; with `surroundings`, each command is tried out in them, too."""
    found = []
    for agent, scope, path in places:
        hooked = _read(agent, scope, path, home)
        if hooked is None:
            continue
        if not hooked.problem:
            own = folders.get(agent.name, b"")
            version = agent.find_version(own, os.get_exec_path())
            wanted = agent.known_events(version)
            hooked.missing = [event for event in wanted if event not in hooked.commands]
            hooked.outdated = _outdated(hooked, path, home, wanted)
            hooked.remarks += _unknown(hooked, wanted, version)
            hooked.remarks += agent.trust_problems(hooked.file, hooked.groups, own)
        if surroundings is not None and not hooked.problem and not hooked.missing:
            hooked.problem = _tried(hooked, surroundings)
        found.append(hooked)
    return found


def heard(project: "Project") -> "dict[str, float]":
    """When each agent was last heard in a project, in seconds since 1970."""
    found: dict[str, float] = {}
    for session in project.sessions(all=True):
        found[session.agent] = max(session.seen, found.get(session.agent, 0.0))
    return found


def part(survey: Survey, troubles: "Sequence[Mapping[str, Json]]", now: float) -> Part:
    """What all that means, as `takeback doctor` shows it; pure."""
    working = [one for one in survey.hooked if not one.problem]
    calls = tuple(_works(one, survey.heard.get(one.agent.name), now) for one in working)
    known = {one.agent.name for one in survey.hooked}
    silent = tuple(one.name for one in survey.here if one.name not in known)
    found = Part(NAME, Reason("hooks", calls=calls, silent=silent))
    for one in survey.hooked:
        found.findings += _wrongs(one)
    for turn in survey.toolless:
        found.findings += _without_tools(turn, now)
    lately = [each for each in troubles if _is_lately(each.get("at"), now)]
    for each in lately[-_SHOWN_TROUBLES:]:
        what = " ".join(str(each.get(key, "")) for key in ("agent", "event"))
        problem = str(each.get("problem", ""))
        failed = Reason("hook-failed", ago=_ago(now, each.get("at")), what=what, problem=problem)
        found.findings.append(Finding(WARNING, failed, Reason("turn-not-covered")))
    return found


def survey(
    home: bytes,
    folders: "Mapping[str, bytes]",
    *,
    project: "Project | None" = None,
    surroundings: "Mapping[str, str] | None" = None,
) -> Survey:
    """All there is to read."""
    hooked = look(places(home, folders, project), home, folders, surroundings)
    times = heard(project) if project is not None else {}
    toolless = project.workspace.ledger.turns.toolless() if project is not None else ()
    known, search = registry.installable(), os.get_exec_path()
    here = [known[name] for name, folder in folders.items() if known[name].is_here(folder, search)]
    return Survey(tuple(hooked), times, tuple(here), tuple(toolless))


# -- one settings file -------------------------------------------------------------------------


def _read(agent: "Agent", scope: str, path: bytes, home: bytes) -> "Hooked | None":
    """The hooks in a file; None if there are none."""
    hooked = Hooked(agent, scope, os.fsdecode(path))
    try:
        text = settings_file.read(path).text
        ours = forms.of(agent).ours(text)
    except TakebackError as problem:
        hooked.problem, hooked.is_clear = str(problem), False
        return hooked
    if not ours:
        return None
    if agent.form == FILES:
        hooked.commands = agent.lines(*install.command_lines(agent, scope, home))
    else:
        hooked.commands = {one.event: one.command for one in ours}
        hooked.groups = {one.event: one.group for one in ours}
    hooked.remarks = agent.settings_problems(text)
    hooked.problem = _gone(hooked.commands.values())
    hooked.remarks += _moved(hooked.commands.values()) if not hooked.problem else []
    hooked.is_fast = all(map(command.uses_client, hooked.commands.values()))
    return hooked


def _gone(commands: "Iterable[str]") -> str:
    """What a command line names and is not there any more."""
    for one in dict.fromkeys(commands):
        if command.is_shared(one):
            if not programs.find("takeback"):
                return "no `takeback` is in the PATH"
            continue
        script = command.script_of(one)
        if script and not os.path.isfile(script):
            return f"its script `{script}` is gone"
        if not command.paths(one)[1]:
            return "its command line is invalid"
        missing = _missing(one)
        if missing and not script:
            return f"{missing} is gone"
    return ""


def _missing(one: str) -> str:
    """What is not where a command line, or its script, says."""
    python, main = command.paths(one)
    if not os.access(python, os.X_OK):
        return f"its interpreter `{python}`"
    return "" if os.path.isfile(main) else f"its program `{main}`"


def _moved(commands: "Iterable[str]") -> "list[str]":
    """A script finds a Takeback that moved, and that takes time."""
    gone = {_missing(one) for one in commands if command.script_of(one)} - {""}
    return [
        f"{each} is gone: hooks search for another one, slower; run `takeback install` again"
        for each in gone
    ]


def _outdated(hooked: Hooked, path: bytes, home: bytes, wanted: "Sequence[str]") -> "list[str]":
    """What an install would write anew, besides the command line; events, or names of files."""
    agent = hooked.agent
    if agent.form != FILES:
        made = forms.of(agent).ours(_fresh(agent, wanted))
        new = {one.event: one.group for one in made}
        return [
            event
            for event, group in hooked.groups.items()
            if event in new and _without_line(group) != _without_line(new[event])
        ]
    lines = install.command_lines(agent, hooked.scope, home)
    texts = zip(install.paths_beside(agent, path), agent.files(*lines).items(), strict=True)
    return [name for file, (name, text) in texts if _text_of(file) != text]


def _fresh(agent: "Agent", events: "Sequence[str]") -> str:
    """Settings with nothing but our hooks, by a command line that is known to be ours."""
    form, line = forms.of(agent), command.shared_line()
    (wanted,) = form.wanted_by(line, line, events).values()
    return form.put_in("", wanted)


def _without_line(group: object) -> object:
    """A group, or an entry, without the strings that are command lines of ours."""
    if isinstance(group, dict):
        return {
            key: _without_line(value)
            for key, value in group.items()
            if not (isinstance(value, str) and command.is_ours(value))
        }
    return [_without_line(one) for one in group] if isinstance(group, list) else group


def _text_of(path: bytes) -> str:
    try:
        return settings_file.read(path).text
    except TakebackError:
        return ""


def _unknown(hooked: Hooked, wanted: "Sequence[str]", version: "Version | None") -> "list[str]":
    """Events that make an old agent leave out the whole file."""
    too_new = [event for event in hooked.commands if event not in wanted]
    if not too_new or version is None:
        return []
    title, number = hooked.agent.title, ".".join(map(str, version))
    return [f"{title} {number} does not know {', '.join(too_new)}, and ignores the whole file"]


def _tried(hooked: Hooked, surroundings: "Mapping[str, str]") -> str:
    try:
        trial.try_hooks(hooked.agent, hooked.commands, surroundings)
    except TakebackError as problem:
        return str(problem)
    return ""


# -- words -------------------------------------------------------------------------------------


def _works(one: Hooked, last: "float | None", now: float) -> str:
    when = (
        f"last event in this project{_ago(now, last)}" if last else "no event in this project yet"
    )
    events = f"{len(one.commands)} events{' by the client in C' if one.is_fast else ''}"
    return f"{one.agent.title} calls Takeback at {events}, {when} (`{one.file}`)"


def _wrongs(one: Hooked) -> "list[Finding]":
    where = {"agent": one.agent.name, "scope": one.scope}
    if one.problem:
        facts = {"title": one.agent.title, "file": one.file, "problem": one.problem}
        fix = Reason("install", **where) if one.is_clear else Reason("mend-settings")
        return [Finding(WARNING, Reason("hooks-broken", **facts), fix)]
    found = [
        Finding(WARNING, Reason("hooks-remark", remark=remark, file=one.file))
        for remark in one.remarks
    ]
    if one.missing:
        what = Reason("hooks-missing", missing=tuple(one.missing), file=one.file)
        found.append(Finding(WARNING, what, Reason("install-missing", **where)))
    if one.outdated:
        what = Reason("hooks-outdated", missing=tuple(one.outdated), file=one.file)
        found.append(Finding(WARNING, what, Reason("install-anew", **where)))
    return found


def _without_tools(turn: "ToollessTurn", now: float) -> "list[Finding]":
    """An agent whose hooks for tools seem not to fire, and whose settings hold them."""
    agent = registry.find_agent(turn.agent)
    if agent is None or not agent.kinds or not _is_lately(turn.started / 1e9, now):
        return []
    what = Reason("tools-unreported", title=agent.title, turn=turn.id[:8], count=turn.paths)
    where = {"agent": agent.hooks_of or agent.name, "scope": USER}
    return [Finding(WARNING, what, Reason("install-anew", **where))]


def _is_lately(at: object, now: float) -> bool:
    return isinstance(at, int | float) and now - at < _LATELY


def _ago(now: float, then: object) -> str:
    if not isinstance(then, int | float):
        return ""
    seconds = max(0, int(now - then))
    for length, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= length:
            number = seconds // length
            return f" {number} {name}{'s' if number > 1 else ''} ago"
    return " just now"
