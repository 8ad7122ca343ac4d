"""The one place that starts programs: what `takeback run`, the settings and the environment name,
and ourselves.
"""

import os
import sys

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from signal import Signals
    from subprocess import Popen
    from typing import Self

    Word = str | bytes

_DETACH = (
    'TAKEBACK_HOME=$1; export TAKEBACK_HOME; shift; nice -n 10 "$@" </dev/null >/dev/null 2>&1 &'
)
_PIPED = 'text=$1; shift; printf %s "$text" | "$@" >/dev/null 2>&1 &'
_ASIDE = 'exec 3<&0; "$@" <&3 3<&- &'
"""A shell that ends at once; it would take stdin from a program that goes on, so that is kept."""
_LONGEST_START = 5.0


class Ended(Value):
    """How a program ended: its exit code, negative for a signal, and what it wrote, if captured."""

    code: int
    output: bytes = b""
    errors: bytes = b""


def find(name: str) -> str:
    """The path of a program in the `PATH`; empty if it has none.

    Relative folders do not count: in a project, `.` would mean an agent's files.
    """
    for folder in filter(os.path.isabs, os.get_exec_path()):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def start(
    path: str,
    words: "list[str]",
    environment: "Mapping[bytes, bytes]",
    mask: "set[int | Signals]",
) -> int:
    """Start a program that shares our terminal and our files; return its process id."""
    import signal

    # Every descriptor of ours closes by itself. Python ignores two signals that no program expects
    # to be ignored; the others are as they were when we were started.
    usual = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawn(path, words, environment, setsigmask=mask, setsigdef=usual)


def run(
    words: "Sequence[str]", *, cwd: "Word", environment: "Mapping[str, str] | None" = None
) -> int:
    """Run a program on our terminal until it ends; return its exit code."""
    from subprocess import run as run_program

    return run_program(words, cwd=cwd, env=environment, check=False).returncode  # noqa: S603


class Viewer:
    """A program that shows what is written to it on our terminal."""

    def __init__(self, process: "Popen[bytes]") -> None:
        self._process = process

    def write(self, text: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text)

    def wait(self) -> None:
        """Write no more, and wait until the reader has read enough."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # the reader saw enough
        while True:
            try:
                self._process.wait()
            except KeyboardInterrupt:
                continue  # the program lives on, and the terminal is still its own
            return


def start_viewer(words: "Sequence[str]", environment: "Mapping[str, str]") -> "Viewer | None":
    """Start what shows long text on our terminal; None where there is no such program.

    Like a shell, but never from the folder we are in, which may be an agent's.
    """
    from subprocess import PIPE, Popen

    name, *rest = words
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    places = [name] if "/" in name else [f"{at}/{name}" for at in folders if os.path.isabs(at)]
    path = next((each for each in places if os.access(each, os.X_OK)), None)
    try:
        if path is not None:
            return Viewer(Popen([path, *rest], stdin=PIPE, env=environment))  # noqa: S603
    except OSError:
        pass  # it is no program; the text is shown without it
    return None


def run_limited(
    words: "Sequence[str]",
    given: bytes,
    *,
    cwd: "Word",
    seconds: float,
    environment: "Mapping[str, str] | None" = None,
    capture: bool = False,
) -> Ended:
    """Run a program away from our terminal, with `given` on its stdin.

    After so many `seconds` it is killed with all that it started, and a TimeoutError raised.
    """
    from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

    output = PIPE if capture else DEVNULL
    process = Popen(  # noqa: S603 -- the caller says why
        words,
        cwd=cwd,
        env=environment,
        stdin=PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,  # a group of its own, which can be killed as a whole
    )
    try:
        out, errors = process.communicate(given, timeout=seconds)
    except TimeoutExpired:
        _kill(process)
        raise TimeoutError from None
    except BaseException:
        _kill(process)
        raise
    return Ended(process.returncode, out or b"", errors or b"")


def _kill(process: "Popen[bytes]") -> None:
    import signal

    if process.poll() is None:
        # It is not reaped yet, so the number of the group is still its own.
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def start_detached(words: "Sequence[str]", given: str, *, cwd: "Word") -> None:
    """Start a program that nobody waits for, with a short text on its stdin.

    As with `start_ourselves`, its parent is a shell that ends at once.
    """
    from subprocess import DEVNULL, Popen

    shell = Popen(  # noqa: S603 -- the caller says why
        ["/bin/sh", "-c", _PIPED, "takeback", given, *words],
        cwd=cwd,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
    )
    shell.wait(_LONGEST_START)


def start_ourselves(*words: "Word", home: bytes) -> bool:
    """Start a Takeback that nobody waits for; whether that worked.

    It is a new process and no fork of this one, whose open ledger and threads a fork could not use.
    Its parent, a shell, ends at once, so the program that we are part of never hears of it. It has
    none of our files open, a session of its own, and a low priority.
    """
    if not sys.executable:
        return False
    from subprocess import DEVNULL, Popen, TimeoutExpired

    command: list[Word] = [sys.executable, "-I", *_ourselves(), *words]
    try:
        shell = Popen(  # noqa: S603 -- our own program
            ["/bin/sh", "-c", _DETACH, "takeback", home, *command],
            cwd="/",
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
        return shell.wait(_LONGEST_START) == 0
    except (OSError, TimeoutExpired):
        return False


class Asked:
    """A Takeback that works on a question, and goes on if nobody waits for its answer."""

    def __init__(self, shell: "Popen[bytes]") -> None:
        assert shell.stdin is not None
        assert shell.stdout is not None
        self._shell = shell
        self._question = shell.stdin
        self._answer = shell.stdout

    def answer(self, patience: float) -> "bytes | None":
        """What it says: a length, and as many bytes; None if that takes more seconds."""
        import select
        import time

        until, found = time.monotonic() + patience, b""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._answer], [], [], left)[0]:
                break
            piece = os.read(self._answer.fileno(), 1 << 16)
            found += piece
            length, _, data = found.partition(b"\n")
            if not piece or (_ and len(data) >= int(length)):
                return data
        return None

    def acknowledge(self) -> None:
        """Tell it that the answer was read."""
        from contextlib import suppress

        with suppress(OSError):  # it was killed behind its answer
            self._question.write(b".")
            self._question.flush()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        from contextlib import suppress

        with suppress(OSError):
            self._question.close()
        self._answer.close()
        self._shell.wait()  # it has ended long ago


def ask_ourselves(word: str, question: bytes, *, environment: "Mapping[bytes, bytes]") -> Asked:
    """Start a Takeback with a question on its stdin, which stays open for the acknowledgement.

    It is in a session of its own, and its parent, a shell, ends at once: whoever kills us when we
    took too long does not reach it.
    """
    from contextlib import suppress
    from subprocess import DEVNULL, PIPE, Popen

    shell = Popen(  # noqa: S603 -- our own program
        ["/bin/sh", "-c", _ASIDE, "takeback", sys.executable, "-I", *_ourselves(), word],
        cwd="/",
        env={**os.environb, **environment},
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
    )
    assert shell.stdin is not None
    with suppress(OSError):  # it could not start: then its answer is empty
        shell.stdin.write(question)
        shell.stdin.flush()
    return Asked(shell)


def _ourselves() -> "list[str]":
    """How Python finds this program: as it found it this time."""
    if sys.flags.no_site:
        return ["-S", os.path.dirname(os.path.dirname(__file__)) + "/__main__.py"]
    return ["-m", "takeback"]
