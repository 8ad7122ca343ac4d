r"""`takeback run -- COMMAND…`: a turn around any command.

Whatever the command is, it should not notice, and neither should who reads its output: stdout is
its alone. What we have to say goes to stderr, after it is over.

The command gets our own stdin, stdout, stderr, terminal, process group, folder and limits, not
copies of them: nothing is passed on because nothing is taken away. What is left to do is signals.

- The terminal sends Ctrl-C, Ctrl-\, Ctrl-Z and a new window size to the whole foreground group,
  so the command has got them already. A signal that was sent to us alone is passed on.
- When the command stops (Ctrl-Z), so do we: the shell waits for us. `fg` wakes both.
- No signal ends us. They are blocked, and taken one by one where we wait, so that none interrupts
  what is done before and after the command runs.

It is a Unix matter: macOS cannot say who sent a signal, so there a keyboard signal counts as the
terminal's while we are in the foreground.
"""

import contextlib
import errno
import os
import signal
import sys
import time

from takeback.cli.app import open_project, with_way_back
from takeback.cli.parser import EVERYDAY, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.text import loss_text, state_text, turn_text
from takeback.disk import programs
from takeback.errors import (
    DamagedStoreError,
    DecisionNeededError,
    RefusedError,
    TakebackError,
    UnknownReferenceError,
    UnsafeRootError,
)
from takeback.model import reasons, tools
from takeback.model import words as terms
from takeback.model.reasons import Action
from takeback.model.text.safe_text import shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from takeback.cli.screen import Screen
    from takeback.model.history import RecordedTurn
    from takeback.model.text.json_text import Json
    from takeback.project import Project
    from takeback.session import Turn

COMMAND = Command(
    "run",
    "run a command as a turn that you can undo",
    text=(
        "The command starts once a checkpoint of the project exists. It runs in the current\n"
        "folder, with your terminal, stdin and stdout; it gets your signals, and its exit code is\n"
        "ours. When it ends, Takeback reports on stderr what it changed. If the store is damaged,\n"
        "unreachable, full or of a newer Takeback, Takeback reports that and runs the command\n"
        "without cover; with --only-covered it does not start. The command finds its session and\n"
        "turn in TAKEBACK_SESSION and TAKEBACK_TURN. A `takeback run` inside it becomes a step of\n"
        "that turn, unless it names a session.\n"
        "Write `--` before COMMAND if an option after it could be Takeback's.\n"
        "With --json the last line on stderr is one JSON object; stdout is the command's alone."
    ),
    operands=("-- COMMAND…",),
    options=(
        Option(("-m", "--label"), "name of the turn (default: the command itself)", "LABEL"),
        Option(
            ("--session",),
            "session of the turn; turns with the same NAME share it",
            "NAME",
        ),
        Option(("--only-covered",), "do not start the command if Takeback cannot cover it"),
        Option(("-q", "--quiet"), "do not report what changed"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback run npm run format", "see what a formatter did"),
        ('takeback run -m "try codemod" -- sh -c "…"', "pipes and the like need a shell"),
        ("takeback run --session nightly -- ./job", "put turns into one session"),
        ("takeback run -q -- make | tee log", "stdout is as without takeback"),
    ),
    group=EVERYDAY,
)

_OFF = "off in this project, so nothing is recorded; `takeback on` turns it on"
_MOST_SHOWN = 10
_LONG = 60
_WATCHED_EVERY = 0.1
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126

_OWN_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
_NOT_OURS = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGTTIN, *_OWN_FAULTS}
_TAKEN = signal.valid_signals() - _NOT_OURS
_KEYBOARD = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH, signal.SIGHUP}
_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM}


def run(given: "Arguments", screen: "Screen") -> int:
    with BlockedSignals() as quiet:
        wrapped = _Wrapped(given, screen, quiet)
        try:
            with open_project(given, screen, begin=True) as project:
                wrapped.tell_of_new_history(project)
                is_on = project.workspace.rules.is_recording()
                outcome = wrapped.run_in(project) if is_on else wrapped.run_unrecorded()
        except Exception as problem:  # noqa: BLE001 -- whatever it is
            outcome = wrapped.run_uncovered(problem)
    if outcome.signal:
        _die_of(outcome.signal)
    return outcome.code


class _Wrapped:
    """The command with a turn around it, or a step if it runs inside a turn already."""

    def __init__(self, given: "Arguments", screen: "Screen", quiet: "BlockedSignals") -> None:
        import shlex

        self._given = given
        self._screen = screen
        self._quiet = quiet
        self._path = _find(given.rest[0])
        self._command = tools.one_line(shlex.join(given.rest))
        self._outcome: Outcome | None = None
        self._joins = ""

    def run_in(self, project: "Project") -> "Outcome":
        """Run it. What fails afterwards must not hide how it ended."""
        try:
            id = "" if self._given.has("session") else os.environ.get("TAKEBACK_TURN", "")
            outer = _running_turn(project, id)
            if outer is None:
                return self._as_turn(project)
            outcome = self._as_step(outer, outer.recorded().session)
            self._tell(outer.recorded(), outcome)
        except Exception as problem:  # whatever it is
            if self._outcome is None:
                raise
            _complain(_deleted(project) or problem, self._screen)
            return self._outcome
        return outcome

    def run_unrecorded(self) -> "Outcome":
        """Run it without a turn: the user turned Takeback off here."""
        if self._given.has("only-covered"):
            raise RefusedError(
                "Takeback is off in this project, so this turn would not be covered",
                hint="`takeback on` turns it on",
            )
        with contextlib.suppress(OSError):  # nobody may be there to read it
            if not self._screen.json and not self._given.has("quiet"):
                self._screen.note(f"takeback: {_OFF}")
        self._quiet.close()
        self._outcome = self._run(dict(os.environb))
        if self._screen.json:
            code, number = self._outcome.code, self._outcome.signal or None
            self._screen.data({"covered": False, "recording": False, "exit_code": code,
                               "signal": number})  # fmt: skip
        return self._outcome

    def tell_of_new_history(self, project: "Project") -> None:
        """Say once that this is another folder than before, and how its old history goes on."""
        before = project.workspace.instead_of
        if before:
            from takeback.cli.commands.relocate import way_to_join

            self._joins = way_to_join(project)
            if not self._screen.json:
                self._screen.note(
                    f"takeback: this folder is not the one that project {before} "
                    "was in, so a new history begins here"
                )
                self._screen.note(f"takeback: `{self._joins}` continues the old one")

    def run_uncovered(self, problem: Exception) -> "Outcome":
        """Run it all the same: a store that is broken must not keep an agent from its work.

        That it cannot be taken back is said once, before it runs.
        """
        asks = (DecisionNeededError, UnsafeRootError, UnknownReferenceError, CannotStartError)
        if self._outcome is not None:
            _complain(problem, self._screen)
            return self._outcome
        if isinstance(problem, asks) or self._given.has("only-covered"):
            raise problem
        shown = _as_ours(problem)
        if isinstance(shown, DamagedStoreError):
            with_way_back(shown, self._given)
        with contextlib.suppress(OSError):  # nobody may be there to read it
            if not self._screen.json:
                self._screen.note("takeback: this turn is not covered: it cannot be taken back")
                self._screen.error(shown)
        self._quiet.close()
        self._outcome = self._run(dict(os.environb))
        if self._screen.json:
            ended: dict[str, Json] = {
                "covered": False,
                "exit_code": self._outcome.code,
                "signal": self._outcome.signal or None,
            }
            self._screen.error(shown, ended)
        return self._outcome

    def _as_turn(self, project: "Project") -> "Outcome":
        name, label = self._given.get("session"), tools.one_line(self._given.get("label"))
        if next(project.checkpoints(), None) is None:
            # The first look at a big tree takes its time, and says so.
            project.checkpoint(progress=self._screen.progress)
        # One look before and one after are all there is to see; the step says what ran between.
        with project.session("run", id=name, safe_points="turn", beside=True) as session:
            with session.turn(label or self._command, whole=False) as turn:
                outcome = self._as_step(turn, session.id)
                turn.end(_status(outcome))
            self._tell(turn.recorded(), outcome)
        return outcome

    def _as_step(self, turn: "Turn", session: str) -> "Outcome":
        self._quiet.close()
        with turn.step("run", {"command": self._command}, kind=terms.SHELL) as step:
            ours = {b"TAKEBACK_SESSION": session.encode(), b"TAKEBACK_TURN": turn.id.encode()}
            with TerminalWatch() as terminal:
                self._outcome = outcome = self._run({**os.environb, **ours})
            code = None if outcome.signal else outcome.code
            step.end(_status(outcome), exit_code=code, interactive=terminal.was_interactive)
        return outcome

    def _tell(self, turn: "RecordedTurn", outcome: "Outcome") -> None:
        joins: dict[str, Json] = {"join": self._joins} if self._joins else {}
        _tell(turn, outcome, self._given, self._screen, joins)

    def _run(self, environment: "Mapping[bytes, bytes]") -> "Outcome":
        ended = self._quiet.asked_to_end()
        if ended is not None:
            return ended
        mask = self._quiet.before
        return _Wait(_start(self._path, self._given.rest, environment, mask)).until_over()


def _status(outcome: "Outcome") -> str:
    if outcome.signal or (outcome.code and outcome.was_asked):
        return terms.INTERRUPTED
    return terms.FAILED if outcome.code else terms.DONE


def _tell(
    turn: "RecordedTurn",
    outcome: "Outcome",
    given: "Arguments",
    screen: "Screen",
    joins: "dict[str, Json]",
) -> None:
    if screen.json:
        ended: dict[str, Json] = {"exit_code": outcome.code, "signal": outcome.signal or None}
        screen.data({**turn_text.as_json(turn, screen.masker), **ended, **joins})
    elif given.has("quiet"):
        return
    elif turn.status == terms.RUNNING:
        screen.note(f"takeback: part of turn {turn.id[:6]}, which reports when it ends")
    else:
        screen.note(f"takeback: {turn_text.headline(turn, screen.masker)}")
        for line in turn_text.change_lines(turn.changes, _MOST_SHOWN, paint=screen.counted):
            screen.note(line)
        for line in turn_text.git_lines(turn, screen.masker):
            screen.note(line)
        if turn.shared:
            shared = count(len(turn.shared), "change")
            along = f"`takeback undo {turn.id[:6]} --shared` also takes it back"
            whose = state_text.shared_with(turn, screen.masker)
            screen.note(f"takeback: {shared} {whose}; {along}")
        if turn.left_out:
            screen.note(f"takeback: {count(len(turn.left_out), 'new path')} not covered")
        _tell_losses(turn, screen)
        _tell_what_next(turn, screen)


def _tell_what_next(turn: "RecordedTurn", screen: "Screen") -> None:
    if turn_text.can_return(turn):
        show = f"`takeback show {turn.id[:6]}` shows details"
        is_lost = any(loss.is_grave for loss in turn.losses)
        it = "the rest" if is_lost else "the files" if turn.git else "it"
        unsure = any(change.author.how == terms.PERHAPS for change in turn.changes)
        does = "asks first, because it may be your own work" if unsure else f"takes {it} back"
        screen.note(f"takeback: `takeback undo` {does}, {show}")
    elif any(found.code == reasons.GIT_GONE for found in turn.git):
        screen.note("takeback: git is not covered; restore `.git` from a clone or a backup")
    elif turn.git:
        how = f"`takeback undo {turn.id[:6]}` shows the git commands that reverse it"
        screen.note(f"takeback: git is not covered; {how}")


def _running_turn(project: "Project", id: str) -> "Turn | None":
    """The turn that another `takeback run` began; None if it does not run, or not here."""
    from takeback.session import Turn

    try:
        is_running = bool(id) and project.turn(id).status == terms.RUNNING
    except UnknownReferenceError:
        return None
    return Turn(project.recorder(), project, id) if is_running else None


def _tell_losses(turn: "RecordedTurn", screen: "Screen") -> None:
    for head, rows in loss_text.parts(turn.losses):
        screen.note(f"takeback: {head[0].lower()}{head[1:]}")
        for path, said in rows[:_MOST_SHOWN]:
            screen.note(f"  {path}  {said}")
        if len(rows) > _MOST_SHOWN:
            screen.note(f"  and {len(rows) - _MOST_SHOWN:,} more")


def _deleted(project: "Project") -> "TakebackError | None":
    """What to say if the command deleted the folder of the project itself."""
    if os.path.isdir(project.root):
        return None
    import shlex

    where = os.fsdecode(project.root)
    return TakebackError(
        f"the folder `{where}` is gone",
        hint=f"`takeback undo -C {shlex.quote(where)}` restores it",
    )


def _complain(problem: Exception, screen: "Screen") -> None:
    """Say that the command ran and that what it did may not be recorded."""
    shown = _as_ours(problem)
    shown.actions = shown.actions or ("`takeback checkpoint` keeps the project as it is now",)
    with contextlib.suppress(OSError):  # nobody may be there to read it
        screen.note("takeback: the command ran, but what it changed could not be recorded")
        screen.error(shown)


def _as_ours(problem: Exception) -> TakebackError:
    if isinstance(problem, TakebackError):
        problem.actions = problem.actions or (Action("doctor"),)
        return problem
    return TakebackError(f"{type(problem).__name__}: {problem}", hint=Action("doctor"))


# -- the terminal -------------------------------------------------------------------------------


class TerminalWatch:
    """Notices whether somebody sits at the terminal of a command, and may edit files meanwhile.

    A command that reads keys switches its terminal to raw mode, and back when it is over. One that
    runs for more than a minute leaves time to edit.
    """

    def __init__(self, fd: int = 0, clock: "Callable[[], float]" = time.monotonic) -> None:
        self._fd = fd
        self._clock = clock
        self._is_terminal = os.isatty(fd)
        self._began = clock()
        self.was_interactive = False

    def __enter__(self) -> "Self":
        if self._is_terminal:
            from threading import Event, Thread

            self._over = Event()
            self._thread = Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_terminal:
            self._over.set()
            self._thread.join()
            long = self._clock() - self._began > _LONG
            self.was_interactive = self.was_interactive or long

    def _watch(self) -> None:
        import termios

        with contextlib.suppress(termios.error, OSError):  # the terminal is gone
            while not self.was_interactive and not self._over.wait(_WATCHED_EVERY):
                flags = termios.tcgetattr(self._fd)[3]
                self.was_interactive = not flags & termios.ICANON


# -- the process --------------------------------------------------------------------------------


class CannotStartError(TakebackError):
    """The command cannot be started; the exit code is the one that shells use."""

    def __init__(self, message: str, exit_code: int, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class Outcome:
    """How a program ended: by itself with a code, or by a signal.

    `code` is what a shell would call it. `was_asked` tells that a signal which is meant to end
    programs arrived while it ran.
    """

    __slots__ = ("code", "signal", "was_asked")

    def __init__(self, code: int, *, was_asked: bool = False) -> None:
        self.signal = max(-code, 0)
        self.code = 128 - code if code < 0 else code
        self.was_asked = was_asked


class BlockedSignals:
    """While it lasts no signal ends us; those that came are forgotten at the end.

    Ctrl-C still does until `close` is called: a first checkpoint may take its time.
    """

    def __init__(self) -> None:
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN - {signal.SIGINT})
        self._reaped = signal.getsignal(signal.SIGCHLD)
        # Ignored, as some parents leave it, the kernel would not tell how the program ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def close(self) -> None:
        """From now on not even Ctrl-C ends us."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)

    def asked_to_end(self) -> "Outcome | None":
        """How the program would have ended, had it run when a signal came that waits by now."""
        for number in signal.sigpending() & _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                return Outcome(-number)
        return None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        for number in signal.sigpending() & _TAKEN:
            _forget(number)
        if self._reaped is not None:
            signal.signal(signal.SIGCHLD, self._reaped)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def _find(name: str) -> str:
    if "/" in name:
        return _require_executable(name, name)
    seen = ""
    for place in os.get_exec_path():
        path = os.path.join(place or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            seen = seen or path
    if seen:
        return _require_executable(seen, name)
    raise CannotStartError(
        f"there is no command `{name}`", _NOT_FOUND, hint="is it installed, and in your PATH?"
    )


def _require_executable(path: str, name: str) -> str:
    if not os.path.exists(path):
        hint = f"`ls {shell_word(os.path.dirname(path))}` lists what is there"
        raise CannotStartError(f"there is no file `{name}`", _NOT_FOUND, hint=hint)
    if os.path.isdir(path):
        hint = "`takeback run -C DIR -- COMMAND` works on the project in a folder"
        raise CannotStartError(f"`{name}` is a folder, not a command", _NOT_EXECUTABLE, hint=hint)
    if not os.access(path, os.X_OK):
        hint = f"`chmod +x {path}` makes it executable"
        raise CannotStartError(f"`{name}` is not executable", _NOT_EXECUTABLE, hint=hint)
    return path


def _start(
    path: str,
    words: "list[str]",
    environment: "Mapping[bytes, bytes]",
    mask: "set[int | signal.Signals]",
) -> int:
    try:
        try:
            return programs.start(path, words, environment, mask)
        except OSError as problem:
            if problem.errno != errno.ENOEXEC:
                raise
            # A script without its first line: shells run it, and so does `execvp`.
            shell = "/bin/sh"
            return programs.start(shell, [shell, path, *words[1:]], environment, mask)
    except OSError as problem:
        code = _NOT_FOUND if problem.errno == errno.ENOENT else _NOT_EXECUTABLE
        hint = f"`file {shell_word(path)}` tells what it is"
        raise CannotStartError(
            f"`{words[0]}` cannot be started: {problem.strerror}", code, hint=hint
        ) from None


class _Wait:
    """Waits for a program: passes signals on, stops when it stops."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._is_stopped = False
        self._was_asked = False

    def until_over(self) -> Outcome:
        while True:
            number, is_for_us_alone = _next_signal()
            self._was_asked = self._was_asked or number in _ENDING
            if number in {signal.SIGCHLD, signal.SIGCONT}:
                outcome = self._look()
                if outcome is not None:
                    return outcome
                if number == signal.SIGCONT and self._is_stopped:
                    self._send(number)
            elif is_for_us_alone:
                self._send(number)

    def _look(self) -> "Outcome | None":
        while True:
            options = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
            process, status = os.waitpid(self._process, options)
            if not process:
                return None
            if os.WIFSTOPPED(status):
                self._is_stopped = True
                self._stop_too(os.WSTOPSIG(status))
            elif os.WIFCONTINUED(status):
                self._is_stopped = False
            else:
                return Outcome(os.waitstatus_to_exitcode(status), was_asked=self._was_asked)

    def _send(self, number: int) -> None:
        # It is not reaped yet, so the id is still its own.
        with contextlib.suppress(PermissionError):  # it changed its user, as `sudo` does
            os.kill(self._process, number)

    def _stop_too(self, number: int) -> None:
        """Stop as the program did, if a shell is there that would wake us."""
        is_foreground = _is_foreground()
        if is_foreground is None or _leads_session():
            return
        if not (is_foreground or number in _JOB_CONTROL):
            return
        if number in _TAKEN:
            _forget(number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        if number in _TAKEN:
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def _die_of(number: int) -> None:
    """End as the program did; returns only if that cannot be."""
    import resource

    # One memory dump is enough, and the program's is the one that tells something.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError):  # nobody can change what SIGKILL does
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _next_signal() -> "tuple[int, bool]":
    """The next signal, and whether we alone got it: not the whole group."""
    if sys.platform == "darwin":
        number = int(signal.sigwait(_TAKEN))
        return number, number not in _KEYBOARD or not _is_foreground()
    info = signal.sigwaitinfo(_TAKEN)
    # A terminal that is closed tells the leader of the session alone, which we may be.
    is_told_alone = info.si_signo == signal.SIGHUP and _leads_session()
    return info.si_signo, info.si_code <= 0 or is_told_alone


def _leads_session() -> bool:
    return os.getsid(0) == os.getpid()


def _is_foreground() -> "bool | None":
    """Whether our group owns the terminal; None if there is no terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return None
    finally:
        os.close(terminal)


def _forget(number: int) -> None:
    """Drop a signal that is blocked and waits."""
    if number in signal.sigpending():
        signal.sigwait({number})
