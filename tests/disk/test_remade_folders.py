"""Which history belongs to a folder that was made anew, or whose disk has another number now."""

import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

import takeback
from history import command
from hostile.stage import in_child
from registry_lines import rewrite
from takeback.disk import operations
from takeback.project import Project

CAN_MOUNT = os.geteuid() == 0 and shutil.which("mkfs.ext4") is not None
OTHER_DEVICE = "999999"
NAMES = ("a.py", "b.py", "c.py")


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about what a loss of power does to a file, so nothing waits for the disk."""
    monkeypatch.setattr(operations, "sync", False)


def _fill(folder: Path, *names: str) -> None:
    for name in names or NAMES:
        (folder / name).write_text(f"{name}\n")
    (folder / "src").mkdir()
    (folder / "src/deep.py").write_text("deep\n")


def _known(tree: Path, home: Path) -> str:
    """A project with one checkpoint; its id."""
    _fill(tree)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        return project.id


def _rewrite(home: Path, device: str = "", inode: tuple[str, str] = ("", "")) -> None:
    """Let what is known of folders be about another device, or another inode instead of one."""

    def changed(line: str) -> str:
        id, number, node, path = line.split(" ", 3)
        node = inode[1] if node == inode[0] else node
        return " ".join([id, device or number, node, path])

    for file in (home / "registry", *home.glob("projects/*/root")):
        rewrite(file, changed)
    for file in home.glob("projects/*/birth"):
        birth = file.read_text().split(" ", 2)[1]
        line = (file.parent / "root").read_text()
        said = f"{birth} {line}"
        file.write_text(f"{zlib.crc32(said.encode()):08x} {said}")


def _forget_births(home: Path) -> None:
    """Let the file system be one that does not tell when a folder was made."""
    for file in home.glob("projects/*/birth"):
        file.unlink()


def _make_anew(tree: Path, home: Path) -> None:
    """Remove a folder and make it again, so that it has the number of the old one."""
    _require_births(tree)
    before = tree.stat().st_ino
    shutil.rmtree(tree)
    tree.mkdir()
    # Where the file system gives out new numbers only, let the old folder have had this one.
    _rewrite(home, inode=(str(before), str(tree.stat().st_ino)))


def _require_births(tree: Path) -> None:
    """Skip where nobody can tell when a folder was made; an overlay tells when it was copied."""
    born = subprocess.run(["stat", "-c", "%W", tree], capture_output=True, text=True, check=False)
    kind = subprocess.run(["stat", "-fc", "%T", tree], capture_output=True, text=True, check=False)
    if born.stdout.strip() in ("", "-", "0") or "overlay" in kind.stdout:
        pytest.skip("this file system does not tell when a folder was made")


def _empty(tree: Path) -> None:
    for path in tree.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


# -- removed and made anew -------------------------------------------------------------------------


@pytest.mark.parametrize("names", [(), NAMES, ("x", "y")], ids=["empty", "same names", "others"])
def test_a_folder_made_anew_asks(tree: Path, home: Path, names: tuple[str, ...]) -> None:
    """`rm -rf P; mkdir P` is another folder, also where it gets the inode of the old one."""
    id = _known(tree, home)
    _make_anew(tree, home)
    if names:
        _fill(tree, *names)
    with pytest.raises(takeback.ProjectIdentityError, match=id):
        takeback.open(tree, home=home)


def test_both_answers_to_the_question_work(tree: Path, home: Path) -> None:
    """The commands that the question names do what they say, wherever they are run."""
    id = _known(tree, home)
    _make_anew(tree, home)
    _fill(tree)
    asked = command(tree / "src", "checkpoint")
    assert asked.code == 3
    assert f"takeback relocate --join {id} -C {tree}" in asked.err
    joined = command(tree / "src", "relocate", "--join", id, "-C", str(tree))
    assert (joined.code, f"{tree} is project {id} now" in joined.out) == (0, True)
    with takeback.open(tree, home=home) as project:
        assert (project.id, project.status().checkpoints) == (id, 1)
        assert not project.checkpoint().new
    _make_anew(tree, home)
    assert command(tree, "relocate", "--new", "-C", str(tree)).code == 0
    with takeback.open(tree, home=home) as project:
        assert (project.id != id, project.status().checkpoints) == (True, 0)


@pytest.mark.parametrize("what", ["emptied", "replaced", "away and back", "another mode", "edited"])
def test_ordinary_life_asks_nothing(tree: Path, home: Path, what: str) -> None:
    """The same folder is the same project, whatever becomes of all that is in it."""
    id = _known(tree, home)
    if what == "away and back":
        tree.rename(tree.with_name("away"))
        tree.with_name("away").rename(tree)
    elif what == "another mode":
        tree.chmod(0o700)
    elif what == "edited":
        for name in NAMES:
            (tree / name).write_text("edited\n")
        (tree / "src/new.py").write_text("new\n")
        (tree / "new.py").write_text("new\n")
    else:
        _empty(tree)
        if what == "replaced":
            _fill(tree, "quite", "different", "names")
    with takeback.open(tree, home=home) as project:
        assert project.id == id
        project.checkpoint()
    with takeback.open(tree, home=home) as project:
        assert (project.id, project.verify().ok) == (id, True)


def test_a_folder_made_anew_under_an_open_project(tree: Path, home: Path) -> None:
    """A project that is open does not take another folder for its own either."""
    _known(tree, home)
    with takeback.open(tree, home=home) as project:
        _require_births(tree)
        inode = tree.stat().st_ino
        shutil.rmtree(tree)
        tree.mkdir()
        if tree.stat().st_ino != inode:
            pytest.skip("the inode was not given out again")
        for _ in range(2):
            with pytest.raises(takeback.CaptureError, match="was replaced since"):
                project.checkpoint()
        assert project.status().checkpoints == 1


def test_an_emptied_folder_under_an_open_project(tree: Path, home: Path) -> None:
    """An agent that deletes everything in the project is covered all the same."""
    id = _known(tree, home)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        _empty(tree)
        assert project.checkpoint().changed > len(NAMES)
        _fill(tree, "x")
        assert project.checkpoint().new
        assert project.id == id


def test_a_moved_and_emptied_folder_is_the_same(tree: Path, home: Path) -> None:
    """A folder that was renamed is known by its birth, also with nothing left in it."""
    id = _known(tree, home)
    _require_births(tree)
    moved = tree.with_name("moved")
    tree.rename(moved)
    _empty(moved)
    with takeback.open(moved, home=home) as project:
        assert (project.id, project.root) == (id, str(moved))


# -- relocate --------------------------------------------------------------------------------------


def test_join_joins_whichever_of_two_histories(tree: Path, home: Path) -> None:
    """Of two histories that were at a place, `relocate --join` takes the one that was asked for."""
    old = _known(tree, home)
    path, there = os.fsencode(tree), os.fsencode(home)
    with pytest.raises(takeback.DecisionNeededError, match=old):
        Project.relocate(path, home=there)
    with Project.relocate(path, home=there, yes=True) as project:
        new = project.id
        project.checkpoint()
    for id in (old, new, old, new):
        with Project.relocate(path, home=there, join=id):
            pass
        with takeback.open(tree, home=home) as project:
            assert project.id == id
    tree.rename(tree.with_name("moved"))
    with takeback.open(tree.with_name("moved"), home=home) as project:
        assert project.id == new
    assert {each.name for each in (home / "projects").iterdir()} == {old, new}


def test_moved_to_the_place_of_another_that_is_gone(tree: Path, home: Path) -> None:
    """A folder that was moved to the place of a project that is gone keeps its own history."""
    first = _known(tree, home)
    second = tree.with_name("second")
    second.mkdir()
    gone = _known(second, home)
    shutil.rmtree(second)
    tree.rename(second)
    with takeback.open(second, home=home) as project:
        assert project.id == first
    for id in (gone, first):
        with Project.relocate(os.fsencode(second), home=os.fsencode(home), join=id):
            pass
        with takeback.open(second, home=home) as project:
            assert project.id == id


@pytest.mark.parametrize("same_inode", [True, False])
def test_join_in_a_subfolder_is_about_the_folder_of_the_question(
    tree: Path, home: Path, same_inode: bool
) -> None:
    """Answered in a subfolder, the question is answered for the project, not for the subfolder."""
    id = _known(tree, home)
    if same_inode:
        _make_anew(tree, home)
    else:
        tree.rename(tree.with_name("kept"))
        tree.mkdir()
    _fill(tree)
    with Project.relocate(os.fsencode(tree / "src"), home=os.fsencode(home), join=id) as project:
        assert project.root == str(tree)
    with takeback.open(tree, home=home) as project:
        assert (project.id, project.checkpoint().new) == (id, False)


def test_join_inside_the_project_itself_says_why_not(tree: Path, home: Path) -> None:
    """A subfolder of a project cannot become its root: exit 1, and the history stays."""
    id = _known(tree, home)
    said = command(tree / "src", "relocate", "--join", id)
    assert (said.code, "part of that history already" in said.err) == (1, True)
    with takeback.open(tree / "src", home=home) as project:
        assert (project.id, project.root) == (id, str(tree))


def test_join_with_an_empty_id_joins_nothing(tree: Path, home: Path) -> None:
    """`--join "$ID"` with an unset variable is a mistake, and begins no new history."""
    id = _known(tree, home)
    said = command(tree, "relocate", "--join", "")
    assert (said.code, "there is no project" in said.err) == (2, True)
    with takeback.open(tree, home=home) as project:
        assert project.id == id


# -- another device number -------------------------------------------------------------------------


CHANGES = ["nothing", "index lost", "never captured", "edited"]


@pytest.mark.parametrize(
    ("what", "tells"),
    [*((what, True) for what in (*CHANGES, "emptied")), *((what, False) for what in CHANGES)],
)
def test_another_device_number_asks_nothing(tree: Path, home: Path, what: str, tells: bool) -> None:
    """After a reboot or a remount the folder is known, whatever was lost or done meanwhile.

    Only where nobody can tell when a folder was made does an emptied one ask: a mount point
    without its disk looks just like it.
    """
    if what == "never captured":
        with takeback.open(tree, home=home) as project:
            id = project.id
    else:
        id = _known(tree, home)
    if tells:
        _require_births(tree)
    else:
        _forget_births(home)
    _rewrite(home, OTHER_DEVICE)
    if what == "index lost":
        (home / "projects" / id / "index").write_bytes(b"")
    elif what == "edited":
        (tree / "a.py").write_text("edited\n")
        (tree / "src/new.py").write_text("new\n")
    elif what == "emptied":
        _empty(tree)
    with takeback.open(tree, home=home) as project:
        assert project.id == id
        project.checkpoint()
    assert str(tree.stat().st_dev) in (home / "registry").read_text()


def test_another_folder_on_another_device_asks(tree: Path, home: Path) -> None:
    """A folder that was made anew is another one, also if the disk has another number."""
    id = _known(tree, home)
    _make_anew(tree, home)
    _rewrite(home, OTHER_DEVICE)
    with pytest.raises(takeback.ProjectIdentityError, match=id):
        takeback.open(tree, home=home)


def test_a_project_inside_is_left_out_on_another_device(tree: Path, home: Path) -> None:
    """An inner project stays its own when its disk has another number: no file has two."""
    inner = tree / "inner"
    inner.mkdir()
    _known(inner, home)
    _rewrite(home, OTHER_DEVICE)
    _fill(tree)
    with Project.relocate(os.fsencode(tree), home=os.fsencode(home)) as outer:
        left_out = {each.path: each.reason for each in outer.checkpoint().left_out}
    assert left_out == {"inner": "another project"}


@pytest.mark.skipif(not CAN_MOUNT, reason="needs root and mkfs.ext4 to mount a disk twice")
def test_a_disk_mounted_again(tmp_path: Path, home: Path) -> None:
    """A real disk that gets another number asks nothing; another disk at its place asks."""
    in_child(lambda: _mount_again(tmp_path, home), mounts=True)


def _mount_again(folder: Path, home: Path) -> None:
    disk, aside = folder / "disk", folder / "aside"
    disk.mkdir()
    aside.mkdir()
    for name in ("one", "two"):
        with (folder / name).open("wb") as image:
            image.truncate(1 << 20)
        _run("mkfs.ext4", "-q", "-O", "^has_journal", folder / name)
    tree = disk / "tree"
    _run("mount", "-o", "loop", folder / "one", disk)
    tree.mkdir()
    id, before = _known(tree, home), tree.stat()
    _run("umount", disk)
    # Another disk gets the number of this one, and another folder the number of that one.
    _run("mount", "-o", "loop", folder / "two", disk)
    tree.mkdir()
    _fill(tree)
    assert os.path.samestat(before, tree.stat())
    with pytest.raises(takeback.ProjectIdentityError, match=id):
        takeback.open(tree, home=home)
    _run("mount", "--move", disk, aside)
    _run("mount", "-o", "loop", folder / "one", disk)
    assert tree.stat().st_dev != before.st_dev
    _empty(tree)
    with takeback.open(tree, home=home) as project:
        assert project.id == id
    _run("umount", disk)
    _run("umount", aside)


def _run(*words: "str | Path") -> None:
    subprocess.run(words, check=True, capture_output=True)


# -- the registry, and stores that are gone --------------------------------------------------------


@pytest.mark.parametrize("wrong", [b"z", b"7", b"\0", b"\n"], ids=repr)
def test_one_wrong_letter_in_the_registry(tree: Path, home: Path, wrong: bytes) -> None:
    """The registry only repeats what the stores say: no wrong letter in it changes anything."""
    id = _known(tree, home)
    registry = home / "registry"
    right = registry.read_bytes()
    for at in [*range(0, 12, 3), *range(12, len(right), 7)]:
        registry.write_bytes(right[:at] + wrong + right[at + 1 :])
        with takeback.open(tree / "src", home=home) as project:
            assert (project.id, project.status().checkpoints) == (id, 1), at
        assert registry.read_bytes() == right, at


@pytest.mark.parametrize("wrong", [b"z", b"7", b"\0", b"\n", None], ids=repr)
def test_one_wrong_letter_in_the_store_s_own_line(
    tree: Path, home: Path, wrong: bytes | None
) -> None:
    """The registry knows the project, too: damage or a cut of the store's line changes nothing."""
    id = _known(tree, home)
    root = home / "projects" / id / "root"
    right = root.read_bytes()
    _empty(tree)  # so that nothing inside proves that it is the same folder
    for at in range(0, len(right), 3):
        root.write_bytes(right[:at] + (wrong + right[at + 1 :] if wrong is not None else b""))
        with takeback.open(tree, home=home) as project:
            assert (project.id, project.status().checkpoints) == (id, 1), at


def test_a_store_that_was_removed_by_hand(tree: Path, home: Path) -> None:
    """What is gone is named, with the ways on; put back, it is all there."""
    id = _known(tree, home)
    store, aside = home / "projects" / id, home.with_name("aside")
    store.rename(aside)
    for words in (["log"], ["checkpoint"]):
        said = command(tree, *words)
        assert said.code == 4
        assert str(store) in said.err
        assert f"takeback relocate --new -C {tree}" in said.err
        assert "Traceback" not in said.err
    aside.rename(store)
    with takeback.open(tree, home=home) as project:
        assert (project.id, project.checkpoint().new) == (id, False)
    shutil.rmtree(store)
    with Project.relocate(os.fsencode(tree), home=os.fsencode(home)) as project:
        assert project.checkpoint().new
    with takeback.open(tree, home=home) as project:
        assert (project.id != id, project.status().checkpoints) == (True, 1)


def test_a_store_whose_removal_was_interrupted(tree: Path, home: Path) -> None:
    """It is as good as gone, and not missed: a new history begins, whenever a process dies."""
    id = _known(tree, home)
    store = home / "projects" / id
    doomed = store.with_name(f"{id}.removed")
    store.rename(doomed)
    (home / "lock").write_bytes(b"%-10d" % (1 << 30))  # whoever held it died

    def die_when_all_is_deleted(_step: str, _args: tuple[object, ...]) -> None:
        if not doomed.exists():
            raise KeyboardInterrupt

    operations.hook = die_when_all_is_deleted
    try:
        with pytest.raises(KeyboardInterrupt):
            takeback.open(tree, home=home)
    finally:
        operations.hook = None
    assert not doomed.exists()
    with takeback.open(tree, home=home) as project:
        assert (project.id != id, project.checkpoint().new) == (True, True)


@pytest.mark.parametrize("folder", ["git", "git/objects", "git/objects/pack"])
def test_packs_that_were_removed_by_hand(tree: Path, home: Path, folder: str) -> None:
    """A store without its packs is damaged, which is said with the ways on; nothing is made."""
    id = _known(tree, home)
    gone, aside = home / "projects" / id / folder, home.with_name("aside")
    gone.rename(aside)
    (tree / "new").write_text("new\n")
    for word in ("checkpoint", "verify", "gc"):
        said = command(tree, word)
        assert (said.code, "the packs of this project are gone" in said.err) == (4, True)
        assert "takeback relocate --new" in said.err
    assert not gone.exists()
    aside.rename(gone)
    assert command(tree, "checkpoint").code == 0
    assert command(tree, "verify").code == 0
