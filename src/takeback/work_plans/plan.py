"""`WorkPlan`: what a program set out to do, in steps that it can take back.

Takeback starts no restore by itself. A program that uses plan steps asks for one: a step that fails
is undone, and so is one that a process left half done, when the program opens its plan again.
"""

from takeback.errors import (
    ConflictError,
    DecisionNeededError,
    RolledBack,
    StalePlanError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.ledger.beyond.work_plans import UNDONE
from takeback.model import reasons
from takeback.model.beyond.participants import DATABASES, FILES, MEMORY, OTHER, STAYS
from takeback.model.reasons import Action, Reason
from takeback.model.words import DONE, FAILED, INTERRUPTED, RUNNING, STATUSES
from takeback.work_plans.records import FAILING, Records, new_id
from takeback.work_plans.step import KEEP, UNDO, PlanStep, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from takeback.arguments import Applied
    from takeback.ledger.beyond.work_plans import PlanStepRow
    from takeback.lessons.lesson import Lesson
    from takeback.model.history import RecordedPlan, RecordedPlanStep
    from takeback.model.plan import Plan, Report
    from takeback.project import Project
    from takeback.recorder import Recorder
    from takeback.session import Session

    Which = str | PlanStep | RecordedPlanStep

INTERRUPTED_BECAUSE = "the program ended in the middle of this step"
_LONGEST_NAME, _MOST_NAMED, _TRIES = 200, 3, 3


class WorkPlan:
    """A plan of work in a session. Use it as a context manager, or call `end`.

    Its steps are turns of the session, one at a time, so undo, log and blame know them.
    """

    def __init__(
        self,
        session: "Session",
        project: "Project",
        recorder: "Recorder",
        id: str,
        *,
        yes: bool = False,
    ) -> None:
        self._session = session
        self._project = project
        self._recorder = recorder
        self._records = Records(project, id)
        self._yes = yes
        self._known: set[str] = set()
        """The steps that this program knows to be done."""
        self._step: PlanStep | None = None
        self.id = id

    def __repr__(self) -> str:
        return f"<takeback.WorkPlan {self.id}>"

    @classmethod
    def begin(
        cls,
        session: "Session",
        project: "Project",
        recorder: "Recorder",
        label: str,
        own_id: str,
        *,
        yes: bool,
    ) -> "Self":
        """Begin a plan, or go on with the one that the program calls so."""
        own_id, label = _clean(own_id, _LONGEST_NAME), _clean(label, 4000)
        with project.workspace.held():
            ledger = project.workspace.ledger
            found = ledger.turns.plans.find(own_id)
            plan = cls(session, project, recorder, found.id if found else new_id(), yes=yes)
            if found is None:
                plan._records.start(session.id, own_id, label)
            else:
                ours, theirs = ledger.sessions.get(session.id), found.session
                if ledger.sessions.numbered(theirs).agent != ours.agent:
                    raise UsageError(
                        f"the plan `{own_id}` is another agent's", hint="give it another id"
                    )
                if found.ended is not None or theirs != ours.number:
                    plan._records.resume(session.id)
        plan._settle()
        plan._known = {row.id for row in plan._records.standing()}
        return plan

    # -- looking ---------------------------------------------------------------------------

    @property
    def recorded(self) -> "RecordedPlan":
        """The plan as the log has it, with all its steps."""
        return self._records.ledger.turns.plans.recorded(self._records.row())

    @property
    def label(self) -> str:
        return self.recorded.label

    @property
    def steps(self) -> "tuple[RecordedPlanStep, ...]":
        """All steps so far, the oldest first; also those that failed or were taken back."""
        return self.recorded.steps

    @property
    def lessons(self) -> "tuple[Lesson, ...]":
        """What the steps that failed taught, the oldest first."""
        told = [step.lesson for step in self.steps]
        return tuple(self._project.lessons.get(id) for id in told if id)

    def find_done(self, key: str) -> "RecordedPlanStep | None":
        """The step with a key, if it is done and was not taken back."""
        rows = [row for row in self._records.standing() if key and row.key == key]
        return self._records.as_step(rows[-1]) if rows else None

    def find_lesson(self, key: str, label: str) -> "Lesson | None":
        """What the last failed attempt at a step taught."""
        tried = [row for row in self._records.steps() if row.lesson]
        ours = [row for row in tried if (row.key == key if key else row.label == label)]
        return self._project.lessons.get(ours[-1].lesson) if ours else None

    # -- working ---------------------------------------------------------------------------

    def step(
        self,
        label: str,
        *,
        key: str = "",
        databases: bool = False,
        on_failure: str = UNDO,
        raises: bool = True,
        whole: bool = True,
    ) -> PlanStep:
        """A step, which begins with `with`.

        If the block raises, what the step did is undone: its own changes to files, the session's
        memory, and with `databases` the databases that take part. What others did stays; what
        cannot be taken apart raises `ConflictError`, and then nothing was undone. With
        `on_failure="keep"` nothing is. The exception goes on, unless `raises` is False: then it is
        `step.error`.

        A step with a `key` that is done in this plan is not done again: `step.is_done` says so, in
        the block, and `step.result` is what was kept. `whole` is as for a turn.
        """
        if on_failure not in (UNDO, KEEP):
            raise UsageError(f"a step cannot `{on_failure}`", hint="`undo` or `keep`")
        return PlanStep(
            self,
            label,
            _clean(key, _LONGEST_NAME),
            databases=databases,
            keeps=on_failure == KEEP,
            raises=raises,
            whole=whole,
        )

    def back_to(self, step: "Which", *, because: str = "") -> "Report | None":
        """Undo all steps after a step, for planning them anew; None if there was nothing to undo.

        The step itself stays.
        """
        rows = self._standing_since(step)[1:]
        return self._undo_all(rows, because)

    def take_back(self, step: "Which", *, because: str = "") -> "Report | None":
        """Undo a step, and with it the later steps of the plan that depend on it; others stay."""
        rows = self._standing_since(step)
        along = {each.id for each in self.dependents(step)}
        return self._undo_all([rows[0], *(row for row in rows[1:] if row.id in along)], because)

    def dependents(self, step: "Which") -> "tuple[RecordedPlanStep, ...]":
        """The later steps of the plan that build on a step; none if all are compatible.

        A step builds on another if it changed a file that the other one made, or the same lines.
        """
        first, *later = self._standing_since(step)
        taken = [first] if first.is_entry else []
        while taken:
            plan = self._project.plan_undo([row.id for row in taken], only=FILES)
            named = {each.id for each in plan.dependents}
            more = [row for row in later if row.id in named and row not in taken]
            if not more:
                break
            taken += more
        return tuple(self._records.as_step(row) for row in later if row in taken)

    def end(self, status: str = DONE) -> None:
        """It is over: `done`, `failed` or `interrupted`. Opened by its id, it goes on."""
        if status not in STATUSES or status == RUNNING:
            raise UsageError(f"a plan cannot end `{status}`", hint="done, failed or interrupted")
        if self._records.row().ended is None:
            self._records.end(status)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> None:
        try:
            self.end(status_of(problem))
        except Exception as trouble:
            if problem is None:
                raise
            problem.add_note(f"and Takeback could not record the end: {trouble}")

    # -- for the step ----------------------------------------------------------------------

    def enter(self, step: PlanStep, *, whole: bool) -> "tuple[Session, str]":
        """Begin a step: nothing else of the plan may run, or be half done."""
        if self._step is not None:
            raise UsageError(
                f"the step `{self._step.label}` of this plan has not ended",
                hint="end it first; inside a step use `step.step(…)`",
            )
        self._settle()
        self._hear()
        self._records.require_going_on(self._session.id)
        with self._recorder.together():
            self._require_no_other_step()
            turn = self._session.turn(step.label, whole=whole)
            self._records.start_step(turn.id, step.key, databases=step.databases)
        self._step = step
        _at_work.add(turn.id)
        step.begun(turn)
        return self._session, turn.id

    def leave(self, step: PlanStep) -> None:
        self._step = None
        _at_work.discard(step.id)
        if step.is_done:
            self._known.add(step.id)

    def finish(self, step: PlanStep) -> "RolledBack | None":
        """End a step as done; or return what to raise, because others took back what it did."""
        from takeback.errors import PausedError

        with self._recorder.together():
            if self._records.turn(step.id).status != RUNNING:
                return RolledBack(f"another program ended the step `{step.label}`")
            try:
                self._recorder.require_going_on(step.id)
            except RolledBack as problem:
                return problem
            except PausedError:
                pass  # the next step hears of it; this one is done
            if self._records.turn(step.id).undone is not None:
                return RolledBack(f"the step `{step.label}` was undone while it ran")
            ended = self._records.step_ended(step.id, DONE, result=step.result)
            self._recorder.end_turn(step.id, DONE, also=(ended,))
        return None

    def fail(
        self, step: PlanStep, status: str, because: str, *, keeps: bool
    ) -> "tuple[Report | None, Lesson]":
        """End a step as failed, and undo it unless it `keeps` what it did."""
        try:
            said = self._records.step_ended(step.id, FAILED if keeps else FAILING)
            self._recorder.end_turn(step.id, status, also=(said,))
            if keeps:
                lesson = self._lesson(None, step.id, because)
                self._records.end_step(step.id, FAILED, lesson.id)
                return None, lesson
            return self._undo_failed(step.id, because, databases=step.databases)
        except TakebackError:
            # What it did is there, so it does not count as half done.
            self._records.end_step(step.id, FAILED, "")
            raise

    def _require_no_other_step(self) -> None:
        """A session runs one turn at a time: a second step would end the first."""
        ledger = self._records.ledger
        session = ledger.sessions.get(self._session.id).number
        if any(turn.id in _at_work for turn in ledger.turns.running(session)):
            raise UsageError(
                "a step of another plan is running in this session",
                hint="end it first, or plan in a session of its own: `project.session(…)`",
            )

    # -- small pieces ----------------------------------------------------------------------

    def _settle(self) -> None:
        """Undo the steps that a program left half done, with the databases that it owes."""
        with self._recorder.together():
            self._project.workspace.participants.require_settled()
        for row in self._records.steps():
            if row.status not in (RUNNING, FAILING):
                continue
            self._records.require_ours(self._records.turn(row.id))
            if row.id in _at_work:
                raise UsageError(
                    f"the step `{row.label}` of this plan is running in this program",
                    hint="use one plan object at a time, or give the other plan another id",
                )
            self._recorder.end_turn(row.id, INTERRUPTED)
            if row.status == RUNNING:
                self._require_sure(row)
            self._undo_failed(row.id, INTERRUPTED_BECAUSE, databases=row.databases)

    def _require_sure(self, row: "PlanStepRow") -> None:
        """An error if somebody may have changed files after the program died, without consent."""
        turn = self._records.turn(row.id)
        is_live = turn.undone is None and turn.covered is None
        if self._yes or not is_live:
            return
        paths = self._records.unsure(turn)
        if row.databases and self._records.ledger.turns.is_entry(turn.number):
            moves = self._project.plan_undo(row.id, only=DATABASES).moves
            paths += tuple(move.name for move in moves if move.how != STAYS)
        if paths:
            raise DecisionNeededError(
                f"the program ended in the middle of `{row.label}`; what changed since may be"
                f" yours: {', '.join(f'`{path}`' for path in paths[:_MOST_NAMED])}",
                hint=(Action("consent"), "report tool calls with `step.step(…)` to be sure"),
                reasons=(Reason(reasons.PERHAPS_RAN, turn=row.label, paths=paths),),
            )

    def _hear(self) -> None:
        """An error, once, if others took back a step since this program did it."""
        for row in self._records.steps():
            if row.id in self._known and row.is_back:
                self._known -= {each.id for each in self._records.steps() if each.is_back}
                raise self._records.rolled_back(row)

    def _undo_failed(
        self, turn: str, because: str, *, databases: bool
    ) -> "tuple[Report | None, Lesson]":
        report = self._undo([turn], because, databases=databases)
        lesson = self._lesson(report, turn, because)
        self._records.end_step(turn, UNDONE, lesson.id)
        return report, lesson

    def _undo_all(self, rows: "list[PlanStepRow]", because: str) -> "Report | None":
        if not rows:
            return None
        databases = any(row.databases for row in rows)
        report = self._undo([row.id for row in rows], because, databases=databases)
        self._records.take_back(rows)
        self._known -= {row.id for row in rows}
        return report

    def _undo(self, turns: "list[str]", because: str, *, databases: bool) -> "Report | None":
        """Undo what stands of some turns; None if nothing does."""
        rows = [self._records.turn(id) for id in turns]
        entry = self._records.ledger.turns.is_entry
        live = [
            row.id
            for row in rows
            if row.undone is None and row.covered is None and entry(row.number)
        ]
        if not live:
            return None
        return self._apply_undo(live, because, databases=databases)

    def _apply_undo(self, turns: "list[str]", because: str, *, databases: bool) -> "Report":
        """Plan, look whether the databases go along that shall, and do it."""
        only: tuple[str, ...] = (FILES, MEMORY, DATABASES, OTHER) if databases else (FILES, MEMORY)
        if not databases and self._records.ledger.mutations.of_turns(turns):
            only = (FILES, MEMORY, OTHER)  # the program said how to reverse it
        options: Applied = {"because": because, "yes": self._yes, "asker": self._session.id}
        for _ in range(_TRIES):
            plan = self._project.plan_undo(turns, only=only)
            _require_databases(plan)
            try:
                return self._project.apply(plan, **options)
            except StalePlanError:
                continue  # somebody saved in between
        return self._project.undo(turns, only=only, **options)

    def _lesson(self, report: "Report | None", turn: str, because: str) -> "Lesson":
        lessons = self._project.lessons
        if report is not None and report.id:
            for lesson in lessons.list(all=True):
                if lesson.restore == report.id:
                    return lesson
        return lessons.note(because, session=self._session.id, turn=turn)

    def _standing_since(self, step: "Which") -> "list[PlanStepRow]":
        """A step and the later ones that are done and were not taken back."""
        if self._step is not None:
            raise UsageError(
                f"the step `{self._step.label}` has not ended", hint="leave its block first"
            )
        rows = self._records.standing()
        if isinstance(step, str):
            meant = [row for row in rows if step in (row.id, row.key)]
            meant = meant or [row for row in rows if row.label == step]
        else:
            meant = [row for row in rows if row.id == step.id]
        if not meant:
            named = step if isinstance(step, str) else step.label
            raise UnknownReferenceError(
                f"no step `{named}` of this plan is done", hint="`plan.steps` lists them"
            )
        return rows[rows.index(meant[-1]) :]


_at_work: "set[str]" = set()
"""The turns of the plan steps that run in this process."""


def _require_databases(plan: "Plan") -> None:
    """An error if a database that a step changed cannot go back with it."""
    staying = [move for move in plan.moves if move.kind != MEMORY and move.how == STAYS]
    if staying:
        named = ", ".join(f"`{move.name}`" for move in staying)
        raise ConflictError(
            f"{named} cannot be taken back with the step; nothing was changed",
            hint="`plan.back_to(step)` takes back the steps after a step, the newest first",
            conflicts=tuple((move.name, move.reason) for move in staying if move.reason),
        )


def _clean(text: object, longest: int) -> str:
    """Text that can be stored, on one line."""
    if not isinstance(text, str):
        raise UsageError(f"`{str(text)[:40]}` is not text", hint="give a str")
    line = " ".join(text.split())[:longest]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
