"""What lies around a project's tree: settings, mounts, other projects, the user's git."""

import os

from takeback.engine.limits import LimitRules, Limits, from_settings
from takeback.engine.request import Place, Request
from takeback.errors import CaptureError
from takeback.model import ids, reasons
from takeback.store import mounts, statcache
from takeback.store.settings import settings_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.engine.finish import Finish
    from takeback.engine.glances import Glances
    from takeback.engine.request import Attribute
    from takeback.model.jsontext import Json
    from takeback.ports import Progress, Rules
    from takeback.store.home import Home, Root
    from takeback.store.ignore import IgnoreRules

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Surroundings:
    """What a look at the tree of one project has to know besides the tree."""

    def __init__(self, root: "Root", home: "Home") -> None:
        self._root = root
        self._home = home
        self._limits: Limits | None = None
        self._changed: int | None = None
        """When something came into the folder or left it, as of the last look."""

    def request(
        self,
        at: int,
        *,
        label: str = "",
        attribute: "Attribute | None" = None,
        place: "Place | None" = None,
        silent: bool = False,
        request: "str | None" = None,
        rehash: bool = False,
        progress: "Progress | None" = None,
        wanted: "frozenset[bytes]" = frozenset(),
        again: "frozenset[bytes]" = frozenset(),
        modes: "Mapping[bytes, int] | None" = None,
        finish: "Finish | None" = None,
        glances: "Glances | None" = None,
    ) -> Request:
        """Everything for one look at the tree; the root is open and is the caller's to close."""
        root = self.open_root()
        try:
            return Request(
                root=root,
                device=os.fstat(root).st_dev,
                rules=self._rules,
                mounts=mounts.below(self._root.path),
                strangers=self._strangers(),
                at=at,
                id=ids.from_entropy(os.urandom(8)),
                label=label,
                attribute=attribute,
                place=place or Place(),
                silent=silent,
                request=request,
                rehash=rehash,
                progress=progress,
                wanted=wanted,
                again=again,
                modes=modes,
                finish=finish,
                glances=glances,
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
                f"`{where}` is not the folder it was when the project was opened",
                hint="open it again, which finds out whether it was moved or replaced",
            )
        return fd

    def _is_ours(self, found: os.stat_result) -> bool:
        if not self._root.is_folder(found):
            return False
        if self._changed != found.st_ctime_ns:
            from takeback.store import identity

            if identity.is_remade(self._home, self._root, found):
                return False
            self._changed = found.st_ctime_ns
        return True

    def _strangers(self) -> "dict[tuple[int, int], int]":
        """Folders inside this project that are not its own, by device and inode."""
        inside = self._root.path + b"/"
        found = {}
        for root in self._home.roots():
            # A disk that is mounted again may have another number.
            stamp = _stamp(root.path)[:2] if root.path.startswith(inside) else ()
            if len(stamp) == 2 and stamp[1] == root.inode:
                found[stamp[0], stamp[1]] = reasons.ANOTHER_PROJECT
        home = os.stat(self._home.path)
        found[home.st_dev, home.st_ino] = reasons.STORE
        return found

    def mark(self, request: Request) -> bytes:
        """What a stat cache must have been written for to be believed."""
        root = (self._root.device, self._root.inode)
        places = [*(request.mounts or ()), *(b"%d %d" % known for known in request.strangers)]
        return statcache.identity(self._root.id, root, places, self._read_limits().fingerprint())

    def _read_limits(self) -> Limits:
        """The limits of what is captured: the project's own, else the user's, else ours."""
        if self._limits is None:
            self._limits = from_settings(*(settings_in(path, "limits") for path in self._files()))
        return self._limits

    def largest_file(self) -> int:
        """How large a file may be that is captured the first time, in bytes."""
        return self._read_limits().file

    def setting(self, table: str, name: str, default: object) -> object:
        """One setting: the project's own, else the user's, else the default."""
        for path in self._files():
            found = settings_in(path, table)
            if name in found:
                return found[name]
        return default

    def standing(self) -> "tuple[object, ...]":
        """What opening the project depends on: while this is the same, it need not be done again.

        The folder and the ledger may be replaced; all else that is read once may also change.
        """
        ledger = self._home.store_path(self._root.id) + b"/ledger.db"
        replaced = [_stamp(path)[:2] for path in (self._root.path, ledger)]
        return (*replaced, *map(_stamp, (self._home.path + b"/registry", *self._files())))

    def _files(self) -> "tuple[bytes, bytes]":
        own = self._home.store_path(self._root.id)
        return own + b"/config.toml", self._home.path + b"/config.toml"

    def _rules(self, was_captured: "Callable[[bytes], bool]") -> "Rules":
        """What decides what is left out."""
        return LimitRules(
            self._read_limits(),
            was_captured=was_captured,
            tracked=self._tracked_files,
            ignored=self._ignore_rules,
        )

    def is_remote(self) -> bool:
        """Whether another machine stamps the files."""
        return mounts.network_file_system(self._root.path) is not None

    def git_state(self) -> "Json":
        """What the user's git looks like: branch, HEAD, checksum of the index; None without one."""
        from takeback.store import usergit

        repository = usergit.find_repository(self._root.path)
        if repository is None:
            return None
        head = repository.head()
        branch = None if head.branch is None else head.branch.decode("utf-8", "surrogateescape")
        return [branch, head.commit, repository.index_checksum()]

    def _ignore_rules(self) -> "IgnoreRules":
        from takeback.store.ignore import IgnoreRules

        return IgnoreRules(self._root.path)

    def _tracked_files(self) -> "frozenset[bytes]":
        from takeback.store import usergit

        repository = usergit.find_repository(self._root.path)
        return repository.tracked_files() if repository is not None else frozenset()


def _stamp(path: bytes) -> "tuple[int, ...]":
    """Which file is at a path, and in which state; nothing if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
