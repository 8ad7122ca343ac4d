"""What one turn or one checkpoint consists of: changes with their authors, steps, left out.

What the log says, as values: turns and sessions, newest first.

Everything here reads one moment of the ledger and costs what it shows: rows are found by their
keys or by an index, never by looking at all of them.
"""

from itertools import islice

from takeback.capture.checkpoint import Place, as_value
from takeback.capture.safe_points import as_running
from takeback.disk import machine
from takeback.effects import effect_log
from takeback.errors import DamagedStoreError
from takeback.history import references, retention
from takeback.history.shared import SharedChanges
from takeback.ledger import outside
from takeback.ledger.database import Chosen
from takeback.ledger.journal import ALL_SESSIONS
from takeback.ledger.log import events
from takeback.model import words
from takeback.model.history import (
    Author,
    Change,
    ListedCheckpoint,
    Log,
    NamedCheckpoint,
    RecordedRestore,
    RecordedSession,
    RecordedStep,
    RecordedTurn,
)
from takeback.model.reasons import Action
from takeback.model.results import LeftOut, OutsideFile
from takeback.model.tree import judge
from takeback.model.words import FAILED, INTERRUPTED, MKDIR, RMDIR, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from typing import Any

    from takeback.effects.saved.of_turn import SavedOfTurn
    from takeback.history.lookup import Past
    from takeback.ledger.checkpoints import DeltaRow, NamedDelta
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.sessions import ChangeRow, SessionRow, TurnRecord
    from takeback.ledger.steps import StepRow
    from takeback.ledger.undo_stack import RestoreRow
    from takeback.model.beyond.losses import Loss
    from takeback.model.history import Change
    from takeback.model.reasons import Reason
    from takeback.model.text.json_text import Json

_ABOUT = ("cwd", "model", "permission_mode", "agent_version")


class Sound:
    """Turns what goes wrong with values of the wrong kind into damage: a flipped bit makes them."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, TypeError | ValueError | AttributeError):
            raise DamagedStoreError(
                f"a row of the log holds values of the wrong kind: {problem}",
                hint=(Action("doctor"), Action("rebuild")),
            ) from problem


class Turn:
    """Looks up what belongs to one turn."""

    def __init__(self, ledger: "Ledger", number: int, id: str, session: str) -> None:
        self._ledger = ledger
        self._number = number
        self._id = id
        self._session = session

    def changes(self) -> "tuple[Change, ...]":
        """Its own changes, as its end told them."""
        return tuple(
            _change(row, self._author(row.how), added=row.added, removed=row.removed)
            for row in self._ledger.turns.changes(self._number)
        )

    def went_back(self) -> "str | None":
        """The turn before which somebody went back inside the agent; None if nobody did."""
        event = self._ledger.requested(events.rewind_request(self._id))
        return str((event.payload or {}).get("to") or "") if event is not None else None

    def so_far(self) -> "tuple[Change, ...]":
        """Its own changes while it runs; nobody has counted lines yet."""
        return fold(_change(row, self._author(row.how)) for row in self._deltas())

    def _deltas(self) -> "list[DeltaRow]":
        """What its steps changed, in the order in which they did."""
        rows = self._ledger.deltas.of_turns((self._number,))
        return sorted(rows, key=lambda row: (row.checkpoint, row.path))

    def shared(self, before: int, after: "int | None", among: SharedChanges) -> "dict[str, Any]":
        """What changed while it ran and may be its own or another session's, and with whom."""
        spans = [(self._session, before, after)]
        rows = among.ever(spans)
        if not rows:
            return {}
        changes = fold(
            _change(row, Author(words.SHARED, sessions=tuple(row.sessions.split()))) for row in rows
        )
        return {
            "shared": changes,
            "shared_with": tuple(among.partners(rows, spans)),
            "is_shared_undone": not among.standing(spans),
        }

    def exit_code(self) -> "int | None":
        """With what code the last command of it failed."""
        steps = self._ledger.steps.of_turn(self._number)
        codes = [self._payload(step.last).get("exit_code") for step in steps]
        return next((code for code in reversed(codes) if isinstance(code, int) and code), None)

    def left_out(self) -> "tuple[LeftOut, ...]":
        """What appeared by its doing and is not covered."""
        rows = self._ledger.deltas.left_out((self._number,))
        found = {row.path: LeftOut(_path(row.path), _text(row.origin)) for row in rows}
        return tuple(found.values())

    def losses(self, changes: "Iterable[Change]") -> "tuple[Loss, ...]":
        """What it deleted or changed outside cover.

        What it made unreadable first was covered until then, and is among its changes.
        """
        found = self._ledger.losses.of_turns((self._number,))
        shut, paths = words.word(words.UNREADABLE), {change.raw_path for change in changes}
        return tuple(loss for loss in found if loss.reason != shut or loss.raw_path not in paths)

    def outside(self) -> "tuple[OutsideFile, ...]":
        """What its edit tools named outside the project: what was done, or why nobody knows."""
        rows = self._ledger.outside.of_turns((self._number,))
        found = {row.path: OutsideFile(row.path, reason=row.reason) for row in rows if row.reason}
        for path, runs in outside.runs(rows).items():
            changed = judge(path, runs[-1][0], runs[0][1])
            found[path] = OutsideFile(path, changed.verb if changed is not None else words.WRITE)
        return tuple(found[path] for path in sorted(found))

    def steps(self, *, interrupted: bool) -> "tuple[RecordedStep, ...]":
        """Its steps in their order, each with its own changes."""
        found: dict[int | None, list[Change]] = {}
        for delta in self._deltas():
            found.setdefault(delta.step, []).append(_change(delta, self._author(delta.how)))
        steps = self._ledger.steps.of_turn(self._number)
        names = {step.number: step.id for step in steps}
        return tuple(
            RecordedStep(
                id=step.id,
                parent=self._parent(step, names),
                tool=step.tool,
                kind=step.kind,
                summary=step.summary,
                raw_paths=step.names,
                status=words.INTERRUPTED
                if interrupted and step.status == words.RUNNING
                else step.status,
                started=step.started / 1e9,
                ended=_seconds(step.ended),
                background=bool(step.background),
                changes=fold(found.get(step.number, ())),
                **self._details(step.first, step.last),
            )
            for step in steps
        )

    def _parent(self, step: "StepRow", names: "dict[int, str]") -> str:
        if step.parent is None:
            return ""
        return names.get(step.parent) or self._ledger.steps.id_of(step.parent)

    def _details(self, first: int, last: "int | None") -> "dict[str, Any]":
        """What the events at the beginning and the end of a step say."""
        begun, over = self._payload(first), self._payload(last)
        given, said = (self._ledger.detail(event or 0) or {} for event in (first, last))
        words = {key: str(begun.get(key, "")) for key in _ABOUT}
        code = over.get("exit_code")
        return {
            **words,
            "input": given.get("input"),
            "output": said.get("output"),
            "exit_code": code if isinstance(code, int) else None,
        }

    def _payload(self, seq: "int | None") -> "Mapping[str, Json]":
        event = self._ledger.event(seq) if seq is not None else None
        return event.payload or {} if event is not None else {}

    def _author(self, how: str) -> Author:
        return Author(words.STEP, session=self._session, turn=self._id, how=how)


def of_checkpoint(ledger: "Ledger", row: "CheckpointRow") -> "tuple[Change, ...]":
    """What changed between a checkpoint and the one before, and who did it."""
    with Sound():
        return tuple(
            _change(each, _author_of(each)) for each in ledger.deltas.of_checkpoint(row.number)
        )


def _author_of(row: "NamedDelta") -> Author:
    return Author(
        row.who,
        session=row.session or "",
        turn=row.turn or "",
        step=row.step or "",
        how=row.how,
        sessions=tuple(row.sessions.split()),
    )


def fold(changes: "Iterable[Change]") -> "tuple[Change, ...]":
    """Changes in their order as one per path; what was made and removed again is none."""
    found: dict[bytes, Change] = {}
    for change in changes:
        before = found.pop(change.raw_path, None)
        verb = _joined(before.verb, change.verb) if before is not None else change.verb
        if not verb:
            continue
        origin = (
            before.raw_origin if before is not None and before.raw_origin else change.raw_origin
        )
        found[change.raw_path] = Change(
            change.raw_path, verb, author=change.author, raw_origin=origin
        )
    for path, change in list(found.items()):
        # A renamed file is one change, not two.
        gone = found.get(change.raw_origin) if change.raw_origin is not None else None
        if gone is not None and (change.verb, gone.verb) == (words.CREATE, words.DELETE):
            del found[gone.raw_path]
            found[path] = Change(
                path, words.RENAME, author=change.author, raw_origin=change.raw_origin
            )
    return tuple(found[path] for path in sorted(found))


_MADE = (words.CREATE, words.MKDIR, words.RENAME)
_GONE = (words.DELETE, words.RMDIR)


def _joined(first: str, second: str) -> str:
    """Two changes of one path as one; empty if they cancel out."""
    if first in _MADE and second in _GONE:
        return ""
    if first in _MADE and second in (words.WRITE, words.MODE):
        return first
    if first in _GONE and second == words.CREATE:
        return words.WRITE
    return words.WRITE if (first, second) == (words.WRITE, words.MODE) else second


def _change(
    row: "ChangeRow | DeltaRow | NamedDelta",
    author: Author,
    *,
    added: "int | None" = None,
    removed: "int | None" = None,
) -> Change:
    came = None if row.origin is None else _path(row.origin)
    path = _path(row.path)
    return Change(path, str(row.verb), author=author, added=added, removed=removed, raw_origin=came)


def _path(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a path is not made of bytes")
    return value


def _text(reason: "bytes | None") -> str:
    return "" if reason is None else reason.decode("utf-8", "replace")


_ALL = 1 << 62


class Timeline:
    """Reads the log of one project, at one moment."""

    def __init__(self, ledger: "Ledger", now: float, root: bytes = b"") -> None:
        self._ledger = ledger
        self._root = root
        self._now = now
        self._alive: dict[str, bool] = {}
        self._floor = retention.floor(ledger)
        self._shared = SharedChanges(ledger)
        self._has_effects = ledger.effects.has_any()
        self._has_rescues = ledger.rescues.has_any()
        self._in_part: dict[int, RestoreRow] | None = None

    def log(
        self,
        *,
        limit: "int | None",
        session: "str | None" = None,
        since: "float | None" = None,
        until: "float | None" = None,
        grep: str = "",
        pasts: "Sequence[Past] | None" = None,
        all: bool = False,
        changes: bool,
        before: "str | None" = None,
    ) -> Log:
        """The newest turns: of a session, between two times, that say or touched something.

        With `before`, the id of a turn, those that are older: the next page of a list.
        """
        ledger, text = self._ledger, " ".join(grep.casefold().split())
        chosen = Chosen(
            session=None if session is None else references.session(ledger, session, self._now),
            first=0 if since is None else 1 + self._last_by(since, -1),
            last=_ALL if until is None else self._last_by(until),
            live=not all,
            among=None if pasts is None else tuple({n for past in pasts for n in past.turns}),
        )
        if before is not None:
            below = ledger.turns.get(before)
            chosen = chosen.replace(last=min(chosen.last, below.number - 1))
            until = below.started / 1e9
        most = _ALL if limit is None else limit + 1
        rows = ledger.turns.records(self._saying(chosen, text, most) if text else chosen, most)
        places = ledger.stack.places(rows[: limit or _ALL][-1].number if rows else 0)
        with Sound():
            plans = ledger.turns.plans.told_of([row.number for row in rows[:limit]])
            turns = tuple(
                self._turn(row, changes=changes).replace(
                    back=places.get(("turn", row.number)), plan=plans.get(row.number)
                )
                for row in rows[:limit]
            )
        newest = ledger.checkpoints.newest()
        more = limit is not None and len(rows) > limit
        made = None if pasts is None else {n for past in pasts for n in past.restored}
        restores = () if session else self._restores(turns, places, made, all=all, more=more)
        few = None if until is not None or text else limit
        names = () if session or pasts else self._names(turns, since, few, more=more)
        return Log(
            newest.id if newest is not None else "",
            turns,
            more=more,
            made=newest.created / 1e9 if newest is not None else None,
            yours=self._yours(),
            restores=tuple(r for r in restores if _is_by(r.at, until) and _has(text, r.because)),
            names=tuple(n for n in names if _is_by(n.at, until) and _has(text, n.name))[:limit],
            undone=0 if all or text else self._count_undone(chosen if pasts else None),
            paths=tuple(past.told for past in pasts or ()),
        )

    def _count_undone(self, chosen: "Chosen | None") -> int:
        return self._ledger.turns.count_undone(chosen and chosen.replace(live=False))

    def _last_by(self, seconds: float, more: int = 0) -> int:
        return self._ledger.turns.last_by(int(seconds * 1e9) + more) or 0

    def _saying(self, chosen: Chosen, text: str, most: int) -> Chosen:
        """Those turns whose prompt, or the reason for whose undo, has a text; so many at most."""
        labels = self._ledger.turns.labels(chosen)
        found = (number for number, *said in labels if _has(text, str(said[0]), str(said[2])))
        return chosen.replace(among=tuple(islice(found, most)))

    def _restores(
        self,
        turns: "tuple[RecordedTurn, ...]",
        places: "Mapping[tuple[str, int], int]",
        made: "Container[int] | None",
        *,
        all: bool,
        more: bool,
    ) -> "tuple[RecordedRestore, ...]":
        """The rollbacks that belong between the turns, or all restores since the oldest of them.

        Of these only such as `made` one of some checkpoints, if that is asked.
        """
        stack, oldest = self._ledger.stack, _oldest(turns)
        rows = stack.all() if all else stack.rollbacks_since(oldest if made is None else 0)
        rows = [row for row in rows if not more or row.at >= oldest]
        rows = [row for row in rows if made is None or row.after in made]
        return tuple(
            self._restore(row).replace(back=places.get(("restore", row.number))) for row in rows
        )

    def _names(
        self,
        turns: "tuple[RecordedTurn, ...]",
        since: "float | None",
        limit: "int | None",
        *,
        more: bool,
    ) -> "tuple[NamedCheckpoint, ...]":
        """The names that were given since the oldest turn that is listed, or ever."""
        first = _oldest(turns) if more else int((since or 0) * 1e9)
        rows = self._ledger.names.since(first, _ALL if limit is None else limit)
        return tuple(
            NamedCheckpoint(row.name, row.checkpoint, row.at / 1e9, kept=not row.gone)
            for row in rows
        )

    def checkpoints(self, limit: "int | None") -> "tuple[ListedCheckpoint, ...]":
        """The newest checkpoints: those that no turn made, or that somebody named or keeps.

        Without a limit all.
        """
        ledger = self._ledger
        table = ledger.checkpoints
        rows = table.all() if limit is None else table.listed(limit)
        with Sound():
            return tuple(map(self._listed, rows))

    def _listed(self, row: "CheckpointRow") -> ListedCheckpoint:
        ledger = self._ledger
        place = Place(*ledger.checkpoints.taken_for(row.event))
        made = as_value(row, new=False, place=place)
        made = made.replace(changed=row.changed, names=tuple(ledger.names.of(row.number)))
        pinned = ledger.care.is_kept(row.number)
        restore = self.restore(row.number)
        return ListedCheckpoint(made, kept=row.gone is None, pinned=pinned, restore=restore)

    def restore(self, checkpoint: int) -> "RecordedRestore | None":
        """The newest restore that ended in a checkpoint, if one did."""
        row = self._ledger.stack.newest_to(checkpoint)
        return self._restore(row) if row is not None else None

    def _restore(self, row: "RestoreRow") -> RecordedRestore:
        ledger = self._ledger
        taken = next((n for n in (row.undone, row.covered, row.reversed) if n is not None), None)
        return RecordedRestore(
            id=row.id,
            verb=row.verb,
            title=references.of(ledger, row),
            at=row.at / 1e9,
            turn=ledger.turns.id_of(row.turn) if row.turn is not None else "",
            before=ledger.checkpoints.id_of(row.before),
            after=ledger.checkpoints.id_of(row.after),
            partial=row.partial,
            because=row.because,
            undone=ledger.stack.id_of(taken) if taken is not None else "",
        )

    def turn(self, number: int) -> RecordedTurn:
        """One turn with everything that is known of it."""
        row = self._ledger.turns.record(number)
        if row is not None:
            with Sound():
                plan = self._ledger.turns.plans.told_of([number]).get(number)
                return self._turn(row, changes=True, steps=True).replace(plan=plan)
        raise DamagedStoreError(
            "the ledger names a turn that it does not have",
            hint=Action("doctor"),
        )

    def sessions(self, limit: "int | None") -> "tuple[RecordedSession, ...]":
        """Sessions, the one that was seen last first."""
        with Sound():
            return tuple(map(self._session, self._ledger.sessions.newest(limit)))

    def _session(self, row: "SessionRow") -> RecordedSession:
        newest, paused = self._ledger.turns.newest_of(row.number), self._ledger.sessions.paused()
        is_open = newest is not None and newest.closed is None and row.ended is None
        now = as_running(self._ledger, row, newest) if newest is not None and is_open else None
        return RecordedSession(
            id=row.id,
            agent=row.agent,
            own_id=row.own_id,
            title=row.title,
            author=row.author,
            started=row.started / 1e9,
            seen=row.seen / 1e9,
            ended=_seconds(row.ended),
            turns=row.turns,
            running=now is not None and now.is_alive is True,
            label=newest.label if newest is not None else "",
            now=now,
            paused=_seconds(paused.get(row.number, paused.get(ALL_SESSIONS))),
            is_gone=row.ended is None and self._is_dead(row.process or row.holder),
        )

    def _turn(self, row: "TurnRecord", *, changes: bool, steps: bool = False) -> RecordedTurn:
        status, files, uncounted = row.status, row.files, row.uncounted
        is_running = status == RUNNING
        if is_running and row.session_ended is None and self._is_dead(row.holder):
            status = INTERRUPTED
        told = Turn(self._ledger, row.number, row.id, row.session)
        part = self._undone_in_part(row.number)
        own: tuple[Change, ...] = ()
        saved = self._saved(row.number)
        if is_running:
            # What it changed is folded when it ends; until then its deltas have to do.
            own = told.so_far()
            files = sum(1 for change in own if change.verb not in (MKDIR, RMDIR))
            uncounted = files
        elif changes:
            own = told.changes()
        losses = told.losses(own)
        effects = effect_log.of_turn(self._ledger, row.id) if self._has_effects else ()
        return RecordedTurn(
            id=row.id,
            session=row.session,
            agent=str(row.agent),
            account=str(row.account),
            label=str(row.label),
            undone=row.undone or "",
            undone_in_part="" if row.undone or part is None else part.id,
            because=row.because or ("" if row.undone or part is None else part.because),
            exit_code=told.exit_code() if status == FAILED else None,
            kept=(row.first or 0) > self._floor,
            status=status,
            started=row.started / 1e9,
            ended=_seconds(row.ended),
            before=row.before or "",
            after=row.after or "",
            files=files,
            added=row.added if not is_running else 0,
            removed=row.removed if not is_running else 0,
            uncounted=uncounted,
            changes=own,
            **told.shared(row.first or 0, row.last, self._shared),
            left_out=told.left_out(),
            losses=saved.without(losses) if saved else losses,
            outside=told.outside(),
            git_before=outside.git_state(row.git_before) if changes else None,
            git_after=outside.git_state(row.git_after) if changes else None,
            git=self._git(row),
            steps=told.steps(interrupted=status == INTERRUPTED) if steps else (),
            went_back=told.went_back(),
            effects=saved.beside(effects) if saved else effects,
            unreported=bool(files and not row.steps and self._ledger.deltas.unreported(row.number)),
            relapses=self._ledger.lessons.relapses((row.id,)),
            raw_rescued=saved.tops if saved else (),
        )

    def _saved(self, turn: int) -> "SavedOfTurn | None":
        """What was rescued while a turn ran; None if that is nothing."""
        if not self._has_rescues:
            return None
        from takeback.effects.saved.of_turn import SavedOfTurn

        found = SavedOfTurn(self._ledger, turn, self._root)
        return found if found.tops else None

    def _git(self, row: "TurnRecord") -> "tuple[Reason, ...]":
        """What happened to the user's git while a turn ran."""
        moves = self._ledger.git.moves(row.opened, row.closed)
        if not moves:
            return ()
        from takeback.model.beyond import git_changes

        state = outside.git_state(row.git_after or row.git_before)
        branch = state.branch if state is not None else None
        return tuple(git_changes.findings(git_changes.fold(moves), branch))

    def _undone_in_part(self, turn: int) -> "RestoreRow | None":
        """The newest undo that left something of a turn, and still stands."""
        if self._in_part is None:
            self._in_part = self._ledger.stack.undone_in_part()
        return self._in_part.get(turn)

    def _yours(self) -> int:
        """How many paths you changed since the newest turn began or ended, or the last rollback."""
        newest = self._ledger.turns.newest_state()
        rollback = self._ledger.stack.newest_rollback()
        if newest is None:
            return 0
        since = max(newest, rollback.after if rollback and not rollback.partial else 0)
        return self._ledger.deltas.count_yours_since(since)

    def _is_dead(self, holder: str) -> bool:
        if not holder:
            return False
        if holder not in self._alive:
            self._alive[holder] = machine.is_alive(holder) is not False
        return not self._alive[holder]


def _is_by(at: float, until: "float | None") -> bool:
    return until is None or at <= until


def _has(text: str, *said: str) -> bool:
    return any(text in " ".join(each.casefold().split()) for each in said)


def _oldest(turns: "tuple[RecordedTurn, ...]") -> int:
    return int(min((turn.started for turn in turns), default=0) * 1e9)


def _seconds(nanoseconds: "int | None") -> "float | None":
    return None if nanoseconds is None else nanoseconds / 1e9
