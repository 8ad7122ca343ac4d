"""What is left out: the limits, their defaults, and the rules that apply them.

Limits bind discovery. What was captured once stays captured, and what git tracks is never
left out. `docs/limits.md` gives the reason for each default.
"""

import os

from takeback.errors import UsageError
from takeback.model import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.store.ignore import IgnoreRules

ENTRIES = 200
BYTES = 10 * 1024 * 1024
FILE = 16 * 1024 * 1024
REBUILDABLE = frozenset(
    (
        b".cache", b".eggs", b".gradle", b".mypy_cache", b".next", b".nox", b".nuxt",
        b".parcel-cache", b".pytest_cache", b".ruff_cache", b".svelte-kit", b".terraform",
        b".tox", b".turbo", b".venv", b".yarn", b"DerivedData", b"Pods", b"__pycache__",
        b"bower_components", b"build", b"dist", b"node_modules", b"obj", b"target", b"venv",
    )
)  # fmt: skip


class Limits:
    """The limits of one project; `Limits()` has the defaults."""

    __slots__ = ("bytes", "entries", "file", "rebuildable")

    def __init__(
        self,
        entries: int = ENTRIES,
        bytes: int = BYTES,
        file: int = FILE,
        rebuildable: "frozenset[bytes]" = REBUILDABLE,
    ) -> None:
        self.entries = entries
        self.bytes = bytes
        self.file = file
        self.rebuildable = rebuildable

    def fingerprint(self) -> bytes:
        """Changes when any limit does, so that a stat cache made under others is not used."""
        names = b"/".join(sorted(self.rebuildable))
        return b"%d %d %d %s" % (self.entries, self.bytes, self.file, names)


class LimitRules:
    """The limits applied to one tree. Git's index and ignore files are read when first needed."""

    def __init__(
        self,
        limits: Limits,
        *,
        was_captured: "Callable[[bytes], bool]",
        tracked: "Callable[[], frozenset[bytes]]",
        ignored: "Callable[[], IgnoreRules]",
    ) -> None:
        self.entry_limit = limits.entries
        self.byte_limit = limits.bytes
        self.file_limit = limits.file
        self._names = limits.rebuildable
        self._was_captured = was_captured
        self._read_tracked = tracked
        self._tracked: frozenset[bytes] | None = None
        self._tracked_folders: set[bytes] = set()
        self._make_ignored = ignored
        self._ignored: IgnoreRules | None = None

    def is_rebuildable(self, name: bytes) -> bool:
        """Whether a folder of this name can be made again."""
        return name in self._names

    def keeps(self, path: bytes) -> bool:
        """Whether something is captured in any case: it was before, or somebody wants it."""
        return self._was_captured(path)

    def leaves_out_folder(self, path: bytes) -> int:
        """The reason to leave out a folder that is over a limit, or 0."""
        if self._was_captured(path):
            return 0
        if path.rsplit(b"/", 1)[-1] in self._names:
            reason = reasons.REBUILDABLE
        elif self._is_ignored(path):
            reason = reasons.IGNORED
        else:
            return 0
        return 0 if self._holds_tracked(path) else reason

    def leaves_out_file(self, path: bytes) -> int:
        """The reason to leave out a file that is over the limit, or 0."""
        if self._was_captured(path) or path in self._tracked_files():
            return 0
        return reasons.TOO_LARGE

    def _is_ignored(self, path: bytes) -> bool:
        if self._ignored is None:
            self._ignored = self._make_ignored()
        return self._ignored.ignores_folder(path)

    def _tracked_files(self) -> "frozenset[bytes]":
        if self._tracked is None:
            self._tracked = self._read_tracked()
            for path in self._tracked:
                folder = os.path.dirname(path)
                while folder and folder not in self._tracked_folders:
                    self._tracked_folders.add(folder)
                    folder = os.path.dirname(folder)
        return self._tracked

    def _holds_tracked(self, path: bytes) -> bool:
        self._tracked_files()
        return path in self._tracked_folders


def from_settings(*layers: "Mapping[str, object]") -> Limits:
    """Limits from the tables `limits` of config files, later ones first."""
    limits = Limits()
    for layer in reversed(layers):
        for key, value in layer.items():
            if key == "rebuildable":
                limits.rebuildable = frozenset(_names(value))
            elif key in ("entries", "bytes", "file"):
                setattr(limits, key, _positive(key, value))
            # What is no limit does nothing, and `takeback config` says so: a slip of a finger
            # must not end the protection.
    return limits


def _positive(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"the limit `{key}` must be a whole number, not {value!r}")
    return value


def _names(value: object) -> "list[bytes]":
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"the limit `rebuildable` must be a list of names, not {value!r}")
    return [os.fsencode(name) for name in value]
