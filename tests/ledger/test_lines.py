"""Two trees in one history: each line is as if the other were not there.

The other side of each comparison is the same folder with a store of its own.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import takeback
from chance import examples
from takeback.disk.home import Home, Root
from takeback.errors import TakebackError, UnfinishedError, UnknownReferenceError
from takeback.history import references
from takeback.ledger.journal import Journal
from takeback.ledger.ledger import Ledger
from takeback.project import Project
from takeback.session import Session, Turn

NAMES = ("a.txt", "b.txt")


class Tree:
    """A folder, its project, and the turn that runs in it."""

    def __init__(self, folder: Path, project: Project) -> None:
        self.folder = folder
        self.project = project
        self.session: Session | None = None
        self.turn: Turn | None = None
        self.turns = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger as its line sees it."""
        return self.project.workspace.ledger

    def write(self, name: str, text: str) -> None:
        """Change a file."""
        (self.folder / name).write_text(text)

    def begin(self) -> None:
        """Begin a turn of the agent of this tree."""
        if self.session is None:
            self.session = self.project.session(agent="codex", id=self.folder.name)
        self.turns += 1
        self.turn = self.session.turn(f"turn {self.turns}")

    def end(self) -> None:
        """End the turn that runs."""
        if self.turn is not None:
            self.turn.end()
            self.turn = None

    def prompt(self, name: str, text: str) -> str:
        """A turn that writes a file; its id."""
        self.begin()
        assert self.turn is not None
        id = self.turn.id
        self.write(name, text)
        self.end()
        return id

    def state(self, ref: str) -> bytes | str:
        """The tree that a reference means, or why it means none."""
        try:
            return references.state(self.ledger, ref, time.time()).tree
        except UnknownReferenceError as problem:
            return str(problem)

    def seen(self) -> object:
        """Everything that one can see of this tree and its history."""
        files = {path.name: path.read_text() for path in self.folder.iterdir()}
        log = self.project.log(all=True)
        turns = [
            (
                turn.label,
                turn.status,
                turn.undone is not None,
                [(c.path, c.verb) for c in turn.changes],
            )
            for turn in log.turns
        ]
        states = [row.tree for row in self.ledger.checkpoints.all()]
        refs = [self.state(ref) for ref in ("@", "@~0", "@~1", "@~2", "@~5", "turn 2")]
        deltas = self.ledger.deltas
        changes = [(row.path, row.verb, row.who, row.label) for row in deltas.since(0)]
        yours = deltas.yours_since(0), deltas.count_yours_since(0)
        return files, turns, states, refs, changes, yours, self.ledger.turns.count_undone()


class Pair:
    """Two folders in one store, and the same two with a store each."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        main = self._folder(place / "main")
        opened = takeback.open(main, home=self.home)
        first = opened.checkpoint("first")
        with opened.workspace.held():
            line = opened.workspace.store.add_line(first.id)
        fork = self._folder(place / "fork")
        self.trees = (Tree(main, opened), Tree(fork, self._open(opened.id, fork, line)))
        self.trees[1].project.checkpoint("first")
        alone = [self._folder(place / "alone" / name) for name in ("main", "fork")]
        self.alone = [
            Tree(each, takeback.open(each, home=place / f"home {each.name}")) for each in alone
        ]
        for each in self.alone:
            each.project.checkpoint("first")

    def _open(self, id: str, folder: Path, line: str) -> Project:
        found = folder.stat()
        path = os.fsencode(folder)
        root = Root(id, found.st_dev, found.st_ino, path, line=line)
        return Project(root, Home(os.fsencode(self.home)))

    def _folder(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / name).write_text(f"{name} at first\n" * 3)
        return folder

    def close(self) -> None:
        """Close all projects."""
        for tree in (*self.trees, *self.alone):
            tree.project.close()

    def require_alike(self) -> None:
        """Each line is like the history that the same tree has alone."""
        for tree, alone in zip(self.trees, self.alone, strict=True):
            assert tree.seen() == alone.seen()

    def require_sound(self) -> None:
        """The store is whole, follows from its events, and its parents are of one line each."""
        main, fork = self.trees
        assert main.project.verify().problems == ()
        assert fork.project.verify().problems == ()
        for tree, start in zip(self.trees, (0, 1), strict=True):
            rows = list(tree.ledger.checkpoints.all())
            chain = [tree.ledger.checkpoints.parent_of(row.number) for row in rows]
            assert chain == [*(row.number for row in rows[1:]), start]
        self.require_git_view()
        main.project.rebuild()
        assert fork.project.verify().problems == ()

    def require_git_view(self) -> None:
        """The commits have the parents that the states have; git knows where some are gone."""
        store = self.trees[0].project.workspace.store
        rows = {row.number: row for row in store.ledger.checkpoints.of_all_lines()}
        cut = set()
        for row in rows.values():
            parent = rows.get(row.parent or 0)
            if row.gone is None and parent is not None and parent.gone is None:
                data = bytes(store.objects.read(row.view)[1])
                assert b"\nparent " + parent.view.hex().encode() in data
            elif row.gone is None and parent is not None:
                cut.add(row.view.hex())
        shallow = Path(os.fsdecode(store.git_dir)) / "shallow"
        assert set(shallow.read_text().split() if shallow.exists() else ()) == cut


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Two lines in one store."""
    made = Pair(tmp_path)
    yield made
    made.close()


def act(tree: Tree, what: str, number: int) -> object:
    """Let something happen; what it did, or how it failed."""
    try:
        if what == "edit":
            tree.write(NAMES[number % 2], f"by hand {number}\n" * 3)
        elif what == "turn":
            tree.end()
            tree.prompt(NAMES[number % 2], f"by a turn {number}\n" * 3)
        elif what == "begin":
            tree.begin()
        elif what == "end":
            tree.end()
        elif what == "checkpoint":
            return tree.project.checkpoint().new
        elif what == "undo":
            return len(tree.project.undo(decide="take-back", yes=True).plan.changes)
        elif what == "redo":
            return len(tree.project.redo(decide="take-back", yes=True).plan.changes)
        elif what == "rollback":
            return len(tree.project.rollback(f"@~{number % 4}", yes=True).plan.changes)
    except TakebackError as problem:
        return type(problem)
    return None


ACTS = ("edit", "turn", "turn", "begin", "end", "checkpoint", "undo", "undo", "redo", "rollback")
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(ACTS), st.integers(0, 99)), max_size=14
)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_lines_are_like_histories_of_their_own(steps: list[tuple[int, str, int]]) -> None:
    """Whatever happens in either tree, in any order, no line sees the other."""
    place = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    try:
        pair = Pair(place)
        for which, what, number in steps:
            done = act(pair.trees[which], what, number)
            assert done == act(pair.alone[which], what, number)
        for tree in (*pair.trees, *pair.alone):
            tree.end()
            tree.project.checkpoint()
        pair.require_alike()
        pair.require_sound()
        pair.close()
    finally:
        shutil.rmtree(place)


def test_undo_and_redo_stay_in_their_line(pair: Pair) -> None:
    """The newest turn is that of this tree, also if the other one worked since."""
    main, fork = pair.trees
    main.prompt("a.txt", "main\n")
    other = fork.prompt("a.txt", "fork\n")
    fork.prompt("b.txt", "fork\n")
    main.project.undo()
    assert (main.folder / "a.txt").read_text() == "a.txt at first\n" * 3
    assert (fork.folder / "a.txt").read_text() == "fork\n"
    fork.project.rollback("@~2", yes=True)
    assert (fork.folder / "b.txt").read_text() == "b.txt at first\n" * 3
    main.project.redo()
    assert (main.folder / "a.txt").read_text() == "main\n"
    with pytest.raises(UnknownReferenceError):
        main.project.undo(other)
    pair.require_sound()


def test_a_running_turn_has_no_part_in_the_other_tree(pair: Pair) -> None:
    """What changes in one folder while an agent works in the other is yours."""
    main, fork = pair.trees
    main.begin()
    fork.write("a.txt", "by hand\n")
    fork.prompt("b.txt", "fork\n")
    main.write("b.txt", "main\n")
    main.end()
    (turn,) = main.project.log().turns
    assert [change.raw_path for change in turn.changes] == [b"b.txt"]
    (turn,) = fork.project.log().turns
    assert [change.raw_path for change in turn.changes] == [b"b.txt"]


def test_looks_and_ends_are_of_one_tree(pair: Pair) -> None:
    """A look at one folder says nothing of the other, and nobody ends a turn from there."""
    main, fork = pair.trees
    look = main.ledger.checkpoints.last_look()
    fork.begin()
    assert main.ledger.checkpoints.last_look() == look
    assert fork.ledger.checkpoints.last_look() > look
    assert main.ledger.sessions.held() == []
    assert [row.own_id for row in fork.ledger.sessions.held()] == ["fork"]


def test_gc_keeps_what_either_line_needs(pair: Pair) -> None:
    """A line that rests for long keeps its newest state, and can go on from it."""
    main, fork = pair.trees
    (pair.home / "config.toml").write_text("[retention]\nturns = 20\n")
    main.prompt("a.txt", "main\n")
    main.project.keep("@")
    fork.prompt("a.txt", "kept in the fork\n")
    for number in range(30):
        main.prompt("a.txt", f"main {number}\n")
    assert main.project.gc(max_age=1e-9, full=True).checkpoints > 0
    pair.require_sound()
    newest = fork.project.checkpoint()
    assert not newest.new
    fork.prompt("a.txt", "later\n")
    fork.project.undo()
    assert (fork.folder / "a.txt").read_text() == "kept in the fork\n"
    (fork.folder / "a.txt").unlink()
    fork.project.rollback(newest.id, yes=True)
    assert (fork.folder / "a.txt").read_text() == "kept in the fork\n"


def test_only_its_own_tree_is_recovered(pair: Pair) -> None:
    """A restore that died in one folder does not concern who works in the other."""
    main, fork = pair.trees
    left = Journal("kkkkkkkkkkkk", "undo", "x", [], ())
    with fork.project.workspace.held():
        fork.ledger.journal.write(left)
    main.prompt("a.txt", "main\n")
    main.project.undo()
    assert main.project.recovered == ()
    assert fork.ledger.has_journal()
    with pytest.raises(UnfinishedError):
        main.project.gc()
    fork.project.recover()
    assert not fork.ledger.has_journal()
    main.project.gc()


def test_a_plan_is_for_its_tree(pair: Pair) -> None:
    """A plan that was shown for one folder is not carried out in the other."""
    main, fork = pair.trees
    main.prompt("a.txt", "main\n")
    fork.prompt("a.txt", "fork\n")
    plan = main.project.plan_undo()
    with pytest.raises(UnknownReferenceError, match="no plan"):
        fork.project.apply(plan.id)
    main.project.apply(plan.id)
    assert (fork.folder / "a.txt").read_text() == "fork\n"


def test_forget_reaches_all_lines(pair: Pair) -> None:
    """A file is forgotten in every line, and the states of each still follow from the others."""
    main, fork = pair.trees
    main.prompt("a.txt", "a secret\n")
    fork.prompt("a.txt", "another secret\n")
    main.prompt("b.txt", "main\n")
    (main.folder / "a.txt").unlink()
    main.project.forget(["a.txt"])
    pair.require_sound()


def test_each_line_has_its_own_stat_cache_and_branch(pair: Pair) -> None:
    """Neither spoils the other's."""
    main, fork = pair.trees
    store = main.project.workspace.store
    assert store.index_path != fork.project.workspace.store.index_path
    assert sorted(store.stat_caches()) == sorted(
        tree.project.workspace.store.index_path for tree in pair.trees
    )
    heads = Path(os.fsdecode(store.git_dir)) / "refs/heads"
    assert sorted(path.name for path in heads.iterdir()) == sorted(
        ["checkpoints", fork.ledger.line]
    )


def test_an_unknown_line_is_refused(pair: Pair) -> None:
    """Nobody works in a line that never began."""
    with pytest.raises(UnknownReferenceError, match="no line"):
        Ledger(pair.trees[0].ledger.path, line="nowhere")
