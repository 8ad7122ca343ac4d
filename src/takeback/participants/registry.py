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

TYPES = ("command", "postgres", "sqlite")


def configured(name: str, options: "Mapping[str, object]") -> "Participant":
    """The participant that a table of the settings means."""
    chosen = options.get("type")
    if chosen not in TYPES:
        raise UsageError(
            f"`participants.{name}` has the unknown type `{chosen}`",
            hint=f"`type` is one of {', '.join(TYPES)}",
        )
    module = import_module(f"takeback.participants.{chosen}")
    found: Participant = module.configured(name, options)
    return found
