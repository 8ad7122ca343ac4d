"""What one layer asks of another without knowing who answers."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol
else:
    Protocol = object


class Rules(Protocol):
    """What to leave out. The scanner asks only about what is over a limit."""

    entry_limit: int
    """A folder with more entries below it than this is asked about."""
    byte_limit: int
    """A rebuildable folder with more bytes below it than this is asked about."""
    file_limit: int
    """A file larger than this is asked about."""

    def is_rebuildable(self, name: bytes) -> bool:
        """Whether a folder of this name can be made again."""

    def keeps(self, path: bytes) -> bool:
        """Whether something is captured in any case: it was before, or somebody wants it."""

    def leaves_out_folder(self, path: bytes) -> int:
        """The reason to leave out a folder that is over a limit, or 0."""

    def leaves_out_file(self, path: bytes) -> int:
        """The reason to leave out a file that is over the limit, or 0."""


class Progress(Protocol):
    """Told now and then how far long work has come."""

    def __call__(self, phase: str, done: int, total: int, /) -> None:
        """Hear that `done` of `total` are done; a total of 0 means that nobody knows.

        `phase` is a code of `model.words`. `HASHING` counts bytes, all others count things.
        """


class ObjectTaker(Protocol):
    """Who takes objects that are in memory."""

    def add(self, kind: int, data: bytes, /) -> bytes:
        """Take an object; return its id."""


class ObjectWriter(ObjectTaker, Protocol):
    """Who takes the objects of a state: a pack, or one that only looks and keeps nothing."""

    def contains(self, oid: bytes, /) -> bool:
        """Whether an object need not be given any more."""

    def add_hashed(self, oid: bytes, kind: int, data: bytes, /) -> None:
        """Take an object whose id is known."""

    def add_known(self, oid: bytes, kind: int, size: int, compressed: bytes, /) -> None:
        """Take an object that was hashed and compressed."""

    def add_large(self, size: int, chunks: "Iterable[bytes]", /) -> bytes:
        """Take a blob piece by piece; return its id."""
