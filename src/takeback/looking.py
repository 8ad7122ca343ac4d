"""What a look at a work tree needs: its open root, what is not ours in it, and the rules."""

import os
import time

from takeback.engine.capture import Request
from takeback.engine.limits import LimitRules, Limits, from_settings
from takeback.errors import CaptureError
from takeback.model import ids, reasons
from takeback.store import mounts, statcache
from takeback.store.settings import limits_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.ports import Progress, Rules
    from takeback.store.home import Home, Root
    from takeback.store.ignore import IgnoreRules

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Looking:
    """Looks at the work tree of one project."""

    def __init__(self, root: "Root", home: "Home") -> None:
        self._root = root
        self._home = home
        self._limits: Limits | None = None

    def request(
        self, label: str = "", *, rehash: bool = False, progress: "Progress | None" = None
    ) -> Request:
        """Everything for one look; the root is open and is the caller's to close."""
        root = self._open_root()
        return Request(
            root=root,
            device=os.fstat(root).st_dev,
            rules=self._rules,
            mounts=mounts.below(self._root.path),
            strangers=self._strangers(),
            at=time.time_ns(),
            id=ids.from_entropy(os.urandom(8)),
            label=label,
            rehash=rehash,
            progress=progress,
        )

    def mark(self, request: Request) -> bytes:
        """What a stat cache must be about to be believed."""
        root = (self._root.device, self._root.inode)
        rules = self._read_limits().fingerprint()
        places = [*(request.mounts or ()), *(b"%d %d" % known for known in request.strangers)]
        return statcache.identity(self._root.id, root, places, rules)

    def _open_root(self) -> int:
        fd = os.open(self._root.path, _DIRECTORY)
        if not self._root.is_folder(os.fstat(fd)):
            os.close(fd)
            where = os.fsdecode(self._root.path)
            raise CaptureError(
                f"`{where}` is not the folder it was when the project was opened",
                hint="open it again, which finds out whether it was moved or replaced",
            )
        return fd

    def _strangers(self) -> "dict[tuple[int, int], int]":
        """Folders inside this project that are not its own, by device and inode."""
        inside = self._root.path + b"/"
        others = (root for root in self._home.roots() if root.path.startswith(inside))
        there = (root for root in others if root.is_there())
        found = {(root.device, root.inode): reasons.ANOTHER_PROJECT for root in there}
        store = os.stat(self._home.path)
        found[store.st_dev, store.st_ino] = reasons.STORE
        return found

    def _read_limits(self) -> Limits:
        if self._limits is None:
            paths = (self._home.store_path(self._root.id), self._home.path)
            layers = [limits_in(path + b"/config.toml") for path in paths]
            self._limits = from_settings(*layers)
        return self._limits

    def _rules(self, was_captured: "Callable[[bytes], bool]") -> "Rules":
        return LimitRules(
            self._read_limits(),
            was_captured=was_captured,
            tracked=self._tracked_files,
            ignored=self._ignore_rules,
        )

    def _ignore_rules(self) -> "IgnoreRules":
        from takeback.store.ignore import IgnoreRules

        return IgnoreRules(self._root.path)

    def _tracked_files(self) -> frozenset[bytes]:
        from takeback.store import usergit

        repository = usergit.find_repository(self._root.path)
        return repository.tracked_files() if repository is not None else frozenset()
