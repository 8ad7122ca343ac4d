"""The work tree as it is at this moment, without writing anything and without the lock.

What changed since the newest checkpoint is found by `history/look`. Only that is read, and only
hashed.
"""

import os

from takeback.disk.descent import Descent
from takeback.disk.machine import COARSE, FsClock
from takeback.errors import TakebackError
from takeback.history.compare import Saved
from takeback.history.look import Look, newest_known
from takeback.model.tree import (
    FOLDER,
    INCOMPLETE_BELOW,
    LARGEST,
    LINK,
    NO_HASH,
    REASON,
    UNSTABLE,
    Entry,
    Manifest,
)
from takeback.objects.git_objects import BLOB, object_head, object_id, sha1
from takeback.worktree.content import Content, Patience, Torn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.capture.checkpoint import Site
    from takeback.ports import Progress
    from takeback.store import Store
    from takeback.worktree.folders import Folder, Node
    from takeback.worktree.stat_cache import StatCache

_TOLD = REASON | UNSTABLE | INCOMPLETE_BELOW


class Nowhere:
    """Takes objects as a pack would, keeps none of them, and knows which it was given."""

    def __init__(self) -> None:
        self.taken: set[bytes] = set()
        """What is in the work tree, and may be in no pack."""

    def contains(self, oid: bytes) -> bool:
        self.taken.add(oid)
        return True

    def add(self, kind: int, data: bytes) -> bytes:
        return object_id(kind, data)

    def add_hashed(self, oid: bytes, kind: int, data: bytes) -> None:
        del kind, data
        self.taken.add(oid)

    def add_known(self, oid: bytes, kind: int, size: int, compressed: bytes) -> None:
        del kind, size, compressed
        self.taken.add(oid)

    def add_large(self, size: int, pieces: "Iterable[bytes]") -> bytes:
        weak = sha1(object_head(BLOB, size))
        for piece in pieces:
            weak.update(piece)
        self.taken.add(weak.digest())
        return weak.digest()


class Now:
    """The work tree as it is: what changed in memory, the rest as the newest checkpoint has it."""

    def __init__(
        self,
        store: "Store",
        cache: "StatCache",
        site: "Site",
        at: int,
        progress: "Progress | None" = None,
    ) -> None:
        self._objects = store.reader()
        self._ledger = store.ledger
        self._disk = Disk(site.root, at)
        self._folders: dict[bytes, Folder] = {}
        self._nowhere = Nowhere()
        try:
            self._newest, known = newest_known(store, cache)
            usable = cache if known else None
            look = Look(site, FsClock(at, COARSE), self._nowhere, progress)
            looked = look.folders(self._newest, usable, lambda: self._objects)
            self._folders = {folder.path(): folder for folder in looked}
        except BaseException:
            self.close()
            raise

    def root(self) -> Manifest:
        """The folder at the top."""
        folder = self._folders.get(b"")
        if folder is not None:
            return _as_manifest(folder)
        assert self._newest is not None, "without a checkpoint everything was looked at"
        return Saved(self._objects, self._newest, self._ledger).root()

    def manifest(self, path: bytes, entry: Entry) -> Manifest:
        """The captured folder `entry` at `path`."""
        folder = self._folders.get(path)
        if folder is not None:
            return _as_manifest(folder)
        return self._objects.manifest(entry.oid, entry.strong)

    def content(self, path: bytes, entry: Entry) -> "bytes | None":
        """What a file that fits in memory holds, or a link's target; None if gone by now."""
        if entry.oid not in self._nowhere.taken:
            return self._objects.content(entry)
        return self._disk.content(path)

    def stream(self, path: bytes, entry: Entry) -> "Iterator[bytes]":
        """What a file holds, piece by piece."""
        if entry.oid not in self._nowhere.taken:
            return self._objects.stream(entry)
        return self._disk.stream(path)

    def close(self) -> None:
        """Close the packs and the work tree."""
        self._objects.close()
        self._disk.close()


def _as_manifest(folder: "Folder") -> Manifest:
    entries = [_as_entry(node) for node in folder.sorted_nodes()]
    return Manifest(folder.mode & 0o7777, entries, folder.strong)


def _as_entry(node: "Node") -> Entry:
    """A scanned entry as a manifest would record it."""
    if node.reason:
        return Entry(node.name, node.mode & 0o170000, node.reason, 0, NO_HASH, 0, node.oid)
    mode = node.mode & 0xFFFF
    size = 0 if mode & 0o170000 == FOLDER else node.size
    return Entry(node.name, mode, node.flags & _TOLD, size, node.strong, node.mtime, node.oid)


class Disk:
    """Reads single files of the work tree, never through a link. Closes the root at the end."""

    def __init__(self, root: int, at: int) -> None:
        self._root = root
        self._descent = Descent(root)
        self._clock = FsClock(at, COARSE)
        self._patience = Patience()

    def content(self, path: bytes) -> "bytes | None":
        """What a file of moderate size holds, or a link's target; None if it is neither."""
        try:
            fd, name = self._open_folder(path)
            if os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode & 0o170000 == LINK:
                return os.readlink(name, dir_fd=fd)
            content = Content(fd, name, self._clock)
        except OSError:
            return None
        try:
            return content.whole(self._patience) if content.size() <= LARGEST else None
        except OSError:
            return None
        finally:
            content.close()

    def stream(self, path: bytes) -> "Iterator[bytes]":
        """What a file of any size holds, piece by piece."""
        fd, name = self._open_folder(path)
        content = Content(fd, name, self._clock)
        try:
            for piece in content.chunks(content.size(), last_try=True):
                yield bytes(piece)
        except Torn:
            shown = os.fsdecode(path)
            raise TakebackError(f"`{shown}` changed while it was read", hint="try again") from None
        finally:
            content.close()

    def close(self) -> None:
        """Close everything, also the root."""
        self._descent.close()
        os.close(self._root)

    def _open_folder(self, path: bytes) -> "tuple[int, bytes]":
        *way, name = path.split(b"/")
        return self._descent.open(tuple(way)), name
