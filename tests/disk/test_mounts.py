"""Network file systems are known by the kernel's list of mounts."""

import os
import sys

import pytest

from takeback.disk.machine import is_network, network_file_system

MOUNTINFO = b"""\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /home rw,relatime shared:5 master:2 - nfs4 server:/export rw,vers=4.2
31 22 0:27 / /mnt/with\\040space rw - fuse.sshfs me@host:/dir\\040x rw
32 22 0:28 /sub /srv rw,relatime - cifs //host/share rw
33 22 0:29 / /tmp rw - tmpfs tmpfs rw
34 22 0:30 / /run/doc rw - fuse.portal portal rw
35 22 0:31 / /odd rw - fuse.ssh\\146s - rw
36 22 259:12 / /big rw shared:7 - xfs /dev/nvme0n1p12 rw
37 22 0:32 / /nfs - tmpfs nfs4 rw
"""


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ((8, 1), None),
        ((0, 26), "nfs4"),
        ((0, 27), "fuse.sshfs"),
        ((0, 28), "cifs"),
        ((0, 29), None),
        ((0, 30), None),
        ((0, 31), "fuse.sshfs"),
        ((259, 12), None),
        ((0, 32), None),
        ((9, 9), None),
    ],
)
def test_the_type_of_a_device_is_found(device: tuple[int, int], expected: str | None) -> None:
    """A device is network or not by the type field alone, whatever optional fields precede."""
    assert is_network(MOUNTINFO, os.makedev(*device)) == expected


@pytest.mark.parametrize(
    "kind",
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs lustre beegfs davfs ncpfs orangefs ocfs2 gfs2 "
    "fuse.sshfs fuse.s3fs fuse.gcsfuse fuse.rclone".split(),
)
def test_known_network_types_are_named(kind: str) -> None:
    """Each type that several hosts can mount is recognised and given back by name."""
    line = b"40 1 0:50 / /x rw - " + kind.encode() + b" source rw\n"
    assert is_network(line, os.makedev(0, 50)) == kind


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "overlay", "virtiofs", "fuse.mergerfs", "fuse"])
def test_local_types_are_not(kind: str) -> None:
    """Local disks, overlays and a sandbox's virtiofs root are not called network."""
    line = b"40 1 0:50 / /x rw - " + kind.encode() + b" source rw\n"
    assert is_network(line, os.makedev(0, 50)) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n\n",
        b"40 1 0:50",
        b"40 1 0:50 / /x rw",
        b"40 1 0:50 / /x rw -",
        b"40 1 0:50 / /x rw shared:1 nfs",
        b"\xff\xfe 0:50 0:50 - - - -",
        b"40 1 0:50 / /x rw - \\",
        b"40 1 0:50 / /x rw - \\77 \\400",
    ],
)
def test_nonsense_is_local(text: bytes) -> None:
    """A list that makes no sense names no network file system and raises nothing."""
    assert is_network(text, os.makedev(0, 50)) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_missing_path_is_judged_by_its_parent(tmp_path: os.PathLike[str]) -> None:
    """A folder yet to be made has the file system of the nearest one above it."""
    here = os.fsencode(tmp_path)
    missing = os.path.join(here, b"not", b"yet")
    assert network_file_system(missing) == network_file_system(here)
    with open("/proc/self/mountinfo", "rb") as file:
        listed = {line.split(b" - ")[-1].split(b" ")[0].decode() for line in file}
    assert network_file_system(here) in {None} | listed
