"""`takeback log`: the timeline, by prompt."""

import time

from takeback.cli import screen as layout
from takeback.cli.app import folder, get_project, inside
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import now_text, path_text, state_text, turn_text
from takeback.errors import TakebackError, UnknownReferenceError, UsageError
from takeback.model.history import RecordedTurn
from takeback.model.text.safe_text import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.model.history import Log, Unrecorded
    from takeback.project import Project

_USUAL = 20

COMMAND = Command(
    "log",
    "list turns, newest first: prompt, agent, what changed",
    text=(
        "First the files as they are now: what changed since the last checkpoint, and by whom.\n"
        "Then one line per turn: its result, its id, its `@~N`, when it was, the agent, the\n"
        "prompt, lines added and removed, files. ○ is done, ✗ failed, ! interrupted, ▶ running,\n"
        "↶ a rollback, ◆ the name of a checkpoint. Turns that were undone or rolled back are left\n"
        "out. Wherever a command takes a REF, the shown letters of an id are enough. TIME is\n"
        "`10m`, `an hour ago`, `14:05`, `monday`, `yesterday 15:00` or `2026-11-15 14:05`.\n"
        "Nothing is written.\n"
        "\n"
        "With PATH, lists the turns that touched this file, also under its older names, or\n"
        "anything below this folder. Lines and files are those at PATH. Write `--` before a PATH\n"
        "that begins with `-`.\n"
        "\n"
        "With -i the log fills the terminal: turns on the left, the chosen one and its diff on\n"
        "the right. There `u` undoes it and `r` redoes it, after a preview; `?` lists the keys."
    ),
    operands=("[PATH…]",),
    options=(
        Option(
            ("-n", "--limit"), f"list N turns at most (default: {_USUAL}; with --all: all)", "N"
        ),
        Option(("--grep",), "only turns whose prompt has TEXT, in any case", "TEXT"),
        Option(("--since",), "only turns that began since then", "TIME"),
        Option(("--until",), "only turns that began until then", "TIME"),
        Option(("--session",), "only turns of this session", "SESSION"),
        Option(("--all",), "also undone turns, and all restores"),
        Option(("--checkpoints",), "list your checkpoints, named or kept, instead of turns"),
        Option(("-i", "--interactive"), "browse the log on the whole terminal: see, undo, redo"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback log", "the last turns"),
        ("takeback log src/pay.py", "the turns that touched a file"),
        ("takeback log -n 5", "the last five"),
        ("takeback log --grep login", "those whose prompt says login"),
        ("takeback log --since yesterday", "since yesterday morning"),
        ("takeback log --session mvkr --all", "everything in one conversation"),
        ("takeback log -i", "browse turns and their diffs; undo and redo there"),
        ("takeback log --checkpoints", "the names that you gave"),
    ),
    group=LOOK,
)

_NARROW = ("session", "since", "until", "grep")


def run(given: "Arguments", screen: "Screen") -> int:
    if given.has("interactive"):
        return _browse(given, screen)
    limit = _limit(given)
    with get_project(given, screen) as project:
        if given.has("checkpoints"):
            _checkpoints(project, given, limit, screen)
            return 0
        has_changes = screen.json or bool(given.operands)
        log = _read(project, given, limit, all=given.has("all"), changes=has_changes)
        seen = project.now()
        if log.paths:
            changes = [each for each in seen.changes if path_text.covers(log, each.raw_path)]
            seen = seen.replace(changes=tuple(changes))
        short = project.reader.shortened(() if screen.json else turn_text.ids(log, seen.undo))
    if screen.json:
        screen.data(
            {
                "here": log.here or None,
                "now": now_text.as_json(seen, screen.masker),
                "turns": [turn_text.as_json(turn, screen.masker) for turn in log.turns],
                "restores": [turn_text.restore_json(each, screen.masker) for each in log.restores],
                "names": [now_text.name_json(each, screen.masker) for each in log.names],
                "paths": [path_text.as_json(each) for each in log.paths],
                "plans": state_text.plans_json(log, screen.masker),
            }
        )
        return 0
    _show(log, seen, short, screen)
    _notes(log, given, limit, screen)
    return 0


def _read(
    project: "Project",
    given: "Arguments",
    limit: "int | None",
    *,
    all: bool,
    changes: bool,
    before: "str | None" = None,
) -> "Log":
    try:
        return project.log(
            limit,
            session=given.get("session") or None,
            since=given.get("since") or None,
            until=given.get("until") or None,
            grep=_text(given),
            paths=given.operands,
            inside=inside(project, folder(given)),
            all=all,
            changes=changes,
            before=before,
        )
    except UnknownReferenceError as problem:
        meant = [hint for word in given.operands for hint in _what_else(project, word)]
        problem.actions = tuple(meant) or problem.actions
        raise


def _text(given: "Arguments") -> str:
    if given.has("grep") and not given.get("grep").strip():
        raise UsageError("`--grep` needs a text", hint="`takeback log --grep login`")
    return given.get("grep")


def _what_else(project: "Project", word: str) -> "Iterator[str]":
    """What a word means that is no path."""
    from contextlib import suppress

    name = shell_word(word)
    with suppress(TakebackError):
        if isinstance(project.recorded(word), RecordedTurn):
            yield f"`takeback show {name}` shows the turn"
            return
    with suppress(TakebackError):
        project.log(1, session=word, changes=False)
        yield f"`takeback log --session {name}` lists the turns of the session"


def _show(log: "Log", seen: "Unrecorded", short: "Mapping[str, str]", screen: "Screen") -> None:
    now = time.time()
    screen.page()
    state = path_text.state(log, seen, now) if log.paths else now_text.state(log, seen, now)
    said = f"@  now  {state}"
    if not screen.is_terminal:
        said = layout.cut(said, layout.width(screen), layout.marks(screen).cut)
    screen.say(screen.style(said[:6], "bold") + said[6:], 8)
    now_text.show_changes(log, seen, screen)
    turn_text.show_turns(path_text.of_paths(log) if log.paths else log, short, screen, now)
    if log.paths:
        if not log.turns and not log.undone:
            screen.say(f"   {_none(log)}")
        path_text.notes(log, short, screen)
        return
    if log.turns:
        screen.note(f"`takeback show {short[log.turns[0].id]}` shows a turn in full")
    now_text.note_undo(seen.undo, short, screen)


def _browse(given: "Arguments", screen: "Screen") -> int:
    from takeback.cli.screens import browse

    browse.require(given, screen)
    with get_project(given, screen) as project:
        return browse.Browser(
            project,
            screen,
            lambda limit, before: _read(
                project, given, limit, all=True, changes=True, before=before
            ),
        ).run()


def _checkpoints(
    project: "Project", given: "Arguments", limit: "int | None", screen: "Screen"
) -> None:
    """Checkpoints instead of turns."""
    if given.operands or any(map(given.has, _NARROW)):
        raise UsageError(
            "`--checkpoints` cannot be combined with a PATH or with options that choose turns",
            hint="`takeback log --checkpoints -n 50` lists more of them",
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
        raise UsageError(f"`--limit` takes a number, not `{text}`", hint="`takeback log -n 50`")
    return int(text)


def _notes(log: "Log", given: "Arguments", limit: "int | None", screen: "Screen") -> None:
    again = f"takeback log{_narrowed(given)}"
    if log.undone:
        are = "turn is" if log.undone == 1 else "turns are"
        paths = _paths(given) if log.paths else ""
        screen.note(f"{log.undone:,} undone {are} not shown: `takeback log --all{paths}`")
    if not log.turns and not log.undone:
        asked = given.operands or any(map(given.has, _NARROW))
        if not log.paths:
            screen.say(f"   {_none(log)}" if asked else "   no turns yet")
        if not asked:
            screen.note("`takeback run COMMAND` records a command as a turn")
        elif given.has("grep") and not given.has("all"):
            screen.note(f"`{again} --all{_paths(given)}` also searches undone turns")
        return
    if log.more and limit is not None:
        screen.note(f"`{again} -n {limit * 2}{_paths(given)}` shows more")


def _none(log: "Log") -> str:
    return "no turn touched it" if len(log.paths) == 1 else "no turns match"


def _narrowed(given: "Arguments") -> str:
    """The options that choose turns, as one would type them again."""
    chosen = [f" --{name} {_word(given.get(name))}" for name in _NARROW if given.has(name)]
    return "".join([" --all" if given.has("all") else "", *chosen])


def _paths(given: "Arguments") -> str:
    mark = " --" if any(path.startswith("-") for path in given.operands) else ""
    return mark + "".join(f" {_word(path)}" for path in given.operands)


def _word(text: str) -> str:
    return safe_line(shell_word(text))
