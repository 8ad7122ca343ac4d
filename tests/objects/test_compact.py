"""Many objects in little memory."""

import hashlib
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from takeback.objects import pack_index
from takeback.objects.pack_index import Entries, Ids

MANY = 20_000
_IDS = st.binary(min_size=20, max_size=20)
_ALIKE = st.integers(0, 300).map(lambda number: number.to_bytes(20, "little"))
"""Ids that differ where nobody looks first, so that all begin their search at one place."""


def _oid(number: int) -> bytes:
    return hashlib.sha1(b"%d" % number, usedforsecurity=False).digest()


@given(st.lists(_IDS | _ALIKE, max_size=400), st.lists(_IDS | _ALIKE, max_size=20))
def test_ids_have_the_numbers_in_which_they_came(added: list[bytes], others: list[bytes]) -> None:
    """Each id has one number, and is found by it and it by the id; what was not added is not."""
    ids, expected = Ids(), dict[bytes, int]()
    for oid in added:
        assert ids.find(oid) == expected.get(oid, -1)
        assert ids.add(oid) == expected.setdefault(oid, len(expected))
    assert len(ids) == len(expected)
    assert [ids[number] for number in range(len(ids))] == list(expected)
    assert [ids.find(oid) for oid in others] == [expected.get(oid, -1) for oid in others]


def test_many_ids_are_found() -> None:
    """Also when the table grew several times."""
    ids = Ids()
    assert [ids.add(_oid(number)) for number in range(MANY)] == list(range(MANY))
    assert [ids.find(_oid(number)) for number in range(MANY)] == list(range(MANY))
    assert {ids.find(_oid(number)) for number in range(MANY, MANY + 1000)} == {-1}


@given(st.dictionaries(_IDS, st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**40))))
def test_entries_make_the_index_that_tuples_make(found: dict[bytes, tuple[int, int]]) -> None:
    """Kept small or as tuples: the same entries come out, and the same index."""
    rows = [(oid, crc, offset) for oid, (crc, offset) in found.items()]
    entries = Entries()
    for row in rows:
        entries.append(row)
    assert (len(entries), list(entries)) == (len(rows), rows)
    assert entries.index(b"c" * 20) == pack_index.build(rows, b"c" * 20)


def test_they_take_little_memory() -> None:
    """An id with its number takes less than 50 bytes, an entry of a pack less than 40."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        ids = Ids()
        for number in range(MANY):
            ids.add(_oid(number))
        between = tracemalloc.get_traced_memory()[0]
        entries = Entries()
        for number in range(MANY):
            entries.append((_oid(number), number, number))
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(ids) == len(entries) == MANY
    assert (between - before) / MANY < 50
    assert (after - between) / MANY < 40
