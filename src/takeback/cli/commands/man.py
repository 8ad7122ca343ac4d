"""`takeback man`: the man page."""

from takeback.cli import manual
from takeback.cli.app import COMMANDS, load
from takeback.cli.parser import Arguments, Command
from takeback.cli.screen import Screen
from takeback.version import VERSION

COMMAND = Command(
    "man",
    "print the man page, made from the same texts as the help",
    text=(
        "An installation brings it along; `man takeback` shows it where your `MANPATH` reaches.\n"
        "This prints its source, for `man` and for packagers."
    ),
    examples=(
        ("takeback man | man -l -", "read it"),
        ("takeback man > ~/.local/share/man/man1/takeback.1", "install it by hand"),
    ),
)


def run(_: "Arguments", screen: "Screen") -> int:
    page = manual.page([load(name).COMMAND for name in ("status", *COMMANDS)], VERSION)
    if screen.json:
        screen.data({"page": page})
    else:
        screen.say(page.rstrip("\n"))
    return 0
