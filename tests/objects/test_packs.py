"""Packs: git accepts what we write, and no damage gets past what we read."""

import errno
import hashlib
import os
import random
import stat
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.objects import deflate, git_objects, pack_index
from takeback.objects.git_objects import BLOB, COMMIT, TREE, object_id
from takeback.objects.pack_read import PackFile
from takeback.objects.pack_write import PackWriter, SizeMismatchError

MEBIBYTE = 1 << 20

Listen = Callable[[Callable[[str], int | None]], None]


@pytest.fixture
def packs(tmp_path: Path) -> bytes:
    """The pack folder of an empty bare repository."""
    run_git(tmp_path, "init", "--bare", "--quiet", ".")
    return os.fsencode(tmp_path / "objects" / "pack")


@pytest.fixture
def hook() -> Iterator[Listen]:
    """A function that has every step to disk announced to another, until the test ends."""

    def listen(listener: Callable[[str], int | None]) -> None:
        operations.hook = lambda step, _args: listener(step)

    yield listen
    operations.hook = None


def run_git(repository: Path, *args: str, data: bytes = b"") -> bytes:
    """Run git in a bare repository, without anybody's settings; return what it printed."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    command = ["git", *args]
    done = subprocess.run(
        command, cwd=repository, env=environment, input=data, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def some_objects(count: int = 40, seed: int = 1) -> list[bytes]:
    """Make contents of many sizes, some of which compress well and some not at all."""
    chance = random.Random(seed)
    sizes = [
        0,
        1,
        15,
        16,
        127,
        2047,
        2048,
        5000,
        70_000,
        *(chance.randrange(900) for _ in range(count)),
    ]
    made = [chance.randbytes(size) for size in sizes[:count:2]]
    return made + [b"%d\n" % size * (size // 4) for size in sizes[1:count:2]]


def write_pack(directory: bytes, contents: list[bytes]) -> bytes:
    """Write blobs into one pack; return its path without suffix."""
    writer = PackWriter(directory)
    for content in contents:
        writer.add(BLOB, content)
    (pack,) = writer.finish()
    return os.path.join(directory, pack.name)


def raw_pack(directory: bytes, *entries: bytes, count: int | None = None) -> bytes:
    """Write a pack of packed entries as they are, with a right checksum; return its path."""
    number = len(entries) if count is None else count
    body = b"PACK" + struct.pack(">II", 2, number) + b"".join(entries)
    base = os.path.join(directory, b"pack-raw")
    Path(os.fsdecode(base) + ".pack").write_bytes(body + hashlib.sha1(body).digest())
    return base


def path_of(base: bytes, suffix: str) -> Path:
    """Return the path of one of a pack's two files."""
    return Path(os.fsdecode(base) + suffix)


# ── Writing ──────────────────────────────────────────────────────────────────────────────────


def test_git_accepts_our_packs(packs: bytes, tmp_path: Path) -> None:
    """Git checks, verifies and reads every object of packs that we wrote."""
    writer = PackWriter(packs, limit=50_000)
    expected = {writer.add(BLOB, data): (b"blob", data) for data in some_objects()}
    large = b"large" * 100_000
    expected[writer.add_large(len(large), iter([large[:7], large[7:]]))] = (b"blob", large)
    rows = [(git_objects.MODE_FILE, b"f%d" % n, oid) for n, oid in enumerate(expected)]
    tree = git_objects.encode_tree(rows)
    tree_id = writer.add(TREE, tree)
    commit = git_objects.encode_commit(tree_id, [], 1_700_000_000, b"a checkpoint")
    expected[writer.add(COMMIT, commit)] = (b"commit", commit)
    expected[tree_id] = (b"tree", tree)
    sealed = writer.finish()
    assert len(sealed) > 2
    assert sum(pack.objects for pack in sealed) == len(expected)
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")
    for pack in sealed:
        path = path_of(os.path.join(packs, pack.name), ".idx")
        run_git(tmp_path, "verify-pack", "-v", str(path))
        assert path.with_suffix(".pack").stat().st_size == pack.size
    wanted = b"".join(oid.hex().encode() + b"\n" for oid in expected)
    answers = run_git(tmp_path, "cat-file", "--batch", data=wanted)
    assert answers == b"".join(
        b"%s %s %d\n%s\n" % (oid.hex().encode(), kind, len(data), data)
        for oid, (kind, data) in expected.items()
    )
    listed = run_git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert sorted(listed.split()) == sorted(wanted.split())


def test_index_is_gits(packs: bytes, tmp_path: Path) -> None:
    """Our index has the very bytes of the one that git makes for the same pack."""
    base = write_pack(packs, some_objects())
    theirs = tmp_path / "theirs.idx"
    run_git(tmp_path, "index-pack", "-o", str(theirs), str(path_of(base, ".pack")))
    assert path_of(base, ".idx").read_bytes() == theirs.read_bytes()


def test_nothing_added_writes_nothing(packs: bytes) -> None:
    """A writer that got no object leaves no file."""
    assert PackWriter(packs).finish() == []
    assert os.listdir(packs) == []


def test_an_object_is_stored_once(packs: bytes) -> None:
    """The same object again, by whatever way it comes, has no second copy."""
    writer = PackWriter(packs)
    oid = writer.add(BLOB, b"twice")
    assert writer.add(BLOB, b"twice") == oid
    writer.add_known(oid, BLOB, 5, zlib.compress(b"twice"))
    assert writer.add_large(5, [b"tw", b"ice"]) == oid
    assert writer.contains(oid)
    assert not writer.contains(bytes(20))
    assert [pack.objects for pack in writer.finish()] == [1]
    assert len(os.listdir(packs)) == 3


def test_what_the_store_holds_is_not_written_again(packs: bytes) -> None:
    """Neither a small object nor a large one, also if that is known only once it was read."""
    held = {object_id(BLOB, b"small"), object_id(BLOB, b"large")}
    writer = PackWriter(packs, held.__contains__)
    assert writer.add(BLOB, b"small") == object_id(BLOB, b"small")
    assert writer.add_large(5, [b"la", b"rge"]) == object_id(BLOB, b"large")
    assert writer.is_empty()
    assert writer.finish() == []
    assert os.listdir(packs) == []


def test_known_objects_are_taken_as_they_are(packs: bytes) -> None:
    """An object compressed elsewhere, at any level, is read back whole."""
    writer = PackWriter(packs)
    data = b"known " * 99
    oid = git_objects.object_id(BLOB, data)
    writer.add_known(oid, BLOB, len(data), zlib.compress(data, 9))
    (pack,) = writer.finish()
    assert PackFile(os.path.join(packs, pack.name)).read(oid) == (BLOB, data)


def test_files_are_private_at_any_umask(packs: bytes) -> None:
    """Packs and indexes are for their owner alone."""
    before = os.umask(0)
    try:
        base = write_pack(packs, [b"secret"])
    finally:
        os.umask(before)
    for suffix in (".pack", ".idx"):
        assert stat.S_IMODE(path_of(base, suffix).stat().st_mode) == 0o600


def test_a_torn_file_leaves_nothing(packs: bytes) -> None:
    """An error out of a large file's chunks passes through, and the writer goes on."""

    def torn() -> Iterator[bytes]:
        yield b"x" * MEBIBYTE
        raise InterruptedError

    writer = PackWriter(packs)
    with pytest.raises(InterruptedError):
        writer.add_large(2 * MEBIBYTE, torn())
    assert os.listdir(packs) == []
    writer.add(BLOB, b"after")
    assert len(writer.finish()) == 1


@pytest.mark.parametrize("chunks", [[], [b"four"], [b"four", b"two"], [b"four", b"fours"]])
def test_a_wrong_size_is_an_error(packs: bytes, chunks: list[bytes]) -> None:
    """A large file that is shorter or longer than announced is not stored."""
    with pytest.raises(SizeMismatchError):
        PackWriter(packs).add_large(8, chunks)
    assert os.listdir(packs) == []


def test_a_pack_from_a_crashed_run_is_replaced(packs: bytes) -> None:
    """A pack of the same name is written anew, which heals it, and aborting does not remove it."""
    contents = some_objects()
    base = write_pack(packs, contents)
    path_of(base, ".pack").write_bytes(b"ruined")
    Path(os.fsdecode(packs), f"tmp-{os.getpid()}-0").write_bytes(b"litter")
    writer = PackWriter(packs)
    for content in contents:
        writer.add(BLOB, content)
    writer.finish()
    writer.abort()
    assert PackFile(base).check() == []


def test_abort_removes_everything(packs: bytes) -> None:
    """Aborting removes sealed packs as well as what is only buffered, and may be repeated."""
    writer = PackWriter(packs, limit=1_000)
    for data in some_objects():
        writer.add(BLOB, data)
    oid = writer.add_large(4, [b"last"])
    assert os.listdir(packs) != []
    writer.abort()
    writer.abort()
    assert os.listdir(packs) == []
    assert not writer.contains(oid)
    assert writer.finish() == []


def write_everything(packs: bytes) -> None:
    """Write two packs, a large blob among them; abort on any error."""
    writer = PackWriter(packs, limit=20_000)
    try:
        for data in some_objects():
            writer.add(BLOB, data)
        writer.add_large(MEBIBYTE, [b"z" * MEBIBYTE])
        writer.finish()
    except OSError:
        writer.abort()
        raise


def test_an_error_at_any_step_leaves_nothing(packs: bytes, hook: Listen) -> None:
    """Whichever step to disk fails, the error passes through and no file stays."""
    steps: list[str] = []
    hook(steps.append)
    write_everything(packs)
    assert {"create", "write", "fsync", "rename"} == set(steps)
    for name in os.listdir(packs):
        os.unlink(os.path.join(packs, name))
    for failing in range(len(steps)):
        left = iter(range(failing, -1, -1))

        def fail(_step: str, left: Iterator[int] = left) -> None:
            if next(left, None) == 0:
                raise OSError(errno.ENOSPC, "no space")

        hook(fail)
        with pytest.raises(OSError, match="no space"):
            write_everything(packs)
        assert os.listdir(packs) == []


def test_a_name_means_a_whole_pack(packs: bytes, hook: Listen) -> None:
    """At each step, every pack that has its final name is already whole and synced."""
    synced = 0

    def look(step: str) -> None:
        nonlocal synced
        named = [name for name in os.listdir(packs) if name.endswith(b".pack")]
        assert len(named) <= synced
        assert all(PackFile(os.path.join(packs, name[:-5])).check() == [] for name in named)
        synced += step == "fsync"

    hook(look)
    write_everything(packs)
    assert synced == 4


def test_a_failed_seal_can_be_tried_again(packs: bytes, hook: Listen) -> None:
    """After a failure the writer has lost nothing: finishing later stores every object."""
    writer = PackWriter(packs)
    oids = [writer.add(BLOB, data) for data in some_objects()]
    for failing in ("write", "fsync", "rename"):

        def fail(step: str, failing: str = failing) -> None:
            if step == failing:
                raise OSError(errno.EIO, "broken")

        hook(fail)
        with pytest.raises(OSError, match="broken"):
            writer.finish()
    hook(lambda _step: None)
    (pack,) = writer.finish()
    assert set(PackFile(os.path.join(packs, pack.name)).objects()) == set(oids)


def test_short_writes_do_no_harm(packs: bytes, hook: Listen) -> None:
    """A kernel that takes one byte at first gets the rest."""
    hook(lambda step: 1 if step == "write" else None)
    base = write_pack(packs, some_objects())
    assert PackFile(base).check() == []
    assert PackFile(base).index_problem() == ""


# ── The index ────────────────────────────────────────────────────────────────────────────────


@given(
    st.dictionaries(
        st.binary(min_size=20, max_size=20),
        st.tuples(
            st.integers(0, 2**32 - 1), st.integers(12, 2**31 - 1) | st.integers(2**31, 2**60)
        ),
    )
)
def test_index_gives_back_what_went_in(objects: dict[bytes, tuple[int, int]]) -> None:
    """An index finds every object, at offsets beyond 4 GiB too, and no other."""
    entries = [(oid, crc, offset) for oid, (crc, offset) in objects.items()]
    index = pack_index.PackIndex(pack_index.build(entries, b"c" * 20))
    assert list(index) == sorted(entries)
    assert len(index) == len(entries)
    assert index.checksum == b"c" * 20
    for oid, crc, offset in entries:
        assert index.find(oid) == offset
        assert index.find_entry(oid) == (crc, offset)
        other = oid[:-1] + bytes([oid[-1] ^ 1])
        assert other in objects or index.find(other) is None


def resealed(data: bytearray) -> bytes:
    """Give a changed index a right checksum again."""
    return bytes(data[:-20]) + hashlib.sha1(data[:-20]).digest()


def test_an_index_that_contradicts_itself_is_refused() -> None:
    """Wrong magic, version, order or length is found even where the checksum is right."""
    entries = [(bytes([n]) * 20, n, 12 + n) for n in range(5)]
    good = pack_index.build(entries, b"c" * 20)
    for place, value in ((0, 0), (7, 3), (8 + 4 * 100, 1), (8 + 4 * 255 + 3, 4), (8 + 4 * 255, 1)):
        bad = bytearray(good)
        bad[place] = value
        with pytest.raises(DamagedStoreError):
            pack_index.PackIndex(resealed(bad))
    padded = resealed(bytearray(good + bytes(14)))
    for wrong in (b"", good[:-1], good[:1000], good + b"x", padded):
        with pytest.raises(DamagedStoreError):
            pack_index.PackIndex(wrong)


def test_an_offset_outside_the_table_is_damage() -> None:
    """An entry that points at a large offset which is not there raises instead of guessing."""
    bad = bytearray(pack_index.build([(b"o" * 20, 1, 12)], b"c" * 20))
    bad[-44] = 0x80
    with pytest.raises(DamagedStoreError, match="outside"):
        pack_index.PackIndex(resealed(bad)).find(b"o" * 20)


@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "another's", "a folder", "a pipe"])
def test_a_bad_index_is_made_again_in_memory(packs: bytes, damage: str) -> None:
    """Without a usable index all objects are read, nothing is written, and mending works."""
    contents = some_objects()
    base = write_pack(packs, contents)
    index = path_of(base, ".idx")
    good = index.read_bytes()
    index.unlink()
    if damage == "empty":
        index.touch()
    elif damage == "torn":
        index.write_bytes(good[: len(good) // 2])
    elif damage == "another's":
        index.write_bytes(path_of(write_pack(packs, [b"other"]), ".idx").read_bytes())
    elif damage == "a folder":
        index.mkdir()
    elif damage == "a pipe":
        os.mkfifo(index)
    before = sorted(os.listdir(packs))
    with PackFile(base) as pack:
        for content in contents:
            assert pack.read(git_objects.object_id(BLOB, content)) == (BLOB, content)
        assert pack.index_problem() != ""
        assert sorted(os.listdir(packs)) == before
        if damage == "a folder":
            return
        pack.rewrite_index()
        assert pack.index_problem() == ""
        assert pack.check() == []
    assert index.read_bytes() == good


def test_an_absurdly_large_index_is_not_read(packs: bytes) -> None:
    """An index too big for its pack is left alone, however big it says it is."""
    base = write_pack(packs, [b"small"])
    os.truncate(base + b".idx", 1 << 40)
    assert PackFile(base).read(git_objects.object_id(BLOB, b"small")) == (BLOB, b"small")


# ── Reading ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("packs")
def test_packs_of_git_can_be_read(tmp_path: Path) -> None:
    """What git packs without deltas, our reader reads and finds sound."""
    contents = some_objects()
    oids = [run_git(tmp_path, "hash-object", "-w", "--stdin", data=data) for data in contents]
    base = str(tmp_path / "pack")
    name = run_git(tmp_path, "pack-objects", "-q", "--window=0", base, data=b"".join(oids))
    with PackFile(os.fsencode(base) + b"-" + name.strip()) as pack:
        assert pack.check() == []
        for oid, content in zip(oids, contents, strict=True):
            assert pack.read(bytes.fromhex(oid.decode())) == (BLOB, content)


def test_check_tells_of_every_object(packs: bytes) -> None:
    """The callback gets each id once, with its kind, and SHA-256 of the content for blobs."""
    writer = PackWriter(packs)
    tree = writer.add(TREE, b"")
    expected: dict[bytes, tuple[int, bytes | None]] = {tree: (TREE, None)}
    for data in some_objects():
        expected[writer.add(BLOB, data)] = (BLOB, hashlib.sha256(data).digest())
    (pack,) = writer.finish()
    heard: list[tuple[bytes, tuple[int, bytes | None]]] = []
    with PackFile(os.path.join(packs, pack.name)) as file:
        assert file.check(lambda oid, kind, strong: heard.append((oid, (kind, strong)))) == []
    assert len(heard) == len(expected)
    assert dict(heard) == expected


def test_large_objects_come_in_pieces(packs: bytes) -> None:
    """A stream has the announced size, pieces of at most 1 MiB, and the right bytes."""
    data = bytes(3 * MEBIBYTE) + random.Random(5).randbytes(2 * MEBIBYTE) + b"end"
    writer = PackWriter(packs)
    oid = writer.add_large(len(data), [data])
    (sealed,) = writer.finish()
    with PackFile(os.path.join(packs, sealed.name)) as pack:
        kind, size, pieces = pack.stream(oid)
        got = list(pieces)
        assert (kind, size, b"".join(got)) == (BLOB, len(data), data)
        assert max(map(len, got)) <= MEBIBYTE


def test_an_object_that_is_not_there(packs: bytes) -> None:
    """Finding what a sound pack does not hold gives None; reading it is an error."""
    with PackFile(write_pack(packs, [b"x"])) as pack:
        assert pack.find(bytes(20)) is None
        with pytest.raises(DamagedStoreError, match="does not hold `0000"):
            pack.read(bytes(20))


def read_or_damage(pack: PackFile, oid: bytes) -> bytes | None:
    """Return an object's content, None if the pack says that it is damaged."""
    try:
        return pack.read(oid)[1]
    except DamagedStoreError:
        return None


def sound_objects(pack: PackFile) -> tuple[set[bytes], list[str]]:
    """Return what a check finds sound, and what it finds wrong."""
    sound: set[bytes] = set()
    return sound, pack.check(lambda oid, _kind, _strong: sound.add(oid))


def damaged_copy(data: bytes, chance: random.Random) -> bytes:
    """Flip a bit, cut the end off, wipe a stretch or add something, at a place of chance."""
    place = chance.randrange(len(data))
    way = chance.randrange(8)
    if way == 0:
        return data[:place]
    if way == 1:
        return data[:place] + bytes(len(data[place : place + 512])) + data[place + 512 :]
    if way == 2:
        return data[:place] + chance.randbytes(chance.randrange(1, 40)) + data[place:]
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


@pytest.mark.parametrize("with_index", [True, False])
def test_no_damage_to_a_pack_goes_unnoticed(packs: bytes, with_index: bool) -> None:
    """After 400 damages of chance, `check` finds each, and no reading gives wrong bytes."""
    contents = {git_objects.object_id(BLOB, data): data for data in some_objects(24)}
    base = write_pack(packs, list(contents.values()))
    path = path_of(base, ".pack")
    good = path.read_bytes()
    if not with_index:
        path_of(base, ".idx").unlink()
    chance = random.Random(20)
    for _ in range(400):
        bad = damaged_copy(good, chance)
        path.write_bytes(bad)
        with PackFile(base) as pack:
            sound, problems = sound_objects(pack)
            assert (problems == []) == (bad == good)
            for oid, data in contents.items():
                assert read_or_damage(pack, oid) in (data, None)
            if with_index:
                readable = {oid for oid in contents if read_or_damage(pack, oid) is not None}
                assert sound & set(contents) <= readable


@pytest.mark.parametrize("with_index", [True, False])
def test_no_single_bit_goes_unnoticed(packs: bytes, with_index: bool) -> None:
    """Each bit of a small pack is checked: head, sizes, streams, padding and checksum."""
    contents = [b"", b"some text, some text", b"\xff\x00" * 9]
    base = write_pack(packs, contents)
    path = path_of(base, ".pack")
    good = path.read_bytes()
    if not with_index:
        path_of(base, ".idx").unlink()
    for place in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            path.write_bytes(bad)
            with PackFile(base) as pack:
                assert pack.check() != []
                for content in contents:
                    oid = git_objects.object_id(BLOB, content)
                    assert read_or_damage(pack, oid) in (content, None)


def test_no_damage_to_an_index_matters(packs: bytes) -> None:
    """After 200 damages of chance to the index, every object is still read and the pack sound."""
    contents = {git_objects.object_id(BLOB, data): data for data in some_objects(24)}
    base = write_pack(packs, list(contents.values()))
    path = path_of(base, ".idx")
    good = path.read_bytes()
    chance = random.Random(21)
    for _ in range(200):
        bad = damaged_copy(good, chance)
        path.write_bytes(bad)
        with PackFile(base) as pack:
            assert all(pack.read(oid) == (BLOB, data) for oid, data in contents.items())
            assert pack.check() == []
            assert (pack.index_problem() == "") == (bad == good)


def test_damage_in_one_object_spares_the_others(packs: bytes) -> None:
    """With its index a damaged pack gives every other object, and names the damaged one."""
    contents = some_objects()
    base = write_pack(packs, contents)
    victim = git_objects.object_id(BLOB, contents[9])
    path = path_of(base, ".pack")
    data = bytearray(path.read_bytes())
    with PackFile(base) as pack:
        offset = pack.find(victim)
    assert offset is not None
    data[offset + 6] ^= 0xFF
    path.write_bytes(data)
    with PackFile(base) as pack:
        heard, problems = sound_objects(pack)
        assert victim.hex() in problems[0]
        assert heard == {git_objects.object_id(BLOB, content) for content in contents} - {victim}
        assert all(read_or_damage(pack, oid) is not None for oid in heard)
        with pytest.raises(DamagedStoreError, match=victim.hex()):
            pack.read(victim)
        with pytest.raises(DamagedStoreError):
            pack.rewrite_index()


def test_a_stream_of_wrong_bytes_raises_at_its_end(packs: bytes) -> None:
    """Content that inflates well but is not what the id says is never taken for good."""
    wrong = git_objects.entry_head(BLOB, 5) + zlib.compress(b"wrong")
    base = raw_pack(packs, wrong)
    right = git_objects.object_id(BLOB, b"right")
    checksum = path_of(base, ".pack").read_bytes()[-20:]
    path_of(base, ".idx").write_bytes(pack_index.build([(right, zlib.crc32(wrong), 12)], checksum))
    with PackFile(base) as pack:
        _, _, pieces = pack.stream(right)
        assert next(pieces) == b"wrong"
        with pytest.raises(DamagedStoreError, match=right.hex()):
            next(pieces)
        assert "unlike its index" in pack.check()[0]


IMPOSSIBLE = {
    "absurd size": git_objects.entry_head(BLOB, 2**60) + zlib.compress(b"x"),
    "bomb": git_objects.entry_head(BLOB, 10) + zlib.compress(bytes(64 * MEBIBYTE)),
    "too short": git_objects.entry_head(BLOB, 9) + zlib.compress(b"12345678"),
    "delta": git_objects.entry_head(6, 9) + b"\x01" + zlib.compress(b"12345678"),
    "reference delta": git_objects.entry_head(7, 9) + bytes(20) + zlib.compress(b"12345678"),
    "unknown kind": git_objects.entry_head(5, 8) + zlib.compress(b"12345678"),
    "no stream": git_objects.entry_head(BLOB, 8) + b"garbage!",
    "endless head": b"\xff" * 30,
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
@pytest.mark.parametrize("with_index", [True, False])
def test_impossible_objects_are_damage(packs: bytes, what: str, with_index: bool) -> None:
    """Absurd sizes, bombs and deltas in a pack with a right checksum are named as damage."""
    base = raw_pack(packs, IMPOSSIBLE[what])
    oid = git_objects.object_id(BLOB, what.encode())
    if with_index:
        checksum = path_of(base, ".pack").read_bytes()[-20:]
        path_of(base, ".idx").write_bytes(pack_index.build([(oid, 0, 12)], checksum))
    with PackFile(base) as pack:
        with pytest.raises(DamagedStoreError, match=oid.hex()) as caught:
            pack.read(oid)
        assert ("delta" in what) == ("holds a delta" in str(caught.value))
        assert ("absurd" in what) == ("impossible size" in str(caught.value))
        assert pack.check() != []


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_count_is_found(packs: bytes, count: int) -> None:
    """A pack that holds more or fewer objects than its head says is damaged."""
    base = raw_pack(packs, git_objects.entry_head(BLOB, 1) + zlib.compress(b"x"), count=count)
    assert "instead of" in PackFile(base).check()[0]


@pytest.mark.parametrize("what", ["missing", "empty", "link", "folder", "pipe"])
def test_what_is_no_pack_is_damage(packs: bytes, what: str) -> None:
    """A pack that is gone, or something else by now, is damage for every question."""
    base = write_pack(packs, [b"x"])
    path = path_of(base, ".pack")
    path.rename(path.with_suffix(".away"))
    if what == "empty":
        path.touch()
    elif what == "link":
        path.symlink_to(path.with_suffix(".away"))
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    pack = PackFile(base)
    for ask in (pack.find, pack.read, pack.stream):
        with pytest.raises(DamagedStoreError, match="pack-"):
            ask(git_objects.object_id(BLOB, b"x"))
    with pytest.raises(DamagedStoreError):
        list(pack.objects())
    with pytest.raises(DamagedStoreError):
        pack.rewrite_index()
    assert len(pack.check()) == 1
    assert pack.index_problem() != ""


def test_a_closed_pack_opens_again(packs: bytes) -> None:
    """Closing frees the descriptor and is not the end."""
    pack = PackFile(write_pack(packs, [b"x"]))
    oid = git_objects.object_id(BLOB, b"x")
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        assert pack.read(oid) == (BLOB, b"x")
        pack.close()
    assert len(os.listdir("/dev/fd")) == before


# ── Compression and memory ───────────────────────────────────────────────────────────────────


@given(st.binary(max_size=5000) | st.integers(0, 300_000).map(bytes))
def test_streams_are_zlib_streams(data: bytes) -> None:
    """What both compressors make is inflated by plain zlib, and by us in bounded pieces."""
    for packed in (deflate.compress(data), stream_compressed(data)):
        assert zlib.decompress(packed) == data
        inflation = inflate(packed + b"behind", len(data))
        assert b"".join(inflation) == data
        assert inflation.end == len(packed)


def inflate(packed: bytes, size: int) -> deflate.Inflation:
    """Begin to inflate a stream that is in memory."""
    return deflate.Inflation(lambda at, length: packed[at : at + length], 0, size)


def stream_compressed(data: bytes) -> bytes:
    """Compress through the streaming interface in three parts."""
    compressor = deflate.compressor(len(data))
    third = len(data) // 3
    parts = (data[:third], data[third : 2 * third], data[2 * third :])
    return b"".join([*map(compressor.compress, parts), compressor.flush()])


def run_child(code: str) -> str:
    """Run python code in a fresh process; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_fast_compressor_is_imported_only_when_it_pays() -> None:
    """A process that compresses little never imports ISA-L; one that compresses much does."""
    pytest.importorskip("isal")
    code = (
        "import sys, os; from takeback.objects import deflate\n"
        "def known(): return 'isal' in sys.modules\n"
        "deflate.compress(os.urandom(200_000)); before = known()\n"
        "deflate.compress(os.urandom(100_000)); print(before, known())"
    )
    assert run_child(code) == "False True"


def test_without_the_fast_compressor_zlib_does_the_work() -> None:
    """Where ISA-L cannot be imported, everything still compresses."""
    code = (
        "import sys, zlib; sys.modules['isal'] = None; from takeback.objects import deflate\n"
        "data = bytes(range(256)) * 4000\n"
        "assert all(zlib.decompress(deflate.compress(data)) == data for _ in range(3))\n"
        "c = deflate.compressor(len(data))\n"
        "print(zlib.decompress(c.compress(data) + c.flush()) == data)"
    )
    assert run_child(code) == "True"


MEMORY_CODE = """
import os, resource, sys
from takeback.objects.pack_write import PackWriter
from takeback.objects.pack_read import PackFile
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder, mebibytes = os.fsencode(sys.argv[1]), int(sys.argv[2])
chunk = os.urandom(1 << 16) + bytes(15 << 16)
def store(count):
    writer = PackWriter(folder)
    oid = writer.add_large(count << 20, (chunk for _ in range(count)))
    (sealed,) = writer.finish()
    base = os.path.join(folder, sealed.name)
    with PackFile(base) as pack:
        assert sum(map(len, pack.stream(oid)[2])) == count << 20
        assert pack.check(lambda *_: None) == []
    os.unlink(base + b".idx")
    with PackFile(base) as pack:
        assert pack.find(oid) == 12
store(8)
before = peak()
store(mebibytes)
print(peak() - before)
"""


def test_memory_is_flat_in_file_size(packs: bytes) -> None:
    """Storing, reading, checking and indexing 200 MiB takes no more memory than 8 MiB."""
    code = f"import sys; sys.argv[1:] = [{os.fsdecode(packs)!r}, '200']\n{MEMORY_CODE}"
    assert int(run_child(code)) < 4 * 1024
