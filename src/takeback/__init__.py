"""Takeback: the undo that AI agents lack."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from takeback.errors import (
        BlockedError,
        BusyError,
        CaptureError,
        ConflictError,
        DamagedStoreError,
        DecisionNeededError,
        NoLongerKeptError,
        NothingToTakeBackError,
        ProjectIdentityError,
        RefusedError,
        StalePlanError,
        TakebackError,
        TargetError,
        UnfinishedError,
        UnknownReferenceError,
        UnsafeRootError,
        UnsafeStoreError,
        UsageError,
    )
    from takeback.model.history import (
        Author,
        Change,
        GitState,
        Log,
        RecordedCheckpoint,
        RecordedRestore,
        RecordedSession,
        RecordedStep,
        RecordedTurn,
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
    from takeback.project import Project
    from takeback.session import Session, Step, Turn

    __version__: str
    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

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
    "KeptState",
    "LeftOut",
    "Log",
    "NoLongerKeptError",
    "NothingToTakeBackError",
    "Plan",
    "PlannedChange",
    "Project",
    "ProjectIdentityError",
    "RecordedCheckpoint",
    "RecordedRestore",
    "RecordedSession",
    "RecordedStep",
    "RecordedTurn",
    "RefusedError",
    "Remark",
    "Report",
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
    "open",
)

_HANDLES = ("Session", "Step", "Turn")
_TOLD = (
    "Author",
    "Change",
    "GitState",
    "Log",
    "RecordedCheckpoint",
    "RecordedRestore",
    "RecordedSession",
    "RecordedStep",
    "RecordedTurn",
)
_GROUPS = {
    "history": _TOLD,
    "plan": ("Plan", "PlannedChange", "Remark", "Report"),
    "results": ("Checkpoint", "Cleanup", "KeptState", "LeftOut", "Status", "Usage", "Verification"),
}
"""The values by the module of `model` that has them."""


def open(path: "AnyPath" = ".", *, home: "AnyPath | None" = None) -> "Project":
    """The project that `path` is in, made on first use. Never touches the user's `.git`.

    `home` is the folder of all stores; by default `TAKEBACK_HOME` or the platform's data folder.
    """
    import os

    from takeback import environment
    from takeback.project import Project

    chosen = environment.default_home() if home is None else os.path.abspath(os.fsencode(home))
    return Project.open(os.fsencode(path), home=chosen, user_home=environment.user_home())


def __getattr__(name: str) -> object:
    # Imported when asked for: a hook that only needs one verb should not pay for all names.
    if name == "__version__":
        from takeback.version import VERSION

        return VERSION
    if name == "Project":
        from takeback.project import Project

        return Project
    if name in _HANDLES:
        from takeback import session

        return getattr(session, name)
    for module, names in _GROUPS.items():
        if name in names:
            return getattr(getattr(__import__(f"takeback.model.{module}").model, module), name)
    if name in __all__:
        from takeback import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'takeback' has no attribute {name!r}")
