"""Which participants a project has, their captures, and their part of a restore.

The ledger is the coordinator of the two-phase commit: the journal names who prepares, the commit
of the restore decides, and what was decided and is not done yet is in the table `moves`.
"""

import time

from takeback.disk.sqlite import DatabaseError
from takeback.errors import InternalError, ParticipantError, TakebackError, UsageError
from takeback.ledger.beyond.participants import (
    ABORTED,
    DECIDED,
    DONE,
    DROPPED,
    FAILED,
    NOT_ABORTED,
    WAITS,
)
from takeback.ledger.journal import STAGING
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model import reasons
from takeback.model.beyond.participants import (
    AFTERWARDS,
    KINDS,
    LONGEST_TOKEN,
    MEMORY_NAME,
    MOVES,
    MUTATION_NAME,
)
from takeback.model.reasons import Action, Reason
from takeback.participants.shelf import ParticipantShelf, Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from takeback.ledger.beyond.participants import MoveRow
    from takeback.ledger.journal import Journal
    from takeback.ledger.ledger import Finish as Committed
    from takeback.ledger.ledger import Ledger
    from takeback.model.beyond.participants import Difference, Move
    from takeback.model.text.json_text import Json
    from takeback.participants.mutations import Way, Ways
    from takeback.ports import Participant
    from takeback.store import Store

    class Finish(Committed, Protocol):
        """What is committed together with the checkpoint after a restore."""

        late: bool


_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST_NAME, _LONGEST_MARK, _LONGEST_PROBLEM = 100, 4096, 500


class Participants:
    """The participants of one project, as this process reaches them. With the lock held.

    `settings` are the tables `[participants.NAME]`, read when they are first needed.
    """

    def __init__(
        self, store: "Callable[[], Store]", settings: "Callable[[], Mapping[str, object]]"
    ) -> None:
        self._store = store
        self._settings = settings
        self._configured: dict[str, Participant] | None = None
        self._registered: dict[str, Participant] = {}
        self._shelves: dict[str, ParticipantShelf] = {}
        self._ways: Ways | None = None
        self.problems: dict[str, str] = {}
        """Why a participant of the settings cannot take part, by its name."""

    @property
    def store(self) -> "Store":
        """The project's store."""
        return self._store()

    @property
    def ledger(self) -> "Ledger":
        """The project's ledger."""
        return self._store().ledger

    # -- who takes part --------------------------------------------------------------------

    def register(self, participant: "Participant | Way") -> None:
        """Let one take part as long as this process has the project open; or know an inverse."""
        from takeback.participants.mutations import Way

        if isinstance(participant, Way):
            self.ways.add(participant.name, participant)
            self.go_on(WAITS)
            return
        require_name(participant.name)
        if participant.kind not in KINDS:
            raise UsageError(
                f"the participant `{participant.name}` has the unknown kind `{participant.kind}`",
                hint=f"`kind` is one of {', '.join(KINDS)}",
            )
        if participant.name in self._from_settings():
            raise UsageError(
                f"`{participant.name}` is a participant of the settings already",
                hint="choose another name",
            )
        self._registered[participant.name] = participant
        self._attach(participant)
        # What was decided while no program had it is done now.
        self.go_on(name=participant.name)

    def release(self, name: str) -> None:
        """Let a registered one take part no more."""
        self._registered.pop(name, None)
        self._shelves.pop(name, None)

    def all(self) -> "dict[str, Participant]":
        """Those of the settings and those registered, by name."""
        return {**self._from_settings(), **self._registered}

    def find(self, name: str) -> "Participant | None":
        """The participant with a name, if this process reaches it."""
        if name.startswith(MUTATION_NAME):
            return self._mutation(name.removeprefix(MUTATION_NAME))
        return self.all().get(name)

    def _mutation(self, key: str) -> "Participant | None":
        """A mutation, if this process knows how it goes back."""
        from takeback.participants.mutations import MutationMove

        found = self.ledger.mutations.find(key)
        way = self.ways.find(found.inverse) if found is not None else None
        if found is None or way is None:
            return None
        return MutationMove(found, way, lambda: self.ledger)

    @property
    def ways(self) -> "Ways":
        """The inverses that this process knows."""
        if self._ways is None:
            from takeback.participants.mutations import Ways

            self._ways = Ways()
        return self._ways

    def is_configured(self, name: str) -> bool:
        """Whether every process of the user reaches a participant."""
        return name in self._settings()

    def reload(self) -> None:
        """Read the settings again when they are next needed."""
        self._configured, self.problems = None, {}

    def _attach(self, participant: "Participant") -> None:
        shelf = ParticipantShelf(participant.name, self._store)
        self._shelves[participant.name] = shelf
        participant.attach(shelf)

    def _from_settings(self) -> "dict[str, Participant]":
        if self._configured is None:
            self._configured = {}
            for name, options in self._settings().items():
                self._configure(name, options)
        return self._configured

    def _configure(self, name: str, options: object) -> None:
        """One that cannot be made is named, and the others take part."""
        from takeback.participants import registry

        assert self._configured is not None
        try:
            require_name(name)
            if not isinstance(options, dict):
                raise UsageError(f"`participants.{name}` is not a table")
            found = registry.configured(name, options)
            self._attach(found)
        except (TakebackError, ImportError) as problem:
            self.problems[name] = _told(problem)
        else:
            self._configured[name] = found

    # -- captures --------------------------------------------------------------------------

    def capture(self, *, step: bool = False, kinds: "Collection[str]" = KINDS) -> None:
        """Record what participants hold now: all, or at a `step` those that ask for it.

        One that cannot be captured stops nobody: its state is not known from here on.
        """
        chosen = [
            each
            for each in self.all().values()
            if each.kind in kinds and (each.each_step or not step)
        ]
        if not chosen and not self.problems:
            return
        known, owed = self.ledger.participants.at(), {row.name for row in self._owed()}
        taken, told = Taken(self.store), []
        try:
            for each in chosen:
                if each.name not in owed:
                    told += self._taken(each, taken, known)
            told += self._unreachable(known, kinds)
            if told:
                self._record(taken, told)
        except BaseException:
            self.ledger.abandon()
            taken.abort()
            raise

    def _taken(
        self, participant: "Participant", taken: Taken, known: "Mapping[str, Any]"
    ) -> "list[Json]":
        """What the event says of one; nothing if it is as it was."""
        shelf, row = self._shelves[participant.name], known.get(participant.name)
        shelf.begin(taken)
        token, problem = "", ""
        try:
            token = _checked(participant.name, participant.capture())
        except (Exception, SystemExit) as trouble:  # noqa: BLE001 - must not stop the agent
            problem = _told(trouble)
        mark, objects = shelf.end()
        if problem:
            if row is not None and not row.token and row.problem == problem:
                return []
            return [[participant.name, participant.kind, "", "", problem, 0]]
        if row is not None and row.token == token and mark in ("", row.mark):
            return []
        taken.objects |= objects
        told = (participant.name, participant.kind, token, mark[:_LONGEST_MARK], "")
        return [[*told, len(objects)]]

    def _unreachable(self, known: "Mapping[str, Any]", kinds: "Collection[str]") -> "list[Json]":
        """Those of the settings that could not even be made: nobody knows what they hold."""
        found: list[Json] = []
        for name, problem in self.problems.items():
            row = known.get(name)
            if row is not None and row.token and row.kind in kinds:
                found.append([name, row.kind, "", "", problem, 0])
        return found

    def _record(self, taken: Taken, told: "list[Json]") -> None:
        said: dict[str, Json] = {"line": self.ledger.line, "tokens": told}
        packs = taken.finish()
        if packs:
            said["packs"] = pack_facts(packs)  # type: ignore[arg-type]
        if taken.objects:
            said["objects"] = [oid.hex() for oid in taken.objects]
        try:
            self.ledger.record(NewEvent(events.PARTICIPANTS_CAPTURED, said, time.time_ns()))
        except BaseException:
            # Whether an event names the packs the next start finds out.
            self.store.lock.leave_unclean()
            raise

    def describe(self, name: str, token: str) -> "tuple[Difference, ...]":
        """What restoring a token would change now."""
        participant = self.reachable(name)
        with Guarded(name, "described"):
            return tuple(participant.describe(token))

    def reachable(self, name: str) -> "Participant":
        found = self.find(name)
        if found is None:
            raise ParticipantError(
                f"`{name}` cannot be reached: {self.problems.get(name, 'it is not registered')}"
            )
        return found

    # -- one restore -----------------------------------------------------------------------

    def together(self, restore: str, moves: "Sequence[Move]") -> "Together":
        """The part of a restore that is beside the files."""
        return Together(self, restore, moves)

    def abort(self, restore: str, names: "Iterable[str]") -> None:
        """Tell those that prepared for a restore that it never happened.

        One that cannot be reached is told when it is.
        """
        left: list[Json] = []
        for name in names:
            participant = self.find(name)
            if participant is None:
                left.append([name, NOT_ABORTED, "it is not registered"])
                continue
            try:
                with Guarded(name, "aborted"):
                    participant.abort(restore)
            except ParticipantError as problem:
                left.append([name, NOT_ABORTED, _told(problem)])
        if left:
            self.note(restore, left)

    def note(self, restore: str, outcomes: "list[Json]") -> None:
        """Record what became of moves: (name, state, problem)."""
        said: dict[str, Json] = {"restore": restore, "line": self.ledger.line, "moves": outcomes}
        self.ledger.record(NewEvent(events.PARTICIPANTS_MOVED, said, time.time_ns()))

    def _owed(self, *states: str) -> "list[MoveRow]":
        return self.ledger.participants.owed(*states)

    # -- after a crash, or a failure -------------------------------------------------------

    def go_on(self, *states: str, name: str = "") -> "list[Reason]":
        """Do what was decided and is not done; what became of each."""
        for restore, other in self.ledger.participants.aborts():
            participant = self.find(other)
            if participant is not None and name in ("", other):
                self._abort_late(participant, restore)
        return [self._again(row) for row in self._owed(*states) if name in ("", row.name)]

    def _abort_late(self, participant: "Participant", restore: str) -> None:
        try:
            with Guarded(participant.name, "aborted"):
                participant.abort(restore)
        except ParticipantError:
            return  # another time
        self.note(restore, [[participant.name, ABORTED, ""]])

    def _again(self, row: "MoveRow") -> Reason:
        participant = self.find(row.name)
        facts = {"name": row.name, "restore": row.restore[:8]}
        if participant is None:
            problem = self.problems.get(row.name, "it is not registered in this process")
            state = FAILED if self.is_configured(row.name) else WAITS
        else:
            problem = self.move(participant, row.restore, row.token)
            state = FAILED if problem else DONE
        if (state, problem) != (row.state, row.problem):
            self.note(row.restore, [[row.name, state, problem]])
        if state == DONE:
            return Reason(reasons.PARTICIPANT_MOVED, **facts)
        code = reasons.PARTICIPANT_WAITS if state == WAITS else reasons.PARTICIPANT_FAILED
        return Reason(code, problem=problem, **facts)

    def move(self, participant: "Participant", restore: str, token: str) -> str:
        """Bring one to a token, without waiting for others; why not, if it cannot be."""
        try:
            with Guarded(participant.name, "restored"):
                participant.prepare(restore, token)
                participant.commit(restore)
        except ParticipantError as problem:
            self.let_go(participant, restore)
            return _told(problem)
        return ""

    def let_go(self, participant: "Participant", restore: str) -> None:
        """A failed move must hold no locks; it is prepared again when it is repeated."""
        try:
            with Guarded(participant.name, "aborted"):
                participant.abort(restore)
        except ParticipantError:
            return  # the next try begins with `prepare`, whatever is left of this one

    def drop(self, name: str) -> None:
        """Nobody waits for a participant any more: what it is owed is given up."""
        for row in self._owed(DECIDED, FAILED, WAITS):
            if row.name == name:
                self.note(row.restore, [[name, DROPPED, ""]])
        for restore, other in self.ledger.participants.aborts():
            if other == name:
                self.note(restore, [[name, ABORTED, ""]])

    def require_settled(self, names: "Collection[str]" = ()) -> None:
        """Try once more what failed; an error while a participant is not where it was decided.

        Only those of the settings, and those this process has: others may never come back.
        """
        rows = self._owed(DECIDED, FAILED, WAITS)
        if not rows:
            return
        self.go_on(*sorted({row.state for row in rows}))
        for row in self._owed(DECIDED, FAILED):
            if row.how == MOVES or row.name in names:
                from takeback.errors import UnfinishedError

                raise UnfinishedError(
                    f"the restore `{row.restore[:8]}` is done, but not in `{row.name}`:"
                    f" {row.problem}",
                    hint=(Action("retry-participant", name=row.name), "nothing was changed"),
                )


class Together:
    """The part of one restore that is beside the files: prepare, then commit or abort."""

    def __init__(self, all: Participants, restore: str, moves: "Sequence[Move]") -> None:
        self._all = all
        self._restore = restore
        self.moves = [move for move in moves if move.how in (MOVES, AFTERWARDS)]
        self._outer = [move for move in self.moves if not move.name.startswith(MEMORY_NAME)]
        self._inner = [move for move in self._outer if move.how == MOVES]
        self.outcomes: dict[str, str] = {}
        """What became of each: empty if it is done, else why not."""

    @property
    def names(self) -> "list[str]":
        """Who prepares, and is told if the restore does not happen."""
        return [move.name for move in self._inner]

    @property
    def is_due(self) -> bool:
        """Whether there is something to do besides what the commit of the restore does."""
        return bool(self._outer)

    def prepare(self) -> None:
        """Do everything that can fail; if one cannot, nothing moves."""
        for move in self._inner:
            participant = self._all.reachable(move.name)
            with Guarded(move.name, "restored"):
                participant.prepare(self._restore, move.token)

    def abort(self) -> None:
        """The restore does not happen."""
        self._all.abort(self._restore, self.names)

    def commit(self) -> bool:
        """The restore was decided: make it visible, then do what could not prepare.

        Whether it is in the log what became of each; else whoever takes the lock next finds out.
        """
        rest = [move for move in self._outer if move.how == AFTERWARDS]
        # What moves together is recorded together, all else one by one: an inverse that ran and
        # is recorded never runs again.
        recorded = self._commit_all(self._inner)
        for move in rest:
            recorded = self._commit_all([move]) and recorded
        return recorded

    def _commit_all(self, moves: "Sequence[Move]") -> bool:
        told: list[Json] = []
        for move in moves:
            problem = self._commit(move)
            self.outcomes[move.name] = problem
            told.append([move.name, FAILED if problem else DONE, problem])
        if not told:
            return True
        try:
            self._all.note(self._restore, told)
        except (TakebackError, DatabaseError, OSError):
            self._all.ledger.abandon()
            return False
        return True

    def alone(self, row: "Journal", finish: "Finish", commit: "Callable[[], None]") -> None:
        """A restore that changes no file: prepare, let the `commit` decide, and make it visible."""
        if not self.is_due:
            commit()
            return
        store, ledger = self._all.store, self._all.ledger
        finish.late = True
        ledger.journal.write(row, STAGING)
        try:
            self.prepare()
            commit()
        except BaseException:
            ledger.abandon()
            if ledger.journal.is_staging(row.id):
                store.lock.leave_unclean()  # should this be interrupted, too
                self.abort()
                ledger.record(closing=row.id)
                raise
            # It was committed, and only what follows the commit failed.
        if self.commit():
            try:
                ledger.record(closing=row.id)
            except (OSError, DatabaseError):
                ledger.abandon()
                store.lock.leave_unclean()

    def _commit(self, move: "Move") -> str:
        participant = self._all.find(move.name)
        if participant is None:
            return "it is not registered any more"
        if move.how == AFTERWARDS:
            return self._all.move(participant, self._restore, move.token)
        try:
            with Guarded(move.name, "restored"):
                participant.commit(self._restore)
        except ParticipantError as problem:
            self._all.let_go(participant, self._restore)
            # What it prepared may be gone; once more from the beginning.
            return self._all.move(participant, self._restore, move.token) and _told(problem)
        return ""


class Guarded:
    """Turns what a participant raises into a `ParticipantError` that names it."""

    def __init__(self, name: str, done: str) -> None:
        self._name = name
        self._done = done

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> None:
        # Others' code that ends the program (`sys.exit`) has failed, too; an interrupt is yours.
        if not isinstance(problem, Exception | SystemExit):
            return
        raise ParticipantError(
            f"`{self._name}` cannot be {self._done}: {_told(problem)}",
            hint=getattr(problem, "actions", ()),
        ) from problem


def require_name(name: str) -> None:
    """An error for what cannot be the name of a participant."""
    is_own = name.startswith((MEMORY_NAME, MUTATION_NAME))
    if not name or len(name) > _LONGEST_NAME or not _SIGNS.issuperset(name) or is_own:
        raise UsageError(
            f"`{name[:_LONGEST_NAME]}` cannot be the name of a participant",
            hint="letters, digits, `.`, `_` and `-`, such as `orders-db`",
        )


def _checked(name: str, token: object) -> str:
    if not isinstance(token, str) or not token or not token.isprintable():
        raise ParticipantError(f"`{name}` gave a token that is not printable text")
    if len(token.encode("utf-8", "surrogatepass")) > LONGEST_TOKEN:
        raise ParticipantError(f"`{name}` gave a token of more than {LONGEST_TOKEN:,} bytes")
    return token


def _told(problem: BaseException) -> str:
    if isinstance(problem, InternalError) or not isinstance(problem, TakebackError | OSError):
        text = f"{type(problem).__name__}: {problem}"
    else:
        text = str(problem)
    line = " ".join(text.split())[:_LONGEST_PROBLEM]
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)
