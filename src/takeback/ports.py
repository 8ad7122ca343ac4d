"""What one layer asks of another, where several can answer."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    Progress = Callable[[str, int, int], None]
    """Told now and then how far long work is: phase, how much is done, and of how much.

    A phase is a code of `model.words`. `HASHING` counts bytes, all others count things. A total of
    0 means that it is not known.
    """
else:
    Protocol = object


class ObjectTaker(Protocol):
    """Takes objects that are in memory."""

    def add(self, kind: int, data: bytes, /) -> bytes:
        """Take an object; return its id."""


class ObjectWriter(ObjectTaker, Protocol):
    """Takes the objects of a state: a pack, or a look that keeps nothing."""

    def contains(self, oid: bytes, /) -> bool:
        """Whether an object need not be given any more."""

    def add_hashed(self, oid: bytes, kind: int, data: bytes, /) -> None:
        """Take an object whose id is known."""

    def add_known(self, oid: bytes, kind: int, size: int, compressed: bytes, /) -> None:
        """Take an object that was hashed and compressed."""

    def add_large(self, size: int, chunks: "Iterable[bytes]", /) -> bytes:
        """Take a blob piece by piece; return its id."""
