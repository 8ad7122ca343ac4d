"""What can be refused before the first change: no room, another disk, somebody else's folder."""

import os

from takeback.errors import BlockedError
from takeback.model.tree import FOLDER
from takeback.store.descent import Descent
from takeback.store.states import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.store.states import Op


def require_possible(root: int, ops: "Sequence[Op]") -> None:
    """An error unless everything that is planned can be done, as far as one can see."""
    _require_room(root, ops)
    device, descent = os.fstat(root).st_dev, Descent(root)
    try:
        for way in dict.fromkeys(op.way for op in ops):
            _require_writable(descent, way, device)
    finally:
        descent.close()


def _require_room(root: int, ops: "Sequence[Op]") -> None:
    size = sum(op.after.size for op in ops if op.after and op.after.kind != FOLDER)
    disk = os.fstatvfs(root)
    if disk.f_bavail * disk.f_frsize < size + size // 20:
        raise BlockedError(
            f"there is not enough room: {size:,} bytes are needed",
            hint="free some space and try again; nothing was changed",
        )


def _require_writable(descent: Descent, way: "tuple[bytes, ...]", device: int) -> None:
    """An error unless the nearest folder that is there can be changed, on this disk."""
    fd, way = _nearest(descent, way)
    found, shown = os.fstat(fd), os.fsdecode(b"/".join(way) or b".")
    if found.st_dev != device:
        raise BlockedError(f"`{shown}` is on another disk", hint="unmount it, and try again")
    if os.geteuid() not in (0, found.st_uid) and not os.access(b".", os.W_OK, dir_fd=fd):
        raise BlockedError(
            f"the folder `{shown}` is somebody else's and forbids to change what is in it",
            hint="ask its owner, or take back other paths only: `-- PATH`",
        )


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
