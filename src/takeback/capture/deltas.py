"""What changed between two consecutive checkpoints, path by path, and when.

Before is what the stat cache or the manifests of the checkpoint before say; after is what the
scan found. Only folders that the scan looked at are compared.

Whose a setuid program was when it was captured: only for that owner it may be setuid again.

The manifest of a folder does not say whose its files are. So the event of a checkpoint names the
owner of each file with such a bit that it captured.

What is left out is compared, too, by the stamps in the stat cache: what is lost of it cannot come
back. Without a stat cache only what is gone is known.
"""

import os

from takeback.ledger.log.events import CHECKPOINT_TAKEN
from takeback.model import words
from takeback.model.beyond import losses
from takeback.model.tree import FOLDER, KIND, LINK, REASON, REGULAR, SETUID
from takeback.model.value import path_bytes, path_text
from takeback.worktree import folders, stat_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Protocol

    from takeback.capture.manifests import Previous
    from takeback.disk.descent import Descent
    from takeback.ledger.ledger import Ledger
    from takeback.model.beyond.losses import Loss
    from takeback.model.history import Author
    from takeback.model.text.json_text import Json
    from takeback.model.tree import Owner
    from takeback.worktree.folders import Before as State
    from takeback.worktree.folders import Folder, Node, Stamps
    from takeback.worktree.stat_cache import Records

    Key = int | bytes
    Ways = list[tuple[bytes, set[bytes]]]
    """Folders from the nearest up, each with the names in it."""

    class Before(Protocol):
        """What folders held; a key stands for a folder that was there."""

        def root(self) -> "Key | None":
            """The key of the root."""

        def mode(self) -> int:
            """The permission bits of the root."""

        def entries(self, key: "Key") -> "dict[bytes, State]":
            """Mode, flags, strong hash and perhaps stamps of each entry."""

        def below(self, key: "Key", name: bytes) -> "Key | None":
            """The key of a captured subfolder."""


class Delta:
    """One path that changed.

    `time` is when it was last changed, as far as its stamps tell; `latest` says instead by when
    it must have happened, where only that is known. `strong` is the hash of the content that
    came, or of the content that went with a deletion: that is how renames are found. `loss` is
    there if the path was not covered.
    """

    __slots__ = ("latest", "loss", "origin", "path", "strong", "time", "verb")

    def __init__(
        self,
        path: bytes,
        verb: str,
        *,
        strong: bytes = b"",
        time: "tuple[int, int] | None" = None,
        latest: "int | None" = None,
        loss: "Loss | None" = None,
    ) -> None:
        self.path = path
        self.verb = verb
        self.loss = loss
        self.strong = strong
        self.time = time
        self.latest = latest
        self.origin: bytes | None = None

    def __repr__(self) -> str:
        return f"Delta({self.path!r}, {self.verb!r})"


class InRecords:
    """What the stat cache says; keys are the offsets of records."""

    def __init__(self, known: "Records") -> None:
        self._known = known
        self._below: dict[int, dict[bytes, int]] = {}

    def root(self) -> "Key | None":
        """The first record."""
        return 0 if self._known else None

    def mode(self) -> int:
        """The mode in the first record."""
        return int(folders.RECORD.unpack_from(self._known, 0)[-1]) & 0o7777

    def entries(self, key: "Key") -> "dict[bytes, State]":
        """The entries of the record at an offset."""
        assert isinstance(key, int)
        found = folders.unpack_record(self._known, key)[2]
        return {name: folders.before(fields) for fields, name in found}

    def below(self, key: "Key", name: bytes) -> "Key | None":
        """The record of a subfolder."""
        assert isinstance(key, int)
        if key not in self._below:
            self._below[key] = stat_cache.subfolders(self._known, key)
        return self._below[key].get(name)


class InManifests:
    """What the manifests of the checkpoint before say; keys are paths."""

    def __init__(self, previous: "Previous") -> None:
        self._manifests = previous.manifests()

    def root(self) -> "Key | None":
        """The root, if there was a checkpoint."""
        return b"" if self._manifests else None

    def mode(self) -> int:
        """The mode in the root's manifest."""
        return self._manifests[b""].mode & 0o7777

    def entries(self, key: "Key") -> "dict[bytes, State]":
        """The entries of a folder's manifest."""
        assert isinstance(key, bytes)
        return {e.name: (e.mode, e.flags, e.strong, None) for e in self._manifests[key].entries}

    def below(self, key: "Key", name: bytes) -> "Key | None":
        """The path of a subfolder, if its manifest is there."""
        assert isinstance(key, bytes)
        path = key + b"/" + name if key else name
        return path if path in self._manifests else None


def find(root: "Folder", before: "Before") -> "tuple[list[Delta], list[Delta]]":
    """Everything that is not as it was before, and what was lost outside cover; sorted by path."""
    found: list[Delta] = []
    if before.root() is not None and before.mode() != root.mode & 0o7777:
        found.append(Delta(b"", words.MODE, time=(root.mtime, root.ctime)))
    stack: list[tuple[Folder, Key | None, bool]] = [(root, before.root(), False)]
    while stack:
        folder, key, unknown = stack.pop()
        was = folder.before if folder.offset >= 0 else {}
        if not was and key is not None:
            was = before.entries(key)
        prefix = folder.path() + b"/" if folder.parent is not None else b""
        for name in was.keys() | folder.nodes.keys():
            old, node = was.get(name), folder.nodes.get(name)
            if old is not None and node is not None and _is_same(old, node):
                child = folder.children.get(name) if old[0] & KIND == FOLDER else None
                if child is not None and child.offset >= 0:
                    stack.append((child, child.offset, unknown))  # stamps may differ in it
                continue
            child = folder.children.get(name)
            path = prefix + name
            found += _lost(path, old, node, folder, was)
            found += _compare(path, folder, old, node, unknown=unknown)
            inner = before.below(key, name) if _needs_key(key, old, node, child) else None  # type: ignore[arg-type]
            if child is not None:
                inner = child.offset if child.offset >= 0 else inner
                stack.append((child, inner, unknown or bool(old and old[1] & REASON)))
            elif inner is not None:
                found += _all_gone(path, inner, before, folder.mtime, _ways(folder, was))
    found.sort(key=lambda delta: delta.path)
    covered = [delta for delta in found if delta.loss is None]
    _find_renames(covered)
    return covered, [delta for delta in found if delta.loss is not None]


def _is_same(old: "State", node: "Node") -> bool:
    """Whether nothing happened to an entry, nor to anything below it."""
    same = old[2] == node.strong and old[0] == node.mode
    return same and not (old[1] | node.flags) & REASON


def facts(found: "Sequence[Delta]", authors: "Sequence[Author]") -> "dict[str, Json]":
    """Deltas, losses and their authors as events tell them, each author once."""
    known = {author: number for number, author in enumerate(dict.fromkeys(authors))}
    pairs = [(delta, known[author]) for delta, author in zip(found, authors, strict=True)]
    told: dict[str, Json] = {
        "authors": [_author_facts(author) for author in known],
        "deltas": [_delta_facts(delta, by) for delta, by in pairs if delta.loss is None],
    }
    lost: list[Json] = [_loss_facts(d.loss, by) for d, by in pairs if d.loss is not None]
    return {**told, "losses": lost} if lost else told


def _loss_facts(loss: "Loss", author: int) -> "Json":
    path, source = (path_text(raw) for raw in (loss.raw_path, loss.source))
    numbers = (loss.is_folder, loss.size, loss.entries)
    return [path, loss.what, author, loss.reason, *numbers, source]


def _author_facts(author: "Author") -> "Json":
    place = (author.session or None, author.turn or None, author.step or None)
    return [author.who, author.how, *place, list(author.sessions)]


def _delta_facts(delta: Delta, author: int) -> "Json":
    """Path, verb and author; and where a renamed file was, or why a path is not covered."""
    path = path_text(delta.path)
    if delta.verb == words.OMIT:
        return [path, delta.verb, author, words.word(delta.strong[0])]
    if delta.origin is not None:
        return [path, delta.verb, author, path_text(delta.origin)]
    return [path, delta.verb, author]


def _needs_key(
    key: "Key | None", old: "State | None", node: "Node | None", child: "Folder | None"
) -> bool:
    """Whether what a captured folder held has to be looked up: it went, or was replaced."""
    if key is None or old is None or old[1] & REASON or old[0] & KIND != FOLDER:
        return False
    # What is in a folder that nobody may look into is unknown; that is not gone.
    stays = node is not None and (node.is_folder or node.reason not in (0, words.SPECIAL))
    return not stays or (child is not None and child.offset < 0)


def _compare(
    path: bytes, folder: "Folder", old: "State | None", node: "Node | None", *, unknown: bool
) -> "Iterator[Delta]":
    captured_before = old is not None and not old[1] & REASON
    if node is None:
        if captured_before and old is not None:
            yield _gone(path, old, folder.mtime)
        return
    verb = _verb(old if captured_before else None, node, unknown=unknown or old is not None)
    if captured_before and old is not None and node.reason == words.SPECIAL:
        # What was there is gone, and something without content took its place.
        yield _gone(path, old, folder.mtime)
    elif captured_before and old is not None and _is_shut(old, node):
        yield Delta(path, words.MODE, time=_stamps(folder, node))
    elif node.reason and (old is None or captured_before):
        yield Delta(path, words.OMIT, strong=bytes([node.reason]), time=_stamps(folder, node))
    elif not node.reason and verb:
        yield Delta(path, verb, strong=node.strong, time=_stamps(folder, node))


def _is_shut(old: "State", node: "Node") -> bool:
    """Whether somebody took away the right to read an entry."""
    return node.reason == words.UNREADABLE and old[0] & KIND == node.mode & KIND


def _verb(old: "State | None", node: "Node", *, unknown: bool) -> str:
    """What happened to an entry that is captured now; empty if nothing did."""
    kind = node.mode & KIND
    if old is None:
        # What was there but not covered did not come into being; it is unknown, not absent.
        new = words.WRITE if unknown else words.CREATE
        return words.MKDIR if kind == FOLDER else words.RELINK if kind == LINK else new
    if old[0] & KIND != kind:
        return {FOLDER: words.MKDIR, LINK: words.RELINK}.get(kind, words.WRITE)
    if kind != FOLDER and old[2] != node.strong:
        return words.RELINK if kind == LINK else words.WRITE
    return words.MODE if (old[0] ^ node.mode) & 0o7777 else ""


def _stamps(folder: "Folder", node: "Node") -> "tuple[int, int] | None":
    if not node.is_folder:
        return node.mtime, node.ctime
    child = folder.children.get(node.name)
    return (child.mtime, child.ctime) if child is not None else None


def _all_gone(
    path: bytes, key: "Key", before: "Before", latest: int, ways: "Ways"
) -> "Iterator[Delta]":
    """Everything that was below a folder that is no more."""
    stack = [(path, key, ways)]
    while stack:
        above, key, ways = stack.pop()
        entries = before.entries(key)
        here: Ways = [(above, set(entries)), *ways]
        for name, old in entries.items():
            below = above + b"/" + name
            if old[1] & REASON:
                if old[1] & REASON in _CAN_BE_LOST:
                    yield _loss(below, losses.GONE, old, here, latest=latest)
                continue
            yield _gone(below, old, latest)
            inner = before.below(key, name) if old[0] & KIND == FOLDER else None
            if inner is not None:
                stack.append((below, inner, here))


def _gone(path: bytes, old: "State", latest: int) -> Delta:
    kind = old[0] & KIND
    verb = words.RMDIR if kind == FOLDER else words.DELETE
    # Only files are taken for moved: what a link said may stand in a file by chance.
    return Delta(path, verb, strong=old[2] if kind == REGULAR else b"", latest=latest)


_CAN_BE_LOST = frozenset(
    (
        words.VERSION_CONTROL,
        words.SPECIAL,
        words.UNREADABLE,
        words.TOO_LARGE,
        words.REBUILDABLE,
        words.IGNORED,
        words.ANOTHER_PROJECT,
    )
)
_COUNTED = (words.REBUILDABLE, words.IGNORED)


def _lost(
    path: bytes, old: "State | None", node: "Node | None", folder: "Folder", was: "Iterable[bytes]"
) -> "list[Delta]":
    """What happened to an entry that was left out, if what it held is lost."""
    if old is None or not old[1] & REASON:
        return []
    what = _what(old, node, folder.children.get(node.name) if node is not None else None)
    if not what:
        return []
    if node is None:
        return [_loss(path, what, old, _ways(folder, was), latest=folder.mtime)]
    return [_loss(path, what, old, _ways(folder, was), time=_stamps(folder, node))]


def _what(old: "State", node: "Node | None", child: "Folder | None" = None) -> str:
    """What became of something that was left out; nothing, if it is as it was.

    Files are compared by size and time, folders by their inode: what is in them is not looked at.
    A folder that is captured by now, `child`, was counted whole.
    """
    mode, flags, _, stamps = old
    reason = flags & REASON
    if reason not in _CAN_BE_LOST:
        return ""
    if node is None:
        return losses.GONE
    if stamps is None or not node.mode or reason in (words.VERSION_CONTROL, words.SPECIAL):
        return ""
    if mode & KIND != node.mode & KIND:
        return losses.REPLACED
    if mode & KIND == FOLDER:
        return _of_folder(stamps, node, child, is_counted=reason in _COUNTED)
    return _of_file(stamps, node)


def _of_file(stamps: "Stamps", node: "Node") -> str:
    inode, size, mtime, _ = stamps
    if (size, mtime) == (node.size, node.mtime):
        return ""
    grew = node.reason and inode == node.inode and node.size >= size
    return losses.CHANGED if grew else losses.REPLACED


def _of_folder(stamps: "Stamps", node: "Node", child: "Folder | None", *, is_counted: bool) -> str:
    inode, _, _, oid = stamps
    if inode != (child.inode if child is not None else node.inode):
        return losses.REPLACED
    if child is None or not is_counted:
        return ""
    entries, size = folders.seen(oid)
    is_less = child.entries_below < entries or child.bytes_below < size
    return losses.SHRUNK if is_less else ""


def _loss(
    path: bytes,
    what: str,
    old: "State",
    ways: "Ways",
    *,
    time: "tuple[int, int] | None" = None,
    latest: "int | None" = None,
) -> Delta:
    mode, flags, _, stamps = old
    reason, is_folder = flags & REASON, mode & KIND == FOLDER
    size = entries = None
    if stamps is not None and not is_folder:
        size = stamps[1]
    elif stamps is not None and reason in _COUNTED:
        entries, size = folders.seen(stamps[3])
    source = losses.find_source(path.rpartition(b"/")[2], ways) if is_folder else b""
    loss = losses.Loss(path, what, words.word(reason), is_folder, size, entries, source)
    verb = words.DELETE if what == losses.GONE else words.WRITE
    return Delta(path, verb, time=time, latest=latest, loss=loss)


def _ways(folder: "Folder", was: "Iterable[bytes]") -> "Ways":
    """The folders above an entry of `folder`, with what is and what was in the nearest."""
    ways: Ways = [(folder.path(), {*was, *folder.nodes})]
    above = folder.parent
    while above is not None:
        ways.append((above.path(), set(above.nodes)))
        above = above.parent
    return ways


def _find_renames(found: "list[Delta]") -> None:
    """Note where a new file came from, when just one that went held the same bytes."""
    gone: dict[bytes, list[Delta]] = {}
    for delta in found:
        if delta.verb == words.DELETE:
            gone.setdefault(delta.strong, []).append(delta)
    if not gone:
        return
    came: dict[bytes, list[Delta]] = {}
    for delta in found:
        if delta.verb == words.CREATE and delta.strong in gone:
            came.setdefault(delta.strong, []).append(delta)
    for strong, new in came.items():
        if len(new) == 1 and len(gone[strong]) == 1 and strong != _EMPTY:
            new[0].origin = gone[strong][0].path


_EMPTY = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""The hash of no bytes: two empty files have nothing to do with each other."""


def owner_facts(folders: "Iterable[Folder]", descent: "Descent") -> "list[Json]":
    """Path, owner and group of each setuid or setgid file in folders that changed."""
    found: list[Json] = []
    for folder in folders:
        for node in folder.nodes.values() if folder.changed else ():
            if node.mode & SETUID and node.mode & KIND == REGULAR and not node.reason:
                found += _facts(folder, node, descent)
    return found


def _facts(folder: "Folder", node: "Node", descent: "Descent") -> "list[Json]":
    try:
        now = os.stat(node.name, dir_fd=descent.open(folder.way()), follow_symlinks=False)
    except OSError:
        return []
    if (now.st_ino, now.st_ctime_ns, now.st_mode) != (node.inode, node.ctime, node.mode):
        return []  # not what was captured
    path = path_text(folder.path_of(node.name))
    return [[path, now.st_uid, now.st_gid]]


def captured(ledger: "Ledger") -> "dict[bytes, Owner]":
    """Whose each setuid or setgid file was; not those that were of several, one after the other."""
    found: dict[bytes, set[Owner]] = {}
    for event in ledger.events_of(CHECKPOINT_TAKEN):
        said: Any = event.payload or {}
        for path, uid, gid in said.get("owners", ()):
            found.setdefault(path_bytes(path), set()).add((uid, gid))
    return {path: owner for path, (owner, *others) in found.items() if not others}
