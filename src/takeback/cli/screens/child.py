r"""The program that `takeback run` starts, with our terminal and our signals.

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

from takeback.disk import programs
from takeback.errors import TakebackError
from takeback.model.text.safe_text import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

LONG = 60
"""Seconds after which somebody at the terminal had the time to edit files."""
_WATCHED_EVERY = 0.1
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126

_OWN_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
_NOT_OURS = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGTTIN, *_OWN_FAULTS}
_TAKEN = signal.valid_signals() - _NOT_OURS
_KEYBOARD = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH, signal.SIGHUP}
_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM}


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
            long = self._clock() - self._began > LONG
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


def find(name: str) -> str:
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


def start(
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


class Wait:
    """Waits for a program: passes signals on, stops when it stops."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._is_stopped = False
        self._was_asked = False

    def until_over(self) -> Outcome:
        while True:
            number, is_for_us_alone = _next_signal()
            # Another thread of this process may have taken the signal: look now and then.
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


def die_of(number: int) -> None:
    """End as the program did; returns only if that cannot be."""
    import resource

    # One memory dump is enough, and the program's is the one that tells something.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError):  # nobody can change what SIGKILL does
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


_LOOK_AGAIN = 1.0
"""Seconds."""


def _next_signal() -> "tuple[int, bool]":
    """The next signal, and whether we alone got it: not the whole group."""
    if sys.platform == "darwin":
        number = int(signal.sigwait(_TAKEN))
        return number, number not in _KEYBOARD or not _is_foreground()
    info = signal.sigtimedwait(_TAKEN, _LOOK_AGAIN)
    if info is None:
        return signal.SIGCHLD, False
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
