"""The values that the verbs return.

What taking care of a history says: what went, what stays, what somebody keeps.

What an examination of a store found: part by part, each thing with what to do about it.

A setting as it is now, and what in a settings file does not fit.

What is known of the projects whose stores are in one folder.
"""


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


class Cleanup:
    """What a run of `gc` did, or with `dry_run` would do.

    `why` tells by what files went: `age`, `size`, or `asked`. Sizes are those of all packs.
    `merged` tells how many packs were put together, `dropped` of how many nothing was needed.
    `held` are pins, by the ids of their checkpoints. `warnings` are sentences.
    """

    __slots__ = (
        "after", "before", "checkpoints", "days", "dropped", "dry_run", "held", "kept", "merged",
        "oldest", "packs_after", "packs_before", "turns", "turns_kept", "warnings", "why",
    )  # fmt: skip

    def __init__(self) -> None:
        self.dry_run = False
        self.why = ""
        self.days: float | None = None
        self.checkpoints = 0
        self.turns = 0
        self.kept = 0
        self.turns_kept = 0
        self.oldest: float | None = None
        """When the oldest state was made from which on all is kept."""
        self.held: tuple[str, ...] = ()
        self.before = self.after = 0
        self.packs_before = self.packs_after = 0
        self.merged = self.dropped = 0
        self.warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        said = f"{self.checkpoints} checkpoints, {self.before} -> {self.after} bytes"
        return f"Cleanup({said})"


class KeptState:
    """A state that somebody keeps, whatever its age."""

    __slots__ = ("at", "checkpoint", "created", "entries", "label")

    def __init__(
        self, checkpoint: str, created: float, label: str, at: float, entries: int
    ) -> None:
        self.checkpoint = checkpoint
        self.created = created
        self.label = label
        self.at = at
        """Since when it is kept."""
        self.entries = entries

    def __repr__(self) -> str:
        return f"KeptState({self.checkpoint!r}, {self.label!r})"


ERROR, WARNING, NOTE = "error", "warning", "note"
"""Something is lost, broken or unsafe; works, but look at it; good to know."""


class Finding:
    """One thing that is not as it should be. `can_be_repaired` by us, without any loss."""

    __slots__ = ("advice", "can_be_repaired", "severity", "what")

    def __init__(
        self, severity: str, what: str, advice: str = "", *, can_be_repaired: bool = False
    ) -> None:
        self.severity = severity
        self.what = what
        self.advice = advice
        self.can_be_repaired = can_be_repaired


class Part:
    """One part of the examination: `said` is what is to be said of it if all is well."""

    __slots__ = ("findings", "name", "said")

    def __init__(self, name: str, said: str, findings: "list[Finding] | None" = None) -> None:
        self.name = name
        self.said = said
        self.findings = findings or []


class Examined:
    """All parts, what was repaired before, and what the log said."""

    __slots__ = ("events", "parts", "problems", "repaired")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.repaired: list[str] = []
        self.problems: tuple[str, ...] = ()
        self.events = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not any(f.severity == ERROR for part in self.parts for f in part.findings)


DEFAULT, USER, PROJECT, ENVIRONMENT = "default", "user", "project", "environment"
"""Where a value comes from."""


class Configured:
    """One setting: its value, and where that comes from."""

    __slots__ = ("default", "name", "origin", "text", "value")

    def __init__(self, name: str, value: object, origin: str, default: object, text: str) -> None:
        self.name = name
        self.value = value
        self.origin = origin
        self.default = default
        self.text = text


class Misfit:
    """Something in a settings file that does not fit: `name` is empty if it is the whole file.

    One that `is_refused` stops whoever needs that setting; any other does nothing.
    """

    __slots__ = ("hint", "is_refused", "name", "origin", "path", "problem")

    def __init__(
        self,
        origin: str,
        path: bytes,
        name: str,
        problem: str,
        hint: str,
        *,
        is_refused: bool = True,
    ) -> None:
        self.origin = origin
        self.path = path
        self.name = name
        self.problem = problem
        self.hint = hint
        self.is_refused = is_refused


HERE, REPLACED, GONE, NOT_MOUNTED, UNKNOWN = "here", "replaced", "gone", "not mounted", "unknown"
"""Where a project's folder is: at its place; another folder is there; nothing is; the disk that it
was on may not be mounted; or nobody knows any more where it was."""

SOUND, OLDER, NEWER, DAMAGED, CLOSED = "sound", "older", "newer", "damaged", "not readable"
"""How its store looks from outside: as this program writes it; of a format that will be brought up
to date when it is used; of one that is too new; broken; or nobody may open it."""


class KnownProject:
    """One store: which project it belongs to, and what would be lost with it.

    `used` is None when nothing was ever recorded, and the numbers when nobody can tell. `running`
    names the sessions that may still work there.
    """

    __slots__ = (
        "checkpoints", "health", "id", "problem", "prompt", "root", "running", "size", "state",
        "turns", "used",
    )  # fmt: skip

    def __init__(self, id: str, root: "bytes | None", state: str, size: int) -> None:
        self.id = id
        self.root = root
        self.state = state
        self.size = size
        self.health = SOUND
        self.problem = ""
        self.used: float | None = None
        self.checkpoints: int | None = None
        self.turns: int | None = None
        self.prompt = ""
        self.running: tuple[str, ...] = ()
