r"""The compiled modules of a hook in one file, so that a hook that runs alone starts faster.

    file    mark, length of the index, its hash; index; code, code, …
    index   module: Piece; names that are no such modules; module: Chain that is linked with it

Most of what Python's own importing costs is to find a module, not to run it. Here a module comes
with the names of those it needs, and they are run one after the other without being looked for.
The file is a cache like `.pyc`: a module in it counts only while its source is the very same
file, unchanged, and what is missing, damaged or outdated is imported as usual. `hooks.linking`
writes it. Imported before everything else, so it imports almost nothing itself.
"""

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader, cache_from_source
from _imp import source_hash
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

    Stored = tuple[int, int, bytes]
    """Where something begins behind the index, its length and its hash."""
    Identity = tuple[int, int, int]
    Piece = tuple[Stored, str, Identity, tuple[str, ...]]
    """The code of a module, its source below the folder, how that was, which modules it needs."""
    Chain = tuple[Stored, tuple[str, ...]]
    """Modules that are needed together: their code once more, in one piece and a good order."""

MAGIC = b"takeback-linked-1 " + MAGIC_NUMBER
HEAD = len(MAGIC) + 24
"""Bytes before the index: the mark, its length and its hash."""
KEY = int.from_bytes(MAGIC_NUMBER, "little")
"""Of the hashes. They tell damage, not malice: who may write here may change the source."""
_STANDARD = 3
"""Descriptors that a process is started with, unless its parent has closed them."""
_LONGEST_INDEX = 1 << 24
INIT = "/__init__.py"
_BELOW = __name__.rpartition(".")[0] + "."


class Linked:
    """Finds modules in the file for Python's importing, with those that they need."""

    __slots__ = ("_behind", "_fd", "chains", "folder", "lacking", "others", "path", "pieces")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = cache_from_source(folder + "/hook.py").removesuffix("pyc") + "linked"
        self.pieces: dict[str, Piece] = {}
        self.others: tuple[str, ...] = ()
        self.chains: dict[str, Chain] = {}
        self.lacking: set[str] = set()
        """The modules that were asked for, and are not to be had from the file."""
        self._fd = -1
        self._behind = 0

    def open(self) -> None:
        """Open the file. Without one, or with one that is not whole, everything is lacking."""
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            if self._fd < _STANDARD:
                self.close()  # nobody may take it for what an agent says
                return
            head = os.read(self._fd, HEAD)
            length = int.from_bytes(head[-16:-8], "little")
            if head[:-16] == mark(self.folder) and length < _LONGEST_INDEX:
                index = os.read(self._fd, length)
                if source_hash(KEY, index) == head[-8:]:
                    self.pieces, self.others, self.chains = loads(index)
                    self._behind = HEAD + len(index)
        except OSError:
            return

    def close(self) -> None:
        """From now on everything is imported as usual."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self._fd >= 0:
            os.close(self._fd)
        self.pieces, self.chains, self._fd = {}, {}, -1

    def is_current(self, name: str) -> bool:
        """Whether the source of a module is still the one that its code was made of."""
        piece = self.pieces.get(name)
        try:
            return piece is not None and identity_of(self.folder + piece[1]) == piece[2]
        except OSError:
            return False

    def read(self, stored: "Stored") -> "bytes | None":
        """What is stored at a place; None if it is damaged."""
        start, length, digest = stored
        try:
            data = os.pread(self._fd, length, self._behind + start)
        except OSError:
            return None
        return data if source_hash(KEY, data) == digest else None

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """What Python's importing asks for each module: how to load it, if it is from here."""
        del path, target
        if not name.startswith(_BELOW):
            return None
        data = self.read(self.pieces[name][0]) if self.is_current(name) else None
        if data is not None:
            return self._spec(name, data)
        if name not in self.others:
            self.lacking.add(name)
        return None

    def link(self, names: "Iterable[str]") -> None:
        """Import these modules, and those that they need, unless they are there."""
        for name in names:
            if name not in sys.modules and self.is_current(name):
                data = self.read(self.pieces[name][0])
                if data is not None:
                    module = self._made(name)
                    self.link(self.pieces[name][3])
                    self._run([(module, loads(data))])

    def link_chain(self, first: str) -> None:
        """Import a module, and all that are needed together with it, at once."""
        stored, names = self.chains.get(first, ((0, 0, b""), ()))
        new = [name for name in names if name not in sys.modules]
        if not new or not all(map(self.is_current, names)):
            return
        data = self.read(stored)
        if data is None:
            self.lacking.update(names)
        else:
            codes = dict(zip(names, loads(data), strict=True))
            self._run([(self._made(name), codes[name]) for name in new])

    def _spec(self, name: str, data: bytes = b"") -> ModuleSpec:
        path = self.folder + self.pieces[name][1]
        spec = ModuleSpec(name, _Loader(self, name, path, data), origin=path)
        spec._set_fileattr = True  # type: ignore[attr-defined]  # as Python's own finder does
        if path.endswith(INIT):
            spec.submodule_search_locations = [path.removesuffix(INIT)]
        return spec

    def _made(self, name: str) -> "ModuleType":
        """A module as Python's importing makes it, before it is run."""
        spec = self._spec(name)
        module = sys.modules[name] = type(sys)(name)
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        module.__package__ = spec.parent
        if spec.submodule_search_locations is not None:
            module.__path__ = spec.submodule_search_locations
        return module

    def _run(self, modules: "Sequence[tuple[ModuleType, CodeType]]") -> None:
        """Run modules; if one fails, all of them are left to Python's own importing."""
        try:
            for module, _ in modules:
                above, _, leaf = module.__name__.rpartition(".")
                setattr(sys.modules[above], leaf, module)
            for module, code in modules:
                run(code, module)
        except Exception:  # noqa: BLE001 -- whatever it is, the usual way is tried
            self.close()
            for module, _ in reversed(modules):
                above, _, leaf = module.__name__.rpartition(".")
                sys.modules.pop(module.__name__, None)
                if above in sys.modules:
                    vars(sys.modules[above]).pop(leaf, None)


class _Loader(SourceFileLoader):
    """Loads a module from the file, and whatever else anybody asks from its source."""

    def __init__(self, linked: Linked, name: str, path: str, data: bytes) -> None:
        self.name = name
        self.path = path
        self._linked = linked
        self._data = data

    def exec_module(self, module: "ModuleType") -> None:
        """Run a module that somebody imports, and first those that it needs."""
        data, self._data = self._data, b""
        if not data:
            super().exec_module(module)  # once more, by `importlib.reload`
            return
        fresh = dict(vars(module))
        try:
            needs = self._linked.pieces[self.name][3]
            self._linked.link_chain(self.name)
            self._linked.link(needs)
            run(loads(data), module)
        except Exception:  # noqa: BLE001 -- whatever it is, the usual way is tried
            self._linked.close()
            vars(module).clear()
            vars(module).update(fresh)
            super().exec_module(module)


def run(code: "CodeType", module: "ModuleType") -> None:
    """Run the code of a module, under the name that its source has here."""
    if code.co_filename != module.__file__:
        from _imp import _fix_co_filename  # type: ignore[attr-defined]  # as Python itself does

        _fix_co_filename(code, module.__file__)
    exec(code, vars(module))


def identity_of(path: str) -> "Identity":
    """What changes when a file does: also its copy, and one put in its place, is another."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def mark(folder: str) -> bytes:
    """What a file begins with that is for this Python, and for this module as it is."""
    return MAGIC + source_hash(KEY, repr(identity_of(folder + "/linked.py")).encode())


current: "Linked | None" = None
"""What this process uses, if it is a hook."""


def begin(folder: str) -> None:
    """From now on, import the modules of the package in this folder from its file."""
    global current  # noqa: PLW0603 -- as Python's importing itself, it is there once
    current = Linked(folder)
    current.open()
    sys.meta_path.insert(0, current)


def end() -> None:
    """Import everything as usual: a process that stays must not go on with the file."""
    if current is not None:
        current.close()
