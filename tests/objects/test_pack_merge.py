"""Merging packs: nothing is lost, git still reads it, and an error leaves nothing behind."""

import errno
import os
import random
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.objects.git_objects import BLOB, COMMIT, TREE, encode_commit, encode_tree, object_id
from takeback.objects.pack_merge import Piece, merge
from takeback.objects.pack_read import PackFile
from takeback.objects.pack_write import PackWriter, SealedPack
from takeback.objects.repack import DEEPEST

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

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


def run_git(repository: Path, *args: str) -> bytes:
    """Run git in a bare repository, without anybody's settings; return what it printed."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", *args], cwd=repository, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def a_file(chance: random.Random, lines: int = 80) -> list[bytes]:
    """The lines of a text like a source file."""
    words = [b"value", b"return", b"self", b"for", b"total", b"if", b"name", b"count", b"path"]
    return [
        b"    " * chance.randrange(4) + b" ".join(chance.choices(words, k=6)) + b" %d\n" % number
        for number in range(lines)
    ]


class History:
    """Files that change from pack to pack, as checkpoints would store them."""

    def __init__(self, directory: bytes, *, files: int = 6, packs: int = 30, seed: int = 1) -> None:
        chance = random.Random(seed)
        texts = [a_file(chance) for _ in range(files)]
        self.contents: dict[bytes, bytes] = {}
        self.pieces: list[Piece] = []
        for turn in range(packs):
            writer = PackWriter(directory)
            added = []
            for number, lines in enumerate(texts):
                if turn == 0 or chance.random() < 0.5:
                    lines[chance.randrange(len(lines))] = b"changed %d\n" % chance.randrange(10**9)
                    data = b"".join(lines)
                    oid = writer.add(BLOB, data)
                    self.contents[oid] = data
                    added.append((oid, b"file %d" % number))
            for pack in writer.finish():
                self.pieces += [Piece(oid, pack.name, series) for oid, series in added]


def assert_holds(directory: bytes, merged: list[SealedPack], contents: dict[bytes, bytes]) -> None:
    """The new packs are sound and hold exactly these objects."""
    found: set[bytes] = set()
    for sealed in merged:
        with PackFile(os.path.join(directory, sealed.name)) as pack:
            assert pack.check() == []
            assert pack.index_problem() == ""
            held = set(pack.objects())
            assert len(held) == sealed.objects
            assert os.path.getsize(os.path.join(directory, sealed.name) + b".pack") == sealed.size
            for oid in held:
                assert pack.read(oid) == (BLOB, contents[oid])
            found |= held
    assert found == set(contents)


def remove_sources(directory: bytes, history: History, merged: list[SealedPack]) -> None:
    """Remove what was merged."""
    kept = {pack.name for pack in merged}
    for name in {piece.source for piece in history.pieces} - kept:
        os.unlink(os.path.join(directory, name) + b".pack")
        os.unlink(os.path.join(directory, name) + b".idx")


def test_everything_wanted_is_in_the_new_pack(packs: bytes, tmp_path: Path) -> None:
    """All pieces are read from the new pack, and git checks and reads it without the old ones."""
    history = History(packs)
    merged = merge(packs, history.pieces)
    assert len(merged) == 1
    remove_sources(packs, history, merged)
    assert_holds(packs, merged, history.contents)
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")
    index = os.path.join(packs, merged[0].name) + b".idx"
    run_git(tmp_path, "verify-pack", "-v", os.fsdecode(index))
    told = run_git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check")
    assert sorted(told.splitlines()) == sorted(
        b"%s blob %d" % (oid.hex().encode(), len(data)) for oid, data in history.contents.items()
    )


def chain_lengths(repository: Path, directory: bytes, merged: list[SealedPack]) -> dict[str, int]:
    """How many deltas each object of the new packs rests on, as git sees it."""
    found: dict[str, int] = {}
    for pack in merged:
        index = os.fsdecode(os.path.join(directory, pack.name) + b".idx")
        for line in run_git(repository, "verify-pack", "-v", index).decode().splitlines():
            parts = line.split()
            if len(parts) == 7 and len(parts[0]) == 40:
                found[parts[0]] = int(parts[5])
    return found


def test_versions_become_deltas(packs: bytes, tmp_path: Path) -> None:
    """All versions of a file but the first are deltas, and take a small part of the space."""
    history = History(packs)
    merged = merge(packs, history.pieces)
    remove_sources(packs, history, merged)
    assert len(chain_lengths(tmp_path, packs, merged)) == len(history.pieces) - 6
    before = sum(len(zlib.compress(data, 1)) for data in history.contents.values())
    assert merged[0].size < before / 4


def test_chains_end(packs: bytes, tmp_path: Path) -> None:
    """However many versions there are, none rests on more than a few deltas, and all are small."""
    history = History(packs, files=1, packs=200)
    merged = merge(packs, history.pieces)
    remove_sources(packs, history, merged)
    lengths = chain_lengths(tmp_path, packs, merged)
    assert max(lengths.values()) == DEEPEST
    assert len(lengths) > len(history.pieces) - 6
    assert_holds(packs, merged, history.contents)


def test_merging_goes_on_where_it_ended(packs: bytes, tmp_path: Path) -> None:
    """Merged packs and new ones, merged again and again, stay small and lose nothing."""
    history = History(packs, packs=60)
    merged = merge(packs, history.pieces)
    whole = merged[0].size
    for name in (merged[0].name + b".pack", merged[0].name + b".idx"):
        os.unlink(os.path.join(packs, name))
    sources = list(dict.fromkeys(piece.source for piece in history.pieces))
    done: list[Piece] = []
    for start in range(0, len(sources), 13):
        chosen = set(sources[start : start + 13])
        fresh = [piece for piece in history.pieces if piece.source in chosen]
        merged = merge(packs, done + fresh)
        assert len(merged) == 1
        for name in {piece.source for piece in done + fresh}:
            os.unlink(os.path.join(packs, name) + b".pack")
            os.unlink(os.path.join(packs, name) + b".idx")
        name = merged[0].name
        done = [Piece(piece.oid, name, piece.series) for piece in done + fresh]
    assert_holds(packs, merged, history.contents)
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")
    assert merged[0].size < whole * 1.1
    assert max(chain_lengths(tmp_path, packs, merged).values()) <= DEEPEST


@pytest.mark.parametrize("seed", range(4))
def test_versions_can_be_left_behind(packs: bytes, tmp_path: Path, seed: int) -> None:
    """Whatever is left out of a merged pack, the rest is whole, and the rest only."""
    history = History(packs, files=3, packs=50)
    first = merge(packs, history.pieces)
    remove_sources(packs, history, first)
    chance = random.Random(seed)
    kept = [
        Piece(piece.oid, first[0].name, piece.series)
        for piece in history.pieces
        if chance.random() < 0.5
    ]
    if seed % 2:
        chance.shuffle(kept)
    second = merge(packs, kept)
    for suffix in (b".pack", b".idx"):
        os.unlink(os.path.join(packs, first[0].name) + suffix)
    assert_holds(packs, second, {piece.oid: history.contents[piece.oid] for piece in kept})
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")


def test_kinds_and_sizes_that_do_not_fit_are_left_alone(packs: bytes, tmp_path: Path) -> None:
    """Large blobs, links, trees and commits in one series, and empty ones, come through."""
    writer = PackWriter(packs)
    big = random.Random(1).randbytes(1 << 20)
    blobs = [b"", b"x", big, big + b"!", b"text\n" * 500_000, b"text\n" * 400_000, b"y" * 3000]
    oids = [writer.add(BLOB, data) for data in blobs]
    rows = [(0o100644, b"f%d" % number, oid) for number, oid in enumerate(oids)]
    trees = [encode_tree(rows[:count]) for count in range(1, 8)]
    ids = [writer.add(TREE, data) for data in trees]
    commits = [encode_commit(tree, [], 1_700_000_000, b"one") for tree in ids]
    ids += [writer.add(COMMIT, data) for data in commits]
    mixed = [oid for group in zip(oids, ids[:7], ids[7:], strict=True) for oid in group]
    pieces = [Piece(oid, pack.name, b"one") for pack in writer.finish() for oid in mixed]
    (sealed,) = merge(packs, pieces)
    os.unlink(os.path.join(packs, pieces[0].source) + b".pack")
    os.unlink(os.path.join(packs, pieces[0].source) + b".idx")
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")
    with PackFile(os.path.join(packs, sealed.name)) as pack:
        assert pack.check() == []
        for oid, data in zip(oids + ids, blobs + trees + commits, strict=True):
            assert pack.read(oid)[1] == data


def test_many_bytes_become_several_packs(packs: bytes) -> None:
    """With a small limit there are several new packs, and each object is in one of them."""
    history = History(packs)
    merged = merge(packs, history.pieces, limit=10_000)
    assert len(merged) > 2
    assert_holds(packs, merged, history.contents)


def test_what_is_not_wanted_is_left_behind(packs: bytes) -> None:
    """Only the pieces asked for are copied."""
    history = History(packs)
    pieces = history.pieces[::3]
    merged = merge(packs, pieces)
    assert_holds(packs, merged, {piece.oid: history.contents[piece.oid] for piece in pieces})


def test_nothing_to_merge_writes_nothing(packs: bytes) -> None:
    """Without pieces there is no pack."""
    merged = merge(packs, [])
    assert merged == []
    assert os.listdir(packs) == []


def test_merging_what_is_merged_gives_it_again(packs: bytes) -> None:
    """A merge of the merged pack alone and in the same order has the same name and stays whole."""
    history = History(packs)
    first = merge(packs, history.pieces)
    again = [Piece(piece.oid, first[0].name, piece.series) for piece in history.pieces]
    second = merge(packs, again)
    assert second[0].name == first[0].name
    assert_holds(packs, second, history.contents)


def test_damage_is_not_merged(packs: bytes) -> None:
    """A damaged object stops the merge with an error that names it, and no file is made."""
    history = History(packs)
    piece = history.pieces[10]
    base = os.path.join(packs, piece.source)
    with PackFile(base) as pack:
        offset = pack.find(piece.oid)
    assert offset is not None
    path = Path(os.fsdecode(base) + ".pack")
    data = bytearray(path.read_bytes())
    data[offset + 40] ^= 0x10
    path.write_bytes(data)
    before = sorted(os.listdir(packs))
    with pytest.raises(DamagedStoreError):
        merge(packs, history.pieces)
    assert sorted(os.listdir(packs)) == before


def test_a_source_without_the_object_is_damage(packs: bytes) -> None:
    """A piece that its source does not hold, or a source that is not there, is damage."""
    history = History(packs, packs=2)
    oid = object_id(BLOB, b"never stored")
    for piece in (
        Piece(oid, history.pieces[0].source, b""),
        Piece(history.pieces[0].oid, b"pack-gone", b""),
    ):
        with pytest.raises(DamagedStoreError):
            merge(packs, [piece])


def test_an_error_at_any_step_leaves_nothing(packs: bytes, hook: Listen) -> None:
    """Whichever step to disk fails, the error passes through and the folder is as it was."""
    history = History(packs, packs=8)
    before = sorted(os.listdir(packs))
    steps: list[str] = []
    hook(steps.append)
    merged = merge(packs, history.pieces, limit=5_000)
    assert len(merged) > 1
    assert set(steps) == {"create", "write", "fsync", "rename"}
    for name in set(os.listdir(packs)) - set(before):
        os.unlink(os.path.join(packs, name))
    for failing in range(len(steps)):
        left = iter(range(failing, -1, -1))

        def fail(_step: str, left: Iterator[int] = left) -> None:
            if next(left, None) == 0:
                raise OSError(errno.ENOSPC, "no space")

        hook(fail)
        with pytest.raises(OSError, match="no space"):
            merge(packs, history.pieces, limit=5_000)
        assert sorted(os.listdir(packs)) == before


def test_a_name_means_a_whole_pack(packs: bytes, hook: Listen) -> None:
    """At each step, every pack that has its final name is whole and synced."""
    history = History(packs, packs=8)

    def look(step: str) -> None:
        if step != "write":
            return
        for name in os.listdir(packs):
            if name.endswith(b".pack"):
                with PackFile(os.path.join(packs, name[:-5])) as pack:
                    assert pack.check() == []

    hook(look)
    merge(packs, history.pieces, limit=5_000)
