"""The records of the stat cache keep their layout, and come back as they went in."""

import os
from pathlib import Path

from stat_model import make, pack_record, record_tree
from takeback.worktree import folders
from takeback.worktree.folders import CHANGED, DENIED, GONE, SAME


def test_records_come_back_as_they_were_packed(tmp_path: Path) -> None:
    """Unpacking and packing again gives the same bytes, for every record."""
    root = os.fsencode(tmp_path)
    for name in (b"a/b", b"a/\xff\n", b"empty/x", b"git"):
        make(os.path.join(root, name), "file")
    records, _ = record_tree(root)
    offset = 0
    while offset < len(records):
        head, name, entries = folders.unpack_record(records, offset)
        assert pack_record(head, name, entries) == records[offset : offset + head[0]]
        offset += head[0]


def test_the_layout_is_the_one_on_disk() -> None:
    """The sizes are part of the format: a change of them needs a new format version."""
    assert (folders.RECORD.size, folders.ENTRY.size) == (128, 96)
    assert (folders.RACY, folders.REASON_VCS, folders.REASON_MOUNT) == (0x8000, 1, 2)
    assert (SAME, CHANGED, GONE, DENIED) == (0, 1, 2, 3)
