"""A watch spares looks at folders in which nothing happened, and no others."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import examples
from takeback.capture.checkpoint import Place, Request
from takeback.disk import machine
from takeback.model.results import Checkpoint
from takeback.project import Project
from takeback.worktree import watch
from takeback.worktree import watch as engine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the kernel tells what happens in folders on Linux only"
)

EXAMPLES = examples(25)
"""`TAKEBACK_TEST_EXAMPLES=2000` tries so many series of changes."""
NAMES = ("a", "d", "d/e", "d/e/a", "f", "f/e", "f/e/a", "f/e/g")


class Watched:
    """A project that is watched, and another history of the same folder that is not."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.project = Project.open(os.fsencode(tree), home=os.fsencode(home / "watched"))
        self.project.workspace.watch_tree()
        self.other = Project.open(os.fsencode(tree), home=os.fsencode(home / "other"))
        self.glanced = 0

    def close(self) -> None:
        """Close both."""
        self.project.close()
        self.other.close()

    def look(self, *, whole: bool = False) -> Checkpoint:
        """Look, and let the watch catch up."""
        seen = self.seen(whole=whole)
        self.project.workspace.settle_watch()
        return seen

    def seen(self, *, whole: bool = False) -> Checkpoint:
        """Look, and let the watch be."""
        with self.project.workspace.held():
            found = self.project.workspace.checkpoint_if_changed(
                Request(time.time_ns(), Place(), whole=whole)
            )
        self.glanced += not self.is_whole()
        return found

    def is_whole(self) -> bool:
        """Whether the last look was at everything."""
        assert self.project.workspace._partial_scan is not None
        return self.project.workspace._partial_scan._is_whole

    def begin(self) -> None:
        """Let glances begin."""
        self.look()
        self.look()

    def require_same(self) -> None:
        """What a glance found is what a look at everything finds."""
        assert self.seen().tree == self.other.checkpoint().tree


@pytest.fixture
def watched(tree: Path, home: Path) -> Iterator[Watched]:
    """A project that is watched."""
    (tree / "d/e").mkdir(parents=True)
    (tree / "d/e/a").write_text("deep")
    found = Watched(tree, home)
    yield found
    found.close()


# -- what is noticed -------------------------------------------------------------------------


def _write(path: Path) -> None:
    path.write_text(f"{time.monotonic_ns()}")


def _replace(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_text("fresh")
    fresh.rename(path)


def _in_memory(path: Path) -> None:
    program = "import mmap, sys; f = open(sys.argv[1], 'r+b'); mmap.mmap(f.fileno(), 0)[0:1] = b'#'"
    subprocess.run([sys.executable, "-I", "-S", "-c", program, path], check=True)


def _keeping_stamp(path: Path) -> None:
    found = path.stat()
    path.write_bytes(b"x" * found.st_size)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: "dict[str, Callable[[Path], object]]" = {
    "write": _write,
    "replace": _replace,
    "in memory": _in_memory,
    "keeping its stamp": _keeping_stamp,
    "remove": Path.unlink,
    "permissions": lambda path: path.chmod(0o600),
    "cut": lambda path: os.truncate(path, 1),
    "new file": lambda path: (path.parent / "new").write_text("new"),
    "new link": lambda path: (path.parent / "link").symlink_to("a"),
    "new folders": lambda path: (path.parent / "x/y/z").mkdir(parents=True),
    "move": lambda path: path.rename(path.parent.parent / "moved"),
    "move its folder": lambda path: path.parent.rename(path.parent.parent / "elsewhere"),
    "remove its folder": lambda path: shutil.rmtree(path.parent),
    "permissions of its folder": lambda path: path.parent.chmod(0o711),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_kind_of_change_is_noticed(watched: Watched, what: str) -> None:
    """A glance finds whatever is done to a file or to its folder."""
    watched.begin()
    before = watched.look().tree
    assert not watched.is_whole()
    CHANGES[what](watched.tree / "d/e/a")
    after = watched.look()
    assert after.tree != before
    assert after.tree == watched.other.checkpoint().tree


def test_a_folder_in_which_nothing_happened_is_not_looked_at(watched: Watched) -> None:
    """A glance is limited to the folders that something happened in, and those above."""
    watched.begin()
    watched.look()
    (watched.tree / "d/e/a").write_text("other")
    cache = watched.project.workspace._cache
    assert cache is not None
    assert watched.project.workspace._partial_scan is not None
    assert watched.project.workspace._partial_scan.folders(cache) == {b"d/e"}


def _remove(path: Path, _: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _swap(path: Path, other: Path) -> None:
    path.rename(path.parent / "aside")
    other.rename(path)
    (path.parent / "aside").rename(other)


BY_HAND: "dict[str, Callable[[Path, Path], object]]" = {
    "write": lambda path, other: path.write_text(other.name),
    "mkdir": lambda path, _: path.mkdir(),
    "remove": _remove,
    "move": lambda path, other: path.rename(other),
    "swap": _swap,
    "chmod": lambda path, other: path.chmod(0o700 if other.name == "a" else 0o755),
    "link": lambda path, other: path.symlink_to(other.name),
}


def _by_another(watched: Watched) -> None:
    with Project.open(
        watched.project.workspace.root, home=watched.project.workspace.home.path
    ) as another:
        another.checkpoint()


LOOKS: "dict[str, Callable[[Watched], object]]" = {
    "look": Watched.look,
    "look, and do not settle": Watched.seen,
    "another looks": _by_another,
}
CHANGE = st.tuples(st.sampled_from(tuple(BY_HAND)), *[st.sampled_from(NAMES)] * 2)
ROUND = st.tuples(st.lists(CHANGE, min_size=1, max_size=3), st.sampled_from((*LOOKS, "look")))


@pytest.mark.timeout(120 if EXAMPLES < 100 else 0)
@given(rounds=st.lists(ROUND, min_size=2, max_size=10))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_series_of_changes_is_noticed(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[tuple[list[tuple[str, str, str]], str]],
) -> None:
    """Whatever is done to files and folders between glances, each finds what is there."""
    at = tmp_path_factory.mktemp("watch")
    for name in ("d/e", "f/e"):
        (at / "tree" / name).mkdir(parents=True)
        (at / "tree" / name / "a").write_text(name)
    watched = Watched(at / "tree", at / "homes")
    try:
        watched.begin()
        for changes, look in rounds:
            for what, name, other in changes:
                with contextlib.suppress(OSError):
                    BY_HAND[what](watched.tree / name, watched.tree / other)
            LOOKS[look](watched)
            watched.require_same()
        for path in watched.tree.rglob("a"):
            if path.is_file() and not path.is_symlink():
                _write(path)
                watched.require_same()
    finally:
        watched.close()
        shutil.rmtree(at)


def test_folders_that_changed_places(watched: Watched) -> None:
    """What happens in folders that changed places is told of where they are now."""
    (watched.tree / "f/e").mkdir(parents=True)
    (watched.tree / "f/e/a").write_text("here")
    watched.begin()
    _swap(watched.tree / "d", watched.tree / "f")
    watched.begin()
    watched.look()
    (watched.tree / "f/e/a").write_text("the one that was in d")
    watched.require_same()
    assert not watched.is_whole()


def test_a_folder_that_was_made_again(watched: Watched) -> None:
    """A folder in the place of another, that looks the same, is watched as well."""
    watched.begin()
    folder = watched.tree / "d/e"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "a").write_text("deep")
    watched.begin()
    watched.look()
    (folder / "a").write_text("deeper")
    watched.require_same()
    assert not watched.is_whole()


def test_what_happened_before_a_folder_was_watched(watched: Watched) -> None:
    """What is done in a new folder between a look and the watch is found by the next glance."""
    watched.begin()
    (watched.tree / "new").mkdir()
    watched.seen()
    (watched.tree / "new/file").write_text("in between")
    watched.project.workspace.settle_watch()
    watched.require_same()


def test_what_happens_before_the_watch_catches_up(watched: Watched) -> None:
    """Before a new folder is watched, everything is looked at."""
    watched.begin()
    (watched.tree / "new").mkdir()
    watched.seen()
    (watched.tree / "new/file").write_text("not watched yet")
    watched.require_same()


def test_what_another_process_saw(watched: Watched) -> None:
    """A checkpoint that another process made is what the next look goes on from."""
    watched.begin()
    (watched.tree / "d/e/a").write_text("seen by another")
    _by_another(watched)
    (watched.tree / "a.txt").write_text("seen by nobody yet")
    watched.require_same()
    assert watched.is_whole()


# -- when it is not sure -----------------------------------------------------------------------


def test_lost_notes_make_a_look_at_everything(watched: Watched) -> None:
    """If more happens than the kernel remembers, everything is looked at, and glances go on."""
    watched.begin()
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    one, other = watched.tree / "d/one", watched.tree / "d/other"
    one.write_text("")
    for _ in range(queue // 2):
        one.rename(other)
        other.rename(one)
    (watched.tree / "d/e/a").write_text("after all that")
    watched.require_same()
    assert watched.is_whole()
    watched.begin()
    watched.require_same()
    assert not watched.is_whole()


@pytest.mark.parametrize("is_share", [True, False])
def test_too_many_folders_are_not_watched(
    tree: Path, monkeypatch: pytest.MonkeyPatch, home: Path, is_share: bool
) -> None:
    """A tree with more folders than a share of what the user may watch is looked at each time."""
    for number in range(12):
        (tree / f"{number}").mkdir()
    if is_share:
        limit = tree / "limit"
        limit.write_text("40\n")
        monkeypatch.setattr(watch, "_LIMIT", os.fsencode(limit))
    else:
        monkeypatch.setattr(watch, "_allowed", lambda: 10)
    watched = Watched(tree, home)
    for _ in range(3):
        watched.look()
        watched.require_same()
    assert watched.glanced == 0
    watched.close()


def test_no_more_watches_are_to_be_had(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kernel refuses a watch, everything is looked at, as without one."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(watch.Inotify, "add", refuse)
    for _ in range(3):
        watched.look()
        watched.require_same()
    assert watched.glanced == 0


def test_files_of_others_are_not_watched(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another machine may change files the kernel does not tell, so there is no watch."""
    root = os.stat(watched.tree)
    device = b"%d:%d" % (os.major(root.st_dev), os.minor(root.st_dev))
    for kind, is_watched in ((b"ext4", True), (b"nfs4", False), (b"fuse.sshfs", False)):
        line = b"20 1 %s / / rw - %s /dev/x rw\n" % (device, kind)
        monkeypatch.setattr(machine, "_read_mountinfo", lambda line=line: line)
        assert machine.is_watchable(os.fsencode(watched.tree)) == is_watched
    monkeypatch.setattr(machine, "_read_mountinfo", lambda: b"")
    assert not machine.is_watchable(os.fsencode(watched.tree))


def test_everything_is_looked_at_once_a_minute(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a turn is, what glances overlook is found a minute later."""
    watched.begin()
    watched.look()
    assert not watched.is_whole()
    later = time.time_ns() + engine.LONGEST + 1
    monkeypatch.setattr(time, "time_ns", lambda: later)
    watched.look()
    assert watched.is_whole()


def test_a_look_that_fails_is_taken_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a look would have found that failed is found by the next one."""
    watched.begin()
    (watched.tree / "d/e/a").write_text("written before a failure")
    with monkeypatch.context() as broken:
        broken.setattr(watched.project.workspace.store, "pack_writer", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            watched.look()
    watched.require_same()
    assert not watched.is_whole()


def test_a_copy_of_the_process_reads_no_notes(watched: Watched) -> None:
    """A forked copy looks at everything, and takes nothing from the original."""
    watched.begin()
    (watched.tree / "d/e/a").write_text("before the fork")
    child = os.fork()
    if child == 0:
        try:
            watched.look()
            os._exit(0 if watched.is_whole() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    (watched.tree / "d/e/a").write_text("after the fork")
    watched.require_same()


def test_nothing_stays_open(watched: Watched) -> None:
    """A project that is closed watches nothing."""

    def open_watches() -> int:
        fds = Path("/proc/self/fd").iterdir()
        return sum("inotify" in os.readlink(fd) for fd in fds if fd.is_symlink())

    before = open_watches()
    watched.begin()
    assert open_watches() == before + 1
    watched.project.close()
    assert open_watches() == before
