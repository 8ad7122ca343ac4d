"""The folders in which one restore works: the project's, and those of files outside of it.

A restore is all or nothing over all of them. What can be refused is refused before the first
change: no room, another disk, another owner, `chattr +i`. A folder that is in reach at the start
may be gone when the restore has to be rolled back: it is reported, and the rest is brought back.
"""

import errno
import os
import sys

from takeback.disk.descent import Descent, open_folder
from takeback.errors import BlockedError
from takeback.model import reasons
from takeback.model.reasons import Action, Reason
from takeback.model.tree import KIND, REGULAR
from takeback.worktree.stage import GONE
from takeback.worktree.swap import MOVED, PathSwapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from takeback.ledger.journal import Away, Journal
    from takeback.model.tree import Op, Owner
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress


IMMUTABLE, APPEND_ONLY = 0x10, 0x20
"""`chattr +i`: nothing can be done to it. `chattr +a`: it can grow, and nothing else."""

_NOT_THROUGH_LINKS = 0x100
_SIZE, _AT = 256, 8
"""How long the answer is, and where in it the marks stand."""


def reader() -> "Callable[[int, bytes], int]":
    """A function that reads the marks of an entry in an open folder; 0 if there are none.

    It calls `statx`, which Python does not offer; where the system lacks it, no marks are known.
    """
    if sys.platform != "linux":
        return lambda _folder, _name: 0
    import ctypes
    from struct import Struct

    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None:
        return lambda _folder, _name: 0
    number, text = ctypes.c_int, ctypes.c_char_p
    statx.argtypes = [number, text, number, ctypes.c_uint, text]
    answer, marks = ctypes.create_string_buffer(_SIZE), Struct("=Q").unpack_from

    def read(folder: int, name: bytes) -> int:
        if statx(folder, name, _NOT_THROUGH_LINKS, 0, answer) != 0:
            return 0
        return int(marks(answer, _AT)[0])

    return read


_STICKY = 0o1000
_ASK = ("ask its owner", Action("other-paths"), "nothing was changed")


def require_possible(root: int, ops: "Sequence[Op]") -> None:
    _require_room(root, ops)
    _require_open_root(os.fstat(root))
    device, descent = os.fstat(root).st_dev, Descent(root)
    try:
        for way in dict.fromkeys(op.way for op in ops):
            _require_writable(descent, way, device)
        _require_unmarked(descent, ops)
        if os.geteuid() != 0:
            for op in ops:
                _require_own(descent, op)
    finally:
        descent.close()


def require_outside(root: int, ops: "Sequence[Op]", where: bytes) -> None:
    """The same for single files in a folder outside the project, which must be our own."""
    _require_room(root, ops)
    folder, shown = os.fstat(root), os.fsdecode(where)
    is_own = os.geteuid() == folder.st_uid and folder.st_mode & 0o300 == 0o300
    if not is_own and not os.access(b".", os.W_OK | os.X_OK, dir_fd=root):
        raise BlockedError(f"the folder `{shown}` is not writable", hint=_ASK)
    descent = Descent(root)
    try:
        _require_unmarked(descent, ops)
    finally:
        descent.close()
    for op in ops:
        if op.way:
            continue  # in a folder that comes back with it
        try:
            found = os.stat(op.name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if found.st_uid != os.geteuid() or found.st_mode & KIND != REGULAR:
            path = os.fsdecode(os.path.join(where, op.name))
            raise BlockedError(f"`{path}` is no longer a file of yours", hint=_ASK)


def _require_room(root: int, ops: "Sequence[Op]") -> None:
    size = sum(op.after.size for op in ops if op.after is not None and op.is_staged(forward=True))
    disk = os.fstatvfs(root)
    if disk.f_bavail * disk.f_frsize < size + size // 20:
        raise BlockedError(
            f"there is not enough disk space: {size:,} bytes are needed",
            hint="free some space and try again; nothing was changed",
        )


def _require_open_root(root: os.stat_result) -> None:
    """What is to appear is staged in the root, wherever it goes."""
    if os.geteuid() == root.st_uid != 0 and root.st_mode & 0o300 != 0o300:
        raise BlockedError(
            "the project folder is not writable",
            hint="run `chmod u+wx` on it and try again; nothing was changed",
        )


def _require_writable(descent: Descent, way: "tuple[bytes, ...]", device: int) -> None:
    fd, way = _nearest(descent, way)
    found, shown = os.fstat(fd), os.fsdecode(b"/".join(way) or b".")
    if found.st_dev != device:
        raise BlockedError(f"`{shown}` is on another disk", hint="unmount it, and try again")
    if os.geteuid() not in (0, found.st_uid) and not os.access(b".", os.W_OK | os.X_OK, dir_fd=fd):
        raise BlockedError(
            f"the folder `{shown}` belongs to another user and is not writable",
            hint=_ASK,
        )


def _require_unmarked(descent: Descent, ops: "Sequence[Op]") -> None:
    """An error if `chattr` forbids to change something, which even root has to take away first."""
    marks_of, frozen = reader(), IMMUTABLE | APPEND_ONLY
    inside: dict[tuple[bytes, ...], list[Op]] = {(): []}
    for op in ops:
        inside.setdefault(op.way, []).append(op)
    for wanted, there in inside.items():
        fd, way = _nearest(descent, wanted)
        if marks_of(fd, b".") & frozen:
            raise _marked(b"/".join(way))
        for op in there if way == wanted else ():
            if op.before is not None and op.name and marks_of(fd, op.name) & frozen:
                raise _marked(op.path)


def _marked(path: bytes) -> BlockedError:
    return BlockedError(
        f"`{os.fsdecode(path or b'.')}` is marked immutable (`lsattr`)",
        hint=("run `chattr -ia` on it", Action("other-paths"), "nothing was changed"),
    )


def _require_own(descent: Descent, op: "Op") -> None:
    """Some things only the owner may do: change a mode, take something out of a sticky folder."""
    fd, way = _nearest(descent, op.way)
    if op.before is None or way != op.way:
        return
    folder, me = os.fstat(fd), os.geteuid()
    try:
        if os.stat(op.name or b".", dir_fd=fd, follow_symlinks=False).st_uid == me:
            return
    except FileNotFoundError:
        return
    shown = os.fsdecode(op.path or b".")
    if op.is_in_place:
        if op.after is not None and (op.before.mode ^ op.after.mode) & 0o7777:
            raise BlockedError(f"only its owner can change the mode of `{shown}`", hint=_ASK)
    elif folder.st_mode & _STICKY and folder.st_uid != me:
        raise BlockedError(f"only its owner can take `{shown}` out of its folder", hint=_ASK)


def _nearest(descent: Descent, way: "tuple[bytes, ...]") -> "tuple[int, tuple[bytes, ...]]":
    """The deepest folder on a way that is there, open, and the way to it."""
    while way:
        try:
            return descent.open(way), way
        except OSError as problem:
            if problem.errno not in GONE:
                raise
            way = way[:-1]
    return descent.root, way


_OUT_OF_REACH = (*GONE, errno.EACCES, errno.EPERM, errno.ESTALE)


class Roots:
    """One restore in all its folders; `lost` are the files outside whose folder is out of reach."""

    def __init__(
        self, root: int, objects: "ObjectStore", row: "Journal", *, is_way_back: bool = False
    ) -> None:
        self.each: list[PathSwapper] = []
        self.lost: dict[bytes, Reason] = {}
        self._opened: list[int] = []
        if row.ops or not row.away:
            self.each.append(PathSwapper(root, objects, row.stage, row.ops))
        try:
            for away in row.away:
                self._open(away, objects, row.stage, is_way_back=is_way_back)
        except BaseException:
            self.close()
            raise

    def _open(
        self, away: "Away", objects: "ObjectStore", stage: bytes, *, is_way_back: bool
    ) -> None:
        try:
            fd = open_folder(away.folder)
        except OSError as problem:
            if problem.errno not in _OUT_OF_REACH:
                raise
            if not is_way_back:
                raise BlockedError(
                    f"the folder `{os.fsdecode(away.folder)}` was replaced: {problem.strerror}",
                    hint="plan again; nothing was changed",
                ) from problem
            self.lost |= {away.path(op): Reason(reasons.FOLDER_LOST) for op in away.ops}
            return
        self._opened.append(fd)
        self.each.append(PathSwapper(fd, objects, stage, away.ops))
        self.each[-1].at = away.folder

    def report(self, progress: "Progress | None") -> None:
        """Let somebody know how far the work is."""
        for swapper in self.each:
            swapper.stage.progress = progress

    def close(self) -> None:
        for swapper in self.each:
            swapper.close()
        while self._opened:
            os.close(self._opened.pop())

    @property
    def ops(self) -> "list[Op]":
        return [op for swapper in self.each for op in swapper.ops]

    def trust(self, owners: "dict[bytes, Owner]") -> None:
        """Let programs be setuid for those whose they were; outside, only our own are captured."""
        for swapper in self.each:
            own = dict.fromkeys((op.path for op in swapper.ops), (os.geteuid(), os.getegid()))
            swapper.trusted = own if swapper.at else owners

    @property
    def dropped(self) -> "list[bytes]":
        return [path for swapper in self.each for path in swapper.dropped]

    @property
    def kept(self) -> "dict[bytes, Reason]":
        """The paths where somebody's newer work stays; those outside are whole."""
        found = dict(self.lost)
        for swapper in self.each:
            found |= {swapper.named(path): why for path, why in swapper.kept.items()}
        return found

    @property
    def out_of_reach(self) -> "list[bytes]":
        """The paths that stay as the restore left them, if it got there, as nobody finds them."""
        moved = [r.named(p) for r in self.each for p, why in r.kept.items() if why == MOVED]
        return sorted([*self.lost, *moved])

    def changed(self) -> "list[bytes]":
        return [r.named(path) for r in self.each for path in r.changed()]

    def require_apart(self) -> None:
        for swapper in self.each:
            swapper.require_apart()

    def unfinished(self, *, forward: bool) -> "list[bytes]":
        return [r.named(path) for r in self.each for path in r.unfinished(forward=forward)]

    def open_stages(self) -> None:
        """Open our own folders, where they are there; the others are done with."""
        for swapper in list(self.each):
            if swapper.stage.is_there():
                swapper.stage.open()
            else:
                self.each.remove(swapper)
                swapper.close()
