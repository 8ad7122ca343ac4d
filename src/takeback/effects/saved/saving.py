"""Put files aside: by a second name where that is enough, else by shared blocks or a copy.

Bounded in time, number and bytes; what is beyond is reported, folder by folder.
"""

import os
import time

from takeback.disk import operations
from takeback.effects.saved import area
from takeback.effects.saved.area import Held
from takeback.effects.saved.targets import is_in, needs_copy, rebuildable
from takeback.errors import TakebackError
from takeback.model import ids, reasons
from takeback.model.beyond.rescued import COPY, LINK, REFLINK, Missed, Rebuildable
from takeback.model.reasons import Reason
from takeback.model.tree import FOLDER, KIND, REGULAR
from takeback.model.tree import LINK as SYMLINK
from takeback.model.value import Value
from takeback.worktree.stage import copy_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.capture.workspace import Workspace
    from takeback.effects.saved.targets import Wanted

MOST_FILES = 100_000
PATIENCE = 3.0
"""Seconds; the agent waits, and so does its time-out."""
APART = -1
"""Stands for the number of a path that was named, where no path was: state of git."""
LEAST_FREE = 10
"""Percent of the disk that copies leave free."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Bounds(Value):
    """How much one rescue may take: bytes that are copied, files, seconds."""

    copied: int
    files: int = MOST_FILES
    seconds: float = PATIENCE
    rebuildable: "frozenset[bytes]" = frozenset()


class Saver:
    """Saves paths into the areas of one rescue."""

    def __init__(
        self, work: "Workspace", id: str, doomed: "Sequence[bytes]", bounds: Bounds
    ) -> None:
        self._store = work.store
        self._project = work.id
        self._root = os.path.realpath(work.root)
        self._id = id
        self._doomed = doomed
        self._left = bounds.copied
        self._files = bounds.files
        self._names = bounds.rebuildable
        self._deadline = time.monotonic() + bounds.seconds
        self.areas: list[bytes] = []
        self._open: list[int] = []
        self._by_device: dict[int, int | None] = {}
        self._apart = (b"", 0)
        self._made: set[tuple[int, bytes]] = set()
        self.held: list[Held] = []
        self.tops: list[bytes] = []
        self.missed: list[Missed] = []
        self.rebuildable: list[Rebuildable] = []

    def close(self, *, durable: bool) -> None:
        """Close the areas, and let what is in them survive a power cut."""
        try:
            for fd in self._open if durable else ():
                if any(each.how != LINK for each in self.held):
                    operations.syncfs(fd)
                else:
                    operations.fsync(fd)
        finally:
            while self._open:
                os.close(self._open.pop())

    # -- what is saved -------------------------------------------------------------------------

    def save(self, wanted: "Wanted") -> None:
        """Save a path, and what is below it."""
        folder, name = os.path.split(wanted.path)
        top = len(self.tops)
        self.tops.append(wanted.path)
        try:
            fd = os.open(folder, _DIRECTORY)
        except OSError as problem:
            self._miss(wanted.path, problem)
            return
        try:
            self._entry(fd, name, wanted.path, top, wanted)
        finally:
            os.close(fd)

    def save_apart(self, wanted: "Wanted", above: bytes, number: int) -> None:
        """Save what no restore writes back by itself, laid out as it is below `above`."""
        before, self._apart = self._apart, (above, number)
        try:
            folder, name = os.path.split(wanted.path)
            fd = os.open(folder, _DIRECTORY)
            try:
                self._entry(fd, name, wanted.path, APART, wanted)
            finally:
                os.close(fd)
        except OSError as problem:
            self._miss(wanted.path, problem)
        finally:
            self._apart = before

    def _entry(self, fd: int, name: bytes, path: bytes, top: int, wanted: "Wanted") -> None:
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            kind = found.st_mode & KIND
            if kind == REGULAR:
                self._file(fd, name, path, top, found, needs_copy(wanted.loss))
            elif kind == SYMLINK:
                target = os.readlink(name, dir_fd=fd)
                self.held.append(_held(path, found, top).replace(target=target))
            elif kind == FOLDER:
                if top != APART:
                    self.held.append(_held(path, found, top))
                if wanted.is_deep:
                    self._folder(fd, name, path, top, wanted)
        except OSError as problem:
            self._miss(path, problem)
        except RecursionError:  # hundreds of folders, one in the other
            why = Reason(reasons.TOO_MANY_TO_SAVE, count=len(self.held))
            self.missed.append(Missed(path, why))

    def _folder(self, above: int, name: bytes, path: bytes, top: int, wanted: "Wanted") -> None:
        fd = os.open(name, _DIRECTORY, dir_fd=above)
        try:
            with os.scandir(fd) as listed:
                names = sorted(os.fsencode(each.name) for each in listed)
            for each in names:
                below = os.path.join(path, each)
                if below in wanted.spared or ids.is_area(each):
                    continue
                if self._is_over(path):
                    return
                is_made = top != APART and each in self._names
                if is_made and (again := rebuildable(below)) is not None:
                    self.rebuildable.append(again)
                    continue
                self._entry(fd, each, below, top, wanted)
        finally:
            os.close(fd)

    def _is_over(self, path: bytes) -> bool:
        """Whether a bound is reached; then the rest of the folder is missed."""
        if self._files > 0 and time.monotonic() < self._deadline:
            return False
        if not self.missed or not is_in(path, [self.missed[-1].raw_path]):
            why = Reason(reasons.TOO_MANY_TO_SAVE, count=len(self.held))
            self.missed.append(Missed(path, why))
        return True

    # -- one file ------------------------------------------------------------------------------

    def _file(
        self,
        fd: int,
        name: bytes,
        path: bytes,
        top: int,
        found: os.stat_result,
        is_copied: bool,
    ) -> None:
        """Save a file: by a link if only its name is lost."""
        self._files -= 1
        place = self._place(found.st_dev, path)
        own = self._name(path, top)
        held = _held(path, found, top).replace(name=own)
        if place is None and is_copied:
            place = self._in_store()
        if place is not None:
            self._make_folders(place, own)
        if place is not None and not is_copied and self._link(fd, name, place, own):
            self.held.append(held.replace(area=place, how=LINK))
            return
        if place is None:
            place = self._in_store()
            self._make_folders(place, own)
        how = self._copy(fd, name, path, place, own)
        if how:
            copied = os.stat(own, dir_fd=self._open[place], follow_symlinks=False)
            held = held.replace(mtime=copied.st_mtime_ns, area=place, how=how)
            self.held.append(held.replace(size=copied.st_size))

    def _name(self, path: bytes, top: int) -> bytes:
        """What a file is called in its area."""
        if top != APART:
            return b"%d" % len(self.held)
        above, number = self._apart
        return b"git%d/" % number + path[len(above) + 1 :]

    def _make_folders(self, place: int, own: bytes) -> None:
        *folders, _ = own.split(b"/")
        for depth in range(1, len(folders) + 1):
            key = place, b"/".join(folders[:depth])
            if key not in self._made:
                operations.mkdir(key[1], dir_fd=self._open[place])
                self._made.add(key)

    def _link(self, fd: int, name: bytes, place: int, own: bytes) -> bool:
        try:
            operations.link(fd, name, self._open[place], own)
        except OSError:
            return False  # of another mount, not ours, or with too many names
        return True

    def _copy(self, fd: int, name: bytes, path: bytes, place: int, own: bytes) -> str:
        """Copy a file, with shared blocks where that can be; how, or empty if it was missed."""
        source = os.open(name, _FILE, dir_fd=fd)
        try:
            found = os.fstat(source)
            copy = operations.create(own, dir_fd=self._open[place])
            how = ""
            try:
                how = self._fill(copy, source, found.st_size, path)
            finally:
                os.close(copy)
                if not how:  # also after an error: the next file gets this name
                    operations.unlink(own, dir_fd=self._open[place])
            if how:
                operations.set_mtime(own, found.st_mtime_ns, dir_fd=self._open[place])
            return how
        finally:
            os.close(source)

    def _fill(self, copy: int, source: int, size: int, path: bytes) -> str:
        try:
            operations.clone(copy, source)
            return REFLINK
        except OSError:
            pass
        disk = os.fstatvfs(copy)
        room = disk.f_bavail * disk.f_frsize - disk.f_blocks * disk.f_frsize * LEAST_FREE // 100
        if size > self._left or size > room:
            code = reasons.TOO_LARGE_TO_COPY if size > self._left else reasons.NO_ROOM_TO_COPY
            self.missed.append(Missed(path, Reason(code, size=size)))
            return ""
        self._left -= size
        copy_file(copy, source)
        return COPY

    # -- where ---------------------------------------------------------------------------------

    def _place(self, device: int, path: bytes) -> "int | None":
        """The area on the disk of a file; None if there is none."""
        if device not in self._by_device:
            self._by_device[device] = self._make_place(device, path)
        return self._by_device[device]

    def _make_place(self, device: int, path: bytes) -> "int | None":
        is_inside = is_in(path, [self._root])
        above = self._root if is_inside else os.path.dirname(path)
        folders = [self._store.path]
        while above != b"/":
            above = os.path.dirname(above)
            folders.append(above)
        if is_inside:
            folders.append(self._root)  # if it is a mount point, that is all there is
        for number, folder in enumerate(folders):
            base = area.beside(folder, self._project) if number else area.in_store(self._store)
            try:
                is_there = os.lstat(folder).st_dev == device and not is_in(base, self._doomed)
                if is_there and os.access(folder, os.W_OK | os.X_OK):
                    return self._open_area(base)
            except (OSError, TakebackError):
                continue
        return None

    def _in_store(self) -> int:
        base = area.in_store(self._store)
        return self.areas.index(base) if base in self.areas else self._open_area(base)

    def _open_area(self, base: bytes) -> int:
        area.require(base)
        own = base + b"/" + self._id.encode()
        operations.mkdir(own)
        operations.fsync_dir(base)
        self._open.append(os.open(own, _DIRECTORY))
        self.areas.append(base)
        return len(self.areas) - 1

    def _miss(self, path: bytes, problem: OSError) -> None:
        why = Reason(reasons.CANNOT_BE_SAVED, why=problem.strerror or "")
        self.missed.append(Missed(path, why))


def _held(path: bytes, found: os.stat_result, top: int) -> Held:
    owner = found.st_uid, found.st_gid
    size = found.st_size if found.st_mode & KIND == REGULAR else 0
    return Held(
        path, found.st_mode, *owner, top, found.st_dev, found.st_ino, size, found.st_mtime_ns
    )
