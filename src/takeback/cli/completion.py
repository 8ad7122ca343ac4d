"""What a shell offers when somebody presses Tab, made from the same descriptions as the help.

The scripts in `shell/` ask `takeback __complete SHELL WORD…`; the last word is the one at the
cursor. Each line of the answer is a word and what it means, with a tab between them, or an order:
`:files`, `:folders`, or `:command N` for the command line of another program that begins with the
word N. Nothing is written, and nothing that goes wrong is told: the line of the user stays clean.
"""

import os
import time
from itertools import islice

from takeback.cli import app, parser
from takeback.cli import screen as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from takeback.cli.parser import Command, Option
    from takeback.cli.screen import Screen
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow

    Candidate = tuple[str, str]
    Kind = Callable[["Line", Screen], Iterator[Candidate]]

SHELLS = ("bash", "zsh", "fish")
FILES, FOLDERS = ":files", ":folders"
_MOST, _LOOKED_AT = 50, 500
_ROOM = 60
_VERSION = parser.Option(("--version",), "show the version")


def script(shell: str) -> str:
    """What a shell reads to complete our command lines."""
    with open(f"{os.path.dirname(__file__)}/shell/{shell}", encoding="utf-8") as file:
        return file.read()


def answer(words: "Sequence[str]", screen: "Screen") -> int:
    """Print what may stand at the cursor; nothing if anything goes wrong."""
    shell, *given = words or ("",)
    try:
        line = Line([_unquoted(word) for word in given] or [""])
        for value, text in line.candidates(screen):
            value = _quoted(value) if shell == "bash" else value
            screen.say(f"{value}\t{layout.cut(text, _ROOM)}" if text else value)
    except Exception:  # noqa: BLE001, S110 -- a person is typing, and did not ask for our problems
        pass
    return 0


def _quoted(value: str) -> str:
    """A word for bash, which inserts it as it is; options and orders need no quotes."""
    from takeback.model.text.safe_text import shell_word

    if not value.startswith(("-", ":")):
        return shell_word(value)
    flag, equals, rest = value.partition("=")
    return flag + equals + shell_word(rest) if equals else value


def _unquoted(word: str) -> str:
    """A word without the signs by which a shell keeps it together."""
    if not any(sign in word for sign in "\\\"'"):
        return word
    kept, quote, at = [], "", 0
    while at < len(word):
        char = word[at]
        if char == "\\" and quote != "'" and at + 1 < len(word):
            at += 1
            kept.append(word[at])
        elif char == quote:
            quote = ""
        elif char in "\"'" and not quote:
            quote = char
        else:
            kept.append(char)
        at += 1
    return "".join(kept)


class Line:
    """A command line up to the cursor, as far as it can be understood."""

    def __init__(self, words: "Sequence[str]") -> None:
        *before, self.word = words
        self.command: Command | None = None
        self.operands: list[str] = []
        self.folder = ""
        self._at = len(before)
        self._given: list[Option] = []
        self._pending: Option | None = None
        self._rest: int | None = None
        self._is_help = False
        for at, word in enumerate(before):
            self._read(at, word)

    def _read(self, at: int, word: str) -> None:
        if self._rest is not None:
            return
        if self._pending is not None:
            self._take_value(self._pending, word)
        elif word == "--":
            self._rest = at + 1
        elif word.startswith("-") and word != "-":
            self._read_option(word)
        elif self.command is None and not self._is_help:
            self._is_help = word == "help"
            self.command = None if self._is_help else _command(word)
        else:
            self.operands.append(word)
            if self.command is not None and parser.is_wrapper(self.command):
                self._rest = at

    def _read_option(self, word: str) -> None:
        flag, equals, inline = word.partition("=")
        option = next((o for o in self.options if flag in o.flags), None)
        if option is None:
            return
        self._given.append(option)
        if equals:
            self._take_value(option, inline)
        elif option.value:
            self._pending = option

    def _take_value(self, option: "Option", value: str) -> None:
        self._pending = None
        if "-C" in option.flags:
            self.folder = value

    @property
    def options(self) -> "tuple[Option, ...]":
        """The options that it may have."""
        if self._is_help:
            return ()
        if self.command is not None:
            return (*self.command.options, *parser.EVERYWHERE)
        return (*app.load("status").COMMAND.options, *parser.EVERYWHERE, _VERSION)

    def candidates(self, screen: "Screen") -> "Iterator[Candidate]":
        """What may stand at the cursor."""
        word = self.word
        flag, equals, begun = word.partition("=")
        if self._pending is not None:
            yield from self._values(self._pending, screen)
        elif self._rest is not None:
            yield self._of_rest(), ""
        elif word.startswith("--") and equals:
            self.word = begun
            for option in (o for o in self.options if flag in o.flags and o.value):
                for value, text in self._values(option, screen):
                    yield (value if value in (FILES, FOLDERS) else f"{flag}={value}"), text
        elif word.startswith("-"):
            yield from _beginning(word, self._flags())
        elif self.command is not None and parser.is_wrapper(self.command):
            yield f":command {self._at}", ""
        else:
            yield from self._operand(screen)

    def _of_rest(self) -> str:
        is_wrapper = self.command is not None and parser.is_wrapper(self.command)
        return f":command {self._rest}" if is_wrapper else FILES

    def _flags(self) -> "Iterator[Candidate]":
        for option in self.options:
            if option not in self._given:
                yield option.flags[-1], option.text

    def _values(self, option: "Option", screen: "Screen") -> "Iterator[Candidate]":
        if option.choices:
            return _beginning(self.word, ((choice, "") for choice in option.choices))
        return self._named(option.value, screen)

    def _operand(self, screen: "Screen") -> "Iterator[Candidate]":
        if self.command is None:
            if not self.operands:
                yield from _commands(self.word)
            return
        names = [name for name in self.command.operands if not name.lstrip("[").startswith("--")]
        at = len(self.operands)
        if at >= len(names) and names and names[-1].rstrip("]").endswith("…"):
            at = len(names) - 1
        for name in names[at].strip("[]").split("|") if at < len(names) else ():
            yield from self._named(name.rstrip("…"), screen)

    def _named(self, name: str, screen: "Screen") -> "Iterator[Candidate]":
        """What the help calls by a name, such as TURN."""
        command = self.command.name if self.command is not None else ""
        kind = SPECIAL.get((command, name)) or KINDS.get(name)
        if isinstance(kind, str):
            yield kind, ""
        elif kind is not None:
            found = kind(self, screen)
            # Agents choose names, too: none may pass for an option, or for an order to the shell.
            known = {
                value: text
                for value, text in found
                if value not in self.operands and not value.startswith(("-", ":"))
            }
            yield from _beginning(self.word, known.items())


def _beginning(word: str, found: "Iterable[Candidate]") -> "Iterator[Candidate]":
    """Those that begin with what was typed."""
    for value, text in found:
        if value.startswith(word) and value.isprintable():
            yield value, text


def _commands(word: str) -> "Iterator[Candidate]":
    # Only those that are offered are imported.
    for name in app.COMMANDS:
        if name.startswith(word):
            yield name, app.load(name).COMMAND.summary
    yield from _beginning(word, [("help", "show what a command does")])


# -- what is recorded ------------------------------------------------------------------------


class Glance:
    """The ledger of the project that a folder is in, for a `with` block; None without history."""

    def __init__(self, folder: str) -> None:
        self._folder = os.fsencode(folder) if folder else b"."
        self._ledger: Ledger | None = None

    def __enter__(self) -> "Ledger | None":
        from takeback import environment, location
        from takeback.disk.home import Home
        from takeback.ledger.ledger import Ledger

        home = Home(environment.default_home())
        root = location.locate(home, self._folder).root if home.exists() else None
        path = home.store_path(root.id) + b"/ledger.db" if root is not None else b""
        if root is not None and os.path.lexists(path):
            self._ledger = Ledger.glance(path, root.line)
        return self._ledger

    def __exit__(self, *_: object) -> None:
        if self._ledger is not None:
            self._ledger.close()


def _turns(line: Line, screen: "Screen", *, undone: bool = False) -> "Iterator[Candidate]":
    from takeback.history import references

    with Glance(line.folder) as ledger:
        if ledger is None:
            return
        rows = list(_newest(ledger, undone=undone))
        short = references.shortened(ledger, [row.id for row in rows])
        for row in rows:
            agent = ledger.sessions.of(row).agent
            yield _id(short, row.id, line.word), _told(row.label, row.started, agent, screen)


def _newest(ledger: "Ledger", *, undone: bool) -> "Iterator[TurnRow]":
    """The newest turns that are undone, or are not."""
    left = _MOST
    for number, *_ in islice(ledger.turns.labels(), _LOOKED_AT):
        row = ledger.turns.numbered(number)
        if row is not None and (row.undone is not None or row.covered is not None) == undone:
            yield row
            left -= 1
        if not left:
            return


def _undone(line: Line, screen: "Screen") -> "Iterator[Candidate]":
    return _turns(line, screen, undone=True)


def _states(line: Line, screen: "Screen") -> "Iterator[Candidate]":
    yield from _turns(line, screen)
    with Glance(line.folder) as ledger:
        for row in ledger.names.since(0, _MOST) if ledger is not None else ():
            if screen.words(row.name) == row.name:
                yield row.name, f"a name of yours  ({_age(row.at)} ago)"


def _sessions(line: Line, screen: "Screen") -> "Iterator[Candidate]":
    with Glance(line.folder) as ledger:
        for row in ledger.sessions.newest(_MOST) if ledger is not None else ():
            newest = ledger.turns.newest_of(row.number) if ledger is not None else None
            label = row.title or (newest.label if newest is not None else "")
            yield (
                _id({row.id: row.id[:8]}, row.id, line.word),
                _told(label, row.seen, row.agent, screen),
            )


def _session_names(line: Line, screen: "Screen") -> "Iterator[Candidate]":
    with Glance(line.folder) as ledger:
        for row in ledger.sessions.newest(_MOST) if ledger is not None else ():
            if row.agent == "run" and row.own_id and screen.words(row.own_id) == row.own_id:
                yield row.own_id, f"{row.turns} turns  ({_age(row.seen)} ago)"


def _plans(line: Line, screen: "Screen") -> "Iterator[Candidate]":
    with Glance(line.folder) as ledger:
        for plan in ledger.plans.valid(time.time_ns()) if ledger is not None else ():
            about = " ".join((plan.description.verb, *plan.description.refs))
            yield plan.id, screen.title(about)


def _projects(_: Line, screen: "Screen") -> "Iterator[Candidate]":
    from takeback import environment
    from takeback.disk.home import Home

    home = Home(environment.default_home())
    for root in home.known_roots() if home.exists() else ():
        yield root.id, layout.safe_line(screen.words(os.fsdecode(root.path)))


def _command(word: str) -> "Command":
    return app.load(word if word in app.COMMANDS else app.meant(word)).COMMAND


def _id(short: "Mapping[str, str]", id: str, word: str) -> str:
    """An id as the log shows it, or whole if more of it was typed."""
    return id if len(word) > len(short[id]) else short[id]


def _told(label: str, then: int, agent: str, screen: "Screen") -> str:
    known = f"  ({_age(then)} ago, {layout.safe_line(agent)})"
    return layout.cut(screen.title(label), _ROOM - layout.columns(known)) + known


def _age(then: int) -> str:
    from takeback.cli.text.turn_text import age

    return age(then / 1e9, time.time())


# -- what is fixed ---------------------------------------------------------------------------


def _settings(_: Line, __: "Screen") -> "Iterator[Candidate]":
    from takeback.upkeep.settings import ALL

    return ((setting.name, setting.text) for setting in ALL)


def _setting_values(line: Line, _: "Screen") -> "Iterator[Candidate]":
    from takeback.upkeep.settings import SWITCH, find

    setting = find(line.operands[0])
    for choice in setting.choices or (("true", "false") if setting.kind == SWITCH else ()):
        yield choice, "the default" if str(setting.default).lower() == choice else ""


def _agents(_: Line, __: "Screen") -> "Iterator[Candidate]":
    from takeback.agents.registry import installable

    return ((name, "") for name in installable())


def _shells(_: Line, __: "Screen") -> "Iterator[Candidate]":
    return ((name, "") for name in SHELLS)


def _colours(_: Line, __: "Screen") -> "Iterator[Candidate]":
    return ((name, "") for name in ("auto", "always", "never"))


def _nothing(_: Line, __: "Screen") -> "Iterator[Candidate]":
    return iter(())


def _words(*names: str) -> "Kind":
    return lambda _, __: ((name, "") for name in names)


KINDS: "dict[str, Kind | str]" = {
    "A": _states,
    "ACTION": _nothing,
    "AGE": _nothing,
    "AGENT": _agents,
    "B": _states,
    "COMMAND": _nothing,
    "DIR": FOLDERS,
    "FILE": FILES,
    "FOLDER": FOLDERS,
    "ID": _projects,
    "LABEL": _nothing,
    "N": _nothing,
    "NAME": _nothing,
    "PATH": FILES,
    "PLAN": _plans,
    "REF": _states,
    "SECONDS": _nothing,
    "SESSION": _sessions,
    "SHELL": _shells,
    "SIZE": _nothing,
    "TARGET": FILES,
    "TEXT": _nothing,
    "TIME": _nothing,
    "TURN": _turns,
    "VALUE": _setting_values,
    "WHEN": _colours,
}
"""What the help calls an operand or the value of an option, and what a shell offers for it."""
SPECIAL: "dict[tuple[str, str], Kind]" = {
    ("effects", "ID"): _nothing,
    ("guard", "ACTION"): _words("off", "watch", "ask", "autopilot", "allow", "explain", "test"),
    ("guard", "ID"): _nothing,
    ("lessons", "ACTION"): _words("accept", "edit", "drop"),
    ("lessons", "ID"): _nothing,
    ("participant", "ACTION"): _words("list", "add", "remove", "retry"),
    ("config", "NAME"): _settings,
    ("redo", "TURN"): _undone,
    ("run", "NAME"): _session_names,
}
