"""The one door through which everything that changes the disk goes.

Every call that creates, writes, syncs, renames or removes something, in the store or in a
work tree, is one of the functions below, and each announces itself to `hook` before it acts.
That is what lets the fault harness stop the program at every single step, fail it with any
errno, or cut a write short. `tests/house/test_one_door.py` fails on a mutating call elsewhere.

A hook gets the name of the step and its arguments. It may raise (the step fails), end the
process (a crash), or, for `write`, return a number of bytes: then only so many are written
by the first system call, as a kernel is allowed to do.
"""

import errno
import fcntl
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from takeback.disk.sqlite import Connection, Cursor

    Path = bytes | str
    Sql = Sequence[bytes | str | int | None]

hook: "Callable[[str, tuple[object, ...]], int | None] | None" = None
"""Called before each step. Set by tests only."""

sync = True
"""Whether `fsync*` reach the disk. The product never turns it off; the fault harness runs both."""

CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What the system says of a way to rename that it does not know."""
_MACOS = sys.platform == "darwin"
_NOREPLACE, _EXCHANGE = 4 if _MACOS else 1, 2
_FICLONE = 0x40049409
_functions: "dict[str, Callable[..., int]]" = {}
_CREATE = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def _announce(step: str, *args: object) -> "int | None":
    return hook(step, args) if hook is not None else None


def create(path: "Path", *, dir_fd: "int | None" = None, mode: int = 0o600) -> int:
    """Make a new regular file with exactly this mode and open it for writing."""
    _announce("create", path)
    return _with_mode(os.open(path, os.O_WRONLY | _CREATE, mode, dir_fd=dir_fd), mode)


def open_or_create(path: "Path", *, mode: int = 0o600) -> int:
    """Open a plain file of the store for reading and writing, making it when it is not there."""
    _announce("open_or_create", path)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "it is not a plain file", path)
    return _with_mode(fd, mode)


def open_existing(path: "Path") -> int:
    """Open a file that is there for writing, and leave what it holds."""
    _announce("open_existing", path)
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def truncate(fd: int, size: int) -> None:
    _announce("truncate", fd, size)
    os.ftruncate(fd, size)


def _with_mode(fd: int, mode: int) -> int:
    # The user's umask may have taken bits away that we need to open the file again.
    if os.fstat(fd).st_mode & 0o777 != mode:
        os.fchmod(fd, mode)
    return fd


def write(fd: int, data: "bytes | bytearray | memoryview") -> None:
    """Write all of `data`, going on after short writes."""
    limit = _announce("write", fd, len(data))
    view = memoryview(data)
    try:
        while view:
            done = os.write(fd, view if limit is None else view[: max(limit, 1)])
            view = view[done:]
            limit = None
    except OSError as problem:
        problem.filename = problem.filename or _name_of(fd)
        raise


def write_at(fd: int, data: "bytes | bytearray | memoryview", offset: int) -> None:
    """Write all of `data` at `offset`, going on after short writes."""
    limit = _announce("write", fd, len(data))
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view if limit is None else view[: max(limit, 1)], offset)
        view, offset, limit = view[done:], offset + done, None


def fsync(fd: int) -> None:
    _announce("fsync", fd)
    if sync:
        os.fsync(fd)


def begin_to_write(fd: int) -> None:
    """Let the system write a file to the disk while we go on; its `fsync` waits less."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def syncfs(fd: int) -> None:
    _announce("syncfs", fd)
    if not sync:
        return
    try:
        _call("syncfs", fd)
    except OSError as problem:
        if problem.errno != errno.ENOSYS:
            raise
        os.sync()  # all disks: this system knows no better


def fsync_dir(path: "Path", *, dir_fd: "int | None" = None) -> None:
    fd = os.open(path, _DIRECTORY, dir_fd=dir_fd)
    try:
        fsync(fd)
    finally:
        os.close(fd)


def fchmod(fd: int, mode: int) -> None:
    _announce("fchmod", fd, mode)
    os.fchmod(fd, mode)


def give_to(fd: int, uid: int, gid: int) -> None:
    """Let an open file or directory belong to somebody else; that clears setuid and setgid."""
    _announce("give_to", fd, uid, gid)
    os.fchown(fd, uid, gid)


def give_link_to(path: "Path", uid: int, gid: int, *, dir_fd: int) -> None:
    _announce("give_link_to", path, uid, gid)
    os.chown(path, uid, gid, dir_fd=dir_fd, follow_symlinks=False)


def mkdir(path: "Path", *, mode: int = 0o700, dir_fd: "int | None" = None) -> None:
    """Make one directory with exactly this mode; it must not exist."""
    _announce("mkdir", path)
    os.mkdir(path, mode, dir_fd=dir_fd)
    if os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode & 0o777 != mode:
        _chmod_folder(path, mode, dir_fd)


def _chmod_folder(path: "Path", mode: int, dir_fd: "int | None") -> None:
    """Set the mode of a folder, which the umask may have closed, and of nothing else."""
    how = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, how, dir_fd=dir_fd)
    try:
        _chmod(fd, mode)
    finally:
        os.close(fd)


def rmdir(path: "Path", *, dir_fd: "int | None" = None) -> None:
    _announce("rmdir", path)
    os.rmdir(path, dir_fd=dir_fd)


def symlink(target: "Path", path: "Path", *, dir_fd: "int | None" = None) -> None:
    _announce("symlink", target, path)
    os.symlink(target, path, dir_fd=dir_fd)


def link(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    """Give a file, or a link itself, a second name on the same disk."""
    _announce("link", source, target)
    os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)


def clone(file: int, source: int) -> None:
    """Let an empty file share all blocks of another, where the file system can do that."""
    _announce("clone", file)
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    fcntl.ioctl(file, _FICLONE, source)


def rename(source: "Path", target: "Path", *, dir_fd: "int | None" = None) -> None:
    """Give a file of the store its final name, replacing what had that name."""
    _announce("rename", source, target)
    os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def exchange(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    """Let two entries change places in one instant; neither is lost."""
    _announce("exchange", source, target)
    _rename(source_dir, source, target_dir, target, _EXCHANGE)


def move(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    """Give an entry another name, in another folder too; never over one that is there."""
    _announce("move", source, target)
    try:
        _rename(source_dir, source, target_dir, target, _NOREPLACE)
    except OSError as problem:
        if problem.errno not in CANNOT:
            raise
        os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)
        os.unlink(source, dir_fd=source_dir)


def _rename(source_dir: int, source: bytes, target_dir: int, target: bytes, flag: int) -> None:
    # Where the file system cannot exchange (some FUSE ones), the caller moves the old entry away
    # first; where it cannot refuse to replace, a hard link does the same for files.
    name = "renameatx_np" if _MACOS else "renameat2"
    _call(name, source_dir, source, target_dir, target, flag)


def _call(name: str, *args: "int | bytes") -> None:
    """A system call that Python has no name for."""
    import ctypes

    function = _functions.get(name)
    if function is None:
        found = getattr(ctypes.CDLL(None, use_errno=True), name, None)
        if found is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        kinds = {int: ctypes.c_int, bytes: ctypes.c_char_p}
        found.argtypes = [kinds[type(arg)] for arg in args]
        function = _functions[name] = found
    if function(*args) != 0:
        code = ctypes.get_errno()
        paths = [arg for arg in args if isinstance(arg, bytes)]
        raise OSError(code, os.strerror(code), paths[-1] if paths else None)


def stand_for(dir_fd: int, name: bytes) -> int:
    """A descriptor of a regular file, also of one that forbids its owner to open it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=dir_fd)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    if os.fstat(fd).st_mode & 0o170000 != 0o100000:
        os.close(fd)
        raise OSError(errno.ELOOP, "not a regular file any more", name)
    return fd


def stand_for_folder(dir_fd: int, name: bytes) -> int:
    """A descriptor of a folder that forbids its owner to open it; good for its mode only."""
    how = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, how, dir_fd=dir_fd)


def chmod_folder(fd: int, mode: int) -> None:
    """Set all permission bits of the folder that a descriptor stands for."""
    _announce("fchmod", fd, mode)
    _chmod(fd, mode)


def chmod_file(fd: int, name: bytes, mode: int) -> None:
    """Set all permission bits of the file that a descriptor stands for, whatever has its name."""
    _announce("chmod_file", name, mode)
    _chmod(fd, mode)


def _chmod(fd: int, mode: int) -> None:
    try:
        os.fchmod(fd, mode)
    except OSError as problem:
        if problem.errno != errno.EBADF:
            raise
        # A descriptor that only stands for the file cannot be asked directly.
        os.chmod(f"/proc/self/fd/{fd}", mode)


def unlink(path: "Path", *, dir_fd: "int | None" = None) -> None:
    _announce("unlink", path)
    os.unlink(path, dir_fd=dir_fd)


def discard(path: "Path") -> None:
    """Remove a temporary file of ours; a failure leaves litter and nothing worse."""
    try:
        unlink(path)
    except OSError:
        return


def touch(fd: int) -> None:
    """Give an open file of the store the file system's present time."""
    _announce("touch", fd)
    os.utime(fd)


def set_mtime(path: "Path", mtime_ns: int, *, dir_fd: "int | None" = None) -> None:
    """Set access and modification time of an entry (a link itself, not its target)."""
    _announce("set_mtime", path)
    os.utime(path, ns=(mtime_ns, mtime_ns), dir_fd=dir_fd, follow_symlinks=False)


def lock(fd: int) -> bool:
    """Try to take the advisory lock of an open file; False when somebody else holds it."""
    _announce("lock", fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Give the advisory lock back, also where a forked copy has the same file open."""
    _announce("unlock", fd)
    fcntl.flock(fd, fcntl.LOCK_UN)


def sql(db: "Connection", statement: str, values: "Sql" = ()) -> "Cursor":
    """Run one statement that changes the ledger (BEGIN and COMMIT are statements too)."""
    _announce("sql", statement)
    try:
        return db.execute(statement, values)
    except Exception as problem:
        _note_file(problem, db)
        raise


def sql_many(db: "Connection", statement: str, rows: "Sequence[Sequence[object]]") -> None:
    _announce("sql", statement)
    try:
        db.executemany(statement, rows)
    except Exception as problem:
        _note_file(problem, db)
        raise


def elsewhere(step: str, *args: object) -> None:
    """Announce a change that a library makes outside of the store, such as a database's commit."""
    _announce(step, *args)


def _note_file(problem: Exception, db: "Connection") -> None:
    """Let an error of SQLite name its file, which it does not by itself."""
    problem.add_note(getattr(db, "path", ""))


def _name_of(fd: int) -> "str | None":
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None
