"""Every error that Takeback raises on purpose, and the exit code of each.

    TakebackError                      1  failed, nothing changed
    ├── UsageError                     2  the call itself makes no sense
    │   └── UnknownReferenceError      2  nothing is called that, or several things are
    ├── DecisionNeededError            3  somebody has to choose; nothing changed
    │   ├── StalePlanError             3  what a plan touches is not as it was shown
    │   ├── ConflictError              3  others changed what would be taken back
    │   └── ProjectIdentityError       3  this folder may or may not be the one we know
    ├── RefusedError                   1  Takeback will not work on this folder or store
    │   ├── UnsafeRootError            1  `/`, the home folder, the store itself
    │   ├── UnsafeStoreError           1  owned or readable by somebody else, a network disk
    │   ├── NewerStoreError            1  written by a newer Takeback
    │   └── OldStoreError              1  written by an older one, before the first release
    ├── BusyError                      1  another process holds the project's lock
    ├── CaptureError                   1  a checkpoint could not be made; there is none
    ├── BlockedError                   1  something is in the way of a restore; nothing changed
    ├── UnfinishedError                5  something is half done; the message names what
    ├── NothingToTakeBackError         1  there is nothing to undo or redo
    ├── NoLongerKeptError              1  the files of a state were let go; the log still tells
    ├── TargetError                    1  the folder to extract into cannot be used
    ├── DamagedStoreError              4  bytes in the store are not what they were
    └── InternalError                  1  a bug in Takeback; what is half done, the next start ends

`takeback run` ends with 126 or 127, as shells do, if its command cannot start (`cli/commands/run`).

A message is one sentence with names in backticks. `hint` says what to do next, best of all
as a command to run.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.reasons import Reason


class TakebackError(Exception):
    """Something failed; nothing was changed."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(TakebackError):
    """The call itself makes no sense."""

    exit_code = 2


class UnknownReferenceError(UsageError):
    """Nothing is called that, or several things are."""


class DecisionNeededError(TakebackError):
    """Somebody has to choose first; nothing was changed. `reasons` say what is in doubt."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", reasons: "tuple[Reason, ...]" = ()) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class ProjectIdentityError(DecisionNeededError):
    """The folder `path` may or may not be the one whose history we hold: that of `project`."""

    def __init__(
        self, message: str, *, hint: str = "", path: bytes = b"", project: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.project = project


class StalePlanError(DecisionNeededError):
    """What a plan touches is not as it was shown, or the plan is too old; `paths` moved."""

    def __init__(self, message: str, *, hint: str = "", paths: "tuple[bytes, ...]" = ()) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class ConflictError(DecisionNeededError):
    """Others changed what would be taken back; `conflicts` are the paths, each with the reason."""

    def __init__(
        self, message: str, *, hint: str = "", conflicts: "tuple[tuple[bytes, Reason], ...]" = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = conflicts


class RefusedError(TakebackError):
    """Takeback will not work on this folder or with this store."""


class UnsafeRootError(RefusedError):
    """A folder that must never be a project: `/`, the home folder, the store itself."""


class UnsafeStoreError(RefusedError):
    """A store owned or readable by somebody else, or on a network disk."""


class NewerStoreError(RefusedError):
    """The store was written by a newer Takeback than this one."""


class OldStoreError(RefusedError):
    """The store was written by an older Takeback, in a format that was never released."""


class BusyError(TakebackError):
    """Another process holds the project's lock."""


class CaptureError(TakebackError):
    """A checkpoint could not be made, so there is none."""


class BlockedError(TakebackError):
    """Something is in the way of a restore; nothing was changed."""


class UnfinishedError(TakebackError):
    """Something is half done, such as a restore that failed and could not be taken back."""

    exit_code = 5


class NothingToTakeBackError(TakebackError):
    """There is nothing to undo, or nothing to redo."""


class NoLongerKeptError(TakebackError):
    """The files of a state were let go, by age or size; the log still tells what was done."""


class TargetError(TakebackError):
    """The folder to extract into cannot be used."""


class DamagedStoreError(TakebackError):
    """Bytes in the store are not what they were when they were written."""

    exit_code = 4


class InternalError(TakebackError):
    """A bug in Takeback. Files are safe: a restore that it stopped is taken back."""
