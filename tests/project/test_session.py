"""Sessions, turns and steps close as they should, however their body ends."""

import asyncio
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import takeback
from faults.children import Child, Tell, in_child
from takeback.disk import machine
from takeback.disk.lock import Lock
from takeback.errors import CaptureError, TakebackError, UnknownReferenceError
from takeback.project import Project
from takeback.session import Session, Step, Turn

THREADS, EACH = 8, 20

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/ns/pid"), reason="only Linux tells when a process started"
)


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project with one file."""
    (tree / "a").write_text("a\n")
    with _opened(tree, home) as opened:
        yield opened
        assert opened.upkeep.examine()[0] == ()


def _opened(tree: Path, home: Path) -> Project:
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def _status(project: Project, of: Turn | Step) -> str:
    table = "turns" if isinstance(of, Turn) else "steps"
    ((status,),) = project.workspace.ledger._reader.rows(
        f"SELECT status FROM {table} WHERE id = ?", (of.id,)
    )
    return str(status)


def _is_over(project: Project, session: Session) -> bool:
    query = "SELECT ended FROM sessions WHERE id = ?"
    ((ended,),) = project.workspace.ledger._reader.rows(query, (session.id,))
    return ended is not None


def _open_windows(project: Project) -> int:
    query = "SELECT (SELECT count(*) FROM turns WHERE closed IS NULL) + (SELECT count(*) FROM steps"
    ((count,),) = project.workspace.ledger._reader.rows(query + " WHERE closed IS NULL)")
    return int(count)


def _kinds(project: Project) -> list[str]:
    return [event.kind for event in project.workspace.ledger.events()]


# -- the body raises -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (None, "done"),
        (ValueError("no"), "failed"),
        (OSError(28, "full"), "failed"),
        (KeyboardInterrupt(), "interrupted"),
        (GeneratorExit(), "interrupted"),
        (asyncio.CancelledError(), "interrupted"),
        (SystemExit(), "done"),
        (SystemExit(0), "done"),
        (SystemExit(3), "failed"),
    ],
    ids=repr,
)
def test_what_comes_out_of_a_body(
    project: Project, problem: BaseException | None, status: str
) -> None:
    """Turn and step end as their body ended, and what it raised passes through unchanged."""
    session = project.session("claude")
    turn = session.turn("go")
    step = turn.step("Bash", {"command": "make"})

    def body() -> None:
        with session, turn, step:
            if problem is not None:
                raise problem

    assert _raised(body) is problem
    assert not hasattr(problem, "__notes__")
    assert (_status(project, turn), _status(project, step)) == (status, status)
    assert _is_over(project, session)
    assert _open_windows(project) == 0


def _raised(body: Callable[[], None]) -> BaseException | None:
    try:
        body()
    except BaseException as passed:
        return passed
    return None


def test_a_generator_that_is_thrown_away(project: Project) -> None:
    """A turn inside a generator that nobody reads to its end was interrupted."""

    def work() -> Iterator[Turn]:
        with project.session("claude") as session, session.turn("go") as turn:
            yield turn
            yield turn

    working = work()
    turn = next(working)
    del working
    assert _status(project, turn) == "interrupted"
    assert _open_windows(project) == 0


def test_the_problem_of_the_body_is_never_hidden(
    project: Project, tree: Path, tmp_path: Path
) -> None:
    """When the end cannot be recorded either, the body's own error passes with a note."""
    problem = ValueError("no")
    session = project.session("claude")
    turn = session.turn("go")

    def body() -> None:
        with session, turn:
            tree.rename(tmp_path / "away")
            raise problem

    assert _raised(body) is problem
    assert len(problem.__notes__) == 2
    assert "could not record the end" in problem.__notes__[0]
    (tmp_path / "away").rename(tree)
    assert _status(project, turn) == "running"
    session.end()
    assert _status(project, turn) == "interrupted"


def test_an_end_that_fails_is_said(project: Project, tree: Path, tmp_path: Path) -> None:
    """A body that went well and whose end cannot be recorded raises an error of ours."""
    session = project.session("claude")
    with pytest.raises(CaptureError, match="no checkpoint was made"), session.turn("go"):
        tree.rename(tmp_path / "away")
    (tmp_path / "away").rename(tree)


def test_ending_twice_changes_nothing(project: Project) -> None:
    """What was ended inside the body is not ended again by leaving it."""
    with project.session("claude") as session, session.turn("go") as turn:
        with turn.step("Bash") as step:
            step.end("failed")
        turn.end("failed")
        session.end()
        told = _kinds(project)
    assert _kinds(project) == told
    assert (_status(project, turn), _status(project, step)) == ("failed", "failed")


# -- the tree cannot be looked at ------------------------------------------------------------


def test_a_tree_that_is_gone(project: Project, tree: Path) -> None:
    """Without the folder nothing begins: a clear error, and no open half."""
    session = project.session("claude")
    turn = session.turn("go")
    step = turn.step("Bash", {"command": "rm -r ."})
    shutil.rmtree(tree)
    told = _kinds(project)
    with pytest.raises(CaptureError, match="no checkpoint was made"):
        session.turn("next")
    with pytest.raises(CaptureError, match="no checkpoint was made"):
        turn.step("Bash")
    with pytest.raises(CaptureError, match="no checkpoint was made"):
        session.resume()
    with pytest.raises(CaptureError, match="no checkpoint was made"):
        step.end()
    assert _kinds(project) == told


def test_a_tree_that_was_replaced(project: Project, tree: Path) -> None:
    """Another folder at the same path is not recorded as if it were the project."""
    session = project.session("claude")
    tree.rename(tree.with_name("old"))
    tree.mkdir()
    with pytest.raises(CaptureError, match="was replaced since"):
        session.turn("go")
    tree.rmdir()
    tree.with_name("old").rename(tree)


def test_what_is_not_in_the_log(project: Project) -> None:
    """A session, turn or step that was never begun is an error that names it."""
    recorder = project.recorder()
    for call in (
        lambda: recorder.start_turn("nobody", "go", whole=True),
        lambda: recorder.resume_turn("nobody"),
        lambda: recorder.end_session("nobody"),
        lambda: recorder.end_turn("nobody", "done"),
        lambda: recorder.start_step("nobody", "Bash", {}),
        lambda: recorder.end_step("nobody", "done"),
        lambda: recorder.detach_step("nobody"),
        lambda: project.checkpoint(turn="nobody"),
    ):
        with pytest.raises(UnknownReferenceError, match="`nobody`"):
            call()
    assert _kinds(project) == []


def test_a_project_opened_in_a_subfolder(project: Project, tree: Path, home: Path) -> None:
    """What a session in a subfolder records is the log of the project around it."""
    (tree / "sub/deep").mkdir(parents=True)
    project.checkpoint()
    with _opened(tree / "sub/deep", home) as below:
        assert below.id == project.id
        with below.session("claude") as session, session.turn("go") as turn:
            given = {"file_path": str(tree / "sub/deep/new")}
            with turn.step("Write", given):
                (tree / "sub/deep/new").write_text("new\n")
    assert [c.raw_path for c in project.turn(turn.id).changes] == [b"sub/deep/new"]


# -- threads, tasks and forks ----------------------------------------------------------------


def test_steps_in_threads(project: Project, tree: Path) -> None:
    """Eight threads report twenty steps each in one turn: all are there, each closed by itself."""
    problems: list[BaseException] = []
    with project.session("claude") as session, session.turn("go") as turn:

        def work(name: str) -> None:
            try:
                for number in range(EACH):
                    with turn.step("Write", {"file_path": f"{name}-{number}"}) as step:
                        (tree / f"{name}-{number}").write_text(name)
                        with step.step("Read", {"file_path": "a"}):
                            pass
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []
    rows = project.workspace.ledger._reader.rows("SELECT status, parent FROM steps")
    assert [status for status, _ in rows] == ["done"] * (2 * THREADS * EACH)
    assert sum(parent is not None for _, parent in rows) == THREADS * EACH
    changes = project.turn(turn.id).changes
    assert len(changes) == THREADS * EACH
    assert {change.author.how for change in changes} == {"named"}


def test_steps_in_tasks(project: Project, tree: Path) -> None:
    """Tasks of one loop hold overlapping steps; a cancelled one was interrupted."""

    async def work(turn: Turn, name: str) -> Step:
        with turn.step("Write", {"file_path": name}) as step:
            await asyncio.sleep(0)
            (tree / name).write_text(name)
            await asyncio.sleep(0)
            inner = await asyncio.to_thread(step.step, "Bash", {"command": "ls"})
            inner.end()
        return step

    async def hang(turn: Turn, begun: list[Step]) -> None:
        with turn.step("Bash", {"command": "sleep 99"}) as step:
            begun.append(step)
            await asyncio.sleep(99)

    async def main() -> tuple[Turn, list[Step], list[Step]]:
        begun: list[Step] = []
        with project.session("claude") as session, session.turn("go") as turn:
            hanging = asyncio.create_task(hang(turn, begun))
            done = await asyncio.gather(*(work(turn, f"w{n}") for n in range(6)))
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
        return turn, done, begun

    turn, done, hung = asyncio.run(main())
    assert {_status(project, step) for step in done} == {"done"}
    assert [_status(project, step) for step in hung] == ["interrupted"]
    assert len(project.turn(turn.id).changes) == 6


def test_a_fork_in_the_body(project: Project, tree: Path) -> None:
    """A forked copy may record in the same turn, and its death ends nothing of the original."""
    with project.session("claude") as session, session.turn("go") as turn:

        def play(tell: Tell) -> None:
            with turn.step("Write", {"file_path": "forked"}) as step:
                (tree / "forked").write_text("forked\n")
            tell({"step": step.id})

        made = in_child(play)
        assert made.status == 0, made
        project.checkpoint()
        assert _status(project, turn) == "running"
    assert _status(project, turn) == "done"
    assert [change.raw_path for change in project.turn(turn.id).changes] == [b"forked"]


def test_a_copy_goes_on_after_the_original(tree: Path, home: Path) -> None:
    """The process that began a session dies; its fork, still in the turn, ends both itself."""

    def play(tell: Tell) -> None:
        project = _opened(tree, home)
        session = project.session("claude")
        turn = session.turn("go")
        tell({"turn": turn.id})
        original = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == original:
            time.sleep(0.001)
        with turn.step("Write", {"file_path": "late"}):
            (tree / "late").write_text("late\n")
        turn.checkpoint("still here")
        turn.end()
        session.end()
        tell({"ended": True})

    ended = in_child(play)
    assert ended.last("ended"), ended
    with _opened(tree, home) as project:
        assert project.turn(str(ended.last("turn"))).status == "done"
        assert _kinds(project).count("TurnEnded") == 1
        assert _kinds(project).count("SessionEnded") == 1
        assert project.upkeep.examine()[0] == ()


def test_a_fork_while_another_thread_records(tree: Path, home: Path) -> None:
    """A copy made in the middle of somebody's checkpoint can record, and keeps no lock."""
    (tree / "a").write_text("a\n")
    with _opened(tree, home) as project:
        inside, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with project.workspace.held():
                inside.set()
                leave.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        inside.wait(30)

        def play(tell: Tell) -> None:
            os.close(shut)
            tell({"forked": True})
            tell({"made": project.checkpoint().id})
            tell({"waits": os.read(gate, 1) == b""})

        gate, shut = os.pipe()
        child = Child(play)
        assert child.hear() == {"forked": True}
        leave.set()
        holder.join()
        made = child.hear()
        assert made is not None
        assert "made" in made, made
        # The copy lives, and has closed nothing that it inherited.
        begin = time.monotonic()
        project.checkpoint()
        assert time.monotonic() - begin < 5
        os.close(shut)
        assert child.end().status == 0
        os.close(gate)


# -- killed ----------------------------------------------------------------------------------


def _killed(tree: Path, home: Path, *, held: bool = True, id: str = "") -> tuple[str, str]:
    """A process that is killed in the middle of a step; its session and its turn."""

    def play(tell: Tell) -> None:
        project = _opened(tree, home)
        session = project.session("claude", id=id, held=held)
        turn = session.turn("go")
        outer = turn.step("Task", {"description": "look"})
        outer.step("Bash", {"command": "make"})
        (tree / "killed").write_text("by the turn\n")
        tell({"session": session.id, "turn": turn.id})
        os.kill(os.getpid(), signal.SIGKILL)

    ended = in_child(play)
    return str(ended.last("session")), str(ended.last("turn"))


@pytest.mark.parametrize("start", ["checkpoint", "turn"])
def test_killed(project: Project, tree: Path, home: Path, start: str) -> None:
    """The next start closes what a killed process left open, as interrupted, with its changes."""
    _, turn = _killed(tree, home)
    if start == "checkpoint":
        project.checkpoint()
    else:
        project.session("codex", held=False).turn("next").end()
    found = project.turn(turn)
    assert found.status == "interrupted"
    assert [change.raw_path for change in found.changes] == [b"killed"]
    assert _open_windows(project) == 0
    assert _kinds(project).count("SessionEnded") == 1
    told = len(_kinds(project))
    project.checkpoint()
    assert len(_kinds(project)) == told + 1


def test_killed_and_resumed(project: Project, tree: Path, home: Path) -> None:
    """The same agent comes back under its own id: one session, the old turn was interrupted."""
    session, turn = _killed(tree, home, id="mine")
    with project.session("claude", id="mine") as again:
        assert again.id == session
        with again.turn("more") as more:
            assert project.turn(turn).status == "interrupted"
        assert _status(project, more) == "done"
    assert _is_over(project, again)
    ((count,),) = project.workspace.ledger._reader.rows("SELECT count(*) FROM sessions")
    assert count == 1


def test_nobody_sweeps_what_nobody_holds(project: Project, tree: Path, home: Path) -> None:
    """A session that no process holds goes on, however many processes come and go."""
    session, turn = _killed(tree, home, held=False, id="hooks")
    project.checkpoint()
    project.session("codex", held=False).turn("next").end()
    assert project.turn(turn).status == "running"
    assert project.session("claude", id="hooks", held=False).id == session
    assert _open_windows(project) == 3


@needs_proc
def test_another_process_with_the_same_number(project: Project, tree: Path, home: Path) -> None:
    """A living process that only has the number of a dead one does not keep its session open."""
    with project.session("claude") as session:
        turn = session.turn("go")
        host, pid, started = machine.holder().rsplit(" ", 2)
        forged = f"{host} {pid} {int(started) - 1}"
        assert machine.is_alive(forged) is False
        assert machine.is_alive(f"{host} {pid} {started}") is True
        _set_holder(home, session.id, forged)
        with _opened(tree, home) as other:
            other.checkpoint()
            assert other.turn(turn.id).status == "interrupted"
        _set_holder(home, session.id, machine.holder())


def test_a_process_of_another_host_is_not_judged(project: Project, tree: Path, home: Path) -> None:
    """Whether a process on another machine lives cannot be told, so its session stays open."""
    session = project.session("claude")
    turn = session.turn("go")
    with _opened(tree, home) as other:
        _set_holder(home, session.id, "elsewhere 1 1")
        other.checkpoint()
        assert other.turn(turn.id).status == "running"
    _set_holder(home, session.id, machine.holder())
    session.end()


@needs_proc
def test_a_container_counts_its_own_processes(project: Project, tree: Path, home: Path) -> None:
    """A container with the name of its host shares the store: nobody outside can call it dead."""
    session = project.session("claude")
    turn = session.turn("go")
    place, pid, started = machine.holder().rsplit(" ", 2)
    host, _, inside = place.rpartition(":")
    assert host == os.uname().nodename
    _set_holder(home, session.id, f"{host}:{int(inside) + 1} {pid} {started}")
    with _opened(tree, home) as other:
        other.checkpoint()
        assert other.turn(turn.id).status == "running"
    _set_holder(home, session.id, machine.holder())
    session.end()


def _set_holder(home: Path, session: str, holder: str) -> None:
    db = sqlite3.connect(next(home.glob("projects/*/ledger.db")))
    db.execute("UPDATE sessions SET holder = ? WHERE id = ?", (holder, session))
    db.commit()
    db.close()


def test_two_processes_with_one_session(project: Project, tree: Path, home: Path) -> None:
    """Two processes that say the same id share one session: the later turn ends the earlier."""

    def play(tell: Tell) -> None:
        with _opened(tree, home) as other:
            session = other.session("claude", id="same")
            turn = session.turn("second")
            tell({"session": session.id, "turn": turn.id})
            turn.end()

    session = project.session("claude", id="same")
    first = session.turn("first")
    other = in_child(play)
    assert other.status == 0, other
    assert other.last("session") == session.id
    assert _status(project, first) == "interrupted"
    # The other one held the session last and is gone; this one goes on with it.
    third = session.turn("third")
    third.end()
    session.end()
    assert project.turn(str(other.last("turn"))).status == "done"
    assert _status(project, third) == "done"
    assert _is_over(project, session)
    assert _open_windows(project) == 0


def test_a_session_that_ended_goes_on(project: Project) -> None:
    """A turn in a session that was ended already is not left open: the session goes on."""
    session = project.session("claude")
    session.end()
    turn = session.turn("once more")
    assert not _is_over(project, session)
    session.end()
    assert _status(project, turn) == "interrupted"
    assert _is_over(project, session)


def test_a_lock_that_cannot_be_had(
    project: Project, tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits in vain for the lock gets an error of ours, and may try again."""
    session = project.session("claude", held=False)
    acquire = Lock.acquire
    monkeypatch.setattr(Lock, "acquire", lambda lock, wait: acquire(lock, min(wait, 0.05)))
    with _opened(tree, home) as other, other.workspace.held(), pytest.raises(takeback.BusyError):
        session.turn("go")
    session.turn("go").end()


def test_a_disk_that_fails(project: Project, tree: Path) -> None:
    """What SQLite complains about is an error of ours, and nothing is half recorded."""
    session = project.session("claude", held=False)
    told = _kinds(project)
    project.workspace.ledger._reader.rows("PRAGMA query_only = ON")
    with pytest.raises(TakebackError, match=r"no checkpoint was made|could not be recorded"):
        session.turn("go")
    project.workspace.ledger._reader.rows("PRAGMA query_only = OFF")
    assert _kinds(project) == told
    (tree / "b").write_text("b\n")
    session.turn("go").end()
