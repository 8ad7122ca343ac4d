"""What the log says: sessions, turns, steps, and whose change is whose."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import Checkpoint, LeftOut, OutsideFile


class Author:
    """Who made a change: one step, *you* (a person, an editor, another program), or shared.

    `how` says how it is known: the step named the path, or it happened in the window of a
    shell, or of a turn that reports no steps. `sessions` are those that share a change.
    """

    __slots__ = ("how", "session", "sessions", "step", "turn", "who")

    def __init__(
        self,
        who: str,
        *,
        session: str = "",
        turn: str = "",
        step: str = "",
        how: str = "",
        sessions: "tuple[str, ...]" = (),
    ) -> None:
        self.who = who
        self.session = session
        self.turn = turn
        self.step = step
        self.how = how
        self.sessions = sessions

    def _key(self) -> "tuple[object, ...]":
        return self.who, self.session, self.turn, self.step, self.how, self.sessions

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Author) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Author{self._key()!r}"


class Change:
    """What happened to one path.

    `added` and `removed` count lines; None where there are none to count (binary, links,
    folders) or nobody counted. `origin` is the path that a renamed file had before.
    """

    __slots__ = ("added", "author", "origin", "path", "removed", "verb")

    def __init__(
        self,
        path: bytes,
        verb: str,
        *,
        author: Author,
        added: "int | None" = None,
        removed: "int | None" = None,
        origin: "bytes | None" = None,
    ) -> None:
        self.path = path
        self.verb = verb
        self.author = author
        self.added = added
        self.removed = removed
        self.origin = origin

    def __repr__(self) -> str:
        return f"Change({self.path!r}, {self.verb!r}, {self.author!r})"


class GitState:
    """What the user's git looked like: `branch` is None when HEAD is detached."""

    __slots__ = ("branch", "head", "index")

    def __init__(self, branch: "str | None", head: "str | None", index: "str | None") -> None:
        self.branch = branch
        self.head = head
        self.index = index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GitState):
            return NotImplemented
        return (self.branch, self.head, self.index) == (other.branch, other.head, other.index)

    def __hash__(self) -> int:
        return hash((self.branch, self.head, self.index))

    def __repr__(self) -> str:
        return f"GitState({self.branch!r}, {self.head!r}, {self.index!r})"


class RecordedSession:
    """One agent's conversation in a project. Times are seconds since 1970.

    `label` is that of its newest turn. One that neither runs nor has ended was interrupted.
    """

    __slots__ = (
        "agent",
        "author",
        "ended",
        "id",
        "label",
        "own_id",
        "running",
        "seen",
        "started",
        "title",
        "turns",
    )

    def __init__(
        self,
        *,
        id: str,
        agent: str,
        own_id: str,
        title: str,
        author: str,
        started: float,
        seen: float,
        ended: "float | None",
        turns: int,
        running: bool,
        label: str = "",
    ) -> None:
        self.id = id
        self.label = label
        self.agent = agent
        self.own_id = own_id
        self.title = title
        self.author = author
        self.started = started
        self.seen = seen
        self.ended = ended
        self.turns = turns
        self.running = running

    def __repr__(self) -> str:
        return f"RecordedSession({self.id!r}, {self.agent!r})"


class RecordedStep:
    """One tool call or phase inside a turn; `changes` are those of its own deltas."""

    __slots__ = (
        "background",
        "changes",
        "ended",
        "id",
        "kind",
        "parent",
        "paths",
        "started",
        "status",
        "summary",
        "tool",
    )

    def __init__(
        self,
        *,
        id: str,
        parent: str,
        tool: str,
        kind: str,
        summary: str,
        paths: "tuple[bytes, ...]",
        status: str,
        started: float,
        ended: "float | None",
        background: bool = False,
        changes: "tuple[Change, ...]" = (),
    ) -> None:
        self.id = id
        self.parent = parent
        self.tool = tool
        self.kind = kind
        self.summary = summary
        self.paths = paths
        self.status = status
        self.started = started
        self.ended = ended
        self.background = background
        self.changes = changes

    def __repr__(self) -> str:
        return f"RecordedStep({self.id!r}, {self.tool!r}, {self.status!r})"


class RecordedTurn:
    """One prompt and everything it caused.

    `changes` are the turn's own, folded over its steps: what is as it was before is not among
    them. `shared` may be its own or another session's. `files`, `added` and `removed` sum up
    `changes`; `uncounted` tells of how many files the lines were not counted. `left_out` is
    what appeared in the turn and is not covered. `before` and `after` are checkpoint ids.
    `outside` are files outside the project that an edit tool named. `account` is who started the
    agent, as `ana@laptop`. `undone` is the restore that took the turn back or went back over it;
    empty while it is live. `kept` tells whether its files still are, so that it can be taken back.
    `went_back` is the turn before which somebody went back inside the
    agent to ask for this one; empty if nobody can tell how far, None if nobody did.
    """

    __slots__ = (
        "account",
        "added",
        "after",
        "agent",
        "before",
        "changes",
        "ended",
        "files",
        "git_after",
        "git_before",
        "id",
        "kept",
        "label",
        "left_out",
        "outside",
        "removed",
        "session",
        "shared",
        "started",
        "status",
        "steps",
        "uncounted",
        "undone",
        "went_back",
    )

    def __init__(
        self,
        *,
        id: str,
        session: str,
        agent: str,
        label: str,
        status: str,
        started: float,
        ended: "float | None",
        before: str,
        after: str,
        files: int,
        added: int,
        removed: int,
        uncounted: int = 0,
        changes: "tuple[Change, ...]" = (),
        shared: "tuple[Change, ...]" = (),
        left_out: "tuple[LeftOut, ...]" = (),
        outside: "tuple[OutsideFile, ...]" = (),
        git_before: "GitState | None" = None,
        git_after: "GitState | None" = None,
        steps: "tuple[RecordedStep, ...]" = (),
        account: str = "",
        undone: str = "",
        kept: bool = True,
        went_back: "str | None" = None,
    ) -> None:
        self.id = id
        self.kept = kept
        self.account = account
        self.undone = undone
        self.went_back = went_back
        self.session = session
        self.agent = agent
        self.label = label
        self.status = status
        self.started = started
        self.ended = ended
        self.before = before
        self.after = after
        self.files = files
        self.added = added
        self.removed = removed
        self.uncounted = uncounted
        self.changes = changes
        self.shared = shared
        self.left_out = left_out
        self.outside = outside
        self.git_before = git_before
        self.git_after = git_after
        self.steps = steps

    def __repr__(self) -> str:
        return f"RecordedTurn({self.id!r}, {self.label!r}, {self.status!r})"


class RecordedCheckpoint:
    """A checkpoint, what changed with it and who did that; for what it was taken is in it.

    `restore` is the one that it was made by, if it was; `kept` tells whether its files still are.
    """

    __slots__ = ("changes", "checkpoint", "kept", "restore")

    def __init__(
        self,
        checkpoint: "Checkpoint",
        changes: "tuple[Change, ...]",
        restore: "RecordedRestore | None" = None,
        *,
        kept: bool = True,
    ) -> None:
        self.kept = kept
        self.checkpoint = checkpoint
        self.changes = changes
        self.restore = restore

    def __repr__(self) -> str:
        return f"RecordedCheckpoint({self.checkpoint!r})"


class RecordedRestore:
    """A restore that was done: an undo, a redo or a rollback. `at` is seconds since 1970.

    `title` says what it was about, `turn` which turn it took back or put back, `because` why.
    `before` and `after` are checkpoint ids. `undone` is the restore that reversed it.
    """

    __slots__ = (
        "after",
        "at",
        "because",
        "before",
        "id",
        "partial",
        "title",
        "turn",
        "undone",
        "verb",
    )

    def __init__(
        self,
        *,
        id: str,
        verb: str,
        title: str,
        at: float,
        turn: str,
        before: str,
        after: str,
        partial: bool,
        because: str,
        undone: str,
    ) -> None:
        self.id = id
        self.verb = verb
        self.title = title
        self.at = at
        self.turn = turn
        self.before = before
        self.after = after
        self.partial = partial
        self.because = because
        self.undone = undone

    def __repr__(self) -> str:
        return f"RecordedRestore({self.id!r}, {self.verb!r}, {self.title!r})"


class Log:
    """Turns, newest first, and where one is: the newest checkpoint's id, and when it was made.

    `yours` counts the paths that you changed since the newest turn, as far as a checkpoint saw
    it. `more` tells that there are older turns. `restores` are the live rollbacks since the
    oldest turn that is listed, newest first, or all restores. `undone` counts the turns that
    are not listed because they were taken back.
    """

    __slots__ = ("here", "made", "more", "restores", "turns", "undone", "yours")

    def __init__(
        self,
        here: str,
        turns: "tuple[RecordedTurn, ...]",
        *,
        more: bool,
        made: "float | None" = None,
        yours: int = 0,
        restores: "tuple[RecordedRestore, ...]" = (),
        undone: int = 0,
    ) -> None:
        self.here = here
        self.turns = turns
        self.more = more
        self.made = made
        self.yours = yours
        self.restores = restores
        self.undone = undone
