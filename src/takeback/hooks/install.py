"""Installs and uninstalls: what will be written is worked out first, and can be shown and tried.

The order in which things become durable is such that a crash at any point leaves either the file as
it was, or all that is needed to make it so: backup, receipt, settings; and back: settings, backup,
receipt.

What we wrote into which settings file, kept beside the stores.

It is what lets a file become what it was, to the byte. Losing it costs no more than that: hooks of
ours are known by their command line.
"""

import hashlib
import os

from takeback.disk import home as homes
from takeback.disk import operations
from takeback.disk.failures import FailingAs
from takeback.errors import RefusedError, TakebackError
from takeback.hooks import command, settings_file, settings_text
from takeback.hooks.settings_text import NotJsonError
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from takeback.agents.agent import Agent
    from takeback.hooks.settings_file import SettingsFile
    from takeback.hooks.settings_text import Group
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
    if known.pop(file, None) is not None:
        _write(home, known)
        if not known:
            operations.discard(os.fsencode(command.script_path(home)))


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


USER, PROJECT = "user", "project"


class Installation:
    """What an install would write; `command` is the command line, `commands` by event.

    `script` is what the script says that the command line runs; empty if it runs none.
    """

    __slots__ = ("agent", "command", "commands", "data", "file", "scope", "script", "wanted")

    def __init__(
        self,
        agent: "Agent",
        scope: str,
        file: "SettingsFile",
        data: bytes,
        wanted: "Mapping[str, Group]",
        command: str,
        script: str = "",
    ) -> None:
        self.agent = agent
        self.scope = scope
        self.file = file
        self.data = data
        self.wanted = wanted
        self.command = command
        self.script = script
        self.commands: dict[str, str] = {
            event: group["hooks"][0]["command"] for event, group in wanted.items()
        }

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.data != self.file.data


class Removal:
    """What an uninstall would write; `data` is None if the file goes.

    `is_exact` tells that the file becomes what it was, and `backup` is where that is kept.
    """

    __slots__ = ("backup", "data", "events", "file", "folders", "is_exact")

    def __init__(self, file: "SettingsFile", data: "bytes | None", events: "list[str]") -> None:
        self.file = file
        self.data = data
        self.events = events
        self.backup = b""
        self.folders: list[bytes] = []
        self.is_exact = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to take out."""
        return bool(self.events)


def settings_path(agent: "Agent", folder: bytes, scope: str = USER) -> bytes:
    """The settings file in an agent's folder; in a project the one that is not shared, if any."""
    name = agent.local_file if scope == PROJECT and agent.local_file else agent.file
    return os.path.join(os.path.abspath(folder), name.encode())


def installation(
    agent: "Agent",
    scope: str,
    path: bytes,
    *,
    home: bytes,
    script: str,
    events: "Iterable[str] | None" = None,
) -> Installation:
    """What has to be written so that an agent calls us: at all events, or at those given."""
    file = settings_file.read(path)
    _require_understood(file)
    usual, reporting = _lines(agent, scope, home)
    wanted = agent.groups(usual, reporting, events)
    text = settings_text.put_in(file.text, wanted)
    if not settings_text.is_complete(text, wanted):
        raise TakebackError(f"`{file.shown}` was left as it is: the hooks do not fit into it")
    data = text.encode()
    if data != file.data:
        settings_file.require_writable(file)
    own = "" if command.is_shared(usual) else script
    return Installation(agent, scope, file, data, wanted, usual, own)


def _lines(agent: "Agent", scope: str, home: bytes) -> "tuple[str, str]":
    """The command line of most events, and that of prompts, which also tells if we are gone.

    In a project nobody is told: the file may be a colleague's one day.
    """
    name, folder = command.script_path(home), agent.started_in
    usual = command.line(name, started_in=folder)
    if scope == USER:
        return usual, command.line(name, started_in=folder, tells=True)
    if not agent.local_file:
        usual = command.shared_line(started_in=folder)
    return usual, usual


def install(made: Installation, home: bytes) -> "bytes | None":
    """Write it; the path of the backup, None if there was nothing to keep."""
    known = read(home).get(made.file.shown)
    with FailingAs(TakebackError, "nothing was installed"):
        write_script(home, made.script)
    if not made.changes:
        return os.fsencode(known.backup) if known is not None and known.backup else None
    receipt = _receipt(made, known)
    try:
        with FailingAs(TakebackError, "nothing was installed"):
            keep(home, receipt)
            settings_file.replace(made.file, made.data, private=made.scope == USER)
    except BaseException:
        _take_back(made, receipt, known, home)
        raise
    return os.fsencode(receipt.backup) if receipt.backup else None


def write_script(home: bytes, script: str) -> None:
    """Write what hooks start, unless it is there."""
    path = os.fsencode(command.script_path(home))
    if script and homes.read_small(path) != script.encode():
        homes.Home(home).create()
        homes.replace_file(path, script.encode(), durable=True)


def _take_back(made: Installation, receipt: Receipt, known: "Receipt | None", home: bytes) -> None:
    """What was prepared for an install that failed; leaving it would harm nobody."""
    try:
        if settings_file.read(made.file.path).data == made.data:
            # It is written, and only not known to be durable.
            if known is None:
                uninstall(removal(made.file.path, home), home)
            return
        settings_file.remove_folders([os.fsencode(folder) for folder in receipt.folders])
        if known is None:
            drop(home, receipt.file)
        else:
            keep(home, known)
    except (OSError, TakebackError):
        return  # then the receipt still tells which backup is ours
    if receipt.backup and (known is None or known.backup != receipt.backup):
        operations.discard(os.fsencode(receipt.backup))


def _receipt(made: Installation, known: "Receipt | None") -> Receipt:
    """What is kept of an install, with a new backup if there is none of this state."""
    file, now = made.file, _hash(made.file.data)
    has_ours = bool(settings_text.ours(file.text))
    new = _hash(made.data)
    receipt = Receipt(made.agent.name, made.scope, file.shown, before=now, after=new)
    if known is not None and (has_ours or known.before == now) and _backup_of(known) is not None:
        receipt.before, receipt.backup, receipt.folders = known.before, known.backup, known.folders
        # If somebody wrote into the file since, it will not become what it was.
        receipt.after = new if now in (known.after, known.before) else ""
        return receipt
    receipt.folders = tuple(map(os.fsdecode, settings_file.missing_folders(file)))
    if file.data is not None:
        receipt.backup = os.fsdecode(settings_file.back_up(file))
    if has_ours:
        receipt.after = ""
    return receipt


def removal(path: bytes, home: bytes) -> Removal:
    """What has to be written so that nothing of ours is in a file."""
    file = settings_file.read(path)
    known = read(home).get(file.shown)
    made = Removal(file, None, [])
    if known is not None:
        made.backup = os.fsencode(known.backup)
        made.folders = [os.fsencode(folder) for folder in known.folders]
    if file.data is None:
        return made
    _require_understood(file)
    made.events = [one.event for one in settings_text.ours(file.text)]
    before = _backup_of(known)
    if known is not None and before is not None and known.after == _hash(file.data):
        made.data = before if known.before else None
        made.is_exact = True
        return made
    text = settings_text.take_out(file.text, (before or b"").decode("utf-8", "replace"))
    made.data = text.encode()
    was_missing = known is not None and not known.before
    if was_missing and settings_text.is_empty(text):
        made.data, made.is_exact = None, True
    made.is_exact = made.is_exact or (known is not None and made.data == before)
    return made


def uninstall(made: Removal, home: bytes) -> None:
    """Write it, and forget what was kept for it."""
    settings_file.clean_up(made.file)
    if made.changes:
        settings_file.require_writable(made.file)
        if made.data is None:
            settings_file.remove(made.file)
        else:
            settings_file.replace(made.file, made.data)
    if made.data is None:
        settings_file.remove_folders(made.folders)
    if made.is_exact and made.backup:
        operations.discard(made.backup)
    with FailingAs(TakebackError, "done, but it could not be recorded"):
        drop(home, made.file.shown)


def _backup_of(known: "Receipt | None") -> "bytes | None":
    """What a file held before; empty if it was not there, None if that is not known any more."""
    if known is None:
        return None
    if not known.before:
        return b""
    data = settings_file.read(os.fsencode(known.backup)).data if known.backup else None
    return data if data is not None and _hash(data) == known.before else None


def _require_understood(file: "SettingsFile") -> None:
    text = file.text
    try:
        settings_text.ours(text)
    except NotJsonError as problem:
        raise RefusedError(
            f"`{file.shown}` was left as it is: it is not valid JSON: {problem}",
            hint="fix it and try again; agents cannot read such a file either",
        ) from None
    except RefusedError as problem:
        raise RefusedError(
            f"`{file.shown}` was left as it is: {problem}", hint="fix it and try again"
        ) from None


def _hash(data: "bytes | None") -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""
