"""Every error that Takeback raises on purpose, and the exit code of each.

    TakebackError                      1  failed, nothing changed
    ├── UsageError                     2  the call is wrong
    │   └── UnknownReferenceError      2  nothing matches, or several things do
    ├── DecisionNeededError            3  you have to choose; nothing changed
    │   ├── GuardRefused               3  the guard refused a step or an effect
    │   ├── StalePlanError             3  what a plan touches is not as it was shown
    │   ├── ConflictError              3  others changed what would be taken back
    │   └── ProjectIdentityError       3  this folder may or may not be the one we know
    ├── RefusedError                   1  Takeback will not work on this folder or store
    │   ├── UnsafeRootError            1  `/`, the home folder, the store itself
    │   ├── UnsafeStoreError           1  another user owns or can read it, or a network disk
    │   ├── NewerStoreError            1  written by a newer Takeback
    │   └── OldStoreError              1  written by an older one, before the first release
    ├── BusyError                      1  another process holds the project's lock
    ├── CaptureError                   1  a checkpoint could not be made; there is none
    ├── BlockedError                   1  something is in the way of a restore; nothing changed
    │   └── ParticipantError           1  a database or another participant cannot move now
    ├── UnfinishedError                5  something is half done; the message names what
    ├── NothingToTakeBackError         1  there is nothing to undo or redo
    ├── RolledBack                     1  others took back what a running turn did
    ├── PausedError                    1  the user paused the session; nothing was begun
    ├── NoLongerKeptError              1  the files of a state were deleted; the log keeps the turn
    ├── TargetError                    1  the folder to extract into cannot be used
    ├── DamagedStoreError              4  bytes in the store are not what they were
    └── InternalError                  1  a bug in Takeback; what is half done, the next start ends

`takeback run` ends with 126 or 127, as shells do, if its command cannot start (`child`).

A message is one sentence with names in backticks. `actions` are what to do next: codes and facts,
or words that fit every door, such as "try again". `cli/text/action_text` words a code as a command;
here, for those who `import takeback`, it is a call.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from takeback.model.reasons import Action, Reason

    Hint: TypeAlias = str | Action | tuple[str | Action, ...]


IN_PYTHON = {
    "apply-plan": "`project.apply({plan!r})` applies it for the user",
    "begin": "`takeback.open(PATH)` makes a folder a project",
    "checkpoint": "`project.checkpoint()` makes the first one",
    "choose-folder": "open a folder with your work: `takeback.open(PATH)`",
    "config": "`takeback config`, in a shell, lists all settings",
    "consent": "`yes=True` confirms it",
    "continue-forgetting": "`project.continue_forgetting()` resumes it",
    "decide": "`decide=` takes 'keep-mine', 'take-back', 'markers' or 'skip-conflicts', or a dict "
    "of them by path",
    "decide-stays": "`decide='keep-mine'` leaves it as it is",
    "diff": "`project.compare('@')` lists what differs",
    "diff-since": "`project.compare({ref!r})` lists what differs between then and now",
    "doctor": "`takeback doctor`, in a shell, shows what is wrong",
    "effects": "`project.effects.list()` lists them",
    "extract": "`project.extract({ref!r}, FOLDER)` writes all files",
    "forget": "`help(takeback.Project.forget)` lists what can be forgotten",
    "free-paths": "check these paths (`lsattr`, free space, mounts), or call "
    "`project.verify(set_aside=True)`",
    "gc": "`project.gc()` tries again",
    "gc-to-size": "`project.gc(to_size=SIZE)` deletes the oldest states",
    "guard-allow": "`takeback guard allow {id}`, in a shell, lets it run",
    "guard-refusals": "`takeback guard allow`, in a shell, lists them",
    "join": "`takeback relocate --join {id} -C {path!r}`, in a shell, continues its history here",
    "join-anyway": "`takeback relocate --join {id} --yes -C {path!r}`, in a shell, joins it",
    "join-back": "`takeback relocate --join {id} -C {path!r}`, in a shell, brings the old history "
    "back",
    "keep": "`project.keep(REF)` protects a state from `gc`",
    "kept": "`project.kept()` lists what is kept",
    "lessons": "`list(project.lessons)` lists them",
    "log": "`project.log()` lists turns and their ids",
    "log-all": "`project.log(all=True)` also lists undone turns",
    "log-tells": "`project.log()` still shows what was done",
    "new-history": "`takeback relocate --new`, in a shell, begins a new history, keeps the old one",
    "new-history-at": "`takeback relocate --new -C {path!r}`, in a shell, begins a new history",
    "new-history-anyway": "`takeback relocate --new --yes -C {path!r}`, in a shell, begins a "
    "new history",
    "next-command": "the next call that writes tries again",
    "other-paths": "`paths=[PATH]` takes back only the paths that you name",
    "plan": "`project.plan_undo()` makes a plan",
    "plan-again": "plan it again: `project.plan_undo`, `plan_redo` or `plan_rollback`",
    "projects": "`takeback projects`, in a shell, lists them",
    "rebuild": "`project.rebuild()` rebuilds the tables",
    "redo": "`project.redo({turn!r})` puts it back",
    "redo-newest": "`project.redo()` puts back what was taken back last",
    "release-name": "`project.release({name!r})` removes its name",
    "remove-for-all": "`takeback participant remove {name} --user`, in a shell, removes it there",
    "remove-in-use": "`takeback projects --remove {id} --yes --even-if-in-use`, in a shell, "
    "removes it nevertheless",
    "remove-project": "`takeback projects --remove {id}`, in a shell, deletes the whole history",
    "remove-unmounted": "`takeback projects --remove {id} --yes --even-if-not-mounted`, in a "
    "shell, removes the store nevertheless",
    "restore-folder": "`takeback projects --restore {id} {path!r}`, in a shell, restores it",
    "resume-all": "`takeback resume`, in a shell, lets all of them go on",
    "rollback": "`project.rollback({ref!r})` restores that state",
    "rollback-anywhere": "`project.rollback(REF)` restores any state",
    "rollback-first": "`project.rollback({ref!r})` restores its first state",
    "sessions": "`project.sessions(all=True)` lists them",
    "set-aside": "`project.verify(set_aside=True)` records it and lets undo work again",
    "set-for-all": "`user=True` sets it for all projects",
    "show": "`project.turn({turn!r}).changes` lists what it changed",
    "show-state": "`project.recorded({ref!r})` describes it",
    "store-again": "`project.checkpoint(rehash=True)` stores it again",
    "undo-at": "`takeback undo -C {path!r}`, in a shell, restores it",
    "undo-newest": "`project.undo()` takes back the newest turn",
    "undo-older": "`project.undo({turn!r})` takes back the turn before",
    "undo-rollback": "`project.undo({rollback!r})` takes back the rollback",
    "undo-shared": "`project.undo({turns!r}, shared=True)` takes it back, whichever session did it",
    "undo-together": "`project.undo({turns!r})` takes back what only these turns share",
    "undo-turn-at": "`takeback.open({path!r}).undo()` takes back its last turn",
    "participants": "`takeback participant`, in a shell, lists them",
    "remove-participant": "`takeback participant remove {name}`, in a shell, removes it first",
    "retry-participant": "`project.retry_participants({name!r})` tries again",
    "verify": "`project.verify()` lists what is damaged",
    "without-participants": "`project.{verb}(only={only!r})` leaves it out",
    "verify-paths": "`project.verify()` names its paths; check them",
}

"""What each action is in Python; a thing that has no call is a command "in a shell"."""


class TakebackError(Exception):
    """Something failed; nothing was changed."""

    exit_code = 1

    def __init__(self, message: str, *, hint: "Hint" = ()) -> None:
        super().__init__(message)
        self.actions = hint if isinstance(hint, tuple) else (hint,) if hint else ()

    @property
    def hint(self) -> str:
        """What to do next, as one would do it in Python."""
        return "; ".join(
            each
            if isinstance(each, str)
            else IN_PYTHON.get(each.code, each.code).format(**dict(each.facts))
            for each in self.actions
        )


class UsageError(TakebackError):
    """The call is wrong."""

    exit_code = 2


class UnknownReferenceError(UsageError):
    """Nothing matches, or several things do."""


class DecisionNeededError(TakebackError):
    """You have to choose first; nothing was changed. `reasons` are what is in doubt."""

    exit_code = 3

    def __init__(
        self, message: str, *, hint: "Hint" = (), reasons: "tuple[Reason, ...]" = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class ProjectIdentityError(DecisionNeededError):
    """The folder `path` may or may not be the one whose history we hold: that of `project`."""

    def __init__(
        self, message: str, *, hint: "Hint" = (), path: bytes = b"", project: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.project = project


class GuardRefused(DecisionNeededError):
    """The guard refused a step or an effect before it began; nothing was done.

    `effect` is its class, `rule` what decided, `instead` what to do instead, if that is known.
    `takeback guard allow` with the id in `refusal` lets it run.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: "Hint" = (),
        reasons: "tuple[Reason, ...]" = (),
        refusal: str = "",
        effect: str = "",
        rule: str = "",
        instead: str = "",
    ) -> None:
        super().__init__(message, hint=hint, reasons=reasons)
        self.refusal = refusal
        self.effect = effect
        self.rule = rule
        self.instead = instead


class StalePlanError(DecisionNeededError):
    """What a plan touches is not as it was shown, or the plan is too old; `paths` moved."""

    def __init__(self, message: str, *, hint: "Hint" = (), paths: "tuple[str, ...]" = ()) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class ConflictError(DecisionNeededError):
    """Others changed what would be taken back; `conflicts` are the paths, each with the reason."""

    def __init__(
        self, message: str, *, hint: "Hint" = (), conflicts: "tuple[tuple[str, Reason], ...]" = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = conflicts


class RefusedError(TakebackError):
    """Takeback will not work on this folder or with this store."""


class UnsafeRootError(RefusedError):
    """A folder that must never be a project: `/`, the home folder, the store itself."""


class UnsafeStoreError(RefusedError):
    """Another user owns or can read the store, or it is on a network disk."""


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


class ParticipantError(BlockedError):
    """A participant cannot be captured, described or moved now."""


class UnfinishedError(TakebackError):
    """Something is half done, such as a restore that failed and could not be taken back."""

    exit_code = 5


class NothingToTakeBackError(TakebackError):
    """There is nothing to undo, or nothing to redo."""


class RolledBack(TakebackError):
    """A restore changed files under a turn that runs; its next step raises this, once.

    `restore` is the id of the newest one, `verb` what it was, `because` the reason that was given,
    `paths` what changed: read these again. The turn may go on.
    """

    def __init__(
        self,
        message: str,
        *,
        restore: str = "",
        verb: str = "",
        because: str = "",
        paths: "tuple[str, ...]" = (),
    ) -> None:
        super().__init__(message, hint="read these files again before you change them")
        self.restore = restore
        self.verb = verb
        self.because = because
        self.paths = paths


class PausedError(TakebackError):
    """The user paused the session, or all of them: no step begins until it is resumed."""


class NoLongerKeptError(TakebackError):
    """The files of a state were deleted, by age or size; the log still shows what was done."""


class TargetError(TakebackError):
    """The folder to extract into cannot be used."""


class DamagedStoreError(TakebackError):
    """Bytes in the store are not what they were when they were written."""

    exit_code = 4


class InternalError(TakebackError):
    """A bug in Takeback. Files are safe: a restore that it stopped is taken back."""
