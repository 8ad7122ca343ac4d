"""A small command-line parser.

`argparse` alone takes as long to import as a whole checkpoint may take, and exits with 2 on its
own, which some agents read as "block this tool". This one is all that the commands need: it
returns values or raises `UsageError`, and prints nothing.

The help texts, made from the commands' own descriptions.
"""

from takeback.errors import UsageError
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.cli.screen import Screen


class Option(Value):
    """One option: its spellings, what its value is called (empty for a switch), and its help."""

    flags: "tuple[str, ...]"
    text: str
    value: str = ""

    @property
    def name(self) -> str:
        return self.flags[-1].lstrip("-")


class Command(Value):
    """What one command is called, takes, does and looks like.

    An operand in brackets may be left out, one that ends with `…` given several times. A last
    one that begins with `--` stands for everything after that mark: see `Arguments.rest`.
    """

    name: str
    summary: str
    text: str = ""
    operands: "tuple[str, ...]" = ()
    options: "tuple[Option, ...]" = ()
    examples: "tuple[tuple[str, str], ...]" = ()


EVERYWHERE = (
    Option(("--json",), "print one JSON object instead of text"),
    Option(("-C",), "work on the project that DIR is in (default: the current folder)", "DIR"),
    Option(("-h", "--help"), "show this help"),
)

SHOW_SECRETS = Option(("--show-secrets",), "show secrets instead of masking them")


class Arguments:
    """What was given on the command line."""

    __slots__ = ("operands", "rest", "values")

    def __init__(self) -> None:
        self.operands: list[str] = []
        self.rest: list[str] = []
        self.values: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def own(argv: "Sequence[str]") -> "Sequence[str]":
    """The words that are for us: what stands after `--` is not."""
    return argv[: argv.index("--")] if "--" in argv else argv


def split(argv: "Sequence[str]") -> "tuple[str, list[str]]":
    """The command's name (empty if there is none) and everything else, in order."""
    rest = list(argv)
    at = 0
    while at < len(own(argv)):
        if rest[at] == "-C":
            at += 2
        elif rest[at].startswith("-"):
            at += 1
        else:
            return rest.pop(at), rest
    return "", rest


def parse(command: Command, argv: "Sequence[str]") -> Arguments:
    options = {flag: option for option in (*EVERYWHERE, *command.options) for flag in option.flags}
    found, words = Arguments(), list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            (found.rest if _takes_rest(command) else found.operands).extend(words)
            break
        if not word.startswith("-") or word == "-":
            found.operands.append(word)
            if is_wrapper(command):
                raise _missing_mark(command, [word, *words])
            continue
        flag, inline = _split_flag(word, options)
        option = options.get(flag)
        if option is None:
            raise UsageError(
                f"`{command.name or 'takeback'}` has no option `{flag}`",
                hint=suggestion(flag, options, command=command.name),
            )
        found.values[option.name] = _value(option, flag, inline, words)
    if not found.has("help"):
        _check_operands(command, found)
    return found


def _split_flag(word: str, options: "dict[str, Option]") -> "tuple[str, str | None]":
    if word.startswith("--"):
        flag, equals, inline = word.partition("=")
        return flag, inline if equals else None
    short = options.get(word[:2])
    if short is not None and short.value and len(word) > 2:
        return word[:2], word[2:]
    return word, None


def _value(option: Option, flag: str, inline: "str | None", words: "list[str]") -> str:
    if not option.value:
        if inline is not None:
            raise UsageError(f"`{flag}` takes no value")
        return "yes"
    if inline is not None:
        return inline
    if not words:
        raise UsageError(f"`{flag}` needs a value", hint=f"{flag} {option.value}")
    return words.pop(0)


def is_wrapper(command: Command) -> bool:
    """Whether a command takes nothing but another program's command line."""
    return len(command.operands) == 1 and command.operands[0].startswith("--")


def _missing_mark(command: Command, words: "list[str]") -> UsageError:
    import shlex

    meant = shlex.join(word for word in words if word != "--")
    return UsageError(
        f"`{command.name}` needs `--` before the command",
        hint=f"takeback {command.name} -- {meant}",
    )


def _takes_rest(command: Command) -> bool:
    return bool(command.operands) and command.operands[-1].lstrip("[").startswith("--")


def _check_operands(command: Command, found: Arguments) -> None:
    operands = command.operands[:-1] if _takes_rest(command) else command.operands
    needed = [name for name in operands if not name.startswith("[")]
    given = len(found.operands)
    usage = f"usage: takeback {command.name} {' '.join(command.operands)}".rstrip()
    if given < len(needed):
        raise UsageError(f"`{command.name}` needs {needed[given]}", hint=usage)
    takes_many = bool(operands) and operands[-1].rstrip("]").endswith("…")
    if given > len(operands) and not takes_many:
        extra = found.operands[len(operands)]
        raise UsageError(f"`{command.name}` does not take `{extra}`", hint=usage)
    if _takes_rest(command) and not command.operands[-1].startswith("[") and not found.rest:
        raise UsageError(f"`{command.name}` needs {command.operands[-1]}", hint=usage)


def suggestion(word: str, known: "Iterable[str]", before: str = "", command: str = "") -> str:
    """What was probably meant by a word, or where to look it up."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1)
    help_of = f"takeback {command}".rstrip()
    return f"did you mean `{before}{close[0]}`?" if close else f"see `{help_of} --help`"


def overview(commands: "Iterable[Command]", screen: "Screen") -> None:
    screen.say("Takeback: the undo that AI agents lack.")
    screen.say()
    screen.say(screen.style("Commands", "bold"))
    screen.table((f"takeback {c.name}".rstrip(), c.summary) for c in commands)
    screen.say()
    screen.say("Every command takes --json, -C DIR and --help, which shows examples.")
    screen.say("Exit codes: 0 done · 1 failed, nothing changed · 2 usage · 3 needs a decision ·")
    screen.say("            4 store damaged · 5 half done · 130 interrupted")


def show(command: "Command", screen: "Screen") -> None:
    usage = " ".join(("takeback", command.name, "[OPTION…]", *command.operands))
    screen.say(f"{command.summary[0].upper()}{command.summary[1:]}.")
    screen.say()
    screen.say(f"{screen.style('Usage', 'bold')}: {' '.join(usage.split())}")
    if command.text:
        screen.say()
        screen.say(command.text)
    screen.say()
    screen.say(screen.style("Options", "bold"))
    screen.table(
        (f"{', '.join(option.flags)} {option.value}".rstrip(), option.text)
        for option in (*command.options, *EVERYWHERE)
    )
    if command.examples:
        screen.say()
        screen.say(screen.style("Examples", "bold"))
        screen.table(command.examples)
