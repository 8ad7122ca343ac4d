"""A plain model of the stat loop: trees to record, ways to change them, what must be reported.

Everything here goes by whole paths, as the loop never does, and shares no code with it but the
structs of the records.
"""

import os
import stat
import subprocess
from collections.abc import Iterable

from hypothesis import strategies as st

from takeback.worktree import folders
from takeback.worktree.folders import CHANGED, ENTRY, GONE, RACY, RECORD, SAME

Header = tuple[int, int, int, int, int, int, int, int, int, bytes, bytes, bytes, int]
Fields = tuple[int, int, int, int, int, int, int, bytes, bytes]
Entry = tuple[bytes, os.stat_result, int]
Report = tuple[int, int, tuple[int, ...], list[int]]

REASON_SIZE = 3

# Names decide the flags, so that a drawn tree has all kinds of them.
FLAGS = {
    b"git": folders.REASON_VCS,
    b"mnt": folders.REASON_MOUNT,
    b"big": REASON_SIZE,
    b"hot": RACY,
}
NAMES = [b"a", b"b", b"c", b"\xff\n", b"x" * 255, *FLAGS]


def header_of(st: os.stat_result, depth: int, flags: int = 0) -> Header:
    """The header of a directory, without lengths."""
    stamps = (_clamped(st.st_mtime_ns), _clamped(st.st_ctime_ns))
    named = (st.st_dev & (1 << 64) - 1, st.st_ino)
    return (0, depth, 0, 0, flags, *stamps, *named, bytes(32), bytes(20), bytes(20), st.st_mode)


def entry_of(st: os.stat_result, flags: int = 0) -> Fields:
    """An entry of a directory, without the length of its name."""
    stamps = (_clamped(st.st_mtime_ns), _clamped(st.st_ctime_ns))
    return (st.st_ino, st.st_size, *stamps, st.st_mode, flags, 0, bytes(32), bytes(20))


def pack_record(header: Header, name: bytes, entries: Iterable[tuple[Fields, bytes]]) -> bytes:
    """The bytes of one directory; the lengths and the count follow from the names."""
    fixed, names = [], [name]
    for fields, entry_name in entries:
        fixed.append(ENTRY.pack(*fields[:6], len(entry_name), *fields[7:]))
        names.append(entry_name)
    tail = b"\0".join(names) + b"\0"
    size = RECORD.size + len(fixed) * ENTRY.size + len(tail)
    padding = -size % 8
    head = RECORD.pack(size + padding, header[1], len(name), len(fixed), *header[4:])
    return b"".join((head, *fixed, tail, bytes(padding)))


def _clamped(stamp: int) -> int:
    return max(-(1 << 63), min(stamp, (1 << 63) - 1))


class Known:
    """A directory as it was recorded."""

    def __init__(self, path: bytes, offset: int, ancestors: tuple[int, ...]) -> None:
        self.path = path
        self.offset = offset
        self.ancestors = ancestors
        self.real = os.lstat(path)
        self.entries: list[Entry] = []


def record_tree(root: bytes) -> tuple[bytes, list[Known]]:
    """Record a tree: the bytes for the loop, and what is in them for the model."""
    records: list[bytes] = []
    known: list[Known] = []
    todo: list[tuple[bytes, bytes, tuple[int, ...]]] = [(root, b"", ())]
    offset = 0
    while todo:
        path, name, ancestors = todo.pop()
        directory = Known(path, offset, ancestors)
        for entry in os.listdir(path):
            inner = os.path.join(path, entry)
            directory.entries.append((entry, os.lstat(inner), FLAGS.get(entry, 0)))
        entries = [(entry_of(real, flag), entry) for entry, real, flag in directory.entries]
        head = header_of(directory.real, len(ancestors), FLAGS.get(name, 0) & RACY)
        records.append(pack_record(head, name, entries))
        known.append(directory)
        for entry, real, flag in directory.entries:
            if stat.S_ISDIR(real.st_mode) and not flag & folders.REASON_FIELD:
                todo.append((os.path.join(path, entry), entry, (*ancestors, offset)))
        offset += len(records[-1])
    return b"".join(records), known


def key(real: os.stat_result) -> tuple[int, ...]:
    """What makes two stats of an entry equal."""
    return (real.st_ino, real.st_size, real.st_mtime_ns, real.st_ctime_ns, real.st_mode)


def directory_key(real: os.stat_result) -> tuple[int, ...]:
    """What makes two stats of a directory equal."""
    return (real.st_ino, real.st_mtime_ns, real.st_ctime_ns, real.st_mode)


def find_lstat(path: bytes) -> os.stat_result | None:
    """What is at a path now, or None."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_changed_entry(directory: Known, entry: Entry) -> bool:
    """Say by path whether the loop has to report an entry."""
    name, then, flag = entry
    if flag & folders.REASON_FIELD in (folders.REASON_VCS, folders.REASON_MOUNT):
        return False
    if stat.S_ISDIR(then.st_mode) and not flag & folders.REASON_FIELD:
        return False
    now = find_lstat(os.path.join(directory.path, name))
    return bool(flag & RACY) or now is None or key(now) != key(then)


def expected_reports(known: list[Known]) -> list[Report]:
    """Say by paths, one directory after the other, what the loop has to report."""
    found: list[Report] = []
    lost: set[int] = set()
    for directory in known:
        if lost.intersection(directory.ancestors):
            continue
        now = find_lstat(directory.path)
        if now is None or not stat.S_ISDIR(now.st_mode):
            lost.add(directory.offset)
            found.append((directory.offset, GONE, directory.ancestors, []))
            continue
        racy = FLAGS.get(os.path.basename(directory.path), 0) & RACY
        same = directory_key(now) == directory_key(directory.real) and not racy
        numbers = [
            number
            for number, entry in enumerate(directory.entries)
            if is_changed_entry(directory, entry)
        ]
        if not same or numbers:
            found.append(
                (directory.offset, SAME if same else CHANGED, directory.ancestors, numbers)
            )
    return found


# ---- drawn trees ----

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple)
kinds = st.sampled_from(["file", "file", "directory", "directory", "link", "fifo"])
trees = st.lists(st.tuples(paths, kinds), max_size=14)
verbs = st.sampled_from(
    ["edit", "touch", "chmod", "delete", "rename", "to_file", "to_directory", "to_link", "new"]
)
changes = st.lists(st.tuples(verbs, st.integers(0, 99), st.sampled_from(NAMES)), max_size=5)


def make(path: bytes, kind: str) -> None:
    """Make an entry; one that cannot be made there is left away."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if kind == "file":
            with open(path, "xb") as file:
                file.write(path[-3:])
        elif kind == "directory":
            os.mkdir(path)
        elif kind == "link":
            os.symlink(b"..", path)
        else:
            os.mkfifo(path)
    except (FileExistsError, NotADirectoryError):
        pass


def everything_below(root: bytes) -> list[bytes]:
    """All paths in a tree, in a known order."""
    return sorted(
        os.path.join(top, name)
        for top, directories, files in os.walk(root)
        for name in directories + files
    )


def change(root: bytes, verb: str, number: int, name: bytes) -> None:
    """Change one entry of the tree in a way that other programs would."""
    below = everything_below(root)
    if not below:
        make(os.path.join(root, name), "file")
        return
    path = below[number % len(below)]
    real = os.lstat(path)
    if verb == "edit" and stat.S_ISREG(real.st_mode):
        with open(path, "ab") as file:
            file.write(b"more")
    elif verb == "touch":
        os.utime(path, ns=(number, number), follow_symlinks=False)
    elif verb == "chmod" and not stat.S_ISLNK(real.st_mode):
        os.chmod(path, real.st_mode ^ 0o011)
    elif verb == "delete":
        remove(path)
    elif verb == "rename":
        target = os.path.join(os.path.dirname(path), name)
        if target != path:
            remove(target)
            os.rename(path, target)
    elif verb == "new":
        make(os.path.join(os.path.dirname(path), name), "directory" if number % 2 else "file")
    elif verb.startswith("to_"):
        remove(path)
        make(path, verb[3:])


def remove(path: bytes) -> None:
    """Remove whatever is there, however deep."""
    subprocess.run([b"rm", b"-rf", path], check=True)
