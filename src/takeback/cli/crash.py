"""Errors that nobody expected: one sentence, and the details in a file."""

import os
import time

from takeback.errors import InternalError, TakebackError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.render import Screen

_DEBUG = "TAKEBACK_DEBUG"


def tell(problem: Exception, screen: "Screen") -> int:
    """Show what went wrong; the exit code. With `TAKEBACK_DEBUG=1`, the traceback, too."""
    if os.environ.get(_DEBUG, "0") != "0":
        screen.note(_details(problem))
    from takeback.store import sqlite

    told: TakebackError
    if isinstance(problem, OSError):
        told = _of_the_system(problem)
    elif isinstance(problem, sqlite.OperationalError):
        told = TakebackError(f"the ledger said: {problem}", hint="`takeback doctor` tells more")
    else:
        told = _bug(problem)
    screen.error(told)
    return told.exit_code


def _of_the_system(problem: OSError) -> TakebackError:
    """The disk or the system refused; that is no bug."""
    from takeback.store import failures

    where = f" (`{failures.named(problem.filename)}`)" if problem.filename else ""
    what = problem.strerror or str(problem)
    hint = failures.hint(problem) or f"`{_DEBUG}=1` before the command shows where it failed"
    return TakebackError(f"the system refused: {what}{where}", hint=hint)


def _bug(problem: Exception) -> InternalError:
    what = f"{type(problem).__name__}: {problem}".rstrip(": ")
    place = _written(_details(problem))
    details = f"with the details in `{place}`" if place else f"with what `{_DEBUG}=1` shows"
    return InternalError(
        f"this is a bug in Takeback; your files are safe ({what})",
        hint=f"report it {details}, and look through them for secrets first",
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
    from takeback.store import fsops

    for folder in filter(os.path.isabs, (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")):  # noqa: S108
        path = f"{folder}/takeback-{int(time.time())}-{os.getpid()}.txt"
        try:
            fd = fsops.create(os.fsencode(path))
            try:
                fsops.write(fd, text.encode("utf-8", "backslashreplace") + b"\n")
            finally:
                os.close(fd)
        except OSError:
            continue
        return path
    return ""
