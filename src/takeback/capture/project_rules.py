"""What lies around a project's tree: settings, mounts, other projects, the user's git.

What is left out: the limits, their defaults, and the rules that apply them.

Limits bind discovery. What was captured once stays captured, and what git tracks is never
left out. `docs/limits.md` gives the reason for each default.
"""

import os
import time

from takeback.capture.checkpoint import Site
from takeback.disk import machine
from takeback.disk.home import settings_in
from takeback.errors import CaptureError, UsageError
from takeback.model import words
from takeback.worktree import stat_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from takeback.disk.home import Home, Root
    from takeback.worktree.ignore import IgnoreRules


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


_PASSING = (b"-wal", b"-shm", b"-journal")


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
        held: "Collection[bytes]" = (),
    ) -> None:
        self.entry_limit = limits.entries
        self.byte_limit = limits.bytes
        self.file_limit = limits.file
        self._names = limits.rebuildable
        self._held = frozenset(held)
        self.passing = frozenset(path for path in held if path.endswith(_PASSING))
        """What SQLite makes beside a participant's database and deletes again: not even listed."""
        self._held_names = frozenset(path.rsplit(b"/", 1)[-1] for path in held)
        self._was_captured = was_captured
        self._read_tracked = tracked
        self._tracked: frozenset[bytes] | None = None
        self._tracked_folders: set[bytes] = set()
        self._make_ignored = ignored
        self._ignored: IgnoreRules | None = None

    def is_rebuildable(self, name: bytes) -> bool:
        """Whether a folder of this name can be made again."""
        return name in self._names

    def may_hold(self, name: bytes) -> bool:
        """Whether files of this name may be of a participant."""
        return name in self._held_names

    def holds(self, path: bytes) -> bool:
        """Whether a file is of a participant, which moves it by itself."""
        return path in self._held

    def keeps(self, path: bytes) -> bool:
        """Whether something is captured in any case: it was before, or somebody wants it."""
        return self._was_captured(path)

    def leaves_out_folder(self, path: bytes) -> int:
        """The reason to leave out a folder that is over a limit, or 0."""
        if self._was_captured(path):
            return 0
        if path.rsplit(b"/", 1)[-1] in self._names:
            reason = words.REBUILDABLE
        elif self._is_ignored(path):
            reason = words.IGNORED
        else:
            return 0
        return 0 if self._holds_tracked(path) else reason

    def leaves_out_file(self, path: bytes) -> int:
        """The reason to leave out a file that is over the limit, or 0."""
        if self._was_captured(path) or path in self._tracked_files():
            return 0
        return words.TOO_LARGE

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


def from_settings(*layers: "Mapping[str, object]", report: "Callable[[str], None]") -> Limits:
    """Limits from the tables `limits` of config files, later ones first.

    What is no limit does nothing, and `takeback config` says so. A value that cannot be meant is
    reported, and does nothing either: a slip of a finger must not end the protection.
    """
    limits = Limits()
    for layer in reversed(layers):
        for key, value in layer.items():
            try:
                if key == "rebuildable":
                    limits.rebuildable = frozenset(_names(value))
                elif key in ("entries", "bytes", "file"):
                    setattr(limits, key, _positive(key, value))
            except UsageError as problem:
                report(str(problem))
    return limits


def _positive(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"the limit `{key}` must be a whole number, not {value!r}")
    return value


def _names(value: object) -> "list[bytes]":
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"the limit `rebuildable` must be a list of names, not {value!r}")
    return [os.fsencode(name) for name in value]


DATABASE_FILES = ("", *map(os.fsdecode, _PASSING))
"""How the names of the files of a SQLite database end."""

_STAMPS = 16
_DELETING = ("retention", "gc")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ProjectRules:
    """What a look at the tree of one project has to know besides the tree."""

    def __init__(self, root: "Root", home: "Home") -> None:
        self._root = root
        self._home = home
        self._limits: Limits | None = None
        self._held: dict[bytes, None] = {}
        self._held_by_settings: list[bytes] | None = None
        self._unread: dict[str, None] = {}
        self._changed: int | None = None
        """When something came into the folder or left it, as of the last look."""

    @property
    def root(self) -> bytes:
        """The folder of the project."""
        return self._root.path

    def records_output(self) -> bool:
        """Whether inputs and outputs of tools are recorded."""
        is_on = self.setting("record", "output", "on") not in ("off", False)
        return is_on and not self._unread  # what they call secret is not known then

    @property
    def unread_settings(self) -> "tuple[str, ...]":
        """What of the settings could not be read, so that defaults counted."""
        return tuple(self._unread)

    def report_setting(self, problem: str) -> None:
        """Note that something in the settings cannot be meant."""
        self._unread[problem] = None

    def secret_names(self) -> "tuple[str, ...]":
        """The names of files that the user's settings call secret, besides those known."""
        names = self.setting("secrets", "names", [])
        return tuple(map(str, names)) if isinstance(names, list) else ()

    def site(self) -> Site:
        """The project's folder, open for one look at it, for a `with` block."""
        root = self.open_root()
        try:
            return Site(
                root,
                self._rules,
                machine.mounts_below(self._root.path),
                self._strangers(),
                self.secret_names(),
            )
        except BaseException:
            os.close(root)
            raise

    def open_root(self) -> int:
        """The project's folder, open; it is the caller's to close."""
        fd = os.open(self._root.path, _DIRECTORY)
        if not self._is_ours(os.fstat(fd)):
            os.close(fd)
            where = os.fsdecode(self._root.path)
            raise CaptureError(
                f"`{where}` was replaced since the project was opened",
                hint="open it again",
            )
        return fd

    def _is_ours(self, found: os.stat_result) -> bool:
        if not self._root.is_folder(found):
            return False
        if self._changed != found.st_ctime_ns:
            from takeback import location

            if location.is_remade(self._home, self._root, found):
                return False
            self._changed = found.st_ctime_ns
        return True

    def _strangers(self) -> "dict[tuple[int, int], int]":
        """Folders inside this project that are not its own, by device and inode."""
        inside = self._root.path + b"/"
        found = {}
        for root in self._home.roots():
            # A disk that is mounted again may have another number.
            is_inside = root.path.startswith(inside) and not root.detached
            stamp = _stamp(root.path)[:2] if is_inside else ()
            if len(stamp) == 2 and stamp[1] == root.inode:
                found[stamp[0], stamp[1]] = words.ANOTHER_PROJECT
        home = os.stat(self._home.path)
        found[home.st_dev, home.st_ino] = words.STORE
        return found

    def mark(self, site: Site) -> bytes:
        """What a stat cache must have been written for to be believed."""
        root = (self._root.device, self._root.inode)
        places = [*(site.mounts or ()), *(b"%d %d" % known for known in site.strangers)]
        limits = self._read_limits().fingerprint()
        return stat_cache.identity(self._root.id, root, [*places, *self._files_held()], limits)

    def _read_limits(self) -> Limits:
        """The limits of what is captured: the project's own, else the user's, else ours."""
        if self._limits is None:
            layers = (self._table(path, "limits") for path in self._files())
            self._limits = from_settings(*layers, report=self.report_setting)
        return self._limits

    def largest_file(self) -> int:
        """How large a file may be that is captured the first time, in bytes."""
        return self._read_limits().file

    def rebuildable(self) -> "frozenset[bytes]":
        """The names of folders that can be made again."""
        return self._read_limits().rebuildable

    def setting(self, table: str, name: str, default: object) -> object:
        """One setting: the project's own, else the user's, else the default."""
        for path in self._files():
            found = self._table(path, table)
            if name in found:
                return found[name]
        return default

    def participants(self) -> "dict[str, object]":
        """The tables of participants: the project's own, and the user's of other names."""
        own, users = (self._table(path, "participants") for path in self._files())
        return {**users, **own}

    def hold(self, participant: object) -> None:
        """Leave the files of a registered participant to it, where they are in the tree."""
        self._held |= dict.fromkeys(self._inside(getattr(participant, "files", ())))

    def reload_participants(self) -> None:
        """Read them from the settings again when they are next needed."""
        self._held_by_settings = None

    def _files_held(self) -> "tuple[bytes, ...]":
        """The files in the tree that are of participants: swapped, they would be torn."""
        if self._held_by_settings is None:
            tables = [each for each in self.participants().values() if isinstance(each, dict)]
            paths = [each.get("path") for each in tables if each.get("type") == "sqlite"]
            named = [
                path + end for path in paths if isinstance(path, str) for end in DATABASE_FILES
            ]
            self._held_by_settings = self._inside(named)
        return tuple(sorted({*self._held, *self._held_by_settings}))

    def _inside(self, paths: "Iterable[str]") -> "list[bytes]":
        top = self._root.path.rstrip(b"/") + b"/"
        raw = [os.path.realpath(os.fsencode(path)) for path in paths]
        return [path.removeprefix(top) for path in raw if path.startswith(top)]

    def is_recording(self) -> bool:
        """Whether hooks and `takeback run` record here; not after `takeback off`."""
        return self.setting("recording", "on", True) is not False

    def _table(self, path: bytes, table: str) -> "Mapping[str, object]":
        """A table of a settings file; nothing if the file cannot be read, and that is noted.

        What decides about deleting has no default then: the file may say to keep everything.
        """
        try:
            return settings_in(path, table)
        except UsageError as problem:
            if table in _DELETING:
                raise
            self.report_setting(str(problem))
            return {}

    def freshness(self) -> "tuple[object, ...]":
        """What opening the project depends on: while this is the same, it need not be done again.

        The folder and the ledger may be replaced; all else that is read once may also change.
        """
        ledger = self._home.store_path(self._root.id) + b"/ledger.db"
        replaced = [_stamp(path)[:2] for path in (self._root.path, ledger)]
        return (*replaced, *map(_stamp, (self._home.path + b"/registry", *self._files())))

    def _files(self) -> "tuple[bytes, bytes]":
        own = self._home.store_path(self._root.id)
        return own + b"/config.toml", self._home.path + b"/config.toml"

    def _rules(self, was_captured: "Callable[[bytes], bool]") -> LimitRules:
        return LimitRules(
            self._read_limits(),
            was_captured=was_captured,
            tracked=self._tracked_files,
            ignored=self._ignore_rules,
            held=self._files_held(),
        )

    def is_remote(self) -> bool:
        """Whether another machine stamps the files."""
        return machine.network_file_system(self._root.path) is not None

    def git_state(self) -> "dict[str, str]":
        """What the user's git looks like (`model/beyond/git_changes`); nothing without one."""
        from takeback.worktree.git import user_git

        found, repository = user_git.look(self._root.path)
        return found if repository is None else {**found, **repository.state()}

    def git_stamps(self) -> str:
        """What tells whether `git_state` finds anything new; empty if nobody can tell."""
        from hashlib import sha256

        from takeback.worktree.git import user_git

        found, repository = user_git.look(self._root.path)
        stamps: list[object] = [0] if repository is None else repository.stamps()
        if not user_git.is_settled(stamps, time.time_ns()):
            return ""
        return sha256(repr((found, stamps)).encode()).hexdigest()[:_STAMPS]

    def _ignore_rules(self) -> "IgnoreRules":
        from takeback.worktree.ignore import IgnoreRules

        return IgnoreRules(self._root.path)

    def _tracked_files(self) -> "frozenset[bytes]":
        from takeback.worktree.git import user_git

        repository = user_git.find_repository(self._root.path)
        return repository.tracked_files() if repository is not None else frozenset()


def _stamp(path: bytes) -> "tuple[int, ...]":
    """Which file is at a path, and in which state; nothing if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
