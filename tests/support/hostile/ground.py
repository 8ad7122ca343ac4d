"""The ground a hostile tree is built on: the tree, the world outside it, a home for the store."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
IMMUTABLE, APPEND_ONLY = 0x10, 0x20

PLAIN_USER = 65534
SECRET = b"nothing of this may ever be read\n"


class Ground:
    """Three folders side by side, and the verbs that fill the first. Paths are relative bytes."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self.root = base + b"/tree"
        self.outside = base + b"/outside"
        self.home = base + b"/home"
        for folder in (self.root, self.outside):
            os.mkdir(folder)
            os.chmod(folder, 0o755)
        with open(self.outside + b"/secret", "wb") as bait:
            bait.write(SECRET)

    def path(self, name: bytes) -> bytes:
        """Make the absolute path of an entry of the tree."""
        return self.root + b"/" + name

    def beyond(self, name: bytes) -> bytes:
        """Make the absolute path of something outside the tree."""
        return self.outside + b"/" + name

    def file(self, name: bytes, data: bytes = b"plain\n", mode: int = 0o644) -> None:
        """Make a regular file, and the folders above it."""
        self._parent(name)
        with open(self.path(name), "wb") as file:
            file.write(data)
        os.chmod(self.path(name), mode)

    def folder(self, name: bytes, mode: int = 0o755) -> None:
        """Make a folder, and the folders above it."""
        self._parent(name)
        os.mkdir(self.path(name))
        os.chmod(self.path(name), mode)

    def link(self, name: bytes, target: bytes) -> None:
        """Make a symbolic link."""
        self._parent(name)
        os.symlink(target, self.path(name))

    def fifo(self, name: bytes) -> None:
        """Make a FIFO; whoever opens it to read hangs."""
        self._parent(name)
        os.mkfifo(self.path(name), 0o644)

    def node(self, name: bytes, kind: int, device: tuple[int, int] = (0, 0)) -> None:
        """Make a socket (anyone) or a device (root)."""
        self._parent(name)
        os.mknod(self.path(name), kind | 0o600, os.makedev(*device))

    def chmod(self, name: bytes, mode: int) -> None:
        """Set the permission bits of an entry."""
        os.chmod(self.path(name) if name else self.root, mode)

    def append(self, name: bytes, data: bytes) -> None:
        """Add to the end of a file."""
        with open(self.path(name), "ab") as file:
            file.write(data)

    def overwrite(self, name: bytes, place: int, data: bytes) -> None:
        """Write into the middle of a file without truncating it."""
        with open(self.path(name), "r+b") as file:
            file.seek(place)
            file.write(data)

    def remove(self, name: bytes) -> None:
        """Remove an entry of any kind."""
        remove(self.path(name))

    def git(self, *words: str, within: bytes = b"") -> None:
        """Run git in the tree, free of anybody's settings."""
        command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
        where = self.path(within) if within else self.root
        subprocess.run(
            [*command, *words], cwd=where, env=git_environment(self.base), check=True,
            capture_output=True,
        )  # fmt: skip

    def _parent(self, name: bytes) -> None:
        above = os.path.dirname(self.path(name))
        if not os.path.isdir(above):
            self._parent(os.path.relpath(above, self.root))
            os.mkdir(above)
            os.chmod(above, 0o755)


def git_environment(home: bytes) -> dict[str, str]:
    """Make an environment in which git obeys nobody but its command line."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.fsdecode(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }


def set_flags(path: bytes, flags: int, above: int | None = None) -> None:
    """Make a file or folder immutable or append-only, or with 0 neither, as root may."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=above)
    try:
        now = int.from_bytes(fcntl.ioctl(fd, _GET_FLAGS, bytes(8)), sys.byteorder)
        wanted = now & ~(IMMUTABLE | APPEND_ONLY) | flags
        fcntl.ioctl(fd, _SET_FLAGS, wanted.to_bytes(8, sys.byteorder))
    finally:
        os.close(fd)


@contextmanager
def new_ground(where: str | None = None) -> Iterator[Ground]:
    """Lend a ground below `where`, and clear it away whatever it holds by then.

    Without `where` it is in memory, if that is where all test folders are.
    """
    below = where or os.environ.get("PYTEST_DEBUG_TEMPROOT")
    base = os.fsencode(tempfile.mkdtemp(prefix="hostile-", dir=below))
    try:
        yield Ground(base)
    finally:
        remove(base)


def give_away(ground: Ground) -> None:
    """Make everything so far the plain user's, so that a child without rights can go on."""
    for folder in (ground.base, ground.root, ground.outside, ground.beyond(b"secret")):
        os.chown(folder, PLAIN_USER, PLAIN_USER)


def remove(path: bytes) -> None:
    """Remove whatever is there: any depth, any kind, any permission bits, any flags."""
    if not os.path.isdir(path) or os.path.islink(path):
        _unlink(path, None)
        return
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        _remove_stubborn(path)


def _remove_stubborn(path: bytes) -> None:
    """Empty a folder with one open folder at a time, going down by name and up by `..`."""
    folder = _enter(path, None)
    names: list[bytes] = []
    while True:
        inner = _first_folder(folder)
        if inner is not None:
            below = _enter(inner, folder)
            os.close(folder)
            folder = below
            names.append(inner)
        elif names:
            above = os.open(b"..", _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = above
            os.rmdir(names.pop(), dir_fd=folder)
        else:
            break
    os.close(folder)
    os.rmdir(path)


def _first_folder(folder: int) -> bytes | None:
    """Unlink everything but folders, and name one of these."""
    found = None
    for name in map(os.fsencode, os.listdir(folder)):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            found = name
        else:
            _unlink(name, folder)
    return found


def _enter(name: bytes, above: int | None) -> int:
    try:
        os.chmod(name, 0o700, dir_fd=above)
    except PermissionError:
        _clear_flags(name, above)
        os.chmod(name, 0o700, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _clear_flags(name: bytes, above: int | None) -> None:
    """Take immutable and append-only away, where there are such flags and we may."""
    with suppress(OSError):
        set_flags(name, 0, above)


def _unlink(name: bytes, above: int | None) -> None:
    try:
        os.unlink(name, dir_fd=above)
    except PermissionError:
        _clear_flags(name, above)
        os.unlink(name, dir_fd=above)
