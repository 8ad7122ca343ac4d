"""What was saved just before a command that destroys: paths, and why others could not be saved."""

from takeback.model.value import Value, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.reasons import Reason

LINK, REFLINK, COPY = "link", "reflink", "copy"
"""How a file was saved: a second name, shared blocks, or bytes of its own."""


class Kept(Value):
    """A path that was saved; of a folder with all that is below it: `files`, and their `size`."""

    raw_path: bytes
    size: int
    how: str
    files: int = 1

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Missed(Value):
    """A path that could not be saved; empty if nobody knows which one the command means."""

    raw_path: bytes
    reason: "Reason"

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Rebuildable(Value):
    """A folder that is not saved, because `command` makes it again when it is run in `where`."""

    raw_path: bytes
    command: str
    where: bytes = b""

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Rescued(Value):
    """What came of one rescue. `git` are the repositories whose state was saved."""

    kept: "tuple[Kept, ...]" = ()
    missed: "tuple[Missed, ...]" = ()
    rebuildable: "tuple[Rebuildable, ...]" = ()
    git: "tuple[bytes, ...]" = ()
    id: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to save, and nothing that could not be saved."""
        return not (self.kept or self.missed or self.rebuildable or self.git)

    @property
    def is_whole(self) -> bool:
        """Whether all that the command destroys comes back, or can be made again."""
        return not self.missed


NOTHING = Rescued()
