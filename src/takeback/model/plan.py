"""A plan: what a restore would do, as a value one can look at first; and the report of one."""

from hashlib import sha256

from takeback.model.reasons import Action
from takeback.model.tree import FOLDER, LINK
from takeback.model.value import Value, path_text
from takeback.model.words import MINUTES, REDO, ROLLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from takeback.model.beyond.effects import Effect
    from takeback.model.beyond.losses import Loss
    from takeback.model.beyond.participants import Move
    from takeback.model.history import RunningSession
    from takeback.model.reasons import Reason
    from takeback.model.tree import Entry

    Decisions = Mapping[Any, str]
    """What was decided: the keys are paths, or a path and the index of a hunk of it."""


_LONGEST = 60


def called(title: str, *, is_turn: bool) -> str:
    """A turn by its prompt, on one line; or a rollback by where it went."""
    line = " ".join(title[: _LONGEST * 8].split())
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1] + "…"
    return f'"{line}"' if is_turn else f"the rollback to {line}"


class PlannedChange(Value):
    """What would be done at one path; `before` is what is there, `after` what shall be.

    `whose` tells whose change goes with it, `how` how that is known, as with `Author`. `along`
    says with what it goes, if nobody named it; `merged` with whose changes it is put together.
    `outside` tells that the file is not in the project: then its path is whole.
    """

    raw_path: bytes
    verb: str
    before: "Entry | None"
    after: "Entry | None"
    whose: "tuple[str, ...]" = ()
    how: str = ""
    along: "Reason | None" = None
    merged: "Reason | None" = None
    outside: bool = False
    hunks: "tuple[Hunk, ...]" = ()

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Remark(Value):
    """A path, and why it conflicts, stays, or is left alone."""

    raw_path: bytes
    reason: "Reason"

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


class Hunk(Value):
    """Lines that a turn changed: as it left them, as they are now, as they were before.

    `index` counts the hunks of a path, `line` is where it begins in the file as it is now. Somebody
    has to decide about it if it `clashes`: others changed the same lines since. `marker` counts the
    lines above it in the text with markers, if it is there.
    """

    index: int
    line: int
    base: "tuple[bytes, ...]" = ()
    ours: "tuple[bytes, ...]" = ()
    theirs: "tuple[bytes, ...]" = ()
    clashes: bool = False
    marker: int = -1


class Conflict(Remark):
    """A path that somebody changed since: as it was left, as it is now, as it was before.

    `hunks` are the places of a text about which somebody has to decide; what is no text is decided
    as a whole. `marked` is the text with both versions of these places.
    """

    base: "Entry | None" = None
    ours: "Entry | None" = None
    theirs: "Entry | None" = None
    marked: "bytes | None" = None
    hunks: "tuple[Hunk, ...]" = ()


class Left(Value):
    """What an undo leaves of a turn at a path, in the change that ends with the checkpoint `last`.

    `blocks` are the lines that are left, as the change left them and as they were before; None is
    all of it. `why` is one of `OPEN`, `SETTLED`, `EARLIER`, `GONE`, `FORCED`,
    `NAME`.
    """

    raw_path: bytes
    turn: int
    last: int
    why: str
    blocks: "tuple[tuple[int, int, int, int], ...] | None" = None

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)


OPEN, SETTLED, EARLIER = "open", "settled", "earlier"
"""Why something of a turn is left: to be decided later, kept, or kept in an older undo."""
GONE, FORCED, NAME = "gone", "forced", "name"
"""Others changed or removed it since; it is not left, but was taken over what others changed; only
the name is left, for others renamed the file once more, and its content was taken.
"""


class Dependent(Value):
    """A later turn that builds on what is taken back, and the paths where it does."""

    id: str
    title: str
    agent: str
    raw_paths: "tuple[bytes, ...]" = ()

    @property
    def paths(self) -> "tuple[str, ...]":
        """The paths, as text."""
        return tuple(map(path_text, self.raw_paths))


class Plan(Value):
    """What a restore would do, and the tree it was made for: applied to another it is refused.

    `turns` are the turns that are taken back or put back, the newest first, `restore` the rollback
    that is taken back or the undo that is; a rollback has neither. `dependents` are later turns
    that build on what is taken back. `is_newest` tells that it is the one that a bare
    `undo` or `redo` means. `conflicts` are paths that
    others changed since: nothing is done until somebody decides. `kept` stay because they are not
    part of what is taken back, `skipped` because nobody knows what they held, `shared` because they
    may be somebody else's. `losses` were not covered, so they do not come back with what is taken
    back. `doubts` need consent; `stays` is what no restore takes back. `goal` is
    what a rollback goes back to as the log keeps it: `before ID`, `after ID`, or nothing. `left` is
    what an undo leaves of its turns; `raw_took` what it took, if only some paths were meant;
    `partly` the turns of which something is left to be decided later: they stay live. `anew` tells
    that also what was kept before was decided. `marked` are files among these that
    hold conflict markers of an earlier restore. `took_shared` says what goes along of what its
    turns share (`ledger/undo_stack`). `running` are sessions in the middle of a turn whose files it
    changes. `effects` were done outside and stay, too. `moves` are what is done beside the files,
    and what stays of it; `cursor` is the event at whose coordinate a rollback finds that. `only`
    says what may move, if not everything. `id` is the plan's own: by it any process can apply it.
    """

    verb: str
    base: str
    target: str
    title: str
    changes: "tuple[PlannedChange, ...]"
    turns: "tuple[str, ...]" = ()
    restore: str = ""
    is_newest: bool = False
    conflicts: "tuple[Conflict, ...]" = ()
    kept: "tuple[Remark, ...]" = ()
    skipped: "tuple[Remark, ...]" = ()
    shared: "tuple[Remark, ...]" = ()
    losses: "tuple[Loss, ...]" = ()
    dependents: "tuple[Dependent, ...]" = ()
    doubts: "tuple[Reason, ...]" = ()
    stays: "tuple[Reason, ...]" = ()
    covers: "tuple[str, ...]" = ()
    goal: str = ""
    passed_over: int = 0
    raw_paths: "tuple[bytes, ...]" = ()
    session: str = ""
    agent: str = ""
    left: "tuple[Left, ...]" = ()
    raw_took: "tuple[tuple[bytes, int], ...]" = ()
    partly: "tuple[str, ...]" = ()
    raw_marked: "tuple[bytes, ...]" = ()
    anew: bool = False
    id: str = ""
    took_shared: int = 0
    running: "tuple[RunningSession, ...]" = ()
    effects: "tuple[Effect, ...]" = ()
    moves: "tuple[Move, ...]" = ()
    cursor: int = 0
    only: "tuple[str, ...]" = ()

    @property
    def turn(self) -> str:
        """The turn that is taken back or put back; the newest, if they are several."""
        return self.turns[0] if self.turns else ""

    @property
    def entry(self) -> str:
        """The id of what is taken back or put back; empty for a rollback."""
        return self.turn or self.restore

    @property
    def called(self) -> str:
        """What is taken back, put back or gone back to, as one calls it in a sentence."""
        if self.verb == ROLLBACK:
            return self.title
        more = len(self.turns) - 1
        others = f" and {more:,} more {'turn' if more == 1 else 'turns'}" if more > 0 else ""
        return called(self.title, is_turn=bool(self.turn)) + others

    @property
    def is_clean(self) -> bool:
        """Whether nobody has to decide anything."""
        return not self.conflicts and not self.doubts

    @property
    def paths(self) -> "tuple[str, ...]":
        """The paths, as text."""
        return tuple(map(path_text, self.raw_paths))

    @property
    def marked(self) -> "tuple[str, ...]":
        """The files that hold conflict markers, as text."""
        return tuple(map(path_text, self.raw_marked))

    @property
    def took(self) -> "tuple[tuple[str, int], ...]":
        """What it took, with paths as text."""
        return tuple((path_text(path), number) for path, number in self.raw_took)


class Description(Value):
    """What a plan is made of: enough to make it again, in another process.

    `refs` are what is taken back, put back or gone back to; none means the newest. `decide` is what
    was decided about conflicts, for all of them, by path, or by path and hunk. `by_hunk` lets the
    plan name the hunks of every text that it changes. It can be applied for some `minutes`. `only`
    says what may move, if not everything; `cursor` at which coordinate a rollback finds what is
    not in the files, if that is known.
    """

    verb: str
    refs: "tuple[str, ...]" = ()
    session: "str | None" = None
    whole_session: str = ""
    paths: "tuple[bytes, ...]" = ()
    decide: "str | Decisions" = ""
    shared: bool = False
    by_hunk: bool = False
    only: "tuple[str, ...]" = ()
    cursor: int = 0
    minutes: int = MINUTES

    def resolved(self, plan: Plan) -> "Description":
        """The same with ids for words, times and the newest, so that it means the same later."""
        refs, same = self._ids(plan), self.replace(paths=plan.raw_paths, cursor=plan.cursor)
        return same.replace(refs=refs, session=None, whole_session="") if refs else same

    def _ids(self, plan: Plan) -> "tuple[str, ...]":
        if self.verb == ROLLBACK:
            side, _, id = plan.goal.partition(" ")
            return (f"{id}-" if side == "before" else id or plan.target,)
        if self.verb == REDO:
            # Several turns are put back together only as what one undo took.
            return () if len(plan.turns) > 1 else (plan.target,)
        return plan.turns or ((plan.restore,) if plan.restore else ())

    @property
    def again(self) -> Action:
        """How it is planned once more."""
        session = self.whole_session or self.session
        words = [*(ref[:8] if ref.isalpha() else ref for ref in self.refs)]
        words += ["--session", session] if session else []
        words += [f"--{self.decide}"] if isinstance(self.decide, str) and self.decide else []
        words += ["--shared"] if self.shared else []
        words += ["--only", ",".join(self.only)] if self.only else []
        paths = [path_text(path) or "." for path in self.paths]
        words += ["--dry-run", *(["--", *paths] if paths else [])]
        return Action("plan-again", words=(self.verb, *words))


class Preview(Value):
    """A plan that was shown, as the ledger keeps it for some minutes.

    It is bound to `entry`, which are the ids of what it is about, and to `states`: for each path
    that it touches, what was there and what shall be, as a hash; and to `moves`.
    """

    id: str
    description: Description
    entry: "tuple[str, ...]"
    states: "Mapping[bytes, str]"
    expires: int
    moves: "tuple[tuple[str, str], ...]" = ()

    @property
    def is_bound(self) -> bool:
        """Whether it is refused if its paths moved; a whole rollback takes back that, too."""
        return self.description.verb != ROLLBACK or bool(self.description.paths)

    def moved(self, plan: Plan) -> "list[bytes]":
        """The paths at which the same plan, made now, does something else."""
        states = path_states(plan)
        paths = self.states.keys() | states.keys()
        return sorted(path for path in paths if self.states.get(path) != states.get(path))


def move_states(plan: Plan) -> "tuple[tuple[str, str], ...]":
    """What a plan does with each participant, and from which of its states."""
    return tuple((move.name, f"{move.how} {move.before} {move.token}") for move in plan.moves)


def entry_ids(plan: Plan) -> "tuple[str, ...]":
    return (plan.target, plan.restore, *plan.turns)


def path_states(plan: Plan) -> "dict[bytes, str]":
    """What is, and what shall be, at each path that a plan touches or cannot decide; as a hash.

    Folders that are made or removed are among them: whether that can be depends on what they hold.
    """
    found = {change.raw_path: _hash(change.before, change.after) for change in plan.changes}
    for each in plan.conflicts:
        found[each.raw_path] = _hash(each.base, each.ours, each.theirs)
    return found


def _hash(*entries: "Entry | None") -> str:
    return sha256(repr([entry and _identity(entry) for entry in entries]).encode()).hexdigest()[:24]


def _identity(entry: "Entry") -> "tuple[int, int, int, bytes]":
    """What makes two entries the same; of a folder only itself counts, not what is in it."""
    if entry.reason:
        return entry.kind, entry.reason, 0, b""
    mode = 0 if entry.kind == LINK else entry.mode & 0o7777
    return entry.kind, 0, mode, b"" if entry.kind == FOLDER else entry.strong


class Report(Value):
    """A plan that was applied.

    `before` and `after` are the checkpoints around it. `kept` are paths where somebody saved
    while it ran: the newest save stays. `rescued` are saves that are in the store only. `undo` is
    the command that reverses it. `id` is empty when there was nothing to do. `problems` are
    listeners that could not be told, and programs that are not setuid again; the restore is done
    all the same. `since_preview` are the paths that changed after the preview of a whole rollback
    and went back, too. `moves` tell what became of each participant.
    """

    plan: Plan
    id: str
    before: str
    after: str
    kept: "tuple[Remark, ...]" = ()
    rescued: "tuple[Remark, ...]" = ()
    undo: str = ""
    because: str = ""
    raw_since_preview: "tuple[bytes, ...]" = ()
    problems: "tuple[Reason, ...]" = ()
    moves: "tuple[Move, ...]" = ()

    @property
    def since_preview(self) -> "tuple[str, ...]":
        """What changed since the preview, as text."""
        return tuple(map(path_text, self.raw_since_preview))
