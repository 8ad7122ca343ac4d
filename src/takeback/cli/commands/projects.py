"""`takeback projects`: all stores of this user; remove one."""

import os
import time

from takeback import environment
from takeback.cli import screen as layout
from takeback.cli import turn_text
from takeback.cli.app import INTERRUPTED
from takeback.cli.parser import SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line, size, timestamp
from takeback.errors import DecisionNeededError, TakebackError, UsageError
from takeback.model import results
from takeback.model.json_text import path_fields
from takeback.model.words import count
from takeback.upkeep.stores import Housekeeping, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.json_text import Json
    from takeback.model.results import KnownProject

COMMAND = Command(
    "projects",
    "all projects that have a store, their sizes, and which folders are gone; remove a store",
    text=(
        "One line per store, the one used last first, wherever you are: `-C` makes no difference.\n"
        "`gone` means that the folder is not where it was last seen, and was not opened since\n"
        "anywhere else. `not mounted` means that the disk it is on may not be there now. A store\n"
        "that is damaged, or that a newer Takeback wrote, is listed as such.\n"
        "\n"
        "--remove deletes a store with all its checkpoints and turns. It shows first what would\n"
        "be lost, and asks. Nothing brings it back. Files in the folder itself are not touched."
    ),
    options=(
        Option(("--remove",), "delete the store of project ID", "ID"),
        Option(("-y", "--yes"), "go ahead without a question"),
        Option(("--even-if-in-use",), "although the folder of the project is still there"),
        Option(("--even-if-not-mounted",), "although its disk may only not be mounted"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback projects", "what is kept, and for which folders"),
        ("takeback projects --remove kxvwzyts", "let the history of a deleted folder go"),
    ),
)

_ONLY_WITH_REMOVE = ("yes", "even-if-in-use", "even-if-not-mounted")


def run(given: "Arguments", screen: "Screen") -> int:
    keeping = Housekeeping(environment.default_home())
    if given.has("remove"):
        return _remove(given, keeping, screen)
    for option in _ONLY_WITH_REMOVE:
        if given.has(option):
            raise UsageError(f"`--{option}` is for `--remove`")
    found = keeping.projects(time.time_ns())
    if screen.json:
        total = sum(each.size for each in found)
        screen.data({"total": total, "projects": [as_json(each, screen) for each in found]})
    else:
        _show(found, screen)
    return 0


def as_json(project: "KnownProject", screen: "Screen") -> "dict[str, Json]":
    return {
        "id": project.id,
        "root": path_fields(project.root) if project.root is not None else None,
        "state": project.state,
        "health": project.health,
        "problem": project.problem or None,
        "size": project.size,
        "used": timestamp(project.used) if project.used is not None else None,
        "checkpoints": project.checkpoints,
        "turns": project.turns,
        "newest_prompt": screen.words(project.prompt) or None,
        "running": list(project.running),
    }


def _show(found: "list[KnownProject]", screen: "Screen") -> None:
    if not found:
        screen.say("No projects yet.")
        screen.note("`takeback checkpoint` makes the folder you are in one")
        return
    now = time.time()
    rows = [_row(each, now) for each in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for project, (id, bytes, used, checkpoints, turns, remark) in zip(found, rows, strict=True):
        numbers = f"{bytes:>{widths[1]}}  {used:>{widths[2]}}"
        numbers += f"  {checkpoints:>{widths[3]}}  {turns:>{widths[4]}}"
        mark = screen.style(f"  ({remark})", "yellow") if remark else ""
        screen.say(f"{screen.style(id, 'bold')}  {numbers}  {_root(project)}{mark}")
    total = sum(each.size for each in found)
    screen.note(f"{size(total)} in {count(len(found), 'store')}")
    gone = next((each for each in found if each.state == results.GONE), None)
    if gone is not None:
        screen.note(f"`takeback projects --remove {gone.id}` removes the store of a folder")


def _row(project: "KnownProject", now: float) -> "tuple[str, str, str, str, str, str]":
    used = f"{turn_text.age(project.used, now)} ago" if project.used is not None else "never used"
    remarks = [project.state] if project.state != results.HERE else []
    remarks += [project.health] if project.health != results.SOUND else []
    return (
        project.id,
        size(project.size),
        used,
        _number(project.checkpoints, "checkpoint"),
        _number(project.turns, "turn"),
        ", ".join(remarks),
    )


def _number(number: "int | None", one: str) -> str:
    return f"? {one}s" if number is None else count(number, one)


def _root(project: "KnownProject") -> str:
    return safe_line(os.fsdecode(project.root)) if project.root is not None else "?"


# -- removing ----------------------------------------------------------------------------------

_STATES = {
    results.HERE: "still there",
    results.REPLACED: "another folder is at its place",
    results.GONE: "not there any more: deleted, or moved and not opened since",
    results.NOT_MOUNTED: "out of reach: its disk may not be mounted",
    results.UNKNOWN: "nobody knows where it was",
}


def _remove(given: "Arguments", keeping: Housekeeping, screen: "Screen") -> int:
    now = time.time_ns()
    project = keeping.project(given.get("remove"), now)
    in_use, away = given.has("even-if-in-use"), given.has("even-if-not-mounted")
    try:
        refuse(project, in_use=in_use, not_mounted=away)
        if not given.has("yes") and not screen.can_ask:
            raise DecisionNeededError(
                "nothing was removed: nobody is there to ask",
                hint=f"`takeback projects --remove {project.id} --yes` goes ahead",
            )
    except TakebackError as problem:
        if not screen.json:
            _lost(project, screen)
        screen.error(problem, {"project": as_json(project, screen)})
        return problem.exit_code
    if not given.has("yes"):
        _lost(project, screen)
        try:
            agreed = screen.ask("Remove it? Nothing brings it back.")
        except KeyboardInterrupt:
            screen.note("\nnothing was removed")
            return INTERRUPTED
        if not agreed:
            screen.note("nothing was removed")
            return DecisionNeededError.exit_code
    removed = keeping.remove(project.id, now, even_if_in_use=in_use, even_if_not_mounted=away)
    if screen.json:
        screen.data({"removed": as_json(removed, screen)})
    else:
        screen.say(f"Removed the store of {_root(removed)}: {size(removed.size)} are free")
    return 0


def _lost(project: "KnownProject", screen: "Screen") -> None:
    marks = layout.marks(screen)
    prompt = layout.cut(screen.title(project.prompt), 60, marks.cut)
    used = "never" if project.used is None else f"{turn_text.age(project.used, time.time())} ago"
    rows = [
        ("Project", f"{_root(project)}  ({project.id})"),
        ("Folder", _STATES[project.state]),
        ("Store", f"{size(project.size)}, {project.health}, last used {used}"),
        (
            "Lost",
            f"{_number(project.checkpoints, 'checkpoint')}, {_number(project.turns, 'turn')}",
        ),
    ]
    rows += [("Newest", prompt)] if project.prompt else []
    screen.table(rows, indent="")
