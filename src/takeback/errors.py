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
    "begin": "`takeback.open(PATH)` makes a folder a project",
    "checkpoint": "`project.checkpoint()` makes the first one",
    "choose-folder": "open a folder with your work: `takeback.open(PATH)`",
    "config": "`takeback config`, in a shell, lists all settings",
    "consent": "`yes=True` goes on all the same",
    "continue-forgetting": "`project.continue_forgetting()` goes on with it",
    "decide": "`decide=` takes 'keep-mine', 'take-back', 'markers' or 'skip-conflicts', or a dict "
    "of them by path",
    "diff": "`project.compare('@')` lists what differs",
    "diff-since": "`project.compare({ref!r})` lists what differs between then and now",
    "doctor": "`takeback doctor`, in a shell, shows what is wrong",
    "extract": "`project.extract({ref!r}, FOLDER)` writes everything",
    "forget": "`help(takeback.Project.forget)` lists what can be forgotten",
    "free-paths": "see to these paths (`lsattr`, free space, mounts), or call "
    "`project.verify(set_aside=True)`",
    "gc": "`project.gc()` tries again",
    "gc-to-size": "`project.gc(to_size=SIZE)` deletes old states",
    "join": "if its history belongs to this folder, in a shell: "
    "takeback relocate --join {id} -C {path!r}",
    "join-anyway": "to go ahead, in a shell: takeback relocate --join {id} --yes -C {path!r}",
    "join-back": "it is kept, and the way back will be, in a shell: "
    "takeback relocate --join {id} -C {path!r}",
    "keep": "`project.keep(REF)` keeps a state in time",
    "kept": "`project.kept()` lists what is kept",
    "log": "`project.log()` lists turns and their ids",
    "log-all": "`project.log(all=True)` lists the whole history, undone turns, too",
    "log-tells": "`project.log()` still tells what was done",
    "new-history": "to begin a new history, in a shell: takeback relocate --new; the old one stays",
    "new-history-at": "to begin a new history, in a shell: takeback relocate --new -C {path!r}",
    "new-history-anyway": "to go ahead, in a shell: takeback relocate --new --yes -C {path!r}",
    "next-command": "the next call that writes tries again",
    "other-paths": "`paths=[PATH]` takes back only the paths that you name",
    "plan": "`project.plan_undo()` makes one",
    "plan-again": "plan it again: `project.plan_undo`, `plan_redo` or `plan_rollback`",
    "projects": "`takeback projects`, in a shell, lists them",
    "rebuild": "`project.rebuild()` makes the tables again",
    "redo": "`project.redo({turn!r})` puts it back",
    "redo-newest": "`project.redo()` puts back what was taken back last",
    "release-name": "`project.release({name!r})` removes its name",
    "remove-in-use": "to remove it all the same, in a shell: "
    "takeback projects --remove {id} --yes --even-if-in-use",
    "remove-project": "`takeback projects --remove {id}`, in a shell, deletes the whole history",
    "remove-unmounted": "to remove the store all the same, in a shell: "
    "takeback projects --remove {id} --yes --even-if-not-mounted",
    "restore-folder": "to make the folder anew, in a shell: "
    "takeback projects --restore {id} {path!r}",
    "rollback": "`project.rollback({ref!r})` goes back to that state",
    "rollback-anywhere": "`project.rollback(REF)` goes back to any state",
    "rollback-first": "`project.rollback({ref!r})` goes to its first state",
    "sessions": "`project.sessions(all=True)` lists them",
    "set-aside": "`project.verify(set_aside=True)` keeps it as it is, and work goes on",
    "set-for-all": "`user=True` sets it for all projects",
    "show": "`project.turn({turn!r}).changes` lists what it changed",
    "show-state": "`project.recorded({ref!r})` tells about it",
    "store-again": "`project.checkpoint(rehash=True)` stores it again",
    "undo-at": "`takeback undo -C {path!r}`, in a shell, brings the folder back",
    "undo-newest": "`project.undo()` takes back the newest turn",
    "undo-older": "`project.undo({turn!r})` takes back what came before",
    "undo-rollback": "`project.undo({rollback!r})` takes the rollback back",
    "undo-shared": "`project.undo({turns!r}, shared=True)` takes it back, whoever did it",
    "undo-together": "`project.undo({turns!r})` takes back what only these turns share",
    "undo-turn-at": "`takeback.open({path!r}).undo()` takes back the last turn in it",
    "verify": "`project.verify()` tells what is damaged",
    "verify-paths": "`project.verify()` names its paths; see to them",
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
    """The call itself makes no sense."""

    exit_code = 2


class UnknownReferenceError(UsageError):
    """Nothing is called that, or several things are."""


class DecisionNeededError(TakebackError):
    """Somebody has to choose first; nothing was changed. `reasons` say what is in doubt."""

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
