"""Bare `takeback`: where am I, what is kept, what is not covered."""

import os
import time

from takeback import environment, location
from takeback.cli.app import find_project, folder
from takeback.cli.commands.checkpoint import as_json
from takeback.cli.commands.relocate import older_history
from takeback.cli.parser import EVERYDAY, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line, size
from takeback.cli.text import action_text, now_text, turn_text
from takeback.cli.text.restores.plan_text import running_json
from takeback.errors import TakebackError, UsageError
from takeback.ledger.journal import ALL_SESSIONS
from takeback.model import reasons
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.words import IGNORED, REBUILDABLE, count, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.model.history import Log
    from takeback.model.results import LeftOut, Status
    from takeback.model.text.json_text import Json
    from takeback.project import Project

COMMAND = Command(
    "",
    "show where you are, and what undo would take back",
    options=(Option(("-V", "--version"), "print the version"), SHOW_SECRETS),
    examples=(("takeback", "at a glance"), ("takeback --json", "for programs")),
    group=EVERYDAY,
)

_SHOWN = 20
_OF_DOT_GIT = (reasons.GIT_GONE, reasons.GIT_MADE, reasons.GIT_REPLACED)
_TURNS = 5
_FOLDERS = (word(REBUILDABLE), word(IGNORED))


def run(given: "Arguments", screen: "Screen") -> int:
    project = find_project(given, screen)
    if project is None:
        return _no_project(folder(given), screen)
    with project:
        status = project.status()
        if screen.json:
            _json(project, status, screen)
        else:
            _show(project, status, screen)
    return 0


def _no_project(path: bytes, screen: "Screen") -> int:
    """What Takeback is, and what begins a history here."""
    if screen.json:
        screen.data({"project": None})
        return 0
    screen.say("Takeback records what each prompt of an agent changes, so that you can undo it.")
    home = environment.default_home()
    try:
        root = location.root_of(path, home=home, user_home=environment.user_home())
    except TakebackError as problem:
        why = safe_line(str(problem))
        screen.say(f"{why[:1].upper()}{why[1:]}.")
        screen.note(action_text.hint(problem.actions))
        return 0
    screen.say(f"There is no history yet of {safe_line(os.fsdecode(root))}. To begin one:")
    rows, remarks = _agents(home)
    rows.append(("takeback run -- COMMAND", "record what one command changes"))
    rows.append(("takeback checkpoint", "record the files as they are now"))
    screen.table(rows)
    for line in remarks:
        screen.note(line)
    return 0


def _agents(home: bytes) -> "tuple[list[tuple[str, str]], list[str]]":
    """How to record the agents of this machine, and what is said of those that are recorded."""
    from takeback.agents.registry import installable
    from takeback.cli.commands.install import folders, is_on_machine
    from takeback.hooks import health

    places = folders()
    hooked = {each.agent.name for each in health.look(health.places(home, places), home, places)}
    here = [agent for agent in installable().values() if is_on_machine(agent)]
    rows = [
        (f"takeback install {agent.name}", f"record each prompt of {agent.title} (found here)")
        for agent in here
        if agent.name not in hooked
    ]
    if len(rows) > 1:
        rows.append(("takeback install --all", "record all of these"))
    if not here:
        rows = [("takeback install AGENT", "record each prompt of an agent; --help lists them")]
    calls = [agent.title for agent in here if agent.name in hooked]
    return rows, [f"{title} calls Takeback already: its next prompt is recorded" for title in calls]


def _json(project: "Project", status: "Status", screen: "Screen") -> None:
    seen = project.now()
    screen.data(
        {
            "project": status.project,
            "origin": status.origin,
            "root": path_fields(status.raw_root),
            "store": path_fields(status.raw_store),
            "recording": _is_on(project),
            "running": [
                running_json(each.now, screen.masker)
                for each in project.sessions()
                if each.running and each.now is not None
            ],
            "paused": _paused(project),
            "checkpoints": status.checkpoints,
            "newest": as_json(status.newest, screen.words) if status.newest else None,
            "entries": status.entries,
            "now": now_text.as_json(seen, screen.masker),
            "left_out": [{**path_fields(x.raw_path), "reason": x.reason} for x in status.left_out],
            "participants": [
                {"name": x.name, "kind": x.kind, "problem": screen.words(x.problem) or None}
                for x in status.participants
            ],
        }
    )


def _show(project: "Project", status: "Status", screen: "Screen") -> None:
    newest = status.newest
    rows = [("Project", f"{safe_line(os.fsdecode(status.root))}  ({status.project})")]
    if newest is not None:
        entries = count(newest.entries, "entry", "entries")
        when = ago(newest.created, time.time())
        name = screen.id(newest.id)
        named = screen.quoted(", ".join(newest.names))
        rows.append(("Newest", f"{name}  {when}  {entries}{named}"))
    made = count(status.checkpoints, "checkpoint")
    used = project.usage()
    rows.append(
        ("History", f"{made}, {size(used.total)} in {safe_line(os.fsdecode(status.store))}")
    )
    if status.participants:
        names = (f"{x.name} (not captured)" if x.problem else x.name for x in status.participants)
        rows.append(("Beside", ", ".join(map(safe_line, names))))
    rows += _switches(project, screen)
    log, seen = project.log(_TURNS, changes=False), project.now()
    rows.append(("Now", now_text.state(log, seen, time.time())))
    screen.table(rows, indent="")
    now_text.show_changes(log, seen, screen)
    for path in seen.raw_marked:
        screen.say(screen.style(f"! `{safe(path)}` still holds conflict markers", "yellow"))
    try:
        cap = project.upkeep.retention().size_cap
    except UsageError as problem:
        # Whoever asks where he is gets an answer, whatever the settings say.
        screen.note(f"note: {problem}")
        cap = 0
    if cap and used.objects > cap:
        told = f"the history is larger than {size(cap)} (`size_cap`)"
        screen.note(f"{told}; `takeback gc --to-size SIZE` deletes the oldest files")
    short = project.reader.shortened(turn_text.ids(log, seen.undo))
    _show_turns(log, short, screen)
    _show_left_out(status.left_out, log, screen)
    older = older_history(project)
    if older:
        screen.note(older)
    if now_text.note_undo(seen.undo, short, screen):
        return
    if log.undone:
        screen.note("`takeback log --all` shows what was taken back")
    elif newest is not None:
        screen.note(f"`takeback rollback {newest.id[:6]}` restores the newest checkpoint")
    else:
        screen.note("`takeback checkpoint` makes the first checkpoint")


def _is_on(project: "Project") -> bool:
    try:
        return project.workspace.rules.is_recording()
    except UsageError:  # settings that cannot be read turn nothing off
        return True


def _switches(project: "Project", screen: "Screen") -> "Iterator[tuple[str, str]]":
    """What is not as usual: nothing is recorded, or agents are paused."""
    if not _is_on(project):
        off = screen.style("off", "yellow", "bold")
        yield "Recording", f"{off}: no agent is recorded; `takeback on` turns it on"
    paused = _paused(project)
    if paused is not False:
        who = "all agents" if paused is True else count(len(paused), "session")
        state = screen.style("paused", "yellow", "bold")
        yield "Agents", f"{who} {state}; `takeback resume` lets them go on"


def _paused(project: "Project") -> "bool | list[Json]":
    """The sessions that are paused: True for all, False for none."""
    sessions = project.workspace.ledger.sessions
    paused = sessions.paused()
    if not paused or ALL_SESSIONS in paused:
        return bool(paused)
    return [sessions.numbered(number).id for number in paused]


def _show_turns(log: "Log", short: "Mapping[str, str]", screen: "Screen") -> None:
    if log.turns or log.names:
        more = "; `takeback log` shows more" if log.more else ""
        screen.say(f"Last turns{more}")
        turn_text.show_turns(log, short, screen, time.time())


def _show_left_out(left_out: "tuple[LeftOut, ...]", log: "Log", screen: "Screen") -> None:
    of_git = [(turn, each.code) for turn in log.turns for each in turn.git]
    turn, code = next((each for each in of_git if each[1] in _OF_DOT_GIT), (None, ""))
    if turn is not None and code == reasons.GIT_GONE and b".git" in turn.raw_rescued:
        screen.say(f"Deleted   .git was rescued: `takeback undo {turn.id[:8]}` brings it back")
    elif code == reasons.GIT_GONE:
        screen.say("Lost      .git, with its commits, branches and stashes: it is never covered")
    if not left_out:
        screen.say("Covered   everything in it")
        return
    screen.say("Not covered (a restore never changes these)")
    shown = sorted(left_out, key=lambda x: (x.reason == "version control", x.reason, x.path))
    screen.table((safe(x.path), turn_text.explained(x.reason)) for x in shown[:_SHOWN])
    if len(shown) > _SHOWN:
        screen.say(f"  … and {len(shown) - _SHOWN:,} more; `takeback --json` lists all")
    if any(x.reason in _FOLDERS for x in left_out):
        screen.say("  Takeback records no changes inside these folders, but reports deleted ones")
