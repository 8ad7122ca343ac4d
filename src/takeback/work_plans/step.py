"""`PlanStep`: one step of a plan of work, which is undone if it fails."""

from takeback.errors import TakebackError, UsageError
from takeback.model.words import DONE, FAILED, INTERRUPTED, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from takeback.lessons.lesson import Lesson
    from takeback.model.plan import Report
    from takeback.model.results import Checkpoint
    from takeback.model.text.json_text import Json
    from takeback.session import Step, Turn
    from takeback.work_plans.plan import WorkPlan

UNDO, KEEP = "undo", "keep"
"""What becomes of a step that fails."""
_LONGEST_REASON = 300


class PlanStep:
    """One step of a plan: a turn of the session that is undone if the block raises.

    `is_done` is True when it is done, also when an earlier run did it. `result` is JSON that the
    step keeps for later runs. `lesson` is what the last failed attempt taught, `error` what was
    raised, and `report` what the undo did; None if there was none.
    """

    def __init__(
        self,
        plan: "WorkPlan",
        label: str,
        key: str,
        *,
        databases: bool,
        keeps: bool,
        raises: bool,
        whole: bool,
    ) -> None:
        self._plan = plan
        self._keeps = keeps
        self._raises = raises
        self._whole = whole
        self._turn: Turn | None = None
        self._result: Json = None
        self.label = label
        self.key = key
        self.databases = databases
        self.id = ""
        """The id of its turn; empty until it begins."""
        self.is_done = False
        self.lesson: Lesson | None = None
        self.error: BaseException | None = None
        self.report: Report | None = None

    def __repr__(self) -> str:
        return f"<takeback.PlanStep {self.label!r} {self.id}>".replace(" >", ">")

    @property
    def turn(self) -> "Turn":
        """The turn that it is, while it runs."""
        if self._turn is None:
            raise UsageError(
                f"the step `{self.label}` does not run",
                hint="`with plan.step(…) as step:` begins it; skip the work if `step.is_done`",
            )
        return self._turn

    @property
    def result(self) -> "Json":
        return self._result

    @result.setter
    def result(self, value: "Json") -> None:
        import json

        try:
            self._result = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as problem:
            raise UsageError(
                f"the result of a step is JSON: {problem}",
                hint="text, numbers, booleans, None, lists and dicts with text keys",
            ) from problem

    def step(
        self,
        tool: str,
        given: "Mapping[str, object] | None" = None,
        **options: "Any",  # noqa: ANN401 - as `Turn.step` takes them
    ) -> "Step":
        """A tool is about to be called inside of this step, as with `turn.step`."""
        return self.turn.step(tool, given, **options)

    def checkpoint(self, label: str = "") -> "Checkpoint":
        return self.turn.checkpoint(label)

    def begun(self, turn: "Turn") -> None:
        """The plan began its turn."""
        self._turn = turn
        self.id = turn.id

    def __enter__(self) -> "Self":
        if self.id:
            raise UsageError(f"the step `{self.label}` was begun before", hint="call `plan.step`")
        known = self._plan.find_done(self.key)
        if known is not None:
            self.id, self._result, self.is_done = known.id, known.result, True
            return self
        self.lesson = self._plan.find_lesson(self.key, self.label)
        self._plan.enter(self, whole=self._whole)
        return self

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> bool:
        if self._turn is None:
            return False
        try:
            failure = self._ended(problem)
        finally:
            self._turn = None
            self._plan.leave(self)
        if failure is None:
            return False
        is_hidden = not self._raises and isinstance(failure, Exception)
        if failure is not problem and not is_hidden:
            raise failure
        return is_hidden

    def _ended(self, problem: "BaseException | None") -> "BaseException | None":
        """Record the end; what the step failed with, if it did."""
        failure = problem
        if status_of(problem) == DONE:
            failure = self._plan.finish(self)
            if failure is None:
                self.is_done = True
                return None
        assert failure is not None
        self.error = failure
        status, because = status_of(failure), reason_of(failure)
        try:
            self.report, self.lesson = self._plan.fail(self, status, because, keeps=self._keeps)
        except TakebackError as trouble:
            trouble.add_note(f"the step `{self.label}` failed ({because}); it was not undone")
            raise trouble from failure
        if self.report is not None:
            files = count(len(self.report.plan.changes), "path")
            failure.add_note(f"Takeback undid the step `{self.label}`: {files}")
        return failure


def status_of(problem: "BaseException | None") -> str:
    """How something ended, by what came out of its body."""
    if problem is None or (isinstance(problem, SystemExit) and not problem.code):
        return DONE
    return FAILED if isinstance(problem, Exception | SystemExit) else INTERRUPTED


def reason_of(problem: BaseException) -> str:
    """The first line of what an exception says, and its kind."""
    lines = (line.strip() for line in str(problem).splitlines())
    said = next(filter(None, lines), "")
    return f"{type(problem).__name__}: {said}"[:_LONGEST_REASON] if said else type(problem).__name__
