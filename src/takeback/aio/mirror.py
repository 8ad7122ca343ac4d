"""The classes of the sync API with calls that are awaited. Each holds the object itself, `sync`."""

from functools import partial

from takeback.aio.thread import Begun, P, T, Thread
from takeback.work_plans.step import UNDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, Unpack

    from takeback.arguments import AnyPath, Applied, Decide, Named, Options, Paths, Which
    from takeback.lessons.lesson import Lesson
    from takeback.model.history import (
        Log,
        RecordedCheckpoint,
        RecordedPlan,
        RecordedPlanStep,
        RecordedSession,
        RecordedTurn,
    )
    from takeback.model.plan import Plan, Report
    from takeback.model.results import Checkpoint, Status
    from takeback.model.text.json_text import Json
    from takeback.project import Project
    from takeback.session import Session, Step, Turn
    from takeback.work_plans.plan import Which as WhichStep
    from takeback.work_plans.plan import WorkPlan
    from takeback.work_plans.step import PlanStep


class BegunStep(Begun["AsyncPlanStep"]):
    """The same of a plan step, which may hide what was raised in its block."""

    async def __aexit__(
        self,
        kind: "type[BaseException] | None",
        problem: "BaseException | None",
        trace: "TracebackType | None",
    ) -> bool:
        return bool(await super().__aexit__(kind, problem, trace))


class AsyncProject:
    """A `takeback.Project` whose verbs are awaited."""

    def __init__(self, project: "Project", thread: Thread) -> None:
        self.sync = project
        """The project itself. What it does blocks the caller."""
        self._thread = thread

    @property
    def root(self) -> str:
        return self.sync.root

    @property
    def id(self) -> str:
        return self.sync.id

    async def run(self, do: "Callable[P, T]", *given: "P.args", **named: "P.kwargs") -> T:
        """Run anything of the sync API in the project's thread: `run(project.sync.verify)`."""
        return await self._thread.call(do, *given, **named)

    async def close(self) -> None:
        await self._thread.call(self.close_now)

    def close_now(self) -> None:
        """Close it in this thread."""
        self.sync.close()
        self._thread.stop()

    def session(
        self, agent: str, *, id: str = "", title: str = "", safe_points: "str | None" = None
    ) -> "Begun[AsyncSession]":
        def begin() -> AsyncSession:
            made = self.sync.session(agent, id=id, title=title, safe_points=safe_points)
            return AsyncSession(made, self._thread)

        return Begun(self._thread, begin, lambda made, ended: made.sync.__exit__(*ended))

    async def checkpoint(self, label: str = "", *, request: "str | None" = None) -> "Checkpoint":
        return await self._thread.call(self.sync.checkpoint, label, request=request)

    async def log(self, limit: "int | None" = None, **which: "Unpack[Which]") -> "Log":
        return await self._thread.call(self.sync.log, limit, **which)

    async def turn(self, ref: str) -> "RecordedTurn":
        return await self._thread.call(self.sync.turn, ref)

    async def recorded(self, ref: str) -> "RecordedTurn | RecordedCheckpoint":
        return await self._thread.call(self.sync.recorded, ref)

    async def sessions(
        self, limit: int = 20, *, all: bool = False
    ) -> "tuple[RecordedSession, ...]":
        return await self._thread.call(self.sync.sessions, limit, all=all)

    async def status(self) -> "Status":
        return await self._thread.call(self.sync.status)

    async def read(self, ref: "str | None", path: "AnyPath") -> bytes:
        """What a file held in a state, whole."""
        return await self._thread.call(lambda: b"".join(self.sync.read(ref, path)))

    async def extract(self, ref: str, directory: "AnyPath") -> int:
        return await self._thread.call(self.sync.extract, ref, directory)

    async def plan_undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
    ) -> "Plan":
        how = partial(self.sync.plan_undo, turn, session=session, paths=paths, decide=decide)
        return await self._thread.call(how)

    async def plan_redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
    ) -> "Plan":
        how = partial(self.sync.plan_redo, turn, session=session, paths=paths, decide=decide)
        return await self._thread.call(how)

    async def plan_rollback(self, ref: "Named", *, paths: "Paths" = ()) -> "Plan":
        return await self._thread.call(self.sync.plan_rollback, ref, paths=paths)

    async def apply(self, plan: "Named", **options: "Unpack[Applied]") -> "Report":
        return await self._thread.call(partial(self.sync.apply, plan, **options))

    async def undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        **options: "Unpack[Options]",
    ) -> "Report":
        how = partial(self.sync.undo, turn, session=session, paths=paths, decide=decide, **options)
        return await self._thread.call(how)

    async def redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        **options: "Unpack[Options]",
    ) -> "Report":
        how = partial(self.sync.redo, turn, session=session, paths=paths, decide=decide, **options)
        return await self._thread.call(how)

    async def rollback(
        self,
        ref: "Named",
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        **options: "Unpack[Options]",
    ) -> "Report":
        how = partial(self.sync.rollback, ref, session=session, paths=paths, **options)
        return await self._thread.call(how)


class AsyncSession:
    """A `takeback.Session` whose calls are awaited."""

    def __init__(self, session: "Session", thread: Thread) -> None:
        self.sync = session
        self._thread = thread
        self.id = session.id

    def turn(
        self, label: str, *, whole: bool = True, request: "str | None" = None
    ) -> "Begun[AsyncTurn]":
        def begin() -> AsyncTurn:
            return AsyncTurn(self.sync.turn(label, whole=whole, request=request), self._thread)

        return Begun(self._thread, begin, lambda made, ended: made.sync.__exit__(*ended))

    def plan(self, label: str, *, id: str = "", yes: bool = False) -> "Begun[AsyncPlan]":
        def begin() -> AsyncPlan:
            return AsyncPlan(self.sync.plan(label, id=id, yes=yes), self._thread)

        return Begun(self._thread, begin, lambda made, ended: made.sync.__exit__(*ended))

    async def undo(self, *, because: str = "", yes: bool = False) -> "Report":
        return await self._thread.call(self.sync.undo, because=because, yes=yes)

    async def redo(self, *, because: str = "", yes: bool = False) -> "Report":
        return await self._thread.call(self.sync.redo, because=because, yes=yes)

    async def lessons(
        self, prompt: str = "", paths: "Iterable[AnyPath]" = ()
    ) -> "tuple[Lesson, ...]":
        return await self._thread.call(self.sync.lessons, prompt, paths)

    async def end(self) -> None:
        await self._thread.call(self.sync.end)


class _AsyncWork:
    """What a turn and a step have in common: steps inside."""

    def __init__(self, work: "Turn | Step", thread: Thread) -> None:
        self._work = work
        self._thread = thread
        self.id = work.id

    def step(
        self,
        tool: str,
        given: "Mapping[str, object] | None" = None,
        *,
        kind: "str | None" = None,
        paths: "Iterable[AnyPath] | None" = None,
        cwd: "AnyPath | None" = None,
        effect: str = "",
        inverse: str = "",
        request: "str | None" = None,
    ) -> "Begun[AsyncStep]":
        work = self._work

        def begin() -> AsyncStep:
            made = work.step(
                tool,
                given,
                kind=kind,
                paths=paths,
                cwd=cwd,
                effect=effect,
                inverse=inverse,
                request=request,
            )
            return AsyncStep(made, self._thread)

        return Begun(self._thread, begin, lambda made, ended: made.sync.__exit__(*ended))


class AsyncTurn(_AsyncWork):
    """A `takeback.Turn` whose calls are awaited."""

    def __init__(self, turn: "Turn", thread: Thread) -> None:
        super().__init__(turn, thread)
        self.sync = turn

    async def checkpoint(self, label: str = "") -> "Checkpoint":
        return await self._thread.call(self.sync.checkpoint, label)

    async def recorded(self) -> "RecordedTurn":
        return await self._thread.call(self.sync.recorded)

    async def end(self, status: str = "done") -> None:
        await self._thread.call(self.sync.end, status)


class AsyncStep(_AsyncWork):
    """A `takeback.Step` whose calls are awaited."""

    def __init__(self, step: "Step", thread: Thread) -> None:
        super().__init__(step, thread)
        self.sync = step

    async def end(
        self, status: str = "done", *, output: str = "", exit_code: "int | None" = None
    ) -> None:
        await self._thread.call(self.sync.end, status, output=output, exit_code=exit_code)

    async def detach(self) -> None:
        await self._thread.call(self.sync.detach)


class AsyncPlan:
    """A `takeback.WorkPlan` whose calls are awaited."""

    def __init__(self, plan: "WorkPlan", thread: Thread) -> None:
        self.sync = plan
        self._thread = thread
        self.id = plan.id

    def step(
        self,
        label: str,
        *,
        key: str = "",
        databases: bool = False,
        on_failure: str = UNDO,
        raises: bool = True,
        whole: bool = True,
    ) -> BegunStep:
        def begin() -> AsyncPlanStep:
            made = self.sync.step(
                label,
                key=key,
                databases=databases,
                on_failure=on_failure,
                raises=raises,
                whole=whole,
            )
            return AsyncPlanStep(made.__enter__(), self._thread)

        return BegunStep(self._thread, begin, lambda made, ended: made.sync.__exit__(*ended))

    async def recorded(self) -> "RecordedPlan":
        return await self._thread.call(lambda: self.sync.recorded)

    async def lessons(self) -> "tuple[Lesson, ...]":
        return await self._thread.call(lambda: self.sync.lessons)

    async def back_to(self, step: "WhichStep", *, because: str = "") -> "Report | None":
        return await self._thread.call(self.sync.back_to, step, because=because)

    async def take_back(self, step: "WhichStep", *, because: str = "") -> "Report | None":
        return await self._thread.call(self.sync.take_back, step, because=because)

    async def dependents(self, step: "WhichStep") -> "tuple[RecordedPlanStep, ...]":
        return await self._thread.call(self.sync.dependents, step)

    async def end(self, status: str = "done") -> None:
        await self._thread.call(self.sync.end, status)


class AsyncPlanStep:
    """A `takeback.PlanStep` whose calls are awaited."""

    def __init__(self, step: "PlanStep", thread: Thread) -> None:
        self.sync = step
        self._thread = thread
        self.id = step.id
        self.label = step.label
        self.key = step.key

    @property
    def is_done(self) -> bool:
        return self.sync.is_done

    @property
    def lesson(self) -> "Lesson | None":
        return self.sync.lesson

    @property
    def error(self) -> "BaseException | None":
        return self.sync.error

    @property
    def report(self) -> "Report | None":
        return self.sync.report

    @property
    def result(self) -> "Json":
        return self.sync.result

    @result.setter
    def result(self, value: "Json") -> None:
        self.sync.result = value

    @property
    def turn(self) -> AsyncTurn:
        return AsyncTurn(self.sync.turn, self._thread)

    def step(
        self,
        tool: str,
        given: "Mapping[str, object] | None" = None,
        **options: "Any",  # noqa: ANN401 - as `AsyncTurn.step` takes them
    ) -> "Begun[AsyncStep]":
        return self.turn.step(tool, given, **options)

    async def checkpoint(self, label: str = "") -> "Checkpoint":
        return await self._thread.call(self.sync.checkpoint, label)
