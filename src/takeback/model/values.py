"""The values that the verbs return."""


class OutsideFile:
    """A file outside the project that a turn named: what was done to it, or why nobody knows."""

    __slots__ = ("path", "reason", "verb")

    def __init__(self, path: bytes, verb: str = "", reason: str = "") -> None:
        self.path = path
        self.verb = verb
        self.reason = reason

    def __repr__(self) -> str:
        return f"OutsideFile({self.path!r}, {self.verb or self.reason!r})"


class LeftOut:
    """A path that is listed but not captured, and why."""

    __slots__ = ("path", "reason")

    def __init__(self, path: bytes, reason: str) -> None:
        self.path = path
        self.reason = reason

    def __repr__(self) -> str:
        return f"LeftOut({self.path!r}, {self.reason!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LeftOut):
            return NotImplemented
        return (self.path, self.reason) == (other.path, other.reason)

    def __hash__(self) -> int:
        return hash((self.path, self.reason))


class Checkpoint:
    """A coordinate one can return to.

    `new` tells whether this call made it: when nothing had changed, the checkpoint that
    already holds the tree is named again. `changed` counts the entries that differ from the
    checkpoint before. `unstable` lists files that would not hold still while they were read.
    """

    __slots__ = (
        "changed",
        "created",
        "cursor",
        "entries",
        "id",
        "label",
        "left_out",
        "new",
        "session",
        "step",
        "tree",
        "turn",
        "unstable",
    )

    def __init__(
        self,
        *,
        id: str,
        tree: str,
        cursor: int,
        created: float,
        label: str,
        entries: int,
        changed: int,
        new: bool,
        left_out: "tuple[LeftOut, ...]" = (),
        unstable: "tuple[bytes, ...]" = (),
        session: "str | None" = None,
        turn: "str | None" = None,
        step: "str | None" = None,
    ) -> None:
        self.id = id
        self.session = session
        self.turn = turn
        self.step = step
        self.tree = tree
        self.cursor = cursor
        self.created = created
        self.label = label
        self.entries = entries
        self.changed = changed
        self.new = new
        self.left_out = left_out
        self.unstable = unstable

    def __repr__(self) -> str:
        return f"Checkpoint({self.id!r}, entries={self.entries}, new={self.new})"


class Status:
    """Where one is: the project, its newest checkpoint, and what is not covered."""

    __slots__ = ("checkpoints", "entries", "left_out", "newest", "project", "root", "store")

    def __init__(
        self,
        *,
        project: str,
        root: bytes,
        store: bytes,
        checkpoints: int,
        newest: "Checkpoint | None",
        entries: int,
        left_out: "tuple[LeftOut, ...]",
    ) -> None:
        self.project = project
        self.root = root
        self.store = store
        self.checkpoints = checkpoints
        self.newest = newest
        self.entries = entries
        self.left_out = left_out


class Damage:
    """One thing that is not as it was written, and the checkpoints it touches."""

    __slots__ = ("checkpoints", "what")

    def __init__(self, what: str, checkpoints: "tuple[str, ...]" = ()) -> None:
        self.what = what
        self.checkpoints = checkpoints

    def __repr__(self) -> str:
        return f"Damage({self.what!r}, {self.checkpoints!r})"


class Verification:
    """What `verify` looked at, what it found, and what it could put right without loss.

    `gone` counts the checkpoints whose files are no longer kept.
    """

    __slots__ = ("bytes", "checkpoints", "damage", "gone", "objects", "packs", "repaired")

    def __init__(
        self,
        *,
        checkpoints: int,
        packs: int,
        objects: int,
        bytes: int,
        damage: "tuple[Damage, ...]",
        repaired: "tuple[str, ...]" = (),
        gone: int = 0,
    ) -> None:
        self.gone = gone
        self.checkpoints = checkpoints
        self.packs = packs
        self.objects = objects
        self.bytes = bytes
        self.damage = damage
        self.repaired = repaired

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.damage

    @property
    def problems(self) -> "tuple[str, ...]":
        """The damage in words."""
        return tuple(d.what for d in self.damage)


class Share:
    """What somebody, or a folder, added to a store; `agent` and `title` are of a session."""

    __slots__ = ("agent", "bytes", "name", "objects", "title")

    def __init__(
        self, name: str, bytes: int, objects: int, *, agent: str = "", title: str = ""
    ) -> None:
        self.name = name
        self.bytes = bytes
        self.objects = objects
        self.agent = agent
        self.title = title


class Usage:
    """What a project's history takes on disk.

    `gone` checkpoints have let their files go, `pinned` ones are kept whatever their age.
    """

    __slots__ = ("checkpoints", "gone", "index", "ledger", "objects", "packs", "pinned")

    def __init__(
        self,
        *,
        packs: int,
        objects: int,
        ledger: int,
        index: int,
        checkpoints: int,
        gone: int = 0,
        pinned: int = 0,
    ) -> None:
        self.gone = gone
        self.pinned = pinned
        self.packs = packs
        self.objects = objects
        self.ledger = ledger
        self.index = index
        self.checkpoints = checkpoints

    @property
    def total(self) -> int:
        """All bytes together."""
        return self.objects + self.ledger + self.index
