"""Installs and uninstalls: what will be written is worked out first, and can be shown and tried.

The order in which things become durable is such that a crash at any point leaves either the file as
it was, or all that is needed to make it so: backup, receipt, settings; and back: settings, backup,
receipt.
"""

import hashlib
import os

from takeback.errors import RefusedError, TakebackError
from takeback.hooks.installing import receipts, settingsfile, settingstext
from takeback.hooks.installing.command import line
from takeback.hooks.installing.jsonspans import NotJsonError
from takeback.hooks.installing.receipts import Receipt
from takeback.store import fsops
from takeback.store.failures import FailingAs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from takeback.agents.agent import Agent
    from takeback.hooks.installing.settingsfile import SettingsFile
    from takeback.hooks.installing.settingstext import Group

USER, PROJECT = "user", "project"


class Installation:
    """What an install would write; `command` is the command line, `commands` by event."""

    __slots__ = ("agent", "command", "commands", "data", "file", "scope", "wanted")

    def __init__(
        self,
        agent: "Agent",
        scope: str,
        file: "SettingsFile",
        data: bytes,
        wanted: "Mapping[str, Group]",
        command: str,
    ) -> None:
        self.agent = agent
        self.scope = scope
        self.file = file
        self.data = data
        self.wanted = wanted
        self.command = command
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


def settings_path(agent: "Agent", folder: bytes) -> bytes:
    """The settings file in an agent's folder."""
    return os.path.join(os.path.abspath(folder), agent.file.encode())


def installation(
    agent: "Agent",
    scope: str,
    path: bytes,
    *,
    python: str,
    main: str,
    events: "Iterable[str] | None" = None,
) -> Installation:
    """What has to be written so that an agent calls us: at all events, or at those given."""
    file = settingsfile.read(path)
    _require_understood(file)
    usual = line(python, main, started_in=agent.started_in)
    reporting = line(python, main, started_in=agent.started_in, tells=True)
    wanted = agent.groups(usual, reporting, events)
    text = settingstext.put_in(file.text, wanted)
    if not settingstext.is_complete(text, wanted):
        raise TakebackError(f"`{file.shown}` was left as it is: the hooks do not fit into it")
    data = text.encode()
    if data != file.data:
        settingsfile.require_writable(file)
    return Installation(agent, scope, file, data, wanted, usual)


def install(made: Installation, home: bytes) -> "bytes | None":
    """Write it; the path of the backup, None if there was nothing to keep."""
    known = receipts.read(home).get(made.file.shown)
    if not made.changes:
        return os.fsencode(known.backup) if known is not None and known.backup else None
    receipt = _receipt(made, known)
    try:
        with FailingAs(TakebackError, "nothing was installed"):
            receipts.keep(home, receipt)
            settingsfile.replace(made.file, made.data, private=made.scope == USER)
    except BaseException:
        _take_back(made, receipt, known, home)
        raise
    return os.fsencode(receipt.backup) if receipt.backup else None


def _take_back(made: Installation, receipt: Receipt, known: "Receipt | None", home: bytes) -> None:
    """What was prepared for an install that failed; leaving it would harm nobody."""
    try:
        if settingsfile.read(made.file.path).data == made.data:
            # It is written, and only not known to be durable.
            if known is None:
                uninstall(removal(made.file.path, home), home)
            return
        settingsfile.remove_folders([os.fsencode(folder) for folder in receipt.folders])
        if known is None:
            receipts.drop(home, receipt.file)
        else:
            receipts.keep(home, known)
    except (OSError, TakebackError):
        return  # then the receipt still tells which backup is ours
    if receipt.backup and (known is None or known.backup != receipt.backup):
        fsops.discard(os.fsencode(receipt.backup))


def _receipt(made: Installation, known: "Receipt | None") -> Receipt:
    """What is kept of an install, with a new backup if there is none of this state."""
    file, now = made.file, _hash(made.file.data)
    has_ours = bool(settingstext.ours(file.text))
    new = _hash(made.data)
    receipt = Receipt(made.agent.name, made.scope, file.shown, before=now, after=new)
    if known is not None and (has_ours or known.before == now) and _backup_of(known) is not None:
        receipt.before, receipt.backup, receipt.folders = known.before, known.backup, known.folders
        # If somebody wrote into the file since, it will not become what it was.
        receipt.after = new if now in (known.after, known.before) else ""
        return receipt
    receipt.folders = tuple(map(os.fsdecode, settingsfile.missing_folders(file)))
    if file.data is not None:
        receipt.backup = os.fsdecode(settingsfile.back_up(file))
    if has_ours:
        receipt.after = ""
    return receipt


def removal(path: bytes, home: bytes) -> Removal:
    """What has to be written so that nothing of ours is in a file."""
    file = settingsfile.read(path)
    known = receipts.read(home).get(file.shown)
    made = Removal(file, None, [])
    if known is not None:
        made.backup = os.fsencode(known.backup)
        made.folders = [os.fsencode(folder) for folder in known.folders]
    if file.data is None:
        return made
    _require_understood(file)
    made.events = [one.event for one in settingstext.ours(file.text)]
    before = _backup_of(known)
    if known is not None and before is not None and known.after == _hash(file.data):
        made.data = before if known.before else None
        made.is_exact = True
        return made
    text = settingstext.take_out(file.text, (before or b"").decode("utf-8", "replace"))
    made.data = text.encode()
    was_missing = known is not None and not known.before
    if was_missing and settingstext.is_empty(text):
        made.data, made.is_exact = None, True
    made.is_exact = made.is_exact or (known is not None and made.data == before)
    return made


def uninstall(made: Removal, home: bytes) -> None:
    """Write it, and forget what was kept for it."""
    settingsfile.clean_up(made.file)
    if made.changes:
        settingsfile.require_writable(made.file)
        if made.data is None:
            settingsfile.remove(made.file)
        else:
            settingsfile.replace(made.file, made.data)
    if made.data is None:
        settingsfile.remove_folders(made.folders)
    if made.is_exact and made.backup:
        fsops.discard(made.backup)
    with FailingAs(TakebackError, "it is done, but could not be noted"):
        receipts.drop(home, made.file.shown)


def _backup_of(known: "Receipt | None") -> "bytes | None":
    """What a file held before; empty if it was not there, None if that is not known any more."""
    if known is None:
        return None
    if not known.before:
        return b""
    data = settingsfile.read(os.fsencode(known.backup)).data if known.backup else None
    return data if data is not None and _hash(data) == known.before else None


def _require_understood(file: "SettingsFile") -> None:
    text = file.text
    try:
        settingstext.ours(text)
    except NotJsonError as problem:
        raise RefusedError(
            f"`{file.shown}` is not valid JSON, and was left as it is: {problem}",
            hint="put that right and try again; agents do not read such a file either",
        ) from None
    except RefusedError as problem:
        raise RefusedError(
            f"`{file.shown}` was left as it is: {problem}", hint="put that right and try again"
        ) from None


def _hash(data: "bytes | None") -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""
