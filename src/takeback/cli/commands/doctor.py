"""`takeback doctor`: examine everything, explain it, repair what can be repaired without loss."""

import contextlib
import os
import time

from takeback import environment
from takeback.cli.app import folder, get_project
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import action_text
from takeback.cli.text.reason_text import as_json, sentence
from takeback.doctor import Doctor
from takeback.errors import TakebackError
from takeback.model.results import ERROR, NOTE, WARNING
from takeback.model.text.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    if given.has("rebuild"):
        with get_project(given, screen) as project:
            project.rebuild()
    examiner = Doctor(folder(given), home=environment.default_home())
    found = examiner.examine(time.time(), repair=given.has("repair"))
    found.parts.append(_hooks(given))
    if screen.json:
        screen.data(_json(found, rebuilt=given.has("rebuild")))
    else:
        _show(found, screen)
    return 0 if found.ok else _DAMAGED


def _hooks(given: "Arguments") -> "Part":
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
        return health.examine(
            home, folders(), time.time(), project=project, surroundings=dict(os.environ)
        )


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
    if not part.findings:
        state = safe_line(sentence(part.state)) if part.state is not None else ""
        screen.say(f"{name}  {screen.style('ok', 'green')}  {state}".rstrip(), 17)
        return
    for finding in part.findings:
        mark = screen.style(finding.severity, _STYLES[finding.severity])
        screen.say(f"{name}  {mark}  {safe_line(sentence(finding.what))}", 17)
        if finding.action:
            screen.say(f"{'':<11}      {safe_line(action_text.of_finding(finding.action))}")
        name = " " * 11
