"""Safe points: one look at the tree under the lock, then the events that say what it was for.

What changed is attributed while the windows are still open, and the caller goes on only when
both are committed.

What is recorded when turns and steps end: how, when, and what they changed in the end.

Their last changes are in the ledger by then. A step may outlive its turn; then what the turn
changed is told again with the step's end.

Turns that nobody announced: a look begins them if it finds something of theirs.
"""

import os
import time

from takeback.capture.checkpoint import Place, Request, as_value
from takeback.disk import machine
from takeback.errors import UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids, tools, words
from takeback.model.value import Value
from takeback.model.words import INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from takeback.capture.attribution import Window
    from takeback.capture.deltas import Delta
    from takeback.capture.workspace import Workspace
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow, Event
    from takeback.ledger.sessions import SessionRow, TurnRow
    from takeback.ledger.steps import StepRow
    from takeback.model.history import RunningSession
    from takeback.model.results import Checkpoint
    from takeback.model.text.json_text import Json
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress

_OUR_NAMES, _RESTORES = {"takeback", "tb"}, {"undo", "redo", "rollback", "apply"}
_NO_COMMANDS = (words.AGENT, words.EDIT)


class Ending(Value):
    """One end of several things: when it was, and the look at the tree that came with it, if any.

    `at` is when that look began, `now` when its end is recorded.
    """

    ledger: "Ledger"
    objects: "ObjectStore"
    ended: int
    seen: "Checkpoint | None"
    at: int
    now: int

    def of_turns(
        self,
        turns: "Iterable[TurnRow]",
        status: str,
        git: "Mapping[str, Json]",
        request: "str | None" = None,
    ) -> "list[NewEvent]":
        """The ends of turns; what moved in the user's git is told once, with the first."""
        facts: list[NewEvent] = []
        for row in turns:
            told = {"git": git["git"]} if facts else git
            said: dict[str, Json] = {"turn": row.id, "status": status, **told}
            said["changes"] = self._changes(row.number)
            facts.append(self._event(events.TURN_ENDED, said, row.opened, request))
        return facts

    def of_steps(
        self,
        steps: "Iterable[StepRow]",
        status: str = INTERRUPTED,
        request: "str | None" = None,
    ) -> "list[NewEvent]":
        """The ends of steps: as interrupted, if their own end never came."""
        facts = []
        for row in steps:
            said: dict[str, Json] = {"step": row.id, "status": status}
            if self.seen is not None and self.ledger.turns.is_over(row.turn):
                said["changes"] = self._changes(row.turn)
            facts.append(self._event(events.STEP_ENDED, said, row.opened, request))
        return facts

    def _changes(self, turn: int) -> "Json":
        from takeback.capture import changes  # most steps end while their turn goes on

        return changes.of_turn(self.ledger, self.objects, turn)

    def _event(
        self, kind: str, said: "dict[str, Json]", opened: int, request: "str | None"
    ) -> NewEvent:
        said["ended"] = self.ended
        parents: tuple[int, ...] = (opened,)
        if self.seen is not None:
            said |= {"checkpoint": self.seen.id, "looked": self.at}
            parents = (opened, self.seen.cursor)
        return NewEvent(kind, said, self.now, parents=parents, request=request)


def running_sessions(ledger: "Ledger") -> "list[RunningSession]":
    """The sessions in the middle of a turn, but for those whose process is known to be gone."""
    found = []
    for turn in ledger.turns.running_but_of(""):
        row = ledger.sessions.of(turn)
        running = as_running(ledger, row, turn)
        if row.ended is None and running.is_alive is not False:
            found.append(running)
    return found


def touched_sessions(
    ledger: "Ledger", turns: "Collection[str]", paths: "set[bytes]", asker: str
) -> "tuple[RunningSession, ...]":
    """The sessions in the middle of a turn to which a restore does something, unknown to them.

    It is about turns of theirs, or changes paths that they changed, or name in the turn. A session
    that asks for it, or whose program does, knows.
    """
    here, found = machine.holder(), []
    for each in running_sessions(ledger):
        row = ledger.sessions.get(each.id)
        if each.id == asker or row.holder == here:
            continue
        steps = ledger.steps.of_turn(ledger.turns.get(each.turn).number)
        if asks_itself(step for step in steps if step.closed is None and not step.background):
            continue
        named = {name for step in steps for name in step.names}
        own = (ledger.turns.find(id) for id in turns)
        if (
            any(turn is not None and turn.session == row.number for turn in own)
            or not paths.isdisjoint(named)
            or not paths.isdisjoint(ledger.deltas.paths_of_session(row.number))
        ):
            found.append(each)
    return tuple(found)


def asks_itself(steps: "Iterable[StepRow]") -> bool:
    """Whether a command of an agent, as it runs, has Takeback restore something.

    Its name alone may be that of a folder.
    """
    calls = (f"{step.tool} {step.summary}" for step in steps if step.kind not in _NO_COMMANDS)
    return any(
        not _OUR_NAMES.isdisjoint(said) and not _RESTORES.isdisjoint(said)
        for said in ("".join(c if c.isalnum() else " " for c in call).split() for call in calls)
    )


def as_running(ledger: "Ledger", row: "SessionRow", turn: "TurnRow") -> "RunningSession":
    """What a session does in a turn that has not ended."""
    from takeback.model.history import RunningSession

    process = row.process or row.holder
    open_steps = [step for step in ledger.steps.of_turn(turn.number) if step.closed is None]
    step = next((each for each in reversed(open_steps) if not each.background), None)
    return RunningSession(
        id=row.id,
        agent=row.agent,
        turn=turn.id,
        label=turn.label,
        since=turn.started / 1e9,
        seen=row.seen / 1e9,
        tool=step.tool if step is not None else "",
        doing=step.summary if step is not None else "",
        is_alive=machine.is_alive(process) if process else None,
    )


class LateTurn(Value):
    """A turn that the next look begins, if it finds something that was changed since `began`.

    Without a `label` it is called after the time and the paths. What is of an `unknown` author is
    what nobody else claims; such a turn is over with the look. `git` are facts about the user's.
    """

    id: str
    session: str
    opened: int
    began: int
    git: "Mapping[str, Json]"
    label: str = ""
    unknown: bool = False

    def window(self) -> "Window":
        from takeback.capture.attribution import TURN, Window

        return Window(
            session=self.session,
            turn=self.id,
            kind=words.UNKNOWN if self.unknown else TURN,
            opened=_NEVER_YET,
            started=self.began,
        )

    def begin(self, own: "Sequence[Delta]", before: "CheckpointRow | None") -> NewEvent:
        """Its beginning, before the look that found its `own` changes."""
        now = time.time_ns()
        stamps = [delta.time[0] for delta in own if delta.time is not None]
        began = self.began or min((s for s in stamps if now - _RECENT < s <= now), default=now)
        said: dict[str, Json] = {
            "turn": self.id,
            "session": self.session,
            "label": self.label or path_label(own, began),
            "whole": False,
            "began": began,
            "checkpoint": before.id if before is not None else None,
            **self.git,
        }
        parents = (self.opened, before.event) if before is not None else (self.opened,)
        return NewEvent(events.TURN_STARTED, said, now, parents=parents)


def path_label(own: "Sequence[Delta]", at: int) -> str:
    """What a turn without a prompt is called: the time, the busiest paths, how many files."""
    clock = time.strftime("%H:%M", time.localtime(at // 1_000_000_000))
    files = [delta.path for delta in own if delta.verb not in (words.MKDIR, words.RMDIR)]
    paths = files or [delta.path for delta in own]
    folders: dict[bytes, int] = {}
    for path in paths:
        folder = path.rpartition(b"/")[0]
        if folder:
            folders[folder] = folders.get(folder, 0) + 1
    if len(paths) <= _MOST_NAMED or not folders:
        named = ", ".join(map(os.fsdecode, paths[:_MOST_NAMED]))
        more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
        return tools.one_line(f"{clock} {named}{more}")
    busy = sorted(folders, key=lambda folder: (-folders[folder], folder))[:_MOST_NAMED]
    # A second one is named if about as much happened there.
    named = ", ".join(os.fsdecode(each) for each in busy if 2 * folders[each] > folders[busy[0]])
    return tools.one_line(f"{clock} {named}, {len(paths)} {'files' if files else 'folders'}")


_NEVER_YET = 1 << 62
"""The number of an event after all others."""
_RECENT = 24 * words.LONGEST_SILENCE
_MOST_NAMED = 2
_FORGOTTEN = 24 * words.LONGEST_SILENCE
_MOST_CLOSED = 5
"""After how long a session that nobody holds is given up, and how many are at one look."""


class SafePoints:
    """Makes checkpoints of one project, and closes what somebody left open."""

    def __init__(self, work: "Workspace") -> None:
        self._work = work

    @property
    def _ledger(self) -> "Ledger":
        return self._work.ledger

    def checkpoint(
        self,
        label: str,
        *,
        rehash: bool = False,
        progress: "Progress | None" = None,
        request: "str | None" = None,
        turn: "str | None" = None,
    ) -> "Checkpoint":
        """Make the checkpoint that somebody asked for. With the lock held."""
        known = self._ledger.requested(request)
        if known is not None:
            return self._made_before(known)
        place = self._place(turn)
        at = time.time_ns()
        self._work.participants.capture()
        has_open = self._ledger.sessions.has_open()
        dead, late = (self.dead_sessions(at), self.late_turns()) if has_open else ([], ())
        made = self._work.capture(
            Request(
                at,
                place,
                {row.id: ended for row, ended in dead},
                label=_clean(label),
                silent=False,
                request=request,
                rehash=rehash,
                progress=progress,
                late=late,
            )
        )
        self.close_dead_sessions(dead, made, at)
        self.end_late_turns(late, made, at)
        return made

    def _place(self, turn: "str | None") -> Place:
        """The turn and the step that somebody asks in: named, or the only one that it can be."""
        sessions, turns = self._ledger.sessions, self._ledger.turns
        if turn is not None:
            row = turns.get(turn)
            self._reopen_session(sessions.of(row))
        else:
            found = self._running_turns() if sessions.has_open() else []
            if len(found) != 1:
                return Place()
            row = found[0]
        steps = self._ledger.steps.of_turn(row.number)
        running = [step.id for step in steps if step.closed is None and not step.background]
        return Place(sessions.of(row).id, row.id, running[-1] if running else None)

    def _running_turns(self) -> "list[TurnRow]":
        """The turns that a command may be part of: those of this process, if it has any.

        Else those in which a shell runs, or that are a command themselves, and not for an hour
        without a word: what a user does beside them is no sign of their life.
        """
        sessions, turns = self._ledger.sessions, self._ledger.turns
        running, here = turns.running_but_of(""), machine.holder()
        own = [row for row in running if sessions.of(row).holder == here]
        if own:
            return own
        outer = turns.with_sessions_inside()
        steps = self._ledger.steps
        return [
            row
            for row in running
            if row.id not in outer
            and ((row.whole and not row.steps) or steps.running(row.id, words.SHELL))
            and sessions.of(row).seen > time.time_ns() - words.LONGEST_SILENCE
        ]

    def now(self) -> "Checkpoint":
        """The tree as it is, as a checkpoint; a new one if it changed. With the lock held."""
        return self._look(Place(), {}, time.time_ns(), boundary=True)

    def _made_before(self, event: "Event") -> "Checkpoint":
        """What an earlier call with the same request returned."""
        said = event.payload or {}
        found = self._ledger.checkpoints.with_prefix(str(said.get("checkpoint")))
        if event.kind not in (events.CHECKPOINT_TAKEN, events.CHECKPOINT_NAMED) or not found:
            raise UsageError(
                f"the request id `{event.request}` was already used",
                hint="give each request an id of its own",
            )
        new = event.kind == events.CHECKPOINT_TAKEN
        told = self._work.left_out(found[0])
        place = Place(*self._ledger.checkpoints.taken_for(event.seq))
        return as_value(found[0], new=new, cursor=event.seq, told=told, place=place)

    def _reopen_session(self, row: "SessionRow") -> None:
        """Something happens in a session: one that ended or was given up for dead goes on."""
        gone = row.holder != "" and machine.is_alive(row.holder) is False
        if gone or row.ended is not None:
            # A fork goes on with the session of the process it came from, and holds it now.
            holder = machine.holder() if row.holder else ""
            said: dict[str, Json] = {"session": row.id, "holder": holder}
            self._record(events.SESSION_RESUMED, said, (row.opened,), None)

    def _look(
        self,
        place: Place,
        closing: "Mapping[str, int]",
        at: int,
        *,
        whole: bool = True,
        late: "tuple[LateTurn, ...]" = (),
        boundary: bool = False,
    ) -> "Checkpoint":
        """Look at the tree; sessions whose process died without a word are closed with it.

        At the `boundary` of a turn all participants are captured, else those that ask for it.
        """
        self._work.participants.capture(step=not boundary)
        dead, late = self.dead_sessions(at), (*late, *self.late_turns())
        ends = {row.id: ended for row, ended in dead}
        request = Request(at, place, {**ends, **closing}, late=late, whole=whole or bool(dead))
        seen = self._work.checkpoint_if_changed(request)
        self.close_dead_sessions(dead, seen, at)
        self.end_late_turns(late, seen, at)
        return seen

    def late_turns(self) -> "tuple[LateTurn, ...]":
        """The turn of an unknown author that a look may begin, while somebody watches the tree."""
        for row in self._ledger.sessions.held():
            if row.agent == words.UNKNOWN and machine.is_alive(row.holder):
                is_on = self._work.rules.is_recording()
                return (self._late_turn(row, unknown=True),) if is_on else ()
        return ()

    def _late_turn(
        self,
        row: "SessionRow",
        *,
        label: str = "",
        began: int = 0,
        git: "Mapping[str, Json] | None" = None,
        unknown: bool = False,
    ) -> LateTurn:
        id, git = ids.from_entropy(os.urandom(8)), git or {"git": self._work.git_known()}
        return LateTurn(id, row.id, row.opened, began, git, label=label, unknown=unknown)

    def end_late_turns(self, late: "tuple[LateTurn, ...]", seen: "Checkpoint", at: int) -> None:
        """End the turns that a look began and that were over by then."""
        begun = (self._ledger.turns.find(turn.id) for turn in late if turn.unknown)
        rows = [row for row in begun if row is not None]
        if rows:
            facts = self._ending(at, seen, at).of_turns(rows, words.DONE, self._work.git_facts())
            self._conclude(facts, at, at, turns=[row.number for row in rows])

    def dead_sessions(self, at: int) -> "list[tuple[SessionRow, int]]":
        """Sessions that nobody will end, each with the time at which it is taken to have ended.

        Their process is gone; or nobody can tell, and nothing was heard of them for a day. Hooks
        end no session whose agent was killed, and each would cost every later look a little.
        """
        gone = self._ledger.sessions.silent(at - _FORGOTTEN, _MOST_CLOSED)
        for row in self._ledger.sessions.held():
            is_alive = machine.is_alive(row.holder)
            if is_alive is False or (is_alive is None and row.seen < at - _FORGOTTEN):
                gone.append(row)
        return [(row, min(at, row.seen + words.LONGEST_SILENCE)) for row in gone]

    def close_dead_sessions(
        self, dead: "list[tuple[SessionRow, int]]", seen: "Checkpoint", at: int
    ) -> None:
        """Close what dead sessions left open, as interrupted."""
        facts = []
        for row, ended in dead:
            facts += self._all_ended(row, ended, seen, at)
            said: dict[str, Json] = {"session": row.id, "ended": ended}
            over = NewEvent(events.SESSION_ENDED, said, time.time_ns(), parents=(row.opened,))
            facts.append(over)
        if facts:
            self._conclude(facts, at, sessions=[(row.number, ended) for row, ended in dead])

    def _conclude(
        self,
        facts: "Sequence[NewEvent]",
        at: int,
        ended: int = 0,
        *,
        turns: "Sequence[int]" = (),
        steps: "Sequence[int]" = (),
        sessions: "Sequence[tuple[int, int]]" = (),
    ) -> None:
        """Record ends, and before them how steps that end left the files outside that they named.

        Turns and steps come with when they `ended`, sessions with a time each.
        """
        waiting = []
        if self._ledger.outside.any_waiting():
            found = self._ledger.outside.waiting(turns=turns, steps=steps)
            waiting = [(row, ended) for row in found]
            for number, when in sessions:
                found = self._ledger.outside.waiting(session=number)
                waiting += [(row, when) for row in found]
        if waiting:
            self._work.outside().end(waiting, at, facts)
        else:
            self._ledger.record(*facts)

    def _record(
        self, kind: str, said: "dict[str, Json]", parents: "tuple[int, ...]", request: "str | None"
    ) -> None:
        now = time.time_ns()
        self._ledger.record(NewEvent(kind, said, now, parents=parents, request=request))

    def _ending(self, ended: int, seen: "Checkpoint | None", at: int) -> "Ending":
        objects, now = self._work.objects, time.time_ns()
        return Ending(self._ledger, objects, ended=ended, seen=seen, at=at, now=now)

    def _all_ended(
        self, session: "SessionRow", ended: int, seen: "Checkpoint", at: int
    ) -> "list[NewEvent]":
        """What is recorded of all that a session leaves open when it ends."""
        ending = self._ending(ended, seen, at)
        running = self._ledger.turns.running(session.number)
        late = self._ledger.steps.late(session.number, background=True)
        git = self._work.git_facts() if running else {"git": None}
        turns = ending.of_turns(running, words.INTERRUPTED, git)
        return turns + ending.of_steps(late)


def facts_of(seen: "Checkpoint", at: int) -> "dict[str, Json]":
    """What an event says of the look that it was recorded with."""
    return {"checkpoint": seen.id, "looked": at}


def _clean(label: str) -> str:
    """A label as text that can be stored and shown; the command line may hold any bytes."""
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in label)
