"""The thread of a project, and what begins and ends in it."""

import asyncio
from concurrent.futures import CancelledError as NeverBegun
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any

    Problem = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]

P = ParamSpec("P")
T = TypeVar("T")


class Thread:
    """The thread of one project."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="takeback")

    async def call(self, do: "Callable[P, T]", *given: "P.args", **named: "P.kwargs") -> T:
        """Run a call in the thread. If it is cancelled, it is finished first, or never begins."""
        work = self._submit(partial(do, *given, **named))
        waiting = asyncio.ensure_future(_outcome(work))
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not work.cancel():
                await _finished(waiting)
            raise

    async def end(self, do: "Callable[P, T]", *given: "P.args", **named: "P.kwargs") -> T:
        """Run a call that ends something. It is done, however often this is cancelled."""
        waiting = asyncio.ensure_future(_outcome(self._submit(partial(do, *given, **named))))
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await _finished(waiting)
            raise

    def _submit(self, work: "Callable[[], T]") -> "Future[T]":
        try:
            return self._pool.submit(work)
        except RuntimeError as problem:
            raise UsageError("the project was closed") from problem

    def stop(self) -> None:
        self._pool.shutdown(wait=False)


async def _outcome(work: "Future[T]") -> T:
    try:
        return await asyncio.wrap_future(work)
    except NeverBegun:
        raise asyncio.CancelledError from None


async def _finished(waiting: "asyncio.Future[Any]") -> None:
    """Wait until something is over, however often this is cancelled. Its outcome is dropped."""
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError:
            continue
    if not waiting.cancelled():
        waiting.exception()


class Begun(Generic[T]):
    """Something that begins and ends: `async with` it, or `await` it and call `end`."""

    def __init__(
        self,
        thread: Thread,
        begin: "Callable[[], T]",
        end: "Callable[[T, Problem], bool | None]",
    ) -> None:
        self._thread = thread
        self._begin = begin
        self._end = end
        self._made: list[T] = []

    def __await__(self) -> "Generator[Any, None, T]":
        return self.__aenter__().__await__()

    async def __aenter__(self) -> T:
        try:
            return await self._thread.call(self._start)
        except asyncio.CancelledError as problem:
            if self._made:
                # It began, and nobody is left who would end it.
                ended: Problem = (type(problem), problem, None)
                await self._thread.end(self._end, self._made[0], ended)
            raise

    def _start(self) -> T:
        made = self._begin()
        self._made.append(made)
        return made

    async def __aexit__(
        self,
        kind: "type[BaseException] | None",
        problem: "BaseException | None",
        trace: "TracebackType | None",
    ) -> "bool | None":
        return await self._thread.end(self._end, self._made[0], (kind, problem, trace))
