"""What is known of the projects whose stores are in one folder."""

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
