"""A settings file of an agent: read, replaced and backed up with care, since it is not ours.

A link, as managers of dotfiles make them, stays a link: what it leads to is written. Mode and owner
stay. A file is replaced in one instant where that keeps both, and written in place where not.
"""

import os
import stat

from takeback.disk import operations
from takeback.disk.failures import FailingAs
from takeback.errors import RefusedError, TakebackError
from takeback.model.value import Value

_LARGEST = 16 << 20
_BACKUP, _NEW = b".before-takeback", b".new-takeback"
_MOST_BACKUPS = 100
_PRIVATE, _SHARED = 0o600, 0o644
"""The user's own settings may hold keys. Those of a project are like its other files."""


class SettingsFile(Value):
    """The file as it was when it was read; `data` is None if there was none."""

    path: bytes
    target: bytes
    data: "bytes | None"
    found: "os.stat_result | None"

    @property
    def shown(self) -> str:
        """Its path, for people."""
        return os.fsdecode(self.path)

    @property
    def text(self) -> str:
        """What it says; empty if there is no file."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError:
            raise RefusedError(
                f"`{self.shown}` was left as it is: it is not UTF-8 text",
                hint="save it as UTF-8 and try again",
            ) from None


def read(path: bytes) -> SettingsFile:
    """Read the file, or what a link of that name leads to."""
    target = os.path.realpath(path)
    try:
        fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return SettingsFile(path, target, None, None)
    except OSError as problem:
        raise RefusedError(f"`{os.fsdecode(path)}` cannot be read: {problem.strerror}") from None
    try:
        return SettingsFile(path, target, _content(fd, path), os.fstat(fd))
    finally:
        os.close(fd)


def _content(fd: int, path: bytes) -> bytes:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(f"`{os.fsdecode(path)}` is not a file")
    if found.st_size > _LARGEST:
        raise RefusedError(f"`{os.fsdecode(path)}` is too large for a settings file")
    pieces = []
    while piece := os.read(fd, _LARGEST):
        pieces.append(piece)
    return b"".join(pieces)


def require_writable(file: SettingsFile) -> None:
    """An error, before anything is done, for a file that somebody protected."""
    if file.found is None:
        return
    is_closed = not file.found.st_mode & 0o222 or not os.access(file.target, os.W_OK)
    if is_closed or os.statvfs(file.target).f_flag & os.ST_RDONLY:
        where = os.fsdecode(file.target)
        raise RefusedError(
            f"`{where}` was left as it is: it is read-only",
            hint=f"if a program makes this file, let it add what `--dry-run` shows; else"
            f" `chmod u+w {where}` and try again",
        )


def replace(
    file: SettingsFile, data: bytes, *, private: bool = True, executable: bool = False
) -> None:
    """Give the file new content, and make it, with the folders around it, if it is not there."""
    with FailingAs(TakebackError, f"`{file.shown}` could not be written"):
        mode = _PRIVATE if private else _SHARED
        open_mode = mode | (mode & 0o444) >> 2
        for folder in missing_folders(file):
            operations.mkdir(folder, mode=open_mode)
            operations.fsync_dir(os.path.dirname(folder))
        _require_unchanged(file)
        mode = open_mode if executable else mode
        if not _put(file.target, data, mode, file.found):
            _write_into(operations.open_existing(file.target), data)


def remove(file: SettingsFile) -> None:
    """Remove a file that we made."""
    with FailingAs(TakebackError, f"`{file.shown}` could not be removed"):
        _require_unchanged(file)
        operations.unlink(file.target)


def remove_folders(folders: "list[bytes]") -> None:
    """Remove folders that we made, unless somebody else has something in them."""
    for folder in reversed(folders):
        try:
            operations.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return


def _require_unchanged(file: SettingsFile) -> None:
    """Agents write their settings themselves; what they wrote meanwhile must not be lost."""
    if read(file.path).data != file.data:
        raise TakebackError(
            f"`{file.shown}` was left as it is: another program changed it just now",
            hint="try again",
        )


def _put(path: bytes, data: bytes, mode: int, found: "os.stat_result | None" = None) -> bool:
    """Put a whole file in its place; False if it could not have the owner that it has."""
    folder = os.path.dirname(path)
    if found is not None:
        if found.st_nlink != 1 or not os.access(folder, os.W_OK):
            return False
        mode = stat.S_IMODE(found.st_mode) & 0o777
    new = path + _NEW  # one name, so that what a crash left is found
    if os.path.lexists(new):
        operations.unlink(new)
    fd = operations.create(new, mode=mode)
    made = os.fstat(fd)
    try:
        _write_into(fd, data)
        if found and (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
            operations.discard(new)
            return False
        operations.rename(new, path)
    except BaseException:
        operations.discard(new)
        raise
    operations.fsync_dir(folder)
    return True


def _write_into(fd: int, data: bytes) -> None:
    """Give an open file its content, and close it."""
    try:
        operations.write_at(fd, data, 0)
        operations.truncate(fd, len(data))
        operations.fsync(fd)
    finally:
        os.close(fd)


def missing_folders(file: SettingsFile) -> "list[bytes]":
    """The folders that have to be made for the file, the topmost first."""
    missing = []
    folder = os.path.dirname(file.target)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing[::-1]


# -- backups -----------------------------------------------------------------------------------


def back_up(file: SettingsFile) -> bytes:
    """Keep what the file holds beside it, under a name that is free; the path of the copy."""
    assert file.data is not None  # nothing needs no backup
    assert file.found is not None
    with FailingAs(TakebackError, f"`{file.shown}` could not be backed up"):
        path = _name_of_backup(file)
        if not os.path.lexists(path):
            try:
                _put(path, file.data, stat.S_IMODE(file.found.st_mode) & 0o777)
            except BaseException:
                operations.discard(path)
                raise
        return path


def _name_of_backup(file: SettingsFile) -> bytes:
    """`settings.json.before-takeback`, or with a number if an older one is kept.

    One that holds just this may be what a crash left, and is as good as a new one.
    """
    first = file.path + _BACKUP
    for number in range(1, _MOST_BACKUPS):
        path = first if number == 1 else b"%s.%d" % (first, number)
        if not os.path.lexists(path) or read(path).data == file.data:
            return path
    raise RefusedError(f"there are too many backups of `{file.shown}`", hint="remove old ones")


def clean_up(file: SettingsFile) -> None:
    """Remove what a crash left."""
    for path in (file.target, file.path + _BACKUP):
        if os.path.lexists(path + _NEW):
            operations.discard(path + _NEW)
