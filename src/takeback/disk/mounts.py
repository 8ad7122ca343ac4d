"""Tells whether a folder lies on a network file system, where a ledger is not safe.

SQLite's write-ahead log needs memory shared by everyone who has the database open, and
advisory locks that everyone sees. Between two hosts there is no such memory, so every file
system that several hosts can mount at once counts: also the cluster file systems on a shared
disk (ocfs2, gfs2), although they are local by look. Folders that a virtual machine gets from
its host count where they lack working shared maps (9p, vboxsf, vmhgfs, prl_fs); virtiofs does
not, because it has them and is the root disk of many sandboxes.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN = frozenset(b"ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs overlay".split())
"""File systems of which nobody but this kernel changes anything."""
_NETWORK = frozenset(
    b"nfs nfs4 cifs smb3 smbfs smb2 ncpfs ncp afs coda davfs 9p ceph glusterfs lustre beegfs "
    b"orangefs pvfs2 gpfs panfs ocfs2 gfs2 vboxsf vmhgfs prl_fs".split()
)
_NETWORK_BY_FUSE = frozenset(
    b"sshfs s3fs gcsfuse rclone goofys mount-s3 mountpoint-s3 blobfuse blobfuse2 juicefs davfs "
    b"davfs2 wdfs curlftpfs ftpfs smbnetfs fusesmb glusterfs ceph ceph-fuse cephfs mfs moosefs "
    b"lizardfs seaweedfs weed hdfs fuse_dfs cvmfs2 afp afpfs onedriver google-drive-ocamlfuse "
    b"vmhgfs-fuse grpcfuse osxfs nfs fuse-nfs orangefs".split()
)
_FUSE_PREFIXES = (b"fuse.", b"fuseblk.")
_MOUNTINFO = b"/proc/self/mountinfo"
_MOST_BYTES = 16 << 20
_FIELDS_BEFORE_OPTIONAL = 6


def is_network(mountinfo: bytes, device: int) -> str | None:
    """Name the network file system that `device` is, given the text of a mountinfo file.

    `device` is an `st_dev`. None means a local file system, or one the text does not list.
    """
    for kind in _types_on(mountinfo, device):
        if kind in _NETWORK or _fuse_program(kind) in _NETWORK_BY_FUSE:
            return kind.decode("utf-8", "backslashreplace")
    return None


def network_file_system(path: bytes) -> str | None:
    """Name the network file system that `path` is on, or None.

    A path that does not exist yet is judged by the nearest folder above it that does. Where
    there is no /proc (macOS) nothing is known and the answer is None.
    """
    text = _read_mountinfo()
    device = _device_of(os.path.abspath(path))
    return is_network(text, device) if text and device is not None else None


def copies_up(path: bytes) -> bool:
    """Whether a folder at a path is made anew, above the old one, when something in it changes."""
    text, device = _read_mountinfo(), _device_of(path)
    return device is not None and any(b"overlay" in kind for kind in _types_on(text, device))


def is_watchable(path: bytes) -> bool:
    """Whether the kernel notes all that happens to the files at a path: they are its own."""
    text, device = _read_mountinfo(), _device_of(path)
    kinds = set(_types_on(text, device)) if device is not None else set()
    return bool(kinds) and kinds <= _OWN


class Mounts:
    """Where other file systems, or other parts of this one, are mounted below a folder.

    The table of mounts knows. Device numbers are only a makeshift where there is none: they are
    the same for a folder that is mounted a second time, and differ inside an overlay.
    """

    __slots__ = ("_device", "places")

    def __init__(self, places: "frozenset[bytes] | None", device: int) -> None:
        self.places = places
        self._device = device

    def cover(self, path: bytes) -> bool:
        """Whether something is mounted at a path, as far as the table knows."""
        return self.places is not None and path in self.places

    def hold(self, folder: bytes, name: bytes, found: os.stat_result) -> bool:
        """Whether something is mounted at an entry of a folder."""
        if self.places is None:
            return found.st_dev != self._device
        if not self.places:
            return False
        return (folder + b"/" + name if folder else name) in self.places


def below(root: bytes) -> "frozenset[bytes] | None":
    """The places below a folder, relative to it, where something is mounted.

    None where the system keeps no such table (macOS).
    """
    text = _read_mountinfo()
    if not text:
        return None
    inside = b"/" if root == b"/" else root + b"/"
    found = (_unescape(line.split(b" ", 5)[4]) for line in text.splitlines() if b" - " in line)
    return frozenset(place[len(inside) :] for place in found if place.startswith(inside))


def _types_on(mountinfo: bytes, device: int) -> "Iterator[bytes]":
    """The type of the file system on a device, once for each place where it is mounted."""
    wanted = b"%d:%d" % (os.major(device), os.minor(device))
    for line in mountinfo.split(b"\n"):
        fields = line.split(b" ")
        if len(fields) > _FIELDS_BEFORE_OPTIONAL and fields[2] == wanted:
            yield _type_of(fields)


def _type_of(fields: list[bytes]) -> bytes:
    """Find the type: the first field after the lone `-` that ends the optional ones."""
    try:
        dash = fields.index(b"-", _FIELDS_BEFORE_OPTIONAL)
        return _unescape(fields[dash + 1])
    except (ValueError, IndexError):
        return b""


def _fuse_program(kind: bytes) -> bytes:
    for prefix in _FUSE_PREFIXES:
        if kind.startswith(prefix):
            return kind[len(prefix) :]
    return b""


def _unescape(field: bytes) -> bytes:
    r"""Undo the kernel's `\ooo` for space, tab, newline and backslash."""
    head, *rest = field.split(b"\\")
    pieces = [head]
    for piece in rest:
        digits = piece[:3]
        if len(digits) == 3 and not digits.strip(b"01234567") and digits < b"400":
            pieces.append(bytes((int(digits, 8),)) + piece[3:])
        else:
            pieces.append(b"\\" + piece)
    return b"".join(pieces)


def _device_of(path: bytes) -> int | None:
    while True:
        try:
            return os.stat(path).st_dev
        except (OSError, ValueError):
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent


def _read_mountinfo() -> bytes:
    pieces = []
    left = _MOST_BYTES
    try:
        fd = os.open(_MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while left > 0 and (piece := os.read(fd, 1 << 16)):
            pieces.append(piece)
            left -= len(piece)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(pieces)
