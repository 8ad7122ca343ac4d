"""The stat loop says exactly what changed, in C and in Python alike, and survives any bytes."""

import contextlib
import os
import pickle
import random
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings

from chance import examples
from stat_model import (
    change,
    changes,
    entry_of,
    expected_reports,
    header_of,
    make,
    pack_record,
    record_tree,
    remove,
    trees,
)
from takeback.worktree import folders, stat_loop
from takeback.worktree.folders import CHANGED, DENIED, GONE, SAME

Loop = Callable[[bytes, int], bytes]
Opened = tuple[bytes, int]
"""Records, and the descriptor of the root they are about."""
Result = TypeVar("Result")

NOBODY = 65534


def need_native() -> Callable[[bytes, int, int, int], bytes]:
    """Give the loop in C, or skip the test and say why."""
    if stat_loop.scan_native is None:
        pytest.skip(
            "the C extension takeback.worktree._statloop is not built: only its twin is tested"
        )
    return stat_loop.scan_native


def whole(records: bytes, root_fd: int) -> bytes:
    """The loop in C over all records at once."""
    return need_native()(records, root_fd, 0, 1)


@pytest.fixture(params=["native", "twin"])
def loop(request: pytest.FixtureRequest) -> Loop:
    """Each of the two loops."""
    if request.param == "twin":
        return stat_loop.scan_python
    need_native()
    return whole


def loops() -> list[Loop]:
    """The loops that are there; the twin always is."""
    return [stat_loop.scan_python, *([whole] if stat_loop.scan_native is not None else [])]


def outcome(loop: Loop, records: bytes, root_fd: int) -> bytes | str:
    """What a loop returns, or the message of its ValueError."""
    try:
        return loop(records, root_fd)
    except ValueError as error:
        return str(error)


def in_child(work: Callable[[], Result]) -> Result:
    """Do `work` in a process of its own; return what it returned."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    result: Result = pickle.loads(data)
    return result


# ---- changes ----


@settings(deadline=None, max_examples=examples(50))
@given(tree=trees, edits=changes)
def test_both_loops_report_what_the_model_does(
    tree: list[tuple[tuple[bytes, ...], str]], edits: list[tuple[str, int, bytes]]
) -> None:
    """After any change both loops give the same bytes, and those say what lstat by path says."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        for parts, kind in tree:
            make(os.path.join(root, *parts), kind)
        records, known = record_tree(root)
        for verb, number, name in edits:
            change(root, verb, number, name)
        root_fd = os.open(root, os.O_RDONLY)
        try:
            raws = {loop(records, root_fd) for loop in loops()}
            threaded = stat_loop.scan(records, root_fd, threads=3)
        finally:
            os.close(root_fd)
        expected = expected_reports(known)
        assert [stat_loop.reports(raw) for raw in raws] == [expected]
        assert threaded == expected


def test_the_native_loop_is_among_those_compared() -> None:
    """Where a compiler was, the comparisons above are between two loops and not of one alone."""
    need_native()
    assert len(loops()) == 2


# ---- nonsense ----


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Opened]:
    """A small tree of all kinds: its records and its open root."""
    root = os.fsencode(tmp_path)
    for name in (b"a/b/c/d", b"a/b/e", b"f", b"g/h/i", b"git", b"hot"):
        make(os.path.join(root, name), "file")
    root_fd = os.open(root, os.O_RDONLY)
    yield record_tree(root)[0], root_fd
    os.close(root_fd)


def damaged(records: bytes, dice: random.Random) -> bytes:
    """Flip bits, smash a field, cut, or repeat a piece."""
    data = bytearray(records)
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = dice.randrange(len(data)) if data else 0
        what = dice.randrange(5)
        if what == 0 or not data:
            del data[at:]
        elif what == 1:
            data[at : at + 4] = dice.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1\0/.", b".\0"))
        elif what == 2:
            data[at:at] = data[at // 8 * 8 : at // 8 * 8 + 8 * dice.randrange(40)]
        else:
            data[at] ^= 1 << dice.randrange(8)
    return bytes(data)


def test_damaged_records_are_an_error_or_a_report_and_the_same_for_both(sample: Opened) -> None:
    """No damage crashes a loop, and both call the same bytes nonsense, at the same place."""
    records, root_fd = sample
    dice = random.Random(1)
    refused = 0
    for _ in range(3000):
        data = damaged(records, dice)
        results = [outcome(loop, data, root_fd) for loop in loops()]
        if stat_loop.scan_native is not None:
            part, parts = dice.choice(((0, 2), (1, 2), (4, 7)))
            with contextlib.suppress(ValueError):
                stat_loop.scan_native(data, root_fd, part, parts)
        assert results[0] == results[-1]
        refused += isinstance(results[0], str)
    assert 500 < refused < 3000


def test_every_truncation_inside_a_record_is_refused(sample: Opened, loop: Loop) -> None:
    """A cut that is not between two records is never taken for a shorter index."""
    records, root_fd = sample
    ends: set[int] = set()
    offset = 0
    while offset < len(records):
        offset += folders.RECORD.unpack_from(records, offset)[0]
        ends.add(offset)
    for length in range(len(records) + 1):
        refused = isinstance(outcome(loop, records[:length], root_fd), str)
        assert refused == (length not in ends)


def handmade(root_fd: int, names: list[bytes], depths: list[int]) -> bytes:
    """Records with the given names and depths, all claiming to be the root directory."""
    real = os.stat(root_fd)
    return b"".join(
        pack_record(header_of(real, depth), name, [])
        for name, depth in zip(names, depths, strict=True)
    )


@pytest.mark.parametrize(
    ("names", "depths"),
    [
        ([], []),
        ([b""], [1]),
        ([b"root"], [0]),
        ([b"", b"a"], [0, 0]),
        ([b"", b"a"], [0, 2]),
        ([b"", b""], [0, 1]),
        ([b"", b"."], [0, 1]),
        ([b"", b".."], [0, 1]),
        ([b"", b"a/b"], [0, 1]),
        ([b"", b"a\0b"], [0, 1]),
        ([b"", b"a", b"b"], [0, 1, 3]),
    ],
)
def test_impossible_hierarchies_are_refused(
    sample: Opened, loop: Loop, names: list[bytes], depths: list[int]
) -> None:
    """Depths that skip a level, a second root and names that lead elsewhere are nonsense."""
    _, root_fd = sample
    assert isinstance(outcome(loop, handmade(root_fd, names, depths), root_fd), str)


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a\0b", b"/etc/passwd"])
def test_entries_that_lead_elsewhere_are_refused(sample: Opened, loop: Loop, name: bytes) -> None:
    """An entry can only be a name inside its directory, also below a directory that is gone."""
    _, root_fd = sample
    real = os.stat(root_fd)
    entries = [(entry_of(real), name)]
    root = pack_record(header_of(real, 0), b"", [])
    gone = pack_record(header_of(real, 1), b"not-there", [])
    below = pack_record(header_of(real, 2), b"x", entries)
    assert isinstance(outcome(loop, root + gone + below, root_fd), str)
    assert isinstance(outcome(loop, pack_record(header_of(real, 0), b"", entries), root_fd), str)


@pytest.mark.parametrize(("part", "parts"), [(-1, 1), (1, 1), (0, 0), (0, 257), (2, 2)])
def test_shares_that_do_not_exist_are_refused(sample: Opened, part: int, parts: int) -> None:
    """A share must be one of the parts."""
    records, root_fd = sample
    native = need_native()
    with pytest.raises(ValueError, match="part"):
        native(records, root_fd, part, parts)


def test_threads_raise_what_one_loop_would(sample: Opened) -> None:
    """Nonsense in any share is a ValueError of the whole scan."""
    records, root_fd = sample
    for length in (len(records) - 8, 200, 0):
        with pytest.raises(ValueError, match="no directory record"):
            stat_loop.scan(records[:length], root_fd, threads=2)


# ---- what the loop must not do ----


def test_a_directory_swapped_for_a_link_is_gone(tmp_path: Path, loop: Loop) -> None:
    """A link in a directory's place is not followed, not even to that same directory."""
    root, elsewhere = os.fsencode(tmp_path / "root"), os.fsencode(tmp_path / "elsewhere")
    make(os.path.join(root, b"a/b/c"), "file")
    make(os.path.join(root, b"z"), "file")
    records, known = record_tree(root)
    os.rename(os.path.join(root, b"a"), elsewhere)
    os.symlink(elsewhere, os.path.join(root, b"a"))
    root_fd = os.open(root, os.O_RDONLY)
    raw = loop(records, root_fd)
    os.close(root_fd)
    assert stat_loop.reports(raw) == [
        (0, CHANGED, (), []),
        (known[1].offset, GONE, (0,), []),
    ]


def test_another_device_is_gone(sample: Opened, loop: Loop) -> None:
    """A directory on another device than recorded is lost with everything below it."""
    records, root_fd = sample
    head, name, entries = folders.unpack_record(records, 0)
    other = (*head[:7], head[7] + 1, *head[8:])
    moved = pack_record(other, name, entries) + records[head[0] :]
    assert stat_loop.reports(loop(moved, root_fd)) == [(0, GONE, (), [])]
    assert stat_loop.scan(moved, root_fd, threads=3) == [(0, GONE, (), [])]


def test_what_may_not_be_entered_is_denied(tmp_path: Path, loop: Loop) -> None:
    """Below a folder without permissions files count as changed, and directories as denied."""
    root = os.fsencode(tmp_path)
    os.chmod(root, 0o755)
    for name in (b"locked/inner/x", b"locked/y", b"open/z"):
        make(os.path.join(root, name), "file")
    locked = os.path.join(root, b"locked")
    records, known = record_tree(root)
    os.chmod(locked, 0)
    root_fd = os.open(root, os.O_RDONLY)

    def work() -> bytes:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        return loop(records, root_fd)

    found = {report[0]: report for report in stat_loop.reports(in_child(work))}
    os.close(root_fd)
    os.chmod(locked, 0o700)
    by_name = {os.path.basename(each.path): each for each in known}
    outer = by_name[b"locked"]
    if not hasattr(os, "O_PATH"):
        assert found[outer.offset] == (outer.offset, DENIED, (0,), [])
        return
    files = [n for n, entry in enumerate(outer.entries) if entry[0] == b"y"]
    inner = by_name[b"inner"].offset
    assert found[outer.offset] == (outer.offset, CHANGED, (0,), files)
    assert found[inner] == (inner, DENIED, (0, outer.offset), [])
    assert by_name[b"open"].offset not in found


# ---- deep ----

DEEP = 3000


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bytes]:
    """A chain of directories, each with a file and a sibling before and after the way down."""
    top = os.fsencode(tmp_path_factory.mktemp("deep"))
    fd = os.open(top, os.O_RDONLY)
    for _ in range(DEEP):
        for name in (b"before", b"down", b"after"):
            os.mkdir(name, dir_fd=fd)
        os.close(os.open(b"file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        fd = reopened(fd, b"down")
    os.close(fd)
    yield top
    remove(top)


def reopened(fd: int, name: bytes) -> int:
    """Open a directory below another one and close that."""
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    os.close(fd)
    return inner


def record_chain(top: bytes) -> bytes:
    """Record the deep chain in pre-order, without paths that no system call would take."""
    going_down: list[bytes] = []
    coming_back: list[bytes] = []
    fd, name = os.open(top, os.O_RDONLY), b""
    for depth in range(DEEP):
        real = {each: os.stat(each, dir_fd=fd) for each in (b"before", b"down", b"after", b"file")}
        entries = [(entry_of(each), of) for of, each in real.items()]
        going_down.append(pack_record(header_of(os.stat(fd), depth), name, entries))
        for side, to in ((b"before", going_down), (b"after", coming_back)):
            to.append(pack_record(header_of(real[side], depth + 1), side, []))
        fd, name = reopened(fd, b"down"), b"down"
    going_down.append(pack_record(header_of(os.stat(fd), DEEP), name, []))
    os.close(fd)
    return b"".join(going_down + coming_back[::-1])


@pytest.fixture
def chain(deep: bytes) -> Iterator[Opened]:
    """The records of the deep chain and its open root."""
    root_fd = os.open(deep, os.O_RDONLY)
    yield record_chain(deep), root_fd
    os.close(root_fd)


def test_a_deep_chain_is_scanned(chain: Opened, loop: Loop) -> None:
    """Three thousand levels with siblings are the same, and a change at the bottom is found."""
    records, root_fd = chain
    assert loop(records, root_fd) == b""
    fd = os.dup(root_fd)
    for _ in range(DEEP - 1):
        fd = reopened(fd, b"down")
    os.utime(b"file", ns=(1, 1), dir_fd=fd)
    os.close(fd)
    (report,) = stat_loop.reports(loop(records, root_fd))
    offset, status, ancestors, entries = report
    assert (status, len(ancestors), entries) == (SAME, DEEP - 1, [3])
    assert folders.unpack_record(records, offset)[0][1] == DEEP - 1


def test_a_lost_deep_chain_is_reported_once(chain: Opened) -> None:
    """Threads that begin far below a lost directory report that one, not all that was in it."""
    records, root_fd = chain
    real = os.stat(root_fd)
    head, _, entries = folders.unpack_record(records, 0)
    top = pack_record(header_of(real, 0), b"", entries)
    renamed = pack_record(header_of(real, 1), b"gone", [])
    following = records[head[0] :].replace(b"down\0", b"nope\0")
    found = stat_loop.scan(top + renamed + following, root_fd, threads=4)
    assert found == stat_loop.reports(stat_loop.scan_python(top + renamed + following, root_fd))
    assert [report[1] for report in found] == [GONE, GONE]
    native = need_native()
    for part in range(4):
        assert len(native(top + renamed + following, root_fd, part, 4)) < 200


def test_no_more_directories_are_open_at_once_than_promised(chain: Opened, loop: Loop) -> None:
    """With room for exactly 64 more descriptors the deep chain is still scanned, none is left."""
    records, root_fd = chain

    def work() -> tuple[bytes, bool]:
        # Whatever the tests before this one left open.
        room = max(map(int, os.listdir("/dev/fd"))) + 1 + stat_loop.MAX_OPEN
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))
        held = []
        try:
            while True:
                held.append(os.dup(root_fd))
        except OSError:
            for fd in held[-stat_loop.MAX_OPEN :]:
                os.close(fd)
        raw = loop(records, root_fd)
        return raw, [os.dup(root_fd) for _ in range(stat_loop.MAX_OPEN)] == held[
            -stat_loop.MAX_OPEN :
        ]

    assert in_child(work) == (b"", True)


def test_coming_back_up_does_not_walk_down_each_time(
    chain: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Siblings met on the way up cost a few opens each, not one per level above them."""
    records, root_fd = chain
    opened: list[bytes] = []
    real_open = os.open

    def counting_open(path: bytes, flags: int, *, dir_fd: int) -> int:
        opened.append(path)
        return real_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", counting_open)
    assert stat_loop.scan_python(records, root_fd) == b""
    assert 3 * DEEP <= len(opened) < 10 * 3 * DEEP


# ---- threads and layout ----


def test_shares_that_saw_different_trees_are_not_joined() -> None:
    """When one thread lost a directory that another still saw, the scan is done again."""
    below: stat_loop.Report = (100, GONE, (0,), [])
    later: stat_loop.Report = (900, CHANGED, (0,), [])
    assert stat_loop._joined([[below], [below, later]], 1000) == [below, later]
    assert stat_loop._joined([[(0, GONE, (), [])], [below, later]], 1000) is not None
    assert stat_loop._joined([[], [below, later]], 1000) is None
    assert stat_loop._joined([[(100, CHANGED, (0,), [])], [below]], 1000) is None


def test_stamps_beyond_the_field_are_always_looked_at(tmp_path: Path, loop: Loop) -> None:
    """A file dated past 2262 can be recorded, and is then reported each time."""
    root = os.fsencode(tmp_path)
    far = os.path.join(root, b"far")
    make(far, "file")
    os.utime(far, ns=(0, 10_000_000_000 * 10**9))
    if os.lstat(far).st_mtime_ns < 1 << 63:
        pytest.skip("this file system has no dates past 2262")
    records, _ = record_tree(root)
    root_fd = os.open(root, os.O_RDONLY)
    raw = loop(records, root_fd)
    os.close(root_fd)
    assert stat_loop.reports(raw) == [(0, SAME, (), [0])]
