"""Trees that change under the eyes of who looks at them, at exactly chosen moments.

The product tells a test when it has listed a folder, opened a file or read it; after each piece
of a large file the test finds out by itself. There the adversary makes its move, so every race
is run in the same way each time. After each move the
tree is pictured: what is captured of a path must be one of the states the path really had.

A writer that comes while the product reads may be held off by the kernel for that moment (a
read lease); then it writes when the scan is over, as a real one would. A writer that had the
file open before cannot be held off.
"""

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

import oracle
from hostile.ground import Ground

VICTIM = b"victim"
FIRST = b"A" * 200_000
SECOND = b"B" * 200_000
_HALF = len(FIRST) // 2
_LARGE = 9 << 20


_read = os.read


class Adversary:
    """Makes one move each time the product reaches a chosen step, and keeps what was seen."""

    def __init__(self, ground: Ground, moving: "Moving") -> None:
        self.ground = ground
        self.moments = [oracle.picture(ground.root)]
        self.moves = 0
        self._moving = moving
        self._victim = os.stat(ground.path(VICTIM)).st_ino
        self._busy = False
        self._later: list[Callable[[], None]] = []

    def on_content(self, step: str, name: bytes) -> None:
        """The product's hook for files: `opened` or `read`."""
        if os.path.basename(name) == VICTIM:
            self._act(step)

    def read(self, fd: int, length: int) -> bytes:
        """Stand in for `os.read`, and move after each piece of the victim."""
        data = _read(fd, length)
        if not self._busy and os.fstat(fd).st_ino == self._victim:
            self._act("piece")
        return data

    def on_scan(self, step: str, path: bytes) -> None:
        """The product's hook for folders: `listed`."""
        self._act(step + " " + os.fsdecode(path))

    def finish(self) -> None:
        """Let the writers go on that the kernel held off."""
        for write in self._later:
            write()
        self._later.clear()

    def write(self, data: bytes, place: int = 0, *, append: bool = False) -> None:
        """Write into the victim as another program would: now, or when the reader is done."""
        try:
            fd = os.open(self.ground.path(VICTIM), os.O_WRONLY | os.O_NONBLOCK)
        except BlockingIOError:
            self._later.append(lambda: self.write(data, place, append=append))
            return
        os.pwrite(fd, data, os.fstat(fd).st_size if append else place)
        os.close(fd)

    def truncate(self, length: int) -> None:
        """Cut the victim short, now or when the reader is done."""
        try:
            fd = os.open(self.ground.path(VICTIM), os.O_WRONLY | os.O_NONBLOCK)
        except BlockingIOError:
            self._later.append(lambda: self.truncate(length))
            return
        os.ftruncate(fd, length)
        os.close(fd)

    def _act(self, step: str) -> None:
        if step != self._moving.step or self._busy or self.moves >= self._moving.times:
            return
        self._busy = True
        self.moves += 1
        self._moving.move(self)
        self.moments.append(oracle.picture(self.ground.root))
        self._busy = False


class Moving(NamedTuple):
    """A tree, the step at which it changes, and how; `times` bounds how often.

    `may_list` are paths that may be listed as left out instead of being captured. `writer`
    keeps the victim open for writing all the while, so that no lease can be had. A `large`
    victim is read in pieces, and is not young enough for a lease.
    """

    name: str
    step: str
    move: Callable[[Adversary], None]
    times: int = 1
    may_list: tuple[bytes, ...] = ()
    writer: bool = False
    large: bool = False


def build(ground: Ground, *, large: bool = False) -> None:
    """The tree all of them begin with."""
    ground.file(VICTIM, b"A" * _LARGE if large else FIRST)
    ground.file(b"other", b"held still\n")
    ground.file(b"folder/inside", b"one\n")
    ground.file(b"folder/deeper/inside", b"two\n")
    ground.file(b"twin/inside", b"three\n")
    ground.link(b"link", b"other")


def stir(ground: Ground) -> None:
    """Change every folder and file a little, so that a warm scan has to look at them again."""
    for folder in (b"", b"folder/", b"folder/deeper/", b"twin/"):
        ground.file(folder + b"new", b"new\n")
    for file in (VICTIM, b"folder/inside", b"folder/deeper/inside", b"twin/inside"):
        ground.append(file, b"stirred\n")


def _to_folder(a: Adversary) -> None:
    a.ground.remove(VICTIM)
    a.ground.file(VICTIM + b"/inside", b"a folder now\n")


def _to_fifo(a: Adversary) -> None:
    a.ground.remove(VICTIM)
    a.ground.fifo(VICTIM)


def _to_socket(a: Adversary) -> None:
    a.ground.remove(VICTIM)
    a.ground.node(VICTIM, stat.S_IFSOCK)


def _to_link(a: Adversary) -> None:
    a.ground.remove(VICTIM)
    a.ground.link(VICTIM, a.ground.beyond(b"secret"))


def _remove(a: Adversary) -> None:
    a.ground.remove(VICTIM)


def _grow(a: Adversary) -> None:
    a.write(b"more and more\n" * 5000, append=True)


def _shrink(a: Adversary) -> None:
    a.truncate(1000)


def _empty(a: Adversary) -> None:
    a.truncate(0)


def _second_half_first(a: Adversary) -> None:
    """Write the new content back to front: a reader in between must not mix old and new."""
    if a.moves == 1:
        a.write(SECOND[:_HALF], _HALF)
    elif a.moves == 2:
        a.write(SECOND[:_HALF], 0)


def _secretly(a: Adversary) -> None:
    """Change as many bytes as there were, and put the time stamp back."""
    status = os.stat(a.ground.path(VICTIM))
    a.write(b"%06d" % a.moves, 50)
    os.utime(a.ground.path(VICTIM), ns=(status.st_atime_ns, status.st_mtime_ns))


def _rewrite(a: Adversary) -> None:
    """Replace all that is there by one call, by other bytes each time."""
    a.write(bytes([a.moves % 256]) * _LARGE)


def _rewrite_secretly(a: Adversary) -> None:
    status = os.stat(a.ground.path(VICTIM))
    _rewrite(a)
    os.utime(a.ground.path(VICTIM), ns=(status.st_atime_ns, status.st_mtime_ns))


def _rename_save(a: Adversary) -> None:
    a.ground.file(b"victim~", SECOND + b"%d" % a.moves)
    os.rename(a.ground.path(b"victim~"), a.ground.path(VICTIM))


def _mode(a: Adversary) -> None:
    a.ground.chmod(VICTIM, 0o600)


def _rename_away(a: Adversary) -> None:
    os.rename(a.ground.path(VICTIM), a.ground.path(b"zz renamed"))


def _folder_out(a: Adversary) -> None:
    os.rename(a.ground.path(b"folder"), a.ground.beyond(b"taken"))


def _folder_to_link(a: Adversary) -> None:
    os.mkdir(a.ground.beyond(b"lair"))
    for name in (b"lair/inside", b"lair/secret"):
        with open(a.ground.beyond(name), "wb") as bait:
            bait.write(b"nothing of this may ever be read\n")
    _folder_out(a)
    a.ground.link(b"folder", a.ground.beyond(b"lair"))


def _folder_gone(a: Adversary) -> None:
    a.ground.remove(b"folder")


def _folder_to_file(a: Adversary) -> None:
    a.ground.remove(b"folder")
    a.ground.file(b"folder", b"a file now\n")


def _folders_exchanged(a: Adversary) -> None:
    os.rename(a.ground.path(b"folder"), a.ground.path(b"between"))
    os.rename(a.ground.path(b"twin"), a.ground.path(b"folder"))
    os.rename(a.ground.path(b"between"), a.ground.path(b"twin"))


def _folder_into_twin(a: Adversary) -> None:
    os.rename(a.ground.path(b"folder"), a.ground.path(b"twin/folder"))


def _more_entries(a: Adversary) -> None:
    for number in range(50):
        a.ground.file(b"folder/late-%d" % number)


def _link_turns(a: Adversary) -> None:
    a.ground.remove(b"link")
    a.ground.link(b"link", a.ground.beyond(b"secret"))


def _link_to_folder(a: Adversary) -> None:
    a.ground.remove(b"link")
    a.ground.file(b"link/inside")


def _link_to_file(a: Adversary) -> None:
    a.ground.remove(b"link")
    a.ground.file(b"link", b"a file now\n")


def _to_second_name(a: Adversary) -> None:
    a.ground.remove(VICTIM)
    os.link(a.ground.path(b"other"), a.ground.path(VICTIM))


def _entry_gone(a: Adversary) -> None:
    a.ground.remove(b"folder/inside")


def _all_gone(a: Adversary) -> None:
    for name in os.listdir(a.ground.root):
        a.ground.remove(name)


_OFTEN = 1000

MOVING = (
    Moving("moving-file-to-folder", "listed ", _to_folder, may_list=(VICTIM,)),
    Moving("moving-file-to-folder-late", "listed twin", _to_folder, may_list=(VICTIM,)),
    Moving("moving-file-to-folder-when-open", "opened", _to_folder),
    Moving("moving-file-to-fifo", "listed ", _to_fifo, may_list=(VICTIM,)),
    Moving("moving-file-to-socket", "listed ", _to_socket, may_list=(VICTIM,)),
    Moving("moving-file-to-fifo-open", "opened", _to_fifo, may_list=(VICTIM,)),
    Moving("moving-file-to-fifo-late", "listed twin", _to_fifo, may_list=(VICTIM,)),
    Moving("moving-file-to-link", "listed ", _to_link, may_list=(VICTIM,)),
    Moving("moving-file-to-link-late", "listed twin", _to_link, may_list=(VICTIM,)),
    Moving("moving-file-to-link-when-open", "opened", _to_link),
    Moving("moving-file-to-second-name", "listed ", _to_second_name),
    Moving("moving-file-removed", "listed ", _remove),
    Moving("moving-file-removed-late", "listed twin", _remove),
    Moving("moving-file-rename-saved-late", "listed twin", _rename_save),
    Moving("moving-file-to-second-name-late", "listed twin", _to_second_name),
    Moving("moving-link-turns-late", "listed twin", _link_turns),
    Moving("moving-link-to-folder-late", "listed twin", _link_to_folder, may_list=(b"link",)),
    Moving("moving-link-to-file-late", "listed twin", _link_to_file, may_list=(b"link",)),
    Moving("moving-file-removed-when-open", "opened", _remove),
    Moving("moving-file-removed-when-read", "read", _remove),
    Moving("moving-file-grows", "opened", _grow),
    Moving("moving-file-grows-without-end", "read", _grow, _OFTEN, writer=True),
    Moving("moving-file-grows-when-read", "read", _grow, _OFTEN),
    Moving("moving-file-shrinks", "opened", _shrink),
    Moving("moving-file-shrinks-when-read", "read", _shrink, writer=True),
    Moving("moving-file-emptied", "read", _empty, writer=True),
    Moving("moving-file-back-to-front", "read", _second_half_first, 2, writer=True),
    Moving("moving-file-back-to-front-late", "read", _second_half_first, 2),
    Moving("moving-file-secretly", "read", _secretly, _OFTEN, writer=True),
    Moving("moving-file-secretly-once", "opened", _secretly),
    Moving("moving-file-rename-saved", "opened", _rename_save),
    Moving("moving-file-rename-saved-often", "read", _rename_save, _OFTEN),
    Moving("moving-file-mode", "read", _mode),
    Moving("moving-large-rewritten", "piece", _rewrite, large=True),
    Moving("moving-large-rewritten-secretly", "piece", _rewrite_secretly, large=True),
    Moving("moving-large-rewritten-often", "piece", _rewrite, _OFTEN, (VICTIM,), large=True),
    Moving("moving-large-rename-saved", "piece", _rename_save, large=True),
    Moving("moving-large-grows", "piece", _grow, large=True),
    Moving("moving-large-shrinks", "piece", _shrink, large=True),
    Moving("moving-large-emptied", "piece", _empty, large=True),
    Moving("moving-large-removed", "piece", _remove, large=True),
    Moving("moving-file-renamed", "listed ", _rename_away),
    Moving("moving-folder-out", "listed ", _folder_out),
    Moving("moving-folder-out-when-listed", "listed folder", _folder_out),
    Moving("moving-folder-to-link", "listed ", _folder_to_link),
    Moving("moving-folder-to-link-when-listed", "listed folder", _folder_to_link),
    Moving("moving-folder-to-file", "listed ", _folder_to_file),
    Moving("moving-folder-gone", "listed ", _folder_gone),
    Moving("moving-folder-gone-when-listed", "listed folder", _folder_gone),
    Moving("moving-folders-exchanged", "listed ", _folders_exchanged),
    Moving("moving-folders-exchanged-when-listed", "listed folder", _folders_exchanged),
    Moving("moving-folder-into-twin", "listed folder", _folder_into_twin),
    Moving("moving-entries-appear", "listed folder", _more_entries),
    Moving("moving-entry-gone", "listed folder", _entry_gone),
    Moving("moving-link-turns", "listed ", _link_turns),
    Moving("moving-link-to-folder", "listed ", _link_to_folder),
    Moving("moving-all-gone", "listed ", _all_gone),
)
