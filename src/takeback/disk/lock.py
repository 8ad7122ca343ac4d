"""One advisory lock per project. It dies with its holder and is never deleted."""

import errno
import os
import stat
import time
from _thread import RLock, get_ident
from _weakref import ref

from takeback.disk import operations
from takeback.errors import BusyError, UnsafeStoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 10.0
_NOBODY = b" " * 10
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""What the disk or the system is to blame for, not the lock file."""
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Lock:
    """The lock of one store folder, to be held by one thread of one process at a time.

    `mutex` keeps the threads of this process apart. Whoever holds the mutex may take the file lock,
    and is its `owner` until it is given back; a block inside of the owner's changes nothing.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.mutex = RLock()
        self._owner: ref[Held] | None = None
        self._fd = -1
        self._unclean = False
        self.restore_deadline = 0.0
        """Until when to wait for a restore, by `time.monotonic`, where patience ends before."""

    @property
    def is_held(self) -> bool:
        """Whether this process holds it."""
        return self._fd >= 0

    @property
    def is_marked(self) -> bool:
        """Whether somebody holds it, or died while he did."""
        return _pid_in(_read(self.path, len(_NOBODY), 0)) != ""

    @property
    def owner(self) -> "Held | None":
        return self._owner() if self._owner is not None else None

    @owner.setter
    def owner(self, held: "Held") -> None:
        # Weak: an owner that an interrupt left behind gives the lock back when it is collected.
        self._owner = ref(held)

    def acquire(self, patience: float = PATIENCE) -> bool:
        """Take the lock, waiting at most `patience` seconds.

        True if the last holder died without giving it back, so that there may be litter.
        """
        self.drop()  # an interrupt may have come while it was taken or given back
        try:
            self._take(patience)
            died = _holder(self._fd) != ""
            operations.write_at(self._fd, b"%-10d" % os.getpid(), 0)
        except BaseException as problem:
            self.drop()
            if isinstance(problem, OSError) and problem.filename is None:
                problem.filename = self.path
            raise
        return died

    def drop(self) -> None:
        """Close the file, if it is open; a forked copy leaves the lock to the original so."""
        self._owner = None
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def release(self, anchor: bytes = b"") -> None:
        """Give the lock back, and leave `anchor` in its file: where the ledger ends now."""
        try:
            if not self._unclean:
                operations.write_at(self._fd, _NOBODY + anchor, 0)
            # Closing would not do: a process that was forked meanwhile has it open too.
            operations.unlock(self._fd)
        except OSError:
            # The name of a dead holder stays; the next one cleans up for nothing.
            pass
        finally:
            self.drop()
            self._unclean = False

    def announce_restore(self) -> None:
        """Let who waits know what for: the number of a holder that restores is at the right."""
        operations.write_at(self._fd, b"%10d" % os.getpid(), 0)

    def make_durable(self) -> None:
        """See that whoever comes after a power cut knows that this holder died."""
        operations.fsync(self._fd)

    def leave_unclean(self) -> None:
        """Let the next holder clean up as if this one had died."""
        self._unclean = True

    def _take(self, patience: float) -> None:
        """Open the file and lock it. Whoever is interrupted finds what is open in `_fd`."""
        deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
        while True:
            self._fd = _open(self.path)
            if operations.lock(self._fd) and _still_there(self._fd, self.path):
                return
            mark = os.pread(self._fd, len(_NOBODY), 0)
            holder = _pid_in(mark)
            self.drop()
            is_restore = holder != "" and mark.startswith(b" ")
            if time.monotonic() >= (
                max(deadline, self.restore_deadline) if is_restore else deadline
            ):
                raise BusyError(
                    f"another process{holder} has been working on this project for "
                    f"{patience:.0f} seconds",
                    hint="wait for it to finish, or stop it, and try again",
                )
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


class Held:
    """The lock, held for the length of a `with` block.

    Threads of this process wait for each other as long as it takes, or not at all if `patience`
    is 0. `recover` is called when it was taken, with whether its last holder died. An interrupt
    may come in the very moment in which the block is left, before anything here can catch it;
    then the lock is given back when nobody has this object any more, which is when the interrupt
    was dealt with. A block inside of this one keeps it until then.
    """

    def __init__(
        self,
        lock: Lock,
        recover: "Callable[[bool], None] | None" = None,
        anchor: "Callable[[], bytes] | None" = None,
        patience: float = PATIENCE,
    ) -> None:
        self._lock = lock
        self._anchor = anchor
        self._recover = recover
        self._patience = patience
        self._outer: Held | None = None
        self._thread = 0

    def __enter__(self) -> None:
        if not self._lock.mutex.acquire(blocking=self._patience > 0):
            raise BusyError(
                "another thread of this program is working on this project",
                hint="wait for it to finish, and try again",
            )
        try:
            self._outer = self._lock.owner
            if self._outer is None:
                self._take()
        except BaseException:
            if self._outer is None:
                self._lock.drop()
            self._lock.mutex.release()
            raise
        self._thread = get_ident()

    def _take(self) -> None:
        died = self._lock.acquire(self._patience)
        self._lock.owner = self
        if self._recover is not None:
            try:
                self._recover(died)
            except BaseException:
                self._lock.leave_unclean()
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        anchor = b""
        try:
            if self._outer is None and self._anchor is not None:
                anchor = self._anchor()
        finally:
            self._give_back(anchor)

    def _give_back(self, anchor: bytes) -> None:
        try:
            if self._lock.owner is self:
                self._lock.release(anchor)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._lock.owner is self:
            self._lock.drop()
        self._outer = None
        if self._thread:
            self._thread = 0
            self._lock.mutex.release()

    def __del__(self) -> None:
        if self._thread == get_ident():  # not for another thread
            self._let_go()


def read_anchor(path: bytes) -> bytes:
    """What the last holder who gave the lock back left in the lock file."""
    return _read(path, 256, len(_NOBODY))


def _read(path: bytes, length: int, offset: int) -> bytes:
    """What a lock file holds; nothing if it is not a plain file."""
    try:
        fd = os.open(path, _READ)
    except OSError:
        return b""
    try:
        return os.pread(fd, length, offset) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def _open(path: bytes) -> int:
    try:
        return operations.open_or_create(path)
    except OSError as problem:
        if problem.errno in _DISK:
            raise
        raise UnsafeStoreError(
            f"the lock file `{os.fsdecode(path)}` cannot be opened: {problem.strerror}",
            hint="it must be a plain file that you own; check it, and remove what replaced it",
        ) from None


def _still_there(fd: int, path: bytes) -> bool:
    # Somebody may have removed the file between our open and our lock; then two processes
    # could hold two different files of the same name.
    held = os.fstat(fd)
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


def _holder(fd: int) -> str:
    return _pid_in(os.pread(fd, len(_NOBODY), 0))


def _pid_in(mark: bytes) -> str:
    pid = mark.strip()
    return f" (pid {pid.decode()})" if pid.isdigit() else ""
