"""The command line: find the command, run it, turn errors into exit codes. Nothing else.

Errors that nobody expected: one sentence, and the details in a file.
"""

import os
import sys
import time

from takeback.cli import parser
from takeback.cli.screen import Screen
from takeback.errors import DamagedStoreError, InternalError, TakebackError, UsageError
from takeback.model.reasons import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn, Protocol

    from takeback.cli.parser import Arguments, Command
    from takeback.errors import Hint
    from takeback.model.reasons import Reason
    from takeback.project import Project

    class Module(Protocol):
        """What the module of a command has."""

        COMMAND: Command
        run: Callable[[Arguments, Screen], int]


_DEBUG = "TAKEBACK_DEBUG"


def report_bug(problem: Exception, screen: "Screen") -> int:
    """Show what went wrong; the exit code. With `TAKEBACK_DEBUG=1`, the traceback, too."""
    if os.environ.get(_DEBUG, "0") != "0":
        screen.note(_details(problem))
    from takeback.disk import sqlite

    shown: TakebackError
    if isinstance(problem, OSError):
        shown = _of_the_system(problem)
    elif isinstance(problem, sqlite.OperationalError):
        shown = TakebackError(f"SQLite reported: {problem}", hint="`takeback doctor` shows details")
    else:
        shown = _bug(problem)
    screen.error(shown)
    return shown.exit_code


def _of_the_system(problem: OSError) -> TakebackError:
    from takeback.disk import failures

    where = f" (`{failures.named(problem.filename)}`)" if problem.filename else ""
    what = problem.strerror or str(problem)
    hint = failures.hint(problem) or (f"`{_DEBUG}=1` before the command shows where it failed",)
    return TakebackError(f"the system refused: {what}{where}", hint=hint)


def _bug(problem: Exception) -> InternalError:
    what = f"{type(problem).__name__}: {problem}".rstrip(": ")
    place = _written(_details(problem))
    details = f"with the details in `{place}`" if place else f"with what `{_DEBUG}=1` shows"
    return InternalError(
        f"this is a bug in Takeback; your files are safe ({what})",
        hint=f"report it {details}; remove secrets first",
    )


def _details(problem: Exception) -> str:
    import platform
    import traceback

    from takeback.version import VERSION

    where = f"takeback {VERSION}, Python {platform.python_version()}, {platform.platform()}"
    return "\n".join((where, "".join(traceback.format_exception(problem)))).rstrip()


def _written(text: str) -> str:
    """The file that the details are in; empty if there is no room for one.

    It is never made in the current folder, as `tempfile` would do in the end.
    """
    from takeback.disk import operations

    for folder in filter(os.path.isabs, (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")):  # noqa: S108
        path = f"{folder}/takeback-{int(time.time())}-{os.getpid()}.txt"
        try:
            fd = operations.create(os.fsencode(path))
            try:
                operations.write(fd, text.encode("utf-8", "backslashreplace") + b"\n")
            finally:
                os.close(fd)
        except OSError:
            continue
        return path
    return ""


COMMANDS = tuple(
    """
    checkpoint run watch undo redo rollback apply log show why diff sessions extract verify keep gc
    usage forget relocate projects config doctor install uninstall pause resume
    lessons effects guard participant
    off on hook mcp statusline completion man demo
    """.split()
)
"""The commands, each with a module of its name or one below; bare `takeback` is `status`."""
INTERRUPTED = 130


def main(argv: "list[str] | None" = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] in (["__complete"], ["__typed"]):
        return _answer(*words)
    screen = Screen(json="--json" in parser.own(words), color=parser.color(words))
    try:
        try:
            return _run(words, screen)
        finally:
            screen.leave()
    except TakebackError as problem:
        screen.error(problem)
        return problem.exit_code
    except KeyboardInterrupt:
        screen.note("interrupted; `takeback` shows the current state")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone.
        return 0
    except Exception as problem:  # noqa: BLE001 -- nobody shall have to read a traceback
        return report_bug(problem, screen)


def _answer(question: str, *words: str) -> int:
    """What programs ask of ours: a shell for what can be typed, a hook for what was."""
    if question == "__typed":
        from takeback.cli.screens import typed

        return typed.main()
    from takeback.cli import completion

    return completion.answer(list(words), Screen())


def entry() -> "NoReturn":
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
    name, rest = parser.split(words)
    ours = parser.own(rest)
    if name == "version" or (not name and ("--version" in ours or "-V" in ours)):
        from takeback.version import VERSION

        screen.say(f"takeback {VERSION}")
        return 0
    if name == "help" or (not name and ("-h" in ours or "--help" in ours)):
        return _help(rest, screen)
    module = load(name if name in COMMANDS else meant(name, rest))
    is_wrapper = parser.is_wrapper(module.COMMAND)
    if is_wrapper and "-h" not in ours and "--help" not in ours:
        screen.step_aside()
    given = parser.parse(module.COMMAND, rest)
    screen.json = given.has("json")
    screen.show_secrets = given.has("show-secrets")
    screen.no_pager = given.has("no-pager")
    if given.has("help"):
        parser.show(module.COMMAND, screen)
        return 0
    try:
        code = module.run(given, screen)
    except DamagedStoreError as problem:
        raise with_way_back(problem, given) from None
    screen.finish()
    return code


def with_way_back(problem: DamagedStoreError, given: "Arguments") -> DamagedStoreError:
    """An error whose hint says how the folder is covered again, if the store cannot be used."""
    from takeback import environment, location

    unusable = location.find_unusable(folder(given), home=environment.default_home())
    is_told = any(isinstance(each, Action) and each.facts for each in problem.actions)
    if unusable is not None and not is_told:
        here = Action("new-history-at", path=os.fsdecode(unusable))
        problem.actions = (here, "the damaged history is kept", Action("doctor"))
    return problem


def _quoted(path: bytes) -> str:
    import shlex

    return shlex.quote(os.fsdecode(path))


def meant(word: str, rest: "Sequence[str]" = ()) -> str:
    """The command that a word means which is none; an error that names it, if it is not sure."""
    from takeback.cli import vocabulary

    return vocabulary.command(word, rest)


def load(name: str) -> "Module":
    """The module of a command, imported only when it is called."""
    module: Module = getattr(__import__(f"takeback.cli.commands.{name}").cli.commands, name)
    return module


def folder(given: "Arguments") -> bytes:
    chosen = given.get("C")
    if not chosen:
        try:
            os.getcwd()
        except FileNotFoundError:
            raise UsageError(
                "the current folder does not exist any more", hint=_out_of_gone_folder()
            ) from None
    return os.fsencode(chosen or ".")


def _out_of_gone_folder() -> str:
    from takeback import environment, location
    from takeback.disk.home import Home

    gone = location.find_gone(environment.current_folder(), Home(environment.default_home()))
    if gone is None:
        return "change to an existing folder, or name one with -C DIR"
    return f"`takeback undo -C {_quoted(gone.path)}` restores it"


def open_project(given: "Arguments", screen: Screen, *, begin: bool = False) -> "Project":
    """The project that the folder is in, made on first use.

    With `begin`, a folder that may be another one than before gets a new history, unasked.
    """
    from takeback import environment
    from takeback.project import Project

    home, user_home = environment.default_home(), environment.user_home()
    found = Project.open(folder(given), home=home, user_home=user_home, begin=begin)
    project = attach(found, screen)
    _end_interrupted(project)
    return project


def find_project(given: "Arguments", screen: Screen) -> "Project | None":
    from takeback import environment
    from takeback.project import Project

    found = Project.find(folder(given), home=environment.default_home())
    if found is not None:
        attach(found, screen)
        _end_interrupted(found)
    return found


def _end_interrupted(project: "Project") -> None:
    """Close the turns that were interrupted inside an agent, which no hook reports."""
    if project.workspace.ledger.sessions.has_open():
        project.recorder().end_interrupted()


def get_project(given: "Arguments", screen: Screen) -> "Project":
    project = find_project(given, screen)
    if project is None:
        path = folder(given)
        where = os.fsdecode(os.path.realpath(path))
        raise UsageError(f"`{where}` is not in a project yet", hint=_how_to_begin(path))
    return project


def _how_to_begin(path: bytes) -> "Hint":
    """What makes a folder a project; some, such as the home folder, cannot be one."""
    from takeback import environment, location

    try:
        location.root_of(path, home=environment.default_home(), user_home=environment.user_home())
    except TakebackError as problem:
        return ("this folder cannot be a project", *problem.actions)
    return "`takeback checkpoint` makes it a project"


def attach(project: "Project", screen: Screen) -> "Project":
    """Report the project's recovery when it happens: when it is opened, or later locked."""
    told: list[Reason] = []

    def news() -> "list[str]":
        unread = project.workspace.rules.unread_settings
        if not project.recovered and not unread:
            return []
        from takeback.cli.text.reason_text import sentence
        from takeback.model.reasons import SETTINGS_UNREAD, Reason

        found = [*project.recovered, *(Reason(SETTINGS_UNREAD, problem=each) for each in unread)]
        told.extend(reason for reason in found if reason not in told)
        return [sentence(reason) for reason in told]

    def needed(id: str) -> int:
        try:
            return project.reader.shortened([id])[id].needed
        except TakebackError:
            return len(id)  # a store that cannot be read changes no more than a colour

    screen.listen(news)
    screen.needed = needed
    project.workspace.progress = screen.progress
    screen.secret_names = project.workspace.rules.secret_names
    return project


def inside(project: "Project", here: bytes) -> bytes:
    """The current folder, counted from the project's root."""
    way = os.path.relpath(os.path.realpath(here), project.workspace.root)
    return b"" if way == b"." or way.startswith(b"..") else way


def is_path(word: str, project: "Project", here: bytes) -> bool:
    """Whether a word names a file or folder: one that is there, or that an agent deleted."""
    try:
        project.log(1, paths=[word], inside=inside(project, here), changes=False)
    except TakebackError:
        return os.path.lexists(os.path.join(here, os.fsencode(word)))
    return True


def _help(rest: "list[str]", screen: Screen) -> int:
    topics = [word for word in rest if not word.startswith("-")]
    if topics and topics[0] != "all":
        parser.show(load(meant(topics[0])).COMMAND, screen)
        return 0
    names = dict.fromkeys(("status", "undo", "redo", "rollback", *COMMANDS))
    commands = [load(name).COMMAND for name in names]
    if topics or "--all" in rest:
        parser.overview(commands, screen)
    else:
        parser.page_one(commands, screen)
    return 0
