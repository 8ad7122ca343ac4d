"""What taking care of a history says: what went, what stays, what somebody keeps."""


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
