"""All stores of a home folder as they look from outside; nothing in them is changed."""

import errno
import os

from takeback.errors import NewerStoreError, OldStoreError, TakebackError
from takeback.model import ids, known
from takeback.model.known import KnownProject
from takeback.store import processes, schema, sqlite
from takeback.store.database import connect, require_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.store.home import Home, Root
    from takeback.store.sqlite import Connection

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
    state = state_of(root) if root is not None else known.UNKNOWN
    project = KnownProject(id, root.path if root is not None else None, state, size_below(path))
    try:
        _read(project, path + b"/ledger.db", now)
    except NewerStoreError as problem:
        project.health, project.problem = known.NEWER, str(problem)
    except OldStoreError as problem:
        project.health, project.problem = known.OLDER, str(problem)
    except PermissionError as problem:
        project.health, project.problem = known.CLOSED, str(problem.strerror)
    except (TakebackError, OSError, sqlite.DatabaseError, TypeError, ValueError) as problem:
        project.health, project.problem = known.DAMAGED, str(problem)
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
            return known.NOT_MOUNTED
        return known.NOT_MOUNTED if _may_be_unmounted(root) else known.GONE
    if root.is_folder(found):
        return known.HERE
    if found.st_dev != root.device and _is_empty(root.path):
        return known.NOT_MOUNTED
    # A disk that is mounted again may have another number.
    return known.HERE if root.inode == found.st_ino else known.REPLACED


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
    require_file(path, create=False)
    db = _connected(path)
    try:
        if schema.require_format(db) == 0 and not _has(db, "events"):
            project.checkpoints = project.turns = 0
            return
        _read_tables(project, db, now)
    finally:
        db.close()


def _connected(path: bytes) -> "Connection":
    """The ledger, or a copy of it where the disk takes no writes."""
    try:
        db = connect(path)
        schema.require_format(db)
    except sqlite.OperationalError as problem:
        from takeback.store import ledgercopy

        if not ledgercopy.is_unwritable(problem):
            raise
        return ledgercopy.load(path)
    return db


def _read_tables(project: KnownProject, db: "Connection", now: int) -> None:
    last = db.execute("SELECT at FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    project.used = int(last[0]) / _SECOND if last else None
    project.checkpoints = _count(db, "checkpoints")
    project.turns = _count(db, "turns")
    if project.turns:
        newest = db.execute("SELECT label FROM turns ORDER BY number DESC LIMIT 1").fetchone()
        project.prompt = str(newest[0])
    project.running = tuple(_running(db, now))


def _running(db: "Connection", now: int) -> "Iterator[str]":
    for id, agent, holder, seen in db.execute(
        "SELECT id, agent, holder, seen FROM sessions WHERE ended IS NULL"
    ).fetchall():
        is_alive = processes.is_alive(holder) if holder else None
        if is_alive or (is_alive is None and int(seen) > now - _QUIET_FOR):
            yield f"{id[:8]} of {agent}"


def _count(db: "Connection", table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


def _has(db: "Connection", table: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return db.execute(query, (table,)).fetchone() is not None


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
