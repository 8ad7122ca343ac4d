"""Takeback for async harnesses: the same verbs, and the event loop is never blocked.

async with takeback.aio.open(".") as project, project.session("my-agent") as session:
    async with session.turn("Add a login form") as turn:
        async with turn.step("write_file", {"path": "login.py"}):
            ...
    await project.undo()

Each project has one thread, in which its calls run in the order in which they were made. A call
that is cancelled before it began never begins. One that has begun is finished first; only then is
`CancelledError` raised. So a restore is done, or it is not.
"""

import takeback
from takeback.aio.mirror import (
    AsyncPlan,
    AsyncPlanStep,
    AsyncProject,
    AsyncSession,
    AsyncStep,
    AsyncTurn,
)
from takeback.aio.thread import Begun, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.arguments import AnyPath

__all__ = (
    "AsyncPlan",
    "AsyncPlanStep",
    "AsyncProject",
    "AsyncSession",
    "AsyncStep",
    "AsyncTurn",
    "open",
)


def open(path: "AnyPath" = ".", *, home: "AnyPath | None" = None) -> "Begun[AsyncProject]":
    """The project that `path` is in, as `takeback.open` does it."""
    thread = Thread()

    def begin() -> AsyncProject:
        try:
            return AsyncProject(takeback.open(path, home=home), thread)
        except BaseException:
            thread.stop()
            raise

    return Begun(thread, begin, lambda project, _: project.close_now())
