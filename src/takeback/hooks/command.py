"""The command line that an agent runs, made to last.

Codex trusts a hook by the hash of its command line, so it is the same for every version of
Takeback, and names nothing that an upgrade changes if there is another name for it.

It is one line for a shell. Some hosts run the hooks of others and pass on nothing else. Whether
the small client in C was built is asked by the shell each time: the line is the same without it.
"""

import os
import re
import shlex

from takeback.errors import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = re.compile(r" -I -S \S.*/takeback/__main__\.py['\"]* hook\b", re.DOTALL)
_CELLAR = re.compile(r"^(.*)/Cellar/([^/]+)/[^/]+/(.*)$")
_VERSION = re.compile(r"(?<![0-9.])([0-9]+\.[0-9]+)\.[0-9]+(?![0-9.])")
_GONE = (
    '{"systemMessage": "Takeback is not where it was installed, so this turn is not covered.'
    ' Install it again, or remove its hooks."}'
)


def line(python: str, main: str, *, tells: bool = False, started_in: str = "") -> str:
    """The command line; `started_in` names the variable that has the agent's folder.

    If Takeback is gone, it ends well all the same: some hosts let no tool run after a hook that
    failed. One that `tells` says so.
    """
    for path in (python, main):
        _require_writable(path)
    ask, python, main = (shlex.quote(path) for path in (client(main), python, main))
    is_there, heard = f"-x {python} -a -f {main}", f"{python} -I -S {main} hook"
    heard += f' "${started_in}"' if started_in else ""
    otherwise = f"echo {shlex.quote(_GONE)}" if tells else "true"
    # Nothing that sh, bash, zsh and fish would read differently, and nothing that is a process.
    return (
        f"test -x {ask} -a {is_there} && exec {ask} {heard}"
        f" || test {is_there} && exec {heard} || {otherwise}"
    )


def client(main: str) -> str:
    """The small client in C (`hooks/_ask`) of a program: where it is if it was built."""
    return f"{os.path.dirname(main)}/hooks/ask"


def is_ours(command: str) -> bool:
    """Whether a command line is one of ours, of whatever version and place."""
    return _OURS.search(command) is not None


def paths(command: str) -> "tuple[str, str]":
    """The interpreter and the program that a command line of ours runs; empty if it is broken."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "", ""
    at = next((n for n, word in enumerate(words) if word.endswith("/takeback/__main__.py")
               and words[n - 2 : n] == ["-I", "-S"]), 0)  # fmt: skip
    return (words[at - 3], words[at]) if at >= 3 else ("", "")


def uses_client(command: str) -> bool:
    """Whether a command line of ours runs the client in C: it names it, and it was built."""
    ask = client(paths(command)[1])
    return shlex.quote(ask) in command and os.access(ask, os.X_OK)


def python_for(executable: str, main: str) -> str:
    """The interpreter to name, always by the same of its names.

    Of a checkout it is that of its own environment, which stays when the one behind it changes;
    of another environment its `python`, whether or not we were started as `python3`.
    """
    checkout = main.removesuffix("/src/takeback/__main__.py")
    folder = f"{checkout}/.venv/bin" if checkout != main else os.path.dirname(executable)
    own = f"{folder}/python"
    is_environment = os.path.exists(f"{os.path.dirname(folder)}/pyvenv.cfg")
    if is_environment and os.path.exists(own) and os.path.samefile(own, executable):
        return own
    return lasting(executable)


def lasting(path: str) -> str:
    """The same file by a name without a version in it, if it has one."""
    for other in _other_names(path):
        if os.path.exists(other) and os.path.samefile(other, path):
            return other
    return path


def _other_names(path: str) -> "Iterator[str]":
    kept = _CELLAR.match(path)
    if kept is not None:  # Homebrew links what is current from here
        yield f"{kept[1]}/opt/{kept[2]}/{kept[3]}"
    if _VERSION.search(path) is not None:  # 3.12.4 is often found as 3.12, too
        yield _VERSION.sub(r"\1", path)


def _require_writable(path: str) -> None:
    """An error for a path that no settings file can hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise RefusedError(
            f"the path `{path}` is not Unicode, so that no settings file can name it",
            hint="install Takeback below a folder with another name",
        ) from None
