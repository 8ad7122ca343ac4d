"""Where an object lies is not part of any identity: what was merged is found."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import takeback
from takeback.ledger.ledger import Ledger
from takeback.ledger.log.events import PACKS_MERGED, NewEvent, pack_facts
from takeback.objects.object_store import ObjectStore
from takeback.objects.pack_merge import Piece, merge
from takeback.objects.pack_read import PackFile
from takeback.objects.pack_write import discard_pack

if TYPE_CHECKING:
    from takeback.model.text.json_text import Json

CHECKPOINTS = 6


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with some checkpoints."""
    root = tmp_path / "tree"
    (root / "folder").mkdir(parents=True)
    with takeback.open(root, home=tmp_path / "home") as project:
        for number in range(CHECKPOINTS):
            (root / "folder" / "file.txt").write_text(f"state {number}\n" * 50)
            project.checkpoint()
    return root


def store_of(tree: Path) -> Path:
    """The folder of a project's store."""
    (ledger,) = tree.parent.glob("home/projects/*/ledger.db")
    return ledger.parent


def merge_all(store: Path, *, remove: bool = True) -> None:
    """Merge all packs into one, tell the ledger, and remove the old files."""
    directory = os.fsencode(store / "git/objects/pack")
    ledger = Ledger(os.fsencode(store / "ledger.db"))
    try:
        old = ledger.packs()
        pieces = []
        for name in old:
            with PackFile(directory + b"/" + name.encode()) as pack:
                pieces += [Piece(oid, name.encode(), b"one") for oid in pack.objects()]
        merged = merge(directory, pieces)
        gone = set(old) - {pack.name.decode() for pack in merged}
        said: dict[str, Json] = {"packs": pack_facts(merged), "dropped": [*gone]}
        ledger.record(NewEvent(PACKS_MERGED, said, 1))
    finally:
        ledger.close()
    if remove:
        for name in gone:
            discard_pack(directory + b"/" + name.encode())


def read_everything(objects: ObjectStore, ledger: Ledger) -> int:
    """Read all states; return how many files there were."""
    found = 0
    for row in ledger.checkpoints.all():
        for _, manifest in objects.walk(row.root, row.tree):
            for entry in manifest.entries:
                if entry.kind == 0o100000:
                    assert objects.content(entry).startswith(b"state")
                    found += 1
    return found


def test_a_pack_that_goes_between_a_look_and_the_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader without the lock found the pack there; gc merges it before it is opened."""
    store, is_gone = store_of(tree), PackFile.is_gone
    ledger = Ledger(os.fsencode(store / "ledger.db"), writable=False)
    objects = ObjectStore(os.fsencode(store / "git/objects/pack"), ledger)

    def merged_meanwhile(pack: PackFile) -> bool:
        found = is_gone(pack)
        monkeypatch.setattr(PackFile, "is_gone", is_gone)
        merge_all(store)
        return found

    monkeypatch.setattr(PackFile, "is_gone", merged_meanwhile)
    try:
        assert read_everything(objects, ledger) == CHECKPOINTS
    finally:
        objects.close()
        ledger.close()


def test_all_is_found_after_a_merge(tree: Path) -> None:
    """Everything that old manifests name is read, verified and restored."""
    merge_all(store_of(tree))
    with takeback.open(tree, home=tree.parent / "home") as project:
        done = project.verify()
        assert (done.damage, done.repaired) == ((), ())
        (tree / "folder" / "file.txt").write_text("state of now\n")
        assert project.checkpoint().new
    merge_all(store_of(tree))
    with takeback.open(tree, home=tree.parent / "home") as project:
        assert project.verify().damage == ()
        refs = [checkpoint.id for checkpoint in project.checkpoints()]
        project.extract(refs[-1], tree.parent / "oldest")
    assert (tree.parent / "oldest/folder/file.txt").read_text() == "state 0\n" * 50


def test_one_file_is_opened_once(tree: Path) -> None:
    """After a merge, reading everything opens one pack."""
    store = store_of(tree)
    merge_all(store)
    ledger = Ledger(os.fsencode(store / "ledger.db"), writable=False)
    objects = ObjectStore(os.fsencode(store / "git/objects/pack"), ledger)
    before = len(os.listdir("/dev/fd"))
    assert read_everything(objects, ledger) == CHECKPOINTS
    assert len(os.listdir("/dev/fd")) == before + 1
    objects.close()
    ledger.close()


@pytest.mark.parametrize("when", ["before reading", "while a pack is open", "in a snapshot"])
def test_who_knows_the_old_names_finds_the_new(tree: Path, when: str) -> None:
    """A reader that asked for names before the merge, or reads as of before, misses nothing."""
    store = store_of(tree)
    ledger = Ledger(os.fsencode(store / "ledger.db"), writable=False)
    objects = ObjectStore(os.fsencode(store / "git/objects/pack"), ledger)
    if when == "while a pack is open":
        assert read_everything(objects, ledger) == CHECKPOINTS
    if when == "in a snapshot":
        with ledger.snapshot() as still:
            assert len(still.packs()) == CHECKPOINTS
            merge_all(store)
            assert len(still.packs()) == CHECKPOINTS
            reader = ObjectStore(objects._directory, still)
            assert read_everything(reader, still) == CHECKPOINTS
            reader.close()
    else:
        merge_all(store)
    assert read_everything(objects, ledger) == CHECKPOINTS
    objects.close()
    ledger.close()


READER = """
import os, sys
import takeback
root, home, out = sys.argv[1:]
with takeback.open(root, home=home) as project:
    refs = [checkpoint.id for checkpoint in project.checkpoints()]
    project.extract(refs[0], out + "-first")
    print("ready", flush=True)
    for line in sys.stdin:
        for number, ref in enumerate(refs):
            project.extract(ref, f"{out}-{line.strip()}-{number}")
        print("done", flush=True)
"""


def test_a_process_goes_on_over_merges_of_others(tree: Path) -> None:
    """A process that was open before two merges reads every state after each of them."""
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(tree), str(tree.parent / "home"),
         str(tree.parent / "out")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    try:
        assert reader.stdout.readline() == "ready\n"
        for merge_number in range(2):
            with takeback.open(tree, home=tree.parent / "home") as project:
                (tree / "folder" / "more.txt").write_text(f"state of {merge_number}\n")
                project.checkpoint()
            merge_all(store_of(tree))
            print(merge_number, file=reader.stdin, flush=True)
            assert reader.stdout.readline() == "done\n"
        for number in range(CHECKPOINTS):
            found = (tree.parent / f"out-1-{number}/folder/file.txt").read_text()
            assert found == f"state {CHECKPOINTS - 1 - number}\n" * 50
    finally:
        reader.stdin.close()
        assert reader.wait() == 0
        reader.stdout.close()


def test_a_pack_that_is_really_gone_is_damage(tree: Path) -> None:
    """Without a merge that explains it, a missing file is told as damage."""
    store = store_of(tree)
    next(iter((store / "git/objects/pack").glob("*.pack"))).unlink()
    with takeback.open(tree, home=tree.parent / "home") as project:
        assert project.verify().damage != ()


# -- identity ----------------------------------------------------------------------------------


def test_the_same_tree_has_the_same_id_everywhere(tmp_path: Path) -> None:
    """In a store with another history, and before and after packs were merged."""
    trees = []
    for number, history in enumerate(([], ["one", "two", "three"])):
        root = tmp_path / str(number) / "tree"
        (root / "folder").mkdir(parents=True)
        with takeback.open(root, home=tmp_path / str(number) / "home") as project:
            for text in history:
                (root / "folder" / "file.txt").write_text(text)
                (root / f"{text}.txt").write_text(text)
                project.checkpoint()
                (root / f"{text}.txt").unlink()
            (root / "folder" / "file.txt").write_text("the same\n")
            for path in (root / "folder" / "file.txt", root / "folder", root):
                path.chmod(0o755)
                os.utime(path, ns=(7, 7))
            made = project.checkpoint()
            (row,) = project.workspace.ledger.checkpoints.with_prefix(made.id)
            project.gc(full=True)
            assert project.workspace.ledger.checkpoints.with_prefix(made.id)[0].root == row.root
            trees.append((made.tree, row.root))
    assert trees[0] == trees[1]


def test_content_that_is_stored_is_not_stored_again(tree: Path) -> None:
    """What comes back, under the same name or another, is found in whichever pack has it."""
    with takeback.open(tree, home=tree.parent / "home") as project:
        (tree / "folder" / "again.txt").write_text("state 2\n" * 50)
        (tree / "folder" / "file.txt").write_text("state 0\n" * 50)
        project.checkpoint()
    objects: list[bytes] = []
    for pack in (store_of(tree) / "git/objects/pack").glob("*.pack"):
        with PackFile(os.fsencode(pack.with_suffix(""))) as file:
            objects += file.objects()
    assert len(objects) == len(set(objects))


def test_a_checkpoint_does_not_rely_on_a_pack_that_is_gone(tree: Path) -> None:
    """What only a lost pack held is stored again when a file still has it."""
    packs = store_of(tree) / "git/objects/pack"
    with takeback.open(tree, home=tree.parent / "home") as project:
        before = set(packs.glob("*.pack"))
        (tree / "folder" / "file.txt").write_text("lost\n")
        project.checkpoint()
        (lost,) = set(packs.glob("*.pack")) - before
        lost.unlink()
        (tree / "folder" / "other.txt").write_text("lost\n")
        made = project.checkpoint()
        project.extract(made.id, tree.parent / "out")
    assert (tree.parent / "out/folder/other.txt").read_text() == "lost\n"


def test_a_lost_index_costs_nothing_but_time(tree: Path) -> None:
    """Without any index all states are read, and a checkpoint is taken."""
    for index in (store_of(tree) / "git/objects/pack").glob("*.idx"):
        index.unlink()
    store = store_of(tree)
    ledger = Ledger(os.fsencode(store / "ledger.db"), writable=False)
    objects = ObjectStore(os.fsencode(store / "git/objects/pack"), ledger)
    assert read_everything(objects, ledger) == CHECKPOINTS
    objects.close()
    ledger.close()
    with takeback.open(tree, home=tree.parent / "home") as project:
        (tree / "folder" / "file.txt").write_text("state 0\n" * 50)
        assert project.checkpoint().new
        assert project.verify().ok


def test_git_leaves_every_pack_alone(tree: Path) -> None:
    """A `.keep` is beside each pack, also after a merge, and none is left without its pack."""
    with takeback.open(tree, home=tree.parent / "home") as project:
        packs = store_of(tree) / "git/objects/pack"
        for _ in range(2):
            kept = {path.stem for path in packs.glob("*.keep")}
            assert kept == {path.stem for path in packs.glob("*.pack")}
            project.gc(full=True)
