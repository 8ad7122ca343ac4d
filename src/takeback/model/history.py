"""What the log says: sessions, turns, steps, and whose change is whose."""

from takeback.model.value import Value, path_text
from takeback.model.words import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.beyond.effects import Effect
    from takeback.model.beyond.losses import Loss
    from takeback.model.beyond.participants import Captured
    from takeback.model.reasons import Reason
    from takeback.model.results import Checkpoint, LeftOut, OutsideFile
    from takeback.model.text.json_text import Json


class Author(Value):
    """Who made a change: one step, *you* (a person, an editor, another program), or shared.

    `how` says how it is known: the step named the path, or it happened in the window of a
    shell, or of a turn that reports no steps. `sessions` are those that share a change.
    """

    who: str
    session: str = ""
    turn: str = ""
    step: str = ""
    how: str = ""
    sessions: "tuple[str, ...]" = ()


class Partner(Value):
    """A turn of another session, with which a turn shares changes."""

    id: str
    label: str
    agent: str


class Change(Value):
    """What happened to one path.

    `added` and `removed` count lines; None where there are none to count (binary, links,
    folders) or nobody counted. `origin` is the path that a renamed file had before.
    """

    raw_path: bytes
    verb: str
    author: Author
    added: "int | None" = None
    removed: "int | None" = None
    raw_origin: "bytes | None" = None

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)

    @property
    def origin(self) -> "str | None":
        """The path that it had before, as text."""
        return None if self.raw_origin is None else path_text(self.raw_origin)


class GitState(Value):
    """What the user's git looked like: `branch` is None when HEAD is detached.

    `refs` says why branches, tags and stashes could not be read; None if they could.
    """

    branch: "str | None"
    head: "str | None"
    index: "str | None"
    refs: "str | None" = None


class RunningSession(Value):
    """A session in the middle of a turn. `since` is when that began, in seconds since 1970.

    `label` is its prompt, `tool` and `doing` the call that runs now, if one does. `is_alive` tells
    whether the agent's process is there; None if nobody can tell.
    """

    id: str
    agent: str
    turn: str
    label: str
    since: float
    seen: float
    tool: str = ""
    doing: str = ""
    is_alive: "bool | None" = None


class RecordedSession(Value):
    """One agent's conversation in a project. Times are seconds since 1970.

    `label` is that of its newest turn. It is `running` in the middle of a turn while its process is
    alive; `now` is that turn, also if nobody can tell whether the process is. `paused` is since
    when its calls are refused. One that `is_gone` has not ended, but its process has.
    """

    id: str
    agent: str
    own_id: str
    title: str
    author: str
    started: float
    seen: float
    ended: "float | None"
    turns: int
    running: bool
    label: str = ""
    now: "RunningSession | None" = None
    paused: "float | None" = None
    is_gone: bool = False


class RecordedStep(Value):
    """One tool call or phase inside a turn; `changes` are those of its own deltas.

    `input` is what the tool was given, `output` what it said: masked, cut where they are long, and
    kept as long as files are. What is unknown is empty, or None.
    """

    id: str
    parent: str
    tool: str
    kind: str
    summary: str
    raw_paths: "tuple[bytes, ...]"
    status: str
    started: float
    ended: "float | None"
    background: bool = False
    changes: "tuple[Change, ...]" = ()
    cwd: str = ""
    input: "Json" = None
    output: "str | None" = None
    exit_code: "int | None" = None
    model: str = ""
    permission_mode: str = ""
    agent_version: str = ""

    @property
    def paths(self) -> "tuple[str, ...]":
        """The paths, as text."""
        return tuple(map(path_text, self.raw_paths))


class Relapse(Value):
    """A turn brought back `lines` of the `taken` lines that a restore had taken back.

    `prompt` and `because` are those of the restore: what was asked for then, and why it went back.
    """

    turn: str
    restore: str
    lines: int
    taken: int
    raw_paths: "tuple[bytes, ...]"
    prompt: str = ""
    because: str = ""

    @property
    def paths(self) -> "tuple[str, ...]":
        """The paths as text, as `os.fsdecode` gives them."""
        return tuple(map(path_text, self.raw_paths))


class RecordedPlanStep(Value):
    """A step of a plan of work: a turn, with its id and its label.

    `key` is what the program calls the step, `result` what it kept of it. `status` is that of the
    step: `running`, `done`, `failed`, or `undone` if it was taken back, by the plan or by anybody.
    `lesson` is the id of the one that its failure taught.
    """

    id: str
    plan: str
    label: str
    key: str
    status: str
    databases: bool = False
    result: "Json" = None
    lesson: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it was done, and stands."""
        return self.status == DONE


class RecordedPlan(Value):
    """A plan of work and its steps, the oldest first. Times are seconds since 1970.

    `own_id` is what the program calls it. `status` is `running`, `done`, `failed` or `interrupted`.
    """

    id: str
    own_id: str
    label: str
    session: str
    status: str
    started: float
    ended: "float | None"
    steps: "tuple[RecordedPlanStep, ...]" = ()


class RecordedTurn(Value):
    """One prompt and everything it caused.

    `changes` are the turn's own, folded over its steps: what is as it was before is not among
    them. `shared` may be its own or that of the turns in `shared_with`; `is_shared_undone` tells
    that it was taken back since, with one of them. `files`, `added` and `removed` sum up
    `changes`; `uncounted` tells of how many files the lines were not counted. `left_out` is
    what appeared in the turn and is not covered; `losses` are what it deleted or changed outside
    cover, which cannot come back. `before` and `after` are checkpoint ids.
    `git` is what happened to the user's git meanwhile, which no restore takes back.
    `outside` are files outside the project that an edit tool named. `account` is who started the
    agent, as `ana@laptop`. `undone` is the restore that took the turn back or went back over it;
    empty while it is live. `undone_in_part` is the newest undo of some of its paths that stands,
    `because` the reason that was given for either. `exit_code` is that of the command with which
    it failed. `kept` tells whether its files still are, so that it can be taken back.
    `went_back` is the turn before which somebody went back inside the
    agent to ask for this one; empty if nobody can tell how far, None if nobody did. `back` is
    the N of the `@~N` that means it; None unless it is of the current line. `unreported`: its agent
    reported no tool, so what changed meanwhile may be yours. `effects` are what its calls did
    outside the files, or tried to do. `relapses` are what it brought back that was taken back
    before. `plan` is the plan of work that it is a step of, with all its steps. `raw_rescued` are
    the paths that were saved before a command of it destroyed them; an undo brings them back.
    """

    id: str
    session: str
    agent: str
    label: str
    status: str
    started: float
    ended: "float | None"
    before: str
    after: str
    files: int
    added: int
    removed: int
    uncounted: int = 0
    changes: "tuple[Change, ...]" = ()
    shared: "tuple[Change, ...]" = ()
    left_out: "tuple[LeftOut, ...]" = ()
    losses: "tuple[Loss, ...]" = ()
    outside: "tuple[OutsideFile, ...]" = ()
    git_before: "GitState | None" = None
    git_after: "GitState | None" = None
    git: "tuple[Reason, ...]" = ()
    steps: "tuple[RecordedStep, ...]" = ()
    participants: "tuple[Captured, ...]" = ()
    account: str = ""
    undone: str = ""
    undone_in_part: str = ""
    because: str = ""
    exit_code: "int | None" = None
    kept: bool = True
    went_back: "str | None" = None
    shared_with: "tuple[Partner, ...]" = ()
    is_shared_undone: bool = False
    back: "int | None" = None
    unreported: bool = False
    effects: "tuple[Effect, ...]" = ()
    relapses: "tuple[Relapse, ...]" = ()
    plan: "RecordedPlan | None" = None
    raw_rescued: "tuple[bytes, ...]" = ()


class NextUndo(Value):
    """What a bare `undo` would take back: a turn, or a rollback if `agent` is empty.

    `kept` tells whether its files still are; if not, it cannot be taken back. `is_shared`: all that
    it did may be another session's, so that undo refuses without `--shared`.
    """

    id: str
    title: str
    agent: str
    kept: bool
    is_shared: bool = False


class Unrecorded(Value):
    """What changed since the newest checkpoint; `problem` is why nobody could look.

    `undo` is what a bare undo would take back; None if there is nothing. `raw_marked` are files
    that still hold the conflict markers of a restore.
    """

    changes: "tuple[Change, ...]" = ()
    problem: "Reason | None" = None
    undo: "NextUndo | None" = None
    raw_marked: "tuple[bytes, ...]" = ()


class NamedCheckpoint(Value):
    """A name, the id of the checkpoint that it means, and when it was given.

    `kept` tells whether the files of the checkpoint still are.
    """

    name: str
    checkpoint: str
    at: float
    kept: bool


class ListedCheckpoint(Value):
    """A checkpoint in a list: what it is called, and what it was made for.

    `restore` is the one that ended in it; `pinned` tells whether somebody keeps it.
    """

    checkpoint: "Checkpoint"
    kept: bool
    pinned: bool
    restore: "RecordedRestore | None" = None


class RecordedCheckpoint(Value):
    """A checkpoint, what changed with it and who did that; for what it was taken is in it.

    `restore` is the one that it was made by, if it was; `kept` tells whether its files still are.
    """

    checkpoint: "Checkpoint"
    changes: "tuple[Change, ...]"
    restore: "RecordedRestore | None" = None
    kept: bool = True
    participants: "tuple[Captured, ...]" = ()


class RecordedRestore(Value):
    """A restore that was done: an undo, a redo or a rollback. `at` is seconds since 1970.

    `title` says what it was about, `turn` which turn it took back or put back, `because` why.
    `before` and `after` are checkpoint ids. `undone` is the restore that reversed it. `back` is as
    with turns.
    """

    id: str
    verb: str
    title: str
    at: float
    turn: str
    before: str
    after: str
    partial: bool
    because: str
    undone: str
    back: "int | None" = None


class PathHistory(Value):
    """A path that the log is about: a file, or a folder with everything below it.

    `raw_names` are names that the file had before, `raw_renamed_to` is the one that it got since.
    `yours` counts the checkpoints with which you changed it; `is_there` tells whether it is now,
    `left_out` why it is not covered, so that nobody knows who changed it; else it is empty.
    """

    raw_path: bytes
    is_folder: bool = False
    raw_names: "tuple[bytes, ...]" = ()
    raw_renamed_to: "bytes | None" = None
    yours: int = 0
    is_there: bool = True
    left_out: str = ""

    def covers(self, path: bytes) -> bool:
        """Whether a path is this one, by any of its names, or below it."""
        if self.is_folder and (not self.raw_path or path.startswith(self.raw_path + b"/")):
            return True
        return path == self.raw_path or path in self.raw_names


class Log(Value):
    """Turns, newest first, and where one is: the newest checkpoint's id, and when it was made.

    `yours` counts the paths that you changed since the newest turn, as far as a checkpoint saw
    it. `more` tells that there are older turns. `restores` are the live rollbacks since the
    oldest turn that is listed, newest first, or all restores. `undone` counts the turns that
    are not listed because they were taken back. `names` are the newest names of checkpoints since
    the oldest turn that is listed. `paths` are those that the log was asked for.
    """

    here: str
    turns: "tuple[RecordedTurn, ...]"
    more: bool
    made: "float | None" = None
    yours: int = 0
    restores: "tuple[RecordedRestore, ...]" = ()
    undone: int = 0
    names: "tuple[NamedCheckpoint, ...]" = ()
    paths: "tuple[PathHistory, ...]" = ()
