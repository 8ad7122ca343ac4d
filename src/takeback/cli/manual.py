"""The help texts, made from the commands' own descriptions."""

from takeback.cli.arguments import EVERYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.cli.arguments import Command, Option
    from takeback.cli.render import Screen


def overview(commands: "Iterable[Command]", screen: "Screen") -> None:
    """All commands, a line each."""
    screen.say("Takeback: the undo that AI agents lack.")
    screen.say()
    screen.say(screen.style("Commands", "bold"))
    screen.table((f"takeback {c.name}".rstrip(), c.summary) for c in commands)
    screen.say()
    screen.say("Every command takes --json, -C DIR and --help, which shows examples.")
    screen.say("Exit codes: 0 done · 1 failed, nothing changed · 2 usage · 3 needs a decision ·")
    screen.say("            4 store damaged · 5 half done · 130 interrupted")


def show(command: "Command", screen: "Screen") -> None:
    """Everything about one command."""
    usage = " ".join(("takeback", command.name, "[OPTION…]", *command.operands))
    screen.say(f"{command.summary[0].upper()}{command.summary[1:]}.")
    screen.say()
    screen.say(f"{screen.style('Usage', 'bold')}: {' '.join(usage.split())}")
    if command.text:
        screen.say()
        screen.say(command.text)
    screen.say()
    screen.say(screen.style("Options", "bold"))
    screen.table((_spelled(option), option.text) for option in (*command.options, *EVERYWHERE))
    if command.examples:
        screen.say()
        screen.say(screen.style("Examples", "bold"))
        screen.table(command.examples)


def _spelled(option: "Option") -> str:
    return f"{', '.join(option.flags)} {option.value}".rstrip()
