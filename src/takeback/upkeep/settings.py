"""Every setting there is: its name, its default, what it does, and which values it may have.

One list for all: who reads a setting asks for it by a name that is here, `takeback config` shows
them, and a name in a file that is not here is told by `config` and `doctor`. It stops nothing: the
settings of a newer program, or a slip of a finger, must not end the protection.

The settings as they are: every value, where it comes from, and how it is changed.
"""

from takeback import location
from takeback.capture import project_rules
from takeback.disk import home as homes
from takeback.disk.failures import FailingAs
from takeback.disk.home import Home, tables_in, with_value
from takeback.effects.saved import area
from takeback.errors import TakebackError, UsageError
from takeback.history import retention
from takeback.model.reasons import Action
from takeback.model.results import DEFAULT, PROJECT, USER, Configured, Misfit
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Check = Callable[[object], bool]


NUMBER, BYTES, SIZE, AGE, SWITCH, NAMES, CHOICE, COMMANDS = (
    "a whole number", "a number of bytes", "a size", "an age", "true or false",
    "a list of names", "a choice", "a list of commands",
)  # fmt: skip
_HINTS = {
    NUMBER: "such as 200",
    BYTES: "such as 16777216",
    SIZE: "such as 800 MB or 5 GB",
    AGE: "such as 30, 2w, 6m or 1y; `forever` keeps all",
    SWITCH: "`true` or `false`",
    NAMES: 'such as build,dist or \'["build", "dist"]\'',
    COMMANDS: 'such as \'[["reindex", "--changed"]]\'',
}


class Setting(Value):
    """One setting: `name` is `table.key`."""

    name: str
    kind: str
    default: object
    text: str
    choices: "tuple[str, ...]" = ()

    @property
    def table(self) -> str:
        """The table of the file that it is in."""
        return self.name.partition(".")[0]

    @property
    def key(self) -> str:
        """What it is called there."""
        return self.name.partition(".")[2]

    def problem(self, value: object) -> str:
        """What is wrong with a value; empty if nothing is."""
        if _CHECKS[self.kind](value) and (not self.choices or value in self.choices):
            return ""
        return f"`{self.name}` is {self.expected}, not {value!r}"

    @property
    def expected(self) -> str:
        """What it may be, in words."""
        return " or ".join(f"`{word}`" for word in self.choices) if self.choices else self.kind

    @property
    def hint(self) -> str:
        """An example of what it may be."""
        return f"`{self.name}` is {self.expected}, {_HINTS.get(self.kind, '')}".rstrip(", ")

    def parse(self, text: str) -> object:
        """A value as somebody typed it; an error if it cannot be meant."""
        value = _PARSERS.get(self.kind, str)(text)
        if self.problem(value):
            raise UsageError(f"`{self.name}` cannot be `{text}`", hint=self.hint)
        return value


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: object, of: "Check") -> bool:
    return isinstance(value, list) and all(map(of, value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_command(value: object) -> bool:
    return _is_list(value, lambda word: isinstance(word, str)) and bool(value)


def _is_size(value: object) -> bool:
    return _is_number(value) or (isinstance(value, str) and _bytes(value) is not None)


def _is_age(value: object) -> bool:
    if not isinstance(value, str):
        return _is_number(value)
    try:
        retention.age(value)
    except UsageError:
        return False
    return True


_CHECKS: "dict[str, Check]" = {
    NUMBER: _is_number,
    BYTES: _is_number,
    SIZE: _is_size,
    AGE: _is_age,
    SWITCH: lambda value: isinstance(value, bool),
    NAMES: lambda value: _is_list(value, _is_name),
    CHOICE: lambda value: isinstance(value, str),
    COMMANDS: lambda value: _is_list(value, _is_command),
}


def _bytes(text: str) -> "int | None":
    """A size in bytes; None if the text is not a size."""
    try:
        return retention.size(text)
    except UsageError:
        return None


def _number(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else text


def _size(text: str) -> object:
    """In bytes; programs of any age can read a number."""
    found = _bytes(text)
    return text if found is None else found


def _switch(text: str) -> object:
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    return known.get(text.lower(), text)


def _list(text: str) -> object:
    if not text.lstrip().startswith("["):
        return [word for word in (part.strip() for part in text.split(",")) if word]
    import tomllib

    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


_PARSERS: "dict[str, Callable[[str], object]]" = {
    NUMBER: _number,
    BYTES: _size,
    SIZE: _size,
    AGE: _number,
    SWITCH: _switch,
    NAMES: _list,
    COMMANDS: _list,
}

ALL = (
    Setting("limits.entries", NUMBER, project_rules.ENTRIES,
            "an ignored folder with more entries may be left out"),
    Setting("limits.bytes", BYTES, project_rules.BYTES,
            "a rebuildable folder with more bytes is left out"),
    Setting("limits.file", BYTES, project_rules.FILE,
            "a larger file is left out unless git tracks it"),
    Setting("limits.rebuildable", NAMES,
            sorted(name.decode() for name in project_rules.REBUILDABLE),
            "names of folders that can be rebuilt"),
    Setting("recording.on", SWITCH, True,
            "whether agents are recorded; the commands `off` and `on` set it"),
    Setting("recording.safe_points", CHOICE, "step",
            "how often a session makes checkpoints", ("turn", "step", "call")),
    Setting("guard.mode", CHOICE, "watch",
            "what the guard does about calls that cannot be taken back",
            ("off", "watch", "ask", "autopilot")),
    Setting("hooks.typed", SWITCH, True,
            "whether `tb undo` typed into an agent is done at once; else the model gets it"),
    Setting("lessons.ask", SWITCH, True,
            "whether `undo` and `rollback` ask for the reason on a terminal"),
    Setting("lessons.tell", SWITCH, True,
            "whether agents are told lessons, and relapses"),
    Setting("restore.listeners", COMMANDS, [],
            "programs that get the paths a restore changed"),
    Setting("retention.days", AGE, retention.DAYS,
            "files of older states are deleted; `forever` keeps all"),
    Setting("retention.turns", NUMBER, retention.TURNS,
            "this many of the newest turns are kept at any age"),
    Setting("retention.size_cap", SIZE, retention.SIZE,
            "warn when the history is larger"),
    Setting("retention.size_cap_trims", SWITCH, False,
            "above `size_cap`, delete the files of the oldest states"),
    Setting("gc.auto", SWITCH, True,
            "delete expired files and compact the store when a session ends"),
    Setting("rescue.limit", BYTES, area.LIMIT,
            "bytes of files saved before a command destroys them; beyond, the oldest go"),
    Setting("rescue.copy", BYTES, area.COPY_LIMIT,
            "bytes that one command may have copied, where a link is not enough"),
    Setting("record.output", CHOICE, "on",
            "record the input and output of tools, up to 16 KiB each, masked",
            ("on", "off")),
    Setting("secrets.names", NAMES, [],
            "more secret files, never shown: `NAME`, `FOLDER/NAME`, `*.ENDING`"),
    Setting("watch.quiet", NUMBER, 10,
            "seconds without a change after which `watch` records a turn"),
    Setting("watch.longest", NUMBER, 600,
            "seconds after which `watch` records one even if files keep changing"),
)  # fmt: skip


def find(name: str) -> Setting:
    """The setting of this name; an error that names the nearest one if there is none."""
    for setting in ALL:
        if setting.name == name:
            return setting
    raise UsageError(f"there is no setting `{name}`", hint=nearest(name))


def nearest(name: str) -> "str | Action":
    """What may have been meant."""
    import difflib

    names = [setting.name for setting in ALL]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    close = close or [each for each in names if each.endswith(f".{name}")]
    return f"did you mean `{close[0]}`?" if close else Action("config")


class Settings:
    """The settings of one project, or of the user where there is none."""

    def __init__(self, home: bytes, project: "str | None" = None) -> None:
        self._home = Home(home)
        self.files = {USER: home + b"/config.toml"}
        if project is not None:
            self.files[PROJECT] = self._home.store_path(project) + b"/config.toml"

    @classmethod
    def at(cls, path: bytes, *, home: bytes) -> "Settings":
        """The settings of the project that a folder is in; whatever state its store is in."""
        with FailingAs(TakebackError, "the settings could not be read"):
            try:
                found = location.find(path, home=home)
            except TakebackError:
                found = None  # a folder that is asked about has no settings of its own yet
            return cls(home, found[0].id if found is not None else None)

    def all(self) -> "list[Configured]":
        """Every setting."""
        return [self.one(setting.name) for setting in ALL]

    def one(self, name: str) -> Configured:
        """One setting; a value that cannot be meant does not count, and is told by `misfits`."""
        setting = find(name)
        for origin in (PROJECT, USER):
            value = self._tables(origin).get(setting.table, {})
            if isinstance(value, dict) and setting.key in value:
                found = value[setting.key]
                if not setting.problem(found):
                    return _configured(setting, found, origin)
        return _configured(setting, setting.default, DEFAULT)

    def misfits(self) -> "Iterator[Misfit]":
        """What is in the files and is no setting, or no value of one."""
        for origin, path in self.files.items():
            try:
                tables = tables_in(path)
            except UsageError as problem:
                yield Misfit(origin, path, "", str(problem), ("fix it, or move it away",))
                continue
            for table, inner in tables.items():
                names = list(inner) if isinstance(inner, dict) else [""]
                for key in names:
                    name = f"{table}.{key}".rstrip(".")
                    value = inner[key] if isinstance(inner, dict) else inner
                    yield from _misfit(origin, path, name, value)

    def set(self, name: str, text: str, *, user: bool = False) -> Configured:
        """Give a setting a value that somebody typed."""
        setting = find(name)
        self._change(setting, setting.parse(text), user=user)
        return self.one(name)

    def unset(self, name: str, *, user: bool = False) -> Configured:
        """Take a setting out of a file, so that what stands behind it counts."""
        self._change(find(name), None, user=user)
        return self.one(name)

    def set_participant(
        self, name: str, options: "dict[str, object] | None", *, user: bool = False
    ) -> None:
        """Write the table of a participant, or remove it for None."""
        self._write("participants", name, options, user=user)

    def without(self, name: str, *, user: bool = False) -> object:
        """What a setting would be if it were taken out of a file."""
        setting, gone = find(name), USER if user else PROJECT
        for origin in (PROJECT, USER):
            value = self._tables(origin).get(setting.table, {})
            if origin != gone and isinstance(value, dict) and setting.key in value:
                return value[setting.key]
        return setting.default

    def _change(self, setting: "Setting", value: "object | None", *, user: bool) -> None:
        self._write(setting.table, setting.key, value, user=user)

    def _write(self, table: str, key: str, value: "object | None", *, user: bool) -> None:
        path = self.files.get(USER if user else PROJECT)
        if path is None:
            raise UsageError(
                "you are not in a project yet",
                hint=(Action("set-for-all"), Action("begin")),
            )
        with FailingAs(TakebackError, "the setting was not changed"):
            self._home.create()
            with location.held_home(self._home):
                text = homes.read_small(path).decode()
                after = with_value(text, table, key, value)
                if after != text:
                    homes.replace_file(path, after.encode(), durable=True)

    def _tables(self, origin: str) -> "dict[str, object]":
        try:
            return tables_in(self.files[origin]) if origin in self.files else {}
        except UsageError:
            return {}


def _configured(setting: "Setting", value: object, origin: str) -> Configured:
    return Configured(setting.name, value, origin, setting.default, setting.text)


def _misfit(origin: str, path: bytes, name: str, value: object) -> "Iterator[Misfit]":
    """What is wrong with what a file says, and what may have been meant."""
    if name.startswith("participants."):
        return  # what is wrong with one of these is told where it takes part
    try:
        setting = find(name)
    except UsageError as problem:
        what = f"`{name}` is not a setting; it is ignored"
        yield Misfit(origin, path, name, what, problem.actions, is_refused=False)
        return
    wrong = setting.problem(value)
    if wrong:
        yield Misfit(origin, path, name, wrong, (setting.hint,))
