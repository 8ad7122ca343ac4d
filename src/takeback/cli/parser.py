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


COLORS = ("auto", "always", "never")


class Option(Value):
    """One option: its spellings, what its value is called (empty for a switch), and its help.

    `choices` are the values that a shell offers, if they can be listed.
    """

    flags: "tuple[str, ...]"
    text: str
    value: str = ""
    choices: "tuple[str, ...]" = ()

    @property
    def name(self) -> str:
        return self.flags[-1].lstrip("-")


class Command(Value):
    """What one command is called, takes, does and looks like.

    An operand in brackets may be left out, one that ends with `…` given several times. A last
    one that begins with `--` stands for everything after that mark: see `Arguments.rest`. `group`
    is where the help lists it; `warning` says what it changes, where a slip would cost something.
    `inverse` is the command that reverses it, and has no line of its own on the first page of help.
    """

    name: str
    summary: str
    text: str = ""
    operands: "tuple[str, ...]" = ()
    options: "tuple[Option, ...]" = ()
    examples: "tuple[tuple[str, str], ...]" = ()
    group: str = "Care"
    warning: str = ""
    inverse: str = ""


EVERYDAY, LOOK, AGENTS, BEYOND, CARE, HIDDEN = (
    "Everyday", "Look", "Agents", "Beyond files", "Care", "",
)  # fmt: skip
"""The groups of commands, in the order of the help."""
EVERYWHERE = (
    Option(("--json",), "print one JSON object instead of text"),
    Option(("-C",), "work on the project that DIR is in (default: the current folder)", "DIR"),
    Option(("--color",), "`always`, `never` or `auto`: on a terminal (default)", "WHEN"),
    Option(("--no-pager",), "print long output as it is, without a pager"),
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


def color(argv: "Sequence[str]") -> str:
    """What `--color` says, before everything else is understood; it decides how errors look."""
    ours = [*own(argv), ""]
    given = [ours[at + 1] for at, word in enumerate(ours) if word == "--color"]
    given += [word.partition("=")[2] for word in ours if word.startswith("--color=")]
    return given[-1] if given and given[-1] in COLORS else COLORS[0]


def split(argv: "Sequence[str]") -> "tuple[str, list[str]]":
    """The command's name (empty if there is none) and everything else, in order."""
    rest = list(argv)
    at = 0
    while at < len(own(argv)):
        if rest[at] in ("-C", "--color"):
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
            if is_wrapper(command):
                found.rest = _unambiguous(command, [word, *words], options)
                break
            found.operands.append(word)
            continue
        letters = _letters(word, options)
        if letters:
            words[:0] = letters
            continue
        flag, inline = _split_flag(word, options)
        option = options.get(flag)
        if option is None:
            raise UsageError(
                f"`{command.name or 'takeback'}` has no option `{flag}`",
                hint=_option_meant(flag, command, options),
            )
        found.values[option.name] = _value(option, flag, inline, words)
    if found.get("color", COLORS[0]) not in COLORS:
        raise UsageError(
            f"`--color` takes {_listed(COLORS)}, not `{found.get('color')}`",
            hint=f"takeback {command.name} --color {COLORS[-1]}".replace("  ", " "),
        )
    if not found.has("help"):
        _check_operands(command, found)
    return found


def _letters(word: str, options: "dict[str, Option]") -> "list[str]":
    """`-np` as `-n -p`, if these are options and only the last takes a value; else nothing."""
    flags = [f"-{letter}" for letter in word[1:]]
    if word in options or len(flags) < 2 or not all(map(options.get, flags)):
        return []
    return [] if any(options[each].value for each in flags[:-1]) else flags


def _listed(words: "Sequence[str]") -> str:
    return ", ".join(f"`{word}`" for word in words[:-1]) + f" or `{words[-1]}`"


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
            raise UsageError(f"`{flag}` takes no value", hint=f"`{flag}` alone is enough")
        return "yes"
    if inline is not None:
        return inline
    if not words:
        raise UsageError(f"`{flag}` needs a value", hint=f"`{flag} {option.value}`: {option.text}")
    return words.pop(0)


def is_wrapper(command: Command) -> bool:
    """Whether a command takes nothing but another program's command line."""
    return len(command.operands) == 1 and command.operands[0].startswith("--")


def _unambiguous(command: Command, words: "list[str]", options: "dict[str, Option]") -> "list[str]":
    """Another program's command line without `--` before it; an error if a word may be ours."""
    import shlex

    found = next((each for each in words if each == "--" or each.split("=")[0] in options), "")
    if not found:
        return words
    hint = f"`takeback {command.name} -- {shlex.join(words)}` gives it to `{words[0]}`"
    option = options.get(found)
    if option is not None and not option.value:
        rest = shlex.join(each for each in words if each != found)
        hint += f", `takeback {command.name} {found} -- {rest}` to Takeback"
    raise UsageError(f"`{found}` may be meant for Takeback or for `{words[0]}`", hint=hint)


def _takes_rest(command: Command) -> bool:
    return bool(command.operands) and command.operands[-1].lstrip("[").startswith("--")


def _check_operands(command: Command, found: Arguments) -> None:
    operands = command.operands[:-1] if _takes_rest(command) else command.operands
    needed = [name for name in operands if not name.startswith("[")]
    given, name = len(found.operands), command.name or "takeback"
    if given < len(needed):
        raise UsageError(f"`{name}` needs {needed[given]}", hint=_usage(command))
    takes_many = bool(operands) and operands[-1].rstrip("]").endswith("…")
    if given > len(operands) and not takes_many:
        extra = found.operands[len(operands)]
        raise UsageError(f"`{name}` does not take `{extra}`", hint=_instead(command, extra))
    if _takes_rest(command) and not command.operands[-1].startswith("[") and not found.rest:
        rest = command.operands[-1].removeprefix("-- ")
        raise UsageError(f"`{name}` needs {rest}", hint=_usage(command))


def _usage(command: Command) -> str:
    line = " ".join(("takeback", command.name, *command.operands))
    return f"usage: `{' '.join(line.split())}`; `{_help_of(command)}` shows examples"


def _help_of(command: Command) -> str:
    return " ".join(f"takeback {command.name} --help".split())


def _instead(command: Command, extra: str) -> str:
    """How to go on with a word too many: it may be a name, or a path."""
    from takeback.model.text.safe_text import shell_word

    if _takes_rest(command):
        return f"`takeback {command.name} … -- {shell_word(extra)}` if it is a path"
    if not command.operands and any("-m" in option.flags for option in command.options):
        return f"`takeback {command.name} -m {shell_word(extra)}` if it is a name"
    return _usage(command)


_ALIKE = 0.66


def alike(word: str, known: "Iterable[str]", most: int = 1) -> "list[str]":
    """What was probably meant by a word."""
    import difflib

    return difflib.get_close_matches(word.casefold(), list(known), n=most, cutoff=_ALIKE)


def _option_meant(flag: str, command: Command, options: "dict[str, Option]") -> str:
    close = alike(flag, options)
    if flag[1:].isdigit() and "-n" in options and options["-n"].value:
        return f"did you mean `-n {flag[1:]}`?"
    if flag == "-v" and "-V" in options:
        close = ["-V"]
    more = f"see `{_help_of(command)}`"
    return f"did you mean `{close[0]}`? {more}" if close else more


def page_one(commands: "Sequence[Command]", screen: "Screen") -> None:
    """The help that fits a screen: what one needs each day in full, the rest by name."""
    screen.say("Takeback: undo what an AI agent did to your files. `tb` is short for `takeback`.")
    inverses = {each.inverse for each in commands}
    shown = [
        each
        for each in commands
        if each.group in (EVERYDAY, LOOK, AGENTS) and (each.name not in inverses or not each.name)
    ]
    room = max(len(_called(each)) for each in shown)
    for group in (EVERYDAY, LOOK, AGENTS):
        screen.say(screen.style(group, "bold"))
        screen.table(
            (_called(each).ljust(room), each.summary) for each in shown if each.group == group
        )
    screen.say(screen.style("More", "bold"))
    names = [each.name for group in (BEYOND, CARE) for each in commands if each.group == group]
    half = (len(names) + 1) // 2
    for some in (names[:half], names[half:]):
        screen.say("  " + " ".join(some))
    screen.say("`tb help COMMAND` explains one, with examples; `tb help all` lists all commands.")


def _called(command: Command) -> str:
    """A command with its first operands; without any name it is the program alone."""
    if not command.name:
        return "takeback"
    if command.inverse:
        return f"{command.name}, {command.inverse}"
    first = [each.removeprefix("-- ") for each in command.operands if not each.startswith("[--")]
    return " ".join((command.name, *first))


def overview(commands: "Sequence[Command]", screen: "Screen") -> None:
    """All commands, a line each, in their groups."""
    room = max(len(each.name) for each in commands) + len("takeback ")
    for group in (EVERYDAY, LOOK, AGENTS, BEYOND, CARE):
        screen.say(screen.style(group, "bold"))
        screen.table(
            (f"takeback {each.name}".rstrip().ljust(room), each.summary)
            for each in commands
            if each.group == group
        )
    screen.say()
    screen.say("Every command takes --json, -C DIR and --help. `takeback -V` prints the version.")
    screen.say("Exit codes: 0 done · 1 failed, nothing changed · 2 usage · 3 needs a decision ·")
    screen.say("            4 store damaged · 5 half done · 130 interrupted")


def show(command: "Command", screen: "Screen") -> None:
    usage = " ".join(("takeback", command.name, "[OPTION…]", *command.operands))
    screen.say(f"{command.summary[0].upper()}{command.summary[1:]}.")
    screen.say()
    screen.say(f"{screen.style('Usage', 'bold')}: {' '.join(usage.split())}")
    if command.text:
        screen.say()
        screen.prose(command.text)
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
