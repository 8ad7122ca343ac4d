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
        "The wheel has the page, too: `man takeback` shows it if `man` searches that prefix. This\n"
        "prints its source, for `man` and for packagers."
    ),
    examples=(
        ("takeback man | man -l -", "read it"),
        ("takeback man > takeback.1", "to install it by hand"),
    ),
)


def run(_: "Arguments", screen: "Screen") -> int:
    page = manual.page([load(name).COMMAND for name in ("status", *COMMANDS)], VERSION)
    if screen.json:
        screen.data({"page": page})
    else:
        for line in page.rstrip("\n").split("\n"):
            screen.verbatim(line)
        if screen.is_terminal:
            screen.note("\n`takeback man | man -l -` shows it as a page")
    return 0
