"""The tree: a hierarchy of directory manifests, each addressed by what it says.

A manifest lists one folder: every name in raw bytes with kind and mode, size, strong hash,
and for what was left out, the reason. Its *identity* is the SHA-256 of that list. Beside the
identity it carries, per entry, what does not make a tree another tree: the modification time and
the git object id. Where an object lies is no part of it: the same tree is the same everywhere.

    object   = "TBM2" + length of identity (u32) + identity + beside
    identity = mode (u16) flags (u16) count (u32)
               + count x ( mode u16, flags u16, size u64, length of name u16, strong 32, name )
    beside   = count x ( mtime_ns i64, object id 20 )

Entries are in the order of their raw names. Everything is little-endian.

Below that, what two entries of a path have to do with each other: `Difference` between two
states, and `Op`, what a restore shall do there.
"""

from hashlib import sha256
from struct import Struct, error

from takeback.errors import DamagedStoreError
from takeback.model import words
from takeback.model.value import Value, path_text
from takeback.model.words import CREATE, DELETE, MKDIR, MODE, OMIT, RELINK, RENAME, RMDIR, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Protocol

    class Fields(Protocol):
        """What `encode` needs of an entry; `Entry` and the scanner's nodes both have it."""

        flags: int
        mode: int
        mtime: int
        name: bytes
        oid: bytes
        size: int
        strong: bytes

    Stamp = tuple[int, ...]
    Owner = tuple[int, int]  # and group


KIND = 0o170000
FOLDER = 0o040000
REGULAR = 0o100000
LINK = 0o120000

SETUID = 0o6000
"""The bits by which a program runs as its owner or its group."""

REASON = 0x00FF
UNSTABLE = 0x0100
"""The file never held still while it was read."""
INCOMPLETE_BELOW = 0x0200
"""Something below this folder was left out."""

NO_HASH = bytes(32)
NO_OBJECT = bytes(20)

NAMELESS = b"(forgotten "
"""How the name of an entry begins whose own name was forgotten, too."""

_MAGIC = b"TBM2"
_PREAMBLE = Struct("<4sI")
_HEAD = Struct("<HHI")
_ENTRY = Struct("<HHQH32s")
_BESIDE = Struct("<q20s")


class Entry:
    """One name in a folder, as a manifest records it."""

    __slots__ = ("flags", "mode", "mtime", "name", "oid", "size", "strong")

    def __init__(
        self,
        name: bytes,
        mode: int,
        flags: int,
        size: int,
        strong: bytes,
        mtime: int,
        oid: bytes,
    ) -> None:
        self.name = name
        self.mode = mode
        self.flags = flags
        self.size = size
        self.strong = strong
        self.mtime = mtime
        self.oid = oid

    @property
    def kind(self) -> int:
        return self.mode & KIND

    @property
    def reason(self) -> int:
        """Why this entry was left out; 0 when it was captured."""
        return self.flags & REASON


class Manifest(Value):
    """One folder: its own mode and its entries in the order of their names."""

    mode: int
    entries: "list[Entry]"
    strong: bytes

    def find(self, name: bytes) -> "Entry | None":
        for entry in self.entries:
            if entry.name == name:
                return entry
        return None

    def folders(self) -> "Iterator[Entry]":
        return (e for e in self.entries if e.kind == FOLDER and not e.reason)


def nameless(entries: "Iterable[Entry]") -> "Entry | None":
    """What stands for all names that a folder does not list, if some were forgotten in it.

    Nobody knows any more which; so whatever is not listed may have been there.
    """
    for entry in entries:
        if entry.reason == words.FORGOTTEN and entry.name.startswith(NAMELESS):
            return Entry(b"", 0, words.FORGOTTEN, 0, NO_HASH, 0, NO_OBJECT)
    return None


def as_entry(root: Manifest) -> Entry:
    """The folder at the top as if it had an entry somewhere; its name and path are empty."""
    return Entry(b"", FOLDER | root.mode, 0, 0, root.strong, 0, NO_OBJECT)


def with_mode(entry: Entry, mode: int) -> Entry:
    e = entry
    return Entry(e.name, mode, e.flags, e.size, e.strong, e.mtime, e.oid)


def encode(mode: int, entries: "Sequence[Fields]") -> "tuple[bytes, bytes]":
    """The manifest of a folder as (strong hash, object bytes). `entries` are sorted by name."""
    identity = [_HEAD.pack(mode & 0o7777, 0, len(entries))]
    beside = []
    for e in entries:
        reason, oid = e.flags & REASON, e.oid
        if reason:
            row, oid = _ENTRY.pack(e.mode & KIND, reason, 0, len(e.name), NO_HASH), NO_OBJECT
        else:
            flags = e.flags & (UNSTABLE | INCOMPLETE_BELOW)
            size = 0 if e.mode & KIND == FOLDER else e.size
            row = _ENTRY.pack(e.mode & 0xFFFF, flags, size, len(e.name), e.strong)
        identity += (row, e.name)
        beside.append(_BESIDE.pack(e.mtime, oid))
    said = b"".join(identity)
    preamble = _PREAMBLE.pack(_MAGIC, len(said))
    return sha256(said).digest(), b"".join((preamble, said, *beside))


def decode(data: bytes) -> Manifest:
    """Read a manifest object; `DamagedStoreError` on anything that `encode` would not write."""
    try:
        return _decode(data)
    except (error, ValueError, IndexError) as problem:
        raise DamagedStoreError(f"a folder's manifest cannot be read ({problem})") from None


def _decode(data: bytes) -> Manifest:
    magic, length = _PREAMBLE.unpack_from(data)
    start = _PREAMBLE.size
    if magic != _MAGIC or start + length > len(data):
        raise ValueError("not a manifest")
    mode, _, count = _HEAD.unpack_from(data, start)
    if len(data) != start + length + count * _BESIDE.size:
        raise ValueError("wrong length")
    at, side = start + _HEAD.size, start + length
    entries: list[Entry] = []
    for _ in range(count):
        entry_mode, flags, size, name_length, strong = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        name = data[at : at + name_length]
        at += name_length
        if not is_safe_name(name) or (entries and entries[-1].name >= name):
            raise ValueError("unsafe or unsorted name")
        mtime, oid = _BESIDE.unpack_from(data, side)
        side += _BESIDE.size
        entries.append(Entry(name, entry_mode, flags, size, strong, mtime, oid))
    if at != start + length:
        raise ValueError("wrong length of names")
    return Manifest(mode, entries, sha256(data[start : start + length]).digest())


def is_safe_name(name: bytes) -> bool:
    """Whether `name` can be one component of a path and nothing else."""
    return bool(name) and name not in (b".", b"..") and b"/" not in name and 0 not in name


class UnstoredFile(Entry):
    """What came of a merge; its `content` is stored before anything is touched."""

    __slots__ = ("content",)

    def __init__(self, content: bytes, mode: int) -> None:
        strong = sha256(content).digest()
        super().__init__(b"", mode, 0, len(content), strong, 0, NO_OBJECT)
        self.content = content

    def stored(self, oid: bytes) -> Entry:
        """The same, once its content is in a pack."""
        return Entry(b"", self.mode, 0, self.size, self.strong, 0, oid)


class RescuedEntry(Entry):
    """What comes back from the rescue area: whose it was, where it lies, where a link leads."""

    __slots__ = ("owner", "source", "target")

    def __init__(
        self,
        mode: int,
        size: int,
        strong: bytes,
        mtime: int,
        owner: "Owner",
        *,
        source: bytes = b"",
        target: bytes = b"",
    ) -> None:
        super().__init__(b"", mode, 0, size, strong, mtime, NO_OBJECT)
        self.owner = owner
        self.source = source
        self.target = target


LARGEST = 10 << 20
"""Files above this are only said to differ; two of them are held in memory at a time."""
_MADE = {REGULAR: CREATE, LINK: RELINK, FOLDER: MKDIR}
_MADE_OF_ANOTHER = {REGULAR: WRITE, LINK: RELINK, FOLDER: MKDIR}


class Difference(Value):
    """What is not the same at one path; `before` and `after` are the entries, None where absent.

    The verb says what one would do to get from the first state to the second. `omit` means
    that one state left the path out, so that nobody knows what it held: an entry with a
    reason. `origin` is the path that a renamed file has in the first state.
    """

    raw_path: bytes
    verb: str
    before: "Entry | None"
    after: "Entry | None"
    raw_origin: "bytes | None" = None

    @property
    def is_other_kind(self) -> bool:
        """Whether a file, a link or a folder became something else of these."""
        before, after = self.before, self.after
        return before is not None and after is not None and before.kind != after.kind

    @property
    def is_large(self) -> bool:
        return any(e is not None and e.size > LARGEST for e in (self.before, self.after))

    @property
    def reason(self) -> int:
        """Why a state left the path out; 0 if both know what it held."""
        return (self.before.reason if self.before else 0) or (
            self.after.reason if self.after else 0
        )

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)

    @property
    def origin(self) -> "str | None":
        """The path that it had before, as text."""
        return None if self.raw_origin is None else path_text(self.raw_origin)


def judge(path: bytes, before: "Entry | None", after: "Entry | None") -> "Difference | None":
    """How the entries of a path differ in themselves; None if they do not."""
    out_before = before is not None and before.reason != 0
    out_after = after is not None and after.reason != 0
    if out_before or out_after:
        # Unknown is not absent: neither was it made nor deleted.
        return None if out_before and out_after else Difference(path, OMIT, before, after)
    verb = _verb(before, after)
    return Difference(path, verb, before, after) if verb else None


def _verb(before: "Entry | None", after: "Entry | None") -> str:
    if after is None:
        return "" if before is None else RMDIR if before.kind == FOLDER else DELETE
    if before is None:
        return _MADE.get(after.kind, CREATE)
    if before.kind != after.kind:
        return _MADE_OF_ANOTHER.get(after.kind, WRITE)
    if after.kind != FOLDER and before.strong != after.strong:
        return _MADE_OF_ANOTHER.get(after.kind, WRITE)
    return MODE if before.mode != after.mode and after.kind != LINK else ""


def with_renames(differences: "list[Difference]") -> "list[Difference]":
    """Say `rename` where a file is gone and one with the same content, not empty, appeared."""
    gone: dict[bytes, list[Difference]] = {}
    for d in differences:
        if d.verb == DELETE and d.before is not None and d.before.size and d.before.kind == REGULAR:
            gone.setdefault(d.before.strong, []).append(d)
    moved: set[bytes] = set()
    named: list[Difference] = []
    for d in differences:
        candidates = gone.get(d.after.strong) if d.after and d.verb == CREATE else None
        if not candidates:
            named.append(d)
            continue
        origin = candidates.pop(_nearest(d.raw_path, candidates))
        moved.add(origin.raw_path)
        named.append(Difference(d.raw_path, RENAME, origin.before, d.after, origin.raw_path))
    return [d for d in named if d.verb != DELETE or d.raw_path not in moved]


def _nearest(path: bytes, candidates: "list[Difference]") -> int:
    """Which of several equal files was probably moved: one of the same name, else the first."""
    name = path.rpartition(b"/")[2]
    same = (n for n, d in enumerate(candidates) if d.raw_path.rpartition(b"/")[2] == name)
    return next(same, 0)


class State(Value):
    """What is there; `strong` is empty for what has no content of its own.

    `stamp` is what the system says of a file whose content was read; None for all else.
    """

    kind: int
    mode: int
    strong: bytes
    size: int = 0
    stamp: "Stamp | None" = None


class Op:
    """One path, as it was when the restore was planned and as it shall be.

    `way` are the folders that lead to it, `name` is its name in the last of them. `owner` has what
    was there before, if it is not who makes the restore. What is settled was brought back by an
    earlier try that failed elsewhere: from then on it is as others leave it.
    """

    __slots__ = ("after", "before", "is_settled", "name", "owner", "path", "way")

    def __init__(self, path: bytes, before: "Entry | None", after: "Entry | None") -> None:
        self.path = path
        self.before = before
        self.after = after
        self.owner: Owner | None = None
        self.is_settled = False
        *folders, self.name = path.split(b"/")
        self.way = tuple(folders)

    def sides(self, *, forward: bool) -> "tuple[Entry | None, Entry | None]":
        """What is wanted, and what it is wanted instead of."""
        return (self.after, self.before) if forward else (self.before, self.after)

    @property
    def kinds(self) -> "set[int]":
        return {entry.kind for entry in (self.before, self.after) if entry is not None}

    @property
    def is_in_place(self) -> bool:
        """Whether what is there stays, and only its mode changes, if anything does."""
        before, after = self.before, self.after
        if before is None or after is None or before.kind != after.kind:
            return False
        return before.kind == FOLDER or (before.kind == REGULAR and before.strong == after.strong)

    def is_staged(self, *, forward: bool) -> bool:
        """Whether a file or a link is to appear."""
        wanted, _ = self.sides(forward=forward)
        return wanted is not None and wanted.kind != FOLDER and not self.is_in_place

    def knows(self, found: "State | None") -> bool:
        """Whether what is found at the path is one of its two states."""
        return is_state(found, self.before) or is_state(found, self.after)


def is_state(found: "State | None", entry: "Entry | None") -> bool:
    """Whether what is there is what an entry says; the mode of a folder is not asked for."""
    if found is None or entry is None:
        return found is None and entry is None
    if found.kind != entry.kind:
        return False
    if found.kind == FOLDER:
        return True
    same_mode = found.kind == LINK or found.mode == entry.mode & 0o7777
    return same_mode and found.strong == entry.strong


def is_same(one: "Entry | None", other: "Entry | None") -> bool:
    """Whether two entries say the same; of a folder only itself counts, not what is in it."""
    if one is None or other is None:
        return one is other
    if one.reason or other.reason or one.kind != other.kind:
        return False
    if one.kind != FOLDER and one.strong != other.strong:
        return False
    return one.kind == LINK or (one.mode ^ other.mode) & 0o7777 == 0


def can_return(state: "Entry | None", before: "Entry | None") -> bool:
    """Whether what was left as something unknown is out of the way, or back but for its mode."""
    if state is None or before is None or state.reason:
        return state is None
    return state.kind == before.kind and (state.kind == FOLDER or state.strong == before.strong)


def is_as_left(state: "Entry | None", after: "Entry | None") -> bool:
    """Whether nobody wrote to a file since it was left so that nobody could read it."""
    if state is None or after is None or state.reason or after.reason != words.UNREADABLE:
        return False
    return state.kind == after.kind == REGULAR and state.mtime == after.mtime


def goes_as_folder(state: "Entry | None", after: "Entry | None", before: "Entry | None") -> bool:
    """Whether a folder that was made shall go: then its mode does not matter any more."""
    if before is not None or state is None or after is None or state.reason:
        return False
    return state.kind == after.kind == FOLDER


def is_unknown(entry: "Entry | None") -> bool:
    return entry is not None and entry.reason != 0


def can_be_captured(now: "Entry", then: "Entry | None") -> bool:
    """Whether something that was left out is captured when it is to be replaced."""
    return now.reason == words.TOO_LARGE and now.kind == REGULAR and then is not None


def verb_of(path: bytes, now: "Entry | None", target: "Entry | None") -> str:
    """What is done at a path that becomes something else; empty if it does not."""
    if isinstance(target, UnstoredFile):
        return words.MERGE
    if now is not None and now.reason and target is not None:
        return {FOLDER: words.MKDIR, LINK: words.RELINK}.get(target.kind, words.WRITE)
    difference = judge(path, now, target)
    return difference.verb if difference is not None else ""


def folders_above(path: bytes) -> "Iterable[bytes]":
    parts = path.split(b"/")
    return (b"/".join(parts[:end]) for end in range(1, len(parts)))


def joined(path: bytes, name: bytes) -> bytes:
    return path + b"/" + name if path else name
