"""Project: speaks the verbs."""

import os
import time

from takeback import location
from takeback.capture import checkpoint as capture
from takeback.capture.checkpoint import Place
from takeback.caring import Caring
from takeback.disk.failures import FailingAs
from takeback.errors import CaptureError, DamagedStoreError, TakebackError, UsageError
from takeback.forgetting import WithForget
from takeback.ledger.events import CHECKPOINT_NAMED, CHECKPOINT_TAKEN
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.model.words import REDO, ROLLBACK, UNDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol, Self, TypedDict, Unpack

    from takeback.ledger.events import Event
    from takeback.model.plan import Description, Plan, Report
    from takeback.model.results import Checkpoint, Verification
    from takeback.ports import Progress
    from takeback.recorder import Recorder
    from takeback.session import Notes, Session
    from takeback.undo.restorer import Restorer

    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Paths = Iterable[AnyPath]
    Decide = str | Mapping[bytes, str]

    class WithId(Protocol):
        """A turn, a checkpoint, a report: whatever has an id."""

        @property
        def id(self) -> str:
            """Its id."""

    Named = str | WithId

    class Options(TypedDict, total=False):
        """How a restore is done."""

        because: str
        keep_mtime: bool
        yes: bool
        request: str | None


class Project(WithForget, Caring):
    """A work tree and its store."""

    # -- opening ---------------------------------------------------------------------------

    @classmethod
    def open(cls, path: bytes, *, home: bytes, user_home: bytes = b"") -> "Self":
        """The project that `path` is in, made on first use."""
        with FailingAs(TakebackError, "the project could not be opened"):
            project = cls(*location.open(path, home=home, user_home=user_home))
        project.recover_early()
        return project

    @classmethod
    def find(cls, path: bytes, *, home: bytes) -> "Self | None":
        """The project that `path` is in, or None; makes nothing."""
        with FailingAs(TakebackError, "the project could not be opened"):
            found = location.find(path, home=home)
            if found is None:
                return None
            project = cls(*found)
        project.recover_early()
        return project

    @classmethod
    def relocate(
        cls, path: bytes, *, home: bytes, user_home: bytes = b"", join: "str | None" = None
    ) -> "Self":
        """Let the history of a known project go on in this folder, or begin a new one here."""
        with FailingAs(TakebackError, "nothing was decided"):
            return cls(*location.relocate(path, home=home, user_home=user_home, join=join))

    # -- verbs -----------------------------------------------------------------------------

    def checkpoint(
        self,
        label: str = "",
        *,
        rehash: bool = False,
        progress: "Progress | None" = None,
        request: "str | None" = None,
        turn: "str | None" = None,
    ) -> "Checkpoint":
        """Make a checkpoint of the tree as it is now.

        If nothing changed since the newest one, that one is returned with `new` false.
        `rehash` reads every file again instead of trusting its stamps. A second call with the
        same `request` returns what the first one did.
        """
        with FailingAs(CaptureError, "no checkpoint was made"), self.held():
            known = self.ledger.requested(request)
            if known is not None:
                return self._made_before(known)
            if turn is not None:
                self.recorder().go_on(turn)
            at = time.time_ns()
            dead = self.recorder().dead_sessions(at) if self.ledger.sessions.has_open() else []
            closing = {row.id: ended for row, ended in dead}
            made = self._capture(
                Place(turn=turn),
                closing,
                at,
                label=_clean(label),
                rehash=rehash,
                progress=progress,
                request=request,
            )
            if dead:
                self.recorder().bury(dead, made, at)
            return made

    def session(
        self,
        agent: str,
        *,
        id: str = "",
        title: str = "",
        safe_points: "str | None" = None,
        held: bool = True,
        beside: bool = False,
        inside: "str | None" = None,
        request: "str | None" = None,
    ) -> "Session":
        """Begin a session, or go on with the one that the agent knows by its own `id`.

        `safe_points` says how often checkpoints are made: at each `turn`, around each `step`
        that may write (the default), or around every `call`. A session that is `held` ends with
        this process; hooks, which are a process each, hold none. Another process that begins the
        same one takes it over, and ends its turn; with `beside` it gets one of its own while
        the first is alive. `inside` is the turn that this agent was started in, such as one of
        `takeback run`: until the agent ends the session, what it tells of itself goes before
        what can be told from outside.
        """
        from takeback.session import Session

        recorder = self.recorder(safe_points)
        with FailingAs(TakebackError, "nothing was recorded"):
            found = recorder.start_session(
                agent, id, title, held=held, beside=beside, inside=inside, request=request
            )
        return Session(self.notes(recorder), found)

    def notes(self, recorder: "Recorder") -> "Notes":
        """What the handles of sessions, turns and steps need."""
        from takeback.session import Notes

        return Notes(recorder, self.turn, self.checkpoint, self.undo, self.redo)

    def extract(
        self,
        ref: str,
        directory: "str | bytes | os.PathLike[str] | os.PathLike[bytes]",
        *,
        progress: "Progress | None" = None,
        told: "Callable[[Reason], None] | None" = None,
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries.

        `told` hears what could not be as it was: programs that are not setuid for another owner.
        """
        from takeback.history import retention
        from takeback.history.lookup import extract

        with FailingAs(TakebackError, "nothing was extracted"):
            target = os.path.abspath(os.fsencode(directory))
            location.refuse_inside_store(target, self._home)
            return retention.again(
                self.ledger,
                lambda: extract(self._store, self._resolve(ref), target, progress, told),
            )

    # -- taking back -----------------------------------------------------------------------

    def plan_undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        whole_session: str = "",
        paths: "Paths" = (),
        decide: "Decide" = "",
        shared: bool = False,
        inside: bytes = b"",
    ) -> "Plan":
        """What `undo` would do. The tree is looked at, and nothing in it is written."""
        what = _undo_of(turn, session, whole_session, paths, decide, shared)
        return self._plan(what, inside)

    def plan_redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        inside: bytes = b"",
    ) -> "Plan":
        """What `redo` would do. The tree is looked at, and nothing in it is written."""
        return self._plan(_redo_of(turn, session, paths, decide), inside)

    def plan_rollback(
        self,
        ref: "Named",
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        inside: bytes = b"",
    ) -> "Plan":
        """What `rollback` would do. The tree is looked at, and nothing in it is written."""
        return self._plan(_rollback_to(ref, session, paths), inside)

    def apply(
        self, plan: "Named", *, because: str = "", keep_mtime: bool = False, yes: bool = False
    ) -> "Report":
        """Do what a plan says, given it or its id, also in another process, for some minutes.

        It is planned again. If a path that it touches changed since, or a folder that it makes or
        removes, it is refused; a rollback of everything takes that back, too, and the report names
        it. A plan is applied once: a second call returns what the first did.

        `because` is kept with the event. Restored files get the present time, or with
        `keep_mtime` the one they had. `yes` consents to what the plan calls doubts; conflicts
        it does not resolve.
        """
        return self._carry_out(
            b"",
            lambda restorer: restorer.apply(
                _named(plan), because=because, keep_mtime=keep_mtime, yes=yes
            ),
        )

    def undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        whole_session: str = "",
        paths: "Paths" = (),
        decide: "Decide" = "",
        shared: bool = False,
        inside: bytes = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Take back what turns did and keep what others did: the newest turn, or those named.

        What others changed since in the same files is merged. Where that cannot be, it is a
        conflict and nothing is written, unless `decide` says what shall become of it: `keep-mine`,
        `take-back`, `markers` or `skip-conflicts`, for all paths or by path. `session` narrows
        where turns are looked for; `whole_session` takes back all that one did. `shared` takes
        along what may be another session's.
        """
        what = _undo_of(turn, session, whole_session, paths, decide, shared)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        inside: bytes = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Put back what was undone last, or the turn that is named."""
        what = _redo_of(turn, session, paths, decide)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def rollback(
        self,
        ref: "Named",
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        inside: bytes = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Bring everything, or some paths, back to a state, exactly, whoever changed it since.

        With a `session`, `@~N` counts its turns only.
        """
        what = _rollback_to(ref, session, paths)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def on_restore(self, listener: "Callable[[Report], None]") -> None:
        """Call `listener` after each restore that this project makes, without the lock."""
        self._listeners.append(listener)

    def _plan(self, what: "Description", inside: bytes) -> "Plan":
        with FailingAs(TakebackError, "nothing was planned"), self.held():
            return self.restorer(inside).plan(what)

    def _carry_out(self, inside: bytes, do: "Callable[[Restorer], Report]") -> "Report":
        with FailingAs(TakebackError, "nothing was changed"), self.held():
            restorer = self.restorer(inside)
            report = do(restorer)
        if restorer.has_restored:
            report.problems += tuple(self._tell(report))
        return report

    def _tell(self, report: "Report") -> "list[Reason]":
        """Tell whoever wants to know; what goes wrong there does not undo what was done."""
        problems: list[Reason] = []
        for listener in self._listeners:
            try:
                listener(report)
            except Exception as problem:  # noqa: BLE001 -- it is the caller's own code
                said = f"{type(problem).__name__}: {problem}"
                problems.append(Reason(reasons.LISTENER_RAISED, error=said))
        try:
            commands = self._around.setting("restore", "listeners", [])
        except TakebackError as problem:
            return [*problems, Reason(reasons.LISTENERS_UNREAD, problem=str(problem))]
        if commands:
            from takeback import listeners

            problems += listeners.tell(commands, report, self.root)
        return problems

    # -- the store -------------------------------------------------------------------------

    def verify(
        self, *, progress: "Progress | None" = None, set_aside: bool = False
    ) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised.

        `set_aside` lets work go on after a restore was interrupted that cannot be taken back.
        """
        from takeback.upkeep.verify import verify

        with FailingAs(TakebackError, "the store could not be verified"):
            mend = self.restorer().set_aside if set_aside else None
            return verify(self._store, self.held, progress, mend)

    def rebuild(self) -> None:
        """Make everything that follows from the log again."""
        with FailingAs(TakebackError, "nothing was rebuilt"), self.held():
            for lost in self._store.check_anchor():
                # The tables are all that still knows of the events that are gone.
                raise DamagedStoreError(f"nothing was rebuilt: {lost}")
            self.ledger.rebuild()

    def _made_before(self, event: "Event") -> "Checkpoint":
        """What an earlier call with the same request returned."""
        said = event.payload or {}
        rows = self.ledger.checkpoints.with_prefix(str(said.get("checkpoint")))
        if event.kind not in (CHECKPOINT_TAKEN, CHECKPOINT_NAMED) or not rows:
            raise UsageError(
                f"the request `{event.request}` was already used for something else",
                hint="give each request an id of its own",
            )
        new = event.kind == CHECKPOINT_TAKEN
        return capture.as_value(rows[0], new=new, cursor=event.seq, told=self._told(rows[0]))


def _clean(label: str) -> str:
    """A label as text that can be stored and shown; the command line may hold any bytes."""
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in label)


def _named(what: "Named") -> str:
    """A reference, or the id of what was given instead of one."""
    return what if isinstance(what, str) else what.id


def _undo_of(
    turn: "Named | Iterable[Named] | None",
    session: "str | None",
    whole_session: str,
    paths: "Paths",
    decide: "Decide",
    shared: bool,
) -> "Description":
    from takeback.model.plan import Description

    is_one = turn is None or isinstance(turn, str) or hasattr(turn, "id")
    named: Any = [] if turn is None else [turn] if is_one else turn
    return Description(
        UNDO,
        tuple(_named(each) for each in named),
        session=session,
        whole_session=whole_session,
        paths=_paths(paths),
        decide=decide,
        shared=shared,
    )


def _redo_of(
    turn: "Named | None", session: "str | None", paths: "Paths", decide: "Decide"
) -> "Description":
    from takeback.model.plan import Description

    refs = () if turn is None else (_named(turn),)
    return Description(REDO, refs, session=session, paths=_paths(paths), decide=decide)


def _rollback_to(ref: "Named", session: "str | None", paths: "Paths") -> "Description":
    from takeback.model.plan import Description

    return Description(ROLLBACK, (_named(ref),), session=session, paths=_paths(paths))


def _paths(paths: "Paths") -> "tuple[bytes, ...]":
    if isinstance(paths, str | bytes):
        raise UsageError("`paths` takes several paths", hint="write paths=[PATH] for a single one")
    return tuple(map(os.fsencode, paths))
