"""`takeback participant`: which state beside the files moves with them."""

import os
import shlex

from takeback.cli.app import get_project
from takeback.cli.parser import BEYOND, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import reason_text
from takeback.errors import UnfinishedError, UsageError
from takeback.model import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.project import Project

COMMAND = Command(
    "participant",
    "let a database or other state move with the files",
    text=(
        "A participant is state beside the files that a rollback, an undo at the tail and a redo\n"
        "move with them. Takeback never guesses: you name each one, in your own settings.\n"
        "\n"
        "`add postgres URL` and `add sqlite PATH` name a database. `add command` names two\n"
        "commands, in quotes: `--capture` prints a token, `--restore` gets it as its last word.\n"
        "A password in URL is never stored. `retry` repeats what a restore decided and could\n"
        "not do. `remove` ends a participation; what was captured stays until `gc` expires it."
    ),
    operands=("[ACTION]", "[NAME]", "[TARGET]"),
    options=(
        Option(("--name",), "what to call it; otherwise after the database", "NAME"),
        Option(("--capture",), "the command that prints a token", "COMMAND"),
        Option(("--restore",), "the command that gets a token and restores it", "COMMAND"),
        Option(("--describe",), "the command that prints what a restore would change", "COMMAND"),
        Option(("--kind",), "what `--only` calls it", "KIND", ("memory", "databases", "other")),
        Option(("--variable",), "the variable that holds the password", "NAME"),
        Option(("--remote",), "allow a database on another machine"),
        Option(("--seconds",), "how long a capture or a command may take", "SECONDS"),
        Option(("--user",), "in all your projects, not only in this one"),
    ),
    examples=(
        ("takeback participant", "list the participants of this project"),
        ("takeback participant add postgres postgresql:///shop", "a development database"),
        ("takeback participant add sqlite var/app.db", "a SQLite database"),
        (
            "takeback participant add command --capture '/opt/n save' --restore '/opt/n load'",
            "any state with two commands",
        ),
        ("takeback participant retry shop", "repeat a move that failed"),
        ("takeback participant remove shop", "leave it alone from now on"),
    ),
    group=BEYOND,
)


def run(given: "Arguments", screen: "Screen") -> int:
    action, *rest = given.operands or ("list",)
    found = _ACTIONS.get(action)
    if found is None:
        raise UsageError(
            f"`participant` has no action `{action}`",
            hint=f"use {', '.join(_ACTIONS)}",
        )
    with get_project(given, screen) as project:
        return found(project, rest, given, screen)


def _list(project: "Project", rest: "list[str]", given: "Arguments", screen: "Screen") -> int:
    del given
    if rest:
        raise UsageError("`participant list` takes no operands", hint="`takeback participant`")
    told = project.upkeep.participants()
    if screen.json:
        screen.data({"participants": told})
        return 0
    if not told:
        screen.say("No participants: only files and the memory of sessions move.")
        screen.note("`takeback participant add postgres URL` lets a database move with them")
    rows = []
    for each in told:
        said = f"{each['type']}  {each['kind']}  {_state(each)}"
        rows.append((safe_line(str(each["name"])), safe_line(screen.words(said))))
    screen.table(rows, indent="")
    for each in told:
        if each["owed"]:
            screen.note(f"`takeback participant retry {each['name']}` tries again")
    return 0


def _state(each: "dict[str, str]") -> str:
    if each["type"] == "absent" and not each["owed"]:
        return "does not take part now; what was captured is kept"
    return each["problem"] or each["owed"] or ("captured" if each["token"] else "new")


def _add(project: "Project", rest: "list[str]", given: "Arguments", screen: "Screen") -> int:
    kind, *target = rest or [""]
    options: dict[str, object] = {"type": kind}
    if kind == "postgres":
        options["url"] = _one(target, "the URL of a database", "postgres postgresql:///shop")
        options |= {"remote": True} if given.has("remote") else {}
        options |= {"variable": given.get("variable")} if given.has("variable") else {}
    elif kind == "sqlite":
        options["path"] = os.path.abspath(
            _one(target, "the path of a database", "sqlite var/app.db")
        )
    elif kind == "command":
        for key in ("capture", "restore", "describe"):
            if given.has(key):
                options[key] = list(shlex.split(given.get(key)))
        options |= {"kind": given.get("kind")} if given.has("kind") else {}
    else:
        raise UsageError(
            f"`{kind}` is no type of participant" if kind else "`participant add` needs a type",
            hint="use `postgres URL`, `sqlite PATH` or `command`",
        )
    if given.has("seconds"):
        options["seconds"] = _seconds(given.get("seconds"))
    name = given.get("name") or _name(kind, [*target, ""][0])
    added = project.upkeep.add_participant(name, options, user=given.has("user"))
    if screen.json:
        screen.data({"participants": [added]})
        return 0
    screen.say(f"Added {safe_line(name)}: it moves with the files from the next turn on.")
    _warn(project, name, str(options.get("path", "")), screen)
    screen.note(f"`takeback participant remove {name}` ends that")
    return 0


def _warn(project: "Project", name: str, path: str, screen: "Screen") -> None:
    """Why what was added cannot be captured now: it may be a typing error."""
    if path and not os.path.exists(path):
        screen.note(f"! there is no file {safe_line(path)} yet")
    for each in project.upkeep.participants():
        if each["name"] == name and each["problem"]:
            screen.note(f"! {safe_line(screen.words(str(each['problem'])))}")


def _one(target: "list[str]", what: str, example: str) -> str:
    if len(target) != 1:
        raise UsageError(
            f"`participant add` needs {what}", hint=f"`takeback participant add {example}`"
        )
    return target[0]


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"`{text}` is not a number of seconds", hint="such as 30") from None


def _name(kind: str, target: str) -> str:
    """A name after the database."""
    last = target.rstrip("/").rpartition("/")[2].partition("?")[0]
    last = last.rpartition("=")[2] if kind == "postgres" else last.rpartition(".")[0] or last
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in last)
    return name.strip("-") or kind


def _remove(project: "Project", rest: "list[str]", given: "Arguments", screen: "Screen") -> int:
    name = _one_name(rest, "remove")
    project.upkeep.remove_participant(name, user=given.has("user"))
    if screen.json:
        screen.data({"participants": []})
        return 0
    screen.say(f"Removed {safe_line(name)}: restores leave it as it is.")
    return 0


def _retry(project: "Project", rest: "list[str]", given: "Arguments", screen: "Screen") -> int:
    del given
    told = project.retry_participants(_one_name(rest, "retry") if rest else "")
    if screen.json:
        screen.data({"retried": [reason_text.as_json(each, screen.masker) for each in told]})
    else:
        for each in told:
            screen.say(safe_line(screen.words(reason_text.sentence(each))))
        if not told:
            screen.say("Nothing to repeat.")
    failed = any(each.code != reasons.PARTICIPANT_MOVED for each in told)
    return UnfinishedError.exit_code if failed else 0


def _one_name(rest: "list[str]", action: str) -> str:
    if len(rest) != 1:
        raise UsageError(
            f"`participant {action}` needs one NAME", hint="`takeback participant` lists them"
        )
    return rest[0]


_ACTIONS: "dict[str, Callable[[Project, list[str], Arguments, Screen], int]]" = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "retry": _retry,
}
