"""Session, Turn and Step: what a harness holds while its agent works."""

from takeback.errors import UsageError
from takeback.model.words import DONE, FAILED, INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol, Self

    from takeback.lessons.lesson import Lesson
    from takeback.model.history import RecordedTurn
    from takeback.model.plan import Report
    from takeback.model.results import Checkpoint
    from takeback.participants.memory import SessionMemory
    from takeback.participants.mutations import Inverse, Read
    from takeback.project import Project
    from takeback.recorder import Recorder
    from takeback.work_plans.plan import WorkPlan

    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

    class RecordEnd(Protocol):
        """How a recorder writes the end of something."""

        def __call__(
            self, id: str, status: str, /, *, ended: int | None, request: str | None
        ) -> None:
            """Record it."""


_TOO_LATE = 1 << 33
"""Seconds: some time in the year 2242, and what the log can hold in nanoseconds."""


class Session:
    """One agent's conversation in a project.

    Use it as a context manager, or call `end`. It runs one turn at a time: beginning another
    ends the one before as interrupted. Agents that work side by side have a session each.
    """

    def __init__(self, recorder: "Recorder", project: "Project", id: str) -> None:
        self._recorder = recorder
        self._project = project
        self.id = id

    def __repr__(self) -> str:
        return f"<takeback.Session {self.id}>"

    def turn(
        self,
        label: str,
        *,
        whole: bool = True,
        interrupted_at: "float | None" = None,
        conversation: "Mapping[str, str] | None" = None,
        request: "str | None" = None,
    ) -> "Turn":
        """A prompt was submitted: a checkpoint is made, then the turn begins.

        With `whole`, all that happens counts as the turn's until it reports a step; an agent
        that reports each step says `whole=False`, and what happens between steps is yours.
        `interrupted_at` tells when the turn before was interrupted, in seconds since 1970.
        `conversation` tells where the agent keeps it, and what the agent calls this prompt.
        """
        id = self._recorder.start_turn(
            self.id,
            label,
            whole=whole,
            interrupted=_nanoseconds(interrupted_at),
            conversation=conversation,
            request=request,
        )
        return Turn(self._recorder, self._project, id)

    def plan(self, label: str, *, id: str = "", yes: bool = False) -> "WorkPlan":
        """Work in steps, each of which is undone if it fails.

        With an `id` of the program's own, the plan goes on after the program was started again: a
        step that was left half done is undone now, and steps with a `key` are not done twice. `yes`
        consents to undo what may not be the step's.
        """
        from takeback.work_plans.plan import WorkPlan

        return WorkPlan.begin(self, self._project, self._recorder, label, id, yes=yes)

    def undo(
        self,
        *,
        because: str = "",
        keep_mtime: bool = False,
        yes: bool = False,
        request: "str | None" = None,
    ) -> "Report":
        return self._project.undo(
            session=self.id,
            because=because,
            keep_mtime=keep_mtime,
            yes=yes,
            asker=self.id,
            request=request,
        )

    def redo(
        self,
        *,
        because: str = "",
        keep_mtime: bool = False,
        yes: bool = False,
        request: "str | None" = None,
    ) -> "Report":
        return self._project.redo(
            session=self.id,
            because=because,
            keep_mtime=keep_mtime,
            yes=yes,
            asker=self.id,
            request=request,
        )

    @property
    def memory(self) -> "SessionMemory":
        """What the agent remembers: JSON values by key, which a rollback rewinds."""
        from takeback.participants.memory import SessionMemory

        work = self._project.workspace
        return SessionMemory(lambda: work.ledger, work.held, self.id)

    def lessons(self, prompt: str = "", paths: "Iterable[AnyPath]" = ()) -> "tuple[Lesson, ...]":
        """The lessons that matter most for a prompt and some paths: five at most.

        Give the agent their `text`, `prompt` and `paths` with its next prompt.
        """
        import os

        return self._project.lessons.relevant(prompt, map(os.fsencode, paths))

    def resume(self, *, request: "str | None" = None) -> "Turn | None":
        """Go on with the newest turn: a prompt came that no human wrote. None if there is none."""
        id = self._recorder.resume_turn(self.id, request=request)
        return Turn(self._recorder, self._project, id) if id is not None else None

    def end(self, *, request: "str | None" = None) -> None:
        self._recorder.end_session(self.id, request=request)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> None:
        _close(problem, self.end)


class _Work:
    """What a turn and a step have in common: steps inside, and an end.

    `inside` are the turn and the step, if any, that a step begun here belongs to.
    """

    def __init__(
        self,
        recorder: "Recorder",
        project: "Project",
        id: str,
        inside: "tuple[str, str | None]",
        record_end: "RecordEnd",
    ) -> None:
        self._recorder = recorder
        self._project = project
        self._inside = inside
        self._record_end = record_end
        self._token: object = None
        self.id = id

    def __repr__(self) -> str:
        return f"<takeback.{type(self).__name__} {self.id}>"

    def step(
        self,
        tool: str,
        given: "Mapping[str, object] | None" = None,
        *,
        kind: "str | None" = None,
        paths: "Iterable[AnyPath] | None" = None,
        cwd: "AnyPath | None" = None,
        effect: str = "",
        inverse: str = "",
        request: "str | None" = None,
    ) -> "Step":
        """A tool is about to be called with what is `given`; it may start when this returns.

        Its kind and the paths it names are found out from the tool's name and input, unless
        they are told. Relative paths begin at `cwd`, by default the root of the project. A step
        inside a step is a sub-agent's, for instance. If another process took back what this turn
        did, or other files of its session, the next step raises `RolledBack`, once.

        `effect` is the class of what the tool does outside the files, such as `irreversible`, and
        `inverse` the command that reverses it; else the guard judges the call. In a mode that
        refuses the call, this raises `GuardRefused`, and nothing begins.
        """
        from os import fsencode

        from takeback.effects import guarding, harness
        from takeback.effects.verdict import DENY

        turn, parent = self._inside
        work, folder = self._project.workspace, None if cwd is None else fsencode(cwd)
        with self._recorder.together():
            self._recorder.require_going_on(turn)
            decision = harness.decide(
                work,
                turn,
                tool,
                given or {},
                kind=kind,
                effect=effect,
                inverse=inverse,
                cwd=folder,
                mode=self._recorder.guard,
            )
            id = self._recorder.start_step(
                turn,
                tool,
                given or {},
                kind=kind,
                paths=None if paths is None else [fsencode(path) for path in paths],
                cwd=folder,
                parent=parent,
                effects=guarding.step_facts(work, decision),
                captures=decision is not None and decision.verdict.captures,
                request=request,
            )
            if decision is not None and guarding.save(work, decision, id)[1] == DENY:
                self._recorder.refuse_step(id, is_ours=True)
                raise harness.refused(work, decision, turn)
        return Step(self._recorder, self._project, id, turn, given)

    def mutate(
        self,
        target: str,
        before: object,
        after: object,
        *,
        inverse: "str | Inverse",
        read: "Read | None" = None,
        redo: "Inverse | None" = None,
        key: str = "",
    ) -> str:
        """Record that the application's state at `target` went from `before` to `after`; its key.

        An undo calls `inverse` with the `Mutation`, the newest first, each once by its key. `read`
        tells what a target is now: one that is not as it was left is a conflict. `redo` does it
        again. A name in the place of `inverse` means one that was registered: `takeback.inverse`.
        """
        from takeback.participants import mutations

        work, name = self._project.workspace, mutations.name_of(inverse)
        if not isinstance(inverse, str):
            work.participants.ways.add(name, mutations.Way(name, inverse, read, redo))
        turn = self._inside[0]
        with work.held():
            return mutations.record(work.ledger, turn, target, before, after, name, key=key)

    def begin_mutation(self, name: str, given: object) -> str:
        """A tool is about to be called; for `takeback.tool`."""
        from takeback.participants import mutations

        work = self._project.workspace
        with work.held():
            return mutations.begin(work.ledger, self._inside[0], name, given)

    def end_mutation(self, key: str, state: str, found: object = None) -> None:
        """A tool returned; for `takeback.tool`."""
        from takeback.participants import mutations

        work = self._project.workspace
        with work.held():
            mutations.end(work.ledger, key, state, found)

    def effect(
        self,
        kind: str,
        target: str,
        *,
        reversible: "bool | None" = None,
        effect: str = "",
        inverse: str = "",
        host: str = "",
        request: "str | None" = None,
    ) -> str:
        """Record that something outside the files is about to be done; the id of the effect.

        `turn.effect("http", "POST /users", reversible=False)`: call it before you do it. It is
        irreversible unless it is `reversible` or has an `inverse`, the command that reverses it;
        `effect` names its class instead. In a mode that refuses it, this raises `GuardRefused`.
        """
        from takeback.effects import harness

        told = harness.as_outside(
            kind, target, reversible=reversible, effect=effect, inverse=inverse, host=host
        )
        work, mode = self._project.workspace, self._recorder.guard
        with self._recorder.together():
            return harness.report(work, self._inside, told, mode=mode, request=request)

    def end(
        self,
        status: str = DONE,
        *,
        ended_at: "float | None" = None,
        request: "str | None" = None,
    ) -> None:
        self._record_end(self.id, status, ended=_nanoseconds(ended_at), request=request)

    def __enter__(self) -> "Self":
        from takeback.participants.at_work import at_work

        self._token = at_work.set(self)
        return self

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> None:
        from takeback.participants.at_work import leave

        leave(self._token)
        _close(problem, lambda: self.end(_status(problem)))


class Turn(_Work):
    """One prompt and everything it causes, until the agent stops."""

    def __init__(self, recorder: "Recorder", project: "Project", id: str) -> None:
        super().__init__(recorder, project, id, (id, None), recorder.end_turn)

    def checkpoint(self, label: str = "", *, request: "str | None" = None) -> "Checkpoint":
        return self._project.checkpoint(label, turn=self.id, request=request)

    def recorded(self) -> "RecordedTurn":
        return self._project.turn(self.id)

    @property
    def before(self) -> str:
        """The checkpoint that holds the tree as it was before."""
        return self.recorded().before

    @property
    def after(self) -> str:
        """The checkpoint that holds the tree as the turn left it; empty while it runs."""
        return self.recorded().after


class Step(_Work):
    """One tool call or one phase inside a turn."""

    def __init__(
        self,
        recorder: "Recorder",
        project: "Project",
        id: str,
        turn: str,
        given: "Mapping[str, object] | None" = None,
    ) -> None:
        super().__init__(recorder, project, id, (turn, id), recorder.end_step)
        self._given = given

    def end(
        self,
        status: str = DONE,
        *,
        output: str = "",
        exit_code: "int | None" = None,
        interactive: bool = False,
        ended_at: "float | None" = None,
        request: "str | None" = None,
    ) -> None:
        """It is over: `done`, `failed` or `interrupted`, now or some time ago.

        `output` is what the tool said; head and tail of it are recorded, without secrets. It was
        `interactive` if somebody sat at its terminal, who may have edited files meanwhile.
        """
        self._recorder.end_step(
            self.id,
            status,
            ended=_nanoseconds(ended_at),
            output=output,
            exit_code=exit_code,
            interactive=interactive,
            given=self._given,
            request=request,
        )

    def detach(self, *, request: "str | None" = None) -> None:
        """The tool returned, but what it started goes on until `end` is called."""
        self._recorder.detach_step(self.id, request=request)


def _status(problem: "BaseException | None") -> str:
    """How something ended, by what came out of its body."""
    if problem is None or (isinstance(problem, SystemExit) and not problem.code):
        return DONE
    return FAILED if isinstance(problem, Exception | SystemExit) else INTERRUPTED


def _close(problem: "BaseException | None", end: "Callable[[], None]") -> None:
    """End something; what went wrong inside is never hidden by what goes wrong here."""
    try:
        end()
    except Exception as trouble:
        if problem is None:
            raise
        problem.add_note(f"and Takeback could not record the end: {trouble}")


def _nanoseconds(seconds: object) -> "int | None":
    """A time as the log has it; what the caller got wrong must not end a turn half."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 <= seconds < _TOO_LATE:
        raise UsageError(
            f"`{str(seconds)[:40]}` is not a time", hint="seconds since 1970, as `time.time()`"
        )
    return int(seconds * 1_000_000_000)
