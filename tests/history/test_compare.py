"""Differences between two states, against pictures of the trees made by code of its own."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from chance import examples
from takeback import Project
from takeback.errors import UnknownReferenceError, UsageError
from takeback.history import compare
from takeback.model import words
from takeback.model.tree import Difference
from takeback.objects.object_store import ObjectStore

VERBS = {"folder": "mkdir", "link": "link", "file": "create"}
NAMES = st.sampled_from([b"a", b"b", b"d", b"d/a", b"d/e", b"d/e/f", b"a/x", b"\xff\n", b"d/\xe9"])
THINGS = st.one_of(
    st.tuples(st.just("file"), st.sampled_from([b"", b"1\n", b"2\n", b"\0bin"]), st.integers(0, 3)),
    st.tuples(st.just("folder"), st.just(b""), st.integers(0, 3)),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"nowhere"]), st.just(0)),
    st.tuples(st.just("fifo"), st.just(b""), st.just(0)),
)
TREES = st.dictionaries(NAMES, THINGS, max_size=7)


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project of an empty folder."""
    with Project.open(os.fsencode(tree), home=os.fsencode(home)) as opened:
        yield opened


def newest(project: Project) -> str:
    """The newest checkpoint, whatever the files are by now."""
    return next(project.checkpoints()).id


def found(
    project: Project, before: str | None, after: str | None = None, *paths: bytes
) -> dict[bytes, str]:
    """The verb of each path that differs."""
    with project.compare(before, after, paths) as comparison:
        return {d.raw_path: d.verb for d in comparison.differences}


def build(root: Path, things: dict[bytes, tuple[str, bytes, int]]) -> None:
    """Make a tree of what can be made of these; what is in the way stays."""
    base = os.fsencode(root)
    for path, (kind, content, mode) in sorted(things.items()):
        target = base + b"/" + path
        if not os.path.isdir(os.path.dirname(target)) or os.path.lexists(target):
            continue
        if kind == "file":
            with open(target, "wb") as file:
                file.write(content)
            os.chmod(target, 0o600 | mode << 4)
        elif kind == "folder":
            os.mkdir(target)
            os.chmod(target, 0o700 | mode << 4)
        elif kind == "link":
            os.symlink(content, target)
        else:
            os.mkfifo(target)


def expected(before: oracle.Picture, after: oracle.Picture) -> dict[bytes, str]:
    """What the verbs must be, by the pictures of both trees; renames told as two."""
    verbs = {}
    for path in before.keys() | after.keys():
        verb = expected_verb(before.get(path), after.get(path))
        if verb:
            verbs[path] = verb
    return verbs


def expected_verb(was: oracle.Entry | None, now: oracle.Entry | None) -> str:
    """What the verb of one path must be."""
    known = {None if entry is None else str(entry[0]) for entry in (was, now)}
    if "fifo" in known:
        return "" if known == {"fifo"} else "omit"
    if was == now:
        return ""
    if was is None or now is None:
        made = str((now or was or [""])[0])
        return VERBS[made] if was is None else "rmdir" if made == "folder" else "delete"
    if was[0] != now[0] or (now[0] == "file" and was[2:] != now[2:]) or now[0] == "link":
        return {"folder": "mkdir", "link": "link", "file": "write"}[str(now[0])]
    return "mode"


def without_renames(differences: tuple[Difference, ...]) -> dict[bytes, str]:
    """The verbs, with each rename told as a deletion and a creation."""
    verbs: dict[bytes, str] = {}
    for d in differences:
        if d.raw_origin is not None:
            verbs |= {d.raw_origin: "delete", d.raw_path: "create"}
            assert d.before is not None
            assert d.after is not None
            assert d.before.strong == d.after.strong
            assert d.before.size > 0
        else:
            verbs[d.raw_path] = d.verb
    return verbs


@given(TREES, TREES, st.booleans())
@settings(max_examples=examples(25))
def test_differences_are_those_of_the_trees(
    tmp_path_factory: pytest.TempPathFactory,
    first: dict[bytes, tuple[str, bytes, int]],
    second: dict[bytes, tuple[str, bytes, int]],
    has_cache: bool,
) -> None:
    """Between any two trees, saved or as they are on disk, exactly what differs is found."""
    base = tmp_path_factory.mktemp("trees")
    tree, home = base / "tree", base / "home"
    tree.mkdir()
    home.mkdir(mode=0o700)
    with Project.open(os.fsencode(tree), home=os.fsencode(home)) as project:
        build(tree, first)
        before = oracle.picture(tree)
        project.checkpoint()
        for name in map(os.fsencode, os.listdir(tree)):
            path = os.fsencode(tree) + b"/" + name
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        build(tree, second)
        after = oracle.picture(tree)
        if not has_cache:
            next(home.glob("projects/*/index")).unlink()
        wanted = expected(before, after)
        with project.compare(newest(project)) as comparison:
            assert without_renames(comparison.differences) == wanted
        with project.compare(None, newest(project)) as comparison:
            assert without_renames(comparison.differences) == expected(after, before)
        project.checkpoint()
        with project.compare("@~1" if wanted else newest(project), newest(project)) as comparison:
            assert without_renames(comparison.differences) == wanted
        assert found(project, newest(project)) == {}
    shutil.rmtree(base)


def test_looking_writes_nothing(project: Project, tree: Path, home: Path) -> None:
    """Neither the tree nor the store is changed by a comparison with now, not even in stamps."""
    (tree / "a").write_text("one\n")
    project.checkpoint()
    (tree / "a").write_text("two\n")
    (tree / "new").write_text("new\n")
    before = oracle.stamps(tree), stored(home)
    assert found(project, newest(project)) == {b"a": "write", b"new": "create"}
    assert (oracle.stamps(tree), stored(home)) == before


def stored(home: Path) -> dict[bytes, tuple[oracle.Entry, oracle.Entry]]:
    """Everything in the store with its stamps, but for SQLite's memory of who reads just now.

    When root opens a write-ahead log, SQLite sets its owner again, which moves its last stamp.
    """
    stamps = oracle.stamps(home)
    return {
        path: (thing, stamps[path][:-1] if path.endswith(b"-wal") else stamps[path])
        for path, thing in oracle.picture(home).items()
        if not path.endswith(b"-shm")
    }


def test_looking_does_not_wait_for_the_lock(project: Project, tree: Path, home: Path) -> None:
    """A comparison works while another process holds the project's lock."""
    (tree / "a").write_text("one\n")
    project.checkpoint()
    (tree / "a").write_text("two\n")
    with (
        Project.open(os.fsencode(tree), home=os.fsencode(home)) as other,
        other.workspace.held(),
    ):
        assert found(project, newest(project)) == {b"a": "write"}


def test_looking_beside_checkpoints(project: Project, tree: Path, home: Path) -> None:
    """While checkpoints are made, no look fails, and none tells of a file that did not change."""
    for number in range(20):
        (tree / f"{number}").write_text(f"{number}\n")
    (tree / "busy").write_text("0\n")
    project.checkpoint()
    failed: list[BaseException] = []

    def work() -> None:
        with Project.open(os.fsencode(tree), home=os.fsencode(home)) as other:
            for number in range(60):
                (tree / "busy").write_text(f"{number}\n")
                other.checkpoint()

    def safely() -> None:
        try:
            work()
        except BaseException as problem:
            failed.append(problem)

    worker = threading.Thread(target=safely)
    worker.start()
    told: set[bytes] = set()
    while worker.is_alive():
        told |= set(found(project, newest(project)))
    worker.join()
    assert failed == []
    assert told <= {b"busy"}


def test_a_change_that_hides_behind_old_stamps_is_found(project: Project, tree: Path) -> None:
    """A file changed right after a checkpoint, with its old size and time, is read again."""
    path = tree / "a"
    path.write_text("one\n")
    stamp = path.stat().st_mtime_ns
    project.checkpoint()
    path.write_text("two\n")
    os.utime(path, ns=(stamp, stamp))
    assert found(project, newest(project)) == {b"a": "write"}


@pytest.mark.parametrize("index", [b"", b"TBINDEX1" + bytes(500), None])
def test_a_stat_cache_that_cannot_be_used_only_costs_time(
    project: Project, tree: Path, home: Path, index: bytes | None
) -> None:
    """With a cache that is empty, nonsense or gone, everything is looked at, nothing written."""
    (tree / "d").mkdir()
    (tree / "d" / "a").write_text("one\n")
    (tree / "same").write_text("same\n")
    project.checkpoint()
    (tree / "d" / "a").write_text("two\n")
    (path,) = home.glob("projects/*/index")
    if index is None:
        path.unlink()
    else:
        path.write_bytes(index)
    before = stored(home)
    assert found(project, newest(project)) == {b"d/a": "write"}
    assert stored(home) == before


def test_now_needs_no_checkpoint(project: Project, tree: Path) -> None:
    """Without any checkpoint now can be read, and differs in nothing from itself."""
    (tree / "a").write_text("one\n")
    assert found(project, None) == {}
    assert b"".join(project.read(None, b"a")) == b"one\n"
    assert found(project, "@") == {}
    with pytest.raises(UnknownReferenceError):
        found(project, "@~0")


def test_equal_folders_are_not_read(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost follows the difference: of a hundred folders only the changed one is looked into."""
    for number in range(100):
        (tree / f"{number}").mkdir()
        (tree / f"{number}" / "file").write_text(f"{number}\n")
    project.checkpoint()
    (tree / "7" / "file").write_text("changed\n")
    project.checkpoint()
    read: list[bytes] = []
    whole = ObjectStore.manifest

    def counted(self: ObjectStore, oid: bytes, strong: bytes) -> object:
        read.append(oid)
        return whole(self, oid, strong)

    monkeypatch.setattr(ObjectStore, "manifest", counted)
    assert found(project, "@~1", newest(project)) == {b"7/file": "write"}
    assert len(read) == 4


def test_renames_are_told_when_the_content_is_the_same(project: Project, tree: Path) -> None:
    """A moved file is one rename with its origin; empty files and copies are not."""
    (tree / "src").mkdir()
    (tree / "src" / "name.py").write_text("content\n")
    (tree / "other.py").write_text("content\n")
    (tree / "empty").write_text("")
    project.checkpoint()
    (tree / "lib").mkdir()
    (tree / "src" / "name.py").rename(tree / "lib" / "name.py")
    (tree / "other.py").rename(tree / "another.py")
    (tree / "empty").rename(tree / "still empty")
    (tree / "lib" / "name.py").chmod(0o755)
    with project.compare(newest(project)) as comparison:
        told = {d.raw_path: (d.verb, d.raw_origin) for d in comparison.differences}
    assert told == {
        b"lib": ("mkdir", None),
        b"lib/name.py": ("rename", b"src/name.py"),
        b"another.py": ("rename", b"other.py"),
        b"empty": ("delete", None),
        b"still empty": ("create", None),
    }


def test_what_was_left_out_is_neither_made_nor_deleted(
    project: Project, tree: Path, home: Path
) -> None:
    """Unknown is not absent: a path that one state left out is told as such, in either order."""
    (home / "config.toml").write_text("[limits]\nfile = 10\n")
    (tree / "big").write_text("small\n")
    (tree / "folder").mkdir()
    (tree / "folder" / "inner").write_text("x\n")
    project.checkpoint()
    (tree / "grown").write_text("x" * 100)
    (tree / "folder" / "inner").unlink()
    os.mkfifo(tree / "folder" / "inner")
    with project.compare(newest(project)) as comparison:
        told = {d.raw_path: (d.verb, d.reason) for d in comparison.differences}
    assert told == {
        b"folder/inner": ("omit", words.SPECIAL),
        b"grown": ("omit", words.TOO_LARGE),
    }
    with project.compare(None, newest(project)) as comparison:
        assert {d.raw_path: d.verb for d in comparison.differences} == dict.fromkeys(told, "omit")


def test_paths_narrow_it_down(project: Project, tree: Path) -> None:
    """A file, or everything below a folder; nothing else is told."""
    for name in ("a", "d/a", "d/e/a", "da"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("1\n")
    project.checkpoint()
    for name in ("a", "d/a", "d/e/a", "da"):
        (tree / name).write_text("2\n")
    assert set(found(project, newest(project), None, b"d")) == {b"d/a", b"d/e/a"}
    assert set(found(project, newest(project), None, b"d/e/a", b"a")) == {b"d/e/a", b"a"}
    assert set(found(project, newest(project), None, b".")) == {b"a", b"d/a", b"d/e/a", b"da"}
    assert set(found(project, newest(project), None, os.fsencode(tree / "d" / "e"))) == {b"d/e/a"}
    with project.compare(newest(project), None, [b"a"], inside=b"d/e") as comparison:
        assert [d.raw_path for d in comparison.differences] == [b"d/e/a"]
    with project.compare(newest(project), None, [b"../a"], inside=b"d/e") as comparison:
        assert [d.raw_path for d in comparison.differences] == [b"d/a"]
    with project.compare(newest(project), None, [b"da"], inside=b"d/e") as comparison:
        assert [d.raw_path for d in comparison.differences] == [b"da"]
    opened = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    with pytest.raises(UnknownReferenceError, match="nowhere"):
        found(project, newest(project), None, b"nowhere")
    assert len(opened) in (0, len(os.listdir("/proc/self/fd")))
    with pytest.raises(UsageError, match="outside"):
        found(project, newest(project), None, b"../../etc/passwd")


def test_contents_never_come_through_a_link(project: Project, tree: Path) -> None:
    """A file replaced by a link after the look is not followed, nor is a link in its folder."""
    secret = tree.with_name("secret")
    secret.mkdir()
    (secret / "a").write_text("secret\n")
    (tree / "d").mkdir()
    (tree / "d" / "a").write_text("1\n")
    project.checkpoint()
    (tree / "d" / "a").write_text("2\n")
    with project.compare(newest(project)) as comparison:
        (change,) = comparison.differences
        assert comparison.contents(change) == (b"1\n", b"2\n")
        (tree / "d").rename(tree / "moved")
        (tree / "d").symlink_to(secret)
    with project.compare(newest(project)) as comparison:
        told = {d.path: comparison.contents(d) for d in comparison.differences}
    assert b"secret\n" not in {content for pair in told.values() for content in pair}


def test_large_files_are_not_held(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the bound a file is known to differ, and its content is not asked for."""
    monkeypatch.setattr(compare, "LARGEST", 100)
    (tree / "large").write_bytes(b"x" * 99)
    project.checkpoint()
    (tree / "large").write_bytes(b"x" * 101)
    with project.compare(newest(project)) as comparison:
        (change,) = comparison.differences
        assert (change.verb, comparison.contents(change)) == ("write", (b"x" * 99, None))


def test_reading_a_file_of_a_state(project: Project, tree: Path, home: Path) -> None:
    """Files and links of any checkpoint, and of now, can be read; errors say what to do."""
    (home / "config.toml").write_text("[limits]\nfile = 20000000\n")
    large = b"large\n" * 2_000_000
    (tree / "d").mkdir()
    (tree / "d" / "a").write_text("1\n")
    (tree / "link").symlink_to("d/a")
    (tree / "large").write_bytes(large)
    os.mkfifo(tree / "fifo")
    project.checkpoint()
    (tree / "d" / "a").write_text("2\n")
    (tree / "large").write_bytes(large + b"more")
    assert b"".join(project.read(newest(project), b"d/a")) == b"1\n"
    assert b"".join(project.read(None, b"d/a")) == b"2\n"
    assert b"".join(project.read(newest(project), b"a", inside=b"d")) == b"1\n"
    assert b"".join(project.read(newest(project), b"link")) == b"d/a"
    assert b"".join(project.read(newest(project), b"large")) == large
    assert b"".join(project.read(None, b"large")) == large + b"more"
    for path, message in (
        (b"nothing", "is not in `"),
        (b"d", "is a folder"),
        (b"fifo", "left out of `[k-z]+` .special."),
        (b"fifo/below", "left out of `"),
        (b"d/a/below", "is not in `"),
    ):
        with pytest.raises(UsageError, match=message) as error:
            project.read(newest(project), path)
        assert error.value.hint
