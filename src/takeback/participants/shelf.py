"""Durable content of participants: objects of the store, named by the event of a capture.

Content is stored piece by piece, each piece a blob; a list of them is a blob, too, and its id names
the content. So what two captures have in common is stored once.
"""

from hashlib import sha256

from takeback.errors import DamagedStoreError, ParticipantError, UsageError
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from takeback.ledger.beyond.participants import TokenRow
    from takeback.objects.pack_write import PackWriter
    from takeback.store import Store

_LARGEST = 1 << 22
"""Bytes of one piece. What is given in smaller ones is stored in these."""
_FORMAT = 1
_FOLDER = b"/participants"


class Taken:
    """What one capture of several participants stores: one pack, and the ids of its objects."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._writer: PackWriter | None = None
        self.objects: dict[bytes, None] = {}

    @property
    def writer(self) -> "PackWriter":
        """Where new content goes; made on its first use."""
        if self._writer is None:
            self._writer = self._store.pack_writer()
        return self._writer

    def finish(self) -> "list[object]":
        """The packs, durable by now."""
        return list(self._writer.finish()) if self._writer is not None else []

    def abort(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None:
            self._writer.abort()


class ParticipantShelf:
    """What one participant keeps in the store; see `ports.Shelf`."""

    def __init__(self, name: str, store: "Callable[[], Store]") -> None:
        self._name = name
        self._store = store
        self._taken: Taken | None = None
        self._objects: dict[bytes, None] = {}
        self._noted: str | None = None

    @property
    def _row(self) -> "TokenRow | None":
        return self._store().ledger.participants.last(self._name)

    @property
    def last(self) -> str:
        row = self._row
        return row.token if row is not None else ""

    @property
    def mark(self) -> str:
        row = self._row
        return row.mark if row is not None else ""

    def note(self, mark: str, /) -> None:
        self._capturing()
        self._noted = str(mark)

    def put(self, chunks: "Iterable[bytes]", /) -> str:
        from takeback.objects.git_objects import BLOB

        taken, strong, size, pieces = self._capturing(), sha256(), 0, []
        for chunk in chunks:
            for at in range(0, len(chunk), _LARGEST):
                piece = bytes(chunk[at : at + _LARGEST])
                strong.update(piece)
                size += len(piece)
                oid = taken.writer.add(BLOB, piece)
                self._objects[oid] = None
                pieces.append(oid.hex())
        said = json_text.dumps([_FORMAT, size, strong.hexdigest(), pieces])
        oid = taken.writer.add(BLOB, said.encode())
        self._objects[oid] = None
        return oid.hex()

    def hold(self, id: str, /) -> None:
        self._capturing()
        oid, (_, _, pieces) = _oid(id), self._list(id)
        self._objects |= dict.fromkeys((oid, *map(bytes.fromhex, pieces)))

    def read(self, id: str, /) -> "Iterator[bytes]":
        from takeback.objects.git_objects import BLOB

        size, strong, pieces = self._list(id)
        objects, found, length = self._store().objects, sha256(), 0
        for piece in pieces:
            kind, data = objects.read(bytes.fromhex(piece))
            if kind != BLOB:
                raise DamagedStoreError(f"the object `{piece}` is of the wrong kind")
            found.update(data)
            length += len(data)
            yield data
        if length != size or found.hexdigest() != strong:
            raise DamagedStoreError(f"the content `{id}` of `{self._name}` is not what was stored")

    def folder(self) -> bytes:
        from takeback.disk import home

        path = self._store().path + _FOLDER
        if not home.require_private(path):
            home.make_folder(path)
        return path

    # -- for the coordinator ---------------------------------------------------------------

    def begin(self, taken: Taken) -> None:
        """A capture begins."""
        self._taken, self._objects, self._noted = taken, {}, None

    def end(self) -> "tuple[str, dict[bytes, None]]":
        """It is over: what was noted, and the objects that it needs."""
        noted, objects = self._noted, self._objects
        self._taken, self._objects, self._noted = None, {}, None
        return noted or "", objects

    def _capturing(self) -> Taken:
        if self._taken is None:
            raise UsageError(
                f"the participant `{self._name}` stores content outside of `capture`",
                hint="call `put`, `hold` and `note` in `capture` only",
            )
        return self._taken

    def _list(self, id: str) -> "tuple[int, str, list[str]]":
        from takeback.objects.git_objects import BLOB

        oid = _oid(id)
        if self._taken is not None and oid in self._objects:
            raise UsageError(f"the content `{id}` can be read when its capture is over")
        kind, data = self._store().objects.read(oid)
        try:
            version, size, strong, pieces = json_text.loads(data.decode())
        except ValueError:
            version, size, strong, pieces = 0, 0, "", []
        if kind != BLOB or version != _FORMAT:
            raise DamagedStoreError(f"the object `{id}` lists no content")
        return int(size), str(strong), [str(piece) for piece in pieces]


def _oid(id: str) -> bytes:
    try:
        oid = bytes.fromhex(id)
    except ValueError:
        oid = b""
    if len(oid) != 20:
        raise ParticipantError(f"`{id[:60]}` is not the id of stored content")
    return oid
