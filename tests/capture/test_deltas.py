"""Deltas between checkpoints, and what a turn changed in the end, against plain copies.

What should be found is told by pictures of the tree (`oracle`) and by `git diff --no-index` on
copies of it, which share no code with us.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import takeback
from hostile.ground import new_ground
from takeback.disk import operations
from takeback.session import Turn
from takeback.worktree import stat_loop
from tests.promises.test_random_trees import Edit, creations, edits

MANY = int(os.environ.get("TAKEBACK_TEST_EXAMPLES", "0"))
"""How many examples to try instead of the few that `./check` has time for."""


# -- deltas ----------------------------------------------------------------------------------------


@given(
    native=st.booleans(),
    first=st.lists(creations, max_size=12),
    rounds=st.lists(st.lists(edits, max_size=6), min_size=1, max_size=5),
)
@settings(max_examples=MANY or 30, suppress_health_check=[HealthCheck.too_slow])
def test_deltas_are_what_copies_differ_in(
    native: bool, first: list[Edit], rounds: list[list[Edit]]
) -> None:
    """With and without stat cache the deltas are what a plain comparison of the two trees finds."""
    with pytest.MonkeyPatch.context() as patch, new_ground() as ground:
        patch.setattr(operations, "sync", False)
        if not native:
            patch.setattr(stat_loop, "scan_native", None)
        with _checking(ground.root, Path(os.fsdecode(ground.base))) as check:
            for script in (first, *rounds):
                for edit in script:
                    edit(ground.root)
                check()


def test_folders_that_change_their_kind(tree: Path, tmp_path: Path) -> None:
    """Folders replaced by files and links, made again, and moved into each other's place."""
    with _checking(os.fsencode(tree), tmp_path) as check:
        for folder in ("a", "b", "c"):
            (tree / folder / "deep").mkdir(parents=True)
            (tree / folder / "file").write_text(folder)
            (tree / folder / "deep" / "low").write_text(folder * 2)
        check()
        shutil.rmtree(tree / "a")
        (tree / "a").write_text("a file now")
        (tree / "b").rename(tree / "moved")
        check()
        (tree / "a").unlink()
        (tree / "a").symlink_to("c")
        shutil.rmtree(tree / "c")
        (tree / "c").mkdir()
        (tree / "c" / "file").write_text("c")
        check()
        (tree / "a").unlink()
        (tree / "moved").rename(tree / "a")
        (tree / "c").rename(tree / "moved")
        (tree / "a" / "deep").rename(tree / "moved" / "deep")
        check()
        (tree / "a" / "file").rename(tree / "a" / "file-2")
        (tree / "moved").chmod(0o700)
        check()


def test_a_link_is_not_where_a_file_came_from(tree: Path, tmp_path: Path) -> None:
    """A new file that says what a link that went had as its target was not moved from there."""
    with _checking(os.fsencode(tree), tmp_path) as check:
        (tree / "link").symlink_to("somewhere")
        check()
        (tree / "link").unlink()
        (tree / "file").write_text("somewhere")
        check()


@contextmanager
def _checking(root: bytes, base: Path) -> Iterator[Callable[[], None]]:
    """Watch a tree with two stores, one of which loses its stat cache before each look."""
    before: list[oracle.Picture] = []
    homes = (base / "warm", base / "cold")

    def check() -> None:
        now = oracle.picture(root)
        expected = oracle.deltas(before[-1], now) if before else {}
        for index in homes[1].glob("projects/*/index"):
            index.unlink()
        with takeback.open(root, home=homes[1]) as cold:
            for project in (warm, cold):
                made = project.checkpoint()
                assert (_deltas(project) if made.new else {}) == expected
                assert not before or made.changed == _covered(expected)
        before.append(now)

    with takeback.open(root, home=homes[0]) as warm:
        yield check


def _covered(found: oracle.Deltas) -> int:
    return sum(verb != "omit" for verb, _ in found.values())


def _deltas(project: takeback.Project) -> oracle.Deltas:
    rows = project.workspace.ledger._reader.rows(
        "SELECT path, verb, origin FROM deltas"
        " WHERE checkpoint = (SELECT max(number) FROM checkpoints)"
    )
    omitted = {path: (verb, None) for path, verb, _ in rows if verb == "omit"}
    return omitted | {path: (verb, came) for path, verb, came in rows if verb != "omit"}


# -- what a turn changed ---------------------------------------------------------------------------

Files = dict[str, bytes]
Pair = tuple[bytes | None, bytes | None]

_lines = st.lists(st.sampled_from(["a", "b", "c", "d", "", " a", "}"]), max_size=12)
_texts = st.builds(
    lambda lines, end: ("\n".join(lines) + end).encode(), _lines, st.sampled_from(["", "\n"])
)
_contents = st.none() | _texts | st.sampled_from([b"\0binary", b"\xff\xfe", b"\0other"])
_scripts = st.lists(
    st.tuples(
        st.sampled_from(["agent", "agent", "you"]),
        st.dictionaries(st.sampled_from(["p", "q", "dir/r"]), _contents, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@given(first=st.dictionaries(st.sampled_from(["p", "q", "dir/r"]), _texts), script=_scripts)
@settings(max_examples=MANY or 30, suppress_health_check=[HealthCheck.too_slow])
def test_a_turn_counts_the_lines_that_git_counts(
    first: Files, script: list[tuple[str, dict[str, bytes | None]]]
) -> None:
    """Path by path a turn changed what git finds between copies from before and after its parts."""
    with pytest.MonkeyPatch.context() as patch, new_ground() as ground:
        patch.setattr(operations, "sync", False)
        base, tree = Path(os.fsdecode(ground.base)), Path(os.fsdecode(ground.root))
        _write(tree, dict(first))
        states, authors = [_files(tree)], []
        with takeback.open(tree, home=base / "home") as project:
            turn = project.session("agent").turn("count", whole=False)
            for author, changes in script:
                step = turn.step("Bash") if author == "agent" else None
                _write(tree, changes)
                if step is not None:
                    step.end()
                project.checkpoint()
                states.append(_files(tree))
                authors.append(author)
            turn.end()
            told = {
                os.fsdecode(change.path): (change.added, change.removed)
                for change in turn.recorded().changes
                if change.verb not in {"mkdir", "rmdir"}
            }
        assert told == _counted(states, authors, base)


def _write(tree: Path, files: "dict[str, bytes | None] | Files") -> None:
    for name, content in files.items():
        path = tree / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(exist_ok=True)
        # Bytes of their own for each path, so that nothing looks moved.
        path.write_bytes(content and name.encode() + b"\n" + content)


def _files(tree: Path) -> Files:
    return {str(p.relative_to(tree)): p.read_bytes() for p in tree.rglob("*") if p.is_file()}


def _counted(
    states: list[Files], authors: list[str], base: Path
) -> dict[str, tuple[int | None, int | None]]:
    """What the agent's runs changed: yours in between begin a new one."""
    told: dict[str, tuple[int | None, int | None]] = {}
    changed: dict[str, list[Pair]] = {}
    for path in sorted(set(itertools.chain.from_iterable(states))):
        runs: list[Pair] = []
        is_open = False
        for author, before, after in zip(authors, states, states[1:], strict=False):
            old, new = before.get(path), after.get(path)
            if old == new:
                continue
            if author == "you":
                is_open = False
            elif is_open:
                runs[-1] = (runs[-1][0], new)
            else:
                runs.append((old, new))
                is_open = True
        changed[path] = [(old, new) for old, new in runs if old != new]
    counts = iter(_numstat(list(itertools.chain.from_iterable(changed.values())), base))
    for path, runs in changed.items():
        counted = [next(counts) for _ in runs]
        if counted:
            told[path] = (_sum(c[0] for c in counted), _sum(c[1] for c in counted))
    return told


def _sum(counts: Iterator[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _numstat(pairs: list[Pair], base: Path) -> Iterator[tuple[int | None, int | None]]:
    """Lines added and removed between the contents of each pair, as git says."""
    for side, contents in (("old", [p[0] for p in pairs]), ("new", [p[1] for p in pairs])):
        (base / side).mkdir()
        for number, content in enumerate(contents):
            if content is not None:
                (base / side / f"{number}").write_bytes(content)
    git = [
        "git",
        "diff",
        "--no-index",
        "--numstat",
        "--minimal",
        "--no-renames",
        "-z",
        "old",
        "new",
    ]
    said = subprocess.run(git, cwd=base, capture_output=True, text=True, check=False).stdout
    fields = iter(said.split("\0"))
    counts = {}
    for counted in filter(None, fields):
        added, removed, _ = counted.split("\t")
        names = (next(fields), next(fields))
        name = next(name for name in names if name != "/dev/null").rpartition("/")[2]
        counts[int(name)] = (None, None) if added == "-" else (int(added), int(removed))
    for number in range(len(pairs)):
        yield counts.get(number, (0, 0))


def _told(turn: Turn) -> list[tuple[str, str, int | None, int | None, str]]:
    return [
        (os.fsdecode(c.path), c.verb, c.added, c.removed, os.fsdecode(c.origin or b""))
        for c in turn.recorded().changes
    ]


def test_moved_files_are_one_change(tree: Path, home: Path) -> None:
    """A file that a turn moves, and edits then, is one change that says where it was before."""
    for name in ("p", "q"):
        (tree / name).write_text(f"{name}\n" * 3)
    with takeback.open(tree, home=home) as project:
        turn = project.session("agent").turn("move", whole=False)
        with turn.step("Bash"):
            (tree / "p").rename(tree / "moved")
            (tree / "q").rename(tree / "back")
        with turn.step("Bash"):
            (tree / "moved").write_text("p\np\nnew\np\n")
            (tree / "back").rename(tree / "q")
        turn.end()
        assert _told(turn) == [("moved", "rename", 1, 0, "p")]


def test_what_you_do_in_between_keeps_a_turns_file_new(tree: Path, home: Path) -> None:
    """A file that a turn made, you edited and it edited again is new, with its own lines only."""
    with takeback.open(tree, home=home) as project:
        turn = project.session("agent").turn("make", whole=False)
        with turn.step("Write", {"file_path": "new"}):
            (tree / "new").write_text("1\n2\n")
        (tree / "new").write_text("1\n2\nyours\nyours\n")
        with turn.step("Edit", {"file_path": "new"}):
            (tree / "new").write_text("2\nyours\nyours\n")
        turn.end()
        assert _told(turn) == [("new", "create", 2, 1, "")]


def test_what_goes_on_in_the_background_counts_for_its_turn(tree: Path, home: Path) -> None:
    """What a step does after its turn has ended is among the turn's changes when it is done."""
    with takeback.open(tree, home=home) as project, project.session("agent") as session:
        turn = session.turn("build", whole=False)
        task, forgotten = turn.step("Bash"), turn.step("Bash")
        task.detach()
        forgotten.detach()
        (tree / "early").write_text("1\n")
        turn.end()
        assert _told(turn) == [("early", "create", 1, 0, "")]
        (tree / "late").write_text("1\n2\n")
        task.end()
        recorded = turn.recorded()
        assert (recorded.files, recorded.added, recorded.status) == (2, 3, "done")
        (tree / "later").write_text("1\n")
        session.end()
        assert [told[0] for told in _told(turn)] == ["early", "late", "later"]
        assert project.upkeep.examine()[0] == ()
