"""What can be refused before the first change: no room, another disk, what is somebody else's."""

import os

from takeback.errors import BlockedError
from takeback.model.tree import KIND, REGULAR
from takeback.store import attributes
from takeback.store.descent import Descent
from takeback.store.states import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.model.swap import Op


_STICKY = 0o1000
_ASK = "ask its owner, or take back other paths only: `-- PATH`; nothing was changed"


def require_possible(root: int, ops: "Sequence[Op]") -> None:
    """An error unless everything that is planned can be done, as far as one can see."""
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
        raise BlockedError(f"the folder `{shown}` forbids to change what is in it", hint=_ASK)
    descent = Descent(root)
    try:
        _require_unmarked(descent, ops)
    finally:
        descent.close()
    for op in ops:
        try:
            found = os.stat(op.name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if found.st_uid != os.geteuid() or found.st_mode & KIND != REGULAR:
            path = os.fsdecode(os.path.join(where, op.name))
            raise BlockedError(f"`{path}` is no file of yours any more", hint=_ASK)


def _require_room(root: int, ops: "Sequence[Op]") -> None:
    size = sum(op.after.size for op in ops if op.after is not None and op.is_staged(forward=True))
    disk = os.fstatvfs(root)
    if disk.f_bavail * disk.f_frsize < size + size // 20:
        raise BlockedError(
            f"there is not enough room: {size:,} bytes are needed",
            hint="free some space and try again; nothing was changed",
        )


def _require_open_root(root: os.stat_result) -> None:
    """What is to appear is staged in the root, wherever it goes."""
    if os.geteuid() == root.st_uid != 0 and root.st_mode & 0o300 != 0o300:
        raise BlockedError(
            "the folder of the project forbids to make anything in it",
            hint="`chmod u+wx` it, and try again; nothing was changed",
        )


def _require_writable(descent: Descent, way: "tuple[bytes, ...]", device: int) -> None:
    """An error unless the nearest folder that is there can be changed, on this disk."""
    fd, way = _nearest(descent, way)
    found, shown = os.fstat(fd), os.fsdecode(b"/".join(way) or b".")
    if found.st_dev != device:
        raise BlockedError(f"`{shown}` is on another disk", hint="unmount it, and try again")
    if os.geteuid() not in (0, found.st_uid) and not os.access(b".", os.W_OK | os.X_OK, dir_fd=fd):
        raise BlockedError(
            f"the folder `{shown}` is somebody else's and forbids to change what is in it",
            hint=_ASK,
        )


def _require_unmarked(descent: Descent, ops: "Sequence[Op]") -> None:
    """An error if `chattr` forbids to change something, which even root has to take away first."""
    marks_of, frozen = attributes.reader(), attributes.IMMUTABLE | attributes.APPEND_ONLY
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
        f"`{os.fsdecode(path or b'.')}` is marked so that nobody can change it (`lsattr`)",
        hint="`chattr -ia` it, or take back other paths only: `-- PATH`; nothing was changed",
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
