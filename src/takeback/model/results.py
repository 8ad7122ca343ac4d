"""The values that the verbs return."""

from takeback.model.value import Value, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.beyond.participants import Captured
    from takeback.model.reasons import Action, Reason


class OutsideFile(Value):
    """A file outside the project that a turn named: what was done to it, or why nobody knows."""

    raw_path: bytes
    verb: str = ""
    reason: str = ""

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class LeftOut(Value):
    """A path that is listed but not captured, and why."""

    raw_path: bytes
    reason: str

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Checkpoint(Value):
    """A coordinate one can return to.

    `new` tells whether this call made it: when nothing had changed, the checkpoint that
    already holds the tree is named again. `changed` counts the entries that differ from the
    checkpoint before. `unstable` lists files that would not hold still while they were read.
    `label` is what it was called when it was made, or what this call called it. `names` are those
    that mean it, newest first; `moved` is the checkpoint that the label was the name of before.
    """

    id: str
    tree: str
    cursor: int
    created: float
    label: str
    entries: int
    changed: int
    new: bool
    left_out: "tuple[LeftOut, ...]" = ()
    raw_unstable: "tuple[bytes, ...]" = ()
    session: "str | None" = None
    turn: "str | None" = None
    step: "str | None" = None
    names: "tuple[str, ...]" = ()
    moved: str = ""

    @property
    def unstable(self) -> "tuple[str, ...]":
        """Files that would not hold still, as text."""
        return tuple(map(path_text, self.raw_unstable))


class Status(Value):
    """Where one is: the project, its newest checkpoint, and what is not covered.

    `origin` names the store among those of all machines.
    """

    project: str
    origin: str
    raw_root: bytes
    raw_store: bytes
    checkpoints: int
    newest: "Checkpoint | None"
    entries: int
    left_out: "tuple[LeftOut, ...]"
    participants: "tuple[Captured, ...]" = ()
    """Databases and other state beside files, as they were captured last."""

    @property
    def root(self) -> str:
        """The folder of the project."""
        return path_text(self.raw_root)

    @property
    def store(self) -> str:
        """The folder of its store."""
        return path_text(self.raw_store)


class Damage(Value):
    """One thing that is not as it was written, and the checkpoints it touches."""

    what: "Reason"
    checkpoints: "tuple[str, ...]" = ()


class Verification(Value):
    """What `verify` looked at, what it found, and what it could put right without loss.

    `gone` counts the checkpoints whose files are no longer kept.
    """

    checkpoints: int
    packs: int
    objects: int
    bytes: int
    damage: "tuple[Damage, ...]"
    repaired: "tuple[Reason, ...]" = ()
    gone: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.damage

    @property
    def problems(self) -> "tuple[Reason, ...]":
        """What is damaged."""
        return tuple(d.what for d in self.damage)


class Share(Value):
    """What somebody, or a folder, added to a store; `agent` and `title` are of a session."""

    name: str
    bytes: int
    objects: int
    agent: str = ""
    title: str = ""


class Usage(Value):
    """What a project's history takes on disk.

    `gone` checkpoints have let their files go, `pinned` ones are kept whatever their age. `rescued`
    are the bytes of files that commands destroyed, in so many `rescues`; no other name has them.
    `lessons`, `relapses`, `effects`, `plans`, `mutations` and the values of `memory` are in the
    ledger. `captures` are the states of participants, such as dumps of databases.
    """

    packs: int
    objects: int
    ledger: int
    index: int
    checkpoints: int
    gone: int = 0
    pinned: int = 0
    rescues: int = 0
    rescued: int = 0
    lessons: int = 0
    relapses: int = 0
    effects: int = 0
    plans: int = 0
    captures: int = 0
    memory: int = 0
    mutations: int = 0

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

    dry_run = False
    why = ""
    days: "float | None" = None
    checkpoints = 0
    turns = 0
    kept = 0
    turns_kept = 0
    oldest: "float | None" = None
    """When the oldest state was made from which on all is kept."""
    held: "tuple[str, ...]" = ()
    before = after = 0
    packs_before = packs_after = 0
    merged = dropped = 0
    archived = 0
    """How many events went to the archive of the log."""
    rescues = 0
    """How many rescues went."""
    warnings: "tuple[str, ...]" = ()

    def __repr__(self) -> str:
        return f"Cleanup({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class KeptState(Value):
    """A state that somebody keeps, whatever its age; or did until now.

    `name` is the one that was given or removed with it, and `moved` the checkpoint that had it.
    """

    checkpoint: str
    created: float
    label: str
    at: float
    """Since when it is kept."""
    entries: int
    name: str = ""
    moved: str = ""
    released: bool = False


ERROR, WARNING, NOTE = "error", "warning", "note"
"""Something is lost, broken or unsafe; works, but look at it; good to know."""


class Finding(Value):
    """One thing that is not as it should be, and what to do about it.

    `can_be_repaired` by us, without any loss.
    """

    severity: str
    what: "Reason"
    action: "Reason | tuple[str | Action, ...]" = ()
    can_be_repaired: bool = False


class Part:
    """One part of the examination: `state` is what there is to know of it if all is well."""

    def __init__(
        self, name: str, state: "Reason | None", findings: "list[Finding] | None" = None
    ) -> None:
        self.name = name
        self.state = state
        self.findings = findings or []


class Examined:
    """All parts, what was repaired before, and what the log said."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.repaired: list[Reason] = []
        self.problems: tuple[Reason, ...] = ()
        self.events = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not any(f.severity == ERROR for part in self.parts for f in part.findings)


DEFAULT, USER, PROJECT, ENVIRONMENT = "default", "user", "project", "environment"
"""Where a value comes from."""


class Configured(Value):
    """One setting: its value, and where that comes from."""

    name: str
    value: object
    origin: str
    default: object
    text: str


class Misfit(Value):
    """Something in a settings file that does not fit: `name` is empty if it is the whole file.

    One that `is_refused` stops whoever needs that setting; any other does nothing.
    """

    origin: str
    path: bytes
    name: str
    problem: str
    hint: "tuple[str | Action, ...]"
    is_refused: bool = True


HERE, REPLACED, GONE, NOT_MOUNTED, UNKNOWN = "here", "replaced", "gone", "not mounted", "unknown"
MOVED, DETACHED = "moved", "detached"
"""Where a project's folder is: at its place; another folder is there; nothing is; the disk that it
was on may not be mounted; nobody knows any more where it was; it was found at another place; or it
has another history now, and can be given this one back."""

SOUND, OLDER, NEWER, DAMAGED, CLOSED = "sound", "older", "newer", "damaged", "not readable"
"""How its store looks from outside: as this program writes it; of a format that will be brought up
to date when it is used; of one that is too new; broken; or nobody may open it."""


class KnownProject:
    """One store: which project it belongs to, and what would be lost with it.

    `used` is None when nothing was ever recorded, and the numbers when nobody can tell. `running`
    names the sessions that may still work there. `was` is the place that a folder was moved from.
    """

    health = SOUND
    problem = ""
    used: "float | None" = None
    checkpoints: "int | None" = None
    turns: "int | None" = None
    prompt = ""
    running: "tuple[str, ...]" = ()
    was: "bytes | None" = None

    def __init__(self, id: str, root: "bytes | None", state: str, size: int) -> None:
        self.id = id
        self.root = root
        self.state = state
        self.size = size


class RestoredFolder(Value):
    """A folder that was brought back: the project, where it is, and the state that it is in.

    `left_out` was in it and never covered, so it is not there again. `is_part_of_turn` tells that
    it went while the newest turn that changed something was running.
    """

    project: str
    path: bytes
    checkpoint: str
    created: float
    entries: int
    left_out: "tuple[bytes, ...]" = ()
    is_part_of_turn: bool = False
