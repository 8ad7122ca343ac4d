"""`takeback log`: the timeline, by prompt."""

import time

from takeback.cli import turn_text
from takeback.cli.app import get_project
from takeback.cli.parser import SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.history import Log

_USUAL = 20

COMMAND = Command(
    "log",
    "what was asked for and what it changed, newest first",
    text=(
        "One line per turn: how it ended, its id, when it was, which agent, what was asked for,\n"
        "lines added and removed, files. ○ is done, ✗ failed, ! interrupted, ▶ still running,\n"
        "↶ a rollback. Turns that were undone, or that a rollback went back over, are left out.\n"
        "The letters shown of an id are enough wherever a REF is asked for. TIME is `10m`, `2h`,\n"
        "`3d`, `14:05`, `yesterday 15:00` or `2026-11-15 14:05`. Nothing is written."
    ),
    options=(
        Option(("--limit",), f"how many turns at most (default: {_USUAL}; with --all: all)", "N"),
        Option(("--all",), "also turns that were undone, and all restores"),
        Option(("--session",), "only those of a session", "SESSION"),
        Option(("--since",), "only those that began since then", "TIME"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback log", "the last turns"),
        ("takeback log --since yesterday", "since yesterday morning"),
        ("takeback log --session mvkr --all", "everything in one conversation"),
    ),
)


def run(given: "Arguments", screen: "Screen") -> int:
    limit = _limit(given)
    with get_project(given, screen) as project:
        log = project.log(
            limit,
            session=given.get("session") or None,
            since=given.get("since") or None,
            all=given.has("all"),
            changes=screen.json,
        )
        named = [turn.id for turn in log.turns] + [restore.id for restore in log.restores]
        short = project.shortened(() if screen.json else named)
    if screen.json:
        screen.data(
            {
                "here": log.here or None,
                "turns": [turn_text.as_json(turn, screen.masker) for turn in log.turns],
                "restores": [turn_text.restore_json(each, screen.masker) for each in log.restores],
            }
        )
        return 0
    turn_text.show(log, short, screen, time.time())
    if log.turns:
        screen.note(f"`takeback show {short[log.turns[0].id]}` shows a turn in full")
    _notes(log, given, limit, screen)
    return 0


def _limit(given: "Arguments") -> "int | None":
    if given.has("all") and not given.has("limit"):
        return None
    text = given.get("limit", str(_USUAL))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise UsageError(f"`--limit` takes a number, not `{text}`", hint="takeback log --limit 50")
    return int(text)


def _notes(log: "Log", given: "Arguments", limit: "int | None", screen: "Screen") -> None:
    if log.undone:
        are = "turn is" if log.undone == 1 else "turns are"
        screen.note(f"{log.undone:,} undone {are} not shown: `takeback log --all`")
    if not log.turns and not log.undone:
        asked = given.has("session") or given.has("since")
        screen.say("   no turns there" if asked else "   no turns yet")
        if not asked:
            screen.note("`takeback run -- COMMAND` makes one of a command")
        return
    if log.more and limit is not None:
        narrowed = " --all" if given.has("all") else ""
        narrowed += "".join(
            f" --{name} {_word(given.get(name))}"
            for name in ("session", "since")
            if given.has(name)
        )
        screen.note(f"`takeback log{narrowed} --limit {limit * 2}` shows more")


def _word(text: str) -> str:
    return f"'{safe_line(text)}'" if " " in text else safe_line(text)
