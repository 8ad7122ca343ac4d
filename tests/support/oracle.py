"""The plain-copy oracle: what a folder holds, told by code that shares nothing with the product.

`picture` walks with `lstat` and open directories only, so it works at any depth and with any
name; it follows no link, enters no other file system, and opens nothing but regular files and
folders. Files are hashed in pieces, stretches of zeros by their place only, so that sparse files
of any size cost no memory.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

Entry = tuple[str | int | bytes, ...]
Picture = dict[bytes, Entry]
Deltas = dict[bytes, tuple[str, bytes | None]]
"""What happened to each path, and where it was before if it was moved."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)
_CAPTURED = ("file", "folder", "link")
_VERSION_CONTROL = (b".git", b".jj", b".hg", b".svn")
_SPECIAL = {
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def picture(root: bytes | Path) -> Picture:
    """Describe everything below `root`: kind, permission bits, content, link targets."""
    return _walk(root, _describe)


def stamps(root: bytes | Path) -> Picture:
    """Name the inode, owner and time stamps of everything below `root`; reading moves none."""
    return _walk(root, _stamp)


def differences(
    before: Mapping[bytes, Entry], after: Mapping[bytes, Entry], ignoring: Collection[bytes] = ()
) -> list[str]:
    """Say in words where two pictures differ, except at the ignored paths and below them."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new and not _covered(path, ignoring):
            found.append(f"{_shown(path)}: {old or 'absent'} became {new or 'absent'}")
    return found


def deltas(before: Picture, after: Picture) -> Deltas:
    """What changed between two pictures; what is not covered is unknown, not absent."""
    was, now = _states(before), _states(after)
    verbs = {path: _verb(path, was, now) for path in was.keys() | now.keys()}
    found = {path: verb for path, verb in verbs.items() if verb}
    return {path: (verb, _origin(path, found, was, now)) for path, verb in found.items()}


def _states(picture: Picture) -> Picture:
    """The picture without what is below uncovered folders; these and special files are `other`."""
    states: Picture = {}
    for path, entry in sorted(picture.items()):
        above = path.rpartition(b"/")[0]
        if path and above and states.get(above, ("other",))[0] == "other":
            continue
        is_covered = entry[0] in _CAPTURED and os.path.basename(path) not in _VERSION_CONTROL
        states[path] = entry if is_covered else ("other",)
    return states


def _verb(path: bytes, was: Picture, now: Picture) -> str:
    old, new = was.get(path, ("absent",)), now.get(path, ("absent",))
    gone = {"folder": "rmdir", "file": "delete", "link": "delete"}.get(str(old[0]), "")
    if new[0] == "absent" or (gone and new[0] == "other"):
        return gone
    if new[0] == "other":
        return "" if old[0] == "other" else "omit"
    if old[0] == new[0]:
        content, mode = old[2:] != new[2:], old[1] != new[1]
        if new[0] == "link":
            return "link" if mode else ""
        return "write" if content else "mode" if mode else ""
    if new[0] != "file":
        return {"folder": "mkdir", "link": "link"}[str(new[0])]
    is_new = old[0] == "absent" and not _was_unknown(path, was)
    return "create" if is_new else "write"


def _was_unknown(path: bytes, was: Picture) -> bool:
    above = path.rpartition(b"/")[0]
    while above:
        if was.get(above, ("absent",))[0] == "other":
            return True
        above = above.rpartition(b"/")[0]
    return False


def _origin(path: bytes, found: dict[bytes, str], was: Picture, now: Picture) -> bytes | None:
    """The only file that went with the bytes of the only new file that has them."""
    content = now.get(path, ())[2:]
    if found[path] != "create" or content[0] == 0:
        return None
    gone = [
        p for p in found if found[p] == "delete" and was[p][0] == "file" and was[p][2:] == content
    ]
    come = [p for p in found if found[p] == "create" and now[p][2:] == content]
    return gone[0] if len(gone) == len(come) == 1 else None


def _covered(path: bytes, ignoring: Collection[bytes]) -> bool:
    return any(path == left or path.startswith(left + b"/") for left in ignoring)


def _shown(path: bytes) -> str:
    name = repr(path or b".")
    return name if len(name) < 200 else f"{name[:90]}…{name[-90:]} ({len(path)} bytes)"


def _walk(root: bytes | Path, tell: Callable[[int, bytes, os.stat_result], Entry]) -> Picture:
    """Visit every entry, holding one open folder and going back up through `..`."""
    folder = os.open(root, _FOLDER)
    try:
        here = os.fstat(folder)
        told: Picture = {b"": tell(folder, b".", here)}
        path = b""
        waiting = [_tell_all(folder, path, told, tell)]
        while waiting:
            if waiting[-1]:
                name = waiting[-1].pop()
                inner = _opened(folder, name, here.st_dev)
                if inner is None:
                    told[path + name] += ("closed to us",)
                    continue
                os.close(folder)
                folder, path = inner, path + name + b"/"
                waiting.append(_tell_all(folder, path, told, tell))
            else:
                waiting.pop()
                path = path[: path.rfind(b"/", 0, -1) + 1]
                folder = _up(folder) if waiting else folder
        return told
    finally:
        os.close(folder)


def _opened(folder: int, name: bytes, device: int) -> int | None:
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        return None
    if os.fstat(inner).st_dev == device and os.access(b".", os.X_OK, dir_fd=inner):
        return inner
    os.close(inner)
    return None


def _up(folder: int) -> int:
    above = os.open(b"..", _FOLDER, dir_fd=folder)
    os.close(folder)
    return above


def _tell_all(
    folder: int, path: bytes, told: Picture, tell: Callable[[int, bytes, os.stat_result], Entry]
) -> list[bytes]:
    folders = []
    for name in map(os.fsencode, os.listdir(folder)):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        told[path + name] = tell(folder, name, status)
        if stat.S_ISDIR(status.st_mode):
            folders.append(name)
    return folders


def _stamp(_folder: int, _name: bytes, status: os.stat_result) -> Entry:
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        # Of a folder it counts the folders inside, and of a mounted /proc the processes.
        0 if stat.S_ISDIR(status.st_mode) else status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _describe(folder: int, name: bytes, status: os.stat_result) -> Entry:
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return ("folder", oct(mode))
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(name, dir_fd=folder))
    if stat.S_ISREG(status.st_mode):
        return ("file", oct(mode), status.st_size, _content(folder, name))
    return (_SPECIAL[stat.S_IFMT(status.st_mode)],)


def _content(folder: int, name: bytes) -> str:
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except PermissionError:
        return "closed to us"
    try:
        return _digest(file)
    except OSError as error:  # in /proc, or on a broken disk
        return f"cannot be read: {error.strerror}"
    finally:
        os.close(file)


def _digest(file: int) -> str:
    """Hash the pieces that are not all zeros, each with its place; holes are not even read."""
    digest = hashlib.sha256()
    place = _next_data(file, 0)
    while place is not None:
        piece = os.pread(file, _PIECE, place)
        if not piece:
            break
        if piece != _ZEROS[: len(piece)]:
            digest.update(b"%d:" % place)
            digest.update(piece)
        place = _next_data(file, place + len(piece)) if len(piece) == _PIECE else None
    return digest.hexdigest()[:32]


def _next_data(file: int, place: int) -> int | None:
    """Find the piece in which the next byte that is not in a hole lies."""
    try:
        found = os.lseek(file, place, os.SEEK_DATA)
    except OSError:  # past the last data
        return None
    return max(place, found - found % _PIECE)
