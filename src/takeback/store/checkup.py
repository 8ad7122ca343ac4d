"""Looks at the files of the home folder and of a store without opening a ledger, and mends them."""

import os
import stat

from takeback.model.counting import count
from takeback.model.findings import ERROR, NOTE, WARNING, Finding, Part
from takeback.store import fsops, mounts, removal
from takeback.store.home import parse_line, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.store.home import Home

_LITTLE, _HARDLY_ANY = 1_000_000_000, 100_000_000
_MOST_NAMED = 5
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def place(home: "Home") -> Part:
    """Where the stores are, and whether that is a disk to rely on."""
    part = Part("place", os.fsdecode(home.path))
    kind = mounts.network_file_system(home.path)
    if kind is not None:
        part.findings.append(
            Finding(
                ERROR,
                f"the stores are on a network file system ({kind}), where locks and syncs do not "
                "keep what they promise",
                "move the folder to a local disk, and set TAKEBACK_HOME",
            )
        )
    return part


def space(home: "Home") -> Part:
    """How much room there is."""
    found = os.statvfs(home.path)
    free = found.f_bavail * found.f_frsize
    part = Part("space", f"{free / 1e9:.1f} GB free")
    shown = os.fsdecode(home.path)
    if found.f_flag & os.ST_RDONLY:
        what = f"the disk of `{shown}` is read-only: nothing can be recorded"
        part.findings.append(Finding(ERROR, what, "make it writable; what was recorded is there"))
    if found.f_files and not found.f_favail:
        what = f"the disk of `{shown}` has no inodes left: nothing can be recorded"
        part.findings.append(Finding(ERROR, what, "delete some files there"))
    if free < _LITTLE:
        severity = ERROR if free < _HARDLY_ANY else WARNING
        what = f"only {free / 1e6:.0f} MB are free where the stores are"
        part.findings.append(Finding(severity, what, "free some; `takeback projects` lists stores"))
    return part


def permissions(home: "Home", id: "str | None") -> Part:
    """That nobody else can reach anything: 0700 and 0600, whatever the umask was."""
    part = Part("permissions", "only you can reach it")
    wrong = list(_not_private(home, id))
    for path, how in wrong[:_MOST_NAMED]:
        entry = os.lstat(path)
        is_ours = entry.st_uid == os.geteuid()
        # A file that is open in a folder that is not is nothing that anybody could reach.
        is_reached = not is_ours or not stat.S_ISREG(entry.st_mode)
        shown = os.fsdecode(path)
        advice = "`takeback doctor --repair` closes it; look who has been there"
        part.findings.append(
            Finding(
                ERROR if is_reached else WARNING,
                f"`{shown}` {how}",
                advice if is_ours else f"look who put it there: chown {os.geteuid()} {shown}",
                can_be_repaired=is_ours,
            )
        )
    if len(wrong) > _MOST_NAMED:
        more = f"{len(wrong) - _MOST_NAMED} more files or folders are not private"
        part.findings.append(Finding(ERROR, more, can_be_repaired=True))
    return part


def close(home: "Home", id: "str | None") -> "Iterator[str]":
    """Make everything private that is ours and is not; say what."""
    for path, how in list(_not_private(home, id)):
        found = os.lstat(path)
        if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
            continue
        try:
            fd = os.open(path, _OPEN)
        except OSError:
            continue
        try:
            fsops.fchmod(fd, 0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o600)
        finally:
            os.close(fd)
        yield f"`{os.fsdecode(path)}` {how}; it is private now"


def _not_private(home: "Home", id: "str | None") -> "Iterator[tuple[bytes, str]]":
    tops = [home.path, home.path + b"/projects", home.path + b"/registry", home.path + b"/lock"]
    tops.append(home.path + b"/config.toml")
    inner = _below(home.store_path(id)) if id is not None else ()
    for path in (*tops, *inner):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if found.st_uid != os.geteuid():
            yield path, "belongs to another user"
        elif stat.S_ISLNK(found.st_mode):
            yield path, "is a link"
        elif found.st_mode & 0o077:
            yield path, f"can be reached by others (mode {stat.S_IMODE(found.st_mode):04o})"


def _below(path: bytes) -> "Iterator[bytes]":
    yield path
    stack = [path]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    yield entry.path
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        except OSError:
            continue


def registry(home: "Home") -> Part:
    """That the registry says of each project what its store says."""
    known = {root.id: root.line() for root in home.roots_from_stores()}
    part = Part("registry", count(len(known), "project"))
    lines = [line for line in read_small(home.path + b"/registry").split(b"\n") if line]
    listed = {root.id: root.line() for root in map(parse_line, lines) if root is not None}
    advice = "`takeback doctor --repair` makes it again from the stores"
    if listed != known:
        odd = sorted(id for id in listed.keys() | known.keys() if listed.get(id) != known.get(id))
        what = f"the registry is not what the stores say of {', '.join(odd[:_MOST_NAMED])}"
        part.findings.append(Finding(WARNING, what, advice, can_be_repaired=True))
    elif len(listed) != len(lines):
        what = "the registry has lines that nobody can read"
        part.findings.append(Finding(WARNING, what, advice, can_be_repaired=True))
    for name in sorted(os.listdir(home.path)):
        if name.endswith(b".tmp"):
            what = f"`{os.fsdecode(home.path + b'/' + name)}` was never finished"
            part.findings.append(Finding(NOTE, what, advice, can_be_repaired=True))
    for left in removal.leftovers(home):
        what = f"`{os.fsdecode(left)}` is left of a store whose removal was cut short"
        part.findings.append(Finding(NOTE, what, advice, can_be_repaired=True))
    return part
