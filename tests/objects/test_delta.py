"""Deltas: what is told by copies comes back, git and we read each other's, damage is named."""

import os
import random
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import DamagedStoreError
from takeback.objects import delta, pack_index
from takeback.objects.delta import BadDeltaError
from takeback.objects.git_objects import BLOB, entry_head, object_id, sha1
from takeback.objects.pack_entry import DELTA, encode_distance, parse_distance
from takeback.objects.pack_read import PackFile

MOST = 1 << 20
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

some_bytes = st.binary(max_size=300) | st.text("ab\n", max_size=400).map(str.encode)


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Something, and what became of it by a few edits."""
    base = draw(some_bytes) * draw(st.integers(1, 8))
    target = base
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(target))] * 2)))
        target = target[:start] + draw(some_bytes) + target[end:]
    return base, target


@given(versions() | st.tuples(some_bytes, some_bytes))
def test_a_delta_gives_the_target_back(pair: tuple[bytes, bytes]) -> None:
    """Whatever two versions are, the delta between them makes the one of the other."""
    base, target = pair
    told = delta.encode(base, target)
    assert told is not None
    assert delta.apply(base, told, MOST) == target


@given(versions(), st.integers(0, 200))
def test_a_delta_is_as_short_as_asked_or_none(pair: tuple[bytes, bytes], most: int) -> None:
    """A delta that would be longer than it may be is not made."""
    told = delta.encode(*pair, most)
    assert told is None or (len(told) <= most and delta.apply(pair[0], told, MOST) == pair[1])


@given(versions(), st.data())
def test_a_damaged_delta_is_said_to_be_one(pair: tuple[bytes, bytes], data: st.DataObject) -> None:
    """A delta that was changed anywhere makes something of the size it says, or one error."""
    base, target = pair
    told = bytearray(delta.encode(base, target) or b"")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(told)))
        told[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        made = delta.apply(base, bytes(told), MOST)
    except BadDeltaError:
        return
    assert len(made) == _second_size(bytes(told))


def _second_size(told: bytes) -> int:
    """How much a delta says that it makes: the second of two numbers in groups of seven bits."""
    first = next(at for at, byte in enumerate(told) if byte < 0x80)
    groups = told[first + 1 :]
    last = next(at for at, byte in enumerate(groups) if byte < 0x80)
    return sum((byte & 0x7F) << 7 * at for at, byte in enumerate(groups[: last + 1]))


def test_a_delta_that_says_too_much_is_refused_before_it_is_made() -> None:
    """Copies that would fill the memory are not followed."""
    bomb = b"\x80\x80\x04" + b"\xff" * 6 + b"\x7f" + b"\xf0\xff\xff\xff" * 1000
    with pytest.raises(BadDeltaError):
        delta.apply(bytes(1 << 16), bomb, MOST)


@pytest.mark.parametrize("size", [0x10000 - 1, 0x10000, 0x10000 + 1, 0x20000, 0xFFFFFF + 5])
def test_long_copies_are_told_right(size: int) -> None:
    """Lengths at which the format changes its way of saying them come back too."""
    base = random.Random(1).randbytes(1000) * (size // 1000 + 1)
    base = base[:size]
    for target in (base, base + b"!", b"!" + base):
        told = delta.encode(base, target)
        assert told is not None
        assert len(told) < 40
        assert delta.apply(base, told, len(target)) == target


def test_an_edited_file_is_a_short_delta() -> None:
    """A few changed lines, and a block that moved, cost little more than the new text."""
    lines = [b"    value_%d = compute(%d, name)\n" % (n, n * 7919 % 1000) for n in range(100)]
    edited = lines[:]
    edited[20], edited[70] = b"    other = 1\n", b"    another = 2\n"
    moved = edited[50:] + edited[:50]
    base = b"".join(lines)
    assert len(delta.encode(base, b"".join(edited)) or b"") < 70
    assert len(delta.encode(base, b"".join(moved)) or b"") < 80


@given(st.integers(0, 1 << 62))
def test_distances_come_back(distance: int) -> None:
    """How far before a delta its base stands is read as it was written."""
    told = encode_distance(distance)
    assert parse_distance(b"x" + told + b"behind", 1) == (distance, 1 + len(told))


# ── In packs ─────────────────────────────────────────────────────────────────────────────────


def whole(data: bytes) -> bytes:
    """A packed blob."""
    return entry_head(BLOB, len(data)) + zlib.compress(data)


def on_base(told: bytes, distance: int) -> bytes:
    """A packed delta on what stands so many bytes before it."""
    return entry_head(DELTA, len(told)) + encode_distance(distance) + zlib.compress(told)


class ChainPack:
    """A pack with versions of one text, each a delta on the one before, and one beside."""

    def __init__(self, directory: Path, count: int = 12) -> None:
        lines = [b"line %d of the text\n" % number for number in range(60)]
        self.contents = [b"".join(lines)]
        entries = [whole(self.contents[0])]
        for number in range(1, count):
            lines[number % 60] = b"changed by %d\n" % number
            self.contents.append(b"".join(lines))
            told = delta.encode(self.contents[-2], self.contents[-1])
            assert told is not None
            entries.append(on_base(told, len(entries[-1])))
        self.contents.append(b"alone")
        entries.append(whole(b"alone"))
        self.oids = [object_id(BLOB, data) for data in self.contents]
        self.base = write_raw(directory, entries, self.oids)
        self.offsets = [12]
        for entry in entries[:-1]:
            self.offsets.append(self.offsets[-1] + len(entry))


def write_raw(directory: Path, entries: list[bytes], oids: list[bytes]) -> bytes:
    """Write packed entries as a pack with its index; return its path without suffix."""
    body = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    checksum = sha1(body).digest()
    base = directory / f"pack-{checksum.hex()}"
    base.with_suffix(".pack").write_bytes(body + checksum)
    rows, offset = [], 12
    for entry, oid in zip(entries, oids, strict=True):
        rows.append((oid, zlib.crc32(entry), offset))
        offset += len(entry)
    base.with_suffix(".idx").write_bytes(pack_index.build(rows, checksum))
    return os.fsencode(base)


@pytest.mark.parametrize("with_index", [True, False])
def test_chains_are_read(tmp_path: Path, with_index: bool) -> None:
    """Every object of a pack with deltas is read, found sound and indexed, in any order."""
    made = ChainPack(tmp_path)
    if not with_index:
        os.unlink(made.base + b".idx")
    for order in (made.oids, made.oids[::-1]):
        with PackFile(made.base) as pack:
            for oid in order:
                assert pack.read(oid) == (BLOB, made.contents[made.oids.index(oid)])
    heard: list[bytes] = []
    with PackFile(made.base) as pack:
        assert pack.check(lambda oid, _kind, _strong: heard.append(oid)) == []
        assert heard == made.oids
        assert set(pack.objects()) == set(made.oids)
        pack.rewrite_index()
        assert pack.index_problem() == ""


def test_damage_in_a_base_names_all_that_rest_on_it(tmp_path: Path) -> None:
    """What stands before the damage and beside it is still served; the rest is named."""
    made = ChainPack(tmp_path)
    path = Path(os.fsdecode(made.base) + ".pack")
    data = bytearray(path.read_bytes())
    data[made.offsets[5] + 8] ^= 0xFF
    path.write_bytes(data)
    touched, fine = made.oids[5:12], made.oids[:5] + made.oids[12:]
    heard: set[bytes] = set()
    with PackFile(made.base) as pack:
        problems = pack.check(lambda oid, _kind, _strong: heard.add(oid))
        assert heard == set(fine)
        assert all(any(oid.hex() in problem for problem in problems) for oid in touched)
        for oid in touched:
            with pytest.raises(DamagedStoreError, match=oid.hex()):
                pack.read(oid)
        for oid in fine:
            assert pack.read(oid)[1] == made.contents[made.oids.index(oid)]


def test_no_damage_to_a_chain_goes_unnoticed(tmp_path: Path) -> None:
    """After 300 flipped bits `check` has found each, and no reading gave wrong bytes."""
    made = ChainPack(tmp_path)
    path = Path(os.fsdecode(made.base) + ".pack")
    good = path.read_bytes()
    chance = random.Random(3)
    for _ in range(300):
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        with PackFile(made.base) as pack:
            assert pack.check() != []
            for oid, content in zip(made.oids, made.contents, strict=True):
                try:
                    assert pack.read(oid) == (BLOB, content)
                except DamagedStoreError:
                    continue


def too_deep() -> list[bytes]:
    """More deltas on each other than anybody writes."""
    entries = [whole(b"x" * 40)]
    for _ in range(400):
        entries.append(on_base(b"\x28\x28\x90\x28", len(entries[-1])))
    return entries


BAD: dict[str, Callable[[], list[bytes]]] = {
    "on itself": lambda: [whole(b"x"), on_base(b"\x01\x01\x01y", 0)],
    "before the pack": lambda: [whole(b"x"), on_base(b"\x01\x01\x01y", 10_000)],
    "between objects": lambda: [whole(b"x"), on_base(b"\x01\x01\x01y", 3)],
    "no delta": lambda: [whole(b"x"), on_base(b"nonsense", len(whole(b"x")))],
    "too deep": too_deep,
    "absurd": lambda: [whole(b"x"), entry_head(DELTA, 1 << 40) + b"\x0a" + zlib.compress(b"y")],
    "huge result": lambda: [whole(b"x"), on_base(b"\x01\xff\xff\xff\xff\x7f", len(whole(b"x")))],
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("with_index", [True, False])
def test_impossible_deltas_are_damage(tmp_path: Path, what: str, with_index: bool) -> None:
    """A delta on nothing, on itself, on too many others or of absurd size is named as damage."""
    entries = BAD[what]()
    oids = [object_id(BLOB, b"%d" % number) for number in range(len(entries))]
    base = write_raw(tmp_path, entries, oids)
    if not with_index:
        os.unlink(base + b".idx")
    with PackFile(base) as pack:
        assert pack.check() != []
        with pytest.raises(DamagedStoreError, match=oids[-1].hex()):
            pack.read(oids[-1])


@needs_git
def test_deltas_of_git_are_read(tmp_path: Path) -> None:
    """A repository that git packed with all its arts is read and found sound."""

    def git(*args: str) -> bytes:
        environment = {
            "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(tmp_path),
        }  # fmt: skip
        return subprocess.run(
            ["git", *args], cwd=tmp_path, env=environment, capture_output=True, check=True
        ).stdout

    git("init", "-q", ".")
    chance = random.Random(4)
    lines = [b"some %d words in a line\n" % chance.randrange(10**6) for _ in range(200)]
    for number in range(25):
        lines[chance.randrange(200)] = b"edit %d\n" % number
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"file{number % 3}").write_bytes(b"".join(lines))
        git("add", ".")
        git("commit", "-qm", f"number {number}")
    git("repack", "-adfq", "--depth=50", "--window=50")
    (path,) = (tmp_path / ".git/objects/pack").glob("*.pack")
    told = git("verify-pack", "-v", str(path.with_suffix(".idx"))).decode()
    assert "chain length = 5" in told
    seen: set[str] = set()
    with PackFile(os.fsencode(path.with_suffix(""))) as pack:
        assert pack.check() == []
        for oid in pack.objects():
            kind, data = pack.read(oid)
            assert object_id(kind, data) == oid
            seen.add(oid.hex())
    listed = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode()
    assert seen == set(listed.split())
