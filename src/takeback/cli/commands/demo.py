"""`takeback demo`: what works so far, shown in a throw-away project.

This module plays a user and an agent: it runs commands in a temporary folder and shows each one
before its output.
"""

import os
import shutil
import sys
import tempfile

from takeback.cli.parser import CARE, Arguments, Command
from takeback.disk import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

COMMAND = Command(
    "demo",
    "show what Takeback does, in a throw-away project",
    examples=(("takeback demo", "takes a second and leaves no files"),),
    group=CARE,
)

_STORY = (
    ("A project with what real projects hold, some of it never committed:", ""),
    ("", "mkdir -p src notes/ideas && printf 'def pay():\\n    return 1\\n' > src/pay.py"),
    ("", "printf 'KEY=very-secret\\n' > .env && chmod 600 .env && printf '.env\\n' > .gitignore"),
    ("", "ln -s src/pay.py current && printf '\\000\\377' > \"$(printf 'odd \\377 name')\""),
    ("Before an agent works, a checkpoint:", "takeback checkpoint -m 'before the agent'"),
    ("Now an agent works through the shell, as agents do, and deletes too much:", ""),
    ("", "takeback run -m 'tidy up' -- sh -c 'rm -r src notes current; echo KEY= > .env'"),
    ("You edit by hand; then a script that you trust makes another turn:", ""),
    ("", "echo 'call Ana' > todo.txt"),
    ("", "takeback run -- sh -c 'echo 1.1 > version'"),
    ("The log shows who did what, prompt by prompt:", "takeback log"),
    ("", "takeback show 'tidy up'"),
    ("What did that turn change? Secrets are masked:", "takeback diff @~1- @~1"),
    ("Is the store intact? And what is not covered?", "takeback verify"),
    ("", "takeback"),
    ("Take that turn back. Takeback keeps what you and the script did later:", ""),
    ("", "takeback undo 'tidy up' --dry-run"),
    ("", "takeback undo 'tidy up' --yes --because 'it deleted the sources'"),
    ("Everything is restored: bytes, modes and the empty folder:", ""),
    ("", "ls -lAR | cat -v && cat .env src/pay.py todo.txt version"),
    ("Changed your mind? Redo puts the turn back:", "takeback redo"),
)


def run(given: "Arguments", screen: "Screen") -> int:
    del given
    place = tempfile.mkdtemp(prefix="takeback-demo-")
    try:
        return _tell(place, screen)
    finally:
        shutil.rmtree(place)


def _tell(place: str, screen: "Screen") -> int:
    project = os.path.join(place, "project")
    os.mkdir(project)
    environment = _environment(place)
    for words, command in _STORY:
        if words:
            screen.say()
            screen.say(screen.style(f"# {words}", "dim"))
        if command:
            screen.say(f"{screen.style('$', 'dim')} {screen.style(command, 'bold')}")
            code = programs.run(["/bin/sh", "-c", command], cwd=project, environment=environment)
            if code:
                screen.note(f"the demo stopped: exit code {code}")
                return 1
    screen.say()
    screen.note("the throw-away project is removed; begin yours with `takeback checkpoint`")
    return 0


def _environment(place: str) -> "dict[str, str]":
    """The user's environment, but with a store of its own and this very program as `takeback`."""
    tools = os.path.join(place, "bin")
    os.mkdir(tools)
    start = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "__main__.py")
    flags = "-I -S" if sys.flags.no_site else "-I"
    script = f'#!/bin/sh\nexec "{sys.executable}" {flags} "{start}" "$@"\n'
    with open(os.path.join(tools, "takeback"), "w") as file:
        file.write(script)
    os.chmod(os.path.join(tools, "takeback"), 0o700)
    path = f"{tools}:{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "TAKEBACK_HOME": os.path.join(place, "store")}
