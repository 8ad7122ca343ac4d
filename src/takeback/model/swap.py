"""One path of a restore: what is there, what was planned, and what shall be."""

from takeback.model.tree import FOLDER, LINK, REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.tree import Entry

    Stamp = tuple[int, ...]
    Owner = tuple[int, int]
    """The owner and the group of something."""


class State:
    """What is there; `strong` is empty for what has no content of its own.

    `stamp` is what the system says of a file whose content was read; None for all else.
    """

    __slots__ = ("kind", "mode", "size", "stamp", "strong")

    def __init__(
        self, kind: int, mode: int, strong: bytes, size: int = 0, stamp: "Stamp | None" = None
    ) -> None:
        self.kind = kind
        self.mode = mode
        self.strong = strong
        self.size = size
        self.stamp = stamp


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
        """The kinds of entries that it is about."""
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
