"""`takeback.aio`: the event loop is never blocked, and what is cancelled is done or is not."""

import ast
import asyncio
import inspect
import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import takeback
from takeback import aio
from takeback.aio import mirror
from takeback.disk import operations

PASTS = 250
"""Files of a restore that takes a while."""


@contextmanager
def raising(kind: type[BaseException]) -> Iterator[None]:
    """A block that raises; in it something may be done first."""
    with pytest.raises(kind):
        yield


@pytest.fixture(autouse=True)
def _quick(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk."""
    del home
    monkeypatch.setattr(operations, "sync", False)


def fill(tree: Path, text: str, number: int = PASTS) -> None:
    """Write many files."""
    for each in range(number):
        (tree / f"{each}.txt").write_text(f"{text} {each}\n")


def texts(tree: Path) -> set[str]:
    """The first words of all files."""
    return {path.read_text().split()[0] for path in tree.glob("*.txt")}


def test_it_does_what_the_sync_api_does(tree: Path) -> None:
    """Sessions, turns, steps, the log, and taking back."""

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            async with session.turn("write") as turn:
                async with turn.step("Write", {"file_path": "a.txt"}) as step:
                    (tree / "a.txt").write_text("a\n")
                    async with step.step("Bash", {"command": "ls"}) as inner:
                        await inner.end(output="a.txt", exit_code=0)
                await turn.checkpoint("in the middle")
            assert [change.path for change in (await turn.recorded()).changes] == ["a.txt"]
            plan = await project.plan_undo()
            await project.apply(plan, because="no")
            assert not (tree / "a.txt").exists()
            await session.redo()
            await project.undo(turn)
            await project.redo()
            await project.rollback(plan.base[:0] or turn.sync.before)
            await project.undo()
            assert await project.read("@~0", "a.txt") == b"a\n"
            assert [each.label for each in (await project.log()).turns] == ["write"]
            assert (await project.turn(turn.id)).steps[0].tool == "Write"
            assert len(await project.sessions()) == 1
            assert (await project.status()).checkpoints > 1
            with raising(takeback.UnknownReferenceError):
                await project.undo("no such prompt")
            later = await session.turn("without with")
            await later.end()

    asyncio.run(main())


def test_plan_steps(tree: Path) -> None:
    """A step that fails is undone; one that is done is not done again."""

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            async with session.plan("all", id="p") as plan:
                async with plan.step("one", key="1") as step:
                    step.result = 1
                    async with step.step("Write", {"file_path": "a.txt"}):
                        (tree / "a.txt").write_text("a\n")
                with raising(ValueError):
                    async with plan.step("two") as step:
                        (tree / "b.txt").write_text("b\n")
                        raise ValueError("broken")
                assert step.lesson is not None
                assert step.lesson.text == "ValueError: broken"
                async with plan.step("three", raises=False) as third:
                    third.step("Write")  # not begun
                    await asyncio.wait_for(_fails(), 5)
                assert str(third.error) == "hidden"
                async with plan.step("one", key="1") as step:
                    assert (step.is_done, step.result) == (True, 1)
                assert (await plan.dependents("1")) == ()
                assert len(await plan.lessons()) == 2
                assert (await plan.back_to("1")) is None
                assert (await plan.take_back("1")) is not None
            assert not list(tree.glob("*.txt"))

    asyncio.run(main())


async def _fails() -> None:
    raise ValueError("hidden")


def test_the_loop_goes_on(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a big checkpoint and of a big restore, a heartbeat task beats.

    Each waits in the middle until the heart has beaten some more.
    """
    here = threading.get_ident()
    beaten = threading.Event()
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            beats += 1
            if beats > 20:
                beaten.set()
            await asyncio.sleep(0)

    def wait(step: str, args: tuple[object, ...]) -> None:
        del args
        if step == "sql":
            assert threading.get_ident() != here
            assert beaten.wait(60)

    async def during(work: Callable[[], Awaitable[object]]) -> int:
        nonlocal beats
        beats = 0
        beaten.clear()
        monkeypatch.setattr(operations, "hook", wait)
        await work()
        monkeypatch.setattr(operations, "hook", None)
        return beats

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            beating = asyncio.create_task(heart())
            async with session.turn("write") as turn:
                fill(tree, "new")
            fill(tree, "newer")
            assert await during(project.checkpoint) > 20
            fill(tree, "new")
            assert await during(lambda: project.undo(turn)) > 20
            assert await project.run(threading.get_ident) != here
            beating.cancel()
        assert not texts(tree)

    asyncio.run(main())


def test_calls_run_in_order(tree: Path) -> None:
    """Also those that nobody has awaited yet."""

    async def main() -> None:
        async with aio.open(tree) as project:
            names = [f"name {number}" for number in range(5)]
            for name in names:
                (tree / "a.txt").write_text(name)
            made = await asyncio.gather(*(project.checkpoint(name) for name in names))
            cursors = [each.cursor for each in made]
            assert cursors == sorted(cursors)

    asyncio.run(main())


async def _cancelled_after(beats: int, work: Awaitable[object]) -> bool:
    """Cancel something after some turns of the loop; whether that came in time."""
    task = asyncio.ensure_future(work)
    for _ in range(beats):
        await asyncio.sleep(0)
    for _ in range(3):  # however often
        task.cancel()
        await asyncio.sleep(0)
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def test_a_cancelled_restore_is_done_or_is_not(tree: Path) -> None:
    """Whenever it is cancelled; and when `CancelledError` is raised, nothing runs any more."""
    chance = random.Random(7)
    fill(tree, "old", 30)
    states: list[str] = []

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            async with session.turn("write"):
                fill(tree, "new", 30)
            for number in range(18):
                verb: Callable[[], Awaitable[object]] = (
                    project.undo if texts(tree) == {"new"} else project.redo
                )
                beats = 0 if number % 6 == 0 else chance.randrange(1, 3000)
                await _cancelled_after(beats, verb())
                found = texts(tree)
                assert len(found) == 1, f"mixed after {beats} beats"
                assert not list(tree.glob(".takeback-stage-*"))
                states.extend(found)
            assert (await project.run(project.sync.verify)).problems == ()

    asyncio.run(main())
    assert set(states) == {"old", "new"}


def test_what_began_is_ended(tree: Path) -> None:
    """A turn, a plan step or a session whose beginning is cancelled is not left open."""
    chance = random.Random(3)

    async def turn(session: aio.AsyncSession) -> None:
        async with session.turn("cancelled"):
            await asyncio.sleep(3600)

    async def step(session: aio.AsyncSession) -> None:
        async with session.plan("plan") as plan, plan.step("cancelled"):
            (tree / "a.txt").write_text("half")
            await asyncio.sleep(3600)

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            for number in range(20):
                beats = 0 if number < 2 else chance.randrange(1, 400)
                assert await _cancelled_after(beats, (turn, step)[number % 2](session))
                log = await project.log(all=True)
                assert [each.status for each in log.turns if each.ended is None] == []
                assert not (tree / "a.txt").exists()
        assert (await _cancelled_after(0, _open(tree))) is True

    asyncio.run(main())


def test_an_end_that_waits_is_not_cancelled(tree: Path) -> None:
    """A turn is ended although the thread is busy when its task is cancelled, again and again."""

    async def main() -> None:
        async with aio.open(tree) as project, project.session("mine") as session:
            begun, busy = asyncio.Event(), threading.Event()

            async def turn() -> None:
                async with session.turn("cancelled"):
                    begun.set()
                    await asyncio.sleep(3600)

            task = asyncio.ensure_future(turn())
            await begun.wait()
            other = asyncio.ensure_future(project.run(busy.wait, 60))
            await asyncio.sleep(0)
            for _ in range(5):
                task.cancel()
                await asyncio.sleep(0.01)
            busy.set()
            await asyncio.wait([task, other])
            assert task.cancelled()
            assert [each.status for each in (await project.log()).turns] == ["interrupted"]

    asyncio.run(main())


async def _open(tree: Path) -> None:
    async with aio.open(tree):
        await asyncio.sleep(3600)


def test_a_closed_project_says_so(tree: Path) -> None:
    """What was asked for before is done; then it is an error of ours, as for the sync API."""

    async def main() -> None:
        project = await aio.open(tree)
        before = [asyncio.create_task(project.checkpoint(str(each))) for each in range(3)]
        await asyncio.sleep(0)
        await project.close()
        assert [(await each).label for each in before] == ["0", "1", "2"]
        with pytest.raises(takeback.UsageError, match="the project was closed"):
            await project.status()

    asyncio.run(main())


MIRRORED = {
    "AsyncProject": takeback.Project,
    "AsyncSession": takeback.Session,
    "AsyncTurn": takeback.Turn,
    "AsyncStep": takeback.Step,
    "AsyncPlan": takeback.WorkPlan,
    "AsyncPlanStep": takeback.PlanStep,
}


def test_arguments_are_those_of_the_sync_api() -> None:
    """Each method has the name of one of the sync class, and no argument that it does not have."""
    for name, sync in MIRRORED.items():
        for method, made in vars(getattr(aio, name)).items():
            if (
                method in {"close_now", "run"}
                or method.startswith("_")
                or not inspect.isfunction(made)
            ):
                continue
            theirs = inspect.getattr_static(sync, method)
            if not isinstance(theirs, property):
                known = set(inspect.signature(theirs).parameters)
                assert set(inspect.signature(made).parameters) <= known, f"{name}.{method}"


@pytest.mark.parametrize("name", ["AsyncTurn", "AsyncStep"])
def test_a_step_takes_what_the_sync_one_takes(name: str) -> None:
    """Also the class of its effect, and the command that reverses it."""
    made, theirs = (
        inspect.getattr_static(kind, "step") for kind in (getattr(aio, name), MIRRORED[name])
    )
    assert list(inspect.signature(made).parameters) == list(inspect.signature(theirs).parameters)


def test_nothing_is_delegated_unseen() -> None:
    """Type checkers see every method: there is no `__getattr__`."""
    tree = ast.parse(inspect.getsource(mirror))
    named = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in named
