"""Any tree, after any edits: each checkpoint gives back the tree of its moment.

Hypothesis writes the script: which entries there are at first, and the edits between
checkpoints. The oracle pictures the tree at each checkpoint, and at the end every one of them
is extracted and compared.
"""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import takeback
from chance import examples
from hostile.ground import new_ground
from takeback.disk import operations
from takeback.worktree import stat_loop

_KEPT_OPEN = 0 if os.geteuid() == 0 else 0o700
_VERSION_CONTROL = (b".git", b".jj", b".hg", b".svn")
_SPECIAL = ("fifo", "socket")
_NASTY = (
    b".git", b".hg", b".GIT", b"git~1", b".git ", b".gitmodules", b".gitattributes", b".gitignore",
    b"a", b"a.b", b"a-b", b"A", b"...", b"\n", b"-rf", b"%2Egit", b"n" * 85, b"\xff", b"con",
    b"HEAD", b"objects", b".takeback",
)  # fmt: skip

Round = tuple[list["Edit"], str]
"""Some edits, and from what the checkpoint after them starts."""
Edit = Callable[[bytes], None]
"""Changes the tree at a root in one way, whatever the tree holds; may find nothing to do."""


def _as_name(raw: bytes) -> bytes:
    name = raw.replace(b"/", b"|").replace(b"\0", b"0")
    return name if name not in (b".", b"..") else name + b"_"


names = st.sampled_from(_NASTY) | st.binary(min_size=1, max_size=9).map(_as_name)
contents = st.binary(max_size=60) | st.integers(0, 3).map(lambda seed: bytes([seed]) * 70_000)
targets = st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\0", b"0"))
modes = st.integers(0, 0o7777)
picks = st.integers(0, 1_000_000)


def _pick(root: bytes, pick: int, *kinds: str) -> bytes | None:
    """Choose an entry of one of these kinds; the root only counts as a folder."""
    picture = oracle.picture(root)
    found = [path for path, entry in sorted(picture.items()) if entry[0] in kinds]
    return os.path.join(root, found[pick % len(found)]) if found else None


def _place(root: bytes, pick: int, name: bytes) -> bytes:
    """Choose a place for a new entry; what has that name already goes away."""
    folder = _pick(root, pick, "folder")
    assert folder is not None
    place = os.path.join(folder, name)
    _clear(place)
    return place


def _clear(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _create(pick: int, name: bytes, content: bytes, mode: int) -> Edit:
    def edit(root: bytes) -> None:
        place = _place(root, pick, name)
        with open(place, "wb") as file:
            file.write(content)
        os.chmod(place, mode | _KEPT_OPEN)

    return edit


def _make_folder(pick: int, name: bytes, mode: int) -> Edit:
    def edit(root: bytes) -> None:
        place = _place(root, pick, name)
        os.mkdir(place)
        os.chmod(place, mode | _KEPT_OPEN)

    return edit


def _make_link(pick: int, name: bytes, target: bytes) -> Edit:
    return lambda root: os.symlink(target, _place(root, pick, name))


def _make_special(pick: int, name: bytes, kind: int) -> Edit:
    return lambda root: os.mknod(_place(root, pick, name), kind | 0o600)


def _write(pick: int, content: bytes) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file")
        if path is not None:
            with open(path, "wb") as file:
                file.write(content)

    return edit


def _write_secretly(pick: int, byte: int) -> Edit:
    """Change a file without changing its size, and put its time stamp back."""

    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file")
        if path is None or not os.path.getsize(path):
            return
        status = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(byte % status.st_size)
            file.write(bytes([byte % 256]))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return edit


def _append(pick: int, content: bytes) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file")
        if path is not None:
            with open(path, "ab") as file:
                file.write(content)

    return edit


def _resize(pick: int, length: int) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file")
        if path is not None:
            os.truncate(path, length)

    return edit


def _chmod(pick: int, mode: int) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file", "folder")
        assert path is not None
        os.chmod(path, mode | _KEPT_OPEN)

    return edit


def _rename(pick: int, place: int, name: bytes) -> Edit:
    """Move an entry anywhere but into itself."""

    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file", "folder", "link", *_SPECIAL)
        folder = _pick(root, place, "folder")
        assert path is not None
        assert folder is not None
        target = os.path.join(folder, name)
        inside = (target + b"/").startswith(path.rstrip(b"/") + b"/")
        if inside or path.startswith(target + b"/"):
            return
        _clear(target)
        os.rename(path, target)

    return edit


def _exchange(pick: int, other: int) -> Edit:
    """Let two entries, perhaps of different kinds, swap their names."""

    def edit(root: bytes) -> None:
        one = _pick(root, pick, "file", "folder", "link", *_SPECIAL)
        two = _pick(root, other, "file", "folder", "link", *_SPECIAL)
        assert one is not None
        assert two is not None
        if (one + b"/").startswith(two.rstrip(b"/")) or (two + b"/").startswith(one.rstrip(b"/")):
            return
        aside = os.path.join(os.path.dirname(root), b"aside")
        os.rename(one, aside)
        os.rename(two, one)
        os.rename(aside, two)

    return edit


def _retarget(pick: int, target: bytes) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "link")
        if path is not None:
            os.unlink(path)
            os.symlink(target, path)

    return edit


def _delete(pick: int) -> Edit:
    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file", "folder", "link", *_SPECIAL)
        if path is not None and path.rstrip(b"/") != root:
            _clear(path)

    return edit


def _copy(pick: int, place: int, name: bytes) -> Edit:
    """Copy a file or make a second name for it."""

    def edit(root: bytes) -> None:
        path = _pick(root, pick, "file")
        if path is None:
            return
        folder = _pick(root, place, "folder")
        assert folder is not None
        target = os.path.join(folder, name)
        if os.path.lexists(target):
            return
        if pick % 2:
            os.link(path, target)
        else:
            shutil.copy2(path, target)

    return edit


creations = st.one_of(
    st.builds(_create, picks, names, contents, modes),
    st.builds(_make_folder, picks, names, modes),
    st.builds(_make_link, picks, names, targets),
    st.builds(_make_special, picks, names, st.sampled_from((stat.S_IFIFO, stat.S_IFSOCK))),
)
edits = st.one_of(
    creations,
    st.builds(_write, picks, contents),
    st.builds(_write_secretly, picks, picks),
    st.builds(_append, picks, contents),
    st.builds(_resize, picks, st.integers(0, 5000)),
    st.builds(_chmod, picks, modes),
    st.builds(_rename, picks, picks, names),
    st.builds(_exchange, picks, picks),
    st.builds(_retarget, picks, targets),
    st.builds(_delete, picks),
    st.builds(_copy, picks, picks, names),
)
starts = st.sampled_from(("warm", "opened anew", "without stat cache"))
rounds = st.lists(st.tuples(st.lists(edits, max_size=5), starts), min_size=1, max_size=6)


@pytest.mark.parametrize("native", [True, False], ids=["native", "python"])
@given(first=st.lists(creations, max_size=12), later=rounds)
@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_every_checkpoint_comes_back(
    native: bool,
    first: list[Edit],
    later: list[Round],
) -> None:
    """Checkpoints with random edits between them all give back the tree of their moment."""
    if native and stat_loop.scan_native is None:
        pytest.skip("the extension is not built here")
    with pytest.MonkeyPatch.context() as patch, new_ground() as ground:
        patch.setattr(operations, "sync", False)
        if not native:
            patch.setattr(stat_loop, "scan_native", None)
        _play(ground.root, Path(os.fsdecode(ground.base)), first, later)


def _play(root: bytes, base: Path, first: list[Edit], later: list[Round]) -> None:
    history: dict[str, oracle.Picture] = {}
    project = takeback.open(os.fsdecode(root), home=str(base / "home"))
    for script, start in [(first, "warm"), *later]:
        for edit in script:
            edit(root)
        if start != "warm":
            project.close()
            for cache in (base / "home").glob("projects/*/index"):
                if start == "without stat cache":
                    cache.unlink()
            project = takeback.open(os.fsdecode(root), home=str(base / "home"))
        _checkpoint(project, root, history)
    for number, (ref, then) in enumerate(history.items()):
        target = base / f"extracted-{number}"
        project.extract(ref, str(target))
        now = oracle.picture(os.fsencode(target))
        assert oracle.differences(then, now, _uncaptured(then)) == []
    assert project.verify().problems == ()
    project.close()


def _checkpoint(project: takeback.Project, root: bytes, history: dict[str, oracle.Picture]) -> None:
    """Make a checkpoint twice: the second time nothing is new."""
    taken = project.checkpoint("one of many")
    now = oracle.picture(root)
    assert sorted(left.raw_path for left in taken.left_out) == _uncaptured(now)
    again = project.checkpoint("the same")
    assert (again.id, again.new) == (taken.id, False)
    assert oracle.differences(history.setdefault(taken.id, now), now, _uncaptured(now)) == []


def _uncaptured(picture: oracle.Picture) -> list[bytes]:
    """List the outermost paths that are no file, folder or link, or are version control data."""
    found: list[bytes] = []
    for path, entry in sorted(picture.items()):
        inside = any(path.startswith(left + b"/") for left in found)
        if not inside and (entry[0] in _SPECIAL or os.path.basename(path) in _VERSION_CONTROL):
            found.append(path)
    return sorted(found)
