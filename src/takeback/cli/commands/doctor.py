"""`takeback doctor`: examine everything, explain it, repair what can be repaired without loss."""

import contextlib
import os
import time

from takeback import environment
from takeback.cli.app import folder, get_project
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line, timestamp
from takeback.cli.text import action_text
from takeback.cli.text.reason_text import as_json, calls, sentence
from takeback.doctor import Doctor
from takeback.errors import TakebackError
from takeback.model.results import ERROR, NOTE, WARNING
from takeback.model.text.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.hooks.health import Survey
    from takeback.model.results import Examined, Finding, Part
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "doctor",
    "find what is wrong, and repair it without loss",
    text=(
        "Checks permissions, the registry, settings, disk space, the ledger and its tables, packs\n"
        "and their indexes, the git view, the stat cache, leftovers, unfinished restores, clocks\n"
        "and agents' hooks. Each finding comes with what to do. `takeback verify` checks every\n"
        "byte of every object. The exit code is 4 if something is broken.\n"
        "\n"
        "--repair rebuilds what follows from other data (indexes, the git view, tables, the\n"
        "registry), makes files private, removes what was never finished, and reports each\n"
        "repair. It loses nothing. If events of the log are damaged, it rebuilds nothing from\n"
        "them."
    ),
    options=(
        Option(("--repair",), "repair what can be repaired without loss"),
        Option(("--rebuild",), "rebuild all tables from the events"),
    ),
    examples=(
        ("takeback doctor", "check everything"),
        ("takeback doctor --repair", "repair what can be repaired without loss"),
    ),
    group=CARE,
)

_DAMAGED = 4
_STYLES = {ERROR: "red", WARNING: "yellow", NOTE: "dim"}


def run(given: "Arguments", screen: "Screen") -> int:
    from takeback.hooks import health, hook

    if given.has("rebuild"):
        with get_project(given, screen) as project:
            project.rebuild()
    home, now = environment.default_home(), time.time()
    found = Doctor(folder(given), home=home).examine(now, repair=given.has("repair"))
    survey = _survey(given)
    found.parts.append(health.part(survey, hook.read(home), now))
    if screen.json:
        said = _json(found, rebuilt=given.has("rebuild"))
        screen.data({**said, "agents": _agents(survey)})
    else:
        _show(found, screen)
    return 0 if found.ok else _DAMAGED


def _survey(given: "Arguments") -> "Survey":
    """Whether agents call us. What is wrong with the project itself was told before."""
    from takeback.cli.commands.install import folders
    from takeback.hooks import health
    from takeback.project import Project

    home = environment.default_home()
    try:
        project = Project.find(folder(given), home=home)
    except TakebackError:
        project = None
    with project or contextlib.nullcontext():
        return health.survey(home, folders(), project=project, surroundings=dict(os.environ))


def _agents(survey: "Survey") -> "list[Json]":
    """Each agent that Takeback can be installed for, and each that was heard here."""
    from takeback.agents.registry import installable

    hooked = {one.agent.name: one for one in survey.hooked}
    here = {agent.name for agent in survey.here}
    return [
        {
            "agent": name,
            "found": name in here,
            "file": hooked[name].file if name in hooked else None,
            "works": name in hooked and not hooked[name].problem,
            "missing": [*hooked[name].missing] if name in hooked else [],
            "outdated": [*hooked[name].outdated] if name in hooked else [],
            "remarks": [*hooked[name].remarks] if name in hooked else [],
            "last_event": timestamp(survey.heard[name]) if name in survey.heard else None,
        }
        for name in sorted({*installable(), *survey.heard})
    ]


def _json(found: "Examined", *, rebuilt: bool) -> "dict[str, Json]":
    return {
        "ok": found.ok,
        "rebuilt": rebuilt,
        "repaired": [as_json(reason, CLOSED) for reason in found.repaired],
        "events": found.events,
        "problems": [as_json(reason, CLOSED) for reason in found.problems],
        "parts": [{"name": part.name, "ok": not part.findings} for part in found.parts],
        "findings": [
            {
                "part": part.name,
                "severity": finding.severity,
                "what": as_json(finding.what, CLOSED),
                "action": _action(finding),
                "repairable": finding.can_be_repaired,
            }
            for part in found.parts
            for finding in part.findings
        ],
    }


def _action(finding: "Finding") -> "Json":
    if isinstance(finding.action, tuple):
        return (
            {"code": "hint", "text": action_text.hint(finding.action)} if finding.action else None
        )
    return as_json(finding.action, CLOSED)


def _show(found: "Examined", screen: "Screen") -> None:
    for what in found.repaired:
        screen.say(f"repaired: {safe_line(sentence(what))}")
    for part in found.parts:
        _show_part(part, screen)
    findings = [finding for part in found.parts for finding in part.findings]
    if not findings:
        screen.say(f"{screen.style('No problems found', 'green', 'bold')}.")
        screen.note("`takeback verify` also hashes every object")
        return
    broken = sum(finding.severity == ERROR for finding in findings)
    said = f"{count(len(findings), 'finding')}, {broken} of them broken" if broken else ""
    screen.say(said or f"{count(len(findings), 'finding')}, nothing is broken.")
    if any(finding.can_be_repaired for finding in findings):
        screen.note("`takeback doctor --repair` repairs what can be repaired without loss")


def _show_part(part: "Part", screen: "Screen") -> None:
    name = f"{part.name:<11}"
    for line in _states(part):
        screen.say(f"{name}  {screen.style('ok', 'green')}  {safe_line(line)}".rstrip(), 17)
        name = " " * 11
    for finding in part.findings:
        mark = screen.style(finding.severity, _STYLES[finding.severity])
        screen.say(f"{name}  {mark}  {safe_line(sentence(finding.what))}", 17)
        if finding.action:
            screen.say(f"{'':<11}      {safe_line(action_text.of_finding(finding.action))}")
        name = " " * 11


def _states(part: "Part") -> "list[str]":
    """What is well; of agents also if something is wrong with another one."""
    if part.state is None:
        return [] if part.findings else [""]
    if part.state.code == "hooks":
        facts = dict(part.state.facts)
        return calls(part.state) if facts["calls"] or not part.findings else []
    return [] if part.findings else [sentence(part.state)]
