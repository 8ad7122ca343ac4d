"""Merging packs: nothing is lost, git still reads it, and an error leaves nothing behind."""

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from takeback.errors import DamagedStoreError
from takeback.store import fsops
from takeback.store.gitobjects import BLOB, object_id
from takeback.store.packmerge import Merged, Piece, merge
from takeback.store.packread import PackFile
from takeback.store.packwrite import PackWriter

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
        fsops.hook = lambda step, _args: listener(step)

    yield listen
    fsops.hook = None


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
            writer = PackWriter(directory, first_number=turn + 1)
            added = []
            for number, lines in enumerate(texts):
                if turn == 0 or chance.random() < 0.5:
                    lines[chance.randrange(len(lines))] = b"changed %d\n" % chance.randrange(10**9)
                    data = b"".join(lines)
                    oid, _ = writer.add(BLOB, data)
                    self.contents[oid] = data
                    added.append((oid, b"file %d" % number))
            for pack in writer.finish():
                self.pieces += [Piece(oid, pack.name, series) for oid, series in added]


def assert_holds(directory: bytes, merged: Merged, contents: dict[bytes, bytes]) -> None:
    """The new packs are sound and hold exactly these objects."""
    found: set[bytes] = set()
    for sealed in merged.packs:
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


def remove_sources(directory: bytes, history: History, merged: Merged) -> None:
    """Remove what was merged."""
    kept = {pack.name for pack in merged.packs}
    for name in {piece.source for piece in history.pieces} - kept:
        os.unlink(os.path.join(directory, name) + b".pack")
        os.unlink(os.path.join(directory, name) + b".idx")


def test_everything_wanted_is_in_the_new_pack(packs: bytes, tmp_path: Path) -> None:
    """All pieces are read from the new pack, and git checks and reads it without the old ones."""
    history = History(packs)
    merged = merge(packs, history.pieces, first_number=31)
    assert [pack.number for pack in merged.packs] == [31]
    assert merged.places == {piece.source: 31 for piece in history.pieces}
    remove_sources(packs, history, merged)
    assert_holds(packs, merged, history.contents)
    run_git(tmp_path, "fsck", "--strict", "--no-dangling")
    index = os.path.join(packs, merged.packs[0].name) + b".idx"
    run_git(tmp_path, "verify-pack", "-v", os.fsdecode(index))
    told = run_git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check")
    assert sorted(told.splitlines()) == sorted(
        b"%s blob %d" % (oid.hex().encode(), len(data)) for oid, data in history.contents.items()
    )


def test_pieces_of_one_source_stay_together(packs: bytes) -> None:
    """With a small limit there are several new packs, each source in the one that it is told."""
    history = History(packs)
    merged = merge(packs, history.pieces, first_number=31, limit=10_000)
    assert [pack.number for pack in merged.packs] == list(range(31, 31 + len(merged.packs)))
    assert len(merged.packs) > 2
    names = {pack.number: pack.name for pack in merged.packs}
    for piece in history.pieces:
        with PackFile(os.path.join(packs, names[merged.places[piece.source]])) as pack:
            assert pack.read(piece.oid) == (BLOB, history.contents[piece.oid])


def test_what_is_not_wanted_is_left_behind(packs: bytes) -> None:
    """Only the pieces asked for are copied."""
    history = History(packs)
    pieces = history.pieces[::3]
    merged = merge(packs, pieces, first_number=31)
    assert_holds(packs, merged, {piece.oid: history.contents[piece.oid] for piece in pieces})


def test_nothing_to_merge_writes_nothing(packs: bytes) -> None:
    """Without pieces there is no pack."""
    merged = merge(packs, [], first_number=1)
    assert (merged.packs, merged.places) == ([], {})
    assert os.listdir(packs) == []


def test_merging_what_is_merged_gives_it_again(packs: bytes) -> None:
    """A merge of the merged pack alone and in the same order has the same name and stays whole."""
    history = History(packs)
    first = merge(packs, history.pieces, first_number=31)
    again = [Piece(piece.oid, first.packs[0].name, piece.series) for piece in history.pieces]
    second = merge(packs, again, first_number=32)
    assert second.packs[0].name == first.packs[0].name
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
        merge(packs, history.pieces, first_number=31)
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
            merge(packs, [piece], first_number=31)


def test_an_error_at_any_step_leaves_nothing(packs: bytes, hook: Listen) -> None:
    """Whichever step to disk fails, the error passes through and the folder is as it was."""
    history = History(packs, packs=8)
    before = sorted(os.listdir(packs))
    steps: list[str] = []
    hook(steps.append)
    merged = merge(packs, history.pieces, first_number=31, limit=5_000)
    assert len(merged.packs) > 1
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
            merge(packs, history.pieces, first_number=31, limit=5_000)
        assert sorted(os.listdir(packs)) == before


def test_a_name_means_a_whole_pack(packs: bytes, hook: Listen) -> None:
    """At each step, every pack that has its final name is whole and synced."""
    history = History(packs, packs=8)

    def look(step: str) -> None:
        if step != "write":
            return
        for name in os.listdir(packs):
            if name.endswith(b".pack"):
                assert PackFile(os.path.join(packs, name[:-5])).check() == []

    hook(look)
    merge(packs, history.pieces, first_number=31, limit=5_000)
