"""`takeback completion`: the script by which a shell completes our command lines."""

import os

from takeback.cli import completion
from takeback.cli.parser import Arguments, Command
from takeback.cli.screen import Screen
from takeback.errors import UsageError

ENABLED_BY = {
    "bash": ('eval "$(takeback completion bash)"', "~/.bashrc"),
    "zsh": ('eval "$(takeback completion zsh)"', "~/.zshrc, below `compinit`"),
    "fish": ("takeback completion fish | source", "~/.config/fish/config.fish"),
}

COMMAND = Command(
    "completion",
    "print a script that completes commands in your shell",
    text=(
        "SHELL is bash, zsh or fish; without it, your own. The Tab key then offers commands,\n"
        "options, ids with their prompts, sessions, settings and files. Nothing is written.\n"
        "The wheel has the scripts, too: a shell that searches its prefix finds them by itself."
    ),
    operands=("[SHELL]",),
    examples=tuple((line, f"in {place.partition(',')[0]}") for line, place in ENABLED_BY.values()),
)


def run(given: "Arguments", screen: "Screen") -> int:
    own = os.path.basename(os.environ.get("SHELL", ""))
    shell = given.operands[0] if given.operands else own
    if shell not in completion.SHELLS:
        what = f"there is no completion for `{shell}`" if shell else "no shell was named"
        raise UsageError(f"{what}; choose bash, zsh or fish", hint="takeback completion bash")
    script = completion.script(shell)
    line, place = ENABLED_BY[shell]
    if screen.json:
        screen.data({"shell": shell, "script": script, "enable": line})
        return 0
    for each in script.rstrip("\n").split("\n"):
        screen.verbatim(each)
    if screen.is_terminal:
        screen.note(f"\nto enable it, put `{line}` into {place}")
    return 0
