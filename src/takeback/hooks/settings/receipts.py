"""What we wrote into which settings file, kept beside the stores.

It is what lets a file become what it was, to the byte. Losing it costs no more than that: hooks of
ours are known by their command line.
"""

import os

from takeback.disk import home as homes
from takeback.disk import operations
from takeback.hooks import command
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.text.json_text import Json

_NAME = b"/installed"


class Receipt:
    """One settings file: hashes of what it held before and holds since, and what else we made.

    `before` is empty if there was no file; `folders` are those that were made for it.
    """

    __slots__ = ("after", "agent", "backup", "before", "file", "folders", "scope")

    def __init__(
        self,
        agent: str,
        scope: str,
        file: str,
        *,
        before: str,
        after: str,
        backup: str = "",
        folders: "Iterable[str]" = (),
    ) -> None:
        self.agent = agent
        self.scope = scope
        self.file = file
        self.before = before
        self.after = after
        self.backup = backup
        self.folders = tuple(folders)

    def as_json(self) -> "dict[str, Json]":
        """How it is kept."""
        return {
            "agent": self.agent,
            "scope": self.scope,
            "file": self.file,
            "before": self.before,
            "after": self.after,
            "backup": self.backup,
            "folders": list(self.folders),
        }


def read(home: bytes) -> "dict[str, Receipt]":
    """All receipts, by file; a line that is damaged is passed over."""
    found = {}
    for text in homes.read_small(home + _NAME).splitlines():
        try:
            receipt = _parsed(json_text.loads(text.decode()))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        found[receipt.file] = receipt
    return found


def keep(home: bytes, receipt: Receipt) -> None:
    """Add a receipt, or replace the one of the same file."""
    homes.Home(home).create()
    _write(home, {**read(home), receipt.file: receipt})


def drop(home: bytes, file: str) -> None:
    """Forget what was written into a file."""
    known = read(home)
    dropped = known.pop(file, None)
    if dropped is not None:
        _hand_on(dropped, known)
        _write(home, known)
        if not known:
            operations.discard(os.fsencode(command.script_path(home)))


def _hand_on(dropped: Receipt, others: "dict[str, Receipt]") -> None:
    """Let the folders that hold files of others be removed with those."""
    for other in others.values():
        shared = [each for each in dropped.folders if other.file.startswith(f"{each}/")]
        own = [each for each in other.folders if each not in shared]
        other.folders = (*shared, *own)


def _write(home: bytes, receipts: "dict[str, Receipt]") -> None:
    lines = [json_text.dumps(one.as_json()).encode() + b"\n" for one in receipts.values()]
    homes.replace_file(home + _NAME, *lines, durable=True)


def _parsed(said: "dict[str, object]") -> Receipt:
    folders = said["folders"]
    if not isinstance(folders, list):
        raise TypeError("not a list of folders")
    return Receipt(
        str(said["agent"]),
        str(said["scope"]),
        str(said["file"]),
        before=str(said["before"]),
        after=str(said["after"]),
        backup=str(said["backup"]),
        folders=map(str, folders),
    )
