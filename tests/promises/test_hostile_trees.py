"""Whatever a tree holds, all of it comes back, or is listed with the reason; nothing breaks."""

import os
import subprocess
from collections.abc import Iterator, Mapping

import pytest

import oracle
import takeback
from hostile import (
    GIT_SHAPES,
    KINDS,
    LINKS,
    MOVING,
    NAMES,
    OURS,
    PERMISSIONS,
    SIZES,
    STILL,
    Tree,
)
from hostile.ground import Ground, git_environment, give_away, new_ground, remove
from hostile.moving import Adversary, Moving, build, stir
from hostile.ours import REFUSED, WORKS, Ours
from hostile.stage import bounded, in_child
from hostile.tree import PLAIN
from takeback.disk import machine, operations
from takeback.errors import TakebackError
from takeback.history.unified import Shown
from takeback.model.results import Checkpoint
from takeback.worktree import content, scan

SECONDS = 5
SLOW_SECONDS = 120
MEMORY = 256 << 20
NOTHING_IS_RECENT = -(1 << 62)

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def ground(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """A tree to build, a world outside it and a home for the store; no waiting for the disk."""
    monkeypatch.setattr(operations, "sync", False)
    # A worker of xdist has a folder of its own inside one that a plain user cannot enter.
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    where = None if is_worker else request.config.option.basetemp
    if where is not None:
        os.chmod(where, 0o711)  # a plain user has to get through
    with new_ground(where) as lent:
        yield lent


def _marked(trees: tuple[Tree, ...]) -> Iterator[object]:
    for tree in trees:
        marks = [pytest.mark.slow] if tree.slow else []
        if tree.needs_root:
            marks.append(pytest.mark.skipif(not AS_ROOT, reason="needs root"))
        yield pytest.param(tree, id=tree.name, marks=marks)


def test_there_are_trees_of_every_sort() -> None:
    """Each group of the fault plan has its number of trees, each under a name of its own."""
    goal = {"names": 60, "links": 30, "kinds": 20, "permissions": 20, "git": 20, "sizes": 20}
    have = {
        "names": len(NAMES),
        "links": len(LINKS),
        "kinds": len(KINDS),
        "permissions": len(PERMISSIONS),
        "git": len(GIT_SHAPES),
        "sizes": len(SIZES),
    }
    assert all(have[group] >= count for group, count in goal.items()), have
    assert len(MOVING) >= 20
    assert len(OURS) >= 10
    names = [tree.name for tree in STILL]
    names += [moving.name for moving in MOVING]
    names += [case.name for case in OURS]
    assert len(set(names)) == len(names) >= 200


def _told(project: takeback.Project, before: str, after: str | None = None) -> dict[bytes, bytes]:
    """What a diff prints of each path that differs; files of many megabytes are only named."""
    with project.compare(before, after) as comparison:
        shown = [Shown(found, comparison.contents(found)) for found in comparison.differences]
    return {one.difference.raw_path: b"".join(line for _, line in one.diff()) for one in shown}


@pytest.mark.parametrize("tree", list(_marked(STILL)))
def test_comes_back(tree: Tree, ground: Ground) -> None:
    """Two checkpoints of a hostile tree give back exactly what was there, or list it."""
    if tree.prepare is not None:
        tree.prepare(ground)
    if AS_ROOT and tree.who == PLAIN:
        give_away(ground)
        in_child(lambda: _comes_back(tree, ground), plain=True)
    elif tree.name.startswith("mount-"):
        in_child(lambda: _comes_back(tree, ground), mounts=True)
    elif tree.slow:
        assert in_child(lambda: _comes_back(tree, ground)) < MEMORY
    else:
        _comes_back(tree, ground)


def _comes_back(tree: Tree, ground: Ground) -> None:
    tree.build(ground)
    before, stood = oracle.picture(ground.root), oracle.stamps(ground.root)
    around = oracle.stamps(ground.outside)
    with bounded(SLOW_SECONDS if tree.slow else SECONDS), _open(ground) as project:
        first = project.checkpoint("as built")
        _expect_left_out(first, tree.left_out)
        assert oracle.differences(stood, oracle.stamps(ground.root)) == []
        tree.edit(ground)
        looked = _told(project, first.id)
        second = project.checkpoint("as edited")
        _expect_left_out(second, tree.left_out_after_edit)
        assert looked == _told(project, first.id, second.id)
        assert _told(project, second.id) == {}
    edited = oracle.picture(ground.root)
    with bounded(SLOW_SECONDS if tree.slow else SECONDS), _open(ground) as project:
        again = project.checkpoint("unchanged")
        assert not again.new
        assert again.id == second.id
        _expect_left_out(again, tree.left_out_after_edit)
        _expect_extract(project, ground, first.id, before, tree.left_out)
        _expect_extract(project, ground, second.id, edited, tree.left_out_after_edit)
        assert project.verify().problems == ()
    assert oracle.differences(around, oracle.stamps(ground.outside)) == []
    _expect_clean_git(os.fsencode(project.git_dir), ground)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("moving", MOVING, ids=lambda moving: moving.name)
def test_never_torn(
    moving: Moving, warm: bool, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes while it is looked at is captured in a state it really had, or is flagged."""
    build(ground, large=moving.large)
    if moving.large:
        monkeypatch.setattr(machine, "RECENT", NOTHING_IS_RECENT)
    with bounded(SECONDS), _open(ground) as project:
        if warm:
            project.checkpoint("before the moves")
            stir(ground)
        adversary = Adversary(ground, moving)
        writer = os.open(ground.path(b"victim"), os.O_WRONLY) if moving.writer else None
        with monkeypatch.context() as hooks:
            hooks.setattr(content, "hook", adversary.on_content)
            hooks.setattr(scan, "hook", adversary.on_scan)
            hooks.setattr(os, "read", adversary.read)
            moved = project.checkpoint("while it moved")
        assert adversary.moves > 0, "the adversary never got to move"
        if writer is not None:
            os.close(writer)
        assert oracle.differences(adversary.moments[-1], oracle.picture(ground.root)) == []
        adversary.finish()
        after = oracle.picture(ground.root)
        listed = {left.raw_path: left.reason for left in moved.left_out}
        assert set(listed) <= set(moving.may_list)
        still = project.checkpoint("when it was over")
        specials = [path for path, entry in after.items() if entry[0] in ("fifo", "socket")]
        _expect_left_out(still, dict.fromkeys(specials, "special"))
        _expect_extract(project, ground, still.id, after, dict.fromkeys(specials, ""))
        project.extract(moved.id, os.fsdecode(ground.base + b"/moved"))
        taken = oracle.picture(ground.base + b"/moved")
        assert _never_so(taken, adversary.moments, {*listed, *moved.raw_unstable}) == []
        assert project.verify().problems == ()
    _expect_clean_git(os.fsencode(project.git_dir), ground)


def _never_so(
    taken: oracle.Picture, moments: list[oracle.Picture], excused: set[bytes]
) -> list[str]:
    """Name what was captured, or found absent, although it never was so."""
    paths = set(taken).union(*moments) - excused
    return [
        f"{path!r}: {taken.get(path)} was never so"
        for path in sorted(paths)
        if all(taken.get(path) != moment.get(path) for moment in moments)
        and not any(path.startswith(left + b"/") for left in excused)
    ]


@pytest.mark.parametrize("case", OURS, ids=lambda case: case.name)
def test_ours_holds(case: Ours, ground: Ground) -> None:
    """Attacks on the store and its surroundings end in a true checkpoint or a clear refusal."""
    case.arrange(ground)
    before = oracle.picture(ground.root)
    if case.tamper is None:
        around = oracle.stamps(ground.outside)
        _use(case, ground, before, around)
        return
    with bounded(SECONDS), _open(ground) as project:
        first = project.checkpoint("before the attack")
        store = project.status().raw_store
    case.tamper(ground, store)
    changed = oracle.picture(ground.root)
    around = oracle.stamps(ground.outside)
    if not _use(case, ground, changed, around):
        return
    with bounded(SECONDS), _open(ground) as project:
        _expect_extract(project, ground, first.id, before, case.left_out)


def _use(case: Ours, ground: Ground, now: oracle.Picture, around: oracle.Picture) -> bool:
    """Make a checkpoint and judge it; False when Takeback refused, as the case allows."""
    try:
        with bounded(SECONDS), _open(ground) as project:
            taken = project.checkpoint("after the attack")
            assert case.verdict != REFUSED
            _expect_left_out(taken, case.left_out)
            _expect_extract(project, ground, taken.id, now, case.left_out)
            ground.file(b"file", b"CONTENT\n")
            again = project.checkpoint("and an edit")
            assert again.new
            after = oracle.picture(ground.root)
            _expect_extract(project, ground, again.id, after, case.left_out)
            assert project.verify().problems == ()
        _expect_clean_git(os.fsencode(project.git_dir), ground)
        return True
    except TakebackError:
        assert case.verdict != WORKS
        return False
    finally:
        assert oracle.differences(around, oracle.stamps(ground.outside)) == []


def test_nested_folder_joins_its_project(ground: Ground) -> None:
    """A folder inside a project is part of that project: no two projects cover one file."""
    ground.file(b"inner/file")
    with bounded(SECONDS), _open(ground) as outer:
        outer.checkpoint("the whole")
    inner_path = os.fsdecode(ground.path(b"inner"))
    with takeback.open(inner_path, home=os.fsdecode(ground.home)) as inner:
        assert inner.git_dir == outer.git_dir
        assert not inner.checkpoint("the same").new


def test_moved_folder_keeps_its_history(ground: Ground) -> None:
    """A project that was moved, under an odd name, is still the same project."""
    ground.file(b"file")
    with bounded(SECONDS), _open(ground) as project:
        first = project.checkpoint("here")
    moved = ground.base + b"/moved\r\n\xff"
    os.rename(ground.root, moved)
    ground.root = moved
    with bounded(SECONDS), _open(ground) as project:
        again = project.checkpoint("there")
        assert (again.id, again.new) == (first.id, False)


def _open(ground: Ground) -> takeback.Project:
    return takeback.open(os.fsdecode(ground.root), home=os.fsdecode(ground.home))


def _expect_left_out(taken: Checkpoint, expected: Mapping[bytes, str]) -> None:
    """Exactly these paths are listed, once each, each for its reason."""
    listed = [left.raw_path for left in taken.left_out]
    assert sorted(listed) == sorted(expected)
    for left in taken.left_out:
        assert expected[left.raw_path] in left.reason


def _expect_extract(
    project: takeback.Project,
    ground: Ground,
    ref: str,
    expected: oracle.Picture,
    left_out: Mapping[bytes, str],
) -> None:
    """The checkpoint, written to a new folder, is the picture, but for what was left out."""
    target = ground.base + b"/extracted-" + ref.encode()
    mask = os.umask(0o077)
    try:
        project.extract(ref, os.fsdecode(target))
    finally:
        os.umask(mask)
    assert oracle.differences(expected, oracle.picture(target), list(left_out)) == []
    remove(target)


def _expect_clean_git(git_dir: bytes, ground: Ground) -> None:
    """Git itself, at its strictest, finds nothing wrong with the store."""
    checked = subprocess.run(
        ["git", "--git-dir", git_dir, "fsck", "--strict", "--no-dangling", "--no-progress"],
        env=git_environment(ground.base),
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
