"""The man page, made from the same descriptions as the help.

Only ASCII, and only macros that groff and mandoc both know.
"""

from takeback.cli import parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.cli.parser import Command, Option

EXIT_CODES = (
    ("0", "done"),
    ("1", "failed, nothing changed"),
    ("2", "usage"),
    ("3", "needs a decision"),
    ("4", "store damaged"),
    ("5", "half done"),
    ("130", "interrupted"),
)
_ENVIRONMENT = (
    ("TAKEBACK_HOME", "the folder of all stores"),
    ("TAKEBACK_HELPER", "with `0`, hooks start no resident helper"),
    ("TAKEBACK_DEBUG", "with `1`, errors that nobody expected show where they come from"),
    ("NO_COLOR", "if it is set, nothing is coloured"),
)
_FILES = (
    ("~/.local/share/takeback", "the stores, on Linux"),
    ("~/Library/Application Support/takeback", "the stores, on macOS"),
    ("config.toml", "in that folder: your settings; `takeback config` shows all of them"),
)


def page(commands: "Iterable[Command]", version: str) -> str:
    """The page as `man` reads it."""
    return "\n".join(_lines(list(commands), version)) + "\n"


def _lines(commands: "list[Command]", version: str) -> "Iterator[str]":
    yield f'.TH TAKEBACK 1 "" "Takeback {_plain(version)}" "User Commands"'
    yield ".SH NAME"
    yield r"takeback, tb \- the undo that AI agents lack"
    yield ".SH SYNOPSIS"
    yield r".B takeback"
    yield r"[\fICOMMAND\fR] [\fIOPTION\fR\[u2026]] [\fIOPERAND\fR\[u2026]]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(
        "Takeback records what each prompt of an agent changed, in every file, including untracked"
        " and ignored ones. Undo any prompt and keep your own edits. Your git repository is never"
        " touched. Without COMMAND it shows where you are.\n\n`tb` is the same program."
    )
    yield ".SH COMMANDS"
    for command in commands:
        yield from _command(command)
    yield ".SH COMMON OPTIONS"
    yield "Every command takes these."
    yield from _options(parser.EVERYWHERE)
    yield ".SH EXIT STATUS"
    yield from _table(EXIT_CODES)
    yield ".SH ENVIRONMENT"
    yield from _table(_ENVIRONMENT)
    yield ".SH FILES"
    yield from _table(_FILES)
    yield ".SH SEE ALSO"
    yield r"\fBtakeback help\fR shows the commands, \fBtakeback COMMAND \-\-help\fR one of them."


def _command(command: "Command") -> "Iterator[str]":
    usage = " ".join(("takeback", command.name, "[OPTION…]", *command.operands))
    yield f".SS {_quoted(' '.join(usage.split()))}"
    yield _text(f"{command.summary[0].upper()}{command.summary[1:]}.")
    if command.text:
        yield ".PP"
        yield from _paragraphs(command.text)
    yield from _options(command.options)
    if command.examples:
        yield ".PP"
        yield "Examples:"
        yield from _table(command.examples)


def _options(options: "Iterable[Option]") -> "Iterator[str]":
    for option in options:
        yield ".TP"
        flags = ", ".join(rf"\fB{_plain(flag)}\fR" for flag in option.flags)
        yield rf"{flags} \fI{_plain(option.value)}\fR" if option.value else flags
        yield _text(option.text)


def _table(rows: "Iterable[tuple[str, str]]") -> "Iterator[str]":
    for left, right in rows:
        yield ".TP"
        yield rf"\fB{_plain(left)}\fR"
        yield _text(right)


def _paragraphs(text: str) -> "Iterator[str]":
    """Text with blank lines between its paragraphs; lines that are indented stay as they are."""
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        is_drawn = any(line.startswith(" ") for line in paragraph.split("\n"))
        if is_drawn:
            yield ".nf"
        yield from (_text(line) for line in paragraph.split("\n"))
        if is_drawn:
            yield ".fi"


def _text(text: str) -> str:
    """A line of text; what stands in backticks is bold."""
    parts = text.split("`")
    shown = "".join(
        rf"\fB{_plain(part)}\fR" if number % 2 else _plain(part)
        for number, part in enumerate(parts)
    )
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown


def _quoted(text: str) -> str:
    return '"' + _plain(text).replace('"', r"\(dq") + '"'


def _plain(text: str) -> str:
    """Text without anything that would be a command to the formatter."""
    marked = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    marked = marked.replace("^", r"\(ha").replace("~", r"\(ti")
    return "".join(char if char.isascii() else rf"\[u{ord(char):04X}]" for char in marked)
