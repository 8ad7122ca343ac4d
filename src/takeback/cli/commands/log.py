"""`takeback log`: the timeline, by prompt."""

import time

from takeback.cli import screen as layout
from takeback.cli.app import get_project
from takeback.cli.parser import SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import now_text, turn_text
from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.history import Log
    from takeback.project import Project

_USUAL = 20

COMMAND = Command(
    "log",
    "what was asked for and what it changed, newest first",
    text=(
        "First the files as they are now: what changed since the last checkpoint, and by whom.\n"
        "Then one line per turn: its result, its id, its `@~N`, when it was, the agent, the\n"
        "prompt, lines added and removed, files. ○ is done, ✗ failed, ! interrupted, ▶ running,\n"
        "↶ a rollback, ◆ the name of a checkpoint. Turns that were undone or rolled back are left\n"
        "out. Wherever a command takes a REF, the shown letters of an id are enough. TIME is\n"
        "`10m`, `an hour ago`, `14:05`, `monday`, `yesterday 15:00` or `2026-11-15 14:05`.\n"
        "Nothing is written."
    ),
    options=(
        Option(("--limit",), f"how many turns at most (default: {_USUAL}; with --all: all)", "N"),
        Option(("--all",), "also undone turns, and all restores"),
        Option(("--checkpoints",), "list your checkpoints, named or kept, instead of turns"),
        Option(("--session",), "only turns of this session", "SESSION"),
        Option(("--since",), "only turns that began since then", "TIME"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback log", "the last turns"),
        ("takeback log --since yesterday", "since yesterday morning"),
        ("takeback log --session mvkr --all", "everything in one conversation"),
        ("takeback log --checkpoints", "the names that you gave"),
    ),
)


def run(given: "Arguments", screen: "Screen") -> int:
    limit = _limit(given)
    with get_project(given, screen) as project:
        if given.has("checkpoints"):
            _checkpoints(project, given, limit, screen)
            return 0
        log = project.log(
            limit,
            session=given.get("session") or None,
            since=given.get("since") or None,
            all=given.has("all"),
            changes=screen.json,
        )
        seen = project.now()
        short = project.reader.shortened(() if screen.json else turn_text.ids(log, seen.undo))
    if screen.json:
        screen.data(
            {
                "here": log.here or None,
                "now": now_text.as_json(seen, screen.masker),
                "turns": [turn_text.as_json(turn, screen.masker) for turn in log.turns],
                "restores": [turn_text.restore_json(each, screen.masker) for each in log.restores],
                "names": [now_text.name_json(each, screen.masker) for each in log.names],
            }
        )
        return 0
    now = time.time()
    marks, room = layout.marks(screen), layout.width(screen)
    said = layout.cut(f"@  now  {now_text.state(log, seen, now)}", room, marks.cut)
    screen.say(screen.style(said[:6], "bold") + said[6:])
    now_text.show_changes(log, seen, screen)
    turn_text.show_turns(log, short, screen, now)
    if log.turns:
        screen.note(f"`takeback show {short[log.turns[0].id]}` shows a turn in full")
    now_text.note_undo(seen.undo, short, screen)
    _notes(log, given, limit, screen)
    return 0


def _checkpoints(
    project: "Project", given: "Arguments", limit: "int | None", screen: "Screen"
) -> None:
    """Checkpoints instead of turns."""
    if given.has("session") or given.has("since"):
        raise UsageError(
            "`--checkpoints` cannot be combined with `--session` or `--since`",
            hint="`takeback log --checkpoints --limit 50` lists more of them",
        )
    found = project.reader.listed_checkpoints(None if given.has("all") else limit)[:limit]
    if screen.json:
        listed = [now_text.checkpoint_json(each, screen.masker) for each in found]
        screen.data({"here": listed[0]["id"] if listed else None, "checkpoints": listed})
        return
    short = project.reader.shortened([each.checkpoint.id for each in found])
    now_text.show_checkpoints(found, short, screen, time.time())
    if not found:
        screen.say("   no checkpoints yet")
        screen.note("`takeback checkpoint -m NAME` makes one")
        return
    screen.note("`takeback rollback REF` restores one; REF is a name or an id")
    if not given.has("all"):
        screen.note("`takeback log --checkpoints --all` also lists those that turns made")


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
        screen.say("   no turns match" if asked else "   no turns yet")
        if not asked:
            screen.note("`takeback run -- COMMAND` records a command as a turn")
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
