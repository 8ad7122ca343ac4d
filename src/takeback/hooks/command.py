"""The command line that an agent runs, and the script behind it.

Settings get one short line that names the script in the home of the stores. Codex trusts a hook by
the hash of its line, so the line is the same for every version and place of Takeback, and for every
Python. What an upgrade changes stands in the script, which `takeback install` writes.

The line is for any shell. Some hosts run the hooks of others and pass on nothing else. Settings
that colleagues share name nothing of this machine: their line finds `takeback` by the `PATH`.
"""

import os
import re
import shlex

from takeback.errors import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = "takeback-hook"
_OURS = re.compile(
    r"exec /bin/sh \S.*/takeback-hook['\"]*(?= |$)|exec takeback hook\b"
    r"| -I -S \S.*/takeback/__main__\.py['\"]* hook\b",  # the lines of before, without a script
    re.DOTALL,
)
_CELLAR = re.compile(r"^(.*)/Cellar/([^/]+)/[^/]+/(.*)$")
_VERSION = re.compile(r"(?<![0-9.])([0-9]+\.[0-9]+)\.[0-9]+(?![0-9.])")
_GONE = (
    '{"systemMessage": "Takeback is gone, so this turn is not covered. Install it again, or'
    ' remove its hooks."}'
)
_NAMES = ("python", "main", "ask", "command")
_TEMPLATE = """\
# The hooks of agents start Takeback here. `takeback install` writes this file.
# It always ends with 0: some agents run no tool after a hook that failed.
{names}
if [ -f "$main" ] && [ -x "$python" ]; then
    if [ -x "$ask" ]; then exec "$ask" "$python" -I -S "$main" hook "$@"; fi
    exec "$python" -I -S "$main" hook "$@"
fi

# Takeback or its Python moved, as in an upgrade. Nothing in the folder of the agent is run.
set -f
IFS=:
for folder in "${{command%/*}}" $PATH; do
    case $folder/ in "$PWD"/* | "${{1:-$PWD}}"/*) continue ;; /?*) ;; *) continue ;; esac
    if [ -x "$folder/takeback" ]; then "$folder/takeback" hook "$@" 2>/dev/null && exit 0; fi
done
if [ -f "$main" ]; then
    for python in /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' \\
            </dev/null >/dev/null 2>&1; then
            exec "$python" -I -S "$main" hook "$@"
        fi
    done
fi
IFS= read -r event
case $event in *'"UserPromptSubmit"'*) echo {gone} ;; esac
exit 0
"""


def line(script: str, *, tells: bool = False, started_in: str = "") -> str:
    """The line in the settings; `started_in` names the variable that has the agent's folder.

    If the script is gone, it ends well all the same: some hosts let no tool run after a hook that
    failed. One that `tells` says so.
    """
    _require_writable(script)
    name = shlex.quote(script)
    otherwise = f"echo {shlex.quote(_GONE)}" if tells else "true"
    # Nothing that sh, bash, zsh and fish would read differently, and nothing that is a process.
    return f"test -r {name} && exec /bin/sh {name}{_folder(started_in)} || {otherwise}"


def shared_line(*, started_in: str = "") -> str:
    """The line in settings that colleagues share: silent for those who have no Takeback."""
    found = "command -v takeback >/dev/null 2>&1"
    return f"{found} && exec takeback hook{_folder(started_in)} || true"


def _folder(started_in: str) -> str:
    return f' "${started_in}"' if started_in else ""


def script_path(home: bytes) -> str:
    """Where the script is, by the home of the stores."""
    return f"{os.fsdecode(home)}/{SCRIPT}"


def script(python: str, main: str, command: str = "") -> str:
    """What the script says; `command` is where the command `takeback` was when it was written."""
    for path in (python, main, command):
        _require_writable(path)
    told = zip(_NAMES, (python, main, client(main), command), strict=True)
    names = "\n".join(f"{name}={shlex.quote(path)}" for name, path in told)
    return _TEMPLATE.format(names=names, gone=shlex.quote(_GONE))


def client(main: str) -> str:
    """The small client in C (`hooks/_ask`) of a program: where it is if it was built."""
    return f"{os.path.dirname(main)}/hooks/ask"


def is_ours(command: str) -> bool:
    """Whether a command line is one of ours, of whatever version and place."""
    return _OURS.search(command) is not None


def is_shared(command: str) -> bool:
    """Whether a command line of ours finds Takeback by the `PATH`."""
    return "exec takeback hook" in command


def script_of(command: str) -> str:
    """The script that a command line of ours runs; empty if it runs none."""
    words = _words(command)
    return next((word for word in words if word.endswith(f"/{SCRIPT}")), "")


def paths(command: str) -> "tuple[str, str]":
    """The interpreter and the program that a command line of ours runs; empty if it is broken."""
    script = script_of(command)
    if script:
        return _named(script)
    words = _words(command)
    at = next((n for n, word in enumerate(words) if word.endswith("/takeback/__main__.py")
               and words[n - 2 : n] == ["-I", "-S"]), 0)  # fmt: skip
    return (words[at - 3], words[at]) if at >= 3 else ("", "")


def _named(script: str) -> "tuple[str, str]":
    try:
        with open(script, encoding="utf-8") as file:
            told = dict(line.rstrip("\n").partition("=")[::2] for line in file)
    except (OSError, ValueError):
        return "", ""
    python, main = ("".join(_words(told.get(name, ""))) for name in _NAMES[:2])
    return python, main


def _words(command: str) -> "list[str]":
    try:
        return shlex.split(command)
    except ValueError:
        return []


def uses_client(command: str) -> bool:
    """Whether a command line of ours runs the client in C: it names it, and it was built."""
    ask = client(paths(command)[1])
    return (bool(script_of(command)) or shlex.quote(ask) in command) and os.access(ask, os.X_OK)


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
        problem = "is not Unicode"
    else:
        problem = "has a line end in it" if "\n" in path else ""
    if problem:
        raise RefusedError(
            f"the path `{path}` {problem}, so no settings file can name it",
            hint="install Takeback, and set TAKEBACK_HOME, below a folder with another name",
        )
