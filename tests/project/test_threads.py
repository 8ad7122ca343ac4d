"""Threads of one `Project`: whatever they do at the same time, no state of the history is lost."""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import oracle
import takeback
from spoken import spoken
from takeback import Project, TakebackError
from takeback.disk import operations
from takeback.model.plan import Description, Plan
from takeback.model.words import MERGING_PACKS
from takeback.undo.plans.planner import Planner

SECONDS = 60
"""How long a test waits for a thread before it fails."""
PAUSE = 0.2
"""Long enough for a thread to come to the lock. If it was not, a test only proves less."""


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


class Threads:
    """Threads whose errors fail the test."""

    def __init__(self) -> None:
        self._all: list[threading.Thread] = []
        self.problems: list[BaseException] = []

    def start(self, act: Callable[[], object]) -> threading.Thread:
        """Do something in a thread of its own."""

        def run() -> None:
            try:
                act()
            except BaseException as problem:
                self.problems.append(problem)

        thread = threading.Thread(target=run, daemon=True)
        self._all.append(thread)
        thread.start()
        return thread

    def join(self) -> None:
        """Wait for all of them."""
        for thread in self._all:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a thread hangs"
        if self.problems:
            raise self.problems[0]


@contextmanager
def threads() -> Iterator[Threads]:
    """Threads that are over, without an error, when the block is."""
    started = Threads()
    yield started
    started.join()


class Gate:
    """A progress callback that stops at its first call until it is opened."""

    def __init__(self, doing: str = "") -> None:
        self._doing = doing
        self._reached = threading.Event()
        self._open = threading.Event()

    def __call__(self, doing: str, done: int, total: int) -> None:
        """Stop here, once."""
        del done, total
        if doing.startswith(self._doing) and not self._reached.is_set():
            self._reached.set()
            assert self._open.wait(SECONDS)

    def wait(self) -> None:
        """Until somebody stands at the gate."""
        assert self._reached.wait(SECONDS)

    def open(self) -> None:
        """Let it go on."""
        self._open.set()


def history(tree: Path, project: Project, count: int = 4) -> dict[str, oracle.Picture]:
    """Some checkpoints, and what the tree held at each."""
    states = {}
    for number in range(count):
        (tree / "file").write_text(f"{number}\n" * 50)
        (tree / f"new{number}").write_text(f"{number}")
        states[project.checkpoint().id] = oracle.picture(tree)
    return states


def lost(project: Project, states: dict[str, oracle.Picture], out: Path) -> list[str]:
    """Which states are not what they were, and what is wrong with the store."""
    out.mkdir()
    found = list(spoken(project.verify().problems))
    for id, picture in states.items():
        try:
            project.extract(id, out / id)
        except TakebackError as problem:
            found.append(f"{id}: {problem}")
        else:
            found += oracle.differences(picture, oracle.picture(out / id))
    return found


def test_a_second_gc_leaves_the_packs_of_the_first_alone(
    tree: Path, home: Path, tmp_path: Path
) -> None:
    """A gc that comes while another thread merges packs does not take those for litter."""
    with takeback.open(tree, home=home) as project:
        states = history(tree, project)
        merging, looking = Gate(MERGING_PACKS), Gate()
        with threads() as started:
            started.start(lambda: project.gc(full=True, progress=merging))
            merging.wait()
            # The lock is held until both wait for it, the second gc first.
            (tree / "file").write_text("held\n")
            started.start(lambda: project.checkpoint(progress=looking))
            looking.wait()
            second = started.start(lambda: project.gc(dry_run=True))
            second.join(PAUSE)
            merging.open()
            second.join(PAUSE)
            looking.open()
        assert lost(project, states, tmp_path / "out") == []
    with takeback.open(tree, home=home) as project:
        assert lost(project, states, tmp_path / "again") == []


def test_gc_commits_only_packs_that_are_there(tree: Path, home: Path, tmp_path: Path) -> None:
    """If a new pack vanishes before gc commits, gc writes it again, or fails and loses nothing."""
    with takeback.open(tree, home=home) as project:
        states = history(tree, project)
        merging, looking = Gate(MERGING_PACKS), Gate()
        packs = Path(project.git_dir) / "objects" / "pack"
        with threads() as started:
            started.start(lambda: project.gc(full=True, progress=merging))
            merging.wait()
            (tree / "file").write_text("held\n")
            started.start(lambda: project.checkpoint(progress=looking))
            looking.wait()
            old = set(packs.glob("pack-*"))
            merging.open()
            deadline = time.monotonic() + SECONDS
            while not (new := {p for p in packs.glob("pack-*.idx") if p not in old}):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            for index in new:
                index.with_suffix(".pack").unlink()
            looking.open()
        assert lost(project, states, tmp_path / "out") == []


def test_threads_that_overlap_leave_locks_that_work(tree: Path, home: Path) -> None:
    """After a verify and a gc that overlapped, the locks are free, and the next gc takes them."""
    with takeback.open(tree, home=home) as project:
        history(tree, project)
        hashing, looking, again = Gate("hashing"), Gate(), Gate()
        with threads() as started:
            first = started.start(lambda: project.verify(progress=hashing))
            hashing.wait()
            second = started.start(lambda: project.gc(full=True, progress=looking))
            second.join(PAUSE)
            hashing.open()
            first.join(SECONDS)
            looking.open()
        store = home / "projects" / project.id
        assert is_free(store / "lock")
        assert is_free(store / "upkeep")
        with threads() as started:
            started.start(lambda: project.gc(full=True, progress=again))
            again.wait()
            assert not is_free(store / "upkeep")
            again.open()


def test_verify_takes_no_running_restore_for_a_stuck_one(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore that another thread is at is no damage, also if it began after verify did."""
    waiting, restoring, hashing = threading.Event(), Gate(), Gate("hashing")

    def hook(step: str, args: tuple[object, ...]) -> None:
        if step == "open_or_create" and args[0] == os.fsencode(store / "upkeep"):
            waiting.set()
        if threading.current_thread().name == "restore" and phases(store) == ["applying"]:
            restoring("restoring", 0, 0)

    def restore() -> None:
        threading.current_thread().name = "restore"
        project.rollback(first, yes=True)

    found: list[str] = []
    with takeback.open(tree, home=home) as project:
        first = next(iter(history(tree, project)))
        store = home / "projects" / project.id
        with (store / "upkeep").open("wb") as upkeep, threads() as started:
            fcntl.flock(upkeep, fcntl.LOCK_EX)
            monkeypatch.setattr(operations, "hook", hook)
            started.start(lambda: found.extend(spoken(project.verify(progress=hashing).problems)))
            assert waiting.wait(SECONDS)
            started.start(restore)
            restoring.wait()
            fcntl.flock(upkeep, fcntl.LOCK_UN)
            hashing.wait()
            hashing.open()
            restoring.open()
        assert found == []


def test_a_step_that_ends_while_another_thread_plans_keeps_its_change(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end waits for the lock, and the restore after the plan does not look at its folder."""
    planning, plan = Gate(), Planner.plan

    def plan_slowly(planner: Planner, what: Description) -> Plan:
        made = plan(planner, what)
        planning("planning", 0, 0)
        return made

    (tree / "folder").mkdir()
    with takeback.open(tree, home=home) as project:
        with (
            project.session("a") as agent,
            agent.turn("other", whole=False) as other,
            other.step("Write", {"file_path": "other"}),
        ):
            (tree / "other").write_text("other\n")
        monkeypatch.setattr(Planner, "plan", plan_slowly)
        with (
            project.session("b") as agent,
            agent.turn("meanwhile", whole=False) as turn,
            threads() as started,
            turn.step("Write", {"file_path": "folder/file"}),
        ):
            started.start(lambda: project.undo(other.id, yes=True))
            planning.wait()
            (tree / "folder" / "file").write_text("new\n")
            threading.Timer(PAUSE, planning.open).start()
        assert not (tree / "other").exists()
        assert [change.path for change in project.turn(turn.id).changes] == ["folder/file"]


def phases(store: Path) -> list[str]:
    """How far the restores are that are under way."""
    db = sqlite3.connect(store / "ledger.db")
    try:
        return [phase for (phase,) in db.execute("SELECT phase FROM journal")]
    finally:
        db.close()


def is_free(lock: Path) -> bool:
    """Whether nobody holds a lock."""
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_closing_waits_for_what_another_thread_does(tree: Path, home: Path) -> None:
    """A project that is closed while a thread makes a checkpoint is closed after it."""
    project = takeback.open(tree, home=home)
    project.checkpoint()
    (tree / "file").write_text("new\n")
    made, looking = [], Gate()
    with threads() as started:
        started.start(lambda: made.append(project.checkpoint(progress=looking).id))
        looking.wait()
        closing = started.start(project.close)
        closing.join(PAUSE)
        assert not is_free(home / "projects" / project.id / "lock")
        looking.open()
    with takeback.open(tree, home=home) as project:
        assert [checkpoint.id for checkpoint in project.checkpoints()][:1] == made


# -- forks ---------------------------------------------------------------------------------------


def test_a_fork_during_a_write_fails_at_once_and_says_why(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite in the copy takes the other thread for one of its own: it must not wait for it."""
    committing, run_sql = Gate(), operations.sql

    def sql(
        db: sqlite3.Connection, statement: str, values: Sequence[bytes | str | int | None] = ()
    ) -> sqlite3.Cursor:
        if statement == "COMMIT":
            committing(statement, 0, 0)
        return run_sql(db, statement, values)

    with takeback.open(tree, home=home) as project:
        history(tree, project, 1)
        monkeypatch.setattr(operations, "sql", sql)
        with threads() as started:
            (tree / "file").write_text("of the thread\n")
            started.start(project.checkpoint)
            committing.wait()
            assert "was forked while another thread wrote" in in_fork(project.checkpoint)
            assert in_fork(project.log) == ""
            committing.open()
        (tree / "file").write_text("of the fork\n")
        assert in_fork(project.checkpoint) == ""
        assert not project.checkpoint().new
        assert project.verify().problems == ()


def in_fork(act: Callable[[], object]) -> str:
    """Do something in a forked copy of this process: the error that it met."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "it ended otherwise"
        try:
            act()
            said = ""
        except TakebackError as problem:
            said = str(problem)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def test_a_fork_keeps_no_lock_of_a_process_that_died(tree: Path, home: Path) -> None:
    """What the original holds during gc is free when it dies, though its copy works on."""
    with takeback.open(tree, home=home) as project:
        history(tree, project)
        store = home / "projects" / project.id
    told, telling = os.pipe()
    ending, end = os.pipe()
    original = os.fork()
    if original == 0:
        try:
            os.close(end)
            _gc_with_a_copy(tree, home, telling, ending)
        finally:
            os._exit(1)
    os.close(telling)
    os.close(ending)
    try:
        assert os.read(told, 1) == b"1"
        assert os.waitstatus_to_exitcode(os.waitpid(original, 0)[1]) == 0
        assert is_free(store / "upkeep")
        assert is_free(store / "lock")
    finally:
        os.close(end)
        os.close(told)


def _gc_with_a_copy(tree: Path, home: Path, telling: int, ending: int) -> None:
    """A gc that dies half-way, after a copy of its process began to work."""
    project = takeback.open(tree, home=home)

    def progress(*_: object) -> None:
        if os.fork() == 0:
            try:
                project.status()
                os.write(telling, b"1")
                os.read(ending, 1)
            finally:
                os._exit(0)
        os._exit(0)

    project.gc(full=True, progress=progress)


# -- all at once -------------------------------------------------------------------------------

ROUNDS = 4
WORKERS = 2


class Crowd:
    """Threads of one project: some work in a folder each, others tend, check and read."""

    def __init__(self, project: Project, tree: Path) -> None:
        self._project = project
        self._tree = tree
        self._over = threading.Event()
        self._left = WORKERS
        self.states: dict[str, tuple[bytes, oracle.Picture]] = {}
        self.wrong: list[str] = []

    def run(self) -> None:
        """Until each worker has done its rounds."""
        with threads() as started:
            for number in range(WORKERS):
                (self._tree / f"worker{number}").mkdir()
                started.start(lambda name=f"worker{number}": self._work(name))  # type: ignore[misc]
            for act in (self._tend, self._tend, self._check, self._read):
                started.start(lambda act=act: self._again_and_again(act))  # type: ignore[misc]

    def _again_and_again(self, act: Callable[[], None]) -> None:
        while not self._over.is_set():
            act()

    def _work(self, name: str) -> None:
        """Turns, checkpoints, undo and redo, each compared with a plain copy."""
        folder = self._tree / name
        try:
            for number in range(ROUNDS):
                was = oracle.picture(folder)
                with (
                    self._project.session("agent", id=f"{name}-{number}") as agent,
                    agent.turn(f"{name} {number}", whole=False) as turn,
                    turn.step("Write", {"file_path": f"{name}/file"}),
                ):
                    (folder / "file").write_text(f"{name} {number}\n" * 30)
                now = oracle.picture(folder)
                self.states[self._project.checkpoint().id] = (name.encode(), now)
                self._project.undo(turn.id, yes=True, decide="take-back", shared=True)
                self.wrong += oracle.differences(was, oracle.picture(folder))
                self._project.redo(turn.id, yes=True, decide="take-back")
                self.wrong += oracle.differences(now, oracle.picture(folder))
        finally:
            self._left -= 1
            if not self._left:
                self._over.set()

    def _tend(self) -> None:
        with suppress(takeback.BusyError):  # too much changed while packs were merged
            self._project.gc(full=True)
        self._project.gc(dry_run=True)

    def _check(self) -> None:
        self.wrong += spoken(self._project.verify().problems)

    def _read(self) -> None:
        self._project.status()
        self._project.usage()
        for turn in self._project.log(4).turns:
            with self._project.compare(f"{turn.id}-", turn.id) as compared:
                for found in compared.differences:
                    compared.contents(found)


def test_nothing_is_lost_whatever_threads_do(tree: Path, home: Path, tmp_path: Path) -> None:
    """Threads that capture, take back, tend, verify and read lose no state and see no error."""
    with takeback.open(tree, home=home) as project:
        crowd = Crowd(project, tree)
        crowd.run()
        assert crowd.wrong == []
        assert project.verify().ok
        project.gc(full=True)
    with takeback.open(tree, home=home) as project:
        assert project.verify().ok
        for id, (name, picture) in crowd.states.items():
            project.extract(id, tmp_path / id)
            held = oracle.picture(os.fsencode(tmp_path / id) + b"/" + name)
            assert oracle.differences(picture, held) == []
