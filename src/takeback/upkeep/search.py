"""Look through everything in a store, byte by byte, for what must not be there any more."""

import os
import re
import stat

from takeback.errors import UnfinishedError
from takeback.ledger.log import events
from takeback.model.forgotten import as_texts
from takeback.model.reasons import Action
from takeback.model.text import json_text
from takeback.model.words import SEARCHING_PACKS
from takeback.objects.git_objects import BLOB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.model.forgotten import ForgetRequest
    from takeback.objects.pack_read import PackFile
    from takeback.ports import Progress
    from takeback.store import Store

NOTE = b"forgetting"
"""The file that says what is being forgotten."""
_NOT_HISTORY = (NOTE, b"config.toml", b"root", b"birth")
"""What is being forgotten itself, the user's own settings, and where the project is."""
_OF_SQLITE = (b"ledger.db", b"ledger.db-shm")
_PIECE = 1 << 20
_LONGEST_HASH = 64
_SHORT = 4096
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_HEX = re.compile(rb"[0-9a-f]{40,}")
_left_open: "dict[tuple[int, int], int]" = {}
"""To close a file of SQLite's would drop the locks that our own connections have on it."""


class Search:
    """What is looked for: texts in every way they may be written, and hashes, raw and in hex."""

    def __init__(self, wish: "ForgetRequest", ids: "Iterable[bytes]") -> None:
        self._texts: dict[bytes, str] = {}
        for text in wish.texts:
            for needle, how in as_texts(text).items():
                self._texts.setdefault(needle, f"the text, {how},")
        self._ids = set(ids)
        self._longest = max(map(len, self._texts), default=1)

    def is_id(self, oid: bytes) -> bool:
        """Whether an object itself must not be there."""
        return oid in self._ids

    def find(self, pieces: "Iterator[bytes]", *, hashes: bool = False) -> "tuple[str, int]":
        """What of it stands in some bytes, in words (empty if nothing), and how many were read.

        With `hashes` they are looked for, too. In what packs hold that is not needed: all that
        is there was found to be needed, and what is needed names only what is there.
        """
        tail, read = b"", 0
        overlap = max(self._longest, _LONGEST_HASH) - 1
        for piece in pieces:
            read += len(piece)
            window = tail + piece
            for needle, how in self._texts.items():
                if needle in window:
                    return how, read
            if hashes and self._has_hash(window):
                return "a hash of it", read
            tail = window[-overlap:]
        return "", read

    def _has_hash(self, window: bytes) -> bool:
        if any(id in window for id in self._ids):
            return True
        for found in _HEX.finditer(window):
            said = bytes.fromhex(found.group().decode()[: len(found.group()) // 2 * 2])
            if any(said[:size] in self._ids for size in (20, 32)):
                return True
        return False


def prove(
    store: "Store",
    wish: "ForgetRequest",
    ids: "Iterable[bytes]",
    progress: "Progress | None" = None,
) -> int:
    """Look through everything; an error if anything is found. How many bytes were read."""
    search, read = Search(wish, ids), 0
    for path in _files(store.path):
        is_pack = path.endswith(b".pack")
        if is_pack and not wish.in_files:
            continue
        found, size = search.find(_pieces(path), hashes=not is_pack)
        read += size
        if not found and os.path.basename(path).startswith(b"ledger.db"):
            # What is left of an event in free space is deflated, as the event was.
            found, size = search.find(_deflated(path), hashes=True)
            read += size
        if found:
            raise _left(f"{found} is in the file `{os.fsdecode(path[len(store.path) + 1 :])}`")
    read += _in_events(store, search)
    names = sorted(store.ledger.packs())
    for done, name in enumerate(names):
        if progress is not None:
            progress(SEARCHING_PACKS, done, len(names))
        with store.objects.pack(name) as pack:
            read += _in_pack(pack, search, name, in_files=wish.in_files)
    return read


def _in_events(store: "Store", search: Search) -> int:
    """The same in what events say: old ones are deflated in the file."""
    read = 0
    for event in store.ledger.events():
        said = json_text.dumps(event.payload).encode()
        found, size = search.find(iter((said,)), hashes=True)
        read += size
        if found:
            raise _left(f"{found} is in the event {event.seq}")
        detail = json_text.dumps(store.ledger.detail(event.seq)).encode()
        found, size = search.find(iter((detail,)), hashes=True)
        read += size
        if found:
            raise _left(f"{found} is in the detail of the event {event.seq}")
    return read


def _in_pack(pack: "PackFile", search: Search, name: str, *, in_files: bool) -> int:
    """The same in everything that a pack holds, unpacked.

    Only if files that hold a text were forgotten, too, must it stand in none of them.
    """
    read = 0
    for oid in pack.objects():
        if search.is_id(oid):
            raise _left(f"the object `{oid.hex()}` is still in `{name}`")
        kind, _, pieces = pack.stream(oid)
        found, size = search.find(pieces)
        read += size
        if found and (in_files or kind != BLOB):
            raise _left(f"{found} is in the object `{oid.hex()}` of `{name}`")
    return read


def _left(what: str) -> UnfinishedError:
    return UnfinishedError(
        f"not everything was forgotten: {what}",
        hint=(Action("continue-forgetting"), "nothing is lost by it"),
    )


def _files(folder: bytes) -> "Iterator[bytes]":
    for above, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(above, name)
            if above == folder and name in _NOT_HISTORY:
                continue
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _deflated(path: bytes) -> "Iterator[bytes]":
    tail = b""
    for piece in _pieces(path):
        for found in events.anywhere_in(tail + piece):
            # Each is of its own: nothing may seem to go on from one to the next.
            yield found + b"\n" * _LONGEST_HASH
        tail = piece[-_SHORT:]


def _pieces(path: bytes) -> "Iterator[bytes]":
    stays_open = os.path.basename(path) in _OF_SQLITE
    fd = _opened(path) if stays_open else os.open(path, _READ)
    try:
        offset = 0
        while piece := os.pread(fd, _PIECE, offset):
            offset += len(piece)
            yield piece
    finally:
        if not stays_open:
            os.close(fd)


def _opened(path: bytes) -> int:
    """A file of SQLite's, open, and open for good; each file only once."""
    found = os.lstat(path)
    key = (found.st_dev, found.st_ino)
    if key not in _left_open:
        _left_open[key] = os.open(path, _READ)
    return _left_open[key]
