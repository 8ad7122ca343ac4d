"""The records of the stat cache keep their layout, and come back as they went in."""

import os
from pathlib import Path

from stat_model import make, pack_record, record_tree
from takeback.store import layout
from takeback.store.layout import CHANGED, DENIED, GONE, SAME


def test_records_come_back_as_they_were_packed(tmp_path: Path) -> None:
    """Unpacking and packing again gives the same bytes, for every record."""
    root = os.fsencode(tmp_path)
    for name in (b"a/b", b"a/\xff\n", b"empty/x", b"git"):
        make(os.path.join(root, name), "file")
    records, _ = record_tree(root)
    offset = 0
    while offset < len(records):
        head, name, entries = layout.unpack_record(records, offset)
        assert pack_record(head, name, entries) == records[offset : offset + head[0]]
        offset += head[0]


def test_the_layout_is_the_one_on_disk() -> None:
    """The sizes are part of the format: a change of them needs a new format version."""
    assert (layout.RECORD.size, layout.ENTRY.size) == (128, 96)
    assert (layout.RACY, layout.REASON_VCS, layout.REASON_MOUNT) == (0x8000, 1, 2)
    assert (SAME, CHANGED, GONE, DENIED) == (0, 1, 2, 3)
