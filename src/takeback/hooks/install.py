"""Installs and uninstalls: what will be written is worked out first, and can be shown and tried.

The order in which things become durable is such that a crash at any point leaves either a file as
it was, or all that is needed to make it so: backup, receipt, settings; and back: settings, backup,
receipt.
"""

import hashlib
import os

from takeback.agents.agent import FILES
from takeback.disk import home as homes
from takeback.disk import operations
from takeback.disk.failures import FailingAs
from takeback.errors import RefusedError, TakebackError
from takeback.hooks import command
from takeback.hooks.settings import forms, settings_file
from takeback.hooks.settings.json_settings import NotValidError
from takeback.hooks.settings.receipts import Receipt, drop, keep, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.agents.agent import Agent
    from takeback.hooks.settings.forms import Form
    from takeback.hooks.settings.settings_file import SettingsFile


USER, PROJECT = "user", "project"


class FileEdit:
    """One file of an install: what it holds and shall hold.

    `kept` is where a file of ours is kept that somebody changed, once it is written.
    """

    __slots__ = ("data", "file", "kept")

    def __init__(self, file: "SettingsFile", data: bytes) -> None:
        self.file = file
        self.data = data
        self.kept = b""

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.data != self.file.data


class Installation:
    """What an install would write; `command` is the command line, `commands` by event.

    `script` is what the script says that the command line runs; empty if it runs none. Only an
    agent whose files are ours as a whole has more than one.
    """

    __slots__ = ("agent", "command", "commands", "edits", "scope", "script")

    def __init__(
        self,
        agent: "Agent",
        scope: str,
        edits: "list[FileEdit]",
        command: str,
        commands: "dict[str, str]",
        script: str = "",
    ) -> None:
        self.agent = agent
        self.scope = scope
        self.edits = edits
        self.command = command
        self.commands = commands
        self.script = script

    @property
    def file(self) -> "SettingsFile":
        """The settings file, or the first of several."""
        return self.edits[0].file

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return any(edit.changes for edit in self.edits)


class Removal:
    """What an uninstall would write into one file; `data` is None if the file goes.

    `is_exact` tells that the file becomes what it was, and `backup` is where that is kept. With
    `is_kept`, the file is ours, somebody changed it, and a copy of it stays.
    """

    __slots__ = ("backup", "data", "events", "file", "folders", "is_exact", "is_kept")

    def __init__(self, file: "SettingsFile", data: "bytes | None", events: "list[str]") -> None:
        self.file = file
        self.data = data
        self.events = events
        self.backup = b""
        self.folders: list[bytes] = []
        self.is_exact = False
        self.is_kept = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to take out."""
        return bool(self.events)


def settings_path(agent: "Agent", folder: bytes, scope: str = USER) -> bytes:
    """The settings file in an agent's folder, or the first of several.

    In a project it is the one that is not shared, if there is one.
    """
    is_local = scope == PROJECT and agent.local_file
    name = agent.local_file if is_local else agent.file_names()[0]
    return os.path.join(os.path.abspath(folder), name.encode())


def paths_beside(agent: "Agent", path: bytes) -> "list[bytes]":
    """All files of an agent that belong together; `path` is the first of them."""
    if agent.form != FILES:
        return [path]
    names = [name.encode() for name in agent.file_names()]
    folder = path.removesuffix(names[0])
    return [folder + name for name in names]


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
    form = forms.of(agent)
    usual, reporting = command_lines(agent, scope, home)
    wanted = form.wanted_by(usual, reporting, events)
    places = paths_beside(agent, path)
    edits = [_edit(form, *each) for each in zip(places, wanted.values(), strict=True)]
    own = "" if command.is_shared(usual) else script
    commands = form.lines(usual, reporting, events)
    return Installation(agent, scope, edits, usual, commands, own)


def _edit(form: "Form", path: bytes, wanted: object) -> FileEdit:
    file = settings_file.read(path)
    text = file.text
    try:
        if not form.is_complete(text, wanted):
            text = form.put_in(text, wanted)
    except RefusedError as problem:
        raise _left_as_it_is(file, form, problem) from None
    if not form.is_complete(text, wanted):
        raise TakebackError(f"`{file.shown}` was left as it is: the hooks do not fit into it")
    return FileEdit(file, text.encode())


def command_lines(agent: "Agent", scope: str, home: bytes) -> "tuple[str, str]":
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


def require_writable(made: Installation) -> None:
    """An error, before anything is done, for settings that somebody protected."""
    for edit in made.edits:
        if edit.changes:
            settings_file.require_writable(edit.file)


def install(made: Installation, home: bytes) -> "bytes | None":
    """Write it; the path of the backup, None if there was nothing to keep."""
    require_writable(made)
    known = read(home)
    with FailingAs(TakebackError, "nothing was installed"):
        write_script(home, made.script)
    written: list[tuple[FileEdit, Receipt]] = []
    try:
        for edit in made.edits:
            if not edit.changes:
                continue
            with FailingAs(TakebackError, "nothing was installed"):
                receipt = _receipt(made, edit, known.get(edit.file.shown))
                written.append((edit, receipt))
                keep(home, receipt)
                _write(made, edit)
    except BaseException:
        for edit, receipt in reversed(written):
            _take_back(made, edit, receipt, known.get(receipt.file), home)
        raise
    first = read(home).get(made.file.shown)
    return os.fsencode(first.backup) if first is not None and first.backup else None


def _write(made: Installation, edit: FileEdit) -> None:
    is_private = made.scope == USER
    executable = made.agent.form == FILES and made.agent.executable
    settings_file.replace(edit.file, edit.data, private=is_private, executable=executable)


def write_script(home: bytes, script: str) -> None:
    """Write what hooks start, unless it is there."""
    path = os.fsencode(command.script_path(home))
    if script and homes.read_small(path) != script.encode():
        homes.Home(home).create()
        homes.replace_file(path, script.encode(), durable=True)


def _take_back(
    made: Installation, edit: FileEdit, receipt: Receipt, known: "Receipt | None", home: bytes
) -> None:
    """What was prepared for an install that failed; leaving it would harm nobody."""
    path = edit.file.path
    try:
        if settings_file.read(path).data == edit.data:
            # It is written, and only not known to be durable.
            if known is None:
                _uninstall(_removal(forms.of(made.agent), path, home), home)
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


def _receipt(made: Installation, edit: FileEdit, known: "Receipt | None") -> Receipt:
    """What is kept of an install, with a new backup if there is none of this state."""
    file, now, new = edit.file, _hash(edit.file.data), _hash(edit.data)
    has_ours = bool(forms.of(made.agent).ours(file.text))
    receipt = Receipt(made.agent.name, made.scope, file.shown, before=now, after=new)
    if has_ours and made.agent.form == FILES:
        if known is None or now not in (known.after, known.before):
            edit.kept = settings_file.back_up(file)
        receipt.before, receipt.folders = "", known.folders if known is not None else ()
        return receipt
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


def removals(agent: "Agent", path: bytes, home: bytes) -> "list[Removal]":
    """What has to be written so that nothing of ours is in a file, or in those beside it."""
    form = forms.of(agent)
    return [_removal(form, each, home) for each in paths_beside(agent, path)]


def _removal(form: "Form", path: bytes, home: bytes) -> Removal:
    file = settings_file.read(path)
    known = read(home).get(file.shown)
    made = Removal(file, None, [])
    if known is not None:
        made.backup = os.fsencode(known.backup)
        made.folders = [os.fsencode(folder) for folder in known.folders]
    if file.data is None:
        return made
    text, before = file.text, _backup_of(known)
    try:
        made.events = [one.event for one in form.ours(text)]
        if known is not None and before is not None and known.after == _hash(file.data):
            made.data = before if known.before else None
            made.is_exact = True
            return made
        out = form.take_out(text, before.decode("utf-8", "replace") if before is not None else None)
    except RefusedError as problem:
        raise _left_as_it_is(file, form, problem) from None
    made.data = out.encode()
    if form.agent.form == FILES and made.changes:
        made.data, made.is_kept = None, True
        return made
    was_missing = known is not None and not known.before
    if was_missing and form.is_empty(out):
        made.data, made.is_exact = None, True
    made.is_exact = made.is_exact or (known is not None and made.data == before)
    return made


def uninstall(made: "Sequence[Removal]", home: bytes) -> None:
    """Write it, and forget what was kept for it."""
    for each in reversed(made):  # the folders of the first are around the others
        _uninstall(each, home)


def _uninstall(made: Removal, home: bytes) -> None:
    settings_file.clean_up(made.file)
    if made.changes:
        settings_file.require_writable(made.file)
        if made.is_kept:
            made.backup = settings_file.back_up(made.file)
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


def _left_as_it_is(file: "SettingsFile", form: "Form", problem: RefusedError) -> RefusedError:
    """What is wrong with the text of a file, with its name and what to do."""
    said = f"`{file.shown}` was left as it is: "
    if isinstance(problem, NotValidError):
        also = "; comments and commas before `}` are not JSON" if form.language == "JSON" else ""
        return RefusedError(
            f"{said}it is not valid {form.language}: {problem}",
            hint=f"fix it and try again{also}",
        )
    return RefusedError(f"{said}{problem}", hint=problem.actions or "fix it and try again")


def _hash(data: "bytes | None") -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""
