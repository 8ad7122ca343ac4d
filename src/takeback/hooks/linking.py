"""Write the file that the next hook starts from (`takeback.linked`).

A hook does it after it has answered, if a module was lacking: it was never asked for before, its
source changed, or there is no file. So the file has what hooks really need here. Nobody depends
on it: if it cannot be written, there is none.
"""

import os
import sys
from _frozen_importlib_external import SourceFileLoader, cache_from_source
from _imp import source_hash
from marshal import dumps, loads

from takeback import linked
from takeback.store import fsops
from takeback.store.fsclock import COARSE, FINE, FsClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from takeback.linked import Linked, Piece, Stored

EACH_EVENT = (
    "takeback.hooks.hearing",
    "takeback.errors",
    "takeback.project",
    "takeback.hooks.conversations",
    "takeback.hooks.witness",
    "takeback.recording",
    "takeback.store.objects",
)
"""What every event imports in the end."""
EACH_CHANGE = (
    "takeback.store.packwrite",
    "takeback.engine.describe",
    "takeback.engine.reading",
    "takeback.engine.deltas",
    "takeback.engine.windows",
)
"""What an event imports as well that finds changed files. With the first all are linked."""
_SECOND = 1_000_000_000
_LONG_AGO = 60 * _SECOND


def renew(known: "Linked") -> None:
    """Write the file anew with what was lacking, where that is wanted and allowed."""
    if sys.dont_write_bytecode:
        return
    mine = f"{known.path}.{os.getpid()}"
    try:
        fd = fsops.create(mine, mode=0o644)  # first: where this fails, the rest is for nothing
    except OSError:
        return
    try:
        try:
            clock = _clock(fd, known.folder)
            data = _renewed(known, clock)
            fsops.write(fd, data)
        finally:
            os.close(fd)
        if data:
            fsops.rename(mine, known.path)
        else:
            fsops.discard(mine)
        _tidy(known.path, clock.now())
    except (OSError, ValueError, SyntaxError):
        fsops.discard(mine)


class _Codes:
    """What stands behind the index."""

    __slots__ = ("_places", "_size", "all")

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self._places: dict[Stored, int] = {}
        self._size = 0

    def store(self, code: bytes) -> "Stored":
        """Add something; where it is."""
        stored = self._size, len(code), source_hash(linked.KEY, code)
        self._places[stored] = len(self.all)
        self.all.append(code)
        self._size += len(code)
        return stored

    def read(self, stored: "Stored") -> bytes:
        """What is stored there."""
        return self.all[self._places[stored]]


def _clock(fd: int, folder: str) -> FsClock:
    """The time of the sources' file system, read off a file that was made just now."""
    found = os.fstat(fd)
    is_fine = found.st_ctime_ns % _SECOND and found.st_dev == os.stat(folder).st_dev
    return FsClock(found.st_ctime_ns, FINE if is_fine else COARSE)


def _renewed(known: "Linked", clock: FsClock) -> bytes:
    """The bytes of the file; empty if it would be as it is."""
    sources = {name: _source(known.folder, name) for name in {*known.pieces, *known.lacking}}
    others = {*known.others, *(name for name in sources if not sources[name])}
    identities = {
        name: linked.identity_of(known.folder + source)
        for name, source in sources.items()
        if source
    }
    # What is too young may be changed once more without getting another time.
    settled = [name for name, found in identities.items() if not clock.is_racy(*found[1:3])]
    if known.lacking.isdisjoint(settled) and len(others) == len(known.others):
        return b""
    codes, pieces = _Codes(), {}
    for name in sorted(settled):
        path = known.folder + sources[name]
        stored, needs = codes.store(_code(known, name, path)), _needs(path, identities)
        pieces[name] = stored, sources[name], identities[name], needs
    chains, before = {}, set[str]()
    for names in (EACH_EVENT, EACH_CHANGE):
        order = tuple(name for name in _in_order(names, pieces) if name not in before)
        before.update(order)
        chain = dumps(tuple(loads(codes.read(pieces[name][0])) for name in order))
        chains[names[0]] = codes.store(chain), order
    index = dumps((pieces, tuple(sorted(others)), chains))
    head = (
        linked.mark(known.folder)
        + len(index).to_bytes(8, "little")
        + source_hash(linked.KEY, index)
    )
    return b"".join((head, index, *codes.all))


def _source(folder: str, name: str) -> str:
    """The file below the package that a module is made from; empty if it is made otherwise."""
    path = "/" + name.partition(".")[2].replace(".", "/")
    return next((p for p in (path + ".py", path + linked.INIT) if os.path.exists(folder + p)), "")


def _code(known: "Linked", name: str, path: str) -> bytes:
    """The compiled code of a module: what the file has, what Python has, or made anew."""
    data = known.read(known.pieces[name][0]) if known.is_current(name) else None
    if data is not None:
        return data
    loader = SourceFileLoader(name, path)
    if _is_newer(cache_from_source(path), path):
        return dumps(loader.get_code(name))
    return dumps(loader.source_to_code(loader.get_data(path), path))


def _is_newer(compiled: str, path: str) -> bool:
    """Whether compiled code is from a later second than the last change of its source.

    Python compares whole seconds: of a source that changed twice within one it has old code.
    """
    try:
        found = os.stat(path)
        changed = max(found.st_mtime_ns, found.st_ctime_ns)
        return os.stat(compiled).st_mtime_ns // _SECOND > changed // _SECOND
    except OSError:
        return False


def _needs(path: str, names: "Collection[str]") -> "tuple[str, ...]":
    """Which of these modules one imports when it is run, as far as the starts of its lines tell.

    What is not seen here is imported when the module asks for it.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read().replace("(\n", "")
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("from takeback"):
            _, above, _, *leaves = line.replace(",", " ").split()
            found += above, *(f"{above}.{leaf}" for leaf in leaves)
    return tuple(name for name in dict.fromkeys(found) if name in names)


def _in_order(names: "Iterable[str]", pieces: "Mapping[str, Piece]") -> "tuple[str, ...]":
    """These modules and all that they need, each behind those that it needs."""
    found: dict[str, None] = {}
    begun: set[str] = set()

    def add(name: str) -> None:
        if name in pieces and name not in begun:
            begun.add(name)
            for need in pieces[name][3]:
                add(need)
            found[name] = None

    for name in names:
        add(name)
    return tuple(found)


def _tidy(path: str, now: int) -> None:
    """Remove what hooks left behind that were killed while they wrote."""
    folder, _, name = path.rpartition("/")
    for entry in os.listdir(folder):
        left = f"{folder}/{entry}"
        if entry.startswith(name + ".") and os.stat(left).st_mtime_ns < now - _LONG_AGO:
            fsops.discard(left)
