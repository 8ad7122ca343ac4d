"""Settings: TOML files in the home folder and in a project's store, never in the work tree."""

import os
import stat

from takeback.disk.home import read_small
from takeback.errors import UsageError


def settings_in(path: bytes, name: str) -> "dict[str, object]":
    """One table of a settings file; empty if there is none."""
    found = tables_in(path).get(name, {})
    return found if isinstance(found, dict) else {}


def tables_in(path: bytes) -> "dict[str, object]":
    """All that a settings file says; nothing if there is none."""
    text = read_small(path, limit=1 << 20)
    if not text:
        _refuse_other(path)
        return {}
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: {problem}"
        ) from None


def with_value(text: str, table: str, key: str, value: "object | None") -> str:
    """The text of a settings file with `[table] key` set, or removed for None; comments stay."""
    import tomllib

    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text += "\n" if text and not text.endswith("\n") else ""
    try:
        file = tomlkit.parse(text)
        if value is None:
            file.get(table, {}).pop(key, None)
        else:
            if table not in file:
                if text:
                    file.add(tomlkit.nl())
                file[table] = tomlkit.table()
            file[table][key] = value  # a TypeError if it is no table
        after = tomlkit.dumps(file)
        if tomllib.loads(after) == file.unwrap():
            return after
    except TOMLKitError as problem:
        raise UsageError(
            f"the settings cannot be read: {problem}", hint="mend them first"
        ) from None
    except (TypeError, AttributeError, tomllib.TOMLDecodeError):
        pass  # there is something else under the name of the table
    raise UsageError(
        f"`{table}.{key}` is written in a way that cannot be changed from here",
        hint="edit the file by hand",
    )


def _refuse_other(path: bytes) -> None:
    """An error if something stands in the place of a file, so that no setting is passed over."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise UsageError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: it is not a plain file",
            hint="look at it, and move it away",
        )
