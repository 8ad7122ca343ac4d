"""Takeback: the undo that AI agents lack."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar, Unpack

    from takeback.errors import (
        BlockedError,
        BusyError,
        CaptureError,
        ConflictError,
        DamagedStoreError,
        DecisionNeededError,
        GuardRefused,
        NoLongerKeptError,
        NothingToTakeBackError,
        ParticipantError,
        PausedError,
        ProjectIdentityError,
        RefusedError,
        RolledBack,
        StalePlanError,
        TakebackError,
        TargetError,
        UnfinishedError,
        UnknownReferenceError,
        UnsafeRootError,
        UnsafeStoreError,
        UsageError,
    )
    from takeback.lessons.lesson import Lesson
    from takeback.model.beyond.participants import Mutation
    from takeback.model.history import (
        Author,
        Change,
        GitState,
        Log,
        RecordedCheckpoint,
        RecordedPlan,
        RecordedPlanStep,
        RecordedRestore,
        RecordedSession,
        RecordedStep,
        RecordedTurn,
        Relapse,
    )
    from takeback.model.plan import Plan, PlannedChange, Remark, Report
    from takeback.model.results import (
        Checkpoint,
        Cleanup,
        KeptState,
        LeftOut,
        Status,
        Usage,
        Verification,
    )
    from takeback.participants.memory import HowKept
    from takeback.participants.mutations import Way
    from takeback.ports import Participant
    from takeback.project import Project
    from takeback.session import Session, Step, Turn
    from takeback.work_plans.plan import WorkPlan
    from takeback.work_plans.step import PlanStep

    __version__: str
    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = (
    "Author",
    "BlockedError",
    "BusyError",
    "CaptureError",
    "Change",
    "Checkpoint",
    "Cleanup",
    "ConflictError",
    "DamagedStoreError",
    "DecisionNeededError",
    "GitState",
    "GuardRefused",
    "KeptState",
    "LeftOut",
    "Lesson",
    "Log",
    "NoLongerKeptError",
    "NothingToTakeBackError",
    "ParticipantError",
    "PausedError",
    "Plan",
    "PlanStep",
    "PlannedChange",
    "Project",
    "ProjectIdentityError",
    "RecordedCheckpoint",
    "RecordedPlan",
    "RecordedPlanStep",
    "RecordedRestore",
    "RecordedSession",
    "RecordedStep",
    "RecordedTurn",
    "RefusedError",
    "Relapse",
    "Remark",
    "Report",
    "RolledBack",
    "Session",
    "StalePlanError",
    "Status",
    "Step",
    "TakebackError",
    "TargetError",
    "Turn",
    "UnfinishedError",
    "UnknownReferenceError",
    "UnsafeRootError",
    "UnsafeStoreError",
    "Usage",
    "UsageError",
    "Verification",
    "WorkPlan",
    "inverse",
    "memory",
    "open",
    "tool",
)

_PLACES = {
    "project": "Project",
    "session": "Session Step Turn",
    "lessons.lesson": "Lesson",
    "model.history": "Author Change GitState Log RecordedCheckpoint RecordedPlan "
    "RecordedPlanStep RecordedRestore RecordedSession RecordedStep RecordedTurn Relapse",
    "model.plan": "Plan PlannedChange Remark Report",
    "work_plans.plan": "WorkPlan",
    "work_plans.step": "PlanStep",
    "model.results": "Checkpoint Cleanup KeptState LeftOut Status Usage Verification",
}
"""Which module has a name; all others are errors."""


def open(path: "AnyPath" = ".", *, home: "AnyPath | None" = None) -> "Project":
    """The project that `path` is in, made on first use. Never touches the user's `.git`.

    `home` is the folder of all stores; by default `TAKEBACK_HOME` or the platform's data folder.
    """
    import os

    from takeback import environment
    from takeback.project import Project

    chosen = environment.default_home() if home is None else os.path.abspath(os.fsencode(home))
    return Project.open(os.fsencode(path), home=chosen, user_home=environment.user_home())


def memory(
    target: object = None,
    *,
    name: str = "memory",
    read: "Callable[[], Any] | None" = None,
    write: "Callable[[Any], object] | None" = None,
    **options: "Unpack[HowKept]",
) -> "Participant":
    """What an agent remembers in a program, as a participant: `project.register(memory(notes))`.

    `target` is a mapping, or an object with `get_state` and `set_state`; otherwise `read` and
    `write` do it. The state is JSON, or `dump` makes bytes of it and `load` reads them.
    """
    from takeback.participants.memory import ObjectMemory, of_object

    if read is not None and write is not None:
        return ObjectMemory(name, read, write, **options)
    return of_object(target, name, options)


def inverse(
    name: str,
    act: "Callable[[Mutation], object]",
    *,
    read: "Callable[[str], object] | None" = None,
    redo: "Callable[[Mutation], object] | None" = None,
) -> "Way":
    """An inverse by name, for `project.register`: each program that has it can run it."""
    from takeback.participants.mutations import Way

    return Way(name, act, read, redo)


def tool(
    *,
    inverse: "Callable[[Mutation], object]",
    read: "Callable[[str], object] | None" = None,
    redo: "Callable[[Mutation], object] | None" = None,
) -> "Callable[[Callable[P, R]], Callable[P, R]]":
    """Record each call of a function inside a turn, so that an undo can run `inverse`.

    It gets the `Mutation`: its `key`, what was `given` as [positional, named] arguments, and
    `after`, what the call returned, as far as these are JSON.
    """
    from takeback.participants import mutations

    return mutations.tool(inverse=inverse, read=read, redo=redo)


def __dir__() -> "list[str]":
    return [*__all__, "__version__", "__doc__", "__name__", "__file__", "__path__"]


def __getattr__(name: str) -> object:
    # Imported when asked for: a hook that only needs one verb should not pay for all names.
    if name == "__version__":
        from takeback.version import VERSION

        return VERSION
    if name not in __all__:
        raise AttributeError(f"module 'takeback' has no attribute {name!r}")
    places = (place for place, names in _PLACES.items() if name in names.split())
    return getattr(__import__(f"takeback.{next(places, 'errors')}", fromlist=[name]), name)
