"""What one layer asks of another, where several can answer."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from takeback.model.beyond.participants import Difference

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


class Shelf(Protocol):
    """Where a participant keeps durable content: objects of the store, for `gc` and `forget`.

    What `put` and `hold` name during one `capture` belongs to the token that it returns.
    """

    @property
    def last(self) -> str:
        """The token that was captured last, in any process; empty if there is none."""

    @property
    def mark(self) -> str:
        """What `note` kept with it."""

    def note(self, mark: str, /) -> None:
        """Keep a short text with the token being captured: what tells whether it changed."""

    def put(self, chunks: "Iterable[bytes]", /) -> str:
        """Store content; return its id. Pieces that the store holds are not stored again."""

    def hold(self, id: str, /) -> None:
        """Name content that an earlier capture stored, because the new token needs it, too."""

    def read(self, id: str, /) -> "Iterable[bytes]":
        """The content with an id, piece by piece, each checked against its hash."""

    def folder(self) -> bytes:
        """A private folder in the store for files on the way; the next start may delete them."""


class Participant(Protocol):
    """State beside the files that moves with them: memory, a database, a service.

    All calls come with the project's lock held, from one thread at a time. One restore calls
    `capture`, then `describe`, then `prepare`, then `commit` or `abort`. After a crash before the
    decision, another process calls `abort`. After a crash behind it, another process calls
    `prepare` and `commit` again until they succeed.

    Raise `takeback.ParticipantError` with a sentence for what cannot be done now.
    """

    @property
    def name(self) -> str:
        """Its name in the project: letters, digits, `.`, `_` and `-`."""

    @property
    def kind(self) -> str:
        """`memory`, `databases` or `other`: what `--only` calls it."""

    @property
    def can_prepare(self) -> bool:
        """Whether it moves together with the files. If not, `commit` does all, afterwards."""

    @property
    def each_step(self) -> bool:
        """Whether it is captured at each safe point, or only at the ends of turns."""

    def attach(self, shelf: "Shelf", /) -> None:
        """It is registered: where it keeps durable content."""

    def capture(self) -> str:
        """A durable copy of now; its token, at most 1 KiB. The same if nothing was written."""

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        """What restoring a token would change now."""

    def prepare(self, restore: str, token: str, /) -> None:
        """Do everything that can fail, visible to nobody. May be called again."""

    def commit(self, restore: str, /) -> None:
        """Make it visible, at once. May be called again, also when it was done."""

    def abort(self, restore: str, /) -> None:
        """Let nothing have happened. May be called again, also when nothing was prepared."""
