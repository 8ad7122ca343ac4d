"""The command line: find the command, run it, turn errors into exit codes. Nothing else."""

import os
import sys

from takeback.cli import arguments
from takeback.cli.render import Screen
from takeback.errors import TakebackError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, Protocol

    from takeback.cli.arguments import Arguments, Command

    class Module(Protocol):
        """What the module of a command has."""

        COMMAND: Command
        run: Callable[[Arguments, Screen], int]


COMMANDS = (
    "checkpoint",
    "run",
    "undo",
    "redo",
    "rollback",
    "log",
    "show",
    "diff",
    "sessions",
    "extract",
    "verify",
    "keep",
    "gc",
    "usage",
    "forget",
    "relocate",
    "projects",
    "config",
    "doctor",
    "install",
    "uninstall",
    "hook",
    "demo",
)
"""The commands, each with a module of its name or one below; bare `takeback` is `status`."""
_MODULES = {"projects": "stores"}

_INTERRUPTED = 130


def main(argv: "list[str] | None" = None) -> int:
    """Run one command; return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    screen = Screen(json="--json" in arguments.own(words))
    try:
        return _run(words, screen)
    except TakebackError as problem:
        screen.error(problem)
        return problem.exit_code
    except KeyboardInterrupt:
        screen.note("interrupted; `takeback` shows what was made until then")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone.
        return 0
    except Exception as problem:  # noqa: BLE001 -- nobody shall have to read a traceback
        from takeback.cli import crash

        return crash.tell(problem, screen)


def entry() -> "NoReturn":
    """Run one command as the whole program."""
    _fill_gaps()
    code = main()
    _flush()
    # Everything is closed and written by now; taking the interpreter apart only costs time.
    os._exit(code)


def _flush() -> None:
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        # Nobody is there to read it; Python would complain about that once more.
        pass


def _fill_gaps() -> None:
    """Take the numbers of stdin, stdout and stderr where they are closed.

    Else a file that we open would have that number, and get what is meant for a person.
    """
    number = 0
    while number <= 2:
        number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(number)


def _run(words: "list[str]", screen: Screen) -> int:
    name, rest = arguments.split(words)
    ours = arguments.own(rest)
    if not name and "--version" in ours:
        from takeback.version import VERSION

        screen.say(f"takeback {VERSION}")
        return 0
    if name == "help" or (not name and ("-h" in ours or "--help" in ours)):
        return _help(rest, screen)
    module = load(name or "status")
    is_wrapper = arguments.is_wrapper(module.COMMAND)
    if is_wrapper and "-h" not in ours and "--help" not in ours:
        screen.step_aside()
    given = arguments.parse(module.COMMAND, rest)
    screen.json = given.has("json")
    screen.show_secrets = given.has("show-secrets")
    if given.has("help"):
        from takeback.cli import manual

        manual.show(module.COMMAND, screen)
        return 0
    code = module.run(given, screen)
    screen.finish()
    return code


def load(name: str) -> "Module":
    """The module of a command, imported only when it is called."""
    if name != "status" and name not in COMMANDS:
        raise UsageError(f"there is no command `{name}`", hint=_suggestion(name))
    name = _MODULES.get(name, name)
    module: Module = getattr(__import__(f"takeback.cli.{name}").cli, name)
    return module


def folder(given: "Arguments") -> bytes:
    """The folder to work on."""
    chosen = given.get("C")
    if not chosen:
        try:
            os.getcwd()
        except FileNotFoundError:
            raise UsageError(
                "the current folder is gone",
                hint="go into a folder that is there, or name one with -C DIR",
            ) from None
    return os.fsencode(chosen or ".")


def _help(rest: "list[str]", screen: Screen) -> int:
    from takeback.cli import manual

    topics = [word for word in rest if not word.startswith("-")]
    if topics:
        manual.show(load(topics[0]).COMMAND, screen)
    else:
        manual.overview([load(name).COMMAND for name in ("status", *COMMANDS)], screen)
    return 0


def _suggestion(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"did you mean `takeback {close[0]}`?" if close else "see `takeback --help`"
