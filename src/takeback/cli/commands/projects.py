"""`takeback projects`: all stores of this user; remove one."""

import os
import shlex
import time

from takeback import environment
from takeback.cli import screen as layout
from takeback.cli.app import INTERRUPTED
from takeback.cli.parser import CARE, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line, size, timestamp
from takeback.cli.text import turn_text
from takeback.errors import DecisionNeededError, TakebackError, UsageError
from takeback.model import results
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.words import count
from takeback.upkeep.stores import Housekeeping, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import KnownProject, RestoredFolder
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "projects",
    "list all projects; bring a deleted folder back",
    text=(
        "One line per store, the last used first, wherever you are: `-C` makes no difference.\n"
        "`moved from`: the folder was there before. `gone`: the folder is not at its place, nor\n"
        "nearby. `not mounted`: its disk may not be mounted. `detached`: another history began in\n"
        "its folder, and `takeback relocate --join ID` brings this one back.\n"
        "A damaged store, or one written by a newer Takeback, is marked as such.\n"
        "\n"
        "--restore restores a deleted folder as it was last, at its place or in DIR, which must\n"
        "be new or empty. Its history continues there.\n"
        "\n"
        "--remove deletes a store with all its checkpoints and turns. Takeback first shows what\n"
        "would be lost, and asks. This cannot be taken back. Files in the folder stay."
    ),
    operands=("[DIR]",),
    options=(
        Option(("--restore",), "restore the deleted folder of project ID", "ID"),
        Option(("--remove",), "delete the store of project ID", "ID"),
        Option(("-y", "--yes"), "do not ask"),
        Option(
            ("--even-if-in-use",), "with --remove: even if the folder of the project still exists"
        ),
        Option(
            ("--even-if-not-mounted",), "with --remove: even if its disk may just not be mounted"
        ),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback projects", "list all stores and their folders"),
        ("takeback projects --restore kxvwzyts", "restore a deleted folder"),
        ("takeback projects --restore kxvwzyts ~/again", "to another place"),
        ("takeback projects --remove kxvwzyts", "delete the history of a deleted folder"),
    ),
    group=CARE,
)

_MOST_NAMED = 5
_INDENT = 4
_ONLY_WITH_REMOVE = ("yes", "even-if-in-use", "even-if-not-mounted")


def run(given: "Arguments", screen: "Screen") -> int:
    keeping = housekeeping()
    if given.has("remove") and given.has("restore"):
        raise UsageError(
            "`--remove` and `--restore` cannot be combined",
            hint="`takeback projects` lists what can be removed or restored",
        )
    if given.operands and not given.has("restore"):
        raise UsageError("only `--restore` takes a folder", hint="see `takeback projects --help`")
    if given.has("remove"):
        return _remove(given, keeping, screen)
    for option in _ONLY_WITH_REMOVE:
        if given.has(option):
            hint = f"`takeback projects --remove ID --{option}`"
            raise UsageError(f"`--{option}` works only with `--remove`", hint=hint)
    if given.has("restore"):
        directory = os.fsencode(given.operands[0]) if given.operands else None
        tell_of_restored(restore(given.get("restore"), directory, screen), screen)
        return 0
    found = keeping.projects(time.time_ns())
    if screen.json:
        total = sum(each.size for each in found)
        screen.data({"total": total, "projects": [as_json(each, screen) for each in found]})
    else:
        _show(found, screen)
    return 0


def housekeeping() -> Housekeeping:
    """The stores of this user; folders that moved are looked for here and in the home folder."""
    around = (environment.current_folder(), environment.user_home())
    return Housekeeping(environment.default_home(), [os.path.realpath(x) for x in around if x])


def as_json(project: "KnownProject", screen: "Screen") -> "dict[str, Json]":
    return {
        "id": project.id,
        "root": path_fields(project.root) if project.root is not None else None,
        "was": path_fields(project.was) if project.was is not None else None,
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
        screen.note("`takeback checkpoint` makes the current folder a project")
        return
    now = time.time()
    rows = [_row(each, now) for each in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for project, (id, bytes, used, checkpoints, turns, remark) in zip(found, rows, strict=True):
        numbers = f"{bytes:>{widths[1]}}  {used:>{widths[2]}}"
        numbers += f"  {checkpoints:>{widths[3]}}  {turns:>{widths[4]}}"
        mark = screen.style(f"  ({remark})", "yellow") if remark else ""
        screen.say(f"{screen.style(id, 'bold')}  {numbers}  {_root(project)}{mark}", _INDENT)
    total = sum(each.size for each in found)
    screen.note(f"{size(total)} in {count(len(found), 'store')}")
    gone = next((x for x in found if x.state == results.GONE and x.checkpoints), None)
    if gone is not None:
        screen.note(f"`takeback projects --restore {gone.id}` restores a deleted folder")
    for each in found:
        if each.state == results.DETACHED and each.health == results.SOUND:
            where = shlex.quote(_root(each))
            screen.note(f"`takeback relocate --join {each.id} -C {where}` brings its history back")
            break


def _row(project: "KnownProject", now: float) -> "tuple[str, str, str, str, str, str]":
    used = f"{turn_text.age(project.used, now)} ago" if project.used is not None else "never used"
    remarks = [project.state] if project.state != results.HERE else []
    if project.was is not None:
        remarks = [f"moved from {safe_line(os.fsdecode(project.was))}"]
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


# -- bringing back -----------------------------------------------------------------------------


def restore(
    id: str, directory: "bytes | None", screen: "Screen", *, dry_run: bool = False
) -> "RestoredFolder":
    """Bring the folder of a project back, as it was last."""
    return housekeeping().restore(
        id,
        directory,
        time.time_ns(),
        user_home=environment.user_home(),
        dry_run=dry_run,
        progress=screen.progress,
    )


def tell_of_restored(done: "RestoredFolder", screen: "Screen", *, dry_run: bool = False) -> None:
    """Say what was brought back, and from when it is."""
    if screen.json:
        restored: dict[str, Json] = {
            "project": done.project,
            **path_fields(done.path),
            "checkpoint": done.checkpoint,
            "created": timestamp(done.created),
            "entries": done.entries,
            "left_out": [path_fields(path) for path in done.left_out],
        }
        screen.data({"would_restore" if dry_run else "restored": restored})
        return
    where, entries = safe_line(os.fsdecode(done.path)), count(done.entries, "entry", "entries")
    last = f"{entries}, as last seen {ago(done.created, time.time())}"
    if dry_run:
        screen.say(f"Would restore {where}: {last}; nothing was changed")
        return
    screen.say(f"Restored {where}: {last}")
    if done.left_out:
        names = ", ".join(map(safe, done.left_out[:_MOST_NAMED]))
        more = len(done.left_out) - _MOST_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        screen.say(f"No checkpoint holds {names}{rest}")
    screen.note("its history continues there")


# -- removing ----------------------------------------------------------------------------------

_STATES = {
    results.HERE: "still there",
    results.REPLACED: "another folder is at its place",
    results.GONE: "gone: deleted, or moved and not opened since",
    results.NOT_MOUNTED: "out of reach: its disk may not be mounted",
    results.UNKNOWN: "its folder is unknown",
    results.MOVED: "still there, at another place than before",
    results.DETACHED: "its folder has another history now; you can join this one again",
}


def _remove(given: "Arguments", keeping: Housekeeping, screen: "Screen") -> int:
    now = time.time_ns()
    project = keeping.project(given.get("remove"), now)
    in_use, away = given.has("even-if-in-use"), given.has("even-if-not-mounted")
    try:
        refuse(project, in_use=in_use, not_mounted=away)
        if not given.has("yes") and not screen.can_ask:
            raise DecisionNeededError(
                "nothing was removed: this is not a terminal, so Takeback cannot ask",
                hint=f"`takeback projects --remove {project.id} --yes` removes it",
            )
    except TakebackError as problem:
        if not screen.json:
            _lost(project, screen)
        screen.error(problem, {"project": as_json(project, screen)})
        return problem.exit_code
    if not given.has("yes"):
        _lost(project, screen)
        try:
            agreed = screen.ask("Remove it? This cannot be taken back.")
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
        screen.say(f"Removed the store of {_root(removed)}: freed {size(removed.size)}")
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
