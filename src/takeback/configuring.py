"""The settings as they are: every value, where it comes from, and how it is changed."""

from takeback import opening
from takeback.engine import settings
from takeback.errors import TakebackError, UsageError
from takeback.model.configured import DEFAULT, PROJECT, USER, Configured, Misfit
from takeback.store import home as homes
from takeback.store.failures import FailingAs
from takeback.store.home import Home
from takeback.store.settings import tables_in, with_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.engine.settings import Setting


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
                found = opening.find(path, home=home)
            except TakebackError:
                found = None  # a folder that is asked about has no settings of its own yet
            return cls(home, found[0].id if found is not None else None)

    def all(self) -> "list[Configured]":
        """Every setting."""
        return [self.one(setting.name) for setting in settings.ALL]

    def one(self, name: str) -> Configured:
        """One setting; a value that cannot be meant does not count, and is told by `misfits`."""
        setting = settings.find(name)
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
                yield Misfit(origin, path, "", str(problem), "mend it, or move it away")
                continue
            for table, inner in tables.items():
                names = list(inner) if isinstance(inner, dict) else [""]
                for key in names:
                    name = f"{table}.{key}".rstrip(".")
                    value = inner[key] if isinstance(inner, dict) else inner
                    yield from _misfit(origin, path, name, value)

    def set(self, name: str, text: str, *, user: bool = False) -> Configured:
        """Give a setting a value that somebody typed."""
        setting = settings.find(name)
        self._change(setting, setting.parse(text), user=user)
        return self.one(name)

    def unset(self, name: str, *, user: bool = False) -> Configured:
        """Take a setting out of a file, so that what stands behind it counts."""
        self._change(settings.find(name), None, user=user)
        return self.one(name)

    def _change(self, setting: "Setting", value: "object | None", *, user: bool) -> None:
        path = self.files.get(USER if user else PROJECT)
        if path is None:
            raise UsageError(
                "you are not in a project yet",
                hint="`--user` sets it for all projects; `takeback checkpoint` makes this one",
            )
        with FailingAs(TakebackError, "the setting was not changed"):
            self._home.create()
            with opening.held_home(self._home):
                text = homes.read_small(path).decode()
                after = with_value(text, setting.table, setting.key, value)
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
    try:
        setting = settings.find(name)
    except UsageError as problem:
        what = f"`{name}` is not a setting, and does nothing"
        yield Misfit(origin, path, name, what, problem.hint, is_refused=False)
        return
    wrong = setting.problem(value)
    if wrong:
        yield Misfit(origin, path, name, wrong, setting.hint)
