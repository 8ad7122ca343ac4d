"""What two entries of trees have to do with each other. Pure, and asked when plans are made.

One path of a restore: what is there, what was planned, and what shall be.
"""

from takeback.model import words
from takeback.model.difference import judge
from takeback.model.tree import FOLDER, LINK, REGULAR, Made
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.tree import Entry

    Stamp = tuple[int, ...]

    Owner = tuple[int, int]

    """The owner and the group of something."""


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
    if isinstance(target, Made):
        return words.MERGE
    if now is not None and now.reason and target is not None:
        return {FOLDER: words.MKDIR, LINK: words.LINK}.get(target.kind, words.WRITE)
    difference = judge(path, now, target)
    return difference.verb if difference is not None else ""


def folders_above(path: bytes) -> "Iterable[bytes]":
    parts = path.split(b"/")
    return (b"/".join(parts[:end]) for end in range(1, len(parts)))


def joined(path: bytes, name: bytes) -> bytes:
    return path + b"/" + name if path else name
