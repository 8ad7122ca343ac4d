"""The folders in which one restore works: that of the project, and those of files outside of it.

A restore is all or nothing over all of them. What is in reach when it begins may be gone when it
has to be taken back: then that is said, and the rest is brought back all the same.
"""

import errno
import os

from takeback.errors import BlockedError
from takeback.store.descent import open_folder
from takeback.store.restoring import MOVED, Restoring
from takeback.store.states import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.swap import Op, Owner
    from takeback.store.journal import Away, Journal
    from takeback.store.objects import ObjectStore

_OUT_OF_REACH = (*GONE, errno.EACCES, errno.EPERM, errno.ESTALE)
_LOST = "its folder is not there any more, or nobody may open it: left as it is"


class Roots:
    """One restore in all its folders; `lost` are the files outside whose folder is out of reach."""

    def __init__(
        self, root: int, objects: "ObjectStore", row: "Journal", *, is_way_back: bool = False
    ) -> None:
        self.each: list[Restoring] = []
        self.lost: dict[bytes, str] = {}
        self._opened: list[int] = []
        if row.ops or not row.away:
            self.each.append(Restoring(root, objects, row.stage, row.ops))
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
                    f"the folder `{os.fsdecode(away.folder)}` is not what it was: "
                    f"{problem.strerror}",
                    hint="look at the plan again; nothing was changed",
                ) from problem
            self.lost |= {away.path(op): _LOST for op in away.ops}
            return
        self._opened.append(fd)
        self.each.append(Restoring(fd, objects, stage, away.ops))
        self.each[-1].at = away.folder

    def close(self) -> None:
        """Close every descriptor but that of the project's folder."""
        for restoring in self.each:
            restoring.close()
        while self._opened:
            os.close(self._opened.pop())

    @property
    def ops(self) -> "list[Op]":
        """What is done, in all folders."""
        return [op for restoring in self.each for op in restoring.ops]

    def trust(self, owners: "dict[bytes, Owner]") -> None:
        """Let programs be setuid for those whose they were; outside, only our own are captured."""
        for restoring in self.each:
            own = dict.fromkeys((op.path for op in restoring.ops), (os.geteuid(), os.getegid()))
            restoring.trusted = own if restoring.at else owners

    @property
    def dropped(self) -> "list[bytes]":
        """The paths that are not setuid again."""
        return [path for restoring in self.each for path in restoring.dropped]

    @property
    def kept(self) -> "dict[bytes, str]":
        """The paths where somebody's newer work stays; those outside are whole."""
        found = dict(self.lost)
        for restoring in self.each:
            found |= {restoring.named(path): why for path, why in restoring.kept.items()}
        return found

    @property
    def out_of_reach(self) -> "list[bytes]":
        """The paths that stay as the restore left them, if it got there, as nobody finds them."""
        moved = [r.named(p) for r in self.each for p, why in r.kept.items() if why == MOVED]
        return sorted([*self.lost, *moved])

    def changed(self) -> "list[bytes]":
        """The paths that are not as they were when the restore was planned."""
        return [r.named(path) for r in self.each for path in r.changed()]

    def require_apart(self) -> None:
        """An error if two names of the plan are one to the disk."""
        for restoring in self.each:
            restoring.require_apart()

    def unfinished(self, *, forward: bool) -> "list[bytes]":
        """The paths that are not on their side."""
        return [r.named(path) for r in self.each for path in r.unfinished(forward=forward)]

    def open_stages(self) -> None:
        """Open our own folders, where they are there; the others are done with."""
        for restoring in list(self.each):
            if restoring.stage.is_there():
                restoring.stage.open()
            else:
                self.each.remove(restoring)
                restoring.close()
