"""Where rescued files lie: folders of ours on the disk of what was saved, and a list in the store.

    STORE/rescue/ID.list               what a rescue holds: one line of JSON; for a moment also the
                                       one before, ID.list.old
    STORE/rescue/ID/NUMBER             its files, if the store is on their disk; also copies
    BESIDE/.takeback-rescue-PROJECT/ID/NUMBER   else: 0700, and never in what is destroyed

The ledger knows the hash of the list. What no row of the ledger speaks of was left by a process
that died.
"""

import os
import stat
from hashlib import sha256

from takeback.disk import home, operations
from takeback.errors import DamagedStoreError
from takeback.model import ids
from takeback.model.text import json_text
from takeback.model.tree import KIND, REGULAR, is_safe_name
from takeback.model.value import Value, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from takeback.ledger.beyond.rescues import RescueRow
    from takeback.model.text.json_text import Json
    from takeback.store import Store

LIMIT, COPY_LIMIT = 20_000_000_000, 1_000_000_000
"""Bytes: of all areas, and of what one command may have copied. Links cost nothing at first."""
_LIST = b".list"
_OLD = b".old"
_IGNORE = b"/.gitignore"
_LONGEST = 1 << 28
_CHUNK = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Held(Value):
    """One path that was saved. `mode` has its kind; `target` is where a link leads.

    Of a file: the number of its area and its `name` there, how it was saved, and what tells
    whether it is still what was saved: `size`, `mtime`, and of a small one the hash, `strong`.
    `left` are the stamps of what the command left in its place, if anything.
    `device` and `inode` are those of what had the path. `top` is the number of the path by which
    the command named it.
    """

    path: bytes
    mode: int
    uid: int
    gid: int
    top: int
    device: int
    inode: int
    size: int = 0
    mtime: int = 0
    area: int = -1
    name: bytes = b""
    how: str = ""
    target: bytes = b""
    left: str = ""
    strong: str = ""

    @property
    def kind(self) -> int:
        """What it is."""
        return self.mode & KIND


class Listing(Value):
    """All that a rescue holds: the paths that were named, and what was saved of them.

    `git` are repositories whose state was copied: their folders, each with the number of its copy.
    """

    tops: "tuple[bytes, ...]"
    held: "tuple[Held, ...]"
    git: "tuple[tuple[bytes, int], ...]" = ()

    def encode(self) -> bytes:
        """As a line of JSON."""
        said: dict[str, Json] = {
            "tops": [path_text(top) for top in self.tops],
            "held": [_facts(each) for each in self.held],
            "git": [[path_text(folder), top] for folder, top in self.git],
        }
        return json_text.dumps(said).encode() + b"\n"


def decode(data: bytes) -> Listing:
    """A list as `encode` wrote it; ValueError, TypeError or LookupError for anything else."""
    said: Any = json_text.loads(data.decode().removesuffix("\n"))
    return Listing(
        tuple(map(_bytes, said["tops"])),
        tuple(_held(*facts) for facts in said["held"]),
        tuple((_bytes(folder), int(top)) for folder, top in said["git"]),
    )


def _facts(each: Held) -> "Json":
    texts = [path_text(each.name), each.how, path_text(each.target), each.left]
    texts.append(each.strong)
    numbers = [each.mode, each.uid, each.gid, each.top, each.device, each.inode]
    return [path_text(each.path), *numbers, each.size, each.mtime, each.area, *texts]


def _held(path: str, *facts: "Any") -> Held:  # noqa: ANN401 - as JSON gave it
    *numbers, name, how, target, left, strong = facts
    if len(numbers) != 9 or not _is_name(_bytes(name)):
        raise ValueError(name)
    texts: list[Any] = [_bytes(name), str(how), _bytes(target), str(left), str(strong)]
    return Held(*[_bytes(path), *map(int, numbers), *texts])


def _is_name(name: bytes) -> bool:
    return not name or all(map(is_safe_name, name.split(b"/")))


# -- the store's side ------------------------------------------------------------------------


def number(setting: "Callable[[str, str, object], object]", name: str, default: int) -> int:
    """A setting of the rescue, in bytes."""
    found = setting("rescue", name, default)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def in_store(store: "Store") -> bytes:
    """The area in the store."""
    return store.path + b"/rescue"


def beside(folder: bytes, project: str) -> bytes:
    """The area of a project in a folder."""
    return os.path.join(folder, ids.AREA + project.encode())


def _list_path(store: "Store", id: str) -> bytes:
    return in_store(store) + b"/" + id.encode() + _LIST


def write(store: "Store", id: str, listing: Listing) -> str:
    """Make the list of a rescue durable; its hash. The one before stays until `forget_old`."""
    data, path = listing.encode(), _list_path(store, id)
    require(in_store(store))
    if os.path.lexists(path):
        before = home.read_small(path, limit=_LONGEST)
        home.replace_file(path + _OLD, before, durable=True)
    home.replace_file(path, data, durable=True)
    return sha256(data).hexdigest()


def forget_old(store: "Store", row: "RescueRow") -> None:
    """Keep of two lists only the one that the ledger knows."""
    path = _list_path(store, row.id)
    if not os.path.lexists(path + _OLD):
        return
    if _read_list(path, row.digest) is None:
        old = _read_list(path + _OLD, row.digest)
        if old is None:
            return
        home.replace_file(path, old, durable=True)
    operations.discard(path + _OLD)


def _read_list(path: bytes, digest: str) -> "bytes | None":
    data = home.read_small(path, limit=_LONGEST)
    return data if sha256(data).hexdigest() == digest else None


def read(store: "Store", row: "RescueRow") -> Listing:
    """The list of a rescue, as it was written."""
    path = _list_path(store, row.id)
    data = _read_list(path, row.digest)
    if data is None:  # a process may have died before the ledger knew of the new one
        data = _read_list(path + _OLD, row.digest)
    if data is None:
        raise DamagedStoreError(f"the list of the rescue `{row.id[:8]}` is missing or damaged")
    try:
        return decode(data)
    except (ValueError, TypeError, LookupError):
        raise DamagedStoreError(f"the list of the rescue `{row.id[:8]}` cannot be read") from None


def require(path: bytes) -> None:
    """Make an area, or see that the one that is there is a folder of ours that others cannot open.

    OSError or UnsafeStoreError if it is not.
    """
    if home.require_private(path):
        return
    home.make_folder(path)
    if ids.is_area(os.path.basename(path)):
        home.replace_file(path + _IGNORE, b"*\n", durable=False)


# -- files -----------------------------------------------------------------------------------


def open_file(areas: "Sequence[bytes]", held: Held, id: str) -> int:
    """A rescued file, open to be read."""
    path = os.path.join(areas[held.area], id.encode(), held.name)
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(2, "not a file any more", path)
    return fd


def content(areas: "Sequence[bytes]", held: Held, id: str, most: int) -> bytes:
    """What a small rescued file holds."""
    fd = open_file(areas, held, id)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


SMALL = 1 << 16
"""Bytes of a file whose hash is kept, too: stamps can be set back."""


def small_hash(areas: "Sequence[bytes]", held: Held, id: str) -> str:
    """The hash of a small rescued file; empty for a large one, or one that moved already."""
    if held.kind != REGULAR or held.size > SMALL:
        return ""
    fd = open_file(areas, held, id)
    try:
        is_it = is_intact(os.fstat(fd), held)
        return sha256(os.read(fd, SMALL + 1)).hexdigest() if is_it else ""
    finally:
        os.close(fd)


_checked: "dict[tuple[bytes, str], bytes]" = {}
"""The hashes of files that were read, with their stamps: a plan is made more than once."""


def checked(areas: "Sequence[bytes]", held: Held, id: str) -> "tuple[bytes, bytes]":
    """Where a rescued file lies, and the hash of what it holds; an error if it was changed."""
    fd = open_file(areas, held, id)
    try:
        found = os.fstat(fd)
        path = os.path.join(areas[held.area], id.encode(), held.name)
        if not is_intact(found, held):
            raise DamagedStoreError("a rescued file was changed")
        key = path, stamp(found)
        if key not in _checked:
            strong = sha256()
            while chunk := os.read(fd, _CHUNK):
                strong.update(chunk)
            if not is_intact(os.fstat(fd), held):
                raise DamagedStoreError("a rescued file was changed")
            if held.strong not in ("", strong.hexdigest()):
                raise DamagedStoreError("a rescued file was changed")
            _checked[key] = strong.digest()
        return path, _checked[key]
    finally:
        os.close(fd)


def stamp(found: os.stat_result) -> str:
    """What tells whether a file is still the same, as text."""
    times = found.st_mtime_ns, found.st_ctime_ns
    return " ".join(map(str, (found.st_dev, found.st_ino, found.st_mode, found.st_size, *times)))


def is_intact(found: os.stat_result, held: Held) -> bool:
    """Whether a rescued file is what was saved, as far as its stamps tell.

    Who knows another name of a linked file can still write to it: that moves its times.
    """
    return (found.st_size, found.st_mtime_ns) == (held.size, held.mtime)


def empty(areas: "Iterable[bytes]", id: str) -> None:
    """Remove all files of a rescue, wherever they lie; what is not reached stays for the next."""
    for area in areas:
        remove_tree(os.path.join(area, id.encode()))
        _remove_if_empty(area)


def discard(path: bytes) -> None:
    """Remove one rescued file; a failure leaves litter and nothing worse."""
    operations.discard(path)


def forget_list(store: "Store", id: str) -> None:
    """Remove the list of a rescue that holds nothing any more."""
    path = _list_path(store, id)
    operations.discard(path)
    if os.path.lexists(path + _OLD):
        operations.discard(path + _OLD)


def remove_tree(path: bytes) -> None:
    """Remove a folder of ours with all that is in it, as far as that can be done."""
    try:
        fd = os.open(path, _DIRECTORY)
    except OSError:
        return
    try:
        with os.scandir(fd) as found:
            names = [(os.fsencode(each.name), each.is_dir(follow_symlinks=False)) for each in found]
        for name, is_folder in names:
            if is_folder:
                remove_tree(os.path.join(path, name))
            else:
                operations.unlink(name, dir_fd=fd)
        operations.rmdir(path)
    except OSError:
        return
    finally:
        os.close(fd)


def _remove_if_empty(area: bytes) -> None:
    try:
        if ids.is_area(os.path.basename(area)) and os.listdir(area) == [_IGNORE[1:]]:
            operations.unlink(area + _IGNORE)
            operations.rmdir(area)
    except OSError:
        return


def sweep(store: "Store", areas: "Iterable[bytes]", known: "Iterable[str]") -> int:
    """Remove what no row of the ledger speaks of; how many rescues that was."""
    kept, count = set(known), 0
    for area in {in_store(store), *areas}:
        for id in strays(area, kept):
            remove_tree(os.path.join(area, id.encode()))
            forget_list(store, id)
            count += 1
        _remove_if_empty(area)
    _remove_drafts(in_store(store))
    return count


def remove_unlisted(row: "RescueRow", listing: Listing) -> None:
    """Remove files of a rescue that its list no longer names: a process died before it did."""
    kept: dict[int, set[bytes]] = {}
    for each in listing.held:
        if each.name:
            kept.setdefault(each.area, set()).add(each.name)
    for number, area in enumerate(row.areas):
        top = os.path.join(area, row.id.encode())
        for folder, _, names in os.walk(top):
            paths = (os.path.join(folder, name) for name in names)
            for path in paths:
                if path[len(top) + 1 :] not in kept.get(number, ()):
                    discard(path)


def _remove_drafts(area: bytes) -> None:
    """Remove lists that were not finished; they name files."""
    try:
        names = os.listdir(area)
    except OSError:
        return
    for name in names:
        if _LIST + b"." in name and name.endswith(b".tmp"):
            operations.discard(os.path.join(area, name))


def strays(area: bytes, known: "Iterable[str]") -> "Iterator[str]":
    """The ids of rescues in an area that nobody knows."""
    try:
        names = sorted(map(os.fsencode, os.listdir(area)))
    except OSError:
        return
    kept = set(known)
    seen: set[str] = set()
    for name in names:
        id = name.removesuffix(_LIST).decode("ascii", "replace")
        if len(id) == ids.LENGTH and ids.is_prefix(id) and id not in kept | seen:
            seen.add(id)
            yield id


def own_bytes(areas: "Sequence[bytes]", id: str, held: "Iterable[Held]") -> int:
    """The bytes on disk of rescued files that have no other name any more."""
    total = 0
    for each in held:
        if each.kind != REGULAR:
            continue
        try:
            found = os.lstat(os.path.join(areas[each.area], id.encode(), each.name))
        except OSError:
            continue
        if found.st_nlink == 1:
            total += found.st_blocks * 512
    return total


def _bytes(text: object) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")
