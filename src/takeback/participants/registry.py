"""The kinds of participants that configuration can name, one module each.

A module has `configured(name, options)`: the participant that a table `[participants.NAME]` of the
settings means. `options` is the table; a `UsageError` says what is wrong with it.
"""

from importlib import import_module

from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.ports import Participant

_SECRETS = ("password", "sslpassword")
_MODULES = {
    "command": "takeback.participants.command",
    "postgres": "takeback.participants.postgres.participant",
    "sqlite": "takeback.participants.sqlite.participant",
}
TYPES = tuple(_MODULES)


def configured(name: str, options: "Mapping[str, object]") -> "Participant":
    """The participant that a table of the settings means."""
    chosen = options.get("type")
    if chosen not in TYPES:
        raise UsageError(
            f"`participants.{name}` has the unknown type `{chosen}`",
            hint=f"`type` is one of {', '.join(TYPES)}",
        )
    module = import_module(_MODULES[str(chosen)])
    found: Participant = module.configured(name, options)
    return found


def without_secrets(options: "Mapping[str, object]") -> "dict[str, object]":
    """A table as it may be stored: an address without its password."""
    found, url = dict(options), options.get("url")
    if options.get("type") != "postgres" or not isinstance(url, str):
        return found
    try:
        from psycopg import ProgrammingError, conninfo
    except ImportError:
        raise UsageError(
            "PostgreSQL needs psycopg", hint="install it with `pip install 'takeback[postgres]'`"
        ) from None
    try:
        parts = conninfo.conninfo_to_dict(url)
    except ProgrammingError as problem:
        # What it quotes may be the password.
        said = str(problem).partition('"')[0].strip(" :\n")
        raise UsageError(f"the address of the database cannot be read: {said}") from None
    if any(name in parts for name in _SECRETS):
        kept = {name: str(value) for name, value in parts.items() if name not in _SECRETS}
        found["url"] = conninfo.make_conninfo("", **kept)
    return found
