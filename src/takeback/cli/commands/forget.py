"""`takeback forget`: take something out of the history for good."""

import os
import sys

from takeback.cli.app import folder, get_project, inside
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line, size
from takeback.errors import DecisionNeededError, UsageError
from takeback.model.forgotten import CONTENT, OUT_OF_REACH, PATH, TURN
from takeback.model.text.json_text import path_fields
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from takeback.model.forgotten import Forgotten, Touched
    from takeback.model.text.json_text import Json
    from takeback.project import Project

    class Request(TypedDict, total=False):
        """What is to be forgotten."""

        paths: list[bytes]
        turn: str
        content: bytes
        text: str
        names: bool
        inside: bytes


COMMAND = Command(
    "forget",
    "delete something from the history, for good",
    text=(
        "A PATH (a folder with everything below it) is deleted from every checkpoint. The log\n"
        "still shows that it existed and which turns touched it, unless you give --names.\n"
        "--content deletes exactly these bytes, under every name. --text asks for a text, or\n"
        "reads it from stdin, never from the command line, which other users can see. It deletes\n"
        "every file that holds the text, and the text itself from prompts, labels, steps and\n"
        "names. A TURN loses its words and the states that only it has; it can no longer be taken\n"
        "back.\n"
        "\n"
        "Takeback rewrites packs and ledger, and then searches everything, unpacked and byte by\n"
        "byte. Only then is it done. Files in the work tree stay: the next checkpoint captures\n"
        "them again. A restore never removes or overwrites anything because it was forgotten.\n"
        "Takeback first shows what would be deleted, and asks.\n"
        "\n"
        "Takeback cannot reach backups, copies made with `extract`, snapshots of the file system,\n"
        "git remotes that you pushed to, and what the disk itself still holds of deleted files."
    ),
    operands=("[PATH…|TURN]", "[-- PATH…]"),
    options=(
        Option(("--names",), "with PATH: also forget its name"),
        Option(("--content",), "every file with exactly these bytes; `-` for stdin", "FILE"),
        Option(("--text",), "every file and every entry of the log that holds a text; asks for it"),
        Option(("--turn",), "this turn, even if a path has the same name", "TURN"),
        Option(("-n", "--dry-run"), "show what would be forgotten, and change nothing"),
        Option(("-y", "--yes"), "do not ask"),
        Option(("--continue",), "resume a `forget` that was interrupted"),
    ),
    examples=(
        ("takeback forget .env", "delete its content from all checkpoints"),
        ("takeback forget --names customers/", "a folder, with all names in it"),
        ("takeback forget --text", "a token, wherever it is; Takeback asks for it"),
        ("takeback forget --content key.pem", "this content, under every name"),
        ("takeback forget mvkr", "the words of a turn"),
        ("takeback forget .env --dry-run", "only show what would be forgotten"),
    ),
    group=CARE,
    warning="deletes history for good",
)

_MOST_SHOWN = 10
_ONLY_FILES = "prompts and commands stay: `takeback forget --text` deletes a text from them"


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        if given.has("continue"):
            return _continue(project, screen)
        request = _request(given, project)
        would = project.forget(**request, dry_run=True, progress=screen.progress)
        assert would.touched is not None, "a preview always knows"
        if given.has("dry-run"):
            return _show(would, screen, is_trial=True)
        if not given.has("yes"):
            refused = _ask(would, screen)
            if refused:
                return refused
        done = project.forget(**request, progress=screen.progress)
        paths = done.touched.paths if done.touched is not None else []
        left = [
            path for path in paths if os.path.lexists(os.path.join(project.workspace.root, path))
        ]
        return _show(done, screen, left=left)


def _continue(project: "Project", screen: "Screen") -> int:
    is_one = project.continue_forgetting(progress=screen.progress)
    if screen.json:
        screen.data({"continued": is_one, "done": True})
    elif is_one:
        screen.say("Forgotten; Takeback searched everything and found nothing left of it")
        screen.note(OUT_OF_REACH)
    else:
        screen.say("There is no interrupted `forget`")
    return 0


# -- what is meant -----------------------------------------------------------------------------


def _request(given: "Arguments", project: "Project") -> "Request":
    here = inside(project, folder(given))
    ways = [name for name in ("content", "text", "turn") if given.has(name)]
    words = [os.fsencode(word) for word in (*given.operands, *given.rest)]
    if len(ways) + bool(words) != 1:
        raise UsageError(
            "`forget` needs one of PATH, TURN, --content FILE and --text",
            hint="see `takeback forget --help`",
        )
    if given.has("names") and not words:
        raise UsageError("`--names` is for paths", hint="`--text` includes names")
    if given.has("content"):
        return {"content": _content(given.get("content"), folder(given))}
    if given.has("text"):
        return {"text": _text()}
    if given.has("turn"):
        return {"turn": given.get("turn")}
    from takeback.upkeep.forget import Forgetter

    forgetter, named = Forgetter(project.workspace), map(os.fsencode, given.operands)
    unknown = [word for word in named if not forgetter.is_path(word, here)]
    if not unknown:
        return {"paths": words, "names": given.has("names"), "inside": here}
    if len(words) > 1 or given.has("names"):
        raise UsageError(
            f"`{os.fsdecode(unknown[0])}` is not a path in the history",
            hint="`takeback forget -- PATH…` treats it as a path; turns are forgotten one by one",
        )
    return {"turn": os.fsdecode(unknown[0])}


def _content(name: str, here: bytes) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        with open(os.path.join(here, os.fsencode(name)), "rb") as file:
            return file.read()
    except OSError as problem:
        raise UsageError(
            f"`{name}` cannot be read: {problem.strerror}", hint="`--content -` reads stdin"
        ) from None


def _text() -> str:
    """The text, from stdin or from somebody who types it without seeing it."""
    if sys.stdin.isatty():
        import getpass

        typed = getpass.getpass("Text to forget (not echoed): ")
    else:
        typed = os.fsdecode(sys.stdin.buffer.read())
    if not typed.strip("\r\n"):
        raise UsageError("the text is empty", hint="printf %s TEXT | takeback forget --text --yes")
    return typed.strip("\r\n")


# -- what is said ------------------------------------------------------------------------------


def _ask(would: "Forgotten", screen: "Screen") -> int:
    """0 if somebody agreed, else the exit code."""
    if screen.can_ask:
        _say(would, screen, "Would forget")
        if screen.ask("Forget this for good? It cannot be taken back."):
            return 0
        screen.note("nothing was forgotten")
        return DecisionNeededError.exit_code
    problem = DecisionNeededError(
        "nothing was forgotten: this is not a terminal, so Takeback cannot ask",
        hint="the same command with --yes forgets it; --dry-run shows what would be forgotten",
    )
    if not screen.json:
        _say(would, screen, "Would forget")
    screen.error(problem, {"would": _facts(would, done=False)})
    return problem.exit_code


def _show(
    found: "Forgotten",
    screen: "Screen",
    *,
    is_trial: bool = False,
    left: "list[bytes] | None" = None,
) -> int:
    if screen.json:
        screen.data(_facts(found, done=not is_trial))
        return 0
    _say(found, screen, "Would forget" if is_trial else "Forgot")
    if is_trial:
        screen.note("nothing was forgotten yet; forgetting cannot be taken back")
        return 0
    rest = "nothing else" if found.touched and found.touched.elsewhere else "nothing"
    screen.say(
        f"Searched {size(found.scanned)}, unpacked and byte by byte: found {rest} left of it"
    )
    for path in (left or [])[:_MOST_SHOWN]:
        shown = safe_line(os.fsdecode(path))
        screen.note(f"{shown} is still in the work tree: the next checkpoint captures it again")
    if found.kind == PATH:
        screen.note(_ONLY_FILES)
    screen.note(OUT_OF_REACH)
    return 0


def _say(found: "Forgotten", screen: "Screen", verb: str) -> None:
    touched = found.touched
    assert touched is not None, "only what somebody else began is not known"
    screen.say(f"{verb} {_in_words(found.kind, touched)}")
    for path in touched.paths[:_MOST_SHOWN]:
        screen.say(f"  {safe_line(os.fsdecode(path))}")
    if len(touched.paths) > _MOST_SHOWN:
        screen.say(f"  and {count(len(touched.paths) - _MOST_SHOWN, 'more', 'more')}")
    for path, other in touched.elsewhere[:_MOST_SHOWN]:
        names = safe_line(os.fsdecode(path)), safe_line(os.fsdecode(other))
        screen.say(f"! the content of {names[0]} stays, because {names[1]} has the same content")
    if touched.elsewhere:
        screen.say("  `takeback forget --content FILE` deletes a content under all its names")


def _in_words(kind: str, touched: "Touched") -> str:
    what = {
        PATH: count(len(touched.paths), "path"),
        CONTENT: "this content",
        TURN: "the words of this turn",
    }.get(kind, "this text")
    where = [
        (touched.versions, f"{count(touched.versions, 'version')} of {size(touched.bytes)}"),
        (touched.checkpoints, f"in {count(touched.checkpoints, 'checkpoint')}"),
        (touched.gone, f"{count(touched.gone, 'checkpoint')} as a whole"),
        (touched.events, f"in {count(touched.events, 'entry', 'entries')} of the log"),
        (touched.turns, f"touches {count(touched.turns, 'turn')}"),
    ]
    return ", ".join([what, *(said for number, said in where if number)])


def _facts(found: "Forgotten", *, done: bool) -> "dict[str, Json]":
    touched = found.touched
    assert touched is not None, "only what somebody else began is not known"
    return {
        "done": done,
        "forgotten": found.id if done else None,
        "what": found.kind,
        "paths": [path_fields(path) for path in touched.paths],
        "versions": touched.versions,
        "bytes": touched.bytes,
        "checkpoints": touched.checkpoints,
        "checkpoints_gone": touched.gone,
        "events": touched.events,
        "turns": touched.turns,
        "elsewhere": [
            {"forgotten": path_fields(path), "stays": path_fields(other)}
            for path, other in touched.elsewhere
        ],
        "searched": found.scanned,
        "out_of_reach": OUT_OF_REACH,
    }
