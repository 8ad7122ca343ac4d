"""Settings: TOML files in the home folder and in a project's store, never in the work tree."""

import os

from takeback.errors import UsageError
from takeback.store.home import read_small


def limits_in(path: bytes) -> "dict[str, object]":
    """The table `limits` of a settings file; empty if there is none."""
    text = read_small(path, limit=1 << 20)
    if not text:
        return {}
    import tomllib

    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: {problem}"
        ) from None
    limits = table.get("limits", {})
    return limits if isinstance(limits, dict) else {}
