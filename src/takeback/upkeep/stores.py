"""All stores of a home folder as they look from outside; nothing in them is changed.

All projects of a user at once: which stores there are, where a moved folder is now, how a deleted
folder comes back, and how a store is removed.
"""

import errno
import os
import stat

from takeback import location
from takeback.capture.manifests import told
from takeback.disk import home as removal
from takeback.disk import machine, operations, sqlite
from takeback.disk.failures import FailingAs
from takeback.disk.home import Home
from takeback.disk.lock import Held, Lock
from takeback.errors import (
    BusyError,
    DecisionNeededError,
    NewerStoreError,
    NothingToTakeBackError,
    OldStoreError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.history import lookup
from takeback.ledger.ledger import Ledger
from takeback.model import ids, results
from takeback.model.reasons import Action
from takeback.model.results import KnownProject, RestoredFolder
from takeback.model.tree import REASON
from takeback.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from takeback.disk.home import Home, Root
    from takeback.ledger.log.events import CheckpointRow
    from takeback.model.results import KnownProject
    from takeback.ports import Progress


_SECOND = 1_000_000_000
_QUIET_FOR = 24 * 3600 * _SECOND
"""A session that no process holds is over for us when nothing was heard of it for so long."""
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_MOST_FOLDERS, _DEEPEST = 3000, 3
"""How many folders are searched for those that were moved, and how deep below a known place."""


def stores(home: "Home", now: int, around: "Sequence[bytes]" = ()) -> "list[KnownProject]":
    """Every store, the one that was used last first; moved folders are searched `around` too."""
    listed = {root.id: root for root in home.roots()}
    listed |= {root.id: root for root in home.roots_from_stores()}
    found = [look(home, id, listed.get(id), now) for id in _ids(home)]
    lost = [listed[each.id] for each in found if each.id in listed and each.state != results.HERE]
    moved = find_moved(home, lost, around)
    for each in found:
        if each.id in moved:
            each.was, each.root, each.state = each.root, moved[each.id], results.MOVED
    return sorted(found, key=lambda each: (-(each.used or 0), each.id))


def find_moved(
    home: "Home", lost: "list[Root]", around: "Sequence[bytes]" = ()
) -> "dict[str, bytes]":
    """Where folders are now that are not at their place, as far as a short search finds them.

    It looks near the places where they were, and below the folders `around`.
    """
    wanted = {root.inode: root for root in lost if root.inode}
    found: dict[str, bytes] = {}
    starts = [_nearest_there(os.path.dirname(root.path)) for root in wanted.values()]
    above = [os.path.dirname(each) for each in starts]
    queue = [(each, 0) for each in dict.fromkeys((*starts, *around, *above)) if each != b"/"]
    seen: set[bytes] = set()
    while queue and len(found) < len(wanted) and len(seen) < _MOST_FOLDERS:
        folder, depth = queue.pop(0)
        if folder in seen:
            continue
        seen.add(folder)
        for path, inode in _folders_in(folder):
            root = wanted.get(inode)
            if root is not None and location.is_moved_to(home, root, path):
                found[root.id] = path
            elif depth < _DEEPEST:
                queue.append((path, depth + 1))
    return found


def _folders_in(folder: bytes) -> "list[tuple[bytes, int]]":
    """The folders in a folder and their inodes; neither links nor hidden ones."""
    try:
        with os.scandir(folder) as entries:
            return [
                (entry.path, entry.inode())
                for entry in entries
                if not entry.name.startswith(b".")
                and not entry.name.endswith(b".tmp")
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _nearest_there(path: bytes) -> bytes:
    while not os.path.isdir(path) and path != b"/":
        path = os.path.dirname(path)
    return path


def look(home: "Home", id: str, root: "Root | None", now: int) -> KnownProject:
    """One store."""
    path = home.store_path(id)
    state = state_of(home, root) if root is not None else results.UNKNOWN
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


def state_of(home: "Home", root: "Root") -> str:
    """Where a project's folder is. One that is out of reach is never called deleted.

    What is missing may be on a disk that is not mounted: then the nearest folder above it that is
    there is on another device, or it is what mount points are, an empty folder.
    """
    if root.detached:
        return results.DETACHED
    try:
        found = os.lstat(root.path)
    except OSError as problem:
        if problem.errno not in _MISSING:
            return results.NOT_MOUNTED
        return results.NOT_MOUNTED if _may_be_unmounted(root) else results.GONE
    is_remade = root.is_folder(found) and location.is_remade(home, root, found)
    if is_remade or not stat.S_ISDIR(found.st_mode):
        return results.REPLACED
    if found.st_dev != root.device and _is_empty(root.path):
        return results.NOT_MOUNTED
    # A disk that is mounted again may have another number.
    return results.HERE if root.inode == found.st_ino else results.REPLACED


def _may_be_unmounted(root: "Root") -> bool:
    above = _nearest_there(os.path.dirname(root.path))
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
        raise PermissionError(errno.EACCES, "it cannot be opened")
    if not os.path.lexists(path):
        project.checkpoints = project.turns = 0
        return
    is_writable = not os.statvfs(path).f_flag & os.ST_RDONLY
    if not os.access(path, os.R_OK | os.W_OK if is_writable else os.R_OK):
        raise PermissionError(errno.EACCES, "it cannot be opened")
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
    for _, label, *_ in ledger.turns.labels():
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
    """The folder of all stores, as somebody who tidies up sees it.

    Moved folders are also searched below those `around`.
    """

    def __init__(self, home: bytes, around: "Sequence[bytes]" = ()) -> None:
        self._home = Home(home)
        self._around = around

    def projects(self, now: int) -> "list[KnownProject]":
        """Every store, the one used last first; also damaged ones and those of newer programs."""
        with FailingAs(TakebackError, "the stores could not be listed"):
            if not self._home.exists():
                return []
            self._finish_removals()
            return stores(self._home, now, self._around)

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
                f"nothing was removed: another process is working in project `{project.id}`",
                hint="wait for it to finish, or stop it, and try again",
            ) from None

    def restore(
        self,
        id: str,
        directory: "bytes | None",
        now: int,
        *,
        user_home: bytes = b"",
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> RestoredFolder:
        """Bring a deleted folder back as it was last, at its place or in a new or empty folder.

        Its history goes on there. Nothing that exists is overwritten. With `dry_run` nothing is
        written at all.
        """
        with FailingAs(TakebackError, "the folder was not restored"):
            project = self.project(id, now)
            known = {root.id: root for root in self._home.known_roots()}.get(project.id)
            target = self._target(project, known, directory, user_home)
            store = Store(self._home.store_path(project.id), project.id)
            try:
                row = store.ledger.checkpoints.newest()
                if row is None:
                    raise NothingToTakeBackError(
                        f"project `{project.id}` has no checkpoint", hint=Action("projects")
                    )
                if not dry_run:
                    claim = _Claim(self._home, project.id, target, known)
                    _bring_back(store, row, claim, progress)
                newest = store.ledger.turns.newest_changed(None)
                is_part = newest is not None and newest.closed is None
                return RestoredFolder(
                    project.id,
                    target,
                    row.id,
                    row.created / _SECOND,
                    row.entries,
                    _left_out(store, row),
                    is_part or _is_rescued(store, target),
                )
            finally:
                store.close()

    def _target(
        self,
        project: "KnownProject",
        known: "Root | None",
        directory: "bytes | None",
        user_home: bytes,
    ) -> bytes:
        """The folder to bring a project back in; an error if there must be none."""
        if directory is None:
            target = require_restorable(project, known)
        else:
            refuse_second(project)
            target = os.path.realpath(directory)
        removal.refuse_unsafe(target, self._home, user_home)
        if known is None or target != known.path:
            above = location.locate(self._home, _nearest_there(target)).root
            if above is not None:
                raise UsageError(
                    f"`{os.fsdecode(target)}` is inside project `{above.id}`, which covers it",
                    hint="name a folder outside of it",
                )
        return target

    def _finish_removals(self) -> None:
        """Delete what is left of stores whose removal was cut short."""
        if removal.leftovers(self._home):
            try:
                with location.held_home(self._home, patience=0):
                    self._home.clean_up()
            except (BusyError, OSError):
                return  # somebody is at it, or it cannot be done yet; it is no store any more


class _Claim:
    """Gives a history to a folder just before that appears, and takes it back if it cannot.

    So there is no moment at which the folder is there and is not known; a crash before leaves a
    project whose folder is gone, as before.
    """

    def __init__(self, home: "Home", id: str, target: bytes, known: "Root | None") -> None:
        self._home, self._id, self.target = home, id, target
        self._known = known.replace(birth=home.birth(known)) if known is not None else None
        self._held: Held | None = None

    def take(self, folder: bytes) -> None:
        held = location.held_home(self._home)
        held.__enter__()
        self._held = held
        now = {root.id: root.entry() for root in self._home.known_roots()}.get(self._id)
        if now != (self._known.entry() if self._known is not None else None):
            self._known = None
            raise BusyError(
                f"another process already restored the folder of project `{self._id}`",
                hint=Action("projects"),
            )
        location.attach(self._home, location.root_at(self._id, folder).replace(path=self.target))

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: "type[BaseException] | None", *_: object) -> None:
        if self._held is None:
            return
        try:
            if kind is not None and self._known is not None:
                self._home.record(self._known)
        finally:
            self._held.__exit__(None, None, None)


def _bring_back(
    store: Store, row: "CheckpointRow", claim: _Claim, progress: "Progress | None"
) -> None:
    target = claim.target
    made = _make_parents(target)
    try:
        with claim:
            lookup.extract(store, row, target, progress, claim=claim.take)
    except BaseException:
        for folder in reversed(made):
            operations.rmdir(folder)
        raise
    operations.fsync_dir(os.path.dirname(target))


def _is_rescued(store: "Store", folder: bytes) -> bool:
    """Whether something of a folder is missing that a rescue holds."""
    return any(
        (top == folder or top.startswith(folder + b"/")) and not os.path.lexists(top)
        for row in store.ledger.rescues.there()
        for top in row.tops
    )


def _left_out(store: Store, row: "CheckpointRow") -> "tuple[bytes, ...]":
    """What was in a folder and is not in its checkpoint."""
    objects = store.reader()
    try:
        return tuple(path for path, flags in told(objects, row) if flags & REASON)
    finally:
        objects.close()


def _make_parents(path: bytes) -> "list[bytes]":
    """Make the folders above a path that are missing, as their owner would; which those are."""
    above, made = _nearest_there(os.path.dirname(path)), list[bytes]()
    owner = os.stat(above)
    umask = os.umask(0)
    os.umask(umask)
    rest = os.path.dirname(path)[len(above.rstrip(b"/")) :]
    for name in filter(None, rest.split(b"/")):
        above = os.path.join(above, name)
        operations.mkdir(above, mode=0o777 & ~umask)
        made.append(above)
        if os.geteuid() == 0:
            fd = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                operations.give_to(fd, owner.st_uid, owner.st_gid)
            finally:
                os.close(fd)
    return made


def refuse_second(project: "KnownProject") -> None:
    """An error if the folder of a project is there: no two folders share one history."""
    if project.state in (results.HERE, results.MOVED):
        where = os.fsdecode(project.root or b"")
        raise DecisionNeededError(
            f"the folder of project `{project.id}` still exists: `{where}`",
            hint=Action("undo-turn-at", path=where),
        )


def require_restorable(project: "KnownProject", root: "Root | None") -> bytes:
    """The place that a project was at; an error if its folder cannot come back there."""
    refuse_second(project)
    if root is None:
        raise UsageError(
            f"the folder of project `{project.id}` is unknown",
            hint=Action("restore-folder", id=project.id, path="DIR"),
        )
    where = os.fsdecode(root.path)
    if os.path.lexists(root.path):
        other = "another folder" if os.path.isdir(root.path) else "a file"
        beside = os.fsdecode(_free_name(root.path))
        raise DecisionNeededError(
            f"{other} is at `{where}`, and nothing is overwritten",
            hint=Action("restore-folder", id=project.id, path=beside),
        )
    disk = os.stat(_nearest_there(os.path.dirname(root.path))).st_dev
    if project.state == results.NOT_MOUNTED and disk != root.device:
        raise DecisionNeededError(
            f"the disk that `{where}` is on may not be mounted",
            hint=("mount it", Action("restore-folder", id=project.id, path=where)),
        )
    return root.path


def _free_name(path: bytes) -> bytes:
    number = 1
    while os.path.lexists(
        found := b"%s-restored%s" % (path, b"-%d" % number if number > 1 else b"")
    ):
        number += 1
    return found


def refuse(project: "KnownProject", *, in_use: bool, not_mounted: bool) -> None:
    """An error if a store must not be removed as things are."""
    where = os.fsdecode(project.root or b"?")
    if project.running:
        raise BusyError(
            f"a session may still be running in `{where}`: {', '.join(project.running)}",
            hint="end it first; a session without events counts as ended after a day",
        )
    is_there = project.state in (results.HERE, results.REPLACED, results.MOVED)
    is_usable = project.health in (results.SOUND, results.NEWER)
    if (is_there or (project.state == results.DETACHED and is_usable)) and not in_use:
        what = "had this history" if project.state == results.DETACHED else "is still there"
        raise DecisionNeededError(
            f"`{where}` {what}; without its store nothing in it can be taken back",
            hint=Action("remove-in-use", id=project.id),
        )
    if project.state == results.NOT_MOUNTED and not not_mounted:
        raise DecisionNeededError(
            f"`{where}` cannot be reached; the disk that it is on may not be mounted",
            hint=("mount it and try again", Action("remove-unmounted", id=project.id)),
        )
