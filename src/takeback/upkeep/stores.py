"""All stores of a home folder as they look from outside; nothing in them is changed.

All projects of a user at once: which stores there are, and how one is removed.
"""

import errno
import os

from takeback import location
from takeback.disk import home as removal
from takeback.disk import machine, sqlite
from takeback.disk.failures import FailingAs
from takeback.disk.home import Home
from takeback.disk.lock import Held, Lock
from takeback.errors import (
    BusyError,
    DecisionNeededError,
    NewerStoreError,
    OldStoreError,
    TakebackError,
    UnknownReferenceError,
)
from takeback.ledger.ledger import Ledger
from takeback.model import ids, results
from takeback.model.reasons import Action
from takeback.model.results import KnownProject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.disk.home import Home, Root
    from takeback.model.results import KnownProject


_SECOND = 1_000_000_000
_QUIET_FOR = 24 * 3600 * _SECOND
"""A session that no process holds is over for us when nothing was heard of it for so long."""
_MISSING = (errno.ENOENT, errno.ENOTDIR)


def stores(home: "Home", now: int) -> "list[KnownProject]":
    """Every store, the one that was used last first."""
    listed = {root.id: root for root in home.roots()}
    listed |= {root.id: root for root in home.roots_from_stores()}
    found = [look(home, id, listed.get(id), now) for id in _ids(home)]
    return sorted(found, key=lambda each: (-(each.used or 0), each.id))


def look(home: "Home", id: str, root: "Root | None", now: int) -> KnownProject:
    """One store."""
    path = home.store_path(id)
    state = state_of(root) if root is not None else results.UNKNOWN
    project = KnownProject(id, root.path if root is not None else None, state, size_below(path))
    try:
        _read(project, path + b"/ledger.db", now)
    except NewerStoreError as problem:
        project.health, project.problem = results.NEWER, str(problem)
    except OldStoreError as problem:
        project.health, project.problem = results.OLDER, str(problem)
    except PermissionError as problem:
        project.health, project.problem = results.CLOSED, str(problem.strerror)
    except (TakebackError, OSError, sqlite.DatabaseError, TypeError, ValueError) as problem:
        project.health, project.problem = results.DAMAGED, str(problem)
    if project.used is None:
        project.used = _touched(path)
    return project


def state_of(root: "Root") -> str:
    """Where a project's folder is. One that is out of reach is never called deleted.

    What is missing may be on a disk that is not mounted: then the nearest folder above it that is
    there is on another device, or it is what mount points are, an empty folder.
    """
    try:
        found = os.lstat(root.path)
    except OSError as problem:
        if problem.errno not in _MISSING:
            return results.NOT_MOUNTED
        return results.NOT_MOUNTED if _may_be_unmounted(root) else results.GONE
    if root.is_folder(found):
        return results.HERE
    if found.st_dev != root.device and _is_empty(root.path):
        return results.NOT_MOUNTED
    # A disk that is mounted again may have another number.
    return results.HERE if root.inode == found.st_ino else results.REPLACED


def _may_be_unmounted(root: "Root") -> bool:
    above = os.path.dirname(root.path)
    while not os.path.lexists(above) and above != b"/":
        above = os.path.dirname(above)
    try:
        return os.stat(above).st_dev != root.device or _is_empty(above)
    except OSError:
        return True


def _is_empty(path: bytes) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _ids(home: "Home") -> "list[str]":
    try:
        names = os.listdir(home.path + b"/projects")
    except FileNotFoundError:
        return []
    decoded = sorted(map(os.fsdecode, names))
    return [name for name in decoded if len(name) == ids.LENGTH and ids.is_prefix(name)]


def _read(project: KnownProject, path: bytes, now: int) -> None:
    """What the ledger says, without making one."""
    if not os.access(os.path.dirname(path), os.R_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "nobody may open it")
    if not os.path.lexists(path):
        project.checkpoints = project.turns = 0
        return
    is_writable = not os.statvfs(path).f_flag & os.ST_RDONLY
    if not os.access(path, os.R_OK | os.W_OK if is_writable else os.R_OK):
        raise PermissionError(errno.EACCES, "nobody may open it")
    ledger = Ledger(path, writable=False)
    try:
        if ledger.is_made:
            _read_ledger(project, ledger, now)
        else:
            project.checkpoints = project.turns = 0
    finally:
        ledger.close()


def _read_ledger(project: KnownProject, ledger: Ledger, now: int) -> None:
    last = ledger.last_event_at()
    project.used = last / _SECOND if last is not None else None
    project.checkpoints = ledger.checkpoints.count()
    project.turns = ledger.turns.count()
    for _, label, _ in ledger.turns.labels():
        project.prompt = label
        break
    project.running = tuple(_running(ledger, now))


def _running(ledger: Ledger, now: int) -> "Iterator[str]":
    for row in ledger.sessions.open():
        is_alive = machine.is_alive(row.holder) if row.holder else None
        if is_alive or (is_alive is None and row.seen > now - _QUIET_FOR):
            yield f"{row.id[:8]} of {row.agent}"


def _touched(path: bytes) -> "float | None":
    """When the files of a store were last written, for one that cannot tell itself."""
    times = []
    for name in (b"/ledger.db", b"/ledger.db-wal", b"/root"):
        try:
            times.append(os.lstat(path + name).st_mtime)
        except OSError:
            continue
    return max(times, default=None)


def size_below(path: bytes) -> int:
    """How many bytes the files at or below a path have."""
    total, stack = 0, [path]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


class Housekeeping:
    """The folder of all stores, as somebody who tidies up sees it."""

    def __init__(self, home: bytes) -> None:
        self._home = Home(home)

    def projects(self, now: int) -> "list[KnownProject]":
        """Every store, the one used last first; also damaged ones and those of newer programs."""
        with FailingAs(TakebackError, "the stores could not be listed"):
            if not self._home.exists():
                return []
            self._finish_removals()
            return stores(self._home, now)

    def project(self, id: str, now: int) -> "KnownProject":
        """The one store whose id begins like this."""
        found = [each for each in self.projects(now) if id and each.id.startswith(id)]
        if len(found) != 1:
            how = "no" if not found else "more than one"
            raise UnknownReferenceError(
                f"there is {how} project whose id begins with `{id}`",
                hint=Action("projects"),
            )
        return found[0]

    def remove(
        self, id: str, now: int, *, even_if_in_use: bool = False, even_if_not_mounted: bool = False
    ) -> "KnownProject":
        """Remove a store with all that it holds; nothing brings it back.

        A store whose folder is still there, or may be on a disk that is not mounted, is removed
        only if that is said.
        """
        with FailingAs(TakebackError, "the store was not removed"):
            chosen = self.project(id, now)
            lock = Lock(self._home.lock_path)
            with location.held_home(self._home, lock=lock):
                # What may have changed while somebody thought about it.
                chosen = self.project(chosen.id, now)
                refuse(chosen, in_use=even_if_in_use, not_mounted=even_if_not_mounted)
                self._remove(chosen, lock)
            return chosen

    def _remove(self, project: "KnownProject", lock: Lock) -> None:
        path = self._home.store_path(project.id)
        try:
            with Held(Lock(path + b"/lock"), patience=0):
                try:
                    removal.remove(self._home, project.id)
                except BaseException:
                    lock.leave_unclean()  # whoever comes next removes what is left
                    raise
        except BusyError:
            raise BusyError(
                f"another process is at work in project `{project.id}`: nothing was removed",
                hint="wait for it to finish, or stop it, and try again",
            ) from None

    def _finish_removals(self) -> None:
        """Delete what is left of stores whose removal was cut short."""
        if removal.leftovers(self._home):
            try:
                with location.held_home(self._home, patience=0):
                    self._home.clean_up()
            except (BusyError, OSError):
                return  # somebody is at it, or it cannot be done yet; it is no store any more


def refuse(project: "KnownProject", *, in_use: bool, not_mounted: bool) -> None:
    """An error if a store must not be removed as things are."""
    where = os.fsdecode(project.root or b"?")
    if project.running:
        raise BusyError(
            f"a session may still be running in `{where}`: {', '.join(project.running)}",
            hint="end it first; one that nothing is heard of is over after a day",
        )
    if project.state in (results.HERE, results.REPLACED) and not in_use:
        raise DecisionNeededError(
            f"`{where}` is still there; without its store nothing in it can be taken back",
            hint=Action("remove-in-use", id=project.id),
        )
    if project.state == results.NOT_MOUNTED and not not_mounted:
        raise DecisionNeededError(
            f"`{where}` cannot be reached; the disk that it is on may not be mounted",
            hint=("mount it and look again", Action("remove-unmounted", id=project.id)),
        )
